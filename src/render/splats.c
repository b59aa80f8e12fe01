/* Converts the field's surface to Gaussians (Kerbl et al. 2023, 3D Gaussian Splatting for Real-Time
 * Radiance Field Rendering), for viewers of splats or as the initial Gaussians of a training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/mesh.h"
#include "render/neighbours.h"
#include "render/field_query.h"
#include "render/file_buffer.h"

#define LOCAL_SIZE_SPLATS 64u
#define SAMPLES           (SPLAT_VIEWS + SPLAT_DEPTHS)
#define OF_SPLATS         (BUFFERS(MESH) | BUFFERS(SPLATS))

/* Standard deviation along the surface / spacing. Renderings of the bundled scene are closest to
 * the field's at 0.4 with 20000 splats and at 0.3 with 60000. */
#define WIDTH           0.4
#define FLATNESS        0.1  /* standard deviation along the normal / along the surface */
#define LEAST_DEVIATION 1e-7 /* for points that coincide */
#define MOST_OPACITY    0.99 /* opacity is clamped to LEAST_OPACITY..MOST_OPACITY; 1 has no logit */
#define LEAST_OPACITY   0.005

/* ---- colours from the field ------------------------------------------------------------------ */

struct splatter {
    struct query query;
    struct buffers buffers;
    struct gpu_bindings *bindings;
    struct gpu_pipeline *samples, *colors;
    uint32_t batch; /* splats of one dispatch */
};

static vkn_status create(const vkn_renderer *renderer, const struct vkn_scene *scene,
                         struct splatter *splatter)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    struct MeshGrid grid = {.scale = (float)scene->scale, .time = renderer->time};
    struct query *query = &splatter->query;
    BASE_TRY(field_query_create(renderer, query));
    render_local_offset(scene, grid.offset);
    splatter->batch = query->capacity / SAMPLES;
    const struct buffer_counts counts = {.splats = splatter->batch};
    BASE_TRY(
        buffers_create(query->device, BUFFERS_OF_VIEW, OF_SPLATS, &counts, &splatter->buffers));
    field_query_bind(query, bound);
    buffers_bind(&splatter->buffers, OF_SPLATS, bound);
    BASE_TRY(gpu_bindings_create(query->device, bound, &splatter->bindings));
    BASE_TRY(gpu_upload(query->device, &splatter->buffers.at[BIND_MESH], 0, &grid, sizeof grid));
    const struct field_pass_request pipelines[] = {
        {"splat_samples", &splatter->samples, FIELD_NO_VARIANT},
        {"splat_colors", &splatter->colors, FIELD_NO_VARIANT},
    };
    return field_backend_create_pipelines(query->device, &query->setup.backend, pipelines,
                                          BASE_COUNT(pipelines), LOCAL_SIZE_SPLATS,
                                          &query->setup.specialization);
}

static void destroy(struct splatter *splatter)
{
    gpu_pipeline_destroy(&splatter->samples);
    gpu_pipeline_destroy(&splatter->colors);
    gpu_bindings_destroy(&splatter->bindings);
    buffers_destroy(&splatter->buffers);
    field_query_destroy(&splatter->query);
}

static uint32_t groups_for(uint32_t invocations)
{
    return (invocations + LOCAL_SIZE_SPLATS - 1) / LOCAL_SIZE_SPLATS;
}

static vkn_status find_colors(struct splatter *splatter, struct Splat *splats, uint32_t count)
{
    struct Splat *mapped = splatter->buffers.at[BIND_SPLATS].mapped;
    const struct Push push = {.a = count};
    memcpy(mapped, splats, count * sizeof *splats);
    GPU_ONCE(splatter->query.device, "splats");
    gpu_record_dispatch(recording, splatter->samples, splatter->bindings, &push, sizeof push,
                        groups_for(count * SAMPLES));
    field_query_record(&splatter->query, recording, splatter->bindings, count * SAMPLES, true);
    gpu_record_dispatch(recording, splatter->colors, splatter->bindings, &push, sizeof push,
                        groups_for(count));
    BASE_TRY(gpu_run_once(&recording));
    memcpy(splats, mapped, count * sizeof *splats);
    return VKN_OK;
}

static vkn_status find_all_colors(struct splatter *splatter, struct render_splats *splats,
                                  struct report_progress *progress,
                                  const volatile sig_atomic_t *stop)
{
    for (size_t first = 0; first < splats->count; first += splatter->batch) {
        size_t left = splats->count - first;
        if (progress)
            report_progress_count(progress, "colouring splats", first, splats->count);
        if (base_stop_asked(stop))
            return base_fail(VKN_INTERRUPTED, "interrupted while colouring splats");
        BASE_TRY(find_colors(splatter, splats->splats + first,
                             left < splatter->batch ? (uint32_t)left : splatter->batch));
    }
    return VKN_OK;
}

static vkn_status begin(const struct render_mesh *cloud, struct render_splats *splats)
{
    float *spacing = base_alloc(cloud->vertex_count + 1, sizeof *spacing);
    splats->splats = base_alloc(cloud->vertex_count + 1, sizeof *splats->splats);
    splats->count = cloud->vertex_count;
    memcpy(splats->origin, cloud->origin, sizeof splats->origin);
    vkn_status status = spacing && splats->splats ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = neighbours_spacing(cloud->vertices, cloud->vertex_count, spacing);
    for (size_t i = 0; i < cloud->vertex_count && status == VKN_OK; i++) {
        const struct MeshVertex *point = &cloud->vertices[i];
        struct Splat *splat = &splats->splats[i];
        memcpy(splat->position, point->position, sizeof splat->position);
        memcpy(splat->normal, point->normal, sizeof splat->normal);
        splat->spacing = spacing[i];
    }
    free(spacing);
    return status;
}

vkn_status render_splats(vkn_renderer *renderer, const struct vkn_scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_splats *splats)
{
    struct render_mesh cloud;
    struct splatter splatter = {0};
    *splats = (struct render_splats){0};
    BASE_TRY(base_memory_check((uint64_t)params->count *
                                   (sizeof(struct MeshVertex) + sizeof(struct Splat)),
                               "a cloud of that many splats", "--count"));
    vkn_status status = render_points(renderer, scene, params, progress, stop, &cloud);
    if (status == VKN_OK)
        status = begin(&cloud, splats);
    render_mesh_free(&cloud);
    if (status == VKN_OK)
        status = create(renderer, scene, &splatter);
    if (status == VKN_OK)
        status = find_all_colors(&splatter, splats, progress, stop);
    if (splatter.query.device)
        splats->device_bytes = gpu_memory_allocated(splatter.query.device);
    destroy(&splatter);
    return status;
}

void render_splats_free(struct render_splats *splats)
{
    free(splats->splats);
    *splats = (struct render_splats){0};
}

void render_splats_scale(struct render_splats *splats, double factor)
{
    for (int i = 0; i < 3; i++)
        splats->origin[i] *= factor;
    for (size_t n = 0; n < splats->count; n++) {
        struct Splat *splat = &splats->splats[n];
        for (int i = 0; i < 3; i++)
            splat->position[i] = (float)((double)splat->position[i] * factor);
        splat->spacing = (float)((double)splat->spacing * factor);
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

static void put_header(struct file_buffer *file_buffer, const struct render_splats *splats)
{
    const double *origin = splats->origin;
    static const struct {
        const char *name;
        int count; /* properties numbered from 0 on; 0: one property without a number */
    } properties[] = {{"x", 0},       {"y", 0},     {"z", 0},    {"nx", 0},
                      {"ny", 0},      {"nz", 0},    {"f_dc", 3}, {"f_rest", 45},
                      {"opacity", 0}, {"scale", 3}, {"rot", 4}};
    FILE *stream = file_buffer->writer->stream;
    fprintf(stream, "ply\nformat binary_little_endian 1.0\n");
    if (render_has_origin(origin))
        fprintf(stream, "comment origin %.17g %.17g %.17g\n", origin[0], origin[1], origin[2]);
    fprintf(stream, "element vertex %zu\n", splats->count);
    for (size_t i = 0; i < BASE_COUNT(properties); i++) {
        if (properties[i].count == 0)
            fprintf(stream, "property float %s\n", properties[i].name);
        for (int n = 0; n < properties[i].count; n++)
            fprintf(stream, "property float %s_%d\n", properties[i].name, n);
    }
    fprintf(stream, "end_header\n");
}

/* Writes the quaternion w, x, y, z that rotates z to the normal n: (1 + z . n, z x n), normalised;
 * for n = -z a half turn around x. */
static void put_rotation(struct file_buffer *file_buffer, const float normal[3])
{
    double x = (double)normal[0], y = (double)normal[1], w = 1.0 + (double)normal[2];
    double length = sqrt(w * w + x * x + y * y);
    const double turn[4] = {w, -y, x, 0}, flip[4] = {0, 1, 0, 0};
    for (int i = 0; i < 4; i++)
        file_buffer_f32(file_buffer, (float)(length < 1e-6 ? flip[i] : turn[i] / length));
}

/* Writes the harmonics. The format's colour for all-zero coefficients is 0.5 grey. */
static void put_harmonics(struct file_buffer *file_buffer, const struct Splat *splat)
{
    const float grey = (float)(0.5 / 0.28209479177387814);
    for (int c = 0; c < 3; c++)
        file_buffer_f32(file_buffer, splat->harmonics[c] - grey);
    for (int c = 0; c < 3; c++) {
        file_buffer_reserve(file_buffer); /* a colour's coefficients are one element */
        for (int n = 1; n < SPLAT_HARMONICS; n++)
            file_buffer_f32(file_buffer, splat->harmonics[3 * n + c]);
    }
}

static void put_splat(struct file_buffer *file_buffer, const struct Splat *splat)
{
    double opacity = fmin(fmax((double)splat->opacity, LEAST_OPACITY), MOST_OPACITY);
    double along = log(fmax(WIDTH * (double)splat->spacing, LEAST_DEVIATION));
    file_buffer_reserve(file_buffer);
    for (int i = 0; i < 3; i++)
        file_buffer_f32(file_buffer, splat->position[i]);
    for (int i = 0; i < 3; i++)
        file_buffer_f32(file_buffer, splat->normal[i]);
    put_harmonics(file_buffer, splat);
    file_buffer_reserve(file_buffer);
    file_buffer_f32(file_buffer, (float)log(opacity / (1.0 - opacity)));
    file_buffer_f32(file_buffer, (float)along);
    file_buffer_f32(file_buffer, (float)along);
    file_buffer_f32(file_buffer, (float)(along + log(FLATNESS)));
    put_rotation(file_buffer, splat->normal);
}

vkn_status ply_write_splats(struct base_file_writer *writer, const struct render_splats *splats)
{
    struct file_buffer *file_buffer = file_buffer_open(writer);
    if (!file_buffer)
        return VKN_ERROR;
    put_header(file_buffer, splats);
    for (size_t i = 0; i < splats->count && file_buffer->error == 0; i++)
        put_splat(file_buffer, &splats->splats[i]);
    return file_buffer_close(file_buffer);
}
