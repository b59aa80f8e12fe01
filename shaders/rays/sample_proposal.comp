#version 460
#extension GL_GOOGLE_include_directive : require
// One subgroup per ray: the samples of the field where a proposal says that something may be (Mip-NeRF 360, section
// 3). Edges are drawn by inverting the integral of its weights at stratified places, and a sample stands for the way
// between two of them. The weights are blurred first, so that what lies between two bins of the proposal is not
// missed when the camera moves (Mip-NeRF, section 3.1), and annealed. When rendering, a round takes samples from
// place push.c on.
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "rays/march.glsl"
#define EQUAL_RAY_COUNTS
#include "rays/sample_rays.glsl"
#include "rays/coarse_bins.glsl"
#include "shared/proposal.glsl"

// Of all bins together, so that each has samples now and then.
const float LEAST_SHARE = 0.05;

float bin_density(uint bin)
{
    float weight = coarse_weight(bin), before = coarse_weight(max(bin, 1u) - 1u);
    float behind = coarse_weight(min(bin + 1u, config.ray_samples - 1u));
    float blurred = 0.5 * (max(before, weight) + max(weight, behind));
    return pow(blurred + LEAST_SHARE / float(config.ray_samples), anneal_exponent());
}

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
