/* What a checkpoint holds, and whether it can be so. */
#ifndef PIPELINE_CHECK_H
#define PIPELINE_CHECK_H

#include "safetensors/safetensors.h"

enum {
    CHECKPOINT_PARAMS,
    CHECKPOINT_AVERAGE,
    CHECKPOINT_OCCUPANCY,
    CHECKPOINT_MOMENT1,
    CHECKPOINT_MOMENT2,
    CHECKPOINT_COUNTS,
    CHECKPOINT_STATE,
    CHECKPOINT_TENSORS
};

/* A buffer of the step each. */
struct checkpoint_tensor {
    const char *name;
    size_t buffer; /* offset in struct step_buffers */
    enum safetensors_type type;
    bool weights; /* also taken by --init */
};
extern const struct checkpoint_tensor checkpoint_tensors[CHECKPOINT_TENSORS];

/* Configuration, names, types, shapes, and every word of the content: finite numbers, counts that the
 * steps allow. VKN_BAD_INPUT names the file and the field. */
vkn_status checkpoint_check(const char *path, const struct safetensors_file *file);
/* The content of one that is about to be written: VKN_ERROR for what checkpoint_check would refuse. */
vkn_status checkpoint_check_new(const char *path,
                                const struct safetensors_tensor tensors[CHECKPOINT_TENSORS]);

#endif
