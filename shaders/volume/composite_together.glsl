// Compositing by one subgroup for each ray, as suits GPUs: loads of neighbouring samples are together,
// and what the samples before one add up to is a scan over lanes (Blelloch, Prefix Sums and Their
// Applications, 1990). Compositing that is rounded to f16 rounds what comes out of a scan, not every product
// and sum inside of it.

#include "volume/slices.glsl"

Slice take_colors(uint ray, uint first, uint count, uint base, float transmittance)
{
    Slice s = take_slice(ray, first, count, base, transmittance);
    vec3 color = rounded(rounded(s.before * s.alpha) * s.value.rgb);
    s.color = subgroupInclusiveAdd(lane < s.reached ? color : vec3(0.0));
    return s;
}

// Adds the live samples of a slice. Sums of depths and normals stay in the lanes until add_lanes.
void add_slice(uint first, Slice s, inout Passed passed)
{
    float weight = rounded(s.before * s.alpha);
    passed.color = rounded(passed.color + subgroupShuffle(s.color, SUBGROUP_SIZE - 1u));
#ifdef HITS
    uvec4 hits = subgroupBallot(s.live && s.before > 0.5 && s.after <= 0.5);
    if (hits != uvec4(0u))
        passed.depth = subgroupShuffle(half_distance(s.t, s.width, s.before, s.value.w * s.shrunk),
                                       subgroupBallotFindLSB(hits));
#else
    passed.depth += s.live ? weight * s.t : 0.0;
#endif
#ifdef NORMALS
    passed.normal += s.live ? weight * normals[first + s.base + lane].xyz : vec3(0.0);
#endif
    if (s.reached > 0u)
        passed.transmittance = subgroupShuffle(s.after, s.reached - 1u);
}

void add_lanes(float depth_before, inout Passed passed)
{
#ifndef HITS
    passed.depth = rounded(depth_before + subgroupAdd(passed.depth));
#endif
    passed.normal = subgroupAdd(passed.normal);
}

#ifdef TRAIN
// What a ray's live samples up to each lane's add up to; `before`: those of slices before.
Spread spread_through(Slice s, vec2 place, Spread before)
{
    float weight = s.live ? rounded(s.before * s.alpha) : 0.0;
    vec2 sums = subgroupInclusiveAdd(weight * vec2(1.0, place.x));
    Spread through = Spread(before.weight + sums.x, before.moment + sums.y, before.loss);
    through.loss += subgroupInclusiveAdd(added_spread(through, place, weight));
    return through;
}

Spread last_lane(Spread s)
{
    const uint LAST = SUBGROUP_SIZE - 1u;
    return Spread(subgroupShuffle(s.weight, LAST), subgroupShuffle(s.moment, LAST), subgroupShuffle(s.loss, LAST));
}

// Of the live samples' rgb and density; they lie among the first `reached`. `held`: the slice that was
// taken last, mostly the only one. It is taken again where the distortion loss asks for more registers.
void write_slices(uint ray, uint first, uint live_count, uint reached, vec3 color_gradient, vec3 prediction,
                  Spread all, Slice held)
{
    uint slot = 0;
    if (LISTS && live_count > 0u) {
        if (lane == 0u)
            slot = atomicAdd(state.live_count, live_count);
        slot = subgroupBroadcast(slot, 0u);
    }
    float transmittance = 1.0;
    vec3 color = vec3(0.0);
    Spread spread = NO_SPREAD;
    for (uint base = 0; base < reached; base += SUBGROUP_SIZE) {
        if (held.base != base || DISTORTION != 0u)
            held = take_colors(ray, first, reached, base, transmittance);
        vec3 passed = rounded(color + held.color);
        float weight = rounded(held.before * held.alpha), by_spread = 0.0;
        if (DISTORTION != 0u) {
            vec2 place = normalized_place(held.t, held.width);
            Spread through = spread_through(held, place, spread);
            by_spread = distortion_gradient() * spread_gradient(through, all, place, weight, held.after);
            spread = last_lane(through);
        }
        bool inside = base + lane < reached;
        uint place = slot + base + lane;
        if (ALPHA_THRESHOLD != 0u) {
            uvec4 ballot = subgroupBallot(inside && !held.left_out);
            place = slot + subgroupBallotExclusiveBitCount(ballot);
            slot += subgroupBallotBitCount(ballot);
        }
        if (inside && !held.left_out) {
            float by_density =
                density_gradient(held.shrunk, held.after, held.value.rgb, prediction - passed, color_gradient);
            if (DISTORTION != 0u)
                by_density += held.shrunk * by_spread;
            field_gradients[first + base + lane] = vec4(weight * color_gradient, by_density);
            if (LISTS)
                live[place] = first + base + lane;
        } else if (!LISTS && inside) {
            field_gradients[first + base + lane] = vec4(0.0);
        }
        color = subgroupShuffle(passed, SUBGROUP_SIZE - 1u);
        transmittance = subgroupShuffle(held.after, SUBGROUP_SIZE - 1u);
    }
}

void clear_gradients(uint begin, uint end)
{
    for (uint i = begin + lane; i < end; i += SUBGROUP_SIZE)
        field_gradients[i] = vec4(0.0);
}
#endif

// Returns the live samples; 0 for a ray that is not used.
uint composite_ray(uint ray, bool used, inout vec2 loss)
{
    uint first = used ? results[ray].first : 0u, count = used ? results[ray].count : 0u;
    Passed passed = passed_before(ray, used);
    float depth_before = passed.depth;
#ifndef HITS
    passed.depth = 0.0;
#endif
    Slice s;
    s.base = NONE;
    uint live_count = 0, reached = 0;
#ifdef TRAIN
    Spread spread = NO_SPREAD;
#endif
    for (uint base = 0; base < count && reached == base && passed.transmittance >= config.early_stop;
         base += SUBGROUP_SIZE) {
        s = take_colors(ray, first, count, base, passed.transmittance);
        add_slice(first, s, passed);
        live_count += count_live(s);
        reached += s.reached;
#ifdef TRAIN
        if (DISTORTION != 0u)
            spread = last_lane(spread_through(s, normalized_place(s.t, s.width), spread));
#endif
    }
    add_lanes(depth_before, passed);
#ifdef TRAIN
    if (used) {
        vec3 prediction, color_gradient;
        loss += ray_loss(ray, passed.color, passed.transmittance, prediction, color_gradient);
        if (DISTORTION != 0u)
            loss.x += distortion_weight() * spread.loss;
        write_slices(ray, first, live_count, reached, color_gradient, prediction, spread, s);
    }
    if (!LISTS)
        clear_gradients(first + reached, first + count);
    if (DETERMINISTIC != 0u)
        clear_gradients(tail_begin(ray), config.sample_capacity);
#else
    if (used && lane == 0u)
        keep(ray, passed);
#endif
    return live_count;
}

// Any number of workgroups share out the rays.
void composite_together()
{
#ifdef TRAIN
    uint count = state.ray_count;
#else
    uint count = push.b;
#endif
    uint subgroups = LOCAL_SIZE / SUBGROUP_SIZE, live_samples = 0, live_rays = 0;
    vec2 loss = vec2(0.0);
    for (uint ray = gl_WorkGroupID.x * subgroups + gl_SubgroupID; ray < count;
         ray += gl_NumWorkGroups.x * subgroups) {
        bool used = is_used(ray);
        live_samples += composite_ray(ray, used, loss);
        live_rays += used ? 1u : 0u;
    }
#ifdef TRAIN
    if (lane == 0u) {
        group_loss[gl_SubgroupID] = loss;
        if (live_rays > 0u)
            atomicAdd(state.live_rays, live_rays);
        if (COUNTS && live_samples > 0u)
            atomicAdd(state.live_count, live_samples);
    }
    leave_losses(subgroups);
#endif
}
