#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry of a group of parameters (the features of a hash slot; some MLP weights): unscale, clip,
// Adam (Kingma and Ba, 2015) on the FP32 masters, clear the gradient. An entry of a sparse group that no
// sample touched is left alone and keeps its own count of steps, so that its bias correction stays right.
// HALF_COPIES: also refreshes the f16 copies that the 16-bit field reads.
#ifdef HALF_COPIES
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "shared/common.glsl"
#include "optim/gradients.glsl"

layout(constant_id = SPEC_ENTRY) const uint ENTRY = 2;

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) buffer ParamBuffer { float params[]; };
layout(std430, BINDING(MOMENT1)) buffer Moment1Buffer { float moment1[]; };
layout(std430, BINDING(MOMENT2)) buffer Moment2Buffer { float moment2[]; };
layout(std430, BINDING(COUNTS)) buffer CountBuffer { uint counts[]; };
#ifdef HALF_COPIES
layout(std430, BINDING(HALVES)) writeonly buffer HalfBuffer { float16_t halves[]; };
#endif

// The group of an entry: the last one that begins before it.
uint group_of(uint entry)
{
    uint group = 0u;
    [[unroll]] for (uint reach = MAX_GROUPS / 2u; reach > 0u; reach /= 2u)
        group += entry >= config.groups[group + reach].first_entry ? reach : 0u;
    return group;
}

void main()
{
    // No loop over entries and the group by the workgroup's number: what is the same for all lanes, and
    // known to be, is looked up once for all of them.
    uint row = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint entry = gl_GlobalInvocationID.y * row + gl_GlobalInvocationID.x;
    Group group = config.groups[group_of(gl_WorkGroupID.y * row + gl_WorkGroupID.x * LOCAL_SIZE)];
    uint first = group.first + (entry - group.first_entry) * group.entry;
    if (first >= group.first + group.count)
        return;
    float gradient[ENTRY];
    bool touched = group.sparse == 0u;
    [[unroll]] for (uint k = 0; k < ENTRY; k++) {
        gradient[k] = k < group.entry ? get_gradient(first + k) : 0.0;
        touched = touched || gradient[k] != 0.0; // true for NaN
    }
    if (!touched)
        return;
    [[unroll]] for (uint k = 0; k < ENTRY; k++)
        if (k < group.entry)
            clear_gradient(first + k);
    if (state.nonfinite != 0u || group.rate == 0.0)
        return;
    uint count = counts[entry] + 1u;
    counts[entry] = count;
    float correction1 = 1.0 - exp2(log2(config.beta1) * float(count));
    float correction2 = 1.0 - exp2(log2(config.beta2) * float(count));
    float rate = state.learning_rate * group.rate * sqrt(correction2) / correction1;
    [[unroll]] for (uint k = 0; k < ENTRY; k++) {
        if (k >= group.entry)
            break;
        uint i = first + k;
        float g = gradient[k] * state.gradient_factor;
        float w = params[i];
        if (group.decay != 0.0)
            g += group.decay * w;
        float m = mix(g, moment1[i], config.beta1);
        float v = mix(g * g, moment2[i], config.beta2);
        moment1[i] = m;
        moment2[i] = v;
        w -= rate * m / (sqrt(v) + config.epsilon);
        params[i] = w;
#ifdef HALF_COPIES
        halves[i] = float16_t(w);
#endif
    }
}
