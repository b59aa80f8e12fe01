/* Declares what the commands share: errors, printing, values of options, the viewer. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include <vknerf/vknerf.h>

#include "cli/options.h"

/* Set by the first Ctrl-C; a second one ends the program. */
extern volatile sig_atomic_t cli_stop;
/* Clears cli_stop after a page of the viewer has set it. Returns false, and leaves it set, if a
 * signal has arrived. */
bool cli_clear_stop(void);
/* Message of the first Ctrl-C: a line with a line break before and after it. */
extern const char *volatile cli_stop_text;
/* Prepares the process before the command runs: catches signals and opens closed standard streams.
 * Returns the arguments of main, on Windows in UTF-8. */
struct cli_words {
    int count;
    char **words;
};
struct cli_words cli_prepare_process(int argc, char **argv);
/* Reads the command line of this process, of which the words of main are the end: each word with a
 * zero byte behind it. Returns its bytes, `most` at most; 0: it cannot be read. */
size_t cli_read_command_line(char *text, size_t most);
/* Waits for the Enter key before the program ends, if the system opened a window for its output,
 * which closes with the program: on Windows after a double click. */
void cli_keep_window(void);
/* The whole command line. */
extern const char *const *cli_arguments;
extern size_t cli_argument_count;

/* Prints "vknerf: <message>" to standard error and returns `code`. */
__attribute__((format(__printf__, 2, 3))) int cli_fail(int code, const char *format, ...);
/* Prints the library's last error unless `status` is VKN_OK. Returns the exit code. */
int cli_status(vkn_status status);
/* Flushes standard output. Returns the exit code, which is an error if the output could not be
 * written. */
int cli_finish_output(void);

/* Parses the value of --time, 0 to 1; NULL: not given. Returns OPTIONS_GO_ON or an exit code. */
int cli_parse_time(const char *text, bool *given, double *value);

/* Parses 1 or 6 finite numbers, separated by commas. Returns OPTIONS_GO_ON or an exit code. */
int cli_parse_numbers(const char *name, const char *text, double *numbers, size_t count);
/* Writes the shortest decimal that reads back as the same number. */
void cli_print_number(char text[32], double number);
#define CLI_CROP "x0,y0,z0,x1,y1,z1[,rx,ry,rz]"
/* Parses the value of --crop, CLI_CROP; NULL: not given. Returns OPTIONS_GO_ON or an exit code. */
int cli_parse_crop(const char *text, double low[3], double high[3], double rotation[3]);
/* Parses the value of --distance and computes the metres of a dataset unit; NULL: not given.
 * Returns OPTIONS_GO_ON or an exit code. */
int cli_parse_distance(const char *text, double *unit_length);

/* Prints a JSON text of the library and frees it; NULL: the call failed. Returns an exit code. */
int cli_print_json(char *text);
struct cJSON;
/* Prints a JSON object and deletes it; complete == false: memory ran out. Returns an exit code. */
int cli_print_object(struct cJSON *object, bool complete);

/* Joins a list of vknerf/choices.h to "fp32|fp16|coopmat", the value of an option in --help. */
#define CLI_NAMES(names)              (&("" names(CLI_OR_NAME))[1])
#define CLI_OR_NAME(enumerator, name) "|" #name

/* --precision of commands that render a trained field. */
#define CLI_PRECISION_OPTION(precision)                                          \
    {.name = "--precision",                                                      \
     .value = CLI_NAMES(VKN_PRECISIONS),                                         \
     .help = "arithmetic of the field; default as trained, fp32 if unsupported", \
     .kind = OPTION_CHOICE,                                                      \
     .target = &(precision),                                                     \
     .choices = cli_precisions}

/* --time of commands that render a dynamic scene; cli_parse_time parses `text`. */
#define CLI_TIME_OPTION(text, what) \
    {.name = "--time", .value = "T", .help = (what), .kind = OPTION_TEXT, .target = (void *)&(text)}

/* --distance of commands that compute the unit of a dataset; cli_parse_distance parses `text`. */
#define CLI_DISTANCE_OPTION(text, what)   \
    {.name = "--distance",                \
     .value = "x0,y0,z0,x1,y1,z1=METRES", \
     .help = (what),                      \
     .kind = OPTION_TEXT,                 \
     .target = (void *)&(text)}

/* --scene and --format of commands that open the scene of a run again. */
#define CLI_SCENE_OPTIONS(scene_path, scene_format)                                       \
    {.name = "--scene",                                                                   \
     .value = "DIR",                                                                      \
     .help = "new location of the scene, if it was moved",                                \
     .kind = OPTION_TEXT,                                                                 \
     .target = (void *)&(scene_path)},                                                    \
    {                                                                                     \
        .name = "--format", .value = CLI_NAMES(VKN_SCENE_FORMATS),                        \
        .help = "format of the scene's files; default as trained", .kind = OPTION_CHOICE, \
        .target = &(scene_format), .choices = cli_formats                                 \
    }

/* --format of a command whose argument is a scene. */
#define CLI_FORMAT_OPTION(scene_format)     \
    {.name = "--format",                    \
     .value = CLI_NAMES(VKN_SCENE_FORMATS), \
     .kind = OPTION_CHOICE,                 \
     .target = &(scene_format),             \
     .key = "scene.format",                 \
     .choices = cli_formats}

/* --trust of commands that open a run; cli_trust reads `given`. */
#define CLI_TRUST_OPTION(given)                                                       \
    {.name = "--trust",                                                               \
     .value = "SHA256",                                                               \
     .help = "run the GLSL of the run's checkpoint, or only the text with this hash", \
     .kind = OPTION_MAYBE_TEXT,                                                       \
     .target = (void *)&(given)}
/* Trusts the GLSL of `run` if --trust or the user, asked on a terminal, allows it. `given` is the
 * value of --trust: a SHA-256, "" for any GLSL that `run` has, NULL if the option is missing.
 * Returns OPTIONS_GO_ON or an exit code; the library refuses GLSL that is not trusted. */
int cli_trust(const char *given, const char *run);

/* --device, --low-priority, --shader-dir and --quiet of commands that use a device. */
#define CLI_JOB_OPTIONS(job)                                                                \
    {.name = "--device",                                                                    \
     .value = "INDEX|NAME",                                                                 \
     .help = "Vulkan device, as listed by vknerf info; default the one chosen there",       \
     .kind = OPTION_TEXT,                                                                   \
     .target = (void *)&(job).device},                                                      \
        {.name = "--low-priority",                                                          \
         .help = "let other programs use the device first, so that a desktop stays usable", \
         .kind = OPTION_FLAG,                                                               \
         .target = &(job).low_priority},                                                    \
        {.name = "--shader-dir",                                                            \
         .value = "DIR",                                                                    \
         .help = "compile the shaders of this folder instead of the embedded ones",         \
         .kind = OPTION_TEXT,                                                               \
         .target = (void *)&(job).shader_dir},                                              \
    {                                                                                       \
        .name = "--quiet", .help = "print only warnings and results", .kind = OPTION_FLAG,  \
        .target = &(job).quiet                                                              \
    }

/* Finds the words that start this program: more than one if a dynamic loader was started with the
 * program as its argument. *list ends with NULL and stays valid. Returns OPTIONS_GO_ON or an exit
 * code. */
int cli_find_program(const char *const **list, size_t *count);
/* Prints "progress DONE TOTAL WHAT" on standard error: vkn_job.progress, for programs that run a
 * command. */
void cli_print_progress(void *context, const char *what, size_t done, size_t total);
#define CLI_PROGRESS_OPTION(progress)                                                  \
    {.name = "--progress",                                                             \
     .help = "print progress on standard error as lines \"progress DONE TOTAL WHAT\"", \
     .kind = OPTION_FLAG,                                                              \
     .target = &(progress)}

#define CLI_VIEW_OPTIONS 12
/* Viewer of a command, and its options. */
struct cli_view {
    /* Options of `vknerf render` and `export` that pages use, ending with NULL. */
    const char *task_options[CLI_VIEW_OPTIONS + 1];
    struct options_port port;
    const char *address; /* NULL: 127.0.0.1 */
    bool exits;          /* the program ends with the training */
    struct viewer *viewer;
};
#define CLI_VIEW_ADDRESS_OPTION(view)                                                     \
    {.name = "--view-address",                                                            \
     .value = "ADDRESS",                                                                  \
     .help = "address that the viewer listens on; 0.0.0.0: every one; default 127.0.0.1", \
     .kind = OPTION_TEXT,                                                                 \
     .target = (void *)&(view).address}
/* Returns the rank that mpirun has given to this process; NULL: it has given none. */
const char *cli_rank(void);
/* Returns whether this process is rank 0 or the only one. Rank 0 searches the batch and runs the
 * viewer. */
bool cli_is_rank_0(void);
/* Lets pages use an option of `vknerf render` and `export`; value "": the option has none, NULL:
 * nothing is added. */
void cli_view_add_option(struct cli_view *view, const char *option, const char *value);
/* Starts the viewer and prints its address. Returns OPTIONS_GO_ON or an exit code. */
int cli_view_start(struct cli_view *view, FILE *stream);

extern const char *const cli_backgrounds[]; /* of pictures, indexed by enum vkn_background */
extern const char *const cli_precisions[];  /* of pictures, indexed by enum vkn_precision */
extern const char *const cli_formats[];     /* indexed by enum vkn_scene_format */
extern const char *const cli_splits[];      /* indexed by enum vkn_split */
/* Prints "PSNR 31.20 dB, SSIM 0.9512 (25 test views, white background, sRGB, step 20000)". */
void cli_print_evaluation(const struct vkn_evaluation *evaluation);

/* Returns folder + rest, which the caller frees; NULL if memory runs out. */
char *cli_format_path(const char *folder, const char *rest);
/* Finds the folder of the bundled scene; the caller frees *scene. Returns an exit code. */
int cli_find_bundled(char **scene);

/* Prints a command, such as "next: vknerf train", with a scene and more options, such as "". */
void cli_print_command(const char *command, const char *scene, const char *options);
/* Refines the cameras of a scene and prints the verdict. Returns an exit code. */
int cli_refine(const struct vkn_refine_params *params, bool json);

/* Prints the member "tuning" of vkn_bench's result. */
void cli_print_tuning(const struct cJSON *tuning);
/* Prints the member "programs" of vkn_bench's result. */
void cli_print_programs(const struct cJSON *programs);
/* Prints the member "sampling" of vkn_bench's result. */
void cli_print_sampling(const struct cJSON *sampling);
/* Returns a string member of an object; "" if there is none. */
const char *cli_text_of(const struct cJSON *object, const char *name);
/* Returns a number of an object; NaN if there is none. */
double cli_number_of(const struct cJSON *object, const char *name);

/* The commands: argv[0] is the name of the command. Each returns an exit code. */
int cmd_info(int argc, char **argv);
int cmd_prepare(int argc, char **argv);
int cmd_refine(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_certify(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_view(int argc, char **argv);

#endif
