// The shares of a ray's light that samples take, a subgroup's lanes having as many in a row.

uint lane = gl_SubgroupInvocationID;

// Of a lane's sample with that optical thickness; `transmittance` is what is left in front of all lanes' samples,
// and then behind them.
float lane_weight(float thickness, inout float transmittance)
{
    float after = transmittance * subgroupInclusiveMul(exp(-thickness));
    float before = subgroupShuffle(after, max(lane, 1u) - 1u);
    float weight = (lane == 0u ? transmittance : before) - after;
    transmittance = subgroupShuffle(after, SUBGROUP_SIZE - 1u);
    return weight > 0.0 ? weight : 0.0; // not NaN
}
