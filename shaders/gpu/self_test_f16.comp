#version 460
// Loads, computes, converts and stores f16 numbers for the self-test (src/gpu/self_test_f16.c). An
// invocation handles one pair of numbers.
//
//   buffer    shape           access
//   Floats    [pair][2] f32   read
//   F16s      [pair][2] f16   read
//   Factors   [2] f16: 1, 1   read; a buffer, so that no compiler knows the values
//   Results   [pair] Result   write
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x_id = 1) in;

struct Result {
    f16vec2 copied, product, sum, converted;
    vec2 widened;
};

layout(std430, set = 0, binding = 0) readonly buffer Floats { vec2 floats[]; };
layout(std430, set = 0, binding = 1) readonly buffer F16s { f16vec2 f16s[]; };
layout(std430, set = 0, binding = 2) readonly buffer Factors { f16vec2 ones; };
layout(std430, set = 0, binding = 3) writeonly buffer Results { Result results[]; };
layout(push_constant) uniform PushBlock { uint pairs; };

void main()
{
    uint pair = gl_GlobalInvocationID.x;
    if (pair >= pairs)
        return;
    f16vec2 x = f16s[pair];
    results[pair].copied = x;
    results[pair].product = x * ones;
    results[pair].sum = x + x * ones;
    results[pair].converted = f16vec2(floats[pair]);
    results[pair].widened = vec2(x);
}
