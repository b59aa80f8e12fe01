// Computes what a camera makes of the colour of a ray, and the gradients: exposure, vignetting, white
// balance and shifts of the primaries, in linear light, then a response curve (PPISP, Deng et al., arXiv
// 2601.18336, 2026; white balance as gains, and parameters such that all zero changes nothing).
// The including file defines appearance_value(first, parameter), which returns a parameter of struct
// Appearance.
// Passes: generate_rays, composite, appearance_gradients, sum_sky, finish_pixels.

const float LOG2 = 0.69314718;
const float LEAST_COLOR = 1e-6;
// Units of parameters. Shifts of the primaries move slowly, so that white balance is found in the gains.
const float PRIMARY_UNIT = 0.03125, CENTER_UNIT = 0.25;

// The colour of a pixel, step by step.
struct Photograph {
    vec3 scene;    // of the ray, sRGB
    vec3 lit;      // linear light with exposure and vignetting
    vec3 balanced; // after white balance and shifts of the primaries
    vec3 encoded;  // sRGB, limited to 0..1
    vec3 color;    // after the response curve
};

// Gradients of a loss with respect to the steps.
struct PhotographGradients {
    vec3 scene, lit, balanced, encoded;
};

// ---- channels -------------------------------------------------------------------------------------

// The number of channels, in a form that compilers cannot evaluate: unrolled loops over the channels
// take three times the code, and spill registers.
uint channel_count()
{
    return 2u + gl_NumWorkGroups.z;
}

float channel_of(vec3 v, uint channel)
{
    return channel == 0u ? v.r : channel == 1u ? v.g : v.b;
}

void set_channel(uint channel, float value, inout vec3 v)
{
    v = mix(v, vec3(value), equal(uvec3(0u, 1u, 2u), uvec3(channel)));
}

// ---- sRGB (IEC 61966-2-1) --------------------------------------------------------------------------

vec3 srgb_decoded(vec3 s)
{
    return mix(s / 12.92, pow((max(s, 0.0) + 0.055) / 1.055, vec3(2.4)), greaterThan(s, vec3(0.04045)));
}

vec3 srgb_decoded_slope(vec3 s)
{
    return mix(vec3(1.0 / 12.92), 2.4 / 1.055 * pow((max(s, 0.0) + 0.055) / 1.055, vec3(1.4)),
               greaterThan(s, vec3(0.04045)));
}

vec3 srgb_encoded(vec3 l)
{
    return mix(12.92 * l, 1.055 * pow(max(l, LEAST_COLOR), vec3(1.0 / 2.4)) - 0.055,
               greaterThan(l, vec3(0.0031308)));
}

vec3 srgb_encoded_slope(vec3 l)
{
    return mix(vec3(12.92), 1.055 / 2.4 * pow(max(l, LEAST_COLOR), vec3(1.0 / 2.4 - 1.0)),
               greaterThan(l, vec3(0.0031308)));
}

// ---- vignetting -----------------------------------------------------------------------------------

// The vignetting of a channel at a position of the image.
struct Vignetting {
    vec2 offset; // from the centre of the vignetting, in units of the image's longer side
    vec3 coefficients;
    float factor;
    bool in_range;
};

Vignetting vignetting_at(uint first, uint channel, vec2 position)
{
    uint p = APPEARANCE_VIGNETTING + 5u * channel;
    Vignetting v;
    v.offset = position - CENTER_UNIT * vec2(appearance_value(first, p), appearance_value(first, p + 1u));
    v.coefficients = vec3(appearance_value(first, p + 2u), appearance_value(first, p + 3u),
                          appearance_value(first, p + 4u));
    float r2 = dot(v.offset, v.offset);
    v.factor = 1.0 + r2 * (v.coefficients.x + r2 * (v.coefficients.y + r2 * v.coefficients.z));
    v.in_range = v.factor > 0.05 && v.factor < 2.0;
    v.factor = clamp(v.factor, 0.05, 2.0);
    return v;
}

vec3 vignetting_factors(uint first, vec2 position)
{
    vec3 factors = vec3(1.0);
    for (uint c = 0; c < channel_count(); c++)
        set_channel(c, vignetting_at(first, c, position).factor, factors);
    return factors;
}

// ---- white balance and primaries ------------------------------------------------------------------

vec3 channel_gains(uint first)
{
    return vec3(exp2(appearance_value(first, 1u)), 1.0, exp2(appearance_value(first, 2u)));
}

// Returns by how much the chromaticity (r, g) of a primary is shifted. Blue is shifted by the opposite.
vec2 primary_shift(uint first, uint primary)
{
    uint p = 3u + 2u * primary;
    return PRIMARY_UNIT * vec2(appearance_value(first, p), appearance_value(first, p + 1u));
}

float intensity(vec3 light)
{
    return max(light.r + light.g + light.b, LEAST_COLOR);
}

// Changes the chromaticity of light. Its intensity, the sum of the channels, stays.
vec3 balanced_light(uint first, vec3 light)
{
    vec3 weights = channel_gains(first) * light;
    vec2 shift = vec2(0.0);
    for (uint k = 0; k < channel_count(); k++)
        shift += channel_of(weights, k) * primary_shift(first, k);
    return intensity(light) / intensity(weights) * (weights + vec3(shift, -shift.x - shift.y));
}

// Returns the gradients with respect to the weights of the channels if the intensity of the weights
// stayed: the product with the transposed matrix of the shifted primaries.
vec3 through_primaries(uint first, vec3 by_light)
{
    vec3 along = by_light;
    vec2 by_shift = by_light.rg - by_light.b;
    for (uint k = 0; k < channel_count(); k++)
        set_channel(k, channel_of(by_light, k) + dot(by_shift, primary_shift(first, k)), along);
    return along;
}

// ---- response curve -------------------------------------------------------------------------------

// The response curve of a channel: a power below its centre and one above, with equal slopes at the
// centre, then gamma.
struct Curve {
    float toe, shoulder, gamma, center;
    float height; // value at the centre, before gamma
};

Curve response_curve(uint first, uint channel)
{
    uint p = APPEARANCE_CURVE + 4u * channel;
    Curve curve;
    curve.toe = exp(appearance_value(first, p));
    curve.shoulder = exp(appearance_value(first, p + 1u));
    curve.gamma = exp(appearance_value(first, p + 2u));
    curve.center = 1.0 / (1.0 + exp(-appearance_value(first, p + 3u)));
    curve.height = curve.shoulder * curve.center / mix(curve.toe, curve.shoulder, curve.center);
    return curve;
}

// Returns the curve's value before gamma.
float before_gamma(Curve curve, float x)
{
    if (x < curve.center)
        return curve.height * pow(max(x, LEAST_COLOR) / curve.center, curve.toe);
    return 1.0 - (1.0 - curve.height) * pow(max(1.0 - x, LEAST_COLOR) / (1.0 - curve.center), curve.shoulder);
}

float curve_value(Curve curve, float x)
{
    return pow(before_gamma(curve, x), curve.gamma);
}

// Returns the value at which derivatives of the curve are computed: at its ends they may be infinite.
float inside_curve(float x)
{
    return clamp(x, 0.002, 0.998);
}

float curve_slope(Curve curve, float x)
{
    x = inside_curve(x);
    float at_center = curve.height * curve.toe / curve.center;
    float slope = at_center * (x < curve.center
                                   ? pow(x / curve.center, curve.toe - 1.0)
                                   : pow((1.0 - x) / (1.0 - curve.center), curve.shoulder - 1.0));
    return curve.gamma * pow(before_gamma(curve, x), curve.gamma - 1.0) * slope;
}

// Returns the derivatives of the curve's value with respect to its four parameters.
vec4 curve_derivatives(Curve curve, float x)
{
    x = inside_curve(x);
    float t = curve.toe, s = curve.shoulder, c = curve.center, d = mix(t, s, c);
    vec3 height = vec3(-s * c * (1.0 - c), c * t * (1.0 - c), s * t) / (d * d); // by toe, shoulder, centre
    float value = before_gamma(curve, x);
    vec3 by;
    if (x < c) {
        float u = x / c, power = pow(u, t);
        by = height * power;
        by.x += curve.height * power * log(u);
        by.z -= curve.height * t * power / c;
    } else {
        float u = (1.0 - x) / (1.0 - c), power = pow(u, s);
        by = height * power;
        by.y -= (1.0 - curve.height) * power * log(u);
        by.z -= (1.0 - curve.height) * s * power / (1.0 - c);
    }
    float result = pow(value, curve.gamma);
    by *= curve.gamma * result / value;
    return vec4(by.x * t, by.y * s, curve.gamma * result * log(value), by.z * c * (1.0 - c));
}

// ---- a ray ----------------------------------------------------------------------------------------

// Computes the colour that a camera with the parameters from `first` on makes of `scene` at a position
// of the image. is_full: not only the exposure.
Photograph photograph(uint first, bool is_full, vec2 position, vec3 scene)
{
    Photograph p;
    p.scene = scene;
    p.lit = exp2(appearance_value(first, 0u)) * srgb_decoded(scene);
    if (is_full)
        p.lit *= vignetting_factors(first, position);
    p.balanced = is_full ? balanced_light(first, p.lit) : p.lit;
    p.encoded = srgb_encoded(clamp(p.balanced, 0.0, 1.0));
    p.color = p.encoded;
    if (is_full)
        for (uint c = 0; c < channel_count(); c++)
            set_channel(c, curve_value(response_curve(first, c), channel_of(p.encoded, c)), p.color);
    return p;
}

// Computes the gradients of a loss whose gradient with respect to the colour is `by_color`. The limit to
// 0..1 passes gradients on: a saturated pixel of the photograph equals the limited colour and has none.
PhotographGradients photograph_gradients(uint first, bool is_full, vec2 position, Photograph p, vec3 by_color)
{
    PhotographGradients g;
    vec3 slopes = vec3(1.0);
    if (is_full)
        for (uint c = 0; c < channel_count(); c++)
            set_channel(c, curve_slope(response_curve(first, c), channel_of(p.encoded, c)), slopes);
    g.encoded = slopes * by_color;
    g.balanced = g.encoded * srgb_encoded_slope(clamp(p.balanced, 0.0, 1.0));
    g.lit = g.balanced;
    vec3 by_scene = exp2(appearance_value(first, 0u)) * srgb_decoded_slope(p.scene);
    if (is_full) {
        vec3 gains = channel_gains(first), along = through_primaries(first, g.balanced);
        float weight = intensity(gains * p.lit), total = dot(along, gains * p.lit) / weight;
        g.lit = gains * intensity(p.lit) / weight * (along - total) + total;
        by_scene *= vignetting_factors(first, position);
    }
    g.scene = g.lit * by_scene;
    return g;
}

// Returns the share of a ray that the camera has photographed: the background is added later.
float photographed_share(float transmittance)
{
    return max(1.0 - transmittance, LEAST_COLOR);
}

// Returns the colour of a pixel in front of the background.
vec3 pixel_color(Photograph p, float transmittance, vec3 background)
{
    return photographed_share(transmittance) * p.color + transmittance * background;
}
