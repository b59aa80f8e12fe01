/* Inside of the scene room: finding files by names that are not quite theirs (another extension,
 * case, Unicode form or folder), as capture tools and machines leave them. find.c has the order. */
#ifndef SCENE_FIND_H
#define SCENE_FIND_H

#include "scene/scene.h"

/* How the name of a file that was found differs from the one that is written; 0: it does not, but
 * for separators and an extension where none is written. */
enum {
    FOUND_UNICODE_FORM = 1, /* Unicode's normal form: macOS decomposes names */
    FOUND_CASE = 2,
    FOUND_EXTENSION = 4,
    FOUND_ESCAPED = 8, /* %20 is written for a space */
    FOUND_FOLDER = 16,
    FOUND_DIFFERENCES = 5
};

/* `path` is NULL where there is no such file. Where two fit equally well `other` is the second, and
 * the caller says so. Both are fresh memory. */
struct found {
    char *path, *other;
    unsigned differences;
};

/* Reads each folder once. */
struct finder;

/* Names are relative to `folder`; `places`, which ends with NULL, are folders in it where files may
 * be instead, with "" also in it itself. NULL: none. */
vkn_status finder_open(const char *folder, const char *const *places, struct finder **finder);
void finder_close(struct finder **finder);

/* Finds a picture where its name says: exactly, or with an extension added where the name has none,
 * else by another Unicode form, case or extension. */
vkn_status finder_find_as_written(struct finder *finder, const char *name, struct found *found);
/* Finds a picture elsewhere, once finder_find_as_written has been asked for all names: only where
 * it found none of those in the folder that this name has. Leading folders of the name are taken
 * away one by one, and the rest is looked for in the finder's folder and places; with `any_size` in
 * images_2, images_3, ... as well. */
vkn_status finder_find_elsewhere(struct finder *finder, const char *name, bool any_size,
                                 struct found *found);
/* Finds a file that has exactly this name. */
vkn_status finder_find_exact(struct finder *finder, const char *name, struct found *found);
/* Finds a file of that name in a folder of any path, by another Unicode form or case at most. */
vkn_status finder_find_in_folder(struct finder *finder, const char *folder, const char *name,
                                 struct found *found);
/* The same for a folder in the finder's: `path` is NULL where there is none. */
vkn_status finder_find_folder(struct finder *finder, const char *name, struct found *found);

/* A name in which all that has the same letters is the same, in fresh memory: decomposed
 * (name_key.c), and with `fold` in lower case. */
char *name_key(const char *name, bool fold);

#endif
