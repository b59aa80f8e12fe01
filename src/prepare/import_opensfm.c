/* Reads reconstruction.json of OpenSfM, which OpenDroneMap runs. OpenSfM's documentation (Geometric
 * Models, Dataset Structure) defines lenses and poses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

/* OpenSfM's lenses, and the coefficients of each. */
static const struct projection {
    const char *type, *model, *coefficients;
} projections[] = {
    {"perspective", "OPENCV", "k1 k2"},     {"simple_radial", "OPENCV", "k1"},
    {"radial", "OPENCV", "k1 k2"},          {"brown", "OPENCV", "k1 k2 k3 p1 p2"},
    {"fisheye", "OPENCV_FISHEYE", "k1 k2"}, {"fisheye_opencv", "OPENCV_FISHEYE", "k1 k2 k3 k4"},
    {"spherical", "EQUIRECTANGULAR", ""},   {"equirectangular", "EQUIRECTANGULAR", ""},
};

/* ---- lenses ---------------------------------------------------------------------------------- */

static vkn_status find_projection(const cJSON *camera, const char *where,
                                  const struct projection **projection)
{
    const char *type = NULL;
    BASE_TRY(base_json_string(camera, "projection_type", where, true, &type));
    for (size_t i = 0; i < BASE_COUNT(projections); i++)
        if (strcmp(projections[i].type, type) == 0) {
            *projection = &projections[i];
            return VKN_OK;
        }
    return base_json_fail(where, "projection_type",
                          "%.40s is not supported; undistort the pictures (opensfm undistort)",
                          type);
}

/* Reads the coefficients. Those that the lens does not have must be 0. */
static vkn_status read_coefficients(const cJSON *camera, const char *where,
                                    const struct projection *projection, struct import_lens *lens)
{
    double other[6] = {0};
    const struct {
        const char *name;
        double *value;
    } fields[] = {{"k1", &lens->k1}, {"k2", &lens->k2}, {"k3", &lens->k3}, {"k4", &lens->k4},
                  {"p1", &lens->p1}, {"p2", &lens->p2}, {"k5", &other[0]}, {"k6", &other[1]},
                  {"s0", &other[2]}, {"s1", &other[3]}, {"s2", &other[4]}, {"s3", &other[5]}};
    for (size_t i = 0; i < BASE_COUNT(fields); i++) {
        BASE_TRY(base_json_number(camera, fields[i].name, where, false, -IMPORT_MAX_COEFFICIENT,
                                  IMPORT_MAX_COEFFICIENT, fields[i].value));
        if (*fields[i].value != 0 && strstr(projection->coefficients, fields[i].name) == NULL)
            return base_json_fail(where, fields[i].name, "not supported for %s unless 0",
                                  projection->type);
    }
    return VKN_OK;
}

/* Reads lengths, which are relative to the larger side; the centre is relative to the picture's
 * middle. (nerfstudio takes the centre for pixels.) */
static vkn_status read_lengths(const cJSON *camera, const char *where, struct import_lens *lens)
{
    static const char *const focal_names[] = {"focal_x", "focal_y"};
    static const char *const center_names[] = {"c_x", "c_y"};
    double larger = fmax(lens->size[0], lens->size[1]);
    for (int axis = 0; axis < 2; axis++) {
        bool has_own = cJSON_GetObjectItemCaseSensitive(camera, focal_names[axis]) != NULL;
        double center = 0;
        BASE_TRY(base_json_number(camera, has_own ? focal_names[axis] : "focal", where, true, 1e-3,
                                  IMPORT_MAX_COEFFICIENT, &lens->focal[axis]));
        BASE_TRY(base_json_number(camera, center_names[axis], where, false, -10, 10, &center));
        lens->focal[axis] *= larger;
        lens->center[axis] = 0.5 * lens->size[axis] + larger * center;
    }
    return VKN_OK;
}

static vkn_status read_lens(struct import *import, const cJSON *camera, const char *where)
{
    const struct projection *projection = NULL;
    BASE_TRY(import_check_keys(
        import, camera,
        "projection_type width height focal focal_x focal_y c_x c_y k1 k2 k3 k4 k5 k6 p1 p2 s0 s1 "
        "s2 s3 focal_prior k1_prior k2_prior focal_x_prior focal_y_prior c_x_prior c_y_prior "
        "k3_prior p1_prior p2_prior",
        "cameras"));
    BASE_TRY(find_projection(camera, where, &projection));
    struct import_lens *lens = import_add_lens(import, camera->string);
    if (lens == NULL)
        return VKN_ERROR;
    lens->model = projection->model;
    BASE_TRY(base_json_number(camera, "width", where, true, 1, IMPORT_MAX_PIXELS, &lens->size[0]));
    BASE_TRY(base_json_number(camera, "height", where, true, 1, IMPORT_MAX_PIXELS, &lens->size[1]));
    BASE_TRY(read_coefficients(camera, where, projection, lens));
    return projection->coefficients[0] != '\0' ? read_lengths(camera, where, lens) : VKN_OK;
}

/* ---- shots and points ------------------------------------------------------------------------ */

/* Makes the matrix that turns by a vector's length about the vector (Rodrigues). */
static void turn_about(const double vector[3], double rotation[3][3])
{
    double angle = sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
    double c = cos(angle), s = angle > 1e-12 ? sin(angle) / angle : 1;
    double t = angle > 1e-6 ? (1 - c) / (angle * angle) : 0.5;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int k = 3 - i - j;
            double cross = i == j ? 0 : (j == (i + 1) % 3 ? -vector[k] : vector[k]);
            rotation[i][j] = (i == j ? c : 0) + s * cross + t * vector[i] * vector[j];
        }
}

/* Reads rotation and translation, which take the world to right, down and forwards. */
static vkn_status read_pose(const cJSON *shot, const char *where, struct import_frame *frame)
{
    double vector[3], translation[3], rotation[3][3], position[3] = {0};
    BASE_TRY(import_read_array(shot, "rotation", where, 3, vector));
    BASE_TRY(import_read_array(shot, "translation", where, 3, translation));
    turn_about(vector, rotation);
    import_transpose(rotation);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            position[i] -= rotation[i][j] * translation[j];
    return import_set_pose(frame, where, "rotation", (const double(*)[3])rotation, position, false);
}

static vkn_status read_shot(struct import *import, const cJSON *shot, const char *where)
{
    const char *camera = NULL;
    BASE_TRY(import_check_keys(import, shot,
                               "camera rotation translation orientation capture_time gps_dop "
                               "gps_position vertices faces scale covariance merge_cc skey compass "
                               "accelerometer opk_angles opk_accuracy gravity_down",
                               "shots"));
    BASE_TRY(base_json_string(shot, "camera", where, true, &camera));
    size_t lens = import_find_lens(import, camera);
    if (lens == import->lens_count)
        return base_json_fail(where, "camera", "there is no camera %.80s", camera);
    struct import_frame *frame = import_add_frame(import, shot->string);
    if (frame == NULL)
        return VKN_ERROR;
    frame->lens = lens;
    return read_pose(shot, where, frame);
}

static vkn_status read_point(struct import *import, const cJSON *point, const char *where)
{
    double position[3], color[3];
    BASE_TRY(import_read_array(point, "coordinates", where, 3, position));
    BASE_TRY(import_read_array(point, "color", where, 3, color));
    import_add_point(import, position, color);
    return VKN_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Calls `read` with each member of an object, and the beginning of its messages. */
static vkn_status for_members(struct import *import, const cJSON *json, const char *name,
                              vkn_status (*read)(struct import *import, const cJSON *item,
                                                 const char *where))
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, name), *item = NULL;
    if (!cJSON_IsObject(object))
        return base_json_fail(import->file, name, "missing, or not an object");
    cJSON_ArrayForEach (item, object) {
        char *where = base_format("%s: %s.%.80s.", import->file, name, item->string);
        vkn_status status = where != NULL ? read(import, item, where) : VKN_ERROR;
        free(where);
        BASE_TRY(status);
    }
    return VKN_OK;
}

/* Returns the reconstruction with the most shots, and warns of others. */
static const cJSON *choose(const struct import *import, const cJSON *list)
{
    const cJSON *item = NULL, *best = NULL;
    int most = -1, count = cJSON_GetArraySize(list);
    cJSON_ArrayForEach (item, list) {
        int shots = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(item, "shots"));
        best = shots > most ? item : best;
        most = shots > most ? shots : most;
    }
    if (count > 1)
        base_log(BASE_LOG_WARNING, "%s: the largest of %d reconstructions is read, with %d shots",
                 import->file, count, most);
    return best;
}

static vkn_status read_reconstruction(struct import *import, const cJSON *list)
{
    const cJSON *json = cJSON_IsArray(list) ? choose(import, list) : NULL;
    if (!cJSON_IsObject(json))
        return base_json_fail(import->file, "(top)", "not a list of reconstructions");
    BASE_TRY(import_check_keys(import, json,
                               "cameras shots points biases rig_cameras rig_instances "
                               "reference_lla main_shot pano_shots",
                               ""));
    BASE_TRY(for_members(import, json, "cameras", read_lens));
    BASE_TRY(for_members(import, json, "shots", read_shot));
    return cJSON_GetObjectItemCaseSensitive(json, "points") != NULL
               ? for_members(import, json, "points", read_point)
               : VKN_OK;
}

/* Finds the pictures: in images, also beside undistorted copies; of ODM, whose reconstruction is in
 * the folder opensfm, in images beside this folder; else in the folder itself. */
static vkn_status find_pictures(struct import *import)
{
    static const char *const folders[] = {"images", "../images"};
    bool is_inner = strcmp(base_path_name(import->folder), "opensfm") == 0;
    for (size_t i = 0; i < (is_inner ? 2 : 1); i++) {
        char *images = base_path_join(import->folder, folders[i]);
        bool has_images = images != NULL && base_is_folder(images);
        free(images);
        if (images == NULL)
            return VKN_ERROR;
        if (has_images)
            return import_set_pictures(import, folders[i]);
    }
    return VKN_OK;
}

vkn_status import_opensfm(struct import *import)
{
    cJSON *json = NULL;
    BASE_TRY(find_pictures(import));
    BASE_TRY(import_read_json(import, import->file, &json));
    vkn_status status = read_reconstruction(import, json);
    cJSON_Delete(json);
    return status;
}
