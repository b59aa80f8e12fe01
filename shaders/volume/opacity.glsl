// Computes the opacity (alpha) of a sample, and the alpha threshold. The including file declares
// state and rays.
// Passes: composite, find_visible.
#include "shared/contraction.glsl"
#include "shared/rounding.glsl"

layout(constant_id = SPEC_ALPHA_THRESHOLD) const uint ALPHA_THRESHOLD = 0;
layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY;

// Returns the width of a sample in the density's unit.
float density_width(uint ray, float t, float width)
{
    if (CONTRACTION == CONTRACTION_NONE)
        return width;
    Ray r = rays[min(ray, config.ray_capacity - 1u)];
    return width_at(vec3(r.origin[0], r.origin[1], r.origin[2]) +
                        t * vec3(r.direction[0], r.direction[1], r.direction[2]), width);
}

// Returns the alpha below which samples count as empty and have no gradient (NerfAcc's alpha_thre).
// The threshold never exceeds the occupancy threshold, so that a sample that keeps its cell occupied
// has a gradient. The threshold is 0 during the warm-up, because an untrained field, which is equally
// transparent everywhere, would stay empty.
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

// Rounds to the type in which the precision policy computes compositing.
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
