/* Tests which known depths views have: of tracked points, of clouds, of depth pictures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <vknerf/context.h>

#include "captures.h"
#include "exr.h"

#define WIDTH    40u
#define HEIGHT   30u
#define VIEWS    10u /* views 0 and 8 are held out; view i is at (BASELINE i, 0, 0) */
#define BASELINE 0.1
#define FOCAL    50.0

/* ---- captures -------------------------------------------------------------------------------- */

/* A point in the axes of the model, in which all cameras look along z, with y down. */
struct point {
    double position[3], error;
    unsigned first, last; /* views of its track */
};

static void write_pictures(struct temporary *folder)
{
    for (unsigned view = 0; view < VIEWS; view++) {
        char name[32];
        snprintf(name, sizeof name, "images/%02u.png", view);
        temporary_picture(folder, name, WIDTH, HEIGHT, (uint8_t)view);
    }
}

static void write_model(struct temporary *folder, const struct point *points, size_t count)
{
    struct base_text images = {0}, list = {0};
    temporary_text(folder, "sparse/0/cameras.txt", "1 PINHOLE 40 30 50 50 20 15\n");
    for (unsigned view = 0; view < VIEWS; view++)
        base_text_add(&images, "%u 1 0 0 0 %.9g 0 0 1 %02u.png\n\n", view + 1, -BASELINE * view,
                      view);
    for (size_t i = 0; i < count; i++) {
        const double *at = points[i].position;
        base_text_add(&list, "%zu %.17g %.17g %.17g 9 9 9 %.9g", i + 1, at[0], at[1], at[2],
                      points[i].error);
        for (unsigned view = points[i].first; view <= points[i].last; view++)
            base_text_add(&list, " %u 0", view + 1);
        base_text_add(&list, "\n");
    }
    temporary_text(folder, "sparse/0/images.txt", images.data);
    temporary_text(folder, "sparse/0/points3D.txt", list.data);
    free(images.data);
    free(list.data);
}

/* Writes the same cameras for nerfstudio, in whose axes y is up and cameras look along -z. `keys`:
 * of the file; `frame_keys`: of each frame. */
static void write_transforms(struct temporary *folder, const char *keys, const char *frame_keys)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "{\"fl_x\": 50, \"fl_y\": 50, \"cx\": 20, \"cy\": "
                  "15, \"w\": 40, \"h\": 30, %s \"frames\": [",
                  keys);
    for (unsigned view = 0; view < VIEWS; view++)
        base_text_add(&text,
                      "%s{\"file_path\": \"images/%02u.png\", %s \"transform_matrix\": [[1, 0, 0, "
                      "%.9g], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}",
                      view > 0 ? ", " : "", view, frame_keys, BASELINE * view);
    base_text_add(&text, "]}");
    temporary_text(folder, "transforms.json", text.data);
    free(text.data);
}

static struct vkn_scene *open_capture(const struct temporary *folder, uint32_t downscale)
{
    const struct scene_options options = {.path = folder->path, .downscale = downscale};
    struct vkn_scene *scene = NULL;
    assert_ok(scene_open(&options, &scene));
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        assert_ok(scene_find_depths(scene, split));
    return scene;
}

/* Returns the depth of a view nearest to an image position; NULL if none is within half a pixel. */
static const struct scene_depth *find_depth(const struct vkn_scene *scene, const char *view,
                                            double x, double y)
{
    const struct scene_camera *camera = camera_of(scene, view);
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        const struct scene_split *in = &scene->splits[split];
        if (camera < in->cameras || camera >= in->cameras + in->camera_count)
            continue;
        for (size_t i = 0; i < camera->depth_count; i++) {
            const struct scene_depth *depth = &in->depths[camera->first_depth + i];
            if (hypot((double)depth->x - x, (double)depth->y - y) < 0.5)
                return depth;
        }
    }
    return NULL;
}

static void assert_close(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%.9g is not %.9g", value, expected);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* The point at index 0 is held out: it is for the test views 0 and 8. */
static const struct point points[] = {
    {{0.3, 0.2, 2}, 1, 0, 9},    /* held out */
    {{0.4, -0.3, 2}, 1, 0, 9},   /* in training: views 1 to 9 without 8 */
    {{0.35, 0.6, 4}, 0.1, 2, 5}, /* an error below half a pixel counts as half a pixel */
    {{0.2, 0.5, 2}, 1, 0, 1},    /* a single training view */
    {{0.2, 0.1, 9}, 9, 4, 5},    /* uncertain: 9 / 50 / sin(0.011) */
    {{9.0, 0.1, 2}, 1, 1, 9},    /* outside of the images */
    {{0.5, 0.3, -2}, 1, 1, 9},   /* behind the cameras */
};

static double column_of(const struct point *point, unsigned view)
{
    return 20 + FOCAL * (point->position[0] - BASELINE * view) / point->position[2];
}

static double row_of(const struct point *point)
{
    return 15 + FOCAL * point->position[1] / point->position[2];
}

static const struct scene_depth *depth_of(const struct vkn_scene *scene, const struct point *point,
                                          unsigned view)
{
    char name[16];
    snprintf(name, sizeof name, "%02u.png", view);
    return find_depth(scene, name, column_of(point, view) / scene->downscale,
                      row_of(point) / scene->downscale);
}

/* Checks depth and deviation of a point in a view: error / focal length / sine of the largest angle
 * between rays of the training views `first` and `last`. */
static void assert_depth(const struct vkn_scene *scene, const struct point *point, unsigned view,
                         unsigned first, unsigned last)
{
    const struct scene_depth *depth = depth_of(scene, point, view);
    const double *at = point->position;
    double far = hypot(at[1], at[2]);
    double angle = atan2(at[0] - BASELINE * first, far) - atan2(at[0] - BASELINE * last, far);
    assert_non_null(depth);
    assert_close((double)depth->depth, at[2] * scene->scale, 1e-5);
    assert_close((double)depth->sigma,
                 at[2] * scene->scale * fmax(point->error, 0.5) / FOCAL / fabs(sin(angle)), 1e-4);
}

static void test_tracks(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder);
    write_model(folder, points, BASE_COUNT(points));
    for (uint32_t downscale = 1; downscale <= 2; downscale++) {
        struct vkn_scene *scene = open_capture(folder, downscale);
        assert_int_equal(scene->splits[SCENE_TEST].camera_count, 2);
        for (unsigned view = 0; view < VIEWS; view++) {
            bool is_test = view % 8 == 0, in_track = view >= 2 && view <= 5;
            if (is_test)
                assert_depth(scene, &points[0], view, 1, 9);
            else
                assert_depth(scene, &points[1], view, 1, 9);
            assert_null(depth_of(scene, &points[is_test], view));
            assert_null(depth_of(scene, &points[3], view));
            if (in_track)
                assert_depth(scene, &points[2], view, 2, 5);
        }
        assert_int_equal(scene->splits[SCENE_TEST].depth_count, 2);
        assert_int_equal(scene->splits[SCENE_TRAIN].depth_count, 8 + 4);
        assert_int_equal(scene->depths.counts[SCENE_DEPTH_TRACKS], 8 + 4);
        assert_close(scene->depths.sigma,
                     (double)depth_of(scene, &points[1], 1)->sigma / (2 * scene->scale), 1e-4);
        scene_close(&scene);
    }
}

/* A view's depths are in the order of rows, and views follow each other. */
static void test_order(void **state)
{
    struct temporary *folder = *state;
    struct point many[100];
    for (unsigned i = 0; i < BASE_COUNT(many); i++)
        many[i] = (struct point){{0.3 + 0.01 * (i % 7), 0.01 * (i * 37 % 50) - 0.25, 2}, 1, 0, 9};
    write_pictures(folder);
    write_model(folder, many, BASE_COUNT(many));
    struct vkn_scene *scene = open_capture(folder, 1);
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t expected = 0;
    for (size_t v = 0; v < train->camera_count; v++) {
        const struct scene_camera *camera = &train->cameras[v];
        assert_int_equal(camera->first_depth, expected);
        assert_int_equal(camera->depth_count, 87); /* without every eighth */
        for (size_t i = 1; i < camera->depth_count; i++)
            assert_true(train->depths[expected + i].y >= train->depths[expected + i - 1].y);
        expected += camera->depth_count;
    }
    assert_int_equal(train->depth_count, expected);
    scene_close(&scene);
}

static void write_depths(struct temporary *folder, uint32_t width, uint32_t height, uint16_t far)
{
    uint16_t *values = base_alloc((size_t)width * height, sizeof *values);
    for (uint32_t i = 0; i < width * height && far > 0; i++)
        values[i] = i % width < width / 2 ? 2000 : i / width < height / 2 ? far : 0;
    assert_ok(scene_image_write_png16(temporary_path(folder, "depth.png"), values, width, height));
    free(values);
}

/* ---- clouds ---------------------------------------------------------------------------------- */

/* Points at all kinds of depths, which were made up, do not tell the unit of a picture. */
static void check_made_up(struct temporary *folder)
{
    struct base_text text = {0};
    base_text_add(&text, "ply\nformat ascii 1.0\nelement vertex 900\nproperty float x\nproperty "
                         "float y\nproperty float z\nend_header\n");
    for (int i = 0; i < 900; i++) {
        double depth = 2 + (double)(i * 7919 % 899) / 30;
        base_text_add(&text, "%g %g %g\n", 0.45 + depth * (i % 30 - 14.5) / 60,
                      depth * ((double)i / 30 - 14.5) / 80, -depth);
    }
    temporary_text(folder, "points.ply", text.data);
    free(text.data);
    write_transforms(folder, "\"ply_file_path\": \"points.ply\", ",
                     "\"depth_file_path\": \"depth.png\",");
    struct vkn_scene *scene = open_capture(folder, 1);
    assert_true(scene->depths.counts[SCENE_DEPTH_PICTURES] > 0);
    assert_int_equal(scene->depths.counts[SCENE_DEPTH_CLOUD], 0);
    scene_close(&scene);
}

/* Depth pictures of a wall at 4 units are used; with another unit its points are. */
static void check_units(struct temporary *folder, size_t of_cloud)
{
    static const char *const units[] = {"0.002", "0.02", "0.0002"};
    write_depths(folder, 20, 15, 2000);
    for (unsigned i = 0; i < BASE_COUNT(units); i++) {
        char keys[99];
        snprintf(keys, sizeof keys,
                 "\"ply_file_path\": \"points.ply\", \"depth_unit_scale_factor\": %s,", units[i]);
        write_transforms(folder, keys, "\"depth_file_path\": \"depth.png\",");
        base_log_threshold(BASE_LOG_NOTHING);
        struct vkn_scene *scene = open_capture(folder, 1);
        base_log_threshold(BASE_LOG_INFO);
        assert_int_equal(scene->depths.counts[SCENE_DEPTH_PICTURES] > 0, i == 0);
        assert_int_equal(scene->depths.counts[SCENE_DEPTH_CLOUD], i == 0 ? 0 : of_cloud);
        scene_close(&scene);
    }
}

/* A near grid, with points in every second pixel, hides a part of a far wall. Every eighth point is
 * for the test views. */
static void test_cloud(void **state)
{
    struct temporary *folder = *state;
    struct base_text text = {0};
    unsigned count = 0;
    base_text_add(&text, "ply\nformat ascii 1.0\nelement vertex 3627\nproperty float x\nproperty "
                         "float y\nproperty float z\nend_header\n");
    for (int wall = 0; wall < 2; wall++)
        for (int row = 0; row < 60; row++)
            for (int column = 0; column < 60; column++)
                if (wall || (row % 12 == 6 && column % 12 == 6)) {
                    base_text_add(&text, "%g %g %g\n", 0.45 + (column - 29.5) / (wall ? 20 : 150),
                                  (row - 29.5) / (wall ? 20 : 150), wall ? -4.0 : -2.0);
                    count++;
                }
    base_text_add(&text, "0.4 0 5\n0.4 90 -5\n"); /* behind the cameras; outside of the images */
    assert_int_equal(count + 2, 3627);
    temporary_text(folder, "points.ply", text.data);
    free(text.data);
    write_pictures(folder);
    write_transforms(folder, "\"ply_file_path\": \"points.ply\",", "");
    struct vkn_scene *scene = open_capture(folder, 1);
    size_t near = 0, far = 0;
    assert_int_equal(scene->depths.counts[SCENE_DEPTH_TRACKS], 0);
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        const struct scene_split *in = &scene->splits[split];
        for (size_t v = 0; v < in->camera_count; v++) {
            const struct scene_camera *camera = &in->cameras[v];
            double middle = 20 + FOCAL * (0.45 - BASELINE * camera->frame) / 2;
            for (size_t i = 0; i < camera->depth_count; i++) {
                const struct scene_depth *depth = &in->depths[camera->first_depth + i];
                bool is_near = (double)depth->depth < 3 * scene->scale;
                assert_close((double)depth->depth, (is_near ? 2 : 4) * scene->scale, 1e-4);
                assert_close((double)depth->sigma, 0.03 * (double)depth->depth, 1e-4);
                bool in_square =
                    fabs((double)depth->x - middle) < 4.5 && fabs((double)depth->y - 15) < 4.5;
                assert_true(!in_square || is_near);
                near += is_near;
                far += !is_near;
            }
        }
    }
    assert_true(near > 100 && far > 5000);
    /* About 1000 pixels of a view see a point, one in eight of them one that is held out. */
    assert_in_range(scene->splits[SCENE_TRAIN].depth_count, 8 * 800, 8 * 910);
    assert_in_range(scene->splits[SCENE_TEST].depth_count, 2 * 80, 2 * 200);
    size_t of_cloud = scene->depths.counts[SCENE_DEPTH_CLOUD];
    assert_int_equal(of_cloud, scene->splits[SCENE_TRAIN].depth_count);
    scene_close(&scene);
    check_units(folder, of_cloud);
    check_made_up(folder);
}

/* ---- depth pictures -------------------------------------------------------------------------- */

/* Values are millimetres, or units of the file; 0 is unknown. All views of all splits have them. */
static void test_pictures(void **state)
{
    struct temporary *folder = *state;
    static const struct {
        const char *keys, *frame_keys;
        double unit;
    } files[] = {
        {"", "\"depth_file_path\": \"depth.png\",", 1e-3},
        {"\"depth_unit_scale_factor\": 0.01,", "\"depth_file_path\": \"./depth.png\",", 1e-2},
        {"\"integer_depth_scale\": 0.5,", "\"depth_path\": \"depth.png\",", 0.5},
    };
    write_pictures(folder);
    write_depths(folder, 20, 15, 3000);
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        write_transforms(folder, files[i].keys, files[i].frame_keys);
        struct vkn_scene *scene = open_capture(folder, 1);
        const double unit = files[i].unit * scene->scale;
        assert_int_equal(scene->splits[SCENE_TRAIN].depth_count, 8 * (10 * 15 + 10 * 7));
        assert_int_equal(scene->splits[SCENE_TEST].depth_count, 2 * (10 * 15 + 10 * 7));
        assert_int_equal(scene->depths.counts[SCENE_DEPTH_PICTURES],
                         scene->splits[SCENE_TRAIN].depth_count);
        for (int view = 3; view <= 8; view += 5) {
            const char *name = view == 3 ? "03.png" : "08.png";
            const struct scene_depth *depth = find_depth(scene, name, 7, 11);
            assert_non_null(depth);
            assert_close((double)depth->x, 7, 1e-6);
            assert_close((double)depth->y, 11, 1e-6);
            assert_close((double)depth->depth, 2000 * unit, 1e-5);
            assert_close((double)depth->sigma, 40 * unit, 1e-5);
            assert_close((double)find_depth(scene, name, 39, 1)->depth, 3000 * unit, 1e-5);
            assert_null(find_depth(scene, name, 39, 29));
        }
        scene_close(&scene);
    }
    /* Depths that are 0 in training space are not known. */
    write_transforms(folder, "\"depth_unit_scale_factor\": 1e-300,",
                     "\"depth_file_path\": \"depth.png\",");
    struct vkn_scene *flat = open_capture(folder, 1);
    assert_int_equal(flat->splits[SCENE_TRAIN].depth_count, 0);
    scene_close(&flat);
    /* Without a unit, and without loading, pictures of instant-ngp are not read. */
    write_transforms(folder, "", "\"depth_path\": \"depth.png\",");
    struct vkn_scene *scene = open_capture(folder, 1);
    assert_int_equal(scene->splits[SCENE_TRAIN].depth_count, 0);
    scene_close(&scene);
    write_transforms(folder, "\"integer_depth_scale\": 0.5, \"enable_depth_loading\": false,",
                     "\"depth_path\": \"depth.png\",");
    scene = open_capture(folder, 1);
    assert_int_equal(scene->splits[SCENE_TRAIN].depth_count, 0);
    scene_close(&scene);
}

static void write_exr(struct temporary *folder, const char *name, uint32_t width, uint32_t height,
                      const float *values)
{
    const struct exr_kind kind = {.compression = EXR_ZIP};
    struct base_text file = exr_file(&kind, width, height, values);
    temporary_file(folder, name, file.data, file.size);
    free(file.data);
}

static void write_array(struct temporary *folder, const char *name, const char *shape,
                        const float *values, size_t count)
{
    struct base_text text = {0};
    base_text_add_bytes(&text, "\x93NUMPY\1\0\x40\0", 10);
    base_text_add(&text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%8s), }\n", shape);
    base_text_add_bytes(&text, values, count * sizeof *values);
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
}

/* Writes 20 x 15 depths as an EXR file or an array: 2 on the left, 3 on the upper right, unknown on
 * the lower right. */
static void write_floats(struct temporary *folder, const char *name, bool is_array)
{
    static const float unknown[] = {0, NAN, INFINITY, -2, -INFINITY};
    float values[15 * 20];
    for (size_t i = 0; i < BASE_COUNT(values); i++)
        values[i] = i % 20 < 10 ? 2 : i / 20 < 7 ? 3 : unknown[i % BASE_COUNT(unknown)];
    if (is_array)
        write_array(folder, name, "15, 20", values, BASE_COUNT(values));
    else
        write_exr(folder, name, 20, 15, values);
}

/* Floats have the unit of the file, too. Values that are not positive and finite are unknown. */
static void test_float_pictures(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder);
    for (int i = 0; i < 4; i++) {
        const char *name = i < 2 ? "depth.exr" : "depth.npy";
        char frame_keys[64];
        snprintf(frame_keys, sizeof frame_keys, "\"depth_file_path\": \"%s\",", name);
        write_floats(folder, name, i >= 2);
        write_transforms(folder, i % 2 ? "\"depth_unit_scale_factor\": 1," : "", frame_keys);
        struct vkn_scene *scene = open_capture(folder, 1);
        const double unit = (i % 2 ? 1 : 1e-3) * scene->scale;
        assert_int_equal(scene->splits[SCENE_TRAIN].depth_count, 8 * (10 * 15 + 10 * 7));
        assert_close((double)find_depth(scene, "03.png", 7, 11)->depth, 2 * unit, 1e-5);
        assert_close((double)find_depth(scene, "08.png", 39, 1)->depth, 3 * unit, 1e-5);
        assert_null(find_depth(scene, "03.png", 39, 29));
        scene_close(&scene);
    }
}

/* A fisheye's depths are distances along the ray; the picture's are along the axis. */
static void test_fisheye(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder);
    write_depths(folder, 40, 30, 3000);
    write_transforms(folder, "\"camera_model\": \"OPENCV_FISHEYE\",",
                     "\"depth_file_path\": \"depth.png\",");
    struct vkn_scene *scene = open_capture(folder, 1);
    double angle = hypot(4.5 - 20, 20.5 - 15) / FOCAL;
    const struct scene_depth *depth = find_depth(scene, "03.png", 4.5, 20.5);
    assert_non_null(depth);
    assert_close((double)depth->depth, 2 * scene->scale / cos(angle), 1e-5);
    scene_close(&scene);
}

/* Large pictures are thinned out evenly. Sizes of images are rounded. */
static void test_large_picture(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder);
    write_depths(folder, 400, 300, 3000);
    write_transforms(folder, "", "\"depth_file_path\": \"depth.png\",");
    for (uint32_t downscale = 1; downscale <= 7; downscale += 6) { /* 40 x 30, 5 x 4 pixels */
        struct vkn_scene *scene = open_capture(folder, downscale);
        size_t count = scene->splits[SCENE_TRAIN].cameras[0].depth_count;
        assert_true(count > 2000 && count <= 4096);
        scene_close(&scene);
    }
}

static unsigned warnings;

static void count_warning(void *context, enum vkn_log_level level, const char *line)
{
    (void)context;
    (void)level;
    warnings++;
    assert_non_null(strstr(line, warnings == 1
                                     ? "depth pictures of 8 of 8 train views are not used"
                                     : "depth pictures of 2 of 2 test views are not used"));
}

/* All pictures of a split that are not read make one warning. */
static void test_missing_pictures(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder);
    write_transforms(folder, "", "\"depth_file_path\": \"depth.png\",");
    base_log_threshold(BASE_LOG_WARNING);
    vkn_log_to(count_warning, NULL);
    struct vkn_scene *scene = open_capture(folder, 1);
    vkn_log_to(NULL, NULL);
    base_log_threshold(BASE_LOG_INFO);
    assert_int_equal(warnings, 2);
    scene_close(&scene);
}

/* Writes an EXR file of equal values, `width` x 3 pixels, as if of another channel. */
static void write_small(struct temporary *folder, float value, uint32_t width, bool has_channels)
{
    const float values[12] = {value, value, value, value, value, value,
                              value, value, value, value, value, value};
    struct base_text file = exr_file(&(struct exr_kind){0}, width, 3, values);
    file.data[29] = has_channels ? 'G' : '\0'; /* ends the name of the channel */
    temporary_file(folder, "depth.png", file.data, file.size);
    free(file.data);
}

/* Pictures that cannot be used are refused with one line; the scene then has no depths. */
static void test_broken_pictures(void **state)
{
    struct temporary *folder = *state;
    static const char *const messages[] = {
        "depth.png: No such file",
        "depth.png: ",
        "not a 16-bit grey picture of depths",
        "20x30 pixels do not have the shape of the image of 40x30",
        "all depths are unknown (0, negative or not finite)",
        "all depths are unknown (0, negative or not finite)",
        "2x3 pixels do not have the shape of the image of 40x30",
        "depth.png: channels: not exactly one channel",
        "depth.png: shape: (0, 20) is not the size of a picture",
        "depth.png: shape: (16385, 1) is not the size of a picture"};
    static const char *const shapes[] = {"0, 20", "16385, 1"};
    static const float zeros[16385];
    write_pictures(folder);
    write_transforms(folder, "", "\"depth_file_path\": \"depth.png\",");
    for (unsigned i = 0; i < BASE_COUNT(messages); i++) {
        if (i == 1)
            temporary_text(folder, "depth.png", "no picture");
        if (i == 2)
            temporary_picture(folder, "depth.png", WIDTH, HEIGHT, 7);
        if (i == 3 || i == 4)
            write_depths(folder, i == 3 ? 20 : 40, 30, i == 3 ? 3000 : 0);
        if (i >= 5 && i <= 7)
            write_small(folder, i == 5 ? INFINITY : 1, i == 5 ? 4 : 2, i == 7);
        if (i >= 8)
            write_array(folder, "depth.png", shapes[i - 8], zeros, 16385);
        base_log_threshold(BASE_LOG_NOTHING);
        struct vkn_scene *scene = open_capture(folder, 1);
        struct base_text list = {0};
        assert_int_equal(scene->splits[SCENE_TRAIN].depth_count, 0);
        assert_int_equal(depth_picture_read(scene, &scene->splits[SCENE_TRAIN].cameras[0], &list),
                         VKN_BAD_INPUT);
        assert_error(messages[i]);
        assert_null(list.data);
        base_log_threshold(BASE_LOG_INFO);
        scene_close(&scene);
    }
}

/* Depths must be at a pixel in single precision, and finite when squared there. */
static void test_usable(void **state)
{
    struct temporary *folder = *state;
    const struct scene_depth depths[] = {{39.5F, 29.5F, 2, 0.1F},
                                         {(float)39.9999999, 5, 2, 0.1F},
                                         {5, (float)29.9999999, 2, 0.1F},
                                         {-0.5F, 5, 2, 0.1F},
                                         {5, 5, 2e19F, 0.1F},
                                         {5, 5, 2, 2e19F},
                                         {5, 5, 2, 0}};
    write_pictures(folder);
    write_depths(folder, 40, 30, 3000);
    write_transforms(folder, "", "\"depth_file_path\": \"depth.png\",");
    struct vkn_scene *scene = open_capture(folder, 1);
    struct scene_camera turned = scene->splits[SCENE_TRAIN].cameras[0];
    struct base_text list = {0};
    for (size_t i = 0; i < BASE_COUNT(depths); i++)
        assert_int_equal(depth_is_usable(&turned, &depths[i]), i == 0);
    turned.applied_orientation = 3;
    assert_int_equal(depth_picture_read(scene, &turned, &list), VKN_BAD_INPUT);
    assert_error("depth.png: its photograph is turned by an EXIF orientation");
    scene_close(&scene);
}

static void test_bad_keys(void **state)
{
    struct temporary *folder = *state;
    const struct scene_options options = {.path = folder->path};
    write_pictures(folder);
    write_transforms(folder, "", "\"depth_file_path\": 7,");
    assert_open_fails(&options, "depth_file_path");
    write_transforms(folder, "\"depth_unit_scale_factor\": -1,", "");
    assert_open_fails(&options, "depth_unit_scale_factor");
    write_transforms(folder, "\"integer_depth_scale\": \"x\",", "");
    assert_open_fails(&options, "integer_depth_scale");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_tracks),           TEST(test_order),           TEST(test_cloud),
        TEST(test_pictures),         TEST(test_fisheye),         TEST(test_large_picture),
        TEST(test_missing_pictures), TEST(test_broken_pictures), TEST(test_usable),
        TEST(test_bad_keys),         TEST(test_float_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
