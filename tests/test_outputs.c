/* Tests every kind of output of every model: files are valid and hold no nan or inf, or one line
 * says why there is no file. Fields that are untrained, empty, or have parameters so large that no
 * value is finite are included.
 *
 * Takes about 20 seconds, mostly for compiling seven models, each with pipelines for pictures. */
#include "step_fixture.h"

#include <ctype.h>
#include <dirent.h>

#include <cjson/cJSON.h>

#include <vknerf/export.h>
#include <vknerf/field.h>

#include "skips.h"

/* ---- fields ---------------------------------------------------------------------------------- */

/* A field in GLSL whose features are NaN near the centre. */
#define GLSL(name, feature)                                               \
    "// " name "\n#pragma field parameters 2\n#pragma field features 2\n" \
    "void encode(vec3 position, uint first_parameter)\n{\n"               \
    "    put_feature(0u, " feature ");\n"                                 \
    "    put_feature(1u, parameter(first_parameter));\n}\n"               \
    "void encode_backward(vec3 position, uint first_parameter)\n{\n"      \
    "    add_gradient(first_parameter, feature_gradient(1u));\n}\n"
/* The check of derivatives needs finite features at 256 points, none of which is within 0.04 of the
 * centre. */
#define ODD GLSL("odd", "distance(position, vec3(0.5)) < 0.04 ? uintBitsToFloat(0x7fc00000u) : 1.0")

static void configure_glsl(struct vkn_config *config)
{
    ok(vkn_field_register(&(struct vkn_field){.text = ODD, .file = "odd.glsl"}, config));
}

static void configure_layers(struct vkn_config *config)
{
    config->mlp.density_width = 32;
    config->mlp.density_layers = 2;
    config->mlp.geometry = 32;
    config->mlp.color_width = 32;
    config->mlp.color_layers = 1;
    config->mlp.skip_layer = 2;
    config->mlp.position_octaves = 4;
    config->mlp.direction_octaves = 1;
}

static void configure_vanilla(struct vkn_config *config)
{
    config->model = VKN_MODEL_VANILLA;
    configure_layers(config);
}

static void configure_layered(struct vkn_config *config)
{
    config->model = VKN_MODEL_LAYERED;
    config->field.position = VKN_POSITION_FREQUENCIES;
    configure_layers(config);
}

static void configure_dynamic(struct vkn_config *config)
{
    config->model = VKN_MODEL_DYNAMIC;
    config->dynamic.width = 32;
    config->dynamic.layers = 2;
    config->dynamic.time_features = VKN_SWITCH_ON;
}

static void configure_hierarchical(struct vkn_config *config)
{
    config->march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config->march.coarse_samples = 20;
    config->march.fine_samples = 14;
}

static void configure_default(struct vkn_config *config)
{
    (void)config;
}

static const struct {
    const char *name;
    void (*configure)(struct vkn_config *config);
} models[] = {
    {"ngp", configure_default},
    {"vanilla", configure_vanilla},
    {"layered", configure_layered},
    {"dynamic", configure_dynamic},
    {"glsl", configure_glsl},
    {"proposal", tiny_propose},
    {"hierarchical", configure_hierarchical},
};

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* Copies a checkpoint and sets all elements of the tensors `params` and `average`, or of
 * `occupancy`, to `value`. The copy has no checksum. */
static void edit(const char *from, const char *to, const char *tensor, float value)
{
    struct safetensors_file *file = NULL;
    struct safetensors_tensor tensors[MAX_SAVED_BUFFERS];
    static const char *const keys[] = {CHECKPOINT_FORMAT, CHECKPOINT_CONFIG,  CHECKPOINT_SCENE,
                                       CHECKPOINT_STEP,   CHECKPOINT_SECONDS, CHECKPOINT_FIELD};
    struct safetensors_metadata metadata[BASE_COUNT(keys)];
    size_t count = 0, known = 0;
    float *values = NULL;
    ok(safetensors_open(from, &file));
    for (; count < safetensors_count(file); count++) {
        tensors[count] = *safetensors_at(file, count);
        if (strcmp(tensors[count].name, tensor) != 0)
            continue;
        values = base_alloc(tensors[count].size, 1);
        for (size_t i = 0; i < tensors[count].size / sizeof *values; i++)
            values[i] = value;
        tensors[count].data = values;
    }
    assert_non_null(values);
    for (size_t i = 0; i < BASE_COUNT(keys); i++)
        if (safetensors_metadata_value(file, keys[i]))
            metadata[known++] =
                (struct safetensors_metadata){keys[i], safetensors_metadata_value(file, keys[i])};
    ok(safetensors_write(to, tensors, count, metadata, known));
    safetensors_close(&file);
    free(values);
}

static char *train(const struct step_tests *tests, void (*configure)(struct vkn_config *config),
                   uint32_t steps, const char *name)
{
    struct vkn_config config = tiny_config(true);
    configure(&config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    if (steps > 0)
        tiny_run(&tiny, steps);
    char *path = tiny_save(tests, &tiny, name);
    tiny_destroy(&tiny);
    return path;
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *size)
{
    char *data = NULL;
    ok(base_file_read(path, (size_t)256 << 20, &data, size));
    return data;
}

/* Checks that vertices have so many bytes and finite floats; returns their number. */
static size_t check_ply(const char *path, size_t bytes, size_t floats)
{
    size_t size, count;
    char *data = read_file(path, &size);
    const char *element = strstr(data, "element vertex "), *end = strstr(data, "end_header\n");
    assert_true(element && end);
    count = strtoul(element + 15, NULL, 10);
    const char *vertex = end + strlen("end_header\n");
    assert_true(vertex + count * bytes <= data + size);
    for (size_t i = 0; i < count * floats; i++) {
        float value;
        memcpy(&value, vertex + i / floats * bytes + i % floats * 4, sizeof value);
        if (!isfinite(value))
            fail_msg("%s: vertex %zu: float %zu is %g", path, i / floats, i % floats,
                     (double)value);
    }
    free(data);
    return count;
}

/* Fails if a word of the text begins with nan or inf. */
static void check_words(const char *path, const char *text, size_t size)
{
    for (size_t i = 0; i + 3 <= size; i++)
        if ((i == 0 || !isalpha((unsigned char)text[i - 1])) &&
            (strncmp(text + i, "nan", 3) == 0 || strncmp(text + i, "inf", 3) == 0))
            fail_msg("%s: \"%.20s\"", path, text + i);
}

static void check_glb(const char *path)
{
    size_t size;
    uint32_t json;
    char *data = read_file(path, &size);
    assert_true(size >= 20 && memcmp(data, "glTF", 4) == 0);
    memcpy(&json, data + 12, sizeof json);
    assert_true(20 + (size_t)json <= size);
    check_words(path, data + 20, json);
    char *text = base_format("%.*s", (int)json, data + 20);
    cJSON *parsed = cJSON_Parse(text);
    assert_non_null(parsed);
    const cJSON *accessor = NULL;
    cJSON_ArrayForEach (accessor, cJSON_GetObjectItem(parsed, "accessors")) /* null: not finite */
        for (int i = 0; i < 2; i++) {
            const cJSON *bounds = cJSON_GetObjectItem(accessor, i == 0 ? "min" : "max"),
                        *bound = NULL;
            cJSON_ArrayForEach (bound, bounds)
                assert_true(cJSON_IsNumber(bound));
        }
    cJSON_Delete(parsed);
    free(text);
    free(data);
}

static void check_text(const char *path)
{
    size_t size;
    char *data = read_file(path, &size);
    check_words(path, data, size);
    free(data);
}

static void check_png(const char *path)
{
    uint8_t *rgba;
    uint32_t width, height;
    ok(scene_image_read(path, &rgba, &width, &height));
    assert_true(width == 12 && height == 10);
    free(rgba);
}

/* Checks an .npy file of depths: f32 after a header of 128 bytes. */
static void check_npy(const char *path)
{
    size_t size;
    char *data = read_file(path, &size);
    assert_true(size == 128 + 4 * 12 * 10 && memcmp(data, "\x93NUMPY", 6) == 0);
    for (size_t i = 128; i < size; i += 4) {
        float value;
        memcpy(&value, data + i, sizeof value);
        assert_true(isfinite(value) && value >= 0);
    }
    free(data);
}

/* ---- everything ------------------------------------------------------------------------------ */

static const struct vkn_job quiet = {.quiet = true};

static vkn_status export_files(const struct step_tests *tests, const char *checkpoint,
                               const char *mesh, struct vkn_export_result *result)
{
    const struct vkn_export_params params = {.size = sizeof params,
                                             .job = &quiet,
                                             .run = checkpoint,
                                             .scene = tests->folder->path,
                                             .mesh = mesh,
                                             .points = temporary_path(tests->folder, "points.ply"),
                                             .splats = temporary_path(tests->folder, "splats.ply"),
                                             .resolution = 16,
                                             .point_count = 200,
                                             .unseen = VKN_UNSEEN_KEEP,
                                             .texture =
                                                 strstr(mesh, ".glb") ? VKN_TEXTURE_FITTING : 0};
    *result = (struct vkn_export_result){.size = sizeof *result};
    vkn_status status = vkn_run_export(&params, result);
    if (status != VKN_OK)
        return status;
    assert_int_equal(check_ply(params.points, 27, 6), result->points);
    assert_int_equal(check_ply(params.splats, 248, 62), result->splats);
    char *json = vkn_export_json(&params, result);
    check_words("JSON", json, strlen(json));
    vkn_free(json);
    return VKN_OK;
}

static vkn_status export_meshes(const struct step_tests *tests, const char *checkpoint,
                                struct vkn_export_result *result)
{
    const char *ply = temporary_path(tests->folder, "mesh.ply"),
               *obj = temporary_path(tests->folder, "mesh.obj"),
               *glb = temporary_path(tests->folder, "mesh.glb");
    const char *const meshes[] = {obj, glb, ply};
    for (size_t i = 0; i < BASE_COUNT(meshes); i++)
        BASE_TRY(export_files(tests, checkpoint, meshes[i], result));
    assert_int_equal(check_ply(ply, 27, 6), result->vertices);
    check_text(obj);
    check_glb(glb);
    return VKN_OK;
}

static vkn_status render_maps(const struct step_tests *tests, const char *checkpoint)
{
    static const char *const maps[] = {"", "_depth", "_depth16", "_opacity", "_normal"};
    struct vkn_render_result result = {.size = sizeof result};
    const struct vkn_render_params params = {.size = sizeof params,
                                             .job = &quiet,
                                             .run = checkpoint,
                                             .scene = tests->folder->path,
                                             .split = VKN_SPLIT_TRAIN,
                                             .color = true,
                                             .depth = true,
                                             .opacity = true,
                                             .normal = true,
                                             .depth_values = true,
                                             .depth16 = true,
                                             .out = temporary_path(tests->folder, "views")};
    BASE_TRY(vkn_run_render(&params, &result));
    for (size_t i = 0; i < BASE_COUNT(maps); i++) {
        char name[64];
        snprintf(name, sizeof name, "views/frame_0000%s.png", maps[i]);
        check_png(temporary_path(tests->folder, name));
    }
    check_npy(temporary_path(tests->folder, "views/frame_0000_depth.npy"));
    check_text(temporary_path(tests->folder, "views/depth_scale.json"));
    return VKN_OK;
}

static vkn_status evaluate(const struct step_tests *tests, const char *checkpoint)
{
    struct vkn_evaluation *evaluation = NULL;
    const struct vkn_eval_params params = {.size = sizeof params,
                                           .job = &quiet,
                                           .run = checkpoint,
                                           .scene = tests->folder->path,
                                           .split = VKN_SPLIT_TRAIN};
    BASE_TRY(vkn_run_eval(&params, &evaluation));
    char *json = vkn_evaluation_json(evaluation);
    check_words("JSON", json, strlen(json));
    vkn_free(json);
    assert_true(isfinite(evaluation->psnr));
    vkn_evaluation_free(&evaluation);
    return VKN_OK;
}

/* Every kind of output of the checkpoint succeeds. */
static void make_all(const struct step_tests *tests, const char *checkpoint,
                     struct vkn_export_result *result)
{
    ok(export_meshes(tests, checkpoint, result));
    ok(render_maps(tests, checkpoint));
    ok(evaluate(tests, checkpoint));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bool have_shaderc;

static void test_models(void **state)
{
    const struct step_tests *tests = *state;
    for (size_t i = 0; i < BASE_COUNT(models); i++) {
        struct vkn_export_result result;
        if (models[i].configure == configure_glsl && !have_shaderc)
            continue;
        double began = base_seconds();
        char *checkpoint = train(tests, models[i].configure, 17, "trained");
        ok(render_maps(tests, checkpoint));
        /* After so few steps the dynamic model has no surface; finding that out is slow. */
        if (models[i].configure != configure_dynamic) {
            ok(export_files(tests, checkpoint, temporary_path(tests->folder, "mesh.obj"), &result));
            assert_int_equal(result.points, 200);
            assert_int_equal(result.splats, 200);
        }
        print_message("%s: %.1f s\n", models[i].name, base_seconds() - began);
        free(checkpoint);
    }
}

/* Keeps the last warning. */
static void store_line(void *user, enum vkn_log_level level, const char *line)
{
    if (level == VKN_LOG_WARNING)
        snprintf(user, 256, "%s", line);
}

static void test_untrained(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_export_result result;
    char *checkpoint = train(tests, configure_default, 0, "untrained");
    make_all(tests, checkpoint, &result);
    free(checkpoint);
}

/* Outputs of an occupancy grid without occupied cells, and of densities of zero, which come from
 * very negative raw outputs. */
static void test_empty(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_export_result result;
    char line[256] = "", *checkpoint = train(tests, configure_default, 17, "trained");
    char *empty = base_path_join(tests->folder->path, "empty.safetensors");
    edit(checkpoint, empty, "occupancy", 0);
    vkn_log_to(store_line, line);
    make_all(tests, empty, &result);
    vkn_log_to(NULL, NULL);
    assert_true(result.vertices == 0 && result.points == 0 && result.splats == 0);
    assert_non_null(strstr(line, "hit hardly anything"));
    free(checkpoint);
    free(empty);
}

/* A checkpoint with nan or inf is refused as damaged, whatever is to be made from it. Finite
 * parameters that give infinite values of the field still give valid files. */
static void test_not_finite(void **state)
{
    static const struct {
        const char *tensor;
        float value;
        bool refused;
    } cases[] = {{"average", NAN, true},      {"average", INFINITY, true},
                 {"params", NAN, true},       {"occupancy", NAN, true},
                 {"average", 3e38F, false},   {"average", -3e38F, false},
                 {"occupancy", 3e38F, false}, {"average", 1e15F, false}};
    const struct step_tests *tests = *state;
    bool all = true; /* all outputs for the first case, fewer for others */
    char *checkpoint = train(tests, configure_default, 17, "trained");
    char *edited = base_path_join(tests->folder->path, "edited.safetensors");
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_export_result result;
        print_message("%s %g\n", cases[i].tensor, (double)cases[i].value);
        edit(checkpoint, edited, cases[i].tensor, cases[i].value);
        if (!cases[i].refused && all) {
            make_all(tests, edited, &result);
            all = false;
        } else if (!cases[i].refused) {
            ok(export_files(tests, edited, temporary_path(tests->folder, "mesh.ply"), &result));
            ok(render_maps(tests, edited));
        }
        if (!cases[i].refused)
            continue;
        assert_int_equal(export_meshes(tests, edited, &result), VKN_BAD_INPUT);
        assert_error("element 0 is not finite");
        assert_int_equal(render_maps(tests, edited), VKN_BAD_INPUT);
        assert_error("element 0 is not finite");
    }
    free(checkpoint);
    free(edited);
}

static int setup(void **state)
{
    if (step_tests_setup(state) != 0)
        return -1;
    const struct step_tests *tests = *state;
    struct vkn_config config = {0};
    configure_glsl(&config);
    have_shaderc = vkn_field_check(tests->context, &config) == VKN_OK;
    if (!have_shaderc && !strstr(vkn_last_error(), "shaderc, which"))
        fail_msg("%s", vkn_last_error());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_untrained),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, setup, step_tests_teardown);
}
