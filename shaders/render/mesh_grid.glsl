// Declares the slab of grid points on which the mesh passes work (MeshGrid in shared/surface.h), and
// returns positions of its points. This file includes shared/common.glsl.
// Passes: all of meshes, textures and splats. Reads MESH.
#include "shared/common.glsl"

layout(std430, BINDING(MESH)) readonly buffer MeshBuffer { MeshGrid grid; };

const uint TILE = LOCAL_SIZE * MESH_TILE_STEPS;

uint layer_points()
{
    return grid.points[0] * grid.points[1];
}

// Returns the grid indices of point i of the slab, layers counted from 0.
uvec3 slab_point(uint i)
{
    return uvec3(i % grid.points[0], i / grid.points[0] % grid.points[1], i / layer_points());
}

// Rotates a vector from the grid's axes to training space.
vec3 grid_vector(vec3 along)
{
    const float u[9] = grid.axes;
    return mat3(u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8]) * along;
}

// Returns the position in training space of a point whose z counts from the grid's lowest layer.
vec3 grid_position(vec3 point)
{
    return vec3(grid.origin[0], grid.origin[1], grid.origin[2]) + grid_vector(grid.spacing * point);
}

// Returns the position of point i of the slab's values, when the slab's first new layer is the grid's
// layer `first_new`.
vec3 point_position(uint i, uint first_new)
{
    uvec3 p = slab_point(i);
    return grid_position(vec3(p.xy, float(p.z + first_new) - float(MESH_OVERLAP)));
}
