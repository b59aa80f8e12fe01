/* Meshes a field: evaluates it at grid points for marching cubes, and colours the vertices. */
#include "render/mesh.h"

#include <math.h>
#include <string.h>

#include "render/field_query.h"

#define LOCAL_SIZE_MESH      64u
/* Inverse of the path length with transmittance 1/2 at the default surface density. */
#define SURFACE_SIZE_INVERSE 128.0

/* ---- the grid ------------------------------------------------------------------------------ */

/* Rounds to a multiple of the smallest power of ten that is at least `size`. Single precision can
 * mostly represent such a number exactly. */
static double round_origin(double position, double size)
{
    double step = pow(10, ceil(log10(size))), steps = pow(10, -ceil(log10(size)));
    return step >= 1 ? round(position / step) * step : round(position * steps) / steps;
}

void render_local_origin(const struct vkn_scene *scene, double origin[3])
{
    bool is_far = scene_needs_double(scene->offset);
    for (int i = 0; i < 3; i++)
        origin[i] =
            is_far ? round_origin((0.5 - scene->offset[i]) / scene->scale, 1 / scene->scale) : 0.0;
}

bool render_has_origin(const double origin[3])
{
    return origin[0] != 0.0 || origin[1] != 0.0 || origin[2] != 0.0;
}

void render_local_offset(const struct vkn_scene *scene, float offset[3])
{
    double origin[3];
    render_local_origin(scene, origin);
    for (int i = 0; i < 3; i++)
        offset[i] = (float)(origin[i] * scene->scale + scene->offset[i]);
}

/* A grid's box in training space: its centre, axes and half edges. */
struct grid_box {
    double center[3], axes[3][3], half[3];
};

/* Transforms the box to training space. Without one, returns the unit cube. */
static struct grid_box place_box(const struct vkn_scene *scene, const struct scene_box *box)
{
    const bool has_box = scene_box_given(box);
    struct grid_box placed;
    scene_box_axes(box, placed.axes);
    for (int i = 0; i < 3; i++) {
        double middle = 0.5 * (box->low[i] + box->high[i]);
        placed.center[i] = has_box ? middle * scene->scale + scene->offset[i] : 0.5;
        placed.half[i] = has_box ? 0.5 * (box->high[i] - box->low[i]) * scene->scale : 0.5;
    }
    return placed;
}

/* Fails unless the box's extent along each of the dataset's axes overlaps the trained cube's. */
static vkn_status check_box(const struct vkn_scene *scene, const struct grid_box *box)
{
    double side = 0.5 * scene->aabb_scale;
    for (int i = 0; i < 3; i++) {
        double reach = 0;
        for (int k = 0; k < 3; k++)
            reach += fabs(box->axes[k][i]) * box->half[k];
        if (fabs(box->center[i] - 0.5) < reach + side)
            continue;
        const double limits[4] = {box->center[i] - reach, box->center[i] + reach, 0.5 - side,
                                  0.5 + side};
        char texts[4][40];
        for (int n = 0; n < 4; n++)
            config_print_number(texts[n], (limits[n] - scene->offset[i]) / scene->scale, false);
        return base_fail(VKN_BAD_INPUT,
                         "crop: %s to %s along %c is outside of what was trained, %s to %s",
                         texts[0], texts[1], "xyz"[i], texts[2], texts[3]);
    }
    return VKN_OK;
}

/* Returns the step in training space that corners of a box are rounded to. The step is coarser than
 * the rounding error of a conversion to dataset units and back: a box that was printed gives the
 * same grid, bit for bit, when it is passed again. */
static double corner_step(const struct vkn_scene *scene)
{
    double largest = 1;
    for (int i = 0; i < 3; i++)
        largest = fmax(largest, fabs(scene->offset[i]));
    return ldexp(1, ilogb(largest) - 46);
}

static double to_multiple(double value, double step)
{
    return round(value / step) * step;
}

/* Sets the points' number, axes and origin: voxels fill the box from its centre. */
static void set_grid_points(const struct grid_box *box, double spacing, double step,
                            struct MeshGrid *grid)
{
    double origin[3] = {box->center[0], box->center[1], box->center[2]};
    for (int k = 0; k < 3; k++) {
        uint32_t voxels = (uint32_t)fmax(1.0, ceil(2 * box->half[k] / spacing - 1e-3));
        grid->points[k] = voxels + 1;
        for (int i = 0; i < 3; i++) {
            grid->axes[3 * k + i] = (float)box->axes[k][i];
            origin[i] -= box->axes[k][i] * (0.5 * voxels * spacing);
        }
    }
    for (int i = 0; i < 3; i++)
        grid->origin[i] = (float)to_multiple(origin[i], step);
}

vkn_status render_mesh_grid(const struct vkn_scene *scene, const struct vkn_config *config,
                            const struct render_mesh_params *params, struct MeshGrid *grid)
{
    BASE_TRY(scene_box_check(&params->box));
    const struct grid_box box = place_box(scene, &params->box);
    double longest = 0.0;
    if (config->scene.contraction != VKN_CONTRACTION_CUBE)
        BASE_TRY(check_box(scene, &box));
    if (params->resolution < 1 || params->resolution >= MARCHING_MAX_POINTS)
        return base_fail(VKN_BAD_INPUT, "resolution: %u is not from 1 to %u", params->resolution,
                         MARCHING_MAX_POINTS - 1);
    for (int i = 0; i < 3; i++)
        longest = fmax(longest, 2 * box.half[i]);
    double step = corner_step(scene);
    double spacing = to_multiple(longest / params->resolution, step / MARCHING_MAX_POINTS);
    if (!(spacing > 0))
        return base_fail(VKN_BAD_INPUT,
                         "crop: edges of %g are too small at this distance from the origin",
                         longest / scene->scale);
    *grid = (struct MeshGrid){.spacing = (float)spacing, .scale = (float)scene->scale};
    render_local_offset(scene, grid->offset);
    set_grid_points(&box, spacing, step, grid);
    double threshold = params->threshold > 0.0 ? params->threshold / scene->scale
                                               : SURFACE_SIZE_INVERSE * log(2.0);
    grid->threshold = (float)log(threshold);
    if (!isfinite(grid->threshold))
        return base_fail(VKN_BAD_INPUT, "threshold: %g is not a density", params->threshold);
    return VKN_OK;
}

double render_mesh_threshold(const struct MeshGrid *grid)
{
    return exp((double)grid->threshold) * (double)grid->scale;
}

double render_mesh_voxel(const struct MeshGrid *grid)
{
    return (double)grid->spacing / (double)grid->scale;
}

void render_mesh_box(const struct vkn_scene *scene, const struct MeshGrid *grid,
                     const double rotation[3], struct scene_box *box)
{
    double axes[3][3], shift[3] = {0}; /* shift: from the grid's origin to the box's low corner */
    *box = scene_box_of(shift, shift, rotation);
    scene_box_axes(box, axes);
    for (int k = 0; k < 3; k++) {
        double half = 0.5 * (grid->points[k] - 1) * ((double)grid->spacing / scene->scale);
        shift[k] -= half;
        for (int i = 0; i < 3; i++)
            shift[i] += axes[k][i] * half;
    }
    for (int i = 0; i < 3; i++) {
        box->low[i] = ((double)grid->origin[i] - scene->offset[i]) / scene->scale + shift[i];
        box->high[i] = box->low[i] + (grid->points[i] - 1) * ((double)grid->spacing / scene->scale);
    }
}

/* ---- passes -------------------------------------------------------------------------------- */

enum mesh_pass { POINTS, SAMPLES, VALUES, HIDDEN, SEEN, COLOR_SAMPLES, COLORS, PASSES };
static const char *const pass_names[PASSES] = {"mesh_points", "mesh_samples", "mesh_values",
                                               "mesh_hidden", "mesh_seen",    "mesh_color_samples",
                                               "mesh_colors"};

struct mesher {
    struct query query;
    struct marching marching;
    const struct visibility_maps *visibility_maps; /* NULL: unseen surfaces are kept as they are */
    bool marks_unseen;                             /* unseen vertices are marked MESH_UNSEEN */
    struct gpu_pipeline *pipelines[PASSES];
    struct report_progress *progress;
    const volatile sig_atomic_t *stop;
};

static void record(const struct mesher *mesher, struct gpu_recording *recording,
                   enum mesh_pass pass, struct Push push, uint32_t groups)
{
    gpu_record_dispatch(recording, mesher->pipelines[pass], mesher->marching.bindings, &push,
                        sizeof push, groups);
}

static uint32_t groups_for(uint32_t invocations)
{
    return (invocations + LOCAL_SIZE_MESH - 1) / LOCAL_SIZE_MESH;
}

static vkn_status interrupted(const struct mesher *mesher)
{
    return base_stop_asked(mesher->stop) ? base_fail(VKN_INTERRUPTED, "interrupted while meshing")
                                         : VKN_OK;
}

/* Lists the grid points of the slab's new layers that lie in occupied cells. */
static vkn_status list_points(struct mesher *mesher, uint32_t first_layer, uint32_t *count)
{
    struct query *query = &mesher->query;
    GPU_ONCE(query->device, "mesh points");
    gpu_record_fill(recording, &query->buffers.at[BIND_STATE], offsetof(struct State, live_count),
                    4, 0);
    gpu_record_barrier(recording);
    record(mesher, recording, POINTS, (struct Push){.a = first_layer}, mesher->marching.tile_count);
    BASE_TRY(gpu_run_once(&recording));
    return gpu_download(query->device, &query->buffers.at[BIND_STATE],
                        offsetof(struct State, live_count), count, sizeof *count);
}

/* Computes the values of `count` listed points from point `first` on. The slab's first new layer is
 * the grid's layer `first_layer`. */
static vkn_status evaluate(struct mesher *mesher, uint32_t first, uint32_t count,
                           uint32_t first_layer)
{
    struct Push push = {.a = first, .b = count, .c = first_layer};
    GPU_ONCE(mesher->query.device, "mesh values");
    record(mesher, recording, SAMPLES, push, groups_for(count));
    field_query_record(&mesher->query, recording, mesher->marching.bindings, count, false);
    record(mesher, recording, VALUES, push, groups_for(count));
    return gpu_run_once(&recording);
}

/* Makes those grid points solid that no training view sees. */
static vkn_status fill_unseen(struct mesher *mesher, uint32_t first_layer)
{
    GPU_ONCE(mesher->query.device, "mesh unseen");
    record(mesher, recording, HIDDEN,
           (struct Push){.a = first_layer, .b = mesher->visibility_maps->views},
           mesher->marching.tile_count);
    return gpu_run_once(&recording);
}

static vkn_status fill(void *context, uint32_t first_layer, bool *any)
{
    struct mesher *mesher = context;
    uint32_t count = 0;
    BASE_TRY(list_points(mesher, first_layer, &count));
    for (uint32_t first = 0; first < count; first += mesher->query.capacity) {
        uint32_t left = count - first;
        BASE_TRY(interrupted(mesher));
        BASE_TRY(evaluate(mesher, first,
                          left < mesher->query.capacity ? left : mesher->query.capacity,
                          first_layer));
    }
    *any = count > 0 || mesher->visibility_maps;
    return mesher->visibility_maps ? fill_unseen(mesher, first_layer) : VKN_OK;
}

static vkn_status finish(void *context, uint32_t count)
{
    struct mesher *mesher = context;
    struct Push push = {.a = count,
                        .b = mesher->visibility_maps ? mesher->visibility_maps->views : 0};
    GPU_ONCE(mesher->query.device, "mesh colours");
    if (mesher->marks_unseen) {
        record(mesher, recording, SEEN, push, groups_for(count));
        gpu_record_compute_barrier(recording);
    }
    record(mesher, recording, COLOR_SAMPLES, push, groups_for(count));
    field_query_record(&mesher->query, recording, mesher->marching.bindings, count, true);
    record(mesher, recording, COLORS, push, groups_for(count));
    return gpu_run_once(&recording);
}

static vkn_status report(void *context, uint32_t done, uint32_t total)
{
    struct mesher *mesher = context;
    if (mesher->progress)
        report_progress_count(mesher->progress, "meshing", done, total);
    return interrupted(mesher);
}

/* ---- entry point --------------------------------------------------------------------------- */

static vkn_status create(const vkn_renderer *renderer, const struct MeshGrid *grid,
                         struct mesher *mesher)
{
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {NULL};
    struct MeshGrid timed_grid = *grid;
    timed_grid.time = renderer->time;
    BASE_TRY(field_query_create(renderer, &mesher->query));
    field_query_bind(&mesher->query, buffers);
    if (mesher->visibility_maps) {
        buffers[BIND_CAMERAS] = &mesher->visibility_maps->cameras;
        buffers[BIND_VISIBILITY_MAPS] = &mesher->visibility_maps->inverse_distance;
    }
    BASE_TRY(marching_create(mesher->query.device, &timed_grid, mesher->query.capacity, buffers,
                             &mesher->marching));
    for (int pass = 0; pass < PASSES; pass++) {
        if ((pass == HIDDEN && !mesher->visibility_maps) || (pass == SEEN && !mesher->marks_unseen))
            continue;
        BASE_TRY(field_backend_create_pipeline(
            mesher->query.device, &mesher->query.setup.backend, pass_names[pass], FIELD_NO_VARIANT,
            LOCAL_SIZE_MESH, &mesher->query.setup.specialization, &mesher->pipelines[pass]));
    }
    return VKN_OK;
}

static void destroy(struct mesher *mesher)
{
    for (int pass = 0; pass < PASSES; pass++)
        gpu_pipeline_destroy(&mesher->pipelines[pass]);
    marching_destroy(&mesher->marching);
    field_query_destroy(&mesher->query);
}

vkn_status render_mesh(vkn_renderer *renderer, const struct MeshGrid *grid, enum vkn_unseen unseen,
                       const struct visibility_maps *visibility_maps,
                       struct report_progress *progress, const volatile sig_atomic_t *stop,
                       struct render_mesh *mesh)
{
    *mesh = (struct render_mesh){0};
    struct mesher mesher = {.visibility_maps = unseen != VKN_UNSEEN_KEEP ? visibility_maps : NULL,
                            .marks_unseen = unseen == VKN_UNSEEN_DROP,
                            .progress = progress,
                            .stop = stop};
    const struct marching_source source = {
        .context = &mesher, .fill = fill, .finish = finish, .report = report};
    vkn_status status = create(renderer, grid, &mesher);
    if (status == VKN_OK)
        status = report(&mesher, 0, grid->points[2]);
    if (status == VKN_OK)
        status = marching_run(&mesher.marching, &source, mesh);
    mesh->device_bytes = gpu_memory_allocated(mesher.query.device);
    destroy(&mesher);
    return status;
}
