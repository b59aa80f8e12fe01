#version 460
// Measures memory bandwidth (vknerf bench): copies 16 bytes per invocation at a time.
//
//   buffer  shape                  access
//   From    [first + count] uvec4  read
//   To      [first + count] uvec4  write
layout(local_size_x_id = 1) in;

layout(std430, set = 0, binding = 0) readonly buffer From { uvec4 from[]; };
layout(std430, set = 0, binding = 1) writeonly buffer To { uvec4 to[]; };
layout(push_constant) uniform PushBlock { uint first, count; };

void main()
{
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride)
        to[first + i] = from[first + i];
}
