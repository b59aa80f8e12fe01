#version 460
#extension GL_GOOGLE_include_directive : require
// One subgroup per ray: the samples of the fine field (hierarchical sampling: Mildenhall et al., NeRF, 2020,
// section 5.2). The coarse samples, one in each bin, have weights in the coarse field's picture; those of the
// bins, each spread evenly over its bin, are the density of the fine samples, which are drawn by inverting
// its integral at stratified places. The fine field gets these and the coarse ones in one order. When
// rendering, a round takes those from place push.c on.
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "rays/march.glsl"
#define AS_MANY_RAYS
#include "rays/sample_rays.glsl"
#include "rays/bins.glsl"

layout(std430, BINDING(COARSE_RESULTS)) readonly buffer CoarseResultBuffer { RayResult coarse_results[]; };
layout(std430, BINDING(COARSE_SAMPLES)) readonly buffer CoarseSampleBuffer { Sample coarse_samples[]; };
layout(std430, BINDING(COARSE_FIELD)) readonly buffer CoarseFieldBuffer { vec4 coarse_field[]; };

// Of every bin, so that all have fine samples now and then.
const float LEAST_WEIGHT = 1e-5;

shared float staged_sums[SUBGROUPS][MAX_COARSE_SAMPLES]; // of the weights up to each bin's end
shared float staged_fine[SUBGROUPS][MAX_FINE_SAMPLES];   // places, increasing; 1 is a bin
uint lane = gl_SubgroupInvocationID;

// All invocations of the subgroup together.
void stage_sums(uint ray, uint first)
{
    vec3 origin = vec3(rays[ray].origin[0], rays[ray].origin[1], rays[ray].origin[2]);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    float transmittance = 1.0, sum = 0.0;
    for (uint base = 0; base < config.ray_samples; base += SUBGROUP_SIZE) {
        bool used = base + lane < config.ray_samples;
        uint at = first + min(base + lane, config.ray_samples - 1u);
        float t = coarse_samples[at].t, width = width_at(origin + t * direction, coarse_samples[at].width);
        float left = used ? exp(-coarse_field[at].w * width) : 1.0;
        float after = transmittance * subgroupInclusiveMul(left);
        float before = subgroupShuffle(after, max(lane, 1u) - 1u);
        float weight = (lane == 0u ? transmittance : before) - after;
        weight = weight > 0.0 ? weight : 0.0; // not NaN
        float upto = sum + subgroupInclusiveAdd(weight + LEAST_WEIGHT);
        if (used)
            staged_sums[gl_SubgroupID][base + lane] = upto;
        transmittance = subgroupShuffle(after, SUBGROUP_SIZE - 1u);
        sum = subgroupShuffle(upto, SUBGROUP_SIZE - 1u);
    }
}

float place_in_stratum(uint ray, uint number)
{
#ifdef TRAIN
    return random_unit(state.step, (config.first_ray + ray) * config.fine_samples + number, RANDOM_FINE).x;
#else
    return 0.5;
#endif
}

// Where the weights up to there have that sum.
float place_of(float sum)
{
    uint low = 0u, high = config.ray_samples - 1u;
    while (low < high) { // the first bin that exceeds it
        uint middle = (low + high) / 2u;
        if (staged_sums[gl_SubgroupID][middle] > sum)
            high = middle;
        else
            low = middle + 1u;
    }
    float before = staged_sums[gl_SubgroupID][max(low, 1u) - 1u];
    before = low > 0u ? before : 0.0;
    float inside = (sum - before) / (staged_sums[gl_SubgroupID][low] - before);
    return float(low) + clamp(inside, 0.0, 1.0);
}

void stage_fine(uint ray)
{
    float scale = staged_sums[gl_SubgroupID][config.ray_samples - 1u] / float(config.fine_samples);
    for (uint j = lane; j < config.fine_samples; j += SUBGROUP_SIZE)
        staged_fine[gl_SubgroupID][j] = place_of((float(j) + place_in_stratum(ray, j)) * scale);
}

float coarse_place(uint ray, uint bin)
{
    return float(bin) + place_in_bin(ray, bin);
}

float fine_place(uint number)
{
    return staged_fine[gl_SubgroupID][number];
}

// Both orders are made from the same comparison, so that no two samples get the same place.
uint coarse_up_to(uint ray, float place)
{
    uint bin = to_unsigned(vec3(floor(place))).x;
    if (bin >= config.ray_samples)
        return config.ray_samples;
    return bin + (coarse_place(ray, bin) <= place ? 1u : 0u);
}

// How many of the first `rank` samples are fine ones: of those numbers in the order of all, each is greater than
// the one before.
uint fine_among(uint ray, uint rank)
{
    uint low = rank - min(rank, config.ray_samples), high = min(rank, config.fine_samples);
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (middle + coarse_up_to(ray, fine_place(middle)) < rank)
            low = middle + 1u;
        else
            high = middle;
    }
    return low;
}

// A ray's bins, and where those of its samples go that this round takes.
struct Bins {
    uint ray;
    float from, size; // in steps
    uint first, begin, end;
};

float distance_of(Bins bins, float place)
{
    return from_steps(bins.from + place * bins.size);
}

// Distances of the sample that comes behind so many coarse and so many fine ones, and of the next one.
vec2 next_distances(Bins bins, uint coarse, uint fine)
{
    float ends = float(config.ray_samples);
    float of_coarse = coarse < config.ray_samples ? coarse_place(bins.ray, coarse) : ends;
    float of_fine = fine < config.fine_samples ? fine_place(fine) : ends;
    bool takes_fine = of_fine < of_coarse || coarse == config.ray_samples;
    float after = ends;
    if (takes_fine && fine + 1u < config.fine_samples)
        after = fine_place(fine + 1u);
    if (!takes_fine && coarse + 1u < config.ray_samples)
        after = coarse_place(bins.ray, coarse + 1u);
    return vec2(distance_of(bins, min(of_coarse, of_fine)),
                distance_of(bins, min(takes_fine ? of_coarse : of_fine, after)));
}

// In their order, one in each lane. Samples whose distances come out equal move to the next greater floats: a
// positive float's bits grow with it, so bits less the sample's number may not fall. Each sample stands for the
// way to the middle between it and its neighbours.
void put_samples(Bins bins)
{
    uint total = config.ray_samples + config.fine_samples;
    float before = distance_of(bins, 0.0);
    int least = floatBitsToInt(before);
    for (uint base = 0; base < bins.end; base += SUBGROUP_SIZE) {
        uint rank = min(base + lane, total - 1u), fine = fine_among(bins.ray, rank);
        vec2 wanted = next_distances(bins, rank - fine, fine);
        int bits = max(subgroupInclusiveMax(floatBitsToInt(wanted.x) - int(rank)), least);
        float t = intBitsToFloat(bits + int(rank)), next = max(wanted.y, intBitsToFloat(bits + int(rank) + 1));
        float in_front = subgroupShuffle(t, max(lane, 1u) - 1u);
        in_front = lane > 0u ? in_front : before;
        float low = rank > 0u ? 0.5 * (in_front + t) : before;
        float high = rank + 1u < total ? 0.5 * (t + next) : next;
        if (base + lane >= bins.begin && base + lane < bins.end)
            samples[bins.first + rank - bins.begin] = Sample(t, high - low, bins.ray);
        before = subgroupShuffle(t, SUBGROUP_SIZE - 1u);
        least = subgroupShuffle(bits, SUBGROUP_SIZE - 1u);
    }
}

// When training, every ray that has coarse samples has all the fine ones: their order, which may not depend on
// timing, is that of the coarse ones.
bool place_fine(uint ray, uint count, out uint first)
{
#ifdef TRAIN
    first = coarse_results[ray].first / config.ray_samples * count;
    if (subgroupElect() && count > 0u)
        atomicAdd(state.sample_count, count);
    return keep_place(ray, count, first);
#else
    return place_samples(ray, count, first);
#endif
}

// No barrier depends on whether there are samples.
void sample_ray(uint ray, uint limit)
{
    bool exists = ray < ray_count();
    ray = exists ? ray : 0u;
    uint total = config.ray_samples + config.fine_samples;
#ifdef TRAIN
    const uint begin = 0u;
#else
    uint begin = min(push.c, total);
#endif
    float last = rays[ray].last;
    uint coarse = exists && last >= 0.0 ? coarse_results[ray].count : 0u, first = 0u;
    uint count = coarse > 0u ? min(total - begin, limit) : 0u;
    if (exists)
        count = place_fine(ray, count, first) ? count : 0u;
    if (count > 0u)
        stage_sums(ray, coarse_results[ray].first);
    wait_for_staged();
    if (count > 0u)
        stage_fine(ray);
    wait_for_staged();
    if (count == 0u)
        return;
    vec3 origin = vec3(rays[ray].origin[0], rays[ray].origin[1], rays[ray].origin[2]);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    float from = to_steps(ray_span(origin, direction).x);
    put_samples(Bins(ray, from, (last - from) / float(config.ray_samples), first, begin, begin + count));
}
