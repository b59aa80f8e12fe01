#version 460
#extension GL_GOOGLE_include_directive : require
// One workgroup: is the gradient finite, its norm, the clip factor; the loss scale grows, holds or
// backs off (PyTorch's GradScaler: x growth after `interval` good steps, x backoff at once on
// overflow). Leaves the step's figures in the ring that the host reads late.
#include "shared/common.glsl"

layout(std430, set = 0, binding = BIND_STATE) buffer StateBuffer { State state; };
layout(std430, set = 0, binding = BIND_REDUCE) readonly buffer ReduceBuffer { float reduce[]; };
layout(std430, set = 0, binding = BIND_STATS) writeonly buffer StatsBuffer { Stats stats[]; };

shared vec3 sums[LOCAL_SIZE];

void main()
{
    vec3 sum = vec3(0.0); // loss, squared error, squared gradient
    for (uint i = gl_LocalInvocationIndex; i < state.dispatches[DISPATCH_RAYS].x; i += LOCAL_SIZE)
        sum.xy += vec2(reduce[REDUCE_LOSS + 2u * i], reduce[REDUCE_LOSS + 2u * i + 1u]);
    for (uint i = gl_LocalInvocationIndex; i < state.dispatches[DISPATCH_PARAMS].x; i += LOCAL_SIZE)
        sum.z += reduce[REDUCE_GRADIENT + i];
    sums[gl_LocalInvocationIndex] = sum;
    barrier();
    if (gl_LocalInvocationIndex != 0u)
        return;
    for (uint i = 1; i < LOCAL_SIZE; i++)
        sum += sums[i];

    float scale = state.loss_scale;
    float norm = sqrt(sum.z);
    bool finite = state.nonfinite == 0u && !isnan(norm) && !isinf(norm);
    float factor = 1.0 / scale;
    if (finite && config.clip_norm > 0.0 && norm > config.clip_norm)
        factor *= config.clip_norm / norm;
    state.nonfinite = finite ? 0u : 1u;
    state.gradient_factor = factor;
    state.grad_norm = norm;
    if (finite) {
        state.updates++;
        state.good_steps++;
    } else {
        state.skipped_steps++;
        state.good_steps = 0u;
    }
    if (config.scale_kind == SCALE_DYNAMIC) {
        if (!finite) {
            state.loss_scale = max(scale * config.scale_backoff, 1.1754944e-38);
        } else if (state.good_steps >= config.scale_interval) {
            // 2^126: the reciprocal is the smallest normal number.
            state.loss_scale = min(scale * config.scale_growth, 8.5070592e37);
            state.good_steps = 0u;
        }
    }

    float rays = max(float(state.live_rays), 1.0);
    float rounded = float(state.live_count) * float(config.rounded_gradients);
    float flushed = float(state.flushed) / max(rounded, 1.0);
    stats[state.step % STATS_RING] =
        Stats(state.step, state.ray_count, state.sample_count, state.live_count, sum.x / rays,
              sum.y / rays, state.learning_rate, scale, norm, state.skipped_steps, flushed, 0u);
}
