// Three planes of learned features, each a grid over two axes (EG3D, Chan et al., CVPR 2022):
//     vknerf train SCENE --field examples/triplane_field.glsl
// docs/fields.md explains it line by line.
#pragma field name triplane
#pragma field parameters 3 * 128 * 128 * 8
#pragma field features 24
#pragma field initial 1e-2

const uint POINTS = 128u, CHANNELS = 8u; // along an edge of a plane; features of each point

// Returns the index of the first parameter of corner k of the cell that contains a position in a plane, and the
// corner's bilinear weight.
uint corner(uint plane, vec2 position, uint k, out float weight)
{
    vec2 at = position * float(POINTS - 1u), cell = min(floor(at), float(POINTS - 2u)), inside = at - cell;
    uvec2 offset = uvec2(k & 1u, k >> 1), point = uvec2(cell) + offset;
    vec2 weights = mix(1.0 - inside, inside, bvec2(offset));
    weight = weights.x * weights.y;
    return ((plane * POINTS + point.y) * POINTS + point.x) * CHANNELS;
}

vec2 on_plane(vec3 position, uint plane)
{
    return plane == 0u ? position.xy : plane == 1u ? position.yz : position.zx;
}

void encode(vec3 position, uint first_parameter)
{
    for (uint plane = 0u; plane < 3u; plane++)
        for (uint c = 0u; c < CHANNELS; c++) {
            float sum = 0.0, weight;
            for (uint k = 0u; k < 4u; k++) {
                uint at = corner(plane, on_plane(position, plane), k, weight);
                sum += weight * parameter(first_parameter + at + c);
            }
            put_feature(plane * CHANNELS + c, sum);
        }
}

// The features are linear in the parameters, so a corner's gradient is the feature's times the corner's weight.
void encode_backward(vec3 position, uint first_parameter)
{
    for (uint plane = 0u; plane < 3u; plane++)
        for (uint k = 0u; k < 4u; k++) {
            float weight;
            uint at = corner(plane, on_plane(position, plane), k, weight);
            for (uint c = 0u; c < CHANNELS; c++)
                add_gradient(first_parameter + at + c, weight * feature_gradient(plane * CHANNELS + c));
        }
}
