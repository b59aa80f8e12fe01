/* Lists folders. */
#include "windows/internal.h"

struct windows_folder {
    HANDLE search;
    WIN32_FIND_DATAW found; /* the next entry */
    bool has_next;
    wchar_t *pattern;
    struct dirent entry;
};

/* Returns the path followed by "\*", in UTF-16. */
static wchar_t *everything_in(const char *path)
{
    size_t size = strlen(path);
    char *pattern = malloc(size + 3);
    if (pattern == NULL)
        return NULL;
    snprintf(pattern, size + 3, "%s%s*", path, size > 0 && path[size - 1] == '/' ? "" : "/");
    wchar_t *wide = size > 0 ? windows_wide_path(pattern) : NULL;
    if (size == 0)
        errno = ENOENT;
    free(pattern);
    for (wchar_t *at = wide; at != NULL && (at = wcschr(at, L'/')) != NULL;)
        *at = L'\\';
    return wide;
}

DIR *windows_opendir(const char *path)
{
    wchar_t *pattern = everything_in(path);
    DIR *folder = pattern != NULL ? calloc(1, sizeof *folder) : NULL;
    if (folder == NULL) {
        free(pattern);
        return NULL;
    }
    folder->pattern = pattern;
    folder->search = FindFirstFileW(pattern, &folder->found);
    DWORD error = GetLastError();
    if (folder->search == INVALID_HANDLE_VALUE) {
        struct windows_stat information;
        free(pattern);
        free(folder);
        windows_fail_path(error, path);
        if (windows_stat(path, &information) == 0 && !S_ISDIR(information.st_mode))
            errno = ENOTDIR;
        return NULL;
    }
    folder->has_next = true;
    return folder;
}

struct dirent *windows_readdir(DIR *folder)
{
    if (!folder->has_next)
        return NULL;
    char *name = windows_narrow(folder->found.cFileName);
    if (name == NULL)
        return NULL;
    snprintf(folder->entry.d_name, sizeof folder->entry.d_name, "%s", name);
    free(name);
    folder->has_next = FindNextFileW(folder->search, &folder->found);
    return &folder->entry;
}

void windows_rewinddir(DIR *folder)
{
    FindClose(folder->search);
    folder->search = FindFirstFileW(folder->pattern, &folder->found);
    folder->has_next = folder->search != INVALID_HANDLE_VALUE;
}

int windows_closedir(DIR *folder)
{
    FindClose(folder->search);
    free(folder->pattern);
    free(folder);
    return 0;
}

int windows_alphasort(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp((*(struct dirent *const *)a)->d_name, (*(struct dirent *const *)b)->d_name);
}

/* Appends a copy of the entry, as long as its name needs. */
static bool append(struct dirent ***entries, int *count, const struct dirent *entry)
{
    size_t size = offsetof(struct dirent, d_name) + strlen(entry->d_name) + 1;
    struct dirent **grown = realloc(*entries, ((size_t)*count + 1) * sizeof **entries);
    struct dirent *copy = grown != NULL ? malloc(size) : NULL;
    *entries = grown != NULL ? grown : *entries;
    if (copy == NULL)
        return false;
    memcpy(copy, entry, size);
    (*entries)[(*count)++] = copy;
    return true;
}

int windows_scandir(const char *path, struct dirent ***entries,
                    int (*filter)(const struct dirent *entry),
                    int (*order)(const struct dirent **a, const struct dirent **b))
{
    DIR *folder = windows_opendir(path);
    struct dirent *entry;
    int count = 0;
    bool complete = folder != NULL;
    (void)order;
    *entries = NULL;
    if (folder == NULL)
        return -1;
    while (complete && (entry = windows_readdir(folder)) != NULL)
        complete = (filter != NULL && filter(entry) == 0) || append(entries, &count, entry);
    windows_closedir(folder);
    if (complete) {
        if (count > 0)
            qsort(*entries, (size_t)count, sizeof **entries, compare_entries);
        return count;
    }
    for (int i = 0; i < count; i++)
        free((*entries)[i]);
    free(*entries);
    *entries = NULL;
    errno = ENOMEM;
    return -1;
}
