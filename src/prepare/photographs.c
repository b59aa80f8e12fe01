/* Writes photographs into a folder, upright and in formats that vknerf and COLMAP read. */
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define MOST_CONVERTED ((size_t)1 << 30) /* largest converted image, bytes */

struct writing {
    struct preparation *preparation;
    const char *folder;
};

/* ---- one photograph -------------------------------------------------------------------------- */

static void append_bytes(void *context, const char *data, size_t size)
{
    struct base_text *text = context;
    if (text->size + size <= MOST_CONVERTED)
        base_text_add_bytes(text, data, size);
    else
        text->failed = true;
}

/* Adds the input with an explicit format (of its first bytes, else of its name), because ffmpeg
 * itself could detect a list of other files. "file:" prevents the name from being read as a URL. */
static void add_input(struct arguments *arguments, const struct source_picture *picture,
                      const char *from)
{
    static const char *const first[] = {"ffmpeg", "-hide_banner",  "-loglevel",
                                        "error",  "-nostats",      "-nostdin",
                                        "-y",     FFMPEG_ONE_FILE, "-f"};
    for (size_t i = 0; i < BASE_COUNT(first); i++)
        arguments_add(arguments, "%s", first[i]);
    if (picture->demuxer != NULL || picture->is_heif) {
        arguments_add(arguments, "%s", picture->is_heif ? "mov" : picture->demuxer);
    } else {
        arguments_add(arguments, "image2");
        arguments_add(arguments, "-pattern_type");
        arguments_add(arguments, "none");
    }
    arguments_add(arguments, "-i");
    arguments_add(arguments, "file:%s", from);
}

/* Fails if the result is too small: of tiled images, as telephones make them, some versions of
 * ffmpeg return only the first tile. */
static vkn_status check_whole(const struct source_picture *picture, const char *from,
                              const char *to)
{
    uint32_t width = 0, height = 0;
    BASE_TRY(scene_image_size(to, &width, &height));
    if ((width > height ? width : height) >= picture->longest)
        return VKN_OK;
    BASE_TRY(files_remove(to));
    return base_fail(VKN_BAD_INPUT,
                     "%s: ffmpeg reads only %ux%u pixels of it, whose longer side has %u", from,
                     width, height, picture->longest);
}

/* Prefixes the last error with the photograph, since several conversions run in parallel. */
static vkn_status fail_for_file(const char *from)
{
    char *cause = base_format("%s", vkn_last_error());
    base_fail(VKN_ERROR, "%s: %s", from, cause != NULL ? cause : "out of memory");
    free(cause);
    return VKN_ERROR;
}

/* Converts a photograph to JPEG. Writes the file itself, so that a full disk is not mistaken for a
 * broken photograph. */
static vkn_status convert(const struct preparation *preparation,
                          const struct source_picture *picture, const char *from, const char *to)
{
    static const char *const output[] = {"-frames:v", "1",          "-q:v",     "1",    "-qmin",
                                         "1",         "-pix_fmt",   "yuvj444p", "-c:v", "mjpeg",
                                         "-f",        "image2pipe", "pipe:1"};
    struct base_text text = {0};
    struct program ffmpeg = {.name = "ffmpeg", .bytes = append_bytes, .context = &text};
    add_input(&ffmpeg.arguments, picture, from);
    for (size_t i = 0; i < BASE_COUNT(output); i++)
        arguments_add(&ffmpeg.arguments, "%s", output[i]);
    vkn_status status = program_run(preparation, &ffmpeg);
    if (status == VKN_ERROR && ffmpeg.failed_itself)
        status = base_fail(VKN_BAD_INPUT, "%s: cannot be converted by ffmpeg: %s", from,
                           ffmpeg.error_message);
    else if (status == VKN_ERROR)
        status = fail_for_file(from);
    else if (status == VKN_OK && text.failed)
        status = base_fail(VKN_ERROR, "%s: out of memory", from);
    else if (status == VKN_OK && text.size == 0)
        status = base_fail(VKN_BAD_INPUT, "%s: ffmpeg finds no picture in it", from);
    if (status == VKN_OK)
        status = files_write(to, text.data, text.size);
    free(text.data);
    return status == VKN_OK ? check_whole(picture, from, to) : status;
}

/* Writes a rotated copy, since programs without EXIF support, such as COLMAP, would see the image
 * on its side. A JPEG keeps its EXIF data with the orientation set to upright; a PNG has none. */
static vkn_status write_upright(const char *from, unsigned orientation, const char *to)
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

static vkn_status write_photograph(const struct preparation *preparation,
                                   const struct source_picture *picture, const char *from,
                                   const char *to)
{
    if (picture->is_converted)
        return convert(preparation, picture, from, to);
    if (picture->orientation == 1)
        return files_link(from, to);
    vkn_status status = write_upright(from, picture->orientation, to);
    /* images.c detects and skips a broken image. */
    return status == VKN_BAD_INPUT ? files_link(from, to) : status;
}

static vkn_status write_one(void *context, size_t index)
{
    const struct writing *writing = context;
    const struct source *source = &writing->preparation->source;
    struct source_picture *picture = &source->pictures[index];
    if (picture->problem != NULL)
        return VKN_OK;
    BASE_TRY(prepare_check_stop(writing->preparation));
    char *from = base_path_join(source->folder, picture->file);
    char *to = base_path_join(writing->folder, picture->name);
    vkn_status status = from != NULL && to != NULL
                            ? write_photograph(writing->preparation, picture, from, to)
                            : VKN_ERROR;
    if (status == VKN_BAD_INPUT)
        status = source_reject(picture, from);
    free(from);
    free(to);
    return status;
}

/* ---- all photographs ------------------------------------------------------------------------- */

static void show_progress(void *context, size_t finished)
{
    const struct writing *writing = context;
    report_progress_count(writing->preparation->progress, "copying photographs", finished,
                          writing->preparation->source.count);
}

/* If ffmpeg is missing, skips the photographs that need it, or fails if most photographs do. */
static vkn_status check_ffmpeg(struct source *source)
{
    size_t count = 0, others = 0, first = 0;
    char what_for[512];
    for (size_t i = source->count; i-- > 0;)
        if (source->pictures[i].problem == NULL && source->pictures[i].is_converted) {
            count++;
            first = i;
        } else if (source->pictures[i].problem == NULL) {
            others++;
        }
    if (count == 0)
        return VKN_OK;
    snprintf(what_for, sizeof(what_for),
             "to convert photographs that are neither JPEG nor PNG, such as %s",
             source->pictures[first].file);
    vkn_status status = program_require("ffmpeg", what_for);
    if (status != VKN_ERROR || others < MIN_PICTURES || others < count)
        return status;
    base_fail(VKN_BAD_INPUT, "has to be converted by ffmpeg, which is not in PATH");
    for (size_t i = 0; i < source->count; i++)
        if (source->pictures[i].problem == NULL && source->pictures[i].is_converted)
            BASE_TRY(source_reject(&source->pictures[i], ""));
    return VKN_OK;
}

vkn_status photographs_write(struct preparation *preparation, const char *folder)
{
    struct writing writing = {preparation, folder};
    BASE_TRY(check_ffmpeg(&preparation->source));
    return base_parallel(preparation->source.count, write_one, &writing, show_progress);
}
