/* Tests camera paths: splines through keyframes, files of nerfstudio and instant-ngp, interpolation
 * of the training cameras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "scene/camera_path.h"
#include "scenes.h"

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("%.9g is not %.9g", value, wanted);
}

/* The pose's rotation is orthonormal and right-handed. */
static void assert_rotation(const float pose[12])
{
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double dot = 0;
            for (int i = 0; i < 3; i++)
                dot += (double)pose[4 * i + a] * (double)pose[4 * i + b];
            assert_near(dot, a == b, 1e-5);
        }
    double x[3] = {pose[0], pose[4], pose[8]}, y[3] = {pose[1], pose[5], pose[9]}, z[3];
    vector_cross(x, y, z);
    for (int i = 0; i < 3; i++)
        assert_near(pose[4 * i + 2], z[i], 1e-5);
}

static void assert_sees(const struct scene_camera *camera, double px, double py, double pz,
                        double x, double y)
{
    const double point[3] = {px, py, pz};
    double got_x = NAN, got_y = NAN;
    assert_true(scene_camera_project(camera, point, &got_x, &got_y));
    assert_near(got_x, x, 1e-3);
    assert_near(got_y, y, 1e-3);
}

/* ---- scenes -------------------------------------------------------------------------------- */

/* Opens a scene of `count` cameras evenly around the z axis, 2 away, looking at the origin with z
 * up. Camera i, by angle, has the image names[i]. */
static struct vkn_scene *open_ring(struct temporary *folder, const char *const *names, int count,
                                   const char *more)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "{%s \"fl_x\": 10, \"cx\": 4, \"cy\": 3, \"w\": 8, \"h\": 6, \"k1\": 0.1,"
                  "\"scale\": 0.5, \"offset\": 0.25, \"frames\": [",
                  more);
    for (int i = 0; i < count; i++) {
        double a = 2 * acos(-1) * i / count, c = cos(a), s = sin(a);
        temporary_picture(folder, names[i], 8, 6, 0);
        base_text_add(&text,
                      "{\"file_path\": \"%s\", \"transform_matrix\": "
                      "[[%.9g,0,%.9g,%.9g],[%.9g,0,%.9g,%.9g],[0,1,0,0]]}%s",
                      names[i], -s, c, 2 * c, c, s, 2 * s, i + 1 < count ? "," : "],");
    }
    base_text_add(&text, "\"train_filenames\": [");
    for (int i = 0; i < count; i++)
        base_text_add(&text, "\"%s\"%s", names[i], i + 1 < count ? "," : "]}");
    temporary_text(folder, "transforms.json", text.data);
    free(text.data);
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = folder->path};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

static const char *const four[] = {"0.png", "1.png", "2.png", "3.png"};

/* ---- splines ------------------------------------------------------------------------------- */

/* A spline passes its points smoothly; points on a line give a line, whatever their times. */
static void test_spline(void **state)
{
    (void)state;
    const double times[] = {0, 1, 3, 3.5, 5}, values[] = {0, 0, 1, 4, 3, -2, 3.5, 1};
    for (int loop = 0; loop < 2; loop++) {
        const struct spline spline = {4, 2, values, times, loop};
        for (int i = 0; i < 4 + loop; i++) {
            double at[2], before[2], after[2], step = 1e-5, begin = loop ? times[4] : 0;
            spline_at(&spline, times[i], at);
            for (int c = 0; c < 2; c++)
                assert_near(at[c], values[2 * (i % 4) + c], 1e-9);
            if (!loop && (i == 0 || i == 3))
                continue;
            spline_at(&spline, (i == 0 ? begin : times[i]) - step, before);
            spline_at(&spline, (i == 4 ? 0 : times[i]) + step, after);
            for (int c = 0; c < 2; c++)
                assert_near((at[c] - before[c]) / step, (after[c] - at[c]) / step, 1e-3);
        }
        double at[2];
        spline_at(&spline, 2.2, at);
        if (!loop)
            assert_near(at[0], 2.2, 1e-9);
    }
    double only[2];
    spline_at(&(struct spline){1, 2, values + 2, times, false}, 0, only);
    assert_near(only[1], 4, 0);
}

/* ---- keyframes ----------------------------------------------------------------------------- */

static struct scene_camera_path read_camera_path(const struct vkn_scene *scene,
                                                 struct temporary *folder, const char *text)
{
    struct scene_camera_path camera_path;
    assert_ok(scene_read_camera_path(scene, temporary_text(folder, "path.json", text), NULL, NULL,
                                     &camera_path));
    for (size_t i = 0; i < camera_path.count; i++) {
        assert_rotation(camera_path.cameras[i].pose);
        assert_null(camera_path.cameras[i].image_path);
        assert_near(camera_path.cameras[i].k1, 0, 0);
    }
    return camera_path;
}

static void test_keyframes(void **state)
{
    struct vkn_scene *scene = open_ring(*state, four, 4, "");
    struct scene_camera_path camera_path = read_camera_path(
        scene, *state,
        "{\"frames\": 5, \"height\": 12, \"keyframes\": ["
        "{\"position\": [2, 0, 1], \"look_at\": [0, 0, 0], \"fov\": 90, \"time\": 0.25},"
        "{\"position\": [0, 2, 1], \"look_at\": [0, 0, 0.5], \"up\": [0, 3, 0]},"
        "{\"position\": [-2, 0, 1], \"look_at\": [0, 0, 0], \"fov\": 60, \"time\": 1}]}");
    const struct scene_camera *cameras = camera_path.cameras;
    assert_int_equal(camera_path.count, 5);
    assert_near(camera_path.fps, 0, 0);
    assert_int_equal(cameras[0].width * 100 + cameras[0].height, 1612);
    /* Training space is half of the dataset's space plus 0.25. */
    assert_near(cameras[0].pose[3], 1.25, 1e-6);
    assert_near(cameras[0].pose[11], 0.75, 1e-6);
    assert_sees(&cameras[0], 0.25, 0.25, 0.25, 8, 6);
    assert_near(cameras[0].focal_x, 6, 1e-5); /* 90 degrees from top to bottom */
    assert_true(cameras[0].pose[9] > 0.5F);   /* the scene's up vector */
    assert_near(cameras[0].pose[8], 0, 1e-6);
    assert_sees(&cameras[2], 0.25, 0.25, 0.5, 8, 6); /* second keyframe */
    assert_near(cameras[2].pose[5], 0.2425, 1e-4);   /* up as near to y as the view allows */
    assert_near(cameras[2].focal_x, 6, 1e-5);        /* inherits the fov of the keyframe before */
    assert_near(cameras[2].time, 0.25, 1e-6);
    assert_near(cameras[4].focal_x, 6 / tan(acos(-1) / 6), 1e-4);
    assert_near(cameras[4].time, 1, 1e-6);
    /* Halfway to the second keyframe: the cubic with slopes -2 and (-2, 0), 2 keyframes apart. */
    assert_near(cameras[1].pose[3], 0.25 + 0.5 * 1.0, 1e-5);
    assert_near(cameras[1].pose[7], 0.25 + 0.5 * 1.25, 1e-5);
    free(camera_path.cameras);
    scene_close(&scene);
}

/* A loop has seconds * fps frames, and its last frame is one before the first. */
static void test_loop(void **state)
{
    struct vkn_scene *scene = open_ring(*state, four, 4, "");
    struct scene_camera_path camera_path =
        read_camera_path(scene, *state,
                         "{\"seconds\": 0.5, \"fps\": 16, \"loop\": true, \"keyframes\": ["
                         "{\"position\": [2, 0, 0], \"look_at\": [0, 0, 0]},"
                         "{\"position\": [0, 2, 0], \"look_at\": [0, 0, 0]},"
                         "{\"position\": [-2, 0, 0], \"look_at\": [0, 0, 0]},"
                         "{\"position\": [0, -2, 0], \"look_at\": [0, 0, 0]}]}");
    assert_int_equal(camera_path.count, 8);
    assert_near(camera_path.fps, 16, 0);
    for (int i = 0; i < 8; i++) {
        const float *pose = camera_path.cameras[i].pose;
        double radius = hypot((double)pose[3] - 0.25, (double)pose[7] - 0.25);
        double angle = acos(-1) * i / 4;
        assert_near(pose[3], 0.25 + radius * cos(angle), 1e-5);
        assert_near(pose[7], 0.25 + radius * sin(angle), 1e-5);
        assert_near(radius, 1, 0.12);
        assert_near(camera_path.cameras[i].focal_x, 10, 1e-4); /* as the training cameras */
        assert_int_equal(camera_path.cameras[i].width, 8);
    }
    free(camera_path.cameras);
    camera_path = read_camera_path(scene, *state,
                                   "{\"seconds\": 2, \"keyframes\": [{\"position\": [0, 0, 3], "
                                   "\"look_at\": [0, 0, 0]}]}");
    assert_int_equal(camera_path.count, 48);                       /* 24 a second */
    assert_sees(&camera_path.cameras[47], 0.25, 0.25, 0.25, 4, 3); /* any roll is valid */
    free(camera_path.cameras);
    scene_close(&scene);
}

#define SIZE  "\"render_width\": 4, \"render_height\": 3, "
#define WORLD "\"camera_to_world\": [1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1]"

#define CROP(center, size, rotation)                                                             \
    "\"crop\": {\"crop_center\": " center ", \"crop_scale\": " size ", \"crop_rot\": [" rotation \
    "]}, "                                                                                       \
    "\"camera_path\": [{" WORLD ", \"fov\": 9}]}",
#define NGP "{\"R\": [0,0,0,1], \"T\": [0,0,0], \"fov\": 50}"

/* ---- nerfstudio ---------------------------------------------------------------------------- */

/* A camera at (3, 4, 5) that looks along -x with z up and a fov of 90 degrees; its homogeneous
 * matrix is scaled by -2. */
#define EXPORT                                                                              \
    "{\"camera_type\": \"%s\", \"render_height\": 20, \"render_width\": 30, \"fps\": 12,"   \
    "\"seconds\": 4, \"smoothness_value\": 0.5, \"keyframes\": [{\"fov\": 50}],"            \
    "\"camera_path\": [{\"camera_to_world\": [0,0,-2,-6, -2,0,0,-8, 0,-2,0,-10, 0,0,0,-2]," \
    "\"fov\": 90, \"aspect\": 1.5, \"render_time\": 0.75}]}"

static char *export_file(struct temporary *folder, const char *type)
{
    char text[1024];
    snprintf(text, sizeof(text), EXPORT, type);
    return temporary_text(folder, "camera_path.json", text);
}

static void test_nerfstudio(void **state)
{
    struct vkn_scene *scene = open_ring(*state, four, 4, "");
    char *file = export_file(*state, "perspective");
    struct scene_camera_path camera_path;
    base_log_threshold(BASE_LOG_NOTHING); /* warns that nerfstudio's space is unknown */
    assert_ok(scene_read_camera_path(scene, file, NULL, NULL, &camera_path));
    assert_int_equal(camera_path.count, 1);
    assert_near(camera_path.fps, 0.25, 0); /* one picture in four seconds */
    const struct scene_camera *camera = &camera_path.cameras[0];
    assert_rotation(camera->pose);
    assert_int_equal(camera->width * 100 + camera->height, 3020);
    assert_near(camera->focal_x, 10, 1e-5);
    assert_near(camera->time, 0.75, 0);
    assert_near(camera->pose[3], 0.25 + 0.5 * 3, 1e-6);
    assert_sees(camera, 0.25, 0.25 + 0.5 * 4, 0.25 + 0.5 * 5, 15, 10);
    assert_sees(camera, 0.75, 0.25 + 0.5 * 5, 0.25 + 0.5 * 6, 15 + 5, 10 - 5);
    free(camera_path.cameras);
    /* The public function converts the cameras to the dataset's coordinates. */
    struct vkn_camera_path path = {.size = sizeof path};
    assert_ok(vkn_scene_read_path(scene, file, NULL, &path));
    assert_int_equal(path.count, 1);
    assert_near(path.fps, 0.25, 0);
    assert_near(path.cameras[0].pose[3], 3, 1e-6);
    assert_near(path.cameras[0].focal_y, 10, 1e-5);
    assert_near(path.cameras[0].time, 0.75, 0);
    assert_int_equal(path.cameras[0].width * 100 + path.cameras[0].height, 3020);
    vkn_free(path.cameras);

    file = export_file(*state, "fisheye");
    assert_ok(scene_read_camera_path(scene, file, NULL, NULL, &camera_path));
    base_log_threshold(BASE_LOG_WARNING);
    assert_sees(&camera_path.cameras[0], 0.25, 0.25 + 0.5 * 7, 0.25 + 0.5 * 5, 15 + 10 * atan(1),
                10);
    free(camera_path.cameras);

    /* A panorama of 30 x 20 pixels, whatever the fov is, with +y ahead. */
    file = export_file(*state, "equirectangular");
    assert_ok(scene_read_camera_path(scene, file, NULL, NULL, &camera_path));
    base_log_threshold(BASE_LOG_WARNING);
    camera = &camera_path.cameras[0];
    assert_int_equal(camera->lens, VKN_LENS_EQUIRECTANGULAR);
    assert_int_equal(camera->width * 100 + camera->height, 3020);
    assert_near(camera->focal_x, 30 / (2 * M_PI), 1e-5);
    assert_near(camera->focal_y, 20 / M_PI, 1e-5);
    assert_sees(camera, 0.25, 0.25 + 0.5 * 4, 0.25 + 0.5 * 5, 15, 10);
    assert_sees(camera, 0.25, 0.25 + 0.5 * 7, 0.25 + 0.5 * 5, 15 + 30 / 8.0, 10);
    free(camera_path.cameras);
    scene_close(&scene);
}

/* nerfstudio's transform of a dataset is inverted. The dataparser's: a rotation about z by 90
 * degrees, then (1, 2, 3) added, then a scale of 0.25. The applied transform: y and z swapped with
 * a sign, (0, 0, 7) added; a scale of 2. */
static void test_dataparser(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene =
        open_ring(folder, four, 4,
                  "\"applied_transform\": [[1,0,0,0],[0,0,1,0],[0,-1,0,7]], \"applied_scale\": 2,");
    /* Camera 0 is at (2, 0, 0), looking along -x. After its own transform: (1, 4, 3), along -y. */
    const char *export =
        "{\"render_height\": 6, \"render_width\": 8, \"camera_path\": [{\"camera_to_world\":"
        "[-1,0,0,0.25, 0,0,1,1, 0,1,0,0.75, 0,0,0,1], \"fov\": 33.3985}]}";
    char *file = temporary_text(folder, "sub/camera_path.json", export);
    /* dataparser transform * applied transform; 0.25 * 2 */
    const char *text = "{\"transform\": [[0,0,-1,1],[1,0,0,2],[0,-1,0,10]], \"scale\": 0.5}";
    char *dataparser = temporary_text(folder, "sub/dataparser_transforms.json", text);
    for (int given = 0; given < 2; given++) {
        struct scene_camera_path camera_path;
        if (given)
            rename(dataparser, temporary_path(folder, "elsewhere.json"));
        assert_ok(scene_read_camera_path(scene, file,
                                         given ? temporary_path(folder, "elsewhere.json") : NULL,
                                         NULL, &camera_path));
        const struct scene_camera *first = &scene->splits[SCENE_TRAIN].cameras[0];
        for (int i = 0; i < 12; i++)
            assert_near(camera_path.cameras[0].pose[i], (double)first->pose[i], 1e-5);
        assert_near(camera_path.cameras[0].focal_y, 10, 1e-3);
        free(camera_path.cameras);
    }
    scene_close(&scene);
}

/* The camera of EXPORT in all the forms that nerfstudio's programs write or read. */
static void test_nerfstudio_forms(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_ring(folder, four, 4, "");
#define FORM(more, list, key, matrix, fov)                                                     \
    "{\"render_height\": 20, \"render_width\": 30, \"fps\": 12," more "\"" list "\": [{\"" key \
    "\": " matrix fov ", \"aspect\": 1.5}]}"
#define FLAT "[0,0,1,3, 1,0,0,4, 0,1,0,5, 0,0,0,1]"
    static const char *const forms[] = {
        FORM("", "camera_path", "camera_to_world", "[[0,0,1,3],[1,0,0,4],[0,1,0,5],[0,0,0,1]]",
             ", \"fov\": 90"),
        FORM("", "camera_path", "camera_to_world", "[[0,0,1,3],[1,0,0,4],[0,1,0,5]]",
             ", \"fov\": 90"),
        FORM("\"camera_type\": \"Perspective\",", "camera_path", "camera_to_world", FLAT,
             ", \"fov\": 90"),
        FORM("\"camera_type\": \"pinhole\",", "camera_path", "camera_to_world", FLAT,
             ", \"fov\": 90"),
        FORM("\"camera_path\": [],", "keyframes", "matrix", FLAT, ", \"fov\": 90"),
        FORM("\"default_fov\": 90,", "keyframes", "matrix", FLAT, ""),
        FORM("", "keyframes", "matrix", "\"[0,1,0,0, 0,0,1,0, 1,0,0,0, 3,4,5,1]\"",
             ", \"fov\": 90"),
        FORM("\"camera_type\": \"Equirectangular\",", "camera_path", "camera_to_world", FLAT, ""),
        FORM("\"camera_type\": \"equirectangular\", \"camera_path\": [],", "keyframes", "matrix",
             FLAT, ""),
    };
    base_log_threshold(BASE_LOG_NOTHING); /* warns that nerfstudio's space is unknown */
    for (size_t i = 0; i < BASE_COUNT(forms); i++) {
        struct scene_camera_path path;
        assert_ok(scene_read_camera_path(scene, temporary_text(folder, "path.json", forms[i]), NULL,
                                         NULL, &path));
        assert_int_equal(path.count, 1);
        assert_near(path.fps, 12, 0);
        assert_int_equal(path.cameras[0].width * 100 + path.cameras[0].height, 3020);
        assert_near(path.cameras[0].pose[3], 0.25 + 0.5 * 3, 1e-6);
        assert_int_equal(path.cameras[0].lens == VKN_LENS_EQUIRECTANGULAR, i >= 7);
        assert_sees(&path.cameras[0], 0.25, 0.25 + 0.5 * 4, 0.25 + 0.5 * 5, 15, 10);
        if (i < 7)
            assert_sees(&path.cameras[0], 0.75, 0.25 + 0.5 * 5, 0.25 + 0.5 * 6, 15 + 5, 10 - 5);
        free(path.cameras);
    }

    /* Times are used only if all cameras have one, and are clamped to 0..1. */
    for (int i = 0; i < 2; i++) {
        char text[512];
        struct scene_camera_path path;
        snprintf(text, sizeof text,
                 "{" SIZE "\"camera_path\": [{" WORLD
                 ", \"fov\": 9, \"render_time\": 1.01}, {" WORLD ", \"fov\": 9%s}]}",
                 i ? ", \"render_time\": 0.5" : "");
        assert_ok(scene_read_camera_path(scene, temporary_text(folder, "path.json", text), NULL,
                                         NULL, &path));
        assert_near(path.cameras[0].time, i, 0);
        assert_near(path.cameras[1].time, 0.5 * i, 0);
        free(path.cameras);
    }

    /* Keyframes without a path are interpolated from the first to the last. */
    static const char keys[] =
        "{" SIZE "\"fps\": 5, \"seconds\": 2, \"camera_type\": \"fisheye\", \"keyframes\": "
        "[{\"matrix\": " FLAT
        ", \"fov\": 90}, {\"matrix\": [0,0,1,3, 1,0,0,6, 0,1,0,5, 0,0,0,1], \"fov\": 60}]}";
    struct scene_camera_path path;
    assert_ok(scene_read_camera_path(scene, temporary_text(folder, "path.json", keys), NULL, NULL,
                                     &path));
    base_log_threshold(BASE_LOG_WARNING);
    assert_int_equal(path.count, 10);
    assert_near(path.fps, 5, 0);
    for (int i = 0; i < 10; i += 9) {
        assert_rotation(path.cameras[i].pose);
        assert_int_equal(path.cameras[i].lens, VKN_LENS_FISHEYE);
        assert_near(path.cameras[i].pose[7], 0.25 + 0.5 * (i > 0 ? 6 : 4), 1e-6);
        assert_near(path.cameras[i].focal_y, i > 0 ? 1.5 / tan(M_PI / 6) : 1.5, 1e-5);
    }
    free(path.cameras);

    /* Panoramas between keyframes have the size of the keyframes. */
    static const char around[] =
        "{" SIZE "\"seconds\": 2, \"camera_type\": \"equirectangular\", \"keyframes\": "
        "[{\"matrix\": " FLAT "}, {\"matrix\": " FLAT "}]}";
    assert_ok(scene_read_camera_path(scene, temporary_text(folder, "path.json", around), NULL, NULL,
                                     &path));
    assert_int_equal(path.cameras[1].width * 100 + path.cameras[1].height, 403);
    assert_int_equal(path.cameras[1].lens, VKN_LENS_EQUIRECTANGULAR);
    free(path.cameras);
    scene_close(&scene);
}

/* Rotations are found again from the axes, also in gimbal lock, where only the sum or the
 * difference of two angles is known. */
static void test_box_axes(void **state)
{
    (void)state;
    static const double rotations[][3] = {
        {0, 0, 0}, {30, -70, 160}, {-170, 89, 5}, {40, 90, 70}, {-100, -90, 25}};
    for (size_t n = 0; n < BASE_COUNT(rotations); n++) {
        struct scene_box box = {0}, found = {0};
        double axes[3][3], again[3][3];
        memcpy(box.rotation, rotations[n], sizeof box.rotation);
        scene_box_axes(&box, axes);
        for (int i = 0; i < 9; i++)
            axes[i / 3][i % 3] = fabs(axes[i / 3][i % 3]) < 1e-12 ? 0 : axes[i / 3][i % 3];
        scene_box_set_axes((const double(*)[3])axes, &found);
        scene_box_axes(&found, again);
        for (int i = 0; i < 9; i++)
            assert_near(again[i / 3][i % 3], axes[i / 3][i % 3], 1e-9);
    }
}

/* Checks that a box has these corners and no points beyond them. */
static void check_corners(const struct scene_box *box, const double corners[8][3],
                          const double center[3])
{
    const struct scene_box_limits limits = scene_box_limits(box);
    for (int i = 0; i < 8; i++) {
        double inside[3], outside[3];
        for (int k = 0; k < 3; k++) {
            inside[k] = center[k] + 0.9999 * (corners[i][k] - center[k]);
            outside[k] = center[k] + 1.0001 * (corners[i][k] - center[k]);
        }
        assert_true(scene_box_contains(&limits, inside));
        assert_false(scene_box_contains(&limits, outside));
    }
}

/* The crop box is mapped back from nerfstudio's space. Its transform (90 degrees about z, plus
 * (1, 2, 3), times 0.25) gives x' = 4 x, then (y - 2, -(x - 1), z - 3). The corners are those of
 * Rz(yaw) Ry(pitch) Rx(roll), computed step by step. */
static void test_crop(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_ring(folder, four, 4, "");
    temporary_text(folder, "dataparser_transforms.json",
                   "{\"transform\": [[0,-1,0,1],[1,0,0,2],[0,0,1,3]], \"scale\": 0.25}");
    static const struct {
        double angles[3];
        const char *color;
        enum vkn_background background;
    } cases[] = {
        {{0, 0, 0}, "", VKN_BACKGROUND_DEFAULT},
        {{0, 0, 0.5},
         ", \"crop_bg_color\": {\"r\": 255, \"g\": 255, \"b\": 255}",
         VKN_BACKGROUND_WHITE},
        {{-0.4, 1.1, 2.5},
         ", \"crop_bg_color\": {\"r\": 0, \"g\": 0, \"b\": 0}",
         VKN_BACKGROUND_BLACK},
        {{2.9, -1.5707963267948966, 0.7},
         ", \"crop_bg_color\": {\"r\": 38, \"g\": 42, \"b\": 55}",
         VKN_BACKGROUND_DEFAULT},
    };
    base_log_threshold(BASE_LOG_NOTHING); /* warns about the colour */
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char text[512];
        double corners[8][3];
        struct scene_camera_path path;
        const double *angles = cases[i].angles;
        snprintf(text, sizeof text,
                 "{" SIZE "\"crop\": {\"crop_center\": [0.5, 1, 1.5], \"crop_scale\": [1, 2, 3], "
                 "\"crop_rot\": [%.17g, %.17g, %.17g]%s},\"camera_path\": [{" WORLD
                 ", \"fov\": 9}]}",
                 angles[0], angles[1], angles[2], cases[i].color);
        assert_ok(scene_read_camera_path(scene, temporary_text(folder, "path.json", text), NULL,
                                         NULL, &path));
        for (int c = 0; c < 8; c++) {
            double p[3] = {c & 1 ? 0.5 : -0.5, c & 2 ? 1 : -1, c & 4 ? 1.5 : -1.5};
            for (int k = 0; k < 3; k++) { /* rotates about axis k */
                double *a = &p[(k + 1) % 3], *b = &p[(k + 2) % 3], old = *a;
                *a = cos(angles[k]) * old - sin(angles[k]) * *b;
                *b = sin(angles[k]) * old + cos(angles[k]) * *b;
            }
            corners[c][0] = 4 * (p[1] + 1) - 2;
            corners[c][1] = -(4 * (p[0] + 0.5) - 1);
            corners[c][2] = 4 * (p[2] + 1.5) - 3;
        }
        const double center[3] = {4 * 1 - 2, -(4 * 0.5 - 1), 4 * 1.5 - 3};
        check_corners(&path.crop, (const double(*)[3])corners, center);
        assert_int_equal(path.background, cases[i].background);
        free(path.cameras);
    }
    base_log_threshold(BASE_LOG_WARNING);
    scene_close(&scene);
}

/* ---- instant-ngp --------------------------------------------------------------------------- */

#define NGP_KEYS                                                                               \
    "{\"R\": [0.1,0.2,0.3,0.9], \"T\": [0.5,0.25,0.75], \"fov\": 50, \"aperture_size\": 0.5, " \
    "\"slice\": 0%s}, "                                                                        \
    "{\"R\": [-0.3,0.1,-0.2,-0.8], \"T\": [1.5,0.5,-0.25], \"fov\": 60, \"glow_mode\": 1, "    \
    "\"scale\": 1%s}, "                                                                        \
    "{\"R\": [0.6,-0.1,0.2,0.7], \"T\": [0.25,1.75,0.5], \"fov\": 40%s}, "                     \
    "{\"R\": [0,0.7,0.1,0.7], \"T\": [-1,0.5,1], \"fov\": 80%s}"

/* Expected poses, in training space (instant-ngp's with another order of axes), and fields of view
 * come from a Python transcription of instant-ngp's CameraPath::eval_camera_path and
 * NerfDataset::ngp_matrix_to_nerf. */
static void test_ngp(void **state)
{
    static const struct {
        bool loop;
        int order;
        bool timed;
        struct {
            int frame;
            double values[13];
        } frames[3];
    } cases[] = {
        {false,
         3,
         false,
         {{0,
           {-0.210299, -0.355843, -0.910577, 0.583333, 0.771816, 0.511255, -0.378045, 0.666667,
            0.600062, -0.782300, 0.167129, 0.291667, 51.666667}},
          {17,
           {0.209221, -0.561588, -0.800529, 0.078557, 0.870776, 0.479493, -0.108794, 1.120266,
            0.444945, -0.674319, 0.589337, 0.564995, 55.435000}},
          {59,
           {-0.903071, -0.358343, -0.236755, 0.903547, 0.234698, 0.049923, -0.970785, -0.758880,
            0.359694, -0.932254, 0.039019, 0.741068, 72.285417}}}},
        {true,
         3,
         false,
         {{0,
           {-0.396613, -0.369261, -0.840443, 0.625000, 0.725822, 0.434386, -0.533377, 0.416667,
            0.562032, -0.821556, 0.095734, 0.333333, 56.666667}},
          {17,
           {0.320485, -0.661648, -0.677873, 0.039765, 0.876191, 0.479008, -0.053298, 1.089222,
            0.359971, -0.576865, 0.733245, 0.774173, 54.102222}},
          {59,
           {-0.453470, -0.361221, -0.814791, 0.665000, 0.700008, 0.421522, -0.576461, 0.332383,
            0.551682, -0.831768, 0.061710, 0.334469, 57.416790}}}},
        {false,
         3,
         true,
         {{0,
           {-0.210299, -0.355843, -0.910577, 0.583333, 0.771816, 0.511255, -0.378045, 0.666667,
            0.600062, -0.782300, 0.167129, 0.291667, 51.666667}},
          {17,
           {0.356794, -0.790050, -0.498517, 0.182146, 0.887693, 0.452976, -0.082544, 0.778328,
            0.291030, -0.413079, 0.862941, 1.133365, 50.208125}},
          {59,
           {-0.913316, -0.341789, -0.221439, 0.910261, 0.215826, 0.054891, -0.974888, -0.775654,
            0.345361, -0.938172, 0.023634, 0.724339, 72.821094}}}},
        {true,
         1,
         true,
         {{0,
           {-0.315789, -0.315789, -0.894737, 0.750000, 0.726316, 0.526316, -0.442105, 0.500000,
            0.610526, -0.789474, 0.063158, 0.250000, 50.000000}},
          {17,
           {0.419500, -0.864015, -0.278384, 0.375000, 0.884541, 0.457986, -0.088518, 0.458333,
            0.203977, -0.209108, 0.956382, 1.541667, 43.333333}},
          {59,
           {-0.491142, -0.324985, -0.808186, 0.791667, 0.667074, 0.456323, -0.588882, 0.250000,
            0.560171, -0.828345, -0.007330, 0.291667, 55.000000}}}},
        {false,
         2,
         false,
         {{0,
           {-0.315789, -0.315789, -0.894737, 0.750000, 0.726316, 0.526316, -0.442105, 0.500000,
            0.610526, -0.789474, 0.063158, 0.250000, 50.000000}},
          {17,
           {-0.078925, -0.405117, -0.910852, 0.388750, 0.817266, 0.496906, -0.291823, 0.861250,
            0.570830, -0.767440, 0.291870, 0.340313, 53.612500}},
          {59,
           {-0.381779, -0.784067, -0.489371, 0.724687, 0.733193, 0.065452, -0.676863, -0.312500,
            0.562737, -0.617216, 0.549884, 1.184375, 58.075000}}}},
        {false,
         0,
         false,
         {{0,
           {-0.315789, -0.315789, -0.894737, 0.750000, 0.726316, 0.526316, -0.442105, 0.500000,
            0.610526, -0.789474, 0.063158, 0.250000, 50.000000}},
          {17,
           {0.358974, -0.564103, -0.743590, -0.250000, 0.871795, 0.487179, 0.051282, 1.500000,
            0.333333, -0.666667, 0.666667, 0.500000, 60.000000}},
          {59,
           {-0.989899, -0.141414, -0.010101, 1.000000, -0.010101, 0.141414, -0.989899, -1.000000,
            0.141414, -0.979798, -0.141414, 0.500000, 80.000000}}}},
    };
    struct vkn_scene *scene = open_ring(*state, four, 4, "");
    base_log_threshold(BASE_LOG_NOTHING); /* warns about settings that are not rendered */
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char text[2048];
        bool timed = cases[i].timed;
        snprintf(text, sizeof text,
                 "{\"loop\": %s, \"time\": 1.0, \"spline_order\": %d, \"path\": [" NGP_KEYS "]}",
                 cases[i].loop ? "true" : "false", cases[i].order,
                 timed ? ", \"timestamp\": 0.2" : "", timed ? ", \"timestamp\": 0.3" : "",
                 timed ? ", \"timestamp\": 0.9" : "", timed ? ", \"timestamp\": 1" : "");
        struct scene_camera_path path = read_camera_path(scene, *state, text);
        assert_int_equal(path.count, 60);
        assert_near(path.fps, 60, 0);
        for (int f = 0; f < 3; f++) {
            const struct scene_camera *camera = &path.cameras[cases[i].frames[f].frame];
            const double *values = cases[i].frames[f].values;
            for (int k = 0; k < 12; k++)
                assert_near(camera->pose[k], values[k], 2e-6);
            assert_int_equal(camera->width * 100 + camera->height, 806);
            assert_near(2 * atan(3 / (double)camera->focal_y) * 180 / M_PI, values[12], 1e-4);
            assert_near(camera->focal_x, (double)camera->focal_y, 0);
        }
        free(path.cameras);
    }

    /* One keyframe is one picture; three seconds are 180 pictures. */
    struct scene_camera_path path = read_camera_path(scene, *state, "{\"path\": [" NGP "]}");
    assert_int_equal(path.count, 1);
    assert_near(path.cameras[0].pose[1], 0, 1e-6); /* instant-ngp's down, y, is -z here */
    assert_near(path.cameras[0].pose[9], -1, 1e-6);
    free(path.cameras);
    path =
        read_camera_path(scene, *state, "{\"duration_seconds\": 3, \"path\": [" NGP ", " NGP "]}");
    assert_int_equal(path.count, 180);
    assert_near(path.fps, 60, 0);
    free(path.cameras);

    /* Mitsuba: axes are kept, x and z of the camera are negated, scale is 0.66, offset is 0.165. */
    temporary_text(*state, "transforms.json",
                   "{\"from_mitsuba\": true, \"fl_x\": 9, \"frames\": [{\"file_path\": \"a\", "
                   "\"transform_matrix\": "
                   "[[1,0,0,0],[0,1,0,0],[0,0,1,0]]}]}");
    path = read_camera_path(
        scene, *state, "{\"path\": [{\"R\": [0,0,0,1], \"T\": [0.495,0.825,0.165], \"fov\": 50}]}");
    const double mitsuba[12] = {-1, 0, 0,   0.25 + 0.5 * 0.5, 0, -1, 0, 0.25 + 0.5 * 1, 0,
                                0,  1, 0.25};
    for (int k = 0; k < 12; k++)
        assert_near(path.cameras[0].pose[k], mitsuba[k], 1e-6);
    free(path.cameras);
    base_log_threshold(BASE_LOG_WARNING);
    scene_close(&scene);
}

/* ---- interpolated training cameras --------------------------------------------------------- */

/* Cameras are visited around the ring, in numeric order of their names. */
static void test_in_order(void **state)
{
    static const char *const names[] = {"a_1.png", "a_2.png",  "a_03.png", "a_4.png",
                                        "a_9.png", "a_10.png", "a_11.png", "a_100.png"};
    struct vkn_scene *scene = open_ring(*state, names, 8, "");
    struct scene_camera *cameras = NULL;
    assert_ok(scene_interpolate(scene, 15, &cameras));
    for (int i = 0; i < 15; i++) {
        /* At cameras and halfway between; the first and the last segment bend at one end only. */
        double angle = acos(-1) * i / 8, near = i % 2 == 0 ? 1e-4 : i == 1 || i == 13 ? 0.06 : 0.02;
        assert_rotation(cameras[i].pose);
        assert_near(cameras[i].pose[3], 0.25 + cos(angle), near);
        assert_near(cameras[i].pose[7], 0.25 + sin(angle), near);
        assert_near(cameras[i].pose[2], cos(angle), near); /* looks at the middle */
        assert_near(cameras[i].pose[6], sin(angle), near);
        assert_near(cameras[i].pose[9], 1, 1e-3); /* upright */
        assert_near(cameras[i].k1, 0, 0);
        assert_near(cameras[i].focal_x, 10, 0);
        assert_null(cameras[i].image_path);
    }
    free(cameras);
    assert_ok(scene_interpolate(scene, 1, &cameras));
    assert_near(cameras[0].pose[3], 1.25, 1e-5);
    free(cameras);
    assert_int_equal(scene_interpolate(scene, 0, &cameras), VKN_BAD_INPUT);
    assert_null(cameras);
    scene_close(&scene);
}

/* Image names in no spatial order: the path goes from each camera to a neighbour, apart from one
 * turn back at the end of a side. */
static void test_unordered(void **state)
{
    static const char *const names[] = {"0.png", "9.png", "5.png",  "3.png", "11.png", "7.png",
                                        "1.png", "8.png", "10.png", "4.png", "2.png",  "6.png"};
    struct vkn_scene *scene = open_ring(*state, names, 12, "");
    struct scene_camera *cameras = NULL;
    double length = 0;
    assert_ok(scene_interpolate(scene, 111, &cameras));
    assert_near(cameras[0].pose[3], 1.25, 1e-5);
    for (int i = 1; i < 111; i++) {
        assert_rotation(cameras[i].pose);
        length += hypot((double)cameras[i].pose[3] - (double)cameras[i - 1].pose[3],
                        (double)cameras[i].pose[7] - (double)cameras[i - 1].pose[7]);
    }
    /* 11 of the ring's 12 sides, slightly longer than the chords. */
    assert_near(length, 11 * acos(-1) / 6, 0.1);
    free(cameras);
    scene_close(&scene);
}

static void test_one_camera(void **state)
{
    struct vkn_scene *scene = open_ring(*state, four, 1, "");
    struct scene_camera *cameras = NULL;
    assert_ok(scene_interpolate(scene, 3, &cameras));
    for (int i = 0; i < 3; i++)
        assert_near(cameras[i].pose[3], 1.25, 1e-5);
    free(cameras);
    scene_close(&scene);
}

/* ---- errors -------------------------------------------------------------------------------- */

#define KEY  "{\"position\": [1,2,3], \"look_at\": [0,0,0]}"
#define KEYS "\"keyframes\": [" KEY "]"
static void test_bad_files(void **state)
{
    static const char *const cases[][2] = {
        {"{" KEYS "}", "path.json: frames: missing"},
        {"{\"frames\": 3, \"seconds\": 1, " KEYS "}", "path.json: frames: given besides seconds"},
        {"{\"frames\": 2.5, " KEYS "}", "path.json: frames: 2.5 is not a whole number"},
        {"{\"frames\": [], " KEYS "}", "path.json: frames: "},
        {"{\"seconds\": 1e6, \"fps\": 60, " KEYS "}", "path.json: seconds: more than 100000"},
        {"{\"frames\": 3, \"lop\": true, " KEYS "}",
         "path.json: lop: unknown key; did you mean loop"},
        {"{\"frames\": 3, \"keyframes\": []}", "path.json: keyframes: no keyframes"},
        {"{\"frames\": 3, \"keyframes\": {}}", "path.json: keyframes: no keyframes"},
        {"{\"frames\": 3, \"keyframes\": [" KEY ", 5]}",
         "path.json: keyframes[1].(keyframe): not an"},
        {"{\"frames\": 3, \"keyframes\": [{\"look_at\": [0,0,0]}]}",
         "path.json: keyframes[0].position: missing"},
        {"{\"frames\": 3, \"keyframes\": [{\"position\": [1,2]}]}",
         "path.json: keyframes[0].position: not 3 numbers"},
        {"{\"frames\": 3, \"keyframes\": [{\"position\": [1,2,\"x\"]}]}",
         "path.json: keyframes[0].position[2]: "},
        {"{\"frames\": 3, \"keyframes\": [{\"position\": [1,2,3], \"look_at\": [1,2,3]}]}",
         "path.json: keyframes[0].look_at: equals the camera's position"},
        {"{\"frames\": 3, \"keyframes\": [{\"position\": [1,2,3], \"look_at\": [0,0,0], "
         "\"up\": [0,0,0]}]}",
         "path.json: keyframes[0].up: is 0 0 0"},
        {"{\"frames\": 3, \"keyframes\": [{\"position\": [1,2,3], \"look_at\": [0,0,0], "
         "\"fov\": 180}]}",
         "path.json: keyframes[0].fov: "},
        {"{\"camera_path\": []}", "path.json: render_width: missing"},
        {"{" SIZE "\"camera_path\": []}", "path.json: camera_path: no cameras"},
        {"{" SIZE "\"camera_path\": [3]}", "path.json: camera_path[0].(camera): not an object"},
        {"{" SIZE "\"camera_path\": [{}]}", "path.json: camera_path[0].camera_to_world: missing"},
        {"{" SIZE "\"camera_path\": [{\"camera_to_world\": [1,2]}]}",
         "path.json: camera_path[0].camera_to_world: not 16 numbers"},
        {"{" SIZE "\"camera_path\": [{\"camera_to_world\": [1,0,0,\"\",0,1,0,0,0,0,1,0,0,0,0,1]}]}",
         "path.json: camera_path[0].camera_to_world[3]: "},
        {"{" SIZE "\"camera_path\": [{\"camera_to_world\": [1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,0]}]}",
         "path.json: camera_path[0].camera_to_world: the last row is not 0 0 0 1"},
        {"{" SIZE "\"camera_path\": [{" WORLD "}]}", "path.json: camera_path[0].fov: missing"},
        {"{" SIZE "\"camera_type\": \"vr180\", \"camera_path\": [{" WORLD "}]}",
         "path.json: camera_type: vr180 (an image for each eye) is not supported; use "
         "equirectangular"},
        {"{" SIZE "\"camera_path\": [{\"camera_to_world\": \"[1, 2\", \"fov\": 9}]}",
         "path.json: camera_path[0].camera_to_world: not 16 numbers"},
        {"{" SIZE "\"camera_path\": [{\"camera_to_world\": [[1,0,0,0],[0,1,0]], \"fov\": 9}]}",
         "path.json: camera_path[0].camera_to_world: not a matrix of 3 or 4 rows"},
        {"{" SIZE "\"camera_path\": [{" WORLD ", \"fov\": NaN}]}",
         "path.json: camera_path[0].fov: not a finite number"},
        {"{" SIZE "\"crop\": 5, \"camera_path\": [{" WORLD ", \"fov\": 9}]}",
         "path.json: crop.(crop): not an object"},
        {"{" SIZE CROP("[1,2]", "[1,1,1]", "0,0,0") "path.json: crop.crop_center: not 3 numbers"},
        {"{" SIZE CROP("[0,0,0]", "[1,-1,1]",
                       "0,0,0") "path.json: crop.crop_scale: -1 is not positive"},
        {"{" SIZE CROP("[0,0,0]", "[1,1,1]", "0.5,0") "path.json: crop.crop_rot: not 3 numbers"},
        {"{\"path\": []}", "path.json: path: no keyframes"},
        {"{\"path\": [1]}", "path.json: path[0].(keyframe): not an object"},
        {"{\"path\": [{\"T\": [0,0,0]}]}", "path.json: path[0].R: missing"},
        {"{\"path\": [{\"R\": [0,0,0,0], \"T\": [0,0,0], \"fov\": 50}]}",
         "path.json: path[0].R: its quaternion is no"},
        {"{\"path\": [{\"R\": [0,0,0,1], \"T\": [0,0], \"fov\": 50}]}",
         "path.json: path[0].T: not 3 numbers"},
        {"{\"path\": [{\"R\": [0,0,0,1], \"T\": [0,0,0]}]}", "path.json: path[0].fov: missing"},
        {"{\"spline_order\": 1.5, \"path\": [{}]}",
         "path.json: spline_order: 1.5 is not a whole number"},
        {"{\"duration_seconds\": 1e5, \"path\": [" NGP ", " NGP "]}",
         "path.json: duration_seconds: more than 100000"},
    };
    struct vkn_scene *scene = open_ring(*state, four, 4, "");
    struct scene_camera_path camera_path;
    base_log_threshold(BASE_LOG_NOTHING);
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char *file = temporary_path(*state, "path.json");
        FILE *stream = fopen(file, "w");
        assert_true(stream && fputs(cases[i][0], stream) >= 0 && fclose(stream) == 0);
        assert_int_equal(scene_read_camera_path(scene, file, NULL, NULL, &camera_path),
                         VKN_BAD_INPUT);
        assert_error(cases[i][1]);
        assert_null(camera_path.cameras);
        assert_int_equal(camera_path.count, 0);
    }
    base_log_threshold(BASE_LOG_WARNING);
    char *export = export_file(*state, "perspective");
    static const char *const dataparsers[][2] = {
        {"{}", "d.json: transform: missing"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}", "d.json: scale: missing"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 0}", "d.json: scale: "},
        {"[", "d.json: line 1"},
    };
    for (size_t i = 0; i < BASE_COUNT(dataparsers); i++) {
        char *file = temporary_text(*state, "d.json", dataparsers[i][0]);
        assert_int_equal(scene_read_camera_path(scene, export, file, NULL, &camera_path),
                         VKN_BAD_INPUT);
        assert_error(dataparsers[i][1]);
    }
    scene_close(&scene);
}

int main(void)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spline),
        TEST(test_keyframes),
        TEST(test_loop),
        TEST(test_nerfstudio),
        TEST(test_dataparser),
        TEST(test_in_order),
        TEST(test_unordered),
        TEST(test_one_camera),
        TEST(test_bad_files),
        TEST(test_nerfstudio_forms),
        TEST(test_crop),
        TEST(test_box_axes),
        TEST(test_ngp),
    };
    return cmocka_run_group_tests_name("camera paths", tests, NULL, NULL);
}
