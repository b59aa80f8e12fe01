#version 460
#extension GL_GOOGLE_include_directive : require
// Pass import_densities: copies densities that the caller computed for the samples of list_samples to
// FIELD. NaN and infinity, which would stay in the occupancy grid for ever, become 0 and are counted;
// negative densities become 0 and are not counted.
//
//   buffer            shape                              access
//   LISTED_DENSITIES  [sample] f32                       read
//   LIST_SUMMARY      samples (read), unusable (write)   read, write
//   FIELD             [sample] vec4: (0, 0, 0, density)  write
#include "shared/common.glsl"

layout(std430, BINDING(FIELD)) writeonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(LIST_SUMMARY)) buffer ListedBuffer { ListSummary listed; };
layout(std430, BINDING(LISTED_DENSITIES)) readonly buffer DensityBuffer { float densities[]; };

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < listed.samples; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        float density = densities[i];
        bool usable = !isnan(density) && !isinf(density);
        if (!usable)
            atomicAdd(listed.unusable, 1u);
        field[i] = vec4(0.0, 0.0, 0.0, usable ? max(density, 0.0) : 0.0);
    }
}
