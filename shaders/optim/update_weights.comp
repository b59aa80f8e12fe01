#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry (the features of a hash slot; MLP weights in groups of the same size): unscale, clip,
// Adam (Kingma and Ba, 2015) on the FP32 masters, clear the gradient. A grid entry that no sample
// touched is left alone and keeps its own count of steps, so that its bias correction stays right.
// HALF_COPIES: also refreshes the f16 copies that the 16-bit field reads.
#ifdef HALF_COPIES
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "shared/common.glsl"

layout(constant_id = SPEC_FEATURES) const uint FEATURES = 2;

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) buffer ParamBuffer { float params[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { float gradients[]; };
layout(std430, BINDING(MOMENT1)) buffer Moment1Buffer { float moment1[]; };
layout(std430, BINDING(MOMENT2)) buffer Moment2Buffer { float moment2[]; };
layout(std430, BINDING(COUNTS)) buffer CountBuffer { uint counts[]; };
#ifdef HALF_COPIES
layout(std430, BINDING(HALVES)) writeonly buffer HalfBuffer { float16_t halves[]; };
#endif

void main()
{
    uint entries = config.param_count / FEATURES;
    uint mlp_entries = config.mlp_params / FEATURES;
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    bool skip = state.nonfinite != 0u;
    float log_beta1 = log2(config.beta1), log_beta2 = log2(config.beta2);
    for (uint entry = gl_GlobalInvocationID.x; entry < entries; entry += stride) {
        bool mlp = entry < mlp_entries;
        float gradient[FEATURES];
        bool touched = mlp;
        for (uint f = 0; f < FEATURES; f++) {
            gradient[f] = gradients[entry * FEATURES + f];
            touched = touched || gradient[f] != 0.0; // true for NaN
        }
        if (!touched)
            continue;
        for (uint f = 0; f < FEATURES; f++)
            gradients[entry * FEATURES + f] = 0.0;
        if (skip)
            continue;
        uint count = counts[entry] + 1u;
        counts[entry] = count;
        float correction1 = 1.0 - exp2(log_beta1 * float(count));
        float correction2 = 1.0 - exp2(log_beta2 * float(count));
        float rate = state.learning_rate * sqrt(correction2) / correction1;
        for (uint f = 0; f < FEATURES; f++) {
            uint i = entry * FEATURES + f;
            float g = gradient[f] * state.gradient_factor;
            float w = params[i];
            if (mlp)
                g += config.weight_decay * w;
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
}
