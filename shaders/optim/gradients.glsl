// How the optimiser reads gradients and clears them: the one place that knows in which form the passes
// before it leave them. One at a time, or by number of pair or of four, in one load.
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { float gradients[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientPairBuffer { vec2 gradient_pairs[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientFourBuffer { vec4 gradient_fours[]; };

float get_gradient(uint i)
{
    return gradients[i];
}

vec2 get_gradient_pair(uint pair)
{
    return gradient_pairs[pair];
}

vec4 get_gradient_four(uint four)
{
    return gradient_fours[four];
}

void clear_gradient(uint i)
{
    gradients[i] = 0.0;
}

void clear_gradient_pair(uint pair)
{
    gradient_pairs[pair] = vec2(0.0);
}
