/* Compares what must be the same on all ranks. Each rank states it as a list of items, one a row;
 * the lists are compared with rank 0's. All calls are collective; where ranks differ, all of them
 * return the same VKN_BAD_INPUT, which names the first rank and its first item that differs: "rank
 * 2: the scene differs from rank 0's: ...". */
#ifndef RUN_COMPARE_H
#define RUN_COMPARE_H

#include <vknerf/run.h>

struct base_text;
struct parallel;

/* ---- lists (compare.c) ----------------------------------------------------------------------- */

/* Adds a row. A value is shown in messages, a hash is not: its item says what differs, "pose of
 * train view 3". */
void compare_add_value(struct base_text *list, const char *item, const char *value);
void compare_add_hash(struct base_text *list, const char *item, uint64_t hash);

/* Compares the ranks' lists, whose rows come in one order. An item that a rank does not list is as
 * rank 0 has it. `what`: "the scene differs"; `listed`: whether this rank could make its list, else
 * the last error is why all end. */
vkn_status compare_lists(struct parallel *comm, const char *what, vkn_status listed,
                         const struct base_text *list);

/* Hash of a file's bytes; the messages name it. */
vkn_status compare_hash_file(const char *path, uint64_t *hash);

/* ---- what is compared (compare_items.c, compare_scene.c) ------------------------------------- */

/* Version and commit, before anything else is exchanged. */
vkn_status compare_programs(struct parallel *comm);
/* Checkpoint, field in GLSL and settings that each process was asked for. */
vkn_status compare_requests(struct parallel *comm, const struct vkn_train_params *params);
/* Views, cameras and the contents of the training images' files, which are read where ranks have
 * other files. */
vkn_status compare_scenes(struct parallel *comm, const vkn_scene *scene);
/* The effective configuration, before ranks exchange what depends on it. */
vkn_status compare_configs(struct parallel *comm, const struct vkn_config *config);

#define COMPARE_DEVICE 256u
/* A rank's device as all others know it. */
struct compare_device {
    char name[COMPARE_DEVICE], driver[COMPARE_DEVICE];
};
/* Fills devices[parallel_size] with the devices of all ranks. A device or driver that differs from
 * rank 0's may round differently: an error with --deterministic, otherwise a warning by rank 0. */
vkn_status compare_devices(struct parallel *comm, const struct compare_device *mine,
                           const struct vkn_config *config, struct compare_device *devices);

#endif
