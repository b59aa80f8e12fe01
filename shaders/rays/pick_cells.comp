#version 460
#extension GL_GOOGLE_include_directive : require
// Pass pick_cells: decays a chunk's cells of the occupancy grid and makes a sample in each cell to
// evaluate, for fields that other passes then evaluate. push.d: the chunk; a chunk has
// config.cells_per_chunk / 4 groups of four cells. With several time bins an update evaluates one
// bin, and decays that bin and its neighbours, which are the bins that store_cells raises: so a cell
// decays once for each update that may raise the cell.
//
//   buffer            shape                                                                   access
//   OCCUPANCY         [time bin][cascade][cell] f32                                           read, write
//   CAMERAS, CONTROL  times of views; progress                                                read
//   STATE             threshold (read), dispatches[DISPATCH_ONE].finished: number of samples  read, write
//   RAYS, SAMPLES     [sample]: one ray each                                                  write
//   LIVE              [sample] u32: the cell                                                  write
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY)) buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };
layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(LIVE)) writeonly buffer LiveBuffer { uint cells[]; }; // [sample]: its cell

#include "rays/cells.glsl"
#include "rays/cell_times.glsl"

const uint TIME_DRAWS = 4u * TIME_BINS; // most draws of a view until it is in the time bin

// Returns the time of a random training view in the bin, because cells that are empty at the times of
// all views need no samples. If no draw finds such a view, returns a random time of the bin.
float random_time(uint group, uint k)
{
    float pick;
    for (uint draw = 0; draw < TIME_DRAWS; draw++) {
        pick = random_unit(state.step, 4u * group + k, RANDOM_CELL_TIME + RANDOM_DRAW * draw).x;
        uint view = min(uint(pick * float(config.camera_count)), config.camera_count - 1u);
        if (is_in_updated_bin(cameras[view].time))
            return cameras[view].time;
    }
    return (float(updated_bin()) + pick) / float(TIME_BINS);
}

// Returns the time at which to evaluate a cell: for a cell that was chosen as occupied, the time at
// which it was found occupied.
float query_time(uint group, uint k, float value, bool was_occupied)
{
    float found = stored_time(value);
    return was_occupied && STORES_TIME && is_in_updated_bin(found) ? found : random_time(group, k);
}

void make_sample(uint group, uint k, float time)
{
    vec3 position = random_cell_position(group, k);
    uint i = atomicAdd(state.dispatches[DISPATCH_ONE].finished, 1u);
    rays[i].origin = float[3](position.x, position.y, position.z);
    rays[i].direction = float[3](0.0, 0.0, 1.0);
    rays[i].time = time;
    samples[i] = Sample(0.0, 0.0, i);
    cells[i] = 4u * group + k;
}

vec4 decay(uint group)
{
    vec4 value = decayed_cells(group);
    for (uint k = 0; k < 4u; k++) {
        value[k] = with_stored_time(value[k], stored_time(occupancy[4u * group + k]));
        occupancy[4u * group + k] = value[k];
    }
    return value;
}

void main()
{
    uint chunk_groups = config.cells_per_chunk / 4u, first = push.d * chunk_groups;
    uint end = min(first + chunk_groups, CELL_GROUPS);
    for (uint group = first + gl_GlobalInvocationID.x; group < end; group += gl_NumWorkGroups.x * LOCAL_SIZE) {
        vec4 value = vec4(-1.0);
        for (uint time_bin = first_updated_bin(); time_bin <= last_updated_bin(); time_bin++) {
            vec4 decayed = decay(time_bin * CELL_GROUPS + group);
            if (time_bin == updated_bin())
                value = decayed;
        }
        for (uint round = 0; round < cells_per_group(); round++) {
            uint k = chosen_cell(group, value, round);
            if (k < 4u)
                make_sample(group, k, query_time(group, k, value[k], round == 1u && cells_per_group() == 2u));
        }
    }
}
