// Rounds to f16 without f16 arithmetic: packHalf2x16 rounds as the driver chooses (NVK truncates).
#ifndef SHARED_F16_GLSL
#define SHARED_F16_GLSL

// Rounds any float to nearest, ties to even. From 2^-14 on the bits of an f32 are those of an f16 with
// another bias and thirteen more bits; below, an f32 between 0.5 and 1 counts in an f16's steps of
// 2^-24.
uint f16_bits(float x)
{
    uint bits = floatBitsToUint(x), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint normal = size - 0x38000000u + 0xfffu + (size >> 13 & 1u) >> 13;
    uint small = floatBitsToUint(uintBitsToFloat(size) + 0.5) - 0x3f000000u;
    uint f16_size = size < 0x38800000u ? small : min(normal, 0x7c00u);
    return sign | (size > 0x7f800000u ? 0x7e00u : f16_size);
}

uint pack_f16(vec2 x)
{
    return f16_bits(x.x) | f16_bits(x.y) << 16;
}

#endif
