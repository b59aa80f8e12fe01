/* Converts captures of other programs: recognises and reads them. */
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

static vkn_status (*const readers[SCENE_PROGRAMS])(struct import *import) = {
    [SCENE_METASHAPE] = import_metashape, [SCENE_REALITYCAPTURE] = import_realitycapture,
    [SCENE_POLYCAM] = import_polycam,     [SCENE_RECORD3D] = import_record3d,
    [SCENE_OPENSFM] = import_opensfm,     [SCENE_OPF] = import_opf,
};

/* Sets the folder of the capture, which is searched for pictures unless a reader sets another. */
static vkn_status set_folders(struct import *import, const char *given)
{
    import->folder =
        base_is_folder(given) ? base_format("%s", given) : base_path_folder(import->file);
    if (import->folder == NULL)
        return VKN_ERROR;
    import->pictures = base_format("%s", import->folder);
    return import->pictures != NULL ? VKN_OK : VKN_ERROR;
}

/* Refuses parameters that have no effect on captures with poses. */
static vkn_status check_params(const struct vkn_prepare_params *params, const struct import *import)
{
    const char *name = params->matcher != VKN_MATCHER_AUTO             ? "matcher"
                       : params->camera_model != VKN_CAMERA_MODEL_AUTO ? "camera_model"
                       : params->equirectangular                       ? "equirectangular"
                                                                       : NULL;
    if (name == NULL)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: not used, because %s has the poses and lenses; to compute others, name a "
                     "folder with the photographs alone",
                     name, import->file);
}

static vkn_status warn_unread(const struct import *import)
{
    if (import->unread.size > 0)
        base_log(BASE_LOG_WARNING, "%s: not read: %s%s", import->file, import->unread.data,
                 import->unread_count > 16 ? " and others" : "");
    return import->unread.failed || import->points.failed ? VKN_ERROR : VKN_OK;
}

static vkn_status read_capture(struct import *import, const struct vkn_prepare_params *params)
{
    BASE_TRY(set_folders(import, params->pictures));
    BASE_TRY(check_params(params, import));
    BASE_TRY(readers[import->program](import));
    base_log(BASE_LOG_INFO, "%s: a capture of %s; its poses are kept, and COLMAP is not run",
             import->file, scene_program_names[import->program]);
    return warn_unread(import);
}

vkn_status import_open(struct preparation *preparation)
{
    enum scene_program program = SCENE_NO_PROGRAM;
    char *file = NULL;
    BASE_TRY(scene_find_program(preparation->params->pictures, &program, &file));
    if (file == NULL)
        return VKN_OK;
    struct import *import = base_alloc(1, sizeof(*import));
    if (import == NULL) {
        free(file);
        return VKN_ERROR;
    }
    import->program = program;
    import->file = file;
    preparation->import = import;
    return read_capture(import, preparation->params);
}

void import_close(struct import **pointer)
{
    struct import *import = *pointer;
    if (import == NULL)
        return;
    for (size_t i = 0; i < import->lens_count; i++)
        free(import->lenses[i].key);
    for (size_t i = 0; i < import->frame_count; i++) {
        free(import->frames[i].name);
        free(import->frames[i].depth);
        free(import->frames[i].confidence);
    }
    free(import->lenses);
    free(import->frames);
    free(import->file);
    free(import->folder);
    free(import->pictures);
    free(import->first_unposed);
    free(import->cloud);
    free(import->points.data);
    free(import->unread.data);
    free(import);
    *pointer = NULL;
}
