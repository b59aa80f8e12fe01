/* Tests the share of floaters: the opacity of views in front of half the distance to the nearest
 * sparse point, for a field of density 1, whose opacity is known. */
#include "evaluation.h"

#include <math.h>

#define POINTS   200u /* points that each camera sees */
#define OUTLIERS 1u   /* points too near, fewer than one in a hundred, which are ignored */

/* Puts points at twice the distance of the cube's centre from each camera, and a near outlier. */
static void add_points(struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct scene_point *points =
        base_alloc(train->camera_count * (POINTS + OUTLIERS), sizeof *points);
    size_t count = 0;
    for (size_t view = 0; view < train->camera_count; view++)
        for (uint32_t i = 0; i < POINTS + OUTLIERS; i++, count++)
            for (int axis = 0; axis < 3; axis++) {
                float at = train->cameras[view].pose[4 * axis + 3];
                points[count].position[axis] = i < POINTS ? 1 - at : 0.5F + 0.7F * (at - 0.5F);
            }
    scene->points = points;
    scene->point_count = count;
}

/* Returns the opacity of a ray from the cube's face to the limit. */
static double expected_opacity(const struct scene_camera *camera, double x, double y, double limit)
{
    double origin[3], direction[3], span[2];
    scene_camera_ray(camera, x, y, origin, direction);
    if (!reference_cube(origin, direction, 1, span) || span[0] >= limit)
        return 0;
    return 1 - exp(-(fmin(span[1], limit) - span[0]));
}

static double expected_share(const struct scene_camera *camera)
{
    double away = 0, sum = 0;
    for (int axis = 0; axis < 3; axis++)
        away += pow((double)camera->pose[4 * axis + 3] - 0.5, 2);
    for (uint32_t y = 0; y < camera->height; y++)
        for (uint32_t x = 0; x < camera->width; x++)
            sum += expected_opacity(camera, x + 0.5, y + 0.5, sqrt(away));
    return sum / camera->width / camera->height;
}

static void test_share(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct gpu_buffer *average = &tiny.trainer->step.buffers.at[BIND_AVERAGE];
    float *zeros = calloc(average->size, 1);
    struct vkn_evaluation *evaluation;
    tiny_put(&tiny, average, zeros);

    evaluate_split(tiny.trainer, tiny.scene, SCENE_TRAIN, &evaluation);
    assert_true(isnan(evaluation->floaters)); /* no sparse model */
    double psnr = evaluation->psnr;
    vkn_evaluation_free(&evaluation);

    add_points(tiny.scene);
    evaluate_split(tiny.trainer, tiny.scene, SCENE_TRAIN, &evaluation);
    double sum = 0;
    for (size_t view = 0; view < evaluation->view_count; view++) {
        double expected = expected_share(&tiny.scene->splits[SCENE_TRAIN].cameras[view]);
        assert_true(expected > 0.3 && expected < 0.5);
        check_close(evaluation->views[view]->floaters, expected, 2e-3, expected, "view", view);
        sum += evaluation->views[view]->floaters;
    }
    check_close(evaluation->floaters, sum / (double)evaluation->view_count, 1e-9, 1, "mean", 0);
    assert_true(evaluation->psnr == psnr); /* the PSNR is of whole views */
    vkn_evaluation_free(&evaluation);
    free(zeros);
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_share)};
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
    clean_up_tests();
    return failed;
}
