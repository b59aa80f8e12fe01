// Composites one ray per subgroup, for GPUs: lanes load neighbouring samples, and the sums over
// preceding samples are scans over lanes (Blelloch, Prefix Sums and Their Applications, 1990). If the
// precision policy computes compositing in f16, only the results of scans are rounded, not each
// product and sum in them.
// Pass: composite.

#include "volume/lane_samples.glsl"

LaneSample load_color(uint ray, uint first, uint count, uint base, float transmittance)
{
    LaneSample s = load_sample(ray, first, count, base, transmittance);
    vec3 color = round_compositing(round_compositing(s.transmittance_in * s.alpha) * s.value.rgb);
    s.color = subgroupInclusiveAdd(lane < s.reached ? color : vec3(0.0));
    return s;
}

// Adds the subgroup's live samples to the running sums. Each lane has its own sums of depths and
// normals until add_lanes.
void add_samples(uint ray, uint first, LaneSample s, inout Accumulated accumulated)
{
    float weight = round_compositing(s.transmittance_in * s.alpha);
    accumulated.color = round_compositing(accumulated.color + subgroupShuffle(s.color, SUBGROUP_SIZE - 1u));
#ifdef MEDIAN_DEPTH
    uvec4 hits = subgroupBallot(s.live && s.transmittance_in > 0.5 && s.transmittance_out <= 0.5);
    if (hits != uvec4(0u))
        accumulated.depth = subgroupShuffle(
            median_distance(s.t, s.width, s.transmittance_in, s.value.w * s.contracted_width),
            subgroupBallotFindLSB(hits));
#else
    accumulated.depth += s.live ? weight * depth_of(ray, s.t, s.width) : 0.0;
#endif
#ifdef NORMALS
    accumulated.normal += s.live ? weight * normals[first + s.base + lane].xyz : vec3(0.0);
#endif
    if (s.reached > 0u)
        accumulated.transmittance = subgroupShuffle(s.transmittance_out, s.reached - 1u);
}

void add_lanes(float depth_before, inout Accumulated accumulated)
{
#ifndef MEDIAN_DEPTH
    accumulated.depth = round_compositing(depth_before + subgroupAdd(accumulated.depth));
#endif
    accumulated.normal = subgroupAdd(accumulated.normal);
}

#ifdef TRAIN
// Returns the distortion sums of a ray's live samples up to this lane. `previous`: the sums over the
// samples of earlier iterations.
DistortionSums distortion_through(LaneSample s, vec2 interval, DistortionSums previous)
{
    float weight = s.live ? round_compositing(s.transmittance_in * s.alpha) : 0.0;
    vec2 sums = subgroupInclusiveAdd(weight * vec2(1.0, interval.x));
    DistortionSums through =
        DistortionSums(previous.weight + sums.x, previous.weighted_position + sums.y, previous.loss);
    through.loss += subgroupInclusiveAdd(added_distortion(through, interval, weight));
    return through;
}

DistortionSums last_lane(DistortionSums s)
{
    const uint LAST = SUBGROUP_SIZE - 1u;
    return DistortionSums(subgroupShuffle(s.weight, LAST), subgroupShuffle(s.weighted_position, LAST),
                          subgroupShuffle(s.loss, LAST));
}

// Writes the gradients with respect to rgb and density of the live samples, which are among the first
// `reached` samples. `density_factor`: density_loss_gradient of the ray. `held`: the samples loaded
// last, which are all samples of most rays. With the distortion loss all samples are loaded again, to
// save registers.
void write_ray_gradients(uint ray, uint first, uint live_count, uint reached, vec3 color_gradient,
                         float density_factor, vec3 prediction, DistortionSums all, float agreement,
                         LaneSample held)
{
    uint slot = 0;
    if (LISTS_LIVE && live_count > 0u) {
        if (lane == 0u)
            slot = atomicAdd(state.live_count, live_count);
        slot = subgroupBroadcast(slot, 0u);
    }
    float transmittance = 1.0;
    vec3 color = vec3(0.0);
    DistortionSums distortion = NO_DISTORTION;
    bool is_known = has_known_depth(ray);
    float by_agreement = is_known ? depth_derivative(agreement) : 0.0;
    for (uint base = 0; base < reached; base += SUBGROUP_SIZE) {
        if (held.base != base || DISTORTION != 0u)
            held = load_color(ray, first, reached, base, transmittance);
        vec3 accumulated = round_compositing(color + held.color);
        float weight = round_compositing(held.transmittance_in * held.alpha), by_distortion = 0.0;
        if (DISTORTION != 0u) {
            vec2 interval = normalized_interval(held.t, held.width);
            DistortionSums through = distortion_through(held, interval, distortion);
            by_distortion = config.loss_distortion *
                            distortion_derivative(through, all, interval, weight, held.transmittance_out);
            distortion = last_lane(through);
        }
        float by_depth = 0.0;
        if (is_known) {
            float agrees = held.live ? depth_agreement(ray, held.t, held.width) : 0.0;
            float behind = agreement - subgroupInclusiveAdd(weight * agrees);
            by_depth = by_agreement * (held.transmittance_out * agrees - behind);
            agreement = subgroupShuffle(behind, SUBGROUP_SIZE - 1u);
        }
        bool has_sample = base + lane < reached;
        uint list_slot = slot + base + lane;
        if (ALPHA_THRESHOLD != 0u) {
            uvec4 ballot = subgroupBallot(has_sample && !held.transparent);
            list_slot = slot + subgroupBallotExclusiveBitCount(ballot);
            slot += subgroupBallotBitCount(ballot);
        }
        if (has_sample && !held.transparent) {
            float by_density = density_gradient(held.contracted_width, held.transmittance_out, held.value.rgb,
                                                prediction - accumulated, color_gradient);
            by_density += held.contracted_width * density_factor * (by_distortion + by_depth + thickness_derivative(ray, held.t));
            field_gradients[first + base + lane] = vec4(weight * color_gradient, by_density);
            if (LISTS_LIVE)
                live[list_slot] = first + base + lane;
        } else if (!LISTS_LIVE && has_sample) {
            field_gradients[first + base + lane] = vec4(0.0);
        }
        color = subgroupShuffle(accumulated, SUBGROUP_SIZE - 1u);
        transmittance = subgroupShuffle(held.transmittance_out, SUBGROUP_SIZE - 1u);
    }
}

void clear_gradients(uint begin, uint end)
{
    for (uint i = begin + lane; i < end; i += SUBGROUP_SIZE)
        field_gradients[i] = vec4(0.0);
}
#endif

// Counts of a ray or of a subgroup's rays.
struct RayCounts {
    uint listed;  // live samples that carry a gradient
    uint reached; // live samples, also of rays that are dropped
    uint kept;    // rays that are not dropped
};

// Composites a ray. In training, adds the losses and the squared error of an active ray to `loss`, in
// the order of group_loss, and its counts to `counts`.
void composite_ray(uint ray, bool is_active, inout vec3 loss, inout RayCounts counts)
{
    uint first = is_active ? results[ray].first : 0u, count = is_active ? results[ray].count : 0u;
    Accumulated accumulated = accumulated_before(ray, is_active);
    float depth_before = accumulated.depth;
#ifndef MEDIAN_DEPTH
    accumulated.depth = 0.0;
#endif
    LaneSample s;
    s.base = NONE;
    uint live_count = 0, reached = 0;
#ifdef TRAIN
    DistortionSums distortion = NO_DISTORTION;
#endif
    for (uint base = 0; base < count && reached == base && accumulated.transmittance >= config.early_stop;
         base += SUBGROUP_SIZE) {
        s = load_color(ray, first, count, base, accumulated.transmittance);
        add_samples(ray, first, s, accumulated);
        live_count += count_live(s);
        reached += s.reached;
#ifdef TRAIN
        if (DISTORTION != 0u)
            distortion = last_lane(distortion_through(s, normalized_interval(s.t, s.width), distortion));
#endif
    }
    add_lanes(depth_before, accumulated);
#ifdef TRAIN
    if (is_active) {
        vec3 prediction, color_gradient;
        vec3 own_loss = vec3(0.0);
        own_loss.xy = ray_loss(ray, accumulated.color, accumulated.transmittance, prediction, color_gradient);
        if (DISTORTION != 0u)
            own_loss.z = distortion_loss(ray, distortion);
        loss += own_loss;
        float weight = keep_weight(ray, own_loss.x + own_loss.z);
        if (KEEP != 0u || ROBUST != 0u) {
            weight = subgroupBroadcast(weight, 0u); // uniform, so that all lanes take the same branches
            counts.reached += live_count;
            counts.kept += weight > 0.0 ? 1u : 0u;
            if (weight == 0.0)
                live_count = reached = 0u;
        }
        write_ray_gradients(ray, first, live_count, reached, weight * color_gradient,
                            density_loss_gradient(ray, weight), prediction, distortion, accumulated.depth, s);
        counts.listed += live_count;
    }
    if (!LISTS_LIVE)
        clear_gradients(first + reached, first + count);
    if (DETERMINISTIC != 0u)
        clear_gradients(tail_begin(ray), config.sample_capacity);
#else
    if (is_active && lane == 0u)
        store_result(ray, accumulated);
#endif
}

// Composites all rays, which the workgroups share.
void composite_per_subgroup()
{
#ifdef TRAIN
    uint count = state.ray_count;
#else
    uint count = push.b;
#endif
    uint subgroups = LOCAL_SIZE / SUBGROUP_SIZE, live_rays = 0;
    RayCounts counts = RayCounts(0u, 0u, 0u);
    vec3 loss = vec3(0.0);
    for (uint ray = gl_WorkGroupID.x * subgroups + gl_SubgroupID; ray < count;
         ray += gl_NumWorkGroups.x * subgroups) {
        bool is_active = is_active_ray(ray);
        composite_ray(ray, is_active, loss, counts);
        live_rays += is_active ? 1u : 0u;
    }
#ifdef TRAIN
    if (lane == 0u) {
        group_loss[gl_SubgroupID] = vec4(loss, live_rays);
        if (COUNTS_LIVE && counts.listed > 0u)
            atomicAdd(state.live_count, counts.listed);
        count_kept(counts.reached, counts.kept);
    }
    store_losses(subgroups);
#endif
}
