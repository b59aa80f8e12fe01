/* What opening a scene passes over. */
#include <stdlib.h>

#include "scene/transforms.h"

static vkn_status take_image(struct scene_findings *findings, struct transforms_frame *frame)
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

vkn_status findings_pass_over(struct scene_findings *findings, struct transforms_frame *frame,
                              vkn_status status)
{
    if (findings == NULL || status != VKN_BAD_INPUT)
        return status;
    if (findings->broken++ == 0)
        findings->first_broken = base_format("%s", vkn_last_error());
    return frame->image_path != NULL ? take_image(findings, frame) : VKN_OK;
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
                              const struct transforms files[SCENE_SPLITS])
{
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        findings->missing += files[split].missing;
    findings->missing -= findings->broken; /* which were dropped with them */
    return add_points(findings, scene, &files[SCENE_TRAIN]);
}

void scene_findings_free(struct scene_findings *findings)
{
    for (size_t i = 0; i < findings->broken_image_count; i++)
        free(findings->broken_images[i]);
    free(findings->broken_images);
    free(findings->first_broken);
    free(findings->others);
    free(findings->points);
    *findings = (struct scene_findings){0};
}
