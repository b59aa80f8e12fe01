/* Tests training and pictures of the dynamic model, whose deformation runs in chunks before a field
 * that one pass evaluates, or before layers that are passes of their own.
 *
 * About 25 seconds, most of them compiling for ten trainers: each precision, and a coarse field,
 * has shaders of its own. */
#include "step_fixture.h"

#include <math.h>

#include "gpu/internal.h"
#include "step/internal.h"
#include "render/field_query.h"
#include "render/render.h"

/* The views are not in the order of their times. */
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

/* Chunks of 832 samples: a step has a capacity of five chunks, and two hold live samples. */
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

/* One more than the update interval of the occupancy grid. Matrices take a CPU device 1/3 second a
 * step, and sample without that grid. */
#define STEPS        17u
#define MATRIX_STEPS 12u

/* A trainer after its steps, with a copy of its parameters. */

struct trained {
    struct tiny tiny;
    float *params;
    double first_loss, loss; /* of the first step and of the last */
};

/* Counts the used rays of a step, and those with a later time than the first view's. No ray may be
 * of a view without pixels. */
static void count_rays(const struct tiny *tiny, uint32_t *used, uint32_t *later)
{
    const struct step *step = &tiny->trainer->step;
    struct State *left = tiny_read(tiny, &step->buffers.at[BIND_STATE]);
    struct Ray *rays = tiny_read(tiny, &step->buffers.at[BIND_RAYS]);
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

/* Trains; with `measured` pass by pass at first, as on a GPU. With a curriculum the first step's
 * rays all have the first view's time. */
static struct trained train(const struct step_tests *tests, const struct vkn_config *config,
                            bool measured)
{
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    enum gpu_device_type type = capabilities->type;
    struct trained trained = {.tiny = tiny_create(tests->context, tests->folder, config)};
    const struct step *step = &trained.tiny.trainer->step;
    uint32_t used, later;
    assert_true(config->precision == VKN_PRECISION_AUTO ||
                step->setup.backend.precision == config->precision); /* the self-test passes */
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
    trained.params = tiny_read(&trained.tiny, &step->buffers.at[BIND_PARAMS]);
    return trained;
}

static void trained_destroy(struct trained *trained)
{
    free(trained->params);
    tiny_destroy(&trained->tiny);
}

/* The weights of the deformation's last layer, initially within 1e-4, have grown. */
static void assert_deforms(const struct trained *trained)
{
    const struct field_model *model = &trained->tiny.trainer->step.setup.model;
    const struct field_layer *last = &model->layers[model->layer_count - 1];
    double largest = 0;
    for (uint32_t i = 0; i < last->inputs * last->outputs; i++)
        largest = fmax(largest, fabs((double)trained->params[last->first + i]));
    assert_true(largest > 1e-3);
}

static float *render_at(const struct tiny *tiny, float time, double fixed_time)
{
    struct scene_camera camera = tiny->scene->splits[SCENE_TRAIN].cameras[0];
    vkn_renderer *renderer;
    struct vkn_picture picture;
    camera.time = time;
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    if (fixed_time >= 0)
        ok(vkn_renderer_set_time(renderer, fixed_time));
    ok(render_picture(renderer, &camera, VKN_BACKGROUND_WHITE, 1, &picture));
    size_t count = picture.width * (size_t)picture.height * 3;
    float *color = base_alloc(count, sizeof *color);
    memcpy(color, picture.color, count * sizeof *color);
    render_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
    return color;
}

/* A picture has the camera's time, or the time that the renderer is fixed at. */
static void check_times(const struct tiny *tiny)
{
    const size_t size = 12 * 10 * 3 * sizeof(float);
    float *early = render_at(tiny, 0.25f, -1), *late = render_at(tiny, 1, -1);
    float *fixed_time = render_at(tiny, 1, 0.25);
    assert_memory_equal(early, fixed_time, size);
    assert_memory_not_equal(early, late, size);
    free(early);
    free(late);
    free(fixed_time);
}

#define POINTS 64u

/* Evaluates colour and density at positions in the cube, at one time. */
static void query_points(const struct query *query, const struct gpu_bindings *bindings, bool color,
                         float (*values)[4])
{
    struct Ray rays[POINTS] = {0};
    struct Sample samples[POINTS];
    struct gpu_recording *recording = NULL;
    for (uint32_t i = 0; i < POINTS; i++) {
        for (int axis = 0; axis < 3; axis++)
            rays[i].origin[axis] = (float)((i >> (2 * axis)) % 4 + 1) / 5;
        rays[i].direction[2] = 1;
        rays[i].time = 0.75f;
        samples[i] = (struct Sample){.ray = i};
    }
    ok(gpu_upload(query->device, &query->buffers.at[BIND_RAYS], 0, rays, sizeof rays));
    ok(gpu_upload(query->device, &query->buffers.at[BIND_SAMPLES], 0, samples, sizeof samples));
    ok(gpu_record_begin(query->device, "probe", 0, &recording));
    field_query_record(query, recording, bindings, POINTS, color);
    ok(gpu_run_once(&recording));
    ok(gpu_download(query->device, &query->buffers.at[BIND_FIELD], 0, values,
                    POINTS * sizeof *values));
}

/* Densities evaluated without colours, as for a mesh, equal densities evaluated with colours. */
static void check_densities(const struct tiny *tiny)
{
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {NULL};
    struct gpu_bindings *bindings;
    vkn_renderer *renderer;
    struct query query;
    float colored[POINTS][4], densities[POINTS][4];
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    ok(field_query_create(renderer, &query));
    field_query_bind(&query, buffers);
    ok(gpu_bindings_create(query.device, buffers, &bindings));
    query_points(&query, bindings, false, densities); /* no values from earlier */
    query_points(&query, bindings, true, colored);
    for (uint32_t i = 0; i < POINTS; i++) {
        assert_true(colored[i][0] > 0);
        assert_true(densities[i][0] == 0);
        check_close(densities[i][3], colored[i][3], 1e-5, colored[i][3], "density of point", i);
    }
    gpu_bindings_destroy(&bindings);
    field_query_destroy(&query);
    vkn_renderer_destroy(&renderer);
}

/* Densities first, measured pass by pass, give the same bits. Matrices (VKNERF_TEST_ALL: also
 * fp16), two ranks with gradient buckets, and a coarse field with its own deformation reach about
 * the same loss. */
static void test_steps(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    struct trained whole = train(tests, &config, false);
    assert_deforms(&whole);
    check_times(&whole.tiny);
    check_densities(&whole.tiny);

    config.march.visibility = VKN_SWITCH_ON;
    struct trained seen = train(tests, &config, true);
    assert_memory_equal(seen.params, whole.params,
                        whole.tiny.trainer->step.buffers.at[BIND_PARAMS].size);

    config = dynamic_config();
    config.precision = VKN_PRECISION_COOPMAT;
    config.dynamic.curriculum = -1;
    config.parallel.ranks_per_device = config.parallel.buckets = 2;
    if (check_everything()) {
        config.precision = VKN_PRECISION_FP16;
        struct trained ranks = train(tests, &config, false);
        assert_deforms(&ranks);
        assert_true(ranks.loss > 0.5 * whole.loss && ranks.loss < 1.5 * whole.loss);
        trained_destroy(&ranks);
        config.precision = VKN_PRECISION_COOPMAT;
    }
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = config.march.fine_samples = 8;
    config.batch.chunk = 2112; /* two chunks: each dispatch of matrices is slow on a CPU device */
    struct trained matrices = train(tests, &config, false);
    assert_deforms(&matrices);
    assert_true(matrices.loss > 0.25 * whole.loss && matrices.loss < 0.9 * matrices.first_loss);

    trained_destroy(&matrices);
    trained_destroy(&seen);
    trained_destroy(&whole);
}

/* With two of six image strips resident, the strips belong to views within the curriculum, and
 * every step has rays. Seeking back to a step loads the same strips. */
static void test_strips(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    uint32_t used, later, later_count = 0;
    config.scene.image_budget = 2 * 4 * 12 * 8;
    config.steps = 160;
    config.batch.chunk = 4096; /* only rays are checked */
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    const struct images_plan *plan = &tiny.trainer->images;
    assert_true(plan->exchanged > 0 && plan->resident < plan->image_strips);
    for (uint32_t interval = 0; interval < 9; interval++) {
        tiny_run(&tiny, 16 * interval + 1);
        count_rays(&tiny, &used, &later);
        /* The curriculum reaches view 2 after a third of the steps, the last view at the end. */
        assert_true(interval > 1 || later == 0);
        later_count += later > 0;
    }
    assert_true(later_count > 2);
    struct Camera *cameras = tiny_read(&tiny, &step->buffers.at[BIND_CAMERAS]);
    ok(stream_seek(tiny.trainer->stream, 16 * 4, 0));
    ok(stream_seek(tiny.trainer->stream, 16 * 8, 0));
    struct Camera *again = tiny_read(&tiny, &step->buffers.at[BIND_CAMERAS]);
    assert_memory_equal(cameras, again, step->buffers.at[BIND_CAMERAS].size);
    free(cameras);
    free(again);
    tiny_destroy(&tiny);
}

/* Returns the loss after 50 steps and the parameters of both fields. */
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
    tiny_run(&tiny, 50); /* the proposal does not learn in step 50 */
    double loss = (double)stats[50].loss;
    for (uint32_t field = 0; field < 2; field++)
        params[field] = tiny_read(&tiny, &step_field_buffers(step, field)->at[BIND_PARAMS]);
    tiny_destroy(&tiny);
    return loss;
}

/* A proposal for all times trains to the same bits twice, and with fp16 to about the same loss.
 * Matrices store values as fp16 does, and compile slowly. */
static void test_proposal(void **state)
{
    static const enum vkn_precision precisions[] = {VKN_PRECISION_FP32, VKN_PRECISION_FP32,
                                                    VKN_PRECISION_COOPMAT, VKN_PRECISION_FP16};
    const size_t count = BASE_COUNT(precisions) - (check_everything() ? 0 : 1);
    float *params[BASE_COUNT(precisions)][2];
    double losses[BASE_COUNT(precisions)];
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic_config();
    tiny_propose(&config);
    struct tiny fresh = tiny_create(tests->context, tests->folder, &config);
    float *initial = tiny_read(&fresh, &fresh.trainer->step.coarse.at[BIND_PARAMS]);
    const uint64_t sizes[] = {fresh.trainer->step.buffers.at[BIND_PARAMS].size,
                              fresh.trainer->step.coarse.at[BIND_PARAMS].size};
    for (size_t n = 0; n < count; n++) {
        double first, length = 0, apart = 0;
        losses[n] = train_proposed(tests, precisions[n], &first, params[n]);
        assert_true(losses[n] < 0.7 * first);
        assert_true(fabs(losses[n] - losses[0]) < 0.1 * losses[0]);
        for (size_t i = 0; i < sizes[1] / sizeof(float); i++) {
            length += pow((double)params[0][1][i] - (double)initial[i], 2);
            apart += pow((double)params[n][1][i] - (double)params[0][1][i], 2);
        }
        assert_true(apart < 0.1 * length); /* measured: 0.02 */
        assert_true(n < 2 || apart > 0);   /* the proposal learns */
    }
    for (int field = 0; field < 2; field++)
        assert_memory_equal(params[0][field], params[1][field], sizes[field]);
    for (size_t n = 0; n < count; n++)
        for (int field = 0; field < 2; field++)
            free(params[n][field]);
    free(initial);
    tiny_destroy(&fresh);
}

/* With vanilla as canonical field: stored activations, or checkpointing with densities first and
 * pass by pass, give the same bits; a coarse field, ranks and matrices reach a similar loss. */
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
    check_times(&whole.tiny);
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
    assert_true(matrices.loss > 0.125 * whole.loss && matrices.loss < 0.9 * matrices.first_loss);

    trained_destroy(&matrices);
    trained_destroy(&seen);
    trained_destroy(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_strips),
        cmocka_unit_test(test_proposal),    cmocka_unit_test(test_vanilla),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    tiny_groups = TINY_GROUPS;
    return cmocka_run_group_tests(tests, setup, step_tests_teardown);
}
