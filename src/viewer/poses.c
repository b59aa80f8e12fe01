/* Reads the poses of the training views that a training has refined, and answers /api/poses. */
#include "viewer/internal.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#define POSE 12 /* numbers of a pose */

/* Reads the poses into fresh memory; NULL: failed, see viewer->message. */
static double *read_all(struct viewer *viewer, const vkn_renderer *renderer, size_t count)
{
    double *poses = malloc(count * POSE * sizeof *poses);
    if (!poses) {
        viewer_set_message(viewer, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        struct vkn_camera camera = {.size = sizeof camera};
        if (vkn_renderer_camera(renderer, viewer->scene, VKN_SPLIT_TRAIN, i, &camera) != VKN_OK) {
            viewer_set_message(viewer, "%s", vkn_last_error());
            free(poses);
            return NULL;
        }
        memcpy(&poses[POSE * i], camera.pose, sizeof camera.pose);
    }
    return poses;
}

void poses_read(struct viewer *viewer)
{
    const struct renderers *renderers = &viewer->renderers;
    const vkn_renderer *renderer = renderers->color ? renderers->color : renderers->normal;
    size_t count = vkn_scene_view_count(viewer->scene, VKN_SPLIT_TRAIN);
    if (!renderer || count == 0)
        return;
    /* A checkpoint that refines may have been replaced by one that does not. */
    if (facts_config_is(vkn_renderer_config(renderer), "scene.refine", "off") && !viewer->poses)
        return;
    double *poses = read_all(viewer, renderer, count), *before = viewer->poses;
    if (!poses)
        return;
    if (before && memcmp(poses, before, count * POSE * sizeof *poses) == 0) {
        free(poses);
        return;
    }
    pthread_mutex_lock(&viewer->lock);
    viewer->poses = poses;
    viewer->pose_count = count;
    viewer->poses_version++;
    pthread_mutex_unlock(&viewer->lock);
    free(before);
}

struct answer poses_answer(const struct viewer *viewer)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "version", (double)viewer->poses_version);
    cJSON *train = cJSON_AddArrayToObject(json, "train");
    for (size_t i = 0; train && i < viewer->pose_count; i++)
        cJSON_AddItemToArray(train, cJSON_CreateDoubleArray(&viewer->poses[POSE * i], POSE));
    return answer_json(200, json);
}
