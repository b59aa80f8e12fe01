/* vknerf export RUN: writes the surface of a run as mesh, points or splats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"

/* ---- numbers ------------------------------------------------------------------------------- */

/* Parses a number above 0; text NULL: not given. */
static int parse_positive(const char *name, const char *text, double *number)
{
    if (!text)
        return OPTIONS_GO_ON;
    int code = cli_parse_numbers(name, text, number, 1);
    if (code == OPTIONS_GO_ON && !(*number > 0.0))
        return cli_fail(VKN_BAD_INPUT, "%s: %s is not above 0", name, text);
    return code;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Make "FILE.ply|FILE.obj" and "of a .glb " from VKN_EXPORT_FORMATS. */
#define NO                 VKN_NO_FORMAT
#define OR_FILE(extension) "|FILE." #extension
#define A(extension)       "a ." #extension " "
#define OR_ENDS(extension) || ends_in(params->mesh, "." #extension)
#define TEXTURED           "of " VKN_EXPORT_FORMATS(NO, A, NO, NO, NO)
#define MESH_FILES         (&("" VKN_EXPORT_FORMATS(OR_FILE, NO, NO, NO, NO))[1])
#define POINT_FILES        (&("" VKN_EXPORT_FORMATS(NO, NO, OR_FILE, NO, NO))[1])
#define SPLAT_FILES        (&("" VKN_EXPORT_FORMATS(NO, NO, NO, OR_FILE, NO))[1])

/* ---- the command --------------------------------------------------------------------------- */

/* Prints numbers exactly. */
static void print_numbers(const double numbers[3], char between)
{
    char text[32];
    for (int i = 0; i < 3; i++) {
        cli_print_number(text, numbers[i]);
        printf("%s%.1s", text, i < 2 ? &between : "");
    }
}

/* Prints a box as an option, to the end of the line. */
static void print_crop(const double low[3], const double high[3], const double rotation[3])
{
    fputs("--crop ", stdout);
    print_numbers(low, ',');
    putchar(',');
    print_numbers(high, ',');
    if (rotation[0] != 0.0 || rotation[1] != 0.0 || rotation[2] != 0.0) {
        putchar(',');
        print_numbers(rotation, ',');
    }
    putchar('\n');
}

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);
    return length > size && strcasecmp(path + length - size, end) == 0;
}

/* Prints the unit of the files if it is known. */
static void print_unit(const struct vkn_export_params *params, double unit_length)
{
    char number[32];
    if (unit_length == 0 || !(params->mesh || params->points || params->splats))
        return;
    cli_print_number(number, unit_length);
    printf("positions are in metres; voxels, density and --crop are in units of the dataset, %s m "
           "each\n",
           number);
}

/* Prints the origin that the files' f32 positions are relative to, unless it is the dataset's. */
static void print_origin(const struct vkn_export_params *params,
                         const struct vkn_export_result *result)
{
    const double *origin = result->origin;
    bool is_local_mesh = params->mesh && (false VKN_EXPORT_FORMATS(NO, NO, NO, NO, OR_ENDS));
    if (!(is_local_mesh || params->splats) ||
        (origin[0] == 0.0 && origin[1] == 0.0 && origin[2] == 0.0))
        return;
    printf("%s%s%s: positions are relative to the origin ", is_local_mesh ? params->mesh : "",
           is_local_mesh && params->splats ? ", " : "", params->splats ? params->splats : "");
    print_numbers(origin, ' ');
    puts(result->unit_length > 0 ? ", in metres" : " of the dataset");
}

static void print_mesh(const struct vkn_export_params *params,
                       const struct vkn_export_result *result)
{
    size_t components = result->components - result->removed;
    printf("%s: %zu vertices, %zu triangles in %zu component%s", params->mesh, result->vertices,
           result->triangles, components, components == 1 ? "" : "s");
    if (result->removed > 0)
        printf(" (%zu removed)", result->removed);
    if (result->dropped > 0)
        printf(", without %zu vertices that no training view sees", result->dropped);
    char threshold[32];
    cli_print_number(threshold, result->threshold);
    printf("\n%u x %u x %u voxels of %.4g, surface at density %s%s", result->voxels[0],
           result->voxels[1], result->voxels[2], result->voxel, threshold,
           result->has_object ? "\n" : ", ");
    if (!result->has_object)
        print_crop(result->crop_low, result->crop_high, params->crop_rotation);
    if (result->texture)
        printf("texture of %u x %u pixels, %.3g along a voxel, in %zu chart%s\n", result->texture,
               result->texture, result->texture_density, result->charts,
               result->charts == 1 ? "" : "s");
}

static int print_result(const struct vkn_export_params *params,
                        const struct vkn_export_result *result, bool json)
{
    if (json)
        return cli_print_json(vkn_export_json(params, result));
    if (params->mesh)
        print_mesh(params, result);
    if (params->points)
        printf("%s: %zu points\n", params->points, result->points);
    if (params->splats)
        printf("%s: %zu splats\n", params->splats, result->splats);
    if (params->masks)
        printf("%s: masks that leave out %.1f %% of the images' area, in %u images\n",
               params->masks, 100 * result->masked_share, result->masked_views);
    if (result->has_object) {
        fputs("only the object that most training views look at (--all: everything): ", stdout);
        print_crop(result->object_low, result->object_high, (const double[3]){0});
    }
    print_unit(params, result->unit_length);
    print_origin(params, result);
    return cli_finish_output();
}

/* Values of options that are parsed later. */
struct texts {
    const char *threshold, *crop, *time, *min_component, *unit_length;
};

static int check(const struct texts *texts, struct vkn_export_params *params)
{
    int code = parse_positive("--threshold", texts->threshold, &params->threshold);
    if (code == OPTIONS_GO_ON)
        code =
            cli_parse_crop(texts->crop, params->crop_low, params->crop_high, params->crop_rotation);
    if (code == OPTIONS_GO_ON)
        code = cli_parse_time(texts->time, &params->has_time, &params->time);
    if (code == OPTIONS_GO_ON)
        code = parse_positive("--min-component", texts->min_component, &params->min_component);
    if (code == OPTIONS_GO_ON)
        code = parse_positive("--unit-length", texts->unit_length, &params->unit_length);
    if (code == OPTIONS_GO_ON && texts->crop && !params->object)
        code = cli_fail(VKN_BAD_INPUT, "export: --all and --crop exclude each other");
    if (code == OPTIONS_GO_ON && !params->mesh && !params->points && !params->splats &&
        !params->masks)
        code = cli_fail(VKN_BAD_INPUT, "export: --mesh FILE, --points FILE, --splats FILE or "
                                       "--masks FOLDER is missing; see vknerf export --help");
    return code;
}

static const char *const unseen[] = {"fill", "drop", "keep", NULL}; /* enum vkn_unseen */

static int parse(int argc, char **argv, struct vkn_export_params *params, struct vkn_job *job,
                 bool *json)
{
    struct texts texts = {0};
    const char *trust = NULL;
    bool all = false, progress = false;
    char usage[160];
    snprintf(
        usage, sizeof usage,
        "export RUN [--mesh %s]\n       [--points %s] [--splats %s] [--masks FOLDER] [OPTION ...]",
        MESH_FILES, POINT_FILES, SPLAT_FILES);
    const struct option options[] = {
        {OPTION("--mesh", MESH_FILES, TEXT, &params->mesh, "mesh file to write")},
        {OPTION("--texture", "SIZE", MAYBE_COUNT, &params->texture,
                "texture " TEXTURED "mesh, SIZE pixels along an edge; default as suits the mesh")},
        {OPTION("--resolution", "N", COUNT, &params->resolution,
                "voxels along the crop's longest edge; default 256")},
        {OPTION("--threshold", "SIGMA", TEXT, &texts.threshold,
                "density of the surface, per dataset unit; default: half is absorbed in 1/128 "
                "of the unit cube")},
        {OPTION("--crop", CLI_CROP, TEXT, &texts.crop,
                "box to export, in dataset units, rotated about its centre by degrees about x, "
                "then y, then z; default the object that most training views look at, if there "
                "is one")},
        {OPTION(
            "--unit-length", "METRES", TEXT, &texts.unit_length,
            "length of a dataset unit: positions are then in metres; default scene.unit_length, "
            "if it is known")},
        {OPTION("--all", NULL, FLAG, &all, "export everything that training views see")},
        CLI_TIME_OPTION(texts.time, "time of a dynamic scene, 0 to 1; default 0"),
        {OPTION("--unseen", "fill|drop|keep", CHOICE, &params->unseen,
                "regions that no training view sees: solid (default), left out, or as trained"),
         .choices = unseen},
        {OPTION("--min-component", "SHARE|VERTICES", TEXT, &texts.min_component,
                "remove connected components with fewer vertices")},
        {OPTION("--largest", NULL, FLAG, &params->largest,
                "keep only the largest connected component")},
        {OPTION("--points", POINT_FILES, TEXT, &params->points,
                "point cloud: where random rays of the training views end")},
        {OPTION("--splats", SPLAT_FILES, TEXT, &params->splats,
                "Gaussians at the same positions, in the layout of 3D Gaussian Splatting")},
        {OPTION("--masks", "FOLDER", TEXT, &params->masks,
                "masks of the training images: black where a training with loss.robust found "
                "what other images do not show")},
        {OPTION("--count", "N", COUNT, &params->point_count,
                "number of points and of splats; default 100000")},
        {OPTION("--seed", "N", COUNT, &params->seed, "seed of the random rays; default 0")},
        CLI_PRECISION_OPTION(params->precision),
        CLI_SCENE_OPTIONS(params->scene, params->format),
        CLI_TRUST_OPTION(trust),
        {OPTION("--json", NULL, FLAG, json, "print the result as one JSON object")},
        CLI_PROGRESS_OPTION(progress),
        CLI_JOB_OPTIONS(*job),
    };
    const struct options_command command = {
        .name = "export",
        .usage = usage,
        .summary =
            "Writes the surface of RUN, a run directory or a checkpoint, as a closed mesh,\n"
            "as points or as splats, with normals and colours, in the dataset's coordinates, or\n"
            "in metres if the length of a dataset unit is known.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "RUN",
        .argument_required = true,
    };
    int code = options_parse(&command, argc, argv, &params->run);
    params->object = !all;
    job->progress = progress ? cli_print_progress : NULL;
    if (code == OPTIONS_GO_ON)
        code = check(&texts, params);
    return code == OPTIONS_GO_ON ? cli_trust(trust, params->run) : code;
}

int cmd_export(int argc, char **argv)
{
    struct vkn_job job = {.size = sizeof job, .stop = &cli_stop};
    struct vkn_export_params params = {.size = sizeof params, .job = &job};
    bool json = false;
    int code = parse(argc, argv, &params, &job, &json);
    if (code != OPTIONS_GO_ON)
        return code;
    vkn_log_quiet(params.job->quiet);
    struct vkn_export_result result = {.size = sizeof result};
    vkn_status status = vkn_run_export(&params, &result);
    return status == VKN_OK ? print_result(&params, &result, json) : cli_status(status);
}
