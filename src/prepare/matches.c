/* Runs COLMAP's first two stages: features of every image, and their matches in other images. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prepare/internal.h"

#define MOST_EXHAUSTIVE 200u /* images up to which all pairs are compared */
#define OVERLAP         10u  /* neighbours compared on either side, besides 2, 4, ... 512 away */
#define LOOP_PICTURES   40u  /* images of a sequence whose pairs are all compared, to find loops */
#define LOOP_LEAST_STEP 5u   /* smallest distance of these images in the sequence */

/* ---- features -------------------------------------------------------------------------------- */

/* Progress of a command. */
struct counting {
    struct attempt *attempt;
    const char *what;
    size_t done;
    size_t pairs; /* number of image pairs if COLMAP counts blocks of them, else 0 */
};

static void show_count(void *context, const char *line)
{
    struct counting *counting = context;
    size_t total;
    if (!colmap_read_count(line, &counting->done, &total))
        return;
    size_t done = counting->pairs > 0 ? counting->done * counting->pairs / total : counting->done;
    report_progress_count(counting->attempt->preparation->progress, counting->what, done,
                          counting->pairs > 0 ? counting->pairs : total);
}

static void add_lens_options(struct colmap *colmap)
{
    const struct preparation *preparation = colmap->attempt->preparation;
    colmap_option(colmap, "ImageReader.single_camera", "%d", preparation->one_camera);
    if (preparation->params->equirectangular) {
        /* The views that ffmpeg made are pinhole images of 90 degrees. */
        unsigned size = preparation->longest;
        colmap_option(colmap, "ImageReader.camera_model", "PINHOLE");
        colmap_option(colmap, "ImageReader.camera_params", "%u.%u,%u.%u,%u,%u", size / 2,
                      size % 2 * 5, size / 2, size % 2 * 5, size / 2, size / 2);
        return;
    }
    colmap_option(colmap, "ImageReader.camera_model", "%s",
                  config_camera_model_names[colmap_camera_model(preparation)]);
}

static vkn_status run_extractor(struct attempt *attempt, bool resuming, size_t *extracted)
{
    struct preparation *preparation = attempt->preparation;
    struct counting counting = {attempt, "finding features", 0, 0};
    struct colmap colmap;
    BASE_TRY(colmap_begin(attempt, "feature_extractor", counting.what, &colmap));
    colmap_option(&colmap, "image_path", "%s", preparation->images);
    add_lens_options(&colmap);
    if (resuming && preparation->one_camera)
        colmap_option(&colmap, "ImageReader.existing_camera_id", "1");
    if (preparation->has_masks)
        colmap_option(&colmap, "ImageReader.mask_path", "%s/masks", preparation->out);
    colmap_option(&colmap, "FeatureExtraction.use_gpu SiftExtraction.use_gpu", "0");
    colmap_option(&colmap, "FeatureExtraction.max_image_size SiftExtraction.max_image_size", "%d",
                  attempt->number == 0 ? 1600 : 3200);
    colmap_option(&colmap, "SiftExtraction.max_num_features", "%d",
                  attempt->number == 0 ? 4096 : 8192);
    if (attempt->number > 0) {
        colmap_option(&colmap, "SiftExtraction.peak_threshold", "0.002");
        colmap_option(&colmap, "SiftExtraction.estimate_affine_shape", "1");
    }
    vkn_status status = colmap_run(&colmap, show_count, &counting);
    *extracted = counting.done;
    return status;
}

/* Creates the database or, after an interruption, keeps it and sets *resuming. A kept database may
 * lack the features of its last image, and its first camera has the id 1. */
static vkn_status begin_database(struct attempt *attempt, bool *resuming)
{
    struct preparation *preparation = attempt->preparation;
    struct record *record = &preparation->record;
    unsigned number = attempt->number;
    *resuming = record->database[number] == attempt->features_checksum &&
                record->extracted[number] > 2 && base_file_exists(attempt->database);
    if (*resuming)
        return VKN_OK;
    BASE_TRY(files_remove(attempt->folder));
    BASE_TRY(base_make_folder(attempt->folder));
    record->database[number] = attempt->features_checksum;
    record->extracted[number] = 0;
    return record_write(preparation);
}

vkn_status colmap_extract(struct attempt *attempt)
{
    struct preparation *preparation = attempt->preparation;
    struct record *record = &preparation->record;
    uint32_t *done = record->stages[attempt->number];
    bool resuming = false;
    size_t extracted = 0;
    if (done[STAGE_FEATURES] == attempt->features_checksum && base_file_exists(attempt->database))
        return VKN_OK;
    done[STAGE_FEATURES] = done[STAGE_MATCHES] = done[STAGE_MODELS] = 0;
    BASE_TRY(begin_database(attempt, &resuming));
    vkn_status status = run_extractor(attempt, resuming, &extracted);
    if (status == VKN_OK)
        done[STAGE_FEATURES] = attempt->features_checksum;
    if (extracted > record->extracted[attempt->number])
        record->extracted[attempt->number] = (uint32_t)extracted;
    if (status == VKN_OK)
        return record_write(preparation);
    BASE_KEEP_ERROR;
    record_write(preparation);
    return status;
}

/* ---- matches --------------------------------------------------------------------------------- */

static bool is_sequential(const struct preparation *preparation)
{
    enum vkn_matcher matcher = preparation->params->matcher;
    if (matcher != VKN_MATCHER_AUTO)
        return matcher == VKN_MATCHER_SEQUENTIAL;
    return preparation->source.is_video || preparation->count > MOST_EXHAUSTIVE;
}

/* Adds the options that all matching commands share. */
static void add_matching_options(struct colmap *colmap)
{
    colmap_option(colmap, "FeatureMatching.use_gpu SiftMatching.use_gpu", "0");
    if (colmap->attempt->number > 0)
        colmap_option(colmap, "FeatureMatching.guided_matching SiftMatching.guided_matching", "1");
}

static vkn_status match_all(struct attempt *attempt)
{
    size_t pictures = attempt->preparation->count;
    struct counting counting = {attempt, "comparing pairs of pictures", 0,
                                pictures * (pictures - 1) / 2};
    struct colmap colmap;
    /* COLMAP reports progress by blocks. */
    size_t block = pictures / 10;
    BASE_TRY(colmap_begin(attempt, "exhaustive_matcher", counting.what, &colmap));
    colmap_option(&colmap, "ExhaustiveMatching.block_size", "%zu", block < 5 ? 5 : block);
    add_matching_options(&colmap);
    colmap.total = counting.pairs;
    return colmap_run(&colmap, show_count, &counting);
}

static vkn_status match_neighbours(struct attempt *attempt)
{
    struct counting counting = {attempt, "comparing neighbours", 0, 0};
    struct colmap colmap;
    BASE_TRY(colmap_begin(attempt, "sequential_matcher", counting.what, &colmap));
    colmap_option(&colmap, "SequentialMatching.overlap", "%u", OVERLAP);
    colmap_option(&colmap, "SequentialMatching.quadratic_overlap", "1");
    colmap_option(&colmap, "SequentialMatching.loop_detection", "0"); /* needs a vocabulary tree */
    add_matching_options(&colmap);
    return colmap_run(&colmap, show_count, &counting);
}

/* Writes all pairs of evenly spaced images: "a.jpg b.jpg" per line. */
static vkn_status write_loop_pairs(const struct attempt *attempt, const char *path)
{
    const struct preparation *preparation = attempt->preparation;
    struct base_text text = {0};
    size_t step = preparation->count / LOOP_PICTURES;
    step = step > LOOP_LEAST_STEP ? step : LOOP_LEAST_STEP;
    for (size_t i = 0; i < preparation->count; i += step)
        for (size_t k = i + step; k < preparation->count; k += step)
            base_text_add(&text, "%s %s\n", preparation->names[i], preparation->names[k]);
    base_text_add(&text, "\n");
    vkn_status status = text.failed ? VKN_ERROR : base_file_replace(path, text.data, text.size);
    free(text.data);
    return status;
}

static vkn_status match_loops(struct attempt *attempt)
{
    struct counting counting = {attempt, "looking for loops", 0, 0};
    struct colmap colmap;
    char *pairs = base_path_join(attempt->folder, "pairs.txt");
    vkn_status status = pairs != NULL ? write_loop_pairs(attempt, pairs) : VKN_ERROR;
    if (status == VKN_OK)
        status = colmap_begin(attempt, "matches_importer", counting.what, &colmap);
    if (status == VKN_OK) {
        colmap_option(&colmap, "match_list_path", "%s", pairs);
        colmap_option(&colmap, "match_type", "pairs");
        add_matching_options(&colmap);
        status = colmap_run(&colmap, show_count, &counting);
    }
    free(pairs);
    return status;
}

vkn_status colmap_match(struct attempt *attempt)
{
    struct preparation *preparation = attempt->preparation;
    uint32_t *done = preparation->record.stages[attempt->number];
    bool sequential = is_sequential(preparation);
    attempt->matches_checksum =
        files_checksum(attempt->features_checksum, sequential ? "sequential" : "exhaustive");
    if (done[STAGE_MATCHES] == attempt->matches_checksum)
        return VKN_OK;
    done[STAGE_MATCHES] = done[STAGE_MODELS] = 0;
    /* COLMAP skips pairs that it has compared before. */
    if (sequential) {
        BASE_TRY(match_neighbours(attempt));
        BASE_TRY(match_loops(attempt));
    } else {
        BASE_TRY(match_all(attempt));
    }
    done[STAGE_MATCHES] = attempt->matches_checksum;
    return record_write(preparation);
}
