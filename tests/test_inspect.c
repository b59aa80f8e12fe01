/* Tests what `vknerf info SCENE` reports about scenes with known faults, and its camera drawing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include <vknerf/scene.h>

#include "scenes.h"

/* ---- scenes ---------------------------------------------------------------------------------- */

#define VIEWS 12

/* Cameras on a bowl around a point, looking at it, z up; images of 8x6 pixels. */
struct rig {
    double distance, turn, tilt; /* turn: angle between neighbours; tilt: amplitude up and down */
    double center[3];
    size_t same;       /* this view has the pose of the view before; 0: none */
    const char *top;   /* more keys at the top level of the file */
    const char *frame; /* more keys of frame 3 */
    bool single;       /* positions rounded to single precision */
    const char *test;  /* frames of transforms_test.json; NULL: view 0, a little higher */
};

static void add_frame(struct base_text *text, const struct rig *rig, size_t i, double lift)
{
    size_t place = i > 0 && i == rig->same ? i - 1 : i;
    double a = rig->turn * (double)place, tilt = 0.5 + rig->tilt * sin(2.3 * (double)place) + lift;
    double c = cos(a), s = sin(a), ct = cos(tilt), st = sin(tilt), d = rig->distance;
    const double *o = rig->center;
    double position[3] = {o[0] + d * ct * c, o[1] + d * ct * s, o[2] + d * st};
    for (int k = 0; k < 3 && rig->single; k++)
        position[k] = (double)(float)position[k];
    base_text_add(text,
                  "{\"file_path\": \"%zu.png\", %s \"transform_matrix\": [[%.9g,%.9g,%.9g,%.17g],"
                  "[%.9g,%.9g,%.9g,%.17g],[0,%.9g,%.9g,%.17g]]}",
                  i, i == 3 ? rig->frame : "", -s, -st * c, ct * c, position[0], c, -st * s, ct * s,
                  position[1], ct, st, position[2]);
}

static void write_scene(struct temporary *folder, const struct rig *rig)
{
    struct base_text text = {0}, test = {0};
    base_text_add(&text, "{%s \"fl_x\": 10, \"w\": 8, \"h\": 6, \"frames\": [", rig->top);
    for (size_t i = 0; i < VIEWS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%zu.png", i);
        if (folder->text_count < VIEWS)
            temporary_picture(folder, name, 8, 6, 0);
        base_text_add(&text, i > 0 ? "," : "");
        add_frame(&text, rig, i, 0);
    }
    base_text_add(&text, "]}");
    temporary_text(folder, "transforms_train.json", text.data);
    base_text_add(&test, "{\"fl_x\": 10, \"w\": 8, \"h\": 6, \"frames\": [");
    if (rig->test != NULL)
        base_text_add(&test, "%s", rig->test);
    else
        add_frame(&test, rig, 0, 0.2);
    base_text_add(&test, "]}");
    temporary_text(folder, "transforms_test.json", test.data);
    free(text.data);
    free(test.data);
}

static const struct rig good = {.distance = 4, .turn = 0.4, .tilt = 0.2, .top = "", .frame = ""};

static cJSON *inspect(const struct temporary *folder, const char *svg)
{
    struct vkn_scene_info_params params = {.scene = folder->path, .svg = svg};
    char *text = NULL;
    assert_ok(vkn_scene_info_json(&params, &text));
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    free(text);
    return json;
}

static const cJSON *at(const cJSON *json, const char *object, const char *name)
{
    const cJSON *inner = object != NULL ? cJSON_GetObjectItem(json, object) : json;
    const cJSON *item = cJSON_GetObjectItem(inner, name);
    assert_non_null(item);
    return item;
}

static void assert_number(const cJSON *item, double wanted, double tolerance)
{
    if (!(fabs(item->valuedouble - wanted) <= tolerance))
        fail_msg("%s: %g is not %g", item->string != NULL ? item->string : "", item->valuedouble,
                 wanted);
}

/* Expects one problem, which begins with `wanted`, or none if that is NULL. */
static void assert_problem(const cJSON *json, const char *wanted)
{
    const cJSON *problems = at(json, NULL, "problems"), *first = problems->child;
    int count = cJSON_GetArraySize(problems);
    if (count != (wanted != NULL ? 1 : 0))
        fail_msg("%d problems: %s", count, cJSON_Print(problems));
    if (wanted == NULL)
        return;
    const char *text = at(first, NULL, "problem")->valuestring;
    if (strncmp(text, wanted, strlen(wanted)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", text, wanted);
    assert_true(strlen(at(first, NULL, "advice")->valuestring) > 10);
    assert_null(strchr(text, '\n'));
}

static void check(struct temporary *folder, const struct rig *rig, const char *problem)
{
    write_scene(folder, rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, problem);
    cJSON_Delete(json);
}

/* ---- measurements ---------------------------------------------------------------------------- */

static void test_good(void **state)
{
    struct temporary *folder = *state;
    write_scene(folder, &good);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, NULL);
    assert_string_equal(at(json, NULL, "format")->valuestring, "transforms");
    assert_number(at(json, "views", "train"), VIEWS, 0);
    assert_number(at(json, "views", "test"), 1, 0);
    const cJSON *size = at(json, NULL, "sizes")->child;
    assert_number(at(size, NULL, "width"), 8, 0);
    assert_number(at(size, NULL, "views"), VIEWS + 1, 0);
    assert_number(at(json, "lenses", "pinhole"), VIEWS + 1, 0);
    assert_number(at(json, "lenses", "fov_x")->child, 2 * atan(0.4) * 180 / acos(-1), 1e-3);
    assert_number(at(json, "lenses", "fov_y")->child, 2 * atan(0.3) * 180 / acos(-1), 1e-3);
    assert_number(at(json, "training_space", "scale"), 0.33, 1e-6);
    assert_number(at(json, "cameras", "distance"), 1.32, 1e-4);
    for (int i = 0; i < 3; i++)
        assert_number(cJSON_GetArrayItem(at(json, "cameras", "look_at"), i), 0.5, 1e-4);
    assert_true(at(json, "training_space", "views_inside")->valuedouble > 0.9);
    assert_null(cJSON_GetObjectItem(json, "masks"));
    assert_null(cJSON_GetObjectItem(json, "points"));
    cJSON_Delete(json);
}

/* UTM coordinates, with a scale and an offset that are no exact doubles. */
static void test_far_from_the_origin(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    const double center[3] = {512345.25, 5412345.75, 312.5};
    memcpy(rig.center, center, sizeof center);
    rig.top = "\"scale\": 0.33, \"offset\": [-169073.4325, -1786073.5975, -102.625],";
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(
        json,
        "the scene lies far from its origin: 5.437e+06 dataset units, 1.79e+06 times the side");
    assert_number(at(json, "training_space", "scale"), 0.33, 0);
    assert_number(at(json, "training_space", "offset")->child->next, -1786073.5975, 0);
    assert_number(at(json, "training_space", "origin_distance"), 5436541, 5);
    assert_number(at(json, "cameras", "distance"), 1.32, 1e-6);
    for (int i = 0; i < 3; i++)
        assert_number(cJSON_GetArrayItem(at(json, "cameras", "look_at"), i), 0.5, 1e-6);
    cJSON_Delete(json);
    /* A file whose numbers were rounded to single precision. */
    rig.single = true;
    check(folder, &rig,
          "the scene lies far from its origin, 5.437e+06 dataset units, and the cameras' positions "
          "are rounded to single precision there: to multiples of up to 0.5");
}

static void test_lenses(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.top = "\"k1\": 0.1,";
    rig.frame = "\"is_fisheye\": true, \"fl_x\": 2, \"k1\": 0,"; /* 4 / 2 radians to each side */
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, NULL);
    assert_number(at(json, "lenses", "pinhole"), 1, 0);
    assert_number(at(json, "lenses", "opencv"), VIEWS - 1, 0);
    assert_number(at(json, "lenses", "fisheye"), 1, 0);
    assert_number(cJSON_GetObjectItem(at(json, "lenses", "first_distortion"), "k1"), 0.1, 1e-7);
    assert_number(at(json, "lenses", "focal_x")->child, 2, 0);
    assert_number(at(json, "lenses", "focal_x")->child->next, 10, 0);
    assert_number(at(json, "lenses", "fov_x")->child->next, 4 * 180 / acos(-1), 1e-2);
    cJSON_Delete(json);
}

/* Panoramas are no problem and have a field of view of 360 degrees. */
static void test_panoramas(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.top = "\"camera_model\": \"EQUIRECTANGULAR\", \"fl_x\": 4, \"fl_y\": 6,";
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, NULL);
    assert_number(at(json, "lenses", "pinhole"), 1, 0); /* the test view */
    assert_number(at(json, "lenses", "equirectangular"), VIEWS, 0);
    assert_number(at(json, "lenses", "fov_x")->child->next, 360, 1e-3);
    assert_number(at(json, "lenses", "fov_y")->child->next, 180, 1e-3);
    cJSON_Delete(json);
}

/* Checks one entry of unread_keys. */
static void assert_unread(const cJSON *json, int index, const char *key, double count,
                          const char *file, const char *note)
{
    const cJSON *entry = cJSON_GetArrayItem(at(json, NULL, "unread_keys"), index);
    assert_non_null(entry);
    assert_string_equal(at(entry, NULL, "key")->valuestring, key);
    assert_number(at(entry, NULL, "count"), count, 0);
    assert_string_equal(strrchr(at(entry, NULL, "file")->valuestring, '/') + 1, file);
    assert_string_equal(at(entry, NULL, "note")->valuestring, note);
}

/* Unread keys are listed once per file, and are a problem if they resemble a known key. */
static void test_unread_keys(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.top =
        "\"sharpen\": 0.2, \"envmap\": \"\", \"lens_maker\": 5, \"applied_scale\": 1, \"time\": 0,";
    rig.frame = "\"lens_maker\": 1, \"colmap_im_id\": 3, \"time\": 0, \"time\": 0.5, \"far\": 6,";
    rig.test = "{\"file_path\": \"0.png\", \"iso\": 100, \"transform_matrix\": "
               "[[1,0,0,0],[0,0,-1,-4],[0,1,0,0]]}";
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, NULL);
    assert_unread(json, 0, "sharpen", 1, "transforms_train.json", "the images are not sharpened");
    assert_unread(json, 1, "lens_maker", 2, "transforms_train.json", "unknown");
    assert_unread(json, 2, "time", 2, "transforms_train.json", "is only read in frames");
    assert_unread(json, 3, "far", 1, "transforms_train.json",
                  "is not used; rays end at march.far_distance");
    assert_unread(json, 4, "iso", 1, "transforms_test.json", "unknown");
    assert_int_equal(cJSON_GetArraySize(at(json, NULL, "unread_keys")), 5);
    cJSON_Delete(json);

    static const char *const misspelt[][2] = {{"\"camera_angleX\": 1,", "camera_angle_x"},
                                              {"\"Aabb_Scale\": 4,", "aabb_scale"},
                                              {"\"camera_modle\": 4,", "camera_model"},
                                              {"\"trains_filenames\": 4,", "train_filenames"}};
    rig = good;
    for (size_t i = 0; i < BASE_COUNT(misspelt); i++) {
        rig.top = misspelt[i][0];
        write_scene(folder, &rig);
        json = inspect(folder, NULL);
        assert_problem(json, folder->path);
        char *end = base_format(": not read; did you mean %s?", misspelt[i][1]);
        assert_non_null(
            strstr(at(at(json, NULL, "problems")->child, NULL, "problem")->valuestring, end));
        assert_string_equal(at(at(json, NULL, "unread_keys")->child, NULL, "meant")->valuestring,
                            misspelt[i][1]);
        free(end);
        cJSON_Delete(json);
    }
    write_scene(folder, &good);
    json = inspect(folder, NULL);
    assert_null(cJSON_GetObjectItem(json, "unread_keys"));
    cJSON_Delete(json);

    /* Duplicate keys: equal numbers are ignored, objects and arrays are always reported. */
    rig = good;
    rig.top = "\"applied_scale\": 1, \"applied_scale\": 1, \"up\": {\"z\": 1}, \"up\": {\"z\": 1},";
    write_scene(folder, &rig);
    json = inspect(folder, NULL);
    assert_unread(json, 0, "up", 1, "transforms_train.json", "given twice; the first is read");
    assert_int_equal(cJSON_GetArraySize(at(json, NULL, "unread_keys")), 1);
    cJSON_Delete(json);

    /* A frame's intrinsics differ from those of the file, which nerfstudio would use. */
    rig = good;
    rig.top = "\"fl_y\": 10, \"cx\": 4, \"cy\": 3,";
    rig.frame = "\"fl_x\": 11, \"cy\": 3, \"cx\": 4.5,";
    write_scene(folder, &rig);
    json = inspect(folder, NULL);
    for (int i = 0; i < 2; i++)
        assert_unread(json, i, i == 0 ? "fl_x" : "cx", 1, "transforms_train.json",
                      "differs from the top level of the file; the frame's value is read "
                      "(nerfstudio reads the top level's)");
    assert_int_equal(cJSON_GetArraySize(at(json, NULL, "unread_keys")), 2);
    cJSON_Delete(json);

    /* More keys than the list's limit. */
    rig = good;
    struct base_text many = {0};
    for (int i = 0; i < 40; i++)
        base_text_add(&many, "\"key%d\": 1,", i);
    rig.top = many.data;
    write_scene(folder, &rig);
    json = inspect(folder, NULL);
    assert_int_equal(cJSON_GetArraySize(at(json, NULL, "unread_keys")), 32);
    cJSON_Delete(json);
    free(many.data);
}

/* Frames of one time are no movement. */
static void test_times(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.frame = "\"time\": 0,";
    check(folder, &rig, NULL);
    rig.frame = "\"time\": 0.5,";
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, "frames have different times: the scene may move, and most models do not");
    assert_true(cJSON_IsTrue(at(json, NULL, "dynamic")));
    cJSON_Delete(json);
}

static void copy_views(struct temporary *folder, const char *name, unsigned count)
{
    struct base_text images = {0};
    for (unsigned i = 0; i < count; i++)
        base_text_add(&images, "%u 1 0 0 0 %u %u 4 1 %u.png\n\n", i + 1, i, i * i % 5, i);
    char path[64];
    snprintf(path, sizeof(path), "%s/images.txt", name);
    temporary_text(folder, path, images.data);
    snprintf(path, sizeof(path), "%s/cameras.txt", name);
    temporary_text(folder, path, "1 PINHOLE 8 6 10 10 4 3\n");
    free(images.data);
}

/* The models that were not read are named in one problem. */
static void test_models(void **state)
{
    struct temporary *folder = *state;
    copy_views(folder, "sparse/0", 3);
    copy_views(folder, "sparse/1", 9);
    for (unsigned i = 0; i < 9; i++) {
        char name[32];
        snprintf(name, sizeof(name), "images/%u.png", i);
        temporary_picture(folder, name, 8, 6, 0);
    }
    cJSON *json = inspect(folder, NULL);
    const cJSON *problem = at(json, NULL, "problems")->child;
    assert_string_equal(at(problem, NULL, "problem")->valuestring,
                        "several sparse models: sparse/1 with 9 images is taken; there is also "
                        "sparse/0 with 3 images");
    assert_non_null(strstr(at(problem, NULL, "advice")->valuestring, "model_merger"));
    assert_number(at(json, "views", "train"), 7, 0);
    cJSON_Delete(json);
}

/* Half of the extent of a box of 4 x 2 x 1, with cameras at its corners. */
static void test_spread(void **state)
{
    struct temporary *folder = *state;
    struct base_text text = {0};
    base_text_add(&text, "{\"fl_x\": 10, \"scale\": 1, \"offset\": 0, \"aabb_scale\": 16, "
                         "\"frames\": [");
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d.png", i);
        temporary_picture(folder, name, 8, 6, 0);
        base_text_add(&text,
                      "%s{\"file_path\": \"%s\", \"transform_matrix\": [[1,0,0,%d],"
                      "[0,1,0,%d],[0,0,1,%d]]}",
                      i > 0 ? "," : "", name, (i & 1) * 4, (i >> 1 & 1) * 2, i >> 2);
    }
    base_text_add(&text, "]}");
    temporary_text(folder, "transforms_train.json", text.data);
    free(text.data);
    cJSON *json = inspect(folder, NULL);
    const cJSON *spread = at(json, "cameras", "spread");
    assert_number(cJSON_GetArrayItem(spread, 0), 2, 1e-5);
    assert_number(cJSON_GetArrayItem(spread, 1), 1, 1e-5);
    assert_number(cJSON_GetArrayItem(spread, 2), 0.5, 1e-5);
    assert_number(cJSON_GetArrayItem(at(json, "cameras", "to"), 1), 2, 0);
    assert_null(cJSON_GetObjectItem(at(json, NULL, "cameras"), "look_at")); /* parallel axes */
    assert_problem(json, "no view is held out");
    cJSON_Delete(json);
}

/* ---- problems -------------------------------------------------------------------------------- */

static void test_images(void **state)
{
    struct temporary *folder = *state;
    base_log_threshold(BASE_LOG_NOTHING);
    write_scene(folder, &good);
    char *extra = temporary_picture(folder, "new.png", 8, 6, 0);
    temporary_picture(folder, "0_depth.png", 8, 6, 0); /* a depth map of 0.png */
    char problem[256];
    snprintf(problem, sizeof(problem),
             "1 of the 14 images in %s have no pose (the first is new.png)", folder->path);
    check(folder, &good, problem);
    unlink(extra);
    char *path = temporary_path(folder, "5.png");
    assert_int_equal(truncate(path, 20), 0);
    snprintf(problem, sizeof(problem),
             "1 frames are left out because of their image or mask; the first: %s: truncated PNG",
             path);
    check(folder, &good, problem); /* the image is broken, but has a pose */
    cJSON *json = inspect(folder, NULL);
    assert_number(at(json, "views", "train"), VIEWS - 1, 0);
    cJSON_Delete(json);
    unlink(path);
    check(folder, &good, "1 frames are left out because of their image or mask; the first: ");
    temporary_picture(folder, "5.png", 16, 12, 0);
    check(folder, &good, "images of 2 sizes: 12 of 8x6, 1 of 16x12");
    base_log_threshold(BASE_LOG_INFO);
}

static void test_deleted_images(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.frame = "\"sharpness\": 3,";
    write_scene(folder, &rig);
    unlink(temporary_path(folder, "3.png"));
    base_log_threshold(BASE_LOG_NOTHING);
    check(folder, &rig, "1 frames have no image");
    base_log_threshold(BASE_LOG_INFO);
}

static void test_masks(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    const uint8_t values[12] = {0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9}, dark[12] = {0};
    rig.frame = "\"mask_path\": \"masks/3.png\",";
    write_scene(folder, &good);
    char *mask = NULL;
    for (int i = 0; i < 2; i++) {
        mask = temporary_path(folder, i == 0 ? "mask/3.png" : "masks/3.png");
        assert_ok(scene_image_write_png(mask, values, 4, 3, 1));
        char *unused = base_format("%s/%s: no view has a mask of this folder", folder->path,
                                   i == 0 ? "mask" : "masks");
        check(folder, &good, unused);
        free(unused);
    }
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, NULL);
    assert_number(at(json, "masks", "views"), 1, 0);
    assert_number(at(json, "masks", "hidden"), 0.25, 1e-6);
    cJSON_Delete(json);
    assert_ok(scene_image_write_png(mask, dark, 4, 3, 1));
    check(folder, &rig, "the masks of 1 views hide everything");
    assert_ok(scene_image_write_png(mask, dark, 3, 4, 1));
    base_log_threshold(BASE_LOG_NOTHING);
    write_scene(folder, &rig);
    json = inspect(folder, NULL);
    assert_number(at(json, "views", "train"), VIEWS - 1, 0);
    assert_true(strstr(at(at(json, NULL, "problems")->child, NULL, "problem")->valuestring,
                       "/masks/3.png: this mask of 3x4 pixels does not fit") != NULL);
    cJSON_Delete(json);
    base_log_threshold(BASE_LOG_INFO);
}

static void test_poses(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.same = 7;
    check(folder, &rig, "1 views have the pose of another (0 of them in another split), such as ");
    rig = good;
    struct base_text frame = {0};
    add_frame(&frame, &good, 4, 0);
    rig.test = frame.data;
    check(folder, &rig, "1 views have the pose of another (1 of them in another split), such as ");
    free(frame.data);
    /* Another time, or another direction from one position, is another pose. */
    rig = good;
    rig.same = 3;
    rig.frame = "\"time\": 0.5,";
    check(folder, &rig, "frames have different times");
    rig.frame = "\"time\": 0,";
    check(folder, &rig, "1 views have the pose of another (0 of them in another split), such as ");
    rig = good;
    struct base_text turned = {0};
    const double a = good.turn * 4, tilt = 0.5 + good.tilt * sin(2.3 * 4), d = good.distance;
    base_text_add(&turned,
                  "{\"file_path\": \"4.png\", \"transform_matrix\": [[1,0,0,%.9g],[0,1,0,%.9g],"
                  "[0,0,1,%.9g]]}",
                  d * cos(tilt) * cos(a), d * cos(tilt) * sin(a), d * sin(tilt));
    rig.test = turned.data;
    check(folder, &rig, NULL);
    free(turned.data);
    rig = good;
    rig.turn = 0;
    rig.tilt = 0;
    rig.test = "";
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    const cJSON *problem = NULL;
    bool found = false;
    cJSON_ArrayForEach (problem, at(json, NULL, "problems"))
        found = found || strcmp(at(problem, NULL, "problem")->valuestring,
                                "all 12 training cameras are in one place") == 0;
    assert_true(found);
    cJSON_Delete(json);
    rig = good;
    rig.tilt = 0;
    check(folder, &rig, "all 12 training cameras are in one plane");
    rig.turn = 0.002; /* an arc as flat as a line */
    check(folder, &rig, "all 12 training cameras are on one line");
}

static void test_scale(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.center[0] = 9;
    check(folder, &rig, "the cameras' focus point, (3.47, 0.5, 0.5) in training space, is outside");
    rig = good;
    rig.top = "\"scale\": 3, \"aabb_scale\": 1,"; /* cameras 12 away from a cube of side 1 */
    check(folder, &rig, "only ");
    rig.top = "\"scale\": 0.01, \"aabb_scale\": 64,";
    write_scene(folder, &rig);
    cJSON *json = inspect(folder, NULL);
    const cJSON *problems = at(json, NULL, "problems");
    assert_int_equal(cJSON_GetArraySize(problems), 2);
    assert_true(strncmp(at(problems->child, NULL, "problem")->valuestring,
                        "the cameras are within ", 23) == 0);
    assert_true(strncmp(at(problems->child->next, NULL, "problem")->valuestring,
                        "the cameras' focus point is 0.04 away", 37) == 0);
    cJSON_Delete(json);
}

static void test_intrinsics(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.frame = "\"fl_x\": 0.9,";
    check(folder, &rig, "the field of view is 43.6 to 155 degrees across");
    rig.frame = "\"cx\": 0.5,";
    check(folder, &rig, "in 1 views the optical centre is far from the image's middle");
}

static void test_nothing_to_see(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene_info_params params = {.scene = folder->path};
    char *text = NULL;
    assert_int_equal(vkn_scene_info_json(&params, &text), VKN_BAD_INPUT);
    assert_null(text);
    write_scene(folder, &good);
    params.format = VKN_SCENE_LLFF;
    assert_int_equal(vkn_scene_info_json(&params, &text), VKN_BAD_INPUT);
    params.format = VKN_SCENE_AUTO;
    params.svg = temporary_impossible(folder, "a.svg");
    assert_int_equal(vkn_scene_info_json(&params, &text), VKN_BAD_INPUT);
    assert_error(params.svg);
    assert_null(text);
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Writes points on the x axis, 0.05 apart around 0, and one 0.2 in front of each of two views. */
static void write_points(struct temporary *folder, int count)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "ply\nformat ascii 1.0\nelement vertex %d\nproperty float x\n"
                  "property float y\nproperty float z\nend_header\n",
                  count + 2);
    for (int i = 0; i < count; i++)
        base_text_add(&text, "%g 0 0\n", 0.05 * (i - 0.5 * (count - 1)));
    for (int i = 0; i < 2; i++) {
        double a = good.turn * i, tilt = 0.5 + good.tilt * sin(2.3 * i), d = good.distance - 0.2;
        base_text_add(&text, "%g %g %g\n", d * cos(tilt) * cos(a), d * cos(tilt) * sin(a),
                      d * sin(tilt));
    }
    temporary_text(folder, "points.ply", text.data);
    free(text.data);
}

static void test_points(void **state)
{
    struct temporary *folder = *state;
    struct rig rig = good;
    rig.top = "\"ply_file_path\": \"points.ply\", \"scale\": 0.33, \"offset\": [0.5, 0.5, 0.25], "
              "\"aabb_scale\": 1,";
    /* Of the 100 points on the axis 60 are in the cube, up to 0.5 / 0.33 from the middle. The box
     * leaves out the outer 2 % per axis: it begins at point 2, -2.375, and excludes at most the
     * near points. */
    write_scene(folder, &rig);
    write_points(folder, 100);
    cJSON *json = inspect(folder, NULL);
    assert_problem(json, "only 59 % of the points are within the cube");
    const double from[3] = {0.5 - 0.33 * 2.375, 0.5, 0.25};
    const double to[3] = {0.5 + 0.33 * 2.475, 0.5, 0.25};
    assert_number(at(json, "points", "count"), 102, 0);
    assert_number(at(json, "points", "inside"), 60.0 / 102, 1e-4);
    for (int i = 0; i < 3; i++) {
        assert_number(cJSON_GetArrayItem(at(json, "points", "from"), i), from[i], 1e-4);
        assert_number(cJSON_GetArrayItem(at(json, "points", "to"), i), to[i], 1e-4);
    }
    cJSON_Delete(json);
    /* Two of 62 points are 0.066 in front of a view, before the near distance: one wrong point per
     * view does not lower it. */
    write_points(folder, 60);
    check(folder, &rig,
          "3 % of the points are nearer to a camera than the 0.1 at which rays begin");
}

/* ---- drawing --------------------------------------------------------------------------------- */

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *c = text; (c = strstr(c, part)) != NULL; c += strlen(part))
        count++;
    return count;
}

static void test_drawing(void **state)
{
    struct temporary *folder = *state;
    write_scene(folder, &good);
    char *file = temporary_path(folder, "rig.svg"), *svg = NULL;
    size_t size = 0;
    cJSON_Delete(inspect(folder, file));
    assert_ok(base_file_read(file, 1 << 20, &svg, &size));
    assert_true(strncmp(svg, "<svg xmlns", 10) == 0);
    assert_int_equal(count_of(svg, "<svg"), count_of(svg, "</svg>"));
    assert_int_equal(count_of(svg, "<g "), count_of(svg, "</g>"));
    assert_int_equal(count_of(svg, "<text "), count_of(svg, "</text>"));
    assert_int_equal(count_of(svg, "m-1.6 0h3.2"), 3 * (VIEWS + 1)); /* a cross for each camera */
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf\""));
    assert_non_null(strstr(svg, "12 train views"));
    assert_non_null(strstr(svg, "1 test views"));
    assert_non_null(strstr(svg, ">from above<"));
    /* The focus point is the cube's centre: 0.5 0.5 0.5 in training space. */
    assert_int_equal(count_of(svg, "class=\"focus\""), 3 * 2 + 2);
    free(svg);
}

/* Checks that the drawing of a capture in the folder `name` has `text` for its path, and not
 * `name`. */
static void check_escaped(struct temporary *folder, const char *name, const char *text)
{
    struct temporary inner = {.text_count = 0};
    snprintf(inner.path, sizeof(inner.path), "%.40s/%s", folder->path, name);
    write_scene(&inner, &good);
    char *file = temporary_path(folder, "rig.svg"), *svg = NULL;
    size_t size = 0;
    cJSON_Delete(inspect(&inner, file));
    assert_ok(base_file_read(file, 1 << 20, &svg, &size));
    assert_null(strstr(svg, name));
    assert_non_null(strstr(svg, text));
    free(svg);
    for (size_t i = 0; i < inner.text_count; i++)
        free(inner.texts[i]);
}

/* Paths with characters that XML must escape. */
static void test_drawing_is_escaped(void **state)
{
    check_escaped(*state, "b&amp;'", "/b&amp;amp;&#39;</text>");
}

static void test_names_of_unix(void **state)
{
    check_escaped(*state, "a<b>&amp;", "/a&lt;b&gt;&amp;amp;</text>");
}

int main(void)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_good),
        TEST(test_lenses),
        TEST(test_panoramas),
        TEST(test_spread),
        TEST(test_images),
        TEST(test_deleted_images),
        TEST(test_masks),
        TEST(test_poses),
        TEST(test_scale),
        TEST(test_intrinsics),
        TEST(test_nothing_to_see),
        TEST(test_points),
        TEST(test_drawing),
        TEST(test_drawing_is_escaped),
        TEST(test_names_of_unix),
        TEST(test_times),
        TEST(test_unread_keys),
        TEST(test_models),
        TEST(test_far_from_the_origin),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
