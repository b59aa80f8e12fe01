// What passes share that make samples, a subgroup for each ray: one atomic reserves a ray's place among the
// samples.
//
// MARCH_COUNT and MARCH_WRITE split the work in two around a prefix sum over the rays (scan_rays),
// so that the samples' order does not depend on timing: the deterministic mode. When rendering, a
// ray takes at most `push.a` samples and goes on from there in the next round.
//
// For every way of sampling: what includes this defines
//   void sample_ray(uint ray, uint limit)   makes no more samples than `limit`

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) buffer ResultBuffer { RayResult results[]; };
#ifndef MARCH_COUNT
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
#endif

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

void sample_ray(uint ray, uint limit);

// Between a subgroup's writing of what is staged and its reading. A CPU's subgroup is one vector and so in
// step; lavapipe stops it at a barrier all the same, which took a third of the march's time.
void wait_for_staged()
{
    if (CPU_SHAPED != 0u)
        subgroupMemoryBarrierShared();
    else
        subgroupBarrier();
}

// The ray's samples are `count` from `first` on; false where they do not fit: the ray then has none.
bool keep_place(uint ray, uint count, uint first)
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
bool place_samples(uint ray, uint count, out uint first)
{
    first = 0;
#ifdef MARCH_WRITE
    first = results[ray].first; // from scan_rays
#elif !defined(MARCH_COUNT)
    if (subgroupElect() && count > 0u)
        first = atomicAdd(state.sample_count, count);
    first = subgroupBroadcastFirst(first);
#endif
    return keep_place(ray, count, first);
}

void main()
{
    uint ray = gl_WorkGroupID.x * SUBGROUPS + gl_SubgroupID;
    uint stride = gl_NumWorkGroups.x * SUBGROUPS;
#ifdef TRAIN
    uint ray_count = state.ray_count;
    const uint limit = MAX_RAY_SAMPLES;
#else
    uint ray_count = push.b;
    uint limit = push.a;
#endif
    if (ray >= ray_count)
        return;
    // Once, but where the device takes fewer workgroups than there are rays for.
    do {
        sample_ray(ray, limit);
        ray += stride;
    } while (ray < ray_count);
}
