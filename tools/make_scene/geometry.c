#include "geometry.h"

/* Distance functions as in Quilez, https://iquilezles.org/articles/distfunctions (exact forms). */

static double length2(double x, double y)
{
    return sqrt(x * x + y * y);
}

static double sphere(vec3 p, vec3 centre, double radius)
{
    return vec_length(vec_sub(p, centre)) - radius;
}

/* Rod with round ends from a to b. */
static double rod(vec3 p, vec3 a, vec3 b, double radius)
{
    vec3 pa = vec_sub(p, a), ba = vec_sub(b, a);
    double t = clamp(vec_dot(pa, ba) / vec_dot(ba, ba), 0.0, 1.0);
    return vec_length(vec_sub(pa, vec_scale(ba, t))) - radius;
}

/* Upright cylinder around the origin with rounded edges. */
static double round_cylinder(vec3 p, double radius, double half_height, double edge)
{
    double x = length2(p.x, p.y) - radius + edge;
    double z = fabs(p.z) - half_height + edge;
    return min2(max2(x, z), 0.0) + length2(max2(x, 0.0), max2(z, 0.0)) - edge;
}

/* Upright truncated cone around the origin with radius `low` at the bottom, `high` at the top. */
static double cone(vec3 p, double half_height, double low, double high)
{
    double x = length2(p.x, p.y), z = p.z;
    double ax = x - min2(x, z < 0.0 ? low : high), az = fabs(z) - half_height;
    double slope = high - low, height = 2.0 * half_height;
    double t = (high - x) * slope + (half_height - z) * height;
    t = clamp(t / (slope * slope + height * height), 0.0, 1.0);
    double bx = x - high + slope * t, bz = z - half_height + height * t;
    double sign = bx < 0.0 && az < 0.0 ? -1.0 : 1.0;
    return sign * sqrt(min2(ax * ax + az * az, bx * bx + bz * bz));
}

static double round_box(vec3 p, double half, double edge)
{
    double x = fabs(p.x) - half + edge, y = fabs(p.y) - half + edge, z = fabs(p.z) - half + edge;
    vec3 outside = vec(max2(x, 0.0), max2(y, 0.0), max2(z, 0.0));
    return vec_length(outside) + min2(max2(x, max2(y, z)), 0.0) - edge;
}

/* Directions are Pythagorean triples (7-24-25, 3-4-5): exact unit length without trigonometry. */
static const geometry_frame frames[PART_COUNT] = {
    [PART_BOARD] = {{0.0, 0.0, -0.58}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_TOWER] = {{-0.36, 0.30, -0.09}, {0.28, -0.96, 0.0}, {-0.96, -0.28, 0.0}},
    [PART_ROOF] = {{-0.36, 0.30, 0.45}, {0.28, -0.96, 0.0}, {-0.96, -0.28, 0.0}},
    [PART_SAILS] = {{-0.276, 0.012, 0.36}, {0.28, -0.96, 0.0}, {-0.96, -0.28, 0.0}},
    [PART_TREE_TALL] = {{0.34, 0.58, -0.5}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_TREE_SMALL] = {{0.70, 0.26, -0.5}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_BALL] = {{0.66, -0.40, -0.29}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_RING] = {{-0.64, -0.42, -0.24}, {0.6, -0.8, 0.0}, {-0.8, -0.6, 0.0}},
    [PART_FENCE] = {{0.0, 0.0, -0.5}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_LAMP] = {{0.22, 0.02, -0.5}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_BLOCK] = {{-0.20, -0.30, -0.37}, {0.28, -0.96, 0.0}, {-0.96, -0.28, 0.0}},
    [PART_PEARL] = {{0.16, -0.64, -0.29}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_GLASS] = {{0.16, -0.64, -0.29}, {0.6, -0.8, 0.0}, {-0.8, -0.6, 0.0}},
    [PART_GLOBE] = {{-0.50, -0.55, -0.15}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
    [PART_DIE] = {{0.55, -0.50, -0.25}, {0.28, -0.96, 0.0}, {-0.96, -0.28, 0.0}},
    [PART_THROWN] = {{-0.6, 0.65, -0.1}, {0.0, 1.0, 0.0}, {1.0, 0.0, 0.0}},
};

static const geometry_bound bounds[PART_COUNT] = {
    [PART_BOARD] = {{0.0, 0.0, -0.58}, 1.12},       [PART_TOWER] = {{-0.36, 0.30, -0.09}, 0.50},
    [PART_ROOF] = {{-0.36, 0.30, 0.45}, 0.30},      [PART_SAILS] = {{-0.276, 0.012, 0.36}, 0.62},
    [PART_TREE_TALL] = {{0.34, 0.58, -0.12}, 0.44}, [PART_TREE_SMALL] = {{0.70, 0.26, -0.24}, 0.31},
    [PART_BALL] = {{0.66, -0.40, -0.29}, 0.22},     [PART_RING] = {{-0.64, -0.42, -0.24}, 0.28},
    [PART_FENCE] = {{-0.20, 0.40, -0.39}, 0.94},    [PART_LAMP] = {{0.22, 0.02, -0.15}, 0.46},
    [PART_BLOCK] = {{-0.20, -0.30, -0.37}, 0.23},   [PART_PEARL] = {{0.16, -0.64, -0.29}, 0.11},
    [PART_GLASS] = {{0.16, -0.64, -0.29}, 0.37},    [PART_GLOBE] = {{-0.50, -0.55, -0.15}, 0.41},
    [PART_DIE] = {{0.55, -0.50, -0.25}, 0.49},      [PART_THROWN] = {{-0.6, 0.65, -0.1}, 0.29},
};

vec3 moving_centre(double time)
{
    return vec(-0.6 + 1.2 * time, 0.65, -0.1 + 1.4 * time * (1.0 - time));
}

geometry_bound geometry_part_bound(geometry_part part, double time)
{
    geometry_bound bound = bounds[part];
    if (part == PART_THROWN)
        bound.centre = moving_centre(time);
    return bound;
}

geometry_frame geometry_part_frame(geometry_part part, double time)
{
    geometry_frame frame = frames[part];
    if (part == PART_THROWN)
        frame.origin = moving_centre(time);
    return frame;
}

vec3 geometry_to_local(geometry_frame frame, vec3 p)
{
    vec3 v = vec_sub(p, frame.origin);
    return vec(vec_dot(v, frame.side), vec_dot(v, frame.front), v.z);
}

/* The axle and four sails, rotated by a 5-12-13 angle: each a spar with a ladder of thin rungs on
 * one side. */
static double sails(vec3 q)
{
    const double cosine = 12.0 / 13.0, sine = 5.0 / 13.0;
    double u = cosine * q.x - sine * q.z, v = sine * q.x + cosine * q.z;
    double d = rod(vec(u, q.y, v), vec(0.0, -0.16, 0.0), vec(0.0, 0.02, 0.0), 0.05);
    for (int i = 0; i < 4; i++) {
        vec3 s = vec(u, q.y, v);
        double k = clamp(floor((u - 0.20) / 0.085 + 0.5), 0.0, 4.0);
        double rung = 0.20 + 0.085 * k;
        d = min2(d, rod(s, vec(0.0, 0.0, 0.0), vec(0.56, 0.0, 0.0), 0.022));
        d = min2(d, rod(s, vec(0.20, 0.0, 0.15), vec(0.54, 0.0, 0.15), 0.017));
        d = min2(d, rod(s, vec(rung, 0.0, 0.0), vec(rung, 0.0, 0.15), 0.017));
        double turned = v;
        v = -u;
        u = turned;
    }
    return d;
}

/* A trunk and three cones; 0.76 high at scale 1. */
static double tree(vec3 q, double scale)
{
    q = vec_scale(q, 1.0 / scale);
    double d = round_cylinder(vec(q.x, q.y, q.z - 0.08), 0.05, 0.09, 0.01);
    d = min2(d, cone(vec(q.x, q.y, q.z - 0.27), 0.12, 0.235, 0.09) - 0.012);
    d = min2(d, cone(vec(q.x, q.y, q.z - 0.45), 0.11, 0.185, 0.06) - 0.012);
    d = min2(d, cone(vec(q.x, q.y, q.z - 0.62), 0.12, 0.135, 0.005) - 0.012);
    return d * scale;
}

/* Posts along the back of the rim, joined by straight rails. */
static double fence(vec3 q)
{
    static const double posts[][2] = {
        {0.60, 0.80},  {0.352, 0.936}, {0.0, 1.0},      {-0.352, 0.936},
        {-0.60, 0.80}, {-0.80, 0.60},  {-0.936, 0.352}, {-1.0, 0.0},
    };
    const int count = (int)(sizeof posts / sizeof posts[0]);
    double d = 1e9;
    for (int i = 0; i < count; i++) {
        double x = posts[i][0], y = posts[i][1];
        d = min2(d, rod(q, vec(x, y, 0.0), vec(x, y, 0.22), 0.022));
        if (i + 1 == count)
            break;
        double nx = posts[i + 1][0], ny = posts[i + 1][1];
        d = min2(d, rod(q, vec(x, y, 0.09), vec(nx, ny, 0.09), 0.016));
        d = min2(d, rod(q, vec(x, y, 0.18), vec(nx, ny, 0.18), 0.016));
    }
    return d;
}

double geometry_part_distance(geometry_part part, double time, vec3 p)
{
    vec3 q = geometry_to_local(geometry_part_frame(part, time), p);
    switch (part) {
    case PART_BOARD:
        return round_cylinder(q, 1.1, 0.08, 0.03);
    case PART_TOWER:
        return cone(q, 0.41, 0.26, 0.17);
    case PART_ROOF:
        return cone(q, 0.13, 0.20, 0.02) - 0.015;
    case PART_SAILS:
        return sails(q);
    case PART_TREE_TALL:
        return tree(q, 1.0);
    case PART_TREE_SMALL:
        return tree(q, 0.68);
    case PART_BALL:
        return vec_length(q) - 0.21;
    case PART_RING: {
        double x = length2(q.x, q.z) - 0.20;
        return length2(x, q.y) - 0.06;
    }
    case PART_FENCE:
        return fence(q);
    case PART_LAMP:
        return min2(rod(q, vec(0.0, 0.0, 0.0), vec(0.0, 0.0, 0.68), 0.019),
                    min2(sphere(q, vec(0.0, 0.0, 0.70), 0.085),
                         round_cylinder(vec(q.x, q.y, q.z - 0.02), 0.08, 0.025, 0.015)));
    case PART_BLOCK:
        return round_box(q, 0.13, 0.03);
    case PART_PEARL:
        return vec_length(q) - 0.10;
    case PART_GLASS:
        return round_box(q, 0.21, 0.05);
    case PART_GLOBE:
        return vec_length(q) - 0.40;
    case PART_DIE:
        return round_box(q, 0.28, 0.05);
    case PART_THROWN:
        return vec_length(q) - 0.28;
    case PART_COUNT:
        break;
    }
    return 1e9;
}

geometry_scene geometry_park(void)
{
    return (geometry_scene){.first = PART_BOARD, .end = PART_GLASS, .glass = 1};
}

geometry_scene geometry_moving(double time)
{
    return (geometry_scene){.first = PART_GLOBE, .end = PART_COUNT, .time = time};
}

geometry_scene geometry_room(void)
{
    return (geometry_scene){.first = PART_GLOBE, .end = PART_THROWN, .room = 1};
}

geometry_scene geometry_outdoors(void)
{
    return (geometry_scene){.first = PART_BOARD, .end = PART_GLASS, .outdoors = 1};
}

double geometry_scene_distance(const geometry_scene *scene, vec3 p)
{
    double d = 1e9;
    for (geometry_part part = scene->first; part < scene->end; part++) {
        geometry_bound bound = geometry_part_bound(part, scene->time);
        if (sphere(p, bound.centre, bound.radius) < d)
            d = min2(d, geometry_part_distance(part, scene->time, p));
    }
    return d;
}

double geometry_distance(vec3 p)
{
    geometry_scene park = geometry_park();
    return geometry_scene_distance(&park, p);
}

double moving_distance(vec3 p, double time)
{
    geometry_scene scene = geometry_moving(time);
    return geometry_scene_distance(&scene, p);
}

/* Gradient from differences at the corners of a tetrahedron (Quilez, "Normals for an SDF"). */
vec3 geometry_part_normal(geometry_part part, double time, vec3 p)
{
    static const vec3 corners[4] = {{1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {1, 1, 1}};
    vec3 sum = vec(0.0, 0.0, 0.0);
    for (int i = 0; i < 4; i++) {
        double d = geometry_part_distance(part, time, vec_along(p, corners[i], 1e-4));
        sum = vec_along(sum, corners[i], d);
    }
    return vec_normalize(sum);
}

double geometry_trace(geometry_part part, double time, vec3 o, vec3 d, double t_max)
{
    /* Traces only inside the part's bounding sphere. */
    geometry_bound bound = geometry_part_bound(part, time);
    vec3 to_centre = vec_sub(bound.centre, o);
    double middle = vec_dot(to_centre, d);
    double miss = vec_dot(to_centre, to_centre) - middle * middle;
    double reach = bound.radius * bound.radius - miss;
    if (reach <= 0.0)
        return -1.0;
    reach = sqrt(reach);
    double t = max2(0.0, middle - reach), end = min2(t_max, middle + reach);
    for (int step = 0; step < 200 && t < end; step++) {
        double distance = geometry_part_distance(part, time, vec_along(o, d, t));
        if (distance < 2e-4)
            return t;
        t += distance;
    }
    return -1.0;
}
