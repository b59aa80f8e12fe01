// Rounds f32 values to the type in which they are stored, or to the type that the precision policy
// (settings policy.*) sets for an operation. Results of such operations stay f32 variables, which are
// rounded after each operation: every device can do that.
#ifndef SHARED_ROUNDING_GLSL
#define SHARED_ROUNDING_GLSL
#include "shared/f16.glsl"

layout(constant_id = SPEC_ROUNDED) const uint ROUNDED = 0; // ROUND_* for f16; times ROUND_BF16 for bf16

// The largest number that becomes zero in f16: 2^-25 rounds to zero, and a device that flushes
// subnormal numbers keeps none below 2^-14.
#define F16_UNDERFLOW_LIMIT ((ROUNDED & F16_NO_SUBNORMALS) != 0u ? 6.10351526e-5 : 2.98023224e-8)

// Rounds an f32 to bf16, its upper half, to nearest, ties to even; NaN stays NaN.
float round_bf16(float x)
{
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
    uint upper = (magnitude > 0x7f800000u ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    return uintBitsToFloat(upper);
}

float round_to(uint operation, float x)
{
    if ((ROUNDED & operation) != 0u)
        x = unpackHalf2x16(f16_bits(x)).x;
    if ((ROUNDED & operation * ROUND_BF16) != 0u)
        x = round_bf16(x);
    return x;
}

vec3 round_to(uint operation, vec3 x)
{
    return vec3(round_to(operation, x.x), round_to(operation, x.y), round_to(operation, x.z));
}

vec4 round_to(uint operation, vec4 x)
{
    return vec4(round_to(operation, x.xyz), round_to(operation, x.w));
}

#ifdef STORAGE_T
#ifdef FP16
const bool PACKED_PRODUCTS = (ROUNDED & F32_PRODUCTS) == 0u; // MLP products are in packed f16, otherwise in f32
#else
const bool PACKED_PRODUCTS = false;
#endif

// Converts to the storage type. `operation`: ROUND_ACTIVATIONS for activations,
// ROUND_ACTIVATION_GRADIENTS for their gradients.
STORAGE_T to_storage(uint operation, float x)
{
    return STORAGE_T(round_to(operation, x));
}

STORAGE_T4 to_storage(uint operation, vec4 x)
{
    return STORAGE_T4(round_to(operation, x));
}
#endif

#endif
