// Computes the loss of a ray with a known distance, from a sparse point or a depth picture: the negative
// log likelihood of the distance under the weights of the ray's samples, as in DS-NeRF (Deng et al.,
// 2022). WRONG is the share of known distances that are of something else, so that the likelihood is
// (P + WRONG) / (1 + WRONG) with P the sum of weight * agreement. P is composited like a colour channel
// whose background is black.
// Pass: composite. Reads RAYS [ray].

layout(constant_id = SPEC_DEPTH) const uint DEPTH = 0;

const float WRONG = 0.05;

// Returns whether the ray has a known distance. The loss has no gradient on coarse samples:
// density_loss_gradient.
bool has_known_depth(uint ray)
{
    return DEPTH != 0u && rays[ray].known_sigma > 0.0;
}

// Returns the agreement of a sample with the known distance, from 0 to 1: a Cauchy distribution, whose
// gradient reaches distances that are far off. It is no narrower than the sample.
float depth_agreement(uint ray, float t, float width)
{
    float off = t - rays[ray].known_t, sigma = rays[ray].known_sigma;
    float variance = sigma * sigma + 0.25 * width * width;
    return variance / (variance + off * off);
}

// Returns the derivative of the loss by the sum of weight * agreement.
float depth_derivative(float agreement)
{
    return -config.loss_depth / (agreement + WRONG);
}
