/* Checkpoint files, for those who only read them. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "train/safetensors.h"

/* Opens a checkpoint and checks its format and all that it holds, see checkpoint_check.h; the caller
 * closes it. */
vkn_status checkpoint_open(const char *path, struct safetensors_file **file);
/* The path of the scene in fresh memory; the file has one (CHECKPOINT_SCENE). */
char *checkpoint_scene(const struct safetensors_file *file);

#endif
