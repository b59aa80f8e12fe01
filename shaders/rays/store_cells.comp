#version 460
#extension GL_GOOGLE_include_directive : require
// Raises the cells that pick_cells chose to what the field found in them: the optical thickness of a smallest
// marching step.
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY)) buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(LIVE)) readonly buffer LiveBuffer { uint cells[]; };

#include "rays/cell_times.glsl"

void main()
{
    uint count = state.dispatches[DISPATCH_ONE].finished;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        float found = with_stored_time(field[i].w * config.step_min, rays[i].time);
        for (uint time_bin = first_updated_bin(); time_bin <= last_updated_bin(); time_bin++) {
            uint cell = time_bin * TIME_BIN_CELLS + cells[i];
            occupancy[cell] = max(occupancy[cell], found);
        }
    }
}
