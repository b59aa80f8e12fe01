/* Finds images without a pose beside the images of the views. */
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/inspect.h"

/* An image or mask that a view uses; `path` is owned by the view. */
struct used_file {
    const char *path, *name; /* name: part of the path */
    size_t folder_length;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct used_file *)a)->path, ((const struct used_file *)b)->path);
}

static void add_file(struct used_file *files, size_t *count, const char *path)
{
    if (path == NULL)
        return;
    const char *slash = strrchr(path, '/');
    files[(*count)++] =
        (struct used_file){.path = path,
                           .name = slash != NULL ? slash + 1 : path,
                           .folder_length = slash != NULL ? (size_t)(slash - path) : 0};
}

static bool same_folder(const struct used_file *a, const struct used_file *b)
{
    return a->folder_length == b->folder_length && strncmp(a->path, b->path, a->folder_length) == 0;
}

/* Returns whether a file of the folder is used or belongs to a used image, as r_0_depth.png and
 * r_0.alpha.png belong to r_0.png. */
static bool belongs(const char *name, const struct used_file *files, size_t count,
                    const struct used_file *folder)
{
    for (size_t i = 0; i < count; i++) {
        if (!same_folder(&files[i], folder))
            continue;
        const char *used = files[i].name, *dot = strrchr(used, '.');
        size_t stem = dot != NULL ? (size_t)(dot - used) : strlen(used);
        if (strncmp(name, used, stem) == 0 &&
            (name[stem] == '_' || name[stem] == '.' || name[stem] == '\0'))
            return true;
    }
    return strncmp(name, "dynamic_mask_", strlen("dynamic_mask_")) == 0;
}

static vkn_status check_folder(struct inspection *inspection, const struct used_file *files,
                               size_t count, const struct used_file *folder)
{
    char *path = base_path_folder(folder->path), **names = NULL;
    size_t listed = 0, unposed = 0;
    const char *first = NULL;
    vkn_status status = path != NULL ? capture_list(path, &names, &listed) : VKN_ERROR;
    for (size_t i = 0; i < listed; i++) {
        if (belongs(names[i], files, count, folder))
            continue;
        first = first != NULL ? first : names[i];
        unposed++;
    }
    if (status == VKN_OK && unposed > 0)
        status = inspect_add_problem(
            inspection, "find their poses if they are to be used; training ignores them",
            "%zu of the %zu images in %s have no pose (the first is %s)", unposed, listed, path,
            first);
    capture_free_names(names, listed);
    free(path);
    return status;
}

vkn_status inspect_unposed(struct inspection *inspection)
{
    const struct scene_findings *findings = inspection->findings;
    struct used_file *files =
        base_alloc(2 * inspection->views + findings->broken_image_count, sizeof(*files));
    if (files == NULL)
        return VKN_ERROR;
    size_t count = 0;
    for (size_t n = 0; n < inspection->views; n++) {
        const struct scene_camera *view = inspect_view(inspection->scene, n, NULL);
        add_file(files, &count, view->image_path);
        add_file(files, &count, view->mask_path);
    }
    for (size_t n = 0; n < findings->broken_image_count; n++)
        add_file(files, &count, findings->broken_images[n]);
    qsort(files, count, sizeof(*files), by_path);
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < count && status == VKN_OK; i++)
        if (i == 0 || !same_folder(&files[i - 1], &files[i]))
            status = check_folder(inspection, files, count, &files[i]);
    free(files);
    return status;
}
