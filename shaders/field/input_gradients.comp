#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample: from the gradients of its features, which field_backward left in these' place, to
// that of its position, for who moves samples or rays: between field_backward and the update of the weights.
// By push.e of all, or of a chunk of rows (ROWS_LIVE). Gradients are those of the mean loss times the loss
// scale, as in BIND_FIELD_GRADIENTS.
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/grid.glsl"
#include "field/canonical.glsl"
#include "field/features.glsl"
#include "field/input_gradients.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };

#include "field/live.glsl"

// Adds a level's part to the gradient by the unit cube's position: the derivative of the trilinear
// interpolation, whose weights are products of one factor for each axis.
void add_level(uint level, uint sample_index, vec3 unit, inout vec3 slope)
{
    vec4 gradient = get_level_features(level, sample_index), corners[8];
    if (gradient == vec4(0.0)) // never with NaN
        return;
    vec3 inside, sum = vec3(0.0);
    gather(level, grid_cell(level, unit, inside), corners);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        float value = dot(gradient, corners[corner]);
        bvec3 upper = bvec3(corner & 1u, corner & 2u, corner & 4u);
        vec3 w = mix(1.0 - inside, inside, upper);
        sum += mix(vec3(-value), vec3(value), upper) * (w.yzx * w.zxy);
    }
    slope += config.levels[level].scale * sum;
}

// From the gradient by the unit cube's position to that by the position in training space: the
// transposed Jacobian of to_unit_cube.
vec3 from_unit_gradient(vec3 position, vec3 slope)
{
    if (CONTRACTION != CONTRACTION_CUBE)
        return slope / config.aabb_scale;
    vec3 x = from_center(position);
    slope *= 1.0 / (CONTRACTED * config.aabb_scale);
    float norm = maximum_norm(x);
    if (norm <= 1.0)
        return slope;
    // With the norm n along axis k, contracted y = s(n) x, s = (2 - 1 / n) / n: across the axis dy = s dx;
    // along it dy_k = dx_k / n^2, and s'(n) x for the others.
    vec3 size = abs(x);
    bvec3 axis = bvec3(size.x == norm, size.y == norm && size.x < norm, size.z > max(size.x, size.y));
    float near = 1.0 / norm, falling = 2.0 * near * near * (near - 1.0); // s'(n)
    vec3 across = mix(slope, vec3(0.0), axis);
    vec3 along = near * near * slope + falling * dot(across, x) * sign(x);
    return mix((2.0 - near) * near * slope, along, axis);
}

vec3 position_gradient(uint sample_index)
{
    vec3 position = canonical_position(sample_index);
    vec3 unit = to_unit_cube(position), slope = vec3(0.0);
    for (uint level = 0; level < LEVELS; level++)
        add_level(level, sample_index, unit, slope);
    // Where the position is clamped, it does not matter.
    bvec3 free = bvec3(uvec3(greaterThan(unit, vec3(0.0))) & uvec3(lessThan(unit, vec3(1.0))));
    return from_unit_gradient(position, mix(vec3(0.0), slope, free));
}

void main()
{
    uint count = gradient_count(), first = 0u, stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    if (push.e == ROWS_LIVE) {
        first = push.d * config.chunk_rows;
        count = min(count, first + config.chunk_rows);
    }
    for (uint i = first + gl_GlobalInvocationID.x; i < count; i += stride) {
        uint index = gradient_sample(i);
        input_gradients[2u * index] = vec4(position_gradient(index), 0.0);
    }
}
