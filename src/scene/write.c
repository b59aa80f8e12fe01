/* Writes a copy of a scene with other cameras: the files with cameras, and links to everything
 * else. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scene/image.h"
#include "scene/reader.h"

/* ---- folders --------------------------------------------------------------------------------- */

/* A copy of a scene. Names of its entries are relative to `from` and `to`. */
struct copy {
    char *from; /* absolute path of the scene's folder */
    char *to;   /* absolute path of the folder `out` */
    char *part; /* folder of the scene's file, relative to `from`; "": the same */
    struct stat out;
    struct write_files files;
};

static void free_copy(struct copy *copy)
{
    for (size_t i = 0; i < copy->files.count; i++) {
        free(copy->files.items[i].name);
        free(copy->files.items[i].text.data);
    }
    free(copy->files.items);
    free(copy->from);
    free(copy->to);
    free(copy->part);
}

static vkn_status fail_path(const char *path)
{
    return base_fail(base_status_of_errno(errno), "%s: %s", path, strerror(errno));
}

static vkn_status resolve(const char *path, char **absolute)
{
    *absolute = realpath(path, NULL);
    return *absolute != NULL ? VKN_OK : fail_path(path);
}

static const char *skip_slashes(const char *path)
{
    return path + strspn(path, "/");
}

/* Sets copy->part: the path from the scene's folder to `folder`, the user's, and on to the folder
 * of `file`, whose name begins with `folder`. */
static vkn_status find_part(const char *file, const char *folder, struct copy *copy)
{
    char *absolute = NULL, *end = base_path_folder(file);
    vkn_status status = end != NULL ? resolve(folder, &absolute) : VKN_ERROR;
    if (status == VKN_OK) {
        size_t size = strlen(folder), length = strlen(end);
        copy->part = base_path_join(skip_slashes(absolute + strlen(copy->from)),
                                    skip_slashes(length > size ? end + size : ""));
        status = copy->part != NULL ? VKN_OK : VKN_ERROR;
    }
    free(absolute);
    free(end);
    return status;
}

/* Finds all folders. The scene's folder is that of the file, or of a COLMAP model's capture. */
static vkn_status find_folders(const struct vkn_scene *scene, const char *out, struct copy *copy)
{
    bool is_folder = base_is_folder(scene->path);
    char *folder = is_folder ? base_format("%s", scene->path) : base_path_folder(scene->path);
    char *capture = NULL;
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && scene->format == VKN_SCENE_COLMAP)
        status = scene_capture_folder(folder, &capture);
    if (status == VKN_OK)
        status = resolve(capture != NULL ? capture : folder, &copy->from);
    if (status == VKN_OK)
        status = find_part(scene->file, folder, copy);
    if (status == VKN_OK)
        status = resolve(out, &copy->to);
    if (status == VKN_OK && stat(out, &copy->out) != 0)
        status = fail_path(out);
    free(capture);
    free(folder);
    return status;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Returns whether a path lies in a folder. */
static bool is_inside(const char *folder, const char *path)
{
    size_t size = strlen(folder);
    return strncmp(folder, path, size) == 0 && path[size] == '/';
}

enum entry_kind { ENTRY_LINK, ENTRY_FOLDER, ENTRY_NONE };

/* Returns what becomes of an entry of the scene's folder: a link; a folder, when one of its files
 * is written or `out` is in it; or nothing, when it is `out`, written or left out. */
static enum entry_kind classify(const struct copy *copy, const char *name, const char *path)
{
    struct stat status;
    enum entry_kind kind = is_inside(path, copy->to) ? ENTRY_FOLDER : ENTRY_LINK;
    if (stat(path, &status) == 0 && status.st_dev == copy->out.st_dev &&
        status.st_ino == copy->out.st_ino)
        kind = ENTRY_NONE;
    for (size_t i = 0; i < copy->files.count; i++) {
        const char *file = copy->files.items[i].name;
        if (strcmp(file, name) == 0)
            kind = ENTRY_NONE;
        else if (is_inside(name, file))
            kind = ENTRY_FOLDER;
    }
    return kind;
}

/* Checks that nothing is at `to`, or only a folder. */
static vkn_status check_free(const char *to, bool is_folder)
{
    struct stat status;
    if (lstat(to, &status) != 0)
        return errno == ENOENT ? VKN_OK : fail_path(to);
    if (is_folder && S_ISDIR(status.st_mode))
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: it exists already", to);
}

/* Makes a link, unless `out` has a folder of this name. */
static vkn_status link_entry(const char *path, const char *to)
{
    struct stat existing;
    if (lstat(to, &existing) == 0)
        return VKN_OK;                   /* place_entry has checked it */
    char *target = realpath(path, NULL); /* does not depend on links of other copies */
    vkn_status status = VKN_OK;
    if (target == NULL ? errno != ENOENT : symlink(target, to) != 0)
        status = fail_path(target == NULL ? path : to);
    free(target);
    return status;
}

static vkn_status link_folder(const struct copy *copy, const char *name, bool only_checks);

/* Links an entry, or makes the folder and links its entries; or checks that this is possible. */
static vkn_status place_entry(const struct copy *copy, const char *name, bool only_checks)
{
    enum entry_kind kind = ENTRY_NONE;
    char *path = base_path_join(copy->from, name), *to = base_path_join(copy->to, name);
    vkn_status status = path != NULL && to != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        kind = classify(copy, name, path);
    if (status == VKN_OK && kind != ENTRY_NONE && only_checks)
        status = check_free(to, true);
    if (status == VKN_OK && kind == ENTRY_LINK && !only_checks)
        status = link_entry(path, to);
    if (status == VKN_OK && kind == ENTRY_FOLDER && !only_checks)
        status = base_make_folder(to);
    if (status == VKN_OK && kind == ENTRY_FOLDER)
        status = link_folder(copy, name, only_checks);
    free(path);
    free(to);
    return status;
}

/* Places the entries of a folder of the scene. */
static vkn_status link_folder(const struct copy *copy, const char *name, bool only_checks)
{
    char *path = base_path_join(copy->from, name);
    DIR *stream = path != NULL ? opendir(path) : NULL;
    vkn_status status = stream != NULL ? VKN_OK : path != NULL ? fail_path(path) : VKN_ERROR;
    for (struct dirent *entry; status == VKN_OK && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char *inner = base_path_join(name, entry->d_name);
        status = inner != NULL ? place_entry(copy, inner, only_checks) : VKN_ERROR;
        free(inner);
    }
    if (stream != NULL)
        closedir(stream);
    free(path);
    return status;
}

/* ---- the copy -------------------------------------------------------------------------------- */

/* Writes a file, or checks that this is possible. */
static vkn_status place_file(const struct copy *copy, const struct write_file *file,
                             bool only_checks)
{
    char *to = base_path_join(copy->to, file->name);
    vkn_status status = to != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && only_checks)
        status = check_free(to, false);
    else if (status == VKN_OK && !file->is_left_out)
        status = base_file_replace(to, file->text.data, file->text.size);
    free(to);
    return status;
}

static vkn_status place(const struct copy *copy, bool only_checks)
{
    BASE_TRY(link_folder(copy, "", only_checks));
    for (size_t i = 0; i < copy->files.count; i++)
        BASE_TRY(place_file(copy, &copy->files.items[i], only_checks));
    return VKN_OK;
}

/* Makes the names of the files relative to the scene's folder. */
static vkn_status complete_names(struct copy *copy)
{
    for (size_t i = 0; i < copy->files.count; i++) {
        char **name = &copy->files.items[i].name;
        char *complete = base_path_join(copy->part, *name);
        if (complete == NULL)
            return VKN_ERROR;
        free(*name);
        *name = complete;
    }
    return VKN_OK;
}

/* ---- new cameras ----------------------------------------------------------------------------- */

/* Finds the view of a frame; NULL: there is none. */
static const struct scene_camera *find_camera(const struct vkn_scene *scene, uint32_t file,
                                              uint32_t frame)
{
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        for (size_t i = 0; i < scene->splits[split].camera_count; i++) {
            const struct scene_camera *camera = &scene->splits[split].cameras[i];
            if (camera->file == file && camera->frame == frame)
                return camera;
        }
    return NULL;
}

/* Sets the size of an image, before the scene's downscale, as its lens sees it. */
static vkn_status measure(const struct vkn_scene *scene, const struct scene_camera *camera,
                          double size[2])
{
    struct image_header header;
    double factor = (double)scene->downscale / scene->load_downscale;
    BASE_TRY(image_measure(camera->image_path, &header));
    int across = camera->applied_orientation >= IMAGE_FIRST_TRANSPOSED ? 1 : 0;
    size[across] = header.width * factor;
    size[1 - across] = header.height * factor;
    return VKN_OK;
}

/* Copies and checks the lens of a new camera. `where` begins messages. */
static vkn_status set_lens(const struct vkn_scene *scene, const struct scene_new_camera *given,
                           const char *where, struct write_view *view)
{
    const struct scene_camera *camera = find_camera(scene, given->file, given->frame);
    if (camera == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: it has a lens, but no view is frame %u of file %u",
                         where, given->frame, given->file);
    view->has_lens = true;
    view->lens = lens_none;
    view->lens.kind = camera->lens;
    memcpy(view->lens.focal, given->focal, sizeof(given->focal));
    memcpy(view->lens.center, given->center, sizeof(given->center));
    memcpy(view->lens.distortion, given->distortion, sizeof(given->distortion));
    BASE_TRY(lens_check(&view->lens, where));
    return measure(scene, camera, view->lens.size);
}

static vkn_status check_view(const struct vkn_scene *scene, const struct scene_new_camera *given,
                             const char *where, struct write_view *view)
{
    double rows[3][4];
    memcpy(rows, given->pose, sizeof(rows));
    *view = (struct write_view){.file = given->file, .frame = given->frame};
    const char *problem = scene_pose_from_rows((const double(*)[4])rows, view->pose);
    if (problem != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: %s", where, problem);
    return given->has_lens ? set_lens(scene, given, where, view) : VKN_OK;
}

/* Returns the new cameras as readers write them; NULL after a failure. */
static struct write_view *check_views(const struct vkn_scene *scene,
                                      const struct scene_new_camera *cameras, size_t count,
                                      vkn_status *status)
{
    struct write_view *views = base_alloc(count, sizeof(*views));
    *status = views != NULL ? VKN_OK : VKN_ERROR;
    for (size_t i = 0; i < count && *status == VKN_OK; i++) {
        char *where = base_format("%s: new camera %zu", scene->path, i);
        *status = where != NULL ? check_view(scene, &cameras[i], where, &views[i]) : VKN_ERROR;
        free(where);
    }
    return views;
}

/* ---- the module ------------------------------------------------------------------------------ */

vkn_status scene_write(const struct vkn_scene *scene, const struct scene_new_camera *cameras,
                       size_t count, const char *out, bool again)
{
    BASE_C_LOCALE;
    struct copy copy = {.from = NULL};
    vkn_status status = VKN_OK;
    if (scene->file == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: a scene in memory has no files to copy", scene->path);
    struct write_view *views = check_views(scene, cameras, count, &status);
    if (status == VKN_OK)
        status = find_folders(scene, out, &copy);
    if (status == VKN_OK)
        status = reader_of(scene->format)->write(scene->file, views, count, &copy.files);
    if (status == VKN_OK)
        status = complete_names(&copy);
    if (status == VKN_OK && !again)
        status = place(&copy, true);
    if (status == VKN_OK)
        status = place(&copy, false);
    free_copy(&copy);
    free(views);
    return status;
}
