/* Reference march without skipping: every step of the ray is looked up in the grid. */
#include "reference/reference.h"

#include <math.h>
#include <string.h>

/* Bound of rounding errors of positions, relative to their size and to the step's number. It also
 * covers contracted positions, whose small errors are large distances far from the centre. */
#define SLACK 4e-6

static double slack_at(const struct reference_space *space, double size)
{
    return SLACK * fmax(size, 0.5) * (space->contracted ? fmax(size / space->side, 1) : 1);
}

struct location {
    uint32_t cascade;
    uint32_t cell; /* index in the grid */
};

static uint32_t cell_at(const struct reference_grid *grid, uint32_t cascade,
                        const double position[3])
{
    const struct reference_space cube = {.side = ldexp(1, (int)cascade)};
    uint32_t n = grid->resolution, cell[3];
    double unit[3];
    bool outer = cascade == reference_cubes(&grid->space);
    reference_to_unit(outer ? &grid->space : &cube, position, unit);
    for (int i = 0; i < 3; i++)
        cell[i] = (uint32_t)fmin(fmax(unit[i] * n, 0), n - 1);
    return cascade * n * n * n + reference_morton(cell);
}

/* Returns the finest cube that contains the position and whose cells are not smaller than the step,
 * or contracted space outside all cubes. */
static uint32_t cascade_at(const struct reference_grid *grid, double step, const double position[3])
{
    double reach = 0;
    for (int i = 0; i < 3; i++)
        reach = fmax(reach, 2 * fabs(position[i] - 0.5));
    uint32_t cascade = 0, cubes = reference_cubes(&grid->space);
    if (grid->space.contracted && reach > grid->space.side)
        return cubes;
    while (cascade + 1 < cubes && ldexp(1, (int)cascade) < fmax(reach, step * grid->resolution))
        cascade++;
    return cascade;
}

/* Looks up a position with rounding errors: moved a little in each direction, with the step a
 * little shorter and longer. */
static enum reference_step look_up(const struct reference_grid *grid, double step, double slack,
                                   const double position[3], struct location *location)
{
    bool any = false, all = true;
    location->cascade = cascade_at(grid, step, position);
    location->cell = cell_at(grid, location->cascade, position);
    for (int change = -1; change <= 1; change++)
        for (uint32_t corner = 0; corner < 9; corner++) {
            double moved[3];
            for (int i = 0; i < 3; i++)
                moved[i] = position[i] + (corner == 8 ? 0 : (corner >> i & 1u) ? slack : -slack);
            uint32_t cascade = cascade_at(grid, step * (1 + change * SLACK), moved);
            bool occupied = grid->occupied[cell_at(grid, cascade, moved)];
            any = any || occupied;
            all = all && occupied;
        }
    return all ? REFERENCE_OCCUPIED : any ? REFERENCE_EITHER : REFERENCE_EMPTY;
}

static bool block_empty(const struct reference_grid *grid, uint32_t cell)
{
    for (uint32_t i = cell / 512 * 512; i < cell / 512 * 512 + 512; i++)
        if (grid->occupied[i])
            return false;
    return true;
}

/* Returns whether a skipping march would not look up this step: the march skips the rest of an
 * empty cell or block, although the step length now belongs to a coarser cascade. */
static bool skipped_before(const struct reference_grid *grid, const struct location *finer,
                           const struct location *now, const double position[3])
{
    if (finer->cascade >= now->cascade || grid->occupied[finer->cell])
        return false;
    for (int i = 0; i < 3; i++)
        if (fabs(position[i] - 0.5) > ldexp(0.5, (int)finer->cascade))
            return false;
    uint32_t cell = cell_at(grid, finer->cascade, position);
    return cell == finer->cell || (cell / 512 == finer->cell / 512 && block_empty(grid, cell));
}

size_t reference_march(const struct reference_grid *grid, const struct reference_stepping *stepping,
                       const double origin[3], const double direction[3], double first, double last,
                       enum reference_step *steps, size_t capacity)
{
    size_t count = 0;
    struct location finer = {.cascade = UINT32_MAX}, location, before = finer;
    for (; first + (double)count <= last + 1e-3 && count < capacity; count++) {
        double n = first + (double)count;
        double t = reference_distance_after(stepping, n);
        double position[3], size = t;
        for (int i = 0; i < 3; i++) {
            position[i] = origin[i] + t * direction[i];
            size = fmax(size, fabs(origin[i]));
        }
        double step = reference_step_size(stepping, t);
        steps[count] = look_up(grid, step, slack_at(&grid->space, size), position, &location);
        if (count > 0 && location.cascade > before.cascade)
            finer = before;
        if (skipped_before(grid, &finer, &location, position) || n > last - 1e-3)
            steps[count] = steps[count] == REFERENCE_EMPTY ? REFERENCE_EMPTY : REFERENCE_EITHER;
        before = location;
    }
    return count;
}
