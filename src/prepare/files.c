/* Removes, moves, links and writes files; compares and checksums names. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prepare/internal.h"

/* ---- removing -------------------------------------------------------------------------------- */

static vkn_status fail_errno(const char *path, const char *what)
{
    return base_fail(VKN_ERROR, "%s: %s: %s", path, what, strerror(errno));
}

static vkn_status for_each_entry(const char *folder, vkn_status (*act)(const char *path))
{
    DIR *stream = opendir(folder);
    if (stream == NULL)
        return fail_errno(folder, "cannot be read");
    vkn_status status = VKN_OK;
    for (struct dirent *entry; status == VKN_OK && (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = base_path_join(folder, entry->d_name);
        status = path != NULL ? act(path) : VKN_ERROR;
        free(path);
    }
    closedir(stream);
    return status;
}

vkn_status files_remove(const char *path)
{
    struct stat information;
    if (lstat(path, &information) != 0)
        return errno == ENOENT ? VKN_OK : fail_errno(path, "cannot be accessed");
    if (S_ISDIR(information.st_mode))
        BASE_TRY(for_each_entry(path, files_remove));
    if ((S_ISDIR(information.st_mode) ? rmdir : unlink)(path) != 0 && errno != ENOENT)
        return fail_errno(path, "cannot be removed");
    return VKN_OK;
}

vkn_status files_check_no_links(const char *path)
{
    struct stat information;
    if (lstat(path, &information) != 0)
        return errno == ENOENT ? VKN_OK : fail_errno(path, "cannot be accessed");
    if (S_ISDIR(information.st_mode))
        return for_each_entry(path, files_check_no_links);
    if (S_ISREG(information.st_mode))
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s, which prepare did not make; remove it", path,
                     S_ISLNK(information.st_mode) ? "a link" : "neither a file nor a folder");
}

vkn_status files_move(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        return fail_errno(to, "cannot be made");
    return VKN_OK;
}

vkn_status files_write(const char *path, const void *data, size_t size)
{
    vkn_status status = base_file_replace(path, data, size);
    return status == VKN_BAD_INPUT ? VKN_ERROR : status;
}

/* Returns whether a new link is a regular file: another process may have replaced the source. */
static bool is_regular(const char *path)
{
    struct stat information;
    return lstat(path, &information) == 0 && S_ISREG(information.st_mode);
}

vkn_status files_link(const char *from, const char *to)
{
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0) {
        if (is_regular(to))
            return VKN_OK;
        unlink(to);
    }
    /* Links fail on another disk, for another user's file, and on some file systems: copy. */
    char *data = NULL;
    size_t size = 0;
    BASE_TRY(base_file_read(from, (size_t)1 << 30, &data, &size));
    vkn_status status = files_write(to, data, size);
    free(data);
    return status;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Compares and skips two numbers. Without leading zeros, equally long numbers sort as strings. */
static int compare_numbers(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    size_t length_a = strspn(*a, "0123456789"), length_b = strspn(*b, "0123456789");
    int order = length_a != length_b ? (length_a < length_b ? -1 : 1) : strncmp(*a, *b, length_a);
    *a += length_a;
    *b += length_b;
    return order;
}

int files_natural_order(const char *a, const char *b)
{
    const char *whole_a = a, *whole_b = b;
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            int order = compare_numbers(&a, &b);
            if (order != 0)
                return order;
        } else if (*a++ != *b++) {
            return (unsigned char)a[-1] < (unsigned char)b[-1] ? -1 : 1;
        }
    }
    if (*a != *b)
        return *a == '\0' ? -1 : 1;
    return strcmp(whole_a, whole_b); /* "01" and "1" */
}

bool files_ends_with(const char *name, const char *endings)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL ? strlen(dot + 1) : 0;
    for (const char *at = endings; length > 0 && *at != '\0';) {
        size_t size = strcspn(at, " ");
        if (size == length && strncasecmp(at, dot + 1, size) == 0)
            return true;
        at += size + (at[size] == ' ' ? 1 : 0);
    }
    return false;
}

uint32_t files_checksum(uint32_t sum, const char *text)
{
    return base_crc32c(sum, text, strlen(text) + 1);
}
