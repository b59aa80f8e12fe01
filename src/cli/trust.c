/* Decides whether GLSL from a run's checkpoint may run: by --trust, or by asking on a terminal. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Reads the user's answer. Polls before it reads, so that Ctrl-C ends the waiting. */
static bool says_yes(void)
{
    char line[16] = "";
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!cli_stop && poll(&input, 1, 200) <= 0)
        continue;
    if (cli_stop || !fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\r\n")] = 0;
    return strcmp(line, "y") == 0 || strcmp(line, "yes") == 0;
}

/* Asks whether to trust a GLSL text. Returns OPTIONS_GO_ON or an exit code; without trust the
 * library refuses the text later. */
static int ask(const char *run, const char *text, const char *sha256)
{
    char *name = vkn_shell_word(run);
    if (!name)
        return cli_status(VKN_ERROR);
    vkn_clean_line(name);
    fprintf(stderr,
            "%s holds a program: its field, %zu bytes of GLSL, SHA-256\n%s\n"
            "vknerf info %s --field prints it. Run it? [y/N] ",
            name, strlen(text), sha256, name);
    free(name);
    fflush(stderr);
    vkn_status status = says_yes() ? vkn_field_trust(sha256) : VKN_OK;
    return cli_stop ? VKN_INTERRUPTED : status == VKN_OK ? OPTIONS_GO_ON : cli_status(status);
}

/* Trusts the GLSL with the hash `given`; "": trusts only `text`, and prints its hash. */
static int trust(const char *given, const char *run, const char *text, const char *sha256)
{
    vkn_status status = vkn_field_trust(given[0] ? given : sha256);
    if (status != VKN_OK)
        return cli_fail(status, "--trust: %s", vkn_last_error());
    char line[1024];
    snprintf(line, sizeof line, "%s: runs its field, %zu bytes of GLSL, SHA-256 %s", run,
             strlen(text), sha256);
    vkn_clean_line(line);
    if (!given[0])
        fprintf(stderr, "%s\n", line);
    return OPTIONS_GO_ON;
}

int cli_trust(const char *given, const char *run)
{
    char *text = NULL, sha256[65] = "";
    int code = OPTIONS_GO_ON;
    /* A later call reports a run that cannot be read. */
    bool read = vkn_run_field(run, &text, sha256) == VKN_OK && text;
    bool asks = read && !vkn_field_is_trusted(sha256);
    if (given && asks)
        code = trust(given, run, text, sha256);
    else if (given && given[0] && vkn_field_trust(given) != VKN_OK)
        code = cli_fail(VKN_BAD_INPUT, "--trust: %s", vkn_last_error());
    else if (asks && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        code = ask(run, text, sha256);
    free(text);
    return code;
}
