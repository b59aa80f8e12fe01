// Updates the lenses of all camera groups. A group's latent parameters are those of its first view; all
// its views get the same change. The including file declares what both poses and lenses need.
// Pass: update_views.

// Returns the first view of a view's camera group; a damaged checkpoint must not lead out of the buffer.
uint group_of(uint view)
{
    return min(floatBitsToUint(view_words[view_word(view, VIEW_GROUP)]), config.camera_count - 1u);
}

// Moves a view's sum of gradients with respect to lens parameter k to the first view of its group.
void add_to_group(uint view, uint k)
{
    uint group = group_of(view);
    if (group != view)
        move_sum(lens_sum(view, k), lens_sum(group, k));
}

// Returns the gradient with respect to lens parameter j of a group. A larger focal length and a smaller
// scene look nearly alike, and the field's size follows the focal length within a few steps: what is left
// of the gradient hides in the noise of both. The gradient with respect to the scene's scale is therefore
// a control variate. It vanishes in the mean, since the field can grow as well as the cameras can move
// away, and the part of the focal length's gradient that it explains, by linear regression over the
// samples, is taken out.
float lens_gradient(uint view, uint j)
{
    float g = gradient_of(lens_sum(view, j)), square = gradient_of(lens_sum(view, LENS_SCALE + 1u));
    bool is_radial = j < 2u || j == 4u || j == 5u;
    if (!is_radial || square <= 0.0)
        return g;
    float slope = gradient_of(lens_sum(view, LENS_SCALE + 2u + (j < 2u ? j : j - 2u))) / square;
    return g - slope * gradient_of(lens_sum(view, LENS_SCALE));
}

// Updates latent parameter k of the group whose first view is `view`.
void update_lens_latent(uint view, uint k)
{
    uint at = view_word(view, 0u);
    float g = 0.0;
    for (uint j = 0; j < LENS_PARAMETERS; j++)
        g += view_words[at + VIEW_LENS_WHITENING + j * LENS_PARAMETERS + k] * lens_gradient(view, j);
    step_latent(at + VIEW_LENS_LATENT + k, LENS_PARAMETERS,
                floatBitsToUint(view_words[at + VIEW_LENS_UPDATES]) + 1u, g);
}

// An invocation handles one parameter of a view at a time.
void update_lenses(uint lane)
{
    uint count = config.camera_count * LENS_PARAMETERS;
    for (uint i = lane; i < config.camera_count * LENS_SUMS; i += LOCAL_SIZE)
        add_to_group(i / LENS_SUMS, i % LENS_SUMS);
    synchronize();
    for (uint i = lane; i < count; i += LOCAL_SIZE) {
        uint view = i / LENS_PARAMETERS;
        if (group_of(view) == view && is_updated(lens_sum(view, 0u)))
            update_lens_latent(view, i % LENS_PARAMETERS);
    }
    synchronize();
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE)
        if (group_of(view) == view)
            finish_update(view_word(view, VIEW_LENS_LATENT), view_word(view, VIEW_LENS_UPDATES), LENS_PARAMETERS,
                          lens_sum(view, 0u), LENS_SUMS);
    synchronize();
    for (uint i = lane; i < count; i += LOCAL_SIZE) {
        uint view = i / LENS_PARAMETERS, j = i % LENS_PARAMETERS, of = view_word(group_of(view), 0u);
        view_words[view_word(view, VIEW_LENS + j)] =
            from_latent(of + VIEW_LENS_WHITENING + j * LENS_PARAMETERS, of + VIEW_LENS_LATENT, LENS_PARAMETERS);
    }
}
