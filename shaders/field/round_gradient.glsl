// Rounds gradients of activations to the type in which they are stored, and counts how many underflow
// in f16. Underflow is detected before rounding, because drivers may elide a rounding that is followed
// by a comparison. The including file declares `state`.
// Passes: field_backward; backward passes of layer-by-layer models.

uvec2 rounded_gradients = uvec2(0u); // counts of gradients that are not 0 after, and before, rounding

STORAGE_T round_gradient(float x)
{
    STORAGE_T rounded = to_storage(ROUND_ACTIVATION_GRADIENTS, x);
#ifdef F16_STORAGE
    rounded_gradients += uvec2(abs(x) > F16_UNDERFLOW_LIMIT, x != 0.0); // without a branch, for speed
#endif
    return rounded;
}

// Adds the counts to STATE, once per subgroup.
void count_underflowed()
{
#ifdef F16_STORAGE
    uvec2 sums = subgroupAdd(rounded_gradients);
    if (subgroupElect() && sums.y > 0u) {
        atomicAdd(state.underflowed, sums.y - sums.x);
        atomicAdd(state.rounded, sums.y);
    }
#endif
}
