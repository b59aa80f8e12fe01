#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_seen: marks the vertices that no training view sees from outside. The pass runs before
// mesh_colors converts positions to dataset space. Views see the walls of hidden space only at
// grazing angles, so these walls count as unseen.
//
//   buffer           shape                                                           access
//   MESH             struct MeshGrid                                                 read
//   CAMERAS          [training view]                                                 read
//   VISIBILITY_MAPS  [view][pixel] f32: 1 / distance                                 read
//   MESH_VERTICES    [vertex]: position, normal (read), alpha of the colour (write)  read, write
#include "render/mesh_grid.glsl"
#include "render/visibility_maps.glsl"

layout(std430, BINDING(MESH_VERTICES)) buffer VertexBuffer { MeshVertex vertices[]; };

// Largest distance of a seen vertex behind the visible surface, in voxels.
const float SLACK = 2.0;
// Smallest cosine between normal and direction of view of a seen vertex: 84 degrees.
const float MIN_COSINE = 0.1;

void main()
{
    // push.a: number of vertices; push.b: number of views.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.a)
        return;
    vec3 position = vec3(vertices[i].position[0], vertices[i].position[1], vertices[i].position[2]);
    vec3 normal = vec3(vertices[i].normal[0], vertices[i].normal[1], vertices[i].normal[2]);
    bool seen = false;
    for (uint view = 0u; view < push.b && !seen; view++) {
        Camera camera = cameras[min(view, push.b - 1u)];
        vec3 eye = vec3(camera.pose[3], camera.pose[7], camera.pose[11]);
        vec2 pixel;
        seen = dot(normal, normalize(eye - position)) > MIN_COSINE && camera_sees(camera, position, pixel) &&
               distance_behind(camera, pixel, position) <= SLACK * grid.spacing;
    }
    vertices[i].color = (seen ? 255u : MESH_UNSEEN) << 24;
}
