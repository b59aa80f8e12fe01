// A ray's samples, as many at a time as a subgroup has lanes, and what is left of the light at each: a scan of
// transmittances, not of optical thickness, since the weights then are the differences of what is left, to the
// last bit, and a sample takes one exponential.

const uint NONE = 0xffffffffu;
uint lane = gl_SubgroupInvocationID;

// Samples base, base + 1, ... of a ray, one in each lane.
struct LaneSample {
    uint base, reached; // how many of them light comes to, from the first one on
    bool transparent, live; // live: one of these, and not left out
    vec4 value;
    float t, width, contracted_width, alpha; // `shrunk`: the width in the density's unit
    float transmittance_in, transmittance_out;           // transmittance
    vec3 color;                    // of the slice's live samples up to this one, where it is asked for
};

LaneSample load_sample(uint ray, uint first, uint count, uint base, float transmittance)
{
    LaneSample s;
    bool used = base + lane < count;
    uint at = first + min(base + lane, count - 1u);
    s.base = base;
    s.value = field[at];
    s.t = samples[at].t;
    s.width = samples[at].width;
    s.contracted_width = density_width(ray, s.t, s.width);
    s.alpha = used ? opacity(s.value.w * s.contracted_width) : 0.0;
    s.transparent = is_transparent(s.alpha);
    if (s.transparent)
        s.alpha = 0.0;
    s.transmittance_out = round_compositing(transmittance * subgroupInclusiveMul(1.0 - s.alpha));
    float transmittance_in = subgroupShuffle(s.transmittance_out, max(lane, 1u) - 1u);
    s.transmittance_in = lane == 0u ? transmittance : transmittance_in;
    // From the first that stops on, whatever the rounding of products makes of those behind it.
    uvec4 stops = subgroupBallot(!(used && s.transmittance_in >= config.early_stop));
    s.reached = stops == uvec4(0u) ? SUBGROUP_SIZE : subgroupBallotFindLSB(stops);
    s.live = lane < s.reached && !s.transparent;
    return s;
}

uint count_live(LaneSample s)
{
    if (ALPHA_THRESHOLD == 0u)
        return s.reached;
    return subgroupBallotBitCount(subgroupBallot(lane < s.reached && !s.transparent));
}
