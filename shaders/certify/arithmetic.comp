#version 460
#extension GL_GOOGLE_include_directive : require
// Test of a device: f16 numbers of every size, subnormal ones included: conversion, storage, a product
// and a sum.
//
//   buffer        shape                                                             access
//   PARAMS        [invocation] f32                                                  read
//   ACCUMULATORS  [invocation][4] f16: converted; stored and read again; times 3; plus 2^-20  write
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#include "shared/common.glsl"

layout(std430, BINDING(PARAMS)) readonly buffer InputBuffer { float inputs[]; };
layout(std430, BINDING(ACCUMULATORS)) buffer ResultBuffer { float16_t results[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    float16_t value = float16_t(inputs[i]);
    results[4u * i] = value;
    memoryBarrierBuffer();
    results[4u * i + 1u] = results[4u * i];
    results[4u * i + 2u] = value * float16_t(3.0);
    results[4u * i + 3u] = value + float16_t(9.5367431640625e-07);
}
