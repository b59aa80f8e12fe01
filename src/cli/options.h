/* Describes commands and options as tables, which options_parse, --help, the man page and
 * completion read. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vknerf/config.h>

/* How the value of an option is parsed, and the type of its target. */
enum option_kind {
    OPTION_FLAG,        /* bool */
    OPTION_TEXT,        /* const char * */
    OPTION_MAYBE_TEXT,  /* as TEXT, the value is optional: "" without it */
    OPTION_COUNT,       /* uint32_t, at least 1; 20k is 20000 */
    OPTION_MAYBE_COUNT, /* as COUNT, the value is optional: UINT32_MAX without it */
    OPTION_MEBIBYTES,   /* uint32_t, at least 1: "512", "512M" or "4G" */
    OPTION_CHOICE,      /* unsigned (an enum): index into `choices` */
    OPTION_MODE,        /* as CHOICE, the value is optional: 1 without it */
    OPTION_SETTING,     /* struct options_settings: --steps 5 becomes {"--steps", key, "5"} */
    OPTION_LOSS_SCALE,  /* as SETTING, for --loss-scale dynamic|static:V|schedule:FILE */
    OPTION_LR_SCHEDULE, /* as SETTING, for --lr-schedule KIND[:VALUE] */
    OPTION_ASSIGN,      /* as SETTING, for --set key=value */
    OPTION_PORT,        /* struct options_port: 0 to 65535 */
    OPTION_VIEW,        /* as PORT, the value is optional */
};

/* Value of an option with a port. */
struct options_port {
    bool given, has_number; /* the option was given; it has a number */
    uint32_t number;
};

/* An option. */
struct option {
    const char *name;  /* "--steps" */
    const char *value; /* name of the value in --help, which decides its completion; NULL: no value
                        */
    const char *help;  /* NULL: help and default of the setting `key` */
    enum option_kind kind;
    void *target;    /* points to a value of the kind's type */
    const char *key; /* setting that the option sets: to true if the option has no value */
    /* Names of values, ending with NULL; an empty name cannot be chosen. For TEXT: words of a
     * comma-separated list, used for completion only. */
    const char *const *choices;
};

/* Begins the initialiser of an option; `type` is the kind without OPTION_. */
#define OPTION(option, word, type, where, text)                               \
    .name = (option), .value = (word), .help = (text), .kind = OPTION_##type, \
    .target = (void *)(where)

/* Settings that options have collected, in the order of the command line. */
struct options_setting {
    const char *source, *key, *value; /* arguments of vkn_config_set */
};
struct options_settings {
    struct options_setting *items; /* capacity: two per argument */
    size_t count;
    char *text; /* memory for keys of --set */
};

/* Allocates memory for the settings of `argc` arguments; false if memory runs out. */
bool options_settings_begin(struct options_settings *settings, int argc);
/* Frees the settings. */
void options_settings_end(struct options_settings *settings);
/* Applies the settings to a configuration. Returns the status of vkn_config_set. */
vkn_status options_settings_apply(const struct options_settings *settings, vkn_config *config);

/* A command: its texts, options and argument. */
struct options_command {
    const char *name;    /* "train" */
    const char *usage;   /* "train SCENE [OPTION ...]" */
    const char *summary; /* paragraphs of --help */
    const struct option *options;
    size_t option_count;
    const char *argument; /* name of the positional argument; NULL: none */
    bool argument_required;
    bool argument_repeats;
    char *(*more_help)(void); /* text after the options, which the caller frees; NULL: none */
};

#define OPTIONS_GO_ON (-1) /* continue; else an exit code */

#define OPTIONS_HELP 256 /* bytes of an option's help */
/* Writes the help of an option. */
void options_help(const struct option *option, char text[OPTIONS_HELP]);
/* Returns whether the value is optional: it must follow "=" then. */
bool options_value_is_optional(const struct option *option);

/* First arguments with which main.c runs a command to print its part of the man page or
 * completions: every command calls options_parse before it does anything else. */
#define OPTIONS_MAN      "--help=man"
#define OPTIONS_COMPLETE "--help=complete"
/* Prints the command's part of the man page, in man(7). Returns an exit code. */
int options_print_man(const struct options_command *command);
/* Prints a text with roff's special characters escaped; hyphens become minus signs, for copying. */
void options_print_roff(const char *text);
/* Prints completions of the last of the words after the command's name. Returns an exit code. */
int options_complete(const struct options_command *command, size_t count, char **words);
/* Prints a completion if `candidate` begins with the word from byte `offset` on: the first `offset`
 * bytes of the word, the candidate, a tab, its help. */
void options_print_candidate(const char *word, size_t offset, const char *candidate,
                             const char *help);

/* Parses argv[1...]; argv[0] is the command's name. *argument becomes the positional argument or
 * NULL; if the argument repeats, argument[argc] receives all of them, followed by NULL. Returns
 * OPTIONS_GO_ON or an exit code: 0 after --help, 2 after an error, which has been printed. */
int options_parse(const struct options_command *command, int argc, char **argv,
                  const char **argument);

#endif
