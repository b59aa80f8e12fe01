#version 460
#extension GL_GOOGLE_include_directive : require
// Per four gradients of the grid's piece push.d: the f16 that ranks exchange, which the optimiser then reads. The
// floats begin anew at zero.
#include "shared/common.glsl"
#include "shared/f16.glsl"
#include "optim/gradients.glsl"

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE, end = config.buckets[push.d + 1u].parameter / 4u;
    for (uint i = config.buckets[push.d].parameter / 4u + gl_GlobalInvocationID.x; i < end; i += stride) {
        vec4 sums = gradient_fours[i];
        f16_sum_fours[F16_SUM_OFFSET + i] = uvec2(pack_f16(sums.xy), pack_f16(sums.zw));
        gradient_fours[i] = vec4(0.0);
    }
}
