// Returns the weights of rays in the loss and in gradients, which are 1 unless rays are drawn by error
// (rays/error_map.glsl).
// Passes: composite, interlevel. Reads RAYS [ray].

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
