// Packs both moments of a parameter into one word, for optimizer.moments=bf16. The upper half is the
// first moment in bf16, the upper half of an f32. The lower half is the second moment, whose sign is
// always positive: the f32's 8 bits of exponent and the upper 8 bits of mantissa. A word's moments are
// exact in f32, and packing them again gives the same word. src/optim/moments.c does the same.
// Passes: update_weights, export_parameters, import_parameters.

float unpack_moment1(uint word)
{
    return uintBitsToFloat(word & 0xffff0000u);
}

float unpack_moment2(uint word)
{
    return uintBitsToFloat((word & 0xffffu) << 15u);
}

// Adds to the magnitude below the bits that are kept; NaN stays NaN.
uint add_below(float x, uint added)
{
    return min((floatBitsToUint(x) & 0x7fffffffu) + added, 0x7fffffffu);
}

// Rounds up with the probability that makes the mean of the results the moment: rounding to nearest
// would lose each change below half a unit in the last place, so that a moment would stop before the
// mean of its gradients. `random`: 31 random bits.
uint pack_moments(float m, float v, uint random)
{
    uint upper = add_below(m, random >> 15u & 0xffffu) & 0xffff0000u;
    return (floatBitsToUint(m) & 0x80000000u) | upper | add_below(v, random & 0x7fffu) >> 15u;
}

// Rounds to nearest, so that ranks that average equal values hold equal words.
uint round_moment1(float m)
{
    return (floatBitsToUint(m) & 0x80000000u) | add_below(m, 0x8000u) & 0xffff0000u;
}

uint round_moment2(float v)
{
    return add_below(v, 0x4000u) >> 15u;
}
