#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sum_errors, one workgroup per slot: computes prefix sums of the masses of the slot's cells, in
// which drawing by error searches a cell. A cell's mass is its error times its share in even drawing,
// masked pixels included: a ray that draws a masked pixel draws again. The cells' shares, without
// masked pixels, are computed once per image on the device.
//
//   buffer   shape                                                          access
//   CAMERAS  [camera] (read), counted (write)                               read, write
//   PIXELS   [pixel] RGBA8                                                  read
//   STATE    [view][cell] ErrorCell                                         read
//   REDUCE   REDUCE_SLOTS: ErrorSums of each slot alone, masses and shares  read, write
#include "shared/common.glsl"

layout(std430, BINDING(CAMERAS)) writeonly buffer CountedBuffer { Camera counted_cameras[]; };
layout(std430, BINDING(PIXELS)) readonly buffer PixelBuffer { uint pixels[]; };
layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };

#include "rays/camera.glsl"
#include "rays/error_map.glsl"
#include "rays/scan_sums.glsl"

// Returns the cell's share in even drawing among the pixels of the camera, without masked pixels.
float used_share(Camera camera, uvec4 area)
{
    float share = 0.0;
    for (uint y = area.y; y < area.w; y++) {
        uint used = 0u;
        for (uint x = area.x; x < area.z; x++)
            used += pixels[camera.first_pixel + y * camera.width + x] != PIXEL_IGNORED ? 1u : 0u;
        share += float(used) * rows_share(camera, y, y + 1u);
    }
    return share / float(camera.width);
}

// Returns the sums of a cell alone. Computes the cell's share unless the camera is `counted`.
vec3 sums_of_cell(Camera camera, uint slot, uint cell)
{
    uvec4 area = cell_pixels(camera, cell);
    if (area.x >= area.z || area.y >= area.w)
        return vec3(0.0);
    if (camera.counted == 0u)
        reduce[cell_share(slot, cell)] = used_share(camera, area) * camera.strip_share;
    float share = reduce[cell_share(slot, cell)];
    float error = error_of(map_cell(camera, cell));
    float all = float(area.z - area.x) / float(camera.width) * rows_share(camera, area.y, area.w);
    return vec3(share > 0.0 ? error * all * camera.strip_share : 0.0, error * share, share);
}

void main()
{
    for (uint slot = gl_WorkGroupID.x; slot < config.slot_count; slot += gl_NumWorkGroups.x) {
        uint view = config.slot_view + slot / config.slot_turns * config.view_stride + slot % config.slot_turns;
        Camera camera = cameras[view];
        uint count = slot_cell_count(camera);
        vec3 before = vec3(0.0);
        for (uint first = 0u; first < count; first += LOCAL_SIZE) {
            uint cell = first + gl_LocalInvocationID.x;
            vec3 sums = scan_sums(cell < count ? sums_of_cell(camera, slot, cell) : vec3(0.0), before);
            if (cell < count)
                reduce[cell_mass(slot, cell)] = sums.x;
        }
        barrier();
        if (gl_LocalInvocationID.x == 0u) {
            uint at = slot_sums(slot);
            reduce[at] = before.x;
            reduce[at + 1u] = before.y;
            reduce[at + 2u] = before.z;
            counted_cameras[view].counted = 1u;
        }
    }
}
