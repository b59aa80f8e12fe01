/* Evaluation of a field on the views of a split; what train and eval share. */
#ifndef RUN_EVALUATE_H
#define RUN_EVALUATE_H

#include <vknerf/run.h>

#include "report/report.h"
#include "scene/scene.h"

/* Pictures of more views than this are not kept. */
#define EVALUATE_MAX_PICTURES 200u

/* Pictures of a view. */
enum {
    EVALUATE_RENDER = 1,
    EVALUATE_TARGET = 2,
    EVALUATE_ERROR = 4,
    EVALUATE_DEPTH = 8, /* on a scale of its own */
    EVALUATE_OPACITY = 16,
    EVALUATE_ALL = 31
};

struct evaluate_request {
    vkn_renderer *renderer;
    struct scene *scene; /* images that are not loaded are decoded one by one */
    enum scene_split_name split;
    enum vkn_background background; /* white or black */
    size_t stride;                  /* every stride-th view */
    const char *folder;             /* for pictures, see run_picture_file; NULL: none */
    unsigned pictures;              /* which of EVALUATE_RENDER ... to write there */
    const char *prefix;             /* of the names of renders, "" or "step_000500_" */
    struct report_progress *progress;
    const volatile sig_atomic_t *stop; /* may be NULL */
};

/* VKN_INTERRUPTED when stopped. The caller frees *evaluation with vkn_evaluation_free. */
vkn_status evaluate(const struct evaluate_request *request, struct vkn_evaluation *evaluation);

/* The one asked for, else white, or black for a field trained on black. */
enum vkn_background evaluate_background(enum vkn_background asked, const struct vkn_config *config);

/* train_load_images with progress. */
vkn_status evaluate_load(struct scene *scene, const struct vkn_config *config,
                         struct report_progress *progress);

#endif
