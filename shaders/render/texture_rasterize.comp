#version 460
#extension GL_GOOGLE_include_directive : require
// Pass texture_rasterize: assigns to each triangle the texels whose centres it covers, and, as a
// margin for texture filters, texels around it that no triangle covers. If several triangles cover a
// texel, it is assigned to the first, so that the result does not depend on timing.
//
//   buffer             shape                                                         access
//   TEXTURE_TRIANGLES  [triangle]                                                    read
//   TEXELS             [row][column] u32: triangle, with TEXEL_MARGIN in the margin  read, write
#include "render/texture.glsl"

layout(std430, BINDING(TEXELS)) buffer TexelBuffer { uint texels[]; };

const float REACH = 1.5; // width of the margin in texels: a little more than a texel's diagonal

void main()
{
    // push.a: number of triangles; push.b: texels per row; push.c: number of rows.
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
