/* Finds one component of a path in a folder (internal to find.c). */
#ifndef SCENE_FIND_COMPONENT_H
#define SCENE_FIND_COMPONENT_H

#include "scene/find.h"

/* A sorted array of structs whose first member is the string that they are sorted by. */
struct sorted {
    void **items;
    size_t count, capacity;
};

/* The state of a search (find.h). */
struct finder {
    char *folder;
    const char *const *subfolders;
    struct sorted listings;     /* struct listing *: contents of folders */
    struct sorted used_folders; /* char **: written folders in which a file has been found */
};

/* Returns the index of `text`, or the index to insert it at when *exists is set to false. */
size_t sorted_lower_bound(const struct sorted *sorted, const char *text, bool *exists);
/* Inserts an item at an index. */
vkn_status sorted_insert(struct sorted *sorted, size_t at, void *item);
/* Sets *listed to whether the finder's folder has the entry `name` (lower case) in any case. */
vkn_status finder_lists(struct finder *finder, const char *name, bool *listed);
/* Frees the cached contents of folders. */
void finder_free_listings(struct finder *finder);

/* Kinds of folder entries to find. */
enum component_kind { COMPONENT_ANY_FILE, COMPONENT_REGULAR_FILE, COMPONENT_FOLDER };

/* Adds `path`, which *found then owns, as the first or the second match. */
void found_add(struct found *found, char *path);
/* Adds the entry of exactly this name to *found, which must be empty. */
vkn_status component_exact(const char *folder, const char *name, enum component_kind kind,
                           struct found *found);
/* Adds entries whose names differ from `name` in Unicode form or, if there are none, in case. */
vkn_status component_similar(struct finder *finder, const char *folder, const char *name,
                             enum component_kind kind, struct found *found);
/* Adds images whose name without extension is `stem`. */
vkn_status component_image(struct finder *finder, const char *folder, const char *stem,
                           struct found *found);

#endif
