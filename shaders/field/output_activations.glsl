// Computes the activation functions of the field's outputs, and the gradients of the raw outputs. A
// gradient of zero stays zero for any raw output, because samples without a gradient may hold
// infinities or NaN.
// Passes: field_forward, field_backward, field_values, field_output_gradients, update_occupancy,
// sample_normals.

layout(constant_id = SPEC_DENSITY_ACTIVATION) const uint DENSITY_ACTIVATION = DENSITY_EXP;

const float LEAST_DENSITY = 1e-2; // lowest density whose logarithm differs from that of 0

vec3 color_of(vec3 raw)
{
    return 1.0 / (1.0 + exp(-raw));
}

// Returns log(1 + x) for x in 0..1 by the series of 2 atanh(x / (2 + x)), so that small densities
// keep their digits.
float log_one_plus(float x)
{
    float s = x / (2.0 + x), q = s * s;
    return 2.0 * s * (1.0 + q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q / 11.0)))));
}

// Returns softplus(raw - 1), which starts near 0.3 (Barron et al., Mip-NeRF, 2021).
float shifted_softplus(float raw)
{
    float shifted = raw - 1.0;
    return max(shifted, 0.0) + log_one_plus(exp(-abs(shifted)));
}

float density_of(float raw)
{
    switch (DENSITY_ACTIVATION) {
    case DENSITY_SOFTPLUS:
        return shifted_softplus(raw);
    case DENSITY_RELU:
        return max(raw, 0.0);
    default:
        return exp(raw);
    }
}

float log_density_of(float raw)
{
    if (DENSITY_ACTIVATION == DENSITY_SOFTPLUS || DENSITY_ACTIVATION == DENSITY_RELU)
        return log(max(density_of(raw), LEAST_DENSITY));
    return raw;
}

// Multiplies a gradient by the sigmoid's derivative, color * (1 - color).
vec3 raw_color_gradient(vec3 color, vec3 gradient)
{
    return mix(gradient * color * (1.0 - color), vec3(0.0), equal(gradient, vec3(0.0)));
}

// Returns the derivative of density_of: for exp the density, clamped against overflow as in
// instant-ngp, for softplus the sigmoid.
float density_slope(float raw)
{
    switch (DENSITY_ACTIVATION) {
    case DENSITY_SOFTPLUS:
        return 1.0 / (1.0 + exp(1.0 - raw));
    case DENSITY_RELU:
        return raw > 0.0 ? 1.0 : 0.0;
    default:
        return exp(clamp(raw, -15.0, 15.0));
    }
}

float raw_density_gradient(float raw, float gradient)
{
    return gradient == 0.0 ? 0.0 : gradient * density_slope(raw);
}
