// Gradients of activations as they are stored, and how many of them f16 turns into zero. What includes this has
// declared `state`.

uvec2 rounded_gradients = uvec2(0u); // so far: those that rounding leaves, of how many that are not 0

STORAGE_T round_gradient(float x)
{
    STORAGE_T rounded = to_storage(ROUND_ACTIVATION_GRADIENTS, x);
#ifdef F16_STORAGE
    rounded_gradients += uvec2(rounded != STORAGE_T(0.0), x != 0.0); // without a branch: there are many
#endif
    return rounded;
}

// Counts them once, by whole subgroups, at the end.
void count_underflowed()
{
#ifdef F16_STORAGE
    uvec2 all = subgroupAdd(rounded_gradients);
    if (subgroupElect() && all.y > 0u) {
        atomicAdd(state.underflowed, all.y - all.x);
        atomicAdd(state.rounded, all.y);
    }
#endif
}
