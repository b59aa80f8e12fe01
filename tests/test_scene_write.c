/* Tests copies of scenes with other poses, in every format: poses, everything else, links, moved
 * points and their errors, and refused input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "captures.h"
#include "colmap_lenses.h"
#include "photographs.h"
#include "scene/colmap.h"
#include "scene/npy.h"
#include "scene/reader.h"

#define VIEWS 8u

/* ---- folders --------------------------------------------------------------------------------- */

/* Appends names, types and contents of the entries of a folder, except `except`. */
static void add_tree(struct base_text *text, const char *folder, const char *except)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        char *path = base_path_join(folder, entries[i]->d_name), *data = NULL;
        bool skip = strcmp(entries[i]->d_name, ".") == 0 || strcmp(entries[i]->d_name, "..") == 0 ||
                    (except != NULL && strcmp(path, except) == 0);
        struct stat status;
        size_t size = 0;
        assert_int_equal(lstat(path, &status), 0);
        if (!skip)
            base_text_add(text, "%s %o %ld.%ld\n", path, status.st_mode,
                          (long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
        if (!skip && S_ISDIR(status.st_mode))
            add_tree(text, path, except);
        if (!skip && S_ISREG(status.st_mode)) {
            assert_ok(base_file_read(path, SIZE_MAX, &data, &size));
            base_text_add_bytes(text, data, size);
        }
        free(data);
        free(path);
        free(entries[i]);
    }
    free(entries);
}

static struct base_text tree_of(const char *folder, const char *except)
{
    struct base_text text = {0};
    add_tree(&text, folder, except);
    assert_false(text.failed);
    return text;
}

static void assert_text(const char *path, const char *wanted)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(path, SIZE_MAX, &data, &size));
    assert_string_equal(data, wanted);
    free(data);
}

static void assert_has_text(struct temporary *folder, const char *name, const char *part)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(temporary_path(folder, name), SIZE_MAX, &data, &size));
    if (strstr(data, part) == NULL)
        fail_msg("%s: %s", name, data);
    free(data);
}

static bool exists(struct temporary *folder, const char *name)
{
    struct stat status;
    return lstat(temporary_path(folder, name), &status) == 0;
}

/* Returns whether the copy of a scene links a name: by a symbolic link, on Windows by a second name
 * of a file, or a folder of second names. */
static bool is_link(struct temporary *folder, const char *name)
{
    struct stat status;
    char *path = temporary_path(folder, name);
#ifdef _WIN32
    return lstat(path, &status) == 0 && has_second_name(path);
#else
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
#endif
}

static char *make_folder(struct temporary *folder, const char *name)
{
    char *path = temporary_path(folder, name);
    assert_ok(base_make_folder(path));
    return path;
}

/* ---- scenes and poses ------------------------------------------------------------------------ */

/* Computes an OpenGL pose of a camera near known camera `index`: turned and moved a little. */
static void new_pose(unsigned index, double pose[12])
{
    double axes[3][3], position[3], turned[3][3];
    known_camera(index, VIEWS, axes, position);
    double angle = 0.02 + 0.01 * index, c = cos(angle), s = sin(angle);
    for (int i = 0; i < 3; i++) {
        turned[0][i] = c * axes[0][i] + s * axes[2][i];
        turned[1][i] = axes[1][i];
        turned[2][i] = c * axes[2][i] - s * axes[0][i];
    }
    for (ptrdiff_t i = 0; i < 3; i++) {
        pose[4 * i] = turned[0][i];
        pose[4 * i + 1] = -turned[1][i];
        pose[4 * i + 2] = -turned[2][i];
        pose[4 * i + 3] = position[i] + 0.03 * sin(index + 2.0 * i);
    }
}

/* Computes the new pose as it is written: with an orthonormal rotation. */
static void written_pose(unsigned index, double pose[12])
{
    double rows[3][4];
    new_pose(index, pose);
    memcpy(rows, pose, sizeof(rows));
    assert_null(scene_pose_from_rows((const double(*)[4])rows, pose));
}

static struct scene_new_camera pose_of(uint32_t file, uint32_t frame, unsigned index)
{
    struct scene_new_camera pose = {.file = file, .frame = frame};
    new_pose(index, pose.pose);
    return pose;
}

static struct vkn_scene *open_scene(const char *path)
{
    struct vkn_scene *scene = NULL;
    const struct scene_options options = {.path = path};
    base_log_threshold(BASE_LOG_NOTHING);
    assert_ok(scene_open(&options, &scene));
    base_log_threshold(BASE_LOG_INFO);
    return scene;
}

/* Writes a copy, and checks that nothing else in `folder` (NULL: not checked) has changed. */
static void write_copy(const char *path, const struct scene_new_camera *poses, size_t count,
                       const char *out, const char *folder)
{
    struct vkn_scene *scene = open_scene(path);
    struct base_text before = {0}, after = {0};
    if (folder != NULL)
        before = tree_of(folder, out);
    assert_ok(scene_write(scene, poses, count, out, false));
    if (folder != NULL) {
        after = tree_of(folder, out);
        assert_int_equal(before.size, after.size);
        assert_memory_equal(before.data, after.data, after.size);
    }
    free(before.data);
    free(after.data);
    scene_close(&scene);
    scene = open_scene(out); /* can be opened */
    scene_close(&scene);
}

/* Checks that writing fails with VKN_BAD_INPUT and `part` in the message, and writes nothing. */
static void assert_write_fails(const char *path, const struct scene_new_camera *poses, size_t count,
                               const char *out, const char *part)
{
    struct vkn_scene *scene = open_scene(path);
    struct base_text before = tree_of(out, NULL), after;
    assert_int_equal(scene_write(scene, poses, count, out, false), VKN_BAD_INPUT);
    assert_error(part);
    after = tree_of(out, NULL);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, after.size);
    free(before.data);
    free(after.data);
    scene_close(&scene);
}

/* The frames of a scene's files, in double precision. */
struct frames {
    struct transforms files[SCENE_SPLITS];
};

static struct frames read_frames(enum vkn_scene_format format, const char *folder)
{
    struct frames frames = {{{0}}};
    const struct scene_options options = {.path = folder, .downscale = 1};
    char *file = NULL, *others = NULL;
    bool single = false;
    base_log_threshold(BASE_LOG_NOTHING);
    assert_ok(reader_of(format)->find(folder, &file, &others));
    assert_ok(reader_of(format)->read(file, &options, frames.files, &single));
    base_log_threshold(BASE_LOG_INFO);
    free(file);
    free(others);
    return frames;
}

static void free_frames(struct frames *frames)
{
    for (unsigned i = 0; i < SCENE_SPLITS; i++)
        transforms_free(&frames->files[i]);
}

static const struct scene_new_camera *find_pose(const struct scene_new_camera *poses, size_t count,
                                                unsigned file, size_t frame)
{
    for (size_t i = 0; i < count; i++)
        if (poses[i].file == file && poses[i].frame == frame)
            return &poses[i];
    return NULL;
}

/* Checks that a frame of the copy has a new lens, whose pixels are those of the image. */
static void check_lens(const struct transforms_frame *frame, const struct scene_new_camera *wanted)
{
    struct scene_camera camera = {0};
    lens_apply(&frame->lens, frame->width, frame->height, 1, &camera);
    const float numbers[4] = {camera.focal_x, camera.focal_y, camera.center_x, camera.center_y};
    for (int i = 0; i < 4; i++) {
        double number = i < 2 ? wanted->focal[i] : wanted->center[i - 2];
        if (!(fabs((double)numbers[i] - number) <= 1e-7 * wanted->focal[i % 2]))
            fail_msg("frame %zu: intrinsic %d: %.9g is not %.9g", frame->index, i,
                     (double)numbers[i], number);
    }
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        if (frame->lens.distortion[i] != wanted->distortion[i])
            fail_msg("frame %zu: %s: %.9g is not %.9g", frame->index, lens_coefficient_names[i],
                     frame->lens.distortion[i], wanted->distortion[i]);
}

/* Checks that the copy has the new poses (to `tolerance`) and lenses, the old ones elsewhere, and
 * everything else unchanged. */
static void check_copy(enum vkn_scene_format format, const char *from, const char *to,
                       const struct scene_new_camera *poses, size_t count, double tolerance)
{
    struct frames old = read_frames(format, from), new = read_frames(format, to);
    size_t found = 0;
    for (unsigned f = 0; f < SCENE_SPLITS; f++) {
        assert_int_equal(old.files[f].count, new.files[f].count);
        for (size_t i = 0; i < old.files[f].count; i++) {
            const struct transforms_frame *a = &old.files[f].frames[i],
                                          *b = &new.files[f].frames[i];
            const struct scene_new_camera *pose = find_pose(poses, count, f, a->index);
            const double *wanted = pose != NULL ? pose->pose : a->pose;
            found += pose != NULL ? 1 : 0;
            for (int k = 0; k < 12; k++)
                if (!(fabs(b->pose[k] - wanted[k]) <= tolerance))
                    fail_msg("file %u, frame %zu: %.17g is not %.17g", f, i, b->pose[k], wanted[k]);
            assert_int_equal(a->index, b->index);
            assert_int_equal(a->file, b->file);
            if (pose != NULL && pose->has_lens)
                check_lens(b, pose);
            else
                assert_memory_equal(&a->lens, &b->lens, sizeof(a->lens));
            assert_memory_equal(a->bounds, b->bounds, format == VKN_SCENE_LLFF ? 16 : 0);
            assert_true(a->splits == b->splits && a->width == b->width && a->time == b->time);
            struct stat old_image, new_image;
            assert_int_equal(stat(a->image_path, &old_image), 0);
            assert_int_equal(stat(b->image_path, &new_image), 0);
            assert_true(old_image.st_ino == new_image.st_ino &&
                        old_image.st_dev == new_image.st_dev); /* linked */
            assert_true((a->mask_path != NULL) == (b->mask_path != NULL));
        }
    }
    assert_int_equal(found, count);
    free_frames(&old);
    free_frames(&new);
}

static void make_pictures(struct temporary *folder, const char *format, uint32_t width,
                          uint32_t height)
{
    for (unsigned i = 0; i < VIEWS; i++) {
        char *name = base_format("%s/%u.png", format, i);
        temporary_picture(folder, name, width, height, (uint8_t)i);
        free(name);
    }
}

/* ---- transforms.json ------------------------------------------------------------------------- */

/* Appends the numbers of a matrix as scene_write spells them. */
static void add_matrix(struct base_text *text, const double pose[12], int rows)
{
    for (int i = 0; i < 4 * rows; i++) {
        char number[40];
        config_print_number(number, i < 12 ? pose[i] : i == 15, false);
        base_text_add(text, "%s%s", i == 0 ? "[[" : i % 4 == 0 ? "], [" : ", ", number);
    }
    base_text_add(text, "]]");
}

/* A pose that a file has before. */
#define OLD "[[1,0,0,1],\n\t[0,0,-1,-4e0],[0,1,0,2.50]"

/* Makes a file of the template: each @ is replaced by a matrix of 3 rows, each $ by one of 4 rows;
 * the old ones, or the new poses of the frames 0, 1, ... */
static struct base_text fill(const char *template, bool new, bool mitsuba)
{
    struct base_text text = {0};
    unsigned next = 0;
    for (const char *at = template; *at != '\0'; at++) {
        double pose[12];
        if (*at != '@' && *at != '$') {
            base_text_add(&text, "%c", *at);
            continue;
        }
        if (!new) {
            base_text_add(&text, "%s", *at == '@' ? OLD " ]" : OLD ", [0, 0, 0, 1.0 ] ]");
            continue;
        }
        written_pose(next++, pose);
        for (int i = 0; i < 12; i++)
            pose[i] = mitsuba && i % 2 == 0 ? -pose[i] : pose[i];
        add_matrix(&text, pose, *at == '@' ? 3 : 4);
    }
    return text;
}

static char *write_filled(struct temporary *folder, const char *name, const char *template)
{
    struct base_text text = fill(template, false, false);
    char *path = temporary_file(folder, name, text.data, text.size);
    free(text.data);
    return path;
}

static void assert_filled(struct temporary *folder, const char *name, const char *template,
                          bool mitsuba)
{
    struct base_text text = fill(template, true, mitsuba);
    assert_text(temporary_path(folder, name), text.data);
    free(text.data);
}

#define KEYS                                                                              \
    "  \"fl_x\": 1.50e2 ,\"unknown\" : {\"transform_matrix\": [[1]], \"z\\\"}]\": [NaN, " \
    "-Infinity, 12345678901234567890, 1.10, \"\\u00e4\\\\\", {}, [ ], true,null]},\r\n"

static void test_transforms(void **state)
{
    struct temporary *folder = *state;
    const char *template =
        "{" KEYS " \"frames\" :[ {\"file_path\": \"images/0.png\", \"transform_matrix\" : $ },\n"
        "{\"transform_matrix\":@,\"file_path\": \"./images/1.png\",\"sharpness\": 1.0},"
        "{\"file_path\": \"images/2\", \"transform_matrix\":$ , \"colmap_im_id\": 03e0}"
        "\n ] , \"aabb_scale\": 4 }  \n";
    make_pictures(folder, "in/images", 40, 30);
    char *path = write_filled(folder, "in/transforms.json", template), *in = path;
    in = base_path_folder(path);
    char *out = make_folder(folder, "out");
    const struct scene_new_camera poses[3] = {pose_of(0, 2, 2), pose_of(0, 0, 0), pose_of(0, 1, 1)};
    write_copy(in, poses, 3, out, in);
    assert_filled(folder, "out/transforms.json", template, false);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, poses, 3, 1e-14);
    assert_true(is_link(folder, "out/images"));

    /* Given as a file, with one new pose: the other two stay as they are written. */
    out = make_folder(folder, "out2");
    write_copy(path, poses, 1, out, in);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, poses, 1, 1e-14);

    /* Without new poses the text is the same. */
    out = make_folder(folder, "out3");
    write_copy(path, poses, 0, out, in);
    struct base_text text = fill(template, false, false);
    assert_text(temporary_path(folder, "out3/transforms.json"), text.data);
    free(text.data);
    free(in);
}

/* All matrices of a frame are replaced; Mitsuba's axes; a matrix with a scale and w. */
static void test_transforms_dialects(void **state)
{
    struct temporary *folder = *state;
    make_pictures(folder, "in/images", 40, 30);
    const char *template = "{\"camera_angle_x\": 1, \"from_mitsuba\": true, \"frames\": ["
                           "{\"file_path\": \"images/0.png\", \"transform_matrix\": $},"
                           "{\"file_path\": \"images/1.png\", \"transform_matrix\": $}]}";
    char *in = base_path_folder(write_filled(folder, "in/transforms.json", template));
    char *out = make_folder(folder, "out");
    const struct scene_new_camera poses[2] = {pose_of(0, 0, 0), pose_of(0, 1, 1)};
    write_copy(in, poses, 2, out, in);
    assert_filled(folder, "out/transforms.json", template, true);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, poses, 2, 1e-14);

    temporary_text(folder, "in/transforms.json",
                   "{\"camera_angle_x\": 1, \"frames\": ["
                   "{\"file_path\": \"images/0.png\", \"transform_matrix\": [[1]],"
                   "\"transform_matrix_start\": [[4,0,0,1],[0,4,0,2],[0,0,4,3],[0,0,0,2]],"
                   "\"transform_matrix_end\": [[4,0,0,1],[0,4,0,2],[0,0,4,3],[0,0,0,2]]}]}");
    out = make_folder(folder, "out2");
    write_copy(in, poses, 1, out, in);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, poses, 1, 1e-14);
    struct base_text text = {0}, matrix = {0};
    double pose[12];
    written_pose(0, pose);
    add_matrix(&matrix, pose, 4);
    base_text_add(&text,
                  "{\"camera_angle_x\": 1, \"frames\": [{\"file_path\": \"images/0.png\", "
                  "\"transform_matrix\": %s,\"transform_matrix_start\": %s,"
                  "\"transform_matrix_end\": %s}]}",
                  matrix.data, matrix.data, matrix.data);
    assert_text(temporary_path(folder, "out2/transforms.json"), text.data);
    free(text.data);
    free(matrix.data);
    free(in);
}

static void test_split_files(void **state)
{
    struct temporary *folder = *state;
    static const char *const splits[] = {"train", "test"};
    make_pictures(folder, "in/train", 40, 30);
    make_pictures(folder, "in/test", 40, 30);
    for (int i = 0; i < 2; i++) {
        char *name = base_format("in/transforms_%s.json", splits[i]);
        char *template = base_format("{\"camera_angle_x\": 1, \"frames\": ["
                                     "{\"file_path\": \"./%s/3\", \"transform_matrix\": $},"
                                     "{\"file_path\": \"./%s/4\", \"transform_matrix\": $}]}",
                                     splits[i], splits[i]);
        write_filled(folder, name, template);
        free(template);
        free(name);
    }
    char *in = make_folder(folder, "in"), *out = make_folder(folder, "out");
    const struct scene_new_camera poses[3] = {pose_of(SCENE_TEST, 1, 5), pose_of(SCENE_TRAIN, 1, 6),
                                              pose_of(SCENE_TRAIN, 0, 7)};
    write_copy(in, poses, 3, out, in);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, poses, 3, 1e-14);
    assert_false(exists(folder, "out/transforms_val.json"));
    assert_false(is_link(folder, "out/transforms_test.json"));

    out = make_folder(folder, "out2");
    const struct scene_new_camera absent = pose_of(SCENE_VAL, 0, 1);
    assert_write_fails(in, &absent, 1, out, "it has no file 1");
    const struct scene_new_camera beyond = pose_of(SCENE_TEST, 2, 1);
    assert_write_fails(
        in, &beyond, 1, out,
        "transforms_test.json: frames[2]: it has a new camera, but there are only 2");
}

/* Names that lead out of the folder become absolute; the lists of names still match. */
static void test_outside_names(void **state)
{
    struct temporary *folder = *state;
    make_pictures(folder, "images", 40, 30);
    make_pictures(folder, "in/a", 40, 30);
    temporary_picture(folder, "mask.png", 40, 30, 255);
    const char *template =
        "{\"fl_x\": 50, \"ply_file_path\": \"../cl\\u00f6ud.ply\", \"frames\": ["
        "{\"file_path\": \"%s../images/0.png\", \"transform_matrix\": $,"
        " \"mask_path\": \"%sa/..//../mask.png\"},"
        "{\"file_path\": \"a/../a/1.png\", \"transform_matrix\": $},"
        "{\"file_path\": \"%s..\\\\images\\\\2.png\", \"transform_matrix\": $}],"
        "\"train_filenames\": [\"%s../images/0.png\"], \"test_filenames\": [\"a/../a/1.png\","
        "\"%s..\\\\images\\\\2.png\"]}";
    char *name = realpath(folder->path, NULL), *prefix = base_format("%s/in/", name);
    char *before = base_format(template, "", "", "", "", "");
    char *after = base_format(template, prefix, prefix, prefix, prefix, prefix);
    char *in = base_path_folder(write_filled(folder, "in/transforms.json", before));
    char *out = make_folder(folder, "deep/in/out");
    struct scene_new_camera poses[3];
    for (unsigned i = 0; i < 3; i++)
        poses[i] = pose_of(0, i, i);
    write_copy(in, poses, 3, out, folder->path);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, poses, 3, 1e-14);
    struct base_text wanted = fill(after, true, false);
    char *cloud = strstr(wanted.data, "../cl"), *rest = base_format("%s", cloud);
    wanted.size = (size_t)(cloud - wanted.data);
    base_text_add(&wanted, "%s../cl\xc3\xb6%s", prefix, strstr(rest, "ud.ply"));
    assert_text(temporary_path(folder, "deep/in/out/transforms.json"), wanted.data);
    free(rest);
    free(wanted.data);
    free(after);
    free(before);
    free(prefix);
    free(name);
    free(in);
}

static double random_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) / 8388608.0 - 1;
}

/* ---- lenses in transforms.json --------------------------------------------------------------- */

static struct scene_new_camera lens_of(uint32_t frame, double fx, double fy, double cx, double cy)
{
    struct scene_new_camera camera = pose_of(0, frame, frame);
    camera.has_lens = true;
    camera.focal[0] = fx;
    camera.focal[1] = fy;
    camera.center[0] = cx;
    camera.center[1] = cy;
    return camera;
}

/* Makes a scene of two frames of 40x30 pixels: `top` is the beginning of its top level, and `a` and
 * `b` are the frames' other keys. */
static char *two_frames(const char *top, const char *a, const char *b)
{
    return base_format(
        "{%s \"frames\": [ {\"file_path\":\"images/0.png\",\"transform_matrix\":$%s},"
        "{\"transform_matrix\" : $%s, \"file_path\":\"images/1.png\"}]}",
        top, a, b);
}

/* A file before and after new lenses, by the parts of two_frames. */
struct lens_case {
    const char *before[3], *after[3];
};

static void check_lens_case(struct temporary *folder, const struct lens_case *test,
                            const struct scene_new_camera cameras[2], unsigned number)
{
    char *in = base_format("lens-in-%u", number), *out = base_format("lens-out-%u", number);
    char *pictures = base_format("%s/images", in), *file = base_format("%s/transforms.json", in),
         *copy = base_format("%s/transforms.json", out);
    char *before = two_frames(test->before[0], test->before[1], test->before[2]);
    char *after = two_frames(test->after[0], test->after[1], test->after[2]);
    make_pictures(folder, pictures, 40, 30);
    write_filled(folder, file, before);
    write_copy(temporary_path(folder, in), cameras, 2, make_folder(folder, out),
               temporary_path(folder, in));
    assert_filled(folder, copy, after, false);
    check_copy(VKN_SCENE_TRANSFORMS, temporary_path(folder, in), temporary_path(folder, out),
               cameras, 2, 1e-14);
    free(after);
    free(before);
    free(copy);
    free(file);
    free(pictures);
    free(out);
    free(in);
}

/* Frames that share intrinsics: keys are replaced where they stand, and missing ones added. */
static void test_lens_shared(void **state)
{
    struct scene_new_camera cameras[2];
    struct lens_case tests[] = {
        /* All keys are there; other keys stay. */
        {{"\"fl_x\": 35e0,\"fl_y\":35,\n\"cx\":20 , \"cy\": 15, \"w\": 40, \"h\": 30.0,"
          " \"k1\": 0, \"k2\": 0.1, \"p1\":0, \"p2\":0, \"camera_angle_x\": 1.0, \"aabb_scale\": "
          "4,",
          "", ""},
         {"\"fl_x\": 36,\"fl_y\":36.5,\n\"cx\":20.25 , \"cy\": 14.5, \"w\": 40, \"h\": 30.0,"
          " \"k1\": 0.125, \"k2\": -0.25, \"p1\":0, \"p2\":0, \"camera_angle_x\": "
          "1.014197008784674, \"aabb_scale\": 4,",
          "", ""}},
        /* w and h are those of an image that is twice as large. */
        {{"\"w\": 80, \"h\": 60, \"fl_x\": 70, \"cx\": 40, \"cy\": 30,", "", ""},
         {"\"w\": 80, \"h\": 60, \"fl_x\": 72, \"fl_y\": 73, \"cx\": 40.5, \"cy\": 29, "
          "\"k1\": 0.125, \"k2\": -0.25,",
          "", ""}},
        /* A field of view alone: the centre needs pixels. */
        {{"\"camera_angle_x\": 1.0,", "", ""},
         {"\"camera_angle_x\": 1.014197008784674, \"fl_x\": 36, \"fl_y\": 36.5, \"cx\": 20.25, "
          "\"cy\": 14.5, \"k1\": 0.125, \"k2\": -0.25, \"w\": 40, \"h\": 30,",
          "", ""}},
        /* instant-ngp's degrees take precedence; nerfstudio's list too; null is no value. */
        {{"\"fl_x\": null, \"x_fov\": 50, \"y_fov\": 40, \"cx\": null, \"k1\": null, "
          "\"distortion_params\": [0, 0,0,0, 0.5, 0],",
          "", ""},
         {"\"fl_x\": 36, \"x_fov\": 58.10920819815429, \"y_fov\": 44.68129591998827, "
          "\"fl_y\": 36.5, \"cx\": 20.25, \"cy\": 14.5, \"k1\": null, \"distortion_params\": "
          "[0.125, -0.25, 0, 0, 0, 0], \"w\": 40, \"h\": 30,",
          "", ""}},
        /* A model that cannot hold the lens. */
        {{"\"camera_model\": \"PINHOLE\", \"fl_x\": 35,", "", ""},
         {"\"camera_model\": \"OPENCV\", \"fl_x\": 36, \"fl_y\": 36.5, \"cx\": 20.25, \"cy\": "
          "14.5, "
          "\"k1\": 0.125, \"k2\": -0.25, \"w\": 40, \"h\": 30,",
          "", ""}},
    };
    for (unsigned i = 0; i < BASE_COUNT(tests); i++) {
        for (unsigned n = 0; n < 2; n++) {
            cameras[n] = lens_of(n, 36, 36.5, 20.25, 14.5);
            cameras[n].distortion[SCENE_k1] = 0.125;
            cameras[n].distortion[SCENE_k2] = -0.25;
        }
        check_lens_case(*state, &tests[i], cameras, i);
    }
}

/* A file of a field of view keeps it for a centred lens with square pixels. */
static void test_lens_angle(void **state)
{
    struct scene_new_camera cameras[2];
    struct lens_case tests[] = {
        {{"\"camera_angle_x\": 1.0,", "", ""}, {"\"camera_angle_x\": 1.014197008784674,", "", ""}},
        {{"\"x_fov\": 50,", "", ""}, {"\"x_fov\": 58.10920819815429,", "", ""}},
        {{"\"fl_x\": 35,", "", ""}, {"\"fl_x\": 36,", "", ""}},
        {{"", ", \"camera_angle_x\": 1", ",\"camera_angle_x\": 1"},
         {"", ", \"camera_angle_x\": 1.014197008784674", ",\"camera_angle_x\": 1.014197008784674"}},
    };
    for (unsigned i = 0; i < BASE_COUNT(tests); i++) {
        for (unsigned n = 0; n < 2; n++)
            cameras[n] = lens_of(n, 36, 36 + 1e-6, 20, 15 + 1e-6);
        check_lens_case(*state, &tests[i], cameras, i);
    }
    /* With one more field of view, pixels need not be square. */
    const struct lens_case both = {
        {"\"camera_angle_x\": 1.0, \"camera_angle_y\": 1.0,", "", ""},
        {"\"camera_angle_x\": 1.014197008784674, \"camera_angle_y\": 0.7798357278617043,", "", ""}};
    const struct lens_case one = {
        {"\"camera_angle_x\": 1.0,", "", ""},
        {"\"camera_angle_x\": 1.014197008784674, \"fl_y\": 36.5,", "", ""}};
    for (unsigned n = 0; n < 2; n++)
        cameras[n] = lens_of(n, 36, 36.5, 20, 15);
    check_lens_case(*state, &both, cameras, 10);
    check_lens_case(*state, &one, cameras, 11);
}

/* Frames with different lenses, in keys of their own. */
static void test_lens_frames(void **state)
{
    struct scene_new_camera cameras[2];
    struct lens_case tests[] = {
        /* nerfstudio's per frame. */
        {{"\"camera_model\": \"OPENCV\", \"k1\": 0.1,",
          ", \"fl_x\":35,\"fl_y\":35,\"cx\":20,\"cy\":15,\"w\":40,\"h\":30",
          ", \"fl_x\": 35, \"fl_y\" : 35, \"cx\": 20, \"cy\": 15, \"w\": 40, \"h\": 30, \"k1\": 0"},
         {"\"camera_model\": \"OPENCV\", \"k1\": 0,",
          ", \"fl_x\":36,\"fl_y\":36.5,\"cx\":20.25,\"cy\":14.5,\"w\":40,\"h\":30",
          ", \"fl_x\": 37, \"fl_y\" : 37, \"cx\": 19, \"cy\": 14.5, \"w\": 40, \"h\": 30, \"k1\": "
          "0.125"}},
        /* Shared intrinsics that part. */
        {{"\"fl_x\": 35, \"cx\": 20, \"cy\": 15,", "", ""},
         {"\"fl_x\": 35, \"cx\": 20, \"cy\": 15,",
          ", \"fl_x\": 36, \"fl_y\": 36.5, \"cx\": 20.25, \"cy\": 14.5, \"k1\": 0, \"w\": 40, "
          "\"h\": 30",
          ", \"fl_x\": 37, \"fl_y\": 37, \"cx\": 19, \"cy\": 14.5, \"k1\": 0.125, \"w\": 40, "
          "\"h\": 30"}},
    };
    for (unsigned i = 0; i < BASE_COUNT(tests); i++) {
        cameras[0] = lens_of(0, 36, 36.5, 20.25, 14.5);
        cameras[1] = lens_of(1, 37, 37, 19, 14.5);
        cameras[1].distortion[SCENE_k1] = 0.125;
        check_lens_case(*state, &tests[i], cameras, i);
    }
}

/* A frame with intrinsics of its own does not inherit keys that the top level gets. */
static void test_lens_mixed(void **state)
{
    struct temporary *folder = *state;
    const struct lens_case test = {
        {"\"camera_angle_x\": 1.0,", "", ", \"fl_x\": 35"},
        {"\"camera_angle_x\": 1.014197008784674, \"fl_x\": 36, \"fl_y\": 36.5, \"cx\": 20.25, "
         "\"cy\": 14.5, \"k1\": 0.125, \"w\": 40, \"h\": 30,",
         "",
         ", \"fl_x\": 37, \"fl_y\": 37, \"cx\": 20, \"cy\": 15, \"k1\": 0, \"w\": 40, \"h\": 30"}};
    struct scene_new_camera cameras[2] = {lens_of(0, 36, 36.5, 20.25, 14.5),
                                          lens_of(1, 37, 37, 20, 15)};
    cameras[0].distortion[SCENE_k1] = 0.125;
    check_lens_case(folder, &test, cameras, 0);

    /* Without a new lens it stays as it is; a new lens of one frame is shared by the other if that
     * has no keys of its own. */
    char *in = temporary_path(folder, "lens-in-0"), *out = make_folder(folder, "out");
    write_copy(in, cameras, 1, out, in);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, cameras, 1, 1e-14);
    temporary_text(
        folder, "lens-in-0/transforms.json",
        "{\"fl_x\": 35, \"frames\": [{\"file_path\": \"images/0\", \"transform_matrix\": " OLD
        "]}, {\"file_path\": \"images/1\", \"transform_matrix\": " OLD "]}]}");
    out = make_folder(folder, "out2");
    cameras[0] = lens_of(0, 36, 36, 20, 15);
    write_copy(in, cameras, 1, out, in);
    assert_has_text(folder, "out2/transforms.json", "{\"fl_x\": 36, \"frames\"");
}

/* Coefficients of fisheyes; the order of nerfstudio's list. */
static void test_lens_kinds(void **state)
{
    struct scene_new_camera cameras[2] = {lens_of(0, 36, 36, 20, 15), lens_of(1, 36, 36, 20, 15)};
    const struct lens_case fisheye = {
        {"\"is_fisheye\": true, \"fl_x\": 35, \"k3\": 0,", "", ""},
        {"\"is_fisheye\": true, \"fl_x\": 36, \"k3\": 0.25, \"k1\": 0.5, \"k4\": 0.125,", "", ""}};
    const struct lens_case prism = {{"\"camera_model\": \"THIN_PRISM_FISHEYE\", \"fl_x\": 35, "
                                     "\"distortion_params\": [0,0,0,0,0,0],",
                                     "", ""},
                                    {"\"camera_model\": \"THIN_PRISM_FISHEYE\", \"fl_x\": 36, "
                                     "\"distortion_params\": [0.5, 0, 0.25, "
                                     "0.125, 0, 0.0625], \"sx1\": 0.03125,",
                                     "", ""}};
    const struct lens_case simple = {
        {"\"camera_model\": \"SIMPLE_RADIAL_FISHEYE\", \"fl_x\": 35, \"k1\": 0,", "", ""},
        {"\"camera_model\": \"OPENCV_FISHEYE\", \"fl_x\": 36, \"k1\": 0.5, \"k3\": 0.25, \"k4\": "
         "0.125,",
         "", ""}};
    for (unsigned n = 0; n < 2; n++) {
        cameras[n].distortion[SCENE_k1] = 0.5;
        cameras[n].distortion[SCENE_k3] = 0.25;
        cameras[n].distortion[SCENE_k4] = 0.125;
    }
    check_lens_case(*state, &fisheye, cameras, 0);
    check_lens_case(*state, &simple, cameras, 1);
    for (unsigned n = 0; n < 2; n++) {
        cameras[n].distortion[SCENE_p2] = 0.0625;
        cameras[n].distortion[SCENE_sx1] = 0.03125;
    }
    check_lens_case(*state, &prism, cameras, 2);
}

/* Lenses are in pixels of the upright image before the scene's downscale; the file's are in pixels
 * of an image that is twice as large. */
static void test_lens_sizes(void **state)
{
    struct temporary *folder = *state;
    char *in = make_folder(folder, "in");
    tagged_picture(folder, "in/images/0.png", 30, 40, 6);
    temporary_text(folder, "in/transforms.json",
                   "{\"fl_x\": 70, \"w\": 80, \"h\": 60, \"frames\": [{\"file_path\": "
                   "\"images/0.png\", \"transform_matrix\": " OLD "]}]}");
    const struct scene_new_camera camera = lens_of(0, 36, 36.5, 20.25, 14.5);
    const struct scene_options options = {.path = in, .downscale = 4};
    struct vkn_scene *scene = NULL;
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->splits[SCENE_TRAIN].cameras[0].width, 10);
    assert_ok(scene_write(scene, &camera, 1, make_folder(folder, "out"), false));
    assert_has_text(folder, "out/transforms.json",
                    "{\"fl_x\": 72, \"fl_y\": 73, \"cx\": 40.5, \"cy\": 29, \"w\": 80,");
    scene_close(&scene);
}

/* Appends some of the keys of a lens; `focal`: at least one for the focal length. Returns whether
 * it appends any. */
static bool add_keys(struct base_text *text, bool focal, uint32_t *seed)
{
    static const char *const keys[] = {"\"fl_x\": 33",
                                       "\"fl_y\": 34",
                                       "\"camera_angle_x\": 1.1",
                                       "\"camera_angle_y\": 0.9",
                                       "\"x_fov\": 55",
                                       "\"y_fov\": 44",
                                       "\"cx\": 19",
                                       "\"cy\": 16",
                                       "\"k1\": 0.01",
                                       "\"p1\": 0.02",
                                       "\"distortion_params\": [0.03,0,0,0,0.01,0]",
                                       "\"w\": 80, \"h\": 60",
                                       "\"w\": 40, \"h\": 30",
                                       "\"k2\": null",
                                       "\"cx\": null, \"fl_x\": null"};
    const double share = random_number(seed) > 0 ? 0.8 : 0.3;
    bool sized = false, any = false;
    if (focal)
        base_text_add(text, "\"fl_x\": 32, ");
    for (size_t i = focal ? 1 : 0; i < BASE_COUNT(keys) - (focal ? 1 : 0); i++) {
        if (random_number(seed) < share || (sized && i == 12))
            continue;
        base_text_add(text, "%s, ", keys[i]);
        sized = sized || i == 11;
        any = any || i < 13;
    }
    return any || focal;
}

/* Any combination of keys becomes any combination of lenses; frames without a new lens keep theirs
 * unless they share all of it. */
static void check_any(const char *file, const char *in, const char *out, uint32_t seed)
{
    struct base_text text = {0};
    bool top = random_number(&seed) > -0.5, same = random_number(&seed) > 0, own[3];
    struct scene_new_camera cameras[3];
    size_t count = 0;
    base_text_add(&text, "{");
    add_keys(&text, top, &seed);
    for (unsigned n = 0; n < 3; n++) {
        base_text_add(&text, "%s{", n == 0 ? "\"frames\": [" : ", ");
        own[n] = add_keys(&text, !top, &seed);
        base_text_add(&text, "\"file_path\": \"images/%u\", \"transform_matrix\": " OLD "]}", n);
        double f = 36 + random_number(&seed), skew = random_number(&seed) > 0 ? 0.5 : 0,
               shift = random_number(&seed) > 0 ? 0.25 : 0, k = random_number(&seed);
        cameras[count] = lens_of(n, f, f + skew, 20 + shift, 15 - shift);
        cameras[count].distortion[SCENE_k1] = k > 0 ? k : 0;
        cameras[count].distortion[SCENE_k2] = k > 0.5 ? 0.1 : 0;
        cameras[count].distortion[SCENE_p2] = k < -0.5 ? 0.01 : 0;
        if (same && count > 0) {
            cameras[count] = cameras[0];
            cameras[count].frame = n;
        }
        count += random_number(&seed) > -0.7 ? 1 : 0;
    }
    base_text_add(&text, "]}");
    assert_ok(base_file_replace(file, text.data, text.size));
    assert_ok(base_make_folder(out));
    write_copy(in, cameras, count, out, NULL);
    struct frames old = read_frames(VKN_SCENE_TRANSFORMS, in),
                  new = read_frames(VKN_SCENE_TRANSFORMS, out);
    for (unsigned n = 0; n < 3; n++) {
        const struct scene_new_camera *camera = find_pose(cameras, count, 0, n);
        const struct transforms_frame *a = &old.files[0].frames[n], *b = &new.files[0].frames[n];
        struct scene_camera before = {0}, after = {0};
        lens_apply(&a->lens, a->width, a->height, 1, &before);
        lens_apply(&b->lens, b->width, b->height, 1, &after);
        if (camera != NULL)
            check_lens(b, camera);
        else if (own[n])
            assert_memory_equal(&before, &after, sizeof(before));
    }
    free_frames(&old);
    free_frames(&new);
    free(text.data);
    remove_tree(out);
}

static void test_lens_any(void **state)
{
    char *in = temporary_path(*state, "in"), *out = temporary_path(*state, "out");
    char *file = temporary_path(*state, "in/transforms.json");
    make_pictures(*state, "in/images", 40, 30);
    for (uint32_t seed = 0; seed < 200; seed++)
        check_any(file, in, out, 2654435761u * seed);
}

/* ---- LLFF ------------------------------------------------------------------------------------ */

/* Returns poses_bounds.npy of known cameras, in the given type and order. */
static struct base_text make_npy(const char *type, bool fortran)
{
    struct base_text text = {0};
    char *header = base_format("{'descr': '%s', 'fortran_order': %s, 'shape': (%u, 17), } ", type,
                               fortran ? "True" : "False", VIEWS);
    const uint8_t start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)strlen(header), 0};
    base_text_add_bytes(&text, start, sizeof(start));
    base_text_add(&text, "%s", header);
    free(header);
    for (unsigned n = 0; n < VIEWS * 17; n++) {
        unsigned row = fortran ? n % VIEWS : n / 17, column = fortran ? n / VIEWS : n % 17;
        double axes[3][3], position[3];
        known_camera(row, VIEWS, axes, position);
        unsigned i = column / 5, j = column % 5;
        const double size[5] = {300, 400, 350, 3.125 + 0.25 * row, 9.5};
        double value = column >= 15 ? size[3 + column - 15]
                       : j == 4     ? size[i]
                       : j == 3     ? position[i]
                       : j == 2     ? -axes[2][i]
                                    : axes[1 - j][i];
        float single = (float)value;
        uint8_t bytes[8], width = type[2] == '8' ? 8 : 4;
        memcpy(bytes, width == 8 ? (void *)&value : (void *)&single, width);
        for (unsigned k = 0; k < width; k++)
            base_text_add_bytes(&text, &bytes[type[0] == '>' ? width - 1 - k : k], 1);
    }
    return text;
}

static void check_llff(struct temporary *folder, const char *type, bool fortran, unsigned number)
{
    char *name = base_format("in%u", number), *file = base_format("in%u/poses_bounds.npy", number);
    char *pictures = base_format("in%u/images", number), *copy = base_format("out%u", number);
    char *in = make_folder(folder, name), *out = make_folder(folder, copy);
    make_pictures(folder, pictures, 400, 300);
    struct base_text text = make_npy(type, fortran);
    temporary_file(folder, file, text.data, text.size);
    const struct scene_new_camera poses[2] = {pose_of(0, 6, 6), pose_of(0, 1, 1)};
    write_copy(in, poses, 2, out, in);
    check_copy(VKN_SCENE_LLFF, in, out, poses, 2, type[2] == '8' ? 1e-14 : 1e-6);
    char *written = NULL, *path = base_path_join(out, "poses_bounds.npy");
    size_t size = 0, changed = 0, width = type[2] == '8' ? 8 : 4;
    assert_ok(base_file_read(path, SIZE_MAX, &written, &size));
    assert_int_equal(size, text.size);
    for (size_t i = size - VIEWS * 17 * width; i < size; i += width)
        changed += memcmp(written + i, text.data + i, width) != 0 ? 1 : 0;
    assert_memory_equal(written, text.data, size - VIEWS * 17 * width);
    assert_in_range(changed, 2 * 9, 2 * 12); /* the y axis may stay */
    free(path);
    free(written);
    free(text.data);
    free(copy);
    free(pictures);
    free(file);
    free(name);
}

static void test_llff(void **state)
{
    struct temporary *folder = *state;
    check_llff(folder, "<f8", false, 0);
    check_llff(folder, "<f4", true, 1);
    check_llff(folder, ">f8", true, 2);
    check_llff(folder, ">f4", false, 3);
    const struct scene_new_camera beyond = pose_of(0, VIEWS, 1);
    assert_write_fails(make_folder(folder, "in0"), &beyond, 1, make_folder(folder, "out"),
                       "poses[8]: it has a new camera");
}

/* Rows hold one focal length, in pixels of an image whose size is in the row. */
static void test_llff_lens(void **state)
{
    struct temporary *folder = *state;
    struct base_text text = make_npy("<f8", false);
    char *in = make_folder(folder, "in"), *out = make_folder(folder, "out");
    make_pictures(folder, "in/images", 200, 150);
    temporary_file(folder, "in/poses_bounds.npy", text.data, text.size);
    free(text.data);
    struct scene_new_camera cameras[2] = {lens_of(6, 180, 180, 100, 75 + 1e-6),
                                          lens_of(1, 170, 170, 100, 75)};
    write_copy(in, cameras, 2, out, in);
    check_copy(VKN_SCENE_LLFF, in, out, cameras, 2, 1e-14);
    struct frames frames = read_frames(VKN_SCENE_LLFF, out);
    assert_true(frames.files[0].frames[6].lens.focal[0] == 360);
    free_frames(&frames);

    out = make_folder(folder, "out2");
    cameras[1].focal[1] = 171;
    assert_write_fails(in, cameras, 2, out, "poses_bounds.npy: poses[1]: fl_y: the format has one");
    cameras[1] = lens_of(1, 170, 170, 101, 75);
    assert_write_fails(in, cameras, 2, out, "poses_bounds.npy: poses[1]: cx: the format has one");
    cameras[1] = lens_of(1, 170, 170, 100, 75);
    cameras[1].distortion[SCENE_k2] = 0.01;
    assert_write_fails(in, cameras, 2, out, "poses_bounds.npy: poses[1]: k2: the format has one");
}

/* ---- NSVF ------------------------------------------------------------------------------------ */

/* Makes a capture whose pose files differ in layout; `inverse`: world to camera. */
static void make_nsvf(struct temporary *folder, bool inverse)
{
    make_pictures(folder, "in/rgb", 40, 30);
    temporary_text(folder, "in/intrinsics.txt", "35 0 19 0\n0 36 16 0\n0 0 1 0\n0 0 0 1\n");
    for (unsigned n = 0; n < VIEWS; n++) {
        double axes[3][3], position[3], rows[16] = {[15] = 1};
        struct base_text text = {0};
        known_camera(n, VIEWS, axes, position);
        for (ptrdiff_t i = 0; i < 3; i++)
            for (ptrdiff_t j = 0; j < 3; j++) {
                rows[4 * i + j] = inverse ? axes[i][j] : axes[j][i];
                rows[4 * i + 3] += inverse ? -axes[i][j] * position[j] : position[i] / 3;
            }
        base_text_add(&text, "%s", n == 0 ? "# a pose\n 30 40 # a size\n" : "");
        for (int i = 0; i < (n == 1 ? 12 : 16); i++)
            base_text_add(&text, "%.17g%s", rows[i], n == 2 || i % 4 < 3 ? "\t " : "\n");
        char *name =
            base_format("in/%s/%u.%s", inverse ? "extrinsic" : "pose", n, n == 3 ? "TXT" : "txt");
        temporary_file(folder, name, text.data, text.size);
        free(text.data);
        free(name);
    }
}

static void check_nsvf(struct temporary *folder, bool inverse)
{
    make_nsvf(folder, inverse);
    char *in = make_folder(folder, "in"), *out = make_folder(folder, "out");
    struct scene_new_camera poses[4];
    for (unsigned i = 0; i < 4; i++)
        poses[i] = pose_of(0, i, i);
    write_copy(in, poses, 4, out, in);
    check_copy(VKN_SCENE_NSVF, in, out, poses, 4, 1e-13);
    const char *part = inverse ? "extrinsic" : "pose";
    char *first = base_format("out/%s/0.txt", part), *other = base_format("out/%s/5.txt", part),
         *upper = base_format("out/%s/3.TXT", part), *text = NULL;
    size_t size = 0;
    assert_ok(base_file_read(temporary_path(folder, first), SIZE_MAX, &text, &size));
    assert_memory_equal(text, "# a pose\n 30 40 # a size\n", 25);
    assert_string_equal(text + size - 8, "0\t 0\t 1\n");
    assert_true(is_link(folder, other) && exists(folder, upper) && !is_link(folder, upper));
    assert_true(is_link(folder, "out/rgb") && is_link(folder, "out/intrinsics.txt"));
    free(text);
    free(upper);
    free(other);
    free(first);
}

static void test_nsvf(void **state)
{
    check_nsvf(*state, false);
}

static void test_nsvf_inverse(void **state)
{
    check_nsvf(*state, true);
}

static void check_nsvf_lens(struct temporary *folder, const char *before, const char *after,
                            const struct scene_new_camera cameras[VIEWS])
{
    char *in = temporary_path(folder, "in"), *out = make_folder(folder, "out");
    temporary_text(folder, "in/intrinsics.txt", before);
    write_copy(in, cameras, VIEWS, out, in);
    check_copy(VKN_SCENE_NSVF, in, out, cameras, VIEWS, 1e-13);
    assert_text(temporary_path(folder, "out/intrinsics.txt"), after);
    remove_tree(out);
}

/* Matrices hold two focal lengths and a centre, a first line one focal length. */
static void test_nsvf_lens(void **state)
{
    struct temporary *folder = *state;
    struct scene_new_camera cameras[VIEWS];
    make_nsvf(folder, false);
    for (unsigned n = 0; n < VIEWS; n++)
        cameras[n] = lens_of(n, 36, 36.5, 20.25, 14.5);
    check_nsvf_lens(folder, "# k\n40 30\n35 0 19 0\n0 36 16\t0\n0 0 1 0\n0 0 0 1\n",
                    "# k\n40 30\n36 0 20.25 0\n0 36.5 14.5\t0\n0 0 1 0\n0 0 0 1\n", cameras);
    check_nsvf_lens(folder, "35 0 19  0 36 16  0 0 1", "36 0 20.25  0 36.5 14.5  0 0 1", cameras);
    temporary_text(folder, "in/intrinsics.txt", "35 19 16 0\n0 0 0\n");
    char *in = temporary_path(folder, "in"), *out = make_folder(folder, "out2");
    assert_write_fails(in, cameras, VIEWS, out, "intrinsics.txt: fl_y: the format has one focal");
    for (unsigned n = 0; n < VIEWS; n++)
        cameras[n].focal[1] = 36;
    check_nsvf_lens(folder, "35 19 16 0\n0 0 0\n", "36 20.25 14.5 0\n0 0 0\n", cameras);
    cameras[3].center[0] = 21;
    assert_write_fails(in, cameras, VIEWS, out, "intrinsics.txt: cx: images have different new");
    for (unsigned n = 0; n < VIEWS; n++) {
        cameras[n] = lens_of(n, 36, 36, 20, 15);
        cameras[n].distortion[SCENE_p1] = 0.01;
    }
    assert_write_fails(in, cameras, VIEWS, out, "intrinsics.txt: p1: the format has one focal");
}

/* ---- COLMAP ---------------------------------------------------------------------------------- */

#define POINTS 61u

/* A model whose image n has id 100 - n, lens n and all points, as its 2D points (7 i + n) %
 * POINTS. */
struct model {
    double offset;   /* added to all coordinates */
    double noise;    /* of observations, pixels */
    double wrong;    /* distance of the old positions of points from the true ones */
    unsigned moved;  /* number of images with new poses; the others are right */
    bool has_lenses; /* new poses come with new lenses (new_lens) */
    double points[POINTS][3];
    double observed[VIEWS][POINTS][2];
};

static uint32_t index_in(unsigned image, unsigned point)
{
    return (7 * point + image) % POINTS;
}

/* Returns the new lens of image `image`: with all coefficients that a model for it has. */
static struct lens new_lens(unsigned image)
{
    struct lens lens = lenses[image];
    for (int i = 0; i < 2; i++) {
        lens.f[i] = 365 + 4 * i + image;
        lens.c[i] = lenses[image].c[i] + 3 + i;
        lens.k[i] = lenses[image].k[i] + 0.01 + 0.005 * i;
        lens.p[i] = lens.fisheye && lens.model != 10 ? 0 : lenses[image].p[i] + 0.002;
    }
    return lens;
}

static void set_new_lens(unsigned image, struct scene_new_camera *camera)
{
    const struct lens lens = new_lens(image);
    camera->has_lens = true;
    memcpy(camera->focal, lens.f, sizeof(lens.f));
    memcpy(camera->center, lens.c, sizeof(lens.c));
    const double k[SCENE_COEFFICIENT_COUNT] = {lens.k[0], lens.k[1], lens.p[0], lens.p[1],
                                               lens.k[2], lens.k[3], lens.p[2], lens.p[3]};
    memcpy(camera->distortion, k, sizeof(k));
}

/* Projects a point by the equations of image `image` with its new pose. */
static void project(const struct model *model, unsigned image, const double point[3],
                    double pixel[2])
{
    double pose[12], local[3] = {0}, ideal[2];
    new_pose(image, pose);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++)
            local[k] += (k == 0 ? 1 : -1) * pose[4 * i + k] *
                        (point[i] - (pose[4 * i + 3] + model->offset));
    ideal[0] = local[0] / local[2];
    ideal[1] = local[1] / local[2];
    const struct lens lens = model->has_lenses ? new_lens(image) : lenses[image];
    pixel_of(&lens, ideal, pixel);
}

static struct model make_lens_points(double offset, double noise, double wrong, bool has_lenses)
{
    struct model model = {
        .offset = offset, .noise = noise, .wrong = wrong, .moved = VIEWS, .has_lenses = has_lenses};
    uint32_t seed = 1;
    for (unsigned p = 0; p < POINTS; p++)
        for (int i = 0; i < 3; i++)
            model.points[p][i] = 1.0 + i + offset + 0.8 * random_number(&seed);
    for (unsigned n = 0; n < VIEWS; n++)
        for (unsigned p = 0; p < POINTS; p++) {
            double pixel[2];
            project(&model, n, model.points[p], pixel);
            for (int i = 0; i < 2; i++)
                model.observed[n][index_in(n, p)][i] = pixel[i] + noise * random_number(&seed);
        }
    return model;
}

static struct model make_points(double offset, double noise, double wrong)
{
    return make_lens_points(offset, noise, wrong, false);
}

static void old_pose(const struct model *model, unsigned image, double numbers[7])
{
    double axes[3][3], position[3];
    known_camera(image, VIEWS, axes, position);
    for (int k = 0; k < 3 && image >= model->moved; k++) {
        double pose[12];
        new_pose(image, pose);
        for (int i = 0; i < 3; i++)
            axes[k][i] = (k == 0 ? 1 : -1) * pose[4 * i + k];
        position[k] = pose[4 * k + 3];
    }
    quaternion_of(axes, numbers);
    for (int i = 0; i < 3; i++) {
        numbers[4 + i] = 0;
        for (int j = 0; j < 3; j++)
            numbers[4 + i] -= axes[i][j] * (position[j] + model->offset);
    }
}

static void old_point(const struct model *model, unsigned p, double point[3])
{
    for (int i = 0; i < 3; i++)
        point[i] = model->points[p][i] + model->wrong * sin(p + 2.0 * i);
}

/* Points 0 and 1 have tracks with an unknown image and with an unknown 2D point. */
static void track_of(unsigned p, unsigned n, uint32_t ids[2])
{
    ids[0] = p == 0 && n == 3 ? 7 : 100 - n;
    ids[1] = p == 1 && n == 3 ? POINTS : index_in(n, p);
}

static void write_binary(struct temporary *folder, const char *where, const struct model *model)
{
    struct base_text cameras = {0}, images = {0}, points = {0};
    add_u64(&cameras, VIEWS);
    add_u64(&images, VIEWS);
    add_u64(&points, POINTS);
    for (unsigned n = 0; n < VIEWS; n++) {
        double pose[7];
        char name[16];
        add_u32(&cameras, 10 + n);
        add_u32(&cameras, (uint32_t)lenses[n].model);
        add_u64(&cameras, WIDTH);
        add_u64(&cameras, HEIGHT);
        add_doubles(&cameras, lenses[n].parameters, lenses[n].count);
        old_pose(model, n, pose);
        add_u32(&images, 100 - n);
        add_doubles(&images, pose, 7);
        add_u32(&images, 10 + n);
        snprintf(name, sizeof(name), "%u.png", n);
        base_text_add_bytes(&images, name, strlen(name) + 1);
        add_u64(&images, POINTS);
        for (unsigned k = 0; k < POINTS; k++) {
            add_doubles(&images, model->observed[n][k], 2);
            add_u64(&images, UINT64_MAX);
        }
    }
    for (unsigned p = 0; p < POINTS; p++) {
        double point[3];
        old_point(model, p, point);
        add_u64(&points, 5 + p);
        add_doubles(&points, point, 3);
        base_text_add_bytes(&points, "abc", 3);
        add_doubles(&points, (const double[1]){0.5}, 1);
        add_u64(&points, VIEWS);
        for (unsigned n = 0; n < VIEWS; n++) {
            uint32_t ids[2];
            track_of(p, n, ids);
            add_u32(&points, ids[0]);
            add_u32(&points, ids[1]);
        }
    }
    struct base_text *const texts[] = {&cameras, &images, &points};
    static const char *const names[] = {"cameras", "images", "points3D"};
    for (int i = 0; i < 3; i++) {
        char *name = base_format("%s/%s.bin", where, names[i]);
        temporary_file(folder, name, texts[i]->data, texts[i]->size);
        free(texts[i]->data);
        free(name);
    }
}

static void write_text(struct temporary *folder, const char *where, const struct model *model)
{
    struct base_text cameras = {0}, images = {0}, points = {0};
    base_text_add(&images, "# Image list\r\n");
    for (unsigned n = 0; n < VIEWS; n++) {
        double pose[7];
        base_text_add(&cameras, "%u %s %d %d", 10 + n, lenses[n].name, WIDTH, HEIGHT);
        for (unsigned k = 0; k < lenses[n].count; k++)
            base_text_add(&cameras, " %.17g", lenses[n].parameters[k]);
        base_text_add(&cameras, "\n");
        old_pose(model, n, pose);
        base_text_add(&images, " %u\t", 100 - n);
        for (int k = 0; k < 7; k++)
            base_text_add(&images, " %.17g", pose[k]);
        base_text_add(&images, "  %u %u.png\n", 10 + n, n);
        for (unsigned k = 0; k < POINTS; k++)
            base_text_add(&images, "%.17g %.17g -1 ", model->observed[n][k][0],
                          model->observed[n][k][1]);
        base_text_add(&images, "\r\n");
    }
    for (unsigned p = 0; p < POINTS; p++) {
        double point[3];
        old_point(model, p, point);
        base_text_add(&points, "%u  %.17g %.17g  %.17g 97 98 99 0.50 ", 5 + p, point[0], point[1],
                      point[2]);
        for (unsigned n = 0; n < VIEWS; n++) {
            uint32_t ids[2];
            track_of(p, n, ids);
            base_text_add(&points, " %u %u", ids[0], ids[1]);
        }
        base_text_add(&points, "\n");
    }
    struct base_text *const texts[] = {&cameras, &images, &points};
    static const char *const names[] = {"cameras", "images", "points3D"};
    for (int i = 0; i < 3; i++) {
        char *name = base_format("%s/%s.txt", where, names[i]);
        temporary_file(folder, name, texts[i]->data, texts[i]->size);
        free(texts[i]->data);
        free(name);
    }
}

/* A model of the copy, with its points' errors. */
struct written {
    struct colmap model;
    double errors[POINTS];
};

static struct written read_written(const char *folder, bool binary)
{
    static const char *const names[] = {"cameras", "images", "points3D"};
    colmap_parser *const parsers[2][3] = {
        {colmap_text_cameras, colmap_text_images, colmap_text_points},
        {colmap_binary_cameras, colmap_binary_images, colmap_binary_points}};
    struct written written = {.errors = {0}};
    for (int i = 0; i < 3; i++) {
        char *path = base_format("%s/%s.%s", folder, names[i], binary ? "bin" : "txt"),
             *data = NULL;
        size_t size = 0;
        assert_ok(colmap_read_file(path, &data, &size));
        assert_ok(parsers[binary][i](path, data, size, &written.model));
        for (size_t p = 0; i == 2 && p < written.model.point_count; p++) {
            const char *at = data + written.model.point_spans[p].error.begin;
            if (binary)
                memcpy(&written.errors[p], at, sizeof(double));
            else
                written.errors[p] = strtod(at, NULL);
        }
        free(data);
        free(path);
    }
    return written;
}

static void make_new_poses(const struct model *model, struct scene_new_camera poses[VIEWS])
{
    for (unsigned n = 0; n < VIEWS; n++) {
        poses[n] = pose_of(0, n, n);
        for (int i = 0; i < 3; i++)
            poses[n].pose[4 * i + 3] += model->offset;
        if (model->has_lenses)
            set_new_lens(n, &poses[n]);
    }
}

/* Returns the mean error and the sum of squared errors of a point, by COLMAP's equations. */
static double error_of(const struct model *model, unsigned p, const double point[3],
                       double *squares)
{
    double sum = 0;
    *squares = 0;
    for (unsigned n = 0; n < VIEWS; n++) {
        double pixel[2];
        project(model, n, point, pixel);
        const double *observed = model->observed[n][index_in(n, p)];
        double distance = hypot(pixel[0] - observed[0], pixel[1] - observed[1]);
        sum += distance / VIEWS;
        *squares += distance * distance;
    }
    return sum;
}

/* Writes a copy of a model and reads it. */
static struct written rewrite(struct temporary *folder, const struct model *model, bool binary,
                              const char *name)
{
    struct scene_new_camera poses[VIEWS];
    char *in = base_format("%s-in", name), *sparse = base_format("%s-in/sparse/0", name);
    char *pictures = base_format("%s-in/images", name), *out = base_format("%s-out", name);
    (binary ? write_binary : write_text)(folder, sparse, model);
    make_pictures(folder, pictures, WIDTH, HEIGHT);
    make_new_poses(model, poses);
    char *from = temporary_path(folder, in), *to = make_folder(folder, out);
    write_copy(from, poses, model->moved, to, from);
    check_copy(VKN_SCENE_COLMAP, from, to, poses, model->moved, 1e-14 + 1e-15 * model->offset);
    char *written = base_format("%s/sparse/0", to);
    struct written result = read_written(written, binary);
    free(written);
    free(out);
    free(pictures);
    free(sparse);
    free(in);
    return result;
}

/* Points 0 and 1 keep their old positions and errors: their tracks are invalid. */
static void check_kept(const struct model *model, const struct written *written)
{
    for (unsigned p = 0; p < 2; p++) {
        double old[3];
        old_point(model, p, old);
        assert_memory_equal(written->model.points[p].position, old, sizeof(old));
        assert_true(written->errors[p] == 0.5);
    }
}

static void check_exact(struct temporary *folder, bool binary, unsigned moved)
{
    struct model model = make_points(0, 0, 0.2);
    model.moved = moved;
    struct written written = rewrite(folder, &model, binary, "exact");
    assert_int_equal(written.model.point_count, POINTS);
    check_kept(&model, &written);
    for (unsigned p = 2; p < POINTS; p++) {
        for (int i = 0; i < 3; i++)
            assert_true(fabs(written.model.points[p].position[i] - model.points[p][i]) < 1e-7);
        assert_memory_equal(written.model.points[p].color, "abc", 3);
        assert_true(written.errors[p] >= 0 && written.errors[p] < 1e-5);
    }
    colmap_free(&written.model);
}

static void test_colmap_exact(void **state)
{
    check_exact(*state, true, VIEWS);
}

static void test_colmap_exact_text(void **state)
{
    check_exact(*state, false, VIEWS);
}

/* The images of some tracks have new poses only in part. */
static void test_colmap_some(void **state)
{
    check_exact(*state, true, 3);
}

/* Points fit new lenses, whose cameras get models that can hold them. */
static void check_lens_model(struct temporary *folder, bool binary)
{
    static const int models[VIEWS] = {10, 4, 4, 4, 4, 5, 5, 5};
    struct model model = make_lens_points(0, 1, 0.1, true);
    struct written written = rewrite(folder, &model, binary, "lens");
    check_kept(&model, &written);
    for (unsigned p = 2; p < POINTS; p++) {
        double squares, error = error_of(&model, p, written.model.points[p].position, &squares);
        assert_true(error > 0.1 && error < 2 && fabs(written.errors[p] - error) < 1e-5);
    }
    assert_int_equal(written.model.camera_count, VIEWS);
    for (unsigned n = 0; n < VIEWS; n++) {
        const struct colmap_camera *camera = &written.model.cameras[n];
        const struct lens lens = new_lens(n);
        assert_int_equal(camera->model->id, models[n]);
        assert_int_equal(camera->id, 10 + n);
        assert_memory_equal(camera->lens.focal, lens.f, sizeof(lens.f));
        assert_memory_equal(camera->lens.center, lens.c, sizeof(lens.c));
    }
    colmap_free(&written.model);
}

static void test_colmap_lens(void **state)
{
    check_lens_model(*state, true);
}

static void test_colmap_lens_text(void **state)
{
    check_lens_model(*state, false);
}

/* Cameras in another order than by their ids, of several images, of another size than the images,
 * and of models that can hold the lens. */
static void test_colmap_lens_files(void **state)
{
    struct temporary *folder = *state;
    temporary_text(
        folder, "in/cameras.txt",
        "# cameras\n 7  SIMPLE_PINHOLE 80 60  70 40 30 \n\n3 SIMPLE_RADIAL 80 60 70 40 30 0.1"
        "\r\n5 PINHOLE 80 60 70 71 40 30\n");
    temporary_text(folder, "in/points3D.txt", "1 0 0.25 8 1 2 3 9 2 0\n2 0 0 5 1 2 3 9 3 0\n");
    temporary_text(folder, "in/images.txt",
                   "1 1 0 0 0 0 0 0 7 0.png\n\n2 1 0 0 0 0 0 0 7 1.png\n44 34 1\n"
                   "3 1 0 0 0 0 0 0 5 2.png\n44 34 2\n4 1 0 0 0 0 0 0 3 3.png\n\n");
    make_pictures(folder, "in/images", 40, 30);
    make_pictures(folder, "in/images_2", 20, 15);
    char *in = temporary_path(folder, "in"), *out = make_folder(folder, "out");
    struct scene_new_camera cameras[3] = {lens_of(0, 36, 36, 20, 14.5), lens_of(3, 37, 37, 20, 15),
                                          lens_of(1, 36, 36, 20, 14.5)};
    for (int n = 0; n < 3; n++)
        memcpy(cameras[n].pose, (double[12]){1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0}, 96);
    cameras[1].distortion[SCENE_k1] = 0.125;
    write_copy(in, cameras, 2, out, in);
    static const char wanted[] =
        "# cameras\n 7  SIMPLE_PINHOLE 80 60  72 40 29 \n\n3 SIMPLE_RADIAL 80 60 74 40 30 0.125"
        "\r\n5 PINHOLE 80 60 70 71 40 30\n";
    assert_text(temporary_path(folder, "out/cameras.txt"), wanted);
    /* Image 2 has no new camera, but shares the lens: its point moves. Image 3's stays. */
    struct written written = read_written(out, false);
    assert_true(written.errors[0] < 1e-6 && written.errors[1] == 9);
    assert_true(fabs(written.model.points[0].position[0] / written.model.points[0].position[2] -
                     4.0 / 72) < 1e-9);
    colmap_free(&written.model);

    /* The pixels are those of the large images, though smaller ones are read. */
    const struct scene_options options = {.path = in, .downscale = 2};
    struct vkn_scene *scene = NULL;
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->load_downscale, 1);
    assert_ok(scene_write(scene, cameras, 3, make_folder(folder, "out2"), false));
    assert_text(temporary_path(folder, "out2/cameras.txt"), wanted);
    scene_close(&scene);

    out = make_folder(folder, "out3");
    cameras[2].center[1] = 14;
    assert_write_fails(in, cameras, 3, out, "cameras.txt: camera 7: cy: its images have different");
    cameras[1].distortion[SCENE_k3] = 0.125;
    assert_write_fails(in, cameras, 2, out, "cameras.txt: camera 3: k3: none of COLMAP's models");
}

/* Positions are least-squares optima, and errors those of COLMAP's equations. */
static void test_colmap_noise(void **state)
{
    struct model model = make_points(0, 3, 0.1);
    struct written binary = rewrite(*state, &model, true, "noise");
    struct written text = rewrite(*state, &model, false, "noise-text");
    check_kept(&model, &binary);
    for (unsigned p = 2; p < POINTS; p++) {
        double *position = binary.model.points[p].position, squares, other;
        double error = error_of(&model, p, position, &squares);
        assert_true(error > 0.3 && fabs(binary.errors[p] - error) < 1e-5);
        for (int i = 0; i < 6; i++) {
            double moved[3];
            memcpy(moved, position, sizeof(moved));
            moved[i / 2] += i % 2 == 0 ? 1e-3 : -1e-3;
            error_of(&model, p, moved, &other);
            assert_true(other > squares);
        }
        assert_memory_equal(text.model.points[p].position, position, 24);
        assert_true(text.errors[p] == binary.errors[p]);
    }
    for (unsigned n = 0; n < VIEWS; n++) {
        assert_memory_equal(text.model.images[n].rotation, binary.model.images[n].rotation, 32);
        assert_memory_equal(text.model.images[n].translation, binary.model.images[n].translation,
                            24);
    }
    colmap_free(&binary.model);
    colmap_free(&text.model);
}

/* Coordinates far from the origin, as in georeferenced captures. */
static void test_colmap_far(void **state)
{
    struct model model = make_points(4e6, 0, 0.1);
    struct written written = rewrite(*state, &model, true, "far");
    for (unsigned p = 2; p < POINTS; p++) {
        for (int i = 0; i < 3; i++)
            assert_true(fabs(written.model.points[p].position[i] - model.points[p][i]) < 1e-6);
        assert_true(written.errors[p] < 1e-4);
    }
    colmap_free(&written.model);
}

/* Everything but poses, positions and errors stays byte for byte; so do points without a new pose
 * in their tracks, and points behind a camera. */
static void test_colmap_bytes(void **state)
{
    struct temporary *folder = *state;
    struct model model = make_points(0, 1, 0.1);
    struct scene_new_camera poses[VIEWS];
    make_new_poses(&model, poses);
    write_binary(folder, "in/sparse/0", &model);
    make_pictures(folder, "in/images", WIDTH, HEIGHT);
    char *in = temporary_path(folder, "in"), *out = make_folder(folder, "out");
    char *old = NULL, *new = NULL;
    size_t size = 0, new_size = 0;

    /* One new pose: the other poses stay. */
    write_copy(in, &poses[5], 1, out, in);
    assert_ok(
        base_file_read(temporary_path(folder, "in/sparse/0/images.bin"), SIZE_MAX, &old, &size));
    assert_ok(base_file_read(temporary_path(folder, "out/sparse/0/images.bin"), SIZE_MAX, &new,
                             &new_size));
    size_t image = (size - 8) / VIEWS, begin = 8 + 5 * image + 4;
    assert_int_equal(size, new_size);
    assert_memory_equal(old, new, begin);
    assert_memory_not_equal(old + begin, new + begin, 56);
    assert_memory_equal(old + begin + 56, new + begin + 56, size - begin - 56);
    free(old);
    free(new);

    /* The camera, a pinhole, looks away: no point moves. */
    for (int i = 0; i < 3; i++) {
        poses[1].pose[4 * i] *= -1;
        poses[1].pose[4 * i + 2] *= -1;
    }
    static const char *const same[] = {"points3D", "cameras", "images"};
    make_folder(folder, "out2");
    make_folder(folder, "out3");
    write_copy(in, &poses[1], 1, temporary_path(folder, "out2"), in);
    write_copy(in, poses, 0, temporary_path(folder, "out3"), in); /* nothing changes */
    for (int i = 0; i < 5; i++) {
        char *a = base_format("in/sparse/0/%s.bin", same[i / 2]);
        char *b = base_format("out%d/sparse/0/%s.bin", 3 - i % 2, same[i / 2]);
        assert_ok(base_file_read(temporary_path(folder, a), SIZE_MAX, &old, &size));
        assert_ok(base_file_read(temporary_path(folder, b), SIZE_MAX, &new, &new_size));
        assert_int_equal(size, new_size);
        assert_memory_equal(old, new, size);
        free(old);
        free(new);
        free(a);
        free(b);
    }
}

/* Stale files of the model are neither linked nor written; damaged files are refused. */
static void test_colmap_files(void **state)
{
    static const char *const stale[] = {"images.txt", "points3D.txt", "points3D.ply", "rigs.bin",
                                        "frames.bin"};
    struct temporary *folder = *state;
    struct model model = make_points(0, 1, 0.1);
    struct scene_new_camera poses[VIEWS];
    make_new_poses(&model, poses);
    write_binary(folder, "in/sparse/1", &model);
    write_binary(folder, "in/sparse/0", &model);
    temporary_text(folder, "in/sparse/1/project.ini", "x");
    make_pictures(folder, "in/images", WIDTH, HEIGHT);
    for (size_t i = 0; i < BASE_COUNT(stale); i++) {
        char *name = base_format("in/sparse/1/%s", stale[i]);
        temporary_text(folder, name, "old");
        free(name);
    }
    /* Given as the folder of a model, the scene is still the whole capture. */
    char *in = temporary_path(folder, "in"), *model_path = temporary_path(folder, "in/sparse/1"),
         *out = make_folder(folder, "out");
    struct vkn_scene *scene = open_scene(model_path);
    assert_ok(scene_write(scene, poses, VIEWS, out, false));
    scene_close(&scene);
    assert_true(is_link(folder, "out/images") && is_link(folder, "out/sparse/0"));
    assert_true(is_link(folder, "out/sparse/1/project.ini"));
    assert_false(is_link(folder, "out/sparse/1") || is_link(folder, "out/sparse/1/cameras.bin"));
    for (size_t i = 0; i < BASE_COUNT(stale); i++) {
        char *name = base_format("out/sparse/1/%s", stale[i]);
        assert_false(exists(folder, name));
        free(name);
    }
    check_copy(VKN_SCENE_COLMAP, model_path, temporary_path(folder, "out/sparse/1"), poses, VIEWS,
               1e-14);

    /* A stale file in the copy would be read by others. */
    temporary_text(folder, "out2/sparse/0/images.txt", "old");
    assert_write_fails(in, poses, VIEWS, temporary_path(folder, "out2"), "images.txt: it exists");

    const struct scene_new_camera beyond = pose_of(0, VIEWS, 1);
    out = make_folder(folder, "out3");
    assert_write_fails(in, &beyond, 1, out, "images.bin: images[8]: it has a new camera");
    scene = open_scene(in);
    char *data = NULL, *path = temporary_path(folder, "in/sparse/0/images.bin");
    size_t size = 0;
    assert_ok(base_file_read(path, SIZE_MAX, &data, &size));
    temporary_file(folder, "in/sparse/0/images.bin", data, size / 2);
    assert_int_equal(scene_write(scene, poses, VIEWS, out, false), VKN_BAD_INPUT);
    assert_error("images.bin: image 4 of 8: cut off");
    free(data);
    assert_int_equal(unlink(temporary_path(folder, "in/sparse/0/cameras.bin")), 0);
    assert_int_equal(unlink(temporary_path(folder, "in/sparse/1/cameras.bin")), 0);
    assert_int_equal(scene_write(scene, poses, VIEWS, out, false), VKN_BAD_INPUT);
    assert_error("cameras.bin: No such file");
    scene_close(&scene);
}

/* A panorama's residual is the shorter way around; a track of one image does not fail. */
static void test_colmap_panorama(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "in/cameras.txt", "1 EQUIRECTANGULAR 400 200 400 200\n");
    temporary_text(folder, "in/points3D.txt",
                   "1 0 0.25 -8 1 2 3 9 1 0 2 0 3 0\n2 1 1 5 1 2 3 9 1 1\n");
    /* The cameras look along z; the first point is behind them, at x = 0 and 400. */
    temporary_text(folder, "in/images.txt",
                   "1 1 0 0 0 1 0 0 1 0.png\n391 100 1 250 80 2\n"
                   "2 1 0 0 0 -1 0 0 1 1.png\n9 100 1\n3 1 0 0 0 0 1 0 1 2.png\n399.5 109 1\n");
    make_pictures(folder, "in/images", 400, 200);
    struct scene_new_camera poses[3];
    for (uint32_t i = 0; i < 3; i++)
        poses[i] =
            (struct scene_new_camera){.frame = i, .pose = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0}};
    poses[0].pose[3] = -1;
    poses[1].pose[3] = 1;
    poses[2].pose[7] = -1;
    char *in = temporary_path(folder, "in"), *out = make_folder(folder, "out");
    write_copy(in, poses, 3, out, in);
    struct written written = read_written(out, false);
    /* atan(1 / 7) is 9 pixels */
    assert_true(fabs(written.model.points[0].position[2] + 7) < 0.4);
    assert_true(written.errors[0] < 1);
    assert_true(written.errors[1] < 1e-6);
    colmap_free(&written.model);
}

/* ---- links ----------------------------------------------------------------------------------- */

static char *make_small(struct temporary *folder, const char *name)
{
    char *pictures = base_format("%s/images", name),
         *file = base_format("%s/transforms.json", name);
    make_pictures(folder, pictures, 40, 30);
    write_filled(folder, file,
                 "{\"camera_angle_x\": 1, \"frames\": ["
                 "{\"file_path\": \"images/0.png\", \"transform_matrix\": $}]}");
    free(file);
    free(pictures);
    return temporary_path(folder, name);
}

static void test_links(void **state)
{
    struct temporary *folder = *state;
    char *in = make_small(folder, "in"), *other = make_small(folder, "other");
    const struct scene_new_camera pose = pose_of(0, 0, 3);
    temporary_text(folder, "in/.hidden", "x");
    temporary_text(folder, "in/notes/a.txt", "x");
    temporary_text(folder, "in/results/old/b.txt", "x");

    /* Inside the scene's folder, two levels deep: the folder on the way is not linked. */
    char *out = make_folder(folder, "in/results/new");
    temporary_text(folder, "in/results/new/report.html", "stays");
    temporary_text(folder, "in/results/new/notes/own.txt", "stays");
    write_copy(in, &pose, 1, out, in);
    check_copy(VKN_SCENE_TRANSFORMS, in, out, &pose, 1, 1e-14);
    assert_text(temporary_path(folder, "in/results/new/report.html"), "stays");
    assert_true(is_link(folder, "in/results/new/images"));
    assert_false(exists(folder, "in/results/new/notes/a.txt"));
    assert_text(temporary_path(folder, "in/results/new/notes/own.txt"), "stays");
    assert_true(is_link(folder, "in/results/new/results/old"));
    assert_false(exists(folder, "in/results/new/results/new")); /* nor is the folder results */
    assert_false(exists(folder, "in/results/new/.hidden"));

    /* A copy of a copy does not depend on the first copy. */
    char *again = make_folder(folder, "again");
    write_copy(out, &pose, 1, again, in);
    remove_tree(out);
    struct vkn_scene *scene = open_scene(again);
    scene_close(&scene);

    /* The scene's own folder, an existing entry, no folder. */
    assert_write_fails(other, &pose, 1, other, "it exists already");
    out = make_folder(folder, "taken");
    temporary_text(folder, "taken/images", "x");
    assert_write_fails(other, &pose, 1, out, "taken/images: it exists already");
    scene = open_scene(other);
    assert_int_equal(scene_write(scene, &pose, 1, temporary_path(folder, "absent"), false),
                     VKN_BAD_INPUT);
    assert_error("absent: No such file");
    scene_close(&scene);
}

/* Links of the scene that lead nowhere, or to the folder of the copy, are left out; such a link of
 * the copy is in the way. */
static void test_broken_links(void **state)
{
    struct temporary *folder = *state;
    char *in = make_small(folder, "in"), *out = make_folder(folder, "in/results/new");
    const struct scene_new_camera pose = pose_of(0, 0, 3);
    assert_int_equal(symlink("/nowhere/at/all", temporary_path(folder, "in/dangling")), 0);
    assert_int_equal(symlink("results/new", temporary_path(folder, "in/latest")), 0);
    write_copy(in, &pose, 1, out, in);
    assert_false(exists(folder, "in/results/new/latest"));
    assert_false(exists(folder, "in/results/new/dangling"));
    out = make_folder(folder, "taken");
    assert_int_equal(symlink("/nowhere/at/all", temporary_path(folder, "taken/transforms.json")),
                     0);
    assert_write_fails(in, &pose, 1, out, "taken/transforms.json: it exists already");
}

/* Folders on the way that are links, in the scene or in the copy. */
static void test_linked_folders(void **state)
{
    struct temporary *folder = *state;
    struct model model = make_points(0, 1, 0.1);
    struct scene_new_camera poses[VIEWS];
    make_new_poses(&model, poses);
    write_text(folder, "models/0", &model);
    make_pictures(folder, "in/images", WIDTH, HEIGHT);
    assert_int_equal(symlink("../models", temporary_path(folder, "in/sparse")), 0);
    char *in = temporary_path(folder, "in"), *out = make_folder(folder, "out");
    write_copy(in, poses, VIEWS, out, in);
    check_copy(VKN_SCENE_COLMAP, in, out, poses, VIEWS, 1e-14);
    assert_false(is_link(folder, "out/sparse"));

    /* Nothing is written through a link of the copy. */
    out = make_folder(folder, "out2");
    assert_int_equal(symlink("../models", temporary_path(folder, "out2/sparse")), 0);
    assert_write_fails(in, poses, VIEWS, out, "out2/sparse: it exists already");
}

static void test_relative_paths(void **state)
{
    struct temporary *folder = *state;
    const struct scene_new_camera pose = pose_of(0, 0, 3);
    char *before = getcwd(NULL, 0);
    make_small(folder, "in");
    make_folder(folder, "out");
    make_folder(folder, "in/out");
    assert_int_equal(chdir(temporary_path(folder, "in")), 0);
    write_copy("transforms.json", &pose, 1, "../out", NULL);
    write_copy(".", &pose, 1, "out", NULL);
    assert_int_equal(chdir(before), 0);
    free(before);
    check_copy(VKN_SCENE_TRANSFORMS, temporary_path(folder, "in"), temporary_path(folder, "out"),
               &pose, 1, 1e-14);
    assert_true(is_link(folder, "in/out/images"));
    assert_false(exists(folder, "in/out/out"));
}

/* ---- refused input --------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    struct temporary *folder = *state;
    char *in = make_small(folder, "in"), *out = make_folder(folder, "out");
    struct scene_new_camera pose = pose_of(0, 0, 3);
    pose.pose[3] = (double)NAN;
    assert_write_fails(in, &pose, 1, out, "new camera 0: a number is not finite");
    pose = pose_of(0, 0, 3);
    pose.pose[0] = 5;
    assert_write_fails(in, &pose, 1, out, "new camera 0: the rotation part is");
    pose = pose_of(1000, 0, 3);
    assert_write_fails(in, &pose, 1, out, "it has no file 1000");

    struct vkn_scene memory = {.path = "memory"};
    pose = pose_of(0, 0, 3);
    assert_int_equal(scene_write(&memory, &pose, 1, out, false), VKN_BAD_INPUT);
    assert_error("memory: a scene in memory has no files to copy");
}

/* Lenses out of range are refused, before anything is written. */
static void test_lens_refused(void **state)
{
    struct temporary *folder = *state;
    char *in = make_small(folder, "in"), *out = make_folder(folder, "out");
    struct scene_new_camera camera = lens_of(0, 36, 0, 20, 15);
    assert_write_fails(in, &camera, 1, out, "in: new camera 0: fl_y: 0 is out of range");
    camera = lens_of(0, (double)NAN, 36, 20, 15);
    assert_write_fails(in, &camera, 1, out, "in: new camera 0: fl_x: nan is out of range");
    camera = lens_of(0, 36, 36, 20, (double)INFINITY);
    assert_write_fails(in, &camera, 1, out, "in: new camera 0: cy: inf is out of range");
    camera = lens_of(0, 36, 36, 20, 15);
    camera.distortion[SCENE_p2] = 1001;
    assert_write_fails(in, &camera, 1, out, "in: new camera 0: p2: 1001 is out of range");
    camera.distortion[SCENE_p2] = 0;
    camera.distortion[SCENE_sx1] = 0.1; /* not of a perspective lens */
    assert_write_fails(in, &camera, 1, out, "in: new camera 0: sx1: 0.1 is out of range (-0 to 0)");
    camera = lens_of(1, 36, 36, 20, 15);
    assert_write_fails(in, &camera, 1, out, "it has a lens, but no view is frame 1 of file 0");
    temporary_text(folder, "in/transforms.json",
                   "{\"latlong\": true, \"frames\": [{\"file_path\": \"images/0.png\", "
                   "\"transform_matrix\": " OLD "]}]}");
    camera = lens_of(0, 36, 36, 20, 15);
    assert_write_fails(in, &camera, 1, out, "in: new camera 0: a panorama has no lens");
}

/* A failed allocation is reported, or does no harm. */
static void check_memory(const char *path, const struct scene_new_camera *poses, size_t count)
{
    struct vkn_scene *scene = open_scene(path);
    bool reached = true;
    long n = 1;
    for (; reached; n++) {
        char out[] = "/tmp/vknerf-test-XXXXXX";
        assert_non_null(mkdtemp(out));
        base_memory_fail_at(n);
        vkn_status status = scene_write(scene, poses, count, out, false);
        reached = base_memory_until_failure() == 0;
        base_memory_fail_at(0);
        assert_true(status == VKN_OK || (reached && status == VKN_ERROR));
        if (status == VKN_OK)
            check_copy(scene->format, path, out, poses, count, 1e-6);
        remove_tree(out);
    }
    assert_true(n > 20);
    scene_close(&scene);
}

static void test_memory(void **state)
{
    struct temporary *folder = *state;
    struct model model = make_points(0, 1, 0.1);
    struct scene_new_camera pose = pose_of(0, 0, 0);
    write_text(folder, "colmap/sparse", &model);
    make_pictures(folder, "colmap/images", WIDTH, HEIGHT);
    check_memory(make_small(folder, "small"), &pose, 1);
    set_new_lens(0, &pose);
    check_memory(temporary_path(folder, "colmap"), &pose, 1);
    pose = lens_of(0, 36, 36.5, 20.25, 14.5);
    pose.distortion[SCENE_k1] = 0.1;
    check_memory(temporary_path(folder, "small"), &pose, 1);
    struct scene_new_camera poses[VIEWS];
    for (unsigned n = 0; n < VIEWS; n++)
        poses[n] = lens_of(n, 36, 36, 20, 15);
    make_nsvf(folder, false);
    check_memory(temporary_path(folder, "in"), poses, VIEWS);
    struct base_text text = make_npy("<f4", false);
    make_pictures(folder, "llff/images", 400, 300);
    temporary_file(folder, "llff/poses_bounds.npy", text.data, text.size);
    free(text.data);
    pose = lens_of(0, 360, 360, 200, 150);
    check_memory(temporary_path(folder, "llff"), &pose, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_transforms),
        TEST(test_transforms_dialects),
        TEST(test_split_files),
        TEST(test_outside_names),
        TEST(test_lens_shared),
        TEST(test_lens_angle),
        TEST(test_lens_frames),
        TEST(test_lens_mixed),
        TEST(test_lens_kinds),
        TEST(test_lens_sizes),
        TEST(test_lens_any),
        TEST(test_llff_lens),
        TEST(test_nsvf_lens),
        TEST(test_colmap_lens),
        TEST(test_colmap_lens_text),
        TEST(test_colmap_lens_files),
        TEST(test_lens_refused),
        TEST(test_llff),
        TEST(test_nsvf),
        TEST(test_nsvf_inverse),
        TEST(test_colmap_exact),
        TEST(test_colmap_exact_text),
        TEST(test_colmap_some),
        TEST(test_colmap_noise),
        TEST(test_colmap_far),
        TEST(test_colmap_bytes),
        TEST(test_colmap_files),
        TEST(test_colmap_panorama),
        TEST(test_links),
        TEST(test_broken_links),
        TEST(test_linked_folders),
        TEST(test_relative_paths),
        TEST(test_refused),
        TEST(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
