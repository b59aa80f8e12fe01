#version 460
#extension GL_GOOGLE_include_directive : require
// Pass splat_colors: computes the spherical harmonics of each splat's colour, and the splat's opacity
// from the optical thickness along the splat's normal.
//
//   buffer                shape                                access
//   SAMPLES, RAYS, FIELD  [splat][SPLAT_VIEWS + SPLAT_DEPTHS]  read
//   SPLATS                [splat] harmonics, opacity           write
#include "render/mesh_grid.glsl"
#include "render/harmonics.glsl"
#include "shared/contraction.glsl"

layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(SPLATS)) buffer SplatBuffer { Splat splats[]; };

// Returns the field's colour at sample i, with components that are not finite set to 0.
vec3 color_of(uint i)
{
    vec3 color = field[i].rgb;
    return mix(vec3(0.0), color, lessThanEqual(abs(color), vec3(3.4e38)));
}

void main()
{
    // push.a: number of splats.
    uint i = gl_GlobalInvocationID.x, first = i * (SPLAT_VIEWS + SPLAT_DEPTHS);
    if (i >= push.a)
        return;
    for (uint n = 0u; n < SPLAT_HARMONICS; n++) {
        vec3 sum = vec3(0.0);
        for (uint view = 0u; view < SPLAT_VIEWS; view++)
            sum += view_weight(view) * harmonic(n, view_direction(view)) * color_of(first + view);
        for (uint c = 0u; c < 3u; c++)
            splats[i].harmonics[3u * n + c] = sum[c];
    }
    float thickness = 0.0;
    for (uint k = first + SPLAT_VIEWS; k < first + SPLAT_VIEWS + SPLAT_DEPTHS; k++) {
        vec3 position = vec3(rays[k].origin[0], rays[k].origin[1], rays[k].origin[2]);
        // NaN counts as empty.
        float added = field[k].w * width_at(position, samples[k].width);
        thickness += added > 0.0 ? added : 0.0;
    }
    splats[i].opacity = 1.0 - exp(-thickness);
}
