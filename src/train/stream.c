#include "train/stream.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of pixels that are read before they are uploaded. */
#define FILL_BYTES ((uint64_t)16 << 20)

/* A view on its way to the device. */
struct arrival {
    uint32_t view, slot, shrink;
};

struct stream {
    struct step *step;
    const struct scene *scene;
    const struct images_plan *plan;
    struct vkn_config config;
    uint32_t *order;  /* see images_shuffle */
    uint32_t *shrink; /* by slot: of the view there */
    uint64_t period;  /* that was last prepared for */
    uint64_t window;  /* on the device */
    struct stream_state state;
    /* The exchange that leads to the next window. */
    struct arrival *arrivals;
    uint32_t arrival_count;
    struct base_task *reading; /* NULL: there is nothing to read */
    struct gpu_recording *recordings[IMAGES_EXCHANGES]; /* of the last exchanges */
};

/* ---- pixels -------------------------------------------------------------------------------- */

static size_t arrival_pixels(const struct scene_split *train, const struct arrival *arrival)
{
    struct scene_camera camera =
        scene_shrink_camera(&train->cameras[arrival->view], arrival->shrink);
    return (size_t)camera.width * camera.height;
}

/* Views that are read into places one slot apart. */
struct reading {
    const struct scene *scene;
    const struct arrival *arrivals;
    uint32_t *pixels;
    uint64_t slot_pixels;
};

static vkn_status read_arrival(void *context, size_t index)
{
    const struct reading *reading = context;
    const struct arrival *arrival = &reading->arrivals[index];
    return scene_read_view(reading->scene, SCENE_TRAIN, arrival->view, arrival->shrink,
                           reading->pixels + index * reading->slot_pixels);
}

/* The camera of a view in a slot. */
static struct Camera arrival_camera(const struct images_plan *plan, const struct scene_split *train,
                                    const struct arrival *arrival)
{
    struct scene_camera camera =
        scene_shrink_camera(&train->cameras[arrival->view], arrival->shrink);
    camera.first_pixel = images_place(plan, train, arrival->view, arrival->slot);
    return step_camera(&camera);
}

/* Reads and uploads, a few at a time. */
static vkn_status upload_pixels(struct step *step, const struct scene *scene,
                                const struct arrival *arrivals, size_t count)
{
    const struct images_plan *plan = &step->images;
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t batch = (size_t)(FILL_BYTES / (4 * plan->slot_pixels));
    batch = batch < 1 ? 1 : batch < count ? batch : count;
    uint32_t *pixels = base_alloc(batch * plan->slot_pixels, sizeof *pixels);
    vkn_status status = pixels ? VKN_OK : VKN_ERROR;
    for (size_t first = 0; first < count && status == VKN_OK; first += batch) {
        const struct arrival *here = arrivals + first;
        struct reading reading = {scene, here, pixels, plan->slot_pixels};
        size_t size = count - first < batch ? count - first : batch;
        status = base_parallel(size, read_arrival, &reading, NULL);
        for (size_t i = 0; i < size && status == VKN_OK; i++)
            status = gpu_upload(step->device, &step->buffers.pixels,
                                4 * images_place(plan, train, here[i].view, here[i].slot),
                                pixels + i * plan->slot_pixels, 4 * arrival_pixels(train, &here[i]));
    }
    free(pixels);
    return status;
}

/* The cameras of `count` views, from the table's place `first` on. */
static vkn_status upload_cameras(struct step *step, const struct scene *scene,
                                 const struct arrival *arrivals, uint32_t first, size_t count)
{
    struct Camera *cameras = base_alloc(count, sizeof *cameras);
    if (!cameras)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        cameras[i] = arrival_camera(&step->images, &scene->splits[SCENE_TRAIN], &arrivals[i]);
    vkn_status status = gpu_upload(step->device, &step->buffers.cameras, first * sizeof *cameras,
                                   cameras, count * sizeof *cameras);
    free(cameras);
    return status;
}

/* ---- all at once --------------------------------------------------------------------------- */

vkn_status stream_load(struct scene *scene, const struct vkn_config *config,
                       void (*progress)(void *context, size_t done, size_t total), void *context)
{
    if (scene->splits[SCENE_TRAIN].pixels || !images_fit_host(scene, config))
        return VKN_OK;
    return scene_load(scene, SCENE_TRAIN, progress, context);
}

vkn_status stream_upload_all(struct step *step, const struct scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct arrival *arrivals = base_alloc(train->camera_count, sizeof *arrivals);
    if (!arrivals)
        return VKN_ERROR;
    for (uint32_t i = 0; i < train->camera_count; i++)
        arrivals[i] = (struct arrival){.view = i, .slot = i, .shrink = 1};
    vkn_status status = upload_cameras(step, scene, arrivals, 0, train->camera_count);
    if (status == VKN_OK && step->images.exchanged == 0)
        status = train->pixels ? gpu_upload(step->device, &step->buffers.pixels, 0, train->pixels,
                                            4 * train->pixel_count)
                               : upload_pixels(step, scene, arrivals, train->camera_count);
    free(arrivals);
    return status;
}

/* ---- reading ahead ------------------------------------------------------------------------- */

/* Of the images that enter for that period. */
static uint32_t stage_of(const struct stream *stream, uint64_t period, double time_progress)
{
    double progress = images_progress(&stream->config, period);
    return images_shrink(&stream->config, progress > time_progress ? progress : time_progress);
}

/* Where the exchange that leads to that window lies. */
static const struct gpu_buffer *exchange_buffer(const struct stream *stream, uint64_t window)
{
    return &stream->step->buffers.exchanges[window % IMAGES_EXCHANGES];
}

static vkn_status read_exchange(void *context)
{
    const struct stream *stream = context;
    struct reading reading = {stream->scene, stream->arrivals,
                              exchange_buffer(stream, stream->window + 1)->mapped,
                              stream->plan->slot_pixels};
    return base_parallel(stream->arrival_count, read_arrival, &reading, NULL);
}

/* Lists what the next window has more than this one, and begins to read it. */
static vkn_status read_ahead(struct stream *stream, double time_progress)
{
    const struct images_plan *plan = stream->plan;
    uint32_t shrink = stage_of(stream, stream->period + 1, time_progress);
    stream->state.shrink = stage_of(stream, stream->period, time_progress);
    stream->arrival_count = 0;
    for (uint32_t i = 0; i < plan->exchanged; i++) {
        uint64_t position = stream->window * plan->exchanged + plan->resident + i;
        struct arrival arrival = {.view = stream->order[position % plan->views],
                                  .slot = (uint32_t)(position % plan->resident),
                                  .shrink = shrink};
        bool there =
            plan->resident == plan->views && stream->shrink[arrival.slot] == arrival.shrink;
        if (!there)
            stream->arrivals[stream->arrival_count++] = arrival;
    }
    if (stream->arrival_count == 0)
        return VKN_OK;
    struct gpu_recording *last = stream->recordings[(stream->window + 1) % IMAGES_EXCHANGES];
    if (last)
        BASE_TRY(gpu_wait(last)); /* over since the period after it is */
    return base_task_start(read_exchange, stream, &stream->reading);
}

/* ---- exchanging ---------------------------------------------------------------------------- */

static void record_arrival(const struct stream *stream, struct gpu_recording *recording,
                           uint64_t window, uint32_t index)
{
    const struct step_buffers *b = &stream->step->buffers;
    const struct images_plan *plan = stream->plan;
    const struct scene_split *train = &stream->scene->splits[SCENE_TRAIN];
    const struct arrival *arrival = &stream->arrivals[index];
    struct Camera camera = arrival_camera(plan, train, arrival);
    const struct gpu_buffer *from = exchange_buffer(stream, window);
    uint64_t place = 4 * plan->exchanged * plan->slot_pixels + index * sizeof camera;
    memcpy((char *)from->mapped + place, &camera, sizeof camera);
    gpu_record_copy(recording, from, place, &b->cameras,
                    (plan->views + (uint64_t)arrival->slot) * sizeof camera, sizeof camera);
    gpu_record_copy(recording, from, 4 * index * plan->slot_pixels, &b->pixels,
                    4ull * camera.first_pixel, 4 * arrival_pixels(train, arrival));
}

/* What was read goes to the device, behind all that was submitted before. */
static vkn_status submit_exchange(struct stream *stream)
{
    uint64_t window = stream->window + 1;
    struct gpu_recording **recording = &stream->recordings[window % IMAGES_EXCHANGES];
    gpu_recording_destroy(recording);
    BASE_TRY(gpu_record_begin(stream->step->device, "exchange of images", 0, recording));
    for (uint32_t i = 0; i < stream->arrival_count; i++)
        record_arrival(stream, *recording, window, i);
    BASE_TRY(gpu_record_end(*recording));
    BASE_TRY(gpu_submit(*recording));
    for (uint32_t i = 0; i < stream->arrival_count; i++)
        stream->shrink[stream->arrivals[i].slot] = stream->arrivals[i].shrink;
    stream->state.exchanged += stream->arrival_count;
    return VKN_OK;
}

vkn_status stream_advance(struct stream *stream, uint64_t step, double time_progress)
{
    if (step / PERIOD_STEPS == stream->period)
        return VKN_OK;
    stream->period = step / PERIOD_STEPS;
    if (stream->reading && !stream->config.deterministic && !base_task_finished(stream->reading)) {
        stream->state.late++;
        return VKN_OK;
    }
    if (stream->reading) {
        BASE_TRY(base_task_wait(&stream->reading));
        BASE_TRY(submit_exchange(stream));
    }
    stream->window++;
    return read_ahead(stream, time_progress);
}

vkn_status stream_seek(struct stream *stream, uint64_t step, double time_progress)
{
    const struct images_plan *plan = stream->plan;
    BASE_TRY(base_task_wait(&stream->reading));
    stream->window = stream->period = step / PERIOD_STEPS;
    struct arrival *arrivals = base_alloc(plan->resident, sizeof *arrivals);
    if (!arrivals)
        return VKN_ERROR;
    for (uint32_t slot = 0; slot < plan->resident; slot++) {
        uint64_t position = images_position(plan, stream->window, slot);
        arrivals[slot] = (struct arrival){
            .view = stream->order[position % plan->views],
            .slot = slot,
            .shrink = stage_of(stream, images_entry(plan, position), time_progress),
        };
        stream->shrink[slot] = arrivals[slot].shrink;
    }
    vkn_status status = upload_pixels(stream->step, stream->scene, arrivals, plan->resident);
    if (status == VKN_OK)
        status = upload_cameras(stream->step, stream->scene, arrivals, plan->views, plan->resident);
    free(arrivals);
    return status == VKN_OK ? read_ahead(stream, time_progress) : status;
}

/* ---- life ---------------------------------------------------------------------------------- */

vkn_status stream_create(struct step *step, const struct scene *scene,
                         const struct vkn_config *config, struct stream **created)
{
    const struct images_plan *plan = &step->images;
    struct stream *stream = base_alloc(1, sizeof *stream);
    if (!stream)
        return VKN_ERROR;
    *stream = (struct stream){.step = step, .scene = scene, .plan = plan, .config = *config};
    stream->order = base_alloc(plan->views, sizeof *stream->order);
    stream->shrink = base_alloc(plan->resident, sizeof *stream->shrink);
    stream->arrivals = base_alloc(plan->exchanged, sizeof *stream->arrivals);
    if (!stream->order || !stream->shrink || !stream->arrivals) {
        stream_destroy(&stream);
        return VKN_ERROR;
    }
    images_shuffle(plan, config->seed, stream->order);
    stream->state.shrink = images_shrink(config, 0.0);
    *created = stream;
    return VKN_OK;
}

void stream_destroy(struct stream **destroyed)
{
    struct stream *stream = *destroyed;
    if (!stream)
        return;
    *destroyed = NULL;
    (void)base_task_wait(&stream->reading); /* what nobody needs any more may have failed */
    for (uint32_t i = 0; i < IMAGES_EXCHANGES; i++)
        gpu_recording_destroy(&stream->recordings[i]);
    free(stream->order);
    free(stream->shrink);
    free(stream->arrivals);
    free(stream);
}

struct stream_state stream_state(const struct stream *stream)
{
    return stream->state;
}
