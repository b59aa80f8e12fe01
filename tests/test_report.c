/* Tests metrics.jsonl and its repair after a crash, progress lines, trace.json, and PSNR. */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include <vknerf/run.h>

#include "report/progress_text.h"
#include "report/run.h"
#include "skips.h"

static char folder[] = "/tmp/vknerf-report-XXXXXX";
static char log_path[64], error_path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(log_path, sizeof(log_path), "%s/metrics.jsonl", folder);
    snprintf(error_path, sizeof(error_path), "%s/stderr", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(log_path);
    unlink(error_path);
    return rmdir(folder);
}

static void write_text(const char *path, const char *text)
{
    assert_int_equal(base_file_replace(path, text, strlen(text)), VKN_OK);
}

static void assert_text(const char *path, const char *expected)
{
    char *text;
    size_t size;
    assert_int_equal(base_file_read(path, 1 << 20, &text, &size), VKN_OK);
    assert_string_equal(text, expected);
    free(text);
}

static const struct report_metrics example = {
    .step = 1234,
    .seconds = 31.0,
    .loss = 0.0012,
    .distortion_loss = 0.0005,
    .interlevel_loss = (double)NAN,
    .coarse_loss = 0.25,
    .psnr = 28.31,
    .learning_rate = 0.01,
    .loss_scale = 65536.0,
    .skipped_steps = 0,
    .underflowed = 0.25,
    .rays_per_second = 1.1e6,
    .samples_per_second = 0.9e6,
    .marched_per_second = 1.7e6,
    .grad_norm = -1.0,
    .gpu_memory_bytes = 123456789,
    .idle_share = 0.125,
    .image_downscale = 4,
    .images_exchanged = 30,
    .exchange_share = 0.0625,
    .kept_share = 0.5,
    .keep_weight = 1.75,
};

/* ---- PSNR ----------------------------------------------------------------------------------- */

static void psnr(void **state)
{
    (void)state;
    assert_true(fabs(report_psnr(1.0)) < 1e-12);
    assert_true(fabs(report_psnr(0.001) - 30.0) < 1e-12);
    assert_true(fabs(report_psnr(4.0) + 6.020599913279624) < 1e-12);
    assert_true(report_psnr(0.0) == 100.0);
    assert_true(report_psnr(1e-300) == 100.0);
    assert_true(isnan(report_psnr((double)NAN)));
}

/* ---- metrics.jsonl -------------------------------------------------------------------------- */

static void log_writes_lines(void **state)
{
    (void)state;
    write_text(log_path, "an older run\n");
    struct report_log *log;
    assert_int_equal(report_log_open(folder, 0, &log), VKN_OK);
    assert_int_equal(report_log_add(log, &example), VKN_OK);
    static const char first[] =
        "{\"step\": 1234, \"seconds\": 31, \"loss\": 0.0012, \"distortion_loss\": 0.0005, "
        "\"interlevel_loss\": null, \"coarse_loss\": 0.25, \"psnr\": 28.31, "
        "\"learning_rate\": 0.01, \"loss_scale\": 65536, \"skipped_steps\": 0, "
        "\"underflowed\": 0.25, \"rays_per_second\": 1100000, \"samples_per_second\": 900000, "
        "\"marched_per_second\": 1700000, \"grad_norm\": null, \"gpu_memory_bytes\": 123456789, "
        "\"idle_share\": 0.125, \"image_downscale\": 4, \"images_exchanged\": 30, "
        "\"exchange_share\": 0.0625, \"kept_share\": 0.5, \"keep_weight\": 1.75}\n";
    assert_text(log_path, first); /* written at once, not when the log is closed */
    struct report_metrics odd = example;
    odd.step = 1235;
    odd.loss = (double)NAN;
    odd.psnr = -HUGE_VAL;
    odd.grad_norm = HUGE_VAL;
    assert_int_equal(report_log_add(log, &odd), VKN_OK);
    report_log_close(&log);
    report_log_close(&log);

    struct run_metrics metrics;
    assert_int_equal(run_read_metrics(log_path, &metrics), VKN_OK);
    assert_int_equal(metrics.count, 2);
    const double expected[RUN_COLUMNS] = {
        1234.0, 31.0,  0.0012, 0.0005, NAN,         0.25,  28.31, 0.01, 65536.0, 0.0, 0.25,
        1.1e6,  0.9e6, 1.7e6,  NAN,    123456789.0, 0.125, 4.0,   30.0, 0.0625,  0.5, 1.75};
    for (size_t column = 0; column < RUN_COLUMNS; column++) {
        double value = metrics.values[column][0];
        assert_true(isnan(expected[column]) ? isnan(value) : value == expected[column]);
    }
    assert_true(isnan(metrics.values[RUN_LOSS][1]) && isnan(metrics.values[RUN_PSNR][1]));
    assert_true(run_last(&metrics, RUN_LOSS) == 0.0012);
    assert_true(isnan(run_last(&metrics, RUN_GRAD_NORM)));
    free(metrics.values[0]);
}

static void resume_to(uint64_t step)
{
    struct report_log *log;
    assert_int_equal(report_log_open(folder, step, &log), VKN_OK);
    report_log_close(&log);
}

static void resume_drops_later_lines(void **state)
{
    (void)state;
    write_text(log_path, "{\"step\": 100, \"x\": 1}\n{\"step\": 200}\n{\"step\": 300}\n");
    resume_to(200);
    assert_text(log_path, "{\"step\": 100, \"x\": 1}\n{\"step\": 200}\n");
    struct report_log *log;
    assert_int_equal(report_log_open(folder, 150, &log), VKN_OK);
    assert_int_equal(report_log_add(log, &example), VKN_OK);
    report_log_close(&log);
    struct run_metrics metrics;
    assert_int_equal(run_read_metrics(log_path, &metrics), VKN_OK);
    assert_int_equal(metrics.count, 2);
    assert_true(metrics.values[RUN_STEP][0] == 100.0 && metrics.values[RUN_STEP][1] == 1234.0);
    free(metrics.values[0]);
}

static void resume_repairs(void **state)
{
    (void)state;
    static const char *const torn[] = {
        "{\"step\": 100}\n{\"step\": 2",
        "{\"step\": 100}\n{\"step\": 200, \"loss\"",
        "{\"step\": 100}\n{\"step\"",
        "{\"step\": 100}",
        "{\"step\": 100}\n\x01garbage\n",
        "{\"step\": 100}\n{\"loss\": 1}\n[1]\n7\n",
        "\n{\"step\": 100}\n\n{\"step\": -1}\n",
        "{\"step\": 100}\n{\"step\": \"200\"}\n",
    };
    for (size_t i = 0; i < BASE_COUNT(torn); i++) {
        write_text(log_path, torn[i]);
        resume_to(1000);
        assert_text(log_path, "{\"step\": 100}\n");
    }
    write_text(log_path, "{\"st");
    resume_to(1000);
    assert_text(log_path, "");
    unlink(log_path);
    resume_to(1000);
    assert_text(log_path, "");
    /* nothing to repair: the file is not touched */
    write_text(log_path, "{\"step\": 100}\n");
    struct stat before, after;
    assert_int_equal(stat(log_path, &before), 0);
    resume_to(1000);
    assert_int_equal(stat(log_path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
}

static void log_names_the_file(void **state)
{
    (void)state;
    struct report_log *log;
    write_text(log_path, ""); /* not a folder */
    assert_int_equal(report_log_open(log_path, 0, &log), VKN_BAD_INPUT);
    assert_null(log);
    assert_non_null(strstr(vkn_last_error(), "/metrics.jsonl/metrics.jsonl"));
    unlink(log_path);
    assert_int_equal(symlink("/dev/full", log_path), 0);
    assert_int_equal(report_log_open(folder, 0, &log), VKN_OK);
    assert_int_equal(report_log_add(log, &example), VKN_ERROR);
    assert_non_null(strstr(vkn_last_error(), "metrics.jsonl"));
    report_log_close(&log);
    unlink(log_path);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void durations_and_quantities(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *duration, *quantity;
    } cases[] = {
        {0.0, "0:00", "0"},
        {0.00012345, "0:00", "0.000123"},
        {0.25, "0:00", "0.25"},
        {59.6, "1:00", "59.6"},
        {999.7, "16:40", "1.00 k"},
        {3599.0, "59:59", "3.60 k"},
        {3600.0, "1:00:00", "3.60 k"},
        {172800.0, "2 d 0 h", "173 k"},
        {1234567.0, "14 d 6 h", "1.23 M"},
        {1e30, "-", "1.00e+12 E"},
        {-5.0, "-", "-5.00"},
        {HUGE_VAL, "-", "-"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char text[32];
        report_duration(text, cases[i].value);
        assert_string_equal(text, cases[i].duration);
        report_quantity(text, cases[i].value);
        assert_string_equal(text, cases[i].quantity);
    }
}

static void train_lines(void **state)
{
    (void)state;
    char line[REPORT_LINE_SIZE];
    const struct report_goal steps = {5000, 0.0}, none = {0, 0.0}, seconds = {0, 62.0};
    report_train_line(line, 200, &steps, &example, 41.2);
    assert_string_equal(line,
                        "step 1234/5000 (24%)  loss 0.0012  psnr 28.31 dB  41.2 steps/s  "
                        "1.10 M rays/s  900 k samples/s  6% all-reduce  elapsed 0:31  ETA 1:31");
    struct report_metrics single_rank = example;
    single_rank.exchange_share = (double)NAN;
    report_train_line(line, 200, &steps, &single_rank, 41.2);
    assert_null(strstr(line, "all-reduce"));
    report_train_line(line, 200, &none, &example, 41.2);
    assert_non_null(strstr(line, "step 1234  loss"));
    assert_null(strstr(line, "ETA"));
    report_train_line(line, 200, &seconds, &example, 41.2);
    assert_non_null(strstr(line, "step 1234 (50% of the time)"));
    assert_non_null(strstr(line, "ETA 0:31"));
    /* The goal that is reached first counts. */
    const struct report_goal sooner = {5000, 62.0}, later = {5000, 620.0};
    report_train_line(line, 200, &sooner, &example, 41.2);
    assert_non_null(strstr(line, "step 1234/5000 (50% of the time)"));
    assert_non_null(strstr(line, "ETA 0:31"));
    report_train_line(line, 200, &later, &example, 41.2);
    assert_non_null(strstr(line, "step 1234/5000 (24%)"));
    assert_non_null(strstr(line, "ETA 1:31"));
    report_train_line(line, 60, &steps, &example, 41.2);
    assert_string_equal(line, "step 1234/5000 (24%)  psnr 28.31 dB  41.2 steps/s  ETA 1:31");
    struct report_metrics skipping = example;
    skipping.skipped_steps = 7;
    report_train_line(line, 65, &steps, &skipping, 41.2);
    assert_string_equal(line, "step 1234/5000 (24%)  psnr 28.31 dB  7 steps skipped  ETA 1:31");
    skipping.skipped_steps = 61; /* 4.9 % */
    report_train_line(line, 65, &steps, &skipping, 41.2);
    assert_non_null(strstr(line, "  61 steps skipped  "));
    skipping.skipped_steps = 100;
    report_train_line(line, 75, &steps, &skipping, 41.2);
    assert_non_null(strstr(line, "  100 steps skipped (8%)  "));
    struct report_metrics wild = {.step = UINT64_MAX,
                                  .seconds = HUGE_VAL,
                                  .loss = (double)NAN,
                                  .psnr = 1e300,
                                  .skipped_steps = UINT64_MAX,
                                  .rays_per_second = -HUGE_VAL};
    for (size_t width = 1; width < 300; width++) {
        report_train_line(line, width, &steps, &example, 41.2);
        assert_true(strlen(line) <= width);
        report_train_line(line, width, &seconds, &wild, (double)NAN);
        assert_true(strlen(line) <= width);
    }
}

static void count_lines(void **state)
{
    (void)state;
    char line[REPORT_LINE_SIZE];
    report_count_line(line, 80, "evaluating", 5, 25, 10.0);
    assert_string_equal(line, "evaluating 5/25 (20%)  0.50/s  ETA 0:40");
    report_count_line(line, 30, "evaluating", 5, 25, 10.0);
    assert_string_equal(line, "evaluating 5/25 (20%)");
    report_count_line(line, 80, "evaluating", 25, 25, 10.0);
    assert_string_equal(line, "evaluating 25/25 (100%)  2.50/s");
    /* The first count starts the clock: there is no rate yet. */
    report_count_line(line, 80, "copying photographs", 10, 37, 5e-8);
    assert_string_equal(line, "copying photographs 10/37 (27%)");
    report_count_line(line, 80, "decoding images", 0, 0, 0.0);
    assert_string_equal(line, "decoding images 0");
}

/* ---- trace.json ----------------------------------------------------------------------------- */

/* Compares a number of the event or of its arguments. */
static void assert_event(const cJSON *event, bool argument, const char *name, double expected)
{
    if (argument)
        event = cJSON_GetObjectItemCaseSensitive(event, "args");
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, name);
    if (!cJSON_IsNumber(item) || fabs(item->valuedouble - expected) > 1e-3)
        fail_msg("%s: not %g: %s", name, expected, cJSON_PrintUnformatted(event));
}

/* Seconds become microseconds since the origin; idle time is a percentage of its interval. */
static void trace_units(void **state)
{
    (void)state;
    static const struct trace_event events[] = {
        {"wait", TRACE_HOST, 100.25, 100.75, 16, 0},
        {"period", TRACE_DEVICE_INTERVALS, 100.5, 100.51, 16, 0.0025},
        {"composite", TRACE_DEVICE_PASSES, 100.502, 100.504, 3, 0.0001},
        {"period", TRACE_DEVICE_INTERVALS, 101, 101, 32, 0}, /* of zero length */
    };
    const struct trace trace = {"device", "driver", "clocks", 2e-6, 100, events, 4, 7};
    assert_int_equal(report_write_trace(log_path, &trace), VKN_OK);
    cJSON *json = NULL;
    assert_int_equal(base_json_read(log_path, 1 << 20, &json), VKN_OK);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "traceEvents"), *event[6];
    for (int i = 0; i < 6; i++) /* each interval is followed by its idle share */
        event[i] = cJSON_GetArrayItem(list, i);
    assert_event(event[0], false, "ts", 250000);
    assert_event(event[0], false, "dur", 500000);
    assert_event(event[0], true, "step", 16);
    assert_event(event[1], false, "ts", 500000);
    assert_event(event[1], false, "dur", 10000);
    assert_event(event[1], true, "idle_us", 2500);
    assert_event(event[2], false, "ts", 500000);
    assert_event(event[2], true, "idle", 25);
    assert_event(event[3], false, "ts", 502000);
    assert_event(event[3], false, "dur", 2000);
    assert_event(event[3], true, "step", 3);
    assert_event(event[3], true, "idle_before_us", 100);
    assert_event(event[5], true, "idle", 0);
    const cJSON *about = cJSON_GetObjectItemCaseSensitive(json, "otherData");
    assert_event(about, false, "clock_deviation_us", 2);
    assert_event(about, false, "lost_events", 7);
    cJSON_Delete(json);
}

/* ---- progress ------------------------------------------------------------------------------- */

static void keep_progress(void *context, const char *what, size_t done, size_t total)
{
    char *kept = context;
    snprintf(kept + strlen(kept), 256 - strlen(kept), "%s %zu/%zu; ", what, done, total);
    base_fail(VKN_ERROR, "an error of the callback");
}

/* Runs everything; the job's callback is told the same, quiet or not. */
static void run_progress(bool quiet)
{
    struct report_progress *progress;
    char kept[256] = "";
    const struct vkn_job job = {
        .quiet = quiet, .progress = keep_progress, .progress_context = kept};
    base_fail(VKN_ERROR, "an error before");
    assert_int_equal(report_progress_begin(&job, 5000, 0.0, &progress), VKN_OK);
    report_progress_count(progress, "decoding images", 1, 2);
    report_progress_count(progress, "decoding images", 2, 2);
    report_progress_train(progress, &example, 41.2);
    report_progress_pause(progress);
    struct report_metrics later = example;
    later.step = 5000;
    report_progress_train(progress, &later, 41.2);
    report_progress_end(&progress);
    assert_null(progress);
    report_progress_end(&progress);
    assert_string_equal(kept, "decoding images 1/2; decoding images 2/2; training 1234/5000; "
                              "training 5000/5000; ");
    assert_string_equal(vkn_last_error(), "an error before");
}

/* Calls the functions with `descriptor` as standard error. */
static void run_progress_on(int descriptor, bool quiet)
{
    int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0 && dup2(descriptor, STDERR_FILENO) >= 0);
    run_progress(quiet);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static void progress_in_a_file(void **state)
{
    (void)state;
    for (int quiet = 0; quiet < 2; quiet++) {
        int file = open(error_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        assert_true(file >= 0);
        run_progress_on(file, quiet);
        close(file);
        const char *tail = "  loss 0.0012  psnr 28.31 dB  41.2 steps/s  1.10 M rays/s  "
                           "900 k samples/s  6% all-reduce  elapsed 0:31";
        char expected[512];
        snprintf(expected, sizeof(expected),
                 "step 1234/5000 (24%%)%s  ETA 1:31\nstep 5000/5000 (100%%)%s  ETA 0:00\n", tail,
                 tail);
        assert_text(error_path, quiet ? "" : expected);
    }
}

/* A terminal delivers output with a delay. */
static void read_until(int master, const char *last, char *text, size_t capacity)
{
    size_t size = 0;
    struct pollfd ready = {.fd = master, .events = POLLIN};
    while (!strstr(text, last) && size + 1 < capacity && poll(&ready, 1, 5000) > 0) {
        ssize_t more = read(master, text + size, capacity - 1 - size);
        assert_true(more > 0);
        size += (size_t)more;
        text[size] = 0;
    }
}

static void progress_on_a_terminal(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip_because("there are no pseudo-terminals");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(setenv("COLUMNS", "50", 1), 0);
    run_progress_on(slave, false);
    char text[4096] = "";
    read_until(master, "ETA 0:00\r\n", text, sizeof(text));
    close(slave);
    close(master);
    unsetenv("COLUMNS");
    /* all lines within 49 columns, rewritten in place, ended once per pause */
    size_t column = 0;
    for (const char *at = text; *at; at++) {
        column = *at == '\r' || *at == '\n' ? 0 : column + 1;
        assert_true(column <= 49);
    }
    assert_non_null(strstr(text, "\rdecoding images 2/2 (100%)"));
    assert_non_null(strstr(text, "step 1234/5000 (24%)"));
    const char *end = strstr(text, "step 5000/5000 (100%)");
    assert_non_null(end);
    assert_string_equal(strchr(end, '\r'), "\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psnr),
        cmocka_unit_test(log_writes_lines),
        cmocka_unit_test(resume_drops_later_lines),
        cmocka_unit_test(resume_repairs),
        cmocka_unit_test(log_names_the_file),
        cmocka_unit_test(durations_and_quantities),
        cmocka_unit_test(train_lines),
        cmocka_unit_test(count_lines),
        cmocka_unit_test(trace_units),
        cmocka_unit_test(progress_in_a_file),
        cmocka_unit_test(progress_on_a_terminal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
