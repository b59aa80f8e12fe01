/* Writes an inspection as JSON. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "config/config.h"
#include "scene/inspect.h"

/* Rounds to six digits: about the precision of a float's pose, and more readable than seventeen. */
static double short_number(double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.6g", value);
    return strtod(text, NULL);
}

static void add_number(cJSON *json, const char *name, double value)
{
    cJSON_AddNumberToObject(json, name, short_number(value));
}

static cJSON *add_numbers(cJSON *json, const char *name, const double *values, int count)
{
    cJSON *list = cJSON_AddArrayToObject(json, name);
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(short_number(values[i])));
    return list;
}

static void add_range(cJSON *json, const char *name, struct inspect_range range)
{
    const double values[2] = {range.low, range.high};
    add_numbers(json, name, values, 2);
}

static void add_box(cJSON *json, const struct inspect_range box[3])
{
    const double low[3] = {box[0].low, box[1].low, box[2].low};
    const double high[3] = {box[0].high, box[1].high, box[2].high};
    add_numbers(json, "from", low, 3);
    add_numbers(json, "to", high, 3);
}

static void add_views(cJSON *json, const struct inspection *inspection)
{
    cJSON *views = cJSON_AddObjectToObject(json, "views");
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        cJSON_AddNumberToObject(views, scene_split_names[split],
                                (double)inspection->scene->splits[split].camera_count);
    cJSON *sizes = cJSON_AddArrayToObject(json, "sizes");
    for (size_t i = 0; i < inspection->size_count; i++) {
        cJSON *size = cJSON_CreateObject();
        cJSON_AddNumberToObject(size, "width", inspection->sizes[i].width);
        cJSON_AddNumberToObject(size, "height", inspection->sizes[i].height);
        cJSON_AddNumberToObject(size, "views", (double)inspection->sizes[i].views);
        cJSON_AddItemToArray(sizes, size);
    }
    cJSON_AddNumberToObject(json, "downscale", inspection->scene->downscale);
    cJSON_AddBoolToObject(json, "dynamic", inspection->scene->dynamic);
    if (inspection->scene->unit_length > 0)
        cJSON_AddNumberToObject(json, "unit_length", inspection->scene->unit_length);
}

static void add_findings(cJSON *json, const struct scene_findings *findings)
{
    if (findings->other_names != NULL)
        cJSON_AddStringToObject(json, "other_names", findings->other_names);
    if (findings->rotated != NULL)
        cJSON_AddStringToObject(json, "turned", findings->rotated);
    if (findings->as_stored != NULL)
        cJSON_AddStringToObject(json, "as_stored", findings->as_stored);
}

static void add_lenses(cJSON *json, const struct inspection *inspection)
{
    cJSON *lenses = cJSON_AddObjectToObject(json, "lenses");
    cJSON_AddNumberToObject(lenses, "pinhole", (double)inspection->pinhole_views);
    for (size_t i = 0; i < SCENE_LENSES; i++)
        cJSON_AddNumberToObject(lenses, lens_kinds[i].name, (double)inspection->lens_views[i]);
    add_range(lenses, "focal_x", inspection->focal_x);
    add_range(lenses, "focal_y", inspection->focal_y);
    add_range(lenses, "fov_x", inspection->fov_x);
    add_range(lenses, "fov_y", inspection->fov_y);
    const struct scene_camera *first = inspect_view(inspection->scene, 0, NULL);
    double distortion[SCENE_COEFFICIENT_COUNT];
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        distortion[i] = (double)first->distortion[i];
    if (inspection->pinhole_views == inspection->views)
        return;
    add_numbers(lenses, "first_k1_k2_p1_p2_k3_k4", distortion, 6);
    cJSON *named = cJSON_AddObjectToObject(lenses, "first_distortion");
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        if (distortion[i] != 0)
            cJSON_AddNumberToObject(named, lens_coefficient_names[i], distortion[i]);
}

static void add_space(cJSON *json, const struct inspection *inspection)
{
    const struct vkn_scene *scene = inspection->scene;
    cJSON *space = cJSON_AddObjectToObject(json, "training_space");
    /* Exact: scene.fixed_transform with these numbers gives the same space to the last bit. */
    cJSON_AddNumberToObject(space, "scale", scene->scale);
    cJSON_AddItemToObject(space, "offset", cJSON_CreateDoubleArray(scene->offset, 3));
    cJSON_AddNumberToObject(space, "aabb_scale", scene->aabb_scale);
    add_number(space, "origin_distance", inspection->from_origin);
    add_number(space, "near_distance", inspection->near);
    add_number(space, "views_inside", inspection->rays_inside);
    cJSON *cameras = cJSON_AddObjectToObject(json, "cameras");
    add_box(cameras, inspection->box);
    add_numbers(cameras, "spread", inspection->spread, 3);
    if (inspection->has_focus) {
        add_numbers(cameras, "look_at", inspection->focus, 3);
        add_number(cameras, "distance", inspection->distance);
    }
    if (inspection->findings->point_count == 0)
        return;
    cJSON *points = cJSON_AddObjectToObject(json, "points");
    cJSON_AddNumberToObject(points, "count", (double)inspection->findings->point_count);
    add_box(points, inspection->point_box);
    add_number(points, "inside", inspection->points_inside);
}

static void add_fit(cJSON *json, const char *name, const struct consistency_fit *fit)
{
    if (fit->points == 0)
        return;
    cJSON *object = cJSON_AddObjectToObject(json, name);
    cJSON_AddNumberToObject(object, "points", (double)fit->points);
    add_number(object, "agreement", fit->agreement);
    add_number(object, "others", fit->others);
    add_number(object, "fit", fit->fit);
}

static void add_view_fit(cJSON *list, const struct inspection *inspection,
                         const struct consistency_view *view)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "image", consistency_name(inspection->scene, view));
    cJSON_AddStringToObject(json, "split", scene_split_names[view->split]);
    add_fit(json, "tracked", &view->tracked);
    add_fit(json, "nearest", &view->nearest);
    if (view->tracked.points > 0 || view->nearest.points > 0 || view->is_blind)
        cJSON_AddBoolToObject(json, "fits", !view->is_poor && !view->is_blind);
    cJSON_AddItemToArray(list, json);
}

static void add_consistency(cJSON *json, const struct inspection *inspection)
{
    const struct consistency *consistency = &inspection->consistency;
    bool known = consistency->verdict != CONSISTENCY_UNKNOWN;
    cJSON *object = cJSON_AddObjectToObject(json, "photo_consistency");
    if (!known)
        cJSON_AddStringToObject(object, "not_checked", consistency->reason);
    if (consistency->count == 0)
        return;
    cJSON_AddNumberToObject(object, "views", (double)consistency->count);
    if (known && consistency->verdict != CONSISTENCY_BLIND) {
        cJSON_AddStringToObject(object, "by",
                                consistency->uses_tracks ? "tracked points" : "nearest points");
        add_number(object, "fit", consistency->fit);
        cJSON_AddNumberToObject(object, "poor", (double)consistency->poor_views);
    }
    if (known && consistency->uses_tracks)
        add_number(object, "nearest_fit", consistency->nearest_fit);
    cJSON *views = cJSON_AddArrayToObject(object, "per_view");
    for (size_t i = 0; i < consistency->count; i++)
        add_view_fit(views, inspection, &consistency->views[i]);
}

/* Adds how many known depths the training views have, of which kinds and how exact. */
static void add_depths(cJSON *json, const struct vkn_scene *scene)
{
    const struct scene_depths *depths = &scene->depths;
    if (scene->splits[SCENE_TRAIN].depth_count == 0)
        return;
    cJSON *object = cJSON_AddObjectToObject(json, "depths");
    for (size_t i = 0; i < SCENE_DEPTH_KINDS; i++)
        if (depths->counts[i] > 0)
            cJSON_AddNumberToObject(object, scene_depth_kinds[i], (double)depths->counts[i]);
    add_number(object, "relative_sigma", depths->sigma);
    cJSON_AddNumberToObject(object, "held_out", (double)scene->splits[SCENE_TEST].depth_count);
}

struct cJSON *inspect_json(const struct inspection *inspection)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "scene", inspection->scene->path);
    cJSON_AddStringToObject(json, "format", config_scene_format_names[inspection->scene->format]);
    add_views(json, inspection);
    add_findings(json, inspection->findings);
    add_lenses(json, inspection);
    add_space(json, inspection);
    if (inspection->masked_views > 0) {
        cJSON *masks = cJSON_AddObjectToObject(json, "masks");
        cJSON_AddNumberToObject(masks, "views", (double)inspection->masked_views);
        add_number(masks, "hidden", inspection->mean_hidden);
    }
    char background[128];
    if (scene_describe_background(inspection->scene, background))
        cJSON_AddStringToObject(json, "background", background);
    add_depths(json, inspection->scene);
    char exposures[128];
    if (scene_describe_exposures(inspection->scene, exposures))
        cJSON_AddStringToObject(json, "exposures", exposures);
    char sky[128];
    if (scene_describe_sky(inspection->scene, sky))
        cJSON_AddStringToObject(json, "sky", sky);
    if (inspection->findings->unread != NULL)
        cJSON_AddItemToObject(json, "unread_keys",
                              cJSON_Duplicate(inspection->findings->unread, true));
    add_consistency(json, inspection);
    cJSON *problems = cJSON_AddArrayToObject(json, "problems");
    for (size_t i = 0; i < inspection->problem_count; i++) {
        cJSON *problem = cJSON_CreateObject();
        cJSON_AddStringToObject(problem, "problem", inspection->problems[i].problem);
        cJSON_AddStringToObject(problem, "advice", inspection->problems[i].advice);
        cJSON_AddItemToArray(problems, problem);
    }
    return json;
}
