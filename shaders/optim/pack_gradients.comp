#version 460
#extension GL_GOOGLE_include_directive : require
// Pass pack_gradients (several ranks): rounds the hash grid's gradients of bucket push.d to f16, the
// communication type of the all-reduce, and sets the f32 gradients to zero. update_weights later reads
// the f16 gradients.
//
//   buffer        shape               access
//   GRADIENTS     [4 parameters] f32  read, write
//   ACCUMULATORS  [4 parameters] f16  write
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
