// Updates the poses of all views. The including file declares what both poses and lenses need.
// Pass: update_views.

shared float gauge_sums[VIEW_GAUGES][LOCAL_SIZE];

// Updates latent parameter k of a view.
void update_latent(uint view, uint k)
{
    uint sum = pose_sum(view, 0u);
    vec3 turn = vec3(gradient_of(sum), gradient_of(sum + 1u), gradient_of(sum + 2u));
    vec3 shift = vec3(gradient_of(sum + 3u), gradient_of(sum + 4u), gradient_of(sum + 5u));
    // Converts the gradient at the current pose to that with respect to the rotation vector, by the
    // transposed left Jacobian of the rotation (Sola et al., A micro Lie theory for state estimation in
    // robotics, 2018, equation 145).
    vec3 w = view_vector(view, VIEW_TURN), factors = turn_factors(dot(w, w)), across = cross(w, turn);
    turn += factors.z * cross(w, across) - factors.y * across;
    uint at = view_word(view, 0u);
    float g = 0.0;
    for (uint j = 0; j < 3u; j++)
        g += view_words[at + VIEW_WHITENING + j * VIEW_PARAMETERS + k] * turn[j] +
             view_words[at + VIEW_WHITENING + (3u + j) * VIEW_PARAMETERS + k] * shift[j];
    step_latent(at + VIEW_LATENT + k, VIEW_PARAMETERS, floatBitsToUint(view_words[at + VIEW_UPDATES]) + 1u, g);
}

// Adds latent parameter k of a view along each gauge to the sums of this invocation.
void add_gauges(uint view, uint k)
{
    uint at = view_word(view, k);
    for (uint g = 0; g < VIEW_GAUGES; g++)
        gauge_sums[g][gl_LocalInvocationID.x] +=
            view_words[at + VIEW_GAUGE + g * VIEW_PARAMETERS] * view_words[at + VIEW_LATENT];
}

// Takes the common movement out of latent parameter k of a view.
void take_out_gauges(uint view, uint k)
{
    uint at = view_word(view, k);
    float latent = view_words[at + VIEW_LATENT];
    for (uint g = 0; g < VIEW_GAUGES; g++)
        latent -= gauge_sums[g][0] * view_words[at + VIEW_GAUGE + g * VIEW_PARAMETERS];
    view_words[at + VIEW_LATENT] = latent;
}

// An invocation handles one parameter of a view at a time, so that few values are live.
void update_poses(uint lane)
{
    uint count = config.camera_count * VIEW_PARAMETERS;
    for (uint g = 0; g < VIEW_GAUGES; g++)
        gauge_sums[g][lane] = 0.0;
    for (uint i = lane; i < count; i += LOCAL_SIZE) {
        uint view = i / VIEW_PARAMETERS, k = i % VIEW_PARAMETERS;
        if (is_updated(pose_sum(view, 0u)))
            update_latent(view, k);
        add_gauges(view, k);
    }
    synchronize();
    if (lane < VIEW_GAUGES)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            gauge_sums[lane][0] += gauge_sums[lane][i];
    synchronize();
    for (uint i = lane; i < count; i += LOCAL_SIZE)
        take_out_gauges(i / VIEW_PARAMETERS, i % VIEW_PARAMETERS);
    synchronize();
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE)
        finish_update(view_word(view, VIEW_LATENT), view_word(view, VIEW_UPDATES), VIEW_PARAMETERS, pose_sum(view, 0u),
                      VIEW_PARAMETERS);
    synchronize();
    for (uint i = lane; i < count; i += LOCAL_SIZE) {
        uint at = view_word(i / VIEW_PARAMETERS, 0u), j = i % VIEW_PARAMETERS;
        view_words[at + VIEW_TURN + j] =
            from_latent(at + VIEW_WHITENING + j * VIEW_PARAMETERS, at + VIEW_LATENT, VIEW_PARAMETERS);
    }
}
