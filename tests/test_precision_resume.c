/* Tests resuming, starting from and rendering a checkpoint of one precision in any other. */
#include "step_fixture.h"
#include "render/render.h"

#include <vknerf/field.h>
#include <vknerf/run.h>

#include "run/training.h"
#include "step/step.h"
#include "safetensors/safetensors.h"
#include "skips.h"

#define SECTION_STEPS 60u

static char *save(const struct step_tests *tests, struct tiny *tiny, const char *name)
{
    char *path = base_path_join(tests->folder->path, name);
    ok(vkn_trainer_save(tiny->trainer, path));
    return path;
}

static struct vkn_config long_config(enum vkn_precision precision)
{
    struct vkn_config config = tiny_config(false);
    config.precision = precision;
    config.steps = 4 * SECTION_STEPS;
    return config;
}

static double mean_loss(const struct tiny *tiny, uint32_t first, uint32_t last)
{
    const struct Stats *stats = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    double sum = 0;
    for (uint32_t step = first; step <= last; step++)
        sum += (double)stats[step % STATS_RING].loss / (last - first + 1);
    return sum;
}

static struct State read_state(const struct tiny *tiny)
{
    struct State state;
    ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_STATE], 0, &state,
                    sizeof state));
    return state;
}

/* ---- resuming ------------------------------------------------------------------------------ */

/* Returns the trainer's configuration of `train --resume PATH` with these settings given. */
static struct vkn_config resumed_config(const char *path, const struct vkn_config *given)
{
    struct vkn_config config;
    const struct vkn_train_params params = {.resume = path, .config = &config, .given = given};
    ok(vkn_run_config(path, &config));
    if (given->precision)
        config.precision = given->precision;
    if (given->loss_scale.kind)
        config.loss_scale.kind = given->loss_scale.kind;
    if (given->loss_scale.initial > 0)
        config.loss_scale.initial = given->loss_scale.initial;
    struct run_beginning beginning;
    ok(run_begin(&params, &beginning));
    config = beginning.config;
    run_begin_close(&beginning);
    return config;
}

static struct tiny resume(const struct step_tests *tests, const char *path,
                          const struct vkn_config *given)
{
    const struct vkn_config config = resumed_config(path, given);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    ok(vkn_trainer_resume(tiny.trainer, path));
    return tiny;
}

static void assert_tensor(const struct tiny *tiny, const struct safetensors_file *file,
                          const char *name, enum safetensors_type type,
                          const struct gpu_buffer *buffer)
{
    const struct safetensors_tensor *tensor = NULL;
    ok(safetensors_find(file, name, type, buffer->size / 4, &tensor));
    void *loaded = tiny_read(tiny, buffer);
    assert_memory_equal(loaded, tensor->data, buffer->size);
    free(loaded);
}

/* Parameters on the device equal those of the file, bit for bit, in every precision. */
static void assert_loaded(const struct tiny *tiny, const char *path)
{
    const struct gpu_buffer *b = tiny->trainer->step.buffers.at;
    struct safetensors_file *file = NULL;
    ok(checkpoint_open(path, &file));
    assert_tensor(tiny, file, "params", SAFETENSORS_F32, &b[BIND_PARAMS]);
    assert_tensor(tiny, file, "average", SAFETENSORS_F32, &b[BIND_AVERAGE]);
    assert_tensor(tiny, file, "occupancy", SAFETENSORS_F32, &b[BIND_OCCUPANCY]);
    assert_tensor(tiny, file, "moment1", SAFETENSORS_F32, &b[BIND_MOMENT1]);
    assert_tensor(tiny, file, "moment2", SAFETENSORS_F32, &b[BIND_MOMENT2]);
    assert_tensor(tiny, file, "counts", SAFETENSORS_U32, &b[BIND_STEP_COUNTS]);
    safetensors_close(&file);
}

/* Resumes in a precision until `until_step`; returns the loss of the last steps, and replaces
 * `path` by the new checkpoint. */
static double resume_until(const struct step_tests *tests, char **path,
                           enum vkn_precision precision, float scale, uint32_t until_step)
{
    const struct vkn_config given = {.precision = precision};
    struct tiny tiny = resume(tests, *path, &given);
    assert_loaded(&tiny, *path);
    struct State state = read_state(&tiny);
    assert_true(state.loss_scale == scale);
    assert_int_equal(state.good_steps, 0);
    assert_int_equal(state.step, until_step - SECTION_STEPS);
    tiny_run(&tiny, until_step);
    double loss = mean_loss(&tiny, until_step - 9, until_step);
    free(*path);
    char name[32];
    snprintf(name, sizeof name, "chain-%u", until_step);
    *path = save(tests, &tiny, name);
    tiny_destroy(&tiny);
    return loss;
}

static void test_chain(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = long_config(VKN_PRECISION_FP32);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, SECTION_STEPS);
    double first = mean_loss(&tiny, 1, 10);
    double fp32 = mean_loss(&tiny, SECTION_STEPS - 9, SECTION_STEPS);
    char *path = save(tests, &tiny, "chain-begin");
    tiny_destroy(&tiny);
    double coopmat = resume_until(tests, &path, VKN_PRECISION_COOPMAT, 65536, 2 * SECTION_STEPS);
    double fp16 = resume_until(tests, &path, VKN_PRECISION_FP16, 65536, 3 * SECTION_STEPS);
    double again = resume_until(tests, &path, VKN_PRECISION_FP32, 1, 4 * SECTION_STEPS);
    print_message("loss: %.5f; fp32 %.5f; coopmat %.5f; fp16 %.5f; fp32 %.5f\n", first, fp32,
                  coopmat, fp16, again);
    assert_true(fp32 < first && coopmat < fp32 && fp16 < coopmat && again < fp16);
    free(path);
}

/* Loss scaling gets the new precision's defaults, except for settings that are given. */
static void test_loss_scale(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = long_config(VKN_PRECISION_FP32);
    config.loss_scale.interval = 77;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 2);
    char *path = save(tests, &tiny, "scale");
    tiny_destroy(&tiny);

    struct vkn_config given = {.precision = VKN_PRECISION_FP16};
    struct vkn_config resumed = resumed_config(path, &given);
    assert_int_equal(resumed.loss_scale.kind, VKN_LOSS_SCALE_DEFAULT);
    assert_int_equal(resumed.loss_scale.interval, 0);
    /* The run's own values, given explicitly. */
    given.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    given.loss_scale.initial = 1;
    resumed = resumed_config(path, &given);
    assert_int_equal(resumed.loss_scale.kind, VKN_LOSS_SCALE_STATIC);
    assert_true(resumed.loss_scale.initial == 1);
    /* With the same precision all settings stay. */
    given = (struct vkn_config){.precision = VKN_PRECISION_FP32};
    resumed = resumed_config(path, &given);
    assert_int_equal(resumed.loss_scale.kind, VKN_LOSS_SCALE_STATIC);
    assert_int_equal(resumed.loss_scale.interval, 77);
    /* A given scale replaces the run's last one. */
    given.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    given.loss_scale.initial = 32;
    tiny = resume(tests, path, &given);
    assert_true(read_state(&tiny).loss_scale == 32);
    tiny_destroy(&tiny);
    free(path);
}

/* A batch smaller than the run's limits the rays to its capacity. */
static void test_smaller_batch(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = long_config(VKN_PRECISION_FP32);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 8);
    struct State many = read_state(&tiny);
    many.ray_count = 256;
    tiny_put(&tiny, &tiny.trainer->step.buffers.at[BIND_STATE], &many);
    char *path = save(tests, &tiny, "batch");
    tiny_destroy(&tiny);
    config.batch.samples = 1024;
    config.batch.max_rays = 64;
    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(vkn_trainer_resume(tiny.trainer, path));
    assert_int_equal(read_state(&tiny).ray_count, 64);
    tiny_run(&tiny, 16);
    tiny_destroy(&tiny);
    free(path);
}

/* ---- another device ------------------------------------------------------------------------ */

struct fitted {
    const char *path;
    const vkn_scene *scene;
    struct vkn_config given;
};

static struct vkn_config fit(const struct fitted *fitted, const struct gpu_capabilities *device)
{
    struct vkn_config config;
    const struct vkn_train_params params = {
        .resume = fitted->path, .config = &config, .given = &fitted->given};
    ok(vkn_run_config(fitted->path, &config));
    struct run_beginning beginning;
    ok(run_begin(&params, &beginning));
    base_log_threshold(BASE_LOG_NOTHING);
    run_begin_fit(&beginning, fitted->scene, device);
    base_log_threshold(BASE_LOG_WARNING);
    config = beginning.config;
    run_begin_close(&beginning);
    return config;
}

/* Settings of the run that the device lacks are dropped; settings that the user gives stay, and
 * fail. */
static void test_another_device(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = long_config(VKN_PRECISION_COOPMAT);
    config.gradient_sums = VKN_SUMS_F32;
    config.matrix.shape = VKN_SHAPE_8X8X8;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 1);
    char *path = save(tests, &tiny, "device");
    struct fitted run = {.path = path, .scene = tiny.scene};
    const struct gpu_capabilities *here = gpu_device_capabilities(tiny.trainer->device);

    struct vkn_config same = fit(&run, here);
    assert_int_equal(same.precision, VKN_PRECISION_COOPMAT);
    assert_int_equal(same.matrix.shape, VKN_SHAPE_8X8X8);
    assert_int_equal(same.gradient_sums, VKN_SUMS_F32);

    struct gpu_capabilities other = *here;
    other.float_atomic_add = false;
    other.type = GPU_DISCRETE; /* a CPU needs no atomics */
    for (uint32_t i = 0; i < other.shape_count; i++) {
        other.shapes[i].m = other.shapes[i].n = other.shapes[i].k = 16;
        other.shapes[i].flexible = false;
    }
    struct vkn_config elsewhere = fit(&run, &other);
    assert_int_equal(elsewhere.precision, VKN_PRECISION_COOPMAT);
    assert_int_equal(elsewhere.matrix.shape, VKN_SHAPE_DEFAULT);
    assert_int_equal(elsewhere.gradient_sums, VKN_SUMS_DEFAULT);
    assert_int_equal(elsewhere.loss_scale.kind, VKN_LOSS_SCALE_DYNAMIC);

    other = *here;
    other.cooperative_matrix = false;
    struct vkn_config plain = fit(&run, &other);
    assert_int_equal(plain.precision, VKN_PRECISION_FP32);
    assert_int_equal(plain.gradient_sums, VKN_SUMS_F32);
    assert_int_equal(plain.loss_scale.kind, VKN_LOSS_SCALE_DEFAULT);
    run.given.precision = VKN_PRECISION_COOPMAT;
    assert_int_equal(fit(&run, &other).precision, VKN_PRECISION_COOPMAT);
    tiny_destroy(&tiny);
    free(path);
}

/* ---- starting from weights ----------------------------------------------------------------- */

static void test_init(void **state)
{
    static const enum vkn_precision precisions[] = {VKN_PRECISION_FP32, VKN_PRECISION_FP16,
                                                    VKN_PRECISION_COOPMAT};
    const struct step_tests *tests = *state;
    struct vkn_config config = long_config(VKN_PRECISION_COOPMAT);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 4 * SECTION_STEPS);
    double first = mean_loss(&tiny, 1, 4);
    char *path = save(tests, &tiny, "init");
    tiny_destroy(&tiny);
    for (size_t i = 0; i < BASE_COUNT(precisions); i++) {
        config.precision = precisions[i];
        tiny = tiny_create(tests->context, tests->folder, &config);
        ok(vkn_trainer_init(tiny.trainer, path));
        tiny_run(&tiny, 4);
        double loss = mean_loss(&tiny, 1, 4);
        print_message("precision %d: loss %.5f, from random weights %.5f\n", precisions[i], loss,
                      first);
        assert_true(loss < 0.5 * first);
        tiny_destroy(&tiny);
    }
    free(path);
}

/* ---- rendering ----------------------------------------------------------------------------- */

static struct vkn_picture render_in(const struct step_tests *tests, const char *path,
                                    enum vkn_precision precision, const struct scene_camera *camera)
{
    vkn_renderer *renderer = NULL;
    ok(vkn_renderer_open(tests->context, path, precision, &renderer));
    assert_int_equal(vkn_renderer_config(renderer)->precision, precision);
    struct vkn_picture picture = {0};
    ok(render_picture(renderer, camera, VKN_BACKGROUND_WHITE, 2, &picture));
    vkn_renderer_destroy(&renderer);
    return picture;
}

static void assert_alike(const struct vkn_picture *a, const struct vkn_picture *b)
{
    double psnr = vkn_psnr(a->color, b->color, NULL, a->width, a->height);
    print_message("%.1f dB apart\n", psnr);
    assert_true(psnr > 40);
}

static void test_renders(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = long_config(VKN_PRECISION_FP16);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 4 * SECTION_STEPS);
    char *path = save(tests, &tiny, "pictures");
    const struct scene_camera *camera = &tiny.scene->splits[SCENE_TRAIN].cameras[1];
    struct vkn_picture fp32 = render_in(tests, path, VKN_PRECISION_FP32, camera);
    struct vkn_picture fp16 = render_in(tests, path, VKN_PRECISION_FP16, camera);
    struct vkn_picture coopmat = render_in(tests, path, VKN_PRECISION_COOPMAT, camera);
    assert_alike(&fp32, &fp16);
    assert_alike(&fp32, &coopmat);
    render_picture_free(&fp32);
    render_picture_free(&fp16);
    render_picture_free(&coopmat);
    tiny_destroy(&tiny);
    free(path);
}

/* Without cooperative matrices fp32 renders the checkpoint, unless matrices are requested. */
static void test_renders_elsewhere(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = long_config(VKN_PRECISION_COOPMAT);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 1);
    char *path = save(tests, &tiny, "elsewhere");
    tiny_destroy(&tiny);

    vkn_context *context = NULL;
    vkn_renderer *renderer = NULL;
    struct vkn_context_params params = {0};
    setenv("VKNERF_DISABLE", "cooperative_matrix,cooperative_matrix2", 1);
    ok(vkn_context_create(&params, &context));
    unsetenv("VKNERF_DISABLE");
    base_log_threshold(BASE_LOG_NOTHING);
    ok(vkn_renderer_open(context, path, VKN_PRECISION_AUTO, &renderer));
    base_log_threshold(BASE_LOG_WARNING);
    assert_int_equal(vkn_renderer_config(renderer)->precision, VKN_PRECISION_FP32);
    vkn_renderer_destroy(&renderer);
    assert_int_equal(vkn_renderer_open(context, path, VKN_PRECISION_COOPMAT, &renderer),
                     VKN_BAD_INPUT);
    assert_null(renderer);
    assert_non_null(strstr(vkn_last_error(), "has no cooperative matrices"));
    vkn_context_destroy(&context);
    free(path);
}

/* ---- a field in GLSL ----------------------------------------------------------------------- */

/* A parameter for each of 8 x 8 x 8 cells; as many features as tiny_config's grid. */
static const char cells[] =
    "#pragma field parameters 512\n#pragma field features 8\n#pragma field initial 0.5\n"
    "uint cell(vec3 p) { uvec3 c = uvec3(min(p * 8.0, 7.0)); return c.x + 8u * (c.y + 8u * c.z); "
    "}\n"
    "void encode(vec3 position, uint first)\n{\n    float a = parameter(first + cell(position));\n"
    "    for (uint i = 0u; i < 8u; i++) put_feature(i, i == 5u ? a : i == 6u ? a * a : 0.0);\n}\n"
    "void encode_backward(vec3 position, uint first)\n{\n    uint at = first + cell(position);\n"
    "    add_gradient(at, feature_gradient(5u) + 2.0 * parameter(at) * feature_gradient(6u));\n}\n";

static double train_cells(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    assert_int_equal(tiny.trainer->step.setup.backend.precision, config->precision);
    tiny_run(&tiny, 17);
    double loss = mean_loss(&tiny, 17, 17);
    assert_true(loss < 0.9 * mean_loss(&tiny, 1, 1));
    assert_int_equal(tiny.trainer->monitor.skips.state_skipped, 0);
    tiny_destroy(&tiny);
    return loss;
}

/* With cooperative matrices the field gives the results of fp32; test_field_glsl has the others. */
static void test_field(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    ok(vkn_field_register(&(struct vkn_field){.text = cells}, &config));
    if (vkn_field_check(tests->context, &config) != VKN_OK &&
        strstr(vkn_last_error(), "shaderc, which"))
        skip_because("shaderc is not installed");
    config.precision = VKN_PRECISION_FP32;
    double fp32 = train_cells(tests, &config);
    config.precision = VKN_PRECISION_COOPMAT;
    config.gradient_sums = VKN_SUMS_FIXED;
    check_close(train_cells(tests, &config), fp32, 0.1, fp32, "loss", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_loss_scale),
        cmocka_unit_test(test_smaller_batch),
        cmocka_unit_test(test_another_device),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_renders),
        cmocka_unit_test(test_renders_elsewhere),
        cmocka_unit_test(test_field),
    };
    int failed = cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
    return skips_status(failed, BASE_COUNT(tests));
}
