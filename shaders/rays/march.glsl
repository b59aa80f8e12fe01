// Converts between distances along a ray and "stepping space", in which marching steps have length 1.
// The step is clamp(t * cone_angle, step_min, step_max): linear spacing near the camera, then
// geometric, then linear again (instant-ngp, testbed_nerf.cu, to_stepping_space /
// from_stepping_space). In contracted space the last part is linear in 1 / t (Mip-NeRF 360, section 3:
// in disparity) and reaches infinity after 1 / cone_angle more steps. Sampling without an
// occupancy grid may use another spacing (march.spacing).
// Passes: generate_rays, march_rays, sample_uniform, sample_fine, sample_proposal, interlevel.
#include "shared/contraction.glsl"

#ifndef NEAR_DISTANCE // an including pass may have limits of its own for each ray
#define NEAR_DISTANCE config.near_distance
#define FAR_DISTANCE  config.far_distance
#endif

layout(constant_id = SPEC_SPACING) const uint SPACING = SPACING_STEPS;

float step_at(float t)
{
    float last = config.step_max / config.cone_angle;
    if (CONTRACTION == CONTRACTION_CUBE && t > last)
        return config.step_max * (t / last) * (t / last);
    return clamp(t * config.cone_angle, config.step_min, config.step_max);
}

// Returns the distance at which logarithmic and disparity spacing begin.
float nearest_distance()
{
    return max(config.near_distance, config.step_min);
}

// Converts a distance to stepping space. In disparity spacing the result is proportional to 1 / t and
// so decreases with distance: 1 - 1 / t would lose its digits at large distances.
float to_steps(float t)
{
    if (SPACING == SPACING_LOG)
        return log(max(t / nearest_distance(), 1.0));
    if (SPACING == SPACING_DISPARITY)
        return nearest_distance() / max(t, nearest_distance());
    if (SPACING == SPACING_LINEAR || config.cone_angle <= 1e-5)
        return t / config.step_min;
    float grow = log(1.0 + config.cone_angle);
    float first = config.step_min / config.cone_angle; // begin and end of the geometric part
    float last = config.step_max / config.cone_angle;
    float n = min(t, first) / config.step_min;
    if (t > first)
        n += log(min(t, last) / first) / grow;
    if (t > last)
        n += CONTRACTION == CONTRACTION_CUBE ? (1.0 - last / t) / config.cone_angle
                                             : (t - last) / config.step_max;
    return n;
}

float from_steps(float n)
{
    if (SPACING == SPACING_LOG)
        return nearest_distance() * exp(n);
    if (SPACING == SPACING_DISPARITY)
        return nearest_distance() / max(n, MIN_INVERSE_DISTANCE * MIN_INVERSE_DISTANCE);
    if (SPACING == SPACING_LINEAR || config.cone_angle <= 1e-5)
        return n * config.step_min;
    float grow = log(1.0 + config.cone_angle);
    float first = config.step_min / config.cone_angle;
    float last = config.step_max / config.cone_angle;
    float n_first = 1.0 / config.cone_angle;
    if (n <= n_first)
        return n * config.step_min;
    float n_last = n_first + log(last / first) / grow;
    if (n <= n_last)
        return first * exp((n - n_first) * grow);
    if (CONTRACTION == CONTRACTION_CUBE)
        return last / max(1.0 - (n - n_last) * config.cone_angle, MIN_INVERSE_DISTANCE);
    return last + (n - n_last) * config.step_max;
}

// Returns the distances at which a ray enters and leaves a cube centred at 0.5; the span is empty if
// the first exceeds the second.
vec2 cube_span(vec3 origin, vec3 direction, float side)
{
    vec3 inverse = 1.0 / direction; // infinities order correctly below
    vec3 a = (0.5 - 0.5 * side - origin) * inverse;
    vec3 b = (0.5 + 0.5 * side - origin) * inverse;
    vec3 low = min(a, b), high = max(a, b);
    return vec2(max(max(low.x, low.y), low.z), min(min(high.x, high.y), high.z));
}

// Returns the first and last distance at which the field is sampled.
vec2 whole_span(vec3 origin, vec3 direction)
{
    if (CONTRACTION == CONTRACTION_CUBE)
        return vec2(NEAR_DISTANCE, FAR_DISTANCE);
    vec2 span = cube_span(origin, direction, config.aabb_scale);
    return vec2(max(span.x, NEAR_DISTANCE), min(span.y, FAR_DISTANCE));
}

// Returns the part of whole_span in the box that pictures show. Cameras may be on faces of the box,
// which the user sets, and look along the faces, where 0 times infinity would be NaN.
vec2 crop_span(vec3 origin, vec3 direction)
{
    const float u[9] = config.crop_axes;
    mat3 axes = mat3(u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8]);
    vec3 from = origin * axes, way = direction * axes; // along the box's axes
    way = mix(way, vec3(1e-20), lessThan(abs(way), vec3(1e-20)));
    vec3 a = (vec3(config.crop_low[0], config.crop_low[1], config.crop_low[2]) - from) / way;
    vec3 b = (vec3(config.crop_high[0], config.crop_high[1], config.crop_high[2]) - from) / way;
    vec3 low = min(a, b), high = max(a, b);
    vec2 span = whole_span(origin, direction);
    return vec2(max(span.x, max(max(low.x, low.y), low.z)),
                min(span.y, min(min(high.x, high.y), high.z)));
}

// Returns the first and last distance at which a ray may have samples.
vec2 ray_span(vec3 origin, vec3 direction)
{
#ifdef TRAIN
    return whole_span(origin, direction);
#else
    return crop_span(origin, direction);
#endif
}
