/* Unwraps a mesh and paints its texture with the field's colours on the surface. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/atlas.h"
#include "render/mesh.h"
#include "render/field_query.h"
#include "scene/scene.h"

#define LOCAL_SIZE_TEXTURE 64u
#define BAND_PIXELS        (1u << 18) /* pixels of a band of rows, about */

/* ---- unwrapping ------------------------------------------------------------------------------ */

/* The unwrapped mesh: each chart has its own copies of vertices, with texture positions. */
struct unwrapped {
    const struct render_mesh *mesh;
    struct render_mesh made;
    /* [vertex of mesh]: 1 + the last chart that has a copy of the vertex; index of the copy. */
    uint32_t *chart_of, *number_of;
};

static vkn_status add_corner(struct unwrapped *work, const struct atlas *atlas, uint32_t chart,
                             uint32_t vertex, uint32_t *number)
{
    struct render_mesh *made = &work->made;
    if (work->chart_of[vertex] != chart + 1) {
        if (made->vertex_count == made->vertex_capacity) {
            size_t capacity =
                made->vertex_count + made->vertex_count / 2 + work->mesh->vertex_count;
            void *vertices = base_realloc(made->vertices, capacity * sizeof *made->vertices);
            made->vertices = vertices ? vertices : made->vertices;
            void *texels = base_realloc(made->texels, capacity * sizeof *made->texels);
            made->texels = texels ? texels : made->texels;
            if (!vertices || !texels)
                return base_fail(VKN_ERROR, "out of memory for a texture's mesh");
            made->vertex_capacity = capacity;
        }
        const struct MeshVertex *from = &work->mesh->vertices[vertex];
        work->chart_of[vertex] = chart + 1;
        work->number_of[vertex] = (uint32_t)made->vertex_count;
        made->vertices[made->vertex_count] = *from;
        atlas_texel(atlas, &atlas->charts[chart], from->position,
                    made->texels[made->vertex_count++]);
    }
    *number = work->number_of[vertex];
    return VKN_OK;
}

static vkn_status unwrap(struct unwrapped *work, const struct atlas *atlas)
{
    struct render_mesh *made = &work->made;
    made->triangles = base_alloc(work->mesh->triangle_count + 1, sizeof *made->triangles);
    work->chart_of = base_alloc(work->mesh->vertex_count + 1, sizeof *work->chart_of);
    work->number_of = base_alloc(work->mesh->vertex_count + 1, sizeof *work->number_of);
    if (!made->triangles || !work->chart_of || !work->number_of)
        return VKN_ERROR;
    for (uint32_t c = 0; c < atlas->count; c++)
        for (uint32_t n = 0; n < atlas->charts[c].count; n++) {
            const uint32_t *from = work->mesh->triangles[atlas->order[atlas->charts[c].first + n]];
            uint32_t *to = made->triangles[made->triangle_count++];
            for (int corner = 0; corner < 3; corner++)
                BASE_TRY(add_corner(work, atlas, c, from[corner], &to[corner]));
        }
    return VKN_OK;
}

vkn_status render_mesh_unwrap(struct render_mesh *mesh, const struct render_voxels *voxels,
                              uint32_t size, size_t *charts, double *density)
{
    struct atlas atlas;
    struct unwrapped work = {.mesh = mesh};
    double corner[3];
    for (int i = 0; i < 3; i++)
        corner[i] = voxels->box.low[i] - mesh->origin[i];
    vkn_status status = atlas_cut(mesh, voxels->edge, corner, &atlas);
    if (status == VKN_OK)
        status = atlas_pack(&atlas, size);
    if (status == VKN_OK)
        status = unwrap(&work, &atlas);
    *charts = atlas.count;
    *density = atlas.density;
    work.made.texture_size = atlas.size;
    work.made.device_bytes = mesh->device_bytes;
    memcpy(work.made.up, mesh->up, sizeof work.made.up);
    atlas_destroy(&atlas);
    free(work.chart_of);
    free(work.number_of);
    if (status != VKN_OK) {
        render_mesh_free(&work.made);
        return status;
    }
    render_mesh_free(mesh);
    *mesh = work.made;
    return VKN_OK;
}

/* ---- bands of rows --------------------------------------------------------------------------- */

struct bands {
    uint32_t rows, count;   /* rows of a band; number of bands */
    uint32_t *first;        /* [count + 1]: offset of each band in `triangles`, then the total */
    uint32_t *triangles;    /* triangles of each band; one that touches two bands is in both */
    uint32_t max_triangles; /* most triangles of a band */
};

/* Returns the first and the last band that a triangle covers, gutter included. */
static void bands_of(const struct render_mesh *mesh, const struct bands *bands, size_t triangle,
                     uint32_t *low, uint32_t *high)
{
    const uint32_t *corner = mesh->triangles[triangle];
    float least = INFINITY, most = 0;
    for (int i = 0; i < 3; i++) {
        least = fminf(least, mesh->texels[corner[i]][1]);
        most = fmaxf(most, mesh->texels[corner[i]][1]);
    }
    *low = (uint32_t)fmaxf(least - ATLAS_GUTTER, 0.0F) / bands->rows;
    *high = (uint32_t)(most + ATLAS_GUTTER) / bands->rows;
    if (*high >= bands->count)
        *high = bands->count - 1;
}

static vkn_status sort_bands(const struct render_mesh *mesh, struct bands *bands)
{
    uint32_t low, high;
    bands->rows = BAND_PIXELS / mesh->texture_size > 0 ? BAND_PIXELS / mesh->texture_size : 1;
    bands->count = (mesh->texture_size + bands->rows - 1) / bands->rows;
    bands->first = base_alloc(bands->count + 2, sizeof *bands->first);
    if (!bands->first)
        return VKN_ERROR;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        bands_of(mesh, bands, t, &low, &high);
        for (uint32_t b = low; b <= high; b++)
            bands->first[b + 2]++;
    }
    for (uint32_t b = 0; b < bands->count; b++) {
        bands->max_triangles =
            bands->first[b + 2] > bands->max_triangles ? bands->first[b + 2] : bands->max_triangles;
        bands->first[b + 2] += bands->first[b + 1];
    }
    bands->triangles =
        base_alloc(bands->first[bands->count + 1] + (size_t)1, sizeof *bands->triangles);
    if (!bands->triangles)
        return VKN_ERROR;
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        bands_of(mesh, bands, t, &low, &high);
        for (uint32_t b = low; b <= high; b++)
            bands->triangles[bands->first[b + 1]++] = (uint32_t)t;
    }
    return VKN_OK;
}

/* ---- painting -------------------------------------------------------------------------------- */

enum texture_pass { RASTERIZE, LIST, SAMPLES, COLORS, PASSES };
static const char *const pass_names[PASSES] = {"texture_rasterize", "texture_list",
                                               "texture_samples", "texture_colors"};

#define OF_TEXTURE \
    (BUFFERS(MESH) | BUFFERS(MESH_POINTS) | BUFFERS(TEXTURE_TRIANGLES) | BUFFERS(TEXELS))

struct painter {
    struct render_mesh *mesh;
    struct query query;
    struct buffers buffers;
    struct gpu_bindings *bindings;
    struct gpu_pipeline *pipelines[PASSES];
    struct bands bands;
    struct TextureTriangle *triangles; /* of the current band */
    uint32_t *texels;                  /* of the current band */
    uint8_t *covered;                  /* one bit per texel of the texture: is in a chart */
    uint64_t sums[3], painted_count;   /* sums of RGB over the texels of charts; their number */
};

static void record(const struct painter *painter, struct gpu_recording *recording,
                   enum texture_pass pass, struct Push push, uint32_t invocations)
{
    gpu_record_dispatch(recording, painter->pipelines[pass], painter->bindings, &push, sizeof push,
                        (invocations + LOCAL_SIZE_TEXTURE - 1) / LOCAL_SIZE_TEXTURE);
}

static vkn_status upload_triangles(struct painter *painter, uint32_t band, uint32_t count)
{
    const struct render_mesh *mesh = painter->mesh;
    const struct bands *bands = &painter->bands;
    uint32_t first = bands->first[band];
    for (uint32_t i = 0; i < count; i++)
        for (int c = 0; c < 3; c++) {
            uint32_t vertex = mesh->triangles[bands->triangles[first + i]][c];
            struct TextureTriangle *to = &painter->triangles[i];
            memcpy(to->position + 3 * c, mesh->vertices[vertex].position, 3 * sizeof(float));
            memcpy(to->normal + 3 * c, mesh->vertices[vertex].normal, 3 * sizeof(float));
            to->texel[2 * c] = mesh->texels[vertex][0];
            to->texel[2 * c + 1] = mesh->texels[vertex][1] - (float)(band * bands->rows);
        }
    return gpu_upload(painter->query.device, &painter->buffers.at[BIND_TEXTURE_TRIANGLES], 0,
                      painter->triangles, count * sizeof *painter->triangles);
}

/* Assigns the band's texels to its triangles. *listed: number of texels inside triangles. */
static vkn_status rasterize(struct painter *painter, uint32_t band, uint32_t *listed)
{
    const struct bands *bands = &painter->bands;
    struct query *query = &painter->query;
    uint32_t size = painter->mesh->texture_size;
    const struct Push push = {
        .a = bands->first[band + 1] - bands->first[band], .b = size, .c = bands->rows};
    *listed = 0;
    if (push.a == 0)
        return VKN_OK;
    BASE_TRY(upload_triangles(painter, band, push.a));
    GPU_ONCE(query->device, "texture pixels");
    gpu_record_fill(recording, &painter->buffers.at[BIND_TEXELS], 0, UINT64_MAX, TEXEL_NONE);
    gpu_record_fill(recording, &query->buffers.at[BIND_STATE], offsetof(struct State, live_count),
                    4, 0);
    gpu_record_barrier(recording);
    record(painter, recording, RASTERIZE, push, push.a);
    gpu_record_compute_barrier(recording);
    record(painter, recording, LIST, push, bands->rows * size);
    BASE_TRY(gpu_run_once(&recording));
    return gpu_download(query->device, &query->buffers.at[BIND_STATE],
                        offsetof(struct State, live_count), listed, sizeof *listed);
}

/* Computes the colours of `count` listed texels from texel `first` on. */
static vkn_status color(struct painter *painter, uint32_t first, uint32_t count)
{
    struct Push push = {.a = first, .b = count, .c = painter->mesh->texture_size};
    GPU_ONCE(painter->query.device, "texture colours");
    record(painter, recording, SAMPLES, push, count);
    field_query_record(&painter->query, recording, painter->bindings, count * TEXTURE_SAMPLES,
                       true);
    record(painter, recording, COLORS, push, count);
    return gpu_run_once(&recording);
}

/* Downloads the band's colours to the texture and adds them to the sums. */
static vkn_status read_band(struct painter *painter, uint32_t band)
{
    struct render_mesh *mesh = painter->mesh;
    uint32_t first = band * painter->bands.rows;
    uint32_t rows = mesh->texture_size - first;
    rows = rows < painter->bands.rows ? rows : painter->bands.rows;
    size_t count = (size_t)rows * mesh->texture_size;
    uint8_t *rgb = mesh->texture + 3 * (size_t)first * mesh->texture_size;
    BASE_TRY(gpu_download(painter->query.device, &painter->buffers.at[BIND_TEXELS], 0,
                          painter->texels, count * sizeof *painter->texels));
    for (size_t i = 0; i < count; i++) {
        if (painter->texels[i] == TEXEL_NONE)
            continue;
        size_t pixel = (size_t)first * mesh->texture_size + i;
        painter->covered[pixel / 8] |= (uint8_t)(1u << pixel % 8);
        painter->painted_count++;
        for (int c = 0; c < 3; c++) {
            rgb[3 * i + c] = (uint8_t)(painter->texels[i] >> 8 * c & 255u);
            painter->sums[c] += rgb[3 * i + c];
        }
    }
    return VKN_OK;
}

static vkn_status paint_band(struct painter *painter, uint32_t band)
{
    uint32_t listed, batch = painter->query.capacity / TEXTURE_SAMPLES;
    BASE_TRY(rasterize(painter, band, &listed));
    if (listed == 0)
        return VKN_OK;
    for (uint32_t first = 0; first < listed; first += batch)
        BASE_TRY(color(painter, first, listed - first < batch ? listed - first : batch));
    return read_band(painter, band);
}

static vkn_status paint_all(struct painter *painter, struct report_progress *progress,
                            const volatile sig_atomic_t *stop)
{
    for (uint32_t band = 0; band < painter->bands.count; band++) {
        if (progress)
            report_progress_count(progress, "painting", band, painter->bands.count);
        if (base_stop_asked(stop))
            return base_fail(VKN_INTERRUPTED, "interrupted while painting");
        BASE_TRY(paint_band(painter, band));
    }
    return VKN_OK;
}

static vkn_status create(const vkn_renderer *renderer, const struct vkn_scene *scene, double voxel,
                         struct painter *painter)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    struct MeshGrid grid = {.spacing = (float)voxel * (float)scene->scale,
                            .scale = (float)scene->scale,
                            .time = renderer->time};
    uint32_t size = painter->mesh->texture_size;
    render_local_offset(scene, grid.offset);
    BASE_TRY(sort_bands(painter->mesh, &painter->bands));
    size_t pixels = (size_t)painter->bands.rows * size;
    const struct buffer_counts counts = {
        .layer = pixels, .layers = 1, .triangles = painter->bands.max_triangles, .texels = pixels};
    BASE_TRY(base_memory_check(4 * (uint64_t)size * size + pixels * sizeof *painter->texels,
                               "a texture of that size", "--texture"));
    painter->mesh->texture = base_alloc((size_t)size * size, 3);
    painter->triangles =
        base_alloc(painter->bands.max_triangles + (size_t)1, sizeof *painter->triangles);
    painter->texels = base_alloc(pixels, sizeof *painter->texels);
    painter->covered = base_alloc((size_t)size * size / 8 + 1, 1);
    if (!painter->mesh->texture || !painter->triangles || !painter->texels || !painter->covered)
        return VKN_ERROR;
    BASE_TRY(field_query_create(renderer, &painter->query));
    BASE_TRY(buffers_create(painter->query.device, BUFFERS_OF_VIEW, OF_TEXTURE, &counts,
                            &painter->buffers));
    field_query_bind(&painter->query, bound);
    buffers_bind(&painter->buffers, OF_TEXTURE, bound);
    BASE_TRY(gpu_bindings_create(painter->query.device, bound, &painter->bindings));
    BASE_TRY(
        gpu_upload(painter->query.device, &painter->buffers.at[BIND_MESH], 0, &grid, sizeof grid));
    for (int pass = 0; pass < PASSES; pass++)
        BASE_TRY(field_backend_create_pipeline(
            painter->query.device, &painter->query.setup.backend, pass_names[pass],
            FIELD_NO_VARIANT, LOCAL_SIZE_TEXTURE, &painter->query.setup.specialization,
            &painter->pipelines[pass]));
    return VKN_OK;
}

/* Fills texels between charts with the mean colour: mipmaps mix these texels into the charts. */
static void fill_uncovered(struct painter *painter)
{
    struct render_mesh *mesh = painter->mesh;
    size_t count = (size_t)mesh->texture_size * mesh->texture_size;
    uint64_t half = painter->painted_count / 2;
    for (size_t i = 0; i < count && painter->painted_count > 0; i++)
        for (int c = 0; c < 3 && !(painter->covered[i / 8] >> i % 8 & 1); c++)
            mesh->texture[3 * i + c] =
                (uint8_t)((painter->sums[c] + half) / painter->painted_count);
}

static void destroy(struct painter *painter)
{
    for (int pass = 0; pass < PASSES; pass++)
        gpu_pipeline_destroy(&painter->pipelines[pass]);
    gpu_bindings_destroy(&painter->bindings);
    buffers_destroy(&painter->buffers);
    field_query_destroy(&painter->query);
    free(painter->bands.first);
    free(painter->bands.triangles);
    free(painter->triangles);
    free(painter->texels);
    free(painter->covered);
}

vkn_status render_mesh_paint(vkn_renderer *renderer, const struct vkn_scene *scene,
                             const struct render_voxels *voxels, struct report_progress *progress,
                             const volatile sig_atomic_t *stop, struct render_mesh *mesh)
{
    struct painter painter = {.mesh = mesh};
    vkn_status status = create(renderer, scene, voxels->edge, &painter);
    if (status == VKN_OK)
        status = paint_all(&painter, progress, stop);
    if (status == VKN_OK)
        fill_uncovered(&painter);
    uint64_t allocated = painter.query.device ? gpu_memory_allocated(painter.query.device) : 0;
    mesh->device_bytes = allocated > mesh->device_bytes ? allocated : mesh->device_bytes;
    destroy(&painter);
    return status;
}
