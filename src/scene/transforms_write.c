/* Writes transforms.json files with other cameras. The rest of the text stays byte for byte. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/json_patch.h"
#include "scene/reader.h"

/* ---- poses ----------------------------------------------------------------------------------- */

/* Replaces a matrix of 3 or 4 rows. */
static vkn_status set_matrix(cJSON *matrix, const double pose[12])
{
    static const double last[4] = {0, 0, 0, 1};
    struct base_text text = {0};
    int rows = cJSON_GetArraySize(matrix) == 3 ? 3 : 4;
    for (int row = 0; row < rows; row++) {
        const double *values = row < 3 ? pose + (ptrdiff_t)4 * row : last;
        for (int column = 0; column < 4; column++) {
            char number[40];
            config_print_number(number, values[column], false);
            base_text_add(&text, "%s%s", column > 0 ? ", " : row > 0 ? "], [" : "[[", number);
        }
    }
    base_text_add(&text, "]]");
    return json_patch_set_text(matrix, &text);
}

/* Sets all matrices of a frame: readers differ in which of several they read. */
static vkn_status set_pose(cJSON *frame, const struct transforms *transforms,
                           const double new_pose[12])
{
    static const char *const names[] = {"transform_matrix", "transform_matrix_start",
                                        "transform_matrix_end"};
    double pose[12];
    memcpy(pose, new_pose, sizeof(pose));
    if (transforms->mitsuba)
        pose_convert_mitsuba(pose);
    cJSON *item = NULL;
    cJSON_ArrayForEach (item, frame)
        for (size_t i = 0; i < BASE_COUNT(names); i++)
            if (cJSON_IsArray(item) && strcmp(item->string, names[i]) == 0)
                BASE_TRY(set_matrix(item, pose));
    return VKN_OK;
}

/* ---- lenses ---------------------------------------------------------------------------------- */

/* Parts of a lens that are written one after the other, and their keys. */
enum part { FOCAL, CENTER, DISTORTION, SIZE, PARTS };
static const char *const part_names[PARTS][SCENE_COEFFICIENT_COUNT + 2] = {
    [FOCAL] = {"fl_x", "fl_y", "camera_angle_x", "camera_angle_y", "x_fov", "y_fov"},
    [CENTER] = {"cx", "cy"},
    [DISTORTION] = {SCENE_COEFFICIENTS(LENS_NAME) "distortion_params"},
    [SIZE] = {"w", "h"},
};

/* A frame with a new camera. */
struct new_frame {
    cJSON *item;
    const struct write_view *view;
    bool shares;                 /* the part that is being written is at the top level */
    bool has_size;               /* the file says of which size its images are */
    struct transforms_lens lens; /* the new one, in pixels of that size or of the image */
};

/* The new cameras of a file. */
struct rewrite {
    cJSON *json;
    const struct transforms *transforms; /* as read */
    struct new_frame *frames;
    size_t count;
    bool is_complete;  /* all frames with keys of their own for the lens have new lenses */
    bool is_agreed;    /* frames that share a part of the lens have the same new values for it */
    bool is_decentred; /* a new lens has its centre aside from the image's middle */
    bool is_used[SCENE_COEFFICIENT_COUNT]; /* a new lens or the top level has the coefficient */
};

static cJSON *find(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool has(const cJSON *object, const char *name)
{
    const cJSON *item = find(object, name);
    return item != NULL && !cJSON_IsNull(item);
}

static bool has_part(const cJSON *object, enum part part)
{
    for (size_t i = 0; part_names[part][i] != NULL; i++)
        if (has(object, part_names[part][i]))
            return true;
    return false;
}

/* Returns the object that has a part of a frame's lens, or that gets it: the top level of the file,
 * or the frame. */
static const cJSON *owner_of(const struct rewrite *rewrite, const struct new_frame *frame,
                             enum part part)
{
    if (has_part(frame->item, part) || !rewrite->is_complete)
        return frame->item;
    if (has_part(rewrite->json, part))
        return rewrite->json;
    return part != FOCAL && rewrite->is_agreed ? owner_of(rewrite, frame, FOCAL) : frame->item;
}

/* Where the lens of a frame is written: the top level of the file or the frame. */
struct target {
    const struct rewrite *rewrite;
    const struct transforms_lens *lens;
    const cJSON *object;
    bool is_frame, has_size;
    bool adds; /* false: keys that exist are replaced; true: keys that are needed are added */
};

/* Replaces a number, or adds it if it is needed: behind the last value that is replaced. */
static vkn_status put_number(const struct target *target, const char *name, bool needed,
                             double value)
{
    cJSON *item = find(target->object, name), *last = NULL, *other = NULL;
    bool adds = target->adds && needed && !has(target->object, name);
    char number[40];
    config_print_number(number, value, false);
    if (target->adds != adds || (!adds && !has(target->object, name)))
        return VKN_OK;
    if (item != NULL)
        return json_patch_set(item, base_format("%s", number));
    cJSON_ArrayForEach (other, target->object)
        last = cJSON_IsRaw(other) ? other : last;
    return json_patch_set(last, base_format("%s, \"%s\": %s", last->valuestring, name, number));
}

static bool is_centred(const struct transforms_lens *lens)
{
    struct transforms_lens centred = *lens;
    centred.center[0] = centred.center[1] = (double)NAN;
    return lens_difference(lens, &centred, LENS_CENTER) == NULL;
}

/* Writes focal lengths. Fields of view follow them; a file that has only these keeps only these
 * unless the centre needs pixels. One axis is enough for square pixels. */
static vkn_status put_focal(const struct target *target)
{
    const struct transforms_lens *lens = target->lens;
    const cJSON *object = target->object;
    struct transforms_lens square = *lens;
    square.focal[1] = lens->focal[0];
    bool in_angles = !has(object, "fl_x") && !has(object, "fl_y");
    bool is_alone = !target->is_frame || !has_part(target->rewrite->json, FOCAL);
    bool is_square = is_alone && lens_difference(lens, &square, LENS_FOCAL) == NULL;
    for (int axis = 0; axis < 2; axis++) {
        const char *const *names = part_names[FOCAL] + axis;
        double angle = 2 * atan(0.5 * lens->size[axis] / lens->focal[axis]);
        bool known = has(object, names[0]) || has(object, names[2]) || has(object, names[4]);
        bool needed = (in_angles && !is_centred(lens)) || (!known && !is_square);
        BASE_TRY(put_number(target, names[2], false, angle));
        BASE_TRY(put_number(target, names[4], false, angle * 180 / M_PI));
        BASE_TRY(put_number(target, names[0], needed, lens->focal[axis]));
    }
    return VKN_OK;
}

static vkn_status put_center(const struct target *target)
{
    const struct rewrite *rewrite = target->rewrite;
    bool needed = rewrite->is_decentred || (target->is_frame && has_part(rewrite->json, CENTER));
    for (int axis = 0; axis < 2; axis++)
        BASE_TRY(put_number(target, part_names[CENTER][axis], needed, target->lens->center[axis]));
    return VKN_OK;
}

/* Writes the coefficients, in nerfstudio's list if there is one (lens_read). */
static vkn_status put_distortion(const struct target *target)
{
    const double *k = target->lens->distortion;
    bool has_list = has(target->object, "distortion_params");
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++) {
        bool in_list = has_list && i != SCENE_sx1 && i != SCENE_sy1;
        bool needed = target->is_frame ? target->rewrite->is_used[i] : k[i] != 0;
        BASE_TRY(put_number(target, lens_coefficient_names[i], needed && !in_list, k[i]));
    }
    if (!has_list || target->adds)
        return VKN_OK;
    const double list[] = {k[SCENE_k1], k[SCENE_k2], k[SCENE_k3],
                           k[SCENE_k4], k[SCENE_p1], k[SCENE_p2]};
    struct base_text text = {0};
    for (size_t i = 0; i < BASE_COUNT(list); i++) {
        char number[40];
        config_print_number(number, list[i], false);
        base_text_add(&text, "%s%s", i == 0 ? "[" : ", ", number);
    }
    base_text_add(&text, "]");
    return json_patch_set_text(find(target->object, "distortion_params"), &text);
}

/* Adds the size of which pixels are, for readers that do not take it from the images. */
static vkn_status put_size(const struct target *target)
{
    bool needed = target->rewrite->is_decentred;
    for (int axis = 0; axis < 2 && !target->has_size; axis++)
        BASE_TRY(put_number(target, part_names[SIZE][axis], needed, target->lens->size[axis]));
    return VKN_OK;
}

static vkn_status put_part(const struct rewrite *rewrite, const struct new_frame *frame,
                           enum part part, bool in_frame)
{
    static vkn_status (*const put[PARTS])(const struct target *target) = {put_focal, put_center,
                                                                          put_distortion, put_size};
    struct target target = {.rewrite = rewrite,
                            .lens = &frame->lens,
                            .object = in_frame ? frame->item : rewrite->json,
                            .is_frame = in_frame,
                            .has_size = frame->has_size};
    BASE_TRY(put[part](&target));
    target.adds = true;
    return put[part](&target);
}

/* Writes a part of all lenses: at the top level if the frames that share it agree. */
static vkn_status put_part_of_all(struct rewrite *rewrite, enum part part)
{
    static const unsigned parts[PARTS] = {LENS_FOCAL, LENS_CENTER, LENS_DISTORTION, LENS_SIZE};
    const struct new_frame *first = NULL;
    bool agree = true;
    for (size_t i = 0; i < rewrite->count; i++) {
        struct new_frame *frame = &rewrite->frames[i];
        frame->shares = owner_of(rewrite, frame, part) == rewrite->json;
        if (!frame->view->has_lens || !frame->shares)
            continue;
        first = first != NULL ? first : frame;
        agree = agree && lens_difference(&first->lens, &frame->lens, parts[part]) == NULL;
    }
    if (first != NULL && agree)
        BASE_TRY(put_part(rewrite, first, part, false));
    for (size_t i = 0; i < rewrite->count; i++) {
        const struct new_frame *frame = &rewrite->frames[i];
        if (frame->view->has_lens && !(frame->shares && agree))
            BASE_TRY(put_part(rewrite, frame, part, true));
    }
    rewrite->is_agreed = rewrite->is_agreed && agree;
    return VKN_OK;
}

/* Replaces the name of a camera model that cannot hold a lens. */
static vkn_status set_model(const struct rewrite *rewrite, const struct new_frame *frame)
{
    const cJSON *object = has(frame->item, "camera_model") ? frame->item : rewrite->json;
    cJSON *item = find(object, "camera_model");
    const char *name = cJSON_GetStringValue(item), *problem = NULL;
    if (name == NULL || !frame->view->has_lens)
        return VKN_OK;
    const struct lens_model *model = lens_model_by_name(name, strlen(name));
    const struct lens_model *other = lens_model_for(model, &frame->lens, &problem);
    return other == NULL || other == model
               ? VKN_OK
               : json_patch_set(item, base_format("\"%s\"", other->name));
}

/* Returns whether a frame has keys of its own for its lens. */
static bool has_parts(const cJSON *frame)
{
    bool found = false;
    for (enum part part = 0; part < PARTS; part++)
        found = found || has_part(frame, part);
    return found;
}

static vkn_status set_lenses(struct rewrite *rewrite)
{
    const cJSON *item = NULL;
    size_t own = 0, rewritten = 0;
    cJSON_ArrayForEach (item, find(rewrite->json, "frames"))
        own += has_parts(item) ? 1 : 0;
    for (size_t i = 0; i < rewrite->count; i++) {
        const struct new_frame *frame = &rewrite->frames[i];
        rewritten += frame->view->has_lens && has_parts(frame->item) ? 1 : 0;
        rewrite->is_decentred =
            rewrite->is_decentred || (frame->view->has_lens && !is_centred(&frame->lens));
        for (size_t k = 0; k < SCENE_COEFFICIENT_COUNT; k++)
            rewrite->is_used[k] = rewrite->is_used[k] || frame->lens.distortion[k] != 0 ||
                                  rewrite->transforms->lens.distortion[k] != 0;
    }
    rewrite->is_complete = rewritten == own;
    rewrite->is_agreed = true;
    for (enum part part = 0; part < PARTS; part++)
        BASE_TRY(put_part_of_all(rewrite, part));
    for (size_t i = 0; i < rewrite->count; i++)
        BASE_TRY(set_model(rewrite, &rewrite->frames[i]));
    return VKN_OK;
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Sets sizes from what the file says about its images. */
static void resize_lens(const struct transforms *transforms, struct new_frame *frame)
{
    const struct transforms_lens *old = &transforms->lens;
    for (size_t i = 0; i < transforms->count; i++)
        if (transforms->frames[i].index == frame->view->frame)
            old = &transforms->frames[i].lens;
    frame->lens = frame->view->lens;
    frame->has_size = old->size[0] > 0;
    if (frame->view->has_lens && frame->has_size)
        lens_resize(&frame->lens, old->size);
}

static vkn_status set_cameras(struct rewrite *rewrite, uint32_t file,
                              const struct write_view *views, size_t count)
{
    const struct transforms *transforms = rewrite->transforms;
    cJSON *list = find(rewrite->json, "frames");
    size_t frames = (size_t)cJSON_GetArraySize(list);
    rewrite->frames = base_alloc(count, sizeof(*rewrite->frames));
    if (rewrite->frames == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++) {
        if (views[i].file != file)
            continue;
        BASE_TRY(write_check_frame(transforms->file, "frames", views[i].frame, frames));
        struct new_frame *frame = &rewrite->frames[rewrite->count++];
        frame->view = &views[i];
        frame->item = cJSON_GetArrayItem(list, (int)views[i].frame);
        BASE_TRY(set_pose(frame->item, transforms, views[i].pose));
        resize_lens(transforms, frame);
    }
    return set_lenses(rewrite);
}

/* ---- names of files -------------------------------------------------------------------------- */

/* Returns whether a relative path leads out of its folder. */
static bool leads_out(const char *path)
{
    int depth = 0;
    if (base_path_is_absolute(path))
        return false;
    while (*path != '\0' && depth >= 0) {
        size_t length = strcspn(path, "/\\");
        if (length == 2 && strncmp(path, "..", 2) == 0)
            depth--;
        else if (length > 0 && !(length == 1 && *path == '.'))
            depth++;
        path += length;
        path += strspn(path, "/\\");
    }
    return depth < 0;
}

/* Makes a name of a file that leads out of the folder absolute. */
static vkn_status set_name(cJSON *item, const char *folder)
{
    if (!cJSON_IsString(item) || !leads_out(item->valuestring))
        return VKN_OK;
    char *path = base_path_join(folder, item->valuestring);
    cJSON *absolute = path != NULL ? cJSON_CreateString(path) : NULL;
    char *text = base_json_print_unformatted(absolute);
    cJSON_Delete(absolute);
    free(path);
    return json_patch_set(item, text);
}

/* Makes names absolute in all keys that end with "path" and in lists of file names, since the frame
 * of an item of train_filenames is found by its file_path. */
static vkn_status set_names(const cJSON *object, const char *folder)
{
    cJSON *item = NULL, *name = NULL;
    cJSON_ArrayForEach (item, object) {
        if (reader_ends_with(item->string, "path"))
            BASE_TRY(set_name(item, folder));
        if (!reader_ends_with(item->string, "_filenames"))
            continue;
        cJSON_ArrayForEach (name, item)
            BASE_TRY(set_name(name, folder));
    }
    return VKN_OK;
}

static vkn_status set_all_names(const cJSON *json, const char *file)
{
    const cJSON *frame = NULL;
    char *folder = base_path_folder(file),
         *absolute = folder != NULL ? realpath(folder, NULL) : NULL;
    vkn_status status = absolute != NULL
                            ? set_names(json, absolute)
                            : base_fail(VKN_ERROR, "%s: its folder has no absolute path", file);
    cJSON_ArrayForEach (frame, cJSON_GetObjectItemCaseSensitive(json, "frames"))
        if (status == VKN_OK)
            status = set_names(frame, absolute);
    free(absolute);
    free(folder);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static vkn_status add_file(const char *path, uint32_t file, const char *text, size_t size,
                           const struct write_view *views, size_t count, struct write_files *copies)
{
    cJSON *json = NULL;
    struct transforms transforms = {0};
    struct write_patch patch = {.data = text};
    BASE_TRY(base_json_parse(path, text, size, &json));
    vkn_status status = transforms_parse(path, json, true, &transforms);
    struct rewrite rewrite = {.json = json, .transforms = &transforms};
    if (status == VKN_OK)
        status = set_cameras(&rewrite, file, views, count);
    if (status == VKN_OK)
        status = set_all_names(json, path);
    if (status == VKN_OK) {
        json_patch_write(&patch, json);
        status = write_add(copies, base_path_name(path), &patch, size);
    }
    free(rewrite.frames);
    transforms_free(&transforms);
    cJSON_Delete(json);
    return status;
}

vkn_status transforms_write(const char *path, const struct write_view *views, size_t count,
                            struct write_files *copies)
{
    char *paths[SCENE_SPLITS];
    bool single = false;
    vkn_status status = transforms_files(path, paths, &single);
    for (size_t i = 0; i < count && status == VKN_OK; i++)
        if (views[i].file >= SCENE_SPLITS || paths[views[i].file] == NULL)
            status = base_fail(VKN_BAD_INPUT, "%s: it has no file %u for a new camera", path,
                               views[i].file);
    for (unsigned i = 0; i < SCENE_SPLITS && status == VKN_OK; i++) {
        char *text = NULL;
        size_t size = 0;
        if (paths[i] != NULL)
            status = base_text_read(paths[i], TRANSFORMS_MAX_SIZE, &text, &size);
        if (status == VKN_OK && paths[i] != NULL)
            status = add_file(paths[i], i, text, size, views, count, copies);
        free(text);
    }
    for (unsigned i = 0; i < SCENE_SPLITS; i++)
        free(paths[i]);
    return status;
}
