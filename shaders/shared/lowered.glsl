// Operations that the precision policy lowers to f16 (the settings policy.*): their numbers stay f32 and are
// rounded where one is computed, which every device can.
#include "shared/half.glsl"

layout(constant_id = SPEC_LOWERED) const uint LOWERED = 0;

float lower(uint operation, float x)
{
    if ((LOWERED & operation) != 0u)
        x = unpackHalf2x16(half_bits(x)).x;
    return x;
}

vec3 lower(uint operation, vec3 x)
{
    return vec3(lower(operation, x.x), lower(operation, x.y), lower(operation, x.z));
}

vec4 lower(uint operation, vec4 x)
{
    return vec4(lower(operation, x.xyz), lower(operation, x.w));
}
