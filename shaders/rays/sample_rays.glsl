// What passes share that make samples, a subgroup for each ray: one atomic reserves a ray's place among the
// samples.
//
// MARCH_COUNT and MARCH_WRITE split the work in two around a prefix sum over the rays (scan_rays),
// so that the samples' order does not depend on timing: the deterministic mode. When rendering, a
// ray takes at most `push.a` samples and goes on from there in the next round.
//
// For every way of sampling: what includes this defines
//   void sample_ray(uint ray, uint limit)   makes no more samples than `limit`
//   EQUAL_RAY_COUNTS   where it has work to do behind barriers: all subgroups of a workgroup then take as many rays,
//                  also such as do not exist, because lavapipe ends a workgroup soon after the first of its
//                  subgroups has ended, whatever barriers the others wait at

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) buffer ResultBuffer { RayResult results[]; };
#ifndef MARCH_COUNT
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
#endif

#include "shared/staged.glsl"

void sample_ray(uint ray, uint limit);

// The ray's samples are `count` from `first` on; false where they do not fit: the ray then has none.
bool store_range(uint ray, uint count, uint first)
{
    bool fits = first + count <= config.sample_capacity;
#ifdef MARCH_COUNT
    fits = true;
#endif
    if (subgroupElect()) {
        results[ray].first = first;
        results[ray].count = fits ? count : 0u;
#ifdef TRAIN
        if (!fits)
            rays[ray].last = -2.0; // not in this step's loss
#endif
    }
    return fits;
}

// Gives the ray `count` places from `first` on; false where they do not fit: the ray then has no samples.
bool reserve_samples(uint ray, uint count, out uint first)
{
    first = 0;
#ifdef MARCH_WRITE
    first = results[ray].first; // from scan_rays
#elif !defined(MARCH_COUNT)
    if (subgroupElect() && count > 0u)
        first = atomicAdd(state.sample_count, count);
    first = subgroupBroadcastFirst(first);
#endif
    return store_range(ray, count, first);
}

uint ray_count()
{
#ifdef TRAIN
    return state.ray_count;
#else
    return push.b;
#endif
}

void main()
{
    uint ray = gl_WorkGroupID.x * SUBGROUPS + gl_SubgroupID;
    uint stride = gl_NumWorkGroups.x * SUBGROUPS, count = ray_count();
#ifdef TRAIN
    const uint limit = MAX_RAY_SAMPLES;
#else
    uint limit = push.a;
#endif
#ifdef EQUAL_RAY_COUNTS
    uint number = gl_SubgroupID;
#else
    const uint number = 0u;
#endif
    if (ray - number >= count)
        return;
    // Once, but where the device takes fewer workgroups than there are rays for.
    do {
        sample_ray(ray, limit);
        ray += stride;
    } while (ray - number < count);
}
