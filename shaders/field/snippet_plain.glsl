// Defines a snippet that calls every function of field/snippet.glsl: shaders with a user's snippet are
// compared with the same shaders with this snippet.

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
