/* Checkpoint files, for those who only read them. */
#ifndef PIPELINE_CHECKPOINT_H
#define PIPELINE_CHECKPOINT_H

#include "safetensors/safetensors.h"

/* Metadata keys of checkpoints. */
#define CHECKPOINT_CONFIG       "vknerf.config"
#define CHECKPOINT_SCENE        "vknerf.scene"
#define CHECKPOINT_SCENE_BYTES  "vknerf.scene_bytes" /* of a path that is not UTF-8, hexadecimal */
#define CHECKPOINT_STEP         "vknerf.step"
#define CHECKPOINT_SECONDS      "vknerf.seconds"
#define CHECKPOINT_FORMAT       "vknerf.format"
#define CHECKPOINT_FORMAT_VALUE "2"

/* Opens a checkpoint and checks its format and all that it holds, see checkpoint_check.h; the caller
 * closes it. */
vkn_status checkpoint_open(const char *path, struct safetensors_file **file);
/* The path of the scene in fresh memory; the file has one (CHECKPOINT_SCENE). */
char *checkpoint_scene(const struct safetensors_file *file);

#endif
