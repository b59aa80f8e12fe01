/* Inside of find.c: what a folder holds, and one part of a name in it. */
#ifndef SCENE_FIND_PART_H
#define SCENE_FIND_PART_H

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
size_t part_lower_bound(const struct sorted *sorted, const char *text, bool *there);
vkn_status part_insert(struct sorted *sorted, size_t at, void *item);
/* Whether the finder's folder has an entry of that name, in whatever case. */
vkn_status part_is_listed(struct finder *finder, const char *name, bool *listed);
void part_free_listings(struct finder *finder);

enum part_kind { PART_ANY_FILE, PART_REGULAR_FILE, PART_FOLDER };

/* Takes `path`, fresh memory, for what is found, or for the second such. */
void part_take(struct found *found, char *path);
/* These add to *found, which has nothing yet, what there is in the folder: the name as it is, */
vkn_status part_exact(const char *folder, const char *name, enum part_kind kind,
                      struct found *found);
/* in another Unicode form, or else in another case, */
vkn_status part_like(struct finder *finder, const char *folder, const char *name,
                     enum part_kind kind, struct found *found);
/* or a picture whose name begins with `stem`. */
vkn_status part_picture(struct finder *finder, const char *folder, const char *stem,
                        struct found *found);

#endif
