#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mark_unseen_cells (once, before training): sets cells that must stay empty to -1: cells of
// the contracted cascade that a finer cascade covers, and cells whose middle and corners no camera
// within the far distance sees, because no image would contradict densities in them. A dispatch
// processes cells [push.a, push.d), to stay within a watchdog's time limit.
//
//   buffer     shape                                   access
//   CAMERAS    [camera]                                read
//   OCCUPANCY  [time bin][cascade][cell] f32: 0 or -1  write
#include "shared/common.glsl"
#include "rays/camera.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(OCCUPANCY)) writeonly buffer OccupancyBuffer { float occupancy[]; };

vec3 inside_cell(uint point)
{
    return point == 8u ? vec3(0.5) : vec3(point & 1u, point >> 1 & 1u, point >> 2);
}

// Returns the box of the cell's corners. Contraction bends the cell's edges, but not beyond the box.
void cell_box(uint cascade, uvec3 cell, out vec3 low, out vec3 high)
{
    low = high = cell_position(cascade, cell, vec3(0.0));
    for (uint point = 1u; point < 8u; point++) {
        vec3 corner = cell_position(cascade, cell, inside_cell(point));
        low = min(low, corner);
        high = max(high, corner);
    }
}

bool within_reach(Camera camera, vec3 low, vec3 high)
{
    vec3 origin = vec3(camera.pose[3], camera.pose[7], camera.pose[11]);
    return distance(origin, clamp(origin, low, high)) <= config.far_distance;
}

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    // Returns before the loop: some drivers run a loop's body once with all lanes masked off.
    uint index = push.a + gl_GlobalInvocationID.x, end = min(push.d, TIME_BINS * TIME_BIN_CELLS);
    if (index >= end)
        return;
    do {
        uvec3 cell = morton_decode(index % CELLS);
        uint cascade = index / CELLS % CASCADES;
        bool seen = false, may_be_seen = cascade < CUBE_CASCADES || lies_outside(cell);
        vec3 low, high;
        cell_box(cascade, cell, low, high);
        for (uint point = 0; point < 9u && may_be_seen && !seen; point++) {
            vec3 position = cell_position(cascade, cell, inside_cell(point));
            vec2 pixel;
            for (uint i = 0; i < config.camera_count && !seen; i++)
                seen = camera_sees(cameras[i], position, pixel) && within_reach(cameras[i], low, high);
        }
        occupancy[index] = seen ? 0.0 : -1.0;
        index += stride;
    } while (index < end);
}
