#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_hidden: raises the value of each grid point of the slab's new layers to at least the
// point's depth behind the visible surface, in voxels. Space inside training views' images that a
// surface hides in each view becomes solid: nothing is known of that space, and the largest solid
// that looks the same from all views contains it (Kutulakos and Seitz, A Theory of Shape by Space
// Carving, 2000). Points that are in fewer than half of the views' images keep their values;
// otherwise everything far behind the scene would become solid.
//
//   buffer           shape                            access
//   MESH             struct MeshGrid                  read
//   CAMERAS          [training view]                  read
//   VISIBILITY_MAPS  [view][pixel] f32: 1 / distance  read
//   MESH_VALUES      [layer][y][x] f32                read, write
#include "render/mesh_grid.glsl"
#include "render/visibility_maps.glsl"
#include "shared/contraction.glsl"

layout(std430, BINDING(MESH_VALUES)) buffer ValueBuffer { float values[]; };

// Returns the smallest depth of the point behind the visible surface of any view, in voxels, within
// -MESH_LIMIT .. MESH_LIMIT, or -MESH_LIMIT if the point is in too few views' images. `first`: the
// view to test first; becomes a view that shows the point far in front of the surface.
float min_distance_behind(vec3 position, bool is_tested, inout uint first)
{
    float least = is_tested ? MESH_LIMIT : -MESH_LIMIT;
    uint image_count = 0u;
    // All invocations of a subgroup test the same view at a time.
    uint begin = subgroupBroadcastFirst(first);
    for (uint i = 0u; i < push.b && subgroupAny(least > -MESH_LIMIT); i++) {
        uint view = begin + i < push.b ? begin + i : begin + i - push.b;
        Camera camera = cameras[min(view, push.b - 1u)];
        vec2 pixel;
        if (least > -MESH_LIMIT && camera_sees(camera, position, pixel)) {
            least = max(min(least, distance_behind(camera, pixel, position) / grid.spacing), -MESH_LIMIT);
            image_count++;
            first = least > -MESH_LIMIT ? first : view;
        }
    }
    return 2u * image_count >= push.b ? least : -MESH_LIMIT;
}

void main()
{
    // push.a: the grid's layer of the slab's first new layer; push.b: number of views.
    uint count = grid.layers * layer_points(), before = MESH_OVERLAP * layer_points();
    uvec3 last = uvec3(grid.points[0], grid.points[1], grid.points[2]) - 1u;
    uint view = 0u;
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = gl_WorkGroupID.x * TILE + k * LOCAL_SIZE + gl_LocalInvocationID.x;
        uvec3 p = slab_point(min(i, count - 1u)) + uvec3(0u, 0u, push.a);
        vec3 position = grid_position(vec3(p));
        bool is_inside = i < count && all(greaterThan(p, uvec3(0u))) && all(lessThan(p, last));
        float value = values[before + min(i, count - 1u)];
        float behind = min_distance_behind(position, is_inside && is_trained(position) && value < MESH_LIMIT, view);
        if (i < count)
            values[before + i] = max(value, behind);
    }
}
