/* Tests that deterministic training repeats bit for bit, also across stops and resumes, and that
 * reports equal the steps' statistics. */
#include "step_fixture.h"

#include "step/step.h"

#include <vknerf/run.h>

#include "gpu/internal.h"
#include "safetensors/safetensors.h"

/* ---- reported figures ---------------------------------------------------------------------- */

struct reported {
    const struct tiny *tiny;
    struct vkn_train_stats stats; /* of the last report */
    uint32_t from, count;         /* the last step of the report before; number of reports */
};

static void assert_figure(const char *what, double reported, double expected)
{
    check_close(reported, expected, 1e-9, fabs(expected), what, 0);
}

/* Checks means over the steps since the last report, and the last step's state. */
static void check_report(void *context, const struct vkn_train_stats *stats)
{
    struct reported *reported = context;
    const struct tiny *tiny = reported->tiny;
    const struct Stats *ring = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    const struct Stats *last = &ring[stats->step];
    reported->from = (uint32_t)reported->stats.step;
    double steps = (double)stats->step - reported->from, loss = 0, square = 0, underflowed = 0;
    double distortion = 0;
    for (uint32_t step = reported->from + 1; step <= stats->step; step++) {
        assert_int_equal(ring[step].step, step);
        loss += (double)ring[step].loss / steps;
        square += (double)ring[step].square / steps;
        distortion += (double)ring[step].distortion_loss / steps;
        underflowed += (double)ring[step].underflowed / steps;
    }
    assert_true(fabs(loss - square) > 0.01 * loss);
    assert_figure("loss", stats->loss, loss);
    if (tiny->trainer->config.loss.distortion > 0)
        assert_figure("distortion", stats->distortion_loss, distortion);
    else
        assert_true(isnan(stats->distortion_loss));
    assert_true(isnan(stats->interlevel_loss) && isnan(stats->coarse_loss));
    assert_figure("psnr", stats->psnr, -10 * log10(square));
    assert_figure("flushed", stats->underflowed, underflowed);
    assert_figure("learning rate", stats->learning_rate, (double)last->learning_rate);
    assert_figure("loss scale", stats->loss_scale, (double)last->loss_scale);
    assert_figure("gradient", stats->grad_norm, (double)last->grad_norm);
    assert_int_equal(stats->skipped_steps, last->skipped_steps);
    assert_int_equal(stats->gpu_memory_bytes, gpu_memory_allocated(tiny->trainer->device));
    assert_int_equal(stats->images->count, 3);
    assert_int_equal(stats->images->downscale, 1);
    reported->stats = *stats;
    reported->count++;
}

/* Rates of a single report are the steps' counts per second. */
static void check_rates(const struct reported *reported)
{
    const struct Stats *ring = reported->tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    const struct vkn_train_stats *stats = &reported->stats;
    double rays = 0, samples = 0, live = 0;
    for (uint32_t step = reported->from + 1; step <= stats->step; step++) {
        rays += ring[step].rays;
        samples += ring[step].samples;
        live += ring[step].live;
    }
    double seconds = ((double)stats->step - reported->from) / stats->steps_per_second;
    assert_true(live < 0.9 * samples && rays < 0.9 * live);
    assert_figure("rays", stats->rays_per_second * seconds, rays);
    assert_figure("live samples", stats->samples_per_second * seconds, live);
    assert_figure("marched samples", stats->marched_per_second * seconds, samples);
}

/* Runs with one report at the end, or one per update interval; seconds continue from the earlier
 * ones, and begin after the trainer's first update interval. */
static void run_and_check(const struct tiny *tiny, uint32_t until_step, uint32_t reports)
{
    struct reported reported = {.tiny = tiny, .stats.step = vkn_trainer_step(tiny->trainer)};
    const struct vkn_train_run run = {.until_step = until_step,
                                      .report_seconds = reports > 1 ? 1e-9 : 1e9,
                                      .report = check_report,
                                      .context = &reported};
    double before = vkn_trainer_seconds(tiny->trainer);
    bool whole = reports == 1 && tiny->trainer->profile.steps >= UPDATE_INTERVAL;
    ok(vkn_trainer_run(tiny->trainer, &run));
    assert_int_equal(reported.count, reports);
    assert_int_equal(reported.stats.step, until_step);
    if (reports == 1)
        check_rates(&reported);
    double window = (until_step - reported.from) / reported.stats.steps_per_second;
    assert_true(reported.stats.seconds >= before + (whole ? 0.999999 * window : 0));
    assert_true(vkn_trainer_seconds(tiny->trainer) >= reported.stats.seconds);
}

/* ---- defaults ------------------------------------------------------------------------------- */

static VkResult no_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                          const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory)
{
    (void)device, (void)info, (void)callbacks, (void)memory;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* Parameters that may be NULL. Allocation fails, because compiling the default model's pipelines
 * would take a second. */
static void test_no_parameters(void **state)
{
    const struct step_tests *tests = *state;
    struct gpu_device *device = tests->context->device;
    PFN_vkAllocateMemory allocate = device->vk.vkAllocateMemory;
    const struct vkn_config config = tiny_config(false);
    vkn_scene *scene;
    vkn_trainer *trainer;
    ok(vkn_scene_open(tests->folder->path, NULL, &scene));
    device->vk.vkAllocateMemory = no_memory;
    assert_int_equal(vkn_trainer_create(tests->context, scene, NULL, &trainer), VKN_ERROR);
    device->vk.vkAllocateMemory = allocate;
    assert_non_null(strstr(vkn_last_error(), "out of memory on"));
    ok(vkn_trainer_create(tests->context, scene, &config, &trainer));
    ok(vkn_trainer_run(trainer, NULL));
    assert_int_equal(vkn_trainer_step(trainer), config.steps);
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);
}

/* ---- repeating ----------------------------------------------------------------------------- */

static void test_repeats(void **state)
{
    const struct vkn_config config = tiny_config(true);
    struct vkn_config other = config;
    other.seed++;
    char *first = tiny_train(*state, &config, NULL, 60, "first");
    char *second = tiny_train(*state, &config, NULL, 60, "second");
    char *seeded = tiny_train(*state, &other, NULL, 60, "seeded");
    char *shorter = tiny_train(*state, &config, NULL, 59, "shorter");
    assert_true(same_checkpoints(first, second));
    assert_false(same_checkpoints(first, seeded));
    assert_false(same_checkpoints(first, shorter));
    free(first);
    free(second);
    free(seeded);
    free(shorter);
}

/* Sizes of buffers that shaders write, as in shaders/shared/layout.h, for a model of 1280 weights
 * and 64 + 3 * 256 grid entries of two features, 256 rays and 4 * 2112 samples. */
static void check_buffers(const struct step *step)
{
    const struct gpu_buffer *b = step->buffers.at;
    const uint64_t params = 4 * (1280 + 2 * 832), samples = 4 * 2112;
    const struct {
        const struct gpu_buffer *buffer;
        uint64_t bytes;
    } expected[] = {
        {&b[BIND_CONFIG], sizeof(struct Config)},
        {&b[BIND_STATE], sizeof(struct State)},
        {&b[BIND_CONTROL], sizeof(struct Control)},
        {&b[BIND_STATS], 256 * sizeof(struct Stats)},
        {&b[BIND_CAMERAS], 3 * sizeof(struct Camera)},
        {&b[BIND_PIXELS], 3 * 12 * 10 * 4},
        {&b[BIND_RAYS], 256 * sizeof(struct Ray)},
        {&b[BIND_RESULTS], 256 * sizeof(struct RayResult)},
        {&b[BIND_SAMPLES], samples * sizeof(struct Sample)},
        {&b[BIND_FIELD], samples * 16},
        {&b[BIND_FIELD_GRADIENTS], samples * 16},
        {&b[BIND_LIVE], samples * 4},
        {&b[BIND_PARAMS], params},
        {&b[BIND_GRADIENTS], params},
        {&b[BIND_ACCUMULATORS], 2 * params},
        {&b[BIND_MOMENT1], params},
        {&b[BIND_MOMENT2], params},
        {&b[BIND_STEP_COUNTS], params / 2},
        {&b[BIND_AVERAGE], params},
        {&b[BIND_PARTIALS], 4 * 1280ull * step->setup.constants.backward_groups},
        {&b[BIND_FEATURES], samples * 4 * 2 * (step->setup.backend.f16 ? 2 : 4)},
        {&b[BIND_REDUCE], 4ull * REDUCE_SIZE},
        {&b[BIND_OCCUPANCY], 4 * 16 * 16 * 16},
        {&b[BIND_OCCUPANCY_BITS], 4 * (16 * 16 * 16 / 32 + 2 * 2 * 2)},
    };
    for (size_t i = 0; i < BASE_COUNT(expected); i++)
        if (expected[i].buffer->size != expected[i].bytes)
            fail_msg("%s: %llu bytes, not %llu", expected[i].buffer->name,
                     (unsigned long long)expected[i].buffer->size,
                     (unsigned long long)expected[i].bytes);
}

/* Training has an effect: the loss falls, and rays, occupancy and schedules change, so that
 * resuming has a state to restore. */
static void test_moves_on(void **state)
{
    struct vkn_config config = tiny_config(true);
    struct step_tests *tests = *state;
    config.march.early_stop = 0.7f; /* not all marched samples are live */
    config.loss.distortion = 0.05f;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct State before, after;
    check_buffers(&tiny.trainer->step);
    struct gpu_buffer *buffer = &tiny.trainer->step.buffers.at[BIND_STATE];
    ok(gpu_download(tiny.trainer->device, buffer, 0, &before, sizeof before));
    run_and_check(&tiny, 20, 1);
    run_and_check(&tiny, 60, 3); /* after 32, 48 and 60 */
    ok(gpu_download(tiny.trainer->device, buffer, 0, &after, sizeof after));
    const struct Stats *stats = tiny.trainer->step.buffers.at[BIND_STATS].mapped;
    assert_int_equal(after.updates, 60);
    assert_int_equal(after.average_step, 60);
    assert_int_not_equal(after.ray_count, before.ray_count);
    assert_true(after.threshold > 0);
    for (uint32_t step = 1; step <= 60; step++)
        assert_int_equal(stats[step].step, step);
    assert_true(stats[60].loss < 0.9f * stats[1].loss);
    tiny_destroy(&tiny);
}

/* Stops within an update interval, at its end, and just after its beginning; saved and loaded each
 * time. */
static void test_resume(void **state)
{
    static const uint32_t stops[] = {7, 16, 17, 32, 45, 60};
    const struct vkn_config config = tiny_config(true);
    char *whole = tiny_train(*state, &config, NULL, 60, "whole");
    char *checkpoint = NULL;
    for (size_t i = 0; i < BASE_COUNT(stops); i++) {
        char name[16];
        snprintf(name, sizeof name, "part-%u", stops[i]);
        char *next = tiny_train(*state, &config, checkpoint, stops[i], name);
        char *fresh = tiny_train(*state, &config, NULL, stops[i], "fresh");
        if (!same_checkpoints(next, fresh))
            fail_msg("resumed training differs at step %u", stops[i]);
        free(fresh);
        free(checkpoint);
        checkpoint = next;
    }
    assert_true(same_checkpoints(whole, checkpoint));
    free(whole);
    free(checkpoint);
}

/* Stops at the same steps in one trainer, without checkpoints. */
static void test_stops(void **state)
{
    const struct vkn_config config = tiny_config(true);
    struct step_tests *tests = *state;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const uint32_t stops[] = {3, 20, 48, 49, 60};
    for (size_t i = 0; i < BASE_COUNT(stops); i++)
        tiny_run(&tiny, stops[i]);
    assert_true(vkn_trainer_finished(tiny.trainer));
    char *whole = tiny_train(tests, &config, NULL, 60, "whole"),
         *stopped = tiny_save(tests, &tiny, "stopped");
    assert_true(same_checkpoints(whole, stopped));
    tiny_destroy(&tiny);
    free(whole);
    free(stopped);
}

/* Learning rates by hand: from 8e-3 to 2e-4 in 60 steps, with 4 warm-up steps. */
static double rate_by_hand(enum vkn_rate_schedule schedule, uint32_t step)
{
    double done = (step - 1) / 60.0, warm = step < 4 ? step / 4.0 : 1;
    switch (schedule) {
    case VKN_RATE_EXPONENTIAL:
        return warm * 8e-3 * pow(2e-4 / 8e-3, done);
    case VKN_RATE_COSINE:
        return warm * (2e-4 + 0.5 * (8e-3 - 2e-4) * (1 + cos(acos(-1.0) * done)));
    default: /* to a quarter in 20 steps, up again in 5, ... */
        return step <= 21 ? 8e-3 - 6e-3 * (step - 1) / 20
                          : fmin(2e-3 + 2e-3 * (step - 21) / 5, 4e-3);
    }
}

/* Schedules are part of the checkpoint's configuration: a training resumed from it has the same
 * rates and gives the same bits. */
static void check_schedule(const struct step_tests *tests, enum vkn_rate_schedule schedule)
{
    struct vkn_config config = tiny_config(true), recorded = {0};
    config.optimizer.schedule = schedule;
    config.optimizer.learning_rate = 8e-3f;
    config.optimizer.final_rate = 2e-4f;
    const struct vkn_schedule_point points[] = {{0, 8e-3f}, {20, 2e-3f}, {25, 4e-3f}};
    if (schedule == VKN_RATE_FILE)
        memcpy(config.optimizer.rates, points, sizeof points);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 23);
    char *checkpoint = tiny_save(tests, &tiny, "scheduled");
    ok(vkn_run_config(checkpoint, &recorded));
    run_and_check(&tiny, 60, 3); /* checks the reported rates */
    const struct Stats *stats = tiny.trainer->step.buffers.at[BIND_STATS].mapped;
    for (uint32_t step = 1; step <= 60; step++) {
        double rate = rate_by_hand(schedule, step);
        check_close(stats[step].learning_rate, rate, 3e-6, rate, "learning rate of step", step);
    }
    char *whole = tiny_save(tests, &tiny, "whole");
    char *resumed = tiny_train(tests, &recorded, checkpoint, 60, "resumed");
    assert_true(same_checkpoints(whole, resumed));
    tiny_destroy(&tiny);
    free(checkpoint);
    free(whole);
    free(resumed);
}

static void test_schedules(void **state)
{
    check_schedule(*state, VKN_RATE_EXPONENTIAL);
    check_schedule(*state, VKN_RATE_COSINE);
    check_schedule(*state, VKN_RATE_FILE);
}

/* Checkpoints of other format versions are refused; one of this version restores everything, the
 * training time included. */
static void test_formats(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    static const char key[] = "\"" CHECKPOINT_FORMAT "\":\"";
    config.march.early_stop = 0.7f;
    config.seconds = 1e6;
    config.optimizer.milestones[0] = 0.5f;
    const struct gpu_capabilities *device = gpu_device_capabilities(tests->context->device);
    bool half = device->float16 && device->storage16;
    config.precision = half ? VKN_PRECISION_FP16 : VKN_PRECISION_FP32;
    config.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    config.loss_scale.initial = 0.03f; /* some gradients underflow */
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 1);
    tiny.trainer->seconds = 600000.625;
    char *path = tiny_save(tests, &tiny, "format"), *data = NULL;
    size_t size = 0;
    ok(base_file_read(path, SIZE_MAX, &data, &size));
    char *format = strstr(data + 8, key);
    assert_non_null(format);
    format[strlen(key)] = '1';
    char *checksum = strstr(data + 8, SAFETENSORS_CHECKSUM);
    assert_non_null(checksum);
    checksum[0] = 'x'; /* no checksum, as in older files */
    char *other = temporary_file(tests->folder, "other", data, size);
    tiny.trainer->seconds = 1;
    assert_int_equal(vkn_trainer_resume(tiny.trainer, other), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), other));
    assert_non_null(strstr(vkn_last_error(), "format 1 is that of another version of vknerf"));
    assert_true(vkn_trainer_seconds(tiny.trainer) == 1);
    ok(vkn_trainer_resume(tiny.trainer, path));
    assert_true(vkn_trainer_seconds(tiny.trainer) == 600000.625);
    /* Half of the time has passed, which is a milestone; half of the steps has not. */
    run_and_check(&tiny, 17, 1);
    const struct Stats *stats = tiny.trainer->step.buffers.at[BIND_STATS].mapped;
    assert_true(half ? stats[17].underflowed > 0.02f : stats[17].underflowed == 0);
    check_close(stats[17].learning_rate, 1e-2 * 0.33, 1e-6, 1e-2, "learning rate", 17);
    tiny_destroy(&tiny);
    free(data);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_parameters), cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_moves_on),      cmocka_unit_test(test_resume),
        cmocka_unit_test(test_stops),         cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
