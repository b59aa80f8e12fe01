/* checkpoint: what a training leaves in a file, and whether it could have. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "passes/passes.h"
#include "safetensors/safetensors.h"

/* Metadata keys of checkpoints. */
#define CHECKPOINT_CONFIG       "vknerf.config"
#define CHECKPOINT_SCENE        "vknerf.scene"
#define CHECKPOINT_SCENE_BYTES  "vknerf.scene_bytes" /* of a path that is not UTF-8, hexadecimal */
#define CHECKPOINT_STEP         "vknerf.step"
#define CHECKPOINT_SECONDS      "vknerf.seconds"
#define CHECKPOINT_FIELD        "vknerf.field" /* GLSL of model glsl: vkn_field_source() */
#define CHECKPOINT_FORMAT       "vknerf.format"
#define CHECKPOINT_FORMAT_VALUE "2"

/* Opens one, registers its field in GLSL, which must be trusted (vkn_field_trust), and checks its
 * format, configuration, tensors' names, types and shapes, and every word of the content: finite
 * numbers, counts that the steps allow. VKN_BAD_INPUT names the file and the field. The caller
 * closes it. */
vkn_status checkpoint_open(const char *path, struct safetensors_file **file);
/* Steps that were skipped since the run began; false: the file does not say. */
bool checkpoint_skipped(const struct safetensors_file *file, uint32_t *skipped);
/* Finds the tensor of a buffer of `count` elements. A state of older programs lacks the members
 * behind `dispatches`, which count as zero: its tensor has fewer elements. */
vkn_status checkpoint_find(const struct safetensors_file *file, const struct saved_buffer *kept,
                           uint64_t count, const struct safetensors_tensor **tensor);
/* The path of the scene in fresh memory; the file has one (CHECKPOINT_SCENE). */
char *checkpoint_scene(const struct safetensors_file *file);
/* The content of one that is about to be written, a tensor for each of buffers_list_saved in their
 * order: VKN_ERROR for what checkpoint_open would refuse. */
vkn_status checkpoint_check_new(const char *path, const struct safetensors_tensor *tensors,
                                const struct saved_buffer *kept, size_t count);

#endif
