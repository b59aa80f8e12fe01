/* Reference occupancy grid: cascade c is a cube of side 2^c around (0.5, 0.5, 0.5) (Mueller et al.
 * 2022, appendix E.2); in contracted space the last cascade is all of space. */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>

uint32_t reference_morton(const uint32_t cell[3])
{
    uint32_t index = 0;
    for (uint32_t bit = 0; bit < 10; bit++)
        for (uint32_t axis = 0; axis < 3; axis++)
            index |= (cell[axis] >> bit & 1u) << (3 * bit + axis);
    return index;
}

void reference_morton_cell(uint32_t index, uint32_t cell[3])
{
    cell[0] = cell[1] = cell[2] = 0;
    for (uint32_t bit = 0; bit < 10; bit++)
        for (uint32_t axis = 0; axis < 3; axis++)
            cell[axis] |= (index >> (3 * bit + axis) & 1u) << bit;
}

uint32_t reference_cubes(const struct reference_space *space)
{
    return 1 + (uint32_t)round(log2(space->side));
}

void reference_cell_position(const struct reference_space *space, uint32_t resolution,
                             uint32_t cascade, const uint32_t cell[3], const double inside[3],
                             double position[3])
{
    double side = ldexp(1, (int)cascade), unit[3];
    for (int i = 0; i < 3; i++) {
        unit[i] = (cell[i] + inside[i]) / resolution;
        position[i] = 0.5 - side / 2 + side * unit[i];
    }
    if (cascade == reference_cubes(space))
        reference_from_unit(space, unit, position);
}

/* Returns whether one of the 2x2x2 finer cells in a cell of an outer cascade is occupied. */
static bool finer_occupied(const struct reference_grid *grid, uint32_t cascade,
                           const uint32_t cell[3])
{
    uint32_t n = grid->resolution, cells = n * n * n;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t finer[3];
        for (uint32_t i = 0; i < 3; i++) {
            /* In finer cells, counted from the finer cascade's corner. */
            int64_t at = 2 * (int64_t)cell[i] + (k >> i & 1u) - n / 2;
            if (at < 0 || at >= n)
                return false;
            finer[i] = (uint32_t)at;
        }
        if (grid->occupied[(cascade - 1) * cells + reference_morton(finer)])
            return true;
    }
    return false;
}

struct reference_grid reference_grid(const struct reference_space *space, uint32_t resolution,
                                     uint32_t cascades, const float *values, double threshold)
{
    uint32_t cells = resolution * resolution * resolution;
    struct reference_grid grid = {resolution, cascades, base_alloc((size_t)cells * cascades, 1),
                                  *space};
    for (uint32_t i = 0; i < cells * cascades; i++) {
        uint32_t cell[3];
        reference_morton_cell(i % cells, cell);
        grid.occupied[i] =
            values[i] > threshold || (i >= cells && i / cells < reference_cubes(space) &&
                                      finer_occupied(&grid, i / cells, cell));
    }
    return grid;
}

uint32_t reference_grid_words(const struct reference_grid *grid)
{
    uint32_t cells = grid->resolution * grid->resolution * grid->resolution * grid->cascades;
    return cells / 32 + cells / 512;
}

bool reference_grid_bit(const uint32_t *words, uint64_t cell)
{
    return words[cell / 32] >> (cell % 32) & 1u;
}
