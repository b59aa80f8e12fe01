/* Defines struct vkn_trainer, which the files of this module share. */
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
    vkn_context *context;      /* a reference */
    struct gpu_device *device; /* of the context */
    struct vkn_scene *scene;   /* a reference */
    struct vkn_config config;  /* effective */
    struct images_plan images;
    struct step step;
    bool may_lower_batch;  /* batch.samples was not given */
    struct stream *stream; /* NULL: no images are streamed */
    bool images_current;   /* the images on the device are those of step steps_done */
    struct profile profile;
    char backend_name[FIELD_SHADER_NAME], backend_why[TRAIN_WHY], backend_tuning[FIELD_TUNING_TEXT],
        backend_policy[FIELD_POLICY_TEXT];
    struct vkn_backend backend;
    uint64_t steps_done;    /* finished steps whose statistics the host has read */
    double seconds;         /* training time before the current vkn_trainer_run */
    double seconds_before;  /* training time when the trainer was created or resumed */
    double untimed_rays;    /* of the profile's rays: sampled before the training time began */
    uint32_t rate_cuts;     /* cuts of the learning rate that were already reported */
    struct monitor monitor; /* of the steps since the trainer was created or resumed */
    bool ended;             /* see train_ended_early */
    /* Members for several ranks. */
    struct parallel *parallel; /* communicator; NULL: a single rank */
    uint32_t ranks;            /* of the communicator, virtual ranks not counted; 1: single */
    double rank0_seconds;      /* training time by rank 0's clock, as of the last step */
    bool stop_requested;       /* the user has asked any rank to stop */
    bool device_lost;          /* this rank's device is lost */
    struct vkn_communication communication; /* only the members in seconds are kept here */
    _Atomic uint32_t holders; /* references besides the creator's; the last one frees the trainer */
};

/* Marks the training as failed before its limit and returns VKN_ERROR; the message has the step,
 * the reason, the first buffer that is not finite, and what to change (diverged.c). */
vkn_status train_end_early(struct vkn_trainer *trainer);

/* Resets the gradient monitor, whose statistics belong to the replaced weights. `skipped_steps`: of
 * the state. */
void train_restart_monitor(vkn_trainer *trainer, uint32_t skipped_steps);

/* Returns the share of the time limit in `seconds`; 0 without a limit and in deterministic runs. */
static inline double trainer_time_progress(const struct vkn_trainer *t, double seconds)
{
    return t->config.seconds > 0 && !t->config.deterministic ? seconds / t->config.seconds : 0.0;
}

/* Returns whether the trainer decides how long the run lasts: a single rank or rank 0 does. */
static inline bool trainer_leads(const struct vkn_trainer *t)
{
    return !t->parallel || parallel_rank(t->parallel) == 0;
}

#endif
