/* Tests evaluations during training: when they are due, which views they measure, what they record,
 * and that they change no result of the training. */
#include "step_fixture.h"

#include <cjson/cJSON.h>

#include <vknerf/run.h>

#include "run/internal.h"
#include "run/training.h"

/* ---- when they are due ----------------------------------------------------------------------- */

#define NEVER UINT32_MAX

/* `step` and `seconds`: the last evaluation, and the state of the training. */
static void assert_next(const struct vkn_config *config, uint64_t step, double seconds,
                        uint64_t next_step, double next_seconds)
{
    static struct vkn_trainer trainer;
    trainer.config = *config;
    trainer.steps_done = step;
    trainer.seconds = seconds;
    struct validation v = {.trainer = &trainer, .step = step, .seconds = seconds};
    const struct validation_due due = validate_next(&v);
    if (due.step != next_step ||
        !(due.seconds == next_seconds || fabs(due.seconds - next_seconds) < 1e-9))
        fail_msg("after step %llu and %g s: step %llu and %g s, not %llu and %g s",
                 (unsigned long long)step, seconds, (unsigned long long)due.step, due.seconds,
                 (unsigned long long)next_step, next_seconds);
    if (next_step != NEVER) {
        trainer.steps_done = next_step - 1;
        assert_false(validate_is_due(&v));
        trainer.steps_done = next_step;
        assert_true(validate_is_due(&v));
        trainer.steps_done = step;
    }
    if (isfinite(next_seconds)) {
        trainer.seconds = seconds + next_seconds - 1e-6;
        assert_false(validate_is_due(&v));
        trainer.seconds = seconds + next_seconds + 1e-6;
        assert_true(validate_is_due(&v));
    }
}

static void schedules(void **state)
{
    (void)state;
    const struct vkn_config by_steps = {.steps = 20000}, odd = {.steps = 4011},
                            by_time = {.seconds = 600}, both = {.steps = 20000, .seconds = 600};
    assert_next(&by_steps, 0, 0, 2000, HUGE_VAL);
    assert_next(&by_steps, 2000, 20, 4000, HUGE_VAL);
    assert_next(&by_steps, 4000, 40, 8000, HUGE_VAL);
    assert_next(&by_steps, 8001, 80, 16000, HUGE_VAL); /* resumed between two evaluations */
    assert_next(&by_steps, 16000, 160, NEVER, HUGE_VAL);
    assert_next(&odd, 0, 0, 402, HUGE_VAL);
    assert_next(&by_time, 0, 0, NEVER, 60);
    assert_next(&by_time, 700, 60.25, NEVER, 59.75);
    assert_next(&by_time, 5000, 300, NEVER, 180);
    assert_next(&by_time, 8000, 480, NEVER, HUGE_VAL);
    /* The limit that is nearer to its end counts. */
    assert_next(&both, 0, 0, 2000, 60);
    assert_next(&both, 2000, 10, 4000, 110);
    assert_next(&both, 100, 130, 8000, 110);
    /* Short trainings. */
    const struct vkn_config shorter = {.steps = 1000}, shortest = {.steps = 318};
    assert_next(&shorter, 0, 0, 400, HUGE_VAL);
    assert_next(&shortest, 0, 0, NEVER, HUGE_VAL);
    /* Steps that are set replace the default. */
    const struct vkn_config set = {.steps = 20000, .seconds = 600, .eval_every.every = 500},
                            off = {.steps = 20000, .eval_every.every = VKN_NO_STEPS};
    assert_next(&set, 0, 0, 500, HUGE_VAL);
    assert_next(&set, 2000, 60, 2500, HUGE_VAL);
    assert_next(&off, 0, 0, NEVER, HUGE_VAL);
}

/* ---- levels of the PSNR ---------------------------------------------------------------------- */

static char *reached(const char *evaluations)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_Parse(evaluations);
    assert_non_null(list);
    run_reached_json(json, list, "val");
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "reached"));
    cJSON_Delete(list);
    cJSON_Delete(json);
    return text;
}

static void assert_reached(const char *evaluations, const char *expected)
{
    char *text = reached(evaluations);
    assert_string_equal(text, expected);
    free(text);
}

/* The first evaluation at or above the level counts, and nothing between two evaluations. */
static void levels(void **state)
{
    (void)state;
    assert_reached("[]", "[]");
    assert_reached("[{\"step\": 9, \"seconds\": 1, \"psnr\": 24.999999, \"views\": 2}]", "[]");
    assert_reached("[{\"step\": 5, \"seconds\": 1, \"psnr\": 20, \"views\": 2},"
                   " {\"step\": 9, \"seconds\": 2.5, \"psnr\": 25, \"views\": 2},"
                   " {\"step\": 10, \"seconds\": 3, \"psnr\": 24, \"views\": 2},"
                   " {\"step\": 11, \"seconds\": 4, \"psnr\": 30.5, \"views\": 2},"
                   " {\"step\": 12, \"seconds\": 5, \"psnr\": 31, \"views\": 2}]",
                   "[{\"psnr\":25,\"split\":\"val\",\"step\":9,\"seconds\":2.5,\"views\":2},"
                   "{\"psnr\":30,\"split\":\"val\",\"step\":11,\"seconds\":4,\"views\":2}]");
    /* All views count only where all evaluations measured all. Views without pixels have no PSNR.
     */
    assert_reached("[{\"step\": 5, \"psnr\": null, \"views\": 2},"
                   " {\"step\": 9, \"seconds\": 2, \"psnr\": 26, \"views\": 9,"
                   "  \"quick\": {\"psnr\": 24, \"views\": 2}}]",
                   "[]");
    assert_reached("[{\"step\": 9, \"seconds\": 2, \"psnr\": 24, \"views\": 9,"
                   "  \"quick\": {\"psnr\": 26, \"views\": 2}}]",
                   "[{\"psnr\":25,\"split\":\"val\",\"step\":9,\"seconds\":2,\"views\":2}]");
}

/* ---- trainings ------------------------------------------------------------------------------- */

/* Trains, and returns summary.json. */
static cJSON *train(struct step_tests *tests, const struct vkn_config *config, const char *out)
{
    const struct vkn_job job = {.quiet = true};
    const struct vkn_train_params params = {
        .scene = tests->folder->path, .out = out, .job = &job, .config = config};
    struct vkn_train_result *result;
    ok(vkn_run_train(&params, &result));
    vkn_train_result_free(&result);
    char *path = base_path_join(out, "summary.json");
    cJSON *summary = NULL;
    ok(base_json_read(path, RUN_JSON_LIMIT, &summary));
    free(path);
    return summary;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void assert_evaluations(const cJSON *summary, const double *steps, const double *views,
                               int count)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(summary, "evaluations");
    assert_int_equal(cJSON_GetArraySize(list), count);
    for (int i = 0; i < count; i++) {
        assert_true(number(cJSON_GetArrayItem(list, i), "step") == steps[i]);
        assert_true(number(cJSON_GetArrayItem(list, i), "views") == views[i]);
    }
}

/* Two of three test views are measured in a training, and the final evaluation records their mean
 * too. The parameters are those of a training without evaluations. */
static void default_schedule(void **state)
{
    struct step_tests *tests = *state;
    temporary_text(tests->folder, "transforms_test.json", transforms);
    struct vkn_config config = tiny_config(true);
    config.steps = 330;
    config.eval_views = 2;
    char *out = temporary_path(tests->folder, "run"), *off = temporary_path(tests->folder, "off");
    cJSON *summary = train(tests, &config, out);
    assert_evaluations(summary, (double[]){264, 330}, (double[]){2, 3}, 2);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(summary, "evaluations");
    const cJSON *last = cJSON_GetArrayItem(list, 1),
                *quick = cJSON_GetObjectItemCaseSensitive(last, "quick"),
                *views = cJSON_GetObjectItemCaseSensitive(summary, "per_view");
    double first = number(cJSON_GetArrayItem(views, 0), "psnr"),
           third = number(cJSON_GetArrayItem(views, 2), "psnr");
    assert_true(number(quick, "views") == 2);
    assert_true(fabs(number(quick, "psnr") - (first + third) / 2) < 1e-5);
    assert_true(fabs(number(quick, "psnr") - number(last, "psnr")) > 1e-3);
    assert_false(cJSON_HasObjectItem(cJSON_GetArrayItem(list, 0), "quick"));
    cJSON_Delete(summary);
    config.eval_every.every = VKN_NO_STEPS;
    summary = train(tests, &config, off);
    assert_evaluations(summary, (double[]){330}, (double[]){3}, 1);
    assert_false(cJSON_HasObjectItem(
        cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(summary, "evaluations"), 0), "quick"));
    cJSON_Delete(summary);
    char *a = base_path_join(out, RUN_CHECKPOINT), *b = base_path_join(off, RUN_CHECKPOINT);
    assert_true(same_tensors(a, b));
    free(a);
    free(b);
}

/* Views of many pixels, and 64 rays a step: 256 steps are worth less than a view, 512 steps one. */
static void cost(void **state)
{
    struct step_tests *tests = *state;
    uint8_t *pixels = calloc(70 * 60, 4);
    assert_non_null(pixels);
    static const char *const names[] = {"test_z.png", "test_x.png", "test_y.png"};
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        ok(scene_image_write_png(temporary_path(tests->folder, names[i]), pixels, 70, 60, 4));
    free(pixels);
    temporary_text(tests->folder, "transforms_test.json",
                   "{\"camera_angle_x\": 0.6, \"frames\": [" FRAME(
                       "test_z", "0", "1,0,0,0", "0,1,0,0",
                       "0,0,1,4") ", " FRAME("test_x", "0", "0,0,1,4", "0,1,0,0",
                                             "-1,0,0,0") ", " FRAME("test_y", "0", "1,0,0,0",
                                                                    "0,0,1,4", "0,-1,0,0") "]}");
    struct vkn_config config = tiny_config(true);
    config.steps = 640;
    config.batch.max_rays = 64;
    char *out = temporary_path(tests->folder, "costly");
    cJSON *summary = train(tests, &config, out);
    assert_evaluations(summary, (double[]){512, 640}, (double[]){1, 3}, 2);
    cJSON_Delete(summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules),
        cmocka_unit_test(levels),
        cmocka_unit_test(default_schedule),
        cmocka_unit_test(cost),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
