/* Compares the scenes of ranks: each view's name, size, lens, pose, time, mask and files. */
#include "run/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parallel/parallel.h"
#include "run/internal.h"
#include "scene/scene.h"
#include "train/train.h"

/* ---- files ----------------------------------------------------------------------------------- */

#define CHUNK ((size_t)1 << 18)

vkn_status compare_hash_file(const char *path, uint64_t *hash)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return base_fail(base_status_of_errno(errno), "%s: %s", path, strerror(errno));
    char *chunk = base_alloc(CHUNK, 1);
    size_t size = 0;
    *hash = 0;
    while (chunk && (size = fread(chunk, 1, CHUNK, file)) > 0)
        *hash = parallel_hash(*hash, chunk, size);
    vkn_status status = !chunk         ? VKN_ERROR
                        : ferror(file) ? base_fail(VKN_ERROR, "%s: %s", path, strerror(errno))
                                       : VKN_OK;
    free(chunk);
    (void)fclose(file);
    return status;
}

/* Hashes a file's identity on this machine: device, inode, size and time of modification. */
static uint64_t hash_identity(uint64_t hash, const char *path)
{
    struct stat found;
    if (!path || stat(path, &found) != 0)
        return parallel_hash(hash, "", 1);
    const uint64_t facts[] = {(uint64_t)found.st_dev, (uint64_t)found.st_ino,
                              (uint64_t)found.st_size, (uint64_t)found.st_mtim.tv_sec,
                              (uint64_t)found.st_mtim.tv_nsec};
    return parallel_hash(hash, facts, sizeof facts);
}

/* Hashes the identities of all training files and the boot ID of this machine. */
static uint64_t identity_of(const struct scene_split *train, uint32_t rank)
{
    char *boot = NULL;
    size_t size = 0;
    uint64_t hash = 0;
    if (base_file_read("/proc/sys/kernel/random/boot_id", 4096, &boot, &size) == VKN_OK)
        hash = parallel_hash(0, boot, size);
    else
        hash = parallel_hash(rank, "", 0); /* an unknown machine counts as another one */
    free(boot);
    for (size_t i = 0; i < train->camera_count; i++) {
        hash = hash_identity(hash, train->cameras[i].image_path);
        hash = hash_identity(hash, train->cameras[i].mask_path);
    }
    return hash;
}

/* ---- items ----------------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "none";
}

static void add_count(struct base_text *list, const char *what, uint64_t count)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    compare_add_value(list, what, text);
}

static void add_space(struct base_text *list, const vkn_scene *scene)
{
    char text[192];
    for (size_t i = 0; i < SCENE_SPLITS; i++) {
        snprintf(text, sizeof text, "%s views", scene_split_names[i]);
        add_count(list, text, scene->splits[i].camera_count);
    }
    add_count(list, "downscale", scene->downscale);
    char numbers[4][40];
    config_print_number(numbers[3], scene->scale, false);
    for (int i = 0; i < 3; i++)
        config_print_number(numbers[i], scene->offset[i], false);
    snprintf(text, sizeof text, "scale %s, offset %s %s %s, aabb_scale %u", numbers[3], numbers[0],
             numbers[1], numbers[2], scene->aabb_scale);
    compare_add_value(list, "training space", text);
}

/* Adds an item such as "pose of train view 3 (r_3.png)". */
static void add_property(struct base_text *list, const char *property, size_t view,
                         const struct scene_camera *camera, uint64_t hash)
{
    char item[160];
    snprintf(item, sizeof item, "%s of train view %zu (%.80s)", property, view,
             name_of(camera->image_path));
    compare_add_hash(list, item, hash);
}

static void add_view(struct base_text *list, size_t view, const struct scene_camera *camera)
{
    const float lens[] = {camera->focal_x, camera->focal_y, camera->center_x, camera->center_y,
                          (float)camera->lens};
    uint64_t hash = parallel_hash(0, lens, sizeof lens);
    char item[64], value[160];
    snprintf(item, sizeof item, "train view %zu", view);
    snprintf(value, sizeof value, "%.80s of %ux%u pixels", name_of(camera->image_path),
             camera->width, camera->height);
    compare_add_value(list, item, value);
    add_property(list, "lens", view, camera,
                 parallel_hash(hash, camera->distortion, sizeof camera->distortion));
    add_property(list, "pose", view, camera, parallel_hash(0, camera->pose, sizeof camera->pose));
    add_property(list, "time", view, camera, parallel_hash(0, &camera->time, sizeof camera->time));
    snprintf(item, sizeof item, "mask of train view %zu", view);
    snprintf(value, sizeof value, "%.80s%s", name_of(camera->mask_path),
             camera->mask_inverted ? ", bright hides" : "");
    compare_add_value(list, item, value);
}

/* ---- contents -------------------------------------------------------------------------------- */

struct contents {
    const struct scene_camera *cameras;
    uint64_t *hashes; /* [view][image, mask] */
};

static vkn_status hash_view(void *context, size_t view)
{
    struct contents *contents = context;
    const struct scene_camera *camera = &contents->cameras[view];
    if (camera->image_path)
        BASE_TRY(compare_hash_file(camera->image_path, &contents->hashes[2 * view]));
    if (camera->mask_path)
        BASE_TRY(compare_hash_file(camera->mask_path, &contents->hashes[2 * view + 1]));
    return VKN_OK;
}

static vkn_status add_contents(struct base_text *list, const struct scene_split *train)
{
    size_t count = train->camera_count;
    struct contents contents = {train->cameras, base_alloc(2 * count + 1, sizeof *contents.hashes)};
    vkn_status status =
        contents.hashes ? base_parallel(count, hash_view, &contents, NULL) : VKN_ERROR;
    for (size_t view = 0; view < count && status == VKN_OK; view++) {
        add_property(list, "content", view, &train->cameras[view], contents.hashes[2 * view]);
        add_property(list, "mask's content", view, &train->cameras[view],
                     contents.hashes[2 * view + 1]);
    }
    free(contents.hashes);
    return status;
}

/* Compares the contents of files, unless all ranks read the same files of one machine. */
static vkn_status compare_contents(struct parallel *comm, const struct scene_split *train)
{
    const uint64_t mine = identity_of(train, parallel_rank(comm));
    uint64_t all[PARALLEL_MOST_RANKS];
    struct base_text list = {0};
    uint32_t rank = 1;
    BASE_TRY(parallel_gather(comm, &mine, sizeof mine, all));
    while (rank < parallel_size(comm) && all[rank] == all[0])
        rank++;
    if (rank == parallel_size(comm))
        return VKN_OK;
    double began = base_seconds();
    vkn_status status = add_contents(&list, train);
    base_log(BASE_LOG_DEBUG, "the training images' files took %.3f s to read",
             base_seconds() - began);
    status = compare_lists(comm, "the scene differs", status, &list);
    free(list.data);
    return status;
}

vkn_status compare_scenes(struct parallel *comm, const vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct base_text list = {0};
    add_space(&list, scene);
    for (size_t view = 0; view < train->camera_count; view++)
        add_view(&list, view, &train->cameras[view]);
    vkn_status status = compare_lists(comm, "the scene differs", VKN_OK, &list);
    free(list.data);
    return status == VKN_OK ? compare_contents(comm, train) : status;
}
