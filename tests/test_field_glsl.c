/* Tests fields in GLSL: a hash grid in GLSL equals the built-in hash grid bit by bit; a faulty
 * field is refused before training; non-finite values are not stored; every precision and kind of
 * accumulator trains. test_fields.sh tests the command line. */
#include "step_apart.h"

#include <vknerf/export.h>
#include <vknerf/field.h>
#include <vknerf/run.h>

#include <ctype.h>

#include "field/glsl.h"
#include "gpu/internal.h"
#include "step/step.h"
#include "safetensors/safetensors.h"
#include "skips.h"

static bool have_shaderc;

#define NEEDS_SHADERC()                               \
    do {                                              \
        if (!have_shaderc)                            \
            skip_because("shaderc is not installed"); \
    } while (0)

/* Two grids of 8 x 8 x 8 cells: the features are the cell's values, the second one squared. Six
 * zero features make up step_fixture.h's number, so that other tests' shaders are shared. */
#define ZEROS "    for (uint i = 2u; i < 8u; i++) put_feature(i, 0.0);\n"
#define HEAD                                                                                       \
    "#pragma field parameters 2 * 512\n"                                                           \
    "#pragma field features 8\n"                                                                   \
    "#pragma field initial 0.5 // of it\n"                                                         \
    "uint cell(vec3 p) { uvec3 c = uvec3(min(p * 8.0, 7.0)); return c.x + 8u * (c.y + 8u * c.z); " \
    "}\n"
#define ENCODE(index, put)                                  \
    "void encode(vec3 position, uint first_parameter)\n{\n" \
    "    uint at = first_parameter + cell(position);\n"     \
    "    float a = parameter(at), b = parameter(" index ");\n" put "}\n"
#define PUT "    put_feature(0u, a);\n    put_feature(1u, b * b);\n" ZEROS
#define BACKWARD(index, a, b)                                        \
    "void encode_backward(vec3 position, uint first_parameter)\n{\n" \
    "    uint at = first_parameter + cell(position);\n"              \
    "    add_gradient(at, " a ");\n"                                 \
    "    add_gradient(" index ", " b ");\n}\n"
#define SECOND "at + 512u"
#define A      "feature_gradient(0u)"
#define B      "2.0 * parameter(at + 512u) * feature_gradient(1u)"
#define RIGHT  HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, A, B)

static struct vkn_config config_of(const char *text, const struct vkn_config *base)
{
    struct vkn_config config = *base;
    ok(vkn_field_register(&(struct vkn_field){.text = text, .file = "small.glsl"}, &config));
    assert_int_equal(config.model, VKN_MODEL_GLSL);
    return config;
}

/* ---- the built-in hash grid ------------------------------------------------------------------ */

static void assert_same_tensors(const char *first, const char *second)
{
    struct safetensors_file *a = NULL, *b = NULL;
    ok(safetensors_open(first, &a));
    ok(safetensors_open(second, &b));
    assert_int_equal(safetensors_count(a), safetensors_count(b));
    for (size_t i = 0; i < safetensors_count(a); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(a, i), *same = NULL;
        ok(safetensors_find(b, tensor->name, tensor->type, tensor->shape[0], &same));
        if (memcmp(tensor->data, same->data, tensor->size) != 0)
            fail_msg("tensor %s differs", tensor->name);
    }
    assert_non_null(safetensors_metadata_value(a, CHECKPOINT_FIELD));
    assert_null(safetensors_metadata_value(b, CHECKPOINT_FIELD));
    safetensors_close(&a);
    safetensors_close(&b);
}

static char *train_and_save(const struct step_tests *tests, const struct vkn_config *config,
                            uint32_t steps, const char *name)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    tiny_run(&tiny, steps);
    char *path = tiny_save(tests, &tiny, name);
    tiny_destroy(&tiny);
    return path;
}

/* Replaces `from`, which occurs once, and frees the old text. */
static char *replace(char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_true(at && !strstr(at + 1, from));
    char *changed = base_format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return changed;
}

/* Returns examples/hash_field.glsl, or its first four levels with smaller tables, which have as
 * many features as step_fixture.h's model, so that shaders are shared. */
static char *hash_text(bool small)
{
    static const char *const changes[][2] = {{"parameters 913856", "parameters 8 * 4096"},
                                             {"features 32", "features 8"},
                                             {"SCALES[LEVELS]", "SCALES[16]"},
                                             {"LEVELS = 16u", "LEVELS = 4u"},
                                             {"TABLE = 1u << 15", "TABLE = 1u << 12"}};
    char *file = base_path_join(getenv("VKNERF_SOURCE_DIR"), "examples/hash_field.glsl"), *text;
    size_t size = 0;
    ok(base_file_read(file, 1 << 16, &text, &size));
    for (size_t i = 0; small && i < BASE_COUNT(changes); i++)
        text = replace(text, changes[i][0], changes[i][1]);
    free(file);
    return text;
}

static void compare_with_built_in(const struct step_tests *tests, enum vkn_precision precision,
                                  uint32_t steps, bool small)
{
    struct vkn_config hash = tiny_config(true);
    hash.precision = precision;
    hash.grid.levels = small ? 4 : 16;
    hash.grid.log2_entries = small ? 12 : 15;
    hash.grid.coarsest = 16;
    hash.grid.finest = small ? 32 : 512;
    hash.march.occupancy_threshold =
        100; /* above it the threshold is the mean, whose bits are in the state */
    struct vkn_config glsl = hash;
    char *text = hash_text(small);
    ok(vkn_field_register(&(struct vkn_field){.text = text}, &glsl));
    char *built_in = train_and_save(tests, &hash, steps, "hash");
    char *written = train_and_save(tests, &glsl, steps, "glsl");
    assert_same_tensors(written, built_in);
    free(text);
    free(built_in);
    free(written);
}

static void test_hash_grid(void **state)
{
    NEEDS_SHADERC();
    compare_with_built_in(*state, VKN_PRECISION_FP32, 1, false);
    compare_with_built_in(*state, VKN_PRECISION_FP32, 17, true); /* one update of occupancy */
    compare_with_built_in(*state, VKN_PRECISION_FP16, 4, true);
}

/* ---- faulty fields --------------------------------------------------------------------------- */

static void test_faults(void **state)
{
    static const struct {
        const char *text, *message;
    } faults[] = {
        {HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, "-" A, B), "encode_backward: parameter "},
        {HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, "-" A, B), " off by 2: adds "},
        {HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, A, "1.02 * " B), " off by 0.02: adds "},
        {HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, A, "0.0"),
         " off by 1: adds 0, finite differences "},
        {HEAD ENCODE(SECOND, PUT) BACKWARD("at", A, "0.0"),
         " off by 1: adds 0, finite differences "},
        {HEAD ENCODE(SECOND, PUT)
             BACKWARD(SECOND, A, "(abs(position.x - 0.5) < 0.1 ? -1.0 : 1.0) * " B),
         " off by 2: adds "},
        {HEAD ENCODE(SECOND, PUT) BACKWARD("at + 500u", A, B), "encode_backward: parameter "},
        {HEAD ENCODE("at + 1000u", PUT) BACKWARD(SECOND, A, B), "encode: reads parameter 1"},
        {HEAD ENCODE(SECOND, PUT) BACKWARD("at + 1000u", A, B),
         "encode_backward: adds to parameter 1"},
        {HEAD ENCODE(SECOND, PUT) BACKWARD("cell(position)", A, B),
         ", which is before first_parameter, "},
        {HEAD ENCODE(SECOND, PUT "put_feature(8u, a);") BACKWARD(SECOND, A, B),
         "encode: puts feature 8 of 8"},
        {HEAD ENCODE(SECOND, PUT "put_feature(1u, a);") BACKWARD(SECOND, A, B),
         "encode: puts feature 1 of 8 twice"},
        {HEAD ENCODE(SECOND, "put_feature(0u, a + b * b);" ZEROS) BACKWARD(SECOND, A, B),
         "encode: does not put feature 1 of 8"},
        {HEAD ENCODE(SECOND, "put_feature(0u, a); put_feature(1u, sqrt(b));" ZEROS)
             BACKWARD(SECOND, A, B),
         "encode: feature 1 of 8 is not finite"},
        {HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, A, "feature_gradient(8u)"),
         "encode_backward: asks for the gradient of feature 8 of 8"},
        {HEAD ENCODE(SECOND, PUT) BACKWARD(SECOND, A, "uintBitsToFloat(0x7f800000u)"),
         "is not finite"},
        /* Line 9 is line 5 of the field: the first of encode. */
        {HEAD ENCODE(SECOND, "    nonsense;\n" PUT) BACKWARD(SECOND, A, B),
         "small.glsl:9: error: 'nonsense' : undeclared identifier"},
    };
    const struct step_tests *tests = *state;
    const struct vkn_config base = tiny_config(true);
    NEEDS_SHADERC();
    for (size_t i = 0; i < BASE_COUNT(faults); i++) {
        const struct vkn_config config = config_of(faults[i].text, &base);
        vkn_scene *scene = NULL;
        vkn_trainer *trainer = NULL;
        assert_int_equal(vkn_field_check(tests->context, &config), VKN_BAD_INPUT);
        assert_error("small.glsl:");
        assert_error(faults[i].message);
        /* Training is refused, too. */
        ok(vkn_scene_open(tests->folder->path, &config, &scene));
        assert_int_equal(vkn_trainer_create(tests->context, scene, &config, &trainer),
                         VKN_BAD_INPUT);
        assert_error(faults[i].message);
        assert_null(trainer);
        vkn_scene_close(&scene);
    }
    const struct vkn_config right = config_of(RIGHT, &base);
    ok(vkn_field_check(tests->context, &right));
}

/* Pragmas are checked without the compiler. */
static void test_pragmas(void **state)
{
    static const struct {
        struct vkn_field field;
        const char *message;
    } wrong[] = {
        {{.text = "#pragma field features 2\n void encode() {} void encode_backward() {}"},
         "field: the number of parameters is missing: #pragma field parameters N"},
        {{.text = "#pragma field parameters 2\n void encode() {} void encode_backward() {}",
          .file = "a"},
         "a: the number of features is missing: #pragma field features N"},
        {{.text = "\n#pragma field parameters 2 * x\n encode encode_backward", .file = "a"},
         "a:2: #pragma field parameters: not a product of whole numbers from 1 to "},
        {{.text = "#pragma field parameters 65536 * 65536 * 65536\n encode encode_backward"},
         "field:1: #pragma field parameters: not a product"},
        {{.text = "#pragma field initial -1\n encode encode_backward"},
         "field:1: #pragma field initial: not a positive number"},
        {{.text = "#pragma field colour 3\n encode encode_backward"},
         "field:1: #pragma field ...: neither parameters, features, entry, initial nor name"},
        {{.text = RIGHT, .features = 3}, "field: 3 features: not an even number up to 64"},
        {{.text = RIGHT, .features = 66}, "field:1: #pragma field features: not a product"},
        {{.text = RIGHT, .entry = 3}, "field: entries of 3 parameters: 2 or 4 are possible"},
        {{.text = HEAD "void backward() {}"},
         "field: there is no function void encode(vec3 position, uint first_parameter)"},
        {{.text = HEAD "void encode() {}"},
         "field: there is no function void encode_backward(vec3 position, uint first_parameter)"},
        {{.text = "encode_backward \xff"}, "field: not UTF-8 text of up to 256 KiB"},
        {{.file = "/no/such/file.glsl"}, "/no/such/file.glsl"},
        {{.name = "nothing"}, "neither `file` nor `text` is given"},
        {{.size = 4}, "struct vkn_field: its member `size` is 4, must be 0"},
    };
    const struct step_tests *tests = *state;
    struct vkn_config config = {0};
    for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
        assert_int_equal(vkn_field_register(&wrong[i].field, &config), VKN_BAD_INPUT);
        assert_error(wrong[i].message);
    }
    assert_int_equal(config.model, VKN_MODEL_DEFAULT);
    assert_int_equal(vkn_field_register(NULL, &config), VKN_BAD_INPUT);
    assert_int_equal(vkn_field_check(NULL, &config), VKN_BAD_INPUT);
    assert_null(vkn_field_source(NULL));
    assert_null(vkn_field_source(&config));
    config.model = VKN_MODEL_GLSL;
    struct field_model model;
    assert_int_equal(field_model_create(&config, &model), VKN_BAD_INPUT);
    assert_error("config: glsl.source: no field of number 0 is registered");
    /* Given numbers replace the pragmas', and are written into the stored text. */
    const struct vkn_field field = {
        .size = sizeof field, .text = RIGHT, .parameters = 1026, .entry = 4};
    ok(vkn_field_register(&field, &config));
    const char *source = vkn_field_source(&config);
    assert_string_equal(source,
                        "#pragma field parameters 1026\n#pragma field entry 4\n#line 1\n" RIGHT);
    uint32_t number = config.glsl.source;
    ok(vkn_field_register(&(struct vkn_field){.text = source}, &config));
    assert_int_equal(config.glsl.source, number);
    assert_ptr_equal(vkn_field_source(&config), source);
    /* A byte order mark, as Windows' editors write it, is ignored. */
    char marked[] = "/tmp/vknerf-field-XXXXXX";
    int descriptor = mkstemp(marked);
    assert_true(descriptor >= 0 && close(descriptor) == 0);
    char *text = base_format("\xef\xbb\xbf%s", source);
    ok(base_file_replace(marked, text, strlen(text)));
    ok(vkn_field_register(&(struct vkn_field){.file = marked}, &config));
    assert_int_equal(config.glsl.source, number);
    ok(base_file_replace(marked, "\xfe\xff\0v\0o", 6));
    assert_int_equal(vkn_field_register(&(struct vkn_field){.file = marked}, &config),
                     VKN_BAD_INPUT);
    assert_error("text in UTF-16; save it as UTF-8");
    unlink(marked);
    free(text);
    struct vkn_config uninterrupted = tiny_config(true);
    uninterrupted.model = VKN_MODEL_GLSL;
    uninterrupted.glsl.source = number;
    uninterrupted.precision = VKN_PRECISION_FP32;
    struct setup setup;
    const struct gpu_capabilities *device = gpu_device_capabilities(tests->context->device);
    ok(setup_create(&uninterrupted, device, &setup));
    assert_int_equal(setup.model.param_count, setup.model.mlp_params + 1040);
    assert_int_equal(setup.model.groups[1].entry, 4);
    assert_true(setup.model.groups[1].sparse);
    assert_int_equal(setup.model.inputs, 8);
    uninterrupted.scene.refine = VKN_REFINEMENT_POSES;
    assert_int_equal(setup_create(&uninterrupted, device, &setup), VKN_BAD_INPUT);
    assert_error("scene.refine: model glsl does not compute gradients with respect to cameras");
}

/* ---- training -------------------------------------------------------------------------------- */

static float loss_of(const struct tiny *tiny, uint32_t step)
{
    const struct Stats *ring = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    return ring[step].loss;
}

/* All reach about the same loss; the last two only with VKNERF_TEST_ALL (test_precision_resume
 * covers cooperative matrices). */
static void test_precisions(void **state)
{
    static const struct {
        enum vkn_precision precision;
        enum vkn_gradient_sums sums;
    } backends[] = {
        {VKN_PRECISION_FP32, VKN_SUMS_FIXED}, {VKN_PRECISION_FP32, VKN_SUMS_F32},
        {VKN_PRECISION_FP32, VKN_SUMS_CAS},   {VKN_PRECISION_FP16, VKN_SUMS_F16},
        {VKN_PRECISION_FP16, VKN_SUMS_F32},   {VKN_PRECISION_COOPMAT, VKN_SUMS_FIXED},
    };
    const size_t count = BASE_COUNT(backends) - (check_everything() ? 0 : 2);
    const struct step_tests *tests = *state;
    const struct gpu_capabilities *device = gpu_device_capabilities(tests->context->device);
    struct vkn_config config = tiny_config(false);
    float first = 0;
    NEEDS_SHADERC();
    config = config_of(RIGHT, &config);
    for (size_t i = 0; i < count; i++) {
        bool half = backends[i].precision != VKN_PRECISION_FP32;
        if ((half && !(device->float16 && device->storage16)) ||
            (backends[i].precision == VKN_PRECISION_COOPMAT && !device->cooperative_matrix) ||
            (backends[i].sums == VKN_SUMS_F32 && !device->float_atomic_add))
            continue;
        config.precision = backends[i].precision;
        config.gradient_sums = backends[i].sums;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        tiny_run(&tiny, 17);
        float loss = loss_of(&tiny, 17);
        first = i == 0 ? loss : first;
        assert_true(loss < 0.9f * loss_of(&tiny, 1));
        check_close(loss, first, 0.1, first, "loss", (int)i);
        assert_int_equal(tiny.trainer->monitor.skips.state_skipped, 0);
        tiny_destroy(&tiny);
    }
}

/* Hierarchical sampling, with densities first, uses a coarse and a fine field of the kind. */
static void test_samplings(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    NEEDS_SHADERC();
    config = config_of(RIGHT, &config);
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 20;
    config.march.fine_samples = 14;
    config.march.visibility = VKN_SWITCH_ON;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 17);
    assert_true(loss_of(&tiny, 17) < 0.9f * loss_of(&tiny, 1));
    tiny_destroy(&tiny);
}

/* Nested loops, also in workgroups with fewer samples than invocations. */
static void test_loops(void **state)
{
    const char text[] =
        "#pragma field parameters 64\n#pragma field features 8\n"
        "void encode(vec3 position, uint first)\n{\n    float a = 0.0, b = 0.0;\n"
        "    for (uint i = 0u; i < 2u; i++) a += parameter(first + i);\n"
        "    for (uint i = 0u; i < 2u; i++)\n        for (uint k = 0u; k < 2u; k++)\n"
        "            b += parameter(first + 2u * i + k);\n"
        "    put_feature(0u, a);\n    put_feature(1u, b);\n" ZEROS "}\n"
        "void encode_backward(vec3 position, uint first)\n{\n"
        "    for (uint i = 0u; i < 4u; i++)\n        add_gradient(first + i, "
        "feature_gradient(1u) + (i < 2u ? feature_gradient(0u) : 0.0));\n}\n";
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    NEEDS_SHADERC();
    config = config_of(text, &config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 17);
    tiny_destroy(&tiny);
}

/* NaN only for tiny gradients, which occur in training but not in the check of the field. */
static void test_not_finite(void **state)
{
    const char text[] = HEAD ENCODE(SECOND, PUT)
        BACKWARD(SECOND, A, "abs(feature_gradient(1u)) < 1e-5 ? uintBitsToFloat(0x7fc00000u) : " B);
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    NEEDS_SHADERC();
    config = config_of(text, &config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct gpu_buffer *params = &tiny.trainer->step.buffers.at[BIND_PARAMS];
    void *before = tiny_read(&tiny, params);
    struct warnings warnings = {0};
    tiny_run_watched(&tiny, 20, &warnings);
    void *after = tiny_read(&tiny, params);
    assert_int_equal(tiny.trainer->monitor.skips.state_skipped, 20);
    assert_memory_equal(before, after, params->size);
    free(tiny_save(tests, &tiny, "not_finite"));
    tiny_destroy(&tiny);
    free(before);
    free(after);
}

static void fill(void *context, uint64_t seed, uint32_t count, float *parameters)
{
    *(uint64_t *)context = seed;
    for (uint32_t i = 0; i < count; i++)
        parameters[i] = 1 + (float)i;
}

/* NaN features in a slice of space with few samples: steps are skipped, parameters stay finite. */
static void test_not_finite_features(void **state)
{
    const char text[] =
        HEAD ENCODE(SECOND,
                    "    bool bad = abs(position.x - 0.6003) < 0.0001;\n    put_feature(0u, a);\n"
                    "    put_feature(1u, bad ? uintBitsToFloat(0x7fc00000u) : b * b);\n" ZEROS)
            BACKWARD(SECOND, A, B);
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    NEEDS_SHADERC();
    config = config_of(text, &config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct warnings warnings = {0};
    tiny_run_watched(&tiny, 40, &warnings);
    assert_in_range(tiny.trainer->monitor.skips.state_skipped, 1, 30);
    assert_true(loss_of(&tiny, 40) < 0.9f * loss_of(&tiny, 1));
    free(tiny_save(tests, &tiny, "not_finite")); /* checks every number */
    tiny_destroy(&tiny);
}

/* The callback `initialize` sets the field's parameters. */
static void test_initialize(void **state)
{
    uint64_t seed = 0;
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    NEEDS_SHADERC();
    const struct vkn_field field = {
        .text = "// filled\n" RIGHT, .initialize = fill, .context = &seed};
    ok(vkn_field_register(&field, &config));
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    float *params = tiny_read(&tiny, &step->buffers.at[BIND_PARAMS]);
    assert_int_equal(seed, config.seed);
    for (uint32_t i = 0; i < 1024; i++)
        assert_true(params[step->setup.model.mlp_params + i] == 1 + (float)i);
    tiny_destroy(&tiny);
    free(params);
}

/* ---- trust ----------------------------------------------------------------------------------- */

/* Comments of equal length and CRC-32C: fields that end in either have the same number. */
#define TWIN_A "// pppppppppppppppppppppppppppppppppppp"
#define TWIN_B "// qpppqqqqpqqpqqqpppqqpqqqqpqpppppqppp"

/* Copies a checkpoint with another GLSL field (NULL: none) and field number. */
static char *forge(const struct step_tests *tests, const char *from, const char *name,
                   const char *text, uint32_t number)
{
    static const char *const kept[] = {CHECKPOINT_FORMAT, CHECKPOINT_SCENE, CHECKPOINT_STEP,
                                       CHECKPOINT_SECONDS};
    struct safetensors_metadata metadata[BASE_COUNT(kept) + 2];
    struct safetensors_tensor tensors[MAX_SAVED_BUFFERS];
    struct safetensors_file *file = NULL;
    struct vkn_config config = {0};
    ok(safetensors_open(from, &file));
    for (size_t i = 0; i < BASE_COUNT(kept); i++)
        metadata[i] =
            (struct safetensors_metadata){kept[i], safetensors_metadata_value(file, kept[i])};
    ok(vkn_config_parse_json(&config, from, safetensors_metadata_value(file, CHECKPOINT_CONFIG),
                             true));
    config.glsl.source = number;
    char *json = vkn_config_write_json(&config);
    metadata[BASE_COUNT(kept)] = (struct safetensors_metadata){CHECKPOINT_CONFIG, json};
    metadata[BASE_COUNT(kept) + 1] = (struct safetensors_metadata){CHECKPOINT_FIELD, text};
    size_t count = safetensors_count(file);
    assert_in_range(count, 1, BASE_COUNT(tensors));
    for (size_t i = 0; i < count; i++)
        tensors[i] = *safetensors_at(file, i);
    char *path = base_path_join(tests->folder->path, name);
    ok(safetensors_write(path, tensors, count, metadata, BASE_COUNT(metadata) - !text));
    safetensors_close(&file);
    free(json);
    return path;
}

static uint32_t number_of(const char *text)
{
    return base_crc32c(0, text, strlen(text));
}

/* Every function that opens a checkpoint fails with the message. */
static void assert_refused(const struct step_tests *tests, struct tiny *tiny, const char *path,
                           const char *message)
{
    struct vkn_config config = {0};
    vkn_renderer *renderer = NULL;
    assert_int_equal(vkn_run_config(path, &config), VKN_BAD_INPUT);
    assert_error(message);
    assert_int_equal(vkn_trainer_resume(tiny->trainer, path), VKN_BAD_INPUT);
    assert_error(message);
    assert_int_equal(vkn_trainer_init(tiny->trainer, path), VKN_BAD_INPUT);
    assert_error(message);
    assert_int_equal(vkn_renderer_open(tests->context, path, VKN_PRECISION_AUTO, &renderer),
                     VKN_BAD_INPUT);
    assert_error(message);
    assert_null(renderer);
}

/* GLSL from a checkpoint runs only if its SHA-256 is trusted; its 32-bit number is no proof. */
static void check_trust(const struct step_tests *tests, struct tiny *tiny, const char *path)
{
    static const char foreign[] = "// strange\n" RIGHT, mine[] = RIGHT TWIN_A,
                      twin[] = RIGHT TWIN_B;
    struct vkn_config config = {0};
    char sha256[BASE_SHA256_TEXT], found[BASE_SHA256_TEXT], *text = NULL, *json = NULL;
    char *file = forge(tests, path, "strange", foreign, number_of(foreign));
    base_sha256(foreign, strlen(foreign), sha256);
    assert_false(vkn_field_is_trusted(sha256));
    assert_refused(tests, tiny, file, sha256);
    assert_error("it runs with --trust (vkn_field_trust) only");
    ok(vkn_run_field(file, &text, found));
    assert_string_equal(text, foreign);
    assert_string_equal(found, sha256);
    free(text);
    ok(vkn_run_info_json(file, &json));
    assert_non_null(strstr(json, sha256));
    free(json);
    assert_int_equal(vkn_field_trust("12"), VKN_BAD_INPUT);
    assert_error("12: not a SHA-256");
    sha256[0] = 'g';
    assert_int_equal(vkn_field_trust(sha256), VKN_BAD_INPUT);
    memcpy(sha256, found, sizeof sha256);
    for (size_t i = 0; sha256[i]; i++)
        sha256[i] = (char)toupper((unsigned char)sha256[i]);
    ok(vkn_field_trust(sha256));
    ok(vkn_run_config(file, &config));
    assert_string_equal(vkn_field_source(&config), foreign);
    free(file);
    /* Another field, or another field's number, is not trusted. */
    assert_int_equal(number_of(mine), number_of(twin));
    ok(vkn_field_register(&(struct vkn_field){.text = mine}, &config));
    file = forge(tests, path, "twin", twin, number_of(twin));
    assert_refused(tests, tiny, file, "it runs with --trust");
    base_sha256(twin, strlen(twin), sha256);
    ok(vkn_field_trust(sha256));
    assert_refused(tests, tiny, file, "has the same number (CRC) as field");
    free(file);
    file = forge(tests, path, "number", foreign, number_of(mine));
    assert_refused(tests, tiny, file, "number: glsl.source: ");
    free(file);
    file = forge(tests, path, "missing", NULL, number_of(mine));
    assert_refused(tests, tiny, file, "missing: the GLSL of its field is missing");
    ok(vkn_run_field(file, &text, found));
    assert_null(text);
    assert_string_equal(found, "");
    free(file);
}

/* The limits for fields also hold for a trusted field. */
static void check_hostile(const struct step_tests *tests, const char *path)
{
    static const char *const hostile[][2] = {
        {"#extension GL_EXT_buffer_reference : require\n" RIGHT,
         "a field has no #extension GL_EXT_buffer_reference"},
        {"#include \"snippet\"\n" RIGHT, "a field has no #include"},
        {"shared float common_value;\nvoid put_common(float x) { common_value = x; }\n" RIGHT,
         "a field only computes"},
    };
    for (size_t i = 0; i < BASE_COUNT(hostile); i++) {
        char sha256[BASE_SHA256_TEXT];
        vkn_renderer *renderer = NULL;
        char *file = forge(tests, path, "hostile", hostile[i][0], number_of(hostile[i][0]));
        base_sha256(hostile[i][0], strlen(hostile[i][0]), sha256);
        ok(vkn_field_trust(sha256));
        assert_int_equal(vkn_renderer_open(tests->context, file, VKN_PRECISION_AUTO, &renderer),
                         VKN_BAD_INPUT);
        assert_error(hostile[i][1]);
        assert_null(renderer);
        free(file);
    }
}

/* Only the field in the checkpoint can resume its run, with the same bits. */
static void test_resume(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config base = tiny_config(true);
    NEEDS_SHADERC();
    const struct vkn_config config = config_of(RIGHT, &base);
    const struct vkn_config other = config_of("// another\n" RIGHT, &base);
    char *path = train_and_save(tests, &config, 20, "resumed");
    struct tiny tiny = tiny_create(tests->context, tests->folder, &other);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, path), VKN_BAD_INPUT);
    assert_error("resumed: trained with another field in GLSL");
    ok(vkn_trainer_init(tiny.trainer, path)); /* weights may be taken from another field */
    check_trust(tests, &tiny, path);
    check_hostile(tests, path);
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(vkn_trainer_resume(tiny.trainer, path));
    tiny_run(&tiny, 40);
    char *resumed = tiny_save(tests, &tiny, "resumed_40");
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 40);
    char *uninterrupted = tiny_save(tests, &tiny, "whole_40");
    assert_true(same_checkpoints(resumed, uninterrupted));
    tiny_destroy(&tiny);
    free(path);
    free(resumed);
    free(uninterrupted);
}

/* ---- pictures and exports -------------------------------------------------------------------- */

/* A grey ball in the middle of training space, for any parameters. */
#define RADIUS 0.3
#define BALL                                                               \
    "#pragma field parameters 2\n#pragma field features 8\n"               \
    "void encode(vec3 position, uint first_parameter)\n{\n"                \
    "    put_feature(0u, 200.0 * (0.3 - length(position - 0.5)) + 5.0);\n" \
    "    put_feature(1u, parameter(first_parameter));\n" ZEROS "}\n"       \
    "void encode_backward(vec3 position, uint first_parameter)\n{\n"       \
    "    add_gradient(first_parameter, feature_gradient(1u));\n}\n"

/* The MLP passes the first feature on as density; every occupancy cell is occupied. */
static char *save_ball(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    const struct step *step = &tiny.trainer->step;
    const struct field_layer *layers = step->setup.model.layers;
    const struct gpu_buffer *cells = &step->buffers.at[BIND_OCCUPANCY];
    float *params = base_alloc(step->setup.model.param_count, sizeof *params);
    float *full = base_alloc(cells->size, 1);
    params[reference_weight(&layers[0], 0, 0)] = 1;
    params[reference_weight(&layers[0], 0, 1)] = -1;
    params[reference_weight(&layers[1], 0, 0)] = 1;
    params[reference_weight(&layers[1], 1, 0)] = -1;
    for (size_t i = 0; i < cells->size / sizeof *full; i++)
        full[i] = 1;
    tiny_put(&tiny, &step->buffers.at[BIND_AVERAGE], params);
    tiny_put(&tiny, cells, full);
    char *path = tiny_save(tests, &tiny, "ball.safetensors");
    tiny_destroy(&tiny);
    free(params);
    free(full);
    return path;
}

/* Returns the distance from the ball's centre, in training space, and the cosine between the normal
 * and the outward direction. */
static double distance_from_center(const vkn_scene *scene, const float values[6], double *cosine)
{
    double square = 0, along = 0;
    for (int i = 0; i < 3; i++) {
        double x = (double)values[i] * (double)scene->scale + (double)scene->offset[i] - 0.5;
        square += x * x;
        along += x * (double)values[3 + i];
    }
    *cosine = along / sqrt(square);
    return sqrt(square);
}

/* Checks a binary PLY's vertices of `bytes` bytes, which begin with position and normal: finite, on
 * the ball, facing outwards. Calls `check` for each; returns the mean distance. */
static double check_ply(const vkn_scene *scene, const char *path, size_t bytes, double least_cosine,
                        size_t *count, void (*check)(const char *vertex))
{
    char *data = NULL;
    size_t size = 0;
    double sum = 0, cosines = 0;
    ok(base_file_read(path, (size_t)64 << 20, &data, &size));
    const char *element = strstr(data, "element vertex "), *end = strstr(data, "end_header\n");
    assert_true(element && end);
    *count = strtoul(element + 15, NULL, 10);
    const char *vertex = end + strlen("end_header\n");
    assert_true(*count > 0 && vertex + *count * bytes <= data + size);
    for (size_t i = 0; i < *count; i++, vertex += bytes) {
        float values[6];
        double cosine;
        memcpy(values, vertex, sizeof values);
        for (size_t k = 0; k < 6; k++)
            assert_true(isfinite(values[k]));
        double distance = distance_from_center(scene, values, &cosine);
        check_close(distance, RADIUS, 0.03, 1, "distance from the middle", (int)i);
        if (cosine < least_cosine)
            fail_msg("%s: normal %zu: cosine %g", path, i, cosine);
        sum += distance;
        cosines += cosine;
        check(vertex);
    }
    free(data);
    assert_true(cosines / (double)*count > 0.995); /* six degrees */
    return sum / (double)*count;
}

static void check_grey(const char *vertex)
{
    for (int i = 0; i < 3; i++)
        assert_in_range((unsigned char)vertex[24 + i], 126, 129);
}

/* A splat has 62 floats: f_dc is the colour minus 1/2, and the opacity is a logit. */
static void check_grey_splat(const char *vertex)
{
    float values[62];
    memcpy(values, vertex, sizeof values);
    for (int i = 0; i < 62; i++)
        assert_true(isfinite(values[i]));
    for (int i = 6; i < 54; i++)
        check_close((double)values[i], 0, 0.02, 1, "harmonic", i);
    assert_true(values[54] > 0);
}

static void check_exports(const struct step_tests *tests, const vkn_scene *scene,
                          const char *checkpoint)
{
    struct vkn_export_result result = {.size = sizeof result};
    const struct vkn_job job = {.quiet = true};
    const struct vkn_export_params params = {.size = sizeof params,
                                             .job = &job,
                                             .run = checkpoint,
                                             .scene = tests->folder->path,
                                             .mesh = temporary_path(tests->folder, "mesh.ply"),
                                             .points = temporary_path(tests->folder, "points.ply"),
                                             .splats = temporary_path(tests->folder, "splats.ply"),
                                             .resolution = 48,
                                             .point_count = 400,
                                             .unseen = VKN_UNSEEN_KEEP};
    size_t count = 0;
    ok(vkn_run_export(&params, &result));
    double mesh = check_ply(scene, params.mesh, 27, 0.9, &count, check_grey);
    double points = check_ply(scene, params.points, 27, 0.5, &count, check_grey);
    assert_int_equal(count, 400);
    assert_int_equal(result.points, 400);
    check_close(points, mesh, 0.02, 1, "radius of points beside the mesh's", 0);
    check_ply(scene, params.splats, 248, 0.5, &count, check_grey_splat);
    assert_int_equal(count, 400);
}

static void check_normals(const struct step_tests *tests, const vkn_scene *scene,
                          const char *checkpoint)
{
    vkn_renderer *renderer = NULL;
    struct vkn_camera camera = {0};
    struct vkn_picture *picture = NULL;
    ok(vkn_renderer_open(tests->context, checkpoint, VKN_PRECISION_AUTO, &renderer));
    ok(vkn_renderer_enable_normals(renderer));
    ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, 1, &camera)); /* from +x, 12 x 10 pixels */
    ok(vkn_render(renderer, &camera, NULL, &picture));
    const float *normal = &picture->normal[3 * (5 * 12 + 6)];
    assert_true(normal[0] > 0.98F && picture->opacity[5 * 12 + 6] > 0.99F);
    assert_true(normal[1] < 0 && normal[2] < 0); /* right of the centre and below it */
    vkn_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
}

/* Normals are differences of densities in fp32, whatever the precision of the rendering. */
static void test_exports(void **state)
{
    const struct step_tests *tests = *state;
    const struct gpu_capabilities *device = gpu_device_capabilities(tests->context->device);
    struct vkn_config config = tiny_config(true);
    vkn_scene *scene = NULL;
    NEEDS_SHADERC();
    config = config_of(BALL, &config);
    ok(vkn_scene_open(tests->folder->path, &config, &scene));
    for (int half = 0; half <= (device->float16 && device->storage16); half++) {
        config.precision = half ? VKN_PRECISION_FP16 : VKN_PRECISION_FP32;
        char *checkpoint = save_ball(tests, &config);
        check_exports(tests, scene, checkpoint);
        check_normals(tests, scene, checkpoint);
        free(checkpoint);
    }
    vkn_scene_close(&scene);
}

/* ---- endless loops --------------------------------------------------------------------------- */

#define HANG "    while (a < 4.0) a = min(a + float(parameter(at) > 9.0), 2.0);\n"

/* An endless field is refused and its device given up at once; another context of the process
 * works. The endless shader runs until the process ends. */
static void test_endless(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config base = tiny_config(true);
    double seconds = glsl_check_seconds, began = base_seconds();
    vkn_context *context = NULL;
    vkn_scene *scene = NULL;
    vkn_trainer *trainer = NULL;
    NEEDS_SHADERC();
    const struct vkn_config endless =
        config_of(HEAD ENCODE(SECOND, HANG PUT) BACKWARD(SECOND, A, B), &base);
    const struct vkn_config right = config_of(RIGHT, &base);
    ok(vkn_context_create(NULL, &context));
    glsl_check_seconds = 0.2;
    ok(vkn_scene_open(tests->folder->path, &endless, &scene));
    assert_int_equal(vkn_trainer_create(context, scene, &endless, &trainer), VKN_BAD_INPUT);
    assert_error("small.glsl: does not end: ");
    assert_error(" s at 256 positions");
    glsl_check_seconds = seconds;
    assert_int_equal(vkn_trainer_create(context, scene, &right, &trainer), VKN_NO_DEVICE);
    assert_error("the device was given up");
    assert_null(trainer);
    vkn_context_destroy(&context);
    vkn_scene_close(&scene);
    assert_true(base_seconds() - began < 15);
    /* An older context shares lavapipe's threads with the endless shader, and reports that. */
    double patience = gpu_stop_timeout;
    gpu_stop_timeout = 0.2;
    if (gpu_device_capabilities(tests->context->device)->type == GPU_CPU) {
        assert_int_equal(vkn_field_check(tests->context, &right), VKN_NO_DEVICE);
        assert_error("its threads run a shader of this process that never ends");
    }
    gpu_stop_timeout = patience;
    ok(vkn_context_create(NULL, &context));
    ok(vkn_field_check(context, &right));
    vkn_context_destroy(&context);
}

/* Finds out whether the GLSL compiler is installed, which all tests need. */
static int setup(void **state)
{
    if (step_tests_setup(state) != 0)
        return -1;
    const struct step_tests *tests = *state;
    struct vkn_config config = {0};
    config = config_of(RIGHT, &config);
    have_shaderc = vkn_field_check(tests->context, &config) == VKN_OK ||
                   !strstr(vkn_last_error(), "shaderc, which");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_grid),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_pragmas),    cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_samplings),  cmocka_unit_test(test_loops),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_not_finite_features),
        cmocka_unit_test(test_initialize), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_exports),
    };
    tiny_groups = TINY_GROUPS;
    int failed = step_test_apart("test_endless", test_endless, setup);
    failed += cmocka_run_group_tests(tests, setup, step_tests_teardown);
    return skips_status(failed, BASE_COUNT(tests));
}
