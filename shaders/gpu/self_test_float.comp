#version 460
// Self-test of float atomics (src/gpu/self_test.c): a shader of its own, for its SPIR-V capability.
//
//   buffer  shape             access
//   Values  [invocation] u32  read
//   Sums    [bin] f32         read, write
#extension GL_EXT_shader_atomic_float : require

layout(local_size_x_id = 1) in;

layout(std430, set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(std430, set = 0, binding = 3) buffer Sums { float sums[]; };
layout(push_constant) uniform Push { uint bin_count; };

void main()
{
    // Quarters of small integers: their sums are exact in any order.
    uint value = values[gl_GlobalInvocationID.x];
    atomicAdd(sums[value % bin_count], 0.25 * float(value));
}
