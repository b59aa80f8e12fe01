/* Reads cameras that Agisoft Metashape exported as XML (File > Export > Export Cameras). Formulas:
 * Metashape User Manual, Professional Edition, appendix "Camera models"; the Python API reference
 * defines camera.transform and chunk.transform.matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

#define NO_COMPONENT "" /* of cameras without component_id */

/* The transformation from a component's axes to the world: scale * rotation * x + translation. */
struct placement {
    double rotation[3][3], translation[3], scale;
};

/* State of reading a chunk. */
struct chunk {
    struct import *import;
    const cJSON *json, *sensors;
    const char *component;  /* id of the component with most cameras */
    size_t cameras, others; /* cameras with a pose in this component, and in other ones */
    const char **ids;       /* components of the cameras with a pose; only while they are counted */
    size_t id_count;
    struct placement placement;
};

static const cJSON *child(const cJSON *element, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(element, name);
}

static const char *attribute(const cJSON *element, const char *name)
{
    return cJSON_GetStringValue(child(element, name));
}

/* ---- lenses ---------------------------------------------------------------------------------- */

/* Coefficients of a calibration; absent ones are 0. */
enum { F, CX, CY, B1, B2, K1, K2, K3, K4, P1, P2, P3, P4, COEFFICIENTS };
static const char *const names[COEFFICIENTS] = {"f",  "cx", "cy", "b1", "b2", "k1", "k2",
                                                "k3", "k4", "p1", "p2", "p3", "p4"};

static vkn_status read_coefficients(const cJSON *calibration, const char *where,
                                    double values[COEFFICIENTS])
{
    for (int i = 0; i < COEFFICIENTS; i++) {
        values[i] = 0;
        double most = i <= B2 ? IMPORT_MAX_PIXELS : IMPORT_MAX_COEFFICIENT;
        if (i == F || child(calibration, names[i]) != NULL)
            BASE_TRY(import_parse(import_xml_text(calibration, names[i]), where, names[i], most,
                                  &values[i]));
    }
    return values[F] >= 1e-3 ? VKN_OK : base_json_fail(where, "f", "%g is too small", values[F]);
}

static vkn_status read_size(const cJSON *sensor, const char *where, double size[2])
{
    const cJSON *resolution = child(sensor, "resolution");
    BASE_TRY(import_parse(attribute(resolution, "@width"), where, "resolution.width",
                          IMPORT_MAX_PIXELS, &size[0]));
    BASE_TRY(import_parse(attribute(resolution, "@height"), where, "resolution.height",
                          IMPORT_MAX_PIXELS, &size[1]));
    return size[0] >= 1 && size[1] >= 1
               ? VKN_OK
               : base_json_fail(where, "resolution", "not a size of pictures");
}

/* Refuses coefficients that OpenCV's lenses do not have, by their largest effect in the picture. */
static vkn_status check_others(struct import *import, const char *where, bool is_fisheye,
                               const double size[2], const double c[COEFFICIENTS])
{
    double r = hypot(size[0], size[1]) / (2 * c[F]), r2 = r * r;
    double tangential = 3 * c[F] * (fabs(c[P1]) + fabs(c[P2])) * r2;
    BASE_TRY(import_refuse_coefficient(import, where, "b2", fabs(c[B2]) * r));
    if (!is_fisheye)
        BASE_TRY(import_refuse_coefficient(import, where, "k4", c[F] * fabs(c[K4]) * pow(r, 9)));
    BASE_TRY(import_refuse_coefficient(import, where, "p3", tangential * fabs(c[P3]) * r2));
    return import_refuse_coefficient(import, where, "p4", tangential * fabs(c[P4]) * r2 * r2);
}

/* Fills a lens. Metashape's P1 belongs to r^2 + 2 x^2, OpenCV's p2 (nerfstudio does not swap them),
 * and its b1 is the difference of the focal lengths. The centre is relative to the picture's
 * middle, and pixel centres are at halves. */
static vkn_status set_lens(struct import *import, const char *where, const char *type,
                           const double c[COEFFICIENTS], struct import_lens *lens)
{
    bool is_fisheye = strcmp(type, "fisheye") == 0;
    if (!is_fisheye && strcmp(type, "frame") != 0)
        return base_json_fail(where, "type",
                              "%.40s is not supported (frame, fisheye and spherical are); export "
                              "undistorted pictures",
                              type);
    BASE_TRY(check_others(import, where, is_fisheye, lens->size, c));
    lens->focal[0] = c[F] + c[B1];
    lens->focal[1] = c[F];
    for (int axis = 0; axis < 2; axis++)
        lens->center[axis] = 0.5 * lens->size[axis] + c[CX + axis];
    lens->k1 = c[K1];
    lens->k2 = c[K2];
    lens->k3 = c[K3];
    lens->k4 = is_fisheye ? c[K4] : 0;
    lens->p1 = c[P2];
    lens->p2 = c[P1];
    bool has_tangential = c[P1] != 0 || c[P2] != 0;
    if (is_fisheye) /* only COLMAP's fisheye with thin prism has tangential coefficients */
        lens->model = has_tangential ? "THIN_PRISM_FISHEYE" : "OPENCV_FISHEYE";
    return VKN_OK;
}

/* Returns the adjusted calibration of a sensor, else its initial one; NULL: none. */
static const cJSON *calibration_of(const cJSON *sensor)
{
    const cJSON *item = NULL, *found = NULL;
    cJSON_ArrayForEach (item, sensor) {
        if (strcmp(item->string, "calibration") != 0)
            continue;
        const char *class = attribute(item, "@class");
        if (found == NULL || (class != NULL && strcmp(class, "adjusted") == 0))
            found = item;
    }
    return found;
}

static vkn_status read_sensor(struct import *import, const cJSON *sensor, const char *where,
                              struct import_lens *lens)
{
    const cJSON *calibration = calibration_of(sensor);
    const char *type = attribute(calibration, "@type");
    double values[COEFFICIENTS];
    BASE_TRY(import_check_keys(import, sensor,
                               "@id @label @type resolution property bands data_type calibration "
                               "covariance black_level sensitivity meta #text",
                               "sensor"));
    BASE_TRY(import_check_keys(import, calibration,
                               "@type @class resolution f cx cy b1 b2 k1 k2 k3 k4 p1 p2 p3 p4",
                               "calibration"));
    type = type != NULL ? type : attribute(sensor, "@type");
    if (type == NULL)
        return base_json_fail(where, "type", "missing");
    BASE_TRY(read_size(child(calibration, "resolution") != NULL ? calibration : sensor, where,
                       lens->size));
    if (strcmp(type, "spherical") == 0) {
        lens->model = "EQUIRECTANGULAR"; /* a full panorama, which has no coefficients */
        return calibration != NULL ? import_add_unread(import, "sensor", "calibration") : VKN_OK;
    }
    if (calibration == NULL)
        return base_json_fail(where, "calibration", "missing: the cameras are not aligned");
    BASE_TRY(read_coefficients(calibration, where, values));
    return set_lens(import, where, type, values, lens);
}

/* Sets *index to the lens of a sensor, which is read when the first camera uses it. */
static vkn_status find_lens(struct chunk *chunk, const char *id, const char *where, size_t *index)
{
    struct import *import = chunk->import;
    const cJSON *sensor = NULL, *found = NULL;
    *index = import_find_lens(import, id != NULL ? id : "");
    if (*index < import->lens_count)
        return VKN_OK;
    cJSON_ArrayForEach (sensor, chunk->sensors) {
        const char *other = attribute(sensor, "@id");
        if (found == NULL && id != NULL && other != NULL && strcmp(id, other) == 0)
            found = sensor;
    }
    if (found == NULL)
        return base_json_fail(where, "sensor_id", "there is no sensor %.40s",
                              id != NULL ? id : "(missing)");
    struct import_lens *lens = import_add_lens(import, id);
    char *sensor_where = lens != NULL ? base_format("%s: sensor %s.", import->file, id) : NULL;
    vkn_status status =
        sensor_where != NULL ? read_sensor(import, found, sensor_where, lens) : VKN_ERROR;
    free(sensor_where);
    return status;
}

/* ---- placement ------------------------------------------------------------------------------- */

static vkn_status read_placement(struct import *import, const cJSON *transform, const char *where,
                                 struct placement *placement)
{
    *placement = (struct placement){.rotation = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, .scale = 1};
    if (child(transform, "rotation") != NULL)
        BASE_TRY(import_parse_list(import_xml_text(transform, "rotation"), where, "rotation", 9,
                                   placement->rotation[0]));
    if (child(transform, "translation") != NULL)
        BASE_TRY(import_parse_list(import_xml_text(transform, "translation"), where, "translation",
                                   3, placement->translation));
    if (child(transform, "scale") != NULL)
        BASE_TRY(import_parse(import_xml_text(transform, "scale"), where, "scale",
                              IMPORT_MAX_COORDINATE, &placement->scale));
    /* Metashape's scale leads to metres, from scale bars or references. */
    import->unit_length = child(transform, "scale") != NULL ? 1 : 0;
    return placement->scale > 0
               ? VKN_OK
               : base_json_fail(where, "scale", "%g is not positive", placement->scale);
}

/* Reads the transformation of the chosen component, else of the chunk, whose component is active.
 */
static vkn_status find_placement(struct chunk *chunk)
{
    const cJSON *component = NULL, *transform = child(chunk->json, "transform");
    cJSON_ArrayForEach (component, child(chunk->json, "components")) {
        const char *id = attribute(component, "@id");
        if (id != NULL && strcmp(id, chunk->component) == 0 &&
            child(component, "transform") != NULL)
            transform = child(component, "transform");
    }
    char *where = base_format("%s: transform.", chunk->import->file);
    vkn_status status = where != NULL
                            ? read_placement(chunk->import, transform, where, &chunk->placement)
                            : VKN_ERROR;
    free(where);
    return status;
}

/* ---- cameras --------------------------------------------------------------------------------- */

static bool is_used(const cJSON *camera)
{
    const char *enabled = attribute(camera, "@enabled");
    return child(camera, "transform") != NULL &&
           (enabled == NULL || (strcmp(enabled, "false") != 0 && strcmp(enabled, "0") != 0));
}

static const char *component_of(const cJSON *camera)
{
    const char *id = attribute(camera, "@component_id");
    return id != NULL ? id : NO_COMPONENT;
}

/* Calls `act` with each camera, also of groups. */
static vkn_status for_cameras(struct chunk *chunk, const cJSON *list,
                              vkn_status (*act)(struct chunk *chunk, const cJSON *camera))
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, list) {
        if (strcmp(item->string, "camera") == 0)
            BASE_TRY(act(chunk, item));
        else if (strcmp(item->string, "group") == 0)
            BASE_TRY(for_cameras(chunk, item, act));
    }
    return VKN_OK;
}

/* Counts the cameras with a pose; lists their components once there is a list. */
static vkn_status list_component(struct chunk *chunk, const cJSON *camera)
{
    if (is_used(camera) && chunk->ids != NULL)
        chunk->ids[chunk->id_count] = component_of(camera);
    chunk->id_count += is_used(camera) ? 1 : 0;
    return VKN_OK;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the component that most of the listed cameras have. */
static void find_component(struct chunk *chunk)
{
    size_t first = 0;
    qsort(chunk->ids, chunk->id_count, sizeof *chunk->ids, compare_ids);
    for (size_t i = 0; i < chunk->id_count; i++) {
        first = strcmp(chunk->ids[first], chunk->ids[i]) == 0 ? first : i;
        if (i + 1 - first > chunk->cameras) {
            chunk->component = chunk->ids[i];
            chunk->cameras = i + 1 - first;
        }
    }
    chunk->others = chunk->id_count - chunk->cameras;
}

/* Chooses the component with the most cameras, because different ones have unrelated axes. */
static vkn_status choose_component(struct chunk *chunk)
{
    const cJSON *cameras = child(chunk->json, "cameras");
    chunk->component = NO_COMPONENT;
    BASE_TRY(for_cameras(chunk, cameras, list_component));
    chunk->ids = base_alloc(chunk->id_count, sizeof *chunk->ids);
    if (chunk->ids == NULL)
        return VKN_ERROR;
    chunk->id_count = 0;
    vkn_status status = for_cameras(chunk, cameras, list_component);
    if (status == VKN_OK)
        find_component(chunk);
    free(chunk->ids);
    chunk->ids = NULL;
    if (chunk->others > 0)
        base_log(BASE_LOG_WARNING,
                 "%s: %zu of %zu cameras are left out, because other components are aligned "
                 "separately",
                 chunk->import->file, chunk->others, chunk->id_count);
    return status;
}

/* Sets the pose: camera to component (right, down, forwards), then to the world. */
static vkn_status read_pose(const struct chunk *chunk, const cJSON *camera, const char *where,
                            struct import_frame *frame)
{
    const struct placement *to = &chunk->placement;
    double m[4][4], rotation[3][3] = {{0}}, position[3];
    BASE_TRY(import_parse_list(import_xml_text(camera, "transform"), where, "transform", 16, m[0]));
    for (int i = 0; i < 3; i++) {
        position[i] = to->translation[i];
        for (int k = 0; k < 3; k++) {
            position[i] += to->scale * to->rotation[i][k] * m[k][3];
            for (int j = 0; j < 3; j++)
                rotation[i][j] += to->rotation[i][k] * m[k][j];
        }
    }
    return import_set_pose(frame, where, "transform", (const double(*)[3])rotation, position,
                           false);
}

static vkn_status add_camera(struct chunk *chunk, const cJSON *camera, const char *label,
                             const char *where)
{
    size_t lens = 0;
    BASE_TRY(import_check_keys(chunk->import, camera,
                               "@id @label @sensor_id @component_id @enabled transform orientation "
                               "reference rotation_covariance location_covariance meta #text",
                               "camera"));
    BASE_TRY(find_lens(chunk, attribute(camera, "@sensor_id"), where, &lens));
    struct import_frame *frame = import_add_frame(chunk->import, label);
    if (frame == NULL)
        return VKN_ERROR;
    frame->lens = lens;
    return read_pose(chunk, camera, where, frame);
}

static vkn_status read_camera(struct chunk *chunk, const cJSON *camera)
{
    const char *label = attribute(camera, "@label");
    if (label == NULL || label[0] == '\0')
        return base_json_fail(chunk->import->file, "camera.label", "missing");
    if (!is_used(camera))
        return import_add_unposed(chunk->import, label);
    if (strcmp(component_of(camera), chunk->component) != 0)
        return VKN_OK;
    char *where = base_format("%s: camera %.80s.", chunk->import->file, label);
    vkn_status status = where != NULL ? add_camera(chunk, camera, label, where) : VKN_ERROR;
    free(where);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Takes the PLY file if its axes can be the chunk's: points of a georeferenced chunk are exported
 * in a map projection, but camera positions are geocentric. */
static vkn_status find_points(struct chunk *chunk)
{
    const char *reference = import_xml_text(chunk->json, "reference");
    BASE_TRY(import_find_cloud(chunk->import));
    if (chunk->import->cloud == NULL || reference == NULL ||
        strncmp(reference, "LOCAL_CS", strlen("LOCAL_CS")) == 0)
        return VKN_OK;
    base_log(BASE_LOG_WARNING,
             "%s: the points are left out, because they have the axes of a map projection and the "
             "cameras do not: export both in local coordinates",
             chunk->import->cloud);
    free(chunk->import->cloud);
    chunk->import->cloud = NULL;
    return VKN_OK;
}

static vkn_status read_chunk(struct chunk *chunk)
{
    BASE_TRY(import_check_keys(
        chunk->import, chunk->json,
        "@id @label @enabled sensors components cameras reference transform region settings meta "
        "markers scalebars frames thumbnails models dense_clouds point_clouds depth_maps_sets "
        "images shapes orthomosaics elevations tiled_models #text",
        "chunk"));
    chunk->sensors = child(chunk->json, "sensors");
    BASE_TRY(choose_component(chunk));
    BASE_TRY(find_placement(chunk));
    BASE_TRY(for_cameras(chunk, child(chunk->json, "cameras"), read_camera));
    return find_points(chunk);
}

vkn_status import_metashape(struct import *import)
{
    cJSON *root = NULL;
    struct chunk chunk = {.import = import};
    BASE_TRY(import_read_xml(import, import->file, &root));
    const cJSON *document = child(root, "document"), *item = NULL;
    vkn_status status = import_check_keys(import, document, "@version chunk #text", "document");
    cJSON_ArrayForEach (item, document)
        if (strcmp(item->string, "chunk") == 0 && chunk.json == NULL)
            chunk.json = item;
        else if (strcmp(item->string, "chunk") == 0 && status == VKN_OK)
            status = import_add_unread(import, "document", "chunk (a second one)");
    if (status == VKN_OK && chunk.json == NULL)
        status = base_json_fail(import->file, "chunk", "missing");
    if (status == VKN_OK)
        status = read_chunk(&chunk);
    cJSON_Delete(root);
    return status;
}
