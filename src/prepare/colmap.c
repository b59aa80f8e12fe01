/* Runs COLMAP commands. Option names differ between versions of COLMAP, so the help text of each
 * command is searched for them. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define MOST_COUNTED 1000000u /* larger numbers are no progress counts */

static void keep_line(void *context, const char *line)
{
    base_text_add(context, "%s\n", line);
}

vkn_status colmap_begin(struct attempt *attempt, const char *command, const char *what,
                        struct colmap *colmap)
{
    *colmap = (struct colmap){.attempt = attempt,
                              .program.name = "colmap",
                              .what = what,
                              .total = attempt->preparation->count};
    struct program help = {.name = "colmap", .line = keep_line, .context = &colmap->help};
    arguments_add(&help.arguments, "colmap");
    arguments_add(&help.arguments, "%s", command);
    arguments_add(&help.arguments, "-h");
    vkn_status status = program_run(attempt->preparation, &help);
    if (status == VKN_OK && colmap->help.data == NULL)
        base_text_add(&colmap->help, " ");
    if (status == VKN_OK && colmap->help.failed)
        status = base_fail(VKN_ERROR, "colmap: out of memory");
    if (status != VKN_OK) {
        free(colmap->help.data);
        colmap->help = (struct base_text){0};
        return status;
    }
    arguments_add(&colmap->program.arguments, "colmap");
    arguments_add(&colmap->program.arguments, "%s", command);
    arguments_add(&colmap->program.arguments, "--database_path");
    arguments_add(&colmap->program.arguments, "%s", attempt->database);
    return VKN_OK;
}

/* Returns whether the help text has "--NAME" as a whole word. */
static bool has_option(const struct colmap *colmap, const char *name, size_t length)
{
    for (const char *at = colmap->help.data; (at = strstr(at, "--")) != NULL; at += 2)
        if (strncmp(at + 2, name, length) == 0 &&
            (at[2 + length] == '\0' || isspace((unsigned char)at[2 + length])))
            return true;
    return false;
}

void colmap_option(struct colmap *colmap, const char *names, const char *format, ...)
{
    va_list values;
    char *value = NULL;
    va_start(values, format);
    if (vasprintf(&value, format, values) < 0)
        value = NULL;
    va_end(values);
    colmap->program.arguments.failed |= value == NULL;
    for (const char *at = names; value != NULL && *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (has_option(colmap, at, length)) {
            arguments_add(&colmap->program.arguments, "--%.*s", (int)length, at);
            arguments_add(&colmap->program.arguments, "%s", value);
            break;
        }
        at += length + (at[length] == ' ' ? 1 : 0);
    }
    free(value);
}

/* Forwards COLMAP's lines to a callback and keeps its first database error. */
struct database_watch {
    void (*line)(void *context, const char *line);
    void *context;
    char database_error[ERROR_SIZE];
};

static void watch_line(void *context, const char *line)
{
    struct database_watch *database_watch = context;
    if (database_watch->database_error[0] == '\0' && strcasestr(line, "sqlite error") != NULL)
        snprintf(database_watch->database_error, sizeof(database_watch->database_error), "%.*s",
                 ERROR_SIZE - 1, line);
    database_watch->line(database_watch->context, line);
}

/* Runs COLMAP and fails after a database error: COLMAP continues and exits with success when its
 * database cannot be written, as on a full disk. */
static vkn_status run_watched(struct colmap *colmap, struct database_watch *database_watch)
{
    colmap->program.line = watch_line;
    colmap->program.context = database_watch;
    BASE_TRY(program_run(colmap->attempt->preparation, &colmap->program));
    if (database_watch->database_error[0] == '\0')
        return VKN_OK;
    return base_fail(VKN_ERROR,
                     "%s: COLMAP cannot write to it: %s; run the same command again to continue",
                     colmap->attempt->database, database_watch->database_error);
}

vkn_status colmap_run(struct colmap *colmap, void (*line)(void *context, const char *line),
                      void *context)
{
    struct database_watch database_watch = {.line = line, .context = context};
    /* Starts the clock of the displayed rate. */
    report_progress_count(colmap->attempt->preparation->progress, colmap->what, 0, colmap->total);
    free(colmap->help.data);
    colmap->help = (struct base_text){0};
    return run_watched(colmap, &database_watch);
}

/* Reads "3/50", a fraction of at most 1. Returns its end; NULL: none. */
static const char *read_fraction(const char *text, size_t *numerator, size_t *denominator)
{
    char *slash = NULL, *end = NULL;
    *numerator = (size_t)strtoul(text, &slash, 10);
    if (!isdigit((unsigned char)text[0]) || *slash != '/' || !isdigit((unsigned char)slash[1]))
        return NULL;
    *denominator = (size_t)strtoul(slash + 1, &end, 10);
    return *numerator > 0 && *numerator <= *denominator && *denominator <= MOST_COUNTED ? end
                                                                                        : NULL;
}

bool colmap_read_count(const char *line, size_t *done, size_t *total)
{
    for (const char *at = line; (at = strchr(at, '[')) != NULL; at++) {
        size_t inner, inner_total;
        const char *end = read_fraction(at + 1, done, total);
        if (end == NULL)
            continue;
        if (strncmp(end, ", ", 2) == 0 && read_fraction(end + 2, &inner, &inner_total) != NULL) {
            *done = (*done - 1) * inner_total + inner;
            *total *= inner_total;
        }
        return true;
    }
    return false;
}

enum vkn_camera_model colmap_camera_model(const struct preparation *preparation)
{
    enum vkn_camera_model model = preparation->params->camera_model;
    if (model != VKN_CAMERA_MODEL_AUTO)
        return model;
    /* The images of one camera determine its lens; a single image determines only a simple lens. */
    return preparation->one_camera ? VKN_CAMERA_MODEL_OPENCV : VKN_CAMERA_MODEL_SIMPLE_RADIAL;
}
