// Samples a ray by importance: draws samples from a piecewise constant density over the bins of the
// coarse samples. Each coarse sample has one bin. The including file includes rays/sample_rays.glsl
// and defines
//   float bin_density(uint bin)     density of a bin, not normalised, from coarse_weight()
//   void stage_positions(uint ray)  prepares the drawn positions in shared memory
//   void store_samples(Bins bins)   writes the samples
// Passes: sample_fine, sample_proposal. Reads COARSE_RESULTS [ray], COARSE_SAMPLES and COARSE_FIELD
// [bin].
#include "shared/lane_weights.glsl"

layout(std430, BINDING(COARSE_RESULTS)) readonly buffer CoarseResultBuffer { RayResult coarse_results[]; };
layout(std430, BINDING(COARSE_SAMPLES)) readonly buffer CoarseSampleBuffer { Sample coarse_samples[]; };
layout(std430, BINDING(COARSE_FIELD)) readonly buffer CoarseFieldBuffer { vec4 coarse_field[]; };

shared float staged_weights[SUBGROUPS][MAX_COARSE_SAMPLES];
shared float staged_cdf[SUBGROUPS][MAX_COARSE_SAMPLES]; // [bin]: sum of bin_density up to its end

float coarse_weight(uint bin)
{
    return staged_weights[gl_SubgroupID][bin];
}

float bin_density(uint bin);

// A ray's bins, and the samples to write: the ray's samples [begin, end), to SAMPLES from `first` on.
struct Bins {
    uint ray;
    float from, size; // start of the first bin and size of a bin, in stepping space
    uint first, begin, end;
};

float distance_of(Bins bins, float position)
{
    return from_steps(bins.from + position * bins.size);
}

// All invocations of the subgroup call stage_weights, wait_for_staged and stage_sums.
void stage_weights(uint ray, uint first)
{
    vec3 origin = vec3(rays[ray].origin[0], rays[ray].origin[1], rays[ray].origin[2]);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    float transmittance = 1.0;
    for (uint base = 0; base < config.ray_samples; base += SUBGROUP_SIZE) {
        bool has_bin = base + lane < config.ray_samples;
        uint at = first + min(base + lane, config.ray_samples - 1u);
        float t = coarse_samples[at].t, width = width_at(origin + t * direction, coarse_samples[at].width);
        float weight = lane_weight(has_bin ? coarse_field[at].w * width : 0.0, transmittance);
        if (has_bin)
            staged_weights[gl_SubgroupID][base + lane] = weight;
    }
}

void stage_sums()
{
    float sum = 0.0;
    for (uint base = 0; base < config.ray_samples; base += SUBGROUP_SIZE) {
        uint bin = base + lane;
        float upto = sum + subgroupInclusiveAdd(bin < config.ray_samples ? bin_density(bin) : 0.0);
        if (bin < config.ray_samples)
            staged_cdf[gl_SubgroupID][bin] = upto;
        sum = subgroupShuffle(upto, SUBGROUP_SIZE - 1u);
    }
}

// Inverts the integral of the density: returns the position, in bins, at which the integral is `sum`.
float invert_cdf(float sum)
{
    uint low = 0u, high = config.ray_samples - 1u;
    while (low < high) { // finds the first bin whose cumulative sum exceeds `sum`
        uint middle = (low + high) / 2u;
        if (staged_cdf[gl_SubgroupID][middle] > sum)
            high = middle;
        else
            low = middle + 1u;
    }
    float before = staged_cdf[gl_SubgroupID][max(low, 1u) - 1u];
    before = low > 0u ? before : 0.0;
    float inside = (sum - before) / (staged_cdf[gl_SubgroupID][low] - before);
    return float(low) + clamp(inside, 0.0, 1.0);
}

// Returns the offset of sample `number` of `count` in its stratum, 0 to 1: random in training, the
// middle in rendering.
float offset_in_stratum(uint ray, uint number, uint count)
{
#ifdef TRAIN
    return random_unit(state.step, (config.first_ray + ray) * count + number, RANDOM_FINE).x;
#else
    return 0.5;
#endif
}

// Reserves the range of a ray's fine samples. In training every ray with coarse samples gets all fine
// samples. Ranges are in the order of the coarse samples' ranges, which does not depend on timing.
bool reserve_fine_samples(uint ray, uint count, out uint first)
{
#ifdef TRAIN
    first = coarse_results[ray].first / config.ray_samples * count;
    if (subgroupElect() && count > 0u)
        atomicAdd(state.sample_count, count);
    return store_range(ray, count, first);
#else
    return reserve_samples(ray, count, first);
#endif
}

void store_samples(Bins bins);
void stage_positions(uint ray);

// Places at most `limit` of a ray's samples, of which there are `total` over all iterations. All
// invocations reach all barriers, even if the ray has no samples.
void sample_coarse_ray(uint ray, uint limit, uint total)
{
    bool exists = ray < ray_count();
    ray = exists ? ray : 0u;
#ifdef TRAIN
    const uint begin = 0u;
#else
    uint begin = min(push.c, total);
#endif
    float last = rays[ray].last;
    uint coarse_count = exists && last >= 0.0 ? coarse_results[ray].count : 0u, first = 0u;
    uint count = coarse_count > 0u ? min(total - begin, limit) : 0u;
    if (exists)
        count = reserve_fine_samples(ray, count, first) ? count : 0u;
    if (count > 0u)
        stage_weights(ray, coarse_results[ray].first);
    wait_for_staged();
    if (count > 0u)
        stage_sums();
    wait_for_staged();
    if (count > 0u)
        stage_positions(ray);
    wait_for_staged();
    if (count == 0u)
        return;
    float from = rays[ray].step;
    store_samples(Bins(ray, from, (last - from) / float(config.ray_samples), first, begin, begin + count));
}
