#version 460
#extension GL_GOOGLE_include_directive : require
// Per grid point of the slab's new layers that the field leaves empty: solid where training views look
// there but none sees it, each having something in front. Nothing is known of such places, and the
// largest solid that looks the same from all views has them (Kutulakos and Seitz, A Theory of Shape by
// Space Carving, 2000).
#include "render/mesh_grid.glsl"
#include "render/sight.glsl"
#include "shared/contraction.glsl"

layout(std430, set = 0, binding = BIND_MESH_VALUES) buffer ValueBuffer { float values[]; };

// `first`: the view to ask first; becomes the one that sees the place, where one does.
bool hidden(vec3 place, bool wanted, inout uint first)
{
    bool looked_at = false, seen = !wanted;
    // The same view for all invocations at a time.
    uint begin = subgroupBroadcastFirst(first);
    for (uint i = 0u; i < push.b && !subgroupAll(seen); i++) {
        uint view = begin + i < push.b ? begin + i : begin + i - push.b;
        Camera camera = cameras[min(view, push.b - 1u)];
        vec2 pixel;
        bool shown = !seen && camera_sees(camera, place, pixel);
        looked_at = looked_at || shown;
        if (shown && !is_hidden(camera, pixel, distance_from(camera, place), 0.0)) {
            seen = true;
            first = view;
        }
    }
    return wanted && looked_at && !seen;
}

void main()
{
    // push: the grid's layer that the first new one is, views.
    uint count = grid.layers * layer_points(), before = MESH_CARRY * layer_points();
    uvec3 last = uvec3(grid.points[0], grid.points[1], grid.points[2]) - 1u;
    uint view = 0u;
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = gl_WorkGroupID.x * TILE + k * LOCAL_SIZE + gl_LocalInvocationIndex;
        uvec3 p = slab_point(min(i, count - 1u)) + uvec3(0u, 0u, push.a);
        vec3 place = grid_position(vec3(p));
        bool within = i < count && all(greaterThan(p, uvec3(0u))) && all(lessThan(p, last));
        bool trained = CONTRACTION == CONTRACTION_CUBE || maximum_norm(from_center(place)) <= 1.0;
        bool empty = values[before + min(i, count - 1u)] <= 0.0;
        if (hidden(place, within && trained && empty, view))
            values[before + i] = MESH_LIMIT;
    }
}
