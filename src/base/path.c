/* Checks, joins and creates paths and folders. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

/* Sets *exists and returns 0, or the errno if existence cannot be determined. */
static int find_file(const char *path, bool *exists)
{
    struct stat information;
    bool found = stat(path, &information) == 0;
    *exists = found && !S_ISDIR(information.st_mode);
    return found || errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? 0 : errno;
}

vkn_status base_file_find(const char *path, bool *exists)
{
    int problem = find_file(path, exists);
    if (problem == 0)
        return VKN_OK;
    return base_fail(base_status_of_errno(problem), "%s: cannot be examined: %s", path,
                     strerror(problem));
}

bool base_file_exists(const char *path)
{
    bool exists = false;
    /* If existence cannot be determined, opening the file will report why. */
    return find_file(path, &exists) != 0 || exists;
}

bool base_is_folder(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 && S_ISDIR(information.st_mode);
}

char *base_path_join(const char *folder, const char *name)
{
    size_t size = strlen(folder);
    if (base_path_is_absolute(name) || size == 0)
        return base_format("%s", name);
    return base_format(folder[size - 1] == '/' ? "%s%s" : "%s/%s", folder, name);
}

char *base_path_folder(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    while (size > 1 && path[size - 1] == '/')
        size--;
    return size > 0 ? base_format("%.*s", (int)size, path) : base_format(".");
}

static vkn_status make_one(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return VKN_OK;
    int error = errno;
    struct stat information;
    if (stat(path, &information) == 0 && S_ISDIR(information.st_mode))
        return VKN_OK;
    if (errno != error && errno != ENOENT) /* something exists that cannot be examined */
        error = errno;
    return base_fail(base_status_of_errno(error), "%s: cannot make this folder: %s", path,
                     error == EEXIST ? "a file of that name is in the way" : strerror(error));
}

vkn_status base_make_folder(const char *path)
{
    if (path[0] == '\0')
        return base_fail(VKN_BAD_INPUT, "the name of a folder to make is empty");
    char *prefix = base_format("%s", path);
    if (prefix == NULL)
        return VKN_ERROR;
    vkn_status status = VKN_OK;
    for (char *end = prefix + 1; *end != '\0' && status == VKN_OK; end++) {
        if (*end != '/')
            continue;
        *end = '\0';
        status = make_one(prefix);
        *end = '/';
    }
    if (status == VKN_OK)
        status = make_one(prefix);
    free(prefix);
    return status;
}

const char *base_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Returns whether the path is the default folder of runs, `runs`, in an existing folder. */
static bool is_runs_folder(const char *path)
{
    char *parent = base_path_folder(path);
    bool matches =
        strcmp(base_path_name(path), "runs") == 0 && parent != NULL && base_is_folder(parent);
    free(parent);
    return matches;
}

vkn_status base_make_last_folder(const char *path)
{
    struct stat information;
    char *parent = base_path_folder(path);
    if (parent == NULL)
        return VKN_ERROR;
    bool missing = lstat(parent, &information) != 0 && errno == ENOENT && !is_runs_folder(parent);
    vkn_status status =
        missing ? base_fail(VKN_BAD_INPUT,
                            "%s: cannot make this folder: there is no folder %s to make it in",
                            path, parent)
                : base_make_folder(path);
    free(parent);
    return status;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_listed(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

vkn_status base_refuse_foreign(const char *folder, const char *const *own, const char *maker)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_visible, alphasort);
    vkn_status status = VKN_OK;
    if (count < 0)
        status = base_fail(base_status_of_errno(errno), "%s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (status == VKN_OK && !is_listed(entries[i]->d_name, own))
            status = base_fail(VKN_BAD_INPUT,
                               "%s: this folder contains %s, which %s did not make; name a new or "
                               "empty folder with --out",
                               folder, entries[i]->d_name, maker);
        free(entries[i]);
    }
    free(entries);
    return status;
}
