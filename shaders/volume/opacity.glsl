// How much of the light samples take. What includes this has declared state and rays.
#include "shared/contraction.glsl"
#include "shared/rounding.glsl"

layout(constant_id = SPEC_ALPHA_THRESHOLD) const uint ALPHA_THRESHOLD = 0;
layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY;

// In the density's unit.
float density_width(uint ray, float t, float width)
{
    if (CONTRACTION == CONTRACTION_NONE)
        return width;
    Ray r = rays[min(ray, config.ray_capacity - 1u)];
    return width_at(vec3(r.origin[0], r.origin[1], r.origin[2]) +
                        t * vec3(r.direction[0], r.direction[1], r.direction[2]), width);
}

// Samples below it count as empty and have no gradient (NerfAcc's alpha_thre). What keeps a cell occupied,
// where there are cells, is always enough, and all is at first: a field that has learnt nothing yet, all
// of it as transparent, would stay so.
float current_alpha_threshold()
{
    if (state.step < OCCUPANCY_WARMUP)
        return 0.0;
    return SAMPLING == SAMPLING_OCCUPANCY ? min(config.alpha_threshold, state.threshold)
                                          : config.alpha_threshold;
}

float min_alpha = ALPHA_THRESHOLD != 0u ? current_alpha_threshold() : 0.0;

bool is_transparent(float alpha)
{
    return ALPHA_THRESHOLD != 0u && alpha < min_alpha;
}

// What the policy's compositing is computed in.
float round_compositing(float x)
{
    return round_to(ROUND_COMPOSITING, x);
}

vec3 round_compositing(vec3 x)
{
    return round_to(ROUND_COMPOSITING, x);
}

float opacity(float thickness)
{
    return round_compositing(1.0 - round_compositing(exp(-thickness)));
}
