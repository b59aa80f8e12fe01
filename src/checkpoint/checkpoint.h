/* Declares the functions that open checkpoint files and check their content. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "passes/passes.h"
#include "safetensors/safetensors.h"

/* Metadata keys of checkpoints. */
#define CHECKPOINT_CONFIG       "vknerf.config"
#define CHECKPOINT_SCENE        "vknerf.scene"
#define CHECKPOINT_SCENE_BYTES  "vknerf.scene_bytes" /* hexadecimal, of a path that is not UTF-8 */
#define CHECKPOINT_STEP         "vknerf.step"
#define CHECKPOINT_SECONDS      "vknerf.seconds"
#define CHECKPOINT_FIELD        "vknerf.field" /* GLSL of model glsl: vkn_field_source() */
#define CHECKPOINT_FORMAT       "vknerf.format"
#define CHECKPOINT_FORMAT_VALUE "2"

/* Opens a checkpoint. Registers its field in GLSL, which must be trusted (vkn_field_trust). Checks
 * format, configuration, and names, types and shapes of tensors. Checks every element: floats must
 * be finite, and step counts of entries at most the run's updates. VKN_BAD_INPUT names the file and
 * the tensor or key. The caller closes *file. */
vkn_status checkpoint_open(const char *path, struct safetensors_file **file);
/* Reads the number of steps that the run has skipped. Returns false without a valid state. */
bool checkpoint_skipped(const struct safetensors_file *file, uint32_t *skipped);
/* Finds the tensor of a saved buffer with `count` elements. A state of an older version has fewer
 * elements: it lacks the members after `dispatches`, which then are zero. A state with an error map
 * or refined views has more. */
vkn_status checkpoint_find(const struct safetensors_file *file, const struct saved_buffer *saved,
                           uint64_t count, const struct safetensors_tensor **tensor);
/* Returns whether the file has the tensor, with `count` elements. */
bool checkpoint_has(const struct safetensors_file *file, const char *name, uint64_t count);
/* Returns the state of a checkpoint with a sky, refined cameras or appearances. Belongs to the
 * file. */
struct saved_state checkpoint_state(const struct safetensors_file *file);
/* Returns the scene's path in fresh memory. The file must have CHECKPOINT_SCENE. */
char *checkpoint_scene(const struct safetensors_file *file);
/* Checks the tensors of a checkpoint before it is written; they are in the order of
 * buffers_list_saved. VKN_ERROR for content that checkpoint_open would refuse. */
vkn_status checkpoint_check_new(const char *path, const struct safetensors_tensor *tensors,
                                const struct saved_buffer *saved, size_t count);

#endif
