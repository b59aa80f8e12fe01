// Compositing by one invocation for each ray, as suits CPU devices: no lane does what another one did.

#ifdef TRAIN
// Of the live samples' rgb and density; they lie among the first `reached`.
void write_gradients(uint ray, uint first, uint live_count, uint reached, uint count,
                     vec3 color_gradient, vec3 prediction, Spread all)
{
    uint slot = first;
    if (LISTS) {
        uint before = subgroupExclusiveAdd(live_count);
        uint total = subgroupAdd(live_count);
        uint base = 0;
        if (subgroupElect())
            base = atomicAdd(state.live_count, total);
        slot = subgroupBroadcastFirst(base) + before;
    } else if (COUNTS) {
        atomicAdd(state.live_count, live_count);
    }
    float transmittance = 1.0;
    vec3 color = vec3(0.0);
    Spread spread = NO_SPREAD;
    for (uint i = 0; i < reached; i++) {
        vec4 value = field[first + i];
        float t = samples[first + i].t, extent = samples[first + i].width, width = density_width(ray, t, extent);
        float alpha = opacity(value.w * width);
        if (is_left_out(alpha)) {
            if (!LISTS)
                field_gradients[first + i] = vec4(0.0);
            continue;
        }
        float weight = rounded(transmittance * alpha);
        color = rounded(color + rounded(weight * value.rgb));
        transmittance = rounded(transmittance * (1.0 - alpha));
        vec3 behind = prediction - color;
        float by_density = density_gradient(width, transmittance, value.rgb, behind, color_gradient);
        if (DISTORTION != 0u) {
            vec2 place = normalized_place(t, extent);
            spread = add_spread(spread, place, weight);
            by_density +=
                width * distortion_gradient() * spread_gradient(spread, all, place, weight, transmittance);
        }
        field_gradients[first + i] = vec4(weight * color_gradient, by_density);
        if (LISTS)
            live[slot++] = first + i;
    }
    if (!LISTS)
        for (uint i = reached; i < count; i++)
            field_gradients[first + i] = vec4(0.0);
}
#endif

void composite_alone()
{
    uint ray = gl_GlobalInvocationID.x;
    bool used = is_used(ray);
    uint first = 0, count = 0;
    if (used) {
        first = results[ray].first;
        count = results[ray].count;
    }
    Passed passed = passed_before(ray, used);
    uint reached = 0, left_out = 0;
#ifdef TRAIN
    Spread spread = NO_SPREAD;
#endif
    while (reached < count && passed.transmittance >= config.early_stop) {
        uint at = first + reached++;
        vec4 value = field[at];
        float t = samples[at].t, width = samples[at].width;
        float thickness = value.w * density_width(ray, t, width), alpha = opacity(thickness);
        if (is_left_out(alpha)) {
            left_out++;
            continue;
        }
        float transmittance = passed.transmittance, weight = rounded(transmittance * alpha);
        passed.color = rounded(passed.color + rounded(weight * value.rgb));
#ifdef HITS
        if (transmittance > 0.5 && transmittance * (1.0 - alpha) <= 0.5)
            passed.depth = half_distance(t, width, transmittance, thickness);
#else
        passed.depth = rounded(passed.depth + rounded(weight * t));
#endif
#ifdef NORMALS
        passed.normal += weight * normals[at].xyz;
#endif
        passed.transmittance = rounded(transmittance * (1.0 - alpha));
#ifdef TRAIN
        if (DISTORTION != 0u)
            spread = add_spread(spread, normalized_place(t, width), weight);
#endif
    }
#ifdef TRAIN
    vec2 loss = vec2(0.0);
    vec3 color_gradient = vec3(0.0), prediction = vec3(0.0);
    if (used)
        loss = ray_loss(ray, passed.color, passed.transmittance, prediction, color_gradient);
    if (DISTORTION != 0u)
        loss.x += distortion_weight() * spread.loss;
    write_gradients(ray, first, reached - left_out, reached, count, color_gradient, prediction, spread);
    for (uint i = tail_begin(ray); i < config.sample_capacity; i++)
        field_gradients[i] = vec4(0.0);
    group_loss[gl_LocalInvocationID.x] = loss;
    leave_losses(LOCAL_SIZE);
    uint used_rays = subgroupAdd(used ? 1u : 0u);
    if (subgroupElect())
        atomicAdd(state.live_rays, used_rays);
#else
    if (used)
        keep(ray, passed);
#endif
}
