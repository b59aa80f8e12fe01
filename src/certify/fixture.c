/* Implements the fixture for tests of single passes. */
#include "certify/fixture.h"

enum vkn_optimizer next_optimizer(enum vkn_optimizer kind)
{
    return config_optimizer_names[kind + 1] ? (enum vkn_optimizer)(kind + 1)
                                            : VKN_OPTIMIZER_DEFAULT;
}

bool fixture_has_f16(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    return capabilities->float16 && capabilities->storage16;
}

bool has_slow_gpu_kernels(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    return capabilities->type == GPU_CPU && !gpu_cpu_kernels(capabilities) && !check_everything();
}

uint32_t random_word(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

uint32_t random_below(struct random *random, uint32_t limit)
{
    return (uint32_t)((uint64_t)random_word(random) * limit >> 32);
}

double random_between(struct random *random, double low, double high)
{
    return low + (high - low) * (random_word(random) + 0.5) * 0x1p-32;
}

float *random_floats(struct random *random, uint64_t count, double low, double high)
{
    float *values = base_alloc(count, sizeof *values);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)random_between(random, low, high);
    return values;
}

void random_direction(struct random *random, double direction[3])
{
    double squared = 0;
    do {
        squared = 0;
        for (int i = 0; i < 3; i++) {
            direction[i] = random_between(random, -1, 1);
            squared += direction[i] * direction[i];
        }
    } while (squared > 1 || squared < 0.01);
    for (int i = 0; i < 3; i++)
        direction[i] /= sqrt(squared);
}

struct scene_camera random_camera(struct random *random, uint32_t width, uint32_t height,
                                  double distance, bool distorted)
{
    struct scene_camera camera = {.width = width, .height = height};
    double axis[3][3], along = 0, length = 0;
    random_direction(random, axis[2]);
    random_direction(random, axis[0]);
    for (int i = 0; i < 3; i++)
        along += axis[0][i] * axis[2][i];
    for (int i = 0; i < 3; i++) {
        axis[0][i] -= along * axis[2][i];
        length += axis[0][i] * axis[0][i];
    }
    for (int i = 0; i < 3; i++)
        axis[0][i] /= sqrt(length);
    for (int i = 0; i < 3; i++)
        axis[1][i] = axis[2][(i + 1) % 3] * axis[0][(i + 2) % 3] -
                     axis[2][(i + 2) % 3] * axis[0][(i + 1) % 3];
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            camera.pose[4 * i + k] = (float)axis[k][i];
        camera.pose[4 * i + 3] =
            (float)(0.5 + distance * axis[2][i] + random_between(random, -0.1, 0.1));
    }
    camera.focal_x = (float)(width * random_between(random, 0.8, 1.3));
    camera.focal_y = (float)(camera.focal_x * random_between(random, 0.9, 1.1));
    camera.center_x = (float)(width * random_between(random, 0.45, 0.55));
    camera.center_y = (float)(height * random_between(random, 0.45, 0.55));
    if (distorted) {
        camera.k1 = (float)random_between(random, -0.15, 0.1);
        camera.k2 = (float)random_between(random, -0.02, 0.03);
        camera.p1 = (float)random_between(random, -0.01, 0.01);
        camera.p2 = (float)random_between(random, -0.01, 0.01);
    }
    return camera;
}

void fixture_set_constant(struct fixture *fixture, uint32_t id, uint32_t value)
{
    fixture->constants.values[id] = value;
}

void fixture_set_up(struct fixture *fixture)
{
    struct setup setup;
    check_ok(setup_create(&fixture->settings, gpu_device_capabilities(fixture->device), &setup));
    fixture->model = setup.model;
    fixture->backend = setup.backend;
    fixture->config = setup.constants;
    fixture->constants = setup.specialization;
    fixture->config.backward_groups = 5;
    fixture->output_capacity = fixture->config.ray_capacity;
}

struct fixture fixture_configure(struct gpu_device *device, struct vkn_config settings)
{
    struct fixture fixture = {.device = device, .settings = settings, .local_size = 64};
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    fixture.subgroup_size = capabilities->subgroup_size;
    /* Tests that leave the precision open do not depend on it; they are the same on every device.
     */
    if (!settings.precision)
        fixture.settings.precision = VKN_PRECISION_FP32;
    if (!settings.grid.log2_entries)
        fixture.settings.grid.log2_entries = 10;
    if (!settings.grid.finest)
        fixture.settings.grid.finest = 64;
    if (!settings.grid.coarsest)
        fixture.settings.grid.coarsest = 5;
    if (!settings.scene.contraction)
        fixture.settings.scene.contraction = VKN_CONTRACTION_NONE;
    if (!settings.march.sampling)
        fixture.settings.march.sampling = VKN_SAMPLING_OCCUPANCY;
    if (!settings.march.resolution)
        fixture.settings.march.resolution = 16;
    if (!settings.batch.samples)
        fixture.settings.batch.samples = 1024;
    if (!settings.batch.max_rays)
        fixture.settings.batch.max_rays = 256;
    struct vkn_scene scene = {
        .downscale = 1,
        .scale = 1,
        .aabb_scale = settings.scene.aabb_scale ? settings.scene.aabb_scale : 1,
    };
    check_ok(setup_resolve_config(&fixture.settings, &scene, capabilities));
    fixture_set_up(&fixture);
    return fixture;
}

bool fixture_contracts(const struct fixture *fixture)
{
    return fixture->settings.scene.contraction == VKN_CONTRACTION_CUBE;
}

void fixture_poison(struct fixture *fixture, uint32_t binding)
{
    struct gpu_recording *recording;
    check_ok(gpu_record_begin(fixture->device, "poison", 0, &recording));
    gpu_record_fill(recording, &fixture->buffers[binding], 0,
                    fixture->buffers[binding].size / 4 * 4, POISON);
    check_ok(gpu_run_once(&recording));
}

void fixture_put(struct fixture *fixture, uint32_t binding, const void *data, uint64_t size)
{
    check_ok(gpu_upload(fixture->device, &fixture->buffers[binding], 0, data, size));
}

void fixture_get(struct fixture *fixture, uint32_t binding, void *data, uint64_t size)
{
    check_ok(gpu_download(fixture->device, &fixture->buffers[binding], 0, data, size));
}

void *fixture_read(struct fixture *fixture, uint32_t binding)
{
    void *data = base_alloc(fixture->buffers[binding].size, 1);
    check_that(data != NULL);
    fixture_get(fixture, binding, data, fixture->buffers[binding].size);
    return data;
}

float *fixture_read_gradients(struct fixture *fixture)
{
    float *gradients = fixture_read(fixture, BIND_GRADIENTS);
    if (fixture->backend.sums != VKN_SUMS_F16)
        return gradients;
    uint16_t *halves = fixture_read(fixture, BIND_ACCUMULATORS);
    for (uint32_t i = fixture->model.mlp_params; i < fixture->model.param_count; i++)
        gradients[i] = (float)reference_f16(halves[i]);
    free(halves);
    return gradients;
}

struct setup fixture_setup(const struct fixture *fixture)
{
    return (struct setup){
        .config = fixture->settings,
        .model = fixture->model,
        .backend = fixture->backend,
        .constants = fixture->config,
    };
}

struct buffer_counts fixture_counts(const struct fixture *fixture, uint32_t cameras,
                                    uint64_t pixels)
{
    const struct setup setup = fixture_setup(fixture);
    struct buffer_counts counts = setup_counts(&setup);
    uint64_t cells = fixture->constants.values[SPEC_RESOLUTION];
    cells = cells * cells * cells * fixture->constants.values[SPEC_CASCADES];
    cells *= fixture->constants.values[SPEC_TIME_BINS];
    counts.params = fixture->config.param_count;
    optim_size_buffers(&fixture->settings, &counts);
    counts.entries = fixture->config.entry_count;
    counts.summed = fixture->config.summed_params;
    counts.cameras = cameras;
    counts.pixels = pixels;
    counts.sky_cells = fixture->config.sky_cells;
    counts.error_cells = fixture->config.error_cells;
    counts.error_cells += fixture->settings.loss.robust == VKN_SWITCH_ON; /* the summary */
    counts.error_sums = fixture->config.slot_count * (3 + 2 * (uint64_t)fixture->config.slot_cells);
    if (fixture->settings.scene.refine > VKN_REFINEMENT_OFF)
        counts.refined_views = cameras;
    if (fixture->settings.scene.appearance > VKN_APPEARANCE_OFF)
        counts.appearances = cameras;
    counts.cells = cells;
    counts.bit_words = cells / 32 + cells / 512;
    /* Shaders of other backends than the fixture's run on it too. */
    if (fixture->model.columns == 0)
        counts.f16_params = counts.params + fixture->backend.transposed + fixture->model.mlp_params;
    counts.sum_bytes = 8;
    counts.feature_bytes = 4ull * fixture->model.inputs;
    counts.input_gradients = counts.samples;
    counts.triangles = counts.splats = 64;
    counts.texels = 4096;
    return counts;
}

void fixture_allocate(struct fixture *fixture, uint32_t cameras, uint64_t pixels)
{
    struct gpu_buffer_request requests[GPU_BINDINGS];
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {NULL};
    const struct buffer_counts counts = fixture_counts(fixture, cameras, pixels);
    struct buffer_counts outputs = counts;
    outputs.rays = fixture->output_capacity;
    for (uint32_t i = 0; i < GPU_BINDINGS; i++) {
        uint64_t step = buffers_bytes(BUFFERS_OF_STEP, i, &counts);
        uint64_t view = buffers_bytes(BUFFERS_OF_VIEW, i, i == BIND_OUTPUT ? &outputs : &counts);
        requests[i] = (struct gpu_buffer_request){&fixture->buffers[i], "fixture",
                                                  step > view ? step : view, GPU_DEVICE};
        buffers[i] = &fixture->buffers[i];
    }
    check_ok(gpu_arena_create(fixture->device, requests, GPU_BINDINGS, &fixture->arena));
    check_ok(gpu_bindings_create(fixture->device, buffers, &fixture->bindings));
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        fixture_poison(fixture, i);
    fixture->config.camera_count = fixture->config.view_count = cameras;
    fixture->config.view_stride = 1;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

/* Returns the feature that the backend's gradient sums need. */
static const char *feature_of_sums(enum vkn_gradient_sums sums)
{
    return sums == VKN_SUMS_F32   ? "float_atomics"
           : sums == VKN_SUMS_F16 ? "packed_f16_atomics"
           : sums == VKN_SUMS_CAS ? "cas_sums"
                                  : "";
}

/* Tells the certificate which shader runs, and which backend the shader belongs to; other shaders
 * are the same for all backends. */
static void describe_backend(const struct fixture *fixture, const char *shader, bool of_backend)
{
    const struct field_backend *backend = &fixture->backend;
    const struct gpu_matrix_shape *shape = &backend->shape;
    bool is_matrix = backend->precision == VKN_PRECISION_COOPMAT;
    char text[64], feature[64], matrix[32] = "";
    check_pass(shader, backend->f16 && of_backend);
    if (is_matrix)
        snprintf(matrix, sizeof matrix, " %ux%ux%u", shape->m, shape->n, shape->k);
    snprintf(text, sizeof text, "%s%s, %s sums", config_precision_names[backend->precision], matrix,
             config_gradient_sums_names[backend->sums]);
    snprintf(feature, sizeof feature, "%s",
             strncmp(shader, "scatter", strlen("scatter")) == 0 ? feature_of_sums(backend->sums)
             : is_matrix                                        ? "matrix"
             : backend->f16                                     ? "float16"
                                                                : "");
    if (is_matrix && strcmp(feature, "matrix") == 0)
        snprintf(feature, sizeof feature, "matrix_%ux%ux%u", shape->m, shape->n, shape->k);
    check_backend(of_backend ? text : "", of_backend ? feature : "");
}

const struct gpu_pipeline *fixture_pipeline(struct fixture *fixture, const char *pass,
                                            enum field_variant variant)
{
    char name[FIELD_SHADER_NAME];
    uint32_t i = 0;
    field_backend_shader_name(&fixture->backend, pass, variant, name);
    describe_backend(fixture, name, strcmp(name, pass) != 0);
    while (i < FIXTURE_PIPELINES && fixture->names[i][0] && strcmp(fixture->names[i], name) != 0)
        i++;
    check_that(i < FIXTURE_PIPELINES);
    if (!fixture->names[i][0]) {
        if (fixture->bound)
            setenv("VKNERF_DISABLE", "buffer_addresses", 1);
        check_ok(field_backend_create_pipeline(fixture->device, &fixture->backend, pass, variant,
                                               fixture->local_size, &fixture->constants,
                                               &fixture->pipelines[i]));
        if (fixture->bound)
            unsetenv("VKNERF_DISABLE");
        memcpy(fixture->names[i], name, sizeof name);
    }
    return fixture->pipelines[i];
}

void fixture_run_variant(struct fixture *fixture, const char *pass, enum field_variant variant,
                         struct Push push, uint32_t groups)
{
    struct gpu_recording *recording;
    const struct gpu_pipeline *pipeline = fixture_pipeline(fixture, pass, variant);
    check_ok(gpu_record_begin(fixture->device, pass, 0, &recording));
    gpu_record_dispatch(recording, pipeline, fixture->bindings, &push, sizeof push, groups);
    check_ok(gpu_run_once(&recording));
}

void fixture_run(struct fixture *fixture, const char *pass, struct Push push, uint32_t groups)
{
    fixture_run_variant(fixture, pass, FIELD_NO_VARIANT, push, groups);
}

void fixture_run_pass(struct fixture *fixture, const struct pass *pass, uint32_t chunk,
                      uint32_t groups)
{
    const struct setup setup = fixture_setup(fixture);
    const struct repeats repeats = setup_repeats(&setup);
    uint32_t rounds = pass_loop_count(pass, &repeats);
    for (uint32_t round = 0; round < rounds; round++) {
        const struct Push push = {
            .c = pass_loop_index(pass, &repeats, round), .d = chunk, .e = pass->rows};
        fixture_run_variant(fixture, pass->name, pass->variant, push, groups);
    }
}

uint32_t fixture_groups(const struct fixture *fixture, uint32_t invocations)
{
    return (invocations + fixture->local_size - 1) / fixture->local_size;
}

uint32_t fixture_subgroups(const struct fixture *fixture, uint32_t rays)
{
    uint32_t subgroups = fixture->local_size / fixture->subgroup_size;
    return (rays + subgroups - 1) / subgroups;
}

void fixture_destroy(struct fixture *fixture)
{
    for (uint32_t i = 0; i < FIXTURE_PIPELINES; i++)
        gpu_pipeline_destroy(&fixture->pipelines[i]);
    gpu_bindings_destroy(&fixture->bindings);
    gpu_arena_destroy(&fixture->arena);
}

/* ---- numbers ------------------------------------------------------------------------------- */

double relative_error(const float *device, const double *expected, size_t count)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        difference += (device[i] - expected[i]) * (device[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

void widen_floats(const float *from, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (double)from[i];
}

int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double gradient_sum(const struct ErrorCell *cell)
{
    return (double)(int64_t)((uint64_t)cell->high << 32 | cell->low) / GRADIENT_UNITS;
}
