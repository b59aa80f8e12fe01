/* Tests that all precisions reach the same quality on the bundled scene. Takes about 20 s of
 * processor time, most of it for compiling and running f16 on a CPU device; shorter trainings
 * cannot be compared. */
#include "evaluation.h"
#include "step_fixture.h"

#define STEPS        400u
/* All precisions continue from the same fp32 steps: two short trainings that differ from their
 * first step differ by up to 0.5 dB at their end, whether in precision or only in the seed. */
#define COMMON_STEPS 200u

static struct vkn_config config_of(enum vkn_precision precision)
{
    return (struct vkn_config){
        .precision = precision,
        .deterministic = true,
        .seed = 1,
        .steps = STEPS,
        .scene = {.downscale = 4},
        .grid = {.levels = 4, .features = 2, .log2_entries = 14, .coarsest = 8, .finest = 64},
        /* Shapes that other tests compile too. */
        .mlp = tiny_config(true).mlp,
        .march = {.resolution = 32, .steps_per_unit = 128},
        .batch = {.samples = 2048, .max_rays = 1024},
    };
}

struct trained {
    vkn_context *context;
    vkn_scene *scene;
    char *checkpoint; /* after COMMON_STEPS */
};

static vkn_trainer *create(struct trained *trained, enum vkn_precision precision)
{
    const struct vkn_config config = config_of(precision);
    vkn_trainer *trainer;
    ok(vkn_trainer_create(trained->context, trained->scene, &config, &trainer));
    return trainer;
}

static void run(vkn_trainer *trainer, uint32_t until_step)
{
    struct vkn_train_run run = {.until_step = until_step};
    ok(vkn_trainer_run(trainer, &run));
    assert_int_equal(vkn_trainer_step(trainer), until_step);
}

/* Trains the rest in a precision; returns the PSNR of the held-out views in dB. */
static double finish(struct trained *trained, enum vkn_precision precision)
{
    vkn_trainer *trainer = create(trained, precision);
    assert_int_equal(trainer->step.setup.backend.precision, precision);
    ok(vkn_trainer_resume(trainer, trained->checkpoint));
    run(trainer, STEPS);
    double psnr = psnr_of_split(trainer, trained->scene, SCENE_TEST);
    vkn_trainer_destroy(&trainer);
    return psnr;
}

static void test_parity(void **state)
{
    struct temporary *folder = *state;
    struct vkn_context_params device = {0};
    struct trained trained = {.checkpoint = base_path_join(folder->path, "common.safetensors")};
    const struct vkn_config config = config_of(VKN_PRECISION_FP32);
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    ok(vkn_context_create(&device, &trained.context));
    ok(vkn_scene_open(path, &config, &trained.scene));
    vkn_trainer *trainer = create(&trained, VKN_PRECISION_FP32);
    run(trainer, COMMON_STEPS);
    double common = psnr_of_split(trainer, trained.scene, SCENE_TEST);
    ok(vkn_trainer_save(trainer, trained.checkpoint));
    vkn_trainer_destroy(&trainer);

    double fp32 = finish(&trained, VKN_PRECISION_FP32);
    double fp16 = finish(&trained, VKN_PRECISION_FP16);
    double coopmat = finish(&trained, VKN_PRECISION_COOPMAT);
    print_message("%.2f dB; then fp32 %.2f, fp16 %.2f, coopmat %.2f dB\n", common, fp32, fp16,
                  coopmat);
    assert_true(fp32 > common + 0.5);
    assert_true(fabs(fp16 - fp32) < 0.2);
    assert_true(fabs(coopmat - fp32) < 0.2);
    assert_true(fabs(coopmat - fp16) < 0.2);

    vkn_scene_close(&trained.scene);
    vkn_context_destroy(&trained.context);
    free(trained.checkpoint);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parity, temporary_setup, temporary_teardown)};
    vkn_log_quiet(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
