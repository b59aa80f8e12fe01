/* Trains a scene and renders it from above: cc train_and_render.c $(pkg-config --cflags --libs
 * vknerf) */
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
    if (argc != 4)
        return fprintf(stderr, "usage: train_and_render SCENE STEPS PICTURE.png\n"), VKN_BAD_INPUT;
    vkn_context *context;
    vkn_scene *scene;
    vkn_trainer *trainer;
    vkn_renderer *renderer;
    struct vkn_picture *picture;
    check(vkn_context_create(NULL, &context));
    check(vkn_scene_open(argv[1], NULL, &scene));
    check(vkn_trainer_create(context, scene, NULL, &trainer));
    const struct vkn_train_run run = {.until_step = (uint32_t)atoi(argv[2]), .report = report};
    check(vkn_trainer_run(trainer, &run));

    struct vkn_camera camera = {0}; /* the first test view's, 0.3 units higher */
    check(vkn_scene_camera(scene, VKN_SPLIT_DEFAULT, 0, &camera));
    camera.pose[11] += 0.3;
    check(vkn_renderer_of_trainer(trainer, &renderer));
    check(vkn_render(renderer, &camera, NULL, &picture));
    check(vkn_picture_write(picture, VKN_MAP_COLOR, argv[3]));

    vkn_picture_free(&picture); /* objects may be freed in any order */
    vkn_renderer_destroy(&renderer);
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    return 0;
}
