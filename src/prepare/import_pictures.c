/* Finds the pictures of other programs' cameras by their names. */
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

/* How well the last parts of two names agree. */
enum { DIFFERENT, SAME_STEM, SAME_LETTERS, SAME };
#define PARENT 4 /* each equal parent folder counts more than the last part */

/* ---- two names ------------------------------------------------------------------------------- */

/* A name, and its letters in one case and Unicode form. */
struct spelling {
    const char *name;
    char *key; /* scene_name_key(name, true) with / as separator */
};

static vkn_status spell(const char *name, struct spelling *spelling)
{
    *spelling = (struct spelling){name, scene_name_key(name, true)};
    for (char *c = spelling->key; c != NULL && *c != '\0'; c++)
        *c = (char)(*c == '\\' ? '/' : *c);
    return spelling->key != NULL ? VKN_OK : VKN_ERROR;
}

/* Returns where the last part of text[0 .. size - 1] begins. */
static size_t last_part(const char *text, size_t size)
{
    while (size > 0 && text[size - 1] != '/')
        size--;
    return size;
}

/* Returns the length of a name without an extension of photographs. */
static size_t stem_size(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot > name && files_ends_with(name, PREPARE_PHOTOGRAPHS)
               ? (size_t)(dot - name)
               : strlen(name);
}

/* Compares the last parts of two keys. */
static int compare_last(const char *name, const char *file)
{
    if (strcmp(name, file) == 0)
        return SAME_LETTERS;
    size_t stem = stem_size(file);
    bool same = (stem == stem_size(name) || stem == strlen(name)) && strncmp(name, file, stem) == 0;
    return same ? SAME_STEM : DIFFERENT;
}

/* Returns how well a picture's path fits the name that the program gives it; 0: not at all. */
static int fit(const struct spelling *name, const struct spelling *file)
{
    size_t a = last_part(name->key, strlen(name->key)), b = last_part(file->key, strlen(file->key));
    int result = compare_last(name->key + a, file->key + b);
    if (result == SAME_LETTERS &&
        strcmp(base_path_name(name->name), base_path_name(file->name)) == 0)
        result = SAME;
    while (result != DIFFERENT && a > 0 && b > 0) {
        size_t end_a = a - 1, end_b = b - 1;
        a = last_part(name->key, end_a);
        b = last_part(file->key, end_b);
        if (end_a - a != end_b - b || strncmp(name->key + a, file->key + b, end_a - a) != 0)
            break;
        result += PARENT;
    }
    return result;
}

static size_t depth_of(const char *file)
{
    size_t depth = 0;
    for (; *file != '\0'; file++)
        depth += *file == '/' ? 1 : 0;
    return depth;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The best picture for a name, and another one that fits as well. */
struct match {
    int fit;
    size_t depth; /* number of folders in its path: fewer are better */
    struct source_picture *best, *other;
};

/* The pictures, and how each is spelt. */
struct matching {
    struct import *import;
    struct source *source;
    struct spelling *files;
};

static struct match find_match(const struct matching *matching, const struct spelling *name)
{
    struct match match = {0};
    for (size_t i = 0; i < matching->source->count; i++) {
        struct source_picture *picture = &matching->source->pictures[i];
        int how = fit(name, &matching->files[i]);
        size_t depth = depth_of(picture->file);
        if (how == 0 || how < match.fit || (how == match.fit && depth > match.depth))
            continue;
        bool equal = how == match.fit && depth == match.depth;
        match = (struct match){how, depth, equal ? match.best : picture, equal ? picture : NULL};
    }
    return match;
}

/* Finds the picture of a frame, whose number + 1 is kept in picture->frame. */
static vkn_status match_frame(const struct matching *matching, size_t index)
{
    const struct import *import = matching->import;
    struct import_frame *frame = &import->frames[index];
    struct spelling name;
    BASE_TRY(spell(frame->name, &name));
    struct match match = find_match(matching, &name);
    free(name.key);
    if (match.best == NULL)
        return VKN_OK;
    if (match.other != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: %s: %s and %s in %s fit this name equally well",
                         import->file, frame->name, match.best->file, match.other->file,
                         matching->source->folder);
    if (match.best->frame != 0)
        return base_fail(VKN_BAD_INPUT, "%s: %s and %s have one picture, %s", import->file,
                         import->frames[match.best->frame - 1].name, frame->name, match.best->file);
    frame->is_found = true;
    match.best->frame = index + 1;
    return VKN_OK;
}

static vkn_status match_frames(const struct matching *matching)
{
    for (size_t i = 0; i < matching->source->count; i++)
        BASE_TRY(spell(matching->source->pictures[i].file, &matching->files[i]));
    for (size_t i = 0; i < matching->import->frame_count; i++)
        BASE_TRY(match_frame(matching, i));
    return VKN_OK;
}

/* Removes the pictures without a pose from the list; returns how many there were. */
static size_t drop_others(struct source *source)
{
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < source->count; i++) {
        if (source->pictures[i].frame != 0) {
            source->pictures[kept++] = source->pictures[i];
            continue;
        }
        free(source->pictures[i].file);
        dropped++;
    }
    source->count = kept;
    return dropped;
}

/* Logs one warning with the number of cameras that are left out, and the first of them. */
static void warn(const struct import *import, size_t count, const char *why, const char *first)
{
    if (count > 0)
        base_log(BASE_LOG_WARNING, "%s: %zu of %zu cameras are left out, because %s: %s%s",
                 import->file, count, import->frame_count + import->unposed, why, first,
                 count > 1 ? ", ..." : "");
}

static vkn_status report(const struct import *import, const struct source *source, size_t dropped)
{
    size_t missing = 0;
    const char *first = "";
    for (size_t i = 0; i < import->frame_count; i++)
        if (!import->frames[i].is_found && missing++ == 0)
            first = import->frames[i].name;
    if (source->count < MIN_PICTURES)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %zu of %zu cameras with a pose have a picture in %s, at least %u are "
                         "needed%s%s",
                         import->file, source->count, import->frame_count, source->folder,
                         MIN_PICTURES, missing > 0 ? "; there is no picture of " : "", first);
    warn(import, missing, "they have no picture in the folder", first);
    warn(import, import->unposed, "they have no pose or are disabled", import->first_unposed);
    if (dropped > import->unposed)
        base_log(BASE_LOG_WARNING,
                 "%s: %zu of %zu photographs are left out, because %s does not name them",
                 source->folder, dropped - import->unposed, source->count + dropped,
                 base_path_name(import->file));
    return VKN_OK;
}

vkn_status import_match_pictures(struct import *import, struct source *source)
{
    size_t count = source->count;
    struct matching matching = {import, source, base_alloc(count + 1, sizeof(*matching.files))};
    vkn_status status = matching.files != NULL ? match_frames(&matching) : VKN_ERROR;
    for (size_t i = 0; i < count && matching.files != NULL; i++)
        free(matching.files[i].key);
    free(matching.files);
    BASE_TRY(status);
    size_t dropped = drop_others(source);
    return report(import, source, dropped);
}
