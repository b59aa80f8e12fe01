// Computes the loss of one colour channel and its derivative with respect to the difference of
// prediction and target, as vec2(loss, derivative). Another loss needs a function and a case here,
// and a name in include/vknerf/choices.h.
// Passes: composite, appearance_gradients, mark_outliers.

// enum vkn_loss of include/vknerf/choices.h
const uint LOSS_HUBER = 1u;
const uint LOSS_L2 = 2u;
const uint LOSS_L1 = 3u;
const uint LOSS_CHARBONNIER = 4u;

layout(constant_id = SPEC_LOSS) const uint LOSS = LOSS_HUBER;

// Huber, Robust Estimation of a Location Parameter, 1964.
vec2 huber_loss(float difference)
{
    float magnitude = abs(difference);
    if (magnitude <= config.loss_delta)
        return vec2(0.5 * difference * difference, difference);
    return vec2(config.loss_delta * (magnitude - 0.5 * config.loss_delta),
                config.loss_delta * sign(difference));
}

vec2 l2_loss(float difference)
{
    return vec2(difference * difference, 2.0 * difference);
}

vec2 l1_loss(float difference)
{
    return vec2(abs(difference), sign(difference));
}

// Charbonnier et al., Two Deterministic Half-Quadratic Regularization Algorithms for Computed
// Imaging, 1994.
vec2 charbonnier_loss(float difference)
{
    float magnitude = sqrt(difference * difference + config.loss_delta * config.loss_delta);
    return vec2(magnitude - config.loss_delta, difference / magnitude);
}

vec2 channel_loss(float difference)
{
    switch (LOSS) {
    case LOSS_L2:
        return l2_loss(difference);
    case LOSS_L1:
        return l1_loss(difference);
    case LOSS_CHARBONNIER:
        return charbonnier_loss(difference);
    default:
        return huber_loss(difference);
    }
}
