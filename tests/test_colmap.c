/* Tests COLMAP's sparse models, binary and text: cameras of every model against known projections,
 * points, missing images, detection among other formats, and refused files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include <vknerf/context.h>

#include "captures.h"
#include "colmap_lenses.h"
#include "scene/colmap.h"
#include "scene/inspect.h"
#include "scene/space.h"

/* ---- models with known answers --------------------------------------------------------------- */

/* Image i has camera id 10 + i and image id 100 - i. */
static void image_pose(unsigned index, double q[4], double t[3])
{
    double axes[3][3], position[3];
    known_camera(index, IMAGES, axes, position);
    quaternion_of(axes, q);
    for (int i = 0; i < 3; i++)
        t[i] = -(axes[i][0] * position[0] + axes[i][1] * position[1] + axes[i][2] * position[2]);
    for (int i = 0; i < 4 && index == 3; i++)
        q[i] *= -2; /* the same rotation */
}

static const struct {
    double position[3];
    uint8_t color[3];
    uint32_t track[4];
} points[] = {
    {{1.3, 1.8, 3.1}, {10, 20, 30}, {100, 99, 98, 97}},
    {{0.2, 2.9, 3.4}, {200, 0, 255}, {100, 96, 95, 12345}}, /* 12345: no such image */
    {{1.9, 1.2, 2.3}, {1, 2, 3}, {100, 94, 93, 97}},
};

/* ---- writing --------------------------------------------------------------------------------- */

struct texts {
    struct base_text cameras, images, points;
};

static void free_texts(struct texts *texts)
{
    free(texts->cameras.data);
    free(texts->images.data);
    free(texts->points.data);
}

static void make_binary(struct texts *texts)
{
    *texts = (struct texts){0};
    add_u64(&texts->cameras, IMAGES);
    add_u64(&texts->images, IMAGES);
    add_u64(&texts->points, BASE_COUNT(points));
    for (unsigned i = 0; i < IMAGES; i++) {
        unsigned last = (unsigned)IMAGES - 1 - i; /* ids in descending order */
        double q[4], t[3];
        char name[32];
        add_u32(&texts->cameras, 10 + last);
        add_u32(&texts->cameras, (uint32_t)lenses[last].model);
        add_u64(&texts->cameras, WIDTH);
        add_u64(&texts->cameras, HEIGHT);
        add_doubles(&texts->cameras, lenses[last].parameters, lenses[last].count);

        image_pose(i, q, t);
        add_u32(&texts->images, 100 - i);
        add_doubles(&texts->images, q, 4);
        add_doubles(&texts->images, t, 3);
        add_u32(&texts->images, 10 + i);
        snprintf(name, sizeof(name), "a/%u.png", i);
        base_text_add_bytes(&texts->images, name, strlen(name) + 1);
        add_u64(&texts->images, i % 3);
        for (unsigned k = 0; k < i % 3; k++) {
            add_doubles(&texts->images, (const double[2]){k, k}, 2);
            add_u64(&texts->images, UINT64_MAX);
        }
    }
    for (size_t i = 0; i < BASE_COUNT(points); i++) {
        add_u64(&texts->points, 7 * i);
        add_doubles(&texts->points, points[i].position, 3);
        base_text_add_bytes(&texts->points, points[i].color, 3);
        add_doubles(&texts->points, (const double[1]){0.5}, 1);
        add_u64(&texts->points, 4);
        for (int k = 0; k < 4; k++) {
            add_u32(&texts->points, points[i].track[k]);
            add_u32(&texts->points, 0);
        }
    }
}

static void make_text(struct texts *texts)
{
    *texts = (struct texts){0};
    base_text_add(&texts->cameras, "# Camera list with one line of data per camera:\n\n");
    base_text_add(&texts->images, "# Image list with two lines of data per image:\r\n");
    for (unsigned i = 0; i < IMAGES; i++) {
        double q[4], t[3];
        image_pose(i, q, t);
        base_text_add(&texts->cameras, "%u %s %d %d", 10 + i, lenses[i].name, WIDTH, HEIGHT);
        for (unsigned k = 0; k < lenses[i].count; k++)
            base_text_add(&texts->cameras, " %.17g", lenses[i].parameters[k]);
        base_text_add(&texts->cameras, i % 2 == 0 ? "\n" : " \r\n");
        base_text_add(&texts->images, "%u", 100 - i);
        for (int k = 0; k < 7; k++)
            base_text_add(&texts->images, " %.17g", k < 4 ? q[k] : t[k - 4]);
        base_text_add(&texts->images, " %u a/%u.png\n%s\n", 10 + i, i, i % 2 == 0 ? "" : "1 2 -1");
    }
    for (size_t i = 0; i < BASE_COUNT(points); i++) {
        base_text_add(&texts->points, "%zu %.17g %.17g %.17g %u %u %u 0.5", 7 * i,
                      points[i].position[0], points[i].position[1], points[i].position[2],
                      points[i].color[0], points[i].color[1], points[i].color[2]);
        for (int k = 0; k < 4; k++)
            base_text_add(&texts->points, " %u 0", points[i].track[k]);
        base_text_add(&texts->points, "%s", i + 1 < BASE_COUNT(points) ? "\n" : "");
    }
}

static void write_texts(struct temporary *folder, const char *where, const char *ending,
                        const struct texts *texts)
{
    static const char *const names[] = {"cameras", "images", "points3D"};
    const struct base_text *const all[] = {&texts->cameras, &texts->images, &texts->points};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s.%s", where, names[i], ending);
        temporary_file(folder, name, all[i]->data, all[i]->size);
    }
}

static void make_model(struct temporary *folder, const char *where, bool binary)
{
    struct texts texts;
    (binary ? make_binary : make_text)(&texts);
    write_texts(folder, where, binary ? "bin" : "txt", &texts);
    free_texts(&texts);
}

static void make_images(struct temporary *folder, const char *images, uint32_t k)
{
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s/a/%u.png", images, i);
        temporary_picture(folder, name, WIDTH / k, HEIGHT / k, (uint8_t)i);
    }
}

/* ---- cameras --------------------------------------------------------------------------------- */

static struct vkn_scene *open_scene(const char *path, uint32_t downscale)
{
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = path, .downscale = downscale};
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->format, VKN_SCENE_COLMAP);
    return scene;
}

/* Known points project to their expected pixels, in images downscaled by k. */
static void check_cameras(const struct vkn_scene *scene, double k)
{
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[16];
        double axes[3][3], position[3], ideal[2], pixel[2];
        snprintf(name, sizeof(name), "/%u.png", i);
        known_camera(i, IMAGES, axes, position);
        for (size_t n = 0; n < BASE_COUNT(points); n++) {
            assert_true(known_ideal(axes, position, points[n].position, ideal) > 2);
            pixel_of(&lenses[i], ideal, pixel);
            assert_projects(scene, camera_of(scene, name), points[n].position, pixel[0] / k,
                            pixel[1] / k);
        }
    }
}

static void check_points(const struct vkn_scene *scene)
{
    assert_int_equal(scene->point_count, BASE_COUNT(points));
    for (size_t n = 0; n < BASE_COUNT(points); n++) {
        for (int i = 0; i < 3; i++) {
            double wanted = points[n].position[i] * scene->scale + scene->offset[i];
            assert_true(fabs(scene->points[n].position[i] - wanted) < 1e-6);
        }
        assert_memory_equal(scene->points[n].color, points[n].color, 3);
    }
}

/* scene_look_over's points have the positions that training uses. */
static void check_findings(const struct temporary *folder, const struct vkn_scene *scene)
{
    struct scene_findings findings = {0};
    struct scene_options options = {.path = folder->path};
    struct vkn_scene *again = inspect_capture(&options, &findings);
    assert_int_equal(findings.point_count, BASE_COUNT(points));
    for (size_t n = 0; n < BASE_COUNT(points); n++)
        for (int i = 0; i < 3; i++)
            assert_true(fabs(findings.points[n][i] - scene->points[n].position[i]) < 1e-6);
    scene_close(&again);
    scene_findings_free(&findings);
}

static void check_model(struct temporary *folder)
{
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, IMAGES - 1);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 1);
    assert_non_null(strstr(scene->splits[SCENE_TEST].cameras[0].image_path, "/images/a/0.png"));
    check_cameras(scene, 1);
    check_points(scene);
    check_findings(folder, scene);
    scene_close(&scene);

    scene = open_scene(folder->path, 4);
    check_cameras(scene, 4);
    scene_close(&scene);
}

static void test_both_encodings(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 1);
    make_model(folder, "sparse/0/", true);
    check_model(folder);
    /* Since 3.12 COLMAP also writes rigs and frames; `images` still has each image's own pose. */
    temporary_text(folder, "sparse/0/rigs.bin", "not read");
    temporary_text(folder, "sparse/0/frames.bin", "not read");
    check_model(folder);
    remove_tree(temporary_path(folder, "sparse"));
    make_model(folder, "sparse/0/", false);
    check_model(folder);
}

/* Only training frame 3 sees more than one of the points, and so has bounds. */
static void test_near(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    make_model(folder, "", true);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    double axes[3][3], p[3];
    known_camera(3, IMAGES, axes, p);
    double nearest = INFINITY;
    for (size_t n = 0; n < BASE_COUNT(points); n += 2) {
        const double *q = points[n].position;
        nearest =
            fmin(nearest, sqrt(pow(p[0] - q[0], 2) + pow(p[1] - q[1], 2) + pow(p[2] - q[2], 2)));
    }
    assert_true(fabs(scene->near / scene->scale - nearest) < 1e-4);
    /* The cameras look at the cube's centre, and the cube contains them. */
    assert_true(fabs(1 * scene->scale + scene->offset[0] - 0.5) < 1e-3);
    assert_true(fabs(2 * scene->scale + scene->offset[1] - 0.5) < 1e-3);
    assert_int_equal(scene->aabb_scale, 4);
    scene_close(&scene);
}

/* The points determine the cube's size: most are 20 units away, the cameras 4 to 6. */
static void test_far_points(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    make_model(folder, "", false);
    struct base_text text = {0};
    for (int i = 0; i < 50; i++) /* the last point is an outlier */
        base_text_add(&text, "%d %d 2 3 1 2 3 0.5\n", i, i < 49 ? 21 : 100000);
    temporary_file(folder, "points3D.txt", text.data, text.size);
    free(text.data);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    /* 20 units are 5.3 of training space when 5 are 1.32. */
    assert_true(scene->scale > 0.25F && scene->scale < 0.28F);
    assert_int_equal(scene->aabb_scale, 16);
    assert_true(scene->near == 0);
    scene_close(&scene);

    /* Without points the cube has the default size. */
    char *file = temporary_path(folder, "points3D.txt");
    assert_int_equal(unlink(file), 0);
    scene = open_scene(folder->path, 1);
    assert_int_equal(scene->point_count, 0);
    assert_null(scene->points);
    assert_int_equal(scene->aabb_scale, 16);
    scene_close(&scene);
}

/* ---- the training space (space.h) ------------------------------------------------------------ */

/* The nearest and the farthest 1 % of the visible points are outliers. */
static void test_bounds(void **state)
{
    (void)state;
    double distances[201];
    for (int i = 0; i < 201; i++)
        distances[i] = 10 + i * 77 % 201; /* 10 to 210 in another order */
    struct transforms_frame frame = {.bounds = {0}};
    space_set_bounds(&frame, distances, 201);
    assert_true(frame.bounds[0] == 12 && frame.bounds[1] == 208);
    for (int i = 0; i < 201; i++)
        distances[i] = 7;
    space_set_bounds(&frame, distances, 201);
    space_set_bounds(&frame, distances, 1);
    space_set_bounds(&frame, distances, 0);
    assert_true(frame.bounds[0] == 12 && frame.bounds[1] == 208);
}

/* The near distance of the scene is the 2 % quantile over the frames that have bounds. */
static void test_near_of_frames(void **state)
{
    (void)state;
    enum { COUNT = 202 };
    static struct transforms_frame frames[COUNT];
    const struct transforms_frame *list[COUNT];
    double near = -1;
    for (int i = 0; i < COUNT; i++) {
        frames[i] = (struct transforms_frame){.bounds = {10 + i * 77 % 201, 300}};
        list[i] = &frames[i];
    }
    frames[COUNT - 1].bounds[0] = frames[COUNT - 1].bounds[1] = 0;
    assert_ok(space_nearest_depth(list, COUNT, &near));
    assert_true(near == 14);
    assert_ok(space_nearest_depth(list + COUNT - 1, 1, &near));
    assert_true(near == 0);
}

/* 98 % of the points are inside the cube: the points at 0.8 count, two of 101 at 15 do not. */
static void test_side(void **state)
{
    (void)state;
    struct transforms_point cloud[101];
    struct transforms file = {.points = cloud, .point_count = 101};
    const struct transforms_frame frame = {.pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    const struct transforms_frame *const frames[] = {&frame};
    const struct space space = {.center = {0, 0.1, 0}, .scale = 2};
    static const uint32_t sides[] = {4, 4, 4, 64, 64}; /* 2 * 0.8 and 2 * 15 to each side */
    for (int far = 0; far < 5; far++) {
        uint32_t side = 0;
        for (int i = 0; i < 101; i++)
            cloud[i] = (struct transforms_point){.position = {0, i < 101 - far ? 0.9 : -14.9, 0.5}};
        assert_ok(space_cube_side(&file, frames, 1, &space, &side));
        assert_int_equal(side, sides[far]);
    }
}

/* Measures the space of two cameras 2 apart that look forwards, each turned `angle` degrees towards
 * the other; their bounds are 2 to 6 if `known`. */
static struct space measure_space(double angle, bool known)
{
    struct transforms_frame frames[2];
    const struct transforms_frame *const list[] = {&frames[0], &frames[1]};
    struct space space;
    for (int i = 0; i < 2; i++) {
        double a = (i == 0 ? angle : -angle) * acos(-1) / 180, c = cos(a), s = sin(a);
        frames[i] = (struct transforms_frame){
            .pose = {c, 0, -s, 2 * i - 1, 0, 1, 0, 0, s, 0, c, 0},
            .bounds = {known ? 2 : 0, known ? 6 : 0},
        };
    }
    assert_ok(space_measure(list, 2, &space));
    return space;
}

static void assert_space(struct space space, double z, double scale)
{
    assert_true(fabs(space.center[0]) < 1e-9 && fabs(space.center[1]) < 1e-9);
    if (!(fabs(space.center[2] - z) < 1e-9 && fabs(space.scale - scale) < 1e-9))
        fail_msg("%.9g and %.9g instead of %.9g and %.9g", space.center[2], space.scale, z, scale);
}

/* Tests the four rules on both sides of their thresholds. */
static void test_rules(void **state)
{
    (void)state;
    const double meet = 1 / tan(26.5 * acos(-1) / 180), away = sqrt(1 + meet * meet);
    assert_space(measure_space(0, true), -3, 1.32 / sqrt(10));   /* 2 / (1 / 2 + 1 / 6) ahead */
    assert_space(measure_space(25, true), -3, 1.32 / sqrt(10));  /* cosine 0.906 */
    assert_space(measure_space(26.5, true), -meet, 1.32 / away); /* 0.895 */
    assert_space(measure_space(26.5, false), -meet, 1.32 / away);
    assert_space(measure_space(-26.5, true), 0, 1.32 / 3); /* no point is in front of both */
    assert_space(measure_space(-26.5, false), 0, 0.33);
    assert_space(measure_space(0, false), 0, 0.33);
}

/* ---- folders --------------------------------------------------------------------------------- */

static void test_folders(void **state)
{
    static const char *const places[] = {"", "sparse/", "sparse/0/", "colmap/sparse/0/", "colmap/"};
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    for (size_t i = 0; i < BASE_COUNT(places); i++) {
        char name[64];
        static const char *const files[] = {"cameras", "images", "points3D"};
        make_model(folder, places[i], i % 2 == 0);
        struct vkn_scene *scene = open_scene(folder->path, 1);
        assert_int_equal(scene->splits[SCENE_TRAIN].cameras[0].width, 40);
        scene_close(&scene);
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof(name), "%s%s.%s", places[i], files[k],
                     i % 2 == 0 ? "bin" : "txt");
            assert_int_equal(unlink(temporary_path(folder, name)), 0);
        }
    }
}

/* ---- several models -------------------------------------------------------------------------- */

/* Writes a text model, without points, of the first `count` images; its camera height differs from
 * that of other models in the folder. */
static void make_small_model(struct temporary *folder, const char *where, unsigned count)
{
    struct base_text text = {0};
    char name[64];
    for (unsigned i = 0; i < count; i++)
        base_text_add(&text, "%u 1 0 0 0 %u %u 4 1 a/%u.png\n\n", i + 1, i, count, i);
    snprintf(name, sizeof(name), "%simages.txt", where);
    temporary_text(folder, name, text.data != NULL ? text.data : "");
    snprintf(name, sizeof(name), "%scameras.txt", where);
    temporary_text(folder, name, "1 PINHOLE 400 300 350 350 200 150\n");
    free(text.data);
}

/* Returns the number of images of the model that was read. */
static size_t views_at(const char *path, struct scene_findings *findings)
{
    struct scene_options options = {.path = path};
    struct vkn_scene *scene = inspect_capture(&options, findings);
    assert_int_equal(scene->format, VKN_SCENE_COLMAP);
    size_t views = 0;
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        views += scene->splits[split].camera_count;
    assert_non_null(strstr(scene->splits[SCENE_TRAIN].cameras[0].image_path, "/images/a/"));
    scene_close(&scene);
    return views;
}

/* The model with the most images is read; `others` names all models. */
static void check_models(const char *path, size_t views, const char *others)
{
    struct scene_findings findings = {0};
    assert_int_equal(views_at(path, &findings), views);
    if (others == NULL)
        assert_null(findings.others);
    else
        assert_string_equal(findings.others, others);
    scene_findings_free(&findings);
}

static void test_several_models(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    make_small_model(folder, "sparse/1/", 5);
    check_models(folder->path, 5, NULL);
    make_small_model(folder, "sparse/0/", 3);
    make_small_model(folder, "sparse/10/", 4);
    make_small_model(folder, "sparse/2/", 5);
    make_small_model(folder, "sparse/old/", 8); /* not a name of COLMAP's */
    const char *found = "sparse/1 with 5 images is taken; there is also sparse/0 with 3 images, "
                        "sparse/2 with 5 images, sparse/10 with 4 images";
    check_models(folder->path, 5, found);
    make_small_model(folder, "sparse/01/", 5); /* the same count: the first by name */
    check_models(folder->path, 5,
                 "sparse/01 with 5 images is taken; there is also sparse/0 with 3 images, sparse/1 "
                 "with 5 images, sparse/2 with 5 images, sparse/10 with 4 images");
    remove_tree(temporary_path(folder, "sparse/01"));
    /* Unreadable models are listed. */
    temporary_text(folder, "sparse/2/images.txt", "broken");
    assert_int_equal(unlink(temporary_path(folder, "sparse/10/images.txt")), 0);
    check_models(folder->path, 5,
                 "sparse/1 with 5 images is taken; there is also sparse/0 with 3 images, sparse/2, "
                 "which cannot be read, sparse/10, which cannot be read");
    /* If no model is readable, the error is that of the first model. */
    temporary_text(folder, "sparse/0/images.txt", "broken");
    temporary_text(folder, "sparse/1/images.txt", "broken");
    struct scene_options options = {.path = folder->path};
    base_log_threshold(BASE_LOG_NOTHING);
    assert_open_fails(&options, "/sparse/0/images.txt: line 1: IMAGE_ID: not a number");
    base_log_threshold(BASE_LOG_INFO);
}

static void test_many_models(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    for (unsigned i = 0; i < 9; i++) {
        char name[32];
        snprintf(name, sizeof(name), "colmap/sparse/%u/", i);
        make_small_model(folder, name, i == 7 ? 4 : 1);
    }
    check_models(folder->path, 4,
                 "colmap/sparse/7 with 4 images is taken; there is also colmap/sparse/0 with 1 "
                 "images, colmap/sparse/1 with 1 images, colmap/sparse/2 with 1 images, "
                 "colmap/sparse/3 with 1 images, colmap/sparse/4 with 1 images, colmap/sparse/5 "
                 "with 1 images, and 2 more");
}

/* A model's folder may be the scene: images and masks are found in the capture's folder. */
static void test_model_as_scene(void **state)
{
    static const char *const places[] = {"sparse/1/", "sparse/",      "colmap/sparse/0/",
                                         "colmap/",   "colmap_text/", "colmap_sparse/0/"};
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    make_small_model(folder, "sparse/0/", 3);
    for (size_t i = 0; i < BASE_COUNT(places); i++) {
        make_small_model(folder, places[i], 4);
        char *path = temporary_path(folder, places[i]);
        check_models(path, 4, NULL); /* with a trailing slash */
        path[strlen(path) - 1] = '\0';
        check_models(path, 4, NULL);
    }
    assert_int_equal(unlink(temporary_path(folder, "sparse/cameras.txt")), 0);
    check_models(temporary_path(folder, "sparse"), 4,
                 "1 with 4 images is taken; there is also 0 with 3 images");
    temporary_picture(folder, "masks/a/0.png", 3, 3, 0);
    struct scene_options options = {.path = temporary_path(folder, "sparse/1")};
    assert_open_fails(&options, "/masks/a/0.png: ");
    /* Images beside the model have precedence; missing images are reported for the capture's
     * folder. */
    make_images(folder, "sparse/1/images", 10);
    check_models(options.path, 4, NULL);
    remove_tree(temporary_path(folder, "sparse/1/images"));
    remove_tree(temporary_path(folder, "images"));
    char *path = realpath(folder->path, NULL);
    char *message = base_format("neither images nor images_N is in %s", path);
    assert_open_fails(&options, message);
    free(message);
    free(path);
}

/* Images of the requested size come from their folder; binary files precede text files. */
static void test_smaller_images(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 2);
    make_images(folder, "images_4", 8);
    temporary_text(folder, "cameras.txt", "not read");
    make_model(folder, "", true);
    char *given = temporary_path(folder, "images_4/a/5.png");
    char *renamed = temporary_path(folder, "images_4/a/5.JPG"); /* its content is PNG */
    assert_int_equal(rename(given, renamed), 0);
    struct vkn_scene *scene = open_scene(folder->path, 4);
    assert_int_equal(scene->downscale, 4);
    assert_int_equal(scene->load_downscale, 1);
    assert_string_equal(camera_of(scene, "/5.JPG")->image_path, renamed);
    assert_int_equal(camera_of(scene, "/5.JPG")->width, 50);
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    scene_close(&scene);
}

static void test_missing_images(void **state)
{
    struct temporary *folder = *state;
    make_images(folder, "images", 10);
    make_model(folder, "", true);
    assert_int_equal(unlink(temporary_path(folder, "images/a/0.png")), 0);
    assert_int_equal(unlink(temporary_path(folder, "images/a/4.png")), 0);
    base_log_threshold(BASE_LOG_NOTHING);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    base_log_threshold(BASE_LOG_INFO);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, IMAGES - 3);
    assert_non_null(strstr(scene->splits[SCENE_TEST].cameras[0].image_path, "/1.png"));
    scene_close(&scene);

    remove_tree(temporary_path(folder, "images/a"));
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, "images.bin: images: not one of the 8 images exists in");
    remove_tree(temporary_path(folder, "images"));
    assert_open_fails(&options, "images.bin: its images: neither images nor images_N is in");
}

/* `vknerf info` reports broken images; training refuses them. */
static void test_broken_image(void **state)
{
    struct temporary *folder = *state;
    struct scene_findings findings = {0};
    struct scene_options options = {.path = folder->path};
    make_images(folder, "images", 10);
    make_model(folder, "", true);
    assert_int_equal(truncate(temporary_path(folder, "images/a/2.png"), 20), 0);
    assert_int_equal(unlink(temporary_path(folder, "images/a/4.png")), 0);
    assert_open_fails(&options, "/images/a/2.png: truncated PNG");
    struct vkn_scene *scene = inspect_capture(&options, &findings);
    assert_int_equal(findings.broken, 1);
    assert_int_equal(findings.missing, 1);
    assert_non_null(strstr(findings.first_broken, "/images/a/2.png: truncated PNG"));
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, IMAGES - 3);
    scene_close(&scene);
    scene_findings_free(&findings);
}

/* ---- detection ------------------------------------------------------------------------------- */

/* The precedence of formats in one folder: each is removed in turn. */
static void test_precedence(void **state)
{
    struct temporary *folder = *state;
    static const char transforms[] =
        "{\"fl_x\": 35, \"frames\": [{\"file_path\": \"images/a/0.png\", \"transform_matrix\": "
        "[[1,0,0,0],[0,1,0,0],[0,0,1,0]]}]}";
    static const char poses[] = "\x93NUMPY\x01\x00\x40\x00{'descr': '<f8', 'fortran_order': False, "
                                "'shape': (0, 17)}        \n";
    make_images(folder, "images", 10);
    make_model(folder, "sparse/0/", true);
    char *npy = temporary_file(folder, "poses_bounds.npy", poses, sizeof(poses) - 1);
    char *json = temporary_text(folder, "transforms.json", transforms);

    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = folder->path};
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->format, VKN_SCENE_TRANSFORMS);
    scene_close(&scene);
    options.format = VKN_SCENE_COLMAP;
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->format, VKN_SCENE_COLMAP);
    scene_close(&scene);
    options.format = VKN_SCENE_LLFF;
    assert_open_fails(&options, "/poses_bounds.npy: shape: (0, 17)");
    options.path = json;
    assert_open_fails(&options, "transforms.json: this file is not a scene in the format llff");
    options.path = "/nowhere";
    assert_open_fails(&options, "/nowhere: there is no such file or folder");

    options = (struct scene_options){.path = folder->path};
    assert_int_equal(unlink(json), 0);
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->format, VKN_SCENE_COLMAP);
    scene_close(&scene);
    remove_tree(temporary_path(folder, "sparse"));
    assert_open_fails(&options, "/poses_bounds.npy: shape: (0, 17)");
    assert_int_equal(unlink(npy), 0);
    temporary_text(folder, "notes.txt", "");
    assert_open_fails(&options, ": no scene in this folder, but photographs without poses in ");
    remove_tree(temporary_path(folder, "images"));
    assert_open_fails(&options,
                      ": no scene in this folder (none of transforms_train.json, "
                      "transforms.json; cameras.bin or cameras.txt here or in sparse/0, ");
    assert_error("poses_bounds.npy");
    options.format = VKN_SCENE_COLMAP;
    assert_open_fails(&options, ": no scene of the format colmap in this folder (cameras.bin or");
}

/* ---- refused files --------------------------------------------------------------------------- */

/* Parses a copy of exactly `size` bytes and a terminating zero, so that the sanitizer sees
 * overruns. */
static vkn_status parse(colmap_parser *parser, const char *file, const void *data, size_t size)
{
    struct colmap model = {0};
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    copy[size] = '\0';
    vkn_status status = parser(file, copy, size, &model);
    colmap_free(&model);
    free(copy);
    return status;
}

/* A binary file that is truncated or has trailing bytes is refused. */
static void check_truncated(colmap_parser *parser, const char *file, struct base_text *text)
{
    assert_ok(parse(parser, file, text->data, text->size));
    for (size_t size = 0; size < text->size; size++) {
        assert_int_equal(parse(parser, file, text->data, size), VKN_BAD_INPUT);
        assert_error(file);
    }
    base_text_add_bytes(text, "x", 1);
    assert_int_equal(parse(parser, file, text->data, text->size), VKN_BAD_INPUT);
    assert_error("1 bytes too many after the last ");
    /* A count beyond the file's size is refused before memory is allocated. */
    memset(text->data, 0xff, 7);
    assert_int_equal(parse(parser, file, text->data, text->size), VKN_BAD_INPUT);
    assert_error(" do not fit into the ");
}

static void test_truncated(void **state)
{
    (void)state;
    struct texts texts;
    make_binary(&texts);
    check_truncated(colmap_binary_cameras, "cameras.bin", &texts.cameras);
    check_truncated(colmap_binary_images, "images.bin", &texts.images);
    check_truncated(colmap_binary_points, "points3D.bin", &texts.points);
    free_texts(&texts);
}

static void check_camera_refused(uint32_t model, uint64_t width, double parameter,
                                 const char *message)
{
    struct base_text text = {0};
    add_u64(&text, 1);
    add_u32(&text, 3);
    add_u32(&text, model);
    add_u64(&text, width);
    add_u64(&text, 100);
    const double parameters[16] = {parameter, 50, 50};
    add_doubles(&text, parameters, model == 0 ? 3 : 16);
    assert_int_equal(parse(colmap_binary_cameras, "cameras.bin", text.data, text.size),
                     VKN_BAD_INPUT);
    assert_error(message);
    free(text.data);
}

static void test_bad_cameras(void **state)
{
    (void)state;
    check_camera_refused(6, 100, 90, "cameras.bin: camera 3: model FULL_OPENCV is not supported");
    check_camera_refused(11, 100, 90,
                         "camera 3: model RAD_TAN_THIN_PRISM_FISHEYE is not supported");
    check_camera_refused(7, 100, 90, "camera 3: model FOV is not supported");
    check_camera_refused(12, 100, 90, "camera 3: model SIMPLE_DIVISION is not supported");
    check_camera_refused(13, 100, 90, "camera 3: model DIVISION is not supported");
    check_camera_refused(16, 100, 90, "camera 3: model EUCM is not supported");
    check_camera_refused(17, 100, 90,
                         "camera 3: parameter 1 of EQUIRECTANGULAR, 90, is out of range");
    check_camera_refused(99, 100, 90, "cameras.bin: camera 3: model number 99 is not supported");
    check_camera_refused((uint32_t)-1, 100, 90, "camera 3: model number -1 is not supported");
    check_camera_refused(0, 0, 90, "cameras.bin: camera 3: width 0 is out of range");
    check_camera_refused(0, UINT64_MAX, 90, "cameras.bin: camera 3: width 1.84467e+19 is out of");
    check_camera_refused(0, 100, 0, "camera 3: parameter 1 of SIMPLE_PINHOLE, 0, is out of range");
    check_camera_refused(0, 100, NAN, "camera 3: parameter 1 of SIMPLE_PINHOLE, ");
}

/* COLMAP's camera models without distortion. */
static void test_plain_models(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum vkn_lens lens;
        double focal[2];
    } cases[] = {
        {"1 SIMPLE_PINHOLE 100 80 60 49 41", VKN_LENS_PERSPECTIVE, {60, 60}},
        {"1 SIMPLE_FISHEYE 100 80 60 49 41", VKN_LENS_FISHEYE, {60, 60}},
        {"1 FISHEYE 100 80 60 61 49 41", VKN_LENS_FISHEYE, {60, 61}},
        {"1 EQUIRECTANGULAR 100 80 100 80", VKN_LENS_EQUIRECTANGULAR, {0, 0}},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct colmap model = {0};
        assert_ok(colmap_text_cameras("x.txt", cases[i].text, strlen(cases[i].text), &model));
        const struct transforms_lens *lens = &model.cameras[0].lens;
        assert_int_equal(lens->kind, cases[i].lens);
        assert_true(lens->focal[0] == cases[i].focal[0] && lens->focal[1] == cases[i].focal[1]);
        assert_true(cases[i].focal[0] == 0 ? isnan(lens->center[0]) : lens->center[0] == 49);
        /* The width of a panorama is 360 degrees. */
        struct scene_camera camera = {0};
        lens_apply(lens, 100, 80, 1, &camera);
        if (cases[i].focal[0] == 0)
            assert_true(fabs(camera.focal_x * 2 * acos(-1) - 100) < 1e-4);
        colmap_free(&model);
    }
}

/* A transforms.json with the same parameter names gives the same lens. */
static void test_as_transforms(void **state)
{
    (void)state;
    for (size_t i = 0; i < IMAGES; i++) {
        const struct lens *lens = &lenses[i];
        struct transforms_lens read[2] = {lens_none, lens_none};
        struct scene_camera cameras[2] = {{0}};
        const double size[2] = {WIDTH, HEIGHT};
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "camera_model", lens->name);
        const struct {
            const char *name;
            double value;
        } keys[] = {{"w", WIDTH},         {"h", HEIGHT},      {"fl_x", lens->f[0]},
                    {"fl_y", lens->f[1]}, {"cx", lens->c[0]}, {"cy", lens->c[1]},
                    {"k1", lens->k[0]},   {"k2", lens->k[1]}, {"k3", lens->k[2]},
                    {"k4", lens->k[3]},   {"p1", lens->p[0]}, {"p2", lens->p[1]},
                    {"sx1", lens->p[2]},  {"sy1", lens->p[3]}};
        for (size_t k = 0; k < BASE_COUNT(keys); k++)
            cJSON_AddNumberToObject(json, keys[k].name, keys[k].value);
        assert_ok(lens_read(json, "x.json", &read[0]));
        assert_ok(lens_from_model(lens_model_by_id(lens->model), "x.bin", size, lens->parameters,
                                  &read[1]));
        cJSON_Delete(json);
        for (int n = 0; n < 2; n++)
            lens_apply(&read[n], WIDTH, HEIGHT, 1, &cameras[n]);
        assert_memory_equal(&cameras[0], &cameras[1], sizeof *cameras);
    }
}

static void check_text(colmap_parser *parser, const char *text, const char *message)
{
    assert_int_equal(parse(parser, "x.txt", text, strlen(text)), VKN_BAD_INPUT);
    assert_error(message);
}

static void test_bad_text(void **state)
{
    (void)state;
    check_text(colmap_text_cameras, "# a\n1 FOV 4 3 2 1 1 1 1\n",
               "x.txt: line 2: camera 1: model FOV is not supported");
    check_text(colmap_text_cameras, "1", "x.txt: line 1: MODEL: missing");
    check_text(colmap_text_cameras, "one", "x.txt: line 1: CAMERA_ID: not a number");
    check_text(colmap_text_cameras, "-1 PINHOLE", "x.txt: line 1: CAMERA_ID: not a whole number");
    check_text(colmap_text_cameras, "1.5 PINHOLE", "x.txt: line 1: CAMERA_ID: not a whole number");
    check_text(colmap_text_cameras, "1 PINHOLE 4", "x.txt: line 1: HEIGHT: missing");
    check_text(colmap_text_cameras, "1 PINHOLE 4 3.5 1 1 2 2",
               "x.txt: line 1: HEIGHT: not a whole number");
    check_text(colmap_text_cameras, "1 PINHOLE 0x4 3 1 1 2 2",
               "x.txt: line 1: WIDTH: not a number");
    check_text(colmap_text_cameras, "1 PINHOLE 4 3 1 1 2", "x.txt: line 1: PARAMS: missing");
    check_text(colmap_text_cameras, "1 PINHOLE 4 3 1 1 2 2 2", "PARAMS: more than the model has");
    check_text(colmap_text_cameras, "1 PINHOLE 4 3 1e999 1 2 2", "PARAMS: not a finite number");
    check_text(colmap_text_cameras, "1 PINHOLE 4 3 nan 1 2 2", "PARAMS: not a finite number");
    check_text(colmap_text_cameras, "1 PINHOLE 4 -3 1 1 2 2",
               "camera 1: height -3 is out of range");
    check_text(colmap_text_images, "5 1 0 0 0 1 2 3 7", "x.txt: line 1: NAME: missing");
    check_text(colmap_text_images, "5 1 0 0 0 1 2 3x 7 n", "x.txt: line 1: TZ: not a number");
    check_text(colmap_text_images, "5 1 0 0 0 1 2 3 7 a b.png\n\n6 1",
               "x.txt: line 3: QX: missing");
    check_text(colmap_text_points, "1 2 3 4 5 6 256 1", "x.txt: line 1: B: not from 0 to 255");
    check_text(colmap_text_points, "1 2 3 4 5 6 7 8 9", "x.txt: line 1: TRACK: missing");
    check_text(colmap_text_points, "1 2 3 4 5 6 7", "x.txt: line 1: ERROR: missing");
    assert_int_equal(parse(colmap_text_points, "x.txt", "1 2\0 3", 6), VKN_BAD_INPUT);
    assert_error("x.txt: not a text (byte 3 is zero)");
}

/* An image has two lines, or one where no image has points; else the error names the line. */
static void test_image_lines(void **state)
{
    (void)state;
#define IMAGE(id, name) #id " 1 0 0 0 1 2 3 7 " name "\n"
    static const struct {
        const char *text;
        size_t images;
    } good[] = {
        {IMAGE(1, "a.png") "\n" IMAGE(2, "b c 3.png") "5 6 -1 7.5 nan 12\n", 2},
        {IMAGE(1, "a.png") "5 6 -1\n" IMAGE(2, "b.png"), 2},
        {IMAGE(1, "2024-01-31") IMAGE(2, "my photograph 2.png") IMAGE(3, "1.2.3"), 3},
        {"# one line an image\n" IMAGE(1, "a.png") "\n\n" IMAGE(2, "b.png") "# more\n" IMAGE(3,
                                                                                             "c"),
         3},
        {IMAGE(1, "a.png") "\n" IMAGE(2, "b.png") "# its points:\n1 2 3\n" IMAGE(3, "c.png"), 3},
        {IMAGE(1, "0001") "\n" IMAGE(2, "0002") "1 2 3\n", 2},
        {"\t" IMAGE(1, "a.png") " \t\r\n\f" IMAGE(2, "b.png") "\v\n", 2},
    };
    static const char *const bad[][2] = {
        {IMAGE(1, "a.png") "5 6 -1\n" IMAGE(2, "b.png") IMAGE(3, "c.png"),
         "x.txt: line 4: POINTS2D: the line of an image, where the points of image 2 belong (an "
         "empty line"},
        {IMAGE(1, "a.png") IMAGE(2, "b.png") "5 6 -1\n",
         "x.txt: line 2: POINTS2D: the line of an image, where the points of image 1 belong"},
        {IMAGE(1, "0001") IMAGE(2, "0002"),
         "x.txt: line 2: POINTS2D: 10 numbers are not X Y POINT3D_ID"},
        {IMAGE(1, "a.png") "5 6 -1 7\n",
         "x.txt: line 2: POINTS2D: 4 numbers are not X Y POINT3D_ID, three"},
        {IMAGE(1, "a.png") "5 6 -1 7 8 x\n", "x.txt: line 2: POINTS2D: not a number"},
        {IMAGE(1, "a.png") "\n5 6 -1\n", "x.txt: line 3: a line of points (X Y POINT3D_ID), which "
                                         "belongs directly below its image's line"},
        {IMAGE(4, "a.png") "\n" IMAGE(2, "b.png") "\n" IMAGE(4, "c.png"),
         "x.txt: line 5: image 4: also in line 1"},
    };
    for (size_t i = 0; i < BASE_COUNT(good); i++) {
        struct colmap model = {0};
        assert_ok(colmap_text_images("x.txt", good[i].text, strlen(good[i].text), &model));
        assert_int_equal(model.image_count, good[i].images);
        for (size_t n = 0; n < model.image_count; n++)
            assert_int_equal(model.images[n].id, n + 1);
        colmap_free(&model);
    }
    for (size_t i = 0; i < BASE_COUNT(bad); i++)
        check_text(colmap_text_images, bad[i][0], bad[i][1]);
    check_text(colmap_text_cameras, "3 PINHOLE 4 3 1 1 2 2\n\n3 PINHOLE 4 3 1 1 2 2\n",
               "x.txt: line 3: camera 3: also in line 1");
}

/* Duplicate ids in binary files are refused; there is no line to name. */
static void test_same_ids(void **state)
{
    (void)state;
    struct texts texts;
    make_binary(&texts);
    memcpy(texts.images.data + 8, "\x5d\0\0\0", 4); /* 93, the id of the eighth image */
    assert_int_equal(
        parse(colmap_binary_images, "images.bin", texts.images.data, texts.images.size),
        VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "images.bin: image 93: comes twice");
    texts.cameras.data[8] = 10; /* the id of the last camera */
    assert_int_equal(
        parse(colmap_binary_cameras, "cameras.bin", texts.cameras.data, texts.cameras.size),
        VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "cameras.bin: camera 10: comes twice");
    free_texts(&texts);
}

static void check_tracks(colmap_parser *parser, const struct base_text *text)
{
    struct colmap model = {0};
    assert_ok(parser("x", text->data, text->size, &model));
    assert_true(model.point_count == 2 && model.left_out.count == 4);
    assert_true(model.track_ends[0] == 2 && model.track_ends[1] == 4);
    colmap_free(&model);
}

static void store_warning(void *context, enum vkn_log_level level, const char *line)
{
    char *warning = context;
    if (level == VKN_LOG_WARNING)
        snprintf(warning, 512, "%s", line);
}

/* Training warns about the points left out, and `vknerf info` lists the warning as a problem. */
static void check_reported(const struct vkn_scene *scene, const struct scene_findings *findings,
                           const char *warning)
{
    struct inspection *inspection = NULL;
    assert_ok(inspect_scene(scene, findings, 0, &inspection));
    bool reported = false;
    for (size_t i = 0; i < inspection->problem_count; i++)
        reported = reported || strcmp(inspection->problems[i].problem, warning) == 0;
    assert_true(reported);
    assert_non_null(strstr(warning, findings->first_bad_point));
    assert_true(strncmp(warning, "4 of 6 points are left out; the first: /", 40) == 0);
    inspect_free(&inspection);
}

/* A point with a NaN or infinite coordinate is left out with its track; the others remain. */
static void check_left_out(struct temporary *folder, const char *first)
{
    struct scene_findings findings = {0};
    struct scene_options options = {.path = folder->path};
    char warning[512] = "";
    vkn_log_to(store_warning, warning);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    vkn_log_to(NULL, NULL);
    assert_int_equal(scene->point_count, 2);
    float near = scene->near;
    scene_close(&scene);
    scene = inspect_capture(&options, &findings);
    assert_int_equal(findings.point_count, 2);
    assert_int_equal(findings.bad_points, 4);
    assert_non_null(strstr(findings.first_bad_point, first));
    /* Frame 3 sees both remaining points. */
    assert_true(scene->near == near && near > 0);
    check_reported(scene, &findings, warning);
    scene_close(&scene);
    scene_findings_free(&findings);
}

static void test_points_left_out(void **state)
{
    struct temporary *folder = *state;
    static const double all[6][4] = {{1.3, 1.8, 3.1, 0.5},    {NAN, 2.9, 3.4, 0.5},
                                     {0.2, INFINITY, 3.4, 1}, {0.2, 2.9, 1e10, 1},
                                     {0.2, 2.9, 3.4, NAN},    {1.9, 1.2, 2.3, 0.5}};
    make_images(folder, "images", 10);
    make_model(folder, "", false);
    struct base_text text = {0}, binary = {0};
    base_text_add(&text, "# ID X Y Z R G B ERROR TRACK\n");
    add_u64(&binary, 6);
    for (uint32_t i = 0; i < 6; i++) {
        base_text_add(&text, "%u %.17g %.17g %.17g 1 2 3 %g 100 0 97 1\n", i, all[i][0], all[i][1],
                      all[i][2], all[i][3]);
        add_u64(&binary, i);
        add_doubles(&binary, all[i], 3);
        base_text_add_bytes(&binary, "\1\2\3", 3);
        add_doubles(&binary, all[i] + 3, 1);
        add_u64(&binary, 2);
        for (uint32_t k = 0; k < 4; k++)
            add_u32(&binary, k == 0 ? 100 : k == 2 ? 97 : k);
    }
    temporary_file(folder, "points3D.txt", text.data, text.size);
    check_left_out(folder, "points3D.txt: line 3: X: not a finite number");
    for (const char *name = "cameras.txt\0images.txt\0points3D.txt\0"; *name;
         name += strlen(name) + 1) {
        char *path = temporary_path(folder, name);
        assert_int_equal(unlink(path), 0);
    }
    make_model(folder, "", true);
    temporary_file(folder, "points3D.bin", binary.data, binary.size);
    check_left_out(folder, "points3D.bin: point 2 of 6: its position is not finite or beyond 1e9");
    check_tracks(colmap_text_points, &text);
    check_tracks(colmap_binary_points, &binary);
    temporary_file(folder, "points3D.bin", "\0\0\0\0\0\0\0", 8);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_int_equal(scene->point_count, 0);
    scene_close(&scene);
    /* A NaN or infinite colour, error or track leaves a point out, too. */
    struct colmap model = {0};
    static const char colors[] =
        "1 2 3 4 nan 6 7 8\n2 2 3 4 5 inf 7 8\n3 2 3 4 5 6 7 -nan\n4 2 3 4 5 6 7 8\n"
        "5 2 3 4 5 6 7 8 3 nan\n6 2 3 4 5 6 7 8 inf 1 2 3\n";
    assert_ok(colmap_text_points("x.txt", colors, strlen(colors), &model));
    assert_true(model.point_count == 1 && model.left_out.count == 5);
    assert_true(model.track_ends[0] == 0);
    assert_string_equal(model.left_out.first, "x.txt: line 1: R: not a finite number");
    colmap_free(&model);
    free(text.data);
    free(binary.data);
}

/* Text with a byte order mark, other line ends and trailing blanks. */
static void test_text_variants(void **state)
{
    struct temporary *folder = *state;
    static const char *const names[] = {"cameras.txt", "images.txt", "points3D.txt"};
    static const char *const ends[] = {" \t\r\n", "\r"};
    make_images(folder, "images", 1);
    struct texts texts;
    make_text(&texts);
    const struct base_text *const all[] = {&texts.cameras, &texts.images, &texts.points};
    for (size_t end = 0; end < BASE_COUNT(ends); end++) {
        for (int i = 0; i < 3; i++) {
            struct base_text text = {0};
            base_text_add(&text, "\xef\xbb\xbf");
            for (size_t k = 0; k < all[i]->size; k++)
                if (all[i]->data[k] == '\n')
                    base_text_add(&text, "%s", ends[end]);
                else if (all[i]->data[k] != '\r')
                    base_text_add_bytes(&text, all[i]->data + k, 1);
            temporary_file(folder, names[i], text.data, text.size);
            free(text.data);
        }
        check_model(folder);
    }
    temporary_file(folder, "images.txt", "\xff\xfe#\0", 4);
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, "images.txt: text in UTF-16; save it as UTF-8");
    free_texts(&texts);
}

static void check_open_refused(struct temporary *folder, const char *images, const char *message)
{
    struct scene_options options = {.path = folder->path};
    char *path = base_path_join(folder->path, "images.txt");
    assert_ok(base_file_replace(path, images, strlen(images)));
    free(path);
    assert_open_fails(&options, message);
}

static void test_bad_models(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    make_images(folder, "images", 10);
    temporary_text(folder, "cameras.txt", "1 PINHOLE 400 300 350 350 200 150\n");
    assert_open_fails(&options, "images.txt: No such file");
    check_open_refused(folder, "", "images.txt: images: no images to train on");
    check_open_refused(folder, "5 1 0 0 0 1 2 3 7 a/0.png\n",
                       "images.txt: line 1: image 5: there is no camera 7");
    check_open_refused(folder, "5 0 0 0 0 1 2 3 1 a/0.png\n",
                       "images.txt: line 1: image 5: its quaternion is no rotation");
    check_open_refused(folder, "5 1 0 0 0 1 2e10 3 1 a/0.png\n",
                       "images.txt: line 1: image 5: a number is not finite or beyond 1e9");
    temporary_picture(folder, "images/b.png", 40, 40, 0);
    check_open_refused(folder, "5 1 0 0 0 1 2 3 1 b.png\n", "images.txt: images[0]: ");
    assert_error("b.png has 40x40 pixels, wrong size: w and h say 400x300");
    temporary_text(folder, "points3D.txt", "1 2 3 4 5 6 7 eight\n");
    check_open_refused(folder, "5 1 0 0 0 1 2 3 1 a/0.png\n",
                       "points3D.txt: line 1: ERROR: not a number");
}

#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_both_encodings),
        TEST(test_near),
        TEST(test_far_points),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_near_of_frames),
        cmocka_unit_test(test_side),
        cmocka_unit_test(test_rules),
        TEST(test_folders),
        TEST(test_several_models),
        TEST(test_many_models),
        TEST(test_model_as_scene),
        TEST(test_smaller_images),
        TEST(test_missing_images),
        TEST(test_broken_image),
        TEST(test_precedence),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_bad_cameras),
        cmocka_unit_test(test_plain_models),
        cmocka_unit_test(test_as_transforms),
        cmocka_unit_test(test_bad_text),
        TEST(test_bad_models),
        cmocka_unit_test(test_image_lines),
        cmocka_unit_test(test_same_ids),
        TEST(test_points_left_out),
        TEST(test_text_variants),
    };
    return cmocka_run_group_tests_name("colmap", tests, NULL, NULL);
}
