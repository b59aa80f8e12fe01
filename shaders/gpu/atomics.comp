#version 460
// Measures the best rate of atomic additions: neighbouring invocations add to neighbouring words of
// a buffer that fits into caches, several times to each word.
//   SUM_FLOAT  adds f32; without SUM_FLOAT u32
//
//   buffer  shape                                        access
//   Sums    [words] f32 or u32; words is a power of two  read, write
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#define WORD float
#else
#define WORD uint
#endif
layout(local_size_x_id = 1) in;

layout(std430, set = 0, binding = 0) buffer Sums { WORD sums[]; };
layout(push_constant) uniform PushBlock { uint rounds, words; };

void main()
{
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint index = gl_GlobalInvocationID.x;
    for (uint r = 0; r < rounds; r++) {
        atomicAdd(sums[index & (words - 1u)], WORD(1));
        index += stride;
    }
}
