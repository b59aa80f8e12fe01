/* Removes temporary files that killed processes left behind. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vknerf/choices.h>

#include "base/base.h"

/* Returns the start of the ".NUMBER" that ends at `end`, or NULL without one. */
static const char *before_number(const char *text, const char *end)
{
    const char *digits = end;
    while (digits > text && isdigit((unsigned char)digits[-1]))
        digits--;
    return digits < end && digits > text + 1 && digits[-1] == '.' ? digits - 1 : NULL;
}

#define END(extension) "." #extension,

/* Returns whether the name up to `end` has an extension that vknerf writes; other files are not
 * removed. */
static bool is_written(const char *name, const char *end)
{
    static const char *const kinds[] = {
        ".safetensors", ".json",
        ".jsonl",       ".html",
        ".png",         ".npy",
        ".svg",         ".mp4",
        ".gif",         VKN_EXPORT_FORMATS(END, END, END, END, VKN_NO_FORMAT)};
    for (size_t i = 0; i < BASE_COUNT(kinds); i++) {
        size_t size = strlen(kinds[i]);
        if ((size_t)(end - name) > size && memcmp(end - size, kinds[i], size) == 0)
            return true;
    }
    return false;
}

/* Returns whether the process is a zombie: the first process of a container may never reap its
 * children. */
static bool is_zombie(long process)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%ld/stat", process);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    const char *name_end = strrchr(text, ')'); /* followed by a space and the state */
    return name_end && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
}

/* Returns whether the process that wrote a file is gone. A file with the number of the running
 * process is an earlier one's: the running process has not written in the folder yet. */
static bool is_gone(long process)
{
    if (process == (long)getpid())
        return true;
    if (process <= 0)
        return false;
    return (kill((pid_t)process, 0) != 0 && errno == ESRCH) || is_zombie(process);
}

/* Returns whether a file "FILE.PROCESS.COUNTER.tmp" may be deleted: its process is gone, or its
 * name begins with `own`, a prefix that only the caller writes. */
static bool is_stale(const char *name, const char *own)
{
    static const char ending[] = ".tmp";
    size_t size = strlen(name), ending_size = sizeof(ending) - 1;
    if (size <= ending_size || strcmp(name + size - ending_size, ending) != 0)
        return false;
    const char *counter = before_number(name, name + size - ending_size);
    const char *process = counter ? before_number(name, counter) : NULL;
    if (!process || !is_written(name, process))
        return false;
    return strncmp(name, own, strlen(own)) == 0 || is_gone(strtol(process + 1, NULL, 10));
}

static void remove_in(const char *folder, const char *own, bool into_subfolders)
{
    DIR *stream = opendir(folder);
    struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        char *path = base_path_join(folder, entry->d_name);
        if (path && is_stale(entry->d_name, own))
            unlink(path);
        else if (path && into_subfolders && entry->d_name[0] != '.' && base_is_folder(path))
            remove_in(path, own, false);
        free(path);
    }
    if (stream)
        closedir(stream);
}

void base_remove_temporaries(const char *folder, const char *own)
{
    remove_in(folder, own, true);
}
