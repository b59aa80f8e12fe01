/* Reads and replaces the occupancy grid for programs. On the device cells are in Morton order. */
#include <math.h>
#include <stdlib.h>

#include "rays/rays.h"
#include "step/internal.h"

/* Returns every third bit, from the lowest on, of the bits of a coordinate. */
static uint64_t spread(uint32_t coordinate)
{
    uint64_t bits = 0;
    for (unsigned bit = 0; bit < 20; bit++)
        bits |= (uint64_t)(coordinate >> bit & 1u) << (3 * bit);
    return bits;
}

/* Calls `move` with each cell's index in the caller's arrays and in the device's. */
static void visit(const struct vkn_occupancy *grid, void *context,
                  void (*move)(void *context, uint64_t public, uint64_t device))
{
    const uint64_t n = grid->resolution;
    for (uint64_t part = 0; part < (uint64_t)grid->time_bins * grid->cascades; part++)
        for (uint32_t z = 0; z < n; z++)
            for (uint32_t y = 0; y < n; y++) {
                uint64_t row = spread(z) << 2 | spread(y) << 1;
                uint64_t at = ((part * n + z) * n + y) * n;
                for (uint32_t x = 0; x < n; x++)
                    move(context, at + x, part * n * n * n + (row | spread(x)));
            }
}

/* Arrays of a copy. `words` and `cells` are the device's. */
struct copy {
    const struct vkn_occupancy *grid;
    float *cells;
    const uint32_t *words;
};

static void read_value(void *context, uint64_t public, uint64_t device)
{
    const struct copy *copy = context;
    copy->grid->values[public] = copy->cells[device];
}

static void read_bit(void *context, uint64_t public, uint64_t device)
{
    const struct copy *copy = context;
    copy->grid->occupied[public] = copy->words[device / 32] >> device % 32 & 1u;
}

static void write_value(void *context, uint64_t public, uint64_t device)
{
    const struct copy *copy = context;
    copy->cells[device] = copy->grid->values[public];
}

/* Describes the step's grid. */
static vkn_status describe(const struct step *step, const char *what, struct vkn_occupancy *grid)
{
    const struct vkn_config *config = &step->setup.config;
    if (!rays_use_grid(config))
        return base_fail(VKN_BAD_INPUT, "%s: march.sampling: only occupancy has a grid", what);
    grid->resolution = config->march.resolution;
    grid->cascades = rays_cascades(config);
    grid->time_bins = rays_time_bins(config);
    grid->side = 1 / config->scene.scale;
    for (int i = 0; i < 3; i++)
        grid->center[i] = (0.5 - config->scene.offset[i]) / config->scene.scale;
    return gpu_download(step->device, &step->buffers.at[BIND_STATE],
                        offsetof(struct State, threshold), &grid->threshold,
                        sizeof grid->threshold);
}

static vkn_status read_arrays(const struct step *step, const struct vkn_occupancy *grid)
{
    const struct gpu_buffer *cells = &step->buffers.at[BIND_OCCUPANCY],
                            *bits = &step->buffers.at[BIND_OCCUPANCY_BITS];
    void *data = base_alloc(cells->size > bits->size ? cells->size : bits->size, 1);
    struct copy copy = {grid, data, data};
    vkn_status status = data ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && grid->values) {
        status = gpu_download(step->device, cells, 0, data, cells->size);
        if (status == VKN_OK)
            visit(grid, &copy, read_value);
    }
    if (status == VKN_OK && grid->occupied) {
        status = gpu_download(step->device, bits, 0, data, bits->size);
        if (status == VKN_OK)
            visit(grid, &copy, read_bit);
    }
    free(data);
    return status;
}

vkn_status step_read_occupancy(struct step *step, const char *what, struct vkn_occupancy *given)
{
    struct vkn_occupancy own, *grid = &own;
    BASE_TRY(BASE_READ(what, vkn_occupancy, given, grid, occupied));
    BASE_TRY(describe(step, what, grid));
    if (grid->values || grid->occupied)
        BASE_TRY(read_arrays(step, grid));
    return BASE_FILL(vkn_occupancy, grid, given, occupied);
}

static vkn_status check_number(const char *what, const char *member, uint32_t given, uint32_t right)
{
    if (given == right)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: grid: %s: %u: must be %u", what, member, given, right);
}

/* Checks the caller's grid against the step's. */
static vkn_status check(const char *what, const struct vkn_occupancy *grid,
                        const struct vkn_occupancy *right)
{
    BASE_TRY(check_number(what, "resolution", grid->resolution, right->resolution));
    BASE_TRY(check_number(what, "cascades", grid->cascades, right->cascades));
    BASE_TRY(check_number(what, "time_bins", grid->time_bins, right->time_bins));
    if (!grid->values)
        return base_fail(VKN_BAD_INPUT, "%s: grid: `values` is NULL", what);
    if (!isfinite(grid->threshold))
        return base_fail(VKN_BAD_INPUT, "%s: grid: threshold: %g: must be finite", what,
                         (double)grid->threshold);
    uint64_t n = grid->resolution, count = n * n * n * grid->cascades * grid->time_bins;
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(grid->values[i]))
            return base_fail(VKN_BAD_INPUT, "%s: grid: values: element %llu is %g: must be finite",
                             what, (unsigned long long)i, (double)grid->values[i]);
    return VKN_OK;
}

vkn_status step_write_occupancy(struct step *step, const char *what,
                                const struct vkn_occupancy *given)
{
    struct vkn_occupancy own, right, *grid = &own;
    const struct gpu_buffer *cells = &step->buffers.at[BIND_OCCUPANCY];
    BASE_TRY(BASE_READ(what, vkn_occupancy, given, grid, occupied));
    BASE_TRY(describe(step, what, &right));
    BASE_TRY(check(what, grid, &right));
    struct copy copy = {.grid = grid, .cells = base_alloc(cells->size, 1)};
    vkn_status status = copy.cells ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        visit(grid, &copy, write_value);
        status = gpu_upload(step->device, cells, 0, copy.cells, cells->size);
    }
    free(copy.cells);
    if (status == VKN_OK)
        status =
            gpu_upload(step->device, &step->buffers.at[BIND_STATE],
                       offsetof(struct State, threshold), &grid->threshold, sizeof grid->threshold);
    return status == VKN_OK ? step_pack_occupancy(step) : status;
}
