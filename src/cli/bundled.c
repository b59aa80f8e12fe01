/* Finds the folder of the bundled scene. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

char *cli_format_path(const char *folder, const char *rest)
{
    size_t size = strlen(folder) + strlen(rest) + 1;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s", folder, rest);
    return path;
}

/* Returns folder + rest, which the caller frees, if it holds a scene; NULL otherwise. */
static char *find_in(const char *folder, const char *rest)
{
    char *path = folder ? cli_format_path(folder, rest) : NULL;
    char *file = path ? cli_format_path(path, "/transforms_train.json") : NULL;
    bool found = file && access(file, R_OK) == 0;
    free(file);
    if (found)
        return path;
    free(path);
    return NULL;
}

/* Searches for the scene relative to a program, in a build folder or installed. */
static char *find_relative_to(const char *program)
{
    const char *slash = program ? strrchr(program, '/') : NULL;
    if (!slash)
        return NULL;
    char *folder = strndup(program, (size_t)(slash - program));
    char *found = find_in(folder, "/../assets/demo");
    if (!found)
        found = find_in(folder, "/../share/vknerf/assets/demo");
    if (!found)
        found = find_in(folder, "/assets/demo");
    free(folder);
    return found;
}

static char *find_scene(void)
{
    char program[4096] = "";
    char *found = find_in(getenv("VKNERF_ASSETS"), "/demo");
    if (!found)
        found = find_in("assets", "/demo");
    /* If a loader runs the program, the link names the loader; the command line is used then. */
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (!found && size > 0)
        found = find_relative_to(program);
    if (!found)
        found = find_relative_to(cli_arguments[0]);
    return found;
}

int cli_find_bundled(char **scene)
{
    *scene = find_scene();
    return *scene ? VKN_OK
                  : cli_fail(VKN_BAD_INPUT, "assets/demo: the bundled scene is not found; set "
                                            "VKNERF_ASSETS to the folder of demo");
}
