#version 460
#extension GL_GOOGLE_include_directive : require
// Per grid point of the slab's new layers: no lower than how far it is behind what training views show,
// in voxels. Where views look but none sees anything, each having something in front, that is solid.
// Nothing is known of such places, and the largest solid that looks the same from all views has them
// (Kutulakos and Seitz, A Theory of Shape by Space Carving, 2000). What fewer than half of the views have
// in their pictures is beyond what was captured and stays as it is, or what is far behind anything
// would become solid as well.
#include "render/mesh_grid.glsl"
#include "render/visibility_maps.glsl"
#include "shared/contraction.glsl"

layout(std430, BINDING(MESH_VALUES)) buffer ValueBuffer { float values[]; };

// Voxels that the place is behind what it is least behind in any view, within -MESH_LIMIT ..
// MESH_LIMIT; the lowest where too few have it in their pictures. `first`: the view to ask first; becomes the one that sees
// the place best, where one sees it clearly.
float min_distance_behind(vec3 position, bool wanted, inout uint first)
{
    float least = wanted ? MESH_LIMIT : -MESH_LIMIT;
    uint looking = 0u;
    // The same view for all invocations at a time.
    uint begin = subgroupBroadcastFirst(first);
    for (uint i = 0u; i < push.b && subgroupAny(least > -MESH_LIMIT); i++) {
        uint view = begin + i < push.b ? begin + i : begin + i - push.b;
        Camera camera = cameras[min(view, push.b - 1u)];
        vec2 pixel;
        if (least > -MESH_LIMIT && camera_sees(camera, position, pixel)) {
            least = max(min(least, distance_behind(camera, pixel, position) / grid.spacing), -MESH_LIMIT);
            looking++;
            first = least > -MESH_LIMIT ? first : view;
        }
    }
    return 2u * looking >= push.b ? least : -MESH_LIMIT;
}

void main()
{
    // push: the grid's layer that the first new one is, views.
    uint count = grid.layers * layer_points(), before = MESH_OVERLAP * layer_points();
    uvec3 last = uvec3(grid.points[0], grid.points[1], grid.points[2]) - 1u;
    uint view = 0u;
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = gl_WorkGroupID.x * TILE + k * LOCAL_SIZE + gl_LocalInvocationID.x;
        uvec3 p = slab_point(min(i, count - 1u)) + uvec3(0u, 0u, push.a);
        vec3 position = grid_position(vec3(p));
        bool within = i < count && all(greaterThan(p, uvec3(0u))) && all(lessThan(p, last));
        float value = values[before + min(i, count - 1u)];
        float behind = min_distance_behind(position, within && is_trained(position) && value < MESH_LIMIT, view);
        if (i < count)
            values[before + i] = max(value, behind);
    }
}
