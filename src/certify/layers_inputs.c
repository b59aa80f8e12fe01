/* Lists backends, and makes random rays, samples, parameters and gradients for tests of MLPs. */
#include "certify/layers.h"

/* ---- backends ------------------------------------------------------------------------------ */

/* lavapipe compiles a matrix shape in 2 s with CPU kernels, in 10 to 30 s with GPU kernels, and f16
 * weights through bindings in 10 s. */
static bool is_cheap(const struct gpu_capabilities *device, const struct backend_case *backend)
{
    bool cpu = gpu_cpu_kernels(device), f16_sums = backend->accumulate == VKN_ACCUMULATE_F16;
    if (device->type != GPU_CPU || check_everything())
        return true;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        return !backend->bound || backend->precision == VKN_PRECISION_FP32;
    if (backend->shape == VKN_SHAPE_8X8X8)
        return cpu || !f16_sums;
    bool other = backend->shape == VKN_SHAPE_8X8X16 || backend->shape == VKN_SHAPE_16X16X16;
    return cpu && !f16_sums && other;
}

size_t layers_list_products(struct gpu_device *device, struct backend_case cases[MAX_CASES])
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct backend_case all[2 * 2 + 2 * 5];
    size_t count = 0, created = 0, cheap = 0;
    for (int bound = 0; bound <= gpu_cpu_kernels(capabilities); bound++)
        for (int precision = VKN_PRECISION_FP32; precision <= VKN_PRECISION_FP16; precision++)
            all[count++] =
                (struct backend_case){.precision = (enum vkn_precision)precision, .bound = bound};
    for (int shape = VKN_SHAPE_8X8X8; shape <= VKN_SHAPE_16X16X16; shape++)
        for (int sums = VKN_ACCUMULATE_F32; sums <= VKN_ACCUMULATE_F16; sums++)
            all[count++] = (struct backend_case){.precision = VKN_PRECISION_COOPMAT,
                                                 .shape = (enum vkn_matrix_shape)shape,
                                                 .accumulate = (enum vkn_accumulate)sums};
    for (size_t i = 0; i < count; i++) {
        const struct vkn_config config = {
            .precision = all[i].precision,
            .matrix = {.shape = all[i].shape, .accumulate = all[i].accumulate}};
        const struct field_model layers = {.columns = 32};
        struct field_backend backend;
        if (field_backend_create(&config, &layers, capabilities, &backend) != VKN_OK)
            continue;
        created++;
        if (is_cheap(capabilities, &all[i]))
            cases[cheap++] = all[i];
    }
    /* lavapipe supports all but f16 sums of 8x8x16, and no matrices with 512-bit vectors. */
    if (capabilities->type == GPU_CPU && capabilities->cooperative_matrix)
        check_equal(created, count - (capabilities->subgroup_size == 8 ? 1 : 10));
    return cheap;
}

bool layers_is_bf16(const struct fixture *fixture)
{
    return fixture->backend.rounded & ROUND_ACTIVATIONS * ROUND_BF16;
}

double layers_stored_tolerance(const struct fixture *fixture)
{
    return fixture->backend.f16 ? 0x1p-11 : layers_is_bf16(fixture) ? 0x1p-8 : 0x1p-24;
}

struct fixture layers_fixture(struct gpu_device *device, const struct backend_case *backend,
                              const struct model_case *model, enum kept kept, bool deterministic)
{
    struct vkn_config settings = {
        .model = VKN_MODEL_VANILLA,
        .precision = backend->precision,
        .deterministic = deterministic,
        .scene = {.aabb_scale = model->aabb_scale,
                  .contraction = model->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE,
                  .refine = model->refined ? VKN_REFINEMENT_POSES : VKN_REFINEMENT_OFF},
        .mlp = {.density_width = model->width,
                .density_layers = model->layers,
                .geometry = model->geometry,
                .color_width = model->color_width,
                .color_layers = model->color_layers,
                .skip_layer = model->skip_layer,
                .position_octaves = model->position_octaves,
                .direction_octaves = model->direction_octaves,
                .density_activation = model->activation},
        .matrix = {.shape = backend->shape, .accumulate = backend->accumulate},
        .policy = {.matmul = backend->matmul,
                   .activations = backend->stored,
                   .activation_gradients = backend->stored},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture.bound = backend->bound;
    fixture.config.chunk_rows = fixture.model.chunk_rows = model->chunk;
    fixture.config.kept_rows = fixture.model.kept_rows =
        kept == KEPT ? (model->samples + 63) / 64 * 64 : 0;
    fixture_set_constant(&fixture, SPEC_VISIBILITY, kept == DENSITIES_FIRST);
    if (model->no_subnormals)
        fixture_set_constant(&fixture, SPEC_ROUNDED, fixture.backend.rounded | F16_NO_SUBNORMALS);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

static const struct pass *pass_of(const struct field_model *model,
                                  const struct pass_list *pass_list, const char *name)
{
    const struct pass *passes[FIELD_MAX_PASSES];
    size_t count = field_list_passes(model, pass_list, passes);
    for (size_t i = 0; i < count; i++)
        if (strcmp(passes[i]->name, name) == 0)
            return passes[i];
    check_fail("no pass %s", name);
    return NULL;
}

void layers_run(struct fixture *fixture, const struct pass_list *pass_list, const char *name,
                uint32_t chunk, uint32_t groups)
{
    fixture_choose_product(fixture, name);
    fixture_run_pass(fixture, pass_of(&fixture->model, pass_list, name), chunk, groups);
}

/* ---- inputs -------------------------------------------------------------------------------- */

/* Places a sample in the cube, a little outside, or far outside in contracted space, where no ReLU
 * is so near its kink that rounding switches it. */
static void place_sample(struct inputs *inputs, const struct reference_field *field, uint32_t s,
                         double margin, struct random *random)
{
    const struct Ray *ray = &inputs->rays[s % BASE_COUNT(inputs->rays)];
    double farthest = (field->space.contracted ? 8 : 0.4) * field->space.side;
    int tries = 0;
    do {
        check_that(++tries < 10000);
        inputs->samples[s] = (struct Sample){.t = (float)random_between(random, 0, farthest),
                                             .ray = s % BASE_COUNT(inputs->rays)};
        for (int i = 0; i < 3; i++) {
            inputs->directions[s][i] = ray->direction[i];
            inputs->positions[s][i] =
                ray->origin[i] + (double)inputs->samples[s].t * ray->direction[i];
        }
    } while (reference_field_kink(field, inputs->positions[s], inputs->directions[s]) < margin);
}

static void create_rays(struct inputs *inputs, double side, struct random *random)
{
    memset(inputs->rays, 0xff, sizeof inputs->rays); /* NaN where nothing is read */
    for (size_t r = 0; r < BASE_COUNT(inputs->rays); r++) {
        double direction[3];
        random_direction(random, direction);
        for (int i = 0; i < 3; i++) {
            inputs->rays[r].origin[i] = (float)(0.5 + side * random_between(random, -0.52, 0.52));
            inputs->rays[r].direction[i] = (float)direction[i];
        }
    }
}

/* A quarter of the samples has no gradient; some of the others have one that underflows in f16. */
static void create_gradients(struct inputs *inputs, struct random *random)
{
    for (uint32_t s = 0; s < inputs->count; s++) {
        if (s > 0 && random_below(random, 4) == 0)
            continue;
        double size = random_below(random, 8) == 0 ? 1e-6 : 0.2;
        for (int i = 0; i < 4; i++)
            inputs->gradients[s][i] = (float)random_between(random, -size, size);
        uint32_t at = random_below(random, ++inputs->live_count);
        inputs->live[inputs->live_count - 1] = inputs->live[at];
        inputs->live[at] = s;
    }
}

struct inputs layers_inputs_create(const struct fixture *fixture, uint32_t count, uint32_t seed)
{
    struct random random = {seed};
    struct inputs inputs = {.count = count};
    inputs.samples = base_alloc(count, sizeof *inputs.samples);
    inputs.positions = base_alloc(count, sizeof *inputs.positions);
    inputs.directions = base_alloc(count, sizeof *inputs.directions);
    inputs.gradients = base_alloc(count, sizeof *inputs.gradients);
    inputs.live = base_alloc(count, sizeof *inputs.live);
    inputs.params = base_alloc(fixture->model.param_count, sizeof *inputs.params);
    field_initialize(&fixture->settings, &fixture->model, inputs.params);
    for (uint32_t n = 0; n < fixture->model.layer_count; n++) {
        const struct field_layer *layer = &fixture->model.layers[n];
        for (uint32_t o = 0; o < layer->outputs; o++)
            inputs.params[reference_weight(layer, layer->inputs, o)] =
                (float)random_between(&random, -0.3, 0.3);
    }
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs.params);
    create_rays(&inputs, field.space.side, &random);
    for (uint32_t s = 0; s < count; s++)
        place_sample(&inputs, &field, s, fixture->backend.f16 ? 2e-3 : 1e-5, &random);
    create_gradients(&inputs, &random);
    reference_field_destroy(&field);
    return inputs;
}

void layers_inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->samples,   inputs->params,     inputs->positions,
                   inputs->gradients, inputs->directions, inputs->live};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

void layers_put_inputs(struct fixture *fixture, const struct inputs *inputs)
{
    struct State state = {
        .sample_count = inputs->count,
        .live_count = inputs->live_count,
        .ray_count = 64,
        .loss_scale = 8,
    };
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_RAYS, inputs->rays, sizeof inputs->rays);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, inputs->count * sizeof *inputs->samples);
    fixture_put(fixture, BIND_PARAMS, inputs->params, 4ull * fixture->model.param_count);
    fixture_poison(fixture, BIND_LIVE);
    if (!fixture->settings.deterministic)
        fixture_put(fixture, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
}
