/* Makes models, and random rays, samples, parameters and gradients for tests of field passes. */
#include "certify/field.h"

const struct shape field_narrow = {16, 1, 16, 1, 16, 16, 2, 4, 1, 777, false};
const struct shape field_four_features = {16, 1, 16, 1, 16, 3, 4, 4, 16, 321, true};

double field_forward_tolerance(const struct fixture *fixture)
{
    return fixture->backend.f16 ? 2e-3 : 1e-5;
}

double field_backward_tolerance(const struct fixture *fixture)
{
    return fixture->backend.f16 || fixture->backend.sums == VKN_SUMS_F16 ? 1e-2 : 1e-4;
}

bool field_is_colored(const struct fixture *fixture)
{
    return fixture->settings.mlp.color_layers > 0;
}

/* Replaces the settings by a proposal's of the given shape, without a colour MLP. */
static void become_proposal(struct fixture *fixture, const struct shape *shape)
{
    fixture->settings.proposal.levels = shape->levels;
    fixture->settings.proposal.log2_entries = 10;
    fixture->settings.proposal.finest = 64;
    fixture->settings.proposal.width = shape->density_width;
    fixture->settings = field_proposal_config(&fixture->settings);
    fixture->settings.mlp.density_layers = shape->density_layers;
    fixture_set_up(fixture);
}

struct fixture field_fixture(struct gpu_device *device, const struct backend_case *backend,
                             const struct shape *shape, enum vkn_gradient_sums sums)
{
    struct vkn_config settings = settings_of(backend, shape);
    settings.gradient_sums = sums;
    settings.deterministic = sums == VKN_SUMS_FIXED;
    struct fixture fixture = fixture_configure(device, settings);
    if (shape->color_layers == 0)
        become_proposal(&fixture, shape);
    force_backend(&fixture, backend);
    if (backend->atomics) {
        fixture.backend.scatter_suffix = "float";
        fixture.backend.sums_size = 0;
        fixture_set_constant(&fixture, SPEC_SAMPLE_LANES, 4); /* what most GPUs choose */
    }
    if (backend->sample_lanes)
        fixture_set_constant(&fixture, SPEC_SAMPLE_LANES, backend->sample_lanes);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

/* Relative error of an activation after several layers. */
static double kink_margin(bool half)
{
    return half ? 4e-3 : 1e-5;
}

/* Moves a sample to distance t on its ray; returns its distance from a ReLU's kink. */
static double move_sample(struct inputs *inputs, const struct reference_field *field, uint32_t s,
                          uint32_t of_ray, double t)
{
    const struct Ray *ray = &inputs->rays[of_ray];
    double direction[3], *position = inputs->positions[s];
    inputs->samples[s] = (struct Sample){.t = (float)t, .ray = of_ray};
    for (int i = 0; i < 3; i++) {
        direction[i] = ray->direction[i];
        position[i] = ray->origin[i] + (double)inputs->samples[s].t * ray->direction[i];
    }
    return reference_field_kink(field, position, direction);
}

/* Moves samples whose ReLUs rounding might switch, because their gradients cannot be compared. */
static void place_sample(struct inputs *inputs, const struct reference_field *field, uint32_t s,
                         double margin, struct random *random)
{
    double kink;
    int tries = 0;
    double farthest = (field->space.contracted ? 8 : 0.4) * field->space.side;
    do {
        kink = move_sample(inputs, field, s, s % inputs->ray_count,
                           random_between(random, 0, farthest));
        check_that(++tries < 10000);
    } while (kink < margin);
}

/* Random rays with samples in the cube, sometimes a little outside, or far outside in contracted
 * space. */
static void random_samples(struct inputs *inputs, const struct reference_field *field,
                           double margin, struct random *random)
{
    double side = field->space.side;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        double direction[3];
        random_direction(random, direction);
        memset(&inputs->rays[r], 0xff, sizeof inputs->rays[r]); /* NaN where nothing is read */
        for (int i = 0; i < 3; i++) {
            inputs->rays[r].origin[i] = (float)(0.5 + side * random_between(random, -0.52, 0.52));
            inputs->rays[r].direction[i] = (float)direction[i];
        }
    }
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        place_sample(inputs, field, s, margin, random);
}

/* Puts samples in ray order, several in each cell of a coarse level. */
static void line_up_samples(struct inputs *inputs, const struct reference_field *field,
                            struct random *random)
{
    uint32_t each = (inputs->sample_count + inputs->ray_count - 1) / inputs->ray_count;
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        while (move_sample(inputs, field, s, s / each,
                           0.004 * (s % each + random_between(random, 0, 0.5))) <
               kink_margin(false))
            continue;
}

/* Lists samples with a gradient in sample order. */
static void line_up_gradients(struct inputs *inputs)
{
    inputs->live_count = 0;
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        if (inputs->gradients[s][3] != 0)
            inputs->live[inputs->live_count++] = s;
}

/* A quarter of the samples gets no gradient; the others' gradients are of equal size at the MLPs'
 * outputs. */
static void random_gradients(struct inputs *inputs, const struct reference_field *field,
                             bool colored, struct random *random)
{
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        bool live = s == 0 || random_below(random, 4) > 0;
        double direction[3], slopes[4];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_slopes(field, inputs->positions[s], direction, slopes);
        for (int i = 0; i < 4; i++) {
            /* Where a ReLU's slope is zero any gradient ends there. */
            inputs->field[s][i] =
                live
                    ? (float)(random_between(random, -0.02, 0.02) / (slopes[i] > 0 ? slopes[i] : 1))
                    : 0;
            inputs->gradients[s][i] = colored || i == 3 ? inputs->field[s][i] : 0;
        }
        if (!live)
            continue;
        uint32_t at = random_below(random, ++inputs->live_count);
        inputs->live[inputs->live_count - 1] = inputs->live[at];
        inputs->live[at] = s;
    }
}

struct inputs field_inputs_of_steepness(const struct fixture *fixture, uint32_t samples,
                                        bool along_rays, float steepness, uint32_t seed)
{
    struct random random = {seed};
    struct inputs inputs = {.ray_count = samples < 40 ? samples : 40, .sample_count = samples};
    inputs.rays = base_alloc(inputs.ray_count, sizeof *inputs.rays);
    inputs.samples = base_alloc(samples, sizeof *inputs.samples);
    inputs.positions = base_alloc(samples, sizeof *inputs.positions);
    inputs.gradients = base_alloc(samples, sizeof *inputs.gradients);
    inputs.field = base_alloc(samples, sizeof *inputs.field);
    inputs.live = base_alloc(samples, sizeof *inputs.live);
    inputs.params = base_alloc(fixture->model.param_count, sizeof *inputs.params);
    struct vkn_config settings = fixture->settings;
    settings.seed = seed;
    field_initialize(&settings, &fixture->model, inputs.params);
    for (uint32_t i = fixture->model.mlp_params; i < fixture->model.param_count; i++)
        inputs.params[i] = (float)random_between(&random, -1, 1);
    const struct field_layer *last = &fixture->model.layers[fixture->settings.mlp.density_layers];
    for (uint32_t i = 0; i < last->inputs; i++)
        inputs.params[reference_weight(last, i, 0)] *= steepness;
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs.params);
    random_samples(&inputs, &field, kink_margin(fixture->backend.f16), &random);
    if (along_rays)
        line_up_samples(&inputs, &field, &random);
    random_gradients(&inputs, &field, field_is_colored(fixture), &random);
    if (along_rays)
        line_up_gradients(&inputs);
    reference_field_destroy(&field);
    return inputs;
}

struct inputs field_inputs_create(const struct fixture *fixture, uint32_t samples, bool along_rays,
                                  uint32_t seed)
{
    return field_inputs_of_steepness(fixture, samples, along_rays, 1, seed);
}

void field_inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->rays,  inputs->samples, inputs->positions, inputs->gradients,
                   inputs->field, inputs->live,    inputs->params};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

void field_put_samples(struct fixture *fixture, const struct inputs *inputs)
{
    struct State state = {
        .sample_count = inputs->sample_count,
        .live_count = inputs->live_count,
        .ray_count = 64,
        .loss_scale = 8,
    };
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_RAYS, inputs->rays, inputs->ray_count * sizeof *inputs->rays);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples,
                inputs->sample_count * sizeof *inputs->samples);
    fixture_put(fixture, BIND_PARAMS, inputs->params, 4ull * fixture->model.param_count);
    if (fixture->backend.f16)
        fixture_run(fixture, "round_parameters", (struct Push){0}, 3);
}
