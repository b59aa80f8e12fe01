#version 460
#extension GL_GOOGLE_include_directive : require
// Pass store_cells: raises each cell that pick_cells chose to the optical thickness of the smallest
// marching step, which is the field's density at the cell's sample times step_min.
//
//   buffer          shape                              access
//   FIELD           [sample] vec4: density             read
//   LIVE            [sample] u32: the cell             read
//   RAYS            [sample] time                      read
//   STATE, CONTROL  number of samples, step; progress  read
//   OCCUPANCY       [time bin][cascade][cell] f32      read, write
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
