#version 460
#extension GL_GOOGLE_include_directive : require
// Per vertex, before its place becomes the dataset's: marked unless a training view sees the surface
// there, from outside. The walls of shadows are seen from within them, at grazing angles alone.
#include "render/mesh_grid.glsl"
#include "render/visibility_maps.glsl"

layout(std430, BINDING(MESH_VERTICES)) buffer VertexBuffer { MeshVertex vertices[]; };

// Voxels that a surface may lie behind where half of the light is gone.
const float SLACK = 2.0;
// Cosine, from a surface's normal, of the flattest angle at which it is seen: 84 degrees.
const float MIN_COSINE = 0.1;

void main()
{
    // push: vertices, views.
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
