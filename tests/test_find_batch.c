/* Tests the search for the largest batch: the batch that fits a budget needs the memory predicted,
 * and every trial that fails has a reason. */
#include "step_fixture.h"

#include <unistd.h>

#include <vknerf/run.h>

#include "memory_limit.h"
#include "skips.h"

#define MIB ((uint64_t)1 << 20)

static struct vkn_config train_config; /* config of the latest params_of() */
static struct vkn_job job;

static struct vkn_train_params params_of(const struct step_tests *tests)
{
    train_config = tiny_config(false);
    job = (struct vkn_job){.quiet = true};
    return (struct vkn_train_params){
        .job = &job, .scene = tests->folder->path, .config = &train_config};
}

static const struct vkn_batch_trial *largest(const struct vkn_batch_search *search)
{
    assert_true(search->largest < search->trial_count);
    return search->trials[search->largest];
}

static const struct vkn_batch_trial *last(const struct vkn_batch_search *search)
{
    assert_true(search->trial_count > 0);
    return search->trials[search->trial_count - 1];
}

/* Returns the bytes that training with that batch holds on a fresh device. */
static uint64_t memory_of(const struct step_tests *tests, uint32_t samples, uint32_t max_rays)
{
    struct vkn_config config = tiny_config(false);
    config.batch.samples = samples;
    config.batch.max_rays = max_rays;
    vkn_context *context = NULL;
    struct vkn_context_params params = {0};
    ok(vkn_context_create(&params, &context));
    struct tiny tiny = tiny_create(context, tests->folder, &config);
    uint64_t held = gpu_memory_allocated(tiny.trainer->device);
    tiny_destroy(&tiny);
    vkn_context_destroy(&context);
    return held;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* The largest batch fits the budget, a batch a quarter larger would not. */
static void test_budget(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_train_params train = params_of(tests);
    const struct vkn_batch_params params = {.train = &train, .memory_budget = 30 * MIB};
    struct vkn_batch_search *search;
    ok(vkn_find_batch(&params, &search));
    assert_int_equal(search->memory_budget, 30 * MIB);
    assert_true(search->view_bytes > 0);
    const struct vkn_batch_trial *best = largest(search);
    print_message("%u samples: %.2f MiB and %.2f for evaluation\n", best->samples,
                  (double)best->memory_bytes / MIB, (double)search->view_bytes / MIB);
    assert_true(best->steps_per_second > 0 && best->samples_per_second > 0);
    assert_int_equal(best->memory_bytes, memory_of(tests, best->samples, best->max_rays));
    assert_true(best->memory_bytes + search->view_bytes <= search->memory_budget);

    uint32_t base = 1024;
    while (2 * base <= best->samples)
        base *= 2;
    uint32_t next = best->samples + base / 4;
    uint32_t rays = (uint32_t)(256.0 / 2112.0 * next);
    assert_true(memory_of(tests, next, rays) + search->view_bytes > search->memory_budget);
    assert_true(search->trials[search->fastest]->samples_per_second >= best->samples_per_second);
    vkn_batch_search_free(&search);
}

static void test_over_budget(void **state)
{
    const struct vkn_train_params train = params_of(*state);
    const struct vkn_batch_params params = {.train = &train, .memory_budget = 1};
    struct vkn_batch_search *search;
    assert_int_equal(vkn_find_batch(&params, &search), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "no batch is stable: with 1024 samples, "));
    assert_non_null(strstr(vkn_last_error(), "exceed 0.0 MiB"));
    assert_int_equal(search->trial_count, 1);
    assert_int_equal(search->trials[0]->verdict, VKN_BATCH_OVER_BUDGET);
    vkn_batch_search_free(&search);
}

/* A grid beyond the device's buffer range fails with every batch, with the reason. */
static void test_range(void **state)
{
    struct vkn_train_params train = params_of(*state);
    const struct step_tests *tests = *state;
    if (gpu_device_capabilities(tests->context->device)->max_buffer_range >= 1u << 28)
        skip_because("the device binds more than this test's grid asks for");
    train_config.grid.levels = 16;
    train_config.grid.log2_entries = 21;
    train_config.grid.features = 4;
    train_config.grid.finest = 2048;
    const struct vkn_batch_params params = {.train = &train};
    struct vkn_batch_search *search;
    assert_int_equal(vkn_find_batch(&params, &search), VKN_BAD_INPUT);
    assert_int_equal(search->trial_count, 1);
    assert_int_equal(search->trials[0]->verdict, VKN_BATCH_REFUSED);
    assert_non_null(strstr(search->trials[0]->reason, "parameters: "));
    /* The batch is not mentioned, as it is not the cause. */
    assert_string_equal(vkn_last_error(), search->trials[0]->reason);
    vkn_batch_search_free(&search);
}

/* A model that exceeds the process's memory limit fails before any allocation, with the reason. */
static void test_memory_limit(void **state)
{
    struct vkn_train_params train = params_of(*state);
    const struct step_tests *tests = *state;
    if (gpu_device_capabilities(tests->context->device)->type != GPU_CPU)
        skip_because("memory of a GPU has no limits of the process");
    train_config.precision = VKN_PRECISION_FP32;
    train_config.grid.levels = 16;
    train_config.grid.log2_entries = 20;
    train_config.grid.finest = 2048;
    const struct rlimit before = limit_memory(RLIMIT_AS, 400 * MIB);
    const struct vkn_batch_params params = {.train = &train};
    struct vkn_batch_search *search;
    vkn_status status = vkn_find_batch(&params, &search);
    setrlimit(RLIMIT_AS, &before);
    assert_int_equal(status, VKN_BAD_INPUT);
    assert_int_equal(search->trial_count, 1);
    assert_int_equal(search->trials[0]->verdict, VKN_BATCH_REFUSED);
    assert_non_null(strstr(search->trials[0]->reason, "reduce grid.log2_entries"));
    vkn_batch_search_free(&search);
}

static void store_memory(void *context, const struct vkn_train_stats *stats)
{
    *(uint64_t *)context = stats->gpu_memory_bytes;
}

/* For each precision the estimate equals the trainer's memory, but for alignment, and the memory
 * reported in training is all that is held. Matrices need as much as fp16 and compile slowly: only
 * with VKNERF_TEST_ALL. */
static void test_estimate(void **state)
{
    static const enum vkn_precision precisions[] = {VKN_PRECISION_FP32, VKN_PRECISION_FP16,
                                                    VKN_PRECISION_COOPMAT};
    const struct step_tests *tests = *state;
    const struct gpu_device *device = tests->context->device;
    const size_t count = BASE_COUNT(precisions) - (check_everything() ? 0 : 1);
    uint64_t held[BASE_COUNT(precisions)];
    for (size_t i = 0; i < count; i++) {
        struct vkn_config config = tiny_config(false);
        config.precision = precisions[i];
        config.batch.samples = 1u << 14;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        uint64_t with = gpu_memory_allocated(device), expected = 0, reported = 0;
        const struct vkn_train_run run = {
            .until_step = 1, .report = store_memory, .context = &reported};
        ok(vkn_trainer_run(tiny.trainer, &run));
        assert_int_equal(reported, with);
        ok(train_memory(device, tiny.scene, vkn_trainer_config(tiny.trainer), &expected));
        tiny_destroy(&tiny);
        held[i] = with - gpu_memory_allocated(device);
        print_message("precision %d: %llu bytes expected, %llu used\n", precisions[i],
                      (unsigned long long)expected, (unsigned long long)held[i]);
        assert_true(held[i] >= expected && held[i] < expected + 65536);
    }
    for (size_t i = 1; i < count; i++)
        assert_true(held[i] < held[0]);
}

/* ---- other failures ------------------------------------------------------------------------ */

static void test_time(void **state)
{
    const struct vkn_train_params train = params_of(*state);
    const struct vkn_batch_params params = {.train = &train, .seconds = 1e-3};
    struct vkn_batch_search *search;
    ok(vkn_find_batch(&params, &search));
    assert_int_equal(search->trial_count, 2);
    assert_int_equal(search->largest, 0);
    assert_int_equal(last(search)->verdict, VKN_BATCH_TOO_SLOW);
    assert_non_null(strstr(last(search)->reason, "0 s are left"));
    vkn_batch_search_free(&search);
}

/* A loss scale that overflows f16 in every step. */
static void test_unstable(void **state)
{
    struct vkn_train_params train = params_of(*state);
    train_config.precision = VKN_PRECISION_FP16;
    train_config.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    train_config.loss_scale.initial = 0x1p60f;
    const struct vkn_batch_params params = {.train = &train};
    struct vkn_batch_search *search;
    assert_int_equal(vkn_find_batch(&params, &search), VKN_BAD_INPUT);
    assert_int_equal(last(search)->verdict, VKN_BATCH_UNSTABLE);
    assert_int_equal(search->precision, VKN_PRECISION_FP16);
    assert_non_null(strstr(vkn_last_error(), "steps were skipped"));
    vkn_batch_search_free(&search);
}

static void test_stop(void **state)
{
    static const volatile sig_atomic_t stop = 1;
    struct vkn_train_params train = params_of(*state);
    job.stop = &stop;
    const struct vkn_batch_params params = {.train = &train};
    struct vkn_batch_search *search;
    assert_int_equal(vkn_find_batch(&params, &search), VKN_INTERRUPTED);
    assert_int_equal(search->trial_count, 0);
    vkn_batch_search_free(&search);
}

static void test_errors(void **state)
{
    struct vkn_train_params train = params_of(*state);
    train_config.grid.finest = 2;
    const struct vkn_batch_params params = {.train = &train};
    struct vkn_batch_search *search;
    assert_int_equal(vkn_find_batch(&params, &search), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "grid.finest: below grid.coarsest"));
    vkn_batch_search_free(&search);
    train.scene = "not/there";
    assert_int_equal(vkn_find_batch(&params, &search), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "not/there"));
    vkn_batch_search_free(&search);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void test_json(void **state)
{
    (void)state;
    struct vkn_batch_trial small = {.samples = 1024,
                                    .max_rays = 512,
                                    .memory_bytes = 5,
                                    .steps_per_second = 2,
                                    .samples_per_second = 2048},
                           large = {.samples = 2048,
                                    .max_rays = 1024,
                                    .verdict = VKN_BATCH_OVER_BUDGET,
                                    .reason = "too much",
                                    .memory_bytes = 9};
    struct vkn_batch_trial *trials[] = {&small, &large};
    const struct vkn_batch_search search = {
        .trials = trials,
        .trial_count = 2,
        .memory_budget = 8,
        .precision = VKN_PRECISION_FP16,
    };
    char *json = vkn_batch_search_json(&search);
    assert_non_null(json);
    assert_non_null(strstr(json, "\"precision\":\t\"fp16\""));
    assert_non_null(strstr(json, "\"largest\":\t1024"));
    assert_non_null(strstr(json, "\"verdict\":\t\"over budget\""));
    assert_non_null(strstr(json, "\"reason\":\t\"too much\""));
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),       cmocka_unit_test(test_over_budget),
        cmocka_unit_test(test_memory_limit), cmocka_unit_test(test_range),
        cmocka_unit_test(test_estimate),     cmocka_unit_test(test_time),
        cmocka_unit_test(test_unstable),     cmocka_unit_test(test_stop),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
