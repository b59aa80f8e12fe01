// Rounds to f16 without f16 arithmetic: packHalf2x16 rounds as the driver chooses (NVK truncates).
#ifndef SHARED_F16_GLSL
#define SHARED_F16_GLSL

// Rounds any float to nearest, ties to even. From 2^-14 on an f32 has the bits of an f16 with another
// bias and thirteen more bits. Below 2^-14 adding 0.5 rounds to multiples of 2^-24, which is the
// spacing of f32 numbers from 0.5 to 1 and of subnormal f16 numbers.
uint f16_bits(float x)
{
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint normal = magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u) >> 13;
    uint subnormal = floatBitsToUint(uintBitsToFloat(magnitude) + 0.5) - 0x3f000000u;
    uint f16_magnitude = magnitude < 0x38800000u ? subnormal : min(normal, 0x7c00u);
    return sign | (magnitude > 0x7f800000u ? 0x7e00u : f16_magnitude);
}

uint pack_f16(vec2 x)
{
    return f16_bits(x.x) | f16_bits(x.y) << 16;
}

#endif
