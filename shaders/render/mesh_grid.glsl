// The slab of grid points that the passes of a mesh work on: see MeshGrid in layout.h. Includes
// shared/common.glsl.
#include "shared/common.glsl"

layout(std430, BINDING(MESH)) readonly buffer MeshBuffer { MeshGrid grid; };

const uint TILE = LOCAL_SIZE * MESH_TILE_STEPS;

uint layer_points()
{
    return grid.points[0] * grid.points[1];
}

// Point number i of layers from 0 on.
uvec3 slab_point(uint i)
{
    return uvec3(i % grid.points[0], i / grid.points[0] % grid.points[1], i / layer_points());
}

// Where a point of the whole grid lies; `z` counts from its lowest layer.
vec3 grid_position(vec3 point)
{
    return vec3(grid.origin[0], grid.origin[1], grid.origin[2]) + grid.spacing * point;
}

// As the rest of the grid counts layers, point number i of the slab's values does when the first of
// its new layers is the grid's `first_new`.
vec3 point_position(uint i, uint first_new)
{
    uvec3 p = slab_point(i);
    return grid_position(vec3(p.xy, float(p.z + first_new) - float(MESH_OVERLAP)));
}
