/* Checks names of files that pages choose, and makes paths in the run's folder from them. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_BYTES 120 /* of a name, without its extension */

/* Returns whether Windows reserves the name, with any extension. */
static bool is_device(const char *name)
{
    static const char *const devices[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};
    size_t length = strcspn(name, ".");
    while (length > 0 && name[length - 1] == ' ')
        length--;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (length == strlen(devices[i]) && strncasecmp(name, devices[i], length) == 0)
            return true;
    return length == 4 && (strncasecmp(name, "COM", 3) == 0 || strncasecmp(name, "LPT", 3) == 0) &&
           name[3] >= '0' && name[3] <= '9';
}

static bool is_utf8(const char *name)
{
    char *clean = vkn_to_utf8(name);
    bool same = clean && strcmp(clean, name) == 0;
    vkn_free(clean);
    return same;
}

const char *name_problem(const char *name)
{
    size_t length = strlen(name);
    if (length == 0)
        return "name: is empty";
    if (length > MOST_BYTES)
        return "name: is longer than 120 bytes";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f || strchr("/\\:*?\"<>|", name[i]))
            return "name: has a control character or one of / \\ : * ? \" < > |";
    if (strchr(". ", name[0]) || strchr(". ", name[length - 1]))
        return "name: begins or ends with a dot or a space";
    if (!is_utf8(name))
        return "name: is not UTF-8";
    return is_device(name) ? "name: Windows reserves it" : NULL;
}

char *name_path(const struct viewer *viewer, const char *folder, const char *name,
                const char *extension)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s%s%s", viewer->folder, folder, name[0] ? "/" : "", name,
                 extension) < 0)
        return NULL;
    return path;
}
