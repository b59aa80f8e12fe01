/* The options of training, for train and demo. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "cli/cli.h"

#define TRAINING_MAX_OPTIONS 48

enum training_search { SEARCH_NOTHING, SEARCH_REPORT, SEARCH_USE, SEARCH_FASTEST };

struct training {
    struct vkn_train_params params; /* of the job and the configurations below */
    struct vkn_job job;
    vkn_config *config, *given;
    struct options_settings settings;
    const char *config_file, *field;
    const char *trust;               /* see cli_trust; of train alone, for a demo opens no run */
    enum training_search find_batch; /* before training */
    uint32_t memory_budget;          /* of find_batch, MiB; 0: nine tenths of what is there */
    bool json;                       /* prints the result, or what is only searched for, as JSON */
    struct cli_view view;            /* somebody may look */
    char *found;                     /* JSON of what find_batch found, for the result */
    struct option options[TRAINING_MAX_OPTIONS];
    size_t option_count;
};

/* Zeros `training` and lists the options of every training; `argc` bounds their settings. An exit
 * code, or OPTIONS_GO_ON. */
int training_begin(struct training *training, int argc);
void training_add_option(struct training *training, struct option option);
/* Replaces what --help says of a listed option, where a command has another default. */
void training_set_help(struct training *training, const char *name, const char *help);
void training_end(struct training *training);

/* Configures from file and settings (on top of the run to resume), trains, prints the result. An
 * exit code. */
int training_run(struct training *training);
/* The table of passes, on standard error. */
void training_print_profile(const struct vkn_train_result *result);
/* Searches, prints, and sets the batch asked for. An exit code, or OPTIONS_GO_ON to train. */
int training_find_batch(struct training *training);

#endif
