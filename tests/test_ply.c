/* Tests the PLY reader: all encodings, files that are refused, and the effect of ply_file_path on a
 * nerfstudio capture's space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "captures.h"
#include "scene/ply.h"

/* ---- writing --------------------------------------------------------------------------------- */

enum kind { ASCII, LITTLE, BIG, KINDS };
static const char *const formats[KINDS] = {"ascii", "binary_little_endian", "binary_big_endian"};

/* Appends a number of a type: f d c (char) C (uchar) s S i I. */
static void add_value(struct base_text *text, enum kind kind, char type, double value)
{
    if (kind == ASCII) {
        base_text_add(text, "%.17g ", value);
        return;
    }
    float single = (float)value;
    int64_t whole = (int64_t)value;
    uint8_t bytes[8];
    size_t size = type == 'd' ? 8 : strchr("fiI", type) ? 4 : strchr("sS", type) ? 2 : 1;
    if (type == 'd')
        memcpy(bytes, &value, 8);
    else if (type == 'f')
        memcpy(bytes, &single, 4);
    else
        memcpy(bytes, &whole, 8);
    for (size_t i = 0; i < size; i++)
        base_text_add_bytes(text, &bytes[kind == BIG ? size - 1 - i : i], 1);
}

static void end_line(struct base_text *text, enum kind kind)
{
    if (kind == ASCII)
        base_text_add(text, "\n");
}

#define POINTS 5u

static double coordinate(unsigned point, unsigned axis)
{
    return (point * 3.0 - axis * 4.0) * 0.125;
}

/* Makes points among other elements; `position` is f, d or s (multiples of an eighth). */
static struct base_text make_cloud(enum kind kind, char position)
{
    static const char *const names[] = {"float", "float64", "int16"};
    const char *name = names[position == 'f' ? 0 : position == 'd' ? 1 : 2];
    double unit = position == 's' ? 8 : 1;
    struct base_text text = {0};
    base_text_add(&text,
                  "ply\r\nformat %s 1.0\ncomment element vertex 9\nobj_info x\nelement nothing 7\n"
                  "element camera 2\nproperty list uchar float64 of\nproperty ushort n\n"
                  "element vertex %u\nproperty %s x\nproperty  char a \nproperty %s y\n"
                  "property list int8 uint32 seen\nproperty %s z\nproperty uint8 red\n"
                  "property double green\nproperty uint8 alpha\nelement face 1\n"
                  "property list uchar int vertex_indices\nend_header\n",
                  formats[kind], POINTS, name, name, name);
    for (unsigned i = 0; i < 2; i++) {
        add_value(&text, kind, 'C', 2 * i);
        for (unsigned k = 0; k < 2 * i; k++)
            add_value(&text, kind, 'd', 0.5);
        add_value(&text, kind, 'S', 65535);
        end_line(&text, kind);
    }
    for (unsigned i = 0; i < POINTS; i++) {
        add_value(&text, kind, position, unit * coordinate(i, 0));
        add_value(&text, kind, 'c', -3);
        add_value(&text, kind, position, unit * coordinate(i, 1));
        add_value(&text, kind, 'c', i);
        for (unsigned k = 0; k < i; k++)
            add_value(&text, kind, 'I', 4000000000.0);
        add_value(&text, kind, position, unit * coordinate(i, 2));
        add_value(&text, kind, 'C', 200 + i);
        add_value(&text, kind, 'd', 0.5 * i); /* a fraction, clamped to 1 */
        add_value(&text, kind, 'C', 9);
        end_line(&text, kind);
    }
    add_value(&text, kind, 'C', 3);
    for (unsigned k = 0; k < 3; k++)
        add_value(&text, kind, 'i', k);
    end_line(&text, kind);
    return text;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Parses a block without spare bytes, so that sanitizers notice reads beyond the end. */
static vkn_status parse(const char *data, size_t size, struct ply *cloud)
{
    char *copy = base_alloc(size + 1, 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    vkn_status status = ply_parse("a.ply", copy, size, cloud);
    free(copy);
    return status;
}

static void check_kind(enum kind kind, char position)
{
    struct base_text text = make_cloud(kind, position);
    double unit = position == 's' ? 8 : 1;
    struct ply cloud;
    assert_ok(parse(text.data, text.size, &cloud));
    assert_int_equal(cloud.count, POINTS);
    for (unsigned i = 0; i < POINTS; i++) {
        for (unsigned k = 0; k < 3; k++)
            assert_true(cloud.points[i].position[k] == unit * coordinate(i, k));
        assert_int_equal(cloud.points[i].color[0], 200 + i);
        assert_int_equal(cloud.points[i].color[1], i == 0 ? 0 : i == 1 ? 128 : 255);
        assert_int_equal(cloud.points[i].color[2], 0);
    }
    ply_free(&cloud);
    free(text.data);
}

static void test_kinds(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (const char *position = "fds"; *position != '\0'; position++)
            check_kind((enum kind)kind, *position);
    struct ply cloud;
    const char *empty = "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\n"
                        "property float y\nproperty float z\nend_header\n";
    assert_ok(parse(empty, strlen(empty), &cloud));
    assert_int_equal(cloud.count, 0);
    ply_free(&cloud);
}

/* A file cut before the end of its last number is refused. */
static void test_truncated(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct base_text text = make_cloud((enum kind)kind, 'f');
        size_t complete = text.size - (kind == ASCII ? 2 : 0); /* before blank and newline */
        for (size_t size = 0; size < complete; size++) {
            struct ply cloud;
            assert_int_equal(parse(text.data, size, &cloud), VKN_BAD_INPUT);
            assert_error("a.ply: ");
            ply_free(&cloud);
        }
        free(text.data);
    }
}

static void refuse(const char *text, const char *message)
{
    struct ply cloud;
    assert_int_equal(parse(text, strlen(text), &cloud), VKN_BAD_INPUT);
    assert_error("a.ply: ");
    assert_error(message);
    ply_free(&cloud);
}

#define HEAD    "ply\nformat ascii 1.0\n"
#define BINARY  "ply\nformat binary_little_endian 1.0\n"
#define XYZ     "property float x\nproperty float y\nproperty float z\n"
#define END     "end_header\n"
#define VERTEX1 "element vertex 1\n" XYZ

static void test_refused(void **state)
{
    (void)state;
    refuse("", "not a PLY file");
    refuse("plywood\n", "not a PLY file");
    refuse("ply\nformat text 1.0\n", "line 2: format: neither ascii");
    refuse("ply\nformat ascii 2.0\n", "line 2: format: its version is not 1.0");
    refuse("ply\n" VERTEX1 END, "format: missing");
    refuse(HEAD END, "element vertex: missing");
    refuse(HEAD "vertices 3\n", "line 3: header: not a line");
    refuse(HEAD XYZ, "line 3: property: there is no element");
    refuse(HEAD "element vertex\n", "line 3: element: not a name and a number");
    refuse(HEAD "element vertex -1\n", "line 3: element: its number is not from");
    refuse(HEAD "element vertex 18446744073709551616\n", "line 3: element: its number is not from");
    refuse(HEAD "element vertex 1\nelement vertex 1\n", "line 4: element: vertex comes twice");
    refuse(HEAD "element vertex 1\nproperty half x\n", "line 4: property: its type is none");
    refuse(HEAD "element vertex 1\nproperty list float x\n", "line 4: property: not a type");
    refuse(HEAD "element vertex 1\nproperty float x\nproperty float z\n" END,
           "element vertex: property y: missing");
    refuse(HEAD "element vertex 1\nproperty list uchar float x\n" END, "property x: missing");
    refuse(HEAD VERTEX1 END "1 2 x\n", "vertex 1 of 1: z: not a number");
    refuse(HEAD VERTEX1 END "1 2 3x\n", "vertex 1 of 1: z: not a number");
    refuse(HEAD VERTEX1 END "1       2\n", "vertex 1 of 1: z: cut off");
    refuse(HEAD VERTEX1 END "1 2 3 4\n",
           "a.ply: line 8: vertex 1 of 1: its line: more or fewer values than there are");
    refuse(HEAD "element vertex 2\n" XYZ END "1 2\n3000 4000 5000\n",
           "a.ply: line 9: vertex 1 of 2: its line: more or fewer values");
    refuse(HEAD VERTEX1 END "1 2 3\n\n4 5 6\n",
           "a.ply: line 10: more lines than the header says there are");
    refuse(HEAD "element vertex 99999999999999\n" XYZ END "1 2 3\n",
           "element vertex: 99999999999999 do not fit into the 6 bytes that follow");
    refuse(BINARY "element vertex 18446744073709551615\n" XYZ END "0123456789ab",
           "do not fit into the 12 bytes");
    refuse(BINARY "element a 2\nproperty list uint double b\n" VERTEX1 END "\xff\xff\xff\xff....",
           "item 1 of 2: property 1: cut off");
    refuse(BINARY "element a 1\nproperty list float char b\n" VERTEX1 END "1234............",
           "item 1 of 1: property 1: the length of a list is not a whole number");

    struct base_text many = {0};
    base_text_add(&many, HEAD);
    for (int i = 0; i < 33; i++)
        base_text_add(&many, "element e%d 1\n", i);
    refuse(many.data, "line 35: element: more than 32 of them");
    many.size = 0;
    base_text_add(&many, HEAD "element vertex 1\n");
    for (int i = 0; i < 513; i++)
        base_text_add(&many, "property float p%d\n", i);
    refuse(many.data, "line 516: property: more than 512 of them");
    free(many.data);
}

/* Points whose coordinates or colours are not finite are skipped in all encodings; other properties
 * may be nan. */
static void test_not_finite(void **state)
{
    (void)state;
    static const char properties[] = "property float64 x\nproperty double y\nproperty double "
                                     "z\nproperty double red\nproperty double error\n";
    static const double values[6][5] = {{1, 2, 3, 1, 0},         {1, NAN, 3, 1, 0},
                                        {1, 2, -INFINITY, 1, 0}, {1, 2, 3, NAN, 0},
                                        {-2e9, 2, 3, 1, 0},      {4, 5, 6, 0.2, NAN}};
    for (int ascii = 0; ascii < 2; ascii++) {
        struct base_text text = {0};
        base_text_add(&text, "%selement vertex 6\n%s" END, ascii ? HEAD : BINARY, properties);
        for (int i = 0; i < 6; i++) {
            for (int k = 0; k < 5 && ascii; k++)
                base_text_add(&text, "%.17g%c", values[i][k], k == 4 ? '\n' : ' ');
            if (!ascii)
                add_doubles(&text, values[i], 5);
        }
        struct ply cloud;
        assert_ok(parse(text.data, text.size, &cloud));
        assert_int_equal(cloud.count, 2);
        assert_true(cloud.points[0].position[2] == 3 && cloud.points[1].position[2] == 6);
        assert_int_equal(cloud.points[0].color[0], 255);
        assert_int_equal(cloud.points[1].color[0], 51);
        assert_int_equal(cloud.left_out.count, 4);
        assert_string_equal(cloud.left_out.first,
                            ascii ? "a.ply: line 11: vertex 2 of 6: y: not finite or beyond 1e9"
                                  : "a.ply: vertex 2 of 6: y: not finite or beyond 1e9");
        ply_free(&cloud);
        free(text.data);
    }
}

/* A byte order mark; line ends of Windows and of old Macs (as in Greg Turk's tools), in front of
 * binary data too. */
static void test_line_ends(void **state)
{
    (void)state;
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    for (unsigned i = 0; i < 6; i++) {
        struct base_text text = {0};
        base_text_add(&text, "%s", i < 3 ? "\xef\xbb\xbf" : "");
        for (const char *c = i < 3 ? HEAD VERTEX1 END "1 2 13\n" : BINARY VERTEX1 END; *c != '\0';
             c++)
            base_text_add(&text, *c == '\n' ? "%s" : "%.1s", *c == '\n' ? ends[i % 3] : c);
        const float numbers[3] = {1, 2, 13};
        if (i >= 3)
            base_text_add_bytes(&text, numbers, sizeof numbers);
        struct ply cloud;
        assert_ok(parse(text.data, text.size, &cloud));
        assert_true(cloud.count == 1 && cloud.points[0].position[2] == 13);
        ply_free(&cloud);
        free(text.data);
    }
    struct ply cloud;
    assert_int_equal(parse("p\0l\0y\0\n\0", 8, &cloud), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "a.ply: text in UTF-16; save it as UTF-8");
}

/* ---- captures -------------------------------------------------------------------------------- */

#define IMAGES 9u

/* Cameras around (1, 2, 3), 4 to 6 away, in nerfstudio's format, with the keys `more` on top. */
static void make_capture(struct temporary *folder, const char *more)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "{%s \"fl_x\": 35, \"fl_y\": 35, \"w\": 40, \"h\": 30, \"applied_transform\": "
                  "[[0, 1, 0, 5], [1, 0, 0, 6], [0, 0, -1, 7]], \"frames\": [",
                  more); /* the first of two equal keys counts */
    for (unsigned i = 0; i < IMAGES; i++) {
        double axes[3][3], at[3];
        char name[16];
        known_camera(i, IMAGES, axes, at);
        snprintf(name, sizeof(name), "%u.png", i);
        if (strcmp(more, "") == 0)
            temporary_picture(folder, name, 40, 30, 0);
        base_text_add(&text, "%s{\"file_path\": \"%s\", \"transform_matrix\": [", i > 0 ? "," : "",
                      name);
        for (int k = 0; k < 3; k++)
            base_text_add(&text, "[%.17g, %.17g, %.17g, %.17g],", axes[0][k], -axes[1][k],
                          -axes[2][k], at[k]);
        base_text_add(&text, "[0, 0, 0, 1]]}");
    }
    base_text_add(&text, "]}");
    char *path = base_path_join(folder->path, "transforms.json");
    assert_ok(base_file_replace(path, text.data, text.size));
    free(path);
    free(text.data);
}

/* A square grid of points around (1, 2, 3), half side `half`, repeated `times` times. */
static void write_grid(struct temporary *folder, const char *name, double half, unsigned times)
{
    struct base_text text = {0};
    base_text_add(&text, HEAD "element vertex %u\n" XYZ END, 121 * times);
    for (unsigned i = 0; i < 121 * times; i++)
        base_text_add(&text, "%g %g 3\n", 1 + half * ((int)(i % 11) - 5) / 5,
                      2 + half * ((int)(i / 11 % 11) - 5) / 5);
    char *path = temporary_path(folder, name);
    assert_ok(base_file_replace(path, text.data, text.size));
    free(text.data);
}

static struct vkn_scene *open_capture(const struct temporary *folder)
{
    struct scene_options options = {.path = folder->path};
    struct vkn_scene *scene = NULL;
    assert_ok(scene_open(&options, &scene));
    return scene;
}

/* The space follows the rule of space.h: scene centre, and mean distance of the cameras. */
static void assert_placed(const struct vkn_scene *scene)
{
    double mean = 0;
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    for (int i = 0; i < 3; i++)
        assert_true(fabs((i + 1) * (double)scene->scale + (double)scene->offset[i] - 0.5) < 1e-4);
    for (size_t n = 0; n < train->camera_count; n++) {
        double squared = 0;
        for (int i = 0; i < 3; i++)
            squared += pow((double)train->cameras[n].pose[4 * i + 3] - 0.5, 2);
        mean += sqrt(squared) / (double)train->camera_count;
    }
    assert_true(fabs(mean - 1.32) < 1e-4);
}

static void test_capture(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder, "");
    struct vkn_scene *scene = open_capture(folder);
    assert_int_equal(scene->aabb_scale, 16);
    assert_int_equal(scene->point_count, 0);
    assert_true(scene->near == 0);
    scene_close(&scene);

    /* Cameras up to 1.65 away need a side of 4. The nearest visible point is at least the middle of
     * the near edge: points outside the picture do not count. */
    make_capture(folder, "\"ply_file_path\": \"./clouds/sparse pc.ply\",");
    write_grid(folder, "clouds/sparse pc.ply", 0.5, 1);
    scene = open_capture(folder);
    assert_placed(scene);
    assert_int_equal(scene->aabb_scale, 4);
    assert_int_equal(scene->point_count, 121);
    assert_true(fabs(scene->points[0].position[0] - (0.5 - 0.5 * (double)scene->scale)) < 1e-4);
    double near = (double)scene->near / scene->scale;
    if (!(near > 3.4 && near < 4.6))
        fail_msg("the nearest content is %g away", near);
    scene_close(&scene);

    /* Far points need a larger side; a subset of a large cloud is enough to measure it. */
    write_grid(folder, "clouds/sparse pc.ply", 9, 300);
    scene = open_capture(folder);
    assert_placed(scene);
    assert_int_equal(scene->point_count, 36300);
    double reach = 9 * scene->scale;
    assert_true(reach > 2 && reach < 4);
    assert_int_equal(scene->aabb_scale, 8);
    assert_true(scene->near > 0);
    scene_close(&scene);
}

/* A point without finite coordinates does not spoil the rest. */
static void test_left_out(void **state)
{
    struct temporary *folder = *state;
    struct scene_findings findings = {0};
    struct scene_options options = {.path = folder->path};
    make_capture(folder, "");
    make_capture(folder, "\"ply_file_path\": \"a.ply\",");
    temporary_text(folder, "a.ply", HEAD "element vertex 2\n" XYZ END "1 2 nan\n1 2 3\n");
    struct vkn_scene *scene = inspect_capture(&options, &findings);
    assert_int_equal(findings.point_count, 1);
    assert_int_equal(findings.bad_points, 1);
    assert_non_null(
        strstr(findings.first_bad_point, "/a.ply: line 8: vertex 1 of 2: z: not finite"));
    scene_close(&scene);
    scene_findings_free(&findings);
}

/* Keys of the file win; a missing point cloud is ignored. */
static void test_precedence(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder, "");
    make_capture(folder, "\"ply_file_path\": \"a.ply\",");
    struct vkn_scene *scene = open_capture(folder);
    assert_int_equal(scene->aabb_scale, 16);
    assert_int_equal(scene->point_count, 0);
    scene_close(&scene);

    write_grid(folder, "a.ply", 0.5, 1);
    make_capture(folder, "\"ply_file_path\": \"a.ply\", \"aabb_scale\": 2,");
    scene = open_capture(folder);
    assert_int_equal(scene->aabb_scale, 2);
    assert_true(fabs((double)scene->scale - 0.33) < 1e-6);
    assert_int_equal(scene->point_count, 121);
    scene_close(&scene);
    make_capture(folder, "\"ply_file_path\": \"a.ply\", \"scale\": 0.1, \"offset\": [1, 2, 3],");
    scene = open_capture(folder);
    assert_int_equal(scene->aabb_scale, 1);
    assert_true(fabs((double)scene->scale - 0.1) < 1e-6 && scene->offset[2] == 3);
    scene_close(&scene);

    struct scene_options options = {.path = folder->path};
    make_capture(folder, "\"ply_file_path\": 7,");
    assert_open_fails(&options, "transforms.json: ply_file_path: not a string");
    make_capture(folder, "\"ply_file_path\": \"0.png\",");
    assert_open_fails(&options, "0.png: not a PLY file");
}

/* A fisheye that sees all around has all points in view, a narrow lens hardly any. */
static void test_lenses(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder, "");
    write_grid(folder, "a.ply", 4, 1);
    make_capture(folder, "\"ply_file_path\": \"a.ply\", \"camera_model\": \"OPENCV_FISHEYE\", "
                         "\"fl_x\": 5, \"fl_y\": 5,");
    struct vkn_scene *wide = open_capture(folder);
    make_capture(folder, "\"ply_file_path\": \"a.ply\", \"fl_x\": 70, \"fl_y\": 70,");
    struct vkn_scene *narrow = open_capture(folder);
    double ratio = (double)(narrow->near / narrow->scale) / (double)(wide->near / wide->scale);
    if (!(ratio > 1.2))
        fail_msg("the nearest content is %g times as far in a narrow picture", ratio);
    scene_close(&wide);
    scene_close(&narrow);
}

#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_refused),
        TEST(test_capture),
        TEST(test_left_out),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_line_ends),
        TEST(test_precedence),
        TEST(test_lenses),
    };
    return cmocka_run_group_tests_name("ply", tests, NULL, NULL);
}
