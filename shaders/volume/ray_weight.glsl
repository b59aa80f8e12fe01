// Returns the weights of rays in the loss and in gradients, which are 1 unless rays are drawn by error
// (rays/error_map.glsl), have no weight because their cell is an outlier cell (rays/mark_outliers.comp), or
// have weights of the caller's (stepper).
// Passes: composite, interlevel, appearance_gradients, sum_sky. Reads RAYS [ray].

layout(constant_id = SPEC_BY_ERROR) const uint BY_ERROR = 0;
layout(constant_id = SPEC_ROBUST) const uint ROBUST = 0;
layout(constant_id = SPEC_RAY_WEIGHTS) const uint RAY_WEIGHTS = 0;

// Returns whether the ray goes through an outlier cell.
bool is_outlier(uint ray)
{
    return ROBUST != 0u && rays[ray].weight == 0.0;
}

// Returns the weight of a ray in the reported loss, which estimates the mean of evenly drawn rays.
float loss_weight(uint ray)
{
    return BY_ERROR != 0u || ROBUST != 0u || RAY_WEIGHTS != 0u ? rays[ray].weight : 1.0;
}

// Returns the weight of a ray's gradients.
float gradient_weight(uint ray)
{
    if (is_outlier(ray))
        return 0.0;
    return BY_ERROR != 0u && config.error_unbiased != 0u || RAY_WEIGHTS != 0u ? rays[ray].weight : 1.0;
}
