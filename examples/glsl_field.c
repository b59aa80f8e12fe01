/* Trains a user's field in GLSL: cc glsl_field.c $(pkg-config --cflags --libs vknerf) && ./a.out
 * SCENE triplane_field.glsl 500 triplane.safetensors */
#include <stdio.h>
#include <stdlib.h>
#include <vknerf/vknerf.h>

static void check(vkn_status status)
{
    if (status == VKN_OK)
        return;
    fprintf(stderr, "%s\n", vkn_last_error());
    exit(status);
}

static void report(void *user, const struct vkn_train_stats *stats)
{
    (void)user;
    printf("step %llu: training PSNR %.2f dB\n", (unsigned long long)stats->step, stats->psnr);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return fprintf(stderr, "usage: glsl_field SCENE FIELD.glsl STEPS CHECKPOINT\n"),
               VKN_BAD_INPUT;
    vkn_config *config;
    vkn_context *context;
    vkn_scene *scene;
    vkn_trainer *trainer;
    const vkn_field field = {.file = argv[2]};
    check(vkn_config_create(&config));
    check(vkn_field_register(&field, config));
    check(vkn_context_create(NULL, &context));
    check(vkn_field_check(context, config)); /* optional: the trainer checks too */
    check(vkn_scene_open(argv[1], config, &scene));
    check(vkn_trainer_create(context, scene, config, &trainer));
    const struct vkn_train_run run = {.until_step = (uint32_t)atoi(argv[3]), .report = report};
    check(vkn_trainer_run(trainer, &run));
    check(vkn_trainer_save(trainer, argv[4])); /* contains the GLSL */
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    vkn_config_destroy(&config);
    return 0;
}
