/* Inside of find.c: what a folder holds, and one part of a name in it. */
#ifndef SCENE_FIND_COMPONENT_H
#define SCENE_FIND_COMPONENT_H

#include "scene/find.h"

/* Pointers in the order of the texts that they begin with. */
struct sorted {
    void **items;
    size_t count, capacity;
};

struct finder {
    char *folder;
    const char *const *places;
    struct sorted listings; /* struct listing: what is in folders */
    struct sorted filled;   /* char **: folders as written in which something has been found */
};

/* Returns where `text` is, or has to be inserted. */
size_t sorted_lower_bound(const struct sorted *sorted, const char *text, bool *there);
vkn_status sorted_insert(struct sorted *sorted, size_t at, void *item);
/* Whether the finder's folder has an entry of that name, in whatever case. */
vkn_status finder_lists(struct finder *finder, const char *name, bool *listed);
void finder_free_listings(struct finder *finder);

enum component_kind { COMPONENT_ANY_FILE, COMPONENT_REGULAR_FILE, COMPONENT_FOLDER };

/* Takes `path`, fresh memory, for what is found, or for the second such. */
void found_add(struct found *found, char *path);
/* These add to *found, which has nothing yet, what there is in the folder: the name as it is, */
vkn_status component_exact(const char *folder, const char *name, enum component_kind kind,
                           struct found *found);
/* in another Unicode form, or else in another case, */
vkn_status component_similar(struct finder *finder, const char *folder, const char *name,
                             enum component_kind kind, struct found *found);
/* or a picture whose name begins with `stem`. */
vkn_status component_image(struct finder *finder, const char *folder, const char *stem,
                           struct found *found);

#endif
