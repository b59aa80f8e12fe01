/* What the commands share. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include <vknerf/vknerf.h>

#include "cli/options.h"

/* Set by the first Ctrl-C; the second ends the program. */
extern volatile sig_atomic_t cli_stop;
/* What that says: two lines' ends around one line. */
extern const char *volatile cli_stop_text;
/* The whole command line. */
extern const char *const *cli_arguments;
extern size_t cli_argument_count;

/* Prints "vknerf: <message>" and returns `code`. */
__attribute__((format(printf, 2, 3))) int cli_fail(int code, const char *format, ...);
/* Exit code of a call of the library; prints its error. */
int cli_status(vkn_status status);
/* Exit code after everything was printed: standard output may be a full disk. */
int cli_finish_output(void);

/* Of --time: a number from 0 to 1; NULL: not given. OPTIONS_GO_ON or an exit code. */
int cli_parse_time(const char *text, bool *given, double *moment);

/* `count`, 1 or 6, finite numbers with commas between. OPTIONS_GO_ON or an exit code. */
int cli_parse_numbers(const char *name, const char *text, double *numbers, size_t count);
/* The shortest decimal that reads back as the same number, for what is printed to be used again. */
void cli_print_number(char text[32], double number);
/* Of --crop: the box x0,y0,z0,x1,y1,z1; NULL: not given. OPTIONS_GO_ON or an exit code. */
int cli_parse_crop(const char *text, double low[3], double high[3]);

/* Prints a JSON text that the library made and frees it; NULL: it failed. Returns an exit code. */
int cli_print_json(char *text);
struct cJSON;
/* Prints a JSON object and deletes it; not `complete`: there was no memory for it. Returns an exit
 * code. */
int cli_print_object(struct cJSON *object, bool complete);

/* "fp32|fp16|coopmat" of a list of names in vknerf/choices.h, which --help calls a value. */
#define CLI_NAMES(names)              (&("" names(CLI_OR_NAME))[1])
#define CLI_OR_NAME(enumerator, name) "|" #name

/* Of commands that show a trained field. */
#define CLI_PRECISION_OPTION(precision)                                                     \
    {.name = "--precision",                                                                 \
     .value = CLI_NAMES(VKN_PRECISIONS),                                                    \
     .help = "of the field's arithmetic; default as trained, fp32 where the device cannot", \
     .kind = OPTION_CHOICE,                                                                 \
     .target = &(precision),                                                                \
     .choices = cli_precisions}

/* Of commands that show a moment of a scene that moves; cli_parse_time reads `text`. */
#define CLI_TIME_OPTION(text, what) \
    {.name = "--time", .value = "T", .help = (what), .kind = OPTION_TEXT, .target = (void *)&(text)}

/* Of commands that open the scene of a run again. */
#define CLI_SCENE_OPTIONS(scene_path, scene_format)                                        \
    {.name = "--scene",                                                                    \
     .value = "DIR",                                                                       \
     .help = "the scene, when it is no longer where it was",                               \
     .kind = OPTION_TEXT,                                                                  \
     .target = (void *)&(scene_path)},                                                     \
    {                                                                                      \
        .name = "--format", .value = CLI_NAMES(VKN_SCENE_FORMATS),                         \
        .help = "that the scene is written in; default as trained", .kind = OPTION_CHOICE, \
        .target = &(scene_format), .choices = cli_formats                                  \
    }

/* Of a command that takes a scene and no run. */
#define CLI_FORMAT_OPTION(scene_format)                               \
    {.name = "--format",                                              \
     .value = CLI_NAMES(VKN_SCENE_FORMATS),                           \
     .help = "that SCENE is written in; default what its files show", \
     .kind = OPTION_CHOICE,                                           \
     .target = &(scene_format),                                       \
     .choices = cli_formats}

/* Of commands that open a run: whether the GLSL in its checkpoint may run, for cli_trust. */
#define CLI_TRUST_OPTION(given)                                                     \
    {.name = "--trust",                                                             \
     .value = "SHA256",                                                             \
     .help = "run the GLSL in the run's checkpoint, or only a text with this hash", \
     .kind = OPTION_MAYBE_TEXT,                                                     \
     .target = (void *)&(given)}
/* Trusts the field of `run` where `given` (NULL: no --trust; "": any text) says so, or the user
 * when asked on a terminal. An exit code, or OPTIONS_GO_ON: the library refuses what is not
 * trusted. */
int cli_trust(const char *given, const char *run);

/* Options of every command that uses a device. */
#define CLI_JOB_OPTIONS(job)                                                               \
    {.name = "--device",                                                                   \
     .value = "INDEX|NAME",                                                                \
     .help = "Vulkan device, see vknerf info",                                             \
     .kind = OPTION_TEXT,                                                                  \
     .target = (void *)&(job).device},                                                     \
        {.name = "--shader-dir",                                                           \
         .value = "DIR",                                                                   \
         .help = "compile the shaders of this folder instead of those built in",           \
         .kind = OPTION_TEXT,                                                              \
         .target = (void *)&(job).shader_dir},                                             \
    {                                                                                      \
        .name = "--quiet", .help = "print warnings and results only", .kind = OPTION_FLAG, \
        .target = &(job).quiet                                                             \
    }

/* Of commands that somebody may look at in a browser. */
struct cli_view {
    struct options_port port;
    const char *address; /* NULL: 127.0.0.1 */
    struct viewer *viewer;
};
#define CLI_VIEW_ADDRESS_OPTION(view)                                                         \
    {.name = "--view-address",                                                                \
     .value = "ADDRESS",                                                                      \
     .help = "where the viewer listens; default 127.0.0.1, this machine alone; 0.0.0.0: all", \
     .kind = OPTION_TEXT,                                                                     \
     .target = (void *)&(view).address}
/* The rank of this process among those that mpirun has begun; NULL: it has begun none. */
const char *cli_rank(void);
/* Of several processes that mpirun has begun rank 0 is the one to search and to show. */
bool cli_is_rank_0(void);
/* Starts the viewer and prints its address. An exit code, or OPTIONS_GO_ON. */
int cli_view_start(struct cli_view *view, FILE *stream);

extern const char *const cli_backgrounds[]; /* of pictures, indexed by enum vkn_background */
extern const char *const cli_precisions[];  /* of pictures, indexed by enum vkn_precision */
extern const char *const cli_formats[];     /* indexed by enum vkn_scene_format */
extern const char *const cli_splits[];      /* indexed by enum vkn_split */
/* "PSNR 31.20 dB, SSIM 0.9512 (25 test views, white background, sRGB, step 20000)" on standard
 * output. */
void cli_print_evaluation(const struct vkn_evaluation *evaluation);

/* folder + rest in fresh memory; NULL on no memory. */
char *cli_format_path(const char *folder, const char *rest);
/* The folder of the bundled scene, in fresh memory. An exit code. */
int cli_find_bundled(char **scene);

/* The field "tuning" of vkn_bench. */
void cli_print_tuning(const struct cJSON *tuning);
/* The field "programs" of vkn_bench. */
void cli_print_programs(const struct cJSON *programs);
/* The field "sampling" of vkn_bench. */
void cli_print_sampling(const struct cJSON *sampling);
/* A string member; "" when there is none. */
const char *cli_text_of(const struct cJSON *object, const char *name);
/* A number; NaN when there is none. */
double cli_number_of(const struct cJSON *object, const char *name);

int cmd_info(int argc, char **argv);
int cmd_prepare(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_view(int argc, char **argv);

#endif
