/* Runs marching cubes slab by slab. */
#include "render/marching_cubes.h"

#include <stdlib.h>
#include <string.h>

#define LOCAL_SIZE_MESH 64u
#define TILE            (LOCAL_SIZE_MESH * MESH_TILE_STEPS)
#define SLAB_POINTS     (1u << 20) /* grid points of a slab, about */
#define LEAST_LAYERS    4u         /* at least MESH_OVERLAP, so that copies do not overlap */

static uint64_t layer_points(const struct marching *m)
{
    return (uint64_t)m->grid.points[0] * m->grid.points[1];
}

/* ---- creation ------------------------------------------------------------------------------ */

static void choose_layers(struct marching *m)
{
    uint32_t layers = m->grid.layers;
    if (layers == 0)
        layers = (uint32_t)(SLAB_POINTS / layer_points(m));
    if (layers > m->grid.points[2])
        layers = m->grid.points[2];
    m->grid.layers = layers > LEAST_LAYERS ? layers : LEAST_LAYERS;
    m->tile_count = (uint32_t)((m->grid.layers * layer_points(m) + TILE - 1) / TILE);
}

#define OF_MESH                                                                                 \
    (BUFFERS(MESH) | BUFFERS(MESH_VALUES) | BUFFERS(MESH_FIRST_VERTEX) | BUFFERS(MESH_POINTS) | \
     BUFFERS(MESH_TILES) | BUFFERS(MESH_TABLE) | BUFFERS(MESH_VERTICES) | BUFFERS(MESH_TRIANGLES))

static vkn_status allocate(struct marching *m)
{
    const struct buffer_counts counts = {
        .layer = layer_points(m),
        .layers = m->grid.layers,
        .tiles = m->tile_count,
        .vertices = m->max_vertices,
        .triangles = m->max_triangles,
    };
    return buffers_create(m->device, BUFFERS_OF_VIEW, OF_MESH, &counts, &m->buffers);
}

static vkn_status bind(struct marching *m, const struct gpu_buffer *const others[GPU_BINDINGS])
{
    const struct gpu_buffer *bound[GPU_BINDINGS];
    memcpy(bound, others, sizeof bound);
    buffers_bind(&m->buffers, OF_MESH, bound);
    return gpu_bindings_create(m->device, bound, &m->bindings);
}

static vkn_status create_pipelines(struct marching *m)
{
    const struct {
        const char *name;
        struct gpu_pipeline **pipeline;
    } pipelines[] = {
        {"mesh_count", &m->count},
        {"mesh_scan", &m->scan},
        {"mesh_vertices", &m->make_vertices},
        {"mesh_triangles", &m->make_triangles},
    };
    for (size_t i = 0; i < BASE_COUNT(pipelines); i++) {
        struct gpu_pipeline_options options = {.name = pipelines[i].name,
                                               .local_size = LOCAL_SIZE_MESH};
        BASE_TRY(gpu_pipeline_create(m->device, &options, pipelines[i].pipeline));
    }
    return VKN_OK;
}

vkn_status marching_create(struct gpu_device *device, const struct MeshGrid *grid, uint32_t batch,
                           const struct gpu_buffer *const buffers[GPU_BINDINGS],
                           struct marching *marching)
{
    *marching = (struct marching){
        .device = device, .grid = *grid, .max_vertices = batch, .max_triangles = 2 * batch};
    choose_layers(marching);
    BASE_TRY(allocate(marching));
    BASE_TRY(bind(marching, buffers));
    uint32_t table[MESH_TABLE_WORDS];
    marching_table(table);
    BASE_TRY(gpu_upload(device, &marching->buffers.at[BIND_MESH_TABLE], 0, table, sizeof table));
    BASE_TRY(gpu_upload(device, &marching->buffers.at[BIND_MESH], 0, &marching->grid,
                        sizeof marching->grid));
    return create_pipelines(marching);
}

void marching_destroy(struct marching *marching)
{
    gpu_pipeline_destroy(&marching->count);
    gpu_pipeline_destroy(&marching->scan);
    gpu_pipeline_destroy(&marching->make_vertices);
    gpu_pipeline_destroy(&marching->make_triangles);
    gpu_bindings_destroy(&marching->bindings);
    buffers_destroy(&marching->buffers);
}

/* ---- the mesh on the host ------------------------------------------------------------------ */

void render_mesh_free(struct render_mesh *mesh)
{
    free(mesh->vertices);
    free(mesh->triangles);
    free(mesh->texels);
    free(mesh->texture);
    *mesh = (struct render_mesh){0};
}

void render_mesh_scale(struct render_mesh *mesh, double factor)
{
    for (int i = 0; i < 3; i++) {
        mesh->origin[i] *= factor;
        for (size_t v = 0; v < mesh->vertex_count; v++)
            mesh->vertices[v].position[i] = (float)((double)mesh->vertices[v].position[i] * factor);
    }
}

/* Reserves `more` elements after the first `count`; allocates `count` / 2 beyond them. */
static vkn_status reserve(void **elements, size_t size, size_t count, size_t more, size_t *capacity)
{
    if (count + more <= *capacity)
        return VKN_OK;
    size_t wanted = count + more + count / 2;
    void *grown = base_realloc(*elements, wanted * size);
    if (!grown)
        return base_fail(VKN_ERROR,
                         "out of memory for a mesh of %zu elements; a lower resolution "
                         "or a smaller crop makes fewer",
                         count + more);
    *elements = grown;
    *capacity = wanted;
    return VKN_OK;
}

static vkn_status add_vertices(const struct marching *m, struct render_mesh *mesh, uint32_t count)
{
    void *vertices = mesh->vertices;
    vkn_status status = reserve(&vertices, sizeof *mesh->vertices, mesh->vertex_count, count,
                                &mesh->vertex_capacity);
    mesh->vertices = vertices;
    BASE_TRY(status);
    memcpy(mesh->vertices + mesh->vertex_count, m->buffers.at[BIND_MESH_VERTICES].mapped,
           count * sizeof *mesh->vertices);
    mesh->vertex_count += count;
    return VKN_OK;
}

static vkn_status add_triangles(const struct marching *m, struct render_mesh *mesh, uint32_t count)
{
    void *triangles = mesh->triangles;
    vkn_status status = reserve(&triangles, sizeof *mesh->triangles, mesh->triangle_count, count,
                                &mesh->triangle_capacity);
    mesh->triangles = triangles;
    BASE_TRY(status);
    memcpy(mesh->triangles + mesh->triangle_count, m->buffers.at[BIND_MESH_TRIANGLES].mapped,
           count * sizeof *mesh->triangles);
    mesh->triangle_count += count;
    return VKN_OK;
}

/* ---- one slab ------------------------------------------------------------------------------ */

struct slab {
    struct marching *marching;
    int64_t lowest;     /* grid layer of the slab's lowest points; -1: first slab */
    uint32_t totals[2]; /* vertices, triangles */
    /* Pipeline of record_range's dispatch, and the range that it writes. */
    const struct gpu_pipeline *pipeline;
    struct Push range;
};

static vkn_status run(struct slab *slab, void (*record)(struct slab *, struct gpu_recording *))
{
    GPU_ONCE(slab->marching->device, "mesh slab");
    record(slab, recording);
    return gpu_run_once(&recording);
}

/* Copies the previous slab's highest layers to this slab's lowest ones, or fills the
 * lowest layers of the first slab with negative values. */
static void record_overlap(struct slab *slab, struct gpu_recording *recording)
{
    struct marching *m = slab->marching;
    uint64_t layer = 4 * layer_points(m), layers = m->grid.layers;
    if (slab->lowest < 0) {
        const float empty = -(float)MESH_LIMIT;
        uint32_t bits;
        memcpy(&bits, &empty, sizeof bits);
        gpu_record_fill(recording, &m->buffers.at[BIND_MESH_VALUES], 0, MESH_OVERLAP * layer, bits);
        return;
    }
    gpu_record_copy(recording, &m->buffers.at[BIND_MESH_VALUES], layers * layer,
                    &m->buffers.at[BIND_MESH_VALUES], 0, MESH_OVERLAP * layer);
    gpu_record_copy(recording, &m->buffers.at[BIND_MESH_FIRST_VERTEX], layers * layer,
                    &m->buffers.at[BIND_MESH_FIRST_VERTEX], 0, layer);
}

static void record_count(struct slab *slab, struct gpu_recording *recording)
{
    struct marching *m = slab->marching;
    struct Push push = {.a = m->tile_count};
    gpu_record_dispatch(recording, m->count, m->bindings, &push, sizeof push, m->tile_count);
    gpu_record_compute_barrier(recording);
    gpu_record_dispatch(recording, m->scan, m->bindings, &push, sizeof push, 1);
}

static void record_range(struct slab *slab, struct gpu_recording *recording)
{
    struct marching *m = slab->marching;
    gpu_record_dispatch(recording, slab->pipeline, m->bindings, &slab->range, sizeof slab->range,
                        m->tile_count);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Makes the slab's vertices, then its triangles, as many at a time as the buffers hold. */
static vkn_status make(struct slab *slab, const struct marching_source *source,
                       struct render_mesh *mesh)
{
    struct marching *m = slab->marching;
    if (mesh->vertex_count + slab->totals[0] > RENDER_MAX_VERTICES)
        return base_fail(
            VKN_BAD_INPUT,
            "resolution: the mesh has more than %u vertices; choose a lower resolution",
            RENDER_MAX_VERTICES);
    slab->pipeline = m->make_vertices;
    slab->range = (struct Push){.c = (uint32_t)mesh->vertex_count, .d = (uint32_t)slab->lowest};
    for (uint32_t first = 0; first < slab->totals[0]; first += m->max_vertices) {
        uint32_t count = smaller(slab->totals[0] - first, m->max_vertices);
        slab->range.a = first;
        slab->range.b = count;
        BASE_TRY(run(slab, record_range));
        if (source->finish)
            BASE_TRY(source->finish(source->context, count));
        BASE_TRY(add_vertices(m, mesh, count));
    }
    slab->pipeline = m->make_triangles;
    for (uint32_t first = 0; first < slab->totals[1]; first += m->max_triangles) {
        uint32_t count = smaller(slab->totals[1] - first, m->max_triangles);
        slab->range = (struct Push){.a = first, .b = count};
        BASE_TRY(run(slab, record_range));
        BASE_TRY(add_triangles(m, mesh, count));
    }
    return VKN_OK;
}

/* ---- all slabs ----------------------------------------------------------------------------- */

vkn_status marching_run(struct marching *marching, const struct marching_source *source,
                        struct render_mesh *mesh)
{
    uint32_t total = marching->grid.points[2], layers = marching->grid.layers;
    bool previous_any = false; /* the previous slab may have positive values */
    for (struct slab slab = {.marching = marching, .lowest = -1}; slab.lowest < total;
         slab.lowest += layers) {
        bool any = false;
        BASE_TRY(run(&slab, record_overlap));
        BASE_TRY(source->fill(source->context, (uint32_t)(slab.lowest + MESH_OVERLAP - 1), &any));
        if (any || previous_any) {
            BASE_TRY(run(&slab, record_count));
            BASE_TRY(gpu_download(marching->device, &marching->buffers.at[BIND_MESH_TILES],
                                  8ull * marching->tile_count, slab.totals, sizeof slab.totals));
            BASE_TRY(make(&slab, source, mesh));
        }
        previous_any = any;
        uint32_t done = (uint32_t)(slab.lowest + layers);
        if (source->report)
            BASE_TRY(source->report(source->context, smaller(done, total), total));
    }
    return VKN_OK;
}
