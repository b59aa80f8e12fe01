/* Tests trainings that estimate the appearance of images: exposures come back, from image files or
 * from the images alone; pictures and evaluations show them; trainings repeat bit for bit across
 * stops and resumes; appearance.json describes them. Takes about 25 s, most of it for the recovery:
 * exposures are as exact as the field. */
#include "evaluation.h"
#include "step_fixture.h"

#include <cjson/cJSON.h>

#include <vknerf/renderer.h>

#include "render/internal.h"
#include "report/report.h"
#include "run/training.h"

/* ---- recovery ---------------------------------------------------------------------------------
 */

/* A small model of the bundled scene. */
static struct vkn_config bundled_config(void)
{
    return (struct vkn_config){
        .deterministic = true,
        .seed = 1,
        .steps = 800,
        .scene = {.downscale = 2, .appearance = VKN_APPEARANCE_EXPOSURE},
        .grid = {.levels = 6, .features = 2, .log2_entries = 14, .coarsest = 8, .finest = 64},
        .mlp = tiny_config(true).mlp,
        .march = {.resolution = 32, .steps_per_unit = 128},
        .batch = {.samples = 4096, .max_rays = 2048},
    };
}

static double decode(double s)
{
    return s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
}

static double encode(double l)
{
    return l <= 0.0031308 ? 12.92 * l : 1.055 * pow(l, 1 / 2.4) - 0.055;
}

/* Brightens premultiplied pixels by factors of linear light, one for each channel. */
static void expose(uint32_t *pixels, size_t count, const double factors[3])
{
    for (size_t i = 0; i < count; i++) {
        uint32_t alpha = pixels[i] >> 24, changed = alpha << 24;
        for (int c = 0; c < 3 && alpha > 0; c++) {
            double straight = fmin((pixels[i] >> (8 * c) & 255) / (double)alpha, 1);
            double light = fmin(decode(straight) * factors[c], 1);
            changed |= (uint32_t)lround(encode(light) * alpha) << (8 * c);
        }
        pixels[i] = changed;
    }
}

/* Returns the exposure that the tests give training image n: 0, 1 or -1. */
static double exposure_of(size_t n)
{
    return n % 3 == 2 ? -1 : (double)(n % 3);
}

/* Opens the bundled scene, with a third of the training images a stop brighter and a third darker;
 * with `warm` those have more red instead. */
static vkn_scene *open_exposed(bool warm)
{
    const struct vkn_config config = bundled_config();
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    vkn_scene *scene;
    ok(vkn_scene_open(path, &config, &scene));
    ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    for (size_t n = 0; n < train->camera_count; n++) {
        const struct scene_camera *camera = &train->cameras[n];
        double factor = exp2(exposure_of(n));
        const double factors[3] = {factor, warm ? 1 : factor, warm ? 1 / factor : factor};
        expose(train->pixels + camera->first_pixel, (size_t)camera->width * camera->height,
               factors);
    }
    free(path);
    return scene;
}

static struct vkn_evaluation *evaluate(vkn_renderer *renderer, vkn_scene *scene,
                                       enum scene_split_name split, size_t stride)
{
    struct vkn_evaluation *evaluation;
    struct report_progress *progress = NULL;
    ok(report_progress_begin(NULL, 0, 0, &progress));
    const struct render_evaluation request = {.renderer = renderer,
                                              .scene = scene,
                                              .split = split,
                                              .background = VKN_BACKGROUND_WHITE,
                                              .stride = stride,
                                              .progress = progress};
    ok(render_evaluate(&request, &evaluation));
    report_progress_end(&progress);
    return evaluation;
}

/* Returns the root mean square error of the exposures, about their means. */
static double exposure_error(const vkn_trainer *trainer, size_t count)
{
    struct Appearance *appearances = base_alloc(count, sizeof *appearances);
    double sum = 0, square = 0;
    ok(step_read_appearances(&trainer->step, 0, count, appearances));
    for (size_t n = 0; n < count; n++) {
        double error = (double)appearances[n].values[0] - exposure_of(n);
        sum += error / (double)count;
        square += error * error / (double)count;
    }
    free(appearances);
    return sqrt(square - sum * sum);
}

/* A test view whose file gives an exposure is rendered with it; others at the mean exposure. */
static void check_test_views(vkn_renderer *renderer, vkn_scene *scene)
{
    struct vkn_evaluation *plain = evaluate(renderer, scene, SCENE_TEST, 1);
    struct scene_split *train = &scene->splits[SCENE_TRAIN], *test = &scene->splits[SCENE_TEST];
    for (size_t n = 0; n < train->camera_count; n++) {
        train->cameras[n].has_exposure = true;
        train->cameras[n].exposure = 5 + (float)exposure_of(n);
    }
    test->cameras[1].has_exposure = true;
    test->cameras[1].exposure = 3;
    struct vkn_evaluation *given = evaluate(renderer, scene, SCENE_TEST, 1);
    print_message("test views: %.2f dB, affine %.2f, quadratic %.2f\n", plain->psnr,
                  plain->psnr_affine, plain->psnr_quadratic);
    assert_true(plain->psnr > 24);
    assert_true(plain->psnr_affine > plain->psnr - 0.1);
    assert_true(given->views[0]->psnr == plain->views[0]->psnr);
    print_message("two stops darker: %.2f dB instead of %.2f, affine %.2f, quadratic %.2f\n",
                  given->views[1]->psnr, plain->views[1]->psnr, given->views[1]->psnr_affine,
                  given->views[1]->psnr_quadratic);
    assert_true(given->views[1]->psnr < plain->views[1]->psnr - 3);
    assert_true(given->views[1]->psnr_quadratic > given->views[1]->psnr + 3);
    vkn_evaluation_free(&plain);
    vkn_evaluation_free(&given);
}

/* Pictures of training views have their exposures, in trainings and from checkpoints. */
static void check_training_views(const struct step_tests *tests, vkn_trainer *trainer,
                                 vkn_renderer *renderer, vkn_scene *scene)
{
    char *checkpoint = temporary_path(tests->folder, "exposed");
    vkn_renderer *stored;
    ok(vkn_trainer_save(trainer, checkpoint));
    ok(vkn_renderer_open(tests->context, checkpoint, VKN_PRECISION_AUTO, &stored));
    struct vkn_evaluation *a = evaluate(renderer, scene, SCENE_TRAIN, 4);
    struct vkn_evaluation *b = evaluate(stored, scene, SCENE_TRAIN, 4);
    for (size_t i = 0; i < a->view_count; i++) {
        assert_true(a->views[i]->psnr == b->views[i]->psnr);
        assert_true(a->views[i]->psnr > 22);
    }
    vkn_evaluation_free(&a);
    vkn_evaluation_free(&b);
    vkn_renderer_destroy(&stored);
}

static void test_recovery(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = bundled_config();
    struct tiny tiny = {.context = tests->context, .scene = open_exposed(false)};
    vkn_renderer *renderer;
    ok(vkn_trainer_create(tiny.context, tiny.scene, &config, &tiny.trainer));
    tiny_run(&tiny, 800);
    double error = exposure_error(tiny.trainer, tiny.scene->splits[SCENE_TRAIN].camera_count);
    print_message("exposures: %.3f stops\n", error);
    assert_true(error < 0.06);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    check_training_views(tests, tiny.trainer, renderer, tiny.scene);
    check_test_views(renderer, tiny.scene);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* ---- what is estimated by default -------------------------------------------------------------
 */

static enum vkn_appearance default_of(struct vkn_scene *scene, const char *description)
{
    char text[128];
    scene_find_exposures(scene);
    bool differ = scene_describe_exposures(scene, text);
    assert_int_equal(differ, description != NULL);
    if (description && !strstr(text, description))
        fail_msg("%s", text);
    return scene_default_appearance(scene);
}

/* Multiplies colours and alpha of every other training image by 0.55. */
static void make_transparent(vkn_scene *scene)
{
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    for (size_t n = 1; n < train->camera_count; n += 2) {
        const struct scene_camera *camera = &train->cameras[n];
        uint8_t *bytes = (uint8_t *)(train->pixels + camera->first_pixel);
        for (size_t i = 0; i < 4 * (size_t)camera->width * camera->height; i++)
            bytes[i] = (uint8_t)(0.55 * bytes[i] + 0.5);
    }
}

static void test_default(void **state)
{
    (void)state;
    const struct vkn_config config = bundled_config();
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    vkn_scene *scene, *exposed = open_exposed(false), *warm = open_exposed(true);
    ok(vkn_scene_open(path, &config, &scene));
    assert_int_equal(default_of(scene, NULL), VKN_APPEARANCE_OFF);
    assert_int_equal(default_of(exposed, "brightness of neighbouring images by "),
                     VKN_APPEARANCE_EXPOSURE);
    assert_int_equal(default_of(warm, "white balance differs: "), VKN_APPEARANCE_FULL);
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    for (size_t n = 0; n < train->camera_count; n += n % 8 == 6 ? 2 : 1) {
        train->cameras[n].has_exposure = true; /* of seven in eight views */
        train->cameras[n].exposure = 3 + 0.02F * (float)n;
    }
    assert_int_equal(default_of(scene, "by 1.2 stops in the image files"), VKN_APPEARANCE_EXPOSURE);
    check_close(scene_relative_exposure(train, &train->cameras[0]), -0.59, 0.03, 1, "exposure", 0);
    assert_true(scene_relative_exposure(train, &train->cameras[7]) == 0);
    for (size_t n = 2; n < train->camera_count; n++)
        train->cameras[n].has_exposure = false; /* of two views only */
    train->cameras[1].exposure = 6;
    assert_int_equal(default_of(scene, NULL), VKN_APPEARANCE_OFF);
    for (size_t n = 0; n < train->camera_count; n++) {
        train->cameras[n].has_exposure = true;
        train->cameras[n].exposure = 3;
    }
    assert_int_equal(default_of(scene, NULL), VKN_APPEARANCE_OFF);
    make_transparent(scene);
    assert_int_equal(default_of(scene, NULL), VKN_APPEARANCE_OFF);
    train->camera_count = 7; /* too few to tell */
    assert_int_equal(default_of(scene, NULL), VKN_APPEARANCE_OFF);
    train->camera_count = 60;
    vkn_scene_close(&scene);
    vkn_scene_close(&exposed);
    vkn_scene_close(&warm);
    free(path);
}

/* ---- views -------------------------------------------------------------------------------------
 */

static void put_value(const struct tiny *tiny, uint32_t view, uint32_t parameter, float value)
{
    const struct step *step = &tiny->trainer->step;
    uint64_t word = step->setup.constants.first_appearance_word + view * APPEARANCE_WORDS;
    ok(gpu_upload(step->device, &step->buffers.at[BIND_STATE], 4 * (word + parameter), &value,
                  sizeof value));
}

/* Training views have all their numbers; test views those of the camera, if it is one of training
 * views, and the exposure of their file. */
static void test_views(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = bundled_config();
    struct tiny tiny = {.context = tests->context, .scene = open_exposed(false)};
    struct scene_split *test = &tiny.scene->splits[SCENE_TEST];
    vkn_renderer *renderer;
    config.scene.appearance = VKN_APPEARANCE_FULL;
    ok(vkn_trainer_create(tiny.context, tiny.scene, &config, &tiny.trainer));
    put_value(&tiny, 0, 1, 0.5F);
    put_value(&tiny, 0, APPEARANCE_VIGNETTING, 0.25F);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    const float *shown = renderer->setup.constants.picture_appearance;
    ok(render_set_view_appearance(renderer, tiny.scene, SCENE_TRAIN, 0));
    assert_true(shown[1] == 0.5F && shown[APPEARANCE_VIGNETTING] == 0.25F);
    ok(render_set_view_appearance(renderer, tiny.scene, SCENE_TEST, 2));
    assert_true(shown[1] == 0 && shown[APPEARANCE_VIGNETTING] == 0.25F);
    assert_int_equal(renderer->setup.constants.picture_kind, APPEARANCE_FULL);
    test->cameras[2].width--; /* another camera */
    ok(render_set_view_appearance(renderer, tiny.scene, SCENE_TEST, 2));
    assert_true(shown[1] == 0 && shown[APPEARANCE_VIGNETTING] == 0);
    ok(render_set_exposure(renderer, 0));
    assert_int_equal(renderer->setup.constants.picture_kind, 0);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* ---- checkpoints ------------------------------------------------------------------------------
 */

static struct vkn_config tiny_estimating(void)
{
    struct vkn_config config = tiny_config(true);
    config.steps = 128;
    config.scene.appearance = VKN_APPEARANCE_FULL;
    return config;
}

static void test_resume(void **state)
{
    struct vkn_config config = tiny_estimating();
    config.batch.by_error = 0.5F;
    config.parallel.ranks_per_device = 2;
    config.scene.refine = VKN_REFINEMENT_ALL;
    tiny_check_resume(*state, &config, "refined, by error, virtual ranks");
    config = tiny_estimating();
    config.scene.image_budget = 1000;
    tiny_check_resume(*state, &config, "streamed");
    config = tiny_estimating();
    config.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 16;
    config.march.fine_samples = 16;
    tiny_check_resume(*state, &config, "hierarchical");
}

static double exposure_of_view(const struct tiny *tiny, size_t view)
{
    struct Appearance appearance;
    ok(step_read_appearances(&tiny->trainer->step, view, 1, &appearance));
    return (double)appearance.values[0];
}

/* Returns how many rays the view had since the last update. */
static uint32_t rays_of_view(const struct tiny *tiny, uint32_t view)
{
    const struct step *step = &tiny->trainer->step;
    struct ErrorCell cell;
    uint64_t cells = step->setup.constants.first_appearance_sum + view * APPEARANCE_PARAMETERS;
    ok(gpu_download(step->device, &step->buffers.at[BIND_STATE],
                    sizeof(struct State) + cells * sizeof cell, &cell, sizeof cell));
    return cell.rays;
}

/* A training goes on from one that estimated nothing, or less; not the other way round. With other
 * views a checkpoint is refused, and with damaged values. */
static void test_other_settings(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config plain = tiny_config(true), exposure = tiny_estimating(),
                      full = tiny_estimating();
    exposure.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    char *begun = tiny_train(tests, &plain, NULL, 20, "begun");
    char *exposed = base_format("%s", temporary_path(tests->folder, "exposed"));
    struct tiny tiny = tiny_create(tests->context, tests->folder, &exposure);
    ok(vkn_trainer_resume(tiny.trainer, begun));
    tiny_run(&tiny, 40);
    put_value(&tiny, 1, 0, 0.25F);
    ok(vkn_trainer_save(tiny.trainer, exposed));
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &full);
    ok(vkn_trainer_resume(tiny.trainer, exposed));
    assert_true(exposure_of_view(&tiny, 1) == 0.25);
    tiny_destroy(&tiny);
    exposure.batch.by_error = 0.5F; /* sums move behind the error map */
    tiny = tiny_create(tests->context, tests->folder, &exposure);
    ok(vkn_trainer_resume(tiny.trainer, exposed));
    assert_true(exposure_of_view(&tiny, 1) == 0.25 && rays_of_view(&tiny, 1) > 0);
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &full);
    tiny.trainer->step.setup.constants.camera_count--; /* as if the scene had a view less */
    assert_int_equal(vkn_trainer_resume(tiny.trainer, exposed), VKN_BAD_INPUT);
    assert_error("exposed: state: appearances of other views than the scene's");
    tiny.trainer->step.setup.constants.camera_count++;
    put_value(&tiny, 1, 5, NAN);
    char *damaged = temporary_path(tests->folder, "damaged");
    ok(vkn_trainer_save(tiny.trainer, damaged));
    assert_int_equal(vkn_trainer_resume(tiny.trainer, damaged), VKN_BAD_INPUT);
    assert_error("damaged: state: view 1: its appearance is not finite");
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &full);
    ok(vkn_trainer_init(tiny.trainer, exposed));
    assert_true(exposure_of_view(&tiny, 1) == 0.25);
    ok(vkn_trainer_init(tiny.trainer, begun));
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &plain);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, exposed), VKN_BAD_INPUT);
    assert_error("scene.appearance: trained with exposure: resume with exposure too");
    ok(vkn_trainer_init(tiny.trainer, exposed)); /* takes over the field alone */
    tiny_destroy(&tiny);
    free(begun);
    free(exposed);
}

/* ---- appearance.json --------------------------------------------------------------------------
 */

static void keep_info(void *user, enum vkn_log_level level, const char *line)
{
    if (level == VKN_LOG_INFO)
        snprintf(user, 512, "%s", line);
}

static double element(const cJSON *object, const char *name, int index)
{
    const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(object, name), index);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* Exposures of image files are where training begins. The file disappears with the next training
 * that estimates nothing. */
static void test_file(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_estimating();
    struct Appearance appearances[3];
    char line[512] = "";
    cJSON *json = NULL;
    struct tiny tiny = {.context = tests->context};
    ok(vkn_scene_open(tests->folder->path, &config, &tiny.scene));
    struct scene_camera *cameras = tiny.scene->splits[SCENE_TRAIN].cameras;
    cameras[0].has_exposure = cameras[1].has_exposure = true;
    cameras[0].exposure = 4;
    cameras[1].exposure = 7;
    ok(vkn_trainer_create(tests->context, tiny.scene, &config, &tiny.trainer));
    assert_true(exposure_of_view(&tiny, 0) == -1.5 && exposure_of_view(&tiny, 1) == 1.5);
    assert_true(exposure_of_view(&tiny, 2) == 0);
    tiny_run(&tiny, 128);
    ok(step_read_appearances(&tiny.trainer->step, 0, 3, appearances));
    base_log_threshold(BASE_LOG_INFO);
    vkn_log_to(keep_info, line);
    ok(run_write_views(tests->folder->path, &tiny.trainer->step, tiny.scene));
    vkn_log_to(NULL, NULL);
    if (!strstr(line, "estimated gains of red and blue differ by "))
        fail_msg("%s", line);
    ok(base_json_read(temporary_path(tests->folder, REPORT_APPEARANCE), 1 << 20, &json));
    const cJSON *views = cJSON_GetObjectItemCaseSensitive(json, "views");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "cameras");
    assert_int_equal(cJSON_GetArraySize(views), 3);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    for (int v = 0; v < 3; v++) {
        const cJSON *view = cJSON_GetArrayItem(views, v);
        const cJSON *given = cJSON_GetObjectItemCaseSensitive(view, "exposure_in_file");
        const float *values = appearances[v].values;
        assert_true(cJSON_GetObjectItemCaseSensitive(view, "exposure")->valuedouble ==
                    (double)values[0]);
        assert_true(v < 2 ? given->valuedouble == (v == 0 ? -1.5 : 1.5) : given == NULL);
        assert_true(element(view, "white_balance", 1) == (double)values[2]);
        assert_true(element(view, "primaries", 5) == (double)values[8]);
    }
    const cJSON *blue = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, 0), "blue");
    assert_true(element(blue, "vignetting", 4) == (double)appearances[2].values[23]);
    assert_true(element(blue, "curve", 3) == (double)appearances[2].values[35]);
    cJSON_Delete(json);
    tiny_destroy(&tiny);
    config = tiny_config(true);
    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(run_write_views(tests->folder->path, &tiny.trainer->step, tiny.scene));
    assert_false(base_file_exists(temporary_path(tests->folder, REPORT_APPEARANCE)));
    tiny_destroy(&tiny);
}

/* ---- pictures ---------------------------------------------------------------------------------
 */

/* An exposure brightens a picture in linear light, and only the next one. */
static void test_exposure(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = tiny_config(true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct vkn_camera camera = {.size = sizeof camera};
    struct vkn_picture_params params = {.size = sizeof params, .transparent = true};
    struct vkn_picture *plain, *bright, *again;
    vkn_renderer *renderer;
    tiny_run(&tiny, 40);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    ok(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 1, &camera));
    ok(vkn_render(renderer, &camera, &params, &plain));
    params.exposure = -0.5;
    ok(vkn_render(renderer, &camera, &params, &bright));
    params.exposure = 0;
    ok(vkn_render(renderer, &camera, &params, &again));
    for (size_t i = 0; i < 3 * (size_t)plain->width * plain->height; i++) {
        double expected = encode(decode((double)plain->color[i]) * exp2(-0.5));
        if (plain->opacity[i / 3] > 0.01F)
            check_close(bright->color[i], expected, 1e-3, 1, "colour", i);
        assert_true(again->color[i] == plain->color[i]);
    }
    vkn_picture_free(&again);
    params.exposure = 17;
    assert_int_equal(vkn_render(renderer, &camera, &params, &again), VKN_BAD_INPUT);
    assert_error("exposure: 17 is not from -16 to 16 stops");
    vkn_picture_free(&plain);
    vkn_picture_free(&bright);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* An affine change of colours is undone by both corrections, also where the target is clipped, a
 * square by the quadratic one. Pixels that are not used do not count. Where there is nothing to fit
 * the picture stays as it is. */
static void test_correction(void **state)
{
    (void)state;
    enum { SIDE = 24, COUNT = SIDE * SIDE };
    static float target_color[3 * COUNT], color[3 * COUNT];
    static uint8_t used[COUNT];
    const struct vkn_picture target = {
        .width = SIDE, .height = SIDE, .color = target_color, .used = used};
    const struct vkn_picture picture = {.width = SIDE, .height = SIDE, .color = color};
    double affine, quadratic;
    for (int kind = 0; kind < 3; kind++) { /* affine; with squares; clipped */
        for (size_t i = 0; i < COUNT; i++) {
            used[i] = i % 5 != 0;
            for (size_t c = 0; c < 3; c++)
                color[3 * i + c] = 0.1F + 0.7F * (float)((i * (7 + 4 * c) + 3 * c) % 97) / 97;
            for (size_t c = 0; c < 3; c++) {
                float own = color[3 * i + c], next = color[3 * i + (c + 1) % 3];
                float value = 0.05F + 0.6F * own + 0.2F * next * (kind == 1 ? next : 1);
                target_color[3 * i + c] = !used[i] ? 1 : fminf(kind == 2 ? 1.6F * value : value, 1);
            }
        }
        ok(render_corrected_psnr(&picture, &target, false, &affine));
        ok(render_corrected_psnr(&picture, &target, true, &quadratic));
        assert_true(quadratic > 70);
        assert_true(kind == 1 ? affine < 50 : affine > 70);
    }
    assert_true(vkn_psnr(color, target_color, used, SIDE, SIDE) < 25);
    assert_true(color[3] == 0.1F + 0.7F * 7 / 97); /* the picture stays as it is */
    memset(target_color, 0, sizeof target_color);  /* nothing to fit */
    ok(render_corrected_psnr(&picture, &target, true, &quadratic));
    assert_true(isfinite(quadratic));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovery),       cmocka_unit_test(test_default),
        cmocka_unit_test(test_views),          cmocka_unit_test(test_resume),
        cmocka_unit_test(test_other_settings), cmocka_unit_test(test_file),
        cmocka_unit_test(test_exposure),       cmocka_unit_test(test_correction),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
