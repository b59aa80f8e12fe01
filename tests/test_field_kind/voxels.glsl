// Interpolates trilinearly between the points of a dense grid of raw rgb and raw density.
#include "field/unit_cube.glsl"

layout(constant_id = SPEC_LEVELS) const uint POINTS = 32; // along an edge

uint corner_point(uvec3 cell, uint corner)
{
    uvec3 at = min(cell + uvec3(corner & 1u, corner >> 1 & 1u, corner >> 2), uvec3(POINTS - 1u));
    return at.x + POINTS * (at.y + POINTS * at.z);
}

float trilinear_weight(vec3 inside, uint corner)
{
    vec3 w = mix(1.0 - inside, inside, bvec3(corner & 1u, corner & 2u, corner & 4u));
    return w.x * w.y * w.z;
}

// Returns the cell that contains a position in training space, and the position in the cell, 0 to 1.
uvec3 voxel_cell(vec3 position, out vec3 inside)
{
    vec3 p = to_unit_cube(position) * float(POINTS - 1u);
    vec3 cell = floor(p);
    inside = p - cell;
    return to_unsigned(cell);
}

#ifndef GRADIENTS_ONLY
layout(std430, BINDING(PARAMS)) readonly buffer VoxelBuffer { vec4 voxels[]; };

vec4 interpolate_voxels(vec3 position)
{
    vec3 inside;
    uvec3 cell = voxel_cell(position, inside);
    vec4 sum = vec4(0.0);
    for (uint corner = 0; corner < 8u; corner++)
        sum += trilinear_weight(inside, corner) * voxels[corner_point(cell, corner)];
    return sum;
}
#endif
