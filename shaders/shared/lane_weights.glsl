// Compositing weights of a ray's samples, one sample per lane.
// Passes: sample_fine, sample_proposal, interlevel.

uint lane = gl_SubgroupInvocationID;

// Returns the weight of this lane's sample, of optical thickness `thickness`. `transmittance` is that
// in front of the first lane's sample, and becomes that behind the last lane's.
float lane_weight(float thickness, inout float transmittance)
{
    float after = transmittance * subgroupInclusiveMul(exp(-thickness));
    float before = subgroupShuffle(after, max(lane, 1u) - 1u);
    float weight = (lane == 0u ? transmittance : before) - after;
    transmittance = subgroupShuffle(after, SUBGROUP_SIZE - 1u);
    return weight > 0.0 ? weight : 0.0; // not NaN
}
