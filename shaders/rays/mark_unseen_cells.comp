#version 460
#extension GL_GOOGLE_include_directive : require
// Per cell, once before training: -1 where no camera within the far distance sees its middle or a corner,
// so that nothing can grow there that no picture would contradict; and where a finer cascade is asked
// instead. Cells push.a .. push.d at once: all may take longer than a watchdog lets a dispatch take.
#include "shared/common.glsl"
#include "rays/camera.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(OCCUPANCY)) writeonly buffer OccupancyBuffer { float occupancy[]; };

vec3 inside_cell(uint point)
{
    return point == 8u ? vec3(0.5) : vec3(point & 1u, point >> 1 & 1u, point >> 2);
}

// Lowest and highest corner; contraction bends what lies between, but not beyond them.
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
    // The test comes before the loop: some drivers run a loop's body once with every invocation
    // masked off.
    uint index = push.a + gl_GlobalInvocationID.x, end = min(push.d, TIME_BINS * TIME_BIN_CELLS);
    if (index >= end)
        return;
    do {
        uvec3 cell = morton_decode(index % CELLS);
        uint cascade = index / CELLS % CASCADES;
        bool seen = false, asked = cascade < CUBE_CASCADES || lies_outside(cell);
        vec3 low, high;
        cell_box(cascade, cell, low, high);
        for (uint point = 0; point < 9u && asked && !seen; point++) {
            vec3 position = cell_position(cascade, cell, inside_cell(point));
            vec2 pixel;
            for (uint i = 0; i < config.camera_count && !seen; i++)
                seen = camera_sees(cameras[i], position, pixel) && within_reach(cameras[i], low, high);
        }
        occupancy[index] = seen ? 0.0 : -1.0;
        index += stride;
    } while (index < end);
}
