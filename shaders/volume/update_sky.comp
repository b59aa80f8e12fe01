#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_sky: moves the colour of each texel of the sky towards the weighted mean of the pixels
// since the last update interval, and sets the sums to zero. Texels without rays stay.
//
//   buffer  shape                                          access
//   STATE   [texel][red, green, blue, weight] ErrorCell    read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };

#include "rays/gradient_sums.glsl"
#include "shared/sky.glsl"

void main()
{
    for (uint texel = gl_GlobalInvocationID.x; texel < SKY_TEXELS; texel += gl_NumWorkGroups.x * LOCAL_SIZE) {
        uint cell = 4u * texel;
        float added = gradient_of(cell + 3u);
        if (!(added > 0.0))
            continue;
        vec4 before = sky_of_texel(texel);
        float weight = before.w + added;
        for (uint c = 0; c < 3u; c++) {
            float color = (before.w * before[c] + gradient_of(cell + c)) / weight;
            error_cells[cell + c] = ErrorCell(color, 0u, 0u, 0u);
        }
        error_cells[cell + 3u] = ErrorCell(min(weight, SKY_MEMORY), 0u, 0u, 0u);
    }
}
