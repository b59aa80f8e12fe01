#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sample_proposal (variant sample_view_proposal): places the samples of the field where the
// proposal has weight (Mip-NeRF 360, section 3), one subgroup per ray. Edges are drawn by inverting
// the integral of the proposal's weights at stratified values; a sample covers the interval between
// two edges. The weights are first blurred, so that objects between two bins of the proposal are not
// missed when the camera moves (Mip-NeRF, section 3.1), and annealed. A rendering iteration places
// the samples from number push.c on.
//
//   buffer                        shape                                         access
//   COARSE_RESULTS                [ray] of the proposal                         read
//   COARSE_SAMPLES, COARSE_FIELD  [bin] of the proposal                         read
//   RAYS                          [ray]                                         read; write: last
//   STATE                         ray count, step (read), sample_count (write)  read, write
//   RESULTS                       [ray] first, count                            write
//   SAMPLES                       [sample]                                      write
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "rays/march.glsl"
#define EQUAL_RAY_COUNTS
#include "rays/sample_rays.glsl"
#include "rays/coarse_bins.glsl"
#include "shared/proposal.glsl"

// Weight that is distributed over all bins of a ray, so that each bin gets samples now and then.
const float LEAST_SHARE = 0.05;

float bin_density(uint bin)
{
    float weight = coarse_weight(bin), before = coarse_weight(max(bin, 1u) - 1u);
    float behind = coarse_weight(min(bin + 1u, config.ray_samples - 1u));
    float blurred = 0.5 * (max(before, weight) + max(weight, behind));
    return pow(blurred + LEAST_SHARE / float(config.ray_samples), anneal_exponent());
}

// Empty: store_samples draws the positions.
void stage_positions(uint ray)
{
}

float drawn_edge(Bins bins, uint number)
{
    uint edges = config.fine_samples + 1u;
    float scale = staged_cdf[gl_SubgroupID][config.ray_samples - 1u] / float(edges);
    return distance_of(bins, invert_cdf((float(number) + offset_in_stratum(bins.ray, number, edges)) * scale));
}

void store_samples(Bins bins)
{
    for (uint i = bins.begin + lane; i < bins.end; i += SUBGROUP_SIZE) {
        float from = drawn_edge(bins, i), to = drawn_edge(bins, i + 1u);
        samples[bins.first + i - bins.begin] = Sample(0.5 * (from + to), to - from, bins.ray);
    }
}

void sample_ray(uint ray, uint limit)
{
    sample_coarse_ray(ray, limit, config.fine_samples);
}
