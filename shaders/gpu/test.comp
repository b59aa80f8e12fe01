#version 460
// Tests specialisation constants, push constants, bindings and dispatch sizes, for tests/test_gpu.c.
//
//   buffer  shape        access
//   From    [count] u32  read
//   To      [count] u32  read, write
//   Facts   [3] u32      write

layout(local_size_x_id = 1) in;
layout(constant_id = 0) const uint SUBGROUP_SIZE = 0;
layout(constant_id = 2) const uint FACTOR = 0;
layout(constant_id = 3) const float SCALE = 0.0;

layout(std430, set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(std430, set = 1, binding = 8) buffer To { uint to[]; };
layout(std430, set = 0, binding = 5) buffer Facts { uint facts[]; };
layout(push_constant) uniform Push {
    uint count, addend, unset;
};

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < count)
        to[i] += FACTOR * from[i] + uint(SCALE * 8.0) + addend + unset;
    if (i == 0u) {
        facts[0] = gl_NumWorkGroups.x;
        facts[1] = gl_WorkGroupSize.x;
        facts[2] = SUBGROUP_SIZE;
    }
}
