/* Makes a scene of three tiny pictures and trainers of a tiny model, for tests of steps. */
#ifndef TESTS_STEP_FIXTURE_H
#define TESTS_STEP_FIXTURE_H

#include "pass_fixture.h"

#include "scenes.h"
#include "checkpoint/checkpoint.h"
#include "step/internal.h"
#include "train/internal.h"

/* transforms.json as D-NeRF has it: cameras 4 units from the origin on the three axes. */
#define FRAME(name, time, r, u, b)                                                          \
    "{\"file_path\": \"" name "\", \"time\": " time ", \"transform_matrix\": [[" r "], [" u \
    "], [" b "], [0,0,0,1]]}"
static const char transforms[] = "{\"camera_angle_x\": 0.6, \"frames\": [" FRAME(
    "train/z", "0.25", "1,0,0,0", "0,1,0,0",
    "0,0,1,4") ", " FRAME("train/x", "0.5", "0,0,1,4", "0,1,0,0",
                          "-1,0,0,0") ", " FRAME("train/y", "1", "1,0,0,0", "0,0,1,4",
                                                 "0,-1,0,0") "]}";

static inline void make_scene(struct temporary *folder)
{
    static const char *const names[] = {"train/z.png", "train/x.png", "train/y.png"};
    temporary_text(folder, "transforms_train.json", transforms);
    for (size_t n = 0; n < BASE_COUNT(names); n++) {
        uint8_t pixels[12 * 10 * 4];
        for (size_t i = 0; i < 12 * 10; i++) {
            size_t x = i % 12, y = i / 12;
            const uint8_t pixel[4] = {(uint8_t)(20 * x), (uint8_t)(25 * y), (uint8_t)(100 * n),
                                      x < 4 ? 60 : 255};
            memcpy(&pixels[4 * i], pixel, 4);
        }
        ok(scene_image_write_png(temporary_path(folder, names[n]), pixels, 12, 10, 4));
    }
}

static inline struct vkn_config tiny_config(bool deterministic)
{
    return (struct vkn_config){
        .deterministic = deterministic,
        .seed = 3,
        .steps = 60,
        .grid = {.levels = 4, .features = 2, .log2_entries = 8, .coarsest = 4, .finest = 16},
        .mlp = {.density_width = 16,
                .density_layers = 1,
                .geometry = 16,
                .color_width = 16,
                .color_layers = 1,
                .sh_degree = 3},
        .march = {.sampling = VKN_SAMPLING_OCCUPANCY, .resolution = 16, .steps_per_unit = 64},
        .batch = {.samples = 2112, .max_rays = 256},
        .loss = {.distortion_curve = VKN_DISTORTION_LADDER, .distortion = 0.01f},
    };
}

/* Adds a small proposal, whose annealing ends after eight steps; it then learns in one of three. */
static inline void tiny_propose(struct vkn_config *config)
{
    config->march.sampling = VKN_SAMPLING_PROPOSAL;
    config->march.coarse_samples = 20;
    config->march.fine_samples = 14;
    config->proposal.levels = 2;
    config->proposal.log2_entries = 8;
    config->proposal.finest = 32;
    config->proposal.width = 16;
    config->proposal.anneal_steps = 8;
    config->proposal.interval = 3;
}

/* A scene and a trainer of one test; the device is shared by all trainers of the program. */
struct tiny {
    vkn_context *context;
    vkn_scene *scene;
    vkn_trainer *trainer;
};

/* Returns the bytes held, without the staging buffer, which is made at its first use. */
static inline uint64_t tiny_held(const struct gpu_device *device)
{
    struct gpu_memory_use uses[VKN_MAX_BUFFERS];
    size_t count = gpu_memory_uses(device, uses, BASE_COUNT(uses));
    uint64_t held = 0;
    for (size_t i = 0; i < count; i++)
        held += strcmp(uses[i].name, "staging") == 0 ? 0 : uses[i].bytes;
    return held;
}

/* Limit of workgroups of passes over samples in tiny trainers; 0: none. A CPU device starts 64
 * workgroups per pass, which is most of a tiny step's time. */
static uint32_t tiny_groups;
#define TINY_GROUPS 8u

static inline void tiny_limit_groups(vkn_trainer *trainer)
{
    struct step *step = &trainer->step;
    if (tiny_groups == 0)
        return;
    step->setup.constants.forward_groups = tiny_groups;
    step->coarse_setup.constants.forward_groups = tiny_groups;
    ok(step_upload_constants(step));
}

/* Creates a trainer and checks that it uses the memory that train_memory() predicts, but for
 * alignment and lists of addresses. */
static inline struct tiny tiny_create(vkn_context *context, struct temporary *folder,
                                      const struct vkn_config *config)
{
    struct tiny tiny = {.context = context};
    uint64_t held = tiny_held(context->device), expected = 0;
    ok(vkn_scene_open(folder->path, config, &tiny.scene));
    ok(vkn_trainer_create(context, tiny.scene, config, &tiny.trainer));
    ok(train_memory(context->device, tiny.scene, vkn_trainer_config(tiny.trainer), &expected));
    tiny_limit_groups(tiny.trainer);
    uint64_t used = tiny_held(context->device) - held;
    if (used < expected || used > expected + 65536)
        fail_msg("%llu bytes of memory are expected, %llu are used", (unsigned long long)expected,
                 (unsigned long long)used);
    return tiny;
}

static inline void tiny_destroy(struct tiny *tiny)
{
    vkn_trainer_destroy(&tiny->trainer);
    vkn_scene_close(&tiny->scene);
}

static inline void tiny_run(struct tiny *tiny, uint32_t until_step)
{
    struct vkn_train_run run = {.until_step = until_step};
    ok(vkn_trainer_run(tiny->trainer, &run));
    assert_int_equal(vkn_trainer_step(tiny->trainer), until_step);
}

/* Downloads a whole buffer into memory that the caller frees. */
static inline void *tiny_read(const struct tiny *tiny, const struct gpu_buffer *buffer)
{
    void *data = base_alloc(buffer->size, 1);
    assert_non_null(data);
    ok(gpu_download(tiny->trainer->device, buffer, 0, data, buffer->size));
    return data;
}

static inline void tiny_put(const struct tiny *tiny, const struct gpu_buffer *buffer,
                            const void *data)
{
    ok(gpu_upload(tiny->trainer->device, buffer, 0, data, buffer->size));
}

/* Scales the activations before the last layer, so that its weights get large gradients while the
 * field's output stays the same. */
static inline void tiny_stretch_last_layer(struct tiny *tiny, float factor)
{
    const struct step *step = &tiny->trainer->step;
    const struct field_layer *layers = step->setup.model.layers;
    uint32_t last = step->setup.model.layer_count - 1;
    float *params = tiny_read(tiny, &step->buffers.at[BIND_PARAMS]);
    for (uint32_t i = layers[last - 1].first; i < step->setup.model.mlp_params; i++)
        params[i] *= i < layers[last].first ? factor : 1 / factor;
    tiny_put(tiny, &step->buffers.at[BIND_PARAMS], params);
    ok(step_round_parameters(&tiny->trainer->step));
    free(params);
}

struct warnings {
    unsigned count;
    char last[MONITOR_LINE];
};

static inline void store_warning(void *context, const char *line)
{
    struct warnings *warnings = context;
    warnings->count++;
    snprintf(warnings->last, sizeof warnings->last, "%s", line);
}

static inline void tiny_run_watched(struct tiny *tiny, uint32_t until_step,
                                    struct warnings *warnings)
{
    const struct vkn_train_run run = {
        .until_step = until_step, .warn = store_warning, .context = warnings};
    ok(vkn_trainer_run(tiny->trainer, &run));
}

/* Scene folder and device of a group of tests. */
struct step_tests {
    struct temporary *folder;
    vkn_context *context;
};

static inline int step_tests_open(void **state, void (*make)(struct temporary *folder))
{
    static struct step_tests tests;
    void *folder;
    if (temporary_setup(&folder) != 0 || vkn_context_create(NULL, &tests.context) != VKN_OK)
        return -1;
    tests.folder = folder;
    make(folder);
    vkn_log_quiet(true);
    *state = &tests;
    return 0;
}

static inline int step_tests_setup(void **state)
{
    return step_tests_open(state, make_scene);
}

static inline int step_tests_teardown(void **state)
{
    struct step_tests *tests = *state;
    void *folder = tests->folder;
    vkn_context_destroy(&tests->context);
    return temporary_teardown(&folder);
}

/* Saves a checkpoint beside the scene; the caller frees its path. */
static inline char *tiny_save(const struct step_tests *tests, const struct tiny *tiny,
                              const char *name)
{
    char *path = base_path_join(tests->folder->path, name);
    ok(vkn_trainer_save(tiny->trainer, path));
    return path;
}

/* Returns whether the files are equal byte for byte. */
static inline bool same_checkpoints(const char *first, const char *second)
{
    char *a = NULL, *b = NULL;
    size_t a_size = 0, b_size = 0;
    ok(base_file_read(first, SIZE_MAX, &a, &a_size));
    ok(base_file_read(second, SIZE_MAX, &b, &b_size));
    bool same = a_size > 0 && a_size == b_size && memcmp(a, b, a_size) == 0;
    free(a);
    free(b);
    return same;
}

/* Returns whether all tensors are equal; metadata such as the time may differ. */
static inline bool same_tensors(const char *first, const char *second)
{
    struct safetensors_file *a, *b;
    ok(safetensors_open(first, &a));
    ok(safetensors_open(second, &b));
    bool same = safetensors_count(a) > 0 && safetensors_count(a) == safetensors_count(b);
    for (size_t i = 0; same && i < safetensors_count(a); i++) {
        const struct safetensors_tensor *one = safetensors_at(a, i), *other = safetensors_at(b, i);
        same = strcmp(one->name, other->name) == 0 && one->size == other->size &&
               memcmp(one->data, other->data, one->size) == 0;
    }
    safetensors_close(&a);
    safetensors_close(&b);
    return same;
}

/* Trains a new trainer to a step, after resuming `from` unless that is NULL, and saves it. */
static inline char *tiny_train(const struct step_tests *tests, const struct vkn_config *config,
                               const char *from, uint32_t until_step, const char *name)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    if (from)
        ok(vkn_trainer_resume(tiny.trainer, from));
    tiny_run(&tiny, until_step);
    char *path = tiny_save(tests, &tiny, name);
    tiny_destroy(&tiny);
    return path;
}

/* Checks that a training to the configuration's last step gives the same bits when it stops and
 * resumes within an update interval, at its end, and after its beginning. */
static inline void tiny_check_resume(const struct step_tests *tests,
                                     const struct vkn_config *config, const char *what)
{
    const uint32_t stops[] = {7, 16, 33, config->steps};
    char *whole = tiny_train(tests, config, NULL, config->steps, "whole"), *checkpoint = NULL;
    for (size_t i = 0; i < BASE_COUNT(stops); i++) {
        char name[16];
        snprintf(name, sizeof name, "part-%u", stops[i]);
        char *next = tiny_train(tests, config, checkpoint, stops[i], name);
        free(checkpoint);
        checkpoint = next;
    }
    if (!same_checkpoints(whole, checkpoint))
        fail_msg("%s: resumed training differs", what);
    free(whole);
    free(checkpoint);
}

#endif
