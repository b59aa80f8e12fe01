#version 460
#extension GL_GOOGLE_include_directive : require
// Pass list_samples: writes samples and their rays to one array per quantity, for callers that
// evaluate a field themselves. The arrays are large enough for all samples and rays. push.a: LIST_*;
// push.b: number of rays, with LIST_VIEW.
//
//   buffer                                         shape                           access
//   STATE                                          ray and sample counts           read
//   RAYS, RESULTS                                  [ray]                           read
//   SAMPLES                                        [sample]                        read
//   LIST_SUMMARY                                   struct ListSummary              read, write
//   LISTED_POSITIONS, LISTED_DIRECTIONS            [sample][3] f32                 write
//   LISTED_DISTANCES, LISTED_WIDTHS, LISTED_TIMES  [sample] f32                    write
//   LISTED_RAYS                                    [sample] u32                    write
//   LISTED_RANGES                                  [ray][first sample, count] u32  write
//   LISTED_TARGETS                                 [ray][4] f32                    write
//   LISTED_BACKGROUNDS                             [ray][3] f32                    write
//   LISTED_VIEWS, LISTED_IN_LOSS                   [ray] u32                       write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(LIST_SUMMARY)) buffer ListedBuffer { ListSummary listed; };
layout(std430, BINDING(LISTED_POSITIONS)) writeonly buffer PositionBuffer { float positions[]; };
layout(std430, BINDING(LISTED_DIRECTIONS)) writeonly buffer DirectionBuffer { float directions[]; };
layout(std430, BINDING(LISTED_DISTANCES)) writeonly buffer DistanceBuffer { float distances[]; };
layout(std430, BINDING(LISTED_WIDTHS)) writeonly buffer WidthBuffer { float widths[]; };
layout(std430, BINDING(LISTED_TIMES)) writeonly buffer TimeBuffer { float times[]; };
layout(std430, BINDING(LISTED_RAYS)) writeonly buffer RayIndexBuffer { uint ray_indices[]; };
layout(std430, BINDING(LISTED_RANGES)) writeonly buffer RangeBuffer { uvec2 ranges[]; };
layout(std430, BINDING(LISTED_TARGETS)) writeonly buffer TargetBuffer { vec4 targets[]; };
layout(std430, BINDING(LISTED_BACKGROUNDS)) writeonly buffer BackgroundBuffer { float backgrounds[]; };
layout(std430, BINDING(LISTED_VIEWS)) writeonly buffer ViewBuffer { uint views[]; };
layout(std430, BINDING(LISTED_IN_LOSS)) writeonly buffer InLossBuffer { uint in_loss[]; };

void list_sample(uint i)
{
    Sample s = samples[i];
    Ray ray = rays[min(s.ray, config.ray_capacity - 1u)];
    for (uint axis = 0; axis < 3u; axis++) {
        positions[3u * i + axis] = ray.origin[axis] + s.t * ray.direction[axis];
        directions[3u * i + axis] = ray.direction[axis];
    }
    distances[i] = s.t;
    widths[i] = s.width;
    times[i] = ray.time;
    ray_indices[i] = s.ray;
}

// Lists a ray. The end of the last range becomes the number of listed samples, because
// State.sample_count includes samples that did not fit.
void list_ray(uint index)
{
    Ray ray = rays[index];
    uint first = results[index].first, count = results[index].count;
    ranges[index] = uvec2(count > 0u ? first : 0u, count);
    targets[index] = vec4(ray.target[0], ray.target[1], ray.target[2], ray.target[3]);
    for (uint c = 0; c < 3u; c++)
        backgrounds[3u * index + c] = ray.background[c];
    views[index] = ray.view;
    if (count > 0u)
        atomicMax(listed.samples, first + count);
    bool is_in_loss = push.a == LIST_STEP && ray.last > -1.5; // see Ray.last
    in_loss[index] = is_in_loss ? 1u : 0u;
    if (is_in_loss)
        atomicAdd(listed.rays_in_loss, 1u);
}

void main()
{
    uint ray_count = push.a == LIST_STEP ? state.ray_count : push.a == LIST_VIEW ? push.b : 0u;
    uint cell_count = state.dispatches[DISPATCH_ONE].finished;
    uint sample_count = push.a == LIST_CELLS ? cell_count : min(state.sample_count, config.sample_capacity);
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint ray = gl_GlobalInvocationID.x; ray < ray_count; ray += stride)
        list_ray(ray);
    for (uint i = gl_GlobalInvocationID.x; i < sample_count; i += stride)
        list_sample(i);
    if (gl_GlobalInvocationID.x == 0u) {
        listed.rays = ray_count;
        listed.step = state.step;
        listed.learning_rate = state.learning_rate;
        if (push.a == LIST_CELLS)
            listed.samples = cell_count;
    }
}
