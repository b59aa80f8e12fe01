/* Chooses which sparse model of a folder is read. COLMAP makes several (0, 1, ...) when it cannot
 * register all images in one. */
#include "scene/colmap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"

#define MOST_NAMED 6 /* models that the message about unread models names */

/* ---- candidates ------------------------------------------------------------------------------ */

struct candidate {
    unsigned long number;
    char *name;         /* "sparse/1", relative to the scene's folder */
    char *cameras;      /* .../cameras.bin or cameras.txt */
    size_t image_count; /* 0: not counted or not readable */
    bool readable;      /* set when there are several models */
};

struct candidates {
    struct candidate *items;
    size_t count;
};

static void free_candidate(struct candidate *candidate)
{
    free(candidate->name);
    free(candidate->cameras);
}

static void free_candidates(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        free_candidate(&candidates->items[i]);
    free(candidates->items);
    *candidates = (struct candidates){0};
}

/* Finds the model of folder/name; candidate->cameras is NULL when there is none. */
static vkn_status find_cameras(const char *folder, const char *name, struct candidate *candidate)
{
    static const char *const names[] = {"cameras.bin", "cameras.txt"};
    *candidate = (struct candidate){.name = base_format("%s", name)};
    char *model = name[0] != '\0' ? base_path_join(folder, name) : base_format("%s", folder);
    vkn_status status = candidate->name != NULL && model != NULL ? VKN_OK : VKN_ERROR;
    for (size_t i = 0; i < BASE_COUNT(names) && status == VKN_OK && !candidate->cameras; i++) {
        candidate->cameras = base_path_join(model, names[i]);
        if (candidate->cameras == NULL)
            status = VKN_ERROR;
        else if (!base_file_exists(candidate->cameras)) {
            free(candidate->cameras);
            candidate->cameras = NULL;
        }
    }
    free(model);
    return status;
}

static vkn_status add_candidate(const char *folder, const char *name, unsigned long number,
                                struct candidates *candidates)
{
    struct candidate found, *grown;
    vkn_status status = find_cameras(folder, name, &found);
    found.number = number;
    if (status != VKN_OK || found.cameras == NULL) {
        free_candidate(&found);
        return status;
    }
    grown = realloc(candidates->items, (candidates->count + 1) * sizeof(*grown));
    if (grown == NULL) {
        free_candidate(&found);
        return base_fail(VKN_ERROR, "out of memory (models of a scene)");
    }
    candidates->items = grown;
    candidates->items[candidates->count++] = found;
    return VKN_OK;
}

static bool is_number(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size < 10 && strspn(name, "0123456789") == size;
}

static int by_number(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : strcmp(x->name, y->name);
}

/* Adds the models in folder/group/0, folder/group/1, ... */
static vkn_status add_numbered(const char *folder, const char *group, struct candidates *candidates)
{
    char *path = group[0] != '\0' ? base_path_join(folder, group) : base_format("%s", folder);
    if (path == NULL)
        return VKN_ERROR;
    DIR *stream = opendir(path);
    free(path);
    vkn_status status = VKN_OK;
    for (struct dirent *entry; stream != NULL && status == VKN_OK && (entry = readdir(stream));) {
        if (!is_number(entry->d_name))
            continue;
        char *name = base_path_join(group, entry->d_name);
        status = name != NULL
                     ? add_candidate(folder, name, strtoul(entry->d_name, NULL, 10), candidates)
                     : VKN_ERROR;
        free(name);
    }
    if (stream != NULL)
        closedir(stream);
    if (candidates->count > 1)
        qsort(candidates->items, candidates->count, sizeof(*candidates->items), by_number);
    return status;
}

/* Lists the models in the first of the usual folders that has any. */
static vkn_status list_candidates(const char *folder, struct candidates *candidates)
{
    static const struct {
        const char *name;
        bool numbered;
    } folders[] = {{"", false},
                   {"sparse", true},
                   {"sparse", false},
                   {"colmap/sparse", true},
                   {"colmap/sparse", false},
                   {"colmap", false},
                   {"colmap_sparse", true},
                   {"colmap_text", false},
                   {"", true}};
    for (size_t i = 0; i < BASE_COUNT(folders) && candidates->count == 0; i++)
        BASE_TRY(folders[i].numbered ? add_numbered(folder, folders[i].name, candidates)
                                     : add_candidate(folder, folders[i].name, 0, candidates));
    return VKN_OK;
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* Counts the images of each model when there are several. A model that cannot be read has 0; its
 * error is reported when it is chosen and read. */
static vkn_status count_images(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->count && candidates->count > 1; i++) {
        struct candidate *candidate = &candidates->items[i];
        vkn_status status = colmap_count_images(candidate->cameras, &candidate->image_count);
        if (status != VKN_OK && status != VKN_BAD_INPUT)
            return status;
        candidate->readable = status == VKN_OK;
    }
    return VKN_OK;
}

static size_t choose(const struct candidates *candidates)
{
    size_t best = 0;
    for (size_t i = 1; i < candidates->count; i++)
        if (candidates->items[i].image_count > candidates->items[best].image_count)
            best = i;
    return best;
}

static void describe(struct base_text *text, const struct candidate *candidate)
{
    if (candidate->readable)
        base_text_add(text, "%s with %zu images", candidate->name, candidate->image_count);
    else
        base_text_add(text, "%s, which cannot be read", candidate->name);
}

/* Writes "sparse/1 with 71 images is taken; there is also sparse/0 with 5 images". */
static vkn_status describe_choice(const struct candidates *candidates, size_t chosen, char **others)
{
    struct base_text text = {0};
    size_t named = 0;
    describe(&text, &candidates->items[chosen]);
    base_text_add(&text, " is taken; there is also ");
    for (size_t i = 0; i < candidates->count; i++) {
        if (i == chosen || named++ >= MOST_NAMED)
            continue;
        base_text_add(&text, named > 1 ? ", " : "");
        describe(&text, &candidates->items[i]);
    }
    if (named > MOST_NAMED)
        base_text_add(&text, ", and %zu more", named - MOST_NAMED);
    *others = text.data;
    return text.failed ? base_fail(VKN_ERROR, "out of memory (models of a scene)") : VKN_OK;
}

vkn_status colmap_find(const char *folder, char **cameras, char **others)
{
    struct candidates candidates = {0};
    *cameras = *others = NULL;
    vkn_status status = list_candidates(folder, &candidates);
    if (status == VKN_OK)
        status = count_images(&candidates);
    if (status == VKN_OK && candidates.count > 0) {
        size_t chosen = choose(&candidates);
        *cameras = candidates.items[chosen].cameras;
        candidates.items[chosen].cameras = NULL;
        if (candidates.count > 1)
            status = describe_choice(&candidates, chosen, others);
    }
    free_candidates(&candidates);
    return status;
}

/* ---- the capture's folder -------------------------------------------------------------------- */

/* Returns whether the folder has a name that capture tools use for folders of models. */
static bool is_model_folder(const char *path)
{
    static const char *const names[] = {"sparse", "colmap", "colmap_sparse", "colmap_text"};
    const char *name = base_path_name(path);
    bool found = is_number(name);
    for (size_t i = 0; i < BASE_COUNT(names) && !found; i++)
        found = strcmp(name, names[i]) == 0;
    return found;
}

vkn_status scene_capture_folder(const char *path, char **folder)
{
    bool failed = false, has_images = capture_has_images(path, &failed);
    char *absolute = realpath(path, NULL);
    if (failed || absolute == NULL || has_images || !is_model_folder(absolute)) {
        free(absolute);
        *folder = failed ? NULL : base_format("%s", path);
        return *folder != NULL ? VKN_OK : VKN_ERROR;
    }
    while (absolute != NULL && is_model_folder(absolute) &&
           !capture_has_images(absolute, &failed)) {
        char *parent = base_path_folder(absolute);
        free(absolute);
        absolute = parent;
    }
    *folder = absolute;
    return absolute != NULL && !failed ? VKN_OK : VKN_ERROR;
}
