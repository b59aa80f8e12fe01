/* Declares training from the command line, for the commands train, demo and refine. */
#ifndef CLI_TRAINING_H
#define CLI_TRAINING_H

#include "cli/cli.h"

#define TRAINING_MAX_OPTIONS 48

/* Modes of --find-batch. */
enum training_search { SEARCH_NOTHING, SEARCH_REPORT, SEARCH_USE, SEARCH_FASTEST };

/* A training and its options. */
struct training {
    struct vkn_train_params params; /* points at the job and configurations below */
    struct vkn_job job;
    vkn_config *config, *given; /* given: the file's and options' settings, to resume a run */
    struct options_settings settings;
    const char *config_file, *field;
    const char *trust;               /* see cli_trust; only in train, as a demo opens no run */
    enum training_search find_batch; /* search before training */
    uint32_t memory_budget;          /* of find_batch, MiB; 0: 90 % of the free memory */
    bool json; /* print the result, or the result of find_batch only, as JSON */
    struct cli_view view;
    char *found; /* JSON of find_batch, for the result */
    char *shown; /* run directory that the viewer shows after the training; NULL: none */
    struct option options[TRAINING_MAX_OPTIONS];
    size_t option_count;
};

/* Initialises `training` with the options of every training and memory for the settings of `argc`
 * arguments. Returns OPTIONS_GO_ON or an exit code. */
int training_begin(struct training *training, int argc);
/* Adds an option. */
void training_add_option(struct training *training, struct option option);
/* Replaces the help of an option, for a command with another default. */
void training_set_help(struct training *training, const char *name, const char *help);
/* Removes an option, for a command that cannot use it. */
void training_remove_option(struct training *training, const char *name);
/* Frees everything that `training` holds. */
void training_end(struct training *training);

/* Applies the file and settings, on top of those of a run to resume. Returns OPTIONS_GO_ON or an
 * exit code. */
int training_configure(struct training *training);
/* Configures, trains, and prints the result. Returns an exit code. The viewer may still be open
 * then: training_view continues with it. */
int training_run(struct training *training);
/* Shows the trained run in the viewer until it is ended, if it is open. Returns `code`, the exit
 * code of the work before. */
int training_view(struct training *training, int code);
/* Prints the profile to standard error. */
void training_print_profile(const struct vkn_train_result *result);
/* Runs --find-batch: searches, prints, and sets the batch. Returns OPTIONS_GO_ON to train, or an
 * exit code. */
int training_find_batch(struct training *training);

#endif
