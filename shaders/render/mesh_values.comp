#version 460
#extension GL_GOOGLE_include_directive : require
// Per listed grid point: how far the logarithm of the density is above the surface's. Logarithms because
// a surface's density rises by orders of magnitude from one point to the next; limits because what is
// nearly empty or full says nothing about where the surface is.
#include "render/mesh_grid.glsl"
#include "shared/contraction.glsl"

layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(MESH_VALUES)) writeonly buffer ValueBuffer { float values[]; };
layout(std430, BINDING(MESH_POINTS)) readonly buffer PointBuffer { uint points[]; };

void main()
{
    // push: as mesh_samples.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.b)
        return;
    uint point = points[push.a + i];
    float above = log(max(field[i].w, 1e-30)) - grid.threshold;
    // Contracted space has its densities by contracted radius: see composite.comp.
    if (CONTRACTION == CONTRACTION_CUBE)
        above -= 2.0 * log(max(maximum_norm(from_center(point_position(point, push.c))), 1.0));
    // Not a number is empty.
    values[point] = above > -MESH_LIMIT ? min(above, MESH_LIMIT) : -MESH_LIMIT;
}
