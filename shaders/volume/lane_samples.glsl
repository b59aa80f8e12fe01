// Loads a ray's samples, one per lane, and computes their transmittances by a scan. The scan
// multiplies factors 1 - alpha instead of adding optical thicknesses: so weights are exact
// differences of transmittances, and a sample needs one exponential.
// Passes: composite, find_visible. Reads FIELD [sample] vec4, SAMPLES [sample].

const uint NONE = 0xffffffffu;
uint lane = gl_SubgroupInvocationID;

// A lane's sample: lane i holds sample base + i of a ray.
struct LaneSample {
    uint base, reached;     // reached: number of lanes before the early stop, equal in all lanes
    bool transparent, live; // transparent: alpha below the threshold; live: reached and not transparent
    vec4 value;             // rgb, density
    float t, width, contracted_width, alpha;   // contracted_width: in the density's unit
    float transmittance_in, transmittance_out; // in front of the sample and behind it
    vec3 color;                                // sum of the colours up to this lane, by load_color
};

LaneSample load_sample(uint ray, uint first, uint count, uint base, float transmittance)
{
    LaneSample s;
    bool has_sample = base + lane < count;
    uint at = first + min(base + lane, count - 1u);
    s.base = base;
    s.value = field[at];
    s.t = samples[at].t;
    s.width = samples[at].width;
    s.contracted_width = density_width(ray, s.t, s.width);
    s.alpha = has_sample ? opacity(s.value.w * s.contracted_width) : 0.0;
    s.transparent = is_transparent(s.alpha);
    if (s.transparent)
        s.alpha = 0.0;
    s.transmittance_out = round_compositing(transmittance * subgroupInclusiveMul(1.0 - s.alpha));
    float transmittance_in = subgroupShuffle(s.transmittance_out, max(lane, 1u) - 1u);
    s.transmittance_in = lane == 0u ? transmittance : transmittance_in;
    // Lanes after the first lane below early_stop are not reached, even if rounding raises their
    // transmittances.
    uvec4 stops = subgroupBallot(!(has_sample && s.transmittance_in >= config.early_stop));
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
