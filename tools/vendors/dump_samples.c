/* dump_samples SCENE STEPS FILE [KEY VALUE ...]
 *
 * Trains for STEPS steps and writes where the last step's samples were, for
 * tools/vendors/memory_requests.py. Numbers are little-endian words: marched samples M, live
 * samples L, [M][3] f32 positions in the unit cube in the order of SAMPLES, [L] u32 in the order of
 * LIVE. */
#include <stdio.h>
#include <stdlib.h>
#include <vknerf/vknerf.h>

#include "base/base.h"
#include "gpu/gpu.h"
#include "train/internal.h"

static void *download(const struct step *step, uint32_t number)
{
    const struct gpu_buffer *buffer = &step->buffers.at[number];
    void *data = base_alloc(buffer->size, 1);
    if (data && gpu_download(step->device, buffer, 0, data, buffer->size) != VKN_OK) {
        free(data);
        data = NULL;
    }
    return data;
}

static bool write_samples(const struct step *step, FILE *file)
{
    struct State *state = download(step, BIND_STATE);
    struct Ray *rays = download(step, BIND_RAYS);
    struct Sample *samples = download(step, BIND_SAMPLES);
    uint32_t *live = download(step, BIND_LIVE);
    float side = step->setup.constants.aabb_scale;
    bool good = state && rays && samples && live;
    if (good) {
        const uint32_t counts[] = {state->sample_count, state->live_count};
        good = fwrite(counts, sizeof counts, 1, file) == 1;
        for (uint32_t i = 0; good && i < counts[0]; i++) {
            const struct Ray *ray = &rays[samples[i].ray];
            float unit[3];
            for (int k = 0; k < 3; k++)
                unit[k] = (ray->origin[k] + samples[i].t * ray->direction[k] - 0.5f) / side + 0.5f;
            good = fwrite(unit, sizeof unit, 1, file) == 1;
        }
        good = good && fwrite(live, sizeof *live, counts[1], file) == counts[1];
    }
    free(live);
    free(samples);
    free(rays);
    free(state);
    return good;
}

static vkn_status train(vkn_context *context, const char *scene_path, const vkn_config *config,
                        vkn_scene **scene, vkn_trainer **trainer)
{
    const struct vkn_train_run run = {.size = sizeof run};
    BASE_TRY(vkn_scene_open(scene_path, config, scene));
    BASE_TRY(vkn_trainer_create(context, *scene, config, trainer));
    return vkn_trainer_run(*trainer, &run);
}

int main(int argc, char **argv)
{
    vkn_config config = {0};
    vkn_context *context = NULL;
    vkn_scene *scene = NULL;
    vkn_trainer *trainer = NULL;
    bool good = argc >= 4;
    if (!good)
        fprintf(stderr, "usage: dump_samples SCENE STEPS FILE [KEY VALUE ...]\n");
    for (int i = 4; good && i + 1 < argc; i += 2)
        good = vkn_config_set(&config, "dump_samples", argv[i], argv[i + 1]) == VKN_OK;
    FILE *file = good ? fopen(argv[3], "wb") : NULL;
    if (file) {
        config.steps = strtoul(argv[2], NULL, 10);
        good = vkn_context_create(NULL, &context) == VKN_OK &&
               train(context, argv[1], &config, &scene, &trainer) == VKN_OK &&
               write_samples(&trainer->step, file);
        good = fclose(file) == 0 && good;
    }
    if (!good || !file)
        fprintf(stderr, "dump_samples: %s\n", vkn_last_error());
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    return good && file ? 0 : 1;
}
