/* Reads calibrated cameras of Pix4D's Open Photogrammetry Format (OPF specification 1.0). Positions
 * have the axes of the "processing CRS", which is near its origin. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

#define DEGREE (3.14159265358979323846 / 180)

/* The resources of a project that are read. */
enum { CALIBRATED, LIST, INPUTS, RESOURCES };
static const struct {
    const char *item, *format;
} resources[RESOURCES] = {
    [CALIBRATED] = {"calibration", "application/opf-calibrated-cameras+json"},
    [LIST] = {"camera_list", "application/opf-camera-list+json"},
    [INPUTS] = {"input_cameras", "application/opf-input-cameras+json"},
};

struct project {
    struct import *import;
    char *paths[RESOURCES];
    cJSON *json[RESOURCES];
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* ---- the project ----------------------------------------------------------------------------- */

/* Decodes a URI reference (RFC 3986) into a path, without a fragment such as "#page=1". */
static char *path_of_uri(const char *uri)
{
    static const char scheme[] = "file://";
    uri += strncmp(uri, scheme, strlen(scheme)) == 0 ? strlen(scheme) : 0;
    char *path = base_format("%.*s", (int)strcspn(uri, "#"), uri);
    if (path != NULL)
        scene_decode_percent(path);
    return path;
}

/* Keeps the first resource of each format that is read. */
static vkn_status add_resource(struct project *project, const char *type, const cJSON *resource,
                               const char *folder)
{
    const char *format = cJSON_GetStringValue(get(resource, "format"));
    const char *uri = cJSON_GetStringValue(get(resource, "uri"));
    for (int i = 0; i < RESOURCES; i++) {
        if (format == NULL || strcmp(type, resources[i].item) != 0 ||
            strcmp(format, resources[i].format) != 0)
            continue;
        if (uri == NULL)
            return base_json_fail(project->import->file, "items", "a resource has no uri");
        if (project->paths[i] != NULL)
            return import_add_unread(project->import, "items", "a second item of one type");
        char *name = path_of_uri(uri);
        project->paths[i] = name != NULL ? base_path_join(folder, name) : NULL;
        free(name);
        return project->paths[i] != NULL ? VKN_OK : VKN_ERROR;
    }
    return VKN_OK;
}

static vkn_status find_resources(struct project *project, const cJSON *json, const char *folder)
{
    const cJSON *item = NULL, *resource = NULL;
    cJSON_ArrayForEach (item, get(json, "items")) {
        const char *type = cJSON_GetStringValue(get(item, "type"));
        cJSON_ArrayForEach (resource, get(item, "resources"))
            if (type != NULL)
                BASE_TRY(add_resource(project, type, resource, folder));
    }
    for (int i = CALIBRATED; i <= LIST; i++)
        if (project->paths[i] == NULL)
            return base_json_fail(project->import->file, "items",
                                  "there is no item %s with a resource %s", resources[i].item,
                                  resources[i].format);
    return VKN_OK;
}

/* Checks the version of a file: later major versions may have another meaning. */
static vkn_status check_version(const cJSON *json, const char *path)
{
    const char *version = NULL;
    BASE_TRY(base_json_string(json, "version", path, true, &version));
    return strncmp(version, "1.", 2) == 0
               ? VKN_OK
               : base_json_fail(path, "version", "%.40s is not supported (1.0 is)", version);
}

static vkn_status read_resources(struct project *project)
{
    for (int i = 0; i < RESOURCES; i++) {
        if (project->paths[i] == NULL)
            continue;
        BASE_TRY(import_read_json(project->import, project->paths[i], &project->json[i]));
        BASE_TRY(check_version(project->json[i], project->paths[i]));
    }
    return VKN_OK;
}

/* Returns the element of a list with this id; NULL: none. Ids are numbers of 64 bits, of which 53
 * are compared. */
static const cJSON *find_id(const cJSON *list, double id)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, list)
        if (cJSON_GetNumberValue(get(item, "id")) == id)
            return item;
    return NULL;
}

/* ---- lenses ---------------------------------------------------------------------------------- */

/* Reads a perspective lens; T1 and T2 are OpenCV's p1 and p2. */
static vkn_status read_internals(struct import *import, const cJSON *internals, const char *where,
                                 struct import_lens *lens)
{
    const char *type = NULL;
    double radial[3], tangential[2];
    BASE_TRY(base_json_string(internals, "type", where, true, &type));
    if (strcmp(type, "perspective") != 0)
        return base_json_fail(where, "type",
                              "%.40s is not supported (perspective is); export undistorted "
                              "pictures",
                              type);
    BASE_TRY(import_check_keys(import, internals,
                               "type principal_point_px focal_length_px radial_distortion "
                               "tangential_distortion extensions",
                               "internals"));
    BASE_TRY(base_json_number(internals, "focal_length_px", where, true, 1e-3, IMPORT_MAX_PIXELS,
                              &lens->focal[0]));
    BASE_TRY(import_read_array(internals, "principal_point_px", where, 2, lens->center));
    BASE_TRY(import_read_array(internals, "radial_distortion", where, 3, radial));
    BASE_TRY(import_read_array(internals, "tangential_distortion", where, 2, tangential));
    lens->focal[1] = lens->focal[0];
    lens->k1 = radial[0];
    lens->k2 = radial[1];
    lens->k3 = radial[2];
    lens->p1 = tangential[0];
    lens->p2 = tangential[1];
    return VKN_OK;
}

static vkn_status read_sensor(struct project *project, const cJSON *sensor, const char *where,
                              struct import_lens *lens)
{
    const cJSON *input =
        find_id(get(project->json[INPUTS], "sensors"), get(sensor, "id")->valuedouble);
    BASE_TRY(import_check_keys(project->import, sensor, "id internals rig_relatives extensions",
                               "sensor"));
    if (input != NULL)
        BASE_TRY(import_read_array(input, "image_size_px", project->paths[INPUTS], 2, lens->size));
    char *inside = base_format("%sinternals.", where);
    vkn_status status =
        inside != NULL ? read_internals(project->import, get(sensor, "internals"), inside, lens)
                       : VKN_ERROR;
    free(inside);
    return status;
}

/* Sets *index to the lens of a sensor, which is read when the first camera uses it. */
static vkn_status find_lens(struct project *project, const cJSON *camera, const char *where,
                            size_t *index)
{
    double id = 0;
    char key[40];
    BASE_TRY(base_json_number(camera, "sensor_id", where, true, 0, 0x1p64, &id));
    snprintf(key, sizeof(key), "%.17g", id);
    *index = import_find_lens(project->import, key);
    if (*index < project->import->lens_count)
        return VKN_OK;
    const cJSON *sensor = find_id(get(project->json[CALIBRATED], "sensors"), id);
    if (sensor == NULL)
        return base_json_fail(where, "sensor_id", "there is no sensor %s", key);
    struct import_lens *lens = import_add_lens(project->import, key);
    char *inside =
        lens != NULL ? base_format("%s: sensor %s.", project->paths[CALIBRATED], key) : NULL;
    vkn_status status = inside != NULL ? read_sensor(project, sensor, inside, lens) : VKN_ERROR;
    free(inside);
    return status;
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Sets the pose: R_x(omega) R_y(phi) R_z(kappa) takes right, up and backwards to the world. */
static vkn_status read_pose(const cJSON *camera, const char *where, struct import_frame *frame)
{
    double a[3], position[3];
    BASE_TRY(import_read_array(camera, "orientation_deg", where, 3, a));
    BASE_TRY(import_read_array(camera, "position", where, 3, position));
    double co = cos(DEGREE * a[0]), so = sin(DEGREE * a[0]), cp = cos(DEGREE * a[1]),
           sp = sin(DEGREE * a[1]), ck = cos(DEGREE * a[2]), sk = sin(DEGREE * a[2]);
    const double rotation[3][3] = {
        {cp * ck, -cp * sk, sp},
        {co * sk + so * sp * ck, co * ck - so * sp * sk, -so * cp},
        {so * sk - co * sp * ck, so * ck + co * sp * sk, co * cp},
    };
    return import_set_pose(frame, where, "orientation_deg", rotation, position, true);
}

static vkn_status read_camera(struct project *project, const cJSON *camera, const char *where)
{
    double id = 0;
    size_t lens = 0;
    BASE_TRY(import_check_keys(project->import, camera,
                               "id sensor_id position orientation_deg extensions", "camera"));
    BASE_TRY(base_json_number(camera, "id", where, true, 0, 0x1p64, &id));
    const cJSON *listed = find_id(get(project->json[LIST], "cameras"), id);
    const char *uri = cJSON_GetStringValue(get(listed, "uri"));
    if (uri == NULL)
        return base_json_fail(where, "id", "%s has no camera %.17g with a uri",
                              base_path_name(project->paths[LIST]), id);
    BASE_TRY(find_lens(project, camera, where, &lens));
    char *name = path_of_uri(uri);
    struct import_frame *frame = name != NULL ? import_add_frame(project->import, name) : NULL;
    free(name);
    if (frame == NULL)
        return VKN_ERROR;
    frame->lens = lens;
    return read_pose(camera, where, frame);
}

static vkn_status read_cameras(struct project *project)
{
    const cJSON *json = project->json[CALIBRATED], *camera = NULL;
    size_t index = 0;
    BASE_TRY(
        import_check_keys(project->import, json, "format version sensors cameras extensions", ""));
    if (!cJSON_IsArray(get(json, "cameras")))
        return base_json_fail(project->paths[CALIBRATED], "cameras", "missing, or not an array");
    cJSON_ArrayForEach (camera, get(json, "cameras")) {
        char *where = base_format("%s: cameras[%zu].", project->paths[CALIBRATED], index++);
        vkn_status status = where != NULL ? read_camera(project, camera, where) : VKN_ERROR;
        free(where);
        BASE_TRY(status);
    }
    return VKN_OK;
}

vkn_status import_opf(struct import *import)
{
    struct project project = {.import = import};
    cJSON *json = NULL;
    char *folder = base_path_folder(import->file);
    vkn_status status = folder != NULL ? import_read_json(import, import->file, &json) : VKN_ERROR;
    if (status == VKN_OK)
        status = check_version(json, import->file);
    if (status == VKN_OK)
        status = find_resources(&project, json, folder);
    if (status == VKN_OK)
        status = read_resources(&project);
    if (status == VKN_OK)
        status = read_cameras(&project);
    for (int i = 0; i < RESOURCES; i++) {
        free(project.paths[i]);
        cJSON_Delete(project.json[i]);
    }
    cJSON_Delete(json);
    free(folder);
    return status;
}
