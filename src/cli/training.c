/* Trains from the command line: converts options to a configuration and prints the result. */
#include "cli/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "viewer/viewer.h"

/* ---- options ------------------------------------------------------------------------------- */

static const char *const models[] = {VKN_MODELS(VKN_NAME) NULL};
static const char *const switches[] = {"on", "off", NULL};
static const char *const precisions[] = {"auto", VKN_PRECISIONS(VKN_NAME) NULL};

void training_add_option(struct training *training, struct option option)
{
    if (training->option_count < TRAINING_MAX_OPTIONS)
        training->options[training->option_count++] = option;
}

void training_set_help(struct training *training, const char *name, const char *help)
{
    for (size_t i = 0; i < training->option_count; i++)
        if (strcmp(training->options[i].name, name) == 0)
            training->options[i].help = help;
}

void training_remove_option(struct training *training, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < training->option_count; i++)
        if (strcmp(training->options[i].name, name) != 0)
            training->options[kept++] = training->options[i];
    training->option_count = kept;
}

/* Adds an option that sets `key`, with the help of the setting. */
static void add_setting(struct training *training, const char *name, const char *value,
                        const char *key, enum option_kind kind, const char *const *choices)
{
    training_add_option(training, (struct option){.name = name,
                                                  .value = value,
                                                  .kind = kind,
                                                  .target = &training->settings,
                                                  .key = key,
                                                  .choices = choices});
}

static void list_options(struct training *t)
{
    static const struct {
        const char *name, *value, *key;
        enum option_kind kind;
        const char *const *choices;
    } settings[] = {
        {"--steps", "N", "steps", OPTION_SETTING, NULL},
        {"--seconds", "S", "seconds", OPTION_SETTING, NULL},
        {"--model", CLI_NAMES(VKN_MODELS), "model", OPTION_SETTING, models},
        {"--precision", "auto" VKN_PRECISIONS(CLI_OR_NAME), "precision", OPTION_SETTING,
         precisions},
        {"--loss-scale", "dynamic|static:V|schedule:FILE", "loss_scale.kind", OPTION_LOSS_SCALE,
         NULL},
        {"--lr-schedule", "step|exponential|exponential:R|cosine|cosine:R|file:FILE",
         "optimizer.schedule", OPTION_LR_SCHEDULE, NULL},
        {"--downscale", "K", "scene.downscale", OPTION_SETTING, NULL},
        {"--progressive", NULL, "progressive.enabled", OPTION_SETTING, NULL},
        {"--image-memory", "SIZE", "scene.image_budget", OPTION_SETTING, NULL},
        {"--background", "random|white|black", "background", OPTION_SETTING, NULL},
        {"--seed", "N", "seed", OPTION_SETTING, NULL},
        {"--deterministic", NULL, "deterministic", OPTION_SETTING, NULL},
        {"--eval-every", "N|N,N,...|NxF", "eval_every", OPTION_SETTING, NULL},
        {"--save-every", "N", "save_every", OPTION_SETTING, NULL},
        {"--save-seconds", "S", "save_seconds", OPTION_SETTING, NULL},
        {"--keep", "N", "keep", OPTION_SETTING, NULL},
        {"--tensorboard", "on|off", "log.tensorboard", OPTION_SETTING, switches},
    };
    const struct option others[] = {
        {OPTION("--set", "KEY=VALUE", ASSIGN, &t->settings,
                "any setting by its key, see below; repeatable")},
        {OPTION("--config", "FILE.json", TEXT, &t->config_file,
                "file of settings; options override it")},
        {OPTION("--field", "FILE.glsl", TEXT, &t->field,
                "encoding of the field in GLSL: encode, encode_backward")},
        {OPTION("--out", "DIR", TEXT, &t->params.out,
                "run directory; default runs/SCENE-DATE-TIME")},
        {OPTION("--devices", "A,B,...", TEXT, &t->params.devices,
                "devices that train together, one rank each")},
        {OPTION("--profile", NULL, FLAG, &t->params.profile,
                "time of every pass: a table at the end, and trace.json")},
        {OPTION("--view", "PORT", VIEW, &t->view.port,
                "show the training in a browser; the address is printed")},
        {OPTION("--view-exit", NULL, FLAG, &t->view.exits,
                "with --view: end with the training; without it the viewer stays open")},
        CLI_VIEW_ADDRESS_OPTION(t->view),
        CLI_JOB_OPTIONS(t->job),
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        add_setting(t, settings[i].name, settings[i].value, settings[i].key, settings[i].kind,
                    settings[i].choices);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        training_add_option(t, others[i]);
}

int training_begin(struct training *training, int argc)
{
    *training = (struct training){.job.size = sizeof(training->job),
                                  .job.stop = &cli_stop,
                                  .params.job = &training->job,
                                  .params.command = cli_arguments,
                                  .params.command_count = cli_argument_count};
    if (!options_settings_begin(&training->settings, argc) ||
        vkn_config_create(&training->config) != VKN_OK ||
        vkn_config_create(&training->given) != VKN_OK)
        return cli_fail(VKN_ERROR, "out of memory");
    training->params.config = training->config;
    training->params.given = training->given;
    list_options(training);
    return OPTIONS_GO_ON;
}

void training_end(struct training *training)
{
    options_settings_end(&training->settings);
    vkn_config_destroy(&training->config);
    vkn_config_destroy(&training->given);
    free(training->found);
    free(training->shown);
    *training = (struct training){0};
}

/* ---- configuration ------------------------------------------------------------------------- */

static bool sets_limit(const struct options_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->items[i].key, "steps") == 0 ||
            strcmp(settings->items[i].key, "seconds") == 0)
            return true;
    return false;
}

static vkn_status apply_settings(const struct training *training, vkn_config *config)
{
    const struct options_settings *settings = &training->settings;
    if (training->config_file) {
        vkn_status status = vkn_config_read_json(config, training->config_file);
        if (status != VKN_OK)
            return status;
    }
    const vkn_field field = {.size = sizeof field, .file = training->field};
    if (training->field) {
        vkn_status status = vkn_field_register(&field, config);
        if (status != VKN_OK)
            return status;
    }
    return options_settings_apply(settings, config);
}

/* Builds the configuration. A resumed run keeps its settings except those that are given. A new
 * limit replaces both old limits: otherwise an old limit of seconds, already reached, would end
 * training. */
static vkn_status configure(struct training *training)
{
    vkn_config *config = training->config;
    vkn_status status = VKN_OK;
    if (training->params.resume)
        status = vkn_run_config(training->params.resume, config);
    if (status == VKN_OK && training->params.resume)
        status = apply_settings(training, training->given);
    bool sets_new_limit = training->params.resume && sets_limit(&training->settings);
    if (status == VKN_OK && sets_new_limit)
        status = vkn_config_set(config, NULL, "steps", "default");
    if (status == VKN_OK && sets_new_limit)
        status = vkn_config_set(config, NULL, "seconds", "default");
    return status == VKN_OK ? apply_settings(training, config) : status;
}

/* ---- result -------------------------------------------------------------------------------- */

/* Prints the result as JSON, with the result of --find-batch. */
static int print_json(const struct training *training, const struct vkn_train_result *result)
{
    char *text = vkn_train_result_json(result);
    if (!text || !training->found)
        return cli_print_json(text);
    cJSON *json = cJSON_Parse(text);
    free(text);
    return cli_print_object(json, cJSON_AddRawToObject(json, "find_batch", training->found));
}

static void print_steps(const struct vkn_train_result *result)
{
    double share = 100.0 * (double)result->skipped_steps / (double)result->step;
    printf("trained %llu steps in %.1f s", (unsigned long long)result->step, result->seconds);
    if (result->skipped_steps > 0)
        printf(", %llu skipped (%.*f %%): their loss or gradient was not finite",
               (unsigned long long)result->skipped_steps, share < 1.0 ? 2 : 0, share);
    puts("");
}

/* Prints when the PSNR of held-out views reached a level, unless they were measured only once. */
static void print_reached(const struct vkn_train_result *result)
{
    char *text = vkn_train_result_json(result);
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    const cJSON *evaluations = cJSON_GetObjectItemCaseSensitive(json, "evaluations"), *at;
    if (cJSON_GetArraySize(evaluations) > 1)
        cJSON_ArrayForEach (at, cJSON_GetObjectItemCaseSensitive(json, "reached"))
            printf("reached %g dB on %g of %zu %s views after %.1f s, at step %.0f\n",
                   cli_number_of(at, "psnr"), cli_number_of(at, "views"),
                   result->evaluation->view_count, cli_splits[result->evaluation->split],
                   cli_number_of(at, "seconds"), cli_number_of(at, "step"));
    cJSON_Delete(json);
    free(text);
}

static int print_result(const struct training *training, const struct vkn_train_result *result)
{
    if (training->json)
        return print_json(training, result);
    print_steps(result);
    cli_print_evaluation(result->evaluation);
    print_reached(result);
    printf("report: %s/report.html\npictures: %s/views\n", result->folder, result->folder);
    return cli_finish_output();
}

/* Prints the result, which an interrupted run that was saved has, too. */
static int finish(const struct training *training, vkn_status status,
                  const struct vkn_train_result *result)
{
    if (result->reported_elsewhere && status != VKN_OK) /* another process reports the error */
        return status;
    if (result->rank > 0) /* rank 0 has the results */
        return cli_status(status);
    bool saved = status == VKN_INTERRUPTED && result->step > 0;
    int code = status == VKN_OK ? VKN_OK : cli_status(status);
    if ((status == VKN_OK || saved) && training->params.profile)
        training_print_profile(result);
    if (status == VKN_OK)
        return print_result(training, result);
    if (saved && training->json)
        print_json(training, result);
    return code;
}

static bool may_be_fp32(const vkn_config *config)
{
    char *precision = NULL;
    bool may = vkn_config_get(config, "precision", &precision) == VKN_OK &&
               (strcmp(precision, "auto") == 0 || strcmp(precision, "fp32") == 0);
    vkn_free(precision);
    return may;
}

/* ---- the viewer ------------------------------------------------------------------------------ */

/* Sets `shown` if the viewer stays open: unless a signal has ended the training, or there is no
 * checkpoint to show. */
static void choose_shown(struct training *training, const struct vkn_train_result *result)
{
    char *checkpoint = result && result->folder
                           ? cli_format_path(result->folder, "/checkpoint.safetensors")
                           : NULL;
    struct stat file;
    bool stays = viewer_has_trained(training->view.viewer) && !training->view.exits && checkpoint &&
                 stat(checkpoint, &file) == 0 && cli_clear_stop();
    training->shown = stays ? strdup(result->folder) : NULL;
    free(checkpoint);
}

/* Shows the result on the viewer's pages. */
static void show_result(const struct training *training, vkn_status status,
                        const struct vkn_train_result *result)
{
    char text[512], command[512] = "";
    const char *trust = training->field || training->trust ? " --trust" : "";
    char *run = result && result->folder ? vkn_shell_word(result->folder) : NULL;
    const struct vkn_evaluation *evaluation =
        status == VKN_OK && result ? result->evaluation : NULL;
    if (evaluation && run)
        snprintf(text, sizeof(text), "The training has ended: PSNR %.2f dB on %zu %s view%s",
                 evaluation->psnr, evaluation->view_count, cli_splits[evaluation->split],
                 evaluation->view_count == 1 ? "" : "s");
    else if (status == VKN_INTERRUPTED && run && result->step > 0)
        snprintf(text, sizeof(text), "The training was stopped at step %llu and is saved",
                 (unsigned long long)result->step);
    else
        snprintf(text, sizeof(text), "The training has failed: %s", vkn_last_error());
    if (run && status == VKN_INTERRUPTED && result->step > 0)
        snprintf(command, sizeof(command), "vknerf train --resume %s%s", run, trust);
    else if (run && (evaluation || training->shown))
        snprintf(command, sizeof(command), "vknerf view %s%s", run, trust);
    const struct viewer_result shown = {.status = status,
                                        .text = text,
                                        .command = command,
                                        .psnr = evaluation ? evaluation->psnr : (double)NAN,
                                        .ssim = evaluation ? evaluation->ssim : (double)NAN,
                                        .stays = training->shown != NULL};
    viewer_set_result(training->view.viewer, &shown);
    free(run);
}

static void stop_viewer(struct training *training)
{
    training->job.progress = NULL; /* its context is the viewer */
    viewer_stop(&training->view.viewer);
}

static vkn_status show(struct training *training, char message[VIEWER_MESSAGE])
{
    struct vkn_job job = training->job;
    const struct viewer_run run = {.run = training->shown, .job = &job};
    char *devices = training->params.devices ? strdup(training->params.devices) : NULL;
    if (devices && !job.device)
        job.device = strtok(devices, ","); /* the first of --devices */
    vkn_status status = viewer_show(training->view.viewer, &run, message);
    free(devices);
    return status;
}

int training_view(struct training *training, int code)
{
    FILE *stream = training->json ? stderr : stdout;
    char message[VIEWER_MESSAGE];
    if (!training->view.viewer)
        return code;
    cli_stop_text = "\nstopping; once more to stop at once\n";
    fprintf(stream, "the viewer stays open; Ctrl-C, or End on its page, ends it: %s\n",
            viewer_address(training->view.viewer));
    fflush(stream);
    if (show(training, message) != VKN_OK)
        fprintf(stderr, "warning: the viewer ends: %s\n", message);
    stop_viewer(training);
    return code;
}

static int train(struct training *training)
{
    struct vkn_train_result *result;
    vkn_status status = vkn_run_train(&training->params, &result);
    choose_shown(training, result);
    show_result(training, status, result);
    if (!training->shown)
        stop_viewer(training);
    int code = result ? finish(training, status, result) : cli_status(status);
    if (code == VKN_OK && training->view.port.given && !training->json && result->rank == 0)
        printf("view it again: vknerf view %s%s\n", result->folder,
               training->field || training->trust ? " --trust" : "");
    vkn_train_result_free(&result);
    return code == VKN_OK ? cli_finish_output() : code;
}

/* Registers the field of --field first: checkpoints with the same GLSL are then trusted. */
static int trust(const struct training *training)
{
    const vkn_field field = {.size = sizeof field, .file = training->field};
    vkn_status status = training->field ? vkn_field_register(&field, NULL) : VKN_OK;
    const char *runs[] = {training->params.resume, training->params.init};
    int code = status == VKN_OK ? OPTIONS_GO_ON : cli_status(status);
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]) && code == OPTIONS_GO_ON; i++)
        if (runs[i])
            code = cli_trust(training->trust, runs[i]);
    return code;
}

int training_configure(struct training *training)
{
    vkn_log_quiet(training->job.quiet);
    if (training->view.exits && !training->view.port.given)
        return cli_fail(VKN_BAD_INPUT, "--view-exit: only valid with --view");
    int trusted = trust(training);
    if (trusted != OPTIONS_GO_ON)
        return trusted;
    vkn_status status = configure(training);
    if (status != VKN_OK)
        return cli_status(status);
    if (!getenv("VKNERF_MEASURE") && may_be_fp32(training->config))
        vkn_prefer_wide_vectors();
    return OPTIONS_GO_ON;
}

int training_run(struct training *training)
{
    int configured = training_configure(training);
    if (configured != OPTIONS_GO_ON)
        return configured;
    if (training->find_batch != SEARCH_NOTHING) {
        int found = training_find_batch(training);
        if (found != OPTIONS_GO_ON)
            return found;
    }
    if (training->view.port.given && cli_is_rank_0()) {
        cli_view_add_option(&training->view, "--device", training->job.device);
        cli_view_add_option(&training->view, "--shader-dir", training->job.shader_dir);
        cli_view_add_option(&training->view, "--trust",
                            training->field || training->trust ? "" : NULL);
        int started = cli_view_start(&training->view, training->json ? stderr : stdout);
        if (started != OPTIONS_GO_ON)
            return started;
        training->params.size = sizeof training->params;
        training->params.callbacks = viewer_callbacks(training->view.viewer);
        training->job.progress = viewer_progress;
        training->job.progress_context = training->view.viewer;
    }
    return train(training);
}
