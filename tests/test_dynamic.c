/* Steps and pictures of the dynamic model, whose samples go through a deformation in chunks before
 * a field that one pass goes through, or before one whose layers go on with the chunk.
 *
 * About 25 seconds, most of them the compiler's of ten trainers: each precision has programs of
 * its own, and a coarse field too. */
#include "step_fixture.h"

#include <math.h>

#include "gpu/internal.h"
#include "step/internal.h"
#include "render/field_query.h"
#include "render/render.h"

/* Views in another order than their moments'. */
static const char unordered[] = "{\"camera_angle_x\": 0.6, \"frames\": [" FRAME(
    "train/y", "1", "1,0,0,0", "0,0,1,4",
    "0,-1,0,0") ", " FRAME("train/z", "0.25", "1,0,0,0", "0,1,0,0",
                           "0,0,1,4") ", " FRAME("train/x", "0.5", "0,0,1,4", "0,1,0,0",
                                                 "-1,0,0,0") "]}";

static void make_unordered_scene(struct temporary *folder)
{
    make_scene(folder);
    temporary_text(folder, "transforms_train.json", unordered);
}

static int setup(void **state)
{
    return step_tests_open(state, make_unordered_scene);
}

/* Chunks of 832 samples: a step has room for five of them, and two are live. */
static struct vkn_config dynamic_config(void)
{
    struct vkn_config config = tiny_config(true);
    config.model = VKN_MODEL_DYNAMIC;
    config.batch.samples = 1024;
    config.batch.chunk = 832;
    config.dynamic.width = 32;
    config.dynamic.layers = 2;
    config.dynamic.time_features = VKN_SWITCH_ON;
    config.dynamic.learning_rate_factor = 1;
    return config;
}

/* One more than after which the occupancy grid is updated; matrices, which sample without it, take
 * a CPU device a third of a second each. */
#define STEPS        17u
#define MATRIX_STEPS 12u

/* A trainer whose parameters are taken after its steps. */

struct trained {
    struct tiny tiny;
    float *params;
    double first_loss, loss; /* of the first step and the last */
};

/* How many rays of a step are used, and how many of these are of a later moment than the first. All
 * that its views have pixels for are drawn. */
static void count_rays(const struct tiny *tiny, uint32_t *used, uint32_t *later)
{
    const struct step *step = &tiny->trainer->step;
    struct State *left = tiny_take(tiny, &step->buffers.at[BIND_STATE]);
    struct Ray *rays = tiny_take(tiny, &step->buffers.at[BIND_RAYS]);
    *used = *later = 0;
    for (uint32_t r = 0; r < left->ray_count; r++) {
        *used += rays[r].last > -1.5f;
        *later += rays[r].last > -1.5f && rays[r].time > 0.25f;
        assert_true(rays[r].last != -3.0f);
    }
    assert_true(*used > left->ray_count / 2);
    free(rays);
    free(left);
}

/* Trains, `measured` pass by pass at first as on a GPU. With a curriculum the first step draws from
 * the first moment's view alone, without one from all. */
static struct trained train(const struct step_tests *tests, const struct vkn_config *config,
                            bool measured)
{
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    enum gpu_device_type type = capabilities->type;
    struct trained trained = {.tiny = tiny_create(tests->context, tests->folder, config)};
    const struct step *step = &trained.tiny.trainer->step;
    uint32_t used, later;
    if (measured)
        capabilities->type = GPU_INTEGRATED;
    tiny_run(&trained.tiny, 1);
    count_rays(&trained.tiny, &used, &later);
    assert_true(config->dynamic.curriculum < 0 ? later > used / 2 : later == 0);
    uint32_t steps = config->precision == VKN_PRECISION_COOPMAT ? MATRIX_STEPS : STEPS;
    tiny_run(&trained.tiny, steps);
    assert_int_equal(step->measured, measured);
    capabilities->type = type;
    const struct Stats *stats = step->buffers.at[BIND_STATS].mapped;
    assert_int_equal(stats[steps].step, steps);
    trained.first_loss = (double)stats[1].loss;
    trained.loss = (double)stats[steps].loss;
    trained.params = tiny_take(&trained.tiny, &step->buffers.at[BIND_PARAMS]);
    return trained;
}

static void trained_destroy(struct trained *trained)
{
    free(trained->params);
    tiny_destroy(&trained->tiny);
}

/* Its last layer began with weights within 1e-4. */
static void assert_deforms(const struct trained *trained)
{
    const struct field_model *model = &trained->tiny.trainer->step.setup.model;
    const struct field_layer *last = &model->layers[model->layer_count - 1];
    double largest = 0;
    for (uint32_t i = 0; i < last->inputs * last->outputs; i++)
        largest = fmax(largest, fabs((double)trained->params[last->first + i]));
    assert_true(largest > 1e-3);
}

static float *render_at(const struct tiny *tiny, float time, double has_time)
{
    struct scene_camera camera = tiny->scene->splits[SCENE_TRAIN].cameras[0];
    vkn_renderer *renderer;
    struct vkn_picture picture;
    camera.time = time;
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    if (has_time >= 0)
        ok(vkn_renderer_set_time(renderer, has_time));
    ok(render_picture(renderer, &camera, VKN_BACKGROUND_WHITE, 1, &picture));
    size_t count = picture.width * (size_t)picture.height * 3;
    float *color = base_alloc(count, sizeof *color);
    memcpy(color, picture.color, count * sizeof *color);
    render_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
    return color;
}

/* A picture is of its moment: the camera's, or the one that all are frozen at. */
static void check_moments(const struct tiny *tiny)
{
    const size_t size = 12 * 10 * 3 * sizeof(float);
    float *early = render_at(tiny, 0.25f, -1), *late = render_at(tiny, 1, -1);
    float *has_time = render_at(tiny, 1, 0.25);
    assert_memory_equal(early, has_time, size);
    assert_memory_not_equal(early, late, size);
    free(early);
    free(late);
    free(has_time);
}

#define PLACES 64u

/* Colour and density at places of the cube at one moment. */
static void probe_places(const struct query *query, const struct gpu_bindings *bindings, bool color,
                         float (*values)[4])
{
    struct Ray rays[PLACES] = {0};
    struct Sample samples[PLACES];
    struct gpu_recording *recording = NULL;
    for (uint32_t i = 0; i < PLACES; i++) {
        for (int axis = 0; axis < 3; axis++)
            rays[i].origin[axis] = (float)((i >> (2 * axis)) % 4 + 1) / 5;
        rays[i].direction[2] = 1;
        rays[i].time = 0.75f;
        samples[i] = (struct Sample){.ray = i};
    }
    ok(gpu_upload(query->device, &query->buffers.at[BIND_RAYS], 0, rays, sizeof rays));
    ok(gpu_upload(query->device, &query->buffers.at[BIND_SAMPLES], 0, samples, sizeof samples));
    ok(gpu_record_begin(query->device, "probe", 0, &recording));
    field_query_record(query, recording, bindings, PLACES, color);
    ok(gpu_run_once(&recording));
    ok(gpu_download(query->device, &query->buffers.at[BIND_FIELD], 0, values,
                    PLACES * sizeof *values));
}

/* Densities alone, as a mesh asks for them, are those that come with colours. */
static void check_densities(const struct tiny *tiny)
{
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {NULL};
    struct gpu_bindings *bindings;
    vkn_renderer *renderer;
    struct query query;
    float colored[PLACES][4], alone[PLACES][4];
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    ok(field_query_create(renderer, &query));
    field_query_bind(&query, buffers);
    ok(gpu_bindings_create(query.device, buffers, &bindings));
    probe_places(&query, bindings, false, alone); /* nothing is there from before */
    probe_places(&query, bindings, true, colored);
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_true(colored[i][0] > 0);
        assert_true(alone[i][0] == 0);
        assert_close(alone[i][3], colored[i][3], 1e-5, colored[i][3], "density of place", i);
    }
    gpu_bindings_destroy(&bindings);
    field_query_destroy(&query);
    vkn_renderer_destroy(&renderer);
}

/* Densities before colours, and pass by pass, come to the same bits; 16 bits, in matrices and with
 * VKNERF_TEST_ALL in packed numbers too, of two ranks in turn whose gradients go in pieces, and a
 * coarse field with a deformation of its own to about the same loss. */
static void test_steps(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    struct trained whole = train(tests, &config, false);
    assert_deforms(&whole);
    check_moments(&whole.tiny);
    check_densities(&whole.tiny);

    config.march.visibility = VKN_SWITCH_ON;
    struct trained seen = train(tests, &config, true);
    assert_memory_equal(seen.params, whole.params,
                        whole.tiny.trainer->step.buffers.at[BIND_PARAMS].size);

    config = dynamic_config();
    config.precision = VKN_PRECISION_COOPMAT;
    config.dynamic.curriculum = -1;
    config.parallel.ranks_per_device = config.parallel.buckets = 2;
    if (tries_all()) {
        config.precision = VKN_PRECISION_FP16;
        struct trained ranks = train(tests, &config, false);
        assert_deforms(&ranks);
        assert_true(ranks.loss > 0.5 * whole.loss && ranks.loss < 1.5 * whole.loss);
        trained_destroy(&ranks);
        config.precision = VKN_PRECISION_COOPMAT;
    }
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = config.march.fine_samples = 8;
    config.batch.chunk = 2112; /* of two: each dispatch of matrices takes a CPU device its time */
    struct trained matrices = train(tests, &config, false);
    assert_deforms(&matrices);
    assert_true(matrices.loss > 0.5 * whole.loss && matrices.loss < 0.9 * matrices.first_loss);

    trained_destroy(&matrices);
    trained_destroy(&seen);
    trained_destroy(&whole);
}

/* Where two strips of six are on the device at a time, they are of views whose moment has come: no
 * step goes without its rays. What comes for a step comes there again when the training goes on
 * from it. */
static void test_exchanged(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    uint32_t used, later, ever = 0;
    config.scene.image_budget = 2 * 4 * 12 * 8;
    config.steps = 160;
    config.batch.chunk = 4096; /* rays alone are looked at */
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    const struct images_plan *plan = &tiny.trainer->images;
    assert_true(plan->exchanged > 0 && plan->resident < plan->image_strips);
    for (uint32_t period = 0; period < 9; period++) {
        tiny_run(&tiny, 16 * period + 1);
        count_rays(&tiny, &used, &later);
        /* The second view's moment is a third of the way, the last one's its end. */
        assert_true(period > 1 || later == 0);
        ever += later > 0;
    }
    assert_true(ever > 2);
    struct Camera *cameras = tiny_take(&tiny, &step->buffers.at[BIND_CAMERAS]);
    ok(stream_seek(tiny.trainer->stream, 16 * 4, 0));
    ok(stream_seek(tiny.trainer->stream, 16 * 8, 0));
    struct Camera *again = tiny_take(&tiny, &step->buffers.at[BIND_CAMERAS]);
    assert_memory_equal(cameras, again, step->buffers.at[BIND_CAMERAS].size);
    free(cameras);
    free(again);
    tiny_destroy(&tiny);
}

/* Loss of a step, and parameters of both fields after fifty. */
static double train_proposed(const struct step_tests *tests, enum vkn_precision precision,
                             double *first, float *params[2])
{
    struct vkn_config config = dynamic_config();
    config.precision = precision;
    tiny_propose(&config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    const struct Stats *stats = step->buffers.at[BIND_STATS].mapped;
    assert_int_equal(step->setup.backend.precision, precision);
    assert_int_equal(step->setup.proposal_backend.precision, precision);
    tiny_run(&tiny, 1);
    *first = (double)stats[1].loss;
    tiny_run(&tiny, 50); /* the proposal does not learn in this one */
    double loss = (double)stats[50].loss;
    for (uint32_t field = 0; field < 2; field++)
        params[field] = tiny_take(&tiny, &step_field_buffers(step, field)->at[BIND_PARAMS]);
    tiny_destroy(&tiny);
    return loss;
}

/* A proposal of all moments: the same bits again, and 16 bits end with about the same loss.
 * Matrices store their values as fp16 does, which takes its time to compile. */
static void test_proposal(void **state)
{
    static const enum vkn_precision precisions[] = {VKN_PRECISION_FP32, VKN_PRECISION_FP32,
                                                    VKN_PRECISION_COOPMAT, VKN_PRECISION_FP16};
    const size_t count = BASE_COUNT(precisions) - (tries_all() ? 0 : 1);
    float *params[BASE_COUNT(precisions)][2];
    double losses[BASE_COUNT(precisions)];
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    tiny_propose(&config);
    struct tiny fresh = tiny_create(tests->context, tests->folder, &config);
    float *begin = tiny_take(&fresh, &fresh.trainer->step.coarse.at[BIND_PARAMS]);
    const uint64_t sizes[] = {fresh.trainer->step.buffers.at[BIND_PARAMS].size,
                              fresh.trainer->step.coarse.at[BIND_PARAMS].size};
    for (size_t n = 0; n < count; n++) {
        double first, length = 0, apart = 0;
        losses[n] = train_proposed(tests, precisions[n], &first, params[n]);
        assert_true(losses[n] < 0.7 * first);
        assert_true(fabs(losses[n] - losses[0]) < 0.1 * losses[0]);
        for (size_t i = 0; i < sizes[1] / sizeof(float); i++) {
            length += pow((double)params[0][1][i] - (double)begin[i], 2);
            apart += pow((double)params[n][1][i] - (double)params[0][1][i], 2);
        }
        assert_true(apart < 0.1 * length); /* 0.02 of it */
        assert_true(n < 2 || apart > 0);   /* it does learn */
    }
    for (int field = 0; field < 2; field++)
        assert_memory_equal(params[0][field], params[1][field], sizes[field]);
    for (size_t n = 0; n < count; n++)
        for (int field = 0; field < 2; field++)
            free(params[n][field]);
    free(begin);
    tiny_destroy(&fresh);
}

/* Of vanilla's field: activations that are kept, or computed again behind densities that came
 * first, pass by pass, to the same bits; a coarse field, ranks and matrices to about the same loss.
 */
static void test_vanilla(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    config.dynamic.canonical = VKN_CANONICAL_VANILLA;
    config.optimizer.learning_rate = 5e-3f;
    config.mlp.density_width = config.mlp.geometry = config.mlp.color_width = 32;
    config.mlp.density_layers = config.mlp.skip_layer = 2;
    config.mlp.position_octaves = 3;
    config.mlp.direction_octaves = 1;
    config.mlp.activation_checkpointing = VKN_CHECKPOINTING_OFF;
    struct trained whole = train(tests, &config, false);
    assert_deforms(&whole);
    check_moments(&whole.tiny);
    check_densities(&whole.tiny);

    config.mlp.activation_checkpointing = VKN_CHECKPOINTING_ON;
    config.march.visibility = VKN_SWITCH_ON;
    struct trained seen = train(tests, &config, true);
    assert_memory_equal(seen.params, whole.params,
                        whole.tiny.trainer->step.buffers.at[BIND_PARAMS].size);

    config.precision = VKN_PRECISION_COOPMAT;
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = config.march.fine_samples = 8;
    config.batch.max_rays = 64;
    config.batch.chunk = 2112;
    config.dynamic.curriculum = -1;
    config.parallel.ranks_per_device = 2;
    struct trained matrices = train(tests, &config, false);
    assert_deforms(&matrices);
    assert_true(matrices.loss > 0.25 * whole.loss && matrices.loss < 0.9 * matrices.first_loss);

    trained_destroy(&matrices);
    trained_destroy(&seen);
    trained_destroy(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_exchanged),
        cmocka_unit_test(test_proposal),    cmocka_unit_test(test_vanilla),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    tiny_groups = TINY_GROUPS;
    return cmocka_run_group_tests(tests, setup, step_tests_teardown);
}
