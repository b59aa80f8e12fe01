// The grid's gradients: those of values[0 .. LEVELS * FEATURES) spread over the corners of every
// level's cell.

#ifdef GRADIENT_FLOAT
layout(std430, set = 0, binding = BIND_GRADIENTS) buffer GradientBuffer { float gradients[]; };

void add_gradient(uint index, float value)
{
    atomicAdd(gradients[index], value);
}
#else
layout(std430, set = 0, binding = BIND_FIXED) buffer FixedBuffer { uint fixed_sums[]; };

// Adds to a 64-bit sum held in two words. The carry out of the low word follows from its value
// before the addition, so the total is exact whatever the order.
void add_gradient(uint index, float value)
{
    // Units of 2^-42 of a gradient whose loss is summed over the rays: split without a 64-bit type.
    float scaled = value * (float(state.ray_count) / state.loss_scale) *
                   float(FIXED_SCALE / 4294967296.0);
    if (!(abs(scaled) < 1073741824.0)) { // NaN, infinite or beyond what the sum holds
        state.nonfinite = 1u;
        return;
    }
    float whole = floor(scaled);
    uint high = uint(int(whole));
    uint low = uint(min((scaled - whole) * 4294967296.0, 4294967040.0));
    uint before = atomicAdd(fixed_sums[2u * index], low);
    uint carry = before + low < before ? 1u : 0u;
    if (high + carry != 0u)
        atomicAdd(fixed_sums[2u * index + 1u], high + carry);
}
#endif

void scatter_position_gradient(vec3 position)
{
    vec3 unit = to_unit_cube(position);
    for (uint level = 0; level < LEVELS; level++) {
        vec3 inside;
        uvec3 cell = grid_cell(level, unit, inside);
        [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
            uint entry = grid_entry(level, cell + corner_offset(corner));
            float weight = corner_weight(corner, inside);
            for (uint f = 0; f < FEATURES; f++)
                add_gradient(entry + f, weight * values[ACTIVATIONS + level * FEATURES + f]);
        }
    }
}
