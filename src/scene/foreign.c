/* Finds captures that other programs wrote with poses, which vknerf prepare converts. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "scene/scene.h"

#define HEAD ((size_t)4096) /* bytes of a file that show its format */

const char *const scene_program_names[SCENE_PROGRAMS] = {
    [SCENE_METASHAPE] = "Metashape", [SCENE_REALITYCAPTURE] = "RealityCapture",
    [SCENE_POLYCAM] = "Polycam",     [SCENE_RECORD3D] = "Record3D",
    [SCENE_OPENSFM] = "OpenSfM",     [SCENE_OPF] = "Pix4D (OPF)",
};

/* ---- one file -------------------------------------------------------------------------------- */

static bool is_metashape(const char *head)
{
    const char *document = strstr(head, "<document");
    return document != NULL && strstr(document, "<chunk") != NULL;
}

/* Returns whether a table has a row of column names like "#name,x,y,alt,heading,...", which a row
 * "#cameras 24" may precede. */
static bool is_realitycapture(const char *head)
{
    if (strncmp(head, "#cameras", strlen("#cameras")) == 0)
        head += strcspn(head, "\n") + (strchr(head, '\n') != NULL ? 1 : 0);
    return strncmp(head, "#name,", strlen("#name,")) == 0 ||
           strncmp(head, "#name;", strlen("#name;")) == 0; /* the reader refuses semicolons */
}

/* Sets *is to whether the beginning of a file passes a test. Unreadable files do not. */
static vkn_status test_head(const char *path, bool (*test)(const char *head), bool *is)
{
    char head[HEAD + 1] = {0};
    size_t size = 0;
    vkn_status status = base_file_read_beginning(path, head, HEAD, &size, NULL);
    size_t mark = strncmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *is = status == VKN_OK && test(head + mark);
    return status == VKN_BAD_INPUT ? VKN_OK : status;
}

/* Sets *has to whether there is a folder of Record3D's pictures beside the file. */
static vkn_status find_rgb(const char *path, bool *has)
{
    char *folder = base_path_folder(path);
    char *rgb = folder != NULL ? base_path_join(folder, "rgb") : NULL;
    vkn_status status = rgb != NULL ? VKN_OK : VKN_ERROR;
    *has = rgb != NULL && base_is_folder(rgb);
    free(folder);
    free(rgb);
    return status;
}

static vkn_status program_of_file(const char *path, enum scene_program *program)
{
    const char *name = base_path_name(path), *dot = strrchr(name, '.');
    bool is = false;
    *program = SCENE_NO_PROGRAM;
    if (dot == NULL)
        return VKN_OK;
    if (strcasecmp(dot, ".opf") == 0) {
        *program = SCENE_OPF;
    } else if (strcmp(name, "reconstruction.json") == 0) {
        *program = SCENE_OPENSFM;
    } else if (strcmp(name, "metadata.json") == 0) {
        BASE_TRY(find_rgb(path, &is));
        *program = is ? SCENE_RECORD3D : SCENE_NO_PROGRAM;
    } else if (strcasecmp(dot, ".xml") == 0) {
        BASE_TRY(test_head(path, is_metashape, &is));
        *program = is ? SCENE_METASHAPE : SCENE_NO_PROGRAM;
    } else if (strcasecmp(dot, ".csv") == 0) {
        BASE_TRY(test_head(path, is_realitycapture, &is));
        *program = is ? SCENE_REALITYCAPTURE : SCENE_NO_PROGRAM;
    }
    return VKN_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* The capture found in a folder, and another one, which makes the choice ambiguous. */
struct search {
    const char *folder;
    enum scene_program program;
    char *file, *other;
};

static void keep(struct search *search, enum scene_program program, char *path)
{
    if (search->file == NULL) {
        search->program = program;
        search->file = path;
        return;
    }
    free(search->other);
    search->other = path;
}

static vkn_status try_entry(struct search *search, const char *name)
{
    enum scene_program program = SCENE_NO_PROGRAM;
    char *path = base_path_join(search->folder, name);
    vkn_status status = path != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && name[0] != '.' && base_file_exists(path) && !base_is_folder(path))
        status = program_of_file(path, &program);
    if (program != SCENE_NO_PROGRAM)
        keep(search, program, path);
    else
        free(path);
    return status;
}

static vkn_status try_entries(struct search *search)
{
    struct dirent **entries = NULL;
    int count = scandir(search->folder, &entries, NULL, alphasort);
    vkn_status status = VKN_OK;
    for (int i = 0; i < count; i++) {
        if (status == VKN_OK)
            status = try_entry(search, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Finds Polycam's folder of cameras; corrected ones take precedence. */
static vkn_status try_polycam(struct search *search)
{
    static const char *const names[] = {"keyframes/corrected_cameras", "keyframes/cameras"};
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        char *path = base_path_join(search->folder, names[i]);
        if (path == NULL)
            return VKN_ERROR;
        if (base_is_folder(path)) {
            keep(search, SCENE_POLYCAM, path);
            return VKN_OK;
        }
        free(path);
    }
    return VKN_OK;
}

static vkn_status find_in_folder(struct search *search)
{
    BASE_TRY(try_entries(search));
    BASE_TRY(try_entry(search, "opensfm/reconstruction.json"));
    BASE_TRY(try_entry(search, "EXR_RGBD/metadata.json"));
    BASE_TRY(try_polycam(search));
    return search->other == NULL
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT,
                           "%s: several captures with poses, %s and %s: name the file of one of "
                           "them, or the folder of the photographs to compute new poses",
                           search->folder, base_path_name(search->file),
                           base_path_name(search->other));
}

vkn_status scene_find_program(const char *path, enum scene_program *program, char **file)
{
    struct search search = {.folder = path};
    vkn_status status = VKN_OK;
    if (base_is_folder(path)) {
        status = find_in_folder(&search);
    } else {
        status = program_of_file(path, &search.program);
        if (status == VKN_OK && search.program != SCENE_NO_PROGRAM) {
            search.file = base_format("%s", path);
            status = search.file != NULL ? VKN_OK : VKN_ERROR;
        }
    }
    free(search.other);
    if (status != VKN_OK) {
        free(search.file);
        search.file = NULL;
    }
    *file = search.file;
    *program = search.file != NULL ? search.program : SCENE_NO_PROGRAM;
    return status;
}
