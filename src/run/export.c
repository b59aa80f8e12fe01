/* Implements vkn_run_export: writes a run's field as mesh, point cloud or splats. */
#include <vknerf/export.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/base.h"
#include "render/render.h"
#include "run/internal.h"
#include "run/open.h"
#include "step/step.h"

#define DEFAULT_RESOLUTION 256u
#define DEFAULT_POINTS     100000u

static vkn_status check_choices(const char *what, const struct vkn_export_params *params)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"threshold", params->threshold},
        {"min_component", params->min_component},
        {"crop_low", params->crop_low[0]},
        {"crop_low", params->crop_low[1]},
        {"crop_low", params->crop_low[2]},
        {"crop_high", params->crop_high[0]},
        {"crop_high", params->crop_high[1]},
        {"crop_high", params->crop_high[2]},
        {"crop_rotation", params->crop_rotation[0]},
        {"crop_rotation", params->crop_rotation[1]},
        {"crop_rotation", params->crop_rotation[2]},
    };
    for (size_t i = 0; i < BASE_COUNT(numbers); i++)
        BASE_TRY(base_check_range(what, numbers[i].name, numbers[i].value, -DBL_MAX, DBL_MAX));
    BASE_TRY(scene_check_unit(what, params->unit_length));
    BASE_TRY(base_check_choice(what, "format", params->format, VKN_SCENE_NSVF));
    BASE_TRY(base_check_choice(what, "precision", params->precision, VKN_PRECISION_COOPMAT));
    return base_check_choice(what, "unseen", params->unseen, VKN_UNSEEN_KEEP);
}

/* Checks the extension of a file; `path` may be NULL. */
static vkn_status check_file(enum render_content content, const char *path)
{
    const struct render_format *format;
    return path ? render_find_format(content, path, &format) : VKN_OK;
}

static vkn_status check_texture(const struct vkn_export_params *params)
{
    char ends[RENDER_FORMATS_TEXT];
    render_list_formats(RENDER_TEXTURE, " or ", ends);
    if (!params->mesh || check_file(RENDER_TEXTURE, params->mesh) != VKN_OK)
        return base_fail(VKN_BAD_INPUT, "texture: only a mesh in a %s file has one", ends);
    if (params->texture > RENDER_MOST_TEXTURE && params->texture != VKN_TEXTURE_FITTING)
        return base_fail(VKN_BAD_INPUT, "texture: %u is more than %u pixels", params->texture,
                         RENDER_MOST_TEXTURE);
    return VKN_OK;
}

/* Checks the names of files before the run is opened. */
static vkn_status check_files(const struct vkn_export_params *params)
{
    BASE_TRY(check_file(RENDER_MESH, params->mesh));
    if (params->texture)
        BASE_TRY(check_texture(params));
    BASE_TRY(check_file(RENDER_POINTS, params->points));
    return check_file(RENDER_SPLATS, params->splats);
}

static struct scene_box box_of(const struct vkn_export_params *params)
{
    return scene_box_of(params->crop_low, params->crop_high, params->crop_rotation);
}

static vkn_status check_params(const struct vkn_export_params *params)
{
    if (!params->mesh && !params->points && !params->splats && !params->masks)
        return base_fail(VKN_BAD_INPUT, "no file is given for a mesh, points, splats or masks");
    if (!(params->min_component >= 0.0))
        return base_fail(VKN_BAD_INPUT, "min-component: %g is negative", params->min_component);
    if (!(params->threshold >= 0.0))
        return base_fail(VKN_BAD_INPUT, "threshold: %g is negative", params->threshold);
    const struct scene_box box = box_of(params);
    BASE_TRY(scene_box_check(&box));
    return check_files(params);
}

static vkn_status keep_components(const struct vkn_export_params *params, struct render_mesh *mesh,
                                  struct vkn_export_result *result)
{
    double least = params->min_component;
    if (least < 1.0)
        least = ceil(least * (double)mesh->vertex_count);
    return render_mesh_keep_components(mesh, (size_t)least, params->largest, &result->components,
                                       &result->removed);
}

/* Textures a mesh that is not empty. */
static vkn_status make_texture(const struct vkn_export_params *params, struct run_opened *opened,
                               const struct render_voxels *voxels, struct render_mesh *mesh,
                               struct vkn_export_result *result)
{
    uint32_t size = params->texture == VKN_TEXTURE_FITTING ? 0 : params->texture;
    if (params->texture == 0 || mesh->triangle_count == 0)
        return VKN_OK;
    BASE_TRY(render_mesh_unwrap(mesh, voxels, size, &result->charts, &result->texture_density));
    result->texture = mesh->texture_size;
    return render_mesh_paint(opened->renderer, opened->scene, voxels, opened->progress,
                             params->job->stop, mesh);
}

static vkn_status make_mesh(const struct vkn_export_params *params, struct run_opened *opened,
                            struct render_mesh *mesh, struct vkn_export_result *result)
{
    const struct render_mesh_params request = {
        .box = box_of(params),
        .resolution = params->resolution ? params->resolution : DEFAULT_RESOLUTION,
        .threshold = params->threshold,
        .unseen = params->unseen,
    };
    struct render_voxels voxels;
    BASE_TRY(render_surface(opened->renderer, opened->scene, &request, opened->progress,
                            params->job->stop, mesh, &voxels));
    scene_up(&opened->scene->splits[SCENE_TRAIN], mesh->up);
    if (params->unseen == VKN_UNSEEN_DROP)
        BASE_TRY(render_mesh_drop_unseen(mesh, &result->dropped));
    BASE_TRY(keep_components(params, mesh, result));
    if (mesh->triangle_count == 0)
        base_log(BASE_LOG_WARNING,
                 "%s: the mesh is empty; a lower threshold than %.4g or another "
                 "crop may find a surface",
                 params->mesh, voxels.threshold);
    BASE_TRY(make_texture(params, opened, &voxels, mesh, result));
    result->vertices = mesh->vertex_count;
    result->triangles = mesh->triangle_count;
    memcpy(result->voxels, voxels.counts, sizeof result->voxels);
    memcpy(result->crop_low, voxels.box.low, sizeof result->crop_low);
    memcpy(result->crop_high, voxels.box.high, sizeof result->crop_high);
    result->voxel = voxels.edge;
    result->threshold = voxels.threshold;
    return VKN_OK;
}

static struct render_points_params points_of(const struct vkn_export_params *params)
{
    return (struct render_points_params){
        .count = params->point_count ? params->point_count : DEFAULT_POINTS,
        .seed = params->seed,
        .box = box_of(params),
    };
}

static void warn_of_few(const char *path, size_t count, uint32_t wanted, const char *what)
{
    if (count < wanted)
        base_log(BASE_LOG_WARNING,
                 "%s: only %zu of %u %s: rays of the training views hit hardly anything there",
                 path, count, wanted, what);
}

static vkn_status make_points(const struct vkn_export_params *params, struct run_opened *opened,
                              struct render_mesh *cloud, struct vkn_export_result *result)
{
    const struct render_points_params request = points_of(params);
    BASE_TRY(render_points(opened->renderer, opened->scene, &request, opened->progress,
                           params->job->stop, cloud));
    warn_of_few(params->points, cloud->vertex_count, request.count, "points");
    result->points = cloud->vertex_count;
    return VKN_OK;
}

static vkn_status make_splats(const struct vkn_export_params *params, struct run_opened *opened,
                              struct render_splats *splats, struct vkn_export_result *result)
{
    const struct render_points_params request = points_of(params);
    BASE_TRY(render_splats(opened->renderer, opened->scene, &request, opened->progress,
                           params->job->stop, splats));
    warn_of_few(params->splats, splats->count, request.count, "splats");
    result->splats = splats->count;
    return VKN_OK;
}

/* Content of a file: a mesh or points, or splats. */
struct made {
    struct render_mesh mesh;
    struct render_splats splats;
};

static vkn_status make_content(const struct vkn_export_params *params,
                               const struct render_format *format, struct run_opened *opened,
                               struct base_file_writer *writer, struct made *made,
                               struct vkn_export_result *result)
{
    double unit = result->unit_length > 0 ? result->unit_length : 1;
    if (format->write_splats) {
        BASE_TRY(make_splats(params, opened, &made->splats, result));
        render_splats_scale(&made->splats, unit);
        return format->write_splats(writer, &made->splats);
    }
    BASE_TRY(format->content == RENDER_MESH ? make_mesh(params, opened, &made->mesh, result)
                                            : make_points(params, opened, &made->mesh, result));
    render_mesh_scale(&made->mesh, unit);
    return format->write(writer, &made->mesh);
}

/* Makes and writes one file; `path` NULL: none. Opens the file before the work, so that a path that
 * cannot be written fails at once. */
static vkn_status export_file(const struct vkn_export_params *params, enum render_content content,
                              const char *path, struct run_opened *opened,
                              struct vkn_export_result *result)
{
    const struct render_format *format;
    struct base_file_writer writer;
    struct made made = {0};
    if (!path)
        return VKN_OK;
    BASE_TRY(render_find_format(content, path, &format));
    BASE_TRY(base_file_begin(&writer, path));
    vkn_status status = make_content(params, format, opened, &writer, &made, result);
    uint64_t bytes = made.mesh.device_bytes + made.splats.device_bytes; /* one of the two is 0 */
    if (bytes > result->gpu_memory_bytes)
        result->gpu_memory_bytes = bytes;
    render_mesh_free(&made.mesh);
    render_splats_free(&made.splats);
    if (status == VKN_OK)
        return base_file_commit(&writer);
    base_file_abort(&writer);
    return status;
}

/* Sets the box to the object's. Leaves it empty if everything is to be exported: when a scene has
 * nothing around the object, or with a message when no object is found. */
static vkn_status crop_to_object(struct run_opened *opened, struct vkn_export_params *params,
                                 struct vkn_export_result *result)
{
    const char *problem = NULL;
    const struct scene_box box = box_of(params);
    if (!params->object || scene_box_given(&box) || opened->scene->aabb_scale == 1)
        return VKN_OK;
    scene_find_background(opened->scene);
    if (opened->scene->background.has_alpha)
        return VKN_OK;
    BASE_TRY(render_find_object(opened->renderer, opened->scene, opened->progress,
                                params->job->stop, params->crop_low, params->crop_high, &problem));
    if (problem) {
        base_log(BASE_LOG_INFO, "%s: exporting everything, since %s",
                 params->run ? params->run : opened->scene->path, problem);
        return VKN_OK;
    }
    result->has_object = true;
    memcpy(result->object_low, params->crop_low, sizeof result->object_low);
    memcpy(result->object_high, params->crop_high, sizeof result->object_high);
    return VKN_OK;
}

/* Sets the time of a dynamic scene's field: a mesh shows a single time. */
static vkn_status choose_time(const struct vkn_export_params *params, struct run_opened *opened)
{
    if (params->has_time)
        return run_set_time(opened, params->time);
    if (!opened->scene->dynamic || !params->run)
        return VKN_OK;
    base_log(BASE_LOG_INFO, "%s: its frames have times: exporting time 0", opened->scene->path);
    return vkn_renderer_set_time(opened->renderer, 0.0);
}

static vkn_status export_masks(const struct vkn_export_params *params, struct run_opened *opened,
                               struct vkn_export_result *result)
{
    if (!params->masks)
        return VKN_OK;
    struct step_outliers found = {0};
    vkn_status status = render_write_masks(opened->renderer, opened->scene, params->masks,
                                           params->job->stop, &found);
    result->masked_share = found.share;
    result->masked_views = found.views;
    return status;
}

static vkn_status export_files(struct vkn_export_params *params, struct run_opened *opened,
                               struct vkn_export_result *result)
{
    BASE_TRY(export_masks(params, opened, result));
    if (!params->mesh && !params->points && !params->splats)
        return VKN_OK;
    BASE_TRY(choose_time(params, opened));
    BASE_TRY(crop_to_object(opened, params, result));
    BASE_TRY(export_file(params, RENDER_MESH, params->mesh, opened, result));
    BASE_TRY(export_file(params, RENDER_POINTS, params->points, opened, result));
    return export_file(params, RENDER_SPLATS, params->splats, opened, result);
}

/* Sets the unit of the files and the origin in this unit. */
static void choose_unit(const struct vkn_export_params *params, const struct vkn_scene *scene,
                        struct vkn_export_result *result)
{
    result->unit_length = params->unit_length > 0 ? params->unit_length : scene->unit_length;
    render_local_origin(scene, result->origin);
    for (int i = 0; i < 3 && result->unit_length > 0; i++)
        result->origin[i] *= result->unit_length;
}

/* Reads and checks the parameters of the public function `what`, and clears its result. */
static vkn_status begin(const char *what, const struct vkn_export_params *given,
                        struct vkn_export_params *params, struct vkn_job *job,
                        struct vkn_export_result *result)
{
    const struct vkn_export_result none = {0}, *made = &none;
    BASE_TRY(BASE_FILL(vkn_export_result, made, result, gpu_memory_bytes));
    BASE_TRY(BASE_READ(what, vkn_export_params, given, params, seed));
    BASE_TRY(check_choices(what, params));
    BASE_TRY(run_read_job(&params->job, job));
    return check_params(params);
}

static vkn_status export_opened(struct vkn_export_params *params, struct run_opened *opened,
                                double began, struct vkn_export_result *result)
{
    struct vkn_export_result none = {0}, *made = &none;
    choose_unit(params, opened->scene, made);
    vkn_status status = export_files(params, opened, made);
    made->seconds = base_seconds() - began;
    BASE_TRY(BASE_FILL(vkn_export_result, made, result, gpu_memory_bytes));
    return status;
}

vkn_status vkn_run_export(const struct vkn_export_params *given, struct vkn_export_result *result)
{
    BASE_C_LOCALE;
    BASE_NEED(result);
    struct vkn_export_params params;
    struct vkn_job job;
    struct run_opened opened;
    double began = base_seconds();
    BASE_TRY(begin(__func__, given, &params, &job, result));
    BASE_TRY(run_open(&job, params.run, params.scene, params.format, params.precision, &opened));
    vkn_status status = export_opened(&params, &opened, began, result);
    run_close(&opened);
    return status;
}

/* Refuses members that only a run has a use for. */
static vkn_status check_run_members(const char *what, const struct vkn_export_params *params)
{
    const char *member = params->run         ? "run"
                         : params->scene     ? "scene"
                         : params->format    ? "format"
                         : params->precision ? "precision"
                         : params->masks     ? "masks"
                                             : NULL;
    return member
               ? base_fail(VKN_BAD_INPUT, "%s: %s: only of use with vkn_run_export", what, member)
               : VKN_OK;
}

vkn_status vkn_renderer_export(vkn_renderer *renderer, vkn_scene *scene,
                               const struct vkn_export_params *given,
                               struct vkn_export_result *result)
{
    BASE_C_LOCALE;
    BASE_NEED(renderer);
    BASE_NEED(scene);
    BASE_NEED(result);
    BASE_USE(render_guard(renderer), renderer);
    struct vkn_export_params params;
    struct vkn_job job;
    struct run_opened opened = {.renderer = renderer, .scene = scene};
    double began = base_seconds();
    BASE_TRY(begin(__func__, given, &params, &job, result));
    BASE_TRY(check_run_members(__func__, &params));
    BASE_TRY(report_progress_begin(&job, 0, 0, &opened.progress));
    vkn_status status = export_opened(&params, &opened, began, result);
    report_progress_end(&opened.progress);
    return status;
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static const char *const unseen_names[] = {"fill", "drop", "keep"}; /* enum vkn_unseen */

static void add_numbers(cJSON *object, const char *name, const double *numbers)
{
    cJSON_AddItemToObject(object, name, cJSON_CreateDoubleArray(numbers, 3));
}

static void add_mesh(cJSON *object, const struct vkn_export_params *params,
                     const struct vkn_export_result *result)
{
    double voxels[3];
    for (int i = 0; i < 3; i++)
        voxels[i] = result->voxels[i];
    cJSON_AddStringToObject(object, "mesh", params->mesh);
    cJSON_AddNumberToObject(object, "vertices", (double)result->vertices);
    cJSON_AddNumberToObject(object, "triangles", (double)result->triangles);
    cJSON_AddStringToObject(object, "unseen", unseen_names[params->unseen]);
    cJSON_AddNumberToObject(object, "dropped_vertices", (double)result->dropped);
    cJSON_AddNumberToObject(object, "components", (double)result->components);
    cJSON_AddNumberToObject(object, "removed_components", (double)result->removed);
    add_numbers(object, "voxels", voxels);
    cJSON_AddNumberToObject(object, "voxel", result->voxel);
    cJSON_AddNumberToObject(object, "threshold", result->threshold);
    if (result->texture) {
        cJSON_AddNumberToObject(object, "texture", result->texture);
        cJSON_AddNumberToObject(object, "texture_charts", (double)result->charts);
        cJSON_AddNumberToObject(object, "texture_density", result->texture_density);
    }
    add_numbers(object, "crop_low", result->crop_low);
    add_numbers(object, "crop_high", result->crop_high);
    add_numbers(object, "crop_rotation", params->crop_rotation);
}

char *vkn_export_json(const struct vkn_export_params *given_params,
                      const struct vkn_export_result *given_result)
{
    BASE_C_LOCALE;
    struct vkn_export_params own, *params = &own;
    struct vkn_export_result made, *result = &made;
    if (BASE_READ(__func__, vkn_export_params, given_params, params, seed) != VKN_OK ||
        check_choices(__func__, params) != VKN_OK ||
        BASE_READ(__func__, vkn_export_result, given_result, result, gpu_memory_bytes) != VKN_OK)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    if (params->mesh)
        add_mesh(object, params, result);
    if (params->points) {
        cJSON_AddStringToObject(object, "points", params->points);
        cJSON_AddNumberToObject(object, "point_count", (double)result->points);
    }
    if (params->splats) {
        cJSON_AddStringToObject(object, "splats", params->splats);
        cJSON_AddNumberToObject(object, "splat_count", (double)result->splats);
    }
    if (params->masks) {
        cJSON_AddStringToObject(object, "masks", params->masks);
        cJSON_AddNumberToObject(object, "masked_share", result->masked_share);
        cJSON_AddNumberToObject(object, "masked_views", result->masked_views);
    }
    if (result->has_object) {
        add_numbers(object, "object_low", result->object_low);
        add_numbers(object, "object_high", result->object_high);
    }
    add_numbers(object, "origin", result->origin);
    if (result->unit_length > 0)
        cJSON_AddNumberToObject(object, "unit_length", result->unit_length);
    if (params->has_time)
        cJSON_AddNumberToObject(object, "time", params->time);
    cJSON_AddNumberToObject(object, "seconds", result->seconds);
    cJSON_AddNumberToObject(object, "gpu_memory_bytes", (double)result->gpu_memory_bytes);
    char *text = base_json_print(object);
    cJSON_Delete(object);
    return text;
}
