/* Compares TensorBoard event files, read by tests/event_reader.h, with metrics.jsonl, summary.json
 * and pictures of a run, and these with the run's last step. */
#include "step_fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <vknerf/run.h>

#include "event_reader.h"
#include "report/run.h"
#include "report/thumbnail.h"
#include "safetensors/safetensors.h"

#define FILES 8

static char names[FILES][256];

/* Opens the `index`-th of the folder's `count` event files. */
static struct reader *open_events(const char *folder, size_t index, size_t count)
{
    assert_int_equal(reader_list(folder, names, FILES), count);
    char *path = base_path_join(folder, names[index]);
    struct reader *reader = reader_open(path);
    free(path);
    assert_string_equal(reader->version, "brain.Event:2");
    assert_true(reader->started);
    return reader;
}

/* ---- checksums ------------------------------------------------------------------------------ */

/* RFC 3720, B.4, and the check value of the catalogue of CRC algorithms. */
static void checksums(void **state)
{
    (void)state;
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    for (size_t i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    const struct {
        const void *data;
        size_t size;
        uint32_t crc;
    } cases[] = {
        {zeros, 32, 0x8a9136aa}, {ones, 32, 0x62a8ab43},       {up, 32, 0x46dd794e},
        {down, 32, 0x113fdb5c},  {"123456789", 9, 0xe3069283}, {"", 0, 0},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        assert_int_equal(base_crc32c(0, cases[i].data, cases[i].size), cases[i].crc);
        assert_int_equal(reader_crc32c(cases[i].data, cases[i].size), cases[i].crc);
    }
}

/* ---- the writer ----------------------------------------------------------------------------- */

static char *make_folder(struct step_tests *tests, const char *name)
{
    char *folder = temporary_path(tests->folder, name);
    ok(base_make_folder(folder));
    return folder;
}

static const struct report_metrics line = {
    .step = 5000000000, /* more than 32 bits */
    .seconds = 31.25,
    .loss = 0.0012,
    .distortion_loss = 0.0005,
    .interlevel_loss = 0.125,
    .coarse_loss = (double)NAN, /* no part of the loss */
    .psnr = 28.31,
    .learning_rate = 1e-30,
    .loss_scale = 65536.0,
    .skipped_steps = 300,
    .rays_per_second = 1.1e6,
    .samples_per_second = (double)NAN,
    .marched_per_second = HUGE_VAL,
    .grad_norm = -1.0, /* not measured */
    .gpu_memory_bytes = 123456789,
    .idle_share = 0.125,
    .image_downscale = 4,
    .images_exchanged = 30,
    .exchange_share = 0.0625,
    .kept_share = 0.5,
    .keep_weight = 1.75,
};

static void assert_scalar(const struct reader *reader, const char *tag, uint64_t step, double value)
{
    const struct reader_value *found = reader_find(reader, tag, step);
    if (found)
        assert_true(!found->picture && found->scalar == (float)value);
    else
        fail_msg("no %s at step %llu", tag, (unsigned long long)step);
}

static void records(void **state)
{
    char *folder = make_folder(*state, "records");
    struct report_events *events;
    double before = (double)time(NULL);
    ok(report_events_open(folder, 0, &events));
    ok(report_events_add(events, &line));
    /* The record is in the file before the file is closed. */
    struct reader *reader = open_events(folder, 0, 1);
    assert_int_equal(strncmp(names[0], "events.out.tfevents.", 20), 0);
    assert_int_equal(strspn(names[0] + 20, "0123456789"), 10);
    assert_int_equal(reader->records, 3);
    assert_int_equal(reader->start_step, 0);
    assert_int_equal(reader->count, 18);
    assert_scalar(reader, "train/seconds", line.step, 31.25);
    assert_scalar(reader, "train/loss", line.step, 0.0012);
    assert_scalar(reader, "train/distortion_loss", line.step, 0.0005);
    assert_scalar(reader, "train/interlevel_loss", line.step, 0.125);
    assert_scalar(reader, "train/psnr", line.step, 28.31);
    assert_scalar(reader, "optimizer/learning_rate", line.step, 1e-30);
    assert_scalar(reader, "optimizer/loss_scale", line.step, 65536.0);
    assert_scalar(reader, "optimizer/skipped_steps", line.step, 300.0);
    assert_scalar(reader, "optimizer/underflowed", line.step, 0.0);
    assert_scalar(reader, "speed/rays_per_second", line.step, 1.1e6);
    assert_scalar(reader, "speed/marched_per_second", line.step, HUGE_VAL);
    assert_scalar(reader, "device/gpu_memory_bytes", line.step, 123456789.0);
    assert_scalar(reader, "device/idle_share", line.step, 0.125);
    assert_scalar(reader, "images/image_downscale", line.step, 4.0);
    assert_scalar(reader, "images/images_exchanged", line.step, 30.0);
    assert_scalar(reader, "parallel/exchange_share", line.step, 0.0625);
    assert_scalar(reader, "train/kept_share", line.step, 0.5);
    assert_scalar(reader, "train/keep_weight", line.step, 1.75);
    assert_true(reader->values[0].wall_time >= before && reader->wall_time <= before + 60.0);
    reader_close(reader);
    ok(report_events_add_scalar(events, 7, "eval/psnr", 31.5));
    report_events_close(&events);
    report_events_close(&events);
    reader = open_events(folder, 0, 1);
    assert_int_equal(reader->records, 4);
    assert_scalar(reader, "eval/psnr", 7, 31.5);
    reader_close(reader);
    /* A second file in the same second, whose start step discards later steps of the first file. */
    ok(report_events_open(folder, 40, &events));
    report_events_close(&events);
    reader = open_events(folder, 1, 2);
    assert_int_equal(reader->start_step, 41);
    reader_close(reader);
}

/* `value`'s decoded picture has the pixels of the file `like`. */
static void assert_pixels(const struct reader_value *value, struct step_tests *tests,
                          const char *like)
{
    char *path = temporary_file(tests->folder, "decoded.png", value->encoded, value->size);
    uint8_t *pixels, *expected;
    uint32_t width, height, expected_width, expected_height;
    ok(scene_image_read(path, &pixels, &width, &height));
    ok(scene_image_read(like, &expected, &expected_width, &expected_height));
    assert_true(width == expected_width && height == expected_height);
    assert_true(value->width == width && value->height == height && value->color_space == 3);
    assert_memory_equal(pixels, expected, (size_t)4 * width * height);
    free(pixels);
    free(expected);
}

static void pictures(void **state)
{
    struct step_tests *tests = *state;
    char *folder = make_folder(tests, "pictures");
    char *small = temporary_picture(tests->folder, "small.png", 20, 10, 9);
    /* The mean over blocks of 4 pixels is x, x + 1, x, x + 1 and so on. */
    char *large = temporary_path(tests->folder, "large.png"),
         *mean = temporary_path(tests->folder, "mean.png");
    uint8_t *pixels = base_alloc(3 * 1280 * 4, 1);
    for (size_t i = 0; i < 1280u * 4; i++)
        pixels[3 * i] = (uint8_t)(i % 1280 / 2 % 200 + 4 * (i / 1280 % 2));
    ok(scene_image_write_png(large, pixels, 1280, 4, 3));
    for (size_t i = 0; i < 640u * 2; i++)
        pixels[3 * i] = (uint8_t)(i % 640 % 200 + 2);
    ok(scene_image_write_png(mean, pixels, 640, 2, 3));
    free(pixels);
    struct report_events *events;
    ok(report_events_open(folder, 0, &events));
    ok(report_events_add_picture(events, 3, "views/a", small));
    ok(report_events_add_picture(events, 3, "views/b", large));
    char *absent = temporary_path(tests->folder, "absent.png");
    assert_int_equal(report_events_add_picture(events, 4, "views/c", absent), VKN_BAD_INPUT);
    assert_error(absent);
    report_events_close(&events);
    struct reader *reader = open_events(folder, 0, 1);
    assert_int_equal(reader->count, 2);
    assert_pixels(reader_find(reader, "views/a", 3), tests, small);
    assert_pixels(reader_find(reader, "views/b", 3), tests, mean);
    reader_close(reader);
    struct thumbnail thumbnail; /* no side becomes 0 */
    ok(thumbnail_read(large, 16, &thumbnail));
    assert_true(thumbnail.width == 16 && thumbnail.height == 1);
    free(thumbnail.png);
}

/* A record that does not fit is removed whole, and the next record that fits is readable. */
static void full_disk(void **state)
{
    struct step_tests *tests = *state;
    char *folder = make_folder(tests, "full");
    char *impossible = temporary_impossible(tests->folder, "run");
    struct report_events *events;
    assert_int_equal(report_events_open(impossible, 0, &events), VKN_BAD_INPUT);
    assert_error("/run/events.out.tfevents.");
    assert_null(events);
    ok(report_events_open(folder, 0, &events));
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    little.rlim_cur = 200;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    vkn_status status = report_events_add(events, &line);
    char *message = base_format("%s", vkn_last_error());
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, VKN_ERROR);
    assert_non_null(strstr(message, "full/events.out.tfevents."));
    free(message);
    ok(report_events_add_scalar(events, 8, "eval/psnr", 1.0));
    report_events_close(&events);
    struct reader *reader = open_events(folder, 0, 1);
    assert_int_equal(reader->records, 3);
    assert_int_equal(reader->count, 1);
    assert_scalar(reader, "eval/psnr", 8, 1.0);
    reader_close(reader);
}

/* ---- a training run ------------------------------------------------------------------------- */

static const char *const tags[RUN_COLUMNS] = {
    [RUN_SECONDS] = "train/seconds",
    [RUN_LOSS] = "train/loss",
    [RUN_DISTORTION_LOSS] = "train/distortion_loss",
    [RUN_INTERLEVEL_LOSS] = "train/interlevel_loss",
    [RUN_COARSE_LOSS] = "train/coarse_loss",
    [RUN_PSNR] = "train/psnr",
    [RUN_LEARNING_RATE] = "optimizer/learning_rate",
    [RUN_LOSS_SCALE] = "optimizer/loss_scale",
    [RUN_SKIPPED] = "optimizer/skipped_steps",
    [RUN_UNDERFLOWED] = "optimizer/underflowed",
    [RUN_RAYS] = "speed/rays_per_second",
    [RUN_SAMPLES] = "speed/samples_per_second",
    [RUN_MARCHED] = "speed/marched_per_second",
    [RUN_GRAD_NORM] = "optimizer/grad_norm",
    [RUN_MEMORY] = "device/gpu_memory_bytes",
    [RUN_IDLE] = "device/idle_share",
    [RUN_DOWNSCALE] = "images/image_downscale",
    [RUN_EXCHANGED] = "images/images_exchanged",
    [RUN_ALL_REDUCE_SHARE] = "parallel/exchange_share",
    [RUN_KEPT_SHARE] = "train/kept_share",
    [RUN_KEEP_WEIGHT] = "train/keep_weight",
};

/* The event file's scalars are the numbers of all lines after `first_step`. */
static void assert_lines(const struct reader *reader, const struct run *run, uint64_t first_step)
{
    size_t scalars = 0, expected = 0;
    for (size_t i = 0; i < reader->count; i++)
        scalars += !reader->values[i].picture && strncmp(reader->values[i].tag, "eval/", 5) != 0;
    for (size_t i = 0; i < run->metrics.count; i++) {
        uint64_t step = (uint64_t)run->metrics.values[RUN_STEP][i];
        for (size_t column = 0; column < RUN_COLUMNS && step > first_step; column++) {
            if (!tags[column] || isnan(run->metrics.values[column][i]))
                continue;
            const struct reader_value *value = reader_find(reader, tags[column], step);
            assert_non_null(value);
            double written = run->metrics.values[column][i]; /* with 9 digits */
            assert_true(fabs((double)value->scalar - written) <= 2e-7 * fabs(written));
            expected++;
        }
    }
    assert_true(expected > 0);
    assert_int_equal(scalars, expected);
}

static void assert_evaluation(const struct reader *reader, struct step_tests *tests,
                              const char *folder, const struct run_evaluation *evaluation)
{
    uint64_t step = (uint64_t)evaluation->step;
    assert_true(fabs((double)reader_find(reader, "eval/psnr", step)->scalar - evaluation->psnr) <
                1e-4);
    assert_int_equal(evaluation->picture_count, 2); /* of 3 views */
    for (size_t i = 0; i < 2; i++) {
        const struct run_picture *picture = &evaluation->pictures[i];
        char *file = base_format("views/step_%06d_test_00%zu.png", (int)step, 2 * i);
        assert_string_equal(picture->render, file);
        char *path = base_path_join(folder, picture->render);
        char *tag = base_format("views/%s/render", picture->name);
        assert_pixels(reader_find(reader, tag, step), tests, path);
        free(file);
        free(path);
        free(tag);
    }
}

/* Returns a number of the last line of metrics.jsonl. */
static double last_of(const struct run *run, enum run_column column)
{
    return run->metrics.values[column][run->metrics.count - 1];
}

static void assert_share(const char *what, double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6 * fabs(expected))) /* 9 digits are written */
        fail_msg("%s: %.9g, not %.9g", what, value, expected);
}

/* The last line describes the state in the checkpoint. */
static void assert_last_line(const struct run *run, const struct vkn_train_result *result)
{
    char *path = base_path_join(run->folder, "checkpoint.safetensors");
    struct safetensors_file *file = NULL;
    const struct safetensors_tensor *tensor = NULL;
    ok(safetensors_open(path, &file));
    ok(safetensors_find(file, "state", SAFETENSORS_U32, sizeof(struct State) / 4, &tensor));
    const struct State *state = tensor->data;
    double rays = last_of(run, RUN_RAYS) / state->ray_count;
    assert_int_equal(last_of(run, RUN_STEP), state->step);
    assert_true(last_of(run, RUN_STEP) - run->metrics.values[RUN_STEP][run->metrics.count - 2] ==
                1);
    assert_share("live", last_of(run, RUN_SAMPLES), rays * state->live_count);
    assert_share("marched", last_of(run, RUN_MARCHED), rays * state->sample_count);
    assert_true(state->live_count < state->sample_count);
    assert_share("learning rate", last_of(run, RUN_LEARNING_RATE), (double)state->learning_rate);
    assert_share("loss scale", last_of(run, RUN_LOSS_SCALE), (double)state->loss_scale);
    assert_share("gradient", last_of(run, RUN_GRAD_NORM), (double)state->grad_norm);
    assert_int_equal(last_of(run, RUN_SKIPPED), 0);
    assert_int_equal(last_of(run, RUN_MEMORY), result->gpu_memory_bytes);
    assert_int_equal(last_of(run, RUN_DOWNSCALE), 1);
    assert_int_equal(last_of(run, RUN_EXCHANGED), 0);
    assert_true(last_of(run, RUN_SECONDS) > 0 && last_of(run, RUN_SECONDS) <= result->seconds);
    assert_true(fabs(run->summary.seconds - result->seconds) < 0.000501); /* in ms */
    safetensors_close(&file);
    free(path);
}

/* PSNRs of kept views agree with their 8-bit pictures and the scene's images on black. */
static void assert_black(const struct run *run, struct step_tests *tests)
{
    char *render = base_path_join(run->folder, "views/test_002.png"),
         *image = base_path_join(tests->folder->path, "train/y.png");
    uint8_t *pixels, *straight;
    uint32_t width, height;
    double sum = 0;
    ok(scene_image_read(render, &pixels, &width, &height));
    ok(scene_image_read(image, &straight, &width, &height));
    for (uint32_t i = 0; i < 4 * width * height; i++) {
        double alpha = straight[i | 3] / 255.0;
        double error = i % 4 == 3 ? 0 : (pixels[i] - straight[i] * alpha) / 255;
        sum += error * error / (3 * width * height);
    }
    const struct run_evaluation *last =
        &run->summary.evaluations[run->summary.evaluation_count - 1];
    assert_string_equal(base_json_text(run->summary_json, "background"), "black");
    assert_true(fabs(last->pictures[1].psnr + 10 * log10(sum)) < 0.05);
    free(pixels);
    free(straight);
    free(render);
    free(image);
}

/* The caller frees the result. */
static struct vkn_train_result *train(struct step_tests *tests, const char *out, bool resume,
                                      uint32_t steps, enum vkn_switch tensorboard)
{
    static const struct vkn_job quiet_job = {.quiet = true};
    struct vkn_config config = tiny_config(false);
    const struct vkn_train_params params = {
        .scene = tests->folder->path,
        .out = resume ? NULL : out,
        .resume = resume ? out : NULL,
        .job = &quiet_job,
        .config = &config,
    };
    config.steps = steps;
    /* 16, 32 and 64; when resumed only 48 */
    config.eval_every =
        resume ? (struct vkn_steps){.at = {16, 48}} : (struct vkn_steps){.every = 16, .factor = 2};
    config.eval_views = 2;
    config.log.tensorboard = tensorboard;
    config.background = VKN_BACKGROUND_BLACK;
    config.march.early_stop = 0.7f; /* some marched samples are not live */
    struct vkn_train_result *result;
    ok(vkn_run_train(&params, &result));
    return result;
}

static void training(void **state)
{
    struct step_tests *tests = *state;
    temporary_text(tests->folder, "transforms_test.json", transforms);
    char *out = temporary_path(tests->folder, "run");
    struct vkn_train_result *result = train(tests, out, false, 33, VKN_SWITCH_DEFAULT);
    struct run run;
    ok(run_read(out, &run));
    assert_last_line(&run, result);
    assert_black(&run, tests);
    double seconds = result->seconds;
    vkn_train_result_free(&result);
    struct reader *reader = open_events(out, 0, 1);
    assert_int_equal(reader->start_step, 0);
    assert_lines(reader, &run, 0);
    const double steps[] = {16, 32, 33};
    assert_int_equal(run.summary.evaluation_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(run.summary.evaluations[i].step == steps[i]);
        assert_evaluation(reader, tests, out, &run.summary.evaluations[i]);
    }
    char *target = base_path_join(out, "views/test_002_target.png");
    assert_pixels(reader_find(reader, "views/test_002/target", 16), tests, target);
    assert_null(reader_find(reader, "views/test_002/target", 32));
    free(target);
    /* The picture in the event file is the view's picture at that step. */
    char *last = base_path_join(out, "views/test_002.png");
    assert_pixels(reader_find(reader, "views/test_002/render", 33), tests, last);
    free(last);
    reader_close(reader);
    run_free(&run);

    result = train(tests, out, true, 49, VKN_SWITCH_DEFAULT);
    ok(run_read(out, &run));
    assert_last_line(&run, result);
    assert_true(result->seconds > seconds);
    vkn_train_result_free(&result);
    reader = open_events(out, 1, 2);
    assert_int_equal(reader->start_step, 34);
    assert_lines(reader, &run, 33);
    assert_int_equal(run.summary.evaluation_count, 5);
    assert_evaluation(reader, tests, out, &run.summary.evaluations[4]);
    reader_close(reader);
    run_free(&run);
}

static void switched_off(void **state)
{
    struct step_tests *tests = *state;
    char *out = temporary_path(tests->folder, "off");
    struct vkn_train_result *result = train(tests, out, false, 16, VKN_SWITCH_OFF);
    vkn_train_result_free(&result);
    assert_int_equal(reader_list(out, names, FILES), 0);
    char *log = base_path_join(out, "metrics.jsonl");
    assert_true(base_file_exists(log));
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums), cmocka_unit_test(records),  cmocka_unit_test(pictures),
        cmocka_unit_test(full_disk), cmocka_unit_test(training), cmocka_unit_test(switched_off),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
