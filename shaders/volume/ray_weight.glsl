// Rays drawn by error: the rays' weights in the loss, and their losses for the error map
// (rays/error_map.glsl).
// Passes: composite, interlevel.

layout(constant_id = SPEC_BY_ERROR) const uint BY_ERROR = 0;

// Returns the weight of a ray in the reported loss, which estimates the mean of evenly drawn rays.
float loss_weight(uint ray)
{
    return BY_ERROR != 0u ? rays[ray].weight : 1.0;
}

// Returns the weight of a ray's gradients.
float gradient_weight(uint ray)
{
    return BY_ERROR != 0u && config.error_unbiased != 0u ? rays[ray].weight : 1.0;
}
