/* Adds a kind of field that vknerf lacks, a dense voxel grid without an MLP, and trains it with the
 * unchanged step, renderer and evaluation. The kind consists of this file and its shaders. */
#include "evaluation.h"

#include "gpu/shaders.h"

#define VOXELS ((enum vkn_model)100)
#define POINTS 64u /* along an edge */

/* ---- the kind of field ----------------------------------------------------------------------- */

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    (void)config;
    model->param_count = 4 * POINTS * POINTS * POINTS;
    model->groups[model->group_count++] = (struct parameter_group){
        .count = model->param_count, .entry = 4, .sparse = true, .rate = 1};
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    (void)config, (void)model, (void)constants;
    specialization->values[SPEC_LEVELS] = POINTS;
}

/* Grey, with a low density everywhere. */
static void initialize(const struct vkn_config *config, const struct field_model *model,
                       float *params)
{
    (void)config;
    for (uint32_t i = 0; i < model->param_count; i++)
        params[i] = i % 4 == 3 ? -1.0f : 0.0f;
}

static struct cost cost(const struct cost_model *model, const struct cost_counts *counts)
{
    (void)model;
    return cost_streaming(64 * counts->marched, 8 * 16 * counts->marched);
}

static const struct pass forward[] = {
    {.name = "voxels_forward", .dispatch = DISPATCH_FORWARD, .cost = cost}};
static const struct pass backward[] = {
    {.name = "voxels_backward", .dispatch = DISPATCH_FORWARD, .cost = cost}};
static const struct pass occupancy[] = {{.name = "voxels_update_occupancy",
                                         .dispatch = DISPATCH_OCCUPANCY,
                                         .average = true,
                                         .cost = cost}};
static const struct field_kind voxels = {
    .name = VOXELS,
    .create = create,
    .configure = configure,
    .initialize = initialize,
    .forward = PASS_LIST(forward),
    .backward = PASS_LIST(backward),
    .occupancy = PASS_LIST(occupancy),
    .sums_cells = true,
};

/* ---- tests ----------------------------------------------------------------------------------- */

extern struct gpu_shader test_field_kind_shaders[];
extern const size_t test_field_kind_shader_count;

static void test_trains(void **state)
{
    const struct vkn_config config = {
        .model = VOXELS,
        .seed = 1,
        .steps = 256,
        .scene = {.downscale = 2},
        .march = {.resolution = 32, .steps_per_unit = 128},
        .batch = {.samples = 8192, .max_rays = 4096},
        .optimizer = {.learning_rate = 0.2f, .weight_decay = -1},
    };
    vkn_context *context = NULL;
    vkn_scene *scene = NULL;
    vkn_trainer *trainer = NULL;
    (void)state;
    gpu_add_shaders(test_field_kind_shaders, test_field_kind_shader_count);
    field_add_kind(&voxels);
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    ok(vkn_context_create(NULL, &context));
    ok(vkn_scene_open(path, &config, &scene));
    ok(vkn_trainer_create(context, scene, &config, &trainer));
    double began = base_seconds();
    ok(vkn_trainer_run(trainer, NULL));
    double seconds = base_seconds() - began, psnr = psnr_of_split(trainer, scene, SCENE_TEST);
    print_message("%.2f dB after %.1f s of training\n", psnr, seconds);
    assert_true(psnr > 22);
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    free(path);
}

/* A kind without f16 shaders refuses fp16. */
static void test_refuses(void **state)
{
    const struct vkn_config config = {.model = VOXELS, .precision = VKN_PRECISION_FP16};
    struct field_model model;
    (void)state;
    assert_int_equal(field_model_create(&config, &model), VKN_BAD_INPUT);
    assert_message("config: precision: this model computes in fp32");
    const struct vkn_config unknown = {.model = (enum vkn_model)99};
    assert_int_equal(field_model_create(&unknown, &model), VKN_BAD_INPUT);
    assert_message("config: model: no model has number 99");
}

/* Too many passes for the step are an error. */
static void test_many_passes(void **state)
{
    struct pass passes[STEP_MAX_PASSES];
    for (size_t i = 0; i < STEP_MAX_PASSES; i++)
        passes[i] = forward[0];
    struct field_kind many = voxels;
    many.forward = (struct pass_list)PASS_LIST(passes);
    const struct vkn_config config = {
        .model = VOXELS, .precision = VKN_PRECISION_FP32, .march = {.resolution = 32}};
    const struct gpu_capabilities device = {.subgroup_size = 8, .float_atomic_add = true};
    struct setup setup;
    (void)state;
    field_add_kind(&many);
    assert_int_equal(setup_create(&config, &device, &setup), VKN_ERROR);
    assert_message("passes, more than 88");
    field_add_kind(&voxels);
    ok(setup_create(&config, &device, &setup));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trains),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_many_passes),
    };
    vkn_log_quiet(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
