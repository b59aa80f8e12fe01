// Computes the distortion loss (Barron et al., Mip-NeRF 360, 2022, equations 14 and 15), which pulls
// the weights of a ray's samples together. With weights w, middles m and widths d the loss is the sum
// of w_i w_j |m_i - m_j| over all pairs plus the sum of w_i^2 d_i / 3. For samples in order along the
// ray, prefix sums replace the sum over pairs. Middles and widths are measured on the curve DISTORTION.
// The including file includes shared/contraction.glsl.
// Pass: composite.

layout(constant_id = SPEC_DISTORTION) const uint DISTORTION = DISTORTION_NONE;

// Prefix sums over a ray's samples: weights, weights times middles, and the loss of these samples.
struct DistortionSums {
    float weight, weighted_position, loss;
};

const DistortionSums NO_DISTORTION = DistortionSums(0.0, 0.0, 0.0);

// Returns the distance from the camera in sides of the cube. In contracted space, distances beyond
// half a side are contracted like positions, and infinity becomes 1, so that the large widths of far
// samples are not penalised.
float normalized_distance(float t)
{
    float distance = t / config.aabb_scale;
    return CONTRACTION == CONTRACTION_CUBE && distance > 0.5 ? 1.0 - 0.25 / distance : distance;
}

// Returns the difference of two distances on the power ladder with exponent -1/4 (Barron et al.,
// Zip-NeRF, 2023), P(x) = 5 - 5 (1 + x / 1.25)^(-1/4), in units of P(far) - P(near). With the fourth
// roots a and b of 1 + x / 1.25 the difference is 5 / a - 5 / b, here without cancellation.
float ladder_between(float from, float to)
{
    float begin = from / config.ladder_unit, end = to / config.ladder_unit;
    float a = sqrt(sqrt(1.0 + 0.8 * begin)), b = sqrt(sqrt(1.0 + 0.8 * end));
    return 4.0 * (end - begin) / (config.ladder_range * a * b * (a + b) * (a * a + b * b));
}

// Returns middle and width of a sample in normalised distances.
vec2 normalized_interval(float t, float width)
{
    if (DISTORTION == DISTORTION_LADDER)
        return vec2(ladder_between(config.near_distance, t),
                    ladder_between(max(t - 0.5 * width, 0.0), t + 0.5 * width));
    if (CONTRACTION == CONTRACTION_NONE)
        return vec2(t, width) / config.aabb_scale;
    return vec2(normalized_distance(t),
                normalized_distance(t + 0.5 * width) - normalized_distance(max(t - 0.5 * width, 0.0)));
}

// Returns the loss that a sample adds, by pairs with earlier samples and by its own width. `through`:
// the sums up to and including this sample, whose distance to itself is 0.
float added_distortion(DistortionSums through, vec2 interval, float weight)
{
    return weight * (2.0 * (interval.x * through.weight - through.weighted_position) + weight * interval.y / 3.0);
}

DistortionSums add_distortion(DistortionSums before, vec2 interval, float weight)
{
    DistortionSums through =
        DistortionSums(before.weight + weight, before.weighted_position + weight * interval.x, before.loss);
    through.loss += added_distortion(through, interval, weight);
    return through;
}

// Returns d loss / d optical thickness of a sample. `transmittance`: behind the sample. More
// thickness moves weight from all samples behind to this sample. All weights behind shrink by the same
// factor: a loss term of two samples behind changes by the factor's square, and a term of one sample
// behind and this or an earlier sample by the factor.
float distortion_derivative(DistortionSums through, DistortionSums all, vec2 interval, float weight,
                            float transmittance)
{
    float weight_behind = all.weight - through.weight,
          weighted_position_behind = all.weighted_position - through.weighted_position;
    float by_weight = 2.0 * (interval.x * (through.weight - weight_behind) -
                             (through.weighted_position - weighted_position_behind)) +
                      2.0 / 3.0 * weight * interval.y;
    float across = through.weight * weighted_position_behind - through.weighted_position * weight_behind;
    return transmittance * by_weight - 2.0 * (all.loss - through.loss - across);
}
