#version 460
#extension GL_GOOGLE_include_directive : require
// Pass interlevel: computes the loss that trains a proposal (Mip-NeRF 360, equations 12 and 13) and
// its gradient with respect to the proposal's densities, times the loss scale, in FP32 with one
// subgroup per ray. The weight of a sample of the field should not exceed the summed weights of the
// proposal's bins that the sample overlaps; the loss of the excess raises the bins' weights:
//   sum over samples of max(0, w - sum of the bins' weights)^2 / (w + EPSILON)
// The field itself gets no gradient from this loss.
//
//   buffer                                  shape                                                 access
//   RAYS                                    [ray]                                                 read
//   RESULTS, SAMPLES, FIELD                 of the proposal: [ray], [bin], [bin] vec4             read
//   FINE_RESULTS, FINE_SAMPLES, FINE_FIELD  of the field: [ray], [sample], [sample] vec4          read
//   STATE                                   ray count, loss scale (read), live_count (write)      read, write
//   FIELD_GRADIENTS                         [bin] vec4: (0, 0, 0, by density)                     write
//   LIVE                                    [bin with a gradient] u32; not in deterministic mode  write
//   REDUCE                                  REDUCE_LOSS [workgroup][2] f32                        write
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "rays/march.glsl"
#include "shared/staged.glsl"
#include "shared/lane_weights.glsl"

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(FINE_RESULTS)) readonly buffer FineResultBuffer { RayResult fine_results[]; };
layout(std430, BINDING(FINE_SAMPLES)) readonly buffer FineSampleBuffer { Sample fine_samples[]; };
layout(std430, BINDING(FINE_FIELD)) readonly buffer FineFieldBuffer { vec4 fine_field[]; };
layout(std430, BINDING(FIELD_GRADIENTS)) writeonly buffer FieldGradientBuffer { vec4 field_gradients[]; };
layout(std430, BINDING(LIVE)) writeonly buffer LiveBuffer { uint live[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };

#include "volume/ray_weight.glsl"

const float EPSILON = 1e-7;

// A ray has at most MAX_COARSE_SAMPLES bins, and at most MAX_COARSE_SAMPLES samples.
shared float staged_sums[SUBGROUPS][MAX_COARSE_SAMPLES];   // [bin]: sum of the weights up to the bin's end
shared float staged_slopes[SUBGROUPS][MAX_COARSE_SAMPLES]; // [sample]: prefix sum of d loss / d bins' weights
shared uint staged_reach[SUBGROUPS][MAX_COARSE_SAMPLES];   // [sample]: first bin | (last bin + 1) << 16
shared float group_loss[SUBGROUPS];

// A ray with its bins (proposal) and samples (field).
struct ProposalRay {
    vec3 origin, direction;
    float from, size; // start of the first bin and size of a bin, in stepping space
    uint first, bin_count;
    uint first_fine, fine_count;
};

ProposalRay proposal_ray(uint ray, bool exists)
{
    ProposalRay r;
    r.origin = vec3(rays[ray].origin[0], rays[ray].origin[1], rays[ray].origin[2]);
    r.direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    r.first = results[ray].first;
    r.bin_count = exists ? results[ray].count : 0u;
    r.first_fine = fine_results[ray].first;
    r.fine_count = r.bin_count > 0u ? fine_results[ray].count : 0u;
    r.from = rays[ray].step;
    r.size = (rays[ray].last - r.from) / float(max(r.bin_count, 1u));
    return r;
}

// Returns the width of a sample in the density's unit.
float contracted_width_of(ProposalRay r, Sample s)
{
    return width_at(r.origin + s.t * r.direction, s.width);
}

void stage_bins(ProposalRay r)
{
    float transmittance = 1.0, sum = 0.0;
    for (uint base = 0; base < r.bin_count; base += SUBGROUP_SIZE) {
        bool has_bin = base + lane < r.bin_count;
        uint at = r.first + min(base + lane, r.bin_count - 1u);
        float weight = lane_weight(has_bin ? field[at].w * contracted_width_of(r, samples[at]) : 0.0, transmittance);
        float upto = sum + subgroupInclusiveAdd(weight);
        if (has_bin)
            staged_sums[gl_SubgroupID][base + lane] = upto;
        sum = subgroupShuffle(upto, SUBGROUP_SIZE - 1u);
    }
}

float sum_before(uint bin)
{
    float sum = staged_sums[gl_SubgroupID][max(bin, 1u) - 1u];
    return bin > 0u ? sum : 0.0;
}

float slope_before(uint number)
{
    float sum = staged_slopes[gl_SubgroupID][max(number, 1u) - 1u];
    return number > 0u ? sum : 0.0;
}

float bin_at(ProposalRay r, float t)
{
    return clamp((to_steps(t) - r.from) / r.size, 0.0, float(r.bin_count));
}

// Stages for each sample the sum of slopes and the range of bins, and returns the ray's loss.
float stage_samples(ProposalRay r)
{
    float transmittance = 1.0, sum = 0.0, loss = 0.0;
    for (uint base = 0; base < r.fine_count; base += SUBGROUP_SIZE) {
        bool has_sample = base + lane < r.fine_count;
        uint at = r.first_fine + min(base + lane, r.fine_count - 1u);
        Sample s = fine_samples[at];
        float weight = lane_weight(has_sample ? fine_field[at].w * contracted_width_of(r, s) : 0.0, transmittance);
        uvec3 reach = to_unsigned(vec3(floor(bin_at(r, s.t - 0.5 * s.width)),
                                       ceil(bin_at(r, s.t + 0.5 * s.width)), 0.0));
        uint begin = min(reach.x, r.bin_count - 1u), end = max(reach.y, begin + 1u);
        float excess = has_sample ? max(weight - (sum_before(end) - sum_before(begin)), 0.0) : 0.0;
        loss += excess * excess / (weight + EPSILON);
        float upto = sum + subgroupInclusiveAdd(-2.0 * excess / (weight + EPSILON));
        if (has_sample) {
            staged_slopes[gl_SubgroupID][base + lane] = upto;
            staged_reach[gl_SubgroupID][base + lane] = begin | end << 16;
        }
        sum = subgroupShuffle(upto, SUBGROUP_SIZE - 1u);
    }
    return subgroupAdd(loss);
}

// Returns the number of samples before the first sample that reaches the bin or, with `begins`,
// before the first sample that begins after the bin.
uint samples_before(ProposalRay r, uint bin, bool begins)
{
    uint low = 0u, high = r.fine_count;
    while (low < high) {
        uint middle = (low + high) / 2u, reach = staged_reach[gl_SubgroupID][middle];
        if ((begins ? reach & 0xffffu : reach >> 16) > bin)
            high = middle;
        else
            low = middle + 1u;
    }
    return low;
}

// Writes the gradients with respect to the bins' densities, from the last bin to the first, because a
// bin's thickness takes weight from all bins behind the bin.
void write_gradients(ProposalRay r, float factor)
{
    float behind = 0.0;
    for (uint batch = (r.bin_count + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE; batch > 0u; batch--) {
        uint bin = (batch - 1u) * SUBGROUP_SIZE + lane;
        bool has_bin = bin < r.bin_count;
        bin = min(bin, r.bin_count - 1u);
        uint at = r.first + bin;
        float slope = slope_before(samples_before(r, bin, true)) - slope_before(samples_before(r, bin, false));
        float upto = sum_before(bin + 1u);
        float weighted_slope = has_bin ? slope * (upto - sum_before(bin)) : 0.0;
        float through = subgroupInclusiveAdd(weighted_slope), all = subgroupShuffle(through, SUBGROUP_SIZE - 1u);
        float by_thickness = slope * (1.0 - upto) - (behind + all - through);
        float gradient = has_bin ? factor * contracted_width_of(r, samples[at]) * by_thickness : 0.0;
        behind += all;
        uvec4 nonzero = subgroupBallot(gradient != 0.0);
        if (DETERMINISTIC == 0u && nonzero != uvec4(0u)) {
            uint slot = 0u;
            if (lane == 0u)
                slot = atomicAdd(state.live_count, subgroupBallotBitCount(nonzero));
            slot = subgroupBroadcast(slot, 0u) + subgroupBallotExclusiveBitCount(nonzero);
            if (gradient != 0.0)
                live[slot] = at;
        }
        if (has_bin && (DETERMINISTIC != 0u || gradient != 0.0))
            field_gradients[at] = vec4(0.0, 0.0, 0.0, gradient);
    }
}

// All subgroups of a workgroup run the same number of iterations, with or without a ray: see
// EQUAL_RAY_COUNTS in rays/sample_rays.glsl.
void main()
{
    float factor = config.loss_interlevel * state.loss_scale / float(state.ray_count), loss = 0.0;
    for (uint first = gl_WorkGroupID.x * SUBGROUPS; first < state.ray_count; first += gl_NumWorkGroups.x * SUBGROUPS) {
        bool exists = first + gl_SubgroupID < state.ray_count;
        uint ray = exists ? first + gl_SubgroupID : 0u;
        ProposalRay r = proposal_ray(ray, exists);
        stage_bins(r);
        wait_for_staged();
        loss += stage_samples(r) * loss_weight(ray);
        wait_for_staged();
        write_gradients(r, factor * gradient_weight(ray));
        wait_for_staged(); // before the next ray is staged
    }
    if (lane == 0u)
        group_loss[gl_SubgroupID] = config.loss_interlevel * loss;
    barrier();
    if (gl_LocalInvocationID.x != 0u)
        return;
    float sum = 0.0;
    for (uint i = 0; i < SUBGROUPS; i++)
        sum += group_loss[i];
    reduce[REDUCE_LOSS + 2u * gl_WorkGroupID.x] = sum;
    reduce[REDUCE_LOSS + 2u * gl_WorkGroupID.x + 1u] = 0.0;
}
