/* Tests the ways of sampling (uniform, hierarchical, proposal) in whole steps. */
#include "step_fixture.h"

#include "render/render.h"

#define STEPS 16u

/* No pass updates the occupancy grid, and the grid has not changed. */
static void check_no_grid(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    float *cells = tiny_read(tiny, &step->buffers.at[BIND_OCCUPANCY]);
    uint32_t *bits = tiny_read(tiny, &step->buffers.at[BIND_OCCUPANCY_BITS]);
    for (size_t i = 0; i < step->pass_count; i++)
        assert_null(strstr(step->passes[i].pass->name, "occupancy"));
    for (size_t i = 0; i < step->buffers.at[BIND_OCCUPANCY].size / 4; i++)
        assert_true(cells[i] == 0 || cells[i] == -1);
    for (size_t i = 0; i < step->buffers.at[BIND_OCCUPANCY_BITS].size / 4; i++)
        assert_int_equal(bits[i], 0);
    free(cells);
    free(bits);
}

/* Number of a ray's samples at which the main field is evaluated; a proposal's do not count. */
static uint32_t samples_per_ray(const struct step *step)
{
    const struct Config *constants = &step->setup.constants;
    bool proposed = step->setup.config.march.sampling == VKN_SAMPLING_PROPOSAL;
    return (proposed ? 0 : constants->ray_samples) + constants->fine_samples;
}

/* The reported number of coarse samples is in proportion to the main field's. */
static void check_figures(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    const struct train_sampling sampling = train_sampling(tiny->trainer);
    double share = (double)step->setup.constants.ray_samples / samples_per_ray(step);
    double marched = sampling.evaluated - sampling.coarse;
    assert_true(marched > 1);
    if (step->setup.constants.fine_samples > 0)
        check_close(sampling.coarse, share * marched, 1e-6, marched, "coarse samples", 0);
}

/* All rays that meet the cube have equally many samples; the ray count keeps the number of live
 * samples near its target. */
static void check_counts(const struct tiny *tiny)
{
    const struct Config *constants = &tiny->trainer->step.setup.constants;
    struct State *state = tiny_read(tiny, &tiny->trainer->step.buffers.at[BIND_STATE]);
    struct RayResult *results = tiny_read(tiny, &tiny->trainer->step.buffers.at[BIND_RESULTS]);
    uint32_t rays = 0, each = samples_per_ray(&tiny->trainer->step);
    for (uint32_t r = 0; r < state->ray_count; r++) {
        assert_true(results[r].count == 0 || results[r].count == each);
        rays += results[r].count > 0;
    }
    assert_true(rays > state->ray_count / 2);
    assert_int_equal(state->sample_count, rays * each);
    assert_true(state->sample_count <= constants->sample_capacity);
    assert_true(state->live_count > 0 && state->live_count <= state->sample_count);
    assert_true(state->live_count < 3 * constants->target_samples / 2);
    free(state);
    free(results);
}

/* Mean squared difference between the first view rendered on white and the scene's picture. */
static double picture_error(const struct tiny *tiny)
{
    const struct scene_camera *camera = &tiny->scene->splits[SCENE_TRAIN].cameras[0];
    vkn_renderer *renderer;
    struct vkn_picture picture;
    double sum = 0;
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    ok(render_picture(renderer, camera, VKN_BACKGROUND_WHITE, 1, &picture));
    for (uint32_t i = 0; i < 12 * 10; i++) {
        uint32_t x = i % 12, y = i / 12;
        const double color[3] = {20 * x / 255.0, 25 * y / 255.0, 0};
        double alpha = x < 4 ? 60 / 255.0 : 1;
        for (int c = 0; c < 3; c++)
            sum += pow((double)picture.color[3 * i + c] - (color[c] * alpha + 1 - alpha), 2) / 360;
    }
    render_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
    return sum;
}

static void check_all_equal(const struct tiny *a, const struct tiny *b,
                            const struct gpu_buffer *of_a, const struct gpu_buffer *of_b)
{
    float *first = tiny_read(a, of_a), *second = tiny_read(b, of_b);
    assert_memory_equal(first, second, of_a->size);
    free(first);
    free(second);
}

/* Training improves the renderer's pictures, which use the same bins; deterministic trainings
 * repeat. */
static void check_sampling(struct step_tests *tests, struct vkn_config config)
{
    struct tiny runs[2];
    config.deterministic = false;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    double before = picture_error(&tiny);
    tiny_run(&tiny, 3 * STEPS);
    check_counts(&tiny);
    check_figures(&tiny);
    check_no_grid(&tiny);
    assert_true(picture_error(&tiny) < 0.3 * before);
    tiny_destroy(&tiny);
    config.deterministic = true;
    for (int run = 0; run < 2; run++) {
        runs[run] = tiny_create(tests->context, tests->folder, &config);
        tiny_run(&runs[run], 3 * STEPS);
        check_counts(&runs[run]);
    }
    const struct step *steps[2] = {&runs[0].trainer->step, &runs[1].trainer->step};
    check_all_equal(&runs[0], &runs[1], &steps[0]->buffers.at[BIND_PARAMS],
                    &steps[1]->buffers.at[BIND_PARAMS]);
    if (steps[0]->coarse.arena)
        check_all_equal(&runs[0], &runs[1], &steps[0]->coarse.at[BIND_PARAMS],
                        &steps[1]->coarse.at[BIND_PARAMS]);
    for (int run = 0; run < 2; run++)
        tiny_destroy(&runs[run]);
}

static void test_uniform(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 20;
    check_sampling(*state, config);
}

static struct vkn_config hierarchical(void)
{
    struct vkn_config config = tiny_config(true);
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 10;
    config.march.fine_samples = 14;
    return config;
}

static void test_hierarchical(void **state)
{
    check_sampling(*state, hierarchical());
}

static struct vkn_config proposed(void)
{
    struct vkn_config config = tiny_config(true);
    tiny_propose(&config);
    return config;
}

static void test_proposal(void **state)
{
    check_sampling(*state, proposed());
}

/* Returns the sum of squared changes of the parameters. */
static double squared_change(const struct tiny *tiny, const struct gpu_buffer *now,
                             const float *before)
{
    float *params = tiny_read(tiny, now);
    double sum = 0;
    for (size_t i = 0; i < now->size / 4; i++)
        sum += pow((double)params[i] - before[i], 2);
    free(params);
    return sum;
}

/* Returns the number of workgroups of a pass with an invocation per item; GPU kernels have a fixed
 * number. Idle slots of the update interval overwrite the number in the state. */
static uint32_t groups_for(const struct step *step, uint32_t count, uint32_t most)
{
    const struct Config *constants = &step->setup.constants;
    bool cpu_kernels = step->setup.backend.cpu_kernels;
    count = ((cpu_kernels ? count : constants->sample_capacity) - 1) / step->local_size + 1;
    most = cpu_kernels ? most : constants->forward_groups;
    return count < most ? count : most;
}

/* The gradient norm is of both fields in steps that train both, else of the fine field; the loss is
 * of the fine field, with the coarse field's beside it. The step leaves partial sums: the coarse
 * field's, then the fine one's. */
static void check_sums(const struct tiny *tiny, bool both)
{
    const struct step *step = &tiny->trainer->step;
    const struct gpu_buffer *fine = step->buffers.at;
    struct State *now = tiny_read(tiny, &fine[BIND_STATE]);
    float *sums = tiny_read(tiny, &fine[BIND_REDUCE]);
    const struct Stats *stats = step->buffers.at[BIND_STATS].mapped;
    const struct Stats *last = &stats[now->step % STATS_RING];
    double loss = 0, distortion = 0, squares = 0;
    bool has_distortion = step->setup.config.loss.distortion > 0;
    assert_true(sums[REDUCE_COARSE] > 0 && sums[REDUCE_COARSE + 1] > 0);
    if (both) {
        double coarse = sums[REDUCE_COARSE] / now->live_rays;
        check_close(last->coarse_loss, coarse, 1e-6, coarse, "coarse loss", now->step);
        squares = sums[REDUCE_COARSE + 1];
    }
    assert_true(both || last->coarse_loss < 0);
    for (uint32_t i = 0; i < groups_for(step, now->ray_count, UINT32_MAX); i++) {
        loss += sums[REDUCE_LOSS + 2 * i];
        distortion += has_distortion ? sums[REDUCE_DISTORTION + i] : 0;
    }
    check_close(last->distortion_loss, distortion / now->live_rays, 1e-4, last->distortion_loss,
                "distortion", now->step);
    uint32_t groups = groups_for(step, step->setup.constants.param_count, MAX_PARAM_WORKGROUPS);
    for (uint32_t i = 0; i < groups; i++)
        squares += sums[REDUCE_GRADIENT + i];
    check_close(last->loss, loss / now->live_rays, 1e-4, last->loss, "loss", now->step);
    check_close(last->grad_norm, sqrt(squares), 1e-4, last->grad_norm, "norm", now->step);
    free(sums);
    free(now);
}

/* Both fields are trained, each with its own parameters. */
static void check_both_fields(struct step_tests *tests, struct vkn_config config, uint32_t steps)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    const struct gpu_buffer *fine = step->buffers.at, *coarse = step->coarse.at;
    float *begin_fine = tiny_read(&tiny, &fine[BIND_PARAMS]);
    float *begin_coarse = tiny_read(&tiny, &coarse[BIND_PARAMS]);
    if (config.march.sampling == VKN_SAMPLING_HIERARCHICAL) /* of one shape */
        assert_true(squared_change(&tiny, &fine[BIND_PARAMS], begin_coarse) > 1);
    tiny_run(&tiny, steps);
    assert_true(squared_change(&tiny, &fine[BIND_PARAMS], begin_fine) > 1e-3);
    assert_true(squared_change(&tiny, &coarse[BIND_PARAMS], begin_coarse) > 1e-3);
    check_sums(&tiny, true);
    tiny_run(&tiny, 2 * STEPS);
    assert_true(squared_change(&tiny, &fine[BIND_AVERAGE], begin_fine) > 1e-3);
    assert_true(squared_change(&tiny, &coarse[BIND_AVERAGE], begin_coarse) > 1e-3);
    free(begin_fine);
    free(begin_coarse);
    tiny_destroy(&tiny);
}

static void test_both_fields(void **state)
{
    check_both_fields(*state, hierarchical(), STEPS);
    check_both_fields(*state, proposed(), STEPS - 1);
}

/* A proposal is trained in every step at first, later in every third; in other steps it does not
 * change, and loss and norm are only the main field's. */
static void test_proposal_learns(void **state)
{
    static const uint32_t numbers[] = {BIND_PARAMS, BIND_MOMENT1, BIND_MOMENT2, BIND_STEP_COUNTS};
    struct step_tests *tests = *state;
    struct vkn_config config = proposed();
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    tiny_run(&tiny, 6);
    for (uint32_t n = 7; n <= 13; n++) {
        bool learns = n <= 8 || n % 3 == 0;
        float *fine = tiny_read(&tiny, &step->buffers.at[BIND_PARAMS]);
        void *before[BASE_COUNT(numbers)];
        for (size_t i = 0; i < BASE_COUNT(numbers); i++)
            before[i] = tiny_read(&tiny, &step->coarse.at[numbers[i]]);
        tiny_run(&tiny, n);
        assert_true(squared_change(&tiny, &step->buffers.at[BIND_PARAMS], fine) > 0);
        for (size_t i = 0; i < BASE_COUNT(numbers); i++) {
            void *after = tiny_read(&tiny, &step->coarse.at[numbers[i]]);
            bool same = memcmp(before[i], after, step->coarse.at[numbers[i]].size) == 0;
            assert_true(same == !learns);
            free(before[i]);
            free(after);
        }
        check_sums(&tiny, learns);
        free(fine);
    }
    tiny_destroy(&tiny);
}

/* The pass that trains a proposal limits the number of samples. */
static void test_too_many_fine(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config config = proposed();
    vkn_scene *scene;
    vkn_trainer *trainer = NULL;
    config.march.fine_samples = 257;
    ok(vkn_scene_open(tests->folder->path, &config, &scene));
    assert_int_equal(vkn_trainer_create(tests->context, scene, &config, &trainer), VKN_BAD_INPUT);
    assert_message("march.fine_samples: 257, but a proposal can learn from 256 at most");
    vkn_scene_close(&scene);
}

/* A part of the loss is averaged over the steps that computed it. */
static void test_mean_losses(void **state)
{
    static const struct Stats stats[] = {{.loss = 1, .distortion_loss = 0.5f, .coarse_loss = 3},
                                         {.loss = 2, .distortion_loss = 0.25f, .coarse_loss = -1},
                                         {.loss = 3, .coarse_loss = 0}};
    struct step *step = base_alloc(1, sizeof *step);
    struct step_sums sums = {0};
    struct step_losses losses;
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(stats); i++)
        step_add_stats(&sums, &stats[i]);
    losses = step_mean_losses(step, &sums);
    assert_true(losses.color == 2 && isnan(losses.distortion) && isnan(losses.interlevel) &&
                isnan(losses.coarse));
    step->setup.config.loss.distortion = 0.01f;
    step->setup.config.march.sampling = VKN_SAMPLING_PROPOSAL;
    losses = step_mean_losses(step, &sums);
    assert_true(losses.distortion == 0.25 && losses.interlevel == 1.5 && isnan(losses.coarse));
    step->setup.config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    losses = step_mean_losses(step, &sums);
    assert_true(isnan(losses.interlevel) && losses.coarse == 1.5);
    free(step);
}

/* The distortion loss pulls together the fine field's samples only. */
static void check_distortion(struct step_tests *tests, struct vkn_config config)
{
    struct tiny plain = tiny_create(tests->context, tests->folder, &config);
    config.loss.distortion = 0.1f;
    struct tiny drawn = tiny_create(tests->context, tests->folder, &config);
    const struct step *a = &plain.trainer->step, *b = &drawn.trainer->step;
    tiny_run(&plain, 1);
    tiny_run(&drawn, 1);
    check_all_equal(&plain, &drawn, &a->coarse.at[BIND_PARAMS], &b->coarse.at[BIND_PARAMS]);
    float *fine = tiny_read(&plain, &a->buffers.at[BIND_PARAMS]);
    assert_true(squared_change(&drawn, &b->buffers.at[BIND_PARAMS], fine) > 1e-9);
    free(fine);
    tiny_destroy(&plain);
    tiny_destroy(&drawn);
}

static void test_distortion(void **state)
{
    check_distortion(*state, hierarchical());
    check_distortion(*state, proposed());
}

/* A checkpoint holds both fields: a resumed run gives the same bits and the same pictures. */
static void check_checkpoint(struct step_tests *tests, struct vkn_config config)
{
    struct tiny whole = tiny_create(tests->context, tests->folder, &config);
    struct tiny resumed = tiny_create(tests->context, tests->folder, &config);
    const struct scene_camera *camera = &whole.scene->splits[SCENE_TRAIN].cameras[0];
    char *path = base_format("%s/both.safetensors", tests->folder->path);
    vkn_renderer *renderers[2];
    struct vkn_picture pictures[2];
    tiny_run(&whole, 2 * STEPS); /* long enough for the average to differ */
    ok(vkn_trainer_save(whole.trainer, path));
    ok(vkn_renderer_of_trainer(whole.trainer, &renderers[0]));
    ok(vkn_renderer_open(tests->context, path, VKN_PRECISION_AUTO, &renderers[1]));
    for (int i = 0; i < 2; i++) {
        ok(render_picture(renderers[i], camera, VKN_BACKGROUND_WHITE, 1, &pictures[i]));
        vkn_renderer_destroy(&renderers[i]);
    }
    assert_memory_equal(pictures[0].color, pictures[1].color, 3 * 12 * 10 * sizeof(float));
    ok(vkn_trainer_resume(resumed.trainer, path));
    tiny_run(&whole, 3 * STEPS);
    tiny_run(&resumed, 3 * STEPS);
    const struct step *a = &whole.trainer->step, *b = &resumed.trainer->step;
    static const uint32_t numbers[] = {BIND_PARAMS, BIND_AVERAGE, BIND_MOMENT1, BIND_MOMENT2};
    for (size_t i = 0; i < BASE_COUNT(numbers); i++) {
        check_all_equal(&whole, &resumed, &a->buffers.at[numbers[i]], &b->buffers.at[numbers[i]]);
        check_all_equal(&whole, &resumed, &a->coarse.at[numbers[i]], &b->coarse.at[numbers[i]]);
    }
    for (int i = 0; i < 2; i++)
        render_picture_free(&pictures[i]);
    free(path);
    tiny_destroy(&whole);
    tiny_destroy(&resumed);
}

static void test_checkpoint(void **state)
{
    check_checkpoint(*state, hierarchical());
    check_checkpoint(*state, proposed());
}

/* Computing densities before colours gives the same numbers. */
static void check_visibility(struct step_tests *tests, struct vkn_config config, uint32_t fields)
{
    struct tiny whole = tiny_create(tests->context, tests->folder, &config);
    config.march.visibility = VKN_SWITCH_ON;
    struct tiny seen = tiny_create(tests->context, tests->folder, &config);
    const struct step *a = &whole.trainer->step, *b = &seen.trainer->step;
    tiny_run(&whole, STEPS);
    tiny_run(&seen, STEPS);
    /* Passes for densities, and find_visible. */
    assert_int_equal(b->pass_count, a->pass_count + 2 * fields);
    check_all_equal(&whole, &seen, &a->buffers.at[BIND_PARAMS], &b->buffers.at[BIND_PARAMS]);
    check_all_equal(&whole, &seen, &a->coarse.at[BIND_PARAMS], &b->coarse.at[BIND_PARAMS]);
    tiny_destroy(&whole);
    tiny_destroy(&seen);
}

static void test_visibility(void **state)
{
    check_visibility(*state, hierarchical(), 2);
    check_visibility(*state, proposed(), 1);
}

/* Both fields start from the weights of a run without a coarse field. */
static void test_init(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config plain = tiny_config(true), config = hierarchical();
    struct tiny from = tiny_create(tests->context, tests->folder, &plain);
    struct tiny to = tiny_create(tests->context, tests->folder, &config);
    char *path = base_format("%s/one.safetensors", tests->folder->path);
    tiny_run(&from, STEPS);
    ok(vkn_trainer_save(from.trainer, path));
    ok(vkn_trainer_init(to.trainer, path));
    const struct step *a = &from.trainer->step, *b = &to.trainer->step;
    check_all_equal(&from, &to, &a->buffers.at[BIND_PARAMS], &b->buffers.at[BIND_PARAMS]);
    check_all_equal(&from, &to, &a->buffers.at[BIND_PARAMS], &b->coarse.at[BIND_PARAMS]);
    check_all_equal(&from, &to, &a->buffers.at[BIND_AVERAGE], &b->coarse.at[BIND_AVERAGE]);
    free(path);
    tiny_destroy(&from);
    tiny_destroy(&to);
}

/* Creates a trainer that starts from the weights of another configuration's run. */
static struct tiny begin_from(struct step_tests *tests, const struct tiny *from,
                              struct vkn_config config)
{
    struct tiny to = tiny_create(tests->context, tests->folder, &config);
    char *path = tiny_save(tests, from, "from.safetensors");
    ok(vkn_trainer_init(to.trainer, path));
    free(path);
    return to;
}

/* A proposal starts from the file's proposal of the same shape, else from its initial values; the
 * main field always starts from the file. */
static void test_init_proposal(void **state)
{
    static const uint32_t numbers[] = {BIND_PARAMS, BIND_AVERAGE};
    struct step_tests *tests = *state;
    struct vkn_config others[] = {tiny_config(true), hierarchical(), proposed(), proposed()};
    struct vkn_config config = proposed();
    struct tiny fresh = tiny_create(tests->context, tests->folder, &config);
    others[3].proposal.log2_entries = 9; /* another shape */
    for (size_t n = 0; n < BASE_COUNT(others); n++) {
        struct tiny from = tiny_create(tests->context, tests->folder, &others[n]);
        tiny_run(&from, STEPS);
        struct tiny to = begin_from(tests, &from, config);
        const struct tiny *source = n == 2 ? &from : &fresh;
        for (size_t i = 0; i < BASE_COUNT(numbers); i++) {
            check_all_equal(&from, &to, &from.trainer->step.buffers.at[numbers[i]],
                            &to.trainer->step.buffers.at[numbers[i]]);
            check_all_equal(source, &to, &source->trainer->step.coarse.at[numbers[i]],
                            &to.trainer->step.coarse.at[numbers[i]]);
        }
        tiny_run(&to, 2); /* can be trained */
        tiny_destroy(&from);
        tiny_destroy(&to);
    }
    tiny_destroy(&fresh);
}

/* A coarse field that the file lacks, or has in another shape, starts from the fine one. */
static void test_init_from_proposal(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config config = proposed();
    struct tiny from = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&from, STEPS);
    struct tiny to = begin_from(tests, &from, hierarchical());
    const struct gpu_buffer *params = &from.trainer->step.buffers.at[BIND_PARAMS];
    check_all_equal(&from, &to, params, &to.trainer->step.buffers.at[BIND_PARAMS]);
    check_all_equal(&from, &to, params, &to.trainer->step.coarse.at[BIND_PARAMS]);
    tiny_destroy(&from);
    tiny_destroy(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_hierarchical),
        cmocka_unit_test(test_proposal),
        cmocka_unit_test(test_both_fields),
        cmocka_unit_test(test_proposal_learns),
        cmocka_unit_test(test_too_many_fine),
        cmocka_unit_test(test_mean_losses),
        cmocka_unit_test(test_distortion),
        cmocka_unit_test(test_visibility),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_init_proposal),
        cmocka_unit_test(test_init_from_proposal),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
    clean_up_tests();
    return failed;
}
