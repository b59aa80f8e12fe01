#ifndef CHECKPOINT_INTERNAL_H
#define CHECKPOINT_INTERNAL_H

#include "checkpoint/checkpoint.h"

/* Checks what an opened file holds, see checkpoint_open. */
vkn_status checkpoint_check(const char *path, const struct safetensors_file *file);

#endif
