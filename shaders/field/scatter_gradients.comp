#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample and level: the gradient of the grid's features, spread over the corners of the
// sample's cell by atomics. One level after the other, so that its table stays in cache. How sums are
// kept, fastest first:
//   SUM_FLOAT      atomic f32 addition
//   SUM_HALF       two f16 at once in BIND_FIXED (opt-in: 11 bits, and overflow above 65504)
//   SUM_FIXED      64-bit fixed point in two words: the same in any order
//   SUM_SWAP       f32 by compare-and-swap
//   SUM_HALF_SWAP  SUM_HALF where the device lacks the instruction
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#ifdef SUM_HALF
#extension GL_NV_shader_atomic_fp16_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/sample.glsl"
#include "field/place.glsl"
#include "field/features.glsl"

layout(std430, set = 0, binding = BIND_STATE) buffer StateBuffer { State state; };

#include "field/live.glsl"

#if defined(SUM_FLOAT)
layout(std430, set = 0, binding = BIND_GRADIENTS) buffer GradientBuffer { float gradients[]; };

void add_gradients(uint index, vec2 values)
{
    atomicAdd(gradients[index], values.x);
    atomicAdd(gradients[index + 1u], values.y);
}
#elif defined(SUM_SWAP)
layout(std430, set = 0, binding = BIND_GRADIENTS) buffer GradientBuffer { uint gradients[]; };

void add_gradient(uint index, float value)
{
    uint expected = gradients[index], found = expected;
    do {
        expected = found;
        uint sum = floatBitsToUint(uintBitsToFloat(expected) + value);
        found = atomicCompSwap(gradients[index], expected, sum);
    } while (found != expected);
}

void add_gradients(uint index, vec2 values)
{
    add_gradient(index, values.x);
    add_gradient(index + 1u, values.y);
}
#elif defined(SUM_HALF)
layout(std430, set = 0, binding = BIND_FIXED) buffer HalfSumBuffer { f16vec2 half_sums[]; };

void add_gradients(uint index, vec2 values)
{
    atomicAdd(half_sums[index / 2u], f16vec2(values));
}
#elif defined(SUM_HALF_SWAP)
layout(std430, set = 0, binding = BIND_FIXED) buffer HalfSumBuffer { uint half_sums[]; };

void add_gradients(uint index, vec2 values)
{
    uint expected = half_sums[index / 2u], found = expected;
    do {
        expected = found;
        uint sum = packHalf2x16(unpackHalf2x16(expected) + values);
        found = atomicCompSwap(half_sums[index / 2u], expected, sum);
    } while (found != expected);
}
#else
layout(std430, set = 0, binding = BIND_FIXED) buffer FixedBuffer { uint fixed_sums[]; };

// Adds to a 64-bit sum held in two words. The carry out of the low word follows from its value
// before the addition, so the total is exact whatever the order.
void add_gradient(uint index, float value)
{
    // Units of 2^-42 of a gradient whose loss is summed over the rays: split without a 64-bit type.
    float scaled = value * (float(state.ray_count) / state.loss_scale) *
                   float(FIXED_SCALE / 4294967296.0);
    if (!(abs(scaled) < 1073741824.0)) { // NaN, infinite or beyond what the sum holds
        state.nonfinite = 1u;
        return;
    }
    float whole = floor(scaled);
    uint high = uint(int(whole));
    uint low = uint(min((scaled - whole) * 4294967296.0, 4294967040.0));
    uint before = atomicAdd(fixed_sums[2u * index], low);
    uint carry = before + low < before ? 1u : 0u;
    if (high + carry != 0u)
        atomicAdd(fixed_sums[2u * index + 1u], high + carry);
}

void add_gradients(uint index, vec2 values)
{
    add_gradient(index, values.x);
    add_gradient(index + 1u, values.y);
}
#endif

void scatter(uint level, uint i)
{
    uint index = gradient_sample(i);
    vec2 gradient[FEATURES / 2u];
    bool any_gradient = false;
    for (uint f = 0; f < FEATURES / 2u; f++) {
        gradient[f] = get_features(level, index, f);
        any_gradient = any_gradient || gradient[f] != vec2(0.0); // true for NaN
    }
    if (!any_gradient)
        return;
    vec3 direction, inside;
    vec3 position = sample_position(index, direction);
    uvec3 cell = grid_cell(level, to_unit_cube(position), inside);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        uint entry = grid_entry(level, cell + corner_offset(corner));
        float weight = corner_weight(corner, inside);
        for (uint f = 0; f < FEATURES / 2u; f++)
            add_gradients(entry + 2u * f, weight * gradient[f]);
    }
}

void main()
{
    uint count = gradient_count();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * LEVELS; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + gl_LocalInvocationIndex;
        if (i < count)
            scatter(tile / tiles, i);
    }
}
