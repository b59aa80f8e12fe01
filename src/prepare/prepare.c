/* Implements vkn_prepare: runs the stages one after the other. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prepare/import.h"

#define LEAST_PANORAMA 1024u /* width in pixels; views of smaller images would be too small */

/* ---- the folder ------------------------------------------------------------------------------ */

static vkn_status check_params(const struct vkn_prepare_params *params)
{
    if (params->pictures == NULL || params->pictures[0] == '\0')
        return base_fail(VKN_BAD_INPUT, "no photographs are given");
    if (params->out == NULL || params->out[0] == '\0')
        return base_fail(VKN_BAD_INPUT, "no folder is given for the scene");
    if (params->frames > 0 && (params->frames < MIN_FRAMES || params->frames > MOST_FRAMES))
        return base_fail(VKN_BAD_INPUT, "frames: %u is not from %u to %u", params->frames,
                         MIN_FRAMES, MOST_FRAMES);
    if (params->equirectangular && params->camera_model != VKN_CAMERA_MODEL_AUTO)
        return base_fail(VKN_BAD_INPUT, "camera_model: not used with equirectangular pictures, "
                                        "which are split into pinhole images");
    return VKN_OK;
}

/* Checks that the photographs are outside of the scene's folder, whose old output is removed. */
static vkn_status check_outside(const struct vkn_prepare_params *params)
{
    char *pictures = realpath(params->pictures, NULL), *out = realpath(params->out, NULL);
    size_t length = out != NULL ? strlen(out) : 0;
    bool inside = pictures != NULL && out != NULL && strncmp(pictures, out, length) == 0 &&
                  (pictures[length] == '/' || pictures[length] == '\0');
    free(pictures);
    free(out);
    return inside
               ? base_fail(VKN_BAD_INPUT, "%s: the scene's folder must not contain the photographs",
                           params->out)
               : VKN_OK;
}

/* Fails if the folder has other files, which prepare must neither remove nor mix with a scene. */
static vkn_status check_not_foreign(const struct preparation *preparation)
{
    static const char *const own[] = {"prepare", "prepare.json", NULL};
    return base_refuse_foreign(preparation->out, own, "prepare");
}

/* Locks the folder for this process and its children, until the last of them ends. */
static vkn_status lock(struct preparation *preparation)
{
    char *path = base_path_join(preparation->work, "lock");
    vkn_status status = path != NULL ? base_lock_take(path, preparation->out,
                                                      "preparing this scene", &preparation->lock)
                                     : VKN_ERROR;
    free(path);
    return status;
}

static vkn_status refuse_changed_input(const struct preparation *preparation, const char *pictures)
{
    const char *earlier = preparation->record.pictures;
    if (strcmp(earlier, pictures) == 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: was prepared before the pictures (%s) or the options for them "
                         "changed; --overwrite prepares "
                         "it anew, or name another folder with --out",
                         preparation->out, earlier);
    return base_fail(VKN_BAD_INPUT,
                     "%s: was prepared from other pictures (%s); --overwrite replaces it, or name "
                     "another folder with --out",
                     preparation->out, earlier);
}

/* Checks that the record is new or of the same input. */
static vkn_status check_record(struct preparation *preparation)
{
    struct record *record = &preparation->record;
    const struct vkn_prepare_params *params = preparation->params;
    uint32_t made_checksum = record->stages[0][STAGE_IMAGES];
    if (record->pictures == NULL)
        BASE_TRY(check_not_foreign(preparation));
    char *real = realpath(params->pictures, NULL);
    char *pictures = base_format("%s", real != NULL ? real : params->pictures);
    free(real);
    vkn_status status = pictures != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && made_checksum != 0 && made_checksum != preparation->source.checksum &&
        !params->overwrite)
        status = refuse_changed_input(preparation, pictures);
    if (status != VKN_OK) {
        free(pictures);
        return status;
    }
    if (params->overwrite) {
        record_free(record);
        *record = (struct record){0};
    }
    free(record->pictures);
    record->pictures = pictures;
    return VKN_OK;
}

static vkn_status open_record(struct preparation *preparation)
{
    record_free(&preparation->record);
    vkn_status status = record_read(preparation);
    if (status == VKN_BAD_INPUT && preparation->params->overwrite)
        record_free(&preparation->record); /* discards a damaged record */
    else
        BASE_TRY(status);
    return check_record(preparation);
}

/* Opens the scene's folder. Creates nothing in the folder before the record is checked. Reads the
 * record again under the lock, because a process that had the lock may have changed the record. */
static vkn_status open_folder(struct preparation *preparation)
{
    BASE_TRY(base_make_last_folder(preparation->out));
    BASE_TRY(check_outside(preparation->params));
    BASE_TRY(open_record(preparation));
    BASE_TRY(files_check_no_links(preparation->work));
    BASE_TRY(base_make_folder(preparation->work));
    BASE_TRY(lock(preparation));
    base_remove_temporaries(preparation->out, "prepare.json");
    return open_record(preparation);
}

/* ---- panoramas ------------------------------------------------------------------------------- */

static void warn_panoramas(const struct preparation *preparation)
{
    size_t panoramas = 0;
    for (size_t i = 0; i < preparation->count; i++) {
        uint32_t width = 0, height = 0;
        char *path = base_path_join(preparation->images, preparation->names[i]);
        bool read = path != NULL && scene_image_size(path, &width, &height) == VKN_OK;
        panoramas += read && width == 2 * height && width >= LEAST_PANORAMA ? 1 : 0;
        free(path);
    }
    if (2 * panoramas > preparation->count && !preparation->params->equirectangular)
        base_log(BASE_LOG_WARNING,
                 "%s: %zu of %zu pictures are twice as wide as high: if they are full panoramas, "
                 "prepare them with --equirectangular",
                 preparation->params->pictures, panoramas, preparation->count);
}

/* ---- all stages ------------------------------------------------------------------------------ */

static vkn_status run(struct preparation *preparation)
{
    BASE_TRY(import_open(preparation));
    if (preparation->import == NULL && preparation->params->unit_length > 0)
        return base_fail(
            VKN_BAD_INPUT,
            "%s: unit_length (--distance): COLMAP is to find the poses; measure in its "
            "coordinates afterwards (vknerf info SCENE --distance)",
            preparation->params->pictures);
    if (preparation->import == NULL)
        BASE_TRY(program_require("colmap", "to find poses"));
    BASE_TRY(source_open(preparation));
    BASE_TRY(open_folder(preparation));
    BASE_TRY(report_progress_begin(&preparation->job, 0, 0, &preparation->progress));
    BASE_TRY(images_make(preparation));
    report_progress_pause(preparation->progress);
    preparation->result.pictures = preparation->count;
    if (preparation->import != NULL)
        return import_write(preparation);
    warn_panoramas(preparation);
    BASE_TRY(poses_find(preparation));
    return prepare_check_stop(preparation);
}

static void end(struct preparation *preparation)
{
    BASE_KEEP_ERROR;
    report_progress_end(&preparation->progress);
    source_free(&preparation->source);
    import_close(&preparation->import);
    record_free(&preparation->record);
    for (size_t i = 0; i < preparation->count; i++)
        free(preparation->names[i]);
    free(preparation->names);
    free(preparation->work);
    free(preparation->images);
    if (preparation->lock >= 0)
        close(preparation->lock);
}

vkn_status vkn_prepare(const struct vkn_prepare_params *given, struct vkn_prepare_result *result)
{
    BASE_C_LOCALE;
    struct vkn_prepare_params params;
    struct preparation preparation = {.params = &params, .lock = -1};
    double began = base_seconds();
    BASE_NEED(result);
    BASE_TRY(BASE_FILL(vkn_prepare_result, &preparation.result, result, seconds));
    BASE_TRY(BASE_READ(__func__, vkn_prepare_params, given, &params, camera_model));
    BASE_TRY(scene_check_unit(__func__, params.unit_length));
    BASE_CHOICE(&params, matcher, VKN_MATCHER_SEQUENTIAL);
    BASE_CHOICE(&params, camera_model, VKN_CAMERA_MODEL_OPENCV_FISHEYE);
    BASE_TRY(BASE_READ("vkn_job", vkn_job, params.job, &preparation.job, stop));
    BASE_TRY(check_params(&params));
    preparation.out = params.out;
    preparation.work = base_path_join(params.out, "prepare");
    preparation.images = base_path_join(params.out, "images");
    vkn_status status =
        preparation.work != NULL && preparation.images != NULL ? run(&preparation) : VKN_ERROR;
    preparation.result.seconds = base_seconds() - began;
    end(&preparation);
    BASE_TRY(BASE_FILL(vkn_prepare_result, &preparation.result, result, seconds));
    return status;
}
