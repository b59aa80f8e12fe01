/* images: the training images on the device: put there once, or exchanged in the background while
 * training goes on. */
#ifndef IMAGES_IMAGES_H
#define IMAGES_IMAGES_H

#include "config/config.h"
#include "step/step.h"
#include "scene/scene.h"

/* ---- the plan -------------------------------------------------------------------------------- */

/* Which are there, and when: arithmetic alone, so that a run repeats and goes on as it was.
 *
 * Where all fit the budget, all are there. Else every view is cut into the same number of strips of
 * rows, its pieces, and the device has `resident` slots of the largest piece's size. All pieces in
 * an order that the seed shuffles, repeated without end, make a sequence; in window w its positions
 * w * exchanged .. w * exchanged + resident - 1 are on the device, position q in slot q % resident.
 * Rays pick any of them with equal chances. A period of training (16 steps) goes to the next
 * window: `exchanged` pieces leave and as many enter. `exchanged` divides `resident`, so every
 * piece is there for the same number of windows in every cycle of the sequence, whatever its size:
 * over a cycle each view gets the same share of the rays, as when all are resident. (Within a view
 * rows get theirs but for the rounding of the strips' heights.)
 *
 * Strips let nearly all views be there at any time in part: a window of whole views pulls the field
 * towards these. Where images have to be decoded again whenever they enter, because host memory
 * does not hold them either, a view is one piece: decoding it for a strip would cost as much.
 *
 * Progressive training begins with images made smaller by a power of two, which halves at
 * milestones. What enters has the size of its time, so a stage's images replace the ones before one
 * after the other. The slots are those of the last stage. When all views are resident, as one piece
 * each, they only come in anew, by the same sequence, where their size is not that of the stage. */

/* Exchanges that are being read, waiting or copied at a time: one that is read while the one before
 * goes to the device. That happens between two periods, of which the first is over when the second
 * is submitted, so it never takes long until what is copied can be overwritten. */
#define IMAGES_EXCHANGES 2u

struct images_plan {
    uint32_t cameras; /* training views */
    uint32_t views;   /* of these, that are planned for: the split's share */
    struct scene_share share;
    uint32_t strips;       /* of a view; the share's v-th has the pieces v * strips .. v * strips +
                              strips - 1 */
    uint32_t rows;         /* heights of strips, but for the lowest, are a multiple of this */
    uint32_t image_strips; /* views * strips */
    uint32_t resident;     /* pieces on the device at a time */
    uint32_t exchanged;    /* pieces, by window; 0: all are there and stay as they are */
    uint64_t slot_pixels;  /* of the largest piece */
    uint64_t pixels;       /* of the device's buffer */
    uint64_t bytes;        /* the same in bytes: what the budget is for */
    uint64_t exchange;     /* bytes of what one exchange brings: pixels, then cameras; there are
                              IMAGES_EXCHANGES such buffers in host memory */
    uint64_t all_bytes;    /* of all the share's images as pixels */
    float moments[2];      /* the first and the last of all views */
};

/* The budget is the configuration's, or `most` bytes; no buffer takes more than `range`.
 * VKN_BAD_INPUT names the largest image where two of its pieces do not fit, or one that progressive
 * training would shrink to nothing. */
vkn_status images_make_plan(const struct vkn_scene *scene, const struct vkn_config *config,
                            uint64_t most, uint64_t range, struct images_plan *plan);

/* The same for a setup's step: the configuration's budget, or most of what its other buffers leave.
 */
vkn_status images_plan_step(const struct gpu_device *device, const struct vkn_scene *scene,
                            const struct setup *setup, struct images_plan *plan);
/* As the step is told. */
struct step_images images_of_step(const struct images_plan *plan);
/* VKN_BAD_INPUT unless there are training images, and pixels in each. */
vkn_status images_check(const struct vkn_scene *scene);

/* Whether the budget for host memory holds all of the share's images. */
bool images_fit_host(const struct vkn_scene *scene, const struct vkn_config *config);

/* Fills order[plan->pieces] with the pieces in an order for the sequence. */
void images_shuffle(const struct images_plan *plan, uint64_t seed, uint32_t *order);
/* The position that a slot holds in that window. */
uint64_t images_position(const struct images_plan *plan, uint64_t window, uint32_t slot);
/* The window in which a position enters; 0 for those there from the start. */
uint64_t images_entry_window(const struct images_plan *plan, uint64_t position);

/* As long as a curriculum goes on (dynamic.curriculum), rays are drawn of views alone whose moment
 * has come; of the earliest one where none has. Where all views are there they stand in the order
 * of their moments, those of each turn among themselves. Where pieces come and go, the sequence is
 * at any time of those that have come. */

/* Up to which moment they have come before that step, as shaders/shared/progress.glsl has it; 1:
 * all have. `time_progress` as in stream_seek. */
float images_latest_time(const struct Config *constants, uint64_t step, double time_progress);
/* Fills order[] with the share's views by their moments, the earliest first: 0 is the share's first
 * view. */
vkn_status images_sort(const struct scene_split *train, struct scene_share share, uint32_t *order);
/* Fills come[] with the pieces of order[plan->pieces] that have come by then; returns how many, at
 * least one. */
uint32_t images_available(const struct images_plan *plan, const struct scene_split *train,
                          const uint32_t *order, float latest, uint32_t *available);

/* The piece of that number on the device, in a slot: `shrink` times smaller, `place` pixels from
 * the begin of the device's buffer. */
struct images_strip {
    uint32_t view, first_row, rows; /* of the scene */
    uint32_t shrink, slot;
    struct scene_camera camera; /* on the device; first_pixel is its place there */
};
struct images_strip images_strip(const struct images_plan *plan, const struct scene_split *train,
                                 uint32_t image_strip, uint32_t slot, uint32_t shrink);

/* How many times smaller images are after that share of the training: 1 without progressive. */
uint32_t images_shrink(const struct vkn_config *config, double progress);
/* The share of the training's steps that is done before that period; 0 without a limit. */
double images_progress(const struct vkn_config *config, uint64_t period);

/* ---- the stream ------------------------------------------------------------------------------ */

/* The next pieces of views are read, from the scene's pixels or from their files, by threads of
 * their own into host memory that the device can copy from. Between two periods the trainer submits
 * the copies into their slots together with their cameras. Submissions run in order and a period
 * reads nothing while another writes, so rays never see half an exchange, and neither side waits
 * for the other: an exchange that is not read in time comes a period later. A deterministic run
 * waits for it instead, so that what is on the device depends on the step alone. */

struct stream;

/* Decodes the share's images at once where the host's budget holds them; else they are read from
 * their files whenever they are needed. `progress` may be NULL. */
vkn_status stream_load(struct vkn_scene *scene, const struct vkn_config *config,
                       void (*progress)(void *context, size_t done, size_t total), void *context);

/* Uploads the cameras of all training views and, for a plan that exchanges none, the share's
 * images.
 */
vkn_status stream_upload_all(struct step *step, const struct images_plan *plan,
                             const struct vkn_scene *scene);

/* For a plan that exchanges images. Keeps using `step`, `plan` and `scene`; the caller destroys. */
vkn_status stream_create(struct step *step, const struct images_plan *plan,
                         const struct vkn_scene *scene, const struct vkn_config *config,
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

/* Mean squared error of the best picture of one colour, as rays of the training views with such a
 * background see it; 0: the views could not be read. */
double images_constant_error(const struct vkn_scene *scene, enum vkn_background background);

#endif
