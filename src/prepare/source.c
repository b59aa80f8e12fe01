/* Reads the input: photographs with their masks, or a video. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "prepare/import.h"

#define LONGEST_NAME 200u /* bytes, of 255: copies and temporary files have longer names */
#define MOST_NAMED   4u   /* photographs that a warning names */

static const char output_endings[] = "jpg jpeg png"; /* extensions in SCENE/images */
static const char readable_endings[] = "jpg jpeg png jpe jfif";
static const char heif_endings[] = "heic heif hif avif";

static int by_natural_order(const void *a, const void *b)
{
    return files_natural_order(((const struct source_picture *)a)->file,
                               ((const struct source_picture *)b)->file);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns whether a character has no special meaning to any program. */
static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static bool is_plain_name(const char *name)
{
    bool plain = isalnum((unsigned char)name[0]) || name[0] == '_';
    for (; *name != '\0'; name++)
        plain = plain && (unsigned char)*name < 128 && is_plain(*name);
    return plain;
}

/* Returns whether two names differ only in their extension: their smaller copies have one name. */
static bool same_stem(const char *a, const char *b)
{
    size_t length = (size_t)(strrchr(a, '.') - a);
    return length == (size_t)(strrchr(b, '.') - b) && strncmp(a, b, length) == 0;
}

/* Returns whether the name needs another extension to show that the file is JPEG or PNG. */
static bool needs_ending(const struct source_picture *picture)
{
    return picture->is_converted || !files_ends_with(picture->file, output_endings);
}

/* Returns whether names can be kept: all are plain and already in byte order, in which COLMAP and
 * the scene reader sort them. */
static bool can_keep_names(const struct source *source)
{
    const char *previous = NULL;
    for (size_t i = 0; i < source->count; i++) {
        const char *name = source->pictures[i].file;
        if (source->pictures[i].problem != NULL)
            continue;
        if (!is_plain_name(name) || strlen(name) > LONGEST_NAME ||
            needs_ending(&source->pictures[i]))
            return false;
        if (previous != NULL && (strcmp(previous, name) >= 0 || same_stem(previous, name)))
            return false;
        previous = name;
    }
    return true;
}

/* Names the images: keeps the names, or prefixes each with its number. */
static vkn_status name_pictures(struct source *source)
{
    bool keeps_names = can_keep_names(source);
    for (size_t i = 0; i < source->count; i++) {
        struct source_picture *picture = &source->pictures[i];
        const char *dot = strrchr(picture->file, '.');
        size_t stem = (size_t)(dot - picture->file);
        picture->name = keeps_names
                            ? base_format("%s", picture->file)
                            : base_format("%05zu_%.*s%s%s", i + 1,
                                          (int)(stem < LONGEST_NAME ? stem : LONGEST_NAME),
                                          picture->file, dot, needs_ending(picture) ? ".jpg" : "");
        if (picture->name == NULL)
            return VKN_ERROR;
        for (char *c = picture->name; *c != '\0' && !keeps_names; c++)
            *c = (unsigned char)*c < 128 && is_plain(*c) ? *c : '_';
    }
    return VKN_OK;
}

/* ---- content --------------------------------------------------------------------------------- */

/* Returns a message without the leading path, because the user knows the file. */
static char *reason_of(const char *message, const char *path)
{
    size_t length = strlen(path);
    bool begins = strncmp(message, path, length) == 0 && strncmp(message + length, ": ", 2) == 0;
    return base_format("%s", begins ? message + length + 2 : message);
}

vkn_status source_reject(struct source_picture *picture, const char *path)
{
    free(picture->problem);
    picture->problem = reason_of(vkn_last_error(), path);
    return picture->problem != NULL ? VKN_OK : VKN_ERROR;
}

vkn_status source_reject_named(struct source *source, const char *name, const char *path,
                               const char *message)
{
    for (size_t i = 0; i < source->count; i++) {
        struct source_picture *picture = &source->pictures[i];
        if (picture->problem != NULL || strcmp(picture->name, name) != 0)
            continue;
        picture->problem = reason_of(message, path);
        return picture->problem != NULL ? VKN_OK : VKN_ERROR;
    }
    base_log(BASE_LOG_WARNING, "%s; it is left out", message);
    return VKN_OK;
}

/* Finds the format by the file's content. For HEIF also reads the size of the whole image, since
 * programs without support for tiles return only one tile. */
static void find_format(struct source_picture *picture, const uint8_t *head, size_t size)
{
    static const struct {
        size_t at;
        const char *bytes, *demuxer; /* demuxer: of ffmpeg; NULL: JPEG or PNG */
    } formats[] = {{0, "\xff\xd8\xff", NULL}, {0, "\x89PNG\r\n", NULL}, {8, "WEBPVP8", "webp_pipe"},
                   {0, "MM", "tiff_pipe"},    {0, "II*", "tiff_pipe"},  {4, "ftyphei", "mov"},
                   {4, "ftyphev", "mov"},     {4, "ftypmif1", "mov"},   {4, "ftypmsf1", "mov"},
                   {4, "ftypavi", "mov"}};
    picture->is_converted = !files_ends_with(picture->file, readable_endings);
    for (size_t i = 0; i < BASE_COUNT(formats); i++) {
        size_t length = strlen(formats[i].bytes);
        if (size < formats[i].at + length ||
            memcmp(head + formats[i].at, formats[i].bytes, length) != 0)
            continue;
        picture->demuxer = formats[i].demuxer;
        picture->is_converted = formats[i].demuxer != NULL;
        break;
    }
    picture->is_heif = picture->demuxer != NULL
                           ? strcmp(picture->demuxer, "mov") == 0
                           : picture->is_converted && files_ends_with(picture->file, heif_endings);
    for (size_t i = 0; picture->is_heif && i + 16 <= size; i++)
        if (memcmp(head + i, "ispe\0\0\0\0", 8) == 0) /* ISO/IEC 23008-12, 6.5.3 */
            for (size_t n = i + 8; n < i + 16; n += 4) {
                uint32_t side = (uint32_t)head[n] << 24 | (uint32_t)head[n + 1] << 16 |
                                (uint32_t)head[n + 2] << 8 | head[n + 3];
                picture->longest = side > picture->longest ? side : picture->longest;
            }
}

/* Reads what is known of a photograph. Cameras of other programs belong to the stored picture,
 * which therefore counts as upright. */
static vkn_status read_photograph(const struct source *source, struct source_picture *picture,
                                  char *head)
{
    char *path = base_path_join(source->folder, picture->file);
    if (path == NULL)
        return VKN_ERROR;
    size_t size = 0;
    vkn_status status = base_file_read_beginning(path, head, EXIF_BYTES, &size, &picture->size);
    if (status == VKN_OK && picture->size == 0)
        status = base_fail(VKN_BAD_INPUT, "%s: empty file", path);
    if (status == VKN_BAD_INPUT)
        status = source_reject(picture, path);
    free(path);
    BASE_TRY(status);
    picture->head_checksum = base_crc32c(0, head, size);
    find_format(picture, (const uint8_t *)head, size);
    struct exif exif = exif_read((const uint8_t *)head, size);
    picture->orientation = picture->is_converted || picture->frame != 0
                               ? EXIF_UPRIGHT
                               : exif_of_image((const uint8_t *)head, size).orientation;
    picture->focal = exif.focal;
    return VKN_OK;
}

static uint32_t add_sum(uint32_t sum, const char *name, uint64_t size, uint32_t head_checksum)
{
    char text[64];
    snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu32, size, head_checksum);
    return files_checksum(files_checksum(sum, name), text);
}

/* Adds the masks' names and sizes, not their content, to the checksum. */
static vkn_status sum_masks(struct source *source)
{
    struct dirent **entries = NULL;
    int count = scandir(source->masks, &entries, NULL, alphasort);
    if (count < 0)
        return base_fail(VKN_BAD_INPUT, "%s: %s", source->masks, strerror(errno));
    for (int i = 0; i < count; i++) {
        char *path = base_path_join(source->masks, entries[i]->d_name);
        struct stat information;
        if (path != NULL && stat(path, &information) == 0 && S_ISREG(information.st_mode))
            source->checksum =
                add_sum(source->checksum, entries[i]->d_name, (uint64_t)information.st_size, 0);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return VKN_OK;
}

static vkn_status read_photographs(struct preparation *preparation, char *head)
{
    struct source *source = &preparation->source;
    for (size_t i = 0; i < source->count; i++) {
        struct source_picture *picture = &source->pictures[i];
        BASE_TRY(prepare_check_stop(preparation));
        BASE_TRY(read_photograph(source, picture, head));
        if (picture->problem == NULL)
            source->checksum =
                add_sum(source->checksum, picture->file, picture->size, picture->head_checksum);
    }
    return source->masks != NULL ? sum_masks(source) : VKN_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Returns the path of the folder given/name; NULL: there is none. */
static vkn_status find_folder(const char *given, const char *name, char **folder)
{
    *folder = base_path_join(given, name);
    if (*folder == NULL)
        return VKN_ERROR;
    if (!base_is_folder(*folder)) {
        free(*folder);
        *folder = NULL;
    }
    return VKN_OK;
}

static vkn_status find_masks(struct source *source, const char *given)
{
    if (given != NULL) {
        source->masks = base_format("%s", given);
        return source->masks == NULL ? VKN_ERROR
               : base_is_folder(given)
                   ? VKN_OK
                   : base_fail(VKN_BAD_INPUT, "%s: not a folder (masks)", given);
    }
    BASE_TRY(find_folder(source->folder, "masks", &source->masks));
    char *real = source->masks == NULL ? realpath(source->folder, NULL) : NULL;
    const char *slash = real != NULL ? strrchr(real, '/') : NULL;
    vkn_status status = VKN_OK;
    if (slash != NULL && strcmp(slash, "/images") == 0)
        status = find_folder(source->folder, "../masks", &source->masks);
    free(real);
    return status;
}

/* Refuses the options for videos, since the input is a folder. */
static vkn_status check_for_video(const struct vkn_prepare_params *params)
{
    if (params->frames == 0 && !params->sharpest)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: is for videos, but %s is a folder, whose photographs are all used",
                     params->frames > 0 ? "frames" : "sharpest", params->pictures);
}

static vkn_status open_photographs(struct preparation *preparation)
{
    struct source *source = &preparation->source;
    BASE_TRY(check_for_video(preparation->params));
    if (preparation->import == NULL) {
        BASE_TRY(listing_find(source, preparation->params->pictures));
    } else {
        BASE_TRY(listing_find_all(source, preparation->import->pictures));
        BASE_TRY(import_match_pictures(preparation->import, source));
    }
    BASE_TRY(find_masks(source, preparation->params->masks));
    qsort(source->pictures, source->count, sizeof(*source->pictures), by_natural_order);
    char *head = base_alloc(EXIF_BYTES, 1);
    vkn_status status = head != NULL ? read_photographs(preparation, head) : VKN_ERROR;
    free(head);
    return status == VKN_OK ? name_pictures(source) : status;
}

static vkn_status open_video(struct preparation *preparation)
{
    const struct vkn_prepare_params *params = preparation->params;
    struct source *source = &preparation->source;
    char *head = base_alloc(EXIF_BYTES, 1), frames[32];
    size_t size = 0;
    uint64_t file_size = 0;
    source->is_video = true;
    if (params->masks != NULL) {
        free(head);
        return base_fail(VKN_BAD_INPUT, "%s: frames of a video have no masks", params->masks);
    }
    vkn_status status = head != NULL ? base_file_read_beginning(params->pictures, head, EXIF_BYTES,
                                                                &size, &file_size)
                                     : VKN_ERROR;
    if (status == VKN_OK)
        source->checksum = add_sum(0, "video", file_size, base_crc32c(0, head, size));
    free(head);
    snprintf(frames, sizeof(frames), "%u %d", params->frames, params->sharpest);
    source->checksum = files_checksum(source->checksum, frames);
    return status;
}

vkn_status source_open(struct preparation *preparation)
{
    struct source *source = &preparation->source;
    const char *given = preparation->params->pictures;
    bool is_folder = preparation->import != NULL || base_is_folder(given);
    if (!is_folder && files_ends_with(given, PREPARE_PHOTOGRAPHS))
        return base_fail(
            VKN_BAD_INPUT,
            "%s: one photograph; name the folder that it is in, with others of the same scene",
            given);
    BASE_TRY(is_folder ? open_photographs(preparation) : open_video(preparation));
    if (preparation->import != NULL)
        source->checksum = base_crc32c(source->checksum, &preparation->import->checksum,
                                       sizeof(preparation->import->checksum));
    source->checksum = files_checksum(
        source->checksum, preparation->params->equirectangular ? "equirectangular" : "");
    source->checksum += source->checksum == 0 ? 1 : 0;
    return VKN_OK;
}

const char *source_advice(const struct source *source)
{
    char *ffmpeg = base_program_find("ffmpeg");
    bool no_ffmpeg = ffmpeg == NULL, heif_left = false, needs_ffmpeg = false;
    free(ffmpeg);
    for (size_t i = 0; i < source->count; i++) {
        heif_left |= source->pictures[i].problem != NULL && source->pictures[i].is_heif;
        needs_ffmpeg |= source->pictures[i].problem != NULL && source->pictures[i].is_converted;
    }
    if (no_ffmpeg && needs_ffmpeg)
        return "install ffmpeg (apt-get install ffmpeg), and prepare them again with --overwrite";
    return heif_left ? "HEIC becomes JPEG with heif-convert PICTURE.heic PICTURE.jpg (apt-get "
                       "install libheif-examples)"
                     : NULL;
}

void source_warn_problems(const struct source *source)
{
    struct base_text text = {0};
    size_t count = 0;
    for (size_t i = 0; i < source->count; i++) {
        const struct source_picture *picture = &source->pictures[i];
        if (picture->problem != NULL && count++ < MOST_NAMED)
            base_text_add(&text, "%s%s (%s)", count > 1 ? ", " : "", picture->file,
                          picture->problem);
    }
    if (count > MOST_NAMED)
        base_text_add(&text, " and %zu more, which prepare.json lists", count - MOST_NAMED);
    const char *advice = source_advice(source);
    if (advice != NULL)
        base_text_add(&text, "; %s", advice);
    if (count > 0 && !text.failed)
        base_log(BASE_LOG_WARNING, "%s: %zu of %zu photographs cannot be used and are left out: %s",
                 source->folder, count, source->count, text.data);
    free(text.data);
}

void source_free(struct source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        free(source->pictures[i].file);
        free(source->pictures[i].name);
        free(source->pictures[i].problem);
    }
    free(source->pictures);
    free(source->folder);
    free(source->masks);
    *source = (struct source){0};
}

bool source_one_camera(const struct preparation *preparation)
{
    const struct source *source = &preparation->source;
    uint32_t first[2] = {0};
    if (source->is_video || preparation->params->equirectangular)
        return true;
    for (size_t i = 0; i < preparation->count; i++) {
        uint32_t size[2] = {0};
        char *path = base_path_join(preparation->images, preparation->names[i]);
        bool read = path != NULL && scene_image_size(path, &size[0], &size[1]) == VKN_OK;
        free(path);
        if (!read || (i > 0 && (size[0] != first[0] || size[1] != first[1])))
            return false;
        first[0] = size[0];
        first[1] = size[1];
    }
    const struct source_picture *previous = NULL;
    for (size_t i = 0; i < source->count; i++) {
        if (source->pictures[i].problem != NULL)
            continue;
        if (previous != NULL && source->pictures[i].focal != previous->focal)
            return false;
        previous = &source->pictures[i];
    }
    return true;
}
