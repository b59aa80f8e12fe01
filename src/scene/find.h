/* Finds files whose names differ from the written ones in extension, case, Unicode form or folder
 * (internal to the module scene). find.c describes the order of the search. */
#ifndef SCENE_FIND_H
#define SCENE_FIND_H

#include "scene/scene.h"

/* Flags: how the name of the file differs from the written name. 0: the names are equal, apart from
 * separators and an added extension. */
enum {
    FOUND_UNICODE_FORM = 1, /* Unicode normal form: macOS decomposes names */
    FOUND_CASE = 2,
    FOUND_EXTENSION = 4,
    FOUND_ESCAPED = 8, /* %20 is written for a space */
    FOUND_FOLDER = 16,
    FOUND_DIFFERENCES = 5 /* number of flags */
};

/* Result of a search. `path` is NULL when there is no such file. When two files match equally well,
 * `other` is the second one and the caller reports the ambiguity. The caller frees both. */
struct found {
    char *path, *other;
    unsigned differences;
};

/* A search in one folder and its subfolders; the entries of each are read only once. */
struct finder;

/* Opens a search. Names are relative to `folder`. `subfolders` (NULL: none) is a NULL-terminated
 * list of its subfolders that finder_find_elsewhere searches; "" stands for the folder itself. */
vkn_status finder_open(const char *folder, const char *const *subfolders, struct finder **finder);
/* Frees a search and sets the pointer to NULL. */
void finder_close(struct finder **finder);

/* Finds an image at its written name: exactly, or with an extension added when the name has none,
 * else with another Unicode form, case or extension. */
vkn_status finder_find_as_written(struct finder *finder, const char *name, struct found *found);
/* Finds an image in another folder. Must be called after finder_find_as_written for all names: it
 * searches only if finder_find_as_written has found no file at all in this name's folder. Removes
 * leading folders of the name one by one and searches the rest in the finder's folder and
 * subfolders and, with `any_size`, in images_2, images_3, ... */
vkn_status finder_find_elsewhere(struct finder *finder, const char *name, bool any_size,
                                 struct found *found);
/* Finds a file with exactly this name in the finder's folder. */
vkn_status finder_find_exact(struct finder *finder, const char *name, struct found *found);
/* Finds a file in the given folder by its name, or by another Unicode form or case of the name. */
vkn_status finder_find_in_folder(struct finder *finder, const char *folder, const char *name,
                                 struct found *found);
/* Finds a subfolder of the finder's folder by its name, or by another form or case of the name. */
vkn_status finder_find_folder(struct finder *finder, const char *name, struct found *found);

#endif
