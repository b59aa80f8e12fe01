/* Tests the effect of every setting: words of the device's constants, the backend, the plan of
 * image strips; and every default. Expectations are written by hand, and every key must have one.
 */
#include "step_fixture.h"

#include <cjson/cJSON.h>
#include <float.h>

#include "config/config.h"

/* ---- outcome of a configuration ------------------------------------------------------------ */

/* 32-bit words only, so that any other changed word is noticed. */
struct outcome {
    struct Config constants;
    uint32_t special[SPEC_COUNT];
    struct {
        float scale, offset[3], unit_length;
        uint32_t format, downscale, aabb_scale, width, height;
    } scene;
    struct {
        uint32_t precision, sums, f16_sums, m, n, k, f16_accumulate, conversions;
    } backend;
    uint32_t buckets; /* of gradients */
    struct {
        uint32_t strips, resident, exchanged;
        uint32_t shrink[4]; /* after shares[] of the training */
    } images;
    float loss_scale; /* of the first step */
};
#define OUTCOME_WORDS (sizeof(struct outcome) / 4)
static const double shares[] = {0, 0.15, 0.3, 0.6};

/* Makes a GPU with all capabilities and subgroups of 32. */
static struct gpu_capabilities make_device(enum gpu_device_type type)
{
    static const uint32_t shapes[][3] = {
        {8, 8, 8}, {8, 8, 16}, {8, 16, 16}, {16, 8, 16}, {16, 16, 16}};
    struct gpu_capabilities device = {
        .name = "fake",
        .type = type,
        .subgroup_size = 32,
        .max_groups = 65535,
        .subgroup_min = 32,
        .subgroup_max = 32,
        .float_atomic_add = true,
        .cas_sums = true,
        .float16 = true,
        .storage16 = true,
        .f16_subnormals = true,
        .cooperative_matrix = true,
        .cooperative_matrix2 = true,
        .packed_f16_atomics = true,
        .max_shared_memory = 49152,
        .max_workgroup_size = 1024,
        .max_buffer_range = 1u << 30,
        .device_memory = 1ull << 33,
    };
    for (size_t i = 0; i < BASE_COUNT(shapes); i++)
        for (int half = 0; half < 2; half++)
            device.shapes[device.shape_count++] = (struct gpu_matrix_shape){
                shapes[i][0], shapes[i][1], shapes[i][2], "f16", half ? "f16" : "f32", false};
    return device;
}

/* Sets "key=value". */
static void set(struct vkn_config *config, const char *setting)
{
    char key[64];
    const char *value = strchr(setting, '=');
    assert_non_null(value);
    snprintf(key, sizeof key, "%.*s", (int)(value - setting), setting);
    ok(vkn_config_set(config, "--set", key, value + 1));
}

static void copy_scene(const struct vkn_scene *scene, struct outcome *outcome)
{
    const struct scene_camera *camera = scene->splits[SCENE_TRAIN].cameras;
    outcome->scene.scale = (float)scene->scale;
    for (int i = 0; i < 3; i++)
        outcome->scene.offset[i] = (float)scene->offset[i];
    outcome->scene.unit_length = (float)scene->unit_length;
    outcome->scene.format = scene->format;
    outcome->scene.downscale = scene->downscale;
    outcome->scene.aabb_scale = scene->aabb_scale;
    outcome->scene.width = camera->width;
    outcome->scene.height = camera->height;
}

static void copy_backend(const struct field_backend *backend, struct outcome *outcome)
{
    outcome->backend.precision = backend->precision;
    outcome->backend.sums = backend->sums;
    outcome->backend.f16_sums = backend->f16_sums;
    outcome->backend.m = backend->shape.m;
    outcome->backend.n = backend->shape.n;
    outcome->backend.k = backend->shape.k;
    outcome->backend.f16_accumulate = backend->f16_accumulate;
    outcome->backend.conversions = backend->conversions;
}

static void copy_images(const struct vkn_config *config, const struct images_plan *plan,
                        struct outcome *outcome)
{
    outcome->images.strips = plan->strips;
    outcome->images.resident = plan->resident;
    outcome->images.exchanged = plan->exchanged;
    for (size_t i = 0; i < BASE_COUNT(shares); i++)
        outcome->images.shrink[i] = images_shrink(config, shares[i]);
}

/* Derives all that training derives from a configuration before it allocates memory. */
static vkn_status derive(const struct vkn_scene *scene, struct vkn_config *config,
                         struct outcome *outcome)
{
    const struct gpu_capabilities device = make_device(GPU_DISCRETE);
    struct setup setup;
    struct images_plan plan;
    *outcome = (struct outcome){0};
    BASE_TRY(setup_resolve_config(config, scene, &device));
    BASE_TRY(setup_create(config, &device, &setup));
    BASE_TRY(images_make_plan(scene, config, 1u << 30, device.max_buffer_range, &plan));
    for (uint32_t id = 2; id < SPEC_COUNT; id++)
        outcome->special[id] = setup.specialization.values[id];
    copy_scene(scene, outcome);
    outcome->constants = setup.constants;
    /* These follow from the model's layers. */
    outcome->constants.first_layered = 0;
    memset(outcome->constants.layers, 0, sizeof outcome->constants.layers);
    memset(outcome->constants.layer_columns, 0, sizeof outcome->constants.layer_columns);
    memset(outcome->constants.buckets, 0, sizeof outcome->constants.buckets);
    outcome->buckets = setup.buckets;
    copy_backend(&setup.backend, outcome);
    copy_images(config, &plan, outcome);
    outcome->loss_scale = config->loss_scale.initial;
    return VKN_OK;
}

/* Derives the outcome for a folder's scene. */
static vkn_status derive_in(const struct temporary *folder, struct vkn_config *config,
                            struct outcome *outcome)
{
    struct vkn_scene *scene = NULL;
    BASE_TRY(vkn_scene_open(folder->path, config, &scene));
    vkn_status status = derive(scene, config, outcome);
    scene_close(&scene);
    return status;
}

/* ---- every setting ------------------------------------------------------------------------- */

#define MOST_WITH    6
#define MOST_CHANGES 12

/* A word and its new value. */
struct change {
    const char *name;
    size_t offset;
    bool real;
    double value;
};
/* clang-format off */
#define WORD(field, value) {#field, offsetof(struct outcome, field), false, (value)}
#define REAL(field, value) {#field, offsetof(struct outcome, field), true, (value)}
#define SPEC(name, value)  {#name, offsetof(struct outcome, special[SPEC_##name]), false, (value)}
/* clang-format on */

/* The offsets of the grid's two levels, and of what follows, depend on the number of weights; the
 * levels have 64 and 256 entries of two features. */
#define WEIGHTS(weights)                                                                        \
    WORD(constants.summed_params, (weights)), WORD(constants.param_count, (weights) + 640),     \
        WORD(constants.entry_count, (weights) / 2.0 + 320),                                     \
        WORD(constants.groups[0].count, (weights)), WORD(constants.groups[1].first, (weights)), \
        WORD(constants.groups[1].first_entry, (weights) / 2.0),                                 \
        WORD(constants.levels[0].first, (weights)),                                             \
        WORD(constants.levels[1].first, (weights) + 128)
#define GRID(parameters, features)                     \
    WORD(constants.param_count, 9216 + (parameters)),  \
        WORD(constants.groups[1].count, (parameters)), \
        WORD(constants.entry_count, (9216.0 + (parameters)) / (features))

/* Vanilla has one parameter group, and 2592 columns of activations, 64 and 32 of them for the
 * encodings; the batch is small enough to keep all activations. */
#define VANILLA .with = {"model=vanilla", "batch.samples=2048", "mlp.position_octaves=10"}
#define VANILLA_WEIGHTS(weights)                                                      \
    WORD(constants.summed_params, (weights)), WORD(constants.param_count, (weights)), \
        WORD(constants.entry_count, (weights) / 2.0), WORD(constants.groups[0].count, (weights))
#define VANILLA_COLUMNS(more)                                                            \
    WORD(constants.columns, 2592 + (more)), WORD(constants.first_output, 2144 + (more)), \
        WORD(constants.color_output, 2560 + (more))

/* The deformation has 32 * 64 + 3 * 64 * 64 + 64 * 32 weights and 4 * 64 + 32 biases, 16672 in all,
 * between the MLPs and the grid; its activations have 32 + 4 * 64 + 32 columns. */
#define DYNAMIC .with = {"model=dynamic"}
#define DYNAMIC_ENTRIES(deformation) \
    ((4608u + ((deformation) >> 1) + ENTRY_ALIGN - 1u) & ~(ENTRY_ALIGN - 1u))
#define DYNAMIC_WEIGHTS(deformation)                                         \
    WORD(constants.summed_params, 9216 + (deformation)),                     \
        WORD(constants.param_count, 9856 + (deformation)),                   \
        WORD(constants.entry_count, DYNAMIC_ENTRIES(deformation) + 320),     \
        WORD(constants.groups[1].count, (deformation)),                      \
        WORD(constants.groups[2].first, 9216 + (deformation)),               \
        WORD(constants.groups[2].first_entry, DYNAMIC_ENTRIES(deformation)), \
        WORD(constants.levels[0].first, 9216 + (deformation)),               \
        WORD(constants.levels[1].first, 9344 + (deformation))
#define DYNAMIC_COLUMNS(all) \
    WORD(constants.columns, (all)), WORD(constants.deformation_output, (all) - 32)

/* Settings of every row. The MLPs have 16 * 64 + 64 * 16 and 32 * 64 + 64 * 64 + 64 * 16 weights:
 * 9216. */
static const char *const beginning[] = {"loss.distortion_curve=linear", "grid.levels=2",
                                        "grid.coarsest=4", "grid.finest=8", "grid.log2_entries=8"};

/* Weights of a proposal's MLP, and parameters of its grid. */
#define PROPOSAL(weights, grid)                          \
    WORD(constants.proposal_params, (weights) + (grid)), \
        WORD(constants.proposal_entries, ((weights) + (grid)) / 2.0)

#define IS(name, text) .key = (name), .value = (text)

/* A key's value, further settings, and all changed words; or the test that checks the key. */
static const struct row {
    const char *key, *value;
    const char *with[MOST_WITH];
    struct change changes[MOST_CHANGES];
    const char *error; /* instead of changes: part of the message */
    const char *test;
} rows[] = {
    {IS("model", "ngp")},
    {IS("precision", "fp32")},
    {IS("precision", "fp16"),
     .changes = {WORD(backend.precision, VKN_PRECISION_FP16), SPEC(F16, 1),
                 WORD(constants.scale_kind, SCALE_DYNAMIC), REAL(loss_scale, 65536)}},
    /* Rows of the widest layer are padded by 8, not 4; a copy of weights follows all parameters. */
    {IS("precision", "coopmat"),
     .changes = {WORD(backend.precision, VKN_PRECISION_COOPMAT), SPEC(F16, 1), SPEC(ROW_STRIDE, 72),
                 SPEC(TRANSPOSED, 9856), WORD(backend.m, 16), WORD(backend.n, 16),
                 WORD(backend.k, 16), WORD(constants.scale_kind, SCALE_DYNAMIC),
                 REAL(loss_scale, 65536)}},
    {IS("gradient_sums", "f32")},
    {IS("gradient_sums", "fixed"), .changes = {WORD(backend.sums, VKN_SUMS_FIXED)}},
    {IS("gradient_sums", "cas"), .changes = {WORD(backend.sums, VKN_SUMS_CAS)}},
    {IS("gradient_sums", "f16"),
     .changes = {WORD(constants.norm_interval, 1), WORD(backend.sums, VKN_SUMS_F16),
                 WORD(backend.f16_sums, true), WORD(special[SPEC_F16_SUMS], 1)}},
    {IS("background", "random")},
    {IS("background", "white"), .changes = {SPEC(BACKGROUND, BACKGROUND_WHITE)}},
    {IS("background", "black"), .changes = {SPEC(BACKGROUND, BACKGROUND_BLACK)}},
    {IS("seed", "77"), .changes = {WORD(constants.seed, 77)}},
    {IS("model", "ngp")},
    {IS("model", "vanilla"), .test = "test_step_gradient"},
    {IS("model", "dynamic"), .test = "test_step_gradient"},
    {IS("model", "layered"), .test = "test_step_gradient"},
    {IS("model", "glsl"), .test = "test_field_glsl"},
    {IS("glsl.source", "1"), .test = "test_field_glsl"},
    {IS("deterministic", "true"),
     .changes = {SPEC(DETERMINISTIC, 1), WORD(backend.sums, VKN_SUMS_FIXED)}},
    /* Milestones by time cannot be repeated. */
    {IS("deterministic", "true"), .with = {"seconds=5"},
     .changes = {SPEC(DETERMINISTIC, 1), WORD(backend.sums, VKN_SUMS_FIXED),
                 WORD(constants.time_schedule, 0)}},
    {IS("steps", "60"),
     .changes = {WORD(constants.total_steps, 60), WORD(constants.warmup_steps, 4),
                 REAL(constants.milestones[0], 0.8), REAL(constants.milestones[1], 0.9),
                 REAL(constants.milestones[2], 0.96)}},
    {IS("steps", "60"), .with = {"seconds=5"},
     .changes = {WORD(constants.total_steps, 60), WORD(constants.warmup_steps, 4)}},
    {IS("seconds", "5"),
     .changes = {WORD(constants.total_steps, 4294967295.0), WORD(constants.time_schedule, 1),
                 REAL(constants.milestones[0], 0.8), REAL(constants.milestones[1], 0.9),
                 REAL(constants.milestones[2], 0.96)}},
    {IS("seconds", "5"), .with = {"steps=60"}, .changes = {WORD(constants.time_schedule, 1)}},
    {IS("eval_every", "16x2"), .test = "test_events"},
    {IS("save_every", "32"), .test = "test_run_folder"},
    {IS("save_seconds", "2"), .test = "test_run_folder"},
    {IS("keep", "3"), .test = "test_run_folder"},
    {IS("eval_views", "2"), .test = "test_events"},
    {IS("log.tensorboard", "on"), .test = "test_events"},
    {IS("log.tensorboard", "off"), .test = "test_events"},

    {IS("scene.format", "transforms")},
    {IS("scene.format", "colmap"),
     .with = {"scene.fixed_transform=true", "scene.scale=0.25", "scene.aabb_scale=1"},
     /* without a split of its own the first of every eight views is for testing */
     .changes = {WORD(scene.format, VKN_SCENE_COLMAP), WORD(images.resident, 2)}},
    {IS("scene.format", "llff"), .error = "poses_bounds.npy"},
    {IS("scene.format", "nsvf"), .error = "intrinsics.txt"},
    {IS("scene.test_views", "files")},
    {IS("scene.test_views", "none"),
     .with = {"scene.format=colmap", "scene.fixed_transform=true", "scene.scale=0.25",
              "scene.aabb_scale=1"},
     .changes = {WORD(images.resident, 3)}},
    {IS("scene.test_views", "eighth"), .changes = {WORD(images.resident, 2)}},
    {IS("scene.downscale", "2"),
     .changes = {WORD(scene.downscale, 2), WORD(scene.width, 6), WORD(scene.height, 5)}},
    {IS("scene.scale", "0.5"), .changes = {REAL(scene.scale, 0.5)}},
    {IS("scene.offset", "0.25,-2,3"),
     .with = {"scene.fixed_transform=true", "scene.scale=0.33", "scene.aabb_scale=1"},
     .changes = {REAL(scene.offset[0], 0.25), REAL(scene.offset[1], -2), REAL(scene.offset[2], 3)}},
    /* Cells of the outermost cascade are as long as the longest step; rays end at 1024 half sides.
     */
    {IS("scene.aabb_scale", "4"), .with = {"march.sampling=occupancy", "march.near_start=0"},
     .changes = {WORD(scene.aabb_scale, 4), REAL(constants.aabb_scale, 4),
                 REAL(constants.cone_angle, 1.0 / 256), REAL(constants.step_max, 4.0 / 128),
                 SPEC(CASCADES, 3)}},
    {IS("scene.fixed_transform", "true"), .with = {"scene.scale=0.25", "scene.aabb_scale=1"},
     .changes = {REAL(scene.offset[0], 0), REAL(scene.offset[1], 0), REAL(scene.offset[2], 0)}},
    {IS("scene.unit_length", "0.25"), .changes = {REAL(scene.unit_length, 0.25)}},
    {IS("scene.contraction", "none")},
    {IS("scene.contraction", "cube"), .with = {"march.sampling=occupancy", "march.near_start=0"},
     .changes = {SPEC(CONTRACTION, CONTRACTION_CUBE), SPEC(CASCADES, 2),
                 REAL(constants.cone_angle, 1.0 / 256), REAL(constants.step_max, 1.0 / 256),
                 REAL(constants.far_distance, 512)}},
    {IS("scene.contraction", "cube"),
     .with = {"scene.aabb_scale=4", "march.cone_angle=0.02", "march.sampling=occupancy",
              "march.near_start=0"},
     .changes = {SPEC(CONTRACTION, CONTRACTION_CUBE), SPEC(CASCADES, 4),
                 REAL(constants.step_max, 4 * 0.02f), REAL(constants.far_distance, 2048)}},
    {IS("scene.refine", "off")},
    {IS("scene.refine", "poses"), .changes = {SPEC(REFINE, 1), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.refine", "lenses"), .changes = {SPEC(REFINE, 2), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.refine", "all"), .changes = {SPEC(REFINE, 3), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.refine", "poses"), VANILLA, .changes = {SPEC(REFINE, 1), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.refine", "all"), .with = {"model=layered"},
     .changes = {SPEC(REFINE, 3), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.refine", "lenses"), DYNAMIC, .changes = {SPEC(REFINE, 2), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.refine", "poses"), .with = {"model=vanilla", "mlp.skip_layer=1"},
     .error = "mlp.skip_layer: 1: "},
    /* The most passes in a step. */
    {IS("scene.refine", "all"),
     .with = {"model=dynamic", "dynamic.canonical=layered", "march.sampling=hierarchical",
              "march.visibility=on", "batch.by_error=0.5", "deterministic=true"},
     .changes = {SPEC(REFINE, 3), SPEC(INPUT_GRADIENTS, 1)}},
    {IS("scene.sky", "off")},
    {IS("scene.sky", "on"), .changes = {SPEC(SKY, 1), WORD(constants.sky_cells, SKY_CELLS)}},
    {IS("scene.appearance", "off")},
    {IS("scene.appearance", "exposure"), .changes = {SPEC(APPEARANCE, 1)}},
    {IS("scene.appearance", "full"), .changes = {SPEC(APPEARANCE, 2)}},
    {IS("appearance.initial_rate", "0.07"), .changes = {REAL(constants.appearance_rate, 0.07f)}},
    {IS("appearance.final_rate", "0.0625"),
     .changes = {REAL(constants.appearance_final_rate, 0.0625)}},
    {IS("refine.initial_rate", "0.07"), .changes = {REAL(constants.refine_rate, 0.07f)}},
    {IS("refine.final_rate", "0.0625"), .changes = {REAL(constants.refine_final_rate, 0.0625)}},
    {IS("refine.start", "0.5"), .changes = {REAL(constants.refine_start, 0.5)}},
    {IS("refine.start", "0"), .changes = {REAL(constants.refine_start, 0)}},
    {IS("refine.limit", "0.5"), .changes = {REAL(constants.refine_limit, 0.5)}},
    {IS("refine.detail", "4"), .changes = {REAL(constants.refine_detail, 4)}},
    {IS("refine.detail", "0"), .changes = {REAL(constants.refine_detail, FLT_MAX)}},
    /* Three images of 12 x 10 pixels, 480 bytes: resident in halves, or two as a whole. */
    {IS("scene.image_budget", "1000"),
     .changes = {WORD(images.strips, 2), WORD(images.resident, 4), WORD(images.exchanged, 4)}},
    {IS("scene.host_budget", "1439"), .with = {"scene.image_budget=1000"},
     .changes = {WORD(images.strips, 1), WORD(images.resident, 2), WORD(images.exchanged, 2)}},

    {IS("progressive.enabled", "true"),
     .changes = {WORD(images.exchanged, 1), WORD(images.shrink[0], 4), WORD(images.shrink[1], 2)}},
    {IS("progressive.start_downscale", "8"), .with = {"progressive.enabled=true"},
     .changes = {WORD(images.shrink[0], 8), WORD(images.shrink[1], 4), WORD(images.shrink[2], 2)}},
    {IS("progressive.milestones", "0.2,0.4,0.7"),
     .with = {"progressive.enabled=true", "progressive.start_downscale=8"},
     .changes = {WORD(images.shrink[1], 8), WORD(images.shrink[2], 4), WORD(images.shrink[3], 2)}},

    {IS("field.position", "hash"), .with = {"model=layered"}},
    {IS("field.position", "frequencies"), .test = "test_step_gradient"},
    {IS("field.position", "identity"), .test = "test_step_gradient"},
    {IS("field.position", "frequencies"), .with = {"model=ngp"},
     .error = "field.position: model ngp has a fixed one"},
    {IS("field.position", "hash"), .with = {"model=vanilla"},
     .error = "field.position: model vanilla has a fixed one"},
    {IS("field.direction", "harmonics"), .with = {"model=layered"}},
    /* Harmonics, or the vector's three numbers, have equally many padded columns. */
    {IS("field.direction", "identity"), .with = {"model=layered"},
     .changes = {SPEC(DIRECTION, DIRECTION_IDENTITY), SPEC(SH_DEGREE, 0)}},
    {IS("field.direction", "frequencies"), .with = {"model=layered"},
     .changes = {SPEC(DIRECTION, DIRECTION_FREQUENCIES), SPEC(SH_DEGREE, 4)}},
    {IS("field.direction", "none"), .test = "test_step_gradient"},
    {IS("field.direction", "none"), .with = {"model=dynamic"},
     .error = "field.direction: model dynamic has a fixed one"},
    {IS("field.activation", "relu"), .with = {"model=layered"}},
    {IS("field.activation", "leaky_relu"), .with = {"model=layered"},
     .changes = {SPEC(ACTIVATION, ACTIVATION_LEAKY_RELU)}},
    {IS("field.activation", "softplus"), .with = {"model=layered"},
     .changes = {SPEC(ACTIVATION, ACTIVATION_SOFTPLUS)}},
    {IS("field.activation", "squareplus"), .with = {"model=layered"},
     .changes = {SPEC(ACTIVATION, ACTIVATION_SQUAREPLUS)}},
    {IS("field.activation", "sigmoid"), .with = {"model=layered"},
     .changes = {SPEC(ACTIVATION, ACTIVATION_SIGMOID)}},
    {IS("field.activation", "tanh"), .with = {"model=layered"},
     .changes = {SPEC(ACTIVATION, ACTIVATION_TANH)}},
    {IS("field.activation", "none"), .with = {"model=layered"},
     .changes = {SPEC(ACTIVATION, ACTIVATION_NONE)}},
    {IS("field.activation", "tanh"), .with = {"model=vanilla"},
     .error = "field.activation: model vanilla has a fixed one"},

    {IS("grid.levels", "1"),
     .changes = {SPEC(LEVELS, 1), GRID(128, 2), WORD(constants.levels[1].first, 0),
                 WORD(constants.levels[1].entries, 0), WORD(constants.levels[1].resolution, 0),
                 REAL(constants.levels[1].scale, 0)}},
    {IS("grid.features", "4"),
     .changes = {SPEC(FEATURES, 4), GRID(1280, 4), SPEC(ENTRY_SIZE, 4),
                 WORD(constants.groups[0].entry, 4), WORD(constants.groups[1].entry, 4),
                 WORD(constants.groups[1].first_entry, 2304),
                 WORD(constants.levels[1].first, 9216 + 256)}},
    {IS("grid.log2_entries", "9"),
     .changes = {GRID(128 + 1024, 2), WORD(constants.levels[1].entries, 512),
                 WORD(constants.levels[1].dense, 1)}},
    /* 6 * 6 * 6 points, padded to whole cache lines. */
    {IS("grid.coarsest", "6"),
     .changes = {GRID(448 + 512, 2), WORD(constants.levels[0].entries, 224),
                 WORD(constants.levels[0].resolution, 6), REAL(constants.levels[0].scale, 5),
                 WORD(constants.levels[1].first, 9216 + 448)}},
    {IS("grid.finest", "16"),
     .changes = {WORD(constants.levels[1].resolution, 16), REAL(constants.levels[1].scale, 15)}},
    {IS("grid.initial", "0.01"), .test = "test_settings"}, /* test_initial */
    {IS("grid.decay", "0.5"), .changes = {SPEC(GRID_DECAY, 2), WORD(constants.groups[1].sparse, 0),
                                          REAL(constants.levels[0].decay, 0.5f / 128),
                                          REAL(constants.levels[1].decay, 0.5f / 512)}},
    {IS("grid.decay", "0")},
    {IS("grid.decay", "0.5"), VANILLA},

    {IS("mlp.density_width", "32"), .changes = {SPEC(DENSITY_WIDTH, 32), WEIGHTS(8192)}},
    {IS("mlp.density_layers", "2"), .changes = {SPEC(DENSITY_LAYERS, 2), WEIGHTS(9216 + 4096)}},
    {IS("mlp.geometry", "32"), .changes = {SPEC(GEOMETRY, 32), WEIGHTS(9216 + 1024 + 1024)}},
    {IS("mlp.color_width", "32"), .changes = {SPEC(COLOR_WIDTH, 32), WEIGHTS(2048 + 1024 + 1536)}},
    {IS("mlp.color_layers", "1"), .changes = {SPEC(COLOR_LAYERS, 1), WEIGHTS(9216 - 4096)}},
    {IS("mlp.sh_degree", "3"), .changes = {SPEC(SH_DEGREE, 3)}},
    {IS("mlp.geometry", "80"), .error = "mlp.geometry: more than 64"},
    {IS("mlp.geometry", "80"), .with = {"model=vanilla"}, .error = "not a multiple of 32"},
    /* 64 * 256 + 6 * 256 * 256 + (256 + 64) * 256 + 256 * 288 weights of the density MLP, (256 +
     * 32) * 128 + 128 * 32 of the colour MLP, and 8 * 256 + 288 + 128 + 32 biases: 608704. */
    {IS("mlp.position_octaves", "12"), VANILLA,
     .changes = {SPEC(LEVELS, 12), VANILLA_COLUMNS(32), VANILLA_WEIGHTS(608704 + 2 * 32 * 256)}},
    {IS("mlp.direction_octaves", "8"), VANILLA,
     .changes = {SPEC(SH_DEGREE, 8), VANILLA_COLUMNS(32), VANILLA_WEIGHTS(608704 + 32 * 128)}},
    {IS("mlp.skip_layer", "9"), VANILLA, .changes = {VANILLA_WEIGHTS(608704 - 64 * 256)}},
    {IS("mlp.density_width", "48"), .with = {"model=layered"}, .error = "not a multiple of 32"},
    {IS("mlp.skip_layer", "1"), .with = {"model=layered"}, .error = "mlp.skip_layer: 1: "},
    {IS("grid.finest", "3"), .with = {"model=layered"}, .error = "grid.finest: below"},
    {IS("mlp.activation_checkpointing", "on"), VANILLA, .changes = {WORD(constants.kept_rows, 0)}},
    {IS("mlp.activation_checkpointing", "off"), VANILLA},
    {IS("mlp.activation_checkpointing", "off"), .with = {"model=vanilla"},
     .error = "mlp.activation_checkpointing: off keeps"},
    {IS("mlp.density_activation", "exp")},
    {IS("mlp.density_activation", "softplus"),
     .changes = {SPEC(DENSITY_ACTIVATION, DENSITY_SOFTPLUS)}},
    {IS("mlp.density_activation", "relu"), .changes = {SPEC(DENSITY_ACTIVATION, DENSITY_RELU)}},

    {IS("dynamic.canonical", "ngp"), DYNAMIC},
    {IS("dynamic.canonical", "vanilla"), DYNAMIC, .test = "test_step_gradient"},
    {IS("dynamic.canonical", "layered"), DYNAMIC, .test = "test_step_gradient"},
    {IS("dynamic.canonical", "vanilla"), .with = {"model=dynamic", "mlp.skip_layer=1"},
     .error = "mlp.skip_layer: 1: "},
    {IS("dynamic.canonical", "vanilla"), .with = {"model=dynamic", "dynamic.layers=5"},
     .error = "dynamic.layers: more than 16 layers"},
    {IS("dynamic.width", "32"), DYNAMIC, .changes = {DYNAMIC_WEIGHTS(5280), DYNAMIC_COLUMNS(192)}},
    {IS("dynamic.layers", "2"), DYNAMIC, .changes = {DYNAMIC_WEIGHTS(8352), DYNAMIC_COLUMNS(192)}},
    {IS("dynamic.layers", "8"), .with = {"model=dynamic", "mlp.density_layers=6"},
     .error = "dynamic.layers: more than 16 layers"},
    {IS("dynamic.position_octaves", "8"), DYNAMIC,
     .changes = {DYNAMIC_WEIGHTS(16672 + 32 * 64), DYNAMIC_COLUMNS(352),
                 WORD(constants.deformation_octaves, 8)}},
    {IS("dynamic.time_octaves", "8"), DYNAMIC, .changes = {WORD(constants.time_octaves, 8)}},
    {IS("dynamic.learning_rate_factor", "0.7"), DYNAMIC,
     .changes = {REAL(constants.groups[1].rate, 0.7)}},
    {IS("dynamic.curriculum", "0.3"), DYNAMIC, .changes = {REAL(constants.curriculum, 0.3)}},
    {IS("dynamic.curriculum", "0"), DYNAMIC, .changes = {REAL(constants.curriculum, 0)}},
    {IS("dynamic.time_bins", "8"), DYNAMIC, .changes = {SPEC(TIME_BINS, 8)}},
    {IS("dynamic.time_features", "on"), DYNAMIC, .changes = {SPEC(TIME_INPUTS, 5)}},
    {IS("dynamic.time_features", "off"), DYNAMIC},

    {IS("matrix.shape", "16x16x16"), .with = {"precision=coopmat"}},
    {IS("matrix.shape", "16x8x16"), .with = {"precision=coopmat"}, .changes = {WORD(backend.n, 8)}},
    {IS("matrix.shape", "8x16x16"), .with = {"precision=coopmat"}, .changes = {WORD(backend.m, 8)}},
    {IS("matrix.shape", "8x8x16"), .with = {"precision=coopmat"},
     .changes = {WORD(backend.m, 8), WORD(backend.n, 8)}},
    {IS("matrix.shape", "8x8x8"), .with = {"precision=coopmat"},
     .changes = {WORD(backend.m, 8), WORD(backend.n, 8), WORD(backend.k, 8)}},
    {IS("matrix.accumulate", "f32"), .with = {"precision=coopmat"}},
    {IS("matrix.accumulate", "f16"), .with = {"precision=coopmat"},
     .changes = {WORD(backend.f16_accumulate, 1)}},
    {IS("matrix.conversions", "true"), .with = {"precision=coopmat"},
     .changes = {WORD(backend.conversions, 1)}},

    {IS("policy.parameters", "f32")},
    {IS("policy.parameters", "f16"), .error = "policy.parameters: f16 needs precision fp16"},
    {IS("policy.activations", "f16"), .error = "policy.activations: f16 needs precision fp16"},
    {IS("policy.activations", "f16"), .with = {"precision=fp16"}},
    {IS("policy.activations", "f32")},
    {IS("policy.matmul", "f32"), .with = {"precision=coopmat"},
     .error = "policy.matmul: f32 needs precision fp32 or fp16: matrices multiply f16"},
    {IS("policy.matmul", "f32"), .with = {"precision=fp16"},
     .changes = {SPEC(ROUNDED, F32_PRODUCTS)}},
    {IS("policy.matmul", "f32")},
    {IS("policy.matmul", "f16"), .with = {"precision=coopmat"}},
    {IS("policy.activation_gradients", "f32"), .with = {"precision=fp16"},
     .error = "policy.activation_gradients: f32 needs precision fp32"},
    {IS("policy.accumulators", "f16"),
     .error = "policy.accumulators: f16 needs precision fp16 or coopmat"},
    {IS("policy.accumulators", "f16"), .with = {"precision=fp16"},
     .changes = {SPEC(ROUNDED, ROUND_SUMS)}},
    {IS("policy.accumulators", "f16"), .with = {"precision=coopmat"},
     .changes = {WORD(backend.f16_accumulate, 1)}},
    {IS("policy.accumulators", "f16"), .with = {"precision=coopmat", "matrix.accumulate=f32"},
     .error = "policy.accumulators: f16 contradicts matrix.accumulate"},
    {IS("policy.accumulators", "f32"), .with = {"precision=coopmat", "matrix.accumulate=f16"},
     .error = "policy.accumulators: f32 contradicts matrix.accumulate"},
    {IS("policy.grid_gradients", "f16"),
     .changes = {WORD(constants.norm_interval, 1), WORD(backend.sums, VKN_SUMS_F16),
                 WORD(backend.f16_sums, true), WORD(special[SPEC_F16_SUMS], 1)}},
    {IS("policy.grid_gradients", "f16"), .with = {"gradient_sums=fixed"},
     .error = "policy.grid_gradients: f16 contradicts gradient_sums"},
    {IS("policy.grid_gradients", "f32"), .with = {"gradient_sums=f16"},
     .error = "policy.grid_gradients: f32 contradicts gradient_sums"},
    {IS("policy.parameters", "bf16"),
     .error = "policy.parameters: bf16 is possible for f32 results only"},
    {IS("policy.matmul", "bf16"), .error = "policy.matmul: bf16 is possible for f32 results only"},
    {IS("policy.grid_gradients", "bf16"),
     .error = "policy.grid_gradients: bf16 is possible for f32 results only"},
    {IS("policy.activations", "bf16"), .changes = {SPEC(ROUNDED, ROUND_ACTIVATIONS *ROUND_BF16)}},
    {IS("policy.activations", "bf16"), .with = {"precision=fp16"},
     .error = "policy.activations: bf16 needs precision fp32"},
    {IS("policy.activation_gradients", "bf16"),
     .changes = {SPEC(ROUNDED, ROUND_ACTIVATION_GRADIENTS *ROUND_BF16)}},
    {IS("policy.accumulators", "bf16"), .changes = {SPEC(ROUNDED, ROUND_SUMS *ROUND_BF16)}},
    {IS("policy.accumulators", "bf16"), .with = {"precision=coopmat"},
     .error = "policy.accumulators: bf16 needs precision fp32 or fp16"},
    {IS("policy.weight_gradients", "bf16"),
     .changes = {SPEC(ROUNDED, ROUND_WEIGHT_SUMS *ROUND_BF16)}},
    {IS("policy.compositing", "bf16"), .with = {"precision=coopmat"},
     .changes = {SPEC(ROUNDED, ROUND_COMPOSITING *ROUND_BF16)}},
    {IS("policy.master_parameters", "bf16"), .changes = {SPEC(ROUNDED, ROUND_MASTERS *ROUND_BF16)}},
    {IS("policy.moments", "bf16"), .changes = {SPEC(ROUNDED, ROUND_MOMENTS *ROUND_BF16)}},
    {IS("policy.weight_gradients", "f16"), .changes = {SPEC(ROUNDED, ROUND_WEIGHT_SUMS)}},
    {IS("policy.compositing", "f16"), .with = {"precision=coopmat"},
     .changes = {SPEC(ROUNDED, ROUND_COMPOSITING)}},
    {IS("policy.master_parameters", "f16"), .changes = {SPEC(ROUNDED, ROUND_MASTERS)}},
    {IS("policy.activation_gradients", "f16"), .with = {"precision=fp16"}},
    {IS("policy.weight_gradients", "f32"), .with = {"precision=fp16"}},
    {IS("policy.compositing", "f32")},
    {IS("policy.master_parameters", "f32")},
    {IS("policy.moments", "f32")},
    {IS("policy.moments", "f16"), .with = {"policy.master_parameters=f16"},
     .changes = {SPEC(ROUNDED, ROUND_MASTERS | ROUND_MOMENTS)}},

    {IS("batch.samples", "2050"),
     .changes = {WORD(constants.target_samples, 2050), WORD(constants.sample_capacity, 8200)}},
    {IS("batch.keep", "0.4"),
     .changes = {REAL(constants.keep_share, 0.4), REAL(constants.keep_least, 0.1), SPEC(KEEP, 1)}},
    {IS("batch.keep", "0.4"), .with = {"march.visibility=on"},
     .error = "batch.keep: 0.4, but march.visibility=on"},
    {IS("batch.chunk", "2048"), VANILLA,
     .changes = {WORD(constants.chunk_rows, 2048), WORD(constants.cells_per_chunk, 2048)}},
    /* The minimum is an eighth of a step's capacity. */
    {IS("batch.chunk", "64"), VANILLA,
     .changes = {WORD(constants.chunk_rows, 1024), WORD(constants.cells_per_chunk, 1024)}},
    {IS("batch.max_rays", "100"), .changes = {WORD(constants.ray_capacity, 100)}},
    {IS("batch.by_error", "0.25"),
     .changes = {SPEC(BY_ERROR, 1), REAL(constants.error_share, 0.25)}},
    {IS("batch.depth_share", "0.5"), .changes = {REAL(constants.depth_share, 0.5)}},
    {IS("batch.unbiased", "true"), .changes = {WORD(constants.error_unbiased, 1)}},

    {IS("march.sampling", "occupancy")},
    {IS("march.sampling", "uniform"), .with = {"batch.samples=2048"},
     .changes = {SPEC(SAMPLING, SAMPLING_UNIFORM), WORD(constants.ray_samples, 192),
                 WORD(constants.ray_capacity, 64), WORD(constants.sample_capacity, 12288)}},
    {IS("march.ray_samples", "100")},
    {IS("march.ray_samples", "100"), .with = {"march.sampling=uniform"},
     .changes = {WORD(constants.ray_samples, 100), WORD(constants.ray_capacity, 10485)}},
    {IS("march.sampling", "hierarchical"), .with = {"batch.samples=2048"},
     .changes = {SPEC(SAMPLING, SAMPLING_HIERARCHICAL), WORD(constants.ray_samples, 64),
                 WORD(constants.fine_samples, 128), WORD(constants.ray_capacity, 64),
                 WORD(constants.sample_capacity, 12288)}},
    {IS("march.coarse_samples", "100")},
    {IS("march.coarse_samples", "72"), .with = {"march.sampling=hierarchical"},
     .changes = {WORD(constants.ray_samples, 72), WORD(constants.ray_capacity, 5242)}},
    {IS("march.fine_samples", "100")},
    {IS("march.fine_samples", "136"), .with = {"march.sampling=hierarchical"},
     .changes = {WORD(constants.fine_samples, 136), WORD(constants.ray_capacity, 5242)}},
    {IS("march.fine_samples", "257"), .with = {"march.sampling=proposal"},
     .error = "march.fine_samples: 257, but a proposal can learn from 256"},
    {IS("march.spacing", "steps"), .with = {"march.sampling=uniform"}},
    {IS("march.spacing", "linear")},
    {IS("march.spacing", "linear"), .with = {"march.sampling=uniform"},
     .changes = {SPEC(SPACING, SPACING_LINEAR)}},
    {IS("march.spacing", "disparity"), .with = {"march.sampling=hierarchical"},
     .changes = {SPEC(SPACING, SPACING_DISPARITY)}},
    {IS("march.spacing", "log"), .with = {"march.sampling=proposal"},
     .changes = {SPEC(SPACING, SPACING_LOG)}},
    /* Levels of 256 entries with two features: 5 * 512 after 16 * 64 and 64 * 16 weights. */
    {IS("march.sampling", "proposal"),
     .with = {"batch.samples=2048", "proposal.log2_entries=8", "loss.distortion=0"},
     .changes = {SPEC(SAMPLING, SAMPLING_PROPOSAL), WORD(constants.ray_samples, 256),
                 WORD(constants.fine_samples, 48), WORD(constants.ray_capacity, 85),
                 WORD(constants.sample_capacity, 4096), PROPOSAL(2048, 2560),
                 WORD(constants.proposal_summed, 2048), WORD(constants.proposal_groups, 512)}},
    {IS("proposal.levels", "3"), .with = {"march.sampling=proposal", "proposal.log2_entries=8"},
     .changes = {PROPOSAL(2048, 1536)}},
    {IS("proposal.log2_entries", "9"), .with = {"march.sampling=proposal"},
     .changes = {PROPOSAL(2048, 5120)}},
    /* The second of two levels has 32 * 32 * 32 entries. */
    {IS("proposal.finest", "32"),
     .with = {"march.sampling=proposal", "proposal.levels=2", "proposal.log2_entries=16"},
     .changes = {PROPOSAL(2048, 8192 + 65536)}},
    {IS("proposal.width", "32"), .with = {"march.sampling=proposal", "proposal.log2_entries=8"},
     .changes = {PROPOSAL(1024, 2560), WORD(constants.proposal_summed, 1024)}},
    {IS("proposal.anneal_steps", "77"), .changes = {WORD(constants.anneal_steps, 77)}},
    {IS("proposal.interval", "3"), .changes = {WORD(constants.proposal_interval, 3)}},
    {IS("march.resolution", "64"),
     .changes = {SPEC(RESOLUTION, 64), REAL(constants.step_max, 1.0 / 64)}},
    {IS("march.occupancy_decay", "0.6"), .changes = {REAL(constants.occupancy_decay, 0.6)}},
    {IS("march.occupancy_threshold", "0.02"),
     .changes = {REAL(constants.occupancy_threshold, 0.02)}},
    {IS("march.cone_angle", "0.02"), .changes = {REAL(constants.cone_angle, 0.02)}},
    {IS("march.cone_angle", "0"), .with = {"scene.aabb_scale=4"},
     .changes = {REAL(constants.cone_angle, -1)}},
    {IS("march.cone_angle", "-1"), .with = {"scene.aabb_scale=4"},
     .changes = {REAL(constants.cone_angle, -1)}},
    {IS("march.steps_per_unit", "512"), .changes = {REAL(constants.step_min, 1.7320508f / 512)}},
    {IS("march.steps_per_unit", "64"), /* longer than a cell */
     .changes = {REAL(constants.step_min, 1.7320508f / 64),
                 REAL(constants.step_max, 1.7320508f / 64)}},
    {IS("march.early_stop", "0.003"), .changes = {REAL(constants.early_stop, 0.003)}},
    {IS("march.near_distance", "0.7"),
     .changes = {REAL(constants.near_distance, 0.7), REAL(constants.near_start, 0.7)}},
    {IS("march.near_start", "0.6"), .changes = {REAL(constants.near_start, 0.6)}},
    {IS("march.near_start", "0.01")},
    {IS("march.near_steps", "77"), .changes = {WORD(constants.near_steps, 77)}},
    {IS("march.far_distance", "1.5"), .changes = {REAL(constants.far_distance, 1.5)}},
    {IS("march.far_distance", "700"), .with = {"scene.contraction=cube"}}, /* ends at 512 anyway */
    {IS("march.far_distance", "300"), .with = {"scene.contraction=cube"},
     .changes = {REAL(constants.far_distance, 300)}},
    {IS("march.far_distance", "0.1"), .error = "march.far_distance: 0.1 is not beyond"},
    {IS("march.alpha_threshold", "0.004"),
     .changes = {REAL(constants.alpha_threshold, 0.004), SPEC(ALPHA_THRESHOLD, 1)}},
    {IS("march.alpha_threshold", "0.02"), .error = "march.alpha_threshold: 0.02 is above"},
    {IS("march.visibility", "on"), .changes = {SPEC(VISIBILITY, 1)}},
    {IS("march.visibility", "on"), VANILLA,
     .changes = {SPEC(VISIBILITY, 1), WORD(constants.kept_rows, 0)}},
    {IS("march.visibility", "on"), .with = {"model=vanilla", "mlp.activation_checkpointing=off"},
     .error = "mlp.activation_checkpointing: off needs the activations"},
    {IS("march.visibility", "off")},

    {IS("loss.kind", "huber")},
    {IS("loss.kind", "l2"), .changes = {SPEC(LOSS, VKN_LOSS_L2)}},
    {IS("loss.kind", "l1"), .changes = {SPEC(LOSS, VKN_LOSS_L1)}},
    {IS("loss.kind", "charbonnier"), .changes = {SPEC(LOSS, VKN_LOSS_CHARBONNIER)}},
    {IS("loss.near_density", "0.02"), .changes = {REAL(constants.loss_near, 0.02)}},
    {IS("loss.near_density", "-0.5"), .changes = {REAL(constants.loss_near, 0)}},
    {IS("loss.depth", "0.02"), .changes = {REAL(constants.loss_depth, 0.02), SPEC(DEPTH, 1)}},
    {IS("loss.depth", "-0.5")},
    {IS("loss.interlevel", "0.5"), .changes = {REAL(constants.loss_interlevel, 0.5)}},
    {IS("loss.robust", "off")},
    {IS("loss.robust", "on"), .changes = {SPEC(ROBUST, 1)}},
    {IS("loss.delta", "0.7"), .changes = {REAL(constants.loss_delta, 0.7)}},
    {IS("loss.distortion", "0.02"),
     .changes = {REAL(constants.loss_distortion, 0.02), SPEC(DISTORTION, DISTORTION_LINEAR)}},
    {IS("loss.distortion_curve", "linear"), .with = {"loss.distortion=0.02"}},
    {IS("loss.distortion_curve", "ladder"), .with = {"loss.distortion=0.02"},
     .changes = {SPEC(DISTORTION, DISTORTION_LADDER), REAL(constants.ladder_unit, 0.2),
                 REAL(constants.ladder_range, 4.596613576124592)}}, /* 5 * 1.4^(-1/4): to infinity
                                                                     */
    {IS("loss.distortion_curve", "ladder"),
     .with = {"march.near_distance=0.125", "march.far_distance=0.875"},
     .changes = {SPEC(DISTORTION, DISTORTION_LADDER), REAL(constants.loss_distortion, 0.003),
                 REAL(constants.ladder_unit, 0.25),
                 REAL(constants.ladder_range, 1.0154504409037983)}}, /* that - 5 * 3.8^(-1/4) */

    {IS("optimizer.kind", "adam")},
    {IS("optimizer.kind", "lion"),
     .changes = {SPEC(OPTIMIZER, VKN_OPTIMIZER_LION), REAL(constants.learning_rate, 0.003),
                 REAL(constants.final_rate, 0.003f / 100)}},
    {IS("optimizer.learning_rate", "0.003"),
     .changes = {REAL(constants.learning_rate, 0.003), REAL(constants.final_rate, 0.003f / 100)}},
    {IS("optimizer.beta1", "0.7"), .changes = {REAL(constants.beta1, 0.7)}},
    {IS("optimizer.beta2", "0.8"), .changes = {REAL(constants.beta2, 0.8)}},
    {IS("optimizer.epsilon", "1e-7"), .changes = {REAL(constants.epsilon, 1e-7)}},
    {IS("optimizer.moments", "f32")},
    {IS("optimizer.moments", "bf16"), .changes = {SPEC(BF16_MOMENTS, 1)}},
    {IS("optimizer.moments", "bf16"), .with = {"optimizer.kind=lion"},
     .error = "optimizer.moments: bf16 needs the two moments of optimizer.kind=adam"},
    {IS("optimizer.weight_decay", "0.004"), .changes = {REAL(constants.groups[0].decay, 0.004)}},
    {IS("optimizer.weight_decay", "0"), .changes = {REAL(constants.groups[0].decay, 0)}},
    {IS("optimizer.weight_decay", "-0.5"), .changes = {REAL(constants.groups[0].decay, 0)}},
    {IS("optimizer.warmup_steps", "7"), .changes = {WORD(constants.warmup_steps, 7)}},
    {IS("optimizer.schedule", "step")},
    {IS("optimizer.schedule", "step"), .with = {"optimizer.rates=RATES"},
     .changes = {WORD(constants.rate_kind, RATE_STEP), REAL(constants.learning_rate, 0.01),
                 REAL(constants.final_rate, 0.01f / 100), WORD(constants.warmup_steps, 100)}},
    {IS("optimizer.schedule", "exponential"),
     .changes = {WORD(constants.rate_kind, RATE_EXPONENTIAL)}},
    {IS("optimizer.schedule", "cosine"), .changes = {WORD(constants.rate_kind, RATE_COSINE)}},
    {IS("optimizer.schedule", "file"), .error = "optimizer.rates: empty"},
    {IS("optimizer.schedule", "file"), .with = {"optimizer.rates=RATES"}},
    {IS("optimizer.final_rate", "0.0003"), .changes = {REAL(constants.final_rate, 0.0003)}},
    {IS("optimizer.rates", "RATES"),
     .changes = {WORD(constants.rate_kind, RATE_POINTS), REAL(constants.learning_rate, 0.02),
                 REAL(constants.final_rate, 0.02f / 100), WORD(constants.warmup_steps, 1),
                 WORD(constants.rate_points, 2), REAL(constants.rates[0].value, 0.02),
                 WORD(constants.rates[1].step, 400), REAL(constants.rates[1].value, 0.001)}},
    {IS("optimizer.decay_factor", "0.6"), .changes = {REAL(constants.decay_factor, 0.6)}},
    {IS("optimizer.milestones", "0.15,0.25,0.35"),
     .changes = {REAL(constants.milestones[0], 0.15), REAL(constants.milestones[1], 0.25),
                 REAL(constants.milestones[2], 0.35)}},
    {IS("optimizer.decay_start", "123"), .changes = {WORD(constants.decay_start, 123)}},
    {IS("optimizer.decay_interval", "456"), .changes = {WORD(constants.decay_interval, 456)}},
    {IS("optimizer.ema_decay", "0.9"), .changes = {REAL(constants.average_decay, 0.9)}},
    {IS("optimizer.clip_norm", "2.5"),
     .changes = {WORD(constants.norm_interval, 1), REAL(constants.clip_norm, 2.5)}},

    {IS("loss_scale.kind", "static")},
    {IS("loss_scale.kind", "static"), .with = {"precision=fp16"},
     .changes = {WORD(constants.scale_kind, SCALE_STATIC), REAL(loss_scale, 1)}},
    {IS("loss_scale.kind", "dynamic"),
     .changes = {WORD(constants.scale_kind, SCALE_DYNAMIC), REAL(loss_scale, 65536)}},
    {IS("loss_scale.kind", "schedule"), .error = "loss_scale.schedule: empty"},
    {IS("loss_scale.kind", "schedule"), .with = {"loss_scale.schedule=POINTS"}},
    {IS("loss_scale.kind", "dynamic"), .with = {"loss_scale.schedule=POINTS"},
     .changes = {WORD(constants.scale_kind, SCALE_DYNAMIC), REAL(loss_scale, 65536)}},
    {IS("loss_scale.initial", "32"), .changes = {REAL(loss_scale, 32)}},
    {IS("loss_scale.minimum", "8"),
     .changes = {REAL(constants.scale_minimum, 8), REAL(loss_scale, 8)}},
    {IS("loss_scale.minimum", "8"), .with = {"loss_scale.kind=dynamic"},
     .changes = {REAL(constants.scale_minimum, 8)}},
    {IS("loss_scale.maximum", "0.5"),
     .changes = {REAL(constants.scale_maximum, 0.5), REAL(loss_scale, 0.5)}},
    {IS("loss_scale.maximum", "1024"), .with = {"precision=fp16"},
     .changes = {REAL(constants.scale_maximum, 1024), REAL(loss_scale, 1024)}},
    {IS("loss_scale.minimum", "1"), .with = {"loss_scale.schedule=POINTS"},
     .error = "config: loss_scale.schedule[1]: 0.25 is below loss_scale.minimum 1"},
    {IS("loss_scale.maximum", "1000"), .with = {"loss_scale.schedule=POINTS"},
     .error = "config: loss_scale.schedule[0]: 1024 is above loss_scale.maximum 1000"},
    {IS("loss_scale.growth", "3"), .changes = {REAL(constants.scale_growth, 3)}},
    {IS("loss_scale.backoff", "0.2"), .changes = {REAL(constants.scale_backoff, 0.2)}},
    {IS("loss_scale.interval", "55"), .changes = {WORD(constants.scale_interval, 55)}},
    {IS("loss_scale.underflow", "0.25"), .changes = {REAL(constants.scale_underflow, 0.25)}},
    {IS("loss_scale.hysteresis", "2"), .changes = {WORD(constants.scale_hysteresis, 2)}},
    {IS("loss_scale.max_backoffs", "8"), .changes = {WORD(constants.max_backoffs, 8)}},
    {IS("loss_scale.rate_cut_factor", "0.3"), .changes = {REAL(constants.rate_cut_factor, 0.3)}},
    {IS("loss_scale.schedule", "POINTS"),
     .changes = {WORD(constants.scale_kind, SCALE_SCHEDULE), REAL(loss_scale, 1024),
                 WORD(constants.scale_points, 2), REAL(constants.schedule[0].value, 1024),
                 WORD(constants.schedule[1].step, 500), REAL(constants.schedule[1].value, 0.25)}},

    {IS("parallel.mode", "synchronous")},
    {IS("parallel.mode", "average")}, /* several ranks: test_ranks */
    {IS("parallel.ranks_per_device", "3"),
     .changes = {WORD(constants.norm_interval, 1), WORD(constants.ranks, 3), WORD(buckets, 2)}},
    {IS("parallel.ranks_per_device", "3"), .with = {"parallel.mode=average"},
     .error = "parallel.ranks_per_device: several ranks per device"},
    {IS("parallel.communication_type", "f32")},
    {IS("parallel.communication_type", "f16"),
     .changes = {WORD(constants.norm_interval, 1), WORD(backend.f16_sums, true),
                 WORD(special[SPEC_F16_SUMS], true), WORD(constants.scale_kind, SCALE_DYNAMIC),
                 REAL(loss_scale, 65536)}},
    {IS("parallel.communication_type", "f16"), .with = {"parallel.mode=average"},
     .error = "parallel.communication_type: f16 is for gradients, but"},
    {IS("parallel.communication_type", "f16"), .with = {"deterministic=true"},
     .changes = {WORD(constants.norm_interval, 1), WORD(backend.f16_sums, true),
                 WORD(special[SPEC_F16_SUMS], true), SPEC(F16_SUM_OFFSET, 9856),
                 WORD(constants.scale_kind, SCALE_DYNAMIC), REAL(loss_scale, 65536)}},
    {IS("parallel.buckets", "1")}, /* several ranks: */
    {IS("parallel.buckets", "1"), .with = {"parallel.ranks_per_device=2"},
     .changes = {WORD(buckets, 1)}},
    {IS("parallel.buckets", "8"), .with = {"parallel.ranks_per_device=2", "grid.levels=5"},
     .changes = {WORD(buckets, 5)}},
    {IS("parallel.images", "all")},
    {IS("parallel.images", "share")}, /* several ranks: test_ranks */
    {IS("parallel.cells", "all")},
    {IS("parallel.cells", "share")}, /* several devices: test_ranks */
};

static const char points[] = "0 1024\n500 0.25\n", rates[] = "0 0.02\n400 1e-3\n";

/* Writes the same scene as a COLMAP capture too, and schedules. */
static void make_files(struct temporary *folder)
{
    make_scene(folder);
    temporary_text(folder, "POINTS", points);
    temporary_text(folder, "RATES", rates);
    temporary_text(folder, "cameras.txt", "1 PINHOLE 12 10 14 14 6 5\n");
    temporary_text(folder, "images.txt",
                   "1 1 0 0 0 0 0 4 1 z.png\n\n2 1 0 0 0 0 0 5 1 x.png\n\n"
                   "3 1 0 0 0 0 0 6 1 y.png\n\n");
    temporary_text(folder, "points3D.txt", "");
    temporary_picture(folder, "images/z.png", 12, 10, 1);
    temporary_picture(folder, "images/x.png", 12, 10, 2);
    temporary_picture(folder, "images/y.png", 12, 10, 3);
}

/* Returns the expected word as bits. */
static uint32_t expected_word(const struct change *change)
{
    float real = (float)change->value;
    uint32_t word = (uint32_t)change->value;
    if (change->real)
        memcpy(&word, &real, sizeof word);
    return word;
}

static const struct change *find_change(const struct row *row, size_t offset)
{
    for (size_t i = 0; i < MOST_CHANGES && row->changes[i].name; i++)
        if (row->changes[i].offset == offset)
            return &row->changes[i];
    return NULL;
}

/* The listed words get their expected values, all others stay. */
static void compare(const struct row *row, const struct outcome *before,
                    const struct outcome *after)
{
    uint32_t old[OUTCOME_WORDS], new[OUTCOME_WORDS];
    memcpy(old, before, sizeof old);
    memcpy(new, after, sizeof new);
    for (size_t i = 0; i < OUTCOME_WORDS; i++) {
        const struct change *change = find_change(row, 4 * i);
        float real;
        memcpy(&real, &new[i], sizeof real);
        if (!change && new[i] != old[i])
            fail_msg("%s=%s changes word %zu from 0x%08x to 0x%08x", row->key, row->value, i,
                     old[i], new[i]);
        if (change && new[i] != expected_word(change))
            fail_msg("%s=%s: %s becomes %.9g, not %.9g", row->key, row->value, change->name,
                     change->real ? (double)real : new[i], change->value);
        if (change && new[i] == old[i])
            fail_msg("%s=%s: %s is %.9g without the setting too", row->key, row->value,
                     change->name, change->value);
    }
}

static struct vkn_config begin_row(const struct row *row)
{
    struct vkn_config config = {0};
    for (size_t i = 0; i < BASE_COUNT(beginning); i++)
        set(&config, beginning[i]);
    for (size_t i = 0; i < MOST_WITH && row->with[i]; i++)
        set(&config, row->with[i]);
    return config;
}

static void check_row(const struct temporary *folder, const struct row *row)
{
    struct outcome before, after;
    struct vkn_config config = begin_row(row), changed = config;
    ok(vkn_config_set(&changed, "--set", row->key, row->value));
    if (row->error) {
        assert_int_equal(derive_in(folder, &changed, &after), VKN_BAD_INPUT);
        assert_error(row->error);
        return;
    }
    ok(derive_in(folder, &config, &before));
    ok(derive_in(folder, &changed, &after));
    compare(row, &before, &after);
}

/* POINTS and RATES are files of the folder. */
static void test_effects(void **state)
{
    struct step_tests *tests = *state;
    char *back = getcwd(NULL, 0);
    assert_non_null(back);
    assert_int_equal(chdir(tests->folder->path), 0);
    for (size_t i = 0; i < BASE_COUNT(rows); i++)
        if (!rows[i].test)
            check_row(tests->folder, &rows[i]);
    assert_int_equal(chdir(back), 0);
    free(back);
}

static bool has_row(const char *key, const char *value)
{
    for (size_t i = 0; i < BASE_COUNT(rows); i++)
        if (strcmp(rows[i].key, key) == 0 && (!value || strcmp(rows[i].value, value) == 0))
            return true;
    return false;
}

/* Every setting, and every choice of one, must have a row above. */
static void test_all_have_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_setting_count; i++) {
        const struct config_setting *setting = &config_settings[i];
        if (!has_row(setting->key, NULL))
            fail_msg("%s: has no row in the table", setting->key);
        for (size_t n = 1; setting->type == CONFIG_ENUM && setting->names[n]; n++)
            if (!has_row(setting->key, setting->names[n]))
                fail_msg("%s=%s: has no row in the table", setting->key, setting->names[n]);
    }
}

/* Every bit of the seed changes the rays and the weights. */
static void test_seed(void **state)
{
    struct step_tests *tests = *state;
    const struct row none = {.key = NULL};
    for (int bit = -1; bit < 64; bit++) {
        static struct outcome first, outcome;
        static float first_params[9216 + 640];
        float params[9216 + 640];
        struct vkn_config config = begin_row(&none);
        struct field_model model;
        config.seed = bit < 0 ? 0 : 1ull << bit;
        ok(derive_in(tests->folder, &config, &outcome));
        ok(field_model_create(&config, &model));
        assert_int_equal(model.param_count, BASE_COUNT(params));
        field_initialize(&config, &model, params);
        if (bit < 0) {
            first = outcome;
            memcpy(first_params, params, sizeof params);
        } else if (outcome.constants.seed == first.constants.seed || params[0] == first_params[0] ||
                   params[9216] == first_params[9216]) {
            fail_msg("bit %d of the seed changes nothing", bit);
        }
    }
}

/* Values are uniform in [-bound, bound): they reach its ends, their mean is near 0, and their mean
 * square is bound^2 / 3. */
static void assert_uniform(const float *values, size_t count, double bound)
{
    double largest = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)values[i]));
        sum += (double)values[i] / bound;
        squares += (double)values[i] * (double)values[i] / (bound * bound);
    }
    double n = (double)count;
    if (largest > bound * (1 + 1e-6) || largest < 0.98 * bound || fabs(sum) > 4 * sqrt(n / 3) ||
        fabs(squares / n - 1.0 / 3) > 4 * 0.3 / sqrt(n))
        fail_msg("up to %g of %g, mean %g, mean square %g", largest, bound, sum / n, squares / n);
}

/* Initial values of the grid stay within grid.initial, those of a layer within sqrt(6 / (inputs +
 * outputs)) without padding (Glorot and Bengio 2010); padding is zero. */
static void test_initial(void **state)
{
    (void)state;
    const struct vkn_config config = {
        .seed = 5,
        .grid = {.levels = 3,
                 .features = 2,
                 .log2_entries = 12,
                 .coarsest = 8,
                 .finest = 32,
                 .initial = 0.02f},
        .mlp = {.density_width = 64,
                .density_layers = 1,
                .geometry = 16,
                .color_width = 32,
                .color_layers = 1,
                .sh_degree = 4},
    };
    struct field_model model;
    ok(field_model_create(&config, &model));
    float *params = base_alloc(model.param_count, sizeof *params);
    field_initialize(&config, &model, params);

    /* 6 features of 16 inputs -> 64 -> 16; 16 + 16 -> 32 -> 3 of 16 outputs */
    assert_int_equal(model.mlp_params, 16 * 64 + 64 * 16 + 32 * 32 + 32 * 16);
    assert_uniform(params, 6 * 64, sqrt(6.0 / (6 + 64)));
    for (size_t i = 6 * 64; i < 16 * 64; i++)
        assert_true(params[i] == 0);
    assert_uniform(params + 1024, 1024, sqrt(6.0 / (64 + 16)));
    assert_uniform(params + 2048, 1024, sqrt(6.0 / (32 + 32)));
    float last[32 * 3];
    for (size_t i = 0; i < 32; i++)
        for (size_t o = 0; o < 16; o++) {
            float value = params[3072 + 16 * i + o];
            if (o < 3)
                last[3 * i + o] = value;
            else
                assert_true(value == 0);
        }
    assert_uniform(last, 96, sqrt(6.0 / (32 + 3)));
    assert_uniform(params + model.mlp_params, model.param_count - model.mlp_params, 0.02);
    free(params);
}

/* ---- defaults ------------------------------------------------------------------------------ */

/* Defaults of a bounded scene on a CPU device and on a GPU, as in config.json: instant-ngp's. */
static const struct fallback {
    const char *key, *cpu, *gpu; /* gpu NULL: the same */
} standards[] = {
    {"model", "ngp", NULL},
    {"precision", "fp32", NULL}, /* before the device is tested, see test_backend */
    {"gradient_sums", "default", NULL},
    {"background", "random", NULL},
    {"seed", "0", NULL},
    {"deterministic", "false", NULL},
    {"steps", "20000", NULL},
    {"seconds", "0", NULL},
    {"eval_every", "null", NULL},
    {"save_every", "0", NULL},
    {"save_seconds", "null", NULL},
    {"keep", "null", NULL},
    {"eval_views", "4", NULL},
    {"log.tensorboard", "on", NULL},
    {"scene.format", "transforms", NULL},
    {"scene.test_views", "files", NULL},
    {"scene.downscale", "1", NULL},
    {"scene.appearance", "off", NULL},
    {"scene.sky", "off", NULL},
    {"scene.scale", "0.33", NULL},
    {"scene.offset", "[0.5,0.5,0.5]", NULL},
    {"scene.aabb_scale", "1", NULL},
    {"scene.fixed_transform", "true", NULL},
    {"scene.unit_length", "null", NULL},
    {"scene.contraction", "none", NULL},
    {"scene.refine", "off", NULL},
    {"scene.image_budget", "null", NULL},
    {"scene.host_budget", "null", NULL},
    {"refine.initial_rate", "0.005", NULL},
    {"refine.final_rate", "0.0005", NULL},
    {"refine.start", "0.05", NULL},
    {"refine.limit", "0.2", NULL},
    {"refine.detail", "2", NULL},
    {"appearance.initial_rate", "0.4", NULL},
    {"appearance.final_rate", "0.005", NULL},
    {"progressive.enabled", "false", NULL},
    {"progressive.start_downscale", "4", NULL},
    {"progressive.milestones", "[0.1,0.25,0.5]", NULL},
    {"field.position", "hash", NULL},
    {"field.direction", "harmonics", NULL},
    {"field.activation", "relu", NULL},
    {"grid.levels", "16", NULL},
    {"grid.features", "2", NULL},
    {"grid.log2_entries", "15", "19"},
    {"grid.coarsest", "16", NULL},
    {"grid.finest", "512", "2048"},
    {"grid.initial", "0.0001", NULL},
    {"grid.decay", "0", NULL},
    {"mlp.density_width", "32", "64"},
    {"mlp.density_layers", "1", NULL},
    {"mlp.geometry", "16", NULL},
    {"mlp.color_width", "32", "64"},
    {"mlp.color_layers", "2", NULL},
    {"mlp.sh_degree", "4", NULL},
    {"mlp.position_octaves", "10", NULL},
    {"mlp.direction_octaves", "4", NULL},
    {"mlp.skip_layer", "6", NULL},
    {"mlp.density_activation", "exp", NULL},
    {"mlp.activation_checkpointing", "auto", NULL},
    {"dynamic.canonical", "ngp", NULL},
    {"dynamic.width", "64", NULL},
    {"dynamic.layers", "4", NULL},
    {"dynamic.position_octaves", "2", NULL},
    {"dynamic.time_octaves", "2", NULL},
    {"dynamic.learning_rate_factor", "0.3", NULL},
    {"dynamic.curriculum", "0.5", NULL},
    {"dynamic.time_bins", "1", NULL},
    {"dynamic.time_features", "off", NULL},
    {"glsl.source", "null", NULL},
    {"matrix.shape", "default", NULL},
    {"matrix.accumulate", "default", NULL},
    {"matrix.conversions", "false", NULL},
    {"policy.parameters", "default", NULL},
    {"policy.activations", "default", NULL},
    {"policy.matmul", "default", NULL},
    {"policy.activation_gradients", "default", NULL},
    {"policy.accumulators", "default", NULL},
    {"policy.grid_gradients", "default", NULL},
    {"policy.weight_gradients", "f32", NULL},
    {"policy.compositing", "f32", NULL},
    {"policy.master_parameters", "f32", NULL},
    {"policy.moments", "f32", NULL},
    {"batch.samples", "16384", "262144"},
    {"batch.keep", "1", NULL},
    {"batch.chunk", "4096", "65536"},
    {"batch.max_rays", "16384", "131072"},
    {"batch.depth_share", "0.1", NULL},
    {"batch.by_error", "0", NULL},
    {"batch.unbiased", "false", NULL},
    {"march.sampling", "occupancy", NULL},
    {"march.ray_samples", "192", NULL},
    {"march.coarse_samples", "64", NULL},
    {"march.fine_samples", "128", NULL},
    {"march.spacing", "steps", NULL},
    {"march.resolution", "64", "128"},
    {"march.occupancy_decay", "0.95", NULL},
    {"march.occupancy_threshold", "0.01", NULL},
    {"march.cone_angle", "0", NULL},
    {"march.steps_per_unit", "256", "1024"},
    {"march.early_stop", "0.0001", NULL},
    {"march.near_distance", "0.1", NULL},
    {"march.near_start", "0", NULL},
    {"march.near_steps", "1000", NULL},
    {"march.far_distance", "0", NULL},
    {"march.alpha_threshold", "0", NULL},
    {"march.visibility", "off", NULL},
    {"proposal.levels", "5", NULL},
    {"proposal.log2_entries", "14", "17"},
    {"proposal.finest", "128", NULL},
    {"proposal.width", "16", "64"},
    {"proposal.anneal_steps", "1000", NULL},
    {"proposal.interval", "5", NULL},
    {"loss.kind", "huber", NULL},
    {"loss.delta", "0.1", NULL},
    {"loss.distortion_curve", "ladder", NULL},
    {"loss.distortion", "0.01", NULL},
    {"loss.depth", "0", NULL},
    {"loss.near_density", "0.003", NULL},
    {"loss.interlevel", "1", NULL},
    {"loss.robust", "off", NULL},
    {"optimizer.kind", "adam", NULL},
    {"optimizer.learning_rate", "0.01", NULL},
    {"optimizer.beta1", "0.9", NULL},
    {"optimizer.beta2", "0.99", NULL},
    {"optimizer.epsilon", "1e-15", NULL},
    {"optimizer.moments", "f32", NULL},
    {"optimizer.weight_decay", "1e-06", NULL},
    {"optimizer.warmup_steps", "100", NULL},
    {"optimizer.schedule", "step", NULL},
    {"optimizer.final_rate", "0.0001", NULL},
    {"optimizer.rates", "[]", NULL},
    {"optimizer.decay_factor", "0.33", NULL},
    {"optimizer.milestones", "[0.5,0.75,0.9]", NULL},
    {"optimizer.decay_start", "20000", NULL},
    {"optimizer.decay_interval", "10000", NULL},
    {"optimizer.ema_decay", "0.95", NULL},
    {"optimizer.clip_norm", "0", NULL},
    {"loss_scale.kind", "static", NULL},
    {"loss_scale.initial", "1", NULL},
    {"loss_scale.minimum", "0", NULL},
    {"loss_scale.maximum", "0", NULL},
    {"loss_scale.growth", "2", NULL},
    {"loss_scale.backoff", "0.5", NULL},
    {"loss_scale.interval", "2000", NULL},
    {"loss_scale.underflow", "0.01", NULL},
    {"loss_scale.hysteresis", "1", NULL},
    {"loss_scale.max_backoffs", "12", NULL},
    {"loss_scale.rate_cut_factor", "0.5", NULL},
    {"loss_scale.schedule", "[]", NULL},
    {"parallel.mode", "synchronous", NULL},
    {"parallel.ranks_per_device", "1", NULL},
    {"parallel.communication_type", "f32", NULL},
    {"parallel.buckets", "1", "4"},
    {"parallel.images", "all", NULL},
    {"parallel.cells", "share", "all"},
};

/* Defaults that depend on the configuration or the scene. */
static const struct variant {
    const char *with; /* "key=value key=value" or NULL */
    uint32_t aabb_scale;
    float near; /* distance of the nearest content; 0: unknown */
    const char *key, *cpu, *gpu;
} variants[] = {
    {NULL, 2, 0, "grid.finest", "1024", "4096"},
    {NULL, 128, 0, "grid.finest", "65536", "262144"},
    {NULL, 2, 0, "march.cone_angle", "0.015625", "0.00390625"},
    {"scene.contraction=cube", 1, 0, "grid.finest", "1024", "4096"},
    {"scene.contraction=cube", 1, 0, "march.cone_angle", "0.015625", "0.00390625"},
    {"scene.contraction=cube", 4, 0, "grid.finest", "4096", "16384"},
    {"scene.contraction=none", 1, 0, "march.cone_angle", "0", NULL},
    {"march.alpha_threshold=0.004", 1, 0, "march.visibility", "off", NULL},
    {NULL, 2, 0, "march.sampling", "proposal", NULL},
    {"scene.contraction=cube", 1, 0, "march.sampling", "proposal", NULL},
    {"model=vanilla", 2, 0, "march.sampling", "occupancy", NULL},
    {"model=dynamic", 2, 0, "march.sampling", "occupancy", NULL},
    {"march.sampling=occupancy", 2, 0, "march.sampling", "occupancy", NULL},
    {"loss.distortion_curve=linear", 1, 0, "loss.distortion", "0", NULL},
    {"march.sampling=proposal loss.distortion_curve=linear", 1, 0, "loss.distortion", "0.002",
     NULL},
    {"loss.distortion=0.02", 1, 0, "loss.distortion_curve", "linear", NULL},
    {"loss.distortion=0", 1, 0, "loss.distortion_curve", "linear", NULL},
    {"march.sampling=proposal loss.distortion=0", 1, 0, "loss.distortion", "0", NULL},
    {"march.sampling=hierarchical", 1, 0, "march.coarse_samples", "64", NULL},
    {"march.sampling=hierarchical", 1, 0, "march.fine_samples", "128", NULL},
    {"march.sampling=proposal", 1, 0, "march.coarse_samples", "64", "256"},
    {"march.sampling=proposal", 1, 0, "march.fine_samples", "24", "48"},
    {"scene.contraction=cube", 1, 0, "proposal.finest", "256", NULL},
    {"march.sampling=uniform march.alpha_threshold=0.004", 1, 0, "march.visibility", "on", NULL},
    {"march.sampling=uniform march.alpha_threshold=0.004 batch.keep=0.5", 1, 0, "march.visibility",
     "off", NULL},
    {"model=vanilla", 1, 0, "mlp.density_width", "128", "256"},
    {"model=vanilla", 1, 0, "mlp.density_layers", "8", NULL},
    {"model=vanilla", 1, 0, "mlp.geometry", "128", "256"},
    {"model=vanilla", 1, 0, "mlp.color_width", "64", "128"},
    {"model=vanilla", 1, 0, "mlp.color_layers", "1", NULL},
    {"model=vanilla", 1, 0, "mlp.density_activation", "softplus", NULL},
    {"model=vanilla", 1, 0, "batch.samples", "1024", "65536"},
    {"model=vanilla", 1, 0, "march.steps_per_unit", "80", "1024"},
    {"model=vanilla", 1, 0, "march.resolution", "32", "128"},
    {"model=vanilla", 1, 0, "optimizer.learning_rate", "0.004", "0.001"},
    {"model=dynamic", 1, 0, "mlp.density_width", "32", "64"},
    {"model=dynamic dynamic.canonical=vanilla", 1, 0, "mlp.density_width", "128", "256"},
    {"model=dynamic dynamic.canonical=layered", 1, 0, "mlp.geometry", "32", NULL},
    {"model=dynamic dynamic.canonical=layered field.position=frequencies", 1, 0, "mlp.geometry",
     "128", "256"},
    {"model=vanilla dynamic.canonical=ngp", 1, 0, "mlp.density_width", "128", "256"},
    {"dynamic.canonical=vanilla", 1, 0, "mlp.density_width", "32", "64"},
    {"model=dynamic dynamic.canonical=vanilla", 1, 0, "mlp.position_octaves", "5", NULL},
    {"model=dynamic", 1, 0, "mlp.density_activation", "softplus", NULL},
    {"model=dynamic", 1, 0, "batch.samples", "4096", "262144"},
    {"model=dynamic dynamic.canonical=vanilla", 1, 0, "batch.samples", "1024", "65536"},
    {"model=dynamic", 1, 0, "march.steps_per_unit", "80", "1024"},
    {"model=dynamic", 1, 0, "march.resolution", "32", "128"},
    /* Other encodings select layers, whose defaults are ngp's or, with frequencies, vanilla's. */
    {"model=vanilla", 1, 0, "field.position", "frequencies", NULL},
    {"model=vanilla", 1, 0, "field.direction", "frequencies", NULL},
    {"field.position=frequencies", 1, 0, "model", "layered", NULL},
    {"field.direction=none", 1, 0, "model", "layered", NULL},
    {"field.activation=tanh", 1, 0, "model", "layered", NULL},
    {"field.position=hash", 1, 0, "model", "ngp", NULL},
    {"field.position=frequencies", 1, 0, "field.direction", "frequencies", NULL},
    {"field.position=frequencies", 1, 0, "mlp.density_width", "128", "256"},
    {"field.position=identity", 1, 0, "mlp.density_activation", "softplus", NULL},
    {"field.position=frequencies", 1, 0, "optimizer.learning_rate", "0.004", "0.001"},
    {"field.activation=tanh", 1, 0, "mlp.density_width", "32", "64"},
    {"field.activation=tanh", 1, 0, "mlp.density_activation", "exp", NULL},
    {"field.activation=tanh", 1, 0, "mlp.geometry", "32", NULL},
    {"field.activation=tanh", 1, 0, "batch.samples", "4096", "262144"},
    {"field.activation=tanh", 1, 0, "march.steps_per_unit", "256", "1024"},
    {"model=dynamic dynamic.canonical=layered", 1, 0, "march.steps_per_unit", "80", "1024"},
    {"seconds=60", 1, 0, "steps", "null", NULL},
    {"optimizer.kind=lion model=vanilla", 1, 0, "optimizer.learning_rate", "0.0012", "0.0003"},
    {"optimizer.kind=lion optimizer.rates=RATES", 1, 0, "optimizer.learning_rate", "0.02", NULL},
    {"seconds=60", 1, 0, "optimizer.warmup_steps", "100", NULL},
    /* a twentieth of short runs */
    {"steps=1", 1, 0, "optimizer.warmup_steps", "1", NULL},
    {"steps=60", 1, 0, "optimizer.warmup_steps", "4", NULL},
    {"steps=1000", 1, 0, "optimizer.warmup_steps", "51", NULL},
    {"steps=1999", 1, 0, "optimizer.warmup_steps", "100", NULL},
    {"steps=2000", 1, 0, "optimizer.warmup_steps", "100", NULL},
    {"steps=100000", 1, 0, "optimizer.warmup_steps", "100", NULL},
    /* short runs, also by seconds, lower the rate late */
    {"steps=1999", 1, 0, "optimizer.milestones", "[0.8,0.9,0.96]", NULL},
    {"steps=2000", 1, 0, "optimizer.milestones", "[0.5,0.75,0.9]", NULL},
    {"seconds=60", 1, 0, "optimizer.milestones", "[0.8,0.9,0.96]", NULL},
    {"steps=20000 seconds=60", 1, 0, "optimizer.milestones", "[0.8,0.9,0.96]", NULL},
    {"steps=60 optimizer.milestones=0.1,0.2,0.3", 1, 0, "optimizer.milestones", "[0.1,0.2,0.3]",
     NULL},
    /* half of the nearest content's distance, if less than instant-ngp's */
    {NULL, 1, 5, "march.near_distance", "0.1", NULL},
    {NULL, 1, 0.25f, "march.near_distance", "0.1", NULL},
    {NULL, 1, 0.125f, "march.near_distance", "0.0625", NULL},
    {NULL, 1, 1e-6f, "march.near_distance", "0.001", NULL},
    {"precision=fp32", 1, 0, "loss_scale.kind", "static", NULL},
    {"precision=fp16", 1, 0, "loss_scale.kind", "dynamic", NULL},
    {"precision=fp16", 1, 0, "loss_scale.initial", "65536", NULL},
    {"precision=coopmat", 1, 0, "loss_scale.kind", "dynamic", NULL},
    {"precision=coopmat", 1, 0, "loss_scale.initial", "65536", NULL},
    {"loss_scale.kind=dynamic", 1, 0, "loss_scale.initial", "65536", NULL},
    {"loss_scale.schedule=POINTS", 1, 0, "loss_scale.kind", "schedule", NULL},
    {"loss_scale.schedule=POINTS", 1, 0, "loss_scale.initial", "1024", NULL},
    {"optimizer.rates=RATES", 1, 0, "optimizer.schedule", "file", NULL},
    {"optimizer.rates=RATES", 1, 0, "optimizer.learning_rate", "0.02", NULL},
    {"optimizer.rates=RATES", 1, 0, "optimizer.warmup_steps", "1", NULL},
    {"optimizer.rates=RATES", 1, 0, "optimizer.rates", "[[0,0.02],[400,0.001]]", NULL},
    {"optimizer.learning_rate=0.5", 1, 0, "optimizer.final_rate", "0.005", NULL},
    {"eval_every=100x2", 1, 0, "eval_every", "100x2", NULL},
    {"eval_every=5,7", 1, 0, "eval_every", "[5,7]", NULL},
};

/* Checks a setting of the effective configuration. */
static void assert_effective(const cJSON *json, const char *key, const char *expected,
                             const char *where)
{
    char group[64];
    const char *dot = strchr(key, '.');
    snprintf(group, sizeof group, "%.*s", dot ? (int)(dot - key) : 0, key);
    if (dot)
        json = cJSON_GetObjectItemCaseSensitive(json, group);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, dot ? dot + 1 : key);
    assert_non_null(item);
    char *text = cJSON_IsString(item) ? NULL : cJSON_PrintUnformatted(item);
    if (strcmp(text ? text : item->valuestring, expected) != 0)
        fail_msg("%s on a %s: %s, not %s", key, where, text ? text : item->valuestring, expected);
    cJSON_free(text);
}

/* Returns the effective configuration on a type of device; the caller deletes it. */
static cJSON *effective(struct vkn_config config, uint32_t aabb_scale, float near,
                        enum gpu_device_type type)
{
    const struct vkn_scene scene = {.format = VKN_SCENE_TRANSFORMS,
                                    .downscale = 1,
                                    .scale = 0.33,
                                    .offset = {0.5f, 0.5f, 0.5f},
                                    .aabb_scale = aabb_scale,
                                    .near = near};
    const struct gpu_capabilities device = make_device(type);
    ok(setup_resolve_config(&config, &scene, &device));
    char *text = vkn_config_write_json(&config);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    free(text);
    return json;
}

static const enum gpu_device_type types[] = {GPU_CPU, GPU_DISCRETE, GPU_INTEGRATED, GPU_VIRTUAL,
                                             GPU_OTHER};

static void test_defaults(void **state)
{
    (void)state;
    for (size_t n = 0; n < BASE_COUNT(types); n++) {
        cJSON *json = effective((struct vkn_config){0}, 1, 0, types[n]);
        for (size_t i = 0; i < BASE_COUNT(standards); i++)
            assert_effective(json, standards[i].key,
                             types[n] != GPU_CPU && standards[i].gpu ? standards[i].gpu
                                                                     : standards[i].cpu,
                             gpu_device_type_names[types[n]]);
        cJSON_Delete(json);
    }
    assert_int_equal(BASE_COUNT(standards), config_setting_count);
    for (size_t i = 0; i < config_setting_count; i++)
        assert_string_equal(standards[i].key, config_settings[i].key);
}

/* POINTS and RATES are files of the folder, as above. */
static void test_default_variants(void **state)
{
    struct step_tests *tests = *state;
    char *back = getcwd(NULL, 0);
    assert_int_equal(chdir(tests->folder->path), 0);
    for (size_t i = 0; i < BASE_COUNT(variants); i++) {
        const struct variant *v = &variants[i];
        struct vkn_config config = {0};
        char with[96], *next = NULL;
        snprintf(with, sizeof with, "%s", v->with ? v->with : "");
        for (char *one = strtok_r(with, " ", &next); one; one = strtok_r(NULL, " ", &next))
            set(&config, one);
        for (size_t n = 0; n < BASE_COUNT(types); n++) {
            cJSON *json = effective(config, v->aabb_scale, v->near, types[n]);
            assert_effective(json, v->key, types[n] != GPU_CPU && v->gpu ? v->gpu : v->cpu,
                             gpu_device_type_names[types[n]]);
            cJSON_Delete(json);
        }
    }
    assert_int_equal(chdir(back), 0);
    free(back);
}

/* Defaults that follow from the cameras. The finest level has up to 2.5 cells per pixel, on CPU
 * devices 1.25; the finest wave has 1 to 2 pixels, on CPU devices 2 to 4; in scenes with
 * surroundings rays begin at half of the cameras' distance or at known content, whichever is
 * nearer. One of two views is twice as far away, with twice the focal length. */
static void test_defaults_by_cameras(void **state)
{
    (void)state;
    static const struct {
        float focal;
        uint32_t aabb_scale, finest[2], octaves[2]; /* on GPUs, on CPU devices */
        float near, near_start;
    } cases[] = {
        {138.9f, 1, {256, 128}, {7, 6}, 0, -1},       {138.9f, 4, {1024, 512}, {9, 8}, 0, 1},
        {277.8f, 1, {512, 256}, {8, 7}, 0.5f, -1},    {1111.1f, 1, {2048, 512}, {10, 9}, 0, -1},
        {2222.2f, 1, {2048, 512}, {10, 10}, 0, -1},   {1e-3f, 1, {16, 16}, {4, 4}, 0, -1},
        {277.8f, 2, {1024, 512}, {9, 8}, 0.5f, 0.5f},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct scene_camera cameras[] = {
            {.focal_x = cases[i].focal, .pose = {[3] = 0.5f + 1.333f, [7] = 0.5f, [11] = 0.5f}},
            {.focal_x = 2 * cases[i].focal,
             .pose = {[3] = 0.5f, [7] = 0.5f - 2 * 1.333f, [11] = 0.5f}},
        };
        const struct vkn_scene scene = {
            .downscale = 1,
            .scale = 1,
            .aabb_scale = cases[i].aabb_scale,
            .near = cases[i].near,
            .splits[SCENE_TRAIN] = {.cameras = cameras, .camera_count = BASE_COUNT(cameras)},
        };
        for (size_t n = 0; n < BASE_COUNT(types); n++) {
            const struct gpu_capabilities device = make_device(types[n]);
            struct vkn_config config = {0}, vanilla = {.model = VKN_MODEL_VANILLA};
            bool is_cpu = types[n] == GPU_CPU;
            ok(setup_resolve_config(&config, &scene, &device));
            ok(setup_resolve_config(&vanilla, &scene, &device));
            assert_int_equal(config.grid.finest, cases[i].finest[is_cpu]);
            assert_int_equal(vanilla.mlp.position_octaves, cases[i].octaves[is_cpu]);
            assert_float_equal(config.march.near_start, cases[i].near_start, 1e-3);
        }
    }
}

/* With few training views, colours depend less on the direction, and the weights of losses differ.
 */
static void test_defaults_by_views(void **state)
{
    (void)state;
    static const struct {
        size_t views;
        uint32_t sh_degree;
        float distortion, near_density;
    } cases[] = {
        {0, 4, 0.01f, 0.003f},
        {1, 2, 0.003f, 0.03f},
        {9, 2, 0.003f, 0.03f},
        {10, 4, 0.01f, 0.003f},
    };
    struct scene_camera cameras[10];
    for (size_t i = 0; i < BASE_COUNT(cameras); i++)
        cameras[i] = (struct scene_camera){.focal_x = 138.9f, .pose = {[3] = 1.8f}};
    const struct gpu_capabilities device = make_device(GPU_DISCRETE);
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        const struct vkn_scene scene = {
            .downscale = 1,
            .scale = 1,
            .aabb_scale = 1,
            .splits[SCENE_TRAIN] = {.cameras = cameras, .camera_count = cases[i].views},
        };
        struct vkn_config config = {0};
        ok(setup_resolve_config(&config, &scene, &device));
        assert_int_equal(config.mlp.sh_degree, cases[i].sh_degree);
        assert_true(config.loss.distortion == cases[i].distortion);
        assert_float_equal(config.loss.near_density, cases[i].near_density, 1e-8);
    }
}

/* The default in --help begins with the GPU's and names a CPU's: "262144, CPU 16384". A default
 * that is no number or list is described in words. */
static void assert_help(const char *help, const struct fallback *fallback)
{
    const char *gpu = fallback->gpu ? fallback->gpu : fallback->cpu, *cpu = strstr(help, "CPU ");
    char *end = NULL;
    double stated = strtod(help, &end);
    bool list = *gpu == '[', always = *end != '/' && strncmp(end, " if", 3) != 0;
    if (list && end != help && strncmp(help, gpu + 1, strlen(gpu) - 2) != 0)
        fail_msg("%s: help says %s, not %s", fallback->key, help, gpu);
    if (!list && end != help && always && stated != strtod(gpu, NULL))
        fail_msg("%s: help says %s, not %s", fallback->key, help, gpu);
    if (fallback->gpu && (!cpu || strtod(cpu + 4, NULL) != strtod(fallback->cpu, NULL)))
        fail_msg("%s: help says %s, not CPU %s", fallback->key, help, fallback->cpu);
}

static void test_help_tells_defaults(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(standards); i++)
        assert_help(config_default_text(config_find(standards[i].key)), &standards[i]);
}

/* Errors that depend on the whole configuration are found once it is complete. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *settings[3], *error;
    } cases[] = {
        {{"march.resolution=48"}, "march.resolution: 48 is not a power of two from 16 to 512"},
        {{"progressive.start_downscale=6"}, "progressive.start_downscale: 6 is neither 2, 4 nor 8"},
        {{"progressive.enabled=true", "deterministic=true", "seconds=5"},
         "progressive.enabled: in a deterministic run the reduction depends on"},
        {{"loss_scale.kind=schedule"}, "loss_scale.schedule: empty"},
        {{"loss_scale.minimum=8", "loss_scale.maximum=4"},
         "config: loss_scale.minimum: 8 is above loss_scale.maximum 4"},
        {{"loss_scale.minimum=8", "loss_scale.initial=7.5"},
         "config: loss_scale.initial: 7.5 is below loss_scale.minimum 8"},
        {{"precision=fp16", "loss_scale.maximum=0.1", "loss_scale.initial=65536"},
         "config: loss_scale.initial: 65536 is above loss_scale.maximum 0.1"},
        {{"optimizer.schedule=file"}, "optimizer.rates: empty, but optimizer.schedule is file"},
        {{"optimizer.schedule=cosine", "deterministic=true", "seconds=5"},
         "optimizer.schedule: in a deterministic run the learning rate depends on"},
        {{"optimizer.schedule=exponential", "deterministic=true", "seconds=5"},
         "optimizer.schedule: in a deterministic run the learning rate depends on"},
        {{"scene.contraction=cube", "march.cone_angle=-1"}, "needs growing steps"},
        {{"scene.refine=lenses", "parallel.mode=average"},
         "config: scene.refine: parallel.mode=average does not average cameras"},
        {{"scene.appearance=full", "parallel.mode=average"},
         "config: scene.appearance: parallel.mode=average does not estimate it"},
        {{"scene.sky=on", "parallel.mode=average"},
         "config: scene.sky: parallel.mode=average does not average skies"},
    };
    const struct gpu_capabilities device = make_device(GPU_DISCRETE);
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_config config = {0};
        for (size_t n = 0; n < 3 && cases[i].settings[n]; n++)
            set(&config, cases[i].settings[n]);
        assert_int_equal(setup_resolve_config(&config, &scene, &device), VKN_BAD_INPUT);
        assert_error(cases[i].error);
    }
}

static int setup(void **state)
{
    static struct step_tests tests;
    void *folder;
    if (temporary_setup(&folder) != 0)
        return -1;
    tests.folder = folder;
    make_files(folder);
    *state = &tests;
    return 0;
}

static int teardown(void **state)
{
    struct step_tests *tests = *state;
    void *folder = tests->folder;
    return temporary_teardown(&folder);
}

/* Shaders that store f16 know whether the device flushes subnormal numbers. */
static void test_flushing_device(void **state)
{
    (void)state;
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    for (int flushes = 0; flushes < 2; flushes++)
        for (int precision = VKN_PRECISION_FP32; precision <= VKN_PRECISION_FP16; precision++) {
            struct gpu_capabilities device = make_device(GPU_DISCRETE);
            struct vkn_config config = {.precision = (enum vkn_precision)precision};
            struct setup made;
            device.f16_subnormals = !flushes;
            ok(setup_resolve_config(&config, &scene, &device));
            ok(setup_create(&config, &device, &made));
            assert_int_equal(made.specialization.values[SPEC_ROUNDED],
                             flushes && precision == VKN_PRECISION_FP16 ? F16_NO_SUBNORMALS : 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_all_have_rows),
        cmocka_unit_test(test_initial),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_default_variants),
        cmocka_unit_test(test_defaults_by_cameras),
        cmocka_unit_test(test_defaults_by_views),
        cmocka_unit_test(test_help_tells_defaults),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_flushing_device),
    };
    return cmocka_run_group_tests_name("settings", tests, setup, teardown);
}
