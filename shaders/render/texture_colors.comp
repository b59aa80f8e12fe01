#version 460
#extension GL_GOOGLE_include_directive : require
// Pass texture_colors: composites the samples of each listed texel's ray; a ray that meets no density
// gets the colour of the sample at the surface.
//
//   buffer          shape                            access
//   RAYS            [listed texel]                   read
//   SAMPLES, FIELD  [listed texel][TEXTURE_SAMPLES]  read
//   MESH_POINTS     [listed texel] u32: its index    read
//   TEXELS          [row][column] RGB8               write
#include "render/mesh_grid.glsl"
#include "shared/contraction.glsl"

layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(MESH_POINTS)) readonly buffer PointBuffer { uint points[]; };
layout(std430, BINDING(TEXELS)) writeonly buffer TexelBuffer { uint texels[]; };

const float LEAST_OPACITY = 1e-4;

void main()
{
    // push.a: first of the listed texels; push.b: number of texels.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.b)
        return;
    vec3 origin = vec3(rays[i].origin[0], rays[i].origin[1], rays[i].origin[2]);
    vec3 direction = vec3(rays[i].direction[0], rays[i].direction[1], rays[i].direction[2]);
    vec3 color = vec3(0.0);
    float transmittance = 1.0;
    for (uint k = 0u; k < TEXTURE_SAMPLES; k++) {
        Sample s = samples[i * TEXTURE_SAMPLES + k];
        vec4 value = field[i * TEXTURE_SAMPLES + k];
        // NaN counts as empty.
        float thickness = max(value.w * width_at(origin + s.t * direction, s.width), 0.0);
        float weight = transmittance * (1.0 - exp(-thickness));
        if (weight > 0.0)
            color += weight * value.rgb;
        transmittance *= exp(-thickness);
    }
    color = 1.0 - transmittance > LEAST_OPACITY ? color / (1.0 - transmittance)
                                       : field[i * TEXTURE_SAMPLES + TEXTURE_SAMPLES / 2].rgb;
    texels[points[push.a + i]] = packUnorm4x8(vec4(color, 0.0));
}
