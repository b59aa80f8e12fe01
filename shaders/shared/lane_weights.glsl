// Computes the compositing weights of a ray's samples, one sample per lane.
// Passes: sample_fine, sample_proposal, interlevel.

uint lane = gl_SubgroupInvocationID;

// Returns the weight of this lane's sample from its optical thickness. `transmittance`: in front of
// the first lane's sample; becomes the transmittance behind the last lane's sample.
float lane_weight(float thickness, inout float transmittance)
{
    float transmittance_out = transmittance * subgroupInclusiveMul(exp(-thickness));
    float transmittance_in = subgroupShuffle(transmittance_out, max(lane, 1u) - 1u);
    float weight = (lane == 0u ? transmittance : transmittance_in) - transmittance_out;
    transmittance = subgroupShuffle(transmittance_out, SUBGROUP_SIZE - 1u);
    return weight > 0.0 ? weight : 0.0; // not NaN
}
