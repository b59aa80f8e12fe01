/* Completes command lines from a command's table of options. The scripts of the shells
 * (completions/) call `vknerf help --complete` at every Tab, which prints candidates, or a line
 * ":files N" or ":directories N" that asks the shell to complete a file name after the first N
 * bytes of the word. */
#include "cli/options.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

void options_print_candidate(const char *word, size_t offset, const char *candidate,
                             const char *help)
{
    if (candidate[0] && strncmp(candidate, word + offset, strlen(word + offset)) == 0)
        printf("%.*s%s\t%s\n", (int)offset, word, candidate, help);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool exists(const char *folder, const char *name, const char *below, bool as_folder)
{
    struct stat found;
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s%s%s", folder, name, below);
    return length > 0 && (size_t)length < sizeof(path) && stat(path, &found) == 0 &&
           (S_ISDIR(found.st_mode) || !as_folder);
}

/* Prints an entry of `folder` that matches the end of the word, if it is a run, a checkpoint or a
 * folder. */
static void complete_entry(const char *word, size_t offset, const char *folder, const char *entry)
{
    const char *last = strrchr(word + offset, '/'), *dot = strrchr(entry, '.');
    const char *typed = last ? last + 1 : word + offset;
    char candidate[4096];
    if (strncmp(entry, typed, strlen(typed)) != 0 || (entry[0] == '.' && typed[0] != '.'))
        return;
    bool is_folder = exists(folder, entry, "", true);
    bool is_run = is_folder && (exists(folder, entry, "/checkpoint.safetensors", false) ||
                                exists(folder, entry, "/metrics.jsonl", false));
    if (!is_folder && (!dot || strcmp(dot, ".safetensors") != 0))
        return;
    snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)(typed - word - offset), word + offset,
             entry, is_folder && !is_run ? "/" : "");
    options_print_candidate(word, offset, candidate,
                            is_run      ? "run"
                            : is_folder ? "folder"
                                        : "checkpoint");
}

static void complete_runs(const char *word, size_t offset)
{
    const char *path = word + offset, *last = strrchr(path, '/');
    char folder[4096];
    if (path[0] == '~') { /* only the shell expands ~ */
        printf(":directories %zu\n", offset);
        return;
    }
    snprintf(folder, sizeof(folder), "%.*s", last ? (int)(last - path + 1) : 2, last ? path : "./");
    DIR *stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            complete_entry(word, offset, folder, entry->d_name);
    if (stream)
        closedir(stream);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void complete_names(const char *word, size_t offset, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        options_print_candidate(word, offset, names[i], "");
}

/* Completes a value by its name in --help. Returns whether the name is known. */
static bool complete_kind(const char *kind, const char *word, size_t offset)
{
    static const struct {
        const char *kind, *directive; /* NULL: runs */
    } kinds[] = {
        {"RUN", NULL},     {"CHECKPOINT", NULL},  {"DIR", "directories"}, {"SCENE", "directories"},
        {"FILE", "files"}, {"PICTURES", "files"}, {"VIDEO", "files"}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strncmp(kind, kinds[i].kind, strlen(kinds[i].kind)) != 0)
            continue;
        if (kinds[i].directive)
            printf(":%s %zu\n", kinds[i].directive, offset);
        else
            complete_runs(word, offset);
        return true;
    }
    return false;
}

/* Completes "dynamic|static:V|schedule:FILE": names, and the values after a colon. */
static void complete_alternatives(const char *value, const char *word, size_t offset)
{
    bool several = strchr(value, '|') != NULL;
    for (const char *at = value, *end; *at; at = *end ? end + 1 : end) {
        char name[128];
        end = at + strcspn(at, "|");
        snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
        char *colon = strchr(name, ':');
        size_t length = colon ? (size_t)(colon + 1 - name) : 0;
        if (several && colon && strncmp(word + offset, name, length) == 0) {
            if (complete_kind(colon + 1, word, offset + length))
                return;
        } else if (several && !isupper((unsigned char)name[0])) {
            if (colon)
                colon[1] = 0;
            options_print_candidate(word, offset, name, "");
        } else if (complete_kind(name, word, offset)) {
            return;
        }
    }
}

static void complete_assignment(const char *word, size_t offset)
{
    const char *equals = strchr(word + offset, '=');
    for (size_t i = 0; i < vkn_config_setting_count(); i++) {
        struct vkn_setting setting = {.size = sizeof(setting)};
        char key[128];
        if (vkn_config_setting(i, &setting) != VKN_OK)
            return;
        int length = snprintf(key, sizeof(key), "%s=", setting.key);
        if (!equals)
            options_print_candidate(word, offset, key, setting.help);
        else if (setting.choices && strncmp(word + offset, key, (size_t)length) == 0)
            complete_names(word, offset + (size_t)length, setting.choices);
    }
}

static void complete_value(const struct option *option, const char *word, size_t offset)
{
    const char *comma = strrchr(word + offset, ',');
    if (option->kind == OPTION_ASSIGN)
        complete_assignment(word, offset);
    else if (option->choices && option->kind == OPTION_TEXT) /* a list of names */
        complete_names(word, comma ? (size_t)(comma + 1 - word) : offset, option->choices);
    else if (option->choices)
        complete_names(word, offset, option->choices);
    else
        complete_alternatives(option->value, word, offset);
}

/* ---- command line ---------------------------------------------------------------------------- */

/* Returns the option of a word, by the name before "="; NULL: none. */
static const struct option *find_option(const struct options_command *command, const char *word)
{
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length &&
            strncmp(command->options[i].name, word, length) == 0)
            return &command->options[i];
    return NULL;
}

static void complete_options(const struct options_command *command, const char *word)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        char with_value[64], help[OPTIONS_HELP];
        options_help(option, help);
        options_print_candidate(word, 0, option->name, help);
        snprintf(with_value, sizeof(with_value), "%s=", option->name);
        if (options_value_is_optional(option))
            options_print_candidate(word, 0, with_value, help);
    }
    options_print_candidate(word, 0, "--help", "list all options");
}

/* State of the parser after all words but the last. */
struct position {
    const struct option *open; /* option whose value comes next; NULL: none */
    bool options_end;          /* after -- */
    size_t arguments;          /* number of arguments so far */
};

static struct position read_words(const struct options_command *command, size_t count, char **words)
{
    struct position at = {0};
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i];
        if (at.open) {
            at.open = NULL;
        } else if (at.options_end || word[0] != '-') {
            at.arguments++;
        } else if (strcmp(word, "--") == 0) {
            at.options_end = true;
        } else {
            const struct option *option = find_option(command, word);
            bool needs_value = option && option->value && !options_value_is_optional(option);
            at.open = needs_value && !strchr(word, '=') ? option : NULL;
        }
    }
    return at;
}

int options_complete(const struct options_command *command, size_t count, char **words)
{
    const char *word = words[count - 1];
    const struct position at = read_words(command, count - 1, words);
    bool is_option = !at.options_end && word[0] == '-';
    const struct option *assigned =
        is_option && strchr(word, '=') ? find_option(command, word) : NULL;
    bool wants_argument = command->argument && (at.arguments == 0 || command->argument_repeats);
    if (at.open)
        complete_value(at.open, word, 0);
    else if (assigned && assigned->value)
        complete_value(assigned, word, strcspn(word, "=") + 1);
    else if (wants_argument && !is_option)
        complete_alternatives(command->argument, word, 0);
    else if (!at.options_end)
        complete_options(command, word);
    return cli_finish_output();
}
