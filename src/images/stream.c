/* Uploads the training images, or streams image strips to the device during training. */
#include "images/images.h"

#include <stdlib.h>
#include <string.h>

#define FILL_BYTES ((uint64_t)16 << 20) /* of pixels that are read and uploaded at a time */

struct stream {
    struct step *step;
    const struct vkn_scene *scene;
    const struct images_plan *plan;
    struct vkn_config config;
    struct gpu_arena *arena;
    struct gpu_buffer exchanges[IMAGES_EXCHANGES]; /* host memory that the device copies from */
    uint32_t *order;     /* [image_strips], see images_shuffle, images_sort */
    uint32_t *available; /* [available_count], see images_available */
    uint32_t available_count;
    float latest;      /* time for which `available` was computed */
    uint32_t *shrink;  /* [slot], downscale factor of the strip in the slot */
    uint64_t interval; /* last update interval that was prepared */
    uint64_t window;   /* the window whose strips are on the device */
    struct stream_state state;
    struct images_strip *arrivals; /* [arrival_count], strips that enter with the next window */
    uint32_t arrival_count;
    struct base_task *task;                             /* reads `arrivals`; NULL: none to read */
    struct gpu_recording *recordings[IMAGES_EXCHANGES]; /* copies of the last exchanges */
};

/* ---- pixels -------------------------------------------------------------------------------- */

static uint64_t strip_bytes(const struct images_strip *image_strip)
{
    return 4ull * image_strip->camera.width * image_strip->camera.height;
}

/* Strips to be read into pixels[strip][slot_pixels]. */
struct reading {
    const struct vkn_scene *scene;
    const struct images_strip *image_strips;
    uint32_t *pixels;
    uint64_t slot_pixels;
};

static vkn_status read_strip(void *context, size_t index)
{
    const struct reading *reading = context;
    const struct images_strip *image_strip = &reading->image_strips[index];
    return scene_read_rows(reading->scene, SCENE_TRAIN, image_strip->view, image_strip->first_row,
                           image_strip->rows, image_strip->shrink,
                           reading->pixels + index * reading->slot_pixels);
}

/* Returns how many strips, from the first, have consecutive slots and can be copied as a region. */
static size_t run_length(const struct images_plan *plan, const struct images_strip *image_strips,
                         size_t count)
{
    size_t length = 1;
    while (length < count && image_strips[length].slot == image_strips[0].slot + length &&
           image_strips[length].camera.first_pixel ==
               image_strips[0].camera.first_pixel + length * plan->slot_pixels)
        length++;
    return length;
}

/* Returns the bytes from the start of the first strip to the end of the last. */
static uint64_t run_bytes(const struct images_plan *plan, const struct images_strip *image_strips,
                          size_t length)
{
    return 4 * (length - 1) * plan->slot_pixels + strip_bytes(&image_strips[length - 1]);
}

/* Reads and uploads strips, FILL_BYTES at a time. */
static vkn_status upload_pixels(struct step *step, const struct images_plan *plan,
                                const struct vkn_scene *scene,
                                const struct images_strip *image_strips, size_t count)
{
    size_t batch = (size_t)(FILL_BYTES / (4 * plan->slot_pixels));
    batch = batch < 1 ? 1 : batch < count ? batch : count;
    uint32_t *pixels = base_alloc(batch * plan->slot_pixels, sizeof *pixels);
    vkn_status status = pixels ? VKN_OK : VKN_ERROR;
    for (size_t first = 0; first < count && status == VKN_OK; first += batch) {
        const struct images_strip *batch_strips = image_strips + first;
        struct reading reading = {scene, batch_strips, pixels, plan->slot_pixels};
        size_t size = count - first < batch ? count - first : batch;
        status = base_parallel(size, read_strip, &reading, NULL);
        for (size_t i = 0, run = 0; i < size && status == VKN_OK; i += run) {
            run = run_length(plan, &batch_strips[i], size - i);
            status =
                gpu_upload(step->device, &step->buffers.at[BIND_PIXELS],
                           4 * batch_strips[i].camera.first_pixel, pixels + i * plan->slot_pixels,
                           run_bytes(plan, &batch_strips[i], run));
        }
    }
    free(pixels);
    return status;
}

/* Uploads the strips' cameras to BIND_CAMERAS, from index `first` on. */
static vkn_status upload_cameras(struct step *step, const struct images_plan *plan,
                                 const struct scene_split *train,
                                 const struct images_strip *image_strips, uint32_t first,
                                 size_t count)
{
    struct Camera *cameras = base_alloc(count, sizeof *cameras);
    if (!cameras)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        cameras[i] = images_camera(plan, train, &image_strips[i]);
    vkn_status status = gpu_upload(step->device, &step->buffers.at[BIND_CAMERAS],
                                   first * sizeof *cameras, cameras, count * sizeof *cameras);
    free(cameras);
    return status;
}

/* ---- loading and uploading all images ------------------------------------------------------ */

vkn_status stream_load(struct vkn_scene *scene, const struct vkn_config *config,
                       void (*progress)(void *context, size_t done, size_t total), void *context)
{
    if (!scene->splits[SCENE_TRAIN].pixels && images_fit_host(scene, config)) {
        BASE_TRY(base_memory_check(4 * scene->splits[SCENE_TRAIN].pixel_count,
                                   "keeping the decoded training images",
                                   "scene.host_budget, or the images (--downscale)"));
        BASE_TRY(scene_load(scene, SCENE_TRAIN, progress, context));
    }
    if (scene->background.views == 0)
        scene_find_background(scene);
    if (config->scene.appearance == VKN_APPEARANCE_DEFAULT)
        scene_find_exposures(scene);
    if (config->scene.sky == VKN_SWITCH_DEFAULT)
        scene_find_sky(scene);
    return config->loss.depth >= 0 ? scene_find_depths(scene, SCENE_TRAIN) : VKN_OK;
}

/* Returns a whole view as a strip. */
static struct images_strip whole_view(const struct scene_split *train, uint32_t view)
{
    const struct scene_camera *camera = &train->cameras[view];
    return (struct images_strip){
        .view = view, .rows = camera->height, .shrink = 1, .camera = *camera};
}

/* Lists the cameras of all views; with a curriculum, sorts each virtual rank's cameras by time. */
static vkn_status list_cameras(const struct step *step, const struct images_plan *plan,
                               const struct scene_split *train, struct images_strip *views)
{
    const uint32_t turns = plan->share.of > 0 ? plan->share.of : 1;
    for (uint32_t i = 0; i < plan->cameras; i++)
        views[i] = whole_view(train, i);
    if (step->setup.constants.curriculum <= 0)
        return VKN_OK;
    uint32_t *order = base_alloc(plan->cameras, sizeof *order);
    vkn_status status = order ? VKN_OK : VKN_ERROR;
    for (uint32_t turn = 0; turn < turns && status == VKN_OK; turn++) {
        const struct scene_share share = {.first = turn, .count = 1, .of = turns};
        status = images_sort(train, share, order);
        for (uint32_t i = 0; status == VKN_OK && i < scene_share_count(share, plan->cameras); i++) {
            uint32_t view = (uint32_t)scene_share_view(share, order[i]);
            views[scene_share_view(share, i)] = whole_view(train, view);
        }
    }
    free(order);
    return status;
}

/* Uploads the known depths of the training views behind the cameras. */
static vkn_status upload_depths(struct step *step, const struct images_plan *plan,
                                const struct scene_split *train)
{
    _Static_assert(sizeof(struct scene_depth) == sizeof(struct Depth) &&
                       offsetof(struct scene_depth, sigma) == offsetof(struct Depth, sigma),
                   "scene and shaders agree");
    return plan->depths == 0 ? VKN_OK
                             : gpu_upload(step->device, &step->buffers.at[BIND_CAMERAS],
                                          4ull * step->setup.constants.first_depth_word,
                                          train->depths, plan->depths * sizeof(struct Depth));
}

vkn_status stream_upload_all(struct step *step, const struct images_plan *plan,
                             const struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    BASE_TRY(step_begin_views(step, train));
    struct images_strip *views = base_alloc(plan->cameras, sizeof *views);
    if (!views)
        return VKN_ERROR;
    vkn_status status = list_cameras(step, plan, train, views);
    if (status == VKN_OK)
        status = upload_cameras(step, plan, train, views, 0, plan->cameras);
    if (status == VKN_OK)
        status = upload_depths(step, plan, train);
    for (uint32_t i = 0; i < plan->views && plan->exchanged == 0; i++)
        views[i] = images_strip(plan, train, i, i, 1);
    if (status == VKN_OK && plan->exchanged == 0)
        status = train->pixels ? gpu_upload(step->device, &step->buffers.at[BIND_PIXELS], 0,
                                            train->pixels, 4 * train->pixel_count)
                               : upload_pixels(step, plan, scene, views, plan->views);
    free(views);
    return status;
}

/* ---- reading ahead ------------------------------------------------------------------------- */

/* Returns the downscale factor of the strips that enter for an update interval. */
static uint32_t stage_of(const struct stream *stream, uint64_t interval, double time_progress)
{
    double progress = images_progress(&stream->config, interval);
    return images_shrink(&stream->config, progress > time_progress ? progress : time_progress);
}

/* Returns the strip at a position of the sequence, which depends on the curriculum's time at the
 * update interval for which the strip enters. */
static uint32_t strip_at(struct stream *stream, uint64_t position, uint64_t interval,
                         double time_progress)
{
    const struct images_plan *plan = stream->plan;
    if (plan->resident == plan->image_strips) /* all strips keep their slots */
        return stream->order[position % plan->image_strips];
    float latest = images_latest_time(&stream->step->setup.constants, interval * UPDATE_INTERVAL,
                                      time_progress);
    if (stream->available_count == 0 || latest != stream->latest)
        stream->available_count = images_available(plan, &stream->scene->splits[SCENE_TRAIN],
                                                   stream->order, latest, stream->available);
    stream->latest = latest;
    return stream->available[position % stream->available_count];
}

/* Returns the host buffer of the exchange that leads to a window. */
static const struct gpu_buffer *exchange_buffer(const struct stream *stream, uint64_t window)
{
    return &stream->exchanges[window % IMAGES_EXCHANGES];
}

static vkn_status read_exchange(void *context)
{
    const struct stream *stream = context;
    struct reading reading = {stream->scene, stream->arrivals,
                              exchange_buffer(stream, stream->window + 1)->mapped,
                              stream->plan->slot_pixels};
    return base_parallel(stream->arrival_count, read_strip, &reading, NULL);
}

/* Lists the strips that enter with the next window, and starts to read them. */
static vkn_status read_ahead(struct stream *stream, double time_progress)
{
    const struct images_plan *plan = stream->plan;
    uint32_t shrink = stage_of(stream, stream->interval + 1, time_progress);
    stream->state.shrink = stage_of(stream, stream->interval, time_progress);
    stream->arrival_count = 0;
    for (uint32_t i = 0; i < plan->exchanged; i++) {
        uint64_t position = stream->window * plan->exchanged + plan->resident + i;
        uint32_t slot = (uint32_t)(position % plan->resident);
        if (plan->resident < plan->image_strips || stream->shrink[slot] != shrink)
            stream->arrivals[stream->arrival_count++] = images_strip(
                plan, &stream->scene->splits[SCENE_TRAIN],
                strip_at(stream, position, stream->interval + 1, time_progress), slot, shrink);
    }
    if (stream->arrival_count == 0)
        return VKN_OK;
    struct gpu_recording *last = stream->recordings[(stream->window + 1) % IMAGES_EXCHANGES];
    if (last)
        BASE_TRY(gpu_wait(last)); /* returns at once: it ran before the current interval */
    return base_task_start(read_exchange, stream, &stream->task);
}

/* ---- exchanging ---------------------------------------------------------------------------- */

/* Records the copies of strips `first` .. `first + run - 1` of the exchange for a window. */
static void record_run(const struct stream *stream, struct gpu_recording *recording,
                       uint64_t window, size_t first, size_t run)
{
    const struct gpu_buffer *buffers = stream->step->buffers.at;
    const struct images_plan *plan = stream->plan;
    const struct images_strip *image_strips = &stream->arrivals[first];
    const struct gpu_buffer *from = exchange_buffer(stream, window);
    uint64_t cameras = 4 * plan->exchanged * plan->slot_pixels;
    for (size_t i = 0; i < run; i++) {
        const struct Camera camera =
            images_camera(plan, &stream->scene->splits[SCENE_TRAIN], &image_strips[i]);
        memcpy((char *)from->mapped + cameras + (first + i) * sizeof camera, &camera,
               sizeof camera);
    }
    gpu_record_copy(recording, from, cameras + first * sizeof(struct Camera),
                    &buffers[BIND_CAMERAS],
                    (plan->cameras + (uint64_t)image_strips[0].slot) * sizeof(struct Camera),
                    run * sizeof(struct Camera));
    gpu_record_copy(recording, from, 4 * first * plan->slot_pixels, &buffers[BIND_PIXELS],
                    4 * image_strips[0].camera.first_pixel, run_bytes(plan, image_strips, run));
}

/* Submits the copies of the strips that were read. */
static vkn_status submit_exchange(struct stream *stream)
{
    uint64_t window = stream->window + 1;
    struct gpu_recording **recording = &stream->recordings[window % IMAGES_EXCHANGES];
    gpu_recording_destroy(recording);
    BASE_TRY(gpu_record_begin(stream->step->device, "exchange of images", 0, recording));
    for (size_t i = 0, run = 0; i < stream->arrival_count; i += run) {
        run = run_length(stream->plan, &stream->arrivals[i], stream->arrival_count - i);
        record_run(stream, *recording, window, i, run);
    }
    BASE_TRY(gpu_record_end(*recording));
    BASE_TRY(gpu_submit(*recording));
    for (uint32_t i = 0; i < stream->arrival_count; i++)
        stream->shrink[stream->arrivals[i].slot] = stream->arrivals[i].shrink;
    stream->state.exchanged += stream->arrival_count;
    return VKN_OK;
}

vkn_status stream_advance(struct stream *stream, uint64_t step, double time_progress)
{
    if (step / UPDATE_INTERVAL == stream->interval)
        return VKN_OK;
    stream->interval = step / UPDATE_INTERVAL;
    if (stream->task && !stream->config.deterministic && !base_task_finished(stream->task)) {
        stream->state.late++;
        return VKN_OK;
    }
    if (stream->task) {
        BASE_TRY(base_task_wait(&stream->task));
        BASE_TRY(submit_exchange(stream));
    }
    stream->window++;
    return read_ahead(stream, time_progress);
}

vkn_status stream_seek(struct stream *stream, uint64_t step, double time_progress)
{
    const struct images_plan *plan = stream->plan;
    BASE_TRY(base_task_wait(&stream->task));
    stream->window = stream->interval = step / UPDATE_INTERVAL;
    struct images_strip *image_strips = base_alloc(plan->resident, sizeof *image_strips);
    if (!image_strips)
        return VKN_ERROR;
    for (uint32_t slot = 0; slot < plan->resident; slot++) {
        uint64_t position = images_position(plan, stream->window, slot);
        uint64_t entry = images_entry_window(plan, position);
        stream->shrink[slot] = stage_of(stream, entry, time_progress);
        image_strips[slot] = images_strip(plan, &stream->scene->splits[SCENE_TRAIN],
                                          strip_at(stream, position, entry, time_progress), slot,
                                          stream->shrink[slot]);
    }
    vkn_status status =
        upload_pixels(stream->step, plan, stream->scene, image_strips, plan->resident);
    if (status == VKN_OK)
        status = upload_cameras(stream->step, plan, &stream->scene->splits[SCENE_TRAIN],
                                image_strips, plan->cameras, plan->resident);
    free(image_strips);
    return status == VKN_OK ? read_ahead(stream, time_progress) : status;
}

/* ---- creating and destroying --------------------------------------------------------------- */

static vkn_status allocate(struct stream *stream)
{
    uint64_t size = stream->plan->exchange_bytes;
    const struct gpu_buffer_request requests[IMAGES_EXCHANGES] = {
        {&stream->exchanges[0], "exchange of images", size, GPU_HOST},
        {&stream->exchanges[1], "exchange of images", size, GPU_HOST},
    };
    stream->order = base_alloc(stream->plan->image_strips, sizeof *stream->order);
    stream->shrink = base_alloc(stream->plan->resident, sizeof *stream->shrink);
    stream->arrivals = base_alloc(stream->plan->exchanged, sizeof *stream->arrivals);
    stream->available = base_alloc(stream->plan->image_strips, sizeof *stream->available);
    if (!stream->order || !stream->available || !stream->shrink || !stream->arrivals)
        return VKN_ERROR;
    return gpu_arena_create(stream->step->device, requests, IMAGES_EXCHANGES, &stream->arena);
}

vkn_status stream_create(struct step *step, const struct images_plan *plan,
                         const struct vkn_scene *scene, const struct vkn_config *config,
                         struct stream **created)
{
    *created = NULL;
    struct stream *stream = base_alloc(1, sizeof *stream);
    if (!stream)
        return VKN_ERROR;
    *stream = (struct stream){.step = step, .scene = scene, .plan = plan, .config = *config};
    vkn_status status = allocate(stream);
    if (status == VKN_OK)
        images_shuffle(plan, config->seed, stream->order);
    if (status == VKN_OK && plan->resident == plan->image_strips &&
        step->setup.constants.curriculum > 0)
        status = images_sort(&scene->splits[SCENE_TRAIN], plan->share, stream->order);
    if (status != VKN_OK) {
        stream_destroy(&stream);
        return status;
    }
    stream->state.shrink = images_shrink(config, 0.0);
    *created = stream;
    return VKN_OK;
}

void stream_destroy(struct stream **destroyed)
{
    BASE_KEEP_ERROR;
    struct stream *stream = *destroyed;
    if (!stream)
        return;
    *destroyed = NULL;
    (void)base_task_wait(&stream->task); /* a failed read no longer matters */
    for (uint32_t i = 0; i < IMAGES_EXCHANGES; i++)
        gpu_recording_destroy(&stream->recordings[i]);
    gpu_arena_destroy(&stream->arena);
    free(stream->order);
    free(stream->available);
    free(stream->shrink);
    free(stream->arrivals);
    free(stream);
}

struct stream_state stream_state(const struct stream *stream)
{
    return stream->state;
}
