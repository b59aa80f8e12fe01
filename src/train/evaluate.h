/* Evaluation of a field on the views of a split; what train and eval share. */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include <vknerf/run.h>

#include "report/report.h"
#include "scene/scene.h"

/* Pictures of more views than this are not kept. */
#define EVALUATE_MAX_PICTURES 200u

struct evaluate_request {
    vkn_renderer *renderer;
    struct scene *scene; /* images that are not loaded are decoded one by one */
    enum scene_split_name split;
    enum vkn_background background; /* white or black */
    size_t stride;                  /* every stride-th view */
    const char *folder;             /* for pictures, see evaluate_picture_name; NULL: none */
    struct report_progress *progress;
    const volatile sig_atomic_t *stop; /* may be NULL */
};

/* VKN_INTERRUPTED when stopped. The caller frees *evaluation with vkn_evaluation_free. */
vkn_status evaluate(const struct evaluate_request *request, struct vkn_evaluation *evaluation);

/* The one asked for, else white, or black for a field trained on black. */
enum vkn_background evaluate_background(enum vkn_background asked, const struct vkn_config *config);

/* File name of a view's picture in the folder: "test_003.png", "test_003_target.png",
 * "test_003_error.png" for the kinds "", "_target", "_error". Fresh memory. */
char *evaluate_picture_name(const char *view, const char *kind);

/* Decodes a split with progress. */
vkn_status evaluate_load(struct scene *scene, enum scene_split_name split,
                         struct report_progress *progress);

#endif
