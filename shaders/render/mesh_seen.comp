#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_seen: marks the vertices that no training view sees from outside. Runs before mesh_colors
// converts positions to dataset space. The walls of hidden space are seen from within it, at grazing
// angles alone, and count as unseen.
//
//   buffer           shape                                                           access
//   MESH             struct MeshGrid                                                 read
//   CAMERAS          [training view]                                                 read
//   VISIBILITY_MAPS  [view][pixel] f32: 1 / distance                                 read
//   MESH_VERTICES    [vertex]: position, normal (read), alpha of the colour (write)  read, write
#include "render/mesh_grid.glsl"
#include "render/visibility_maps.glsl"

layout(std430, BINDING(MESH_VERTICES)) buffer VertexBuffer { MeshVertex vertices[]; };

// Tolerance in voxels: how far the mesh may lie behind the visible surface.
const float SLACK = 2.0;
// Cosine between the normal and the flattest direction of view that counts: 84 degrees.
const float MIN_COSINE = 0.1;

void main()
{
    // push.a: vertices; push.b: views.
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
