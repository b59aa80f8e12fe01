#version 460
#extension GL_GOOGLE_include_directive : require
// Per triangle: the pixels whose centres it covers show it, and those around it as far as filters reach, unless
// another covers them. Of several the first has it, whatever the timing.
#include "render/texture.glsl"

layout(std430, BINDING(TEXELS)) buffer TexelBuffer { uint texels[]; };

const float REACH = 1.5; // pixels: a little more than the diagonal of one

void main()
{
    // push: triangles; pixels of a row, rows.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.a)
        return;
    vec2 a = corner_texel(i, 0u), b = corner_texel(i, 1u), c = corner_texel(i, 2u);
    ivec2 size = ivec2(push.b, push.c);
    ivec2 low = max(ivec2(floor(min(a, min(b, c)) - REACH)), ivec2(0));
    ivec2 high = min(ivec2(floor(max(a, max(b, c)) + REACH)), size - 1);
    for (int y = low.y; y <= high.y; y++)
        for (int x = low.x; x <= high.x; x++) {
            float squared;
            nearest_weights(i, vec2(x, y) + 0.5, squared);
            if (squared <= REACH * REACH)
                atomicMin(texels[y * size.x + x], squared > 0.0 ? TEXEL_MARGIN | i : i);
        }
}
