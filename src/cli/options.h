/* Command-line options as a table: parsing and --help. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vknerf/config.h>

enum option_kind {
    OPTION_FLAG,        /* bool */
    OPTION_TEXT,        /* const char * */
    OPTION_MAYBE_TEXT,  /* the same with an optional value: "" for --name alone */
    OPTION_COUNT,       /* uint32_t, at least 1; 20k is 20000 */
    OPTION_MAYBE_COUNT, /* the same with an optional value: UINT32_MAX for --name alone */
    OPTION_MEBIBYTES,   /* uint32_t, at least 1; with M or without, or with G */
    OPTION_CHOICE,      /* unsigned (an enum): index into `choices` */
    OPTION_MODE,    /* the same with an optional value: 1 for --name, else that of --name=VALUE */
    OPTION_SETTING, /* struct options_settings: --steps 5 becomes {"--steps", key, "5"} */
    OPTION_LOSS_SCALE,  /* the same for --loss-scale dynamic|static:V|schedule:FILE */
    OPTION_LR_SCHEDULE, /* the same for --lr-schedule step|exponential[:R]|cosine[:R]|file:FILE */
    OPTION_ASSIGN,      /* the same for --set key=value */
    OPTION_PORT,        /* struct options_port: 0 to 65535 */
    OPTION_VIEW,        /* the same with an optional value */
};

struct options_port {
    bool given, numbered; /* the option; a number with it */
    uint32_t number;
};

struct option {
    const char *name;  /* "--steps" */
    const char *value; /* what --help calls the value; NULL: there is none */
    const char *help;
    enum option_kind kind;
    void *target;    /* of the kind's type */
    const char *key; /* of a setting; a setting without a value is set to true */
    /* Names from 0, ending with NULL. An empty one cannot be chosen. Of a text: the words of a list
     * with commas, for who completes it. */
    const char *const *choices;
};

/* The begin of a row of options: `kind` is what follows OPTION_, `target` a pointer. */
#define OPTION(option, word, type, where, text)                               \
    .name = (option), .value = (word), .help = (text), .kind = OPTION_##type, \
    .target = (void *)(where)

struct options_setting {
    const char *source, *key, *value; /* arguments of vkn_config_set */
};
struct options_settings {
    struct options_setting *items; /* room for as many as there are arguments */
    size_t count;
    char *text; /* room for the keys of --set */
};

/* Makes the room for the settings of `argc` arguments; false on no memory. */
bool options_settings_begin(struct options_settings *settings, int argc);
void options_settings_end(struct options_settings *settings);
/* The status of vkn_config_set. */
vkn_status options_settings_apply(const struct options_settings *settings, vkn_config *config);

struct options_command {
    const char *name;    /* "train" */
    const char *usage;   /* "train SCENE [OPTION ...]" */
    const char *summary; /* paragraphs of --help */
    const struct option *options;
    size_t option_count;
    const char *argument; /* name of the one positional argument; NULL: takes none */
    bool argument_required;
    bool argument_repeats;
    char *(*more_help)(void); /* fresh memory; NULL: no more */
};

#define OPTIONS_GO_ON (-1)

/* Its value comes behind "=" or not at all. */
bool options_value_is_optional(const struct option *option);

/* What --help shows, for the man page, and what may come next on a command line (main.c). These
 * stand where the first argument does: a command calls options_parse before it does anything else,
 * so that what is known of it can be had by running it. */
#define OPTIONS_MAN      "--help=man"
#define OPTIONS_COMPLETE "--help=complete"
/* Prints the command's part of the man page, in man(7). An exit code. */
int options_print_man(const struct options_command *command);
/* `text` with what roff would take for its own escaped; hyphens are minus signs, to be copied. */
void options_print_roff(const char *text);
/* Prints what the last of the words after the command's name may become. An exit code. */
int options_complete(const struct options_command *command, size_t count, char **words);
/* A line of that: a candidate behind the first `offset` bytes of the word, if the rest of the word
 * begins it, a tab, and what it is. */
void options_print_candidate(const char *word, size_t offset, const char *candidate,
                             const char *help);

/* Parses argv[1...]; argv[0] is the command's name. *argument is the positional one or NULL; where
 * it repeats there is room for argc of them, and NULL follows the last.
 * Returns OPTIONS_GO_ON, or the exit code: 0 after --help, 2 after an error, which has been
 * printed. */
int options_parse(const struct options_command *command, int argc, char **argv,
                  const char **argument);

#endif
