#version 460
#extension GL_GOOGLE_include_directive : require
// Raises the occupancy grid to the voxels' densities.
#include "shared/common.glsl"
#include "rays/occupancy.glsl"
#include "field/output_activations.glsl"
#include "voxels.glsl"

bool any_row(bool needed)
{
    return subgroupAny(needed);
}

float density(vec3 position)
{
    return density_of(interpolate_voxels(position).w);
}

#include "rays/update_occupancy.glsl"
