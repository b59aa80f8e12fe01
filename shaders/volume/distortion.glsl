// Distortion loss (Barron et al., Mip-NeRF 360, 2022, equations 14 and 15), which pulls the samples
// that make up a ray's colour together. With weights w, middles m and widths d the loss is the sum of
// w_i w_j |m_i - m_j| over all pairs plus the sum of w_i^2 d_i / 3. In order along the ray the pairs
// reduce to prefix sums. The including file includes shared/contraction.glsl.
// Pass: composite.

layout(constant_id = SPEC_DISTORTION) const uint DISTORTION = 0;

// Prefix sums of a ray's samples: weights, weights times middles, and the loss of these samples alone.
struct DistortionSums {
    float weight, weighted_position, loss;
};

const DistortionSums NO_DISTORTION = DistortionSums(0.0, 0.0, 0.0);

// Returns the distance from the camera in sides of the cube. In contracted space distances beyond half
// a side are contracted as positions are, with infinity at 1, so that far samples are not penalised
// for their large widths.
float normalized_distance(float t)
{
    float distance = t / config.aabb_scale;
    return CONTRACTION == CONTRACTION_CUBE && distance > 0.5 ? 1.0 - 0.25 / distance : distance;
}

// Returns middle and width of a sample in normalised distances.
vec2 normalized_interval(float t, float width)
{
    if (CONTRACTION == CONTRACTION_NONE)
        return vec2(t, width) / config.aabb_scale;
    return vec2(normalized_distance(t),
                normalized_distance(t + 0.5 * width) - normalized_distance(max(t - 0.5 * width, 0.0)));
}

// Returns what a sample adds to the loss. `through`: the sums up to and including this sample, whose
// own term cancels.
float added_distortion(DistortionSums through, vec2 interval, float weight)
{
    return weight * (2.0 * (interval.x * through.weight - through.weighted_position) + weight * interval.y / 3.0);
}

DistortionSums add_distortion(DistortionSums before, vec2 interval, float weight)
{
    DistortionSums through = DistortionSums(before.weight + weight, before.weighted_position + weight * interval.x, before.loss);
    through.loss += added_distortion(through, interval, weight);
    return through;
}

// Returns d loss / d optical thickness of a sample; `transmittance`: that behind the sample. More
// thickness moves weight from all samples behind to this one. The weights behind shrink by one factor:
// loss terms among them change by twice this factor, terms that pair them with this or an earlier
// sample by once.
float distortion_derivative(DistortionSums through, DistortionSums all, vec2 interval, float weight, float transmittance)
{
    float weight_behind = all.weight - through.weight, weighted_position_behind = all.weighted_position - through.weighted_position;
    float by_weight = 2.0 * (interval.x * (through.weight - weight_behind) - (through.weighted_position - weighted_position_behind)) +
                      2.0 / 3.0 * weight * interval.y;
    float across = through.weight * weighted_position_behind - through.weighted_position * weight_behind;
    return transmittance * by_weight - 2.0 * (all.loss - through.loss - across);
}

// Returns the weight of a ray's distortion loss: 0 for coarse samples of hierarchical sampling, which
// only say where the fine samples lie.
float distortion_weight()
{
    return push.e == COMPOSITE_COARSE ? 0.0 : config.loss_distortion;
}
