/* Declares how the training images reach the device: all are uploaded once, or strips of them are
 * streamed in the background during training. */
#ifndef IMAGES_IMAGES_H
#define IMAGES_IMAGES_H

#include <signal.h>

#include "config/config.h"
#include "step/step.h"
#include "scene/scene.h"

/* ---- the plan -------------------------------------------------------------------------------- */

/* The plan decides which image strips are resident at each step. It is a pure function of step and
 * seed, so that a run can be repeated and resumed.
 *
 * If all images fit the budget, all are resident. Else every view is cut into the same number of
 * strips of rows, and the device has `resident` slots of the largest strip's size. The seed
 * shuffles all strips; this order, repeated without end, is the sequence. In window w the positions
 * w * exchanged .. w * exchanged + resident - 1 of the sequence are on the device, position q in
 * slot q % resident. Rays pick any resident strip with equal probability. Each update interval of
 * training (16 steps) moves to the next window: `exchanged` strips leave and as many enter.
 * `exchanged` divides `resident`, so in a cycle of the sequence every strip is resident for the
 * same number of windows, whatever its size. Over a cycle each view gets the same share of rays as
 * if all were resident, and each row nearly so (strips' heights are rounded).
 *
 * Strips keep a part of nearly every view resident at any time; a window of whole views would pull
 * the field towards them. If host memory does not hold the images either, and each must be decoded
 * again when it enters, a view is a single strip: decoding a part costs as much as the whole.
 *
 * Progressive training begins with images downscaled by a power of two, which halves at milestones.
 * Strips enter with the current downscale, so that the images of a stage replace the previous ones
 * one by one. Slots have the size of the last stage. If all views are resident, as one strip each,
 * a view enters again, in the order of the sequence, only when its downscale has changed. */

/* Number of image exchanges in flight: one is read while the previous one is copied to the device.
 * A copy runs between two update intervals. Its buffer is free again when the exchange after the
 * next one needs it. */
#define IMAGES_EXCHANGES 2u

/* A plan for a set of training images. */
struct images_plan {
    uint32_t cameras; /* training views */
    uint32_t views;   /* training views of this rank's share */
    struct scene_share share;
    uint32_t strips;         /* per view; strip i of the share's view v is v * strips + i */
    uint32_t rows;           /* heights of strips, except the lowest one's, are multiples of this */
    uint32_t image_strips;   /* number of strips: views * strips */
    uint32_t resident;       /* strips on the device at a time */
    uint32_t exchanged;      /* strips that enter in each window; 0: nothing is streamed */
    uint64_t slot_pixels;    /* pixels of the largest strip */
    uint64_t pixels;         /* of the device's buffer */
    uint64_t bytes;          /* of the device's buffer, limited by the budget */
    uint64_t exchange_bytes; /* host memory of one exchange: pixels, then cameras */
    uint64_t all_bytes;      /* of all decoded images of the share */
    uint32_t first_cell;     /* of the error map, which follows the sky */
    uint32_t cell_edge;      /* of a cell of the error map, in pixels of a whole view */
    uint32_t view_cells;     /* most cells of the error map in a view, of all shares */
    uint32_t slot_cells;     /* most cells of the error map in a slot */
    bool cuts_panoramas;     /* panoramas are cut into strips, which differ in solid angle */
    uint64_t depths;         /* known depths of the training views, with loss.depth */
    float times[2];          /* first and last time of all training views */
    double up[3];            /* scene_up of the training views */
    float view_size;         /* mean of the longer sides of all training images, pixels */
};

/* Makes a plan for a budget of scene.image_budget or, if that is 0, `most` bytes, and for buffers
 * of at most `range` bytes. VKN_BAD_INPUT names the largest image if two of its strips do not fit,
 * or an image that the downscale of progressive training would leave without pixels. */
vkn_status images_make_plan(const struct vkn_scene *scene, const struct vkn_config *config,
                            uint64_t most, uint64_t range, struct images_plan *plan);

/* Makes a plan for a step; the default budget is most of the memory that other buffers leave. */
vkn_status images_plan_step(const struct gpu_device *device, const struct vkn_scene *scene,
                            const struct setup *setup, struct images_plan *plan);
/* Returns the number of cells of the error map along an edge of a view. */
uint32_t images_error_cells(const struct images_plan *plan, uint32_t pixels);
/* Returns the plan as step_create needs it. */
struct step_images images_of_step(const struct images_plan *plan);
/* Returns VKN_BAD_INPUT unless there are training images, each with pixels. */
vkn_status images_check(const struct vkn_scene *scene);

/* Returns whether scene.host_budget holds all decoded images of the share. */
bool images_fit_host(const struct vkn_scene *scene, const struct vkn_config *config);

/* Fills order[plan->image_strips] with the strips in the order of the sequence. */
void images_shuffle(const struct images_plan *plan, uint64_t seed, uint32_t *order);
/* Returns the position in the sequence of the strip that a slot holds in a window. */
uint64_t images_position(const struct images_plan *plan, uint64_t window, uint32_t slot);
/* Returns the window in which a position enters; 0 if it is resident from the start. */
uint64_t images_entry_window(const struct images_plan *plan, uint64_t position);

/* During a curriculum (dynamic.curriculum) rays are drawn only from views up to a time that rises
 * with the steps, or from the earliest views. If all views are resident, the cameras are sorted by
 * time, for each virtual rank separately. If strips are streamed, the sequence consists of the
 * strips up to that time. */

/* Returns the time up to which views are used at the step, as shaders/shared/progress.glsl computes
 * it; 1: all. `time_progress` as in stream_seek. */
float images_latest_time(const struct Config *constants, uint64_t step, double time_progress);
/* Fills order[] with the indices of the share's views, sorted by time. */
vkn_status images_sort(const struct scene_split *train, struct scene_share share, uint32_t *order);
/* Fills available[] with the strips of order[plan->image_strips] up to the time `latest`, or with
 * the earliest ones. Returns their number, at least 1. */
uint32_t images_available(const struct images_plan *plan, const struct scene_split *train,
                          const uint32_t *order, float latest, uint32_t *available);

/* An image strip in a slot of the device's buffer. */
struct images_strip {
    uint32_t view, first_row, rows; /* in the scene's image */
    uint32_t shrink, slot;          /* downscale factor; index of the slot */
    struct scene_camera camera;     /* of the downscaled strip; first_pixel: offset in the buffer */
};
/* Returns the strip with number `image_strip`, downscaled by `shrink`, in a slot. */
struct images_strip images_strip(const struct images_plan *plan, const struct scene_split *train,
                                 uint32_t image_strip, uint32_t slot, uint32_t shrink);

/* Returns a strip's camera for BIND_CAMERAS, including the strip's position in the error map. */
struct Camera images_camera(const struct images_plan *plan, const struct scene_split *train,
                            const struct images_strip *image_strip);

/* Returns the downscale factor at a progress (0..1) of the training; 1 unless progressive. */
uint32_t images_shrink(const struct vkn_config *config, double progress);
/* Returns the share of the training's steps before an update interval; 0 without a limit. */
double images_progress(const struct vkn_config *config, uint64_t interval);

/* ---- the stream ------------------------------------------------------------------------------ */

/* Background threads read the next strips, from the scene's pixels or from the files, into host
 * memory that the device can copy from. Between two update intervals the trainer submits the copies
 * of strips and cameras to their slots. Submissions run in order and intervals do not overlap, so
 * that rays never see half an exchange, and host and device do not wait for each other: an exchange
 * that is not read in time is submitted an interval later. A deterministic run waits for such an
 * exchange, so that the resident strips depend on the step alone. */

struct stream;

/* Decodes the share's images at once if they fit scene.host_budget; else they are read from their
 * files when strips of them enter. Finds the scene's background. `progress` may be NULL. */
vkn_status stream_load(struct vkn_scene *scene, const struct vkn_config *config,
                       void (*progress)(void *context, size_t done, size_t total), void *context);

/* Uploads the cameras of all training views, the start of their refinement and, unless the plan
 * streams, the share's images. */
vkn_status stream_upload_all(struct step *step, const struct images_plan *plan,
                             const struct vkn_scene *scene);

/* Creates the stream of a plan. `step`, `plan` and `scene` must outlive *stream, which the caller
 * destroys. */
vkn_status stream_create(struct step *step, const struct images_plan *plan,
                         const struct vkn_scene *scene, const struct vkn_config *config,
                         struct stream **stream);
/* Destroys the stream after waiting for its reads. Does nothing when *stream is NULL. */
void stream_destroy(struct stream **stream);

/* Uploads the strips of the step's window, as if no exchange had been late. Blocks; nothing may be
 * in flight. `time_progress`: share of the training's time limit that has passed; 0 without one. */
vkn_status stream_seek(struct stream *stream, uint64_t step, double time_progress);
/* Submits the exchange that is due, if any, and starts to read the next one. Called before the
 * update interval with `step` is submitted, after waiting for all intervals but the last. */
vkn_status stream_advance(struct stream *stream, uint64_t step, double time_progress);

/* Figures of a stream. */
struct stream_state {
    uint32_t shrink;    /* downscale factor of the strips that enter now */
    uint64_t exchanged; /* strips streamed since stream_create, without those of stream_seek */
    uint64_t late;      /* exchanges that were not read in time */
};
/* Returns the current figures. */
struct stream_state stream_state(const struct stream *stream);

/* ---- the error map --------------------------------------------------------------------------- */

/* Returns the number of struct ErrorCell of the error map in a checkpoint's state, and sets the
 * plan as far as that map depends on it. */
uint64_t images_saved_cells(const struct scene_split *train, const struct saved_state *saved,
                            struct images_plan *plan);
/* Counts the outlier cells of a map. */
struct step_outliers images_count_outliers(const struct images_plan *plan,
                                           const struct scene_split *train,
                                           const struct ErrorCell *map);
/* Writes a picture of the error map, of up to 24 training views, to the PNG file `path`: grey, with
 * outlier cells in red. Sets what images_count_outliers returns. */
vkn_status images_write_errors(const struct step *step, const struct images_plan *plan,
                               const struct scene_split *train, const char *path,
                               struct step_outliers *found);
/* Writes a mask for each training view to `folder`: grey PNG, 255 at used pixels, 0 at pixels that
 * the scene's mask hides or that are in an outlier cell. A mask is called as its image, below the
 * folder that contains all images, with ".png" appended and without "..". `map` NULL: no outliers.
 * `stop` may be NULL. */
vkn_status images_write_masks(const struct vkn_scene *scene, const struct images_plan *plan,
                              const struct ErrorCell *map, const char *folder,
                              const volatile sig_atomic_t *stop);

/* Returns the least mean squared error of a constant colour over the pixels of the training views,
 * composited on the background; 0 if the views cannot be read. */
double images_constant_error(const struct vkn_scene *scene, enum vkn_background background);

#endif
