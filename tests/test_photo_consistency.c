/* Tests the check of poses against pictures: captures of a patterned ball, sound ones and ones with
 * wrong poses, lenses, points or pictures, in the output of vknerf info and in the warning. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include <vknerf/context.h>
#include <vknerf/scene.h>

#include "captures.h"
#include "scene/inspect.h"

#define VIEWS  12u
#define WIDTH  48u
#define HEIGHT 36u
#define POINTS 900u

/* Faults of a capture. */
struct fault {
    bool untracked;   /* the model has no tracks */
    bool swapped;     /* view i has the pose of view i + VIEWS / 2 */
    bool two_swapped; /* views 3 and 9 are swapped */
    bool turned;      /* y and z axes of OpenGL cameras instead of OpenCV's */
    bool shell;       /* half of the points are not on the ball but in front of it */
    bool random_colors, one_color;
    bool grey_points, grey_pictures; /* black and white */
    bool fisheye;
    bool exposure; /* each picture has its own */
    double focal;  /* factor of the true focal length */
    double turn;   /* rotation of each camera, in radians, alternating in sign */
};

static const double middle[3] = {1, 2, 3};

static uint32_t random_state;

static double random_number(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) / 16777216.0;
}

/* The pattern on the ball, and with another `kind` that of the surroundings. */
static void paint(const double direction[3], double kind, double color[3])
{
    for (int i = 0; i < 3; i++) {
        double wave = sin((5 + kind) * direction[i] + 2 * kind) +
                      sin(4 * direction[(i + 1) % 3] - kind * (i + 1));
        color[i] = 127.5 + 55 * wave;
    }
}

/* Computes the colour along a ray of unit direction. */
static void shade(const double origin[3], const double direction[3], double color[3])
{
    double along = 0, squared = -1, at[3], hit;
    for (int i = 0; i < 3; i++) {
        double o = origin[i] - middle[i];
        along -= o * direction[i];
        squared += o * o;
    }
    double inside = along * along - squared;
    if (inside < 0) {
        paint(direction, 3, color);
        return;
    }
    hit = along - sqrt(inside);
    for (int i = 0; i < 3; i++)
        at[i] = origin[i] + hit * direction[i] - middle[i];
    paint(at, 0, color);
}

/* ---- captures -------------------------------------------------------------------------------- */

static unsigned pose_of(const struct fault *fault, unsigned view)
{
    if (fault->swapped)
        return (view + VIEWS / 2) % VIEWS;
    return fault->two_swapped && view == 3 ? 9 : fault->two_swapped && view == 9 ? 3 : view;
}

/* World-to-camera pose of a view in the model: y down, z forward, as in COLMAP. */
static void model_camera(const struct fault *fault, unsigned view, double axes[3][3],
                         double position[3])
{
    known_camera(pose_of(fault, view), VIEWS, axes, position);
    double angle = view % 2 ? fault->turn : -fault->turn, c = cos(angle), s = sin(angle);
    for (int i = 0; i < 3; i++) {
        double x = axes[0][i], z = axes[2][i];
        axes[0][i] = c * x + s * z;
        axes[2][i] = c * z - s * x;
        axes[1][i] *= fault->turned ? -1 : 1;
        axes[2][i] *= fault->turned ? -1 : 1;
    }
}

/* Quaternion of a rotation matrix, by its largest component (Shepperd 1978). */
static void quaternion_of(double r[3][3], double q[4])
{
    double best = r[0][0] + r[1][1] + r[2][2];
    int largest = 0;
    for (int i = 0; i < 3; i++)
        if (r[i][i] > best) {
            best = r[i][i];
            largest = i + 1;
        }
    int i = largest > 0 ? largest - 1 : 0, j = (i + 1) % 3, k = (i + 2) % 3;
    if (largest == 0) {
        q[0] = 0.5 * sqrt(1 + best);
        for (int n = 0; n < 3; n++)
            q[1 + n] = (r[(n + 2) % 3][(n + 1) % 3] - r[(n + 1) % 3][(n + 2) % 3]) / (4 * q[0]);
        return;
    }
    q[1 + i] = 0.5 * sqrt(1 + r[i][i] - r[j][j] - r[k][k]);
    q[0] = (r[k][j] - r[j][k]) / (4 * q[1 + i]);
    q[1 + j] = (r[j][i] + r[i][j]) / (4 * q[1 + i]);
    q[1 + k] = (r[k][i] + r[i][k]) / (4 * q[1 + i]);
}

static void add_point(struct base_text *text, const struct fault *fault, unsigned number)
{
    bool shell = fault->shell && number % 2 == 1;
    double u = 2 * random_number() - 1, angle = 6.283185307179586 * random_number();
    double flat = sqrt(1 - u * u), radius = shell ? 1.6 : 1, color[3];
    const double direction[3] = {flat * cos(angle), flat * sin(angle), u};
    paint(direction, shell ? 5 : 0, color);
    for (int i = 0; i < 3 && fault->grey_points; i++)
        color[i] = i == 0 ? (color[0] + color[1] + color[2]) / 3 : color[0];
    base_text_add(text, "%u", number + 1);
    for (int i = 0; i < 3; i++)
        base_text_add(text, " %.9g", middle[i] + radius * direction[i]);
    for (int i = 0; i < 3; i++)
        base_text_add(text, " %d",
                      fault->one_color
                          ? 90
                          : (int)(fault->random_colors ? 255.9 * random_number() : color[i]));
    base_text_add(text, " 0.5");
    for (unsigned view = 0; view < VIEWS && !fault->untracked && !shell; view++) {
        double axes[3][3], position[3], facing = -1;
        known_camera(view, VIEWS, axes, position);
        for (int i = 0; i < 3; i++)
            facing += (position[i] - middle[i]) * direction[i];
        if (facing > 0.5)
            base_text_add(text, " %u 0", 20 + view);
    }
    base_text_add(text, "\n");
}

static void write_model(struct temporary *folder, const struct fault *fault)
{
    struct base_text cameras = {0}, images = {0}, points = {0};
    double focal = 54 * (fault->focal > 0 ? fault->focal : 1);
    base_text_add(&cameras, "1 %s %u %u %.9g %.9g 24.6 17.4 %s\n",
                  fault->fisheye ? "OPENCV_FISHEYE" : "OPENCV", WIDTH, HEIGHT, focal, focal,
                  fault->fisheye ? "0.02 0 0 0" : "-0.1 0.02 0.001 0.002");
    for (unsigned view = 0; view < VIEWS; view++) {
        double axes[3][3], position[3], q[4];
        model_camera(fault, view, axes, position);
        quaternion_of(axes, q);
        base_text_add(&images, "%u %.9g %.9g %.9g %.9g", 20 + view, q[0], q[1], q[2], q[3]);
        for (int i = 0; i < 3; i++)
            base_text_add(
                &images, " %.9g",
                -(axes[i][0] * position[0] + axes[i][1] * position[1] + axes[i][2] * position[2]));
        base_text_add(&images, " 1 %02u.png\n\n", view);
    }
    random_state = 7;
    for (unsigned i = 0; i < POINTS; i++)
        add_point(&points, fault, i);
    temporary_text(folder, "sparse/0/cameras.txt", cameras.data);
    temporary_text(folder, "sparse/0/images.txt", images.data);
    temporary_text(folder, "sparse/0/points3D.txt", points.data);
    free(cameras.data);
    free(images.data);
    free(points.data);
}

static struct vkn_scene *open_capture(const struct temporary *folder)
{
    const struct scene_options options = {.path = folder->path};
    struct vkn_scene *scene = NULL;
    assert_ok(scene_open(&options, &scene));
    return scene;
}

/* Pictures of the sound capture for either lens, rendered once. */
static uint8_t seen[2][VIEWS][WIDTH * HEIGHT][3];
static bool rendered[2];

static void render(const struct vkn_scene *scene, const struct scene_camera *camera,
                   uint8_t (*pixels)[3])
{
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        double origin[3], point[3], direction[3], color[3];
        uint32_t row = i / WIDTH;
        scene_camera_ray(camera, i % WIDTH + 0.5, row + 0.5, origin, direction);
        for (int k = 0; k < 3; k++)
            point[k] = (origin[k] - (double)scene->offset[k]) / (double)scene->scale;
        shade(point, direction, color);
        for (int k = 0; k < 3; k++)
            pixels[i][k] = (uint8_t)color[k];
    }
}

static void render_all(struct temporary *folder, bool fisheye)
{
    struct fault sound = {.fisheye = fisheye};
    write_model(folder, &sound);
    struct vkn_scene *scene = open_capture(folder);
    for (unsigned view = 0; view < VIEWS && !rendered[fisheye]; view++) {
        char name[32];
        snprintf(name, sizeof name, "/%02u.png", view);
        render(scene, camera_of(scene, name), seen[fisheye][view]);
    }
    rendered[fisheye] = true;
    scene_close(&scene);
}

/* Each pixel becomes `times` x `times` pixels. */
static void write_enlarged(const char *path, const uint8_t *pixels, uint32_t times)
{
    uint32_t width = times * WIDTH, height = times * HEIGHT;
    uint8_t *large = base_alloc((size_t)width * height, 4);
    assert_non_null(large);
    for (uint32_t i = 0; i < width * height; i++)
        memcpy(large + (size_t)4 * i,
               pixels + (size_t)4 * (i / width / times * WIDTH + i % width / times), 4);
    assert_ok(scene_image_write_png(path, large, width, height, 4));
    free(large);
}

/* Writes pictures `times` as large. Small ones in `images` are needed to create cameras. */
static void write_pictures(struct temporary *folder, const struct fault *fault, const char *images,
                           uint32_t times)
{
    render_all(folder, fault->fisheye);
    for (unsigned view = 0; view < VIEWS; view++) {
        char name[32];
        uint8_t pixels[4 * WIDTH * HEIGHT];
        double gain = fault->exposure ? 0.5 + 0.04 * view : 1,
               offset = fault->exposure ? 60.0 - 5 * view : 0;
        snprintf(name, sizeof name, "%s/%02u.png", images, view);
        for (uint32_t i = 0; i < 4 * WIDTH * HEIGHT; i++) {
            if (i % 4 == 3) {
                pixels[i] = 255;
            } else {
                const uint8_t *pixel = seen[fault->fisheye][view][i / 4];
                double grey = (pixel[0] + pixel[1] + pixel[2]) / 3.0;
                pixels[i] = (uint8_t)(gain * (fault->grey_pictures ? grey : pixel[i % 4]) + offset);
            }
        }
        write_enlarged(temporary_path(folder, name), pixels, times);
    }
}

static void write_capture(struct temporary *folder, const struct fault *fault)
{
    for (unsigned view = 0; view < VIEWS; view++) { /* needed to open the scene */
        char name[32];
        snprintf(name, sizeof name, "images/%02u.png", view);
        temporary_picture(folder, name, WIDTH, HEIGHT, 0);
    }
    write_pictures(folder, fault, "images", 1);
    write_model(folder, fault);
}

/* ---- messages ------------------------------------------------------------------------------ */

static cJSON *inspect(const struct temporary *folder)
{
    struct vkn_scene_info_params params = {.scene = folder->path};
    char *text = NULL;
    assert_ok(vkn_scene_info_json(&params, &text));
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    free(text);
    return json;
}

static const cJSON *measured(const cJSON *json, const char *name)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(json, "photo_consistency"), name);
}

/* Fails unless a reported problem contains `part`. NULL: none may be about pictures. */
static void assert_problem(const cJSON *json, const char *part)
{
    const cJSON *problem, *found = NULL;
    cJSON_ArrayForEach (problem, cJSON_GetObjectItem(json, "problems")) {
        const char *text = cJSON_GetObjectItem(problem, "problem")->valuestring;
        if (strstr(text, part != NULL ? part : "picture") != NULL)
            found = problem;
    }
    if ((found != NULL) != (part != NULL))
        fail_msg("%s", cJSON_Print(json));
}

static cJSON *check(struct temporary *folder, const struct fault *fault, const char *problem)
{
    write_model(folder, fault);
    cJSON *json = inspect(folder);
    assert_problem(json, problem);
    return json;
}

/* Returns the views whose "fits" is false, as bits. */
static unsigned poor_views(const cJSON *json)
{
    const cJSON *view;
    unsigned found = 0;
    cJSON_ArrayForEach (view, measured(json, "per_view")) {
        const char *name = cJSON_GetObjectItem(view, "image")->valuestring + strlen("images/");
        unsigned number = (unsigned)strtoul(name, NULL, 10);
        found |= cJSON_IsFalse(cJSON_GetObjectItem(view, "fits")) ? 1u << number : 0;
    }
    return found;
}

static void test_sound(void **state)
{
    struct temporary *folder = *state;
    static const struct fault sound[] = {{0},
                                         {.untracked = true},
                                         {.exposure = true},
                                         {.exposure = true, .untracked = true},
                                         {.grey_points = true},
                                         {.grey_pictures = true, .untracked = true},
                                         {.fisheye = true},
                                         {.fisheye = true, .untracked = true}};
    for (size_t i = 0; i < BASE_COUNT(sound); i++) {
        write_capture(folder, &sound[i]);
        cJSON *json = check(folder, &sound[i], NULL);
        assert_int_equal(cJSON_GetArraySize(measured(json, "per_view")), VIEWS);
        assert_string_equal(measured(json, "by")->valuestring,
                            sound[i].untracked ? "nearest points" : "tracked points");
        assert_true(measured(json, "fit")->valuedouble > 0.8 &&
                    measured(json, "fit")->valuedouble <= 1);
        assert_int_equal(poor_views(json), 0);
        cJSON_Delete(json);
    }
}

static void test_wrong(void **state)
{
    struct temporary *folder = *state;
    static const struct fault faults[] = {
        {.swapped = true}, {.focal = 1.5}, {.turn = 0.1}, {.turned = true}};
    write_capture(folder, &faults[0]);
    for (size_t i = 0; i < 2 * BASE_COUNT(faults); i++) {
        struct fault fault = faults[i / 2];
        fault.untracked = i % 2 == 1;
        bool blind = fault.turned && fault.untracked;
        cJSON *json = check(
            folder, &fault,
            blind ? "12 of 12 views have hardly any of the 900 sparse points in their pictures"
                  : "views do not fit their pictures: the colours of the sparse points");
        assert_int_equal(poor_views(json), (1u << VIEWS) - 1);
        if (!blind)
            assert_true(measured(json, "fit")->valuedouble < 0.4);
        cJSON_Delete(json);
    }
}

static void test_some(void **state)
{
    struct temporary *folder = *state;
    struct fault fault = {.two_swapped = true};
    write_capture(folder, &fault);
    for (int i = 0; i < 2; i++, fault.untracked = true) {
        cJSON *json = check(folder, &fault, "the poses of 2 of 12 views do not fit their pictures");
        assert_problem(json, ": images/03.png (");
        assert_problem(json, ", images/09.png (");
        assert_int_equal(poor_views(json), 1u << 3 | 1u << 9);
        assert_int_equal(measured(json, "poor")->valueint, 2);
        cJSON_Delete(json);
    }
}

static void test_folded(void **state)
{
    struct temporary *folder = *state;
    const struct fault fault = {.shell = true};
    write_capture(folder, &fault);
    cJSON *json = check(folder, &fault, "parts of the model may overlap");
    assert_true(measured(json, "fit")->valuedouble > 0.8 &&
                measured(json, "nearest_fit")->valuedouble < 0.4);
    assert_int_equal(poor_views(json), 0);
    cJSON_Delete(json);
}

/* Random point clouds that other programs use as a start tell nothing about poses, right or wrong.
 */
static void test_silent(void **state)
{
    struct temporary *folder = *state;
    static const struct fault faults[] = {{.random_colors = true, .swapped = true},
                                          {.one_color = true, .swapped = true}};
    write_capture(folder, &faults[0]);
    for (size_t i = 0; i < BASE_COUNT(faults); i++) {
        cJSON *json = check(folder, &faults[i], NULL);
        assert_non_null(
            strstr(measured(json, "not_checked")->valuestring, "no colours, or random ones"));
        cJSON_Delete(json);
    }
    static const char few[] = "1 1 2 3 9 9 9 0.5\n2 1 2 4 90 9 9 0.5\n";
    temporary_file(folder, "sparse/0/points3D.txt", few, strlen(few));
    cJSON *json = inspect(folder);
    assert_string_equal(measured(json, "not_checked")->valuestring,
                        "there are fewer than 24 sparse points");
    cJSON_Delete(json);
    unlink(temporary_path(folder, "sparse/0/points3D.txt"));
    json = inspect(folder);
    assert_problem(json, NULL);
    assert_string_equal(measured(json, "not_checked")->valuestring, "there are no sparse points");
    cJSON_Delete(json);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void cut_off(const char *path)
{
    assert_int_equal(truncate(path, 600), 0);
}

static void test_broken_picture(void **state)
{
    struct temporary *folder = *state;
    const struct fault sound = {0};
    write_capture(folder, &sound);
    cut_off(temporary_path(folder, "images/05.png"));
    cJSON *json = check(folder, &sound, NULL);
    assert_int_equal(cJSON_GetArraySize(measured(json, "per_view")), VIEWS - 1);
    cJSON_Delete(json);
}

/* If small copies exist, large pictures are not decoded: here they are broken. */
static void test_copies(void **state)
{
    struct temporary *folder = *state;
    const struct fault sound = {0};
    uint8_t *rows = base_alloc((size_t)32 * 32, (size_t)WIDTH * HEIGHT), *png = NULL;
    size_t size = 0;
    assert_non_null(rows);
    assert_ok(scene_image_encode_png(rows, 32 * WIDTH, 32 * HEIGHT, 1, &png, &size));
    free(rows);
    write_capture(folder, &sound);
    write_pictures(folder, &sound, "images_4", 8);
    for (unsigned view = 0; view < VIEWS; view++) {
        char name[32];
        snprintf(name, sizeof name, "images/%02u.png", view);
        temporary_file(folder, name, png, 600);
    }
    free(png);
    cJSON *json = check(folder, &sound, NULL);
    assert_int_equal(cJSON_GetArraySize(measured(json, "per_view")), VIEWS);
    cJSON_Delete(json);
}

/* ---- the warning ----------------------------------------------------------------------------- */

static void store_line(void *user, enum vkn_log_level level, const char *line)
{
    struct base_text *lines = user;
    base_text_add(lines, "%s%s\n", level == VKN_LOG_WARNING ? "warning: " : "", line);
}

static void test_warning(void **state)
{
    struct temporary *folder = *state;
    static const struct fault faults[] = {{0}, {.two_swapped = true}};
    write_capture(folder, &faults[0]);
    for (size_t i = 0; i < BASE_COUNT(faults); i++) {
        struct base_text lines = {0};
        write_model(folder, &faults[i]);
        struct vkn_scene *scene = open_capture(folder);
        assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
        vkn_log_to(store_line, &lines);
        scene_warn_consistency(scene);
        vkn_log_to(NULL, NULL);
        assert_int_equal(lines.data != NULL, i > 0);
        if (i > 0) {
            const char *end = strchr(lines.data, '\n');
            assert_non_null(end);
            assert_string_equal(end, "\n"); /* one line */
            assert_ptr_equal(strstr(lines.data, "warning: "), lines.data);
            assert_non_null(strstr(lines.data, "2 of 12 views do not fit their pictures"));
            assert_non_null(strstr(lines.data, "images/09.png ("));
            assert_non_null(strstr(lines.data, "take these views out"));
        }
        free(lines.data);
        scene_close(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sound, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_wrong, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_some, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_folded, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_silent, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_broken_picture, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_copies, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_warning, temporary_setup, temporary_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
