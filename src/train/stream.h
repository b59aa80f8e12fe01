/* Training images on the device: put there once, or exchanged in the background while training goes
 * on. What is there when is images.h's matter.
 *
 * The next pieces of views are read, from the scene's pixels or from their files, by threads of
 * their own into host memory that the device can copy from. Between two periods the trainer submits
 * the copies into their slots together with their cameras. Submissions run in order and a period
 * reads nothing while another writes, so rays never see half an exchange, and neither side waits
 * for the other: an exchange that is not read in time comes a period later. A deterministic run
 * waits for it instead, so that what is on the device depends on the step alone. */
#ifndef TRAIN_STREAM_H
#define TRAIN_STREAM_H

#include "pipeline/pipeline.h"
#include "train/images.h"

struct stream;

/* Decodes the training images at once where the host's budget holds them; else they are read from
 * their files whenever they are needed. `progress` may be NULL. */
vkn_status stream_load(struct scene *scene, const struct vkn_config *config,
                       void (*progress)(void *context, size_t done, size_t total), void *context);

/* Uploads all training views and their cameras, for a plan that exchanges none. */
vkn_status stream_upload_all(struct step *step, const struct images_plan *plan,
                             const struct scene *scene);

/* For a plan that exchanges images. Keeps using `step`, `plan` and `scene`; the caller destroys. */
vkn_status stream_create(struct step *step, const struct images_plan *plan,
                         const struct scene *scene, const struct vkn_config *config,
                         struct stream **stream);
/* Waits for what is being read. Nothing happens when *stream is NULL. */
void stream_destroy(struct stream **stream);

/* Puts the pieces of that step's window on the device, as if none had ever come late. Blocks;
 * nothing may be in flight. `time_progress`: share of the training by the clock, 0 when steps alone
 * count. */
vkn_status stream_seek(struct stream *stream, uint64_t step, double time_progress);
/* Before the period that begins with or holds `step` is submitted: submits the exchange that is
 * due, if any, and begins to read the next. Training must have waited for all periods but the last.
 */
vkn_status stream_advance(struct stream *stream, uint64_t step, double time_progress);

struct stream_state {
    uint32_t shrink; /* of what comes in now: images are this many times smaller than the scene's */
    uint64_t exchanged; /* pieces that came in since stream_create, without those of stream_seek */
    uint64_t late;      /* exchanges that were not ready in time */
};
struct stream_state stream_state(const struct stream *stream);

#endif
