// Draws rows evenly, and finds the cells of the error map. The map holds for each training view the
// mean loss of the rays through each cell, a square with an edge of config.cell_edge pixels of the
// whole image. A ray drawn by error goes through a cell with a probability proportional to the cell's
// error (as with instant-ngp's error map; Mueller et al. 2022), and through a pixel of the cell as in
// even drawing.
// The including file declares STATE as `state` and, after it, `error_cells`.
// Passes: generate_rays, sum_errors.

// Returns the vertical angle of a panorama's upper edge of row y, from the zenith.
float zenith_angle(Camera camera, uint y)
{
    return clamp((float(y) - camera.center_y) / camera.focal_y + 0.5 * HALF_TURN, 0.0, HALF_TURN);
}

// Returns the share of rows [low, high) among all rows of the image in even drawing. Rows of panoramas
// count by their solid angle, cos(a) - cos(b) = 2 sin((b - a) / 2) sin((b + a) / 2).
float rows_share(Camera camera, uint low, uint high)
{
    if (camera.lens != LENS_EQUIRECTANGULAR)
        return float(high - low) / float(camera.height);
    float top = zenith_angle(camera, 0u), bottom = zenith_angle(camera, camera.height);
    float from = zenith_angle(camera, low), to = zenith_angle(camera, high);
    return sine_cosine(0.5 * (to - from)).x * sine_cosine(0.5 * (to + from)).x /
           max(sine_cosine(0.5 * (bottom - top)).x * sine_cosine(0.5 * (bottom + top)).x, 1e-30);
}

// Returns a row of [low, high), drawn by the number `pick` in [0, 1).
uint draw_row(Camera camera, uint low, uint high, float pick)
{
    uint row = low + uint(pick * float(high - low));
    if (camera.lens == LENS_EQUIRECTANGULAR) {
        // The squared sine of half the angle from the zenith is proportional to the solid angle.
        float from = sine_cosine(0.5 * zenith_angle(camera, low)).x;
        float to = sine_cosine(0.5 * zenith_angle(camera, high)).x;
        float area = mix(from * from, to * to, pick);
        float angle = 2.0 * angle_of(sqrt(area), sqrt(max(1.0 - area, 0.0))) - 0.5 * HALF_TURN;
        row = uint(max(angle * camera.focal_y + camera.center_y, 0.0));
    }
    return clamp(row, low, high - 1u);
}

// Returns the number of the error map's cell that contains a pixel.
uint cell_of(Camera camera, uvec2 pixel)
{
    uvec2 at = (uvec2(0u, camera.first_row) + pixel * camera.shrink) / config.cell_edge;
    return camera.first_cell + at.y * camera.cell_columns + at.x;
}

// Returns the error of a cell of the map; 0 if the cell has no ray so far or is an outlier cell, or if
// its error comes from a damaged checkpoint.
float error_of(uint cell)
{
    float error = error_cells[cell].error;
    return error > 0.0 && error < 1e6 ? error : 0.0;
}

// Returns the number of cells in the rows of cells that have pixels of the slot's camera.
uint slot_cell_count(Camera camera)
{
    uint last_row = (camera.first_row + camera.height * camera.shrink - 1u) / config.cell_edge;
    return (last_row - camera.first_row / config.cell_edge + 1u) * camera.cell_columns;
}

// Returns the first pixel of a slot's cell and the pixel after its last.
uvec4 cell_pixels(Camera camera, uint cell)
{
    uvec2 at = uvec2(cell % camera.cell_columns, camera.first_row / config.cell_edge + cell / camera.cell_columns);
    uvec2 size = uvec2(camera.width, camera.height), first = uvec2(0u, camera.first_row);
    uvec2 low = (max(at * config.cell_edge, first) - first) / camera.shrink;
    uvec2 high = ((at + 1u) * config.cell_edge - first) / camera.shrink;
    return uvec4(min(low, size), min(high, size));
}

// Returns the number of a slot's cell in the error map.
uint map_cell(Camera camera, uint cell)
{
    return camera.first_cell + camera.first_row / config.cell_edge * camera.cell_columns + cell;
}

// The next three functions return indices into REDUCE: of a slot's ErrorSums, of the sum of masses up
// to a slot's cell, and of the cell's share in even drawing.
uint slot_sums(uint slot)
{
    return REDUCE_SLOTS + 3u * slot;
}

uint cell_mass(uint slot, uint cell)
{
    return slot_sums(config.slot_count) + slot * config.slot_cells + cell;
}

uint cell_share(uint slot, uint cell)
{
    return cell_mass(config.slot_count + slot, cell);
}
