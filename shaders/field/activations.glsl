// What the field makes of its raw outputs, and what becomes of gradients on the way back. A gradient of
// zero stays zero whatever it meets: samples that nobody sees may hold anything, infinities among it.

vec3 color_of(vec3 raw)
{
    return 1.0 / (1.0 + exp(-raw));
}

float density_of(float raw)
{
    return exp(raw);
}

// The sigmoid's derivative, by its value.
vec3 raw_color_gradient(vec3 color, vec3 gradient)
{
    return mix(gradient * color * (1.0 - color), vec3(0.0), equal(gradient, vec3(0.0)));
}

// exp's derivative is the density itself, clamped as instant-ngp does against overflow.
float raw_density_gradient(float raw, float gradient)
{
    return gradient == 0.0 ? 0.0 : gradient * exp(clamp(raw, -15.0, 15.0));
}
