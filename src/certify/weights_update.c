/* Runs update_weights on random weights, and compares the result with the reference. */
#include "certify/weights.h"

struct fixture weights_fixture_decaying(struct gpu_device *device, enum vkn_optimizer kind,
                                        uint32_t features, enum vkn_gradient_sums sums,
                                        float grid_decay)
{
    struct vkn_config settings = {
        .gradient_sums = sums,
        .grid = {.levels = 3, .features = features, .decay = grid_decay},
        .optimizer = {.kind = kind, .weight_decay = 0.3f /* large enough to notice */},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

struct fixture weights_fixture(struct gpu_device *device, enum vkn_optimizer kind,
                               uint32_t features, enum vkn_gradient_sums sums)
{
    return weights_fixture_decaying(device, kind, features, sums, 0);
}

struct fixture weights_fixture_of_groups(struct gpu_device *device, enum vkn_optimizer kind)
{
    struct vkn_config settings = {.grid.levels = 3,
                                  .optimizer = {.kind = kind, .weight_decay = 0.3f}};
    struct fixture fixture = fixture_configure(device, settings);
    const struct parameter_group groups[] = {
        {.count = 3000, .entry = 4, .sparse = true, .rate = 1},
        {.count = 77, .entry = 1, .rate = 0.125f, .decay = 2},
        {.count = 1200, .entry = 3, .sparse = true, .rate = 3, .decay = 0.5f},
        {.count = 600, .entry = 2, .rate = 0, .decay = 1},
        {.count = fixture.model.param_count - 4877, .entry = 1, .sparse = true, .rate = 1},
    };
    optim_configure_groups(&fixture.settings, groups, BASE_COUNT(groups), &fixture.config,
                           &fixture.constants);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

void weights_pack_moments(struct fixture *fixture)
{
    fixture->settings.optimizer.moments = VKN_MOMENTS_BF16;
    fixture_set_constant(fixture, SPEC_BF16_MOMENTS, 1);
}

static const struct ParameterGroup *group_of(const struct fixture *fixture, uint32_t i)
{
    const struct ParameterGroup *group = fixture->config.groups;
    while (i >= group->first + group->count)
        group++;
    return group;
}

/* Returns the first parameter of a parameter's entry; *number: the entry's index. */
static uint32_t entry_of(const struct fixture *fixture, uint32_t i, uint32_t *number)
{
    const struct ParameterGroup *group = group_of(fixture, i);
    uint32_t entry = (i - group->first) / group->entry;
    *number = group->first_entry + entry;
    return group->first + entry * group->entry;
}

/* Returns the number of parameters in the parameter's level of the hash grid; 0 outside the grid.
 */
static uint32_t level_size(const struct fixture *fixture, uint32_t i)
{
    const struct field_model *model = &fixture->model;
    uint32_t end = model->mlp_params, size = 0;
    for (uint32_t level = 0; level < model->levels && i >= end; level++) {
        size = model->level[level].entries * model->features;
        end += size;
    }
    return i < model->mlp_params ? 0 : size;
}

/* Returns the gradient of the decay of the hash grid, 0.5 * grid.decay * mean square by level. */
static double decay_gradient(const struct fixture *fixture, uint32_t i, double weight)
{
    uint32_t size = level_size(fixture, i);
    return size > 0 ? (double)fixture->settings.grid.decay * weight / size : 0;
}

/* Returns both moments of each parameter in one word. */
static uint32_t *pack(const struct fixture *fixture, const struct weights *w)
{
    uint32_t count = fixture->model.param_count, *words = base_alloc(count, sizeof *words);
    optim_pack_moments(w->moment1, count, 0, words);
    optim_pack_moments(w->moment2, count, 1, words);
    return words;
}

static void unpack(const struct fixture *fixture, const uint32_t *words, struct weights *w)
{
    optim_unpack_moments(words, fixture->model.param_count, 0, w->moment1);
    optim_unpack_moments(words, fixture->model.param_count, 1, w->moment2);
}

struct weights weights_create(const struct fixture *fixture, uint32_t seed)
{
    struct random random = {seed};
    uint32_t count = fixture->model.param_count, untouched = 0;
    struct weights w = {
        .params = random_floats(&random, count, -1, 1),
        .gradients = random_floats(&random, count, -100, 100),
        .moment1 = random_floats(&random, count, -0.1, 0.1),
        .moment2 = random_floats(&random, count, 0, 0.01),
        .counts = base_alloc(fixture->config.entry_count, sizeof *w.counts),
    };
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry, first = entry_of(fixture, i, &entry);
        if (i == first) {
            w.counts[entry] = random_below(&random, 3) == 0 ? 0 : random_below(&random, 3000);
            untouched = random_below(&random, 4);
        }
        if (w.counts[entry] == 0)
            w.moment1[i] = w.moment2[i] = 0;
        if (untouched > 1 || (untouched == 1 && i > first))
            w.gradients[i] = 0;
    }
    if (optim_packs_moments(&fixture->settings)) {
        uint32_t *words = pack(fixture, &w);
        unpack(fixture, words, &w);
        free(words);
    }
    return w;
}

void weights_destroy(struct weights *w)
{
    void *all[] = {w->params, w->gradients, w->moment1, w->moment2, w->counts, w->f16_copy};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

/* Stores gradients; with f16 sums the grid's are rounded and stored as f16. */
static void put_gradients(struct fixture *fixture, const struct weights *w)
{
    uint32_t mlp = fixture->model.mlp_params, count = fixture->model.param_count;
    fixture_put(fixture, BIND_GRADIENTS, w->gradients, 4ull * count);
    if (fixture->backend.sums != VKN_SUMS_F16)
        return;
    uint16_t *sums = base_alloc(count, sizeof *sums);
    for (uint32_t i = mlp; i < count; i++) {
        sums[i] = reference_f16_bits(w->gradients[i]);
        w->gradients[i] = (float)reference_f16(sums[i]);
    }
    fixture_put(fixture, BIND_ACCUMULATORS, sums, 2ull * count);
    fixture_poison(fixture, BIND_GRADIENTS);
    fixture_put(fixture, BIND_GRADIENTS, w->gradients, 4ull * mlp);
    free(sums);
}

/* Dispatches rows of so many workgroups, as begin_step does beyond the device's limit; GPU kernels,
 * which accept any number of workgroups, get two rows. */
static void run_rows(struct fixture *fixture, uint32_t row)
{
    const struct gpu_pipeline *pipeline =
        fixture_pipeline(fixture, "update_weights", FIELD_F16_PARAMS);
    const struct Push push = {.b = fixture->local_size};
    const size_t offset = offsetof(struct State, dispatches[DISPATCH_ENTRIES]);
    struct State state;
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    bool cpu_kernels = fixture->constants.values[SPEC_CPU_KERNELS];
    uint32_t groups = cpu_kernels ? fixture_groups(fixture, fixture->config.entry_count) : 2 * row;
    state.dispatches[DISPATCH_ENTRIES] = (Dispatch){row, (groups + row - 1) / row, 1, 0};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    struct gpu_recording *recording;
    check_ok(gpu_record_begin(fixture->device, "update_weights", 0, &recording));
    gpu_record_dispatch_indirect(recording, pipeline, fixture->bindings, &push, sizeof push,
                                 &fixture->buffers[BIND_STATE], offset);
    check_ok(gpu_run_once(&recording));
}

static bool has_moment2(const struct fixture *fixture)
{
    return optim_kind(&fixture->settings)->moments == 2;
}

static float *copy_floats(const float *from, uint64_t bytes)
{
    float *copy = base_alloc(bytes, 1);
    memcpy(copy, from, bytes);
    return copy;
}

static void put_moments(struct fixture *fixture, const struct weights *w)
{
    uint64_t size = 4ull * fixture->model.param_count;
    bool packed = optim_packs_moments(&fixture->settings);
    uint32_t *words = packed ? pack(fixture, w) : NULL;
    fixture_put(fixture, BIND_MOMENT1, packed ? (const void *)words : w->moment1, size);
    if (has_moment2(fixture) && !packed)
        fixture_put(fixture, BIND_MOMENT2, w->moment2, size);
    free(words);
}

static void get_moments(struct fixture *fixture, struct weights *w)
{
    void *words = fixture_read(fixture, BIND_MOMENT1);
    if (!optim_packs_moments(&fixture->settings)) {
        w->moment1 = words;
        return;
    }
    w->moment1 = copy_floats(words, 4ull * fixture->model.param_count);
    unpack(fixture, words, w);
    free(words);
}

struct weights weights_update(struct fixture *fixture, const struct weights *w, struct State state)
{
    uint64_t size = 4ull * fixture->model.param_count;
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_PARAMS, w->params, size);
    put_gradients(fixture, w);
    put_moments(fixture, w);
    fixture_put(fixture, BIND_STEP_COUNTS, w->counts, 4ull * fixture->config.entry_count);
    fixture_poison(fixture, BIND_F16_PARAMS);
    run_rows(fixture, 7);
    bool in_buffer = has_moment2(fixture) && !optim_packs_moments(&fixture->settings);
    struct weights after = {
        .params = fixture_read(fixture, BIND_PARAMS),
        .gradients = fixture_read_gradients(fixture),
        .moment2 = in_buffer ? fixture_read(fixture, BIND_MOMENT2) : copy_floats(w->moment2, size),
        .counts = fixture_read(fixture, BIND_STEP_COUNTS),
        .f16_copy = fixture_read(fixture, BIND_F16_PARAMS),
    };
    get_moments(fixture, &after);
    return after;
}

/* Whether the parameter changes: its group is trained, and a sparse entry has a gradient. */
static bool is_moved(const struct fixture *fixture, const struct weights *w, uint32_t i)
{
    const struct ParameterGroup *group = group_of(fixture, i);
    uint32_t entry, first = entry_of(fixture, i, &entry);
    bool touched = !group->sparse;
    for (uint32_t k = first; k < first + group->entry; k++)
        touched = touched || w->gradients[k] != 0;
    return touched && group->rate > 0;
}

static bool is_half(float x)
{
    return (double)x == reference_round_to_f16((double)x);
}

static void check_unpacked(const struct weights *after, double unit, double m, double v, uint32_t i)
{
    check_close(after->moment1[i], m, unit, 0.1 + fabs(m), "first moment", i);
    check_close(after->moment2[i], v, unit, 0.01 + v, "second moment", i);
}

/* Packed moments are one of the two nearest numbers of 8 and 9 bits; f32 arithmetic adds 1e-6. */
static void check_packed(const struct weights *after, double m, double v, uint32_t i)
{
    check_close(after->moment1[i], m, 1, 1e-7 + fabs(m) / 128, "first moment", i);
    check_close(after->moment2[i], v, 1, 1e-8 + v / 256, "second moment", i);
}

static void check_weight(const struct fixture *fixture, const struct weights *before,
                         const struct weights *after, const struct State *state, uint32_t i)
{
    const struct Config *c = &fixture->config;
    const struct ParameterGroup *group = group_of(fixture, i);
    uint32_t rounded = fixture->constants.values[SPEC_ROUNDED];
    struct reference_optimizer optimizer = {state->update_rate * (double)group->rate,
                                            c->beta1,
                                            c->beta2,
                                            c->epsilon,
                                            group->decay,
                                            (rounded & ROUND_MOMENTS) != 0,
                                            (rounded & ROUND_MASTERS) != 0};
    bool moved = is_moved(fixture, before, i);
    uint32_t entry;
    entry_of(fixture, i, &entry);
    double weight = before->params[i], m = before->moment1[i], v = before->moment2[i];
    if (moved)
        reference_updates[fixture->settings.optimizer.kind](&optimizer, before->counts[entry] + 1,
                                                            before->gradients[i] *
                                                                    (double)state->gradient_factor +
                                                                decay_gradient(fixture, i, weight),
                                                            &weight, &m, &v);
    else
        check_that(after->params[i] == before->params[i] &&
                   after->moment1[i] == before->moment1[i] &&
                   after->moment2[i] == before->moment2[i]);
    check_equal(after->counts[entry], before->counts[entry] + moved);
    /* Rounding to f16 may go either way for values near the middle between two numbers. */
    double moment_unit = optimizer.f16_moments ? 1e-3 : 1e-6,
           unit = optimizer.f16_weights ? 1e-3 : 0;
    if (optim_packs_moments(&fixture->settings))
        check_packed(after, m, v, i);
    else
        check_unpacked(after, moment_unit, m, v, i);
    check_that(
        !moved || !optimizer.f16_moments ||
        (is_half(after->moment1[i]) && (!has_moment2(fixture) || is_half(after->moment2[i]))));
    check_that(!moved || !optimizer.f16_weights || is_half(after->params[i]));
    /* pow(beta, count) in float leaves errors of a few units in the last place at small counts. */
    double change = fabs(weight - before->params[i]) * (optimizer.f16_moments ? 50 : 1);
    check_close(after->params[i], weight, 1, 3e-7 + unit * fabs(weight) + 2e-5 * change, "weight",
                i);
    check_that(after->gradients[i] == 0);
}

void weights_check_no_copy(uint16_t bits, uint32_t i)
{
    check_equal(bits, i % 2 ? POISON >> 16 : POISON & 0xffff);
}

/* f16 pipelines copy the weights that they have changed. */
static void check_copy(const struct fixture *fixture, const struct weights *before,
                       const struct weights *after, uint32_t i)
{
    if (fixture->backend.f16 && is_moved(fixture, before, i))
        check_f16(after->f16_copy[i], after->params[i], "copy of weight", i);
    else
        weights_check_no_copy(after->f16_copy[i], i);
}

void weights_check_update(struct fixture *fixture, bool half, float epsilon, uint32_t seed)
{
    const struct State running = {.update_rate = 0.02f, .gradient_factor = 1.0f / 512};
    struct weights before = weights_create(fixture, seed);
    fixture->backend.f16 = fixture->backend.copies = half;
    fixture->config.epsilon = epsilon;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    struct weights after = weights_update(fixture, &before, running);
    for (uint32_t i = 0; i < fixture->model.param_count; i++)
        check_weight(fixture, &before, &after, &running, i);
    for (uint32_t i = 0; i < fixture->model.param_count; i++)
        check_copy(fixture, &before, &after, i);
    weights_destroy(&before);
    weights_destroy(&after);
}

void weights_check_model(const struct fixture *fixture, uint32_t features)
{
    const struct Config *c = &fixture->config;
    uint32_t mlp = fixture->model.mlp_params, grid = fixture->model.param_count - mlp;
    const struct ParameterGroup groups[] = {
        {0, mlp, features, 0, 0, 1, 0.3f},
        {mlp, grid, features, mlp / features, fixture->settings.grid.decay <= 0, 1, 0}};
    check_equal(c->entry_count, fixture->model.param_count / features);
    check_memory(c->groups, groups, sizeof groups);
}
