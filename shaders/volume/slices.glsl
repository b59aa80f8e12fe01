// A ray's samples, as many at a time as a subgroup has lanes, and what is left of the light at each: a scan of
// transmittances, not of optical thickness, since the weights then are the differences of what is left, to the
// last bit, and a sample takes one exponential.

const uint NONE = 0xffffffffu;
uint lane = gl_SubgroupInvocationID;

// Samples base, base + 1, ... of a ray, one in each lane.
struct Slice {
    uint base, reached; // how many of them light comes to, from the first one on
    bool left_out, live; // live: one of these, and not left out
    vec4 value;
    float t, width, shrunk, alpha; // `shrunk`: the width in the density's unit
    float before, after;           // transmittance
    vec3 color;                    // of the slice's live samples up to this one, where it is asked for
};

Slice take_slice(uint ray, uint first, uint count, uint base, float transmittance)
{
    Slice s;
    bool used = base + lane < count;
    uint at = first + min(base + lane, count - 1u);
    s.base = base;
    s.value = field[at];
    s.t = samples[at].t;
    s.width = samples[at].width;
    s.shrunk = density_width(ray, s.t, s.width);
    s.alpha = used ? opacity(s.value.w * s.shrunk) : 0.0;
    s.left_out = is_left_out(s.alpha);
    if (s.left_out)
        s.alpha = 0.0;
    s.after = rounded(transmittance * subgroupInclusiveMul(1.0 - s.alpha));
    float before = subgroupShuffle(s.after, max(lane, 1u) - 1u);
    s.before = lane == 0u ? transmittance : before;
    // From the first that stops on, whatever the rounding of products makes of those behind it.
    uvec4 stops = subgroupBallot(!(used && s.before >= config.early_stop));
    s.reached = stops == uvec4(0u) ? SUBGROUP_SIZE : subgroupBallotFindLSB(stops);
    s.live = lane < s.reached && !s.left_out;
    return s;
}

uint count_live(Slice s)
{
    if (ALPHA_THRESHOLD == 0u)
        return s.reached;
    return subgroupBallotBitCount(subgroupBallot(lane < s.reached && !s.left_out));
}
