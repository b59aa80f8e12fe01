// Composites one ray per invocation, for CPU devices.
// Pass: composite.

#ifdef TRAIN
// Writes the gradients with respect to rgb and density of the live samples, which are among the ray's
// first `reached` samples. `density_factor`: density_loss_gradient of the ray.
void write_gradients(uint ray, uint first, uint live_count, uint reached, uint count,
                     vec3 color_gradient, float density_factor, vec3 prediction, DistortionSums all,
                     float agreement)
{
    uint slot = first;
    if (LISTS_LIVE) {
        uint before = subgroupExclusiveAdd(live_count);
        uint total = subgroupAdd(live_count);
        uint base = 0;
        if (subgroupElect())
            base = atomicAdd(state.live_count, total);
        slot = subgroupBroadcastFirst(base) + before;
    } else if (COUNTS_LIVE) {
        atomicAdd(state.live_count, live_count);
    }
    float transmittance = 1.0;
    vec3 color = vec3(0.0);
    DistortionSums distortion = NO_DISTORTION;
    bool is_known = reached > 0u && has_known_depth(ray);
    float by_agreement = is_known ? depth_derivative(agreement) : 0.0;
    for (uint i = 0; i < reached; i++) {
        vec4 value = field[first + i];
        float t = samples[first + i].t, extent = samples[first + i].width, width = density_width(ray, t, extent);
        float alpha = opacity(value.w * width);
        if (is_transparent(alpha)) {
            if (!LISTS_LIVE)
                field_gradients[first + i] = vec4(0.0);
            continue;
        }
        float weight = round_compositing(transmittance * alpha);
        color = round_compositing(color + round_compositing(weight * value.rgb));
        transmittance = round_compositing(transmittance * (1.0 - alpha));
        vec3 behind = prediction - color;
        float by_density = density_gradient(width, transmittance, value.rgb, behind, color_gradient) +
                           width * density_factor * thickness_derivative(ray, t);
        if (DISTORTION != 0u) {
            vec2 interval = normalized_interval(t, extent);
            distortion = add_distortion(distortion, interval, weight);
            by_density += width * density_factor * config.loss_distortion *
                          distortion_derivative(distortion, all, interval, weight, transmittance);
        }
        if (is_known) {
            float agrees = depth_agreement(ray, t, extent);
            agreement -= weight * agrees; // of the samples behind
            by_density += width * density_factor * by_agreement * (transmittance * agrees - agreement);
        }
        field_gradients[first + i] = vec4(weight * color_gradient, by_density);
        if (LISTS_LIVE)
            live[slot++] = first + i;
    }
    if (!LISTS_LIVE)
        for (uint i = reached; i < count; i++)
            field_gradients[first + i] = vec4(0.0);
}
#endif

void composite_per_invocation()
{
    uint ray = gl_GlobalInvocationID.x;
    bool is_active = is_active_ray(ray);
    uint first = 0, count = 0;
    if (is_active) {
        first = results[ray].first;
        count = results[ray].count;
    }
    Accumulated accumulated = accumulated_before(ray, is_active);
    uint reached = 0, transparent = 0;
#ifdef TRAIN
    DistortionSums distortion = NO_DISTORTION;
#endif
    while (reached < count && accumulated.transmittance >= config.early_stop) {
        uint at = first + reached++;
        vec4 value = field[at];
        float t = samples[at].t, width = samples[at].width;
        float thickness = value.w * density_width(ray, t, width), alpha = opacity(thickness);
        if (is_transparent(alpha)) {
            transparent++;
            continue;
        }
        float transmittance = accumulated.transmittance, weight = round_compositing(transmittance * alpha);
        accumulated.color = round_compositing(accumulated.color + round_compositing(weight * value.rgb));
#ifdef MEDIAN_DEPTH
        if (transmittance > 0.5 && transmittance * (1.0 - alpha) <= 0.5)
            accumulated.depth = median_distance(t, width, transmittance, thickness);
#else
        accumulated.depth =
            round_compositing(accumulated.depth + round_compositing(weight * depth_of(ray, t, width)));
#endif
#ifdef NORMALS
        accumulated.normal += weight * normals[at].xyz;
#endif
        accumulated.transmittance = round_compositing(transmittance * (1.0 - alpha));
#ifdef TRAIN
        if (DISTORTION != 0u)
            distortion = add_distortion(distortion, normalized_interval(t, width), weight);
#endif
    }
#ifdef TRAIN
    vec3 loss = vec3(0.0);
    vec3 color_gradient = vec3(0.0), prediction = vec3(0.0);
    if (is_active)
        loss.xy = ray_loss(ray, accumulated.color, accumulated.transmittance, prediction, color_gradient);
    if (DISTORTION != 0u && is_active)
        loss.z = distortion_loss(ray, distortion);
    uint live_count = reached - transparent;
    float kept_weight = is_active ? keep_weight(ray, loss.x + loss.z) : 0.0;
    bool is_kept = kept_weight > 0.0;
    write_gradients(ray, first, is_kept ? live_count : 0u, is_kept ? reached : 0u, count, kept_weight * color_gradient,
                    is_active ? density_loss_gradient(ray, kept_weight) : 0.0, prediction, distortion,
                    accumulated.depth);
    for (uint i = tail_begin(ray); i < config.sample_capacity; i++)
        field_gradients[i] = vec4(0.0);
    group_loss[gl_LocalInvocationID.x] = vec4(loss, is_active ? 1.0 : 0.0);
    store_losses(LOCAL_SIZE);
    if (KEEP != 0u) {
        uint reached_samples = subgroupAdd(live_count), kept_rays = subgroupAdd(is_kept ? 1u : 0u);
        if (subgroupElect())
            count_kept(reached_samples, kept_rays);
    }
#else
    if (is_active)
        store_result(ray, accumulated);
#endif
}
