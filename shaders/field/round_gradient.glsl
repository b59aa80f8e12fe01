// Rounds gradients of activations to the type in which they are stored, and counts how many underflow
// in f16. Underflow is detected before rounding, because drivers may elide a rounding that is followed
// by a comparison. The including file declares `state`.
// Passes: field_backward; backward passes of layer-by-layer models.

uvec2 rounded_gradients = uvec2(0u); // counts of gradients that are not 0 after, and before, rounding

// Counts a gradient `weight` times. Counting all gradients takes up to a tenth of field_backward, so
// the matrices and blocks of GPUs count one gradient instead of `weight` equally frequent ones,
// and the counts are estimates. Has no branch, for speed.
void count_gradient(bool is_nonzero_after, bool is_nonzero_before, uint weight)
{
    rounded_gradients += weight * uvec2(is_nonzero_after, is_nonzero_before);
}

// Counts the gradient `weight` times, see count_gradient.
STORAGE_T round_gradient(float x, uint weight)
{
    STORAGE_T rounded = to_storage(ROUND_ACTIVATION_GRADIENTS, x);
#ifdef F16_STORAGE
    if (weight > 0u) // known to compilers
        count_gradient(abs(x) > F16_UNDERFLOW_LIMIT, x != 0.0, weight);
#endif
    return rounded;
}

STORAGE_T round_gradient(float x)
{
    return round_gradient(x, 1u);
}

#if defined(COOPMAT) && !defined(STAGED)
#include "field/matrix.glsl"

// Counts two of an invocation's elements of a matrix of gradients for all its elements. With the
// layouts of all known devices the two elements of a subgroup's invocations are in all rows, in all
// columns, or (NVIDIA) in every other column of either half, with both features of the hash grid.
void count_elements(MATRIX_SUM(ACCUM_T) sum)
{
    uint elements = uint(sum.length());
    [[unroll]] for (uint i = 0; i < 2u; i++) {
        ACCUM_T x = sum[i * (elements / 2u + 1u)];
        count_gradient(abs(x) > ACCUM_T(F16_UNDERFLOW_LIMIT), x != ACCUM_T(0.0), elements / 2u);
    }
}
#endif

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
