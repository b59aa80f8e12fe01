/* Tests vknerf prepare on photographs: with a stand-in for COLMAP (fake_colmap.sh) for all its ways
 * of ending, interruptions, and COLMAP itself with rendered pictures of known poses. "test_prepare
 * views FOLDER" writes these pictures, for test_prepare_tools.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "stand_in.h"

/* A photograph with an EXIF rotation becomes upright, and so does its mask, whichever way that was
 * drawn. */
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
    tagged_picture(folder, "given/p4.png", 32, 16, 6);
    uint8_t mask[32 * 16];
    for (int i = 0; i < 32 * 16; i++)
        mask[i] = i < 16 * 16 ? 255 : 0; /* the upper half of 16 x 32, and of 32 x 16 */
    assert_ok(
        scene_image_write_png(temporary_path(folder, "given/masks/p0.jpg.png"), mask, 16, 32, 1));
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
        /* The stored upper half becomes the right one. Without a mask all pixels count. */
        assert_int_equal(rgba[4 * (4 * 16 + 4)], i == 1 ? 0 : 255);
        assert_int_equal(rgba[4 * (28 * 16 + 4)], i == 2 ? 255 : 0);
        assert_int_equal(rgba[4 * (28 * 16 + 12)], i == 0 ? 0 : 255);
        free(rgba);
    }
    assert_ok(
        scene_image_read(temporary_path(folder, "scene/images/p0.jpg"), &rgba, &width, &height));
    assert_true(width == 16 && height == 32);
    free(rgba);
    const uint8_t lowest[4] = {0, 15, 7, 255}; /* first pixel of the stored picture's last row */
    assert_ok(
        scene_image_read(temporary_path(folder, "scene/images/p4.png"), &rgba, &width, &height));
    assert_true(width == 16 && height == 32);
    assert_memory_equal(rgba, lowest, 4);
    free(rgba);
    assert_called(folder, "/scene/masks", true);
}

/* ---- whole runs with the stand-in ------------------------------------------------------------ */

static void check_names(struct temporary *folder, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "given/%s", names[i]);
        temporary_picture(folder, name, 420, 30, (uint8_t)i);
    }
    temporary_text(folder, "given/notes.txt", "not a picture");
    temporary_text(folder, "given/.hidden.png", "not for us");
    fake(folder, "");
    struct request request = request_of(folder, "given");
    assert_ok(prepare(&request));
    assert_int_equal(request.result.pictures, count);
    assert_int_equal(request.result.registered, count);
    assert_int_equal(request.result.models, 2);
    assert_int_equal(request.result.points, 256);
    assert_true(has(folder, "scene/images/00001_-h.png"));
    assert_true(has(folder, "scene/images/00003_IMG_9.jpg.png") ||
                has(folder, "scene/images/00004_IMG_9.jpg.png"));
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

static void test_names(void **state)
{
    static const char *const names[] = {"IMG_9.png",     "IMG_10.png", "-h.png",
                                        "it's a b;.png", "50%d.PNG",   "\xc3\xa4.png",
                                        "IMG_9.jpg.png"};
    check_names(*state, names, BASE_COUNT(names));
}

static void test_names_of_unix(void **state)
{
    static const char *const names[] = {"IMG_9.png",        "IMG_10.png", "-h.png",
                                        "it's a \"b\".png", "c\nd.png",   "\xc3\xa4.png",
                                        "\xff.png",         "50%d.PNG",   "IMG_9.jpg.png"};
    check_names(*state, names, BASE_COUNT(names));
}

/* COLMAP, the photographs and the scene are in folders whose names have spaces and letters beyond
 * ASCII. */
static void test_folder_names(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    const char *bin = "bin \xc3\xa4 \xe6\x97\xa5", *given = "given '\xc3\xb6' & %d";
    assert_int_equal(rename(temporary_path(folder, "bin"), temporary_path(folder, bin)), 0);
    assert_int_equal(rename(temporary_path(folder, "given"), temporary_path(folder, given)), 0);
    setenv("PATH", temporary_path(folder, bin), 1);
    request.params.pictures = temporary_path(folder, given);
    request.params.out = temporary_path(folder, "scene \xc3\x9f");
    assert_ok(prepare(&request));
    assert_int_equal(request.result.registered, 5);
    char *name = base_format("%s/calls", bin), *calls = content(folder, name);
    assert_non_null(strstr(calls, "/scene \xc3\x9f/images --"));
    free(calls);
    free(name);
}

/* Names that sort well are kept, and the pictures are hard links. */
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
    assert_called(folder, "--ImageReader.single_camera 0 --ImageReader.camera_model SIMPLE_RADIAL",
                  true);
    assert_called(folder, "--FeatureExtraction.use_gpu 0", true);
    assert_called(folder, "--FeatureMatching.use_gpu 0", true);
    assert_called(folder, "SiftMatching", false);
    assert_called(folder, "sequential_matcher", true);
    assert_called(folder, "matches_importer", true);
    char *pairs = content(folder, "scene/prepare/1/pairs.txt");
    assert_string_equal(pairs, "p0.png p5.png\n\n");
    free(pairs);
    /* Another camera model: new features, the same pictures. */
    fake(folder, "");
    request.params.camera_model = VKN_CAMERA_MODEL_OPENCV_FISHEYE;
    assert_ok(prepare(&request));
    assert_called(folder, "--ImageReader.camera_model OPENCV_FISHEYE", true);
    /* Another matcher: matching and later stages run again. */
    fake(folder, "");
    request.params.matcher = VKN_MATCHER_EXHAUSTIVE;
    assert_ok(prepare(&request));
    assert_called(folder, "feature_extractor", false);
    assert_called(folder, "exhaustive_matcher", true);
    assert_called(folder, "mapper", true);
    /* No change: nothing runs. */
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "colmap", false);
    assert_called(folder, "mapper", false);
    assert_int_equal(request.result.registered, 6);
}

static void test_failures(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    static const char *const stages[] = {"feature_extractor", "exhaustive_matcher", "mapper"};
    for (size_t i = 0; i < BASE_COUNT(stages); i++) {
        char how[64];
        snprintf(how, sizeof(how), "fails %s", stages[i]);
        for (int attempt = 0; attempt < 2; attempt++) {
            fake(folder, how);
            assert_fails(&request, VKN_ERROR,
                         "colmap failed (exit status 3): ERROR: no such luck (complete log: ");
        }
        assert_called(folder, stages[i], true);
        /* Earlier stages are not repeated. */
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
}

static void test_failures_of_scripts(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    static const char *const stages[] = {"feature_extractor", "exhaustive_matcher", "mapper"};
    for (size_t i = 0; i < BASE_COUNT(stages); i++) {
        char how[64];
        snprintf(how, sizeof(how), "killed %s", stages[i]);
        fake(folder, how);
        assert_fails(&request, VKN_ERROR, "colmap failed (signal 9): no error message");
        snprintf(how, sizeof(how), "fails %s", stages[i]);
        fake(folder, how);
        assert_fails(&request, VKN_ERROR, "colmap failed (exit status 3)");
    }
    fake(folder, "");
    assert_ok(prepare(&request));
    temporary_text(folder, "broken/colmap", "#!/none/at/all\n");
    chmod(temporary_path(folder, "broken/colmap"), 0700);
    setenv("PATH", temporary_path(folder, "broken"), 1);
    request.params.overwrite = true;
    assert_fails(&request, VKN_ERROR, "broken/colmap cannot be started: No such file");
}

/* With too few poses COLMAP runs again with more features; the better result is kept. */
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

/* ---- interruptions --------------------------------------------------------------------------- */

struct interruption {
    struct temporary *folder;
    volatile sig_atomic_t stop;
};

/* Interrupts once the stand-in waits. */
static void *interrupt(void *context)
{
    struct interruption *interruption = context;
    char path[256];
    snprintf(path, sizeof(path), "%s/bin/waiting", interruption->folder->path);
    await_line(path);
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
    assert_fails(request, VKN_INTERRUPTED, "interrupted; run the same command again to continue");
    assert_true(base_seconds() - began < 30);
    pthread_join(thread, NULL);
    request->job.stop = NULL;
    char *process = content(request->folder, "bin/waiting");
    assert_int_equal(kill((pid_t)strtol(process, NULL, 10), 0), -1); /* it has ended */
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
    /* The database and its camera are kept. */
    assert_called(folder, "--ImageReader.existing_camera_id 1", true);
    interrupt_in(&request, "mapper");
    assert_called(folder, "feature_extractor", false);
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "matcher", false);
    assert_called(folder, "feature_extractor", false);
    assert_called(folder, "mapper", true);
    /* Interrupted before the start. */
    volatile sig_atomic_t stop = 1;
    request.job.stop = &stop;
    assert_fails(&request, VKN_INTERRUPTED, "interrupted");
}

/* ---- COLMAP itself --------------------------------------------------------------------------- */

/* Angle between two rotations, in degrees. */
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

/* Relative rotations of neighbouring views and the focal length are those of the rendered pictures.
 */
static void check_poses(const char *path)
{
    vkn_scene *scene = NULL;
    assert_ok(vkn_scene_open(path, NULL, &scene));
    double found[ROOM_VIEWS][3][3], seen = 0;
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
    assert_true(seen == ROOM_VIEWS);
    for (int i = 0; i < ROOM_VIEWS; i++)
        for (int k = 0; k < i; k++) {
            double a[3][3], b[3][3], unused[3];
            view_of(i, a, unused);
            view_of(k, b, unused);
            /* Relative rotations do not depend on the world's axes, see angle_between. */
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
        return; /* sanitizers cannot see into COLMAP; the other build runs this */
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    struct request request = request_of(folder, "views");
    assert_ok(base_make_folder(request.params.pictures));
    write_views(request.params.pictures);
    assert_ok(prepare(&request));
    assert_int_equal(request.result.registered, ROOM_VIEWS);
    assert_true(request.result.points > 200);
    check_poses(request.params.out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_turned, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_names, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_names_of_unix, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_folder_names, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_links, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_failures, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_failures_of_scripts, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_few, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_interrupted, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_colmap, set_up, temporary_teardown),
    };
    if (argc == 3 && strcmp(argv[1], "views") == 0) {
        write_views(argv[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
