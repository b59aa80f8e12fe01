#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sample_normals: computes the negative gradient of log density at each sample of a picture. The
// vector is normal to the surface of equal density and longer at sharper surfaces, so that sharp
// surfaces have most weight in the mean along a ray.
//
// The gradient is a difference between the corners of a tetrahedron (Quilez, Normals for an SDF) some
// sample widths wide: the exact gradient would jump at every face of the hash grid's cells. The pass
// computes in FP32 for any precision of the field, because differences amplify rounding.
//
//   buffer         shape                   access
//   STATE          sample_count            read
//   RAYS, SAMPLES  [ray], [sample]         read
//   FIELD          [sample] vec4: density  read
//   PARAMS         [parameter] f32         read
//   NORMALS        [sample] vec4           write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/density.glsl"
#include "field/sample.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(NORMALS)) writeonly buffer NormalBuffer { vec4 normals[]; };

const float REACH = 1.0;        // offset of the corners along each axis, in sample widths
const float LEAST_ALPHA = 1e-3; // density * width below which a sample is too transparent to need a normal

// Called by whole workgroups.
vec3 density_gradient(vec3 position, float reach)
{
    vec3 gradient = vec3(0.0);
    [[dont_unroll]] for (uint k = 0; k < 4u; k++) {
        vec3 corner = vec3((k & 1u) != 0u ? 1.0 : -1.0, (k & 2u) != 0u ? 1.0 : -1.0, 1.0);
        corner.z = corner.x * corner.y;
        gradient += corner * log_density(position + reach * corner);
    }
    return gradient / (4.0 * reach);
}

void main()
{
    uint count = min(state.sample_count, config.sample_capacity);
    uint stride = gl_NumWorkGroups.x * TILE_ROWS;
    uint mine = tile_row();
    // All invocations stay in the loop, as in field_forward.comp.
    uint first = gl_WorkGroupID.x * TILE_ROWS;
    if (first >= count)
        return;
    do {
        uint i = min(first + mine, count - 1u);
        float width = samples[i].width;
        vec3 direction, position = sample_position(i, direction), normal = vec3(0.0);
        // A sample that needs no normal gets none, even if a neighbour's is computed: which samples
        // are neighbours depends on timing.
        bool needed = field[i].w * width >= LEAST_ALPHA;
        if (any_row(needed)) {
            vec3 gradient = density_gradient(position, REACH * width);
            if (needed)
                normal = -gradient;
        }
        if (first + mine < count && invocation_in_row() == 0u)
            normals[i] = vec4(normal, 0.0);
        first += stride;
    } while (first < count);
}
