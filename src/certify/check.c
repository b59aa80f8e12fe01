/* Implements the checks, and runs the tests of a part: a failed check returns to the runner, which
 * writes what it found as one JSON object per line. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "certify/internal.h"
#include "reference/reference.h"

#define MAX_FIGURES 96
#define MAX_PASSES  48
#define NAME_SIZE   64

/* The largest error of one quantity in one test. */
struct figure {
    char what[NAME_SIZE], backend[NAME_SIZE];
    double error, tolerance; /* relative to the scale of the quantity */
    bool f16;                /* the precision that the pass promises */
};

/* The test that runs in this thread. */
struct running {
    jmp_buf failed;
    FILE *events;
    char message[512];
    char passes[MAX_PASSES][NAME_SIZE], pass[NAME_SIZE], backend[NAME_SIZE], feature[NAME_SIZE];
    uint32_t pass_count, figure_count;
    bool f16, is_gpu;
    struct figure figures[MAX_FIGURES];
};
static _Thread_local struct running *running;
static void (*on_failure)(const char *message);
static bool everything;

void check_on_failure(void (*failed)(const char *message))
{
    on_failure = failed;
}

void check_include_everything(bool wanted)
{
    everything = wanted;
}

bool check_everything(void)
{
    return everything || getenv("VKNERF_TEST_ALL") != NULL;
}

/* ---- failing --------------------------------------------------------------------------------- */

static _Noreturn void fail_with(const char *message)
{
    if (running) {
        snprintf(running->message, sizeof running->message, "%s", message);
        longjmp(running->failed, 1);
    }
    if (on_failure)
        on_failure(message);
    abort();
}

void check_fail(const char *format, ...)
{
    char message[sizeof running->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fail_with(message);
}

void check_fail_at(const char *file, int line, const char *condition)
{
    check_fail("%s:%d: %s", base_path_name(file), line, condition);
}

void check_integers(uint64_t a, uint64_t b, const char *what, const char *file, int line)
{
    if (a != b)
        check_fail("%s:%d: %s: %" PRIu64 ", not %" PRIu64, base_path_name(file), line, what, a, b);
}

void check_bytes(const void *a, const void *b, size_t size, const char *what, const char *file,
                 int line)
{
    if (memcmp(a, b, size) != 0)
        check_fail_at(file, line, what);
}

void check_ok(vkn_status status)
{
    if (status != VKN_OK)
        check_fail("status %d: %s", status, vkn_last_error());
}

/* ---- comparing ------------------------------------------------------------------------------- */

static struct figure *figure_of(const char *what)
{
    for (uint32_t i = 0; i < running->figure_count; i++) {
        struct figure *figure = &running->figures[i];
        if (strcmp(figure->what, what) == 0 && strcmp(figure->backend, running->backend) == 0 &&
            figure->f16 == running->f16)
            return figure;
    }
    if (running->figure_count == MAX_FIGURES)
        return NULL;
    struct figure *figure = &running->figures[running->figure_count++];
    *figure = (struct figure){.f16 = running->f16};
    snprintf(figure->what, sizeof figure->what, "%s", what);
    snprintf(figure->backend, sizeof figure->backend, "%s", running->backend);
    return figure;
}

/* Keeps the error that uses up the largest share of its tolerance. */
static void keep_figure(const char *what, double error, double tolerance)
{
    struct figure *figure = running ? figure_of(what) : NULL;
    if (!figure ||
        (figure->tolerance > 0 && error * figure->tolerance <= figure->error * tolerance))
        return;
    figure->error = error;
    figure->tolerance = tolerance;
}

void check_close(double device, double expected, double tolerance, double scale, const char *what,
                 size_t index)
{
    if (running && running->is_gpu && !running->f16)
        tolerance *= CHECK_GPU_SLACK;
    check_statistic(device, expected, tolerance, scale, what, index);
}

void check_statistic(double device, double expected, double tolerance, double scale,
                     const char *what, size_t index)
{
    double error = fabs(device - expected);
    if (!(error <= tolerance * scale))
        check_fail("%s %zu: %.9g on the device, %.9g expected (tolerance %.3g)", what, index,
                   device, expected, tolerance * scale);
    if (scale > 0)
        keep_figure(what, error / scale, tolerance);
}

void check_f16(uint16_t bits, float source, const char *what, size_t index)
{
    if (!(reference_f16(bits) == reference_round_to_f16((double)source)))
        check_fail("%s %zu: %.9g on the device, of %.9g", what, index, reference_f16(bits),
                   (double)source);
}

void check_poisoned(const void *data, size_t from, size_t to)
{
    const uint32_t *words = data;
    for (size_t i = from; i < to; i++)
        if (words[i] != POISON)
            check_fail("word %zu was written: 0x%08x", i, words[i]);
}

/* ---- events ---------------------------------------------------------------------------------- */

void check_event(FILE *events, cJSON *event)
{
    char *text = event ? cJSON_PrintUnformatted(event) : NULL;
    if (text) {
        fprintf(events, "%s\n", text);
        fflush(events);
    }
    cJSON_free(text);
    cJSON_Delete(event);
}

void check_text_event(FILE *events, const char *key, const char *text)
{
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, key, text);
    check_event(events, event);
}

void check_note(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text[strcspn(text, "\n")] = '\0';
    if (running)
        check_text_event(running->events, "note", text);
}

void check_pass(const char *pass, bool f16)
{
    if (!running)
        return;
    running->f16 = f16;
    if (strcmp(running->pass, pass) == 0)
        return;
    snprintf(running->pass, sizeof running->pass, "%s", pass);
    check_text_event(running->events, "pass", pass);
    for (uint32_t i = 0; i < running->pass_count; i++)
        if (strcmp(running->passes[i], running->pass) == 0)
            return;
    if (running->pass_count < MAX_PASSES)
        memcpy(running->passes[running->pass_count++], running->pass, NAME_SIZE);
}

void check_backend(const char *backend, const char *feature)
{
    if (!running)
        return;
    snprintf(running->backend, sizeof running->backend, "%s", backend);
    snprintf(running->feature, sizeof running->feature, "%s", feature);
}

/* Hangs or crashes in a test that VKNERF_SELF_TEST_BREAK names, to test what follows. */
static void inject_fault(const char *test)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "hang_%s", test);
    while (gpu_fault_injected(name))
        base_sleep(1);
    snprintf(name, sizeof name, "crash_%s", test);
    if (gpu_fault_injected(name))
        abort();
    snprintf(name, sizeof name, "fail_%s", test);
    if (gpu_fault_injected(name))
        check_fail("injected");
}

/* ---- running --------------------------------------------------------------------------------- */

static cJSON *figures_json(void)
{
    cJSON *figures = cJSON_CreateArray();
    for (uint32_t i = 0; i < running->figure_count; i++) {
        const struct figure *figure = &running->figures[i];
        /* The distance between neighbouring numbers in [1, 2). */
        double unit = figure->f16 ? 0x1p-10 : 0x1p-23;
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "what", figure->what);
        if (figure->backend[0])
            cJSON_AddStringToObject(json, "backend", figure->backend);
        cJSON_AddStringToObject(json, "precision", figure->f16 ? "f16" : "f32");
        cJSON_AddNumberToObject(json, "error", figure->error);
        cJSON_AddNumberToObject(json, "tolerance", figure->tolerance);
        cJSON_AddNumberToObject(json, "error_ulps", figure->error / unit);
        cJSON_AddNumberToObject(json, "tolerance_ulps", figure->tolerance / unit);
        cJSON_AddItemToArray(figures, json);
    }
    return figures;
}

static void report(const char *name, bool passed, double seconds)
{
    cJSON *event = cJSON_CreateObject(), *passes = cJSON_CreateArray();
    cJSON_AddStringToObject(event, "result", passed ? "passed" : "failed");
    cJSON_AddStringToObject(event, "test", name);
    cJSON_AddNumberToObject(event, "seconds", seconds);
    if (!passed) {
        cJSON_AddStringToObject(event, "message", running->message);
        cJSON_AddStringToObject(event, "pass", running->pass);
        cJSON_AddStringToObject(event, "backend", running->backend);
        cJSON_AddStringToObject(event, "feature", running->feature);
    }
    for (uint32_t i = 0; i < running->pass_count; i++)
        cJSON_AddItemToArray(passes, cJSON_CreateString(running->passes[i]));
    cJSON_AddItemToObject(event, "passes", passes);
    cJSON_AddItemToObject(event, "figures", figures_json());
    check_event(running->events, event);
}

bool check_run(const struct certify_test *test, struct gpu_device *device, FILE *events)
{
    struct running *run = base_alloc(1, sizeof *run);
    if (!run)
        return false;
    run->events = events;
    run->is_gpu = gpu_device_capabilities(device)->type != GPU_CPU;
    running = run;
    check_text_event(events, "begin", test->name);
    const double start = base_seconds();
    const uint64_t messages = gpu_validation_messages();
    volatile bool passed = false;
    if (setjmp(run->failed) == 0) {
        test->run(device);
        inject_fault(test->name);
        if (gpu_validation_messages() != messages)
            check_fail("the validation layer has sent messages");
        passed = true;
    }
    report(test->name, passed, base_seconds() - start);
    running = NULL;
    free(run);
    return passed;
}
