#version 460
#extension GL_GOOGLE_include_directive : require
// Decays a chunk's cells of the occupancy grid and makes samples of those to look at: for fields that are
// evaluated by passes of their own. push.d is the chunk: a quarter of config.cell_rows groups of four cells.
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY)) buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };
layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(LIVE)) writeonly buffer LiveBuffer { uint cells[]; }; // of the samples

#include "rays/cells.glsl"

// The time of a random training view: what is empty at all of them is of no use.
float training_time(uint group, uint k)
{
    float pick = random_unit(state.step, 4u * group + k, RANDOM_CELL_TIME).x;
    return cameras[min(uint(pick * float(config.camera_count)), config.camera_count - 1u)].time;
}

void make_sample(uint group, uint k)
{
    vec3 position = place_in_cell(group, k);
    uint i = atomicAdd(state.dispatches[DISPATCH_ONE].finished, 1u);
    rays[i].origin = float[3](position.x, position.y, position.z);
    rays[i].direction = float[3](0.0, 0.0, 1.0);
    rays[i].time = training_time(group, k);
    samples[i] = Sample(0.0, 0.0, i);
    cells[i] = 4u * group + k;
}

void main()
{
    uint share = config.cell_rows / 4u, first = push.d * share;
    uint end = min(first + share, CELL_GROUPS);
    for (uint group = first + gl_GlobalInvocationID.x; group < end; group += gl_NumWorkGroups.x * LOCAL_SIZE) {
        vec4 value = decayed_cells(group);
        for (uint k = 0; k < 4u; k++)
            occupancy[4u * group + k] = value[k];
        for (uint round = 0; round < cell_rounds(); round++) {
            uint k = chosen_cell(group, value, round);
            if (k < 4u)
                make_sample(group, k);
        }
    }
}
