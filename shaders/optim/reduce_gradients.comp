#version 460
#extension GL_GOOGLE_include_directive : require
// Pass reduce_gradients: sums partial gradients, see optim/reduce.glsl.
//
//   buffer        shape                                            access
//   PARTIALS      [workgroup or split][summed parameter] f32       read
//   STATE         loss scale and ray count, with SUM_FIXED         read
//   STATE         nonfinite                                        write
//   ACCUMULATORS  [parameter][low, high word] i32, with SUM_FIXED  read, write
//   GRADIENTS     [parameter] f32                                  write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

#include "optim/reduce.glsl"

void main()
{
    reduce_gradients();
    if (any_overflows)
        state.nonfinite = 1u;
}
