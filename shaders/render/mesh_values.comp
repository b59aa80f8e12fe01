#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_values: stores log(density) - log(surface density), clamped, at each listed grid point.
// The logarithm is needed because at a surface the density rises by orders of magnitude between
// neighbouring points. Values are clamped because very low and very high densities do not locate the
// surface.
//
//   buffer       shape                   access
//   MESH         struct MeshGrid         read
//   FIELD        [sample] vec4: density  read
//   MESH_POINTS  [listed point] u32      read
//   MESH_VALUES  [layer][y][x] f32       write
#include "render/mesh_grid.glsl"
#include "shared/contraction.glsl"

layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(MESH_VALUES)) writeonly buffer ValueBuffer { float values[]; };
layout(std430, BINDING(MESH_POINTS)) readonly buffer PointBuffer { uint points[]; };

void main()
{
    // push.a to push.c: as in mesh_samples.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.b)
        return;
    uint point = points[push.a + i];
    float above = log(max(field[i].w, 1e-30)) - grid.threshold;
    // In contracted space densities are per unit of contracted radius: see width_at in
    // shared/contraction.glsl.
    if (CONTRACTION == CONTRACTION_CUBE)
        above -= 2.0 * log(max(maximum_norm(from_center(point_position(point, push.c))), 1.0));
    // NaN counts as empty.
    values[point] = above > -MESH_LIMIT ? min(above, MESH_LIMIT) : -MESH_LIMIT;
}
