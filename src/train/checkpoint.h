/* Checkpoint files, for those who only read them. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "train/safetensors.h"

/* Opens a checkpoint and checks its format; the caller closes it. */
vkn_status checkpoint_open(const char *path, struct safetensors_file **file);

#endif
