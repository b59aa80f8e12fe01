// Defines the snippet to whose shaders the shaders of a user's snippet are compared: it calls every
// function of field/snippet.glsl.

void encode(vec3 position, uint first_parameter)
{
    vec2 pair = parameter_pair(first_parameter);
    put_feature(0u, parameter(first_parameter) + pair.x);
    add_gradient(first_parameter, feature_gradient(0u));
}

void encode_backward(vec3 position, uint first_parameter)
{
    encode(position, first_parameter);
}
