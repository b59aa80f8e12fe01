/* Tests exported files: binary glTF byte by byte, far origins in PLY and OBJ, Gaussians in the
 * layout of 3D Gaussian Splatting; and the spacing of points. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "scenes.h"

#include "render/formats.h"
#include "render/mesh.h"
#include "render/neighbours.h"
#include "render/render.h"
#include "scene/scene.h"
#include "shared/layout.h"

/* ---- binary glTF ----------------------------------------------------------------------------- */

struct glb {
    char *data;
    cJSON *json;
    const char *binary;
};

static uint32_t word_at(const char *bytes)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        word |= (uint32_t)(uint8_t)bytes[i] << 8 * i;
    return word;
}

static double float_at(const char *bytes)
{
    float value;
    uint32_t word = word_at(bytes);
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

/* Writes a mesh and reads the file: a header, a JSON chunk, a binary chunk. */
static struct glb write_glb(struct temporary *folder, const struct render_mesh *mesh)
{
    struct glb glb = {0};
    struct base_file_writer writer;
    const char *path = temporary_path(folder, "mesh.GLB");
    const struct render_format *format;
    size_t size;
    assert_ok(render_find_format(RENDER_MESH, path, &format));
    assert_ok(base_file_begin(&writer, path));
    assert_ok(format->write(&writer, mesh));
    assert_ok(base_file_commit(&writer));
    assert_ok(base_file_read(path, 1 << 20, &glb.data, &size));
    assert_memory_equal(glb.data, "glTF\2\0\0\0", 8);
    assert_int_equal(word_at(glb.data + 8), size);
    uint32_t json = word_at(glb.data + 12);
    assert_int_equal(json % 4, 0);
    assert_memory_equal(glb.data + 16, "JSON", 4);
    assert_ok(base_json_parse("json", glb.data + 20, json, &glb.json));
    if (20 + json < size) {
        assert_int_equal(word_at(glb.data + 20 + json), size - 28 - json);
        assert_memory_equal(glb.data + 24 + json, "BIN\0", 4);
        glb.binary = glb.data + 28 + json;
        const cJSON *buffer = cJSON_GetArrayItem(cJSON_GetObjectItem(glb.json, "buffers"), 0);
        assert_int_equal(cJSON_GetObjectItem(buffer, "byteLength")->valueint, size - 28 - json);
    }
    return glb;
}

static void close_glb(struct glb *glb)
{
    cJSON_Delete(glb->json);
    free(glb->data);
}

static const cJSON *item(const struct glb *glb, const char *list, int index)
{
    const cJSON *found = cJSON_GetArrayItem(cJSON_GetObjectItem(glb->json, list), index);
    assert_non_null(found);
    return found;
}

static int number(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(object, name);
    assert_true(cJSON_IsNumber(found));
    return found->valueint;
}

/* Returns the elements of an attribute or of the indices, after checks of type and count. */
static const char *elements(const struct glb *glb, const char *attribute, const char *type,
                            int component, int count)
{
    const cJSON *primitive =
        cJSON_GetArrayItem(cJSON_GetObjectItem(item(glb, "meshes", 0), "primitives"), 0);
    bool indices = strcmp(attribute, "indices") == 0;
    int index =
        number(indices ? primitive : cJSON_GetObjectItem(primitive, "attributes"), attribute);
    const cJSON *accessor = item(glb, "accessors", index);
    assert_int_equal(number(accessor, "componentType"), component);
    assert_int_equal(number(accessor, "count"), count);
    assert_string_equal(cJSON_GetObjectItem(accessor, "type")->valuestring, type);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(accessor, "normalized")), component == 5123);
    const cJSON *view = item(glb, "bufferViews", number(accessor, "bufferView"));
    assert_int_equal(number(view, "target"), indices ? 34963 : 34962);
    return glb->binary + number(view, "byteOffset");
}

static struct MeshVertex vertices[3];
static uint32_t triangles[1][3] = {{2, 0, 1}};

static struct render_mesh one_triangle(void)
{
    for (uint32_t v = 0; v < 3; v++)
        vertices[v] = (struct MeshVertex){
            {(float)v, -0.5f * (float)v, 0.1f}, {0, v == 1 ? -1.0f : 1.0f, 0}, 0xffff800au + v};
    return (struct render_mesh){
        .vertices = vertices, .triangles = triangles, .vertex_count = 3, .triangle_count = 1};
}

static double linear(uint32_t byte)
{
    double x = byte / 255.0;
    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

/* Checks positions, normals and indices of one_triangle(). */
static void check_triangle(const struct glb *glb)
{
    const char *at = elements(glb, "POSITION", "VEC3", 5126, 3);
    const char *normals = elements(glb, "NORMAL", "VEC3", 5126, 3);
    const char *indices = elements(glb, "indices", "SCALAR", 5125, 3);
    for (int i = 0; i < 9; i++) {
        assert_true(float_at(at + 4 * i) == (double)vertices[i / 3].position[i % 3]);
        assert_true(float_at(normals + 4 * i) == (double)vertices[i / 3].normal[i % 3]);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(word_at(indices + 4 * i), triangles[0][i]);
    const cJSON *positions = item(glb, "accessors", 0);
    const double low[3] = {0, -1, (double)0.1f}, high[3] = {2, 0, (double)0.1f};
    for (int i = 0; i < 3; i++) {
        assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(positions, "min"), i)->valuedouble ==
                    low[i]);
        assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(positions, "max"), i)->valuedouble ==
                    high[i]);
    }
    assert_non_null(cJSON_GetObjectItem(
        cJSON_GetObjectItem(item(glb, "materials", 0), "extensions"), "KHR_materials_unlit"));
    assert_string_equal(item(glb, "extensionsUsed", 0)->valuestring, "KHR_materials_unlit");
}

static void test_colors(void **state)
{
    struct render_mesh mesh = one_triangle();
    struct glb glb = write_glb(*state, &mesh);
    check_triangle(&glb);
    const char *colors = elements(&glb, "COLOR_0", "VEC4", 5123, 3);
    for (int v = 0; v < 3; v++)
        for (int c = 0; c < 4; c++) {
            double expected = c == 3 ? 1 : linear(vertices[v].color >> 8 * c & 255u);
            double found =
                (word_at(colors + 8 * v + 4 * (c / 2)) >> 16 * (c % 2) & 0xffffu) / 65535.0;
            assert_true(fabs(found - expected) < 1e-5);
        }
    assert_null(cJSON_GetObjectItem(glb.json, "textures"));
    close_glb(&glb);
}

static void test_texture(void **state)
{
    struct render_mesh mesh = one_triangle();
    float texels[3][2] = {{0.5f, 1}, {2, 3.5f}, {4, 0}};
    uint8_t texture[4 * 4 * 3], *rgba;
    uint32_t width, height;
    for (size_t i = 0; i < sizeof texture; i++)
        texture[i] = (uint8_t)(5 * i);
    mesh.texels = texels;
    mesh.texture = texture;
    mesh.texture_size = 4;
    struct glb glb = write_glb(*state, &mesh);
    check_triangle(&glb);
    const char *places = elements(&glb, "TEXCOORD_0", "VEC2", 5126, 3);
    for (int i = 0; i < 6; i++)
        assert_true(float_at(places + 4 * i) == (double)texels[i / 2][i % 2] / 4);
    const cJSON *image = item(&glb, "images", number(item(&glb, "textures", 0), "source"));
    assert_string_equal(cJSON_GetObjectItem(image, "mimeType")->valuestring, "image/png");
    const cJSON *view = item(&glb, "bufferViews", number(image, "bufferView"));
    const char *path =
        temporary_file(*state, "texture.png", glb.binary + number(view, "byteOffset"),
                       (size_t)number(view, "byteLength"));
    assert_ok(scene_image_read(path, &rgba, &width, &height));
    assert_true(width == 4 && height == 4);
    for (int i = 0; i < 48; i++)
        assert_int_equal(rgba[4 * (i / 3) + i % 3], texture[i]); /* from the top */
    const cJSON *material = cJSON_GetObjectItem(item(&glb, "materials", 0), "pbrMetallicRoughness");
    assert_int_equal(number(cJSON_GetObjectItem(material, "baseColorTexture"), "index"), 0);
    free(rgba);
    close_glb(&glb);
}

/* The node's rotation turns the mesh's up vector to +y. */
static void check_up_vector(struct temporary *folder, const double up[3])
{
    struct render_mesh mesh = one_triangle();
    double q[4], turned[3], t[3];
    memcpy(mesh.up, up, sizeof mesh.up);
    struct glb glb = write_glb(folder, &mesh);
    const cJSON *rotation = cJSON_GetObjectItem(item(&glb, "nodes", 0), "rotation");
    for (int i = 0; i < 4; i++)
        q[i] = cJSON_GetArrayItem(rotation, i)->valuedouble;
    assert_true(fabs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1) < 1e-9);
    for (int i = 0; i < 3; i++)
        t[i] = 2 * (q[(i + 1) % 3] * up[(i + 2) % 3] - q[(i + 2) % 3] * up[(i + 1) % 3]);
    for (int i = 0; i < 3; i++)
        turned[i] =
            up[i] + q[3] * t[i] + q[(i + 1) % 3] * t[(i + 2) % 3] - q[(i + 2) % 3] * t[(i + 1) % 3];
    assert_true(fabs(turned[0]) < 1e-9 && fabs(turned[1] - 1) < 1e-9 && fabs(turned[2]) < 1e-9);
    close_glb(&glb);
}

static void test_up_vector(void **state)
{
    const double ups[][3] = {{0, 0, 1}, {0, 1, 0}, {0, -1, 0}, {-1, 0, 0}, {0.6, -0.48, 0.64}};
    for (size_t i = 0; i < BASE_COUNT(ups); i++)
        check_up_vector(*state, ups[i]);
    struct render_mesh mesh = one_triangle(); /* no up vector: no rotation */
    struct glb glb = write_glb(*state, &mesh);
    const cJSON *rotation = cJSON_GetObjectItem(item(&glb, "nodes", 0), "rotation");
    assert_true(cJSON_GetArrayItem(rotation, 3)->valuedouble == 1);
    close_glb(&glb);
}

/* ---- far from the origin --------------------------------------------------------------------- */

static const double far_origin[3] = {512345, 5412345, -312.5};

/* A second node translates by the origin, so that the positions stay small. */
static void test_far_glb(void **state)
{
    struct render_mesh mesh = one_triangle();
    memcpy(mesh.origin, far_origin, sizeof far_origin);
    struct glb glb = write_glb(*state, &mesh);
    check_triangle(&glb);
    const cJSON *parent = item(&glb, "nodes", 0), *node = item(&glb, "nodes", 1);
    assert_int_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(parent, "children"), 0)->valueint, 1);
    assert_null(cJSON_GetObjectItem(parent, "mesh"));
    assert_int_equal(number(node, "mesh"), 0);
    for (int i = 0; i < 3; i++)
        assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(node, "translation"), i)->valuedouble ==
                    far_origin[i]);
    close_glb(&glb);
}

static char *write_mesh(struct temporary *folder, const char *name, const struct render_mesh *mesh)
{
    const char *path = temporary_path(folder, name);
    struct base_file_writer writer;
    const struct render_format *format;
    char *data;
    size_t size;
    assert_ok(render_find_format(RENDER_MESH, path, &format));
    assert_ok(base_file_begin(&writer, path));
    assert_ok(format->write(&writer, mesh));
    assert_ok(base_file_commit(&writer));
    assert_ok(base_file_read(path, 1 << 20, &data, &size));
    return data;
}

/* PLY and OBJ hold the dataset's coordinates: floats near the origin, doubles far from it. */
static void test_far_ply_and_obj(void **state)
{
    for (int far = 0; far < 2; far++) {
        struct render_mesh mesh = one_triangle();
        if (far)
            memcpy(mesh.origin, far_origin, sizeof far_origin);
        char *ply = write_mesh(*state, "mesh.ply", &mesh),
             *obj = write_mesh(*state, "mesh.obj", &mesh);
        const char *at = strstr(ply, "end_header\n") + 11, *line = obj;
        assert_true(strstr(ply, far ? "property double z\nproperty float nx\n"
                                    : "property float z\nproperty float nx\n"));
        for (int v = 0; v < 3; v++, at += far ? 39 : 27) {
            double position[3], text[3];
            line = strstr(line, "\nv ");
            assert_non_null(line);
            line += 3;
            for (int i = 0; i < 3; i++) {
                char *end = NULL;
                text[i] = strtod(line, &end);
                assert_true(end != line);
                line = end;
                double exact = mesh.origin[i] + (double)vertices[v].position[i];
                memcpy(&position[i], at + 8 * i, sizeof(double));
                position[i] = far ? position[i] : float_at(at + 4 * i);
                assert_true(position[i] == exact);
                assert_true(fabs(text[i] - exact) <= 1e-7);
            }
        }
        free(ply);
        free(obj);
    }
}

/* The box that an export reports gives, when asked for, the same box and grid bit for bit. */
static void test_box_round_trip(void **state)
{
    (void)state;
    const double offsets[][3] = {{0.5, 0.5, 0.5},
                                 {-3.1234567, 7.25, 0.1},
                                 {-169073.5321, -1786070.2, -102.625},
                                 {-3381480.33, -35721501.7, 2062.1}};
    const double scales[] = {0.33, 1.0 / 3, 6.6, 1e-3};
    struct vkn_config config = {0};
    uint32_t random = 1;
    for (size_t n = 0; n < 400; n++) {
        struct vkn_scene scene = {.scale = scales[n / 4 % 4], .aabb_scale = 16};
        struct render_mesh_params params = {.resolution = 16 + n % 7 * 50};
        struct MeshGrid grid, again;
        memcpy(scene.offset, offsets[n % 4], sizeof scene.offset);
        for (int i = 0; i < 3; i++) {
            double ends[2];
            for (int end = 0; end < 2; end++) {
                random = random * 1664525u + 1013904223u;
                ends[end] = end + (double)(random >> 8) / 0x1p24 - 0.75;
            }
            params.box.low[i] = (ends[0] - scene.offset[i]) / scene.scale;
            params.box.high[i] = (ends[1] + 0.01 - scene.offset[i]) / scene.scale;
            params.box.high[i] = fmax(params.box.high[i], params.box.low[i] + 0.02 / scene.scale);
            params.box.rotation[i] = n % 3 == 0 ? 0 : 300 * (ends[1] - 0.5);
        }
        assert_ok(render_mesh_grid(&scene, &config, &params, &grid));
        for (int times = 0; times < 2; times++) {
            render_mesh_box(&scene, &grid, params.box.rotation, &params.box);
            assert_ok(render_mesh_grid(&scene, &config, &params, &again));
            assert_memory_equal(&again, &grid, sizeof grid);
        }
    }
}

/* glTF has no empty arrays. */
static void test_nothing(void **state)
{
    struct render_mesh mesh = {0};
    struct glb glb = write_glb(*state, &mesh);
    assert_null(glb.binary);
    assert_null(cJSON_GetObjectItem(glb.json, "meshes"));
    assert_null(cJSON_GetObjectItem(item(&glb, "nodes", 0), "mesh"));
    close_glb(&glb);
}

/* Reads the position at `at`, of doubles or floats. */
static void read_position(const char *at, bool far, double position[3])
{
    for (int i = 0; i < 3; i++)
        position[i] = far ? 0 : float_at(at + 4 * i);
    if (far)
        memcpy(position, at, 3 * sizeof(double));
}

/* Scaled meshes have scaled positions, bit for bit, and a scaled origin; all else is unchanged. */
static void check_scaled_mesh(struct temporary *folder, bool far)
{
    struct render_mesh mesh = one_triangle(), scaled = one_triangle();
    struct MeshVertex corners[3];
    const size_t size = far ? 24 : 12;
    memcpy(corners, scaled.vertices, sizeof corners);
    scaled.vertices = corners;
    for (int i = 0; i < 3; i++)
        mesh.origin[i] = scaled.origin[i] = far ? far_origin[i] : 0;
    render_mesh_scale(&scaled, 2);
    char *before = write_mesh(folder, "a.ply", &mesh),
         *after = write_mesh(folder, "b.ply", &scaled), *obj = write_mesh(folder, "b.obj", &scaled);
    const char *from = strstr(before, "end_header\n") + 11, *line = obj;
    const char *to = strstr(after, "end_header\n") + 11;
    for (int v = 0; v < 3; v++, from += size + 15, to += size + 15) {
        double was[3], is[3];
        read_position(from, far, was);
        read_position(to, far, is);
        line = strstr(line, "\nv ");
        assert_non_null(line);
        line += 3;
        for (int i = 0; i < 3; i++) {
            char *end = NULL;
            assert_true(is[i] == 2 * was[i]);
            assert_true(fabs(strtod(line, &end) - is[i]) <= 1e-7);
            line = end;
        }
        assert_memory_equal(from + size, to + size, 15); /* normal and colour */
    }
    free(before);
    free(after);
    free(obj);
    struct glb glb = write_glb(folder, &scaled);
    const cJSON *moved = cJSON_GetObjectItem(item(&glb, "nodes", far ? 1 : 0), "translation");
    for (int i = 0; i < 3 && far; i++)
        assert_true(cJSON_GetArrayItem(moved, i)->valuedouble == 2 * far_origin[i]);
    close_glb(&glb);
}

static void test_scaled_mesh(void **state)
{
    check_scaled_mesh(*state, false);
    check_scaled_mesh(*state, true);
}

/* ---- Gaussians ------------------------------------------------------------------------------- */

static void write_splat(struct temporary *folder, struct Splat *splat, double values[62])
{
    const struct render_splats splats = {.splats = splat, .count = 1};
    const char *path = temporary_path(folder, "splats.ply");
    struct base_file_writer writer;
    char *data, expected[2048];
    size_t size, used;
    assert_ok(base_file_begin(&writer, path));
    assert_ok(ply_write_splats(&writer, &splats));
    assert_ok(base_file_commit(&writer));
    assert_ok(base_file_read(path, 1 << 20, &data, &size));
    used =
        (size_t)snprintf(expected, sizeof expected,
                         "ply\nformat binary_little_endian 1.0\nelement vertex 1\n"
                         "property float x\nproperty float y\nproperty float z\nproperty float nx\n"
                         "property float ny\nproperty float nz\nproperty float f_dc_0\n"
                         "property float f_dc_1\nproperty float f_dc_2\n");
    for (int i = 0; i < 45; i++)
        used += (size_t)snprintf(expected + used, sizeof expected - used,
                                 "property float f_rest_%d\n", i);
    used +=
        (size_t)snprintf(expected + used, sizeof expected - used,
                         "property float opacity\nproperty float scale_0\nproperty float scale_1\n"
                         "property float scale_2\nproperty float rot_0\nproperty float rot_1\n"
                         "property float rot_2\nproperty float rot_3\nend_header\n");
    assert_int_equal(size, used + 62 * 4);
    assert_memory_equal(data, expected, used);
    for (size_t i = 0; i < 62; i++)
        values[i] = float_at(data + used + 4 * i);
    free(data);
}

/* Scaled splats have scaled positions and sizes; all else is unchanged. */
static void test_scaled_splat(void **state)
{
    struct Splat splat = {
        .position = {1, -2, 3}, .normal = {0, 0, 1}, .spacing = 0.25f, .opacity = 0.5f};
    struct render_splats splats = {.origin = {512345, 0, -1}, .splats = &splat, .count = 1};
    double before[62], after[62];
    write_splat(*state, &splat, before);
    render_splats_scale(&splats, 2);
    write_splat(*state, &splat, after);
    for (int i = 0; i < 62; i++)
        if (i < 3)
            assert_true(after[i] == 2 * before[i]);
        else if (i >= 55 && i < 58)
            assert_true(fabs(after[i] - before[i] - log(2)) < 1e-6);
        else
            assert_true(after[i] == before[i]);
    assert_true(splats.origin[0] == 1024690 && splats.origin[1] == 0 && splats.origin[2] == -2);
}

/* A comment in the header holds the origin of the positions. */
static void test_far_splat(void **state)
{
    const char *path = temporary_path(*state, "far.ply");
    struct Splat splat = {
        .position = {1, 2, 3}, .normal = {0, 0, 1}, .spacing = 1, .opacity = 0.5f};
    struct render_splats splats = {.splats = &splat, .count = 1};
    struct base_file_writer writer;
    char *data;
    size_t size;
    memcpy(splats.origin, far_origin, sizeof far_origin);
    assert_ok(base_file_begin(&writer, path));
    assert_ok(ply_write_splats(&writer, &splats));
    assert_ok(base_file_commit(&writer));
    assert_ok(base_file_read(path, 1 << 20, &data, &size));
    assert_non_null(strstr(data, "\ncomment origin 512345 5412345 -312.5\nelement vertex 1\n"));
    assert_true(float_at(strstr(data, "end_header\n") + 11) == 1);
    free(data);
}

static void check_splat(struct temporary *folder, const double normal[3])
{
    struct Splat splat = {.position = {1, 2, 3}, .spacing = 0.25f, .opacity = 0.75f};
    double values[62];
    for (int i = 0; i < 48; i++)
        splat.harmonics[i] = (float)i;
    for (int i = 0; i < 3; i++)
        splat.normal[i] = (float)normal[i];
    write_splat(folder, &splat, values);
    for (int i = 0; i < 3; i++) {
        assert_true(values[i] == i + 1);
        assert_true(values[3 + i] == (double)splat.normal[i]);
        assert_true(fabs(values[6 + i] - (i - 1.7724538509)) < 1e-6);
    }
    /* All harmonics of red, then green, then blue. */
    for (int i = 0; i < 45; i++) {
        int color = i / 15, harmonic = i % 15 + 1;
        assert_true(values[9 + i] == 3 * harmonic + color);
    }
    assert_true(fabs(values[54] - log(3)) < 1e-6);
    assert_true(values[55] == values[56] && fabs(values[56] - values[57] - log(10)) < 1e-6);
    assert_true(exp(values[55]) > 0.25 * 0.25 && exp(values[55]) < 0.25);
    /* The axis of the smallest scale is the normal: the third column of the rotation. */
    const double *q = values + 58;
    const double third[3] = {2 * (q[1] * q[3] + q[0] * q[2]), 2 * (q[2] * q[3] - q[0] * q[1]),
                             1 - 2 * (q[1] * q[1] + q[2] * q[2])};
    for (int i = 0; i < 3; i++)
        assert_true(fabs(third[i] - normal[i]) < 1e-6);
}

static void test_splat(void **state)
{
    const double normals[][3] = {{0, 0, 1}, {0, 0, -1}, {1, 0, 0}, {0.6, -0.48, -0.64}};
    for (size_t i = 0; i < BASE_COUNT(normals); i++)
        check_splat(*state, normals[i]);
    /* Scale and opacity whose logarithm or logit is infinite are clamped. */
    struct Splat splat = {.normal = {0, 0, 1}, .spacing = 0, .opacity = 1};
    double values[62];
    for (int n = 0; n < 2; n++) {
        write_splat(*state, &splat, values);
        for (size_t i = 0; i < 62; i++)
            assert_true(isfinite(values[i]));
        assert_true(n == 0 ? values[54] > 4 : values[54] < -4);
        splat.opacity = 0;
    }
}

static void test_full_disk(void **state)
{
    (void)state;
    struct render_splats splats = {.count = 5000};
    struct base_file_writer writer;
    splats.splats = calloc(splats.count, sizeof *splats.splats);
    assert_ok(base_file_begin(&writer, "/dev/full"));
    assert_int_equal(ply_write_splats(&writer, &splats), VKN_ERROR);
    assert_non_null(
        strstr(vkn_last_error(), "/dev/full: cannot be written: No space left on device"));
    base_file_abort(&writer);
    render_splats_free(&splats);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

#define POINTS 1500

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;
    return *one < *other ? -1 : *one > *other;
}

static double exact_spacing(const struct MeshVertex *points, size_t count, size_t of)
{
    static double squares[POINTS];
    size_t found = 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == of)
            continue;
        squares[found] = 0;
        for (int k = 0; k < 3; k++) {
            double away = (double)points[i].position[k] - (double)points[of].position[k];
            squares[found] += away * away;
        }
        found++;
    }
    qsort(squares, found, sizeof *squares, compare);
    found = found < 3 ? found : 3;
    for (size_t i = 0; i < found; i++)
        sum += squares[i];
    return found ? sqrt(sum / (double)found) : 0;
}

static void check_spacing(const struct MeshVertex *points, size_t count)
{
    float spacing[POINTS];
    assert_ok(neighbours_spacing(points, count, spacing));
    for (size_t i = 0; i < count; i++)
        assert_true(fabs((double)spacing[i] - exact_spacing(points, count, i)) < 1e-6);
}

/* Points in a dense cluster, on a plane, and at one position. */
static void test_neighbours(void **state)
{
    static struct MeshVertex points[POINTS];
    uint32_t random = 1;
    (void)state;
    for (size_t i = 0; i < POINTS; i++)
        for (int k = 0; k < 3; k++) {
            random = random * 1664525u + 1013904223u;
            float value = (float)(random >> 8) * 0x1p-24f;
            points[i].position[k] = i < 500              ? value * value
                                    : i < 1400 && k == 1 ? 0.25f
                                    : i < 1450           ? 9 * value
                                                         : 3;
        }
    check_spacing(points, POINTS);
    for (size_t count = 0; count < 6; count++)
        check_spacing(points, count);
    check_spacing(points + 1450, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colors),          cmocka_unit_test(test_texture),
        cmocka_unit_test(test_up_vector),       cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_splat),           cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_neighbours),      cmocka_unit_test(test_far_glb),
        cmocka_unit_test(test_far_ply_and_obj), cmocka_unit_test(test_far_splat),
        cmocka_unit_test(test_box_round_trip),  cmocka_unit_test(test_scaled_mesh),
        cmocka_unit_test(test_scaled_splat),
    };
    return cmocka_run_group_tests(tests, temporary_setup, temporary_teardown);
}
