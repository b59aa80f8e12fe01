/* Finds the words that start this program, for commands that run other commands of it, and prints
 * progress for the program that runs a command. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define MOST_WORDS       64
#define PROGRESS_SECONDS 0.1 /* between lines of the same work */

int cli_find_program(const char *const **list, size_t *count)
{
    static char text[1 << 16], path[4096];
    static const char *words[MOST_WORDS + 1];
    size_t size = cli_read_command_line(text, sizeof text - 1), found = 0;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    for (size_t at = 0; at < size && found < MOST_WORDS; at += strlen(text + at) + 1)
        words[found++] = text + at;
    if (length <= 0 || found < cli_argument_count)
        return cli_fail(VKN_ERROR, "%s: /proc/self cannot be read", cli_arguments[1]);
    *count = found - (cli_argument_count - 1);
    words[0] = path;
    words[*count] = NULL;
    *list = words;
    return OPTIONS_GO_ON;
}

void cli_print_progress(void *context, const char *what, size_t done, size_t total)
{
    static double shown_at;
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (seconds - shown_at < PROGRESS_SECONDS && done != total && done > 0)
        return;
    shown_at = seconds;
    fprintf(stderr, "progress %zu %zu %s\n", done, total, what);
    fflush(stderr);
}
