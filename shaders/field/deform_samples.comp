#version 460
#extension GL_GOOGLE_include_directive : require
// Pass deform_samples (deformation): stores the canonical position of each row's sample, for a chunk
// of rows. See field/canonical.glsl.
//
//   buffer         shape                             access
//   RAYS, SAMPLES  [ray], [sample]                   read
//   FEATURES       [row] columns: displacement       read
//   FIELD          [sample] xyz: canonical position  write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/displacement.glsl"

layout(std430, BINDING(FIELD)) writeonly buffer CanonicalBuffer { vec4 canonical[]; };

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint row = gl_GlobalInvocationID.x; row < count; row += stride) {
        uint index = row_sample(row);
        vec3 direction, position = sample_position(index, direction);
        canonical[index].xyz = position + displacement(row);
    }
}
