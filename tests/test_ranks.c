/* Tests training on several ranks: threads with a device each, and one device that plays all ranks,
 * give the same checkpoint bit by bit; a stop, failure or divergence on one rank reaches all. */
#include "step_apart.h"

#include "memory_limit.h"

#include "gpu/internal.h"
#include "parallel/internal.h"
#include "step/internal.h"

#include <unistd.h>

#define MOST_RANKS 4u

/* ---- messages between ranks ---------------------------------------------------------------- */

struct member {
    struct parallel *end;
    uint32_t gathered[MOST_RANKS];
    uint64_t word;
    float values[1037], maxima[1037]; /* no multiple of a number of ranks */
    struct ErrorCell cells[1037];
    vkn_status last;
};

static float value_of(uint32_t rank, size_t i)
{
    double size = (1.0 + 0.37 * rank) / (double)(1 + i % 911) * (i % 3 ? 1e-3 : 1e4);
    return (float)(i % 7 ? size : -size); /* the largest is the last rank's, or the first's */
}

/* Sums of losses carry into the high word. */
static struct ErrorCell cell_of(uint32_t rank, uint32_t i)
{
    return (struct ErrorCell){(float)i, 0x70000000u * (i % 3) + i + rank, i % 7, i + 3 * rank};
}

/* Calls several collectives. Rank 1 leaves after the last but one; the others must notice. */
static vkn_status call_collectives(void *context)
{
    struct member *member = context;
    uint32_t rank = parallel_rank(member->end), sent = 100 + rank;
    member->word = rank == 0 ? 0x123456789abcdefu : 0;
    for (size_t i = 0; i < BASE_COUNT(member->values); i++)
        member->maxima[i] = member->values[i] = value_of(rank, i);
    for (uint32_t i = 0; i < BASE_COUNT(member->cells); i++)
        member->cells[i] = cell_of(rank, i);
    BASE_TRY(parallel_gather(member->end, &sent, sizeof sent, member->gathered));
    BASE_TRY(parallel_broadcast(member->end, &member->word, sizeof member->word));
    BASE_TRY(parallel_combine(member->end, parallel_mean_of, member->values,
                              BASE_COUNT(member->values)));
    BASE_TRY(
        parallel_combine(member->end, parallel_max_of, member->maxima, BASE_COUNT(member->maxima)));
    BASE_TRY(parallel_combine(member->end, step_add_errors, (float *)member->cells,
                              BASE_COUNT(member->cells) * 4));
    if (rank == 1)
        parallel_leave(member->end);
    else
        member->last = parallel_gather(member->end, &sent, sizeof sent, member->gathered);
    return VKN_OK;
}

static void check_collectives(uint32_t size)
{
    struct parallel_group *group;
    struct member members[MOST_RANKS] = {{0}};
    struct base_task *tasks[MOST_RANKS];
    ok(parallel_group_create(size, &group));
    for (uint32_t rank = 0; rank < size; rank++) {
        members[rank].end = parallel_group_rank(group, rank);
        assert_int_equal(parallel_size(members[rank].end), size);
        ok(base_task_start_thread(call_collectives, &members[rank], &tasks[rank]));
    }
    for (uint32_t rank = 0; rank < size; rank++)
        ok(base_task_wait(&tasks[rank]));
    for (uint32_t rank = 0; rank < size; rank++) {
        for (uint32_t other = 0; other < size; other++)
            assert_int_equal(members[rank].gathered[other], 100 + other);
        assert_true(members[rank].word == 0x123456789abcdefu);
        assert_int_equal(members[rank].last, rank == 1 ? VKN_OK : VKN_NO_DEVICE);
    }
    for (size_t i = 0; i < BASE_COUNT(members->values); i++) {
        float sum = value_of(0, i);
        for (uint32_t rank = 1; rank < size; rank++)
            sum += value_of(rank, i);
        sum *= 1.0f / (float)size;
        for (uint32_t rank = 0; rank < size; rank++) {
            assert_memory_equal(&members[rank].values[i], &sum, sizeof sum);
            assert_true(members[rank].maxima[i] == value_of(i % 7 ? size - 1 : 0, i));
        }
    }
    for (uint32_t i = 0; i < BASE_COUNT(members->cells); i++) {
        uint64_t losses = 0, rays = 0;
        for (uint32_t rank = 0; rank < size; rank++) {
            losses += (uint64_t)cell_of(rank, i).high << 32 | cell_of(rank, i).low;
            rays += cell_of(rank, i).rays;
        }
        const struct ErrorCell sum = {(float)i, (uint32_t)losses, (uint32_t)(losses >> 32),
                                      (uint32_t)rays};
        for (uint32_t rank = 0; rank < size; rank++)
            assert_memory_equal(&members[rank].cells[i], &sum, sizeof sum);
    }
    parallel_group_destroy(&group);
}

/* Means round as in shaders: to nearest, ties to even; overflow gives infinity. */
static void test_mean_of_f16(void **state)
{
    static const struct {
        uint32_t a, b, mean;
    } cases[] = {
        {0x3c00, 0x3c00, 0x3c00}, /* 1 */
        {0x3c00, 0xbc00, 0x0000}, {0x8000, 0x8000, 0x8000},
        {0x3c00, 0x3c01, 0x3c00}, /* tie to even: down */
        {0x3c01, 0x3c02, 0x3c02}, /* and up */
        {0x0001, 0x0001, 0x0001}, /* the smallest number */
        {0x0001, 0x0002, 0x0002}, {0x0000, 0x0001, 0x0000},
        {0x83ff, 0x8401, 0x8400}, {0x7bff, 0x7bff, 0x7bff}, /* the largest number */
        {0x7c00, 0x3c00, 0x7c00}, {0xfc00, 0x7bff, 0xfc00},
    };
    uint32_t a[1100], b[1100], nan = 0;
    float *const both[] = {(float *)a, (float *)b};
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(a); i++) {
        size_t low = i % BASE_COUNT(cases), high = (i + 5) % BASE_COUNT(cases);
        a[i] = cases[low].a | cases[high].a << 16;
        b[i] = cases[low].b | cases[high].b << 16;
    }
    parallel_mean_f16_of(both, 2, 1, 3, BASE_COUNT(a) - 1);
    for (size_t i = 0; i < BASE_COUNT(a); i++) {
        size_t low = i % BASE_COUNT(cases), high = (i + 5) % BASE_COUNT(cases);
        bool inside = i >= 3 && i + 1 < BASE_COUNT(a);
        assert_int_equal(a[i], inside ? cases[low].mean | cases[high].mean << 16
                                      : cases[low].a | cases[high].a << 16);
        assert_int_equal(b[i], cases[low].b | cases[high].b << 16);
    }
    a[0] = 0x7c003c00;
    b[0] = 0xfc003c00;
    parallel_mean_f16_of(both, 2, 2, 0, 1);
    nan = b[0] >> 16;
    assert_true((nan & 0x7c00) == 0x7c00 && (nan & 0x3ff) != 0 && (b[0] & 0xffff) == 0x3c00);
    assert_int_equal(a[0], b[0]);
}

static void test_collectives(void **state)
{
    struct parallel_group *group;
    (void)state;
    for (uint32_t size = 2; size <= MOST_RANKS; size++)
        check_collectives(size);
    assert_int_equal(parallel_group_create(PARALLEL_MOST_RANKS + 1, &group), VKN_BAD_INPUT);
    assert_null(group);
}

/* ---- a team of ranks ----------------------------------------------------------------------- */

static vkn_context *contexts[MOST_RANKS];

struct rank {
    const struct step_tests *tests;
    const struct vkn_config *config;
    struct parallel *end;
    const char *from; /* checkpoint that rank 0 resumes; NULL: none */
    uint32_t until;
    void (*prepare)(struct rank *rank); /* called once all ranks have the same state; may be NULL */
    const volatile sig_atomic_t *stop;
    struct tiny tiny;
    struct warnings warnings;
    vkn_status status;
    bool all_late; /* whether all ranks saw the final state, not only rank 0 */
    char message[512];
};

static vkn_status run_rank(struct rank *rank)
{
    struct tiny *tiny = &rank->tiny;
    uint32_t number = parallel_rank(rank->end);
    *tiny = (struct tiny){.context = contexts[number]};
    BASE_TRY(vkn_scene_open(rank->tests->folder->path, rank->config, &tiny->scene));
    BASE_TRY(train_create(tiny->context, tiny->scene, rank->config, rank->end, &tiny->trainer));
    if (rank->from && number == 0)
        BASE_TRY(vkn_trainer_resume(tiny->trainer, rank->from));
    BASE_TRY(train_broadcast_state(tiny->trainer));
    if (rank->prepare)
        rank->prepare(rank);
    /* Rank 0 decides when all stop. */
    const struct vkn_train_run run = {.until_step = number == 0 ? rank->until : 1,
                                      .warn = store_warning,
                                      .context = &rank->warnings,
                                      .stop = rank->stop};
    return vkn_trainer_run(tiny->trainer, &run);
}

static vkn_status run_and_leave(void *context)
{
    struct rank *rank = context;
    rank->status = run_rank(rank);
    if (rank->status != VKN_OK)
        snprintf(rank->message, sizeof rank->message, "%s", vkn_last_error());
    const bool here[MOST_RANKS] = {true};
    rank->all_late = parallel_may_be_late(rank->end, here);
    train_leave(rank->end, rank->status);
    return VKN_OK;
}

/* Runs ranks that are copies of `like`; the caller destroys the trainers. */
static void run_team(const struct rank *like, uint32_t size, struct rank ranks[MOST_RANKS])
{
    struct parallel_group *group;
    struct base_task *tasks[MOST_RANKS];
    ok(parallel_group_create(size, &group));
    for (uint32_t number = 0; number < size; number++) {
        ranks[number] = *like;
        ranks[number].end = parallel_group_rank(group, number);
        ok(base_task_start_thread(run_and_leave, &ranks[number], &tasks[number]));
    }
    for (uint32_t number = 0; number < size; number++)
        ok(base_task_wait(&tasks[number]));
    parallel_group_destroy(&group);
}

static void destroy_team(struct rank ranks[MOST_RANKS], uint32_t size)
{
    for (uint32_t number = 0; number < size; number++)
        tiny_destroy(&ranks[number].tiny);
}

static void ok_ranks(const struct rank ranks[MOST_RANKS], uint32_t size)
{
    for (uint32_t number = 0; number < size; number++)
        if (ranks[number].status != VKN_OK)
            fail_msg("rank %u: %s", number, ranks[number].message);
}

/* ---- same bits ----------------------------------------------------------------------------- */

/* Trains on threads with a device each; returns the checkpoint. */
static char *train_on_threads(const struct step_tests *tests, const struct vkn_config *config,
                              uint32_t size, const char *from, uint32_t until, const char *name)
{
    struct rank ranks[MOST_RANKS];
    const struct rank like = {.tests = tests, .config = config, .from = from, .until = until};
    run_team(&like, size, ranks);
    ok_ranks(ranks, size);
    for (uint32_t number = 0; number < size; number++) {
        assert_int_equal(vkn_trainer_step(ranks[number].tiny.trainer), until);
        assert_false(ranks[number].all_late);
    }
    char *path = tiny_save(tests, &ranks[0].tiny, name);
    destroy_team(ranks, size);
    return path;
}

/* Trains on one device that plays all ranks in turn. */
static char *train_in_turn(const struct step_tests *tests, const struct vkn_config *config,
                           uint32_t size, const char *from, uint32_t until, const char *name)
{
    struct vkn_config in_turn = *config;
    in_turn.parallel.ranks_per_device = size;
    return tiny_train(tests, &in_turn, from, until, name);
}

static void check_bits(const struct step_tests *tests, const struct vkn_config *config,
                       uint32_t size, uint32_t steps)
{
    char *on_threads = train_on_threads(tests, config, size, NULL, steps, "together");
    char *in_turn = train_in_turn(tests, config, size, NULL, steps, "in-turn");
    assert_true(same_checkpoints(on_threads, in_turn));
    free(on_threads);
    free(in_turn);
}

static void check_other_bits(const struct step_tests *tests, const struct vkn_config *config)
{
    char *two = train_in_turn(tests, config, 2, NULL, 5, "two");
    char *three = train_in_turn(tests, config, 3, NULL, 5, "three");
    assert_false(same_checkpoints(two, three));
    free(two);
    free(three);
}

/* All ranks drop rays by the mean loss of all ranks' rays, and by the same gain. */
static void test_dropped_rays(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.batch.keep = 0.4f;
    check_bits(*state, &config, 2, 20);
    config.parallel.buckets = 2;
    check_bits(*state, &config, 3, 5);
}

static void test_same_bits(void **state)
{
    struct vkn_config config = tiny_config(true);
    check_bits(*state, &config, 2, 18);
    check_bits(*state, &config, 4, 18);
    config.batch.by_error = 0.5f;
    config.scene.refine = VKN_REFINEMENT_ALL;
    config.scene.appearance = VKN_APPEARANCE_FULL;
    config.scene.sky = VKN_SWITCH_ON;
    check_bits(*state, &config, 3, 18);
    check_other_bits(*state, &config);
    config.precision = VKN_PRECISION_FP16;
    config.batch.samples = 1056;
    check_bits(*state, &config, 2, 18);
}

/* Half as many samples a step, for tests that do not depend on them. */
static struct vkn_config small_batch_config(void)
{
    struct vkn_config config = tiny_config(true);
    config.batch.samples = 1056;
    return config;
}

static void sample_hierarchically(struct vkn_config *config)
{
    config->march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config->march.coarse_samples = 8;
    config->march.fine_samples = 16;
}

static void test_other_models(void **state)
{
    struct vkn_config config = small_batch_config();
    sample_hierarchically(&config);
    check_bits(*state, &config, 2, 18);
    config = small_batch_config();
    tiny_propose(&config);
    check_bits(*state, &config, 2, 18);
    const struct vkn_config vanilla = {
        .model = VKN_MODEL_VANILLA,
        .deterministic = true,
        .steps = 60,
        .mlp = {.density_width = 32, .density_layers = 2, .geometry = 32, .color_width = 32},
        .march = {.resolution = 16, .steps_per_unit = 64},
        .batch = {.samples = 1024, .max_rays = 256},
    };
    check_bits(*state, &vanilla, 2, 18);
}

/* An all-reduce in buckets, overlapped with computation, gives the same bits, whichever rank
 * updates which cells of the occupancy grid. */
static void check_buckets(const struct step_tests *tests, struct vkn_config config)
{
    config.parallel.buckets = 1;
    char *whole = train_in_turn(tests, &config, 2, NULL, 18, "whole");
    config.parallel.buckets = 3;
    config.parallel.cells = VKN_PART_ALL;
    char *on_threads = train_on_threads(tests, &config, 2, NULL, 18, "together");
    char *in_turn = train_in_turn(tests, &config, 2, NULL, 18, "in-turn");
    assert_true(same_tensors(whole, on_threads));
    assert_true(same_tensors(whole, in_turn));
    free(whole);
    free(on_threads);
    free(in_turn);
}

static void test_buckets(void **state)
{
    struct vkn_config config = small_batch_config();
    check_buckets(*state, config);
    sample_hierarchically(&config);
    check_buckets(*state, config);
    tiny_propose(&config);
    check_buckets(*state, config);
}

/* Accumulators of atomics are cleared to zero. */
static void check_cleared(const struct step_tests *tests, struct vkn_config config)
{
    config.parallel.ranks_per_device = 2;
    config.parallel.communication_type = VKN_COMMUNICATION_F16;
    struct tiny tiny = tiny_create(contexts[0], tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    tiny_run(&tiny, 2);
    for (uint32_t field = 0; field < step_field_count(step); field++) {
        const struct field_model *model = &step_field_setup(step, field)->model;
        float *gradients = tiny_read(&tiny, &step_field_buffers(step, field)->at[BIND_GRADIENTS]);
        for (size_t i = model->mlp_params; i < model->param_count; i++)
            assert_true(gradients[i] == 0);
        free(gradients);
    }
    tiny_destroy(&tiny);
}

static struct State state_in(const char *path)
{
    struct safetensors_file *file = NULL;
    const struct safetensors_tensor *tensor = NULL;
    struct State state;
    ok(safetensors_open(path, &file));
    ok(safetensors_find(file, "state", SAFETENSORS_U32, sizeof state / 4, &tensor));
    memcpy(&state, tensor->data, sizeof state);
    safetensors_close(&file);
    return state;
}

/* f16 communication gives the same bits with all transports, other bits than f32. */
static void check_f16_communication(const struct step_tests *tests, struct vkn_config config)
{
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 0x1p126f; /* overflows, which all ranks tolerate and count */
    config.loss_scale.backoff = 0x1p-9f;
    config.loss_scale.hysteresis = 3;
    config.parallel.buckets = 2;
    char *floats = train_in_turn(tests, &config, 2, NULL, 20, "floats");
    config.parallel.communication_type = VKN_COMMUNICATION_F16;
    char *on_threads = train_on_threads(tests, &config, 2, NULL, 20, "together");
    char *in_turn = train_in_turn(tests, &config, 2, NULL, 20, "in-turn");
    assert_true(same_checkpoints(on_threads, in_turn));
    struct State left = state_in(on_threads);
    assert_true(left.tolerated == 2 && left.updates > 0 && left.skipped_steps > 2);
    assert_false(same_tensors(on_threads, floats));
    free(floats);
    free(on_threads);
    free(in_turn);
}

static void test_f16_communication(void **state)
{
    for (int proposed = 0; proposed < 2; proposed++) {
        struct vkn_config config = tiny_config(true);
        if (proposed)
            tiny_propose(&config);
        check_f16_communication(*state, config);
        config.deterministic = false;
        check_cleared(*state, config);
    }
}

/* Resumes from a checkpoint within an update interval, whoever wrote it. The checkpoint has the
 * losses of all ranks since the interval began. */
static void test_resume(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.batch.by_error = 0.5f;
    config.scene.refine = VKN_REFINEMENT_ALL;
    config.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    config.scene.sky = VKN_SWITCH_ON;
    char *whole = train_in_turn(*state, &config, 2, NULL, 34, "whole");
    char *begun = train_on_threads(*state, &config, 2, NULL, 21, "begun");
    char *ranks_per_device = train_in_turn(*state, &config, 2, begun, 34, "turns");
    char *team = train_on_threads(*state, &config, 2, begun, 34, "team");
    char *more = train_on_threads(*state, &config, 3, begun, 34, "more");
    assert_true(same_checkpoints(whole, ranks_per_device));
    assert_true(same_checkpoints(whole, team));
    assert_false(same_checkpoints(whole, more));
    free(whole);
    free(begun);
    free(ranks_per_device);
    free(team);
    free(more);
}

/* ---- one rank with more rays --------------------------------------------------------------- */

/* Statistics of the first step: the same rays in two ranks of 256 and in one of 512. */
static struct vkn_train_stats first_step;

static void store_first(void *context, const struct vkn_train_stats *stats)
{
    (void)context;
    first_step = *stats;
}

static struct vkn_train_stats run_first(const struct step_tests *tests,
                                        const struct vkn_config *config)
{
    const struct vkn_train_run run = {.until_step = 1, .report = store_first};
    struct tiny tiny = tiny_create(contexts[0], tests->folder, config);
    ok(vkn_trainer_run(tiny.trainer, &run));
    tiny_destroy(&tiny);
    return first_step;
}

/* Runs the first step with one rank and with two; leaves the settings of two ranks in `config`. */
static void check_first(const struct step_tests *tests, struct vkn_config *config,
                        struct vkn_train_stats *single, struct vkn_train_stats *both)
{
    config->batch.max_rays = 512;
    config->batch.samples = 8192;
    *single = run_first(tests, config);
    config->batch.max_rays = 256;
    config->batch.samples = 4096;
    config->parallel.ranks_per_device = 2;
    *both = run_first(tests, config);
    check_close(both->loss, single->loss, 1e-6, single->loss, "loss", 0);
    if (config->loss.distortion < 0)
        assert_true(isnan(both->distortion_loss));
    else
        check_close(both->distortion_loss, single->distortion_loss, 1e-5, single->distortion_loss,
                    "distortion loss", 0);
    if (config->march.sampling == VKN_SAMPLING_PROPOSAL)
        check_close(both->interlevel_loss, single->interlevel_loss, 1e-5, single->interlevel_loss,
                    "interlevel loss", 0);
    check_close(both->psnr, single->psnr, 1e-6, single->psnr, "psnr", 0);
    check_close(both->grad_norm, single->grad_norm, 1e-5, single->grad_norm, "gradient", 0);
    /* The first step keeps all rays: each rank has as many kept as live samples and rays. */
    assert_true(both->kept_share == single->kept_share && both->keep_weight == single->keep_weight);
}

/* A proposal's loss is a part of the loss by itself, and its gradient is in the gradient norm. */
static void test_first_step_of_two(void **state)
{
    struct vkn_config config = tiny_config(false);
    struct vkn_train_stats single, both;
    tiny_propose(&config);
    config.loss.distortion = 0.02f;
    config.loss.interlevel = 1e3f; /* large, as a new proposal has small gradients */
    check_first(*state, &config, &single, &both);
    config.loss.interlevel = 1e-9f;
    struct vkn_train_stats less = run_first(*state, &config);
    assert_true(less.grad_norm < 0.9 * single.grad_norm);
    check_close(less.loss, single.loss, 1e-6, single.loss, "loss", 0);
    check_close(less.interlevel_loss, 1e-12 * single.interlevel_loss, 1e-4, less.interlevel_loss,
                "interlevel loss", 0);
}

static void test_first_step(void **state)
{
    struct vkn_config config = tiny_config(false);
    struct vkn_train_stats single, both;
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 8;
    config.batch.keep = 0.5f;
    config.loss.distortion = -1;
    check_first(*state, &config, &single, &both);
    config.parallel.buckets = 2;
    config.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    config.loss_scale.initial = 65536; /* high enough for the gradients of few rays */
    config.parallel.communication_type = VKN_COMMUNICATION_F16;
    struct vkn_train_stats rounded = run_first(*state, &config);
    check_close(rounded.loss, single.loss, 1e-6, single.loss, "loss", 0);
    check_close(rounded.grad_norm, single.grad_norm, 1e-3, single.grad_norm, "gradient", 0);
    assert_true(rounded.grad_norm != both.grad_norm);
    config.gradient_sums = VKN_SUMS_F16;
    struct vkn_train_stats f16_sums = run_first(*state, &config);
    check_close(f16_sums.grad_norm, single.grad_norm, 3e-3, single.grad_norm, "gradient", 0);
    config.gradient_sums = VKN_SUMS_DEFAULT;
    config.parallel.ranks_per_device = 1;
    struct vkn_train_stats half = run_first(*state, &config);
    assert_true(fabs(half.grad_norm - single.grad_norm) > 1e-3 * single.grad_norm);
}

/* ---- devices that are measured first ------------------------------------------------------- */

/* Treats the device as of unknown type, which needs measuring, but keeps a CPU's settings. */
static void make_unknown(struct rank *rank)
{
    contexts[parallel_rank(rank->end)]->device->support.capabilities.type = GPU_OTHER;
}

/* Splitting a step into submissions, after every pass in the first step, changes no bits. */
static void test_adapting(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config one = tiny_config(true);
    struct vkn_config config = one;
    enum gpu_device_type *type = &contexts[0]->device->support.capabilities.type, before = *type;
    char *whole = train_in_turn(tests, &config, 2, NULL, 20, "whole");
    config.parallel.ranks_per_device = 2;
    struct tiny tiny = tiny_create(contexts[0], tests->folder, &config);
    struct step *step = &tiny.trainer->step;
    *type = GPU_OTHER; /* with the settings of a CPU */
    assert_true(step_splits_submissions(step) && !step->measured);
    tiny_run(&tiny, 15);
    assert_true(step->measured);
    for (size_t i = 0; i < step->pass_count; i++)
        step->pass_seconds[i] = 1; /* one submission per pass from the next update interval on */
    tiny_run(&tiny, 20);
    *type = before;
    char *parts = tiny_save(tests, &tiny, "parts");
    assert_true(same_checkpoints(whole, parts));
    tiny_destroy(&tiny);
    free(parts);
    struct rank ranks[MOST_RANKS];
    const struct rank like = {.tests = tests, .config = &one, .until = 20, .prepare = make_unknown};
    run_team(&like, 2, ranks);
    ok_ranks(ranks, 2);
    for (uint32_t number = 0; number < 2; number++) {
        const struct step *rank_step = &ranks[number].tiny.trainer->step;
        assert_true(rank_step->measured);
        assert_int_equal(rank_step->setup.constants.cell_shares, 2);
        assert_int_equal(rank_step->setup.constants.cell_share, number);
        contexts[number]->device->support.capabilities.type = before;
    }
    char *on_threads = tiny_save(tests, &ranks[0].tiny, "together");
    assert_true(same_checkpoints(whole, on_threads));
    destroy_team(ranks, 2);
    free(whole);
    free(on_threads);
}

/* ---- parameter averaging ------------------------------------------------------------------- */

/* A rank's state after an update interval on its own. */
struct outcome {
    float *params, *moments[MAX_MOMENTS], *occupancy;
    uint32_t *counts;
};

/* Reads a moment as f32. */
static float *read_moment(const struct tiny *tiny, uint32_t field, uint32_t i)
{
    const struct step *step = &tiny->trainer->step;
    const struct saved_buffer saved = {.number = BIND_MOMENT1 + i, .coarse = field > 0};
    float *values = base_alloc(step_saved_size(step, &saved), 1);
    ok(step_download_saved(step, &saved, values));
    return values;
}

static struct outcome read_outcome(const struct tiny *tiny, uint32_t field)
{
    const struct gpu_buffer *at = step_field_buffers(&tiny->trainer->step, field)->at;
    const struct gpu_buffer *cells = &tiny->trainer->step.buffers.at[BIND_OCCUPANCY];
    return (struct outcome){tiny_read(tiny, &at[BIND_PARAMS]),
                            {read_moment(tiny, field, 0), read_moment(tiny, field, 1)},
                            tiny_read(tiny, cells),
                            tiny_read(tiny, &at[BIND_STEP_COUNTS])};
}

static void free_outcome(struct outcome *outcome)
{
    free(outcome->params);
    for (uint32_t i = 0; i < MAX_MOMENTS; i++)
        free(outcome->moments[i]);
    free(outcome->occupancy);
    free(outcome->counts);
}

static struct outcome run_alone(const struct step_tests *tests, const struct vkn_config *config,
                                uint32_t rank, uint32_t field)
{
    struct tiny tiny = tiny_create(contexts[0], tests->folder, config);
    struct step *step = &tiny.trainer->step;
    struct Config *const both[] = {&step->setup.constants, &step->coarse_setup.constants};
    for (size_t n = 0; n < BASE_COUNT(both); n++) {
        both[n]->first_ray = rank * both[n]->ray_capacity;
        for (size_t i = 0; i < MAX_PARAMETER_GROUPS; i++) /* learning rates of two ranks */
            both[n]->groups[i].rate *= sqrtf(2);
    }
    ok(step_upload_constants(step));
    tiny_run(&tiny, 16);
    struct outcome outcome = read_outcome(&tiny, field);
    tiny_destroy(&tiny);
    return outcome;
}

/* Averages weight grid entries by each rank's steps with them, MLP weights equally. */
static void check_average(const struct tiny *tiny, const struct outcome ranks[2], uint32_t field)
{
    const struct field_model *model = &step_field_setup(&tiny->trainer->step, field)->model;
    struct outcome both = read_outcome(tiny, field);
    double moment_unit = optim_packs_moments(&tiny->trainer->config) ? 1.0 / 256 : 1e-6;
    uint32_t by_one = 0;
    size_t first = groups_entry_count(model->groups, model->group_count - 1);
    for (size_t i = 0; i < model->param_count; i++) {
        bool grid = i >= model->mlp_params;
        size_t entry = grid ? first + (i - model->mlp_params) / 2 : 0;
        double n0 = grid ? ranks[0].counts[entry] : 16, n1 = grid ? ranks[1].counts[entry] : 16;
        bool touched = n0 + n1 > 0;
        double n = touched ? n0 + n1 : 1, a = (touched ? n0 : 1) / n, b = n1 / n;
        double weight = a * (double)ranks[0].params[i] + b * (double)ranks[1].params[i];
        check_close(both.params[i], weight, 1e-6,
                    fabs((double)ranks[0].params[i]) + fabs((double)ranks[1].params[i]), "weight",
                    i);
        for (uint32_t k = 0; k < optim_kind(&tiny->trainer->config)->moments; k++) {
            double m0 = ranks[0].moments[k][i], m1 = ranks[1].moments[k][i];
            check_close(both.moments[k][i], a * m0 + b * m1, moment_unit, fabs(m0) + fabs(m1),
                        "moment", i);
        }
        if (grid)
            assert_int_equal(both.counts[entry], (uint32_t)ceil((n0 + n1) / 2));
        by_one += (n0 > 0) != (n1 > 0);
    }
    assert_true(by_one > 20); /* entries that only one rank has trained */
    for (size_t i = 0; i < 16 * 16 * 16; i++)
        assert_true(both.occupancy[i] == fmaxf(ranks[0].occupancy[i], ranks[1].occupancy[i]));
    free_outcome(&both);
}

static void check_averaged(const struct step_tests *tests, struct vkn_config config, uint32_t field)
{
    struct outcome single[2] = {run_alone(tests, &config, 0, field),
                                run_alone(tests, &config, 1, field)};
    struct rank ranks[MOST_RANKS];
    const struct rank like = {.tests = tests, .config = &config, .until = 16};
    config.parallel.mode = VKN_PARALLEL_AVERAGE;
    run_team(&like, 2, ranks);
    ok_ranks(ranks, 2);
    check_average(&ranks[0].tiny, single, field);
    check_average(&ranks[1].tiny, single, field);
    destroy_team(ranks, 2);
    free_outcome(&single[0]);
    free_outcome(&single[1]);
}

static void test_average(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.grid.log2_entries = 12;
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        config.optimizer.kind = kind;
        check_averaged(*state, config, 0);
    }
    config.optimizer.kind = VKN_OPTIMIZER_DEFAULT;
    config.optimizer.moments = VKN_MOMENTS_BF16;
    check_averaged(*state, config, 0);
    tiny_propose(&config);
    config.proposal.log2_entries = 14; /* some entries of one rank only */
    config.proposal.finest = 64;
    check_averaged(*state, config, 1);
}

/* Parameter averaging repeats, and resumes after any step. */
static void check_repeats(const struct step_tests *tests, struct vkn_config config)
{
    config.parallel.mode = VKN_PARALLEL_AVERAGE;
    char *first = train_on_threads(tests, &config, 3, NULL, 21, "first");
    char *second = train_on_threads(tests, &config, 3, NULL, 21, "second");
    char *more = train_on_threads(tests, &config, 2, first, 24, "more");
    assert_true(same_checkpoints(first, second));
    free(first);
    free(second);
    free(more);
}

static void test_average_repeats(void **state)
{
    struct vkn_config config = tiny_config(true);
    sample_hierarchically(&config);
    check_repeats(*state, config);
    tiny_propose(&config);
    check_repeats(*state, config);
}

static void run_an_interval(struct rank *rank)
{
    const struct vkn_train_run run = {.until_step = parallel_rank(rank->end) == 0 ? 16 : 1};
    ok(vkn_trainer_run(rank->tiny.trainer, &run));
}

/* Step counts restart in every update interval, whether a run continues or resumes. */
static void test_average_counts_anew(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.parallel.mode = VKN_PARALLEL_AVERAGE;
    char *whole = train_on_threads(*state, &config, 2, NULL, 32, "whole");
    struct rank ranks[MOST_RANKS];
    const struct rank like = {
        .tests = *state, .config = &config, .until = 32, .prepare = run_an_interval};
    run_team(&like, 2, ranks);
    ok_ranks(ranks, 2);
    char *parts = tiny_save(*state, &ranks[0].tiny, "parts");
    destroy_team(ranks, 2);
    assert_true(same_checkpoints(whole, parts));
    free(whole);
    free(parts);
}

/* With a limit of seconds all ranks have the same learning rate in every step, by rank 0's clock.
 */
static void test_rates_by_time(void **state)
{
    struct vkn_config config = tiny_config(false);
    config.steps = 0;
    config.seconds = 60;
    config.optimizer.schedule = VKN_RATE_EXPONENTIAL;
    config.optimizer.final_rate = 1e-9f;
    config.optimizer.warmup_steps = 1;
    for (int i = 0; i < 2; i++) {
        config.parallel.mode = i == 0 ? VKN_PARALLEL_AVERAGE : VKN_PARALLEL_SYNCHRONOUS;
        struct rank ranks[MOST_RANKS];
        const struct rank like = {.tests = *state, .config = &config, .until = 64};
        run_team(&like, 2, ranks);
        ok_ranks(ranks, 2);
        const struct Stats *first = ranks[0].tiny.trainer->step.buffers.at[BIND_STATS].mapped,
                           *second = ranks[1].tiny.trainer->step.buffers.at[BIND_STATS].mapped;
        for (uint32_t step = 1; step <= 64; step++)
            assert_memory_equal(&first[step].learning_rate, &second[step].learning_rate,
                                sizeof(float));
        assert_true(first[64].learning_rate < first[1].learning_rate);
        assert_true(first[64].learning_rate < first[33].learning_rate);
        destroy_team(ranks, 2);
    }
}

/* Results are the same bits whether the host works in mapped device memory or in copies. */
static void test_copies(void **state)
{
    for (int i = 0; i < 5; i++) {
        struct vkn_config config = tiny_config(true);
        config.parallel.mode = i < 3 ? VKN_PARALLEL_AVERAGE : VKN_PARALLEL_SYNCHRONOUS;
        if (i == 0)
            sample_hierarchically(&config);
        if (i == 1 || i == 3)
            tiny_propose(&config);
        if (i == 4)
            config.batch.by_error = 0.5f;
        char *mapped = train_on_threads(*state, &config, 2, NULL, 18, "mapped");
        setenv("VKNERF_DISABLE", "mapped_memory", 1);
        char *copied = train_on_threads(*state, &config, 2, NULL, 18, "copied");
        unsetenv("VKNERF_DISABLE");
        assert_true(same_checkpoints(mapped, copied));
        free(mapped);
        free(copied);
    }
}

/* ---- shares of the images ------------------------------------------------------------------ */

static struct vkn_config share_config(void)
{
    struct vkn_config config = tiny_config(true);
    config.parallel.images = VKN_PART_SHARE;
    return config;
}

/* Images come from memory and, with as many ranks as images, from their files. */
static void test_share_same_bits(void **state)
{
    struct vkn_config config = share_config();
    config.batch.by_error = 0.5f;
    config.scene.refine = VKN_REFINEMENT_ALL;
    check_bits(*state, &config, 2, 18);
    config.scene.host_budget = 1;
    check_bits(*state, &config, 3, 18);
}

/* Checks that the last step's rays belong to views `first`, `first` + `stride`, ..., to each of
 * them. */
static void assert_views(const struct tiny *tiny, uint32_t first, uint32_t stride, uint32_t count)
{
    struct State *now = tiny_read(tiny, &tiny->trainer->step.buffers.at[BIND_STATE]);
    struct Ray *rays = tiny_read(tiny, &tiny->trainer->step.buffers.at[BIND_RAYS]);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < now->ray_count; i++) {
        assert_true(rays[i].view >= first && (rays[i].view - first) % stride == 0);
        seen |= 1u << ((rays[i].view - first) / stride);
    }
    assert_int_equal(seen, (1u << count) - 1);
    free(now);
    free(rays);
}

/* Of three views one rank has two, the other one; neither holds others on host or device. */
static void test_share_is_own(void **state)
{
    const struct vkn_config config = share_config();
    struct rank ranks[MOST_RANKS];
    const struct rank like = {.tests = *state, .config = &config, .until = 5};
    run_team(&like, 2, ranks);
    ok_ranks(ranks, 2);
    for (uint32_t number = 0; number < 2; number++) {
        const struct tiny *tiny = &ranks[number].tiny;
        const struct scene_split *train = &tiny->scene->splits[SCENE_TRAIN];
        const uint32_t count = number == 0 ? 2 : 1;
        struct vkn_images images = {0};
        uint32_t expected[120],
            *pixels = tiny_read(tiny, &tiny->trainer->step.buffers.at[BIND_PIXELS]);
        vkn_trainer_images(tiny->trainer, &images);
        assert_true(images.count == count && images.resident == count);
        assert_int_equal(images.bytes, 4 * 120 * count);
        assert_int_equal(images.host_bytes, 4 * 120 * count);
        assert_int_equal(train->pixel_count, 120 * count);
        for (uint32_t i = 0; i < count; i++) {
            ok(scene_read_view(tiny->scene, SCENE_TRAIN, number + 2 * i, 1, expected));
            assert_memory_equal(pixels + 120 * i, expected, sizeof expected);
        }
        assert_views(tiny, number, 2, count);
        free(pixels);
    }
    destroy_team(ranks, 2);
}

/* Creates the trainer of one rank only. */
static vkn_status make_one(const struct step_tests *tests, const struct vkn_config *config,
                           uint32_t number, uint32_t size)
{
    struct parallel_group *group;
    struct tiny tiny = {.context = contexts[0]};
    ok(parallel_group_create(size, &group));
    ok(vkn_scene_open(tests->folder->path, config, &tiny.scene));
    vkn_status status = train_create(tiny.context, tiny.scene, config,
                                     parallel_group_rank(group, number), &tiny.trainer);
    tiny_destroy(&tiny);
    parallel_group_destroy(&group);
    return status;
}

/* Ranks on CPU devices share the machine's memory: rank 0 adds up what all need. */
static void test_memory_of_all(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    if (gpu_device_capabilities(contexts[0]->device)->type != GPU_CPU)
        return;
    config.precision = VKN_PRECISION_FP32;
    config.batch.samples = 1u << 17;
    struct tiny tiny = tiny_create(contexts[0], tests->folder, &config);
    uint64_t one = 0;
    ok(train_memory(contexts[0]->device, tiny.scene, vkn_trainer_config(tiny.trainer), &one));
    tiny_destroy(&tiny);
    const struct rlimit before = limit_memory(RLIMIT_AS, 2 * one);
    vkn_status status = make_one(tests, &config, 0, 4);
    setrlimit(RLIMIT_AS, &before);
    assert_int_equal(status, VKN_BAD_INPUT);
    char expected[64];
    snprintf(expected, sizeof expected, "training on all ranks: %.0f", 0x1p-20 * 4 * (double)one);
    expected[strlen(expected) - 1] = '\0'; /* tolerates rounding, and copies for checkpoints */
    assert_error(expected);
    assert_error("reduce batch.samples");
}

/* A rank does not decode other ranks' images. */
static void test_share_reads_its_own(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = share_config();
    char *path = base_path_join(tests->folder->path, "train/x.png"), *whole = NULL;
    size_t size = 0;
    ok(base_file_read(path, SIZE_MAX, &whole, &size));
    ok(base_file_replace(path, whole, 60));
    assert_int_equal(make_one(tests, &config, 0, 2), VKN_OK);
    assert_int_equal(make_one(tests, &config, 1, 2), VKN_BAD_INPUT);
    assert_error("train/x.png: truncated PNG");
    config.parallel.images = VKN_PART_ALL;
    assert_int_equal(make_one(tests, &config, 0, 2), VKN_BAD_INPUT);
    ok(base_file_replace(path, whole, size));
    config = share_config();
    assert_int_equal(make_one(tests, &config, 0, 4), VKN_BAD_INPUT);
    assert_error("config: parallel.images: share: 4 ranks have only 3 training images");
    config.parallel.ranks_per_device = 2;
    assert_int_equal(make_one(tests, &config, 1, 2), VKN_BAD_INPUT);
    free(path);
    free(whole);
}

/* One rank streams its two images in strips, the other has a single one: training repeats. A device
 * that plays both ranks lets them draw from all its slots. */
static void test_share_streams(void **state)
{
    struct vkn_config config = share_config();
    config.batch.by_error = 0.5f;
    config.scene.refine = VKN_REFINEMENT_ALL;
    config.scene.image_budget = 500;
    char *first = train_on_threads(*state, &config, 2, NULL, 34, "first");
    char *begun = train_on_threads(*state, &config, 2, NULL, 21, "begun");
    char *second = train_on_threads(*state, &config, 2, begun, 34, "second");
    assert_true(same_checkpoints(first, second));
    free(first);
    free(begun);
    free(second);
    config.parallel.ranks_per_device = 2;
    config.scene.image_budget = 1000;
    struct tiny tiny = tiny_create(contexts[0], ((struct step_tests *)*state)->folder, &config);
    const struct images_plan *plan = &tiny.trainer->images;
    assert_true(plan->cameras == 3 && plan->views == 3 && plan->resident == 4);
    tiny_run(&tiny, 20);
    assert_views(&tiny, 3, 1, 4);
    tiny_destroy(&tiny);
}

/* Parameter averaging with images shared out among ranks. */
static void test_share_average(void **state)
{
    struct vkn_config config = share_config();
    config.parallel.mode = VKN_PARALLEL_AVERAGE;
    char *first = train_on_threads(*state, &config, 2, NULL, 17, "first");
    char *second = train_on_threads(*state, &config, 2, NULL, 17, "second");
    config.parallel.images = VKN_PART_ALL;
    char *all = train_on_threads(*state, &config, 2, NULL, 17, "all");
    assert_true(same_checkpoints(first, second));
    assert_false(same_checkpoints(first, all));
    free(first);
    free(second);
    free(all);
}

/* ---- events that reach all ranks ----------------------------------------------------------- */

static void put_word(struct tiny *tiny, uint32_t number, uint64_t index, float value)
{
    const struct gpu_buffer *buffer = &tiny->trainer->step.buffers.at[number];
    ok(gpu_upload(tiny->trainer->device, buffer, 4 * index, &value, sizeof value));
}

/* The grid's gradients, to which atomics add. */
static uint32_t spoiled = 1; /* rank */

static void spoil_gradient(struct rank *rank)
{
    if (parallel_rank(rank->end) == spoiled)
        put_word(&rank->tiny, BIND_GRADIENTS, rank->tiny.trainer->step.setup.model.param_count - 1,
                 NAN);
}

static void test_nan_skips_all(void **state)
{
    struct vkn_config config = tiny_config(false);
    struct rank ranks[MOST_RANKS];
    const struct rank like = {
        .tests = *state, .config = &config, .until = 3, .prepare = spoil_gradient};
    config.gradient_sums = VKN_SUMS_CAS;
    run_team(&like, 2, ranks);
    ok_ranks(ranks, 2);
    for (uint32_t number = 0; number < 2; number++) {
        struct State after;
        const struct tiny *tiny = &ranks[number].tiny;
        const struct Stats *ring = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
        ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_STATE], 0,
                        &after, sizeof after));
        assert_int_equal(ring[1].skipped_steps, 1);
        assert_int_equal(after.skipped_steps, 1);
        assert_int_equal(after.updates, 2);
        assert_true(isfinite(ring[3].loss));
    }
    destroy_team(ranks, 2);
}

/* With parameter averaging ranks skip steps on their own; the result is a valid checkpoint. */
static void test_average_with_skips(void **state)
{
    struct vkn_config config = tiny_config(false);
    struct rank ranks[MOST_RANKS];
    struct rank like = {.tests = *state, .config = &config, .until = 20, .prepare = spoil_gradient};
    config.gradient_sums = VKN_SUMS_CAS;
    config.optimizer.clip_norm = 1e30f; /* the norm finds the NaN, which no pass has computed */
    config.parallel.mode = VKN_PARALLEL_AVERAGE;
    for (spoiled = 0; spoiled < 2; spoiled++) {
        run_team(&like, 2, ranks);
        ok_ranks(ranks, 2);
        for (uint32_t number = 0; number < 2; number++) {
            const struct Stats *ring =
                ranks[number].tiny.trainer->step.buffers.at[BIND_STATS].mapped;
            assert_int_equal(ring[20].skipped_steps, number == spoiled);
        }
        free(tiny_save(*state, &ranks[0].tiny, "skipped"));
        destroy_team(ranks, 2);
    }
}

/* Synchronous ranks all get a weight that is NaN; with parameter averaging one rank gets a loss
 * that is NaN whatever its weights become. */
static void spoil_field(struct rank *rank)
{
    const struct field_model *model = &rank->tiny.trainer->step.setup.model;
    if (rank->config->parallel.mode != VKN_PARALLEL_AVERAGE)
        put_word(&rank->tiny, BIND_PARAMS, model->layers[model->layer_count - 1].first, NAN);
    else if (parallel_rank(rank->end) == 1)
        put_word(&rank->tiny, BIND_CONFIG, offsetof(struct Config, loss_delta) / 4, NAN);
}

/* A training that has diverged ends on all ranks, also on those that have not noticed. */
static void test_divergence_ends_all(void **state)
{
    static const char *const parts[] = {
        "step 64: the training has diverged: since step 1 no loss was finite; not finite first: "
        "the "
        "weights of layer 2 of 2 of the colour MLP (1 of 256)",
        "rank 1: step 64: the training has diverged: since step 1 no loss was finite; not finite "
        "first: the gradients of the outputs, though weights are finite ("};
    struct vkn_config config = tiny_config(false);
    struct rank ranks[MOST_RANKS];
    struct rank like = {.tests = *state, .config = &config, .until = 200, .prepare = spoil_field};
    config.steps = 200;
    for (int average = 0; average < 2; average++) {
        config.parallel.mode = average ? VKN_PARALLEL_AVERAGE : VKN_PARALLEL_SYNCHRONOUS;
        run_team(&like, 2, ranks);
        for (uint32_t number = 0; number < 2; number++) {
            assert_int_equal(ranks[number].status, VKN_ERROR);
            if (!strstr(ranks[number].message, parts[average]))
                fail_msg("\"%s\" is not in: %s", parts[average], ranks[number].message);
            assert_true(train_ended_early(ranks[number].tiny.trainer));
            assert_int_equal(vkn_trainer_step(ranks[number].tiny.trainer), 64);
        }
        destroy_team(ranks, 2);
    }
}

static void spoil_weight(struct rank *rank)
{
    if (parallel_rank(rank->end) == 1)
        put_word(&rank->tiny, BIND_MOMENT2, 5, 1e-3f);
}

static void test_other_weights_are_seen(void **state)
{
    const struct vkn_config config = tiny_config(false);
    struct rank ranks[MOST_RANKS];
    const struct rank like = {
        .tests = *state, .config = &config, .until = 2, .prepare = spoil_weight};
    run_team(&like, 2, ranks);
    for (uint32_t number = 0; number < 2; number++) {
        assert_int_equal(ranks[number].status, VKN_ERROR);
        assert_non_null(strstr(ranks[number].message, "rank 1 has other weights than rank 0"));
    }
    destroy_team(ranks, 2);
}

static volatile sig_atomic_t stop;

static void stop_rank_2(struct rank *rank)
{
    if (parallel_rank(rank->end) == 2)
        rank->stop = &stop;
}

/* All ranks stop at the same step, whichever was told to, and can be resumed there. */
static void test_stop(void **state)
{
    const struct vkn_config config = tiny_config(true);
    struct rank ranks[MOST_RANKS];
    const struct rank like = {
        .tests = *state, .config = &config, .until = 40, .prepare = stop_rank_2};
    stop = 1;
    run_team(&like, 3, ranks);
    for (uint32_t number = 0; number < 3; number++) {
        assert_int_equal(ranks[number].status, VKN_INTERRUPTED);
        assert_int_equal(vkn_trainer_step(ranks[number].tiny.trainer), 1);
    }
    char *stopped = tiny_save(*state, &ranks[0].tiny, "stopped");
    char *whole = train_in_turn(*state, &config, 3, NULL, 1, "whole");
    assert_true(same_checkpoints(stopped, whole));
    destroy_team(ranks, 3);
    free(stopped);
    free(whole);
}

static struct gpu_device *lost_device;
static PFN_vkQueueSubmit submit;
static int submits_until_lost, submits_left;
static long slow_nanoseconds; /* delay of the last two submissions before the loss */

static VkResult VKAPI_CALL lose_device(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                       VkFence fence)
{
    if (submits_left <= 2 && submits_left > 0)
        nanosleep(&(struct timespec){.tv_nsec = slow_nanoseconds}, NULL);
    return submits_left-- > 0 ? submit(queue, count, infos, fence) : VK_ERROR_DEVICE_LOST;
}

static void lose_device_later(struct rank *rank)
{
    if (parallel_rank(rank->end) != 1)
        return;
    lost_device = rank->tiny.trainer->device;
    submit = lost_device->vk.vkQueueSubmit;
    submits_left = submits_until_lost;
    lost_device->vk.vkQueueSubmit = lose_device;
}

/* Rank 0 keeps the state before the step in which rank 1 lost its device. */
static void check_lost(const struct step_tests *tests, const struct vkn_config *config, int submits,
                       uint32_t steps)
{
    submits_until_lost = submits;
    struct rank ranks[MOST_RANKS];
    const struct rank like = {
        .tests = tests, .config = config, .until = 40, .prepare = lose_device_later};
    run_team(&like, 2, ranks);
    lost_device->vk.vkQueueSubmit = submit;
    assert_int_equal(ranks[0].status, VKN_NO_DEVICE);
    assert_int_equal(ranks[1].status, VKN_NO_DEVICE);
    assert_non_null(strstr(ranks[0].message, "rank 1: "));
    assert_non_null(strstr(ranks[0].message, "lost"));
    /* Rank 0's wait for rank 1 counts as part of a step. */
    const struct vkn_communication *communication = &ranks[0].tiny.trainer->communication;
    assert_true(communication->seconds - communication->hidden_seconds <=
                communication->step_seconds);
    assert_false(train_device_is_lost(ranks[0].tiny.trainer));
    assert_true(train_device_is_lost(ranks[1].tiny.trainer));
    uint32_t step = (uint32_t)vkn_trainer_step(ranks[0].tiny.trainer);
    assert_int_equal(step, steps);
    char *rest = tiny_save(tests, &ranks[0].tiny, "rest");
    char *other = step < UPDATE_INTERVAL
                      ? train_on_threads(tests, config, 2, NULL, step, "whole")
                      : train_on_threads(tests, config, 2, rest, step + 2, "more");
    assert_true(step == UPDATE_INTERVAL || same_checkpoints(rest, other));
    destroy_team(ranks, 2);
    free(rest);
    free(other);
}

/* A step that fails before its first submission leaves the previous state. */
static void test_abandons_nothing(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.parallel.ranks_per_device = 2;
    struct tiny tiny = tiny_create(contexts[0], ((struct step_tests *)*state)->folder, &config);
    struct step *step = &tiny.trainer->step;
    tiny_run(&tiny, 5);
    struct State *before = tiny_read(&tiny, &step->buffers.at[BIND_STATE]);
    ok(step_abandon(step));
    struct State *after = tiny_read(&tiny, &step->buffers.at[BIND_STATE]);
    assert_int_equal(after->updates, 5);
    assert_memory_equal(before, after, sizeof *after);
    free(before);
    free(after);
    tiny_destroy(&tiny);
}

/* The device is lost in a step of 10 submissions, before others have any of its gradients, after
 * one bucket of three, or two; and before or after the occupancy grid's cells are all-reduced,
 * which then count for the step before. */
static void test_lost_rank(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.parallel.ranks_per_device = 2;
    config.parallel.buckets = 3;
    for (int i = 0; i < 3; i++) {
        slow_nanoseconds = i == 2 ? 700000000 : 0; /* the four steps before take less */
        check_lost(*state, &config, 2 + 4 * 10 + 5 + i, 4);
    }
    slow_nanoseconds = 0;
    for (int i = 0; i < 2; i++)
        check_lost(*state, &config, 2 + 16 * 10 + i, 16);
}

/* ---- a device that hangs ------------------------------------------------------------------- */

static PFN_vkGetDeviceProcAddr find_function;
static VkDevice first_device;

/* Each wait of rank 1's device takes longer than its timeout; then the run is told to stop. */
static VKAPI_ATTR VkResult VKAPI_CALL hang(VkDevice device, uint32_t count, const VkFence *fences,
                                           VkBool32 all, uint64_t timeout)
{
    static int waits;
    PFN_vkWaitForFences wait = (PFN_vkWaitForFences)find_function(device, "vkWaitForFences");
    if (device == first_device || ++waits % 20 == 0)
        return wait(device, count, fences, all, timeout);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
    return VK_TIMEOUT;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_hanging(VkDevice device, const char *name)
{
    if (!first_device)
        first_device = device;
    return strcmp(name, "vkWaitForFences") == 0 ? (PFN_vkVoidFunction)hang
                                                : find_function(device, name);
}

/* A hung device is given up in any wait after it was opened, not only in steps: here in the
 * trainer's first wait. */
static void test_hung_rank(void **state)
{
    const struct vkn_config config = tiny_config(true);
    const struct step_tests *tests = *state;
    const struct vkn_job job = {.size = sizeof job, .stop = &stop};
    char *out = base_path_join(tests->folder->path, "hung");
    const struct vkn_train_params params = {.size = sizeof params,
                                            .job = &job,
                                            .scene = tests->folder->path,
                                            .out = out,
                                            .config = &config,
                                            .devices = "0,0"};
    struct vkn_train_result *result = NULL;
    find_function = vkGetDeviceProcAddr;
    vkGetDeviceProcAddr = find_hanging;
    stop = 0;
    gpu_stop_timeout = 0.02;
    assert_int_equal(vkn_run_train(&params, &result), VKN_NO_DEVICE);
    assert_message("rank 1: zero an arena: the device did not finish within");
    vkn_train_result_free(&result);
    free(out);
}

/* ---- all tests ----------------------------------------------------------------------------- */

static int open_all(void **state)
{
    if (step_tests_setup(state) != 0)
        return -1;
    contexts[0] = ((struct step_tests *)*state)->context;
    for (size_t i = 1; i < MOST_RANKS; i++)
        if (vkn_context_create(NULL, &contexts[i]) != VKN_OK)
            return -1;
    return 0;
}

static int close_all(void **state)
{
    for (size_t i = 1; i < MOST_RANKS; i++)
        vkn_context_destroy(&contexts[i]);
    return step_tests_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_of_f16),
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_memory_of_all),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_dropped_rays),
        cmocka_unit_test(test_other_models),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_f16_communication),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_first_step_of_two),
        cmocka_unit_test(test_first_step),
        cmocka_unit_test(test_nan_skips_all),
        cmocka_unit_test(test_average_with_skips),
        cmocka_unit_test(test_divergence_ends_all),
        cmocka_unit_test(test_other_weights_are_seen),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_lost_rank),
        cmocka_unit_test(test_abandons_nothing),
        cmocka_unit_test(test_adapting),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_average_repeats),
        cmocka_unit_test(test_average_counts_anew),
        cmocka_unit_test(test_rates_by_time),
        cmocka_unit_test(test_share_same_bits),
        cmocka_unit_test(test_share_is_own),
        cmocka_unit_test(test_share_reads_its_own),
        cmocka_unit_test(test_share_streams),
        cmocka_unit_test(test_share_average),
        cmocka_unit_test(test_copies),
    };
    int failed = step_test_apart("test_hung_rank", test_hung_rank, step_tests_setup);
    return failed + cmocka_run_group_tests(tests, open_all, close_all);
}
