/* Runs COLMAP's third stage, which makes sparse models with poses; reads the models' sizes. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define LEAST_MODEL 3u  /* fewest images of a model */
#define MOST_MODELS 50u /* most models that are counted */

/* ---- the mapper ------------------------------------------------------------------------------ */

/* Context of `follow`, and what it finds in the mapper's output. */
struct mapping {
    struct attempt *attempt;
    bool no_model; /* the mapper finds no model */
};

static void follow(void *context, const char *line)
{
    static const char *const no_model[] = {"failed to create sparse model",
                                           "No images with matches"};
    struct mapping *mapping = context;
    struct preparation *preparation = mapping->attempt->preparation;
    for (size_t i = 0; i < BASE_COUNT(no_model); i++)
        mapping->no_model |= strcasestr(line, no_model[i]) != NULL;
    if (strstr(line, "Registering image #") == NULL)
        return;
    /* "Registering image #7 (13)", or "(num_reg_frames=13)" */
    const char *number = strrchr(line, '(');
    while (number != NULL && *number != '\0' && !isdigit((unsigned char)*number))
        number++;
    size_t registered = number != NULL ? (size_t)strtoul(number, NULL, 10) : 0;
    if (registered > 0 && registered <= preparation->count)
        report_progress_count(preparation->progress, "finding poses", registered - 1,
                              preparation->count);
}

/* Lowers the limits that reject wrong poses, because COLMAP's defaults found too few poses. */
static void lower_limits(struct colmap *colmap)
{
    colmap_option(colmap, "Mapper.init_min_num_inliers", "40");
    colmap_option(colmap, "Mapper.init_min_tri_angle", "6");
    colmap_option(colmap, "Mapper.abs_pose_min_num_inliers", "15");
    colmap_option(colmap, "Mapper.abs_pose_min_inlier_ratio", "0.15");
    colmap_option(colmap, "Mapper.min_num_matches", "10");
}

static vkn_status run_mapper(struct attempt *attempt, const char *models, bool *no_model)
{
    struct preparation *preparation = attempt->preparation;
    struct mapping mapping = {attempt, false};
    struct colmap colmap;
    size_t least = preparation->count / 3;
    BASE_TRY(colmap_begin(attempt, "mapper", "finding poses", &colmap));
    colmap_option(&colmap, "image_path", "%s", preparation->images);
    colmap_option(&colmap, "output_path", "%s", models);
    colmap_option(&colmap, "Mapper.min_model_size", "%zu",
                  least < LEAST_MODEL ? LEAST_MODEL
                  : least > 10        ? (size_t)10
                                      : least);
    colmap_option(&colmap, "Mapper.ba_global_function_tolerance", "0.000001");
    if (preparation->params->equirectangular) {
        colmap_option(&colmap, "Mapper.ba_refine_focal_length", "0");
        colmap_option(&colmap, "Mapper.ba_refine_extra_params", "0");
    }
    if (attempt->number > 0)
        lower_limits(&colmap);
    vkn_status status = colmap_run(&colmap, follow, &mapping);
    *no_model = mapping.no_model;
    return status;
}

/* ---- the models ------------------------------------------------------------------------------ */

/* Reads the first 8 bytes of a file, the number of its elements, least significant byte first. */
static vkn_status read_number(const char *folder, const char *name, size_t *number)
{
    char *path = base_path_join(folder, name);
    uint8_t bytes[8];
    *number = 0;
    FILE *file = path != NULL ? fopen(path, "rb") : NULL;
    bool read = file != NULL && fread(bytes, 1, sizeof(bytes), file) == sizeof(bytes);
    for (size_t i = sizeof(bytes); i > 0 && read; i--)
        *number = *number << 8 | bytes[i - 1];
    vkn_status status = read ? VKN_OK : base_fail(VKN_ERROR, "%s/%s: cannot be read", folder, name);
    if (file != NULL)
        fclose(file);
    free(path);
    return status;
}

/* Counts the models in numbered folders and selects the one with the most images. */
static vkn_status select_largest(struct attempt *attempt, const char *models)
{
    for (size_t i = 0; i < MOST_MODELS; i++) {
        char *folder = base_format("%s/%zu", models, i);
        if (folder == NULL)
            return VKN_ERROR;
        size_t registered = 0;
        bool exists = base_is_folder(folder);
        vkn_status status = exists ? read_number(folder, "images.bin", &registered) : VKN_OK;
        attempt->models += exists ? 1 : 0;
        if (registered > attempt->registered) {
            attempt->registered = registered;
            free(attempt->largest);
            attempt->largest = folder;
        } else {
            free(folder);
        }
        BASE_TRY(status);
    }
    return attempt->largest != NULL
               ? read_number(attempt->largest, "points3D.bin", &attempt->points)
               : VKN_OK;
}

static vkn_status make_models(struct attempt *attempt, const char *models)
{
    bool no_model = false;
    char *partial = base_format("%s.partial", models);
    vkn_status status = partial != NULL ? files_remove(partial) : VKN_ERROR;
    if (status == VKN_OK)
        status = files_remove(models);
    if (status == VKN_OK)
        status = base_make_folder(partial);
    if (status == VKN_OK)
        status = run_mapper(attempt, partial, &no_model);
    if (status == VKN_ERROR && no_model)
        status = VKN_OK; /* no model is a valid result */
    if (status == VKN_OK)
        status = files_move(partial, models);
    free(partial);
    return status;
}

/* Checks the model and records the stage. COLMAP does not notice truncated writes, as on a full
 * disk, so the model is read first. */
static vkn_status finish(struct attempt *attempt)
{
    vkn_status status = attempt->largest != NULL ? scene_check_model(attempt->largest) : VKN_OK;
    if (status == VKN_BAD_INPUT)
        return base_fail(
            VKN_ERROR,
            "COLMAP's model is incomplete, as on a full disk: %s; run the same command again",
            vkn_last_error());
    BASE_TRY(status);
    attempt->preparation->record.stages[attempt->number][STAGE_MODELS] = attempt->matches_checksum;
    return record_write(attempt->preparation);
}

vkn_status colmap_map(struct attempt *attempt)
{
    char *models = base_path_join(attempt->folder, "models");
    if (models == NULL)
        return VKN_ERROR;
    bool done = attempt->preparation->record.stages[attempt->number][STAGE_MODELS] ==
                    attempt->matches_checksum &&
                base_is_folder(models);
    vkn_status status = done ? VKN_OK : make_models(attempt, models);
    if (status == VKN_OK)
        status = select_largest(attempt, models);
    if (status == VKN_OK && !done)
        status = finish(attempt);
    free(models);
    return status;
}
