/* A bench for tests of single passes: it has every buffer of the training step, initially poisoned,
 * and runs one shader at a time. */
#ifndef TESTS_PASS_FIXTURE_H
#define TESTS_PASS_FIXTURE_H

#include "gpu_fixture.h"

#include <float.h>
#include <math.h>

#include "reference/reference.h"
#include "config/config.h"
#include "optim/optim.h"
#include "step/step.h"

/* Returns the next optimiser, and VKN_OPTIMIZER_DEFAULT after the last, for loops that begin and
 * end there. */
static inline enum vkn_optimizer next_optimizer(enum vkn_optimizer kind)
{
    return config_optimizer_names[kind + 1] ? (enum vkn_optimizer)(kind + 1)
                                            : VKN_OPTIMIZER_DEFAULT;
}

/* Returns whether a CPU device runs GPU kernels, which compile slowly there: tests then skip what
 * does not depend on the kernels. */
static inline bool has_slow_gpu_kernels(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    return capabilities->type == GPU_CPU && !gpu_cpu_kernels(capabilities) && !tries_all();
}

/* NaN as a float, far out of range as an integer. */
#define POISON 0xffc0deadu

/* ---- random inputs ------------------------------------------------------------------------- */

struct random {
    uint64_t state;
};

/* splitmix64 (Steele, Lea and Flood 2014). */
static inline uint32_t random_word(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static inline uint32_t random_below(struct random *random, uint32_t limit)
{
    return (uint32_t)((uint64_t)random_word(random) * limit >> 32);
}

static inline double random_between(struct random *random, double low, double high)
{
    return low + (high - low) * (random_word(random) + 0.5) * 0x1p-32;
}

/* The caller frees the result. */
static inline float *random_floats(struct random *random, uint64_t count, double low, double high)
{
    float *values = base_alloc(count, sizeof *values);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (float)random_between(random, low, high);
    return values;
}

static inline void random_direction(struct random *random, double direction[3])
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

/* Returns a camera at `distance` from the cube's centre that looks roughly there, with any roll. */
static inline struct scene_camera random_camera(struct random *random, uint32_t width,
                                                uint32_t height, double distance, bool distorted)
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

/* ---- the bench ----------------------------------------------------------------------------- */

#define BENCH_PIPELINES 24

struct bench {
    struct gpu_device *device;
    struct vkn_config settings; /* effective */
    struct field_model model;
    struct field_backend backend;
    struct Config config; /* bench_put() uploads changes */
    struct gpu_constants constants;
    uint32_t local_size, subgroup_size, output_capacity;
    bool bound; /* shaders without buffer addresses, see gpu_pipeline_create */
    struct gpu_arena *arena;
    struct gpu_buffer buffers[GPU_BINDINGS]; /* by binding; the largest size of all lists */
    struct gpu_bindings *bindings;
    char names[BENCH_PIPELINES][FIELD_SHADER_NAME];
    struct gpu_pipeline *pipelines[BENCH_PIPELINES];
};

static inline void bench_set_constant(struct bench *bench, uint32_t id, uint32_t value)
{
    bench->constants.values[id] = value;
}

/* Computes model, backend and constants from effective settings. */
static inline void bench_set_up(struct bench *bench)
{
    struct setup setup;
    ok(setup_create(&bench->settings, gpu_device_capabilities(bench->device), &setup));
    bench->model = setup.model;
    bench->backend = setup.backend;
    bench->config = setup.constants;
    bench->constants = setup.specialization;
    bench->config.backward_groups = 5;
    bench->output_capacity = bench->config.ray_capacity;
}

/* Resolves settings, model and constants; the test may change them before bench_allocate(). Small,
 * with an occupancy grid and without contraction unless the settings say otherwise. */
static inline struct bench bench_configure(struct gpu_device *device, struct vkn_config settings)
{
    struct bench bench = {.device = device, .settings = settings, .local_size = 64};
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    bench.subgroup_size = capabilities->subgroup_size;
    if (!settings.grid.log2_entries)
        bench.settings.grid.log2_entries = 10;
    if (!settings.grid.finest)
        bench.settings.grid.finest = 64;
    if (!settings.grid.coarsest)
        bench.settings.grid.coarsest = 5;
    if (!settings.scene.contraction)
        bench.settings.scene.contraction = VKN_CONTRACTION_NONE;
    if (!settings.march.sampling)
        bench.settings.march.sampling = VKN_SAMPLING_OCCUPANCY;
    if (!settings.march.resolution)
        bench.settings.march.resolution = 16;
    if (!settings.batch.samples)
        bench.settings.batch.samples = 1024;
    if (!settings.batch.max_rays)
        bench.settings.batch.max_rays = 256;
    struct vkn_scene scene = {
        .downscale = 1,
        .scale = 1,
        .aabb_scale = settings.scene.aabb_scale ? settings.scene.aabb_scale : 1,
    };
    ok(setup_resolve_config(&bench.settings, &scene, capabilities));
    bench_set_up(&bench);
    return bench;
}

static inline bool bench_contracts(const struct bench *bench)
{
    return bench->settings.scene.contraction == VKN_CONTRACTION_CUBE;
}

static inline void bench_poison(struct bench *bench, uint32_t binding)
{
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench->device, "poison", 0, &recording));
    gpu_record_fill(recording, &bench->buffers[binding], 0, bench->buffers[binding].size / 4 * 4,
                    POISON);
    ok(gpu_run_once(&recording));
}

/* Uploads `size` bytes to the beginning of a buffer. */
static inline void bench_put(struct bench *bench, uint32_t binding, const void *data, uint64_t size)
{
    ok(gpu_upload(bench->device, &bench->buffers[binding], 0, data, size));
}

static inline void bench_get(struct bench *bench, uint32_t binding, void *data, uint64_t size)
{
    ok(gpu_download(bench->device, &bench->buffers[binding], 0, data, size));
}

/* Downloads a whole buffer into memory that the caller frees. */
static inline void *bench_read(struct bench *bench, uint32_t binding)
{
    void *data = base_alloc(bench->buffers[binding].size, 1);
    assert_non_null(data);
    bench_get(bench, binding, data, bench->buffers[binding].size);
    return data;
}

/* Downloads the gradients that the optimiser reads, which the caller frees; the grid's are read
 * from f16 accumulators if the backend has them. */
static inline float *bench_read_gradients(struct bench *bench)
{
    float *gradients = bench_read(bench, BIND_GRADIENTS);
    if (bench->backend.sums != VKN_SUMS_F16)
        return gradients;
    uint16_t *halves = bench_read(bench, BIND_ACCUMULATORS);
    for (uint32_t i = bench->model.mlp_params; i < bench->model.param_count; i++)
        gradients[i] = (float)reference_f16(halves[i]);
    free(halves);
    return gradients;
}

static inline struct setup bench_setup(const struct bench *bench)
{
    return (struct setup){
        .config = bench->settings,
        .model = bench->model,
        .backend = bench->backend,
        .constants = bench->config,
    };
}

/* Returns the counts that buffer sizes depend on. */
static inline struct buffer_counts bench_counts(const struct bench *bench, uint32_t cameras,
                                                uint64_t pixels)
{
    const struct setup setup = bench_setup(bench);
    struct buffer_counts counts = setup_counts(&setup);
    uint64_t cells = bench->constants.values[SPEC_RESOLUTION];
    cells = cells * cells * cells * bench->constants.values[SPEC_CASCADES];
    cells *= bench->constants.values[SPEC_TIME_BINS];
    counts.params = bench->config.param_count;
    optim_size_buffers(&bench->settings, &counts);
    counts.entries = bench->config.entry_count;
    counts.summed = bench->config.summed_params;
    counts.cameras = cameras;
    counts.pixels = pixels;
    counts.sky_cells = bench->config.sky_cells;
    counts.error_cells = bench->config.error_cells;
    counts.error_cells += bench->settings.loss.robust == VKN_SWITCH_ON; /* the summary */
    counts.error_sums = bench->config.slot_count * (3 + 2 * (uint64_t)bench->config.slot_cells);
    if (bench->settings.scene.refine > VKN_REFINEMENT_OFF)
        counts.refined_views = cameras;
    if (bench->settings.scene.appearance > VKN_APPEARANCE_OFF)
        counts.appearances = cameras;
    counts.cells = cells;
    counts.bit_words = cells / 32 + cells / 512;
    /* Shaders of other backends than the bench's run on it too. */
    if (bench->model.columns == 0)
        counts.f16_params = counts.params + bench->backend.transposed + bench->model.mlp_params;
    counts.sum_bytes = 8;
    counts.feature_bytes = 4ull * bench->model.inputs;
    counts.input_gradients = counts.samples;
    counts.triangles = counts.splats = 64;
    counts.texels = 4096;
    return counts;
}

/* Allocates and poisons every buffer, and uploads the configuration. */
static inline void bench_allocate(struct bench *bench, uint32_t cameras, uint64_t pixels)
{
    struct gpu_buffer_request requests[GPU_BINDINGS];
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {NULL};
    const struct buffer_counts counts = bench_counts(bench, cameras, pixels);
    struct buffer_counts outputs = counts;
    outputs.rays = bench->output_capacity;
    for (uint32_t i = 0; i < GPU_BINDINGS; i++) {
        uint64_t step = buffers_bytes(BUFFERS_OF_STEP, i, &counts);
        uint64_t view = buffers_bytes(BUFFERS_OF_VIEW, i, i == BIND_OUTPUT ? &outputs : &counts);
        requests[i] = (struct gpu_buffer_request){&bench->buffers[i], "bench",
                                                  step > view ? step : view, GPU_DEVICE};
        buffers[i] = &bench->buffers[i];
    }
    ok(gpu_arena_create(bench->device, requests, GPU_BINDINGS, &bench->arena));
    ok(gpu_bindings_create(bench->device, buffers, &bench->bindings));
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        bench_poison(bench, i);
    bench->config.camera_count = bench->config.view_count = cameras;
    bench->config.view_stride = 1;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
}

/* Returns the bench's pipeline of a pass, which is created at the first call. */
static inline const struct gpu_pipeline *bench_pipeline(struct bench *bench, const char *pass,
                                                        enum field_variant variant)
{
    char name[FIELD_SHADER_NAME];
    uint32_t i = 0;
    field_backend_shader_name(&bench->backend, pass, variant, name);
    while (i < BENCH_PIPELINES && bench->names[i][0] && strcmp(bench->names[i], name) != 0)
        i++;
    assert_true(i < BENCH_PIPELINES);
    if (!bench->names[i][0]) {
        if (bench->bound)
            setenv("VKNERF_DISABLE", "buffer_addresses", 1);
        ok(field_backend_create_pipeline(bench->device, &bench->backend, pass, variant,
                                         bench->local_size, &bench->constants,
                                         &bench->pipelines[i]));
        if (bench->bound)
            unsetenv("VKNERF_DISABLE");
        memcpy(bench->names[i], name, sizeof name);
    }
    return bench->pipelines[i];
}

/* Runs a shader once in `groups` workgroups. */
static inline void bench_run_variant(struct bench *bench, const char *pass,
                                     enum field_variant variant, struct Push push, uint32_t groups)
{
    struct gpu_recording *recording;
    const struct gpu_pipeline *pipeline = bench_pipeline(bench, pass, variant);
    ok(gpu_record_begin(bench->device, pass, 0, &recording));
    gpu_record_dispatch(recording, pipeline, bench->bindings, &push, sizeof push, groups);
    ok(gpu_run_once(&recording));
}

static inline void bench_run(struct bench *bench, const char *pass, struct Push push,
                             uint32_t groups)
{
    bench_run_variant(bench, pass, FIELD_NO_VARIANT, push, groups);
}

/* Runs all iterations of a pass for a chunk of rows. */
static inline void bench_run_pass(struct bench *bench, const struct pass *pass, uint32_t chunk,
                                  uint32_t groups)
{
    const struct setup setup = bench_setup(bench);
    const struct repeats repeats = setup_repeats(&setup);
    uint32_t rounds = pass_loop_count(pass, &repeats);
    for (uint32_t round = 0; round < rounds; round++) {
        const struct Push push = {
            .c = pass_loop_index(pass, &repeats, round), .d = chunk, .e = pass->rows};
        bench_run_variant(bench, pass->name, pass->variant, push, groups);
    }
}

/* Return the number of workgroups with an invocation, or a subgroup, per element. */
static inline uint32_t bench_groups(const struct bench *bench, uint32_t invocations)
{
    return (invocations + bench->local_size - 1) / bench->local_size;
}

static inline uint32_t bench_subgroups(const struct bench *bench, uint32_t rays)
{
    uint32_t subgroups = bench->local_size / bench->subgroup_size;
    return (rays + subgroups - 1) / subgroups;
}

static inline void bench_destroy(struct bench *bench)
{
    for (uint32_t i = 0; i < BENCH_PIPELINES; i++)
        gpu_pipeline_destroy(&bench->pipelines[i]);
    gpu_bindings_destroy(&bench->bindings);
    gpu_arena_destroy(&bench->arena);
}

/* ---- comparison ---------------------------------------------------------------------------- */

/* Checks that words [from, to) of a poisoned buffer were not written. */
static inline void assert_poisoned(const void *data, size_t from, size_t to)
{
    const uint32_t *words = data;
    for (size_t i = from; i < to; i++)
        if (words[i] != POISON)
            fail_msg("word %zu was written: 0x%08x", i, words[i]);
}

/* Checks that |device - expected| <= tolerance * scale; NaN fails. */
static inline void assert_close(double device, double expected, double tolerance, double scale,
                                const char *what, size_t index)
{
    if (!(fabs(device - expected) <= tolerance * scale))
        fail_msg("%s %zu: %.9g on the device, %.9g expected (tolerance %.3g)", what, index, device,
                 expected, tolerance * scale);
}

/* Checks that the f16 number is the one nearest to `source`. */
static inline void assert_f16(uint16_t bits, float source, const char *what, size_t index)
{
    if (!(reference_f16(bits) == reference_round_to_f16((double)source)))
        fail_msg("%s %zu: %.9g on the device, of %.9g", what, index, reference_f16(bits),
                 (double)source);
}

/* Returns the Euclidean norm of the difference over the norm of the expected values. */
static inline double relative_error(const float *device, const double *expected, size_t count)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        difference += (device[i] - expected[i]) * (device[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

/* Runs the tests, and with `gpu_kernels` a second time with the kernels of GPUs. */
static inline int run_pass_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                 bool gpu_kernels)
{
    if (!prepare_tests())
        return 1;
    int failed = _cmocka_run_group_tests(name, tests, count, open_shared, close_shared);
    if (gpu_kernels) {
        setenv("VKNERF_DISABLE", "cpu_kernels", 1);
        failed +=
            _cmocka_run_group_tests("with GPU kernels", tests, count, open_shared, close_shared);
    }
    clean_up_tests();
    return failed;
}
#define RUN_PASS_TESTS(tests)        run_pass_tests(#tests, tests, BASE_COUNT(tests), false)
#define RUN_WITH_BOTH_KERNELS(tests) run_pass_tests(#tests, tests, BASE_COUNT(tests), true)

#endif
