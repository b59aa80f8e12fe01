#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_points: lists the grid points of the slab's new layers that are in occupied cells, for
// evaluation; all other points become empty. So the mesh omits the cells that rendering skips.
// Without an occupancy grid the pass lists all points in the domain of the field.
//
//   buffer          shape                            access
//   MESH            struct MeshGrid                  read
//   OCCUPANCY_BITS  [time bin][cascade][cell] 1 bit  read
//   STATE           live_count: length of the list   write
//   MESH_VALUES     [layer][y][x] f32                write
//   MESH_POINTS     [listed point] u32               write
#include "render/mesh_grid.glsl"
#include "rays/occupancy.glsl"
#include "rays/empty_space.glsl"

layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY_BITS)) readonly buffer BitBuffer { uint bits[]; };
layout(std430, BINDING(MESH_VALUES)) writeonly buffer ValueBuffer { float values[]; };
layout(std430, BINDING(MESH_POINTS)) writeonly buffer PointBuffer { uint points[]; };

bool is_evaluated(vec3 position)
{
    if (SAMPLING != SAMPLING_OCCUPANCY)
        return is_trained(position);
    uint cascade = cascade_at(position, 0.0);
    uvec3 cell = to_unsigned(clamp(floor(to_cells(position, cascade)), 0.0, float(RESOLUTION - 1u)));
    uint index = time_bin_of(grid.time) * TIME_BIN_CELLS + cascade * CELLS + morton_encode(cell);
    return is_trained(position) && (bits[index >> 5] >> (index & 31u) & 1u) != 0u;
}

void main()
{
    // push.a: the grid's layer of the slab's first new layer.
    uint count = grid.layers * layer_points(), before = MESH_OVERLAP * layer_points();
    uvec3 last = uvec3(grid.points[0], grid.points[1], grid.points[2]) - 1u;
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = gl_WorkGroupID.x * TILE + k * LOCAL_SIZE + gl_LocalInvocationID.x;
        uvec3 p = slab_point(min(i, count - 1u)) + uvec3(0u, 0u, push.a);
        bool is_inside = i < count && all(greaterThan(p, uvec3(0u))) && all(lessThan(p, last));
        bool is_listed = is_inside && is_evaluated(grid_position(vec3(p)));
        if (i < count && !is_listed)
            values[before + i] = -MESH_LIMIT;
        uvec4 ballot = subgroupBallot(is_listed);
        uint listed = subgroupBallotBitCount(ballot), first = 0u;
        if (subgroupElect() && listed > 0u)
            first = atomicAdd(state.live_count, listed);
        uint slot = subgroupBroadcastFirst(first) + subgroupBallotExclusiveBitCount(ballot);
        if (is_listed)
            points[slot] = before + i;
    }
}
