/* Photographs into a folder, upright and in formats that vknerf and COLMAP read. */
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define MOST_CONVERTED ((size_t)1 << 30) /* bytes of a picture */

struct placing {
    struct preparation *preparation;
    const char *folder;
};

/* ---- one ------------------------------------------------------------------------------------- */

static void take(void *context, const char *data, size_t size)
{
    struct base_text *text = context;
    if (text->size + size <= MOST_CONVERTED)
        base_text_add_bytes(text, data, size);
    else
        text->failed = true;
}

/* A picture of a name that ffmpeg takes for nothing but a file's, of the format that its name says: by its content
 * alone it might be a list of other files. */
static void add_input(struct arguments *arguments, const char *from)
{
    static const char *const first[] = {"ffmpeg",   "-hide_banner", "-loglevel",           "error", "-nostats",
                                        "-nostdin", "-y",           FFMPEG_ONE_FILE};
    static const char *const video[] = {"-f", "mov"}; /* as which ffmpeg reads HEIC and AVIF */
    static const char *const picture[] = {"-f", "image2", "-pattern_type", "none"};
    bool is_video = files_ends_with(from, "heic heif avif");
    for (size_t i = 0; i < BASE_COUNT(first); i++)
        arguments_add(arguments, "%s", first[i]);
    for (size_t i = 0; i < (is_video ? BASE_COUNT(video) : BASE_COUNT(picture)); i++)
        arguments_add(arguments, "%s", (is_video ? video : picture)[i]);
    arguments_add(arguments, "-i");
    arguments_add(arguments, "file:%s", from);
}

/* Written here and not by ffmpeg, so that a full disk is not taken for a broken photograph. */
static vkn_status convert(const struct preparation *preparation, const char *from, const char *to)
{
    static const char *const output[] = {"-frames:v", "1",        "-q:v", "1",          "-qmin",
                                         "1",         "-pix_fmt", "yuvj444p", "-c:v", "mjpeg",
                                         "-f",        "image2pipe", "pipe:1"};
    struct base_text text = {0};
    struct program ffmpeg = {.name = "ffmpeg", .bytes = take, .context = &text};
    add_input(&ffmpeg.arguments, from);
    for (size_t i = 0; i < BASE_COUNT(output); i++)
        arguments_add(&ffmpeg.arguments, "%s", output[i]);
    vkn_status status = program_run(preparation, &ffmpeg);
    if (status == VKN_ERROR && ffmpeg.refused)
        status = base_fail(VKN_BAD_INPUT, "%s: cannot be converted by ffmpeg: %s", from, ffmpeg.said);
    else if (status == VKN_OK && text.failed)
        status = base_fail(VKN_ERROR, "%s: out of memory", from);
    else if (status == VKN_OK && text.size == 0)
        status = base_fail(VKN_BAD_INPUT, "%s: ffmpeg finds no picture in it", from);
    if (status == VKN_OK)
        status = files_write(to, text.data, text.size);
    free(text.data);
    return status;
}

/* Programs that do not know EXIF, as COLMAP, would see it on its side: turned, a JPEG with its EXIF, in which it
 * stands upright, a PNG without. */
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
    struct source_picture *picture = &source->pictures[index];
    if (picture->problem != NULL)
        return VKN_OK;
    BASE_TRY(prepare_check_stop(placing->preparation));
    char *from = base_path_join(source->folder, picture->file);
    char *to = base_path_join(placing->folder, picture->name);
    vkn_status status = from != NULL && to != NULL
                            ? place(placing->preparation, picture, from, to)
                            : VKN_ERROR;
    if (status == VKN_BAD_INPUT)
        status = source_leave_out(picture, from);
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
        if (preparation->source.pictures[i].converted && preparation->source.pictures[i].problem == NULL) {
            BASE_TRY(program_check("ffmpeg", "to convert photographs that are neither JPEG nor PNG"));
            break;
        }
    return base_parallel(preparation->source.count, place_one, &placing, show);
}
