// The distortion loss (Barron et al., Mip-NeRF 360, 2022, equations 14 and 15), which draws what takes a ray's light
// together. Of samples that take the shares w of it, with middles m and widths d: the sum of w_i w_j |m_i - m_j| over
// all pairs, and of w_i^2 d_i / 3 for what is within each. In order along the ray pairs are sums of what comes before.
// What includes this has included shared/contraction.glsl.

layout(constant_id = SPEC_DISTORTION) const uint DISTORTION = 0;

// Of a ray's samples up to some one: their weights, these times their middles, and the loss of these samples alone.
struct DistortionSums {
    float weight, weighted_position, loss;
};

const DistortionSums NO_DISTORTION = DistortionSums(0.0, 0.0, 0.0);

// Distance from the camera with the cube's side as the unit and, in contracted space, drawn in as positions are: from
// half a side on, with infinity at 1, so that far things are not spread for being far.
float normalized_distance(float t)
{
    float distance = t / config.aabb_scale;
    return CONTRACTION == CONTRACTION_CUBE && distance > 0.5 ? 1.0 - 0.25 / distance : distance;
}

// Middle and width of a sample there.
vec2 normalized_interval(float t, float width)
{
    if (CONTRACTION == CONTRACTION_NONE)
        return vec2(t, width) / config.aabb_scale;
    return vec2(normalized_distance(t),
                normalized_distance(t + 0.5 * width) - normalized_distance(max(t - 0.5 * width, 0.0)));
}

// What a sample adds to the loss; `through`: weights and moments up to this one, which itself does not matter there.
float added_distortion(DistortionSums through, vec2 place, float weight)
{
    return weight * (2.0 * (place.x * through.weight - through.weighted_position) + weight * place.y / 3.0);
}

DistortionSums add_distortion(DistortionSums before, vec2 place, float weight)
{
    DistortionSums through = DistortionSums(before.weight + weight, before.weighted_position + weight * place.x, before.loss);
    through.loss += added_distortion(through, place, weight);
    return through;
}

// d loss / d optical thickness of a sample. It takes `transmittance`, what it leaves, from what lies behind it, whose
// weights shrink alike: as the loss is quadratic in them, by twice what these and their pairs with others are of it.
float distortion_derivative(DistortionSums through, DistortionSums all, vec2 place, float weight, float transmittance)
{
    float weight_behind = all.weight - through.weight, weighted_position_behind = all.weighted_position - through.weighted_position;
    float by_weight = 2.0 * (place.x * (through.weight - weight_behind) - (through.weighted_position - weighted_position_behind)) +
                      2.0 / 3.0 * weight * place.y;
    float across = through.weight * weighted_position_behind - through.weighted_position * weight_behind;
    return transmittance * by_weight - 2.0 * (all.loss - through.loss - across);
}

// Of a ray. The coarse samples of hierarchical sampling say where the fine ones lie and are left as spread as they are.
float distortion_weight()
{
    return push.e == COMPOSITE_COARSE ? 0.0 : config.loss_distortion;
}
