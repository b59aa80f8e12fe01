// Runs the main loop of passes that place samples: one subgroup per ray, one atomic per ray's range.
//
// MARCH_COUNT and MARCH_WRITE split a pass in two around a prefix sum over the rays (scan_rays), so
// that in deterministic mode the order of the samples does not depend on timing. A rendering
// iteration places at most push.a samples per ray, and the next iteration continues after them; push.b
// is the number of rays.
//
// The including file defines
//   void sample_ray(uint ray, uint limit)  places at most `limit` samples on a ray
//   EQUAL_RAY_COUNTS                       if sample_ray has barriers: all subgroups of a workgroup then run the
//                                          same number of iterations, with or without a ray, because lavapipe
//                                          ends a workgroup soon after its first subgroup has ended, even if
//                                          other subgroups wait at barriers
// Passes: march_rays, sample_uniform, sample_fine, sample_proposal, whose files list the buffers.

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) buffer ResultBuffer { RayResult results[]; };
#ifndef MARCH_COUNT
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
#endif

#include "shared/staged.glsl"

void sample_ray(uint ray, uint limit);

// Sets the ray's samples to `count` from `first` on. If they do not fit, sets none and returns false.
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

// Reserves `count` samples for the ray. If they do not fit, reserves none and returns false.
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
    // Iterates more than once only if the device limits the number of workgroups.
    do {
        sample_ray(ray, limit);
        ray += stride;
    } while (ray - number < count);
}
