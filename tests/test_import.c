/* Tests vknerf prepare on captures that other programs wrote with poses. A rig of six known cameras
 * is written in each program's format and axes; the scene's cameras must project known points to
 * the pixels that the program's documented formulas give. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "captures.h"
#include "exr.h"
#include "prepare/import.h"
#include "stand_in.h"

#define CAMERAS 6u
#define WIDTH   64
#define HEIGHT  48
#define DEGREES (180 / 3.14159265358979323846)

/* Points in the middle of the rig, which each camera sees off its axis. */
static const double points[][3] = {{1.3, 1.8, 3.1}, {0.4, 2.2, 2.7}, {1.1, 2.9, 3.6}};

/* ---- preparing ------------------------------------------------------------------------------- */

static char logged[8192];

static void keep_line(void *context, enum vkn_log_level level, const char *line)
{
    (void)context;
    (void)level;
    size_t size = strlen(logged);
    snprintf(logged + size, sizeof(logged) - size, "%s\n", line);
}

static void assert_logged(const char *part)
{
    if (strstr(logged, part) == NULL)
        fail_msg("\"%s\" is not logged: %s", part, logged);
}

static void assert_silent(const char *part)
{
    if (strstr(logged, part) != NULL)
        fail_msg("\"%s\" is logged: %s", part, logged);
}

/* Writes the pictures of the rig: `pattern` has the number of the camera. */
static void write_pictures(struct temporary *folder, const char *pattern)
{
    for (unsigned i = 0; i < CAMERAS; i++) {
        char name[128];
        snprintf(name, sizeof(name), pattern, i);
        temporary_picture(folder, name, WIDTH, HEIGHT, (uint8_t)(40 * i));
    }
}

static vkn_status convert(struct request *request)
{
    logged[0] = '\0';
    vkn_log_to(keep_line, NULL);
    vkn_status status = prepare(request);
    vkn_log_to(NULL, NULL);
    return status;
}

/* Prepares the capture in `given` and opens the scene as `vknerf info` does. COLMAP is not run. */
static struct vkn_scene *open_converted(struct temporary *folder)
{
    struct request request = request_of(folder, "given");
    struct scene_options options = {.path = request.params.out};
    struct scene_findings findings = {0};
    assert_ok(convert(&request));
    assert_int_equal(request.result.pictures, CAMERAS);
    assert_int_equal(request.result.registered, CAMERAS);
    assert_false(has(folder, "bin/calls"));
    struct vkn_scene *scene = inspect_capture(&options, &findings);
    assert_null(findings.unread);
    assert_int_equal(findings.broken + findings.missing, 0);
    assert_int_equal(request.result.points, scene->point_count);
    scene_findings_free(&findings);
    return scene;
}

static void assert_fails_with(struct temporary *folder, const char *part)
{
    struct request request = request_of(folder, "given");
    vkn_status status = convert(&request);
    if (status != VKN_BAD_INPUT)
        fail_msg("status %d: %s", (int)status, vkn_last_error());
    assert_error(part);
}

/* Projects a point by a program's formulas: `local` is the point in the camera's axes (right, down,
 * forwards), `pixel` is counted from the corner of the picture. */
typedef void (*projection)(unsigned camera, const double local[3], double pixel[2]);

static void assert_rig(const struct vkn_scene *scene, const char *pattern, projection project)
{
    for (unsigned i = 0; i < CAMERAS; i++) {
        char name[128];
        snprintf(name, sizeof(name), pattern, i);
        for (size_t n = 0; n < BASE_COUNT(points); n++) {
            double axes[3][3], position[3], ideal[2], pixel[2];
            known_camera(i, CAMERAS, axes, position);
            double z = known_ideal(axes, position, points[n], ideal);
            project(i, (const double[3]){ideal[0] * z, ideal[1] * z, z}, pixel);
            assert_true(pixel[0] > 0 && pixel[0] < WIDTH && pixel[1] > 0 && pixel[1] < HEIGHT);
            assert_projects(scene, camera_of(scene, name), points[n], pixel[0], pixel[1]);
        }
    }
}

/* Writes a PLY file with the rig's points. */
static void write_cloud(struct temporary *folder, const char *name)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "ply\nformat ascii 1.0\nelement vertex %zu\nproperty double x\n"
                  "property double y\nproperty double z\nproperty uchar red\n"
                  "property uchar green\nproperty uchar blue\nend_header\n",
                  BASE_COUNT(points));
    for (size_t n = 0; n < BASE_COUNT(points); n++)
        base_text_add(&text, "%.17g %.17g %.17g %zu 20 30\n", points[n][0], points[n][1],
                      points[n][2], n);
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
}

/* Checks that the scene has the rig's points, red 0, 1 and 2. */
static void assert_points(const struct vkn_scene *scene)
{
    assert_int_equal(scene->point_count, BASE_COUNT(points));
    for (size_t n = 0; n < scene->point_count; n++) {
        assert_int_equal(scene->points[n].color[0], n);
        assert_int_equal(scene->points[n].color[2], 30);
        for (int i = 0; i < 3; i++)
            assert_true(fabs((double)scene->points[n].position[i] -
                             (points[n][i] * scene->scale + scene->offset[i])) < 1e-5);
    }
}

/* ---- Metashape ------------------------------------------------------------------------------- */

/* The chunk's axes: world = 2.5 * turn * x + shift, where `turn` rotates about z and then x. */
static const double chunk_shift[3] = {3, -1, 0.5};
#define CHUNK_SCALE 2.5

static void chunk_turn(double turn[3][3])
{
    double c = cos(0.7), s = sin(0.7), d = cos(-0.4), t = sin(-0.4);
    const double values[3][3] = {{c, -s, 0}, {d * s, d * c, -t}, {t * s, t * c, d}};
    memcpy(turn, values, sizeof(values));
}

/* Appends a camera of the rig, with its matrix in the chunk's axes. */
static void add_metashape_camera(struct base_text *text, unsigned index, const char *attributes)
{
    double turn[3][3], axes[3][3], position[3], m[3][4] = {{0}};
    chunk_turn(turn);
    known_camera(index, CAMERAS, axes, position);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            for (int j = 0; j < 3; j++)
                m[i][j] += turn[k][i] * axes[j][k];
            m[i][3] += turn[k][i] * (position[k] - chunk_shift[k]) / CHUNK_SCALE;
        }
    base_text_add(text, "<camera id=\"%u\" sensor_id=\"%u\" component_id=\"0\" %s>\n<transform>",
                  index, index % 2, attributes);
    for (int i = 0; i < 12; i++)
        base_text_add(text, "%.17g ", m[i / 4][i % 4]);
    base_text_add(text, "0 0 0 1</transform>\n<orientation>1</orientation>\n</camera>\n");
}

static void add_transform(struct base_text *text)
{
    double turn[3][3];
    chunk_turn(turn);
    base_text_add(text, "<transform><rotation locked=\"true\">");
    for (int i = 0; i < 9; i++)
        base_text_add(text, "%.17g ", turn[i / 3][i % 3]);
    base_text_add(text,
                  "</rotation><translation>%g %g %g</translation><scale>%g</scale></transform>\n",
                  chunk_shift[0], chunk_shift[1], chunk_shift[2], CHUNK_SCALE);
}

/* Writes a chunk with two sensors; `more` goes into the first sensor's calibration, `after` behind
 * the cameras. */
static void write_metashape(struct temporary *folder, const char *type, const char *more,
                            const char *after)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<document version=\"2.0.0\">\n"
                  "<chunk label=\"Chunk &amp; 1\" enabled=\"true\">\n<sensors next_id=\"2\">\n");
    for (int i = 0; i < 2; i++)
        base_text_add(&text,
                      "<sensor id=\"%d\" label=\"A (12mm)\" type=\"%s\">\n"
                      "<resolution width=\"64\" height=\"48\"/>\n"
                      "<calibration type=\"%s\" class=\"initial\"><f>9</f></calibration>\n"
                      "<calibration type=\"%s\" class=\"adjusted\">\n"
                      "<resolution width=\"64\" height=\"48\"/>\n<f>%d</f><cx>1.25</cx>\n"
                      "<cy>-0.75</cy><b1>1.5</b1><k1>-0.11</k1><k2>0.07</k2><k3>-0.02</k3>\n"
                      "<p1>0.013</p1><p2>-0.021</p2>%s\n</calibration>\n</sensor>\n",
                      i, type, type, type, 50 + 10 * i, i == 0 ? more : "");
    base_text_add(&text, "</sensors>\n<components next_id=\"1\" active_id=\"0\">\n"
                         "<component id=\"0\" label=\"Component 1\">\n");
    add_transform(&text);
    base_text_add(&text, "</component></components>\n<cameras>\n");
    for (unsigned i = 0; i < CAMERAS; i++) {
        char label[64];
        snprintf(label, sizeof(label), "label=\"view %u%s\"", i, i == 3 ? ".PNG" : "");
        base_text_add(&text, i == 1 ? "<group id=\"0\" label=\"g\" type=\"folder\">\n" : "");
        add_metashape_camera(&text, i, label);
        base_text_add(&text, i == 1 ? "</group>\n" : "");
    }
    base_text_add(&text, "%s</cameras>\n", after);
    base_text_add(&text, "<reference>LOCAL_CS[\"Local Coordinates (m)\"]</reference>\n"
                         "</chunk>\n</document>\n");
    temporary_file(folder, "given/cameras.xml", text.data, text.size);
    free(text.data);
}

/* Metashape User Manual, appendix "Camera models": x and y are ideal coordinates. */
static void metashape_pixel(unsigned camera, double x, double y, double k4, double pixel[2])
{
    double f = camera % 2 ? 60 : 50, r2 = x * x + y * y;
    double radial = 1 - 0.11 * r2 + 0.07 * r2 * r2 - 0.02 * pow(r2, 3) + k4 * pow(r2, 4);
    double xd = x * radial + 0.013 * (r2 + 2 * x * x) + 2 * -0.021 * x * y;
    double yd = y * radial + -0.021 * (r2 + 2 * y * y) + 2 * 0.013 * x * y;
    pixel[0] = 0.5 * WIDTH + 1.25 + xd * f + xd * 1.5;
    pixel[1] = 0.5 * HEIGHT - 0.75 + yd * f;
}

static void project_metashape(unsigned camera, const double local[3], double pixel[2])
{
    metashape_pixel(camera, local[0] / local[2], local[1] / local[2], 0, pixel);
}

static void project_metashape_fisheye(unsigned camera, const double local[3], double pixel[2])
{
    double r = hypot(local[0], local[1]), angle = atan2(r, local[2]);
    metashape_pixel(camera, local[0] * angle / r, local[1] * angle / r, camera % 2 ? 0 : 0.3,
                    pixel);
}

static bool no_expat; /* libexpat cannot be loaded */

/* Replaces the C library's function in this program. */
void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *, int) = NULL;
    void *symbol = dlsym((void *)-1L, "dlopen"); /* RTLD_NEXT, a GNU extension */
    memcpy(&next, &symbol, sizeof next);
    bool is_refused = no_expat && file != NULL && strstr(file, "libexpat") != NULL;
    return is_refused || next == NULL ? NULL : next(file, mode);
}

/* A missing library is an error that names the package. A process of its own, because a library is
 * loaded once. */
static void test_no_expat(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    int status = 1;
    write_pictures(folder, "given/view %u.png");
    write_metashape(folder, "frame", "", "");
    pid_t child = fork();
    if (child == 0) {
        no_expat = true;
        bool refused = convert(&request) == VKN_ERROR &&
                       strstr(vkn_last_error(), "cameras.xml: XML needs libexpat.so.1, which is "
                                                "missing: apt-get install libexpat1") != NULL;
        _exit(refused ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_metashape(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/my photos/view %u.png");
    write_cloud(folder, "given/dense.ply");
    write_metashape(folder, "frame", "", "");
    struct vkn_scene *scene = open_converted(folder);
    assert_logged("cameras.xml: a capture of Metashape");
    assert_silent("not read");
    assert_rig(scene, "my_photos_view_%u.png", project_metashape);
    assert_points(scene);
    assert_true(scene->unit_length == 1); /* the chunk has a scale */
    scene_close(&scene);
}

static void test_metashape_fisheye(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/view %u.png");
    write_metashape(folder, "fisheye", "<k4>0.3</k4>", "");
    struct vkn_scene *scene = open_converted(folder);
    assert_rig(scene, "view_%u.png", project_metashape_fisheye);
    assert_int_equal(scene->splits[SCENE_TRAIN].cameras[0].lens, VKN_LENS_THIN_PRISM_FISHEYE);
    scene_close(&scene);
}

/* Metashape's world has metres only if the chunk has a scale. */
static void test_metashape_unit(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/view %u.png");
    write_metashape(folder, "frame", "", "");
    char *text = content(folder, "given/cameras.xml"), *scale = strstr(text, "<scale>");
    memset(scale, ' ', (size_t)(strstr(scale, "</transform>") - scale));
    temporary_text(folder, "given/cameras.xml", text);
    free(text);
    struct vkn_scene *scene = open_converted(folder);
    assert_true(scene->unit_length == 0);
    scene_close(&scene);
}

/* Panoramas: longitude to the right, latitude downwards, both in the same scale. */
static void project_spherical(unsigned camera, const double local[3], double pixel[2])
{
    (void)camera;
    double longitude = atan2(local[0], local[2]);
    double latitude = atan2(-local[1], hypot(local[0], local[2]));
    pixel[0] = WIDTH * (longitude / (2 * 3.14159265358979323846) + 0.5);
    pixel[1] = WIDTH * -latitude / (2 * 3.14159265358979323846) + 0.25 * WIDTH;
}

static void test_metashape_spherical(void **state)
{
    struct temporary *folder = *state;
    for (unsigned i = 0; i < CAMERAS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "given/view %u.png", i);
        temporary_picture(folder, name, WIDTH, WIDTH / 2, (uint8_t)i);
    }
    write_metashape(folder, "spherical", "", "");
    char *text = content(folder, "given/cameras.xml");
    for (char *at = text; (at = strstr(at, "height=\"48\"")) != NULL; at++)
        memcpy(at, "height=\"32\"", strlen("height=\"32\""));
    temporary_text(folder, "given/cameras.xml", text);
    free(text);
    struct vkn_scene *scene = open_converted(folder);
    assert_logged("cameras.xml: not read: sensor.calibration\n");
    assert_rig(scene, "view_%u.png", project_spherical);
    scene_close(&scene);
}

/* A camera without pose, a disabled one, one of another component, one without a picture, and keys
 * that are not understood. */
static void test_metashape_parts(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given/cameras.xml");
    write_pictures(folder, "given/view %u.png");
    temporary_picture(folder, "given/more.png", WIDTH, HEIGHT, 1);
    temporary_picture(folder, "given/most.png", WIDTH, HEIGHT, 1);
    struct base_text after = {0};
    base_text_add(&after, "<camera id=\"7\" sensor_id=\"0\" label=\"more\"/>\n"
                          "<camera id=\"8\" sensor_id=\"0\" component_id=\"3\" label=\"most\">"
                          "<transform>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</transform></camera>\n");
    add_metashape_camera(&after, 0, "label=\"view 1\" enabled=\"false\"");
    add_metashape_camera(&after, 0, "label=\"gone\"");
    add_metashape_camera(&after, 1, "label=\"gone too\" master_id=\"1\"");
    write_metashape(folder, "frame", "<b2>0.01</b2><j1>0</j1>", after.data);
    free(after.data);
    assert_ok(convert(&request));
    assert_int_equal(request.result.registered, CAMERAS);
    assert_logged(
        "2 of 10 cameras are left out, because they have no picture in the folder: gone, ...");
    assert_logged(
        "2 of 10 cameras are left out, because they have no pose or are disabled: more, ...");
    assert_logged("1 of 9 cameras are left out, because other components are aligned separately");
    assert_logged("not read: calibration.j1, b2 (0.0");
    assert_logged(", camera.@master_id\n");
}

/* Without a list of components the cameras' ids decide. */
static void test_metashape_components(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    write_pictures(folder, "given/view %u.png");
    write_metashape(folder, "frame", "", "");
    char *text = content(folder, "given/cameras.xml");
    for (char *at = text; (at = strstr(at, "components")) != NULL; at++)
        memcpy(at, "clusters..", strlen("components"));
    temporary_text(folder, "given/cameras.xml", text);
    free(text);
    assert_ok(convert(&request));
    assert_int_equal(request.result.registered, CAMERAS);
    assert_logged("cameras.xml: not read: chunk.clusters..");
}

static void test_metashape_refused(void **state)
{
    struct temporary *folder = *state;
    static const struct {
        const char *type, *more, *after, *says;
    } cases[] = {
        {"cylindrical", "", "", "cameras.xml: sensor 0.type: cylindrical is not supported"},
        {"frame", "<k4>0.9</k4>", "", "cameras.xml: sensor 0.k4: moves pixels by up to"},
        {"frame", "<b2>2</b2>", "", "cameras.xml: sensor 0.b2: moves pixels by up to"},
        {"frame", "<p3>80</p3>", "", "cameras.xml: sensor 0.p3: moves pixels by up to"},
        {"frame", "<k4>x</k4>", "", "cameras.xml: sensor 0.k4: not a number: x"},
        {"frame", "<k4>nan</k4>", "", "cameras.xml: sensor 0.k4: nan is not from -1000 to 1000"},
        {"frame", "<k4/>", "", "cameras.xml: sensor 0.k4: missing"},
        {"frame", "",
         "<camera sensor_id=\"9\" component_id=\"0\" label=\"a\"><transform>1</transform></camera>",
         "cameras.xml: camera a.sensor_id: there is no sensor 9"},
        {"frame", "",
         "<camera sensor_id=\"0\" component_id=\"0\" label=\"a\"><transform>1 "
         "2</transform></camera>",
         "cameras.xml: camera a.transform: 2 numbers instead of 16"},
        {"frame", "",
         "<camera sensor_id=\"0\" component_id=\"0\" label=\"a\"><transform>0 0 0 0 0 0 0 0 0 0 0 "
         "0 0 0 0 1</transform></camera>",
         "cameras.xml: camera a.transform: the rotation part is degenerate"},
        {"frame", "", "<camera sensor_id=\"0\" component_id=\"0\"/>",
         "cameras.xml: camera.label: missing"},
        {"frame", "", "</cameras>", "cameras.xml: line "},
    };
    write_pictures(folder, "given/view %u.png");
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        write_metashape(folder, cases[i].type, cases[i].more, cases[i].after);
        assert_fails_with(folder, cases[i].says);
    }
    temporary_text(folder, "given/cameras.xml",
                   "<!DOCTYPE a [<!ENTITY b \"c\">]><document><chunk/>");
    assert_fails_with(folder, "cameras.xml: line 1: a DOCTYPE is not supported");
    temporary_text(folder, "given/cameras.xml", "<document><chunk></chunk></document>");
    assert_fails_with(folder, "cameras.xml: 0 of 0 cameras with a pose");
    struct base_text deep = {0};
    base_text_add(&deep, "<document><chunk>");
    for (int i = 0; i < 100; i++)
        base_text_add(&deep, "<a>");
    temporary_text(folder, "given/cameras.xml", deep.data);
    free(deep.data);
    assert_fails_with(folder, "cameras.xml: line 1: elements are nested too deep");
}

/* ---- RealityCapture -------------------------------------------------------------------------- */

/* Appends heading, pitch and roll of the rig's camera: Epic's matrix from the world to right, down
 * and forwards has the rows r0, r1, r2 with r1[2] = -sin(pitch). */
static void add_angles(struct base_text *text, double axes[3][3])
{
    double pitch = asin(-axes[1][2]);
    double heading = atan2(-axes[1][0], -axes[1][1]);
    double roll = atan2(-axes[0][2], -axes[2][2]);
    base_text_add(text, ",%.17g,%.17g,%.17g", heading * DEGREES, pitch * DEGREES, roll * DEGREES);
}

static void write_realitycapture(struct temporary *folder, const char *titles, const char *more)
{
    struct base_text text = {0};
    base_text_add(&text, "#cameras 6\r\n#name,x,y,alt,heading,pitch,roll,f,px,py,%s\r\n", titles);
    for (unsigned i = 0; i < CAMERAS; i++) {
        double axes[3][3], position[3];
        known_camera(i, CAMERAS, axes, position);
        base_text_add(&text, "view %u.png,%.17g,%.17g,%.17g", i, position[0], position[1],
                      position[2]);
        add_angles(&text, axes);
        base_text_add(&text, ",%.17g,0.02,-0.015,%s\r\n", 28.125 + i, more);
    }
    temporary_file(folder, "given/scan.csv", text.data, text.size);
    free(text.data);
}

/* "RealityCapture XMP Camera Math": image coordinates are relative to the larger side. */
static void project_realitycapture(unsigned camera, const double local[3], double pixel[2])
{
    double x = local[0] / local[2], y = local[1] / local[2], r2 = x * x + y * y;
    double radial = 1 - 0.12 * r2 + 0.05 * r2 * r2 - 0.01 * pow(r2, 3);
    double xd = x * radial + 0.004 * (r2 + 2 * x * x) + 2 * -0.007 * x * y;
    double yd = y * radial + -0.007 * (r2 + 2 * y * y) + 2 * 0.004 * x * y;
    pixel[0] = WIDTH * (xd * (28.125 + camera) / 36 + 0.02) + 0.5 * WIDTH;
    pixel[1] = WIDTH * (yd * (28.125 + camera) / 36 - 0.015) + 0.5 * HEIGHT;
}

#define RC_TITLES "k1,k2,k3,k4,t1,t2"
#define RC_VALUES "-0.12,0.05,-1e-002,0,0.004,-0.007"

static void test_realitycapture(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/images/view %u.png");
    write_cloud(folder, "given/scan.ply");
    write_realitycapture(folder, RC_TITLES, RC_VALUES);
    struct vkn_scene *scene = open_converted(folder);
    assert_logged("scan.csv: a capture of RealityCapture");
    assert_rig(scene, "view_%u.png", project_realitycapture);
    assert_points(scene);
    scene_close(&scene);
    write_realitycapture(folder, RC_TITLES ",flavour", RC_VALUES ",\"a\"");
    struct request request = request_of(folder, "given");
    request.params.overwrite = true;
    assert_ok(convert(&request));
    assert_logged("scan.csv: not read: flavour\n");
}

static void test_realitycapture_refused(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/view %u.png");
    write_realitycapture(folder, RC_TITLES, "0,0,0,0.1,0,0");
    assert_fails_with(folder, "scan.csv: line 3.k4: not supported unless 0: choose");
    write_realitycapture(folder, RC_TITLES, "0,0,0,0,0");
    assert_fails_with(folder, "scan.csv: line 3: 15 cells instead of 16");
    write_realitycapture(folder, RC_TITLES, "0,0,1e999,0,0,0");
    assert_fails_with(folder, "scan.csv: line 3.k3: inf is not from -1000 to 1000");
    temporary_text(folder, "given/scan.csv", "#name;x;y;z\nview 1.png;1;2;3\n");
    assert_fails_with(folder, "scan.csv: the columns are separated by semicolons: export with");
    temporary_text(folder, "given/scan.csv", "#name,x,y,z\nview 1.png,1,2,3\n");
    assert_fails_with(folder, "scan.csv: alt: this column is missing: export \"Internal/External");
    temporary_text(
        folder, "given/scan.csv",
        "#name,x,y,alt,heading,pitch,roll,f\nview 1.png,1,2,3,4,5,6,7\n,1,2,3,4,5,6,7\n");
    assert_fails_with(folder, "scan.csv: line 3.name: empty");
    temporary_text(folder, "given/scan.csv",
                   "#name,x,y,alt,heading,pitch,roll,f\nview 1.png,1,2,3,4,5,6,0\n");
    assert_fails_with(folder, "scan.csv: line 2.f: 0 is too small");
    temporary_text(folder, "given/scan.csv",
                   "#name,x,y,alt,heading,pitch,roll,f\nview 1.png,1,2,3,4,5,6,7\n"
                   "\"view 1\",1,2,3,4,5,6,7\n");
    assert_fails_with(folder, "scan.csv: view 1.png and view 1 have one picture, view 1.png");
    temporary_text(folder, "given/scan.csv",
                   "#name,x,y,alt,heading,pitch,roll,f\ngone.png,1,2,3,4,5,6,7\n");
    assert_fails_with(folder, "scan.csv: 0 of 1 cameras with a pose have a picture in ");
    assert_error("there is no picture of gone.png");
}

/* ---- Polycam --------------------------------------------------------------------------------- */

/* Writes one of Polycam's camera files, whose axes are right, up and backwards. */
static void write_polycam(struct temporary *folder, const char *subfolder, unsigned index,
                          const char *more)
{
    struct base_text text = {0};
    double axes[3][3], position[3];
    char name[64];
    known_camera(index, CAMERAS, axes, position);
    base_text_add(&text,
                  "{\"fx\": %d, \"fy\": 51.5, \"cx\": 33.25, \"cy\": 22.5, "
                  "\"width\": 64, \"height\": 48, \"timestamp\": 12345678901%s",
                  50 + (int)index, more);
    for (int i = 0; i < 3; i++)
        base_text_add(&text,
                      ", \"t_%d0\": %.17g, \"t_%d1\": %.17g, \"t_%d2\": %.17g, \"t_%d3\": %.17g", i,
                      axes[0][i], i, -axes[1][i], i, -axes[2][i], i, position[i]);
    base_text_add(&text, "}");
    snprintf(name, sizeof(name), "given/keyframes/%s/100%u.json", subfolder, index);
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
}

static void project_polycam(unsigned camera, const double local[3], double pixel[2])
{
    pixel[0] = 33.25 + (50.0 + camera) * local[0] / local[2];
    pixel[1] = 22.5 + 51.5 * local[1] / local[2];
}

/* Writes the depth picture of camera 4, of 8 x 6 pixels of 2 m, and its confidence, of half the
 * size: low, medium and high from the left. */
static void write_polycam_depth(struct temporary *folder)
{
    uint16_t depths[8 * 6];
    uint8_t levels[4 * 3];
    for (size_t i = 0; i < BASE_COUNT(depths); i++)
        depths[i] = 2000;
    for (size_t i = 0; i < BASE_COUNT(levels); i++)
        levels[i] = i % 4 == 0 ? 0 : i % 4 == 3 ? 255 : 127;
    assert_ok(scene_image_write_png16(temporary_path(folder, "given/keyframes/depth/1004.png"),
                                      depths, 8, 6));
    assert_ok(scene_image_write_png(temporary_path(folder, "given/keyframes/confidence/1004.png"),
                                    levels, 4, 3, 1));
}

/* Depths of low confidence are left out; without a confidence picture all depths are kept. */
static void test_polycam_confidence(void **state)
{
    struct temporary *folder = *state;
    for (unsigned i = 0; i < CAMERAS; i++)
        write_polycam(folder, "corrected_cameras", i, "");
    write_pictures(folder, "given/keyframes/corrected_images/100%u.png");
    write_polycam_depth(folder);
    for (int broken = 0; broken < 2; broken++) {
        remove_tree(temporary_path(folder, "scene"));
        if (broken)
            temporary_text(folder, "given/keyframes/confidence/1004.png", "no picture");
        struct vkn_scene *scene = open_converted(folder);
        if (broken)
            assert_logged("confidence/1004.png: not a PNG");
        else
            assert_silent("unreliable");
        for (unsigned split = 0; split < SCENE_SPLITS; split++)
            assert_ok(scene_find_depths(scene, split));
        const struct scene_camera *camera = camera_of(scene, "1004.png");
        assert_int_equal(camera->depth_count, broken ? 8 * 6 : 6 * 6);
        const struct scene_depth *first = &scene->splits[SCENE_TRAIN].depths[camera->first_depth];
        assert_true(fabs((double)first->depth / scene->scale - 2) < 1e-5);
        assert_true(fabs((double)first->x - (broken ? 0.5 : 2.5) * 8) < 1e-5);
        scene_close(&scene);
    }
}

static void test_polycam(void **state)
{
    struct temporary *folder = *state;
    struct stat given, made;
    for (unsigned i = 0; i < CAMERAS; i++)
        write_polycam(folder, "cameras", i, "");
    write_pictures(folder, "given/keyframes/images/100%u.png");
    struct vkn_scene *scene = open_converted(folder);
    assert_logged("there are no corrected_cameras");
    scene_close(&scene);
    for (unsigned i = 0; i < CAMERAS; i++)
        write_polycam(folder, "corrected_cameras", i, i == 2 ? ", \"skew\": 0" : "");
    write_pictures(folder, "given/keyframes/corrected_images/100%u.png");
    temporary_picture(folder, "given/thumbnail.png", WIDTH, HEIGHT, 9);
    temporary_picture(folder, "given/keyframes/depth/1004.png", 16, 12, 9);
    struct request request = request_of(folder, "given");
    request.params.overwrite = true;
    assert_ok(convert(&request));
    assert_logged("corrected_cameras: not read: skew\n");
    scene = open_converted(folder);
    assert_silent("there are no corrected_cameras");
    assert_rig(scene, "100%u.png", project_polycam);
    assert_true(scene->unit_length == 1);
    scene_close(&scene);
    assert_int_equal(stat(temporary_path(folder, "given/keyframes/depth/1004.png"), &given), 0);
    assert_int_equal(stat(temporary_path(folder, "scene/depth/1004.png"), &made), 0);
    assert_int_equal(given.st_ino, made.st_ino);
    char *text = content(folder, "scene/transforms.json");
    assert_non_null(strstr(text, "\"depth_file_path\":\t\"depth/1004.png\""));
    assert_non_null(strstr(text, "\"depth_unit_scale_factor\":\t0.001"));
    free(text);
    write_polycam(folder, "corrected_cameras", 3, ", \"fx\": 0");
    temporary_text(folder, "given/keyframes/corrected_cameras/1001.json", "{\"width\": 64");
    assert_fails_with(folder, "corrected_cameras/1001.json: line 1");
    temporary_text(folder, "given/keyframes/corrected_cameras/1001.json", "{\"width\": 64}");
    assert_fails_with(folder, "corrected_cameras/1001.json: height: missing");
}

/* ---- Record3D -------------------------------------------------------------------------------- */

/* Writes metadata.json; the quaternion x y z w is that of the axes right, up and backwards. */
static void write_record3d(struct temporary *folder, const char *lens, const char *more)
{
    struct base_text text = {0};
    base_text_add(&text, "{\"w\": 64, \"h\": 48, \"fps\": 30, %s, \"poses\": [", lens);
    for (unsigned i = 0; i < CAMERAS; i++) {
        double axes[3][3], position[3], m[3][3], q[4];
        known_camera(i, CAMERAS, axes, position);
        for (int k = 0; k < 9; k++)
            m[k / 3][k % 3] = axes[k % 3][k / 3] * (k % 3 == 0 ? 1 : -1);
        pose_quaternion((const double(*)[3])m, q);
        base_text_add(&text, "%s[%.17g, %.17g, %.17g, %.17g, %.17g, %.17g, %.17g]",
                      i > 0 ? ", " : "", 2 * q[1], 2 * q[2], 2 * q[3], 2 * q[0], position[0],
                      position[1], position[2]);
    }
    base_text_add(&text, "%s]}", more);
    temporary_file(folder, "given/EXR_RGBD/metadata.json", text.data, text.size);
    free(text.data);
}

static void project_record3d(unsigned camera, const double local[3], double pixel[2])
{
    (void)camera;
    pixel[0] = 31.5 + 52 * local[0] / local[2];
    pixel[1] = 25.25 + 53 * local[1] / local[2];
}

static void project_each(unsigned camera, const double local[3], double pixel[2])
{
    pixel[0] = 30 + (48.0 + camera) * local[0] / local[2];
    pixel[1] = 24 + 50 * local[1] / local[2];
}

#define EACH(focal) "[" #focal ", 50, 30, 24]"

/* Writes depth pictures of 16 x 12 pixels, of camera i in a distance of i + 1.5 metres. */
static void write_record3d_depths(struct temporary *folder)
{
    const struct exr_kind kind = {.compression = EXR_ZIP, .is_half = true};
    for (unsigned i = 0; i < CAMERAS; i++) {
        float values[16 * 12];
        char name[64];
        for (size_t n = 0; n < BASE_COUNT(values); n++)
            values[n] = n % 16 < 4 ? NAN : (float)i + 1.5F;
        struct base_text file = exr_file(&kind, 16, 12, values);
        snprintf(name, sizeof name, "given/EXR_RGBD/depth/%u.exr", i);
        temporary_file(folder, name, file.data, file.size);
        free(file.data);
    }
}

/* Depth pictures are read in metres, which are the units of the poses. */
static void test_record3d_depths(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/EXR_RGBD/rgb/%u.png");
    write_record3d(folder, "\"K\": [52, 0, 0, 0, 53, 0, 31.5, 25.25, 1]", "");
    write_record3d_depths(folder);
    struct vkn_scene *scene = open_converted(folder);
    vkn_log_to(keep_line, NULL);
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        assert_ok(scene_find_depths(scene, split));
    vkn_log_to(NULL, NULL);
    assert_silent("are not used");
    for (unsigned i = 0; i < CAMERAS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.png", i);
        const struct scene_camera *camera = camera_of(scene, name);
        const struct scene_split *train = &scene->splits[SCENE_TRAIN];
        bool is_train = camera >= train->cameras && camera < train->cameras + train->camera_count;
        const struct scene_depth *depths =
            (is_train ? train : &scene->splits[SCENE_TEST])->depths + camera->first_depth;
        assert_int_equal(camera->depth_count, 12 * 12);
        for (size_t n = 0; n < camera->depth_count; n++)
            assert_true(fabs((double)depths[n].depth / scene->scale - (i + 1.5)) < 1e-5);
        assert_true(fabs((double)depths[0].x - 4.5 * 4) < 1e-5);
        assert_true(fabs((double)depths[0].y - 0.5 * 4) < 1e-5);
    }
    scene_close(&scene);
}

static void test_record3d(void **state)
{
    struct temporary *folder = *state;
    static const char *const lenses[] = {
        "\"K\": [52, 0, 0, 0, 53, 0, 31.5, 25.25, 1]",
        "\"K\": [52, 0, 31.5, 0, 53, 25.25, 0, 0, 1]",
        "\"K\": [1, 0, 0, 0, 1, 0, 1, 1, 1], \"perFrameIntrinsicCoeffs\": [" EACH(48) ", " EACH(
            49) ", " EACH(50) ", " EACH(51) ", " EACH(52) ", " EACH(53) "]",
    };
    write_pictures(folder, "given/EXR_RGBD/rgb/%u.png");
    temporary_text(folder, "given/EXR_RGBD/depth/5.exr", "depth");
    for (size_t i = 0; i < BASE_COUNT(lenses); i++) {
        remove_tree(temporary_path(folder, "scene"));
        write_record3d(folder, lenses[i], "");
        struct vkn_scene *scene = open_converted(folder);
        assert_rig(scene, "%u.png", i < 2 ? project_record3d : project_each);
        assert_true(scene->unit_length == 1);
        scene_close(&scene);
        assert_true(has(folder, "scene/depth/5.exr"));
        assert_false(has(folder, "scene/depth/4.exr"));
    }
    struct request request = request_of(folder, "given");
    request.params.overwrite = true;
    write_record3d(folder, "\"K\": [52, 0, 0, 0, 53, 0, 31.5, 25.25, 1], \"lidar\": true", "");
    assert_ok(convert(&request));
    assert_logged("metadata.json: not read: lidar\n");
    write_record3d(folder, lenses[0], ", [0, 0, 0, 0, 1, 2, 3]");
    assert_fails_with(folder, "metadata.json: poses[6]: the quaternion is zero");
    write_record3d(folder, lenses[0], ", [0, 0, 0, 1, 1, 2]");
    assert_fails_with(folder, "metadata.json: poses[6]: not 7 numbers");
    write_record3d(folder, lenses[0], ", [0, 0, 0, 1, 1, 2, NaN]");
    assert_fails_with(folder, "metadata.json: poses[6]: ");
    write_record3d(folder, lenses[2], ", [0, 0, 0, 1, 1, 2, 3]");
    assert_fails_with(folder, "perFrameIntrinsicCoeffs: 6 lenses for 7 poses");
    write_record3d(folder, "\"K\": [52, 0, 3, 0, 53, 0, 31.5, 25.25, 1]", "");
    assert_fails_with(folder, "metadata.json: K: not a matrix of a camera");
    write_record3d(folder, "\"K\": [0, 0, 0, 0, 53, 0, 31.5, 25.25, 1]", "");
    assert_fails_with(folder, "metadata.json: K: a focal length is not positive");
}

/* ---- OpenSfM --------------------------------------------------------------------------------- */

/* Appends a shot: the turn from the world to right, down and forwards as axis and angle. */
static void add_shot(struct base_text *text, unsigned index, const char *name, const char *more)
{
    double axes[3][3], position[3], q[4], t[3] = {0};
    known_camera(index, CAMERAS, axes, position);
    pose_quaternion((const double(*)[3])axes, q);
    double sine = sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3]), angle = 2 * atan2(sine, q[0]);
    for (int i = 0; i < 9; i++)
        t[i / 3] -= axes[i / 3][i % 3] * position[i % 3];
    base_text_add(text,
                  "%s\"%s\": {\"camera\": \"v2 lens %u\", \"rotation\": [%.17g, %.17g, %.17g], "
                  "\"translation\": [%.17g, %.17g, %.17g], \"gps_dop\": 5.0%s}",
                  index > 0 ? ", " : "", name, index % 2, q[1] * angle / sine, q[2] * angle / sine,
                  q[3] * angle / sine, t[0], t[1], t[2], more);
}

/* Writes a small reconstruction and the rig's, whose cameras have two lenses. */
static void write_opensfm(struct temporary *folder, const char *lens, const char *more)
{
    struct base_text text = {0};
    base_text_add(&text, "[{\"cameras\": {}, \"shots\": {}}, {\"cameras\": {");
    for (int i = 0; i < 2; i++)
        base_text_add(&text, "%s\"v2 lens %d\": {\"width\": 640, %s}", i > 0 ? ", " : "", i, lens);
    base_text_add(&text, "}, \"shots\": {");
    for (unsigned i = 0; i < CAMERAS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "shot %u.png", i);
        add_shot(&text, i, name, i == 4 ? more : "");
    }
    base_text_add(&text, "}, \"points\": {");
    for (size_t n = 0; n < BASE_COUNT(points); n++)
        base_text_add(
            &text,
            "%s\"%zu\": {\"coordinates\": [%.17g, %.17g, %.17g], \"color\": [%zu.0, 20, 30]}",
            n > 0 ? ", " : "", n + 7, points[n][0], points[n][1], points[n][2], n);
    base_text_add(&text, "}}]");
    temporary_file(folder, "given/opensfm/reconstruction.json", text.data, text.size);
    free(text.data);
}

/* "Geometric Models": x and y are relative to the larger side, whose pixels span 1. */
static void project_brown(unsigned camera, const double local[3], double pixel[2])
{
    (void)camera;
    double x = local[0] / local[2], y = local[1] / local[2], r2 = x * x + y * y;
    double radial = 1 - 0.1 * r2 + 0.02 * r2 * r2 + 0.003 * pow(r2, 3);
    double u = 0.8 * (x * radial + 2 * 0.004 * x * y - 0.006 * (r2 + 2 * x * x)) + 0.015;
    double v = 0.81 * (y * radial - 2 * 0.006 * x * y + 0.004 * (r2 + 2 * y * y)) - 0.01;
    pixel[0] = WIDTH * u + 0.5 * WIDTH;
    pixel[1] = WIDTH * v + 0.5 * HEIGHT;
}

static void project_opensfm_fisheye(unsigned camera, const double local[3], double pixel[2])
{
    (void)camera;
    double r = hypot(local[0], local[1]), angle = atan2(r, local[2]);
    double d = 0.8 * angle * (1 + 0.05 * angle * angle - 0.01 * pow(angle, 4));
    pixel[0] = WIDTH * d * local[0] / r + 0.5 * WIDTH;
    pixel[1] = WIDTH * d * local[1] / r + 0.5 * HEIGHT;
}

#define BROWN                                                                               \
    "\"height\": 480, "                                                                     \
    "\"projection_type\": \"brown\", \"focal_x\": 0.8, \"focal_y\": 0.81, \"c_x\": 0.015, " \
    "\"c_y\": -0.01, \"k1\": -0.1, \"k2\": 0.02, \"k3\": 0.003, \"p1\": 0.004, \"p2\": -0.006"
#define FISHEYE         \
    "\"height\": 480, " \
    "\"projection_type\": \"fisheye\", \"focal\": 0.8, \"k1\": 0.05, \"k2\": -0.01"

static void test_opensfm(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/images/shot %u.png");
    write_pictures(folder, "given/opensfm/undistorted/images/shot %u.png");
    write_opensfm(folder, BROWN, "");
    struct vkn_scene *scene = open_converted(folder);
    assert_logged("the largest of 2 reconstructions is read, with 6 shots");
    assert_silent("not read");
    assert_rig(scene, "shot_%u.png", project_brown);
    assert_points(scene);
    scene_close(&scene);
    remove_tree(temporary_path(folder, "scene"));
    struct request inner = request_of(folder, "given/opensfm/reconstruction.json");
    assert_ok(convert(&inner)); /* pictures beside the folder opensfm */
    assert_int_equal(inner.result.registered, CAMERAS);
    remove_tree(temporary_path(folder, "scene"));
    write_opensfm(folder, FISHEYE ", \"newest\": 1", ", \"weather\": 1");
    scene = open_converted(folder);
    assert_logged("reconstruction.json: not read: cameras.newest, shots.weather\n");
    assert_rig(scene, "shot_%u.png", project_opensfm_fisheye);
    scene_close(&scene);
}

/* A full panorama is twice as wide as high. */
static void test_opensfm_spherical(void **state)
{
    struct temporary *folder = *state;
    for (unsigned i = 0; i < CAMERAS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "given/images/shot %u.png", i);
        temporary_picture(folder, name, WIDTH, WIDTH / 2, (uint8_t)i);
    }
    write_opensfm(folder, "\"height\": 320, \"projection_type\": \"spherical\"", "");
    struct vkn_scene *scene = open_converted(folder);
    assert_rig(scene, "shot_%u.png", project_spherical);
    scene_close(&scene);
}

static void test_opensfm_refused(void **state)
{
    struct temporary *folder = *state;
    static const struct {
        const char *lens, *more, *says;
    } cases[] = {
        {"\"height\": 480, \"projection_type\": \"dual\"", "",
         "reconstruction.json: cameras.v2 lens 0.projection_type: dual is not supported"},
        {"\"height\": 480, \"projection_type\": \"fisheye624\"", "",
         "projection_type: fisheye624 is not supported"},
        {FISHEYE ", \"k3\": 0.1", "", "cameras.v2 lens 0.k3: not supported for fisheye unless 0"},
        {"\"height\": 480, \"projection_type\": \"brown\"", "", "cameras.v2 lens 0.focal: missing"},
        {BROWN, ", \"camera\": 5, \"a\": [", "reconstruction.json: line 1"},
        {"\"height\": 480, \"projection_type\": \"perspective\", \"focal\": -1", "",
         "cameras.v2 lens 0.focal: "},
        {"\"height\": 480, \"projection_type\": \"perspective\", \"focal\": Infinity", "",
         "cameras.v2 lens 0.focal: "},
    };
    write_pictures(folder, "given/images/shot %u.png");
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        write_opensfm(folder, cases[i].lens, cases[i].more);
        assert_fails_with(folder, cases[i].says);
    }
    static const struct {
        const char *text, *says;
    } files[] = {
        {"{}", "reconstruction.json: (top): not a list of reconstructions"},
        {"[]", "reconstruction.json: (top): not a list of reconstructions"},
        {"[{}]", "reconstruction.json: cameras: missing, or not an object"},
        {"[{\"cameras\": {}, \"shots\": {\"a\": {\"camera\": \"b\"}}}]",
         "reconstruction.json: shots.a.camera: there is no camera b"},
        {"[{\"cameras\": {}, \"shots\": {}}]", "reconstruction.json: 0 of 0 cameras with a pose"},
    };
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        temporary_text(folder, "given/opensfm/reconstruction.json", files[i].text);
        assert_fails_with(folder, files[i].says);
    }
}

/* ---- Pix4D ----------------------------------------------------------------------------------- */

/* Writes the files of a project; `internals` is added to the sensors' lens. */
static void write_opf(struct temporary *folder, const char *internals, const char *more)
{
    struct base_text list = {0}, calibrated = {0};
    base_text_add(&list, "{\"format\": \"application/opf-camera-list+json\", \"version\": \"1.0\", "
                         "\"cameras\": [{\"id\": 5, \"uri\": \"../photos/unused.png\"}");
    base_text_add(&calibrated,
                  "{\"format\": \"application/opf-calibrated-cameras+json\", \"version\": "
                  "\"1.0\", \"sensors\": [{\"id\": 18446744073709551615, \"internals\": "
                  "{\"type\": \"perspective\", \"principal_point_px\": [330.5, 231.25], "
                  "\"focal_length_px\": 510, \"radial_distortion\": [-0.08, 0.03, -0.004], "
                  "\"tangential_distortion\": [0.003, -0.005]%s}}], \"cameras\": [",
                  internals);
    for (unsigned i = 0; i < CAMERAS; i++) {
        double axes[3][3], position[3];
        known_camera(i, CAMERAS, axes, position);
        /* Columns right, up, backwards: R[0][2] = sin(phi), R[1][2] = -sin(omega) cos(phi). */
        double phi = asin(-axes[2][0]), omega = atan2(axes[2][1], -axes[2][2]);
        double kappa = atan2(axes[1][0], axes[0][0]);
        base_text_add(
            &list, ", {\"id\": 184467440737095%u001, \"uri\": \"../photos/view%%20%u.png#page=1\"}",
            i, i);
        base_text_add(&calibrated,
                      "%s{\"id\": 184467440737095%u001, \"sensor_id\": 18446744073709551615, "
                      "\"position\": [%.17g, %.17g, %.17g], \"orientation_deg\": [%.17g, %.17g, "
                      "%.17g]%s}",
                      i > 0 ? ", " : "", i, position[0], position[1], position[2], omega * DEGREES,
                      phi * DEGREES, kappa * DEGREES, i == 2 ? more : "");
    }
    base_text_add(&list, "]}");
    base_text_add(&calibrated, "]}");
    temporary_file(folder, "given/camera list.json", list.data, list.size);
    temporary_file(folder, "given/calibrated.json", calibrated.data, calibrated.size);
    temporary_text(folder, "given/inputs.json",
                   "{\"version\": \"1.0\", \"sensors\": [{\"id\": 18446744073709551615, "
                   "\"image_size_px\": [640, 480]}]}");
    free(list.data);
    free(calibrated.data);
}

#define ITEM(type, uri, format)                                 \
    "{\"type\": \"" type "\", \"resources\": [{\"uri\": \"" uri \
    "\", \"format\": \"application/opf-" format "+json\"}]}"
#define PROJECT(version, items) "{\"version\": \"" version "\", \"items\": [" items "]}"
#define ITEMS                                                \
    ITEM("camera_list", "camera%20list.json", "camera-list") \
    ", " ITEM("input_cameras", "inputs.json",                \
              "input-cameras") ", " ITEM("calibration", "calibrated.json", "calibrated-cameras")

static void project_pix4d(unsigned camera, const double local[3], double pixel[2])
{
    (void)camera;
    double x = local[0] / local[2], y = local[1] / local[2], r2 = x * x + y * y;
    double radial = 1 - 0.08 * r2 + 0.03 * r2 * r2 - 0.004 * pow(r2, 3);
    double xd = x * radial + 2 * 0.003 * x * y - 0.005 * (r2 + 2 * x * x);
    double yd = y * radial - 2 * 0.005 * x * y + 0.003 * (r2 + 2 * y * y);
    pixel[0] = (330.5 + 510 * xd) / 10; /* the pictures are a tenth of the calibrated size */
    pixel[1] = (231.25 + 510 * yd) / 10;
}

static void test_opf(void **state)
{
    struct temporary *folder = *state;
    write_pictures(folder, "given/photos/view %u.png");
    temporary_text(folder, "given/project.opf", PROJECT("1.0", ITEMS));
    write_opf(folder, "", "");
    struct vkn_scene *scene = open_converted(folder);
    assert_silent("not read");
    assert_rig(scene, "view_%u.png", project_pix4d);
    scene_close(&scene);
    remove_tree(temporary_path(folder, "scene"));
    write_opf(folder, ", \"tilt\": 1", ", \"rolling_shutter\": [1, 2, 3]");
    scene = open_converted(folder);
    assert_logged("project.opf: not read: internals.tilt, camera.rolling_shutter\n");
    scene_close(&scene);
}

static void test_opf_refused(void **state)
{
    struct temporary *folder = *state;
    static const struct {
        const char *project, *internals, *more, *says;
    } cases[] = {
        {PROJECT("2.0", ITEMS), "", "", "project.opf: version: 2.0 is not supported"},
        {PROJECT("1.0", ""), "", "", "project.opf: items: there is no item calibration"},
        {PROJECT("1.0", ITEM("calibration", "gone.json", "calibrated-cameras") ", " ITEM(
                            "camera_list", "camera%20list.json", "camera-list")),
         "", "", "gone.json: No such file"},
        {PROJECT("1.0", ITEMS), "", ", \"position\": [], \"b\": [", "calibrated.json: line 1"},
    };
    write_pictures(folder, "given/photos/view %u.png");
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        temporary_text(folder, "given/project.opf", cases[i].project);
        write_opf(folder, cases[i].internals, cases[i].more);
        assert_fails_with(folder, cases[i].says);
    }
    temporary_text(folder, "given/project.opf", PROJECT("1.0", ITEMS));
    static const struct {
        const char *text, *says;
    } files[] = {
        {"{\"version\": \"1.0\", \"cameras\": [{\"id\": 99}]}",
         "calibrated.json: cameras[0].id: camera list.json has no camera 99"},
        {"{\"version\": \"1.0\", \"cameras\": [{\"id\": 5, \"sensor_id\": 1}]}",
         "calibrated.json: cameras[0].sensor_id: there is no sensor 1"},
        {"{\"version\": \"1.0\", \"sensors\": [{\"id\": 1, \"internals\": {\"type\": "
         "\"fisheye\"}}], "
         "\"cameras\": [{\"id\": 5, \"sensor_id\": 1}]}",
         "calibrated.json: sensor 1.internals.type: fisheye is not supported"},
        {"{\"version\": \"1.0\"}", "calibrated.json: cameras: missing, or not an array"},
    };
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        temporary_text(folder, "given/calibrated.json", files[i].text);
        assert_fails_with(folder, files[i].says);
    }
}

/* ---- all programs ---------------------------------------------------------------------------- */

/* Options for COLMAP have no effect, pictures with one name in two folders are ambiguous, and a
 * folder may have one capture only. */
static void test_ambiguous(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    write_pictures(folder, "given/a/view %u.png");
    write_realitycapture(folder, RC_TITLES, RC_VALUES);
    request.params.matcher = VKN_MATCHER_SEQUENTIAL;
    assert_fails(&request, VKN_BAD_INPUT, "matcher: not used, because ");
    request.params.matcher = VKN_MATCHER_AUTO;
    request.params.equirectangular = true;
    assert_fails(&request, VKN_BAD_INPUT, "equirectangular: not used, because ");
    temporary_picture(folder, "given/b/view 3.png", WIDTH, HEIGHT, 3);
    assert_fails_with(folder, "scan.csv: view 3.png: a/view 3.png and b/view 3.png in ");
    temporary_text(folder, "given/other.CSV", "#name,x,y,z\n");
    assert_fails_with(folder, "given: several captures with poses, other.CSV and scan.csv: name");
    assert_int_equal(unlink(temporary_path(folder, "given/other.CSV")), 0);
    assert_int_equal(unlink(temporary_path(folder, "given/b/view 3.png")), 0);
    write_cloud(folder, "given/1.ply");
    write_cloud(folder, "given/2.ply");
    struct vkn_scene *scene = open_converted(folder);
    assert_logged("2 PLY files, of which none is read");
    assert_int_equal(scene->point_count, 0);
    scene_close(&scene);
}

/* Parent folders decide between pictures of one name, whatever the separators, case, extension and
 * Unicode form. */
static void test_folders(void **state)
{
    struct temporary *folder = *state;
    static const char *const files[] = {"00001_a_1.png", "00003_b_1.png", "00004_b_2.png",
                                        "00002_a_2.png", "00005_c_a__.png"};
    struct request request = request_of(folder, "given");
    struct scene_options options = {.path = request.params.out};
    struct vkn_scene *scene = NULL;
    temporary_picture(folder, "given/a/1.png", WIDTH, HEIGHT, 1);
    temporary_picture(folder, "given/a/2.png", WIDTH, HEIGHT, 2);
    temporary_picture(folder, "given/b/1.png", WIDTH, HEIGHT, 3);
    temporary_picture(folder, "given/b/2.png", WIDTH, HEIGHT, 4);
    temporary_picture(folder, "given/c/a\xcc\x88.png", WIDTH, HEIGHT, 5);
    temporary_text(folder, "given/scan.csv",
                   "#name,x,y,alt,heading,pitch,roll,f\nC:\\shoot\\A\\1.png,1,0,3,0,0,0,30\n"
                   "b/1.png,2,0,3,0,10,0,30\nb/2.JPG,3,0,3,0,0,10,30\n/x/a/2,4,0,3,5,0,0,30\n"
                   "C/\xc3\x84.JPG,5,0,3,0,5,0,30\n");
    assert_ok(convert(&request));
    assert_ok(scene_open(&options, &scene));
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        const struct scene_camera *camera = camera_of(scene, files[i]);
        double x = ((double)camera->pose[3] - scene->offset[0]) / scene->scale;
        assert_true(fabs(x - (double)(i + 1)) < 1e-4);
    }
    scene_close(&scene);
}

/* Recognises and reads the capture in `given`; `n`: the allocation that fails, 0: none. */
static vkn_status read_capture(struct temporary *folder, long n)
{
    struct request request = request_of(folder, "given");
    struct preparation preparation = {.params = &request.params};
    base_memory_fail_at(n);
    vkn_status status = import_open(&preparation);
    import_close(&preparation.import);
    bool failed = n > 0 && base_memory_until_failure() == 0;
    base_memory_fail_at(0);
    for (int i = 0; i < 2; i++) /* the two paths of request_of */
        free(folder->texts[--folder->text_count]);
    if (n > 0 && failed != (status != VKN_OK))
        fail_msg("%s: allocation %ld: status %d", vkn_last_error(), n, (int)status);
    return status;
}

/* Writes the files of one program, and returns the path of one of them; NULL: there is no further
 * program. */
static char *write_capture(struct temporary *folder, unsigned program)
{
    remove_tree(temporary_path(folder, "given"));
    switch (program) {
    case 0:
        write_metashape(folder, "fisheye", "<k4>0.3</k4>", "");
        return temporary_path(folder, "given/cameras.xml");
    case 1:
        write_realitycapture(folder, RC_TITLES, RC_VALUES);
        return temporary_path(folder, "given/scan.csv");
    case 2:
        write_polycam(folder, "corrected_cameras", 1, ", \"skew\": 0");
        return temporary_path(folder, "given/keyframes/corrected_cameras/1001.json");
    case 3:
        temporary_path(folder, "given/EXR_RGBD/rgb/0.png");
        write_record3d(folder, "\"K\": [52, 0, 0, 0, 53, 0, 31.5, 25.25, 1]", "");
        return temporary_path(folder, "given/EXR_RGBD/metadata.json");
    case 4:
        write_opensfm(folder, BROWN, "");
        return temporary_path(folder, "given/opensfm/reconstruction.json");
    case 5:
        temporary_text(folder, "given/project.opf", PROJECT("1.0", ITEMS));
        write_opf(folder, "", "");
        return temporary_path(folder, "given/calibrated.json");
    default:
        return NULL;
    }
}

/* Each allocation fails once: an error without a crash or a leak. */
static void test_no_memory(void **state)
{
    struct temporary *folder = *state;
    base_log_threshold(BASE_LOG_NOTHING);
    for (unsigned program = 0; write_capture(folder, program) != NULL; program++) {
        vkn_status status = VKN_ERROR;
        for (long n = 1; status != VKN_OK; n++) {
            status = read_capture(folder, n);
            if (status != VKN_OK && status != VKN_ERROR)
                fail_msg("program %u, allocation %ld: %s", program, n, vkn_last_error());
        }
    }
    free(base_json_print(NULL)); /* forgets failures of this thread */
    base_log_threshold(BASE_LOG_INFO);
}

/* Some allocations of a whole call fail (all would take a minute): the scene is complete, or it is
 * an error after which the same call completes the scene. */
static void test_no_memory_to_write(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    const char *json = temporary_path(folder, "scene/transforms.json");
    const char *cloud = temporary_path(folder, "scene/points.ply");
    bool failed = true;
    write_pictures(folder, "given/images/shot %u.png");
    write_opensfm(folder, BROWN, "");
    for (long n = 1; failed; n += 37) {
        remove_tree(request.params.out);
        base_memory_fail_at(n);
        vkn_status status = convert(&request);
        failed = base_memory_until_failure() == 0;
        base_memory_fail_at(0);
        if (status != VKN_OK && status != VKN_ERROR)
            fail_msg("allocation %ld: %s", n, vkn_last_error());
        free(base_json_print(NULL)); /* forgets failures of this thread */
        if (status != VKN_OK)
            assert_ok(convert(&request));
        assert_int_equal(request.result.registered, CAMERAS);
        assert_int_equal(request.result.points, BASE_COUNT(points));
        assert_true(base_file_exists(json) && base_file_exists(cloud));
    }
}

/* A file that is cut off or damaged anywhere is refused or read, with one line that names it. */
static void test_damaged(void **state)
{
    struct temporary *folder = *state;
    static const char bytes[] = "\0-9\"";
    char *path = NULL, *data = NULL;
    base_log_threshold(BASE_LOG_NOTHING);
    for (unsigned program = 0; (path = write_capture(folder, program)) != NULL; program++) {
        size_t size = 0;
        assert_ok(read_capture(folder, 0));
        assert_ok(base_file_read(path, 1 << 20, &data, &size));
        for (size_t at = size / 20; at < size; at += 1 + size / 97)
            for (int how = 0; how < 4; how++) {
                char kept = data[at];
                data[at] = bytes[how];
                FILE *stream = fopen(path, "wb");
                assert_int_equal(fwrite(data, how == 0 ? at : size, 1, stream), 1);
                assert_int_equal(fclose(stream), 0);
                data[at] = kept;
                vkn_status status = read_capture(folder, 0);
                if (status != VKN_OK && status != VKN_BAD_INPUT)
                    fail_msg("program %u, byte %zu: %s", program, at, vkn_last_error());
                if (status != VKN_OK)
                    assert_error(base_path_name(path));
            }
        free(data);
    }
    base_log_threshold(BASE_LOG_INFO);
}

/* A second call with an unchanged capture is quick; changed poses need --overwrite. Masks are those
 * of photographs. */
static void test_again(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    uint8_t mask[WIDTH * HEIGHT] = {255};
    write_pictures(folder, "given/view %u.png");
    write_realitycapture(folder, RC_TITLES, RC_VALUES);
    assert_ok(scene_image_write_png(temporary_path(folder, "given/masks/view 2.png"), mask, WIDTH,
                                    HEIGHT, 1));
    assert_ok(convert(&request));
    assert_true(has(folder, "scene/masks/00003_view_2.png.png"));
    assert_ok(convert(&request));
    write_realitycapture(folder, RC_TITLES, "0,0,0,0,0,0");
    assert_fails(&request, VKN_BAD_INPUT, "was prepared before the pictures");
    request.params.overwrite = true;
    assert_ok(convert(&request));
    assert_int_equal(unlink(temporary_path(folder, "given/scan.csv")), 0);
    fake(folder, "");
    assert_ok(convert(&request));
    assert_called(folder, "exhaustive_matcher", true);
    assert_false(has(folder, "scene/transforms.json"));
}

/* A unit that the caller has measured is kept in transforms.json; without a capture of another
 * program it is refused. */
static void test_unit_length(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    struct scene_options options = {.path = request.params.out};
    request.params.size = sizeof request.params;
    write_pictures(folder, "given/view %u.png");
    write_realitycapture(folder, RC_TITLES, RC_VALUES);
    static const double given[] = {0, 0.3048, 0, 2, 0}, kept[] = {0, 0.3048, 0.3048, 2, 0};
    for (int i = 0; i < 5; i++) { /* stages that are complete are skipped */
        struct vkn_scene *scene = NULL;
        request.params.unit_length = given[i];
        if (i == 4) /* a damaged one is not kept */
            temporary_text(folder, "scene/transforms.json", "{\"unit_length\": \"2\"}");
        assert_ok(convert(&request));
        assert_ok(scene_open(&options, &scene));
        assert_true(scene->unit_length == kept[i]);
        scene_close(&scene);
    }
    request.params.unit_length = 2;
    assert_int_equal(unlink(temporary_path(folder, "given/scan.csv")), 0);
    assert_fails(&request, VKN_BAD_INPUT, "unit_length (--distance): COLMAP is to find the poses");
}

/* Training says what such a folder is, and how to convert it. */
static void test_train_says(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = temporary_path(folder, "given")};
    write_pictures(folder, "given/view %u.png");
    write_realitycapture(folder, RC_TITLES, RC_VALUES);
    assert_open_fails(&options, "given: a capture of RealityCapture (scan.csv), not a scene; "
                                "convert it with: vknerf prepare /tmp/");
    assert_error("/given --out /tmp/");
    assert_error("/given-scene");
    options.path = temporary_path(folder, "given/scan.csv");
    assert_open_fails(&options, "scan.csv: a capture of RealityCapture (scan.csv), not a scene");
    assert_error("/given/scan-scene");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, temporary_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_no_expat),
        TEST(test_metashape),
        TEST(test_metashape_unit),
        TEST(test_metashape_fisheye),
        TEST(test_metashape_parts),
        TEST(test_metashape_components),
        TEST(test_metashape_spherical),
        TEST(test_metashape_refused),
        TEST(test_realitycapture),
        TEST(test_realitycapture_refused),
        TEST(test_polycam),
        TEST(test_polycam_confidence),
        TEST(test_record3d),
        TEST(test_record3d_depths),
        TEST(test_opensfm),
        TEST(test_opensfm_spherical),
        TEST(test_opensfm_refused),
        TEST(test_opf),
        TEST(test_opf_refused),
        TEST(test_ambiguous),
        TEST(test_no_memory),
        TEST(test_damaged),
        TEST(test_no_memory_to_write),
        TEST(test_again),
        TEST(test_folders),
        TEST(test_unit_length),
        TEST(test_train_says),
    };
    return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
