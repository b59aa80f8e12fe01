// Reads and clears gradients, in either form in which the passes before the optimiser store them: f32
// or, with F16_SUMS, pairs of f16 for the hash grid. No other file depends on the form. Each function
// accesses one gradient, a pair or four gradients, by one load or store.
// Passes: reduce_gradients, finish_step, pack_gradients, check_gradients, update_weights. Reads and writes
// GRADIENTS [parameter] f32 and ACCUMULATORS [4 parameters] f16.
layout(constant_id = SPEC_F16_SUMS) const uint F16_SUMS = 0;
layout(constant_id = SPEC_F16_SUM_OFFSET) const uint F16_SUM_OFFSET = 0; // in units of four f16

layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { float gradients[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientPairBuffer { vec2 gradient_pairs[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientFourBuffer { vec4 gradient_fours[]; };
layout(std430, BINDING(ACCUMULATORS)) buffer F16SumPairBuffer { uint f16_sum_pairs[]; };
layout(std430, BINDING(ACCUMULATORS)) buffer F16SumFourBuffer { uvec2 f16_sum_fours[]; };

bool is_f16_sum(uint i)
{
    return F16_SUMS != 0u && i >= config.summed_params;
}

float get_gradient(uint i)
{
    if (is_f16_sum(i))
        return unpackHalf2x16(f16_sum_pairs[2u * F16_SUM_OFFSET + i / 2u])[i & 1u];
    return gradients[i];
}

// Loads both forms without a branch, so that other loads can be in flight; the unused load reads index
// 0.
vec2 get_gradient_pair(uint pair)
{
    bool is_f16 = is_f16_sum(2u * pair);
    uint word = f16_sum_pairs[is_f16 ? 2u * F16_SUM_OFFSET + pair : 0u];
    vec2 floats = gradient_pairs[is_f16 ? 0u : pair];
    return is_f16 ? unpackHalf2x16(word) : floats;
}

vec4 get_gradient_four(uint four)
{
    bool is_f16 = is_f16_sum(4u * four);
    uvec2 words = f16_sum_fours[is_f16 ? F16_SUM_OFFSET + four : 0u];
    vec4 floats = gradient_fours[is_f16 ? 0u : four];
    return is_f16 ? vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)) : floats;
}

void clear_gradient_pair(uint pair)
{
    if (is_f16_sum(2u * pair))
        f16_sum_pairs[2u * F16_SUM_OFFSET + pair] = 0u;
    else
        gradient_pairs[pair] = vec2(0.0);
}

// Clears the whole f16 pair at the even index: the caller clears both parameters of a pair.
void clear_gradient(uint i)
{
    if (!is_f16_sum(i))
        gradients[i] = 0.0;
    else if (i % 2u == 0u)
        f16_sum_pairs[2u * F16_SUM_OFFSET + i / 2u] = 0u;
}
