/* Makes the command line of a task from a page's request. Values are checked here, so that a page
 * can choose only what the command is meant to be used for; no shell reads the line. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

/* Appends an argument, in fresh memory. */
__attribute__((format(printf, 2, 3))) static bool add(struct task *task, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0 || task->argument_count + 1 >= TASK_ARGUMENTS)
        return false;
    task->arguments[task->argument_count++] = text;
    return true;
}

static bool fail(char problem[VIEWER_MESSAGE], const char *name, const char *wanted)
{
    snprintf(problem, VIEWER_MESSAGE, "%s: %s", name, wanted);
    return false;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Appends `option` with a number of the request within limits; nothing if the request lacks it. */
static bool add_number(struct task *task, const cJSON *json, const char *name, const char *option,
                       double low, double high, char problem[VIEWER_MESSAGE])
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, name);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "is not a number from %g to %g", low, high);
    if (!value)
        return true;
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= low && value->valuedouble <= high))
        return fail(problem, name, wanted);
    return add(task, "%s=%.9g", option, value->valuedouble);
}

/* Finds a text of the request in a list that ends with NULL; the first one if the request lacks it.
 * NULL: it is none of them. */
static const char *find_choice(const cJSON *json, const char *name, const char *const *words,
                               char problem[VIEWER_MESSAGE])
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!value)
        return words[0];
    for (size_t i = 0; cJSON_IsString(value) && words[i]; i++)
        if (strcmp(words[i], value->valuestring) == 0)
            return words[i];
    fail(problem, name, "is not one of its values");
    return NULL;
}

/* Appends the crop box, 6 or 9 numbers. */
static bool add_crop(struct task *task, const cJSON *json, char problem[VIEWER_MESSAGE])
{
    const cJSON *crop = cJSON_GetObjectItemCaseSensitive(json, "crop"), *number;
    char text[512] = "--crop=";
    size_t at = strlen(text);
    int count = cJSON_GetArraySize(crop);
    const char *comma = "";
    if (!crop)
        return true;
    if (!cJSON_IsArray(crop) || (count != 6 && count != 9))
        return fail(problem, "crop", "is not 6 or 9 numbers");
    cJSON_ArrayForEach (number, crop) {
        if (!cJSON_IsNumber(number) || !(fabs(number->valuedouble) <= 1e12))
            return fail(problem, "crop", "is not 6 or 9 numbers");
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.9g", comma, number->valuedouble);
        comma = ",";
    }
    return add(task, "%s", text);
}

/* ---- the kinds ------------------------------------------------------------------------------- */

/* Sets the name of the result, and its folder. */
static bool set_result(const struct viewer *viewer, struct task *task, const char *folder,
                       const char *name, const char *suffix, const char *format,
                       char problem[VIEWER_MESSAGE])
{
    char ending[32];
    snprintf(ending, sizeof ending, "%s.%s", suffix, format);
    task->file = name_path(viewer, folder, name, ending);
    snprintf(task->name, sizeof task->name, "%s/%s%s", folder, name, ending);
    char *made = name_path(viewer, folder, "", "");
    bool fits = made && strlen(made) < sizeof task->folder;
    if (fits)
        strcpy(task->folder, made);
    free(made);
    return (task->file && fits) || fail(problem, "name", "the path is too long");
}

static bool make_video(const struct viewer *viewer, const cJSON *json, const char *name,
                       struct task *task, char problem[VIEWER_MESSAGE])
{
    static const char *const formats[] = {"mp4", "gif", NULL};
    static const char *const maps[] = {"rgb", "depth", "opacity", "normal", NULL};
    static const char *const backgrounds[] = {"default", "white", "black", NULL};
    const char *format = find_choice(json, "format", formats, problem);
    const char *map = format ? find_choice(json, "map", maps, problem) : NULL;
    const char *background = map ? find_choice(json, "background", backgrounds, problem) : NULL;
    char suffix[16] = "";
    if (!background)
        return false;
    if (strcmp(map, "rgb") != 0)
        snprintf(suffix, sizeof suffix, "_%s", map);
    return set_result(viewer, task, "videos", name, suffix, format, problem) &&
           add(task, "--path=%s/paths/%s.json", viewer->folder, name) &&
           add(task, "--out=%s/videos/%s", viewer->folder, name) &&
           add(task, "--video=%s/videos/%s.%s", viewer->folder, name, format) &&
           add(task, "--maps=%s", map) &&
           (strcmp(background, "default") == 0 || add(task, "--background=%s", background)) &&
           add_number(task, json, "supersample", "--supersample", 1, 4, problem) &&
           add_number(task, json, "exposure", "--exposure", -16, 16, problem) &&
           add_crop(task, json, problem);
}

static bool make_export(const struct viewer *viewer, const cJSON *json, const char *name,
                        struct task *task, char problem[VIEWER_MESSAGE])
{
    static const char *const meshes[] = {"glb", "ply", "obj", NULL};
    static const char *const points[] = {"ply", NULL};
    bool is_mesh = strcmp(task->kind, "mesh") == 0;
    const char *format = find_choice(json, "format", is_mesh ? meshes : points, problem);
    bool all = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "all")),
         has_crop = cJSON_HasObjectItem(json, "crop");
    if (!format || !set_result(viewer, task, "exports", name, "", format, problem) ||
        !add(task, "--%s=%s", task->kind, task->file) ||
        !add_number(task, json, "time", "--time", 0, 1, problem) ||
        (all && !has_crop && !add(task, "--all")) || !add_crop(task, json, problem))
        return false;
    if (!is_mesh)
        return add_number(task, json, "count", "--count", 1, 1e8, problem);
    bool textured = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "texture"));
    if (textured && strcmp(format, "glb") != 0)
        return fail(problem, "texture", "only a .glb has one");
    return add_number(task, json, "resolution", "--resolution", 8, 2048, problem) &&
           (!textured || add(task, "--texture"));
}

/* Joins the command for users to copy: the program's name instead of its path, and without the
 * option that prints progress for this viewer. */
static char *join_words(const struct task *task, size_t words)
{
    char *text = strdup("vknerf");
    for (size_t i = words; i < task->argument_count && text; i++) {
        char *word = vkn_shell_word(task->arguments[i]), *longer = NULL;
        if (!word || asprintf(&longer, "%s %s", text, word) < 0)
            longer = NULL;
        free(text);
        vkn_free(word);
        text = longer;
    }
    return text;
}

bool task_command(const struct viewer *viewer, const cJSON *json, struct task *task,
                  char problem[VIEWER_MESSAGE])
{
    static const char *const kinds[] = {"video", "mesh", "points", "splats", NULL};
    const cJSON *start = cJSON_GetObjectItemCaseSensitive(json, "start"),
                *name = cJSON_GetObjectItemCaseSensitive(json, "name");
    const char *kind = cJSON_IsString(start) ? find_choice(json, "start", kinds, problem) : NULL;
    const char *wrong = cJSON_IsString(name) ? name_problem(name->valuestring) : "name: is missing";
    if (!kind)
        return fail(problem, "start", "is not one of video, mesh, points, splats");
    if (wrong) {
        snprintf(problem, VIEWER_MESSAGE, "%s", wrong);
        return false;
    }
    snprintf(task->kind, sizeof task->kind, "%s", kind);
    bool is_video = strcmp(kind, "video") == 0;
    bool added = true;
    size_t words = 0;
    for (; viewer->program[words] && added; words++)
        added = add(task, "%s", viewer->program[words]);
    added =
        added && add(task, "%s", is_video ? "render" : "export") && add(task, "%s", viewer->folder);
    for (size_t i = 0; viewer->options[i] && added; i++)
        added = add(task, "%s", viewer->options[i]);
    added = added &&
            (is_video ? make_video : make_export)(viewer, json, name->valuestring, task, problem);
    task->command = added ? join_words(task, words) : NULL;
    added = task->command && add(task, "--progress") && add(task, "--quiet");
    if (!added && !problem[0])
        snprintf(problem, VIEWER_MESSAGE, "out of memory");
    return added;
}
