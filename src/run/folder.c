/* Finds, chooses and prepares run directories. */
#include "run/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "step/step.h"
#include "scene/scene.h"

/* ---- reading ------------------------------------------------------------------------------- */

vkn_status run_find_checkpoint(const char *run, char **checkpoint)
{
    bool is_folder = base_is_folder(run);
    *checkpoint = is_folder ? base_path_join(run, RUN_CHECKPOINT) : base_format("%s", run);
    if (!*checkpoint)
        return VKN_ERROR;
    if (base_file_exists(*checkpoint))
        return VKN_OK;
    free(*checkpoint);
    *checkpoint = NULL;
    return base_fail(VKN_BAD_INPUT,
                     is_folder ? "%s: not a run directory: it has no " RUN_CHECKPOINT
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

static struct run_reached read_reached(const struct safetensors_file *file)
{
    const char *step = safetensors_metadata_value(file, CHECKPOINT_STEP);
    const char *seconds = safetensors_metadata_value(file, CHECKPOINT_SECONDS);
    return (struct run_reached){
        .step = step ? strtoull(step, NULL, 10) : 0,
        .seconds = seconds ? strtod(seconds, NULL) : 0.0,
    };
}

vkn_status run_read_checkpoint(const char *checkpoint, struct vkn_config *config, char **scene,
                               struct run_reached *reached)
{
    struct safetensors_file *file = NULL;
    BASE_TRY(checkpoint_open(checkpoint, &file));
    if (reached)
        *reached = read_reached(file);
    vkn_status status = read_metadata(checkpoint, file, config, scene);
    safetensors_close(&file);
    return status;
}

vkn_status vkn_run_config(const char *run, struct vkn_config *config)
{
    BASE_C_LOCALE;
    BASE_NEED(run);
    BASE_NEED(config);
    char *checkpoint = NULL;
    BASE_TRY(run_find_checkpoint(run, &checkpoint));
    vkn_status status = run_read_checkpoint(checkpoint, config, NULL, NULL);
    free(checkpoint);
    return status;
}

vkn_status run_open_scene(const char *given, const char *recorded, const struct vkn_config *config,
                          struct vkn_scene **scene)
{
    vkn_status status = vkn_scene_open(given ? given : recorded, config, scene);
    if (given || status != VKN_BAD_INPUT)
        return status;
    char *reason = base_format("%.800s", vkn_last_error());
    if (!reason)
        return VKN_ERROR;
    base_fail(status,
              "%s; the run was trained on the scene at %.150s: name the folder where it is now "
              "with --scene (`scene` of the parameters)",
              reason, recorded);
    free(reason);
    return status;
}

/* ---- choosing ------------------------------------------------------------------------------ */

char *run_absolute_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    return resolved ? resolved : base_format("%s", path);
}

/* Returns the folder that names a scene: a file's folder, or CAPTURE for a sparse model in
 * CAPTURE/sparse/1. NULL without memory. */
static char *scene_folder(const char *scene)
{
    char *path = run_absolute_path(scene), *folder = NULL;
    if (path && base_file_exists(path))
        folder = base_path_folder(path);
    else if (path && base_is_folder(path))
        (void)scene_capture_folder(path, &folder);
    else
        return path;
    free(path);
    return folder;
}

/* Returns the last component of the path of the scene's folder. */
static char *scene_name(const char *scene)
{
    char *path = scene_folder(scene);
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

static bool is_default(const struct vkn_train_params *params)
{
    return !params->out && !params->resume;
}

/* Returns the folder of a run, or of a checkpoint file. */
static char *folder_of_run(const char *run)
{
    return base_is_folder(run) ? base_format("%s", run) : base_path_folder(run);
}

static vkn_status refuse_other_run(const struct vkn_train_params *params, const char *folder)
{
    char *checkpoint = base_path_join(folder, RUN_CHECKPOINT);
    if (!checkpoint)
        return VKN_ERROR;
    bool taken = false, same = false;
    vkn_status status = base_file_find(checkpoint, &taken);
    free(checkpoint);
    if (status != VKN_OK)
        return status;
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
                             char **folder, struct run_lock *lock)
{
    *folder = params->out      ? base_format("%s", params->out)
              : params->resume ? folder_of_run(params->resume)
                               : default_folder(scene);
    if (!*folder)
        return VKN_ERROR;
    if (is_default(params) || !base_is_folder(*folder))
        return VKN_OK;
    BASE_TRY(run_lock_take(*folder, lock));
    return refuse_other_run(params, *folder);
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* Makes a new folder. If another run has begun within the same second and so has the same default
 * name, appends a number. */
static vkn_status make_new_folder(char **folder)
{
    char *name = *folder, *parent = base_path_folder(name);
    vkn_status status = parent ? base_make_folder(parent) : VKN_ERROR;
    for (unsigned number = 2; status == VKN_OK && mkdir(*folder, 0777) != 0; number++) {
        if (errno != EEXIST) {
            status = base_fail(base_status_of_errno(errno), "%s: cannot make this folder: %s",
                               *folder, strerror(errno));
            break;
        }
        if (*folder != name)
            free(*folder);
        *folder = base_format("%s-%u", name, number);
        status = *folder ? VKN_OK : VKN_ERROR;
    }
    if (*folder != name)
        free(name);
    free(parent);
    return status;
}

/* Checks that the folder is writable before the device is opened and the first file is written. */
static vkn_status try_writing(const char *folder)
{
    char *probe = base_path_join(folder, RUN_CONFIG);
    if (!probe)
        return VKN_ERROR;
    struct base_file_writer writer;
    vkn_status status = base_file_begin(&writer, probe);
    if (status == VKN_OK)
        base_file_abort(&writer);
    free(probe);
    return status;
}

/* Locks a folder that was just made, and checks that no other process has trained into it since. */
static vkn_status lock_made(const struct vkn_train_params *params, const char *folder,
                            struct run_lock *lock)
{
    if (lock->path)
        return VKN_OK;
    BASE_TRY(run_lock_take(folder, lock));
    return refuse_other_run(params, folder);
}

vkn_status run_prepare_folder(const struct vkn_train_params *params, char **folder,
                              struct run_lock *lock, bool *made)
{
    bool is_new = is_default(params);
    *made = is_new || !base_is_folder(*folder);
    vkn_status status = is_new ? make_new_folder(folder) : base_make_last_folder(*folder);
    if (status != VKN_OK)
        return status;
    status = lock_made(params, *folder, lock);
    return status == VKN_OK ? try_writing(*folder) : status;
}
