// How the optimiser reads gradients and clears them: the one place that knows in which form the passes
// before it leave them. One at a time, or by number of pair or of four, in one load. Gradients are
// floats; with F16_SUMS gradients that no workgroup sums are pairs of f16, as scatter_gradients left them.
layout(constant_id = SPEC_F16_SUMS) const uint F16_SUMS = 0;
layout(constant_id = SPEC_F16_SUM_OFFSET) const uint F16_SUM_OFFSET = 0; // counts fours

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

// No branch around a load, for others to be under way with it: of the form that it is not, the first.
vec2 get_gradient_pair(uint pair)
{
    bool f16_sum = is_f16_sum(2u * pair);
    uint word = f16_sum_pairs[f16_sum ? 2u * F16_SUM_OFFSET + pair : 0u];
    vec2 floats = gradient_pairs[f16_sum ? 0u : pair];
    return f16_sum ? unpackHalf2x16(word) : floats;
}

vec4 get_gradient_four(uint four)
{
    bool f16_sum = is_f16_sum(4u * four);
    uvec2 words = f16_sum_fours[f16_sum ? F16_SUM_OFFSET + four : 0u];
    vec4 floats = gradient_fours[f16_sum ? 0u : four];
    return f16_sum ? vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)) : floats;
}

void clear_gradient_pair(uint pair)
{
    if (is_f16_sum(2u * pair))
        f16_sum_pairs[2u * F16_SUM_OFFSET + pair] = 0u;
    else
        gradient_pairs[pair] = vec2(0.0);
}

// Who clears one of a pair of halves clears the other as well.
void clear_gradient(uint i)
{
    if (!is_f16_sum(i))
        gradients[i] = 0.0;
    else if (i % 2u == 0u)
        f16_sum_pairs[2u * F16_SUM_OFFSET + i / 2u] = 0u;
}
