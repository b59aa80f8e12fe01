// Declares what all passes use: workgroup size, constants of the run, push constants, random numbers.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require

#include "shared/layout.h"

// One-dimensional workgroups: an invocation's number is gl_LocalInvocationID.x.
// gl_LocalInvocationIndex is equal, but lavapipe does not see that it is consecutive across lanes and
// then loads and stores lane by lane.
layout(local_size_x_id = SPEC_LOCAL_SIZE) in;

layout(constant_id = SPEC_SUBGROUP_SIZE) const uint SUBGROUP_SIZE = 32;
layout(constant_id = SPEC_LOCAL_SIZE) const uint LOCAL_SIZE = 64;
layout(constant_id = SPEC_CPU_KERNELS) const uint CPU_KERNELS = 0;

layout(std430, BINDING(CONFIG)) readonly buffer ConfigBuffer { Config config; };
layout(push_constant) uniform PushBlock { Push push; };

// Converts whole numbers in [0, 2^23) to integers through the mantissa: CPU devices clamp in ordinary
// conversions, one lane at a time.
uvec3 to_unsigned(vec3 whole)
{
    return floatBitsToUint(whole + 8388608.0) & 0x7fffffu;
}

// Returns x, which is equal in all lanes, in a form that compilers know to be uniform.
uint uniform_value(uint x)
{
    return subgroupBroadcast(x, 0u);
}

// ---- random numbers --------------------------------------------------------------------------------
//
// The generator is counter-based: a value depends only on (seed, step, index, dimension), so that a
// step can be repeated and a run resumed. The hash is pcg3d (Jarzynski and Olano, Hash Functions for
// GPU Rendering, 2020).

uvec3 pcg3d(uvec3 v)
{
    v = v * 1664525u + 1013904223u;
    v.x += v.y * v.z;
    v.y += v.z * v.x;
    v.z += v.x * v.y;
    v ^= v >> 16u;
    v.x += v.y * v.z;
    v.y += v.z * v.x;
    v.z += v.x * v.y;
    return v;
}

uvec3 random_bits(uint step, uint index, uint dimension)
{
    return pcg3d(uvec3(index, step, config.seed ^ (dimension * 0x9e3779b9u)));
}

// Returns three numbers in [0, 1): 24 bits fill a float's mantissa exactly.
vec3 random_unit(uint step, uint index, uint dimension)
{
    return vec3(random_bits(step, index, dimension) >> 8u) * (1.0 / 16777216.0);
}

// Values of `dimension`, by purpose.
const uint RANDOM_PIXEL = 1u;
const uint RANDOM_BACKGROUND = 2u;
const uint RANDOM_CELL = 3u;
const uint RANDOM_ERROR = 5u; // slot and choice of drawing by error
const uint RANDOM_STRIP = 6u;
const uint RANDOM_DEPTH = 7u;
const uint RANDOM_KEEP = 8u;
const uint RANDOM_MOMENTS = 9u; // rounding of Adam's moments; the step is the entry's count
const uint RANDOM_CELL_TIME = 16u;
const uint RANDOM_SAMPLE = 32u;
const uint RANDOM_FINE = 33u;
const uint RANDOM_DRAW = 64u; // stride between repeated draws for the same purpose
