/* Evaluates a field on the views of a split, as training does at its end. */
#ifndef TESTS_EVALUATION_H
#define TESTS_EVALUATION_H

#include "step_fixture.h"

#include "render/render.h"

/* Evaluates all views of the split on white. The caller frees *evaluation. */
static inline void evaluate_split(vkn_trainer *trainer, vkn_scene *scene,
                                  enum scene_split_name split, struct vkn_evaluation **evaluation)
{
    struct report_progress *progress = NULL;
    vkn_renderer *renderer = NULL;
    ok(report_progress_begin(NULL, 0, 0, &progress));
    ok(vkn_renderer_of_trainer(trainer, &renderer));
    const struct render_evaluation request = {.renderer = renderer,
                                              .scene = scene,
                                              .split = split,
                                              .background = VKN_BACKGROUND_WHITE,
                                              .stride = 1,
                                              .progress = progress};
    ok(render_evaluate(&request, evaluation));
    assert_int_equal((*evaluation)->view_count, scene->splits[split].camera_count);
    vkn_renderer_destroy(&renderer);
    report_progress_end(&progress);
}

/* Returns the mean PSNR of the views, in dB. */
static inline double psnr_of_split(vkn_trainer *trainer, vkn_scene *scene,
                                   enum scene_split_name split)
{
    struct vkn_evaluation *evaluation;
    evaluate_split(trainer, scene, split, &evaluation);
    double psnr = evaluation->psnr;
    vkn_evaluation_free(&evaluation);
    return psnr;
}

#endif
