#include "material.h"

#include "exact.h"

/* Textures have few cycles per object. Images of 128 pixels cannot show more, and a pattern that
 * aliases differently in every view would measure the sampling instead of the trainer. */

static double smooth(double lo, double hi, double x)
{
    double t = clamp((x - lo) / (hi - lo), 0.0, 1.0);
    return t * t * (3.0 - 2.0 * t);
}

static material matte(double r, double g, double b)
{
    return (material){.albedo = {r, g, b}, .specular = {0.0, 0.0, 0.0}, .shininess = 1};
}

static material shiny(vec3 albedo, vec3 specular, unsigned shininess)
{
    return (material){.albedo = albedo, .specular = specular, .shininess = shininess};
}

/* Local coordinates of a part at rest. */
static vec3 local(geometry_part part, vec3 p)
{
    return geometry_to_local(geometry_part_frame(part, 0.0), p);
}

static vec3 wood(vec3 p, double cycles)
{
    double bend = 0.05 * exact_sin(4.0 * p.x + 1.0) + 0.03 * exact_sin(9.0 * p.x + 5.0 * p.z);
    double grain = 0.5 + 0.5 * exact_sin(2.0 * EXACT_PI * cycles * (p.y + bend + 0.6 * p.z));
    return vec_mix(vec(0.50, 0.26, 0.10), vec(0.27, 0.12, 0.045), grain * grain);
}

static material board(vec3 p)
{
    double radius = sqrt(p.x * p.x + p.y * p.y);
    material m = matte(0.0, 0.0, 0.0);
    if (p.z < GEOMETRY_FLOOR - 0.012 || radius > 0.93) {
        m.albedo = wood(p, 5.0);
        m.specular = vec(0.12, 0.12, 0.12);
        m.shininess = 24;
        return m;
    }
    const double cell = 0.233;
    int odd = ((int)floor(p.x / cell + 100.0) + (int)floor(p.y / cell + 100.0)) & 1;
    m.albedo = odd ? vec(0.72, 0.66, 0.50) : vec(0.16, 0.40, 0.30);
    if (radius > 0.90)
        m.albedo = vec(0.10, 0.05, 0.03);
    return m;
}

static material tower(vec3 p, vec3 n)
{
    geometry_frame frame = geometry_part_frame(PART_TOWER, 0.0);
    vec3 q = geometry_to_local(frame, p);
    double facing = vec_dot(n, frame.front), across = fabs(q.x);
    double mottle = exact_sin(19.0 * q.x) * exact_sin(17.0 * q.y + 2.0) * exact_sin(23.0 * q.z);
    material m = matte(0.78, 0.72, 0.60);
    m.albedo = vec_scale(m.albedo, 1.0 + 0.10 * mottle);
    /* Two brick-red bands, a door and a window in front, and a window on either side. */
    if (q.z > 0.31 || (q.z > -0.14 && q.z < -0.06))
        m.albedo = vec(0.55, 0.12, 0.07);
    double arch = q.z < -0.27 ? across : sqrt(q.x * q.x + (q.z + 0.27) * (q.z + 0.27));
    if (facing > 0.0 && q.z < -0.19 && arch < 0.075)
        m.albedo = arch < 0.05 ? vec(0.10, 0.16, 0.34) : vec(0.36, 0.19, 0.08);
    double u = fabs(facing) > 0.7 ? across : fabs(q.y), v = fabs(q.z - 0.10);
    if (u < 0.062 && v < 0.075) {
        m.albedo = u < 0.042 && v < 0.055 ? vec(0.05, 0.13, 0.25) : vec(0.36, 0.19, 0.08);
        m.specular = vec(0.4, 0.4, 0.4);
        m.shininess = 30;
    }
    return m;
}

static material roof(vec3 p)
{
    double z = (p.z - geometry_part_frame(PART_ROOF, 0.0).origin.z) / 0.13;
    double course = 0.5 + 0.5 * exact_sin(2.0 * EXACT_PI * 2.0 * z);
    material m = matte(0.0, 0.0, 0.0);
    m.albedo = vec_mix(vec(0.62, 0.10, 0.06), vec(0.38, 0.05, 0.04), smooth(0.3, 0.7, course));
    m.specular = vec(0.15, 0.15, 0.15);
    m.shininess = 20;
    return m;
}

static material tree(geometry_part part, vec3 p, double scale)
{
    vec3 q = vec_scale(vec_sub(p, geometry_part_frame(part, 0.0).origin), 1.0 / scale);
    if (q.z < 0.137)
        return matte(0.26, 0.13, 0.06);
    double light = 0.5 + 0.5 * exact_sin(21.0 * q.x + 3.0) * exact_sin(23.0 * q.y) *
                             exact_sin(19.0 * q.z + 1.0);
    material m = matte(0.0, 0.0, 0.0);
    m.albedo = vec_mix(vec(0.04, 0.20, 0.05), vec(0.13, 0.42, 0.09), light);
    return m;
}

static material ball(vec3 n)
{
    double band = fabs(vec_dot(n, vec(0.48, -0.36, 0.8)));
    material m = matte(0.0, 0.0, 0.0);
    m.albedo = vec_mix(vec(0.80, 0.76, 0.68), vec(0.72, 0.035, 0.03), smooth(0.20, 0.26, band));
    m.specular = vec(0.75, 0.75, 0.75);
    m.shininess = 48;
    return m;
}

/* A cube with a dot on each face and dark edges; q in units in which the cube is as large as
 * PART_BLOCK. */
static material block(vec3 q, vec3 paint, vec3 edge)
{
    double x = fabs(q.x), y = fabs(q.y), z = fabs(q.z);
    /* u, v: the coordinates along the face, which are all but the largest one. */
    double u = x > y && x > z ? y : x, v = z > x && z > y ? y : z;
    double dot = sqrt(u * u + v * v);
    material m = matte(0.0, 0.0, 0.0);
    m.albedo = vec_mix(vec(0.90, 0.66, 0.10), paint, smooth(0.060, 0.068, dot));
    if (max2(u, v) > 0.105)
        m.albedo = edge;
    m.specular = vec(0.25, 0.25, 0.25);
    m.shininess = 32;
    return m;
}

/* The texture of a sphere depends on its normal only and so moves with the sphere. */
static material globe(vec3 n)
{
    double land = exact_sin(5.0 * n.x + 1.0) + exact_sin(6.0 * n.y - 1.5 * n.z) +
                  exact_sin(5.0 * n.z + 2.0 * n.x + 0.5);
    material m = shiny(vec(0.0, 0.0, 0.0), vec(0.3, 0.3, 0.3), 24);
    m.albedo = vec_mix(vec(0.04, 0.20, 0.55), vec(0.42, 0.50, 0.12), smooth(0.2, 0.5, land));
    m.albedo = vec_mix(m.albedo, vec(0.90, 0.90, 0.88), smooth(0.80, 0.88, fabs(n.z)));
    return m;
}

/* Two colours by octants, a belt and a cap: the ball looks different from every side. */
static material thrown(vec3 n)
{
    double octant = smooth(-0.06, 0.06, n.x * n.y * n.z * 6.0);
    material m = shiny(vec(0.0, 0.0, 0.0), vec(0.4, 0.4, 0.4), 32);
    m.albedo = vec_mix(vec(0.85, 0.18, 0.04), vec(0.95, 0.80, 0.20), octant);
    m.albedo = vec_mix(vec(0.10, 0.03, 0.20), m.albedo, smooth(0.10, 0.16, fabs(n.z)));
    double cap = vec_dot(n, vec(0.48, -0.64, 0.6));
    m.albedo = vec_mix(m.albedo, vec(0.03, 0.45, 0.42), smooth(0.80, 0.86, cap));
    return m;
}

static material lamp(vec3 p)
{
    if (p.z < GEOMETRY_FLOOR + 0.62)
        return shiny(vec(0.06, 0.06, 0.08), vec(0.3, 0.3, 0.3), 20);
    material m = matte(0.95, 0.70, 0.16);
    m.glow = 0.55;
    return m;
}

material material_at(geometry_part part, vec3 p, vec3 n)
{
    switch (part) {
    case PART_BOARD:
        return board(p);
    case PART_TOWER:
        return tower(p, n);
    case PART_ROOF:
        return roof(p);
    case PART_SAILS:
        return matte(0.80, 0.76, 0.66);
    case PART_TREE_TALL:
        return tree(part, p, 1.0);
    case PART_TREE_SMALL:
        return tree(part, p, 0.68);
    case PART_BALL:
        return ball(n);
    case PART_RING:
        return shiny(vec(0.55, 0.33, 0.06), vec(0.9, 0.68, 0.28), 22);
    case PART_FENCE:
        return matte(0.78, 0.78, 0.76);
    case PART_LAMP:
        return lamp(p);
    case PART_PEARL:
        return shiny(vec(0.95, 0.62, 0.06), vec(0.3, 0.3, 0.3), 32);
    case PART_BLOCK:
        return block(local(part, p), vec(0.05, 0.13, 0.55), vec(0.03, 0.07, 0.33));
    case PART_GLOBE:
        return globe(n);
    case PART_DIE:
        return block(vec_scale(local(part, p), 0.13 / 0.28), vec(0.10, 0.42, 0.16),
                     vec(0.04, 0.16, 0.10));
    case PART_THROWN:
        return thrown(n);
    case PART_GLASS:
    case PART_COUNT:
        break;
    }
    return matte(0.0, 0.0, 0.0);
}
