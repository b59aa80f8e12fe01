/* Run directories: finding, choosing, preparing. */
#include "train/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "train/checkpoint.h"
#include "train/internal.h"

/* ---- reading ------------------------------------------------------------------------------- */

vkn_status run_find_checkpoint(const char *run, char **checkpoint)
{
    bool folder = base_is_folder(run);
    *checkpoint = folder ? base_path_join(run, RUN_CHECKPOINT) : base_format("%s", run);
    if (!*checkpoint)
        return VKN_ERROR;
    if (base_file_exists(*checkpoint))
        return VKN_OK;
    free(*checkpoint);
    *checkpoint = NULL;
    return base_fail(VKN_BAD_INPUT,
                     folder ? "%s: no run directory: there is no " RUN_CHECKPOINT
                            : "%s: neither a run directory nor a checkpoint is there",
                     run);
}

static vkn_status read_metadata(const char *path, const struct safetensors_file *file,
                                struct vkn_config *config, char **scene)
{
    const char *json = safetensors_metadata_value(file, CHECKPOINT_CONFIG);
    const char *scene_path = safetensors_metadata_value(file, CHECKPOINT_SCENE);
    if (!json || !scene_path)
        return base_fail(VKN_BAD_INPUT, "%s: %s: missing", path,
                         json ? CHECKPOINT_SCENE : CHECKPOINT_CONFIG);
    *config = (struct vkn_config){0};
    BASE_TRY(vkn_config_parse_json(config, path, json, true));
    if (!scene)
        return VKN_OK;
    *scene = checkpoint_scene(file);
    return *scene ? VKN_OK : VKN_ERROR;
}

vkn_status run_read_checkpoint(const char *checkpoint, struct vkn_config *config, char **scene)
{
    struct safetensors_file *file = NULL;
    BASE_TRY(checkpoint_open(checkpoint, &file));
    vkn_status status = read_metadata(checkpoint, file, config, scene);
    safetensors_close(&file);
    return status;
}

vkn_status vkn_run_config(const char *run, struct vkn_config *config)
{
    BASE_C_LOCALE;
    char *checkpoint = NULL;
    BASE_TRY(run_find_checkpoint(run, &checkpoint));
    vkn_status status = run_read_checkpoint(checkpoint, config, NULL);
    free(checkpoint);
    return status;
}

/* ---- choosing ------------------------------------------------------------------------------ */

char *run_absolute_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    return resolved ? resolved : base_format("%s", path);
}

/* The last part of the scene's path; for a file that of its folder. */
static char *scene_name(const char *scene)
{
    char *path = run_absolute_path(scene);
    if (path && base_file_exists(path)) {
        char *folder = base_path_folder(path);
        free(path);
        path = folder;
    }
    const char *slash = path ? strrchr(path, '/') : NULL;
    char *name = path ? base_format("%s", slash ? slash + 1 : path) : NULL;
    free(path);
    return name;
}

static char *default_folder(const char *scene)
{
    char *name = scene_name(scene), when[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local);
    char *folder = name ? base_format("runs/%s-%s", name[0] ? name : "scene", when) : NULL;
    free(name);
    return folder;
}

/* A folder itself, the folder of a checkpoint file. */
static char *folder_of_run(const char *run)
{
    return base_is_folder(run) ? base_format("%s", run) : base_path_folder(run);
}

static vkn_status refuse_other_run(const struct vkn_train_params *params, const char *folder)
{
    char *checkpoint = base_path_join(folder, RUN_CHECKPOINT);
    if (!checkpoint)
        return VKN_ERROR;
    bool taken = base_file_exists(checkpoint), same = false;
    free(checkpoint);
    if (params->resume) {
        char *from = folder_of_run(params->resume);
        char *a = from ? run_absolute_path(from) : NULL, *b = run_absolute_path(folder);
        same = a && b && strcmp(a, b) == 0;
        free(from);
        free(a);
        free(b);
    }
    if (!taken || same || params->overwrite)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: holds a run already; go on with --resume %s, or name another", folder,
                     folder);
}

vkn_status run_choose_folder(const struct vkn_train_params *params, const char *scene,
                             char **folder)
{
    *folder = params->out      ? base_format("%s", params->out)
              : params->resume ? folder_of_run(params->resume)
                               : default_folder(scene);
    return *folder ? refuse_other_run(params, *folder) : VKN_ERROR;
}

vkn_status run_prepare_folder(const char *folder, bool *made)
{
    *made = !base_is_folder(folder);
    BASE_TRY(base_make_folder(folder));
    char *probe = base_path_join(folder, RUN_CONFIG);
    if (!probe)
        return VKN_ERROR;
    struct base_file_writer writer;
    vkn_status status = base_file_begin(&writer, probe);
    if (status == VKN_OK)
        base_file_abort(&writer);
    free(probe);
    if (status != VKN_OK && *made)
        rmdir(folder);
    return status;
}
