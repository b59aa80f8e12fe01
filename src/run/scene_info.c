/* Implements vkn_scene_info_json: inspects a scene for `vknerf info SCENE`. */
#include <vknerf/scene.h>

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "step/step.h"
#include "report/report.h"
#include "scene/scene.h"

static vkn_status write_results(const struct inspection *inspection, const char *svg, char **json)
{
    if (svg != NULL) {
        char *drawing = report_camera_drawing(inspection);
        vkn_status status =
            drawing != NULL ? base_file_replace(svg, drawing, strlen(drawing)) : VKN_ERROR;
        free(drawing);
        BASE_TRY(status);
    }
    cJSON *object = inspect_json(inspection);
    *json = base_json_print(object);
    cJSON_Delete(object);
    return *json != NULL ? VKN_OK : VKN_ERROR;
}

vkn_status vkn_scene_info_json(const struct vkn_scene_info_params *given, char **json)
{
    BASE_C_LOCALE;
    BASE_NEED(json);
    *json = NULL;
    struct vkn_scene_info_params own, *params = &own;
    BASE_TRY(BASE_READ(__func__, vkn_scene_info_params, given, params, svg));
    BASE_CHOICE(params, format, VKN_SCENE_NSVF);
    BASE_RANGE(params, scale, 0, FLT_MAX);
    BASE_TRY(scene_check_unit(__func__, params->unit_length));
    if (!params->scene)
        return base_fail(VKN_BAD_INPUT, "no scene is given");
    struct scene_findings findings = {0};
    struct scene_options options = {
        .path = params->scene,
        .format = params->format,
        .downscale = params->downscale,
        .scale = (double)params->scale,
        .aabb_scale = params->aabb_scale,
        .unit_length = params->unit_length,
        .findings = &findings,
    };
    struct vkn_scene *scene = NULL;
    struct inspection *inspection = NULL;
    vkn_status status = scene_open(&options, &scene);
    if (status == VKN_OK) {
        scene_find_background(scene);
        scene_find_exposures(scene);
        scene_find_sky(scene);
        status = scene_find_depths(scene, SCENE_TRAIN);
    }
    if (status == VKN_OK)
        status = scene_find_depths(scene, SCENE_TEST);
    if (status == VKN_OK)
        status = inspect_scene(scene, &findings, (double)setup_near_distance(scene), &inspection);
    if (status == VKN_OK)
        status = write_results(inspection, params->svg, json);
    inspect_free(&inspection);
    scene_close(&scene);
    scene_findings_free(&findings);
    return status;
}
