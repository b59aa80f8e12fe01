/* Declares what the parts of vkn_refine share. */
#ifndef REFINE_INTERNAL_H
#define REFINE_INTERNAL_H

#include <vknerf/refine.h>

#include "base/base.h"
#include "config/config.h"
#include "report/report.h"
#include "scene/scene.h"

/* The two sets of cameras, as indices of arrays. */
enum refine_cameras { REFINE_ORIGINAL, REFINE_OTHER, REFINE_SETS };
extern const char *const refine_set_names[REFINE_SETS]; /* "original", "refined" */

#define REFINE_VERDICT    "verdict.json"
#define REFINE_REPORT     "report.html"
#define REFINE_JSON_LIMIT ((size_t)256 << 20) /* bytes of a JSON file that is read */

/* One of the trainings that are compared. */
struct refine_run {
    char *folder;
    double psnr, ssim;
    double *views; /* [test views]: PSNR, NaN without pixels that count */
};

/* A view of the scene. */
struct refine_view {
    /* Movement, see struct report_refined_view, of a view that is rolled back before it was; NaN:
     * unknown. */
    double pixels, degrees, distance;
    double focal; /* refined focal length in parts of the original one; NaN: unknown */
    bool at_limit;
    /* Of the field that has refined the view, at the refined pose; PSNR in dB; NaN: unknown. */
    double psnr, ssim;
    bool misfits; /* both are much worse than the other views' */
    size_t test;  /* index of the test view; SIZE_MAX: none */
};

/* State of vkn_refine. */
struct refinement {
    const struct vkn_refine_params *params;
    struct vkn_train_params train; /* of the caller, completed */
    struct vkn_job job;
    struct vkn_config config; /* of all trainings: with the training space of the original */
    const char *out;
    char *work;                            /* out/refine */
    int lock;                              /* file descriptor; -1: none */
    char *paths[REFINE_SETS];              /* of the scenes */
    struct vkn_scene *scenes[REFINE_SETS]; /* with all views as training views */
    struct vkn_scene *split;               /* the original with its test views */
    struct refine_view *views;             /* [views of scenes[REFINE_ORIGINAL]] */
    uint32_t seeds;
    struct refine_run *runs[REFINE_SETS]; /* [seeds] */
    uint64_t steps;                       /* of each training; 0: not known yet */
    double limit;                         /* refine.limit; NaN: no refinement */
    char *device, *driver;
    double began; /* base_seconds() */
    struct vkn_refine_result result;
};

/* ---- cameras (cameras.c) --------------------------------------------------------------------- */

/* Opens the original scene, and checks that it can be refined and judged. Sets paths, config.scene,
 * `split`, scenes[REFINE_ORIGINAL], and allocates views. */
vkn_status refine_open_original(struct refinement *refinement);
/* Returns whether a view keeps its original pose: where it was moved to is not to be trusted. */
bool refine_rolls_back(const struct refine_view *view);
/* Reads the refined cameras of the training in `folder`, and writes the scene with them. Views that
 * are rolled back keep their poses. Sets views[].at_limit. VKN_BAD_INPUT: all views are rolled
 * back.
 */
vkn_status refine_write_scene(struct refinement *refinement, const char *folder);
/* Opens the other scene, checks that it has the same images, and measures how far its views are
 * from the original ones. */
vkn_status refine_open_other(struct refinement *refinement);

/* ---- trainings (trainings.c) ----------------------------------------------------------------- */

/* Trains a scene in the folder `name` of `work`, unless an earlier call has finished this training;
 * continues an interrupted one. *folder becomes the run directory, which the caller frees. */
vkn_status refine_train(struct refinement *refinement, const char *name, const char *scene,
                        const struct vkn_config *config, char **folder);
/* Measures how well each view fits the field that has refined it, by the training in `folder`. Sets
 * views[].psnr. */
vkn_status refine_measure_views(struct refinement *refinement, const char *folder);
/* Trains with each seed and both sets of cameras, and sets `runs`. */
vkn_status refine_compare(struct refinement *refinement);
/* Frees the runs. */
void refine_free_runs(struct refinement *refinement);

/* ---- verdict (verdict.c) --------------------------------------------------------------------- */

/* Sets the verdict, and what it rests on, from `seeds` trainings with each set of cameras, which
 * were evaluated on `views` test views. */
void refine_judge(struct refine_run *const runs[REFINE_SETS], uint32_t seeds, size_t views,
                  struct vkn_refine_result *result);
/* Finds the views whose PSNR and SSIM are far below the others': sets their `misfits`, and the
 * number. */
vkn_status refine_find_misfits(struct refine_view *views, size_t count, size_t *misfits);
/* Judges, and writes verdict.json and report.html. */
vkn_status refine_write_verdict(struct refinement *refinement);

#endif
