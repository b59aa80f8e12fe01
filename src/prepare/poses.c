/* Finds the poses (SCENE/sparse/0): in an attempt with the usual settings and, when that finds too
 * few poses, in another one with more features and lower limits. */
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define LEAST_REGISTERED 3u   /* fewest images with poses */
#define GOOD_SHARE       0.75 /* fraction of images with poses; below it another attempt is made */

static void free_attempt(struct attempt *attempt)
{
    free(attempt->folder);
    free(attempt->database);
    free(attempt->largest);
    *attempt = (struct attempt){0};
}

/* Returns the checksum of everything that the features depend on. */
static uint32_t features_of(const struct preparation *preparation, unsigned number)
{
    char text[96];
    snprintf(text, sizeof(text), "attempt %u, %s, one camera: %d", number,
             config_camera_model_names[colmap_camera_model(preparation)], preparation->one_camera);
    uint32_t sum = files_checksum(preparation->source.checksum, text);
    return sum != 0 ? sum : 1;
}

static vkn_status try_once(struct preparation *preparation, unsigned number,
                           struct attempt *attempt)
{
    *attempt = (struct attempt){.preparation = preparation,
                                .number = number,
                                .folder = base_format("%s/%u", preparation->work, number + 1),
                                .features_checksum = features_of(preparation, number)};
    attempt->database =
        attempt->folder != NULL ? base_path_join(attempt->folder, "database.db") : NULL;
    if (attempt->database == NULL)
        return VKN_ERROR;
    BASE_TRY(colmap_extract(attempt));
    BASE_TRY(colmap_match(attempt));
    return colmap_map(attempt);
}

/* ---- the best attempt ------------------------------------------------------------------------ */

static vkn_status copy_model(const struct attempt *attempt, const char *folder)
{
    static const char *const files[] = {"cameras.bin", "images.bin", "points3D.bin"};
    BASE_TRY(base_make_folder(folder));
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        char *from = base_path_join(attempt->largest, files[i]);
        char *to = base_path_join(folder, files[i]);
        vkn_status status = from != NULL && to != NULL ? files_link(from, to) : VKN_ERROR;
        free(from);
        free(to);
        BASE_TRY(status);
    }
    return VKN_OK;
}

static vkn_status install(const struct preparation *preparation, const struct attempt *attempt)
{
    char *made = base_path_join(preparation->work, "sparse");
    char *model = base_path_join(preparation->work, "sparse/0");
    char *sparse = base_path_join(preparation->out, "sparse");
    vkn_status status =
        made != NULL && model != NULL && sparse != NULL ? files_remove(made) : VKN_ERROR;
    if (status == VKN_OK)
        status = copy_model(attempt, model);
    if (status == VKN_OK)
        status = files_remove(sparse);
    if (status == VKN_OK)
        status = files_move(made, sparse);
    free(made);
    free(model);
    free(sparse);
    return status;
}

static vkn_status fail_too_few(const struct preparation *preparation, const struct attempt *best)
{
    return base_fail(
        VKN_BAD_INPUT,
        "%s: COLMAP finds the poses of only %zu of %zu pictures: they need texture, an overlap of "
        "two thirds with their neighbours, and different camera positions (%s/colmap.log)",
        preparation->params->pictures, best->registered, preparation->count, preparation->work);
}

static vkn_status try_all(struct preparation *preparation, struct attempt *best)
{
    for (unsigned number = 0; number < MAX_ATTEMPTS; number++) {
        struct attempt attempt;
        vkn_status status = try_once(preparation, number, &attempt);
        if (number == 0 || (status == VKN_OK && attempt.registered > best->registered)) {
            free_attempt(best);
            *best = attempt;
        } else {
            free_attempt(&attempt);
        }
        BASE_TRY(status);
        if ((double)best->registered >= GOOD_SHARE * (double)preparation->count)
            break;
        report_progress_pause(preparation->progress);
        if (number == 0)
            base_log(BASE_LOG_INFO,
                     "poses of %zu of %zu pictures were found; trying again with more features and "
                     "lower limits",
                     best->registered, preparation->count);
    }
    return VKN_OK;
}

vkn_status poses_find(struct preparation *preparation)
{
    struct attempt best = {0};
    preparation->one_camera = source_one_camera(preparation);
    vkn_status status = try_all(preparation, &best);
    if (status == VKN_OK && best.registered < LEAST_REGISTERED)
        status = fail_too_few(preparation, &best);
    if (status == VKN_OK)
        status = install(preparation, &best);
    preparation->result.registered = best.registered;
    preparation->result.points = best.points;
    preparation->result.models = best.models;
    free_attempt(&best);
    return status;
}
