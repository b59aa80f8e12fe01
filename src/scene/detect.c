/* Detects the format of a scene: the first format of the list whose files exist. */
#include "scene/detect.h"

#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "scene/reader.h"

#define READER(enumerator, name) [enumerator] = &scene_reader_##name,
static const struct scene_reader *const readers[] = {VKN_SCENE_FORMATS(READER)};
#undef READER

const struct scene_reader *reader_of(enum vkn_scene_format format)
{
    return readers[format];
}

/* ---- folders --------------------------------------------------------------------------------- */

/* The scene found in a folder. */
struct found {
    enum vkn_scene_format format;
    char *file;   /* file to read; NULL: none */
    char *others; /* from scene_reader.find */
};

static vkn_status fail_no_format(const char *folder)
{
    struct base_text expected = {0};
    BASE_TRY(refuse_folder(folder));
    for (size_t i = VKN_SCENE_AUTO + 1; i < BASE_COUNT(readers); i++)
        base_text_add(&expected, "%s%s", expected.size > 0 ? "; " : "", readers[i]->looked_for);
    vkn_status status = expected.failed
                            ? VKN_ERROR
                            : base_fail(VKN_BAD_INPUT, "%s: no scene in this folder (none of %s)",
                                        folder, expected.data);
    free(expected.data);
    return status;
}

static vkn_status fail_not_found(const char *folder, enum vkn_scene_format requested)
{
    if (requested == VKN_SCENE_AUTO)
        return fail_no_format(folder);
    return base_fail(
        VKN_BAD_INPUT,
        "%s: no scene of the format %s in this folder (%s): see --format (scene.format)", folder,
        config_scene_format_names[requested], readers[requested]->looked_for);
}

static vkn_status detect(const char *folder, enum vkn_scene_format requested, struct found *found)
{
    for (size_t i = VKN_SCENE_AUTO + 1; i < BASE_COUNT(readers) && found->file == NULL; i++) {
        if (requested != VKN_SCENE_AUTO && requested != i)
            continue;
        found->format = (enum vkn_scene_format)i;
        BASE_TRY(readers[i]->find(folder, &found->file, &found->others));
    }
    return found->file != NULL ? VKN_OK : fail_not_found(folder, requested);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Returns the format by the file name's ending. Unknown endings are read as transforms.json, whose
 * reader reports the problem. */
static enum vkn_scene_format format_of(const char *path)
{
    for (size_t i = VKN_SCENE_AUTO + 1; i < BASE_COUNT(readers); i++)
        if (readers[i]->ending != NULL && reader_ends_with(path, readers[i]->ending))
            return (enum vkn_scene_format)i;
    return VKN_SCENE_TRANSFORMS;
}

static vkn_status detect_file(const char *path, enum vkn_scene_format requested,
                              struct found *found)
{
    BASE_TRY(refuse_file(path));
    found->format = format_of(path);
    if (requested != VKN_SCENE_AUTO && requested != found->format && !base_file_exists(path))
        return base_fail(VKN_BAD_INPUT, "%s: there is no such file or folder", path);
    if (requested != VKN_SCENE_AUTO && requested != found->format)
        return base_fail(VKN_BAD_INPUT, "%s: this file is not a scene in the format %s", path,
                         config_scene_format_names[requested]);
    found->file = base_format("%s", path);
    return found->file != NULL ? VKN_OK : VKN_ERROR;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Moves the message about several models to `findings`; logs it when `findings` is NULL. */
static void report_others(const char *path, struct found *found, struct scene_findings *findings)
{
    if (found->others == NULL)
        return;
    if (findings == NULL) {
        base_log(BASE_LOG_WARNING, "%s: several sparse models: %s", path, found->others);
        return;
    }
    free(findings->others);
    findings->others = found->others;
    found->others = NULL;
}

vkn_status detect_and_read(struct vkn_scene *scene, const struct scene_options *options,
                           struct transforms files[SCENE_SPLITS], bool *single)
{
    struct found found = {0};
    vkn_status status = (base_is_folder(options->path) ? detect : detect_file)(
        options->path, options->format, &found);
    scene->format = found.format;
    if (status == VKN_OK) {
        report_others(options->path, &found, options->findings);
        status = readers[found.format]->read(found.file, options, files, single);
    }
    scene->file = found.file;
    free(found.others);
    return status;
}
