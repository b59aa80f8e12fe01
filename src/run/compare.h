/* Checks that all ranks have the same program, scene and configuration. Each rank makes a list of
 * items, which is compared with rank 0's list. All calls are collective. If lists differ, all ranks
 * return VKN_BAD_INPUT; the message names the first rank that differs and the first item in which
 * it differs: "rank 2: the scene differs from rank 0's: ...". */
#ifndef RUN_COMPARE_H
#define RUN_COMPARE_H

#include <vknerf/run.h>

struct base_text;
struct parallel;

/* ---- lists (compare.c) ----------------------------------------------------------------------- */

/* Add an item to a list. Messages show a value, but not a hash, so that a hash's item has to say
 * what differs: "pose of train view 3". */
void compare_add_value(struct base_text *list, const char *item, const char *value);
void compare_add_hash(struct base_text *list, const char *item, uint64_t hash);

/* Compares the ranks' lists, whose items are in the same order. Items that only rank 0 lists are
 * not compared. `what` begins the message: "the scene differs". `listed`: status of making the
 * list; a failure of any rank is returned on all ranks, with that rank's last error. */
vkn_status compare_lists(struct parallel *comm, const char *what, vkn_status listed,
                         const struct base_text *list);

/* Hashes a file's bytes. Errors name the file. */
vkn_status compare_hash_file(const char *path, uint64_t *hash);

/* ---- items of the lists (compare_items.c, compare_scene.c) ----------------------------------- */

/* Compares version and commit. Called before any other communication. */
vkn_status compare_programs(struct parallel *comm);
/* Compares the checkpoint, the field in GLSL and the settings of each process's command line. */
vkn_status compare_requests(struct parallel *comm, const struct vkn_train_params *params);
/* Compares views, cameras and the contents of the training images' files. Contents are read only if
 * ranks do not share one file system. */
vkn_status compare_scenes(struct parallel *comm, const vkn_scene *scene);
/* Compares the effective configurations. Called before any communication that depends on them. */
vkn_status compare_configs(struct parallel *comm, const struct vkn_config *config);

#define COMPARE_DEVICE 256u
/* A rank's device. */
struct compare_device {
    char name[COMPARE_DEVICE], driver[COMPARE_DEVICE];
};
/* Gathers the devices of all ranks into devices[parallel_size]. A device or driver that differs
 * from rank 0's may round differently: an error with --deterministic, else a warning of rank 0. */
vkn_status compare_devices(struct parallel *comm, const struct compare_device *mine,
                           const struct vkn_config *config, struct compare_device *devices);

#endif
