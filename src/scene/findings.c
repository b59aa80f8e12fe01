/* Collects what scene_open skips, and the problems that an inspection finds. */
#include <stdarg.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "scene/inspect.h"
#include "scene/transforms.h"

static vkn_status move_image(struct scene_findings *findings, struct transforms_frame *frame)
{
    size_t count = findings->broken_image_count;
    char **grown = realloc(findings->broken_images, (count + 1) * sizeof(char *));
    if (grown == NULL)
        return base_fail(VKN_ERROR, "out of memory (%zu names)", count + 1);
    findings->broken_images = grown;
    findings->broken_images[findings->broken_image_count++] = frame->image_path;
    frame->image_path = NULL;
    return VKN_OK;
}

vkn_status findings_skip_frame(struct scene_findings *findings, struct transforms_frame *frame,
                               vkn_status status)
{
    if (findings == NULL || status != VKN_BAD_INPUT)
        return status;
    if (findings->broken++ == 0)
        findings->first_broken = base_format("%s", vkn_last_error());
    frame->skipped = true;
    return frame->image_path != NULL ? move_image(findings, frame) : VKN_OK;
}

vkn_status points_reject(struct rejected_points *left_out)
{
    if (left_out->count++ == 0)
        left_out->first = base_format("%s", vkn_last_error());
    return left_out->first != NULL ? VKN_OK : VKN_ERROR;
}

/* Reports skipped points, without an error: points only help to choose the training space. */
static void report_rejected(struct scene_findings *findings, struct rejected_points *left_out,
                            size_t count)
{
    if (left_out->count == 0)
        return;
    if (findings == NULL) {
        base_log(BASE_LOG_WARNING, "%zu of %zu points are left out; the first: %s", left_out->count,
                 left_out->count + count, left_out->first);
        return;
    }
    findings->bad_points = left_out->count;
    findings->first_bad_point = left_out->first;
    left_out->first = NULL;
}

static vkn_status add_points(struct scene_findings *findings, const struct vkn_scene *scene,
                             const struct transforms *transforms)
{
    if (transforms->point_count == 0)
        return VKN_OK;
    findings->points = base_alloc(transforms->point_count, sizeof(*findings->points));
    if (findings->points == NULL)
        return VKN_ERROR;
    findings->point_count = transforms->point_count;
    for (size_t n = 0; n < transforms->point_count; n++)
        scene_to_training(scene, transforms->points[n].position, findings->points[n]);
    return VKN_OK;
}

vkn_status findings_add_files(struct scene_findings *findings, const struct vkn_scene *scene,
                              struct transforms files[SCENE_SPLITS])
{
    struct transforms *train = &files[SCENE_TRAIN];
    report_rejected(findings, &train->left_out, train->point_count);
    if (findings == NULL)
        return VKN_OK;
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        findings->missing += files[split].missing;
    findings->missing -= findings->broken; /* skipped frames were dropped as missing ones */
    return add_points(findings, scene, train);
}

void scene_findings_free(struct scene_findings *findings)
{
    for (size_t i = 0; i < findings->broken_image_count; i++)
        free(findings->broken_images[i]);
    free(findings->broken_images);
    free(findings->first_broken);
    free(findings->others);
    free(findings->other_names);
    free(findings->rotated);
    free(findings->as_stored);
    free(findings->orientation_unknown);
    free(findings->points);
    free(findings->first_bad_point);
    cJSON_Delete(findings->unread);
    *findings = (struct scene_findings){0};
}

const struct scene_camera *inspect_view(const struct vkn_scene *scene, size_t index,
                                        enum scene_split_name *split)
{
    unsigned at = 0;
    while (at + 1 < SCENE_SPLITS && index >= scene->splits[at].camera_count)
        index -= scene->splits[at++].camera_count;
    if (split != NULL)
        *split = (enum scene_split_name)at;
    return &scene->splits[at].cameras[index];
}

vkn_status inspect_add_problem(struct inspection *inspection, const char *advice,
                               const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct inspect_problem *grown = realloc(
        inspection->problems, (inspection->problem_count + 1) * sizeof(*inspection->problems));
    if (grown == NULL)
        return base_fail(VKN_ERROR, "out of memory (problems of a scene)");
    inspection->problems = grown;
    struct inspect_problem *added = &grown[inspection->problem_count++];
    *added = (struct inspect_problem){base_format("%s", text), base_format("%s", advice)};
    return added->problem != NULL && added->advice != NULL ? VKN_OK : VKN_ERROR;
}
