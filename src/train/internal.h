/* What the train room's files share: the inside of a trainer. */
#ifndef TRAIN_INTERNAL_H
#define TRAIN_INTERNAL_H

#include <vknerf/trainer.h>

#include "field/tuning.h"
#include "train/profile.h"
#include "train/step.h"
#include "train/stream.h"
#include "train/watch.h"

struct vkn_context {
    struct gpu_device *device;
};

/* What `params`, which may be NULL, ask for. */
struct gpu_options context_options(const struct vkn_context_params *params);

struct vkn_trainer {
    struct gpu_device *device;
    struct scene *scene;
    struct vkn_config config; /* effective */
    struct step step;
    struct stream *stream;      /* NULL: the images on the device stay as they are */
    bool sought;                /* what is on the device is that of steps_done */
    struct profile profile;
    char path_name[FIELD_PROGRAM_NAME], path_why[320], path_tuning[FIELD_TUNING_TEXT];
    struct vkn_path path;
    uint64_t steps_done; /* as of the last recording waited for */
    double seconds;      /* training time before the current run */
    /* As of the last step read: for what is reported when it changes. */
    uint32_t rate_cuts, skipped_steps, skipped_in_row;
    struct watch watch; /* of the gradients since the trainer began */
};

/* Metadata keys of checkpoints. */
#define CHECKPOINT_CONFIG       "vknerf.config"
#define CHECKPOINT_SCENE        "vknerf.scene"
#define CHECKPOINT_SCENE_BYTES  "vknerf.scene_bytes" /* of a path that is not UTF-8, hexadecimal */
#define CHECKPOINT_STEP         "vknerf.step"
#define CHECKPOINT_SECONDS      "vknerf.seconds"
#define CHECKPOINT_FORMAT       "vknerf.format"
#define CHECKPOINT_FORMAT_VALUE "2"

#endif
