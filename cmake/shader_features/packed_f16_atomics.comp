#version 450
#extension GL_NV_shader_atomic_fp16_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(local_size_x = 32) in;
layout(binding = 0) buffer Half { f16vec2 values[]; };

void main()
{
    atomicAdd(values[0], f16vec2(1.0));
}
