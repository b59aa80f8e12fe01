#version 460
#extension GL_GOOGLE_include_directive : require
// Pass finish_points: writes for each ray the point, in dataset space, at which the transmittance
// falls to 0.5.
//
//   buffer         shape                             access
//   RAYS, RESULTS  [ray]: depth is the median depth  read
//   NORMALS        [sample], then [ray] vec4         read
//   MESH_VERTICES  [ray]; colour 0 if no hit         write
#include "shared/common.glsl"

layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(MESH_VERTICES)) writeonly buffer VertexBuffer { MeshVertex points[]; };
#include "render/ray_normal.glsl"

void main()
{
    // push.a: number of rays; push.b to push.e: scale and offset of the dataset, as floats.
    uint ray = gl_GlobalInvocationID.x;
    if (ray >= push.a)
        return;
    RayResult result = results[ray];
    vec3 offset = uintBitsToFloat(uvec3(push.c, push.d, push.e));
    vec3 origin = vec3(rays[ray].origin[0], rays[ray].origin[1], rays[ray].origin[2]);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    vec3 position = (origin + result.depth * direction - offset) / uintBitsToFloat(push.b);
    vec3 normal = ray_normal(ray);
    // A position that is not finite counts as no hit.
    bool hit = result.transmittance <= 0.5 && dot(position, position) < 1e38;
    vec3 color = vec3(result.color[0], result.color[1], result.color[2]) / (1.0 - result.transmittance);
    points[ray] = MeshVertex(float[3](position.x, position.y, position.z),
                             float[3](normal.x, normal.y, normal.z),
                             hit ? packUnorm4x8(vec4(color, 1.0)) : 0u);
}
