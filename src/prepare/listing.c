/* Lists the photographs of a folder or its subfolders, and reports other files. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define MAX_DEPTH 3u /* of subfolders; telephones have DCIM/100APPLE */

/* Ignored files that users may take for photographs, and advice on them. */
enum ignored { IGNORED_RAW, IGNORED_VIDEO, IGNORED_OTHER, IGNORED_FOLDER, IGNORED_COUNT };
static const struct {
    const char *endings, *what;
} ignored_kinds[IGNORED_COUNT] = {
    [IGNORED_RAW] = {"dng cr2 cr3 crw nef nrw arw srf sr2 orf rw2 rwl raf pef srw x3f iiq 3fr",
                     "raw photographs such as %s have to be developed into JPEG first"},
    [IGNORED_VIDEO] =
        {"mov mp4 m4v avi mkv webm 3gp mts m2ts wmv insv",
         "videos such as %s are prepared one by one: vknerf prepare VIDEO --out SCENE"},
    [IGNORED_OTHER] = {"gif jxl psd exr hdr svg insp",
                       "pictures such as %s have to be converted into JPEG or PNG first"},
    [IGNORED_FOLDER] = {"", "photographs in subfolders, such as %s, count as another capture"},
};

struct listing {
    struct source *source;
    size_t capacity;
    size_t counts[IGNORED_COUNT];   /* ignored files of each kind */
    char first[IGNORED_COUNT][256]; /* the first of them */
};

/* ---- one folder ------------------------------------------------------------------------------ */

static vkn_status add_picture(struct listing *listing, const char *file)
{
    struct source *source = listing->source;
    if (source->count == listing->capacity) {
        size_t new_capacity = listing->capacity > 0 ? 2 * listing->capacity : 64;
        void *grown = realloc(source->pictures, new_capacity * sizeof(*source->pictures));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu pictures)", new_capacity);
        source->pictures = grown;
        listing->capacity = new_capacity;
    }
    struct source_picture *picture = &source->pictures[source->count];
    *picture = (struct source_picture){.file = base_format("%s", file), .orientation = 1};
    source->count += picture->file != NULL ? 1 : 0;
    return picture->file != NULL ? VKN_OK : VKN_ERROR;
}

static void count_ignored(struct listing *listing, enum ignored ignored, const char *file)
{
    if (listing->counts[ignored]++ == 0)
        snprintf(listing->first[ignored], sizeof(listing->first[ignored]), "%s", file);
}

static vkn_status add_file(struct listing *listing, const char *file)
{
    if (files_ends_with(file, PREPARE_PHOTOGRAPHS))
        return add_picture(listing, file);
    for (unsigned ignored = 0; ignored < IGNORED_COUNT; ignored++)
        if (files_ends_with(file, ignored_kinds[ignored].endings))
            count_ignored(listing, (enum ignored)ignored, file);
    return VKN_OK;
}

/* Returns whether an entry is skipped without a warning: hidden files, such as macOS's
 * "._IMG_1.jpg", and instant-ngp's masks. */
static bool is_skipped(const char *name)
{
    return name[0] == '.' || strncmp(name, "dynamic_mask_", strlen("dynamic_mask_")) == 0;
}

/* Calls `act` with the path of each entry, relative to the source's folder, sorted by name. */
static vkn_status for_entries(struct listing *listing, const char *below,
                              vkn_status (*act)(struct listing *listing, const char *file))
{
    struct dirent **entries = NULL;
    char *folder = base_path_join(listing->source->folder, below);
    int count = folder != NULL ? scandir(folder, &entries, NULL, alphasort) : -1;
    vkn_status status = VKN_OK;
    if (count < 0)
        status = folder != NULL ? base_fail(VKN_BAD_INPUT, "%s: %s", folder, strerror(errno))
                                : VKN_ERROR;
    for (int i = 0; i < count; i++) {
        char *file = NULL;
        if (status == VKN_OK && !is_skipped(entries[i]->d_name)) {
            file = below[0] != '\0' ? base_path_join(below, entries[i]->d_name)
                                    : base_format("%s", entries[i]->d_name);
            status = file != NULL ? act(listing, file) : VKN_ERROR;
        }
        free(file);
        free(entries[i]);
    }
    free(entries);
    free(folder);
    return status;
}

/* ---- subfolders ------------------------------------------------------------------------------ */

/* Sets *may to whether a subfolder may hold photographs: no masks, no smaller copies, no other
 * program's folder, no prepared scene. */
static vkn_status may_hold_photographs(const struct listing *listing, const char *file, bool *may)
{
    const char *name = base_path_name(file);
    char *folder = base_path_join(listing->source->folder, file);
    char *record = folder != NULL ? base_path_join(folder, "prepare.json") : NULL;
    vkn_status status = record != NULL ? VKN_OK : VKN_ERROR;
    *may = record != NULL && base_is_folder(folder) && !base_file_exists(record) &&
           strcmp(name, "masks") != 0 && strncmp(name, "images_", strlen("images_")) != 0 &&
           strncmp(name, "__", 2) != 0;
    free(folder);
    free(record);
    return status;
}

static vkn_status add_folder(struct listing *listing, const char *file)
{
    unsigned depth = 1;
    for (const char *c = file; *c != '\0'; c++)
        depth += *c == '/' ? 1 : 0;
    bool may = false;
    BASE_TRY(may_hold_photographs(listing, file, &may));
    if (!may)
        return VKN_OK;
    BASE_TRY(for_entries(listing, file, add_file));
    return depth < MAX_DEPTH ? for_entries(listing, file, add_folder) : VKN_OK;
}

/* Counts the photographs in subfolders, which are ignored because the folder itself has some. */
static vkn_status count_below(struct listing *listing)
{
    struct source below = {.folder = listing->source->folder};
    struct listing other = {.source = &below};
    vkn_status status = for_entries(&other, "", add_folder);
    if (below.count > 0)
        count_ignored(listing, IGNORED_FOLDER, below.pictures[0].file);
    listing->counts[IGNORED_FOLDER] = below.count;
    below.folder = NULL;
    source_free(&below);
    return status == VKN_BAD_INPUT ? VKN_OK : status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static vkn_status warn_ignored(const struct listing *listing)
{
    for (unsigned ignored = 0; ignored < IGNORED_COUNT; ignored++) {
        char what[512];
        if (listing->counts[ignored] == 0)
            continue;
        snprintf(what, sizeof(what), ignored_kinds[ignored].what, listing->first[ignored]);
        if (listing->source->count == 0)
            return base_fail(VKN_BAD_INPUT, "%s: %s", listing->source->folder, what);
        base_log(BASE_LOG_WARNING, "%s: %zu file%s beside the photographs ignored: %s",
                 listing->source->folder, listing->counts[ignored],
                 listing->counts[ignored] > 1 ? "s" : "", what);
    }
    return VKN_OK;
}

vkn_status listing_find_all(struct source *source, const char *folder)
{
    struct listing listing = {.source = source};
    source->folder = base_format("%s", folder);
    if (source->folder == NULL)
        return VKN_ERROR;
    BASE_TRY(for_entries(&listing, "", add_file));
    return for_entries(&listing, "", add_folder);
}

/* Lists the photographs of the folder or, if it has none, of `images` or else of all subfolders. */
vkn_status listing_find(struct source *source, const char *given)
{
    struct listing listing = {.source = source};
    source->folder = base_format("%s", given);
    if (source->folder == NULL)
        return VKN_ERROR;
    BASE_TRY(for_entries(&listing, "", add_file));
    if (source->count > 0) {
        BASE_TRY(count_below(&listing));
        return warn_ignored(&listing);
    }
    char *images = base_path_join(given, "images");
    if (images == NULL)
        return VKN_ERROR;
    bool has_images = base_is_folder(images);
    if (has_images) {
        free(source->folder);
        source->folder = images;
        BASE_TRY(for_entries(&listing, "", add_file));
    } else {
        free(images);
    }
    if (source->count == 0)
        BASE_TRY(for_entries(&listing, "", add_folder));
    BASE_TRY(warn_ignored(&listing));
    return source->count > 0
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: no photographs (JPEG or PNG) in this folder", given);
}
