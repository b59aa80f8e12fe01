/* Tests input_gradients and what field_backward prepares for it: gradients by position and
 * direction of live samples, against central differences of the reference in double precision.
 * Samples avoid kinks: faces of cells, switching ReLUs, the border of contraction or clamping, and
 * the width of a pixel at which a level no longer moves cameras.
 *
 * Error norm: Euclidean, of a sample's error over that of its gradient; also over all samples. */
#include "certify/fixture.h"

#define SAMPLES 1000u
#define GROUPS  5u
#define FOCAL   0.15F /* of the camera, in pixels; samples are near it */
#define DETAIL  2.0F  /* most cells per pixel of levels that move cameras */

struct input_case {
    enum vkn_precision precision;
    uint32_t features, sh_degree, aabb_scale;
    bool contracted, deterministic;
    bool also_without; /* also without gradients by inputs; compiles the MLPs once more */
    bool refined;      /* the gradients move cameras */
};

struct inputs {
    struct Ray rays[SAMPLES];
    struct Sample samples[SAMPLES]; /* one per ray */
    double positions[SAMPLES][3], directions[SAMPLES][3];
    float field[SAMPLES][4]; /* gradients by rgb and density */
    uint32_t live[SAMPLES], live_count;
    bool is_live[SAMPLES];
    float *params;
};

static struct fixture fixture_of(struct gpu_device *device, const struct input_case *c,
                                 bool with_gradients)
{
    struct vkn_config settings = {
        .precision = c->precision,
        .gradient_sums = VKN_SUMS_FIXED,
        .deterministic = c->deterministic,
        .scene = {.aabb_scale = c->aabb_scale,
                  .contraction = c->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .grid = {.levels = 5, .features = c->features},
        .mlp = {.density_width = 16,
                .density_layers = 1,
                .geometry = 16,
                .color_width = 16,
                .color_layers = 1,
                .sh_degree = c->sh_degree},
        .batch = {.samples = 1024, .max_rays = 1024},
    };
    struct fixture fixture = fixture_configure(device, settings);
    check_that(fixture.model.level[0].dense && !fixture.model.level[4].dense);
    fixture_set_constant(&fixture, SPEC_INPUT_GRADIENTS, with_gradients);
    fixture_set_constant(&fixture, SPEC_REFINE, c->refined ? REFINE_POSES : 0);
    fixture.config.backward_groups = GROUPS;
    fixture.config.refine_detail = DETAIL;
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

/* ---- inputs -------------------------------------------------------------------------------- */

/* Returns whether the map to the unit cube has a kink nearby: at the cube's faces, and in
 * contracted space also where two coordinates are equally far out. */
static bool has_kink(const struct reference_space *space, const double position[3])
{
    double size[3], norm = 0;
    bool has_kink = false;
    for (int i = 0; i < 3; i++) {
        size[i] = fabs(position[i] - 0.5) / (space->side / 2);
        norm = fmax(norm, size[i]);
    }
    for (int i = 0; i < 3; i++) {
        double from_largest = norm - fmax(size[i], size[(i + 1) % 3]);
        has_kink = has_kink || fabs(size[i] - 1) < 1e-4 ||
                   (space->contracted && from_largest < 1e-4 * norm &&
                    fabs(size[i] - size[(i + 1) % 3]) < 1e-4 * norm);
    }
    return has_kink;
}

/* Returns the most cells per unit of the unit cube of levels that move cameras: DETAIL per pixel. A
 * pixel at distance t is t / focal wide. Across the direction from the cube's centre the
 * contraction shrinks by (2 - 1 / norm) / norm, to a cube of twice the side. */
static double finest_scale(const struct reference_space *space, const struct inputs *inputs,
                           uint32_t s)
{
    double norm = 1, across = 1 / space->side;
    for (int i = 0; i < 3; i++)
        norm = fmax(norm, fabs(inputs->positions[s][i] - 0.5) / (space->side / 2));
    if (space->contracted)
        across *= (2 - 1 / norm) / norm / 2;
    return DETAIL * FOCAL / ((double)inputs->samples[s].t * across);
}

static bool is_near_finest(const struct reference_field *field, const struct inputs *inputs,
                           uint32_t s)
{
    double finest = finest_scale(&field->space, inputs, s);
    for (uint32_t level = 0; level < field->model->levels; level++)
        if (fabs(field->model->level[level].scale / finest - 1) < 1e-4)
            return true;
    return false;
}

/* Every other sample may lie outside the cube, where the field is clamped or contracted. */
static void random_ray(struct inputs *inputs, uint32_t s, const struct reference_space *space,
                       struct random *random)
{
    struct Ray *ray = &inputs->rays[s];
    double around = s % 2 == 0 ? 0.45 : space->contracted ? 6 : 0.6;
    float t = (float)random_between(random, 0, 0.05 * space->side);
    memset(ray, 0xff, sizeof *ray); /* NaN in fields that must not be read */
    ray->view = 0;
    random_direction(random, inputs->directions[s]);
    inputs->samples[s] = (struct Sample){.t = t, .ray = s};
    for (int i = 0; i < 3; i++) {
        ray->direction[i] = (float)inputs->directions[s][i];
        ray->origin[i] = (float)(0.5 + space->side * random_between(random, -around, around));
        inputs->positions[s][i] = ray->origin[i] + (double)t * ray->direction[i];
    }
}

static void reserve_samples(struct inputs *inputs, const struct reference_field *field, double kink,
                            struct random *random)
{
    for (uint32_t s = 0; s < SAMPLES; s++) {
        int tries = 0;
        do {
            random_ray(inputs, s, &field->space, random);
            check_that(++tries < 10000);
        } while (has_kink(&field->space, inputs->positions[s]) ||
                 is_near_finest(field, inputs, s) ||
                 reference_nearest_face(field, inputs->positions[s]) < 1e-4 ||
                 reference_field_kink(field, inputs->positions[s], inputs->directions[s]) < kink);
    }
}

/* A quarter of the samples is not live; every eighth live one has no gradient; the others'
 * gradients are of equal size at the MLPs' outputs. */
static void random_gradients(struct inputs *inputs, const struct reference_field *field,
                             struct random *random)
{
    for (uint32_t s = 0; s < SAMPLES; s++) {
        double slopes[4];
        reference_field_slopes(field, inputs->positions[s], inputs->directions[s], slopes);
        inputs->is_live[s] = random_below(random, 4) > 0;
        for (int i = 0; i < 4; i++)
            inputs->field[s][i] = inputs->is_live[s] && s % 8
                                      ? (float)(random_between(random, -1, 1) / slopes[i])
                                      : 0;
        if (!inputs->is_live[s])
            continue;
        uint32_t at = random_below(random, ++inputs->live_count);
        inputs->live[inputs->live_count - 1] = inputs->live[at];
        inputs->live[at] = s;
    }
}

/* Makes the reference field with parameters as the device reads them. */
static struct reference_field field_of(const struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    for (uint32_t i = 0; i < fixture->model.param_count && fixture->backend.f16; i++)
        field.params[i] = reference_round_to_f16(field.params[i]);
    return field;
}

static struct inputs *inputs_create(const struct fixture *fixture, uint32_t seed)
{
    struct random random = {seed};
    struct inputs *inputs = base_alloc(1, sizeof *inputs);
    struct vkn_config settings = fixture->settings;
    settings.seed = seed;
    inputs->params = base_alloc(fixture->model.param_count, sizeof *inputs->params);
    field_initialize(&settings, &fixture->model, inputs->params);
    for (uint32_t i = fixture->model.mlp_params; i < fixture->model.param_count; i++)
        inputs->params[i] = (float)random_between(&random, -1, 1);
    struct reference_field field = field_of(fixture, inputs);
    reserve_samples(inputs, &field, fixture->backend.f16 ? 4e-3 : 2e-4, &random);
    random_gradients(inputs, &field, &random);
    reference_field_destroy(&field);
    return inputs;
}

static void inputs_destroy(struct inputs *inputs)
{
    free(inputs->params);
    free(inputs);
}

/* ---- on the device ------------------------------------------------------------------------- */

static void run_backward(struct fixture *fixture, const struct inputs *inputs)
{
    const struct State state = {
        .sample_count = SAMPLES,
        .live_count = inputs->live_count,
        .ray_count = 64,
        .loss_scale = 8,
    };
    const struct Camera camera = {.focal_x = FOCAL, .focal_y = 1e6F};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_CAMERAS, &camera, sizeof camera);
    fixture_put(fixture, BIND_RAYS, inputs->rays, sizeof inputs->rays);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, sizeof inputs->samples);
    fixture_put(fixture, BIND_PARAMS, inputs->params, 4ull * fixture->model.param_count);
    fixture_put(fixture, BIND_FIELD_GRADIENTS, inputs->field, sizeof inputs->field);
    if (!fixture->settings.deterministic)
        fixture_put(fixture, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
    if (fixture->backend.f16)
        fixture_run(fixture, "round_parameters", (struct Push){0}, 3);
    fixture_run_variant(fixture, "encode_samples", FIELD_F16_PARAMS, (struct Push){0}, GROUPS);
    fixture_run_variant(fixture, "field_forward", FIELD_FORWARD, (struct Push){0}, GROUPS);
    fixture_run_variant(fixture, "field_backward", FIELD_BACKWARD, (struct Push){0}, GROUPS);
}

static void check_same(struct fixture *a, struct fixture *b, uint32_t binding)
{
    void *of_a = fixture_read(a, binding), *of_b = fixture_read(b, binding);
    check_equal(a->buffers[binding].size, b->buffers[binding].size);
    check_memory(of_a, of_b, a->buffers[binding].size);
    free(of_a);
    free(of_b);
}

/* Without SPEC_INPUT_GRADIENTS no gradients by inputs are written; the others are the same. */
static void check_without(struct gpu_device *device, const struct input_case *c,
                          struct fixture *with_gradients, const struct inputs *inputs)
{
    struct fixture fixture = fixture_of(device, c, false);
    run_backward(&fixture, inputs);
    void *untouched = fixture_read(&fixture, BIND_INPUT_GRADIENTS);
    check_poisoned(untouched, 0, fixture.buffers[BIND_INPUT_GRADIENTS].size / 4);
    free(untouched);
    check_same(with_gradients, &fixture, BIND_FEATURES);
    check_same(with_gradients, &fixture, BIND_PARTIALS);
    fixture_destroy(&fixture);
}

/* Runs the passes that the field's kind lists. */
static void run_input_gradients(struct fixture *fixture)
{
    const struct pass_list *pass_list = &fixture->model.kind->input_gradients;
    void *before = fixture_read(fixture, BIND_FEATURES);
    for (size_t i = 0; i < pass_list->count; i++)
        fixture_run_variant(fixture, pass_list->passes[i].name, pass_list->passes[i].variant,
                            (struct Push){0}, GROUPS);
    void *after = fixture_read(fixture, BIND_FEATURES);
    check_memory(after, before, fixture->buffers[BIND_FEATURES].size);
    free(before);
    free(after);
}

/* ---- comparison with the reference --------------------------------------------------------- */

struct error {
    double squared, size; /* over all samples: of the errors, of the gradients */
    double worst;         /* of one sample, over its gradient's norm */
};

static void add_error(struct error *error, const float device[4], const double expected[3])
{
    double squared = 0, size = 0;
    for (int i = 0; i < 3; i++) {
        squared += (device[i] - expected[i]) * (device[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    error->squared += squared;
    error->size += size;
    if (size > 0)
        error->worst = fmax(error->worst, sqrt(squared / size));
    check_that(device[3] == 0 && isfinite(squared));
}

/* For one sample: where levels' contributions nearly cancel, their rounding errors remain. */
static const struct tolerance {
    double all, one;
} full = {1e-5, 1e-3}, half = {2e-3, 1};

static void check_error(const char *what, const struct error *error,
                        const struct tolerance *tolerance)
{
    double all = sqrt(error->squared / error->size);
    if (!(all < tolerance->all && error->worst < tolerance->one))
        check_fail("gradients by %s: relative error %.3g, of one sample %.3g", what, all,
                   error->worst);
}

static void check_zero(const float values[8], uint32_t s)
{
    for (int i = 0; i < 8; i++)
        if (values[i] != 0)
            check_fail("sample %u should have no gradient, not %.3g", s, (double)values[i]);
}

static void check_gradients(const struct fixture *fixture, const struct inputs *inputs,
                            bool refined, const float (*device)[8])
{
    struct reference_field field = field_of(fixture, inputs);
    struct error position = {0}, direction = {0};
    size_t held = 0; /* levels of all samples that do not move cameras */
    for (uint32_t s = 0; s < SAMPLES; s++) {
        double gradient[4], by_position[3], by_direction[3];
        if (!inputs->is_live[s] && !fixture->settings.deterministic) {
            check_poisoned(device, 8ull * s, 8ull * s + 8);
            continue;
        }
        for (int i = 0; i < 4; i++)
            gradient[i] = inputs->field[s][i];
        if (gradient[3] == 0) {
            check_zero(device[s], s);
            continue;
        }
        if (refined) {
            field.finest = finest_scale(&field.space, inputs, s);
            memcpy(field.held, inputs->positions[s], sizeof field.held);
            for (uint32_t level = 0; level < field.model->levels; level++)
                held += field.model->level[level].scale > field.finest ? 1 : 0;
        }
        reference_field_input_gradients(&field, inputs->positions[s], inputs->directions[s],
                                        gradient, 1e-7 * field.space.side, by_position,
                                        by_direction);
        add_error(&position, device[s], by_position);
        add_error(&direction, device[s] + 4, by_direction);
    }
    check_poisoned(device, 8ull * SAMPLES, 8ull * fixture->config.sample_capacity);
    check_that(!refined || (held > SAMPLES / 2 && held < 3 * SAMPLES));
    check_error("position", &position, fixture->backend.f16 ? &half : &full);
    check_error("direction", &direction, fixture->backend.f16 ? &half : &full);
    reference_field_destroy(&field);
}

static void check_case(struct gpu_device *device, const struct input_case *c, uint32_t seed)
{
    struct fixture fixture = fixture_of(device, c, true);
    struct inputs *inputs = inputs_create(&fixture, seed);
    run_backward(&fixture, inputs);
    if (c->also_without)
        check_without(device, c, &fixture, inputs);
    run_input_gradients(&fixture);
    float(*gradients)[8] = fixture_read(&fixture, BIND_INPUT_GRADIENTS);
    check_gradients(&fixture, inputs, c->refined, (const float(*)[8])gradients);
    free(gradients);
    inputs_destroy(inputs);
    fixture_destroy(&fixture);
}

static void test_input_gradients(struct gpu_device *device)
{
    static const struct input_case cases[] = {
        {VKN_PRECISION_FP32, 2, 4, 1, false, false, true, false},
        {VKN_PRECISION_FP32, 4, 2, 4, true, true, false, true},
        {VKN_PRECISION_FP16, 4, 3, 4, false, false, false, true},
        /* These run only with VKNERF_TEST_ALL, because each compiles its own pipelines. */
        {VKN_PRECISION_FP32, 4, 4, 2, true, false, false, false},
        {VKN_PRECISION_FP32, 4, 3, 4, false, false, false, false},
        {VKN_PRECISION_FP16, 2, 4, 1, true, false, true, false},
    };
    uint32_t count = check_everything() ? BASE_COUNT(cases) : 3;
    for (uint32_t n = 0; n < count; n++)
        if (cases[n].precision == VKN_PRECISION_FP32 || fixture_has_f16(device))
            check_case(device, &cases[n], 700 + n);
}

/* Tests matrices; with VKNERF_TEST_ALL also without gradients by inputs. */
static void test_matrices(struct gpu_device *device)
{
    const bool unasked = check_everything();
    const struct input_case c = {VKN_PRECISION_COOPMAT, 2, 4, 2, true, false, unasked, false};
    if (gpu_device_capabilities(device)->cooperative_matrix)
        check_case(device, &c, 710);
}

static const struct certify_test tests[] = {
    TEST(test_input_gradients),
    TEST(test_matrices),
};
const struct certify_part certify_inputs = {"inputs", tests, BASE_COUNT(tests)};
