#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sample_fine (variant sample_view_fine): places the samples of the fine field by hierarchical
// sampling (Mildenhall et al., NeRF, 2020, section 5.2), one subgroup per ray. The weights of the
// coarse samples, each spread evenly over its bin, are the density from which the fine samples are
// drawn, by inverting the density's integral at stratified values. The fine field is evaluated at
// fine and coarse samples, sorted by distance. A rendering iteration places the samples from number
// push.c on.
//
//   buffer                        shape                                   access
//   COARSE_RESULTS                [ray]                                   read
//   COARSE_SAMPLES, COARSE_FIELD  [coarse sample]                         read
//   RAYS                          [ray]                                   read; write: last
//   STATE                         ray count (read), sample_count (write)  read, write
//   RESULTS                       [ray] first, count                      write
//   SAMPLES                       [sample]                                write
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "rays/march.glsl"
#define EQUAL_RAY_COUNTS
#include "rays/sample_rays.glsl"
#include "rays/stratified.glsl"
#include "rays/coarse_bins.glsl"

// Weight added to every bin, so that all bins get fine samples now and then.
const float LEAST_WEIGHT = 1e-5;

shared float staged_fine[SUBGROUPS][MAX_FINE_SAMPLES]; // positions in units of bins, increasing

float bin_density(uint bin)
{
    return coarse_weight(bin) + LEAST_WEIGHT;
}

void stage_positions(uint ray)
{
    float scale = staged_cdf[gl_SubgroupID][config.ray_samples - 1u] / float(config.fine_samples);
    for (uint j = lane; j < config.fine_samples; j += SUBGROUP_SIZE)
        staged_fine[gl_SubgroupID][j] = invert_cdf((float(j) + offset_in_stratum(ray, j, config.fine_samples)) * scale);
}

float coarse_position(uint ray, uint bin)
{
    return float(bin) + offset_in_bin(ray, bin);
}

float fine_position(uint number)
{
    return staged_fine[gl_SubgroupID][number];
}

// Returns the number of coarse samples at or before a position. Ranks of coarse and of fine samples
// follow from this one comparison, so that no two samples get the same index.
uint count_coarse_up_to(uint ray, float position)
{
    uint bin = to_unsigned(vec3(floor(position))).x;
    if (bin >= config.ray_samples)
        return config.ray_samples;
    return bin + (coarse_position(ray, bin) <= position ? 1u : 0u);
}

// Returns the number of fine samples among the first `rank` samples, by bisection: the rank of a fine
// sample among all samples increases with its number.
uint count_fine_before(uint ray, uint rank)
{
    uint low = rank - min(rank, config.ray_samples), high = min(rank, config.fine_samples);
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (middle + count_coarse_up_to(ray, fine_position(middle)) < rank)
            low = middle + 1u;
        else
            high = middle;
    }
    return low;
}

// Returns the distances of the two samples after the first `coarse` coarse and `fine` fine samples.
vec2 next_distances(Bins bins, uint coarse, uint fine)
{
    float ends = float(config.ray_samples);
    float next_coarse = coarse < config.ray_samples ? coarse_position(bins.ray, coarse) : ends;
    float next_fine = fine < config.fine_samples ? fine_position(fine) : ends;
    bool fine_is_next = next_fine < next_coarse || coarse == config.ray_samples;
    float after = ends;
    if (fine_is_next && fine + 1u < config.fine_samples)
        after = fine_position(fine + 1u);
    if (!fine_is_next && coarse + 1u < config.ray_samples)
        after = coarse_position(bins.ray, coarse + 1u);
    return vec2(distance_of(bins, min(next_coarse, next_fine)),
                distance_of(bins, min(fine_is_next ? next_coarse : next_fine, after)));
}

// Writes the samples in order, one per lane. Samples at equal distances move to the next greater
// floats: a positive float's bits increase with the float, so the bits minus the sample's number must
// not decrease. Each sample's interval ends midway to the two neighbours.
void store_samples(Bins bins)
{
    uint total = config.ray_samples + config.fine_samples;
    float before = distance_of(bins, 0.0);
    int least = floatBitsToInt(before);
    for (uint base = 0; base < bins.end; base += SUBGROUP_SIZE) {
        uint rank = min(base + lane, total - 1u), fine = count_fine_before(bins.ray, rank);
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

void sample_ray(uint ray, uint limit)
{
    sample_coarse_ray(ray, limit, config.ray_samples + config.fine_samples);
}
