#version 460
// Runs float atomics for the self-test (src/gpu/self_test.c). The shader is separate because its
// SPIR-V needs a capability that not all devices have.
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
    // Adds quarters of small integers, whose sums are exact in any order.
    uint value = values[gl_GlobalInvocationID.x];
    atomicAdd(sums[value % bin_count], 0.25 * float(value));
}
