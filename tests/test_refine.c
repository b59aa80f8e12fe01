/* Tests vkn_refine: cameras that are disturbed become better, and the verdict says so; the scene
 * that is written keeps its form; an interrupted call continues; wrong input has a clear error.
 * Takes about 20 s: a verdict needs five trainings. */
#include "step_fixture.h"

#include <math.h>

#include <cjson/cJSON.h>

#include "html.h"
#include "refine/internal.h"

/* ---- the verdict ----------------------------------------------------------------------------- */

#define SEEDS 3
#define VIEWS 4

/* Judges trainings whose views' PSNR, with the original cameras, are 20 + 3 seed + view, and with
 * the other cameras better by gain[seed] + by_view[view]. */
static struct vkn_refine_result judge(const double gain[SEEDS], const double by_view[VIEWS])
{
    double values[REFINE_SETS][SEEDS][VIEWS];
    struct refine_run runs[REFINE_SETS][SEEDS] = {{{0}}};
    struct vkn_refine_result result = {0};
    for (int set = 0; set < REFINE_SETS; set++)
        for (int i = 0; i < SEEDS; i++) {
            size_t finite = 0;
            runs[set][i].views = values[set][i];
            runs[set][i].ssim = 0.5 + 0.1 * set;
            for (int v = 0; v < VIEWS; v++) {
                values[set][i][v] = 20 + 3 * i + v + set * (gain[i] + by_view[v]);
                if (isfinite(values[set][i][v])) {
                    runs[set][i].psnr += values[set][i][v];
                    finite++;
                }
            }
            runs[set][i].psnr /= (double)finite;
        }
    struct refine_run *const lists[REFINE_SETS] = {runs[REFINE_ORIGINAL], runs[REFINE_OTHER]};
    refine_judge(lists, SEEDS, VIEWS, &result);
    return result;
}

static void test_verdict(void **state)
{
    (void)state;
    const double even[VIEWS] = {0}, zero[SEEDS] = {0}, steady[SEEDS] = {0.5, 0.5, 0.5};
    struct vkn_refine_result result = judge(zero, even);
    assert_int_equal(result.verdict, VKN_REFINE_EQUAL);
    assert_true(result.difference == 0 && result.noise == 0.01);
    assert_float_equal(result.psnr[0], 24.5, 1e-9);
    assert_float_equal(result.ssim[1], 0.6, 1e-9);
    result = judge(steady, even); /* the trainings vary by 3 dB, the differences do not */
    assert_int_equal(result.verdict, VKN_REFINE_REFINED);
    assert_float_equal(result.difference, 0.5, 1e-9);
    assert_float_equal(result.noise, 0.01, 1e-6);
    const double varied[SEEDS] = {0.2, 0.5, 0.8}; /* standard deviation 0.3 */
    result = judge(varied, even);
    assert_float_equal(result.noise, 0.3 / sqrt(3), 1e-9);
    assert_float_equal(result.threshold, 0.6 / sqrt(3), 1e-9);
    assert_int_equal(result.verdict, VKN_REFINE_REFINED); /* 0.5 > 0.346 */
    const double loose[SEEDS] = {-0.1, 0.5, 1.1};
    assert_int_equal(judge(loose, even).verdict, VKN_REFINE_EQUAL);
    const double worse[SEEDS] = {-0.2, -0.5, -0.8};
    result = judge(worse, even);
    assert_int_equal(result.verdict, VKN_REFINE_ORIGINAL);
    const double uneven[VIEWS] = {-1, 1, -1, 1}; /* standard deviation 1.1547 */
    result = judge(steady, uneven);
    assert_float_equal(result.noise, 1.154700538 / 2, 1e-6);
    assert_int_equal(result.verdict, VKN_REFINE_EQUAL);
    const double masked[VIEWS] = {-1, (double)NAN, 1, -1}; /* a view whose pixels are all ignored */
    result = judge(steady, masked);
    assert_float_equal(result.noise, 2.0 / 3, 1e-6);
    /* With two test views only the three seeds tell the noise: 0.5 is less than 4.3 times 0.173. */
    const double few[VIEWS] = {0, 0, (double)NAN, (double)NAN};
    result = judge(varied, few);
    assert_float_equal(result.noise, 0.3 / sqrt(3), 1e-9);
    assert_float_equal(result.threshold, 4.303 * 0.3 / sqrt(3), 1e-3);
    assert_int_equal(result.verdict, VKN_REFINE_EQUAL);
    assert_int_equal(judge(steady, few).verdict, VKN_REFINE_REFINED);
}

static size_t misfits_of(struct refine_view *views, size_t count)
{
    size_t misfits;
    ok(refine_find_misfits(views, count, &misfits));
    return misfits;
}

static void test_misfits(void **state)
{
    (void)state;
    struct refine_view views[] = {{.psnr = 20, .ssim = 0.9},  {.psnr = 21, .ssim = 0.92},
                                  {.psnr = (double)NAN},      {.psnr = 22, .ssim = 0.94},
                                  {.psnr = 23, .ssim = 0.96}, {.psnr = 14, .ssim = 0.3},
                                  {.psnr = 15.2, .ssim = 0.3}};
    /* The median is 20.5; the deviations are 0.5 0.5 1.5 2.5 5.3 6.5, with the median 2. */
    assert_int_equal(misfits_of(views, 7), 0);
    views[6].psnr = 11.5; /* the limit, 20.5 - 4.4478 * 2, is 11.604 */
    assert_int_equal(misfits_of(views, 7), 1);
    assert_true(views[6].misfits && !views[5].misfits && !views[2].misfits);
    views[6].ssim = 0.75; /* fine detail; the limit, 0.91 - 4.4478 * 0.04, is 0.732 */
    assert_int_equal(misfits_of(views, 7), 0);
    views[6].ssim = (double)NAN; /* without it the limits are 21 - 5 and 0.92 - 0.1 */
    assert_int_equal(misfits_of(views, 7), 1);
    assert_true(views[5].misfits && !views[6].misfits);
    struct refine_view equal[] = {{.psnr = 20, .ssim = 0.9},
                                  {.psnr = 20, .ssim = 0.9},
                                  {.psnr = 20, .ssim = 0.9},
                                  {.psnr = 14.9, .ssim = 0.79}};
    assert_int_equal(misfits_of(equal, 4), 1); /* 5 dB and 0.1 are the least deficits */
    equal[3].ssim = 0.81;
    assert_int_equal(misfits_of(equal, 4), 0);
    equal[3] = (struct refine_view){.psnr = 15.1, .ssim = 0.79};
    assert_int_equal(misfits_of(equal, 4), 0);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Enough steps for a field that tells disturbed cameras from refined ones. */
static struct vkn_config small_config(void)
{
    return (struct vkn_config){
        .deterministic = true,
        .seed = 5,
        .steps = 320,
        .save_seconds = -1,
        .scene = {.downscale = 4},
        .refine = {.initial_rate = 0.03F, .final_rate = 0.006F},
        .grid = {.levels = 4, .features = 2, .log2_entries = 12, .coarsest = 8, .finest = 32},
        .mlp = tiny_config(true).mlp,
        .march = {.resolution = 32, .steps_per_unit = 64},
        .batch = {.samples = 2048, .max_rays = 1024},
        .log.tensorboard = VKN_SWITCH_OFF,
    };
}

#define WRONG 7 /* the training view that gets the image of another view */

/* Turns the matrix of a frame about its position by up to 3 degrees around the world's axis z. */
static void disturb_frame(const cJSON *frame, int index)
{
    cJSON *rows = cJSON_GetObjectItemCaseSensitive(frame, "transform_matrix");
    double angle = 3 * M_PI / 180 * sin((double)index * index);
    for (int column = 0; column < 3; column++) {
        cJSON *x = cJSON_GetArrayItem(cJSON_GetArrayItem(rows, 0), column);
        cJSON *y = cJSON_GetArrayItem(cJSON_GetArrayItem(rows, 1), column);
        double old_x = x->valuedouble, old_y = y->valuedouble;
        cJSON_SetNumberValue(x, cos(angle) * old_x - sin(angle) * old_y);
        cJSON_SetNumberValue(y, sin(angle) * old_x + cos(angle) * old_y);
    }
}

static void write_disturbed(struct temporary *folder, const char *source, const char *name)
{
    char *from = base_format("%s/%s", source, name), *to = base_format("scene/%s", name);
    cJSON *json = NULL, *frame;
    int index = 0;
    ok(base_json_read(from, 1 << 24, &json));
    cJSON_ArrayForEach (frame, cJSON_GetObjectItemCaseSensitive(json, "frames"))
        disturb_frame(frame, index++);
    cJSON *wrong = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "frames"), WRONG);
    if (strstr(name, "train"))
        cJSON_ReplaceItemInObject(wrong, "file_path", cJSON_CreateString("./train/r_40"));
    cJSON_AddStringToObject(json, "note", "kept");
    char *text = base_json_print(json);
    temporary_text(folder, to, text);
    free(text);
    cJSON_Delete(json);
    free(from);
    free(to);
}

/* Makes folder/scene: the bundled scene with disturbed cameras, and links to its images. */
static char *make_disturbed(struct temporary *folder)
{
    static const char *const linked[] = {"train", "test"};
    char *source = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    write_disturbed(folder, source, "transforms_train.json");
    write_disturbed(folder, source, "transforms_test.json");
    for (size_t i = 0; i < BASE_COUNT(linked); i++) {
        char *to = base_format("%s/%s", source, linked[i]);
        char *link = base_format("%s/scene/%s", folder->path, linked[i]);
        assert_int_equal(symlink(to, link), 0);
        free(to);
        free(link);
    }
    free(source);
    return temporary_path(folder, "scene");
}

/* Removes a link to a folder, which on Windows is a folder of second names of files. */
static void remove_link(const char *path)
{
    if (unlink(path) != 0)
        remove_tree(path);
    assert_false(base_file_exists(path));
}

/* A call of vkn_refine, which ends when a log line has a word, after a number of such lines. */
struct call {
    struct vkn_config config;
    struct vkn_job job;
    struct vkn_train_params train;
    struct vkn_refine_params params;
    struct vkn_refine_result result;
    volatile sig_atomic_t stop;
    const char *stop_at; /* NULL: never */
    int trainings;       /* that have begun */
    int warnings;        /* of views that do not fit */
};

static void watch_log(void *user, enum vkn_log_level level, const char *line)
{
    struct call *call = user;
    (void)level;
    call->trainings += strstr(line, ": training: ") != NULL;
    call->warnings +=
        strstr(line, "train/r_40.png) moved ") != NULL &&
        strstr(line, " pixels and still does not fit: keeps its camera; take it out?") != NULL;
    if (call->stop_at && strstr(line, call->stop_at))
        call->stop = 1;
}

static vkn_status refine(struct call *call, const char *scene, const char *out)
{
    call->job = (struct vkn_job){.quiet = true, .stop = &call->stop};
    call->train = (struct vkn_train_params){
        .job = &call->job, .scene = scene, .out = out, .config = &call->config};
    call->params.train = &call->train;
    call->trainings = call->warnings = 0;
    call->result.size = sizeof call->result;
    call->stop = 0;
    vkn_log_to(watch_log, call);
    vkn_log_quiet(false);
    vkn_status status = vkn_refine(&call->params, &call->result);
    vkn_log_to(NULL, NULL);
    return status;
}

static cJSON *read_json(const char *folder, const char *name)
{
    char *path = base_path_join(folder, name);
    cJSON *json = NULL;
    ok(base_json_read(path, 1 << 24, &json));
    free(path);
    return json;
}

static double number_in(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* verdict.json has the result, and a line per view and seed. */
static void check_verdict(const char *out, const struct vkn_refine_result *result)
{
    cJSON *json = read_json(out, "verdict.json");
    const cJSON *views = cJSON_GetObjectItemCaseSensitive(json, "views"), *view;
    double sum = 0;
    int tests = 0, misfits = 0, rolled_back = 0;
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "verdict")),
                        "refined");
    assert_float_equal(number_in(json, "difference"), result->difference, 1e-6);
    assert_int_equal(cJSON_GetArraySize(views), 72);
    cJSON_ArrayForEach (view, views) {
        bool keeps = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(view, "rolled_back"));
        sum += keeps ? 0 : number_in(view, "pixels") / 71;
        rolled_back += keeps ? 1 : 0;
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(view, "misfit"))) {
            const cJSON *image = cJSON_GetObjectItemCaseSensitive(view, "image");
            assert_non_null(strstr(cJSON_GetStringValue(image), "train/r_40.png"));
            assert_true(keeps && number_in(view, "pixels") > 0);
            misfits++;
        }
        if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(view, "test")))
            continue;
        assert_true(number_in(view, "psnr_original") > 10 && number_in(view, "psnr_refined") > 10);
        tests++;
    }
    assert_int_equal(tests, 12);
    assert_int_equal(misfits, 1);
    assert_int_equal(result->misfits, 1);
    assert_int_equal(rolled_back, 1);
    assert_true(result->rolled_back == 1 && number_in(json, "rolled_back") == 1);
    assert_float_equal(sum, result->pixels, 1e-3);
    const cJSON *seed = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "seeds"), 1);
    assert_true(number_in(seed, "seed") == 6);
    cJSON_Delete(json);
    char *text = vkn_refine_json(out);
    assert_non_null(strstr(text, "\"verdict\":\t\"refined\""));
    free(text);
}

static bool has_pose_of(const struct scene_camera *a, const struct scene_camera *b)
{
    bool same = true;
    for (int i = 0; i < 12; i++)
        same = same && a->pose[i] == b->pose[i];
    return same;
}

/* The view with the wrong image keeps its pose to the last bit, and all others have moved. */
static void check_poses(const char *before, const char *after)
{
    const struct vkn_config config = small_config();
    struct vkn_scene *scenes[2];
    ok(vkn_scene_open(before, &config, &scenes[0]));
    ok(vkn_scene_open(after, &config, &scenes[1]));
    const struct scene_split *a = &scenes[0]->splits[SCENE_TRAIN];
    for (size_t i = 0; i < a->camera_count; i++) {
        const struct scene_camera *b = &scenes[1]->splits[SCENE_TRAIN].cameras[i];
        assert_int_equal(has_pose_of(&a->cameras[i], b), i == WRONG);
    }
    vkn_scene_close(&scenes[0]);
    vkn_scene_close(&scenes[1]);
}

/* Returns the mean distance in pixels between the images in a scene's and in the exact cameras. */
static double error_of(const char *path)
{
    const struct vkn_config config = small_config();
    char *exact = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    struct vkn_scene *scenes[2];
    double sum = 0;
    ok(vkn_scene_open(exact, &config, &scenes[0]));
    ok(vkn_scene_open(path, &config, &scenes[1]));
    const struct scene_split *a = &scenes[0]->splits[SCENE_TRAIN];
    for (size_t i = 0; i < a->camera_count; i++)
        sum +=
            i == WRONG ? 0 : scene_pixel_movement(a, i, &scenes[1]->splits[SCENE_TRAIN].cameras[i]);
    sum /= (double)(a->camera_count - 1);
    vkn_scene_close(&scenes[0]);
    vkn_scene_close(&scenes[1]);
    free(exact);
    return sum;
}

/* Disturbed cameras become better, by the verdict and in truth. A call that is interrupted in the
 * middle continues; a finished one trains nothing more. */
static void test_refine(void **state)
{
    struct temporary *folder = ((struct step_tests *)*state)->folder;
    char *scene = make_disturbed(folder), *out = temporary_path(folder, "refined");
    struct call call = {.config = small_config(), .stop_at = "training: original_6"};
    assert_int_equal(refine(&call, scene, out), VKN_INTERRUPTED);
    assert_error("refined: interrupted and saved; the same command continues");
    assert_int_equal(call.trainings, 4);
    call.stop_at = NULL;
    ok(refine(&call, scene, out));
    assert_int_equal(call.trainings, 2);
    assert_int_equal(call.warnings, 1);
    double before = error_of(scene), after = error_of(out);
    print_message("%.2f -> %.2f dB, noise %.2f; cameras wrong by %.3f -> %.3f pixels\n",
                  call.result.psnr[0], call.result.psnr[1], call.result.noise, before, after);
    assert_int_equal(call.result.verdict, VKN_REFINE_REFINED);
    assert_true(call.result.difference > 1 && call.result.steps == 320 && call.result.views == 72);
    assert_true(after < 0.6 * before);
    check_verdict(out, &call.result);
    check_poses(scene, out);
    const struct vkn_refine_result first = call.result;
    ok(refine(&call, scene, out));
    assert_int_equal(call.trainings, 0);
    assert_true(call.result.difference == first.difference && call.result.noise == first.noise);

    cJSON *json = read_json(out, "transforms_test.json");
    assert_non_null(cJSON_GetObjectItemCaseSensitive(json, "note"));
    cJSON_Delete(json);
    char *page = html_read(temporary_path(folder, "refined/report.html"));
    assert_has(page, "\"why\":\"does not fit\",");
    free(page);

    /* A call that was ended while it wrote the scene is completed by the next one. */
    assert_int_equal(unlink(temporary_path(folder, "refined/refine/scene_is_written")), 0);
    remove_link(temporary_path(folder, "refined/test"));
    temporary_text(folder, "refined/transforms_test.json", "{");
    ok(refine(&call, scene, out));
    assert_int_equal(call.trainings, 0);
    assert_true(base_is_folder(temporary_path(folder, "refined/test")));
    check_verdict(out, &call.result);
    check_poses(scene, out);

    /* The trainings that are compared do not refine. */
    assert_true(
        base_file_exists(temporary_path(folder, "refined/refine/refined_cameras/cameras.json")));
    assert_false(
        base_file_exists(temporary_path(folder, "refined/refine/original_5/cameras.json")));

    /* The refined scene can be refined, too: results of the first refinement are not taken over. */
    call.config.steps = 16;
    call.config.refine.start = 1;
    assert_int_equal(refine(&call, out, temporary_path(folder, "again")), VKN_BAD_INPUT);
    assert_error("no view has moved");
    assert_true(base_file_exists(temporary_path(folder, "again/transforms_train.json")));
    assert_false(base_file_exists(temporary_path(folder, "again/verdict.json")));
    call.config = small_config();

    call.config.refine.limit = 0.3F;
    assert_int_equal(refine(&call, scene, out), VKN_BAD_INPUT);
    assert_error("refined: holds the refinement of another scene, or with other settings, or the");

    /* Other pictures under the same names, and other cameras, are another scene. */
    call.config = small_config();
    assert_int_equal(rename(temporary_path(folder, "scene/test"), temporary_path(folder, "test")),
                     0);
    char *other = temporary_path(folder, "scene/test");
    assert_int_equal(symlink(temporary_path(folder, "scene/train"), other), 0);
    assert_int_equal(refine(&call, scene, out), VKN_BAD_INPUT);
    assert_error("or the scene has changed");
    remove_link(other);
    assert_int_equal(rename(temporary_path(folder, "test"), temporary_path(folder, "scene/test")),
                     0);
    ok(refine(&call, scene, out));
    write_disturbed(folder, scene, "transforms_test.json"); /* once more */
    assert_int_equal(refine(&call, scene, out), VKN_BAD_INPUT);
    assert_error("or the scene has changed");
}

/* ---- refined lenses -------------------------------------------------------------------------- */

/* How a training has changed cameras: it moved them by `aside` along each axis, in the dataset's
 * units, multiplied focal lengths by `zoom` (0: no intrinsics are written), and set the distortion
 * k1. Bits of `limited` are set for views at their limit. */
struct change {
    double aside, zoom, k1;
    uint64_t limited;
};

/* Writes cameras.json with the changed cameras of a scene. */
static void write_cameras(struct temporary *folder, const char *name, const struct vkn_scene *scene,
                          struct change change)
{
    const struct scene_split *views = &scene->splits[SCENE_TRAIN];
    struct base_text text = {0};
    for (size_t i = 0; i < views->camera_count; i++) {
        const struct scene_camera *camera = &views->cameras[i];
        base_text_add(&text, "%s{\"transform_matrix\": [", i > 0 ? ",\n" : "{\"views\": [");
        for (int k = 0; k < 12; k++) {
            double value = (double)camera->pose[k];
            if (k % 4 == 3)
                value = (value - scene->offset[k / 4]) / scene->scale + change.aside;
            base_text_add(&text, "%s%.17g", k % 4 > 0 ? ", " : k > 0 ? "], [" : "[", value);
        }
        base_text_add(&text,
                      "]], \"pixels\": 1.5, \"degrees\": 0.5, \"distance\": 0.25, "
                      "\"at_limit\": %s",
                      change.limited >> i & 1 ? "true" : "false");
        const double sizes[3] = {scene->downscale * (double)camera->focal_x,
                                 scene->downscale * 0.5 * camera->width,
                                 scene->downscale * 0.5 * camera->height};
        if (change.zoom > 0)
            base_text_add(
                &text,
                ", \"fl_x\": %.9g, \"fl_y\": %.9g, \"cx\": %.9g, \"cy\": %.9g, \"k1\": %g, "
                "\"k2\": 0, \"p1\": 0, \"p2\": 0, \"k3\": 0, \"k4\": 0, \"sx1\": 0, "
                "\"sy1\": 0",
                change.zoom * sizes[0], change.zoom * sizes[0], sizes[1], sizes[2], change.k1);
        base_text_add(&text, "}");
    }
    base_text_add(&text, "]}");
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
}

/* Writes the demo with the cameras of a training, and opens it; `text` is in the file. */
static void check_lenses(struct temporary *folder, const char *name, double zoom, double k1,
                         const char *text)
{
    const struct vkn_refine_params params = {.seeds = 2};
    char *demo = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    char *cameras = base_format("%s/run/cameras.json", name), *file = NULL, *data = NULL;
    struct refinement r = {.params = &params, .config = small_config(), .out = folder->path};
    size_t size = 0;
    r.paths[REFINE_ORIGINAL] = demo;
    ok(refine_open_original(&r));
    write_cameras(folder, cameras, r.scenes[REFINE_ORIGINAL],
                  (struct change){.aside = 0.125, .zoom = zoom, .k1 = k1});
    bool refined = k1 > 0;
    char *run = base_path_folder(temporary_path(folder, cameras));
    r.work = run;
    r.out = r.paths[REFINE_OTHER] = base_format("%s/%s/out", folder->path, name);
    ok(base_make_folder(r.out));
    ok(refine_write_scene(&r, run));
    ok(refine_open_other(&r));
    for (size_t i = 0; i < r.scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN].camera_count; i++)
        assert_float_equal(r.views[i].focal, refined ? zoom : 1, 1e-6);
    const struct scene_camera *camera = &r.scenes[REFINE_OTHER]->splits[SCENE_TRAIN].cameras[3];
    assert_true(camera->k1 == (refined ? (float)k1 : 0));
    file = base_path_join(r.out, "transforms_test.json");
    ok(base_file_read(file, 1 << 24, &data, &size));
    assert_true((strstr(data, "\"k1\":") != NULL) == refined);
    assert_non_null(strstr(data, text));
    scene_close(&r.scenes[0]);
    scene_close(&r.scenes[1]);
    scene_close(&r.split);
    free(data);
    free(file);
    free(r.paths[REFINE_OTHER]);
    free(r.views);
    free(run);
    free(cameras);
    free(demo);
}

/* Intrinsics of cameras.json are written into the scene only if they differ from its own, and if
 * the lens still reaches the corners of the images. */
static void test_lenses(void **state)
{
    struct temporary *folder = ((struct step_tests *)*state)->folder;
    check_lenses(folder, "zoomed", 1.25, 0.125, "\"k1\": 0.125");
    check_lenses(folder, "same", 1, 0, "\"camera_angle_x\": 0.691100000");
    check_lenses(folder, "none", 0, 0, "\"camera_angle_x\": 0.691100000");
    check_lenses(folder, "folded", 1.25, -9, "\"camera_angle_x\": 0.691100000");
}

/* Makes folder/own: six views, the first four of them with one lens, whose numbers are in every
 * frame, so that a frame without a new lens keeps the old one. */
static char *make_own_lenses(struct temporary *folder)
{
    struct base_text text = {0};
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "own/%d.png", i);
        temporary_picture(folder, name, 40, 30, (unsigned)i);
        base_text_add(&text,
                      "%s{\"file_path\": \"%d.png\", \"fl_x\": %d, \"fl_y\": %d, "
                      "\"transform_matrix\": [[1, 0, 0, 0.%d], [0, 1, 0, 0], [0, 0, 1, 2], "
                      "[0, 0, 0, 1]]}",
                      i > 0 ? ",\n" : "{\"frames\": [", i, i < 4 ? 35 : 50, i < 4 ? 35 : 50, i);
    }
    base_text_add(&text, "]}");
    temporary_file(folder, "own/transforms.json", text.data, text.size);
    free(text.data);
    return temporary_path(folder, "own");
}

/* Refines make_own_lenses by a cameras.json with views at their limit and a view that does not fit.
 * Returns the status; the scene is then r->scenes[REFINE_OTHER]. */
static vkn_status roll_back(struct refinement *r, struct temporary *folder, struct change change,
                            size_t misfit)
{
    char *name = base_format("rolled-back-%u/cameras.json", (unsigned)change.limited);
    r->paths[REFINE_ORIGINAL] = make_own_lenses(folder);
    r->config = (struct vkn_config){.scene.refine = VKN_REFINEMENT_ALL};
    ok(refine_open_original(r));
    r->result.views = 6;
    r->views[misfit].misfits = true;
    write_cameras(folder, name, r->scenes[REFINE_ORIGINAL], change);
    r->work = base_path_folder(temporary_path(folder, name));
    r->out = r->paths[REFINE_OTHER] = base_path_join(r->work, "out");
    ok(base_make_folder(r->out));
    vkn_status status = refine_write_scene(r, r->work);
    if (status == VKN_OK)
        status = refine_open_other(r);
    free(name);
    return status;
}

static void end_roll_back(struct refinement *r)
{
    scene_close(&r->scenes[0]);
    scene_close(&r->scenes[1]);
    scene_close(&r->split);
    free(r->paths[REFINE_OTHER]);
    free(r->work);
    free(r->views);
}

/* Views at the limit and those that do not fit keep their poses. Their lens is that of the other
 * views of their camera group; a group without other views keeps its lens. */
static void test_roll_back(void **state)
{
    struct temporary *folder = ((struct step_tests *)*state)->folder;
    const struct vkn_refine_params params = {.seeds = 2};
    struct refinement r = {.params = &params};
    struct change change = {.aside = 0.125, .zoom = 1.25, .k1 = 0.125, .limited = 1 << 1 | 1 << 4};
    ok(roll_back(&r, folder, change, 5));
    assert_int_equal(r.result.limited, 2);
    assert_int_equal(r.result.rolled_back, 3);
    double sum = 0;
    for (size_t i = 0; i < 6; i++) {
        const struct scene_camera *before = &r.scenes[0]->splits[SCENE_TRAIN].cameras[i];
        const struct scene_camera *after = &r.scenes[1]->splits[SCENE_TRAIN].cameras[i];
        bool keeps = i == 1 || i >= 4;
        assert_int_equal(has_pose_of(before, after), keeps);
        assert_float_equal(after->focal_x, i < 4 ? 1.25 * 35 : 50, 1e-4);
        assert_true(after->k1 == (i < 4 ? 0.125F : 0));
        assert_true(r.views[i].focal == (i < 4 ? 1.25 : 1));
        if (keeps) /* the movement that was taken back */
            assert_true(r.views[i].pixels == 1.5 && r.views[i].distance == 0.25);
        else
            assert_float_equal(r.views[i].distance, 0.125 * sqrt(3), 1e-6);
        sum += keeps ? 0 : r.views[i].pixels;
    }
    assert_float_equal(r.result.pixels, sum / 3, 1e-9);
    end_roll_back(&r);

    r = (struct refinement){.params = &params};
    change.limited = 0x1f;
    assert_int_equal(roll_back(&r, folder, change, 5), VKN_BAD_INPUT);
    assert_error("own: all 6 views are at refine.limit or do not fit: raise refine.limit");
    assert_false(base_file_exists(temporary_path(folder, "rolled-back-31/out/transforms.json")));
    end_roll_back(&r);

    r = (struct refinement){.params = &params};
    change = (struct change){.limited = 0x1e};
    assert_int_equal(roll_back(&r, folder, change, 5), VKN_BAD_INPUT);
    assert_error("own: 5 of 6 views are at refine.limit or do not fit, and the others have not");
    end_roll_back(&r);
}

/* A format without distortion is refused before any training. */
static void test_lenses_refused(void **state)
{
    struct temporary *folder = ((struct step_tests *)*state)->folder;
    struct call call = {.config = small_config()};
    for (int i = 0; i < 3; i++) {
        char *picture = base_format("nsvf/rgb/%d.png", i),
             *pose = base_format("nsvf/pose/%d.txt", i);
        temporary_picture(folder, picture, 40, 30, 0);
        temporary_text(folder, pose, "1 0 0 0\n0 1 0 0\n0 0 1 -2\n0 0 0 1\n");
        free(picture);
        free(pose);
    }
    temporary_text(folder, "nsvf/intrinsics.txt", "35 0 20\n0 35 15\n0 0 1\n");
    call.config.scene.refine = VKN_REFINEMENT_POSES + 1;
    char *out = temporary_path(folder, "nsvf-out");
    assert_int_equal(refine(&call, temporary_path(folder, "nsvf"), out), VKN_BAD_INPUT);
    assert_error("nsvf holds no lens distortion");
    assert_false(base_is_folder(out));
}

/* Compares a scene with itself, which the noise has to cover. */
static void test_only_verdict(void **state)
{
    struct temporary *folder = ((struct step_tests *)*state)->folder;
    char *demo = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    char *out = temporary_path(folder, "compared");
    struct call call = {.config = small_config(), .params.cameras = demo};
    call.config.steps = 32;
    ok(refine(&call, demo, out));
    assert_int_equal(call.result.verdict, VKN_REFINE_EQUAL);
    assert_true(call.result.difference == 0 && isnan(call.result.pixels));
    assert_int_equal(call.trainings, 4);
    assert_false(base_file_exists(temporary_path(folder, "compared/transforms_train.json")));
    call.params.cameras = folder->path; /* another scene */
    assert_int_equal(refine(&call, demo, temporary_path(folder, "other")), VKN_BAD_INPUT);
    assert_error("cameras of the same images are compared");
    free(demo);
}

/* Wrong input is refused before anything is trained or written. */
static void test_wrong_input(void **state)
{
    struct temporary *folder = ((struct step_tests *)*state)->folder;
    char *demo = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    char *out = temporary_path(folder, "wrong");
    struct call call = {.config = small_config()};
    const struct {
        enum vkn_refinement refine;
        enum vkn_test_views test_views;
        double offset;
        uint32_t seeds;
        const char *message;
    } wrong[] = {
        {.refine = VKN_REFINEMENT_OFF, .message = "scene.refine: off: there is nothing to refine"},
        {.test_views = VKN_TEST_VIEWS_NONE, .message = "scene.test_views: none: test views have"},
        {.offset = 40, .message = "no view sees anything of the cube"},
        {.seeds = 1, .message = "seeds: 1 is not from 2 to 100"},
    };
    for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
        call.config.scene.refine = wrong[i].refine;
        call.config.scene.test_views = wrong[i].test_views;
        call.config.scene.fixed_transform = wrong[i].offset != 0;
        call.config.scene.offset[0] = wrong[i].offset;
        call.config.scene.scale = wrong[i].offset != 0 ? 0.33 : 0;
        call.config.scene.aabb_scale = wrong[i].offset != 0 ? 1 : 0;
        call.params.seeds = wrong[i].seeds;
        assert_int_equal(refine(&call, demo, out), VKN_BAD_INPUT);
        assert_error(wrong[i].message);
        assert_false(base_is_folder(out));
    }
    call = (struct call){.config = small_config()};
    call.config.refine.start = 1;
    call.config.steps = 16;
    assert_int_equal(refine(&call, demo, out), VKN_BAD_INPUT);
    assert_error("no view has moved");
    char *used = temporary_text(folder, "used/mine.txt", "");
    *strrchr(used, '/') = '\0';
    assert_int_equal(refine(&call, demo, used), VKN_BAD_INPUT);
    assert_error("this folder contains mine.txt, which refine did not make");
    free(demo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict),        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_refine),         cmocka_unit_test(test_only_verdict),
        cmocka_unit_test(test_wrong_input),    cmocka_unit_test(test_lenses),
        cmocka_unit_test(test_lenses_refused), cmocka_unit_test(test_roll_back),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
