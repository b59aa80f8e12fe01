#version 460
#extension GL_GOOGLE_include_directive : require
// Pass finish_pixels (variant finish_normals with NORMALS): averages the rays of each pixel and
// composites them on the background (in sRGB space, as the loss does). With picture_kind the picture is as
// a camera with picture_appearance takes it, with picture_sky including the background. finish_normals
// also averages the normals.
//
//   buffer         shape                               access
//   RAYS, RESULTS  [ray]                               read
//   NORMALS        [sample], then [ray] vec4; NORMALS  read
//   OUTPUT         [pixel] struct Output               write
#include "shared/common.glsl"

layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(OUTPUT)) writeonly buffer OutputBuffer { Output pixels[]; };
#ifdef NORMALS
#include "render/ray_normal.glsl"
#endif

float appearance_value(uint first, uint parameter)
{
    return config.picture_appearance[parameter];
}

#include "volume/appearance.glsl"

// Clamps to 0..1; NaN becomes 0.
float unit_range(float x)
{
    return x > 0.0 ? min(x, 1.0) : 0.0;
}

void main()
{
    // push.a: pixels in this batch; push.b: rays per pixel; push.c: first pixel in OUTPUT.
    uint pixel = gl_GlobalInvocationID.x;
    if (pixel >= push.a)
        return;
    vec3 color = vec3(0.0), behind = vec3(0.0), normal = vec3(0.0);
    float opacity = 0.0, depth = 0.0, through = 0.0;
    for (uint i = 0; i < push.b; i++) {
        uint ray = pixel * push.b + i;
        RayResult result = results[ray];
        float transmittance = result.transmittance;
        color += vec3(result.color[0], result.color[1], result.color[2]);
        behind += transmittance * vec3(rays[ray].background[0], rays[ray].background[1], rays[ray].background[2]);
        through += transmittance;
        opacity += 1.0 - transmittance;
        depth += result.depth * rays[ray].distance_scale;
#ifdef NORMALS
        normal += (1.0 - transmittance) * ray_normal(ray);
#endif
    }
    color /= float(push.b);
    behind /= float(push.b);
    bool shows_sky = config.picture_sky != 0u;
    float share = shows_sky ? 1.0 : photographed_share(through / float(push.b));
    if (shows_sky)
        color += behind;
    if (config.picture_kind != 0u)
        color = share * photograph(0u, config.picture_kind == APPEARANCE_FULL,
                                   unpackSnorm2x16(rays[pixel * push.b].position), color / share).color;
    if (!shows_sky)
        color += behind;
    color = vec3(unit_range(color.r), unit_range(color.g), unit_range(color.b));
    depth = opacity > 0.0 ? depth / opacity : 0.0;
    depth = abs(depth) < 1e38 ? depth : 0.0;
    opacity = unit_range(opacity / float(push.b));
#ifdef NORMALS
    normal = unit_or_zero(normal);
#endif
    pixels[push.c + pixel] = Output(float[3](color.x, color.y, color.z), opacity, depth,
                                    packUnorm4x8(vec4(color, 1.0)),
                                    float[3](normal.x, normal.y, normal.z));
}
