/* Photographs into a folder, upright and in formats that vknerf and COLMAP read. */
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

struct placing {
    struct preparation *preparation;
    const char *folder;
};

/* ---- one ------------------------------------------------------------------------------------- */

static vkn_status convert(const struct preparation *preparation, const char *from, const char *to)
{
    struct program ffmpeg = {.name = "ffmpeg"};
    static const char *const options[] = {"ffmpeg",   "-hide_banner", "-loglevel", "error",
                                          "-nostats", "-nostdin",     "-y"};
    for (size_t i = 0; i < BASE_COUNT(options); i++)
        arguments_add(&ffmpeg.arguments, "%s", options[i]);
    if (!files_ends_with(from, "heic heif avif")) { /* which ffmpeg reads as videos */
        static const char *const no_pattern[] = {"-f", "image2", "-pattern_type", "none"};
        for (size_t i = 0; i < BASE_COUNT(no_pattern); i++)
            arguments_add(&ffmpeg.arguments, "%s", no_pattern[i]);
    }
    arguments_add(&ffmpeg.arguments, "-i");
    arguments_add(&ffmpeg.arguments, "file:%s", from);
    static const char *const output[] = {"-frames:v", "1",        "-q:v", "1",      "-qmin",   "1",
                                         "-pix_fmt",  "yuvj444p", "-f",   "image2", "-update", "1"};
    for (size_t i = 0; i < BASE_COUNT(output); i++)
        arguments_add(&ffmpeg.arguments, "%s", output[i]);
    arguments_add(&ffmpeg.arguments, "file:%s", to);
    vkn_status status = program_run(preparation, &ffmpeg);
    if (status == VKN_ERROR)
        return base_fail(VKN_BAD_INPUT,
                         "%s: cannot be converted, make JPEG or PNG of such photographs first (HEIC: "
                         "heif-convert of the package libheif-examples): %s",
                         from, vkn_last_error());
    return status;
}

/* Programs that do not know EXIF, as COLMAP, would see it on its side: turned, with its EXIF, in which it
 * stands upright. */
static vkn_status turn(const char *from, unsigned orientation, const char *to)
{
    char *data = NULL;
    size_t size = 0;
    BASE_TRY(base_file_read(from, (size_t)1 << 30, &data, &size));
    struct exif exif = exif_read((const uint8_t *)data, size < EXIF_BYTES ? size : EXIF_BYTES);
    if (exif.orientation_at > 0)
        data[exif.orientation_at] = 1;
    vkn_status status =
        scene_copy_upright(from, orientation, data + exif.segment, exif.segment_size, to);
    free(data);
    return status;
}

static vkn_status place(const struct preparation *preparation,
                        const struct source_picture *picture, const char *from, const char *to)
{
    if (picture->converted)
        return convert(preparation, from, to);
    if (picture->orientation == 1)
        return files_link(from, to);
    vkn_status status = turn(from, picture->orientation, to);
    /* A broken one is found, and left out, with all others. */
    return status == VKN_BAD_INPUT ? files_link(from, to) : status;
}

static vkn_status place_one(void *context, size_t index)
{
    const struct placing *placing = context;
    const struct source *source = &placing->preparation->source;
    const struct source_picture *picture = &source->pictures[index];
    BASE_TRY(prepare_check_stop(placing->preparation));
    char *from = base_path_join(source->folder, picture->file);
    char *to = base_path_join(placing->folder, picture->name);
    vkn_status status = from != NULL && to != NULL
                            ? place(placing->preparation, picture, from, to)
                            : VKN_ERROR;
    free(from);
    free(to);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void show(void *context, size_t finished)
{
    const struct placing *placing = context;
    report_progress_count(placing->preparation->progress, "copying photographs", finished,
                          placing->preparation->source.count);
}

vkn_status photographs_place(struct preparation *preparation, const char *folder)
{
    struct placing placing = {preparation, folder};
    for (size_t i = 0; i < preparation->source.count; i++)
        if (preparation->source.pictures[i].converted) {
            BASE_TRY(program_check("ffmpeg", "to convert photographs that are neither JPEG nor PNG"));
            break;
        }
    return base_parallel(preparation->source.count, place_one, &placing, show);
}
