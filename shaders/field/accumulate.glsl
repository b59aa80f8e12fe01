// Accumulates gradients of the hash grid or of a field in GLSL in one of these ways, fastest first:
//   SUM_FLOAT    atomic f32 addition
//   SUM_F16      atomic addition of two or four f16 in ACCUMULATORS, where the optimiser reads them
//                (opt-in: f16 has 11 bits and overflows above 65504)
//   SUM_FIXED    64-bit fixed point in two signed words: the same result in any order
//   SUM_CAS      f32 by compare-and-swap
//   SUM_F16_CAS  SUM_F16 by compare-and-swap, for devices without the instruction
// The including file enables the extensions and declares FEATURES (2 or 4 per entry) and `state`.
// Passes: scatter_gradients, snippet_scatter. Reads and writes GRADIENTS or ACCUMULATORS, [parameter].

#if defined(SUM_FLOAT)
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { float gradients[]; };

void add_gradient(uint index, float value)
{
    atomicAdd(gradients[index], value);
}
#elif defined(SUM_CAS)
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { uint gradients[]; };

void add_gradient(uint index, float value)
{
    uint expected = gradients[index], found = expected;
    do {
        expected = found;
        uint sum = floatBitsToUint(uintBitsToFloat(expected) + value);
        found = atomicCompSwap(gradients[index], expected, sum);
    } while (found != expected);
}
#elif defined(SUM_F16)
layout(std430, BINDING(ACCUMULATORS)) buffer F16PairBuffer { f16vec2 f16_sum_pairs[]; };
layout(std430, BINDING(ACCUMULATORS)) buffer F16FourBuffer { f16vec4 f16_sum_fours[]; };

void add_gradients(uint entry, vec4 values)
{
    if (FEATURES == 4u)
        atomicAdd(f16_sum_fours[entry], f16vec4(values));
    else
        atomicAdd(f16_sum_pairs[entry], f16vec2(values));
}
#elif defined(SUM_F16_CAS)
layout(std430, BINDING(ACCUMULATORS)) buffer F16SumBuffer { uint f16_sums[]; };

void add_pair(uint index, vec2 values)
{
    uint expected = f16_sums[index], found = expected;
    do {
        expected = found;
        uint sum = pack_f16(unpackHalf2x16(expected) + values);
        found = atomicCompSwap(f16_sums[index], expected, sum);
    } while (found != expected);
}

void add_gradients(uint entry, vec4 values)
{
    add_pair(entry * FEATURES / 2u, values.xy);
    if (FEATURES == 4u)
        add_pair(2u * entry + 1u, values.zw);
}
#else
layout(std430, BINDING(ACCUMULATORS)) buffer FixedBuffer { uint fixed_sums[]; };

// Adds to a 64-bit sum, high * 2^32 + low, of which both words are signed: small values of either sign
// change only the low word, so that most additions are one atomic. Whether the low word overflows
// follows from its value before the addition, so the total is exact in any order.
void add_gradient(uint index, float value)
{
    // The gradient of the loss summed over the rays, in units of 2^-42, is split into two words. The
    // last bit of the low word is always 0, so that the rest fits into 31 bits and a sign.
    float scaled = value * (float(state.ray_count) / state.loss_scale) *
                   float(FIXED_SCALE / 4294967296.0);
    if (!(abs(scaled) < 1073741824.0)) { // NaN, infinite or beyond the range of the sum
        state.nonfinite = 1u;
        return;
    }
    float whole = trunc(scaled);
    int rest = int((scaled - whole) * 2147483648.0), high = int(whole) + (rest >> 31);
    uint low = uint(rest) << 1;
    // A signed sum overflows when the unsigned sum of the same words and 2^31 carries.
    uint before = atomicAdd(fixed_sums[2u * index], low) ^ 0x80000000u;
    high += before + low < before ? 1 : 0;
    if (high != 0)
        atomicAdd(fixed_sums[2u * index + 1u], uint(high));
}
#endif
