/* Parses command lines (--name value, --name=value, flags, arguments) and prints --help. */
#include "cli/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* ---- values -------------------------------------------------------------------------------- */

static int parse_count(const struct option *option, const char *value)
{
    uint64_t number = 0;
    if (!vkn_parse_count(value, &number) || number == 0 || number > UINT32_MAX)
        return cli_fail(VKN_BAD_INPUT, "%s: %s is not a whole number from 1 to %u", option->name,
                        value, UINT32_MAX);
    *(uint32_t *)option->target = (uint32_t)number;
    return OPTIONS_GO_ON;
}

/* Parses MiB: "512", "512M" and "0.5G" are equal. */
static int parse_mebibytes(const struct option *option, const char *value)
{
    char *end = NULL;
    double number = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : 0.0;
    bool giga = end && (*end == 'G' || *end == 'g'), mega = end && (*end == 'M' || *end == 'm');
    number = floor(giga ? 1024.0 * number : number);
    if (!end || end[giga || mega] != 0 || !(number >= 1.0 && number <= UINT32_MAX))
        return cli_fail(VKN_BAD_INPUT, "%s: %s is not a size such as 512M or 4G", option->name,
                        value);
    *(uint32_t *)option->target = (uint32_t)number;
    return OPTIONS_GO_ON;
}

/* Lists the choices: "white, black". */
static void list_choices(const char *const *choices, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0, used = 0; choices[i] && used < size; i++)
        if (choices[i][0])
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", choices[i]);
}

static int parse_choice(const struct option *option, const char *value, unsigned *choice)
{
    char list[128];
    for (unsigned i = 0; option->choices[i]; i++) {
        if (value[0] && strcmp(option->choices[i], value) == 0) {
            *choice = i;
            return OPTIONS_GO_ON;
        }
    }
    list_choices(option->choices, list, sizeof(list));
    return cli_fail(VKN_BAD_INPUT, "%s: %s is none of its values: %s", option->name, value, list);
}

/* ---- settings ------------------------------------------------------------------------------ */

static void add_setting(const struct option *option, const char *key, const char *value)
{
    struct options_settings *settings = option->target;
    settings->items[settings->count++] = (struct options_setting){option->name, key, value};
}

static int parse_setting(const struct option *option, const char *value)
{
    unsigned choice;
    int code = option->choices ? parse_choice(option, value, &choice) : OPTIONS_GO_ON;
    if (code == OPTIONS_GO_ON)
        add_setting(option, option->key, value);
    return code;
}

static int parse_loss_scale(const struct option *option, const char *value)
{
    static const char fixed[] = "static:", schedule[] = "schedule:";
    if (strcmp(value, "dynamic") == 0) {
        add_setting(option, "loss_scale.kind", "dynamic");
        return OPTIONS_GO_ON;
    }
    if (strncmp(value, fixed, sizeof(fixed) - 1) == 0 && value[sizeof(fixed) - 1]) {
        add_setting(option, "loss_scale.kind", "static");
        add_setting(option, "loss_scale.initial", value + sizeof(fixed) - 1);
        return OPTIONS_GO_ON;
    }
    if (strncmp(value, schedule, sizeof(schedule) - 1) == 0 && value[sizeof(schedule) - 1]) {
        add_setting(option, "loss_scale.kind", "schedule");
        add_setting(option, "loss_scale.schedule", value + sizeof(schedule) - 1);
        return OPTIONS_GO_ON;
    }
    return cli_fail(VKN_BAD_INPUT,
                    "%s: %s is none of its values: dynamic, static:VALUE, schedule:FILE",
                    option->name, value);
}

static int parse_rate_schedule(const struct option *option, const char *value)
{
    static const struct {
        const char *name, *key; /* key: setting of the value after a colon; NULL: no value */
        bool needs_value;
    } kinds[] = {{"step", NULL, false},
                 {"exponential", "optimizer.final_rate", false},
                 {"cosine", "optimizer.final_rate", false},
                 {"file", "optimizer.rates", true}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t size = strlen(kinds[i].name);
        if (strncmp(value, kinds[i].name, size) != 0)
            continue;
        bool has_value = value[size] == ':' && kinds[i].key;
        if ((!has_value && value[size]) || (!has_value && kinds[i].needs_value))
            continue;
        add_setting(option, "optimizer.schedule", kinds[i].name);
        if (has_value)
            add_setting(option, kinds[i].key, value + size + 1);
        return OPTIONS_GO_ON;
    }
    return cli_fail(VKN_BAD_INPUT,
                    "%s: %s is none of its values: step, exponential[:RATE], cosine[:RATE], "
                    "file:FILE",
                    option->name, value);
}

static int parse_assignment(const struct option *option, const char *value)
{
    struct options_settings *settings = option->target;
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return cli_fail(VKN_BAD_INPUT, "%s: %s is not key=value", option->name, value);
    char *key = settings->text;
    memcpy(key, value, (size_t)(equals - value));
    key[equals - value] = 0;
    settings->text += equals - value + 1;
    add_setting(option, key, equals + 1);
    return OPTIONS_GO_ON;
}

static int parse_port(const struct option *option, const char *value)
{
    struct options_port *port = option->target;
    size_t digits = strspn(value, "0123456789");
    unsigned long number =
        digits > 0 && digits < 6 && value[digits] == 0 ? strtoul(value, NULL, 10) : 65536;
    if (number > 65535)
        return cli_fail(VKN_BAD_INPUT, "%s: %s is not a port from 0 to 65535", option->name, value);
    *port = (struct options_port){true, true, (uint32_t)number};
    return OPTIONS_GO_ON;
}

bool options_value_is_optional(const struct option *option)
{
    return option->kind == OPTION_MODE || option->kind == OPTION_VIEW ||
           option->kind == OPTION_MAYBE_COUNT || option->kind == OPTION_MAYBE_TEXT;
}

/* Stores an option without a value. */
static int store_flag(const struct option *option)
{
    if (option->kind == OPTION_VIEW)
        *(struct options_port *)option->target = (struct options_port){.given = true};
    else if (option->kind == OPTION_SETTING)
        add_setting(option, option->key, "true");
    else if (option->kind == OPTION_MODE)
        *(unsigned *)option->target = 1;
    else if (option->kind == OPTION_MAYBE_COUNT)
        *(uint32_t *)option->target = UINT32_MAX;
    else if (option->kind == OPTION_MAYBE_TEXT)
        *(const char **)option->target = "";
    else
        *(bool *)option->target = true;
    return OPTIONS_GO_ON;
}

static int store_value(const struct option *option, const char *value)
{
    switch (option->kind) {
    case OPTION_FLAG:
        break;
    case OPTION_TEXT:
    case OPTION_MAYBE_TEXT:
        *(const char **)option->target = value;
        return OPTIONS_GO_ON;
    case OPTION_COUNT:
    case OPTION_MAYBE_COUNT:
        return parse_count(option, value);
    case OPTION_MEBIBYTES:
        return parse_mebibytes(option, value);
    case OPTION_CHOICE:
    case OPTION_MODE:
        return parse_choice(option, value, option->target);
    case OPTION_SETTING:
        return parse_setting(option, value);
    case OPTION_LOSS_SCALE:
        return parse_loss_scale(option, value);
    case OPTION_LR_SCHEDULE:
        return parse_rate_schedule(option, value);
    case OPTION_ASSIGN:
        return parse_assignment(option, value);
    case OPTION_PORT:
    case OPTION_VIEW:
        return parse_port(option, value);
    }
    return OPTIONS_GO_ON;
}

/* ---- help ---------------------------------------------------------------------------------- */

#define HELP_COLUMN 34 /* width of the names and values */
#define HELP_WIDTH  100

void options_help(const struct option *option, char text[OPTIONS_HELP])
{
    vkn_setting setting = {.size = sizeof setting};
    snprintf(text, OPTIONS_HELP, "%s", option->help ? option->help : "");
    for (size_t i = 0; !option->help && i < vkn_config_setting_count(); i++)
        if (vkn_config_setting(i, &setting) == VKN_OK && strcmp(setting.key, option->key) == 0)
            snprintf(text, OPTIONS_HELP, "%s%s%s", setting.help, option->value ? "; default " : "",
                     option->value ? setting.default_text : "");
}

/* Prints the help of an option after its name and value, with line breaks. */
static void print_wrapped(const char *text)
{
    size_t at = HELP_COLUMN + 2;
    for (size_t length; *text; text += length + strspn(text + length, " ")) {
        length = strcspn(text, " ");
        if (at + 1 + length > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN + 2, "");
            at = HELP_COLUMN + 2;
        }
        printf(" %.*s", (int)length, text);
        at += 1 + length;
    }
    putchar('\n');
}

static int print_help(const struct options_command *command)
{
    printf("usage: vknerf %s\n\n%s\n", command->usage, command->summary);
    if (command->option_count > 0)
        printf("\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        char left[96], help[OPTIONS_HELP];
        options_help(option, help);
        bool is_optional = options_value_is_optional(option);
        snprintf(left, sizeof(left), "%s%s%s%s", option->name,
                 is_optional     ? "[="
                 : option->value ? " "
                                 : "",
                 option->value ? option->value : "", is_optional ? "]" : "");
        if (strlen(left) <= HELP_COLUMN)
            printf("  %-*s", HELP_COLUMN, left);
        else
            printf("  %s\n  %*s", left, HELP_COLUMN, "");
        print_wrapped(help);
    }
    char *more = command->more_help ? command->more_help() : NULL;
    if (more)
        printf("\n%s", more);
    free(more);
    return cli_finish_output();
}

/* ---- command line ---------------------------------------------------------------------------- */

#define MOST_NAMES 512

/* Lists options, the argument, and all keys if the command has --set. */
static size_t list_names(const struct options_command *command, const char *names[MOST_NAMES])
{
    size_t count = 0;
    bool has_set = false;
    for (size_t i = 0; i < command->option_count && count < MOST_NAMES - 2; i++) {
        names[count++] = command->options[i].name;
        has_set |= command->options[i].kind == OPTION_ASSIGN;
    }
    names[count++] = "--help";
    if (command->argument)
        names[count++] = command->argument;
    for (size_t i = 0; has_set && i < vkn_config_setting_count() && count < MOST_NAMES; i++) {
        vkn_setting setting = {.size = sizeof setting};
        if (vkn_config_setting(i, &setting) == VKN_OK)
            names[count++] = setting.key;
    }
    return count;
}

static int unknown_option(const struct options_command *command, const char *name, size_t length)
{
    char word[64];
    const char *names[MOST_NAMES];
    snprintf(word, sizeof(word), "%.*s", (int)length, name);
    const char *nearest = vkn_nearest_name(word, names, list_names(command, names));
    if (!nearest)
        return cli_fail(VKN_BAD_INPUT, "%s: unknown option; see vknerf %s --help", word,
                        command->name);
    if (command->argument && strcmp(nearest, command->argument) == 0)
        return cli_fail(VKN_BAD_INPUT, "%s: unknown option; %s is given by itself: vknerf %s %s",
                        word, nearest, command->name, nearest);
    if (strncmp(nearest, "--", 2) != 0)
        return cli_fail(VKN_BAD_INPUT, "%s: unknown option; did you mean --set %s=VALUE?", word,
                        nearest);
    return cli_fail(VKN_BAD_INPUT, "%s: unknown option; did you mean %s?", word, nearest);
}

/* Returns whether the word is an option, and so not the value of the option before it. */
static bool is_option(const struct options_command *command, const char *word)
{
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length &&
            strncmp(command->options[i].name, word, length) == 0)
            return true;
    return false;
}

/* Parses the option argv[*at], and its value, which may be the next argument. */
static int parse_option(const struct options_command *command, int argc, char **argv, int *at)
{
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        if (strlen(option->name) != length || strncmp(option->name, text, length) != 0)
            continue;
        if (!option->value)
            return equals ? cli_fail(VKN_BAD_INPUT, "%s: takes no value", option->name)
                          : store_flag(option);
        if (!equals && options_value_is_optional(option))
            return store_flag(option);
        const char *value = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : "";
        if (!equals && is_option(command, value))
            value = "";
        if (!value[0])
            return cli_fail(VKN_BAD_INPUT, "%s: its value is missing (%s)", option->name,
                            option->value);
        return store_value(option, value);
    }
    return unknown_option(command, text, length);
}

/* Returns the option whose optional value, which must follow "=", can be `value`; NULL: none. */
static const struct option *mode_of(const struct options_command *command, const char *value)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        for (size_t n = 0; option->kind == OPTION_MODE && option->choices[n]; n++)
            if (value[0] && strcmp(option->choices[n], value) == 0)
                return option;
    }
    return NULL;
}

static int refuse_argument(const struct options_command *command, const char *text)
{
    const struct option *mode = mode_of(command, text);
    if (mode)
        return cli_fail(VKN_BAD_INPUT, "%s: one argument too many; did you mean %s=%s?", text,
                        mode->name, text);
    return cli_fail(VKN_BAD_INPUT, "%s: one argument too many; see vknerf %s --help", text,
                    command->name);
}

int options_parse(const struct options_command *command, int argc, char **argv,
                  const char **argument)
{
    bool options_end = false;
    size_t count = 0, most = !command->argument ? 0 : command->argument_repeats ? SIZE_MAX : 1;
    *argument = NULL;
    if (argc > 1 && strcmp(argv[1], OPTIONS_MAN) == 0)
        return options_print_man(command);
    if (argc > 2 && strcmp(argv[1], OPTIONS_COMPLETE) == 0)
        return options_complete(command, (size_t)argc - 2, argv + 2);
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        int code = OPTIONS_GO_ON;
        if (!options_end && (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0))
            return print_help(command);
        if (!options_end && strcmp(text, "--") == 0)
            options_end = true;
        else if (!options_end && text[0] == '-' && text[1] != 0)
            code = parse_option(command, argc, argv, &i);
        else if (count == most)
            code = refuse_argument(command, text);
        else if (!text[0])
            code = cli_fail(VKN_BAD_INPUT, "%s: %s is empty; see vknerf %s --help", command->name,
                            command->argument, command->name);
        else
            argument[count++] = text;
        if (code != OPTIONS_GO_ON)
            return code;
    }
    if (command->argument_required && !*argument)
        return cli_fail(VKN_BAD_INPUT, "%s: %s is missing; see vknerf %s --help", command->name,
                        command->argument, command->name);
    return OPTIONS_GO_ON;
}
