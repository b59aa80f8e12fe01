#include "shade.h"

#include "exact.h"
#include "material.h"
#include "sky.h"

#define FAR_AWAY     10.0
#define TABLE_RADIUS 1.5
#define WALL_RADIUS  9.0

static const vec3 sun_direction = SKY_SUN_DIRECTION;
static const vec3 sun_color = {1.02, 0.94, 0.82};
static const vec3 sky_color = {0.42, 0.46, 0.54};
static const vec3 ground_color = {0.17, 0.15, 0.12};

/* The glass is a thin shell around a homogeneous body. Both are densities with a colour, as in a
 * radiance field: without refraction and view-dependent opacity. The optical thickness of the shell
 * along a ray is shell_depth divided by the cosine, which brightens the outline. */
static const vec3 glass_color = {0.42, 0.10, 0.52};
static const double glass_density = 1.1;
static const double shell_depth = 0.20;

typedef struct hit {
    geometry_part part;
    double t;
} hit;

/* The nearest opaque surface; part = PART_COUNT if there is none. */
static hit nearest(const geometry_scene *scene, vec3 o, vec3 d)
{
    hit best = {PART_COUNT, FAR_AWAY};
    for (geometry_part part = scene->first; part < scene->end; part++) {
        double t = geometry_trace(part, scene->time, o, d, best.t);
        if (t >= 0.0)
            best = (hit){part, t};
    }
    return best;
}

/* Share of sunlight that a part does not block at p: 1 far from the part's shadow, 0 in its core
 * (Quilez, "Soft shadows in raymarched SDFs"). */
static double part_shadow(geometry_part part, double time, vec3 p)
{
    const double sharpness = 14.0, margin = 0.10;
    geometry_bound bound = geometry_part_bound(part, time);
    vec3 to_centre = vec_sub(bound.centre, p);
    double middle = vec_dot(to_centre, sun_direction), radius = bound.radius + margin;
    double reach = radius * radius - (vec_dot(to_centre, to_centre) - middle * middle);
    if (reach <= 0.0)
        return 1.0;
    reach = sqrt(reach);
    double light = 1.0, t = max2(middle - reach, 0.02);
    for (int step = 0; step < 60 && t < middle + reach; step++) {
        double d = geometry_part_distance(part, time, vec_along(p, sun_direction, t));
        if (d < 1e-3)
            return 0.0;
        light = min2(light, sharpness * d / t);
        t += max2(d, 0.01);
    }
    return light * light * (3.0 - 2.0 * light);
}

static double sunlight(const geometry_scene *scene, vec3 p)
{
    double light = 1.0;
    for (geometry_part part = scene->first; part < scene->end && light > 0.0; part++)
        light = min2(light, part_shadow(part, scene->time, p));
    if (scene->glass)
        light = light * mix(0.55, 1.0, part_shadow(PART_GLASS, scene->time, p));
    return light;
}

/* Ambient occlusion from distances to the scene at points along the normal. */
static double openness(const geometry_scene *scene, vec3 p, vec3 n)
{
    double hidden = 0.0, weight = 1.0;
    for (int i = 1; i <= 4; i++) {
        double walked = 0.06 * i;
        double free = geometry_scene_distance(scene, vec_along(p, n, walked));
        hidden += weight * max2(walked - free, 0.0);
        weight *= 0.7;
    }
    return clamp(1.0 - 1.9 * hidden, 0.12, 1.0);
}

/* Blinn (1977), "Models of light reflection for computer synthesized pictures". */
static double highlight(vec3 n, vec3 d, unsigned shininess)
{
    vec3 half = vec_normalize(vec_sub(sun_direction, d));
    return exact_power(max2(vec_dot(n, half), 0.0), shininess);
}

static vec3 ambient(vec3 n)
{
    return vec_mix(ground_color, sky_color, 0.5 + 0.5 * n.z);
}

static vec3 encode(vec3 linear)
{
    return vec(exact_srgb(linear.x), exact_srgb(linear.y), exact_srgb(linear.z));
}

static vec3 surface(const geometry_scene *scene, hit where, vec3 o, vec3 d)
{
    vec3 p = vec_along(o, d, where.t);
    vec3 n = geometry_part_normal(where.part, scene->time, p);
    material m = material_at(where.part, p, n);
    double facing = vec_dot(n, sun_direction);
    double sun = facing > 0.0 ? sunlight(scene, vec_along(p, n, 2e-3)) : 0.0;
    vec3 light = vec_scale(ambient(n), openness(scene, p, n));
    light = vec_along(light, sun_color, max2(facing, 0.0) * sun);
    light = vec_add(vec_scale(light, 1.0 - m.glow), vec(m.glow, m.glow, m.glow));
    vec3 color = vec_mul(m.albedo, light);
    color = vec_along(color, m.specular, sun * highlight(n, d, m.shininess));
    return encode(color);
}

/* Composites a layer of given colour and opacity behind the ray's accumulated colour. */
static void behind(radiance *sum, vec3 color, double alpha)
{
    double share = (1.0 - sum->alpha) * alpha;
    sum->color = vec_along(sum->color, color, share);
    sum->alpha += share;
}

static void shell(radiance *sum, vec3 o, vec3 d, double t)
{
    vec3 p = vec_along(o, d, t);
    vec3 n = geometry_part_normal(PART_GLASS, 0.0, p);
    double cosine = max2(fabs(vec_dot(n, d)), 0.1);
    double facing = max2(vec_dot(n, sun_direction), 0.0);
    vec3 light = vec_along(ambient(n), sun_color, 0.8 * facing);
    vec3 color = vec_mul(vec(0.80, 0.50, 0.95), light);
    color = vec_along(color, vec(1.0, 1.0, 1.0), 0.9 * highlight(n, d, 36));
    behind(sum, encode(color), 1.0 - exact_exp(-shell_depth / cosine));
}

/* Adds the glass between camera and t_max. The glass is convex, so a ray from behind finds the
 * exit. */
static void glass(radiance *sum, vec3 o, vec3 d, double t_max)
{
    double enter = geometry_trace(PART_GLASS, 0.0, o, d, t_max);
    if (enter < 0.0)
        return;
    vec3 beyond = vec_along(o, d, FAR_AWAY);
    double back = geometry_trace(PART_GLASS, 0.0, beyond, vec_scale(d, -1.0), FAR_AWAY);
    double leave = back < 0.0 ? enter : max2(FAR_AWAY - back, enter);
    double length = min2(leave, t_max) - enter;
    shell(sum, o, d, enter);
    behind(sum, encode(glass_color), 1.0 - exact_exp(-glass_density * length));
    if (leave < t_max)
        shell(sum, o, d, leave);
}

/* Returns the colour of the table, which is round, white and without texture. */
static vec3 table(const geometry_scene *scene, vec3 p)
{
    const vec3 up = {0.0, 0.0, 1.0}, white = {0.80, 0.80, 0.78};
    vec3 light = vec_scale(ambient(up), openness(scene, p, up));
    light = vec_along(light, sun_color, sun_direction.z * sunlight(scene, p));
    return encode(vec_mul(white, light));
}

/* Returns the colour of the walls, a sphere. It varies slowly, like surroundings out of focus. */
static vec3 walls(vec3 p)
{
    vec3 u = vec_scale(p, 1.0 / WALL_RADIUS);
    double warm = exact_sin(3.0 * u.x + 2.0 * u.z + 0.7) * exact_sin(4.0 * u.y - 1.0);
    double bright = exact_sin(5.0 * u.x - 2.0 * u.y) + exact_sin(4.0 * u.z + 3.0 * u.y + 2.0);
    vec3 color = vec_mix(vec(0.10, 0.14, 0.20), vec(0.34, 0.22, 0.12), 0.5 + 0.5 * warm);
    return encode(vec_scale(color, 1.0 + 0.45 * bright));
}

/* Returns the colour behind all parts: of the table if the ray meets its top, else of the walls. */
static vec3 surroundings(const geometry_scene *scene, vec3 o, vec3 d)
{
    double t = (GEOMETRY_FLOOR - o.z) / (d.z < 0.0 ? d.z : -1.0);
    vec3 p = vec_along(o, d, t);
    if (d.z < 0.0 && p.x * p.x + p.y * p.y < TABLE_RADIUS * TABLE_RADIUS)
        return table(scene, p);
    double middle = -vec_dot(o, d), miss = vec_dot(o, o) - middle * middle;
    return walls(vec_along(o, d, middle + sqrt(WALL_RADIUS * WALL_RADIUS - miss)));
}

/* Returns the colour of the meadow, whose texture is as coarse as an image's pixels far away and
 * vanishes in the haze, or of the sky. */
static vec3 outdoors(const geometry_scene *scene, vec3 o, vec3 d)
{
    const vec3 up = {0.0, 0.0, 1.0};
    if (d.z > -1e-3)
        return encode(sky_light(d));
    double t = (GEOMETRY_GROUND - o.z) / d.z;
    vec3 p = vec_along(o, d, t);
    double patch = exact_sin(1.9 * p.x + 1.3 * exact_sin(1.1 * p.y)) * exact_sin(2.3 * p.y + 0.7);
    vec3 grass = vec_mix(vec(0.10, 0.22, 0.05), vec(0.30, 0.33, 0.10), 0.5 + 0.5 * patch);
    vec3 light = vec_scale(ambient(up), openness(scene, p, up));
    light = vec_along(light, sun_color, sun_direction.z * sunlight(scene, p));
    return encode(vec_mix(sky_light(d), vec_mul(grass, light), exact_exp(-t / 12.0)));
}

radiance shade_ray(const geometry_scene *scene, vec3 o, vec3 d)
{
    radiance sum = {{0.0, 0.0, 0.0}, 0.0};
    hit first = nearest(scene, o, d);
    if (scene->glass)
        glass(&sum, o, d, first.t);
    if (first.part != PART_COUNT)
        behind(&sum, surface(scene, first, o, d), 1.0);
    else if (scene->room)
        behind(&sum, surroundings(scene, o, d), 1.0);
    else if (scene->outdoors)
        behind(&sum, outdoors(scene, o, d), 1.0);
    return sum;
}
