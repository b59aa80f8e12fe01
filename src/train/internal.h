/* What the train room's files share: the inside of a trainer. */
#ifndef TRAIN_INTERNAL_H
#define TRAIN_INTERNAL_H

#include <vknerf/trainer.h>

#include "images/images.h"
#include "parallel/parallel.h"
#include "step/step.h"
#include "tuner/tuner.h"
#include "train/profile.h"
#include "train/train.h"
#include "monitor/monitor.h"

struct vkn_trainer {
    vkn_context *context; /* held; its device: */
    struct gpu_device *device;
    struct vkn_scene *scene;  /* held */
    struct vkn_config config; /* effective */
    struct images_plan images;
    struct step step;
    bool open_batch;       /* batch.samples was left open, and may be lowered */
    struct stream *stream; /* NULL: the images on the device stay as they are */
    bool images_current;   /* what is on the device is that of steps_done */
    struct profile profile;
    char backend_name[FIELD_SHADER_NAME], backend_why[TRAIN_WHY], backend_tuning[FIELD_TUNING_TEXT],
        backend_policy[FIELD_POLICY_TEXT];
    struct vkn_backend backend;
    uint64_t steps_done;    /* as of the last recording waited for */
    double seconds;         /* training time before the current run */
    double seconds_before;  /* the same before the trainer went on */
    uint32_t rate_cuts;     /* as of the last step read: a change is reported */
    struct monitor monitor; /* of the steps since the trainer began or went on */
    bool ended;             /* by the monitor, see train_ended_early */
    /* Of one that trains together with others. */
    struct parallel *parallel;         /* NULL: it does not, or not any more */
    uint32_t ranks;                    /* of all, but turns; 1: alone */
    double rank0_seconds;              /* of training, by rank 0, as of the last step */
    bool stop_requested;               /* a rank was told to stop */
    bool lost;                         /* the device; not another's */
    struct vkn_communication exchange; /* seconds alone */
    _Atomic uint32_t holders; /* beside the one who created it: the last to destroy it does */
};

/* VKN_ERROR: the training is over before its limit, with the step, why, what was not finite first,
 * and what to change (diverged.c). */
vkn_status train_end_early(struct vkn_trainer *trainer);

/* Alone, or as rank 0. */
static inline bool trainer_leads(const struct vkn_trainer *t)
{
    return !t->parallel || parallel_rank(t->parallel) == 0;
}

#endif
