/* Removes folders of tests. */
#ifndef TESTS_REMOVE_TREE_H
#define TESTS_REMOVE_TREE_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static inline void remove_tree(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry = NULL;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *child = base_path_join(path, entry->d_name);
        if (unlink(child) != 0) /* does not follow links to folders outside */
            remove_tree(child);
        free(child);
    }
    if (folder != NULL)
        closedir(folder);
    rmdir(path);
}

#endif
