/* Photographs become scenes: with a stand-in for COLMAP (fake_colmap.sh) in every way that it ends, hostile folders,
 * interruptions; and with COLMAP itself, whose poses are compared with those that pictures were made from.
 * "test_prepare views FOLDER" leaves these pictures there, for test_prepare_tools.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "photographs.h"
#include "prepare/internal.h"

/* ---- the stand-in ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    char path[512], *script = NULL;
    size_t size = 0;
    if (temporary_setup(state) != 0)
        return -1;
    struct temporary *folder = *state;
    snprintf(path, sizeof(path), "%s/tests/fake_colmap.sh", getenv("VKNERF_SOURCE_DIR"));
    assert_ok(base_file_read(path, 1 << 20, &script, &size));
    char *program = temporary_file(folder, "bin/colmap", script, size);
    free(script);
    snprintf(path, sizeof(path), "%s/bin", folder->path);
    setenv("PATH", path, 1);
    unsetenv("LD_LIBRARY_PATH"); /* that of a sanitized test, not of the machine's programs */
    vkn_log_quiet(false);
    return chmod(program, 0700);
}

static char *content(struct temporary *folder, const char *name)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(temporary_path(folder, name), 1 << 20, &data, &size));
    return data;
}

static void fake(struct temporary *folder, const char *how)
{
    temporary_text(folder, "bin/fake", how);
    unlink(temporary_path(folder, "bin/calls"));
}

/* Of all calls of the stand-in since `fake`, one after the other. */
static void assert_called(struct temporary *folder, const char *part, bool is)
{
    char *calls = base_file_exists(temporary_path(folder, "bin/calls")) ? content(folder, "bin/calls")
                                                                        : strdup("");
    if ((strstr(calls, part) != NULL) != is)
        fail_msg("\"%s\" is%s in: %s", part, is ? " not" : "", calls);
    free(calls);
}

static bool has(struct temporary *folder, const char *name)
{
    char *path = temporary_path(folder, name);
    return base_file_exists(path) || base_is_folder(path);
}

/* Pictures, and what is asked for; scenes go to "scene". */
struct request {
    struct temporary *folder;
    struct vkn_job job;
    struct vkn_prepare_params params;
    struct vkn_prepare_result result;
};

static struct request request_of(struct temporary *folder, const char *pictures)
{
    struct request request = {.folder = folder, .job = {.quiet = true}};
    request.params.pictures = temporary_path(folder, pictures);
    request.params.out = temporary_path(folder, "scene");
    return request;
}

static vkn_status prepare(struct request *request)
{
    request->params.job = &request->job;
    request->result = (struct vkn_prepare_result){0};
    return vkn_prepare(&request->params, &request->result);
}

static struct request five_pictures(struct temporary *folder)
{
    for (uint8_t i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "given/p%u.png", i);
        temporary_picture(folder, name, 40, 30, i);
    }
    fake(folder, "");
    return request_of(folder, "given");
}

/* A photograph on its side, in the folder of a scene: upright, and its mask too, wherever that was drawn. */
static void test_turned(void **state)
{
    struct temporary *folder = *state;
    uint8_t exif[128];
    size_t size = make_exif(exif, 6, false);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "given/p%d.jpg", i);
        write_corners(temporary_path(folder, "stored.png"));
        assert_ok(scene_copy_upright(temporary_path(folder, "stored.png"), 1, exif + 2, size - 2,
                                     temporary_path(folder, name)));
    }
    uint8_t mask[32 * 16];
    for (int i = 0; i < 32 * 16; i++)
        mask[i] = i < 16 * 16 ? 255 : 0; /* 16 x 32: the upper half; 32 x 16: as well */
    assert_ok(scene_image_write_png(temporary_path(folder, "given/masks/p0.jpg.png"), mask, 16, 32, 1));
    assert_ok(scene_image_write_png(temporary_path(folder, "given/masks/p1.png"), mask, 32, 16, 1));
    fake(folder, "");
    struct request request = request_of(folder, "given");
    assert_ok(prepare(&request));
    uint8_t *rgba = NULL;
    uint32_t width, height;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof(name), "scene/masks/p%d.jpg.png", i);
        assert_ok(scene_image_read(temporary_path(folder, name), &rgba, &width, &height));
        assert_true(width == 16 && height == 32);
        /* The stored upper half comes to the right. Without a mask all of it counts. */
        assert_int_equal(rgba[4 * (4 * 16 + 4)], i == 1 ? 0 : 255);
        assert_int_equal(rgba[4 * (28 * 16 + 4)], i == 2 ? 255 : 0);
        assert_int_equal(rgba[4 * (28 * 16 + 12)], i == 0 ? 0 : 255);
        free(rgba);
    }
    assert_ok(scene_image_read(temporary_path(folder, "scene/images/p0.jpg"), &rgba, &width, &height));
    assert_true(width == 16 && height == 32);
    free(rgba);
    assert_called(folder, "/scene/masks", true);
}

/* ---- whole runs with the stand-in ---------------------------------------------------------------- */

static void test_names(void **state)
{
    struct temporary *folder = *state;
    static const char *const names[] = {"IMG_9.png", "IMG_10.png", "-h.png", "it's a \"b\".png", "c\nd.png",
                                        "\xc3\xa4.png", "\xff.png", "50%d.PNG", "IMG_9.jpg.png"};
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        char name[64];
        snprintf(name, sizeof(name), "given/%s", names[i]);
        temporary_picture(folder, name, 420, 30, (uint8_t)i);
    }
    temporary_text(folder, "given/notes.txt", "not a picture");
    temporary_text(folder, "given/.hidden.png", "not for us");
    fake(folder, "");
    struct request request = request_of(folder, "given");
    assert_ok(prepare(&request));
    assert_int_equal(request.result.pictures, BASE_COUNT(names));
    assert_int_equal(request.result.registered, BASE_COUNT(names));
    assert_int_equal(request.result.models, 2);
    assert_int_equal(request.result.points, 256);
    assert_true(has(folder, "scene/images/00001_-h.png"));
    assert_true(has(folder, "scene/images/00003_IMG_9.jpg.png") || has(folder, "scene/images/00004_IMG_9.jpg.png"));
    assert_true(has(folder, "scene/images_2") && !has(folder, "scene/images_4"));
    assert_true(has(folder, "scene/images_2/00001_-h.png"));
    assert_true(has(folder, "scene/sparse/0/cameras.bin") && !has(folder, "scene/sparse/1"));
    char *record = content(folder, "scene/prepare.json");
    assert_non_null(strstr(record, "IMG_10.png"));
    free(record);
    assert_called(folder, "--ImageReader.single_camera 1 --ImageReader.camera_model OPENCV", true);
    assert_called(folder, "--SiftExtraction.use_gpu 0", true);
    assert_called(folder, "exhaustive_matcher", true);
    assert_called(folder, "mask_path", false);
}

/* Names that are in order stay, and the pictures are the same files. */
static void test_links(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    struct stat given, made;
    request.params.matcher = VKN_MATCHER_SEQUENTIAL;
    temporary_picture(folder, "given/p5.png", 30, 40, 5); /* another size: another camera */
    fake(folder, "newer");
    assert_ok(prepare(&request));
    assert_int_equal(stat(temporary_path(folder, "given/p3.png"), &given), 0);
    assert_int_equal(stat(temporary_path(folder, "scene/images/p3.png"), &made), 0);
    assert_true(given.st_ino == made.st_ino && given.st_dev == made.st_dev);
    assert_called(folder, "--ImageReader.single_camera 0 --ImageReader.camera_model SIMPLE_RADIAL", true);
    assert_called(folder, "--FeatureExtraction.use_gpu 0", true);
    assert_called(folder, "--FeatureMatching.use_gpu 0", true);
    assert_called(folder, "SiftMatching", false);
    assert_called(folder, "sequential_matcher", true);
    assert_called(folder, "matches_importer", true);
    char *pairs = content(folder, "scene/prepare/1/pairs.txt");
    assert_string_equal(pairs, "p0.png p5.png\n\n");
    free(pairs);
    /* Another lens: the features anew, the pictures not. */
    fake(folder, "");
    request.params.camera_model = VKN_CAMERA_MODEL_OPENCV_FISHEYE;
    assert_ok(prepare(&request));
    assert_called(folder, "--ImageReader.camera_model OPENCV_FISHEYE", true);
    /* Another matcher: from there on. */
    fake(folder, "");
    request.params.matcher = VKN_MATCHER_EXHAUSTIVE;
    assert_ok(prepare(&request));
    assert_called(folder, "feature_extractor", false);
    assert_called(folder, "exhaustive_matcher", true);
    assert_called(folder, "mapper", true);
    /* Nothing else: nothing. */
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "colmap", false);
    assert_called(folder, "mapper", false);
    assert_int_equal(request.result.registered, 6);
}

static void assert_fails(struct request *request, vkn_status status, const char *part)
{
    vkn_status got = prepare(request);
    if (got != status)
        fail_msg("status %d instead of %d: %s", (int)got, (int)status, vkn_last_error());
    assert_error(part);
}

static void test_failures(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    static const char *const stages[] = {"feature_extractor", "exhaustive_matcher", "mapper"};
    for (size_t i = 0; i < BASE_COUNT(stages); i++) {
        char how[64];
        snprintf(how, sizeof(how), "killed %s", stages[i]);
        fake(folder, how);
        assert_fails(&request, VKN_ERROR, "colmap failed (signal 9): it says nothing");
        snprintf(how, sizeof(how), "fails %s", stages[i]);
        fake(folder, how);
        assert_fails(&request, VKN_ERROR, "colmap failed (exit status 3): ERROR: no such luck (all that it says: ");
        assert_called(folder, stages[i], true);
        /* What was done before is not done again. */
        assert_called(folder, i > 0 ? stages[i - 1] : "mapper", false);
    }
    assert_false(has(folder, "scene/sparse"));
    for (size_t i = 0; i < BASE_COUNT(stages); i++) {
        char how[64];
        snprintf(how, sizeof(how), "spoils %s", stages[i]);
        fake(folder, how);
        remove_tree(temporary_path(folder, "scene"));
        assert_fails(&request, VKN_BAD_INPUT, "prepare.json: cannot be written: Is a directory");
    }
    remove_tree(temporary_path(folder, "scene"));
    fake(folder, "");
    assert_ok(prepare(&request));
    setenv("PATH", "/none", 1);
    assert_fails(&request, VKN_ERROR, "no colmap in PATH; install it (apt-get install colmap)");
    temporary_text(folder, "broken/colmap", "#!/none/at/all\n");
    chmod(temporary_path(folder, "broken/colmap"), 0700);
    setenv("PATH", temporary_path(folder, "broken"), 1);
    request.params.overwrite = true;
    assert_fails(&request, VKN_ERROR, "broken/colmap cannot be started: No such file");
}

/* Too few poses: once more with all means, and the better result counts. */
static void test_few(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    fake(folder, "few 0");
    assert_fails(&request, VKN_BAD_INPUT, "COLMAP finds the poses of only 0 of 5 pictures");
    assert_called(folder, "peak_threshold", true);
    assert_false(has(folder, "scene/sparse"));
    fake(folder, "few 2");
    request.params.overwrite = true;
    assert_fails(&request, VKN_BAD_INPUT, "only 2 of 5 pictures");
    fake(folder, "few 3 2");
    assert_ok(prepare(&request));
    assert_int_equal(request.result.registered, 3);
    fake(folder, "few 2 3");
    assert_ok(prepare(&request));
    assert_called(folder, "peak_threshold", true);
    assert_int_equal(request.result.registered, 3);
    fake(folder, "few 4");
    assert_ok(prepare(&request));
    assert_called(folder, "peak_threshold", false);
    assert_int_equal(request.result.registered, 4);
}

/* ---- interruptions ------------------------------------------------------------------------------ */

struct interruption {
    struct temporary *folder;
    volatile sig_atomic_t stop;
};

/* Once the stand-in waits. */
static void *interrupt(void *context)
{
    struct interruption *interruption = context;
    char path[256];
    snprintf(path, sizeof(path), "%s/bin/waiting", interruption->folder->path);
    for (int i = 0; i < 1000 && !base_file_exists(path); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    __atomic_store_n(&interruption->stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void interrupt_in(struct request *request, const char *stage)
{
    struct interruption interruption = {.folder = request->folder};
    char how[64];
    pthread_t thread;
    snprintf(how, sizeof(how), "slow %s", stage);
    fake(request->folder, how);
    request->job.stop = &interruption.stop;
    assert_int_equal(pthread_create(&thread, NULL, interrupt, &interruption), 0);
    double began = base_seconds();
    assert_fails(request, VKN_INTERRUPTED, "interrupted; the same command goes on");
    assert_true(base_seconds() - began < 30);
    pthread_join(thread, NULL);
    request->job.stop = NULL;
    char *process = content(request->folder, "bin/waiting");
    assert_int_equal(kill((pid_t)strtol(process, NULL, 10), 0), -1); /* it is gone */
    free(process);
    unlink(temporary_path(request->folder, "bin/waiting"));
    assert_false(has(request->folder, "scene/sparse"));
}

static void test_interrupted(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    interrupt_in(&request, "feature_extractor");
    assert_called(folder, "existing_camera_id", false);
    interrupt_in(&request, "exhaustive_matcher");
    /* The database is gone on with, and so is its camera. */
    assert_called(folder, "--ImageReader.existing_camera_id 1", true);
    interrupt_in(&request, "mapper");
    assert_called(folder, "feature_extractor", false);
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "matcher", false);
    assert_called(folder, "feature_extractor", false);
    assert_called(folder, "mapper", true);
    /* Before it has begun. */
    volatile sig_atomic_t stop = 1;
    request.job.stop = &stop;
    assert_fails(&request, VKN_INTERRUPTED, "interrupted");
}

/* ---- hostile folders ----------------------------------------------------------------------------- */

static void test_bad_input(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    fake(folder, "");
    assert_fails(&request, VKN_BAD_INPUT, "given: No such file or directory");
    struct request video = request_of(folder, "walk.mp4");
    temporary_text(folder, "walk.mp4", "not read");
    assert_fails(&video, VKN_ERROR, "no ffmpeg in PATH; install it (apt-get install ffmpeg) to take frames");
    video.params.masks = folder->path;
    assert_fails(&video, VKN_BAD_INPUT, "frames of a video have no masks");
    /* None of these makes the folder that of other pictures. */
    base_make_folder(temporary_path(folder, "given"));
    assert_fails(&request, VKN_BAD_INPUT, "given: no photographs (JPEG or PNG) in this folder");
    temporary_text(folder, "given/a.CR2", "raw");
    assert_fails(&request, VKN_BAD_INPUT, "raw photographs such as a.CR2 have to be developed");
    temporary_picture(folder, "given/a.png", 20, 20, 0);
    assert_fails(&request, VKN_BAD_INPUT, "given: 1 picture, at least 3 from different places");
    temporary_text(folder, "given/b.jpg", "\xff\xd8\xff\xe0 broken");
    temporary_text(folder, "given/c.png", "");
    assert_fails(&request, VKN_BAD_INPUT, "only 1 of 3 pictures can be used");
    for (uint8_t i = 0; i < 3; i++)
        temporary_picture(folder, i == 0 ? "given/d.png" : i == 1 ? "given/e.png" : "given/f.png", 20, 20, i);
    request.params.masks = temporary_path(folder, "masks");
    assert_fails(&request, VKN_BAD_INPUT, "masks: no folder of masks");
    base_make_folder(request.params.masks);
    assert_fails(&request, VKN_BAD_INPUT, "no mask in this folder has the name of a picture");
    request.params.masks = NULL;
    assert_ok(prepare(&request)); /* without the broken ones */
    assert_int_equal(request.result.pictures, 4);
    temporary_text(folder, "given/g.heic", "no picture");
    assert_fails(&request, VKN_BAD_INPUT, "was prepared from other pictures");
    request.params.overwrite = true;
    assert_fails(&request, VKN_ERROR, "no ffmpeg in PATH; install it (apt-get install ffmpeg) to convert");
    base_make_folder(temporary_path(folder, "given/h.png"));
    assert_fails(&request, VKN_BAD_INPUT, "h.png: not a regular file");
}

static void test_bad_places(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    request.params.out = request.params.pictures;
    assert_fails(&request, VKN_BAD_INPUT, "a folder that the photographs are not in");
    request.params.out = folder->path;
    assert_fails(&request, VKN_BAD_INPUT, "a folder that the photographs are not in");
    request.params.out = temporary_impossible(folder, "scene");
    assert_fails(&request, VKN_BAD_INPUT, "cannot make this folder");
    temporary_text(folder, "other/images/mine.png", "mine");
    request.params.out = temporary_path(folder, "other");
    request.params.overwrite = true;
    assert_fails(&request, VKN_BAD_INPUT, "there is images in this folder, which was not prepared");
    assert_true(has(folder, "other/images/mine.png"));
    /* Within the photographs there is room for it. */
    request.params.out = temporary_path(folder, "given/scene");
    assert_ok(prepare(&request));
    request.params.overwrite = false;
    assert_ok(prepare(&request));
    temporary_text(folder, "given/scene/prepare.json", "{\"pictures\": 5");
    assert_fails(&request, VKN_BAD_INPUT, "prepare.json: line 1");
    request.params.overwrite = true;
    assert_fails(&request, VKN_BAD_INPUT, "which was not prepared");
    request.params.out = NULL;
    assert_fails(&request, VKN_BAD_INPUT, "no folder is given for the scene");
    request.params.out = "x";
    request.params.frames = 2;
    assert_fails(&request, VKN_BAD_INPUT, "frames: 2 are too few");
    assert_int_equal(vkn_prepare(&request.params, NULL), VKN_BAD_INPUT);
}

/* ---- COLMAP itself -------------------------------------------------------------------------------- */

/* Between two cameras' axes, in degrees. */
static double angle_between(double a[3][3], double b[3][3])
{
    double trace = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            trace += a[i][k] * b[i][k];
    return acos(fmax(-1, fmin(1, (trace - 1) / 2))) * 180 / 3.14159265358979;
}

static void axes_of(const struct vkn_camera *camera, double axes[3][3])
{
    for (int i = 0; i < 3; i++) {
        axes[0][i] = camera->pose[4 * i];
        axes[1][i] = -camera->pose[4 * i + 1];
        axes[2][i] = -camera->pose[4 * i + 2];
    }
}

/* Rotations between neighbours are those that the pictures were made with, and so is the focal length. */
static void check_poses(const char *path)
{
    vkn_scene *scene = NULL;
    assert_ok(vkn_scene_open(path, NULL, &scene));
    double found[VIEWS][3][3], seen = 0;
    for (int split = VKN_SPLIT_TRAIN; split <= VKN_SPLIT_TEST; split++)
        for (size_t i = 0; i < vkn_scene_view_count(scene, (enum vkn_split)split); i++) {
            struct vkn_camera camera = {.size = sizeof(camera)};
            const char *file = vkn_scene_image_file(scene, (enum vkn_split)split, i);
            long number = strtol(strrchr(file, '_') + 1, NULL, 10);
            assert_ok(vkn_scene_camera(scene, (enum vkn_split)split, i, &camera));
            assert_true(fabs(camera.focal_x / VIEW_FOCAL - 1) < 0.03);
            axes_of(&camera, found[number]);
            seen++;
        }
    assert_true(seen == VIEWS);
    for (int i = 0; i < VIEWS; i++)
        for (int k = 0; k < i; k++) {
            double a[3][3], b[3][3], unused[3];
            view_of(i, a, unused);
            view_of(k, b, unused);
            /* Of turns against each other the camera's own axes do not count, see angle_between. */
            double relative[3][3] = {{0}}, relative_found[3][3] = {{0}};
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 3; c++)
                    for (int n = 0; n < 3; n++) {
                        relative[r][c] += a[r][n] * b[c][n];
                        relative_found[r][c] += found[i][r][n] * found[k][c][n];
                    }
            double error = angle_between(relative, relative_found);
            if (error > 1.0)
                fail_msg("views %d and %d: %.2f degrees off", i, k, error);
        }
    vkn_scene_close(&scene);
}

static void test_colmap(void **state)
{
    struct temporary *folder = *state;
    if (getenv("VKNERF_SANITIZED") != NULL)
        return; /* another process, which the sanitizers do not see into: the other build runs it */
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    struct request request = request_of(folder, "views");
    assert_ok(base_make_folder(request.params.pictures));
    write_views(request.params.pictures);
    assert_ok(prepare(&request));
    assert_int_equal(request.result.registered, VIEWS);
    assert_true(request.result.points > 200);
    check_poses(request.params.out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_turned, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_names, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_links, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_failures, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_few, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_interrupted, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_bad_input, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_bad_places, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_colmap, set_up, temporary_teardown),
    };
    if (argc == 3 && strcmp(argv[1], "views") == 0) {
        write_views(argv[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
