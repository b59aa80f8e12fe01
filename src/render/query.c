/* Evaluates the field at the caller's points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/field_query.h"
#include "render/given.h"

/* Pipelines and buffers of vkn_renderer_query, which stay from call to call. */
struct render_query {
    struct query query;
    struct gpu_bindings *bindings;
};

void render_query_destroy(struct render_query **query)
{
    if (!*query)
        return;
    gpu_bindings_destroy(&(*query)->bindings);
    field_query_destroy(&(*query)->query);
    free(*query);
    *query = NULL;
}

static vkn_status create(struct vkn_renderer *r)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    if (r->query)
        return VKN_OK;
    r->query = base_alloc(1, sizeof *r->query);
    vkn_status status = r->query ? field_query_create(r, &r->query->query) : VKN_ERROR;
    if (status == VKN_OK) {
        field_query_bind(&r->query->query, bound);
        status = gpu_bindings_create(r->device, bound, &r->query->bindings);
    }
    if (status != VKN_OK)
        render_query_destroy(&r->query);
    return status;
}

static vkn_status check(const struct vkn_points *points)
{
    const struct given_array arrays[] = {
        {"positions", points->positions, 3, GIVEN_FINITE, true},
        {"directions", points->directions, 3, GIVEN_DIRECTION, points->colors != NULL},
        {"times", points->times, 1, GIVEN_TIME, false},
    };
    return given_check("vkn_points", points->count, arrays, BASE_COUNT(arrays));
}

/* A batch of points: what is uploaded and what comes back. */
struct batch {
    struct Ray *rays;
    struct Sample *samples;
    float (*values)[4]; /* rgb and density */
};

static void fill(const struct vkn_renderer *r, const struct vkn_points *points, size_t first,
                 uint32_t count, const struct batch *batch)
{
    for (uint32_t i = 0; i < count; i++) {
        batch->rays[i] =
            given_ray(r, points->positions, points->directions, points->times, first + i);
        batch->samples[i] = (struct Sample){.ray = i};
    }
}

/* Returns training units, or units of contracted radius, per dataset unit at a position in training
 * space: see width_at of shaders/shared/contraction.glsl. 0: the field is not defined there. */
static double units_at(const struct vkn_renderer *r, const float position[3])
{
    double norm = 0, scale = r->setup.config.scene.scale;
    for (int i = 0; i < 3; i++)
        norm =
            fmax(norm, fabs((double)position[i] - 0.5) * 2 / (double)r->setup.constants.aabb_scale);
    if (norm <= 1)
        return scale;
    return r->setup.config.scene.contraction == VKN_CONTRACTION_CUBE ? scale / (norm * norm) : 0;
}

static void store(const struct vkn_renderer *r, const struct batch *batch, size_t first,
                  uint32_t count, const struct vkn_points *points)
{
    for (uint32_t i = 0; i < count; i++) {
        const float *value = batch->values[i];
        double units = units_at(r, batch->rays[i].origin);
        if (points->densities)
            points->densities[first + i] = units > 0 ? (float)(value[3] * units) : 0.0F;
        for (int c = 0; c < 3 && points->colors; c++)
            points->colors[3 * (first + i) + c] = units > 0 ? value[c] : 0.0F;
    }
}

static vkn_status evaluate(const struct vkn_renderer *r, const struct batch *batch, uint32_t count,
                           bool color)
{
    const struct query *query = &r->query->query;
    const struct buffers *buffers = &query->buffers;
    BASE_TRY(gpu_upload(r->device, &buffers->at[BIND_RAYS], 0, batch->rays,
                        count * sizeof *batch->rays));
    BASE_TRY(gpu_upload(r->device, &buffers->at[BIND_SAMPLES], 0, batch->samples,
                        count * sizeof *batch->samples));
    GPU_ONCE(r->device, "points");
    field_query_record(query, recording, r->query->bindings, count, color);
    BASE_TRY(gpu_run_once(&recording));
    return gpu_download(r->device, &buffers->at[BIND_FIELD], 0, batch->values,
                        count * sizeof *batch->values);
}

vkn_status vkn_renderer_query(vkn_renderer *renderer, const struct vkn_points *points)
{
    BASE_C_LOCALE;
    BASE_NEED(renderer);
    BASE_NEED(points);
    BASE_USE(gpu_guard(renderer->device), renderer);
    struct vkn_points own;
    BASE_TRY(BASE_READ(__func__, vkn_points, points, &own, colors));
    points = &own;
    BASE_TRY(check(points));
    BASE_TRY(create(renderer));
    size_t capacity = renderer->query->query.capacity;
    capacity = points->count < capacity ? points->count : capacity;
    const struct batch batch = {base_alloc(capacity + 1, sizeof *batch.rays),
                                base_alloc(capacity + 1, sizeof *batch.samples),
                                base_alloc(capacity + 1, sizeof *batch.values)};
    vkn_status status = batch.rays && batch.samples && batch.values ? VKN_OK : VKN_ERROR;
    for (size_t first = 0; first < points->count && status == VKN_OK; first += capacity) {
        size_t left = points->count - first;
        uint32_t count = (uint32_t)(left < capacity ? left : capacity);
        fill(renderer, points, first, count, &batch);
        status = evaluate(renderer, &batch, count, points->colors != NULL);
        if (status == VKN_OK)
            store(renderer, &batch, first, count, points);
    }
    free(batch.rays);
    free(batch.samples);
    free(batch.values);
    return status;
}
