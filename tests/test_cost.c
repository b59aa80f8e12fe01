/* Compares the cost model with counts by hand and with counting loops like the shaders'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "field/internal.h"
#include "optim/optim.h"
#include "step/step.h"

/* Two levels of 4^3 = 64 and 8^3 > 2^8 entries: 4 inputs, stored as 16. Layers (stored as): 4x16
 * (16x16), 16x16, 32x16, 16x16, 16x3 (16x16). */
static const struct vkn_config config = {
    .model = VKN_MODEL_NGP,
    .precision = VKN_PRECISION_FP32,
    .gradient_sums = VKN_SUMS_F32,
    .scene = {.aabb_scale = 1},
    .grid = {.levels = 2, .features = 2, .log2_entries = 8, .coarsest = 4, .finest = 8},
    .mlp = {.density_width = 16,
            .density_layers = 1,
            .geometry = 16,
            .sh_degree = 3,
            .color_width = 16,
            .color_layers = 2},
    .march = {.resolution = 16},
    .batch = {.samples = 2048, .max_rays = 256},
};
#define USED   (4 * 16 + 16 * 16 + 32 * 16 + 16 * 16 + 16 * 3)
#define STORED (16 * 16 + 16 * 16 + 32 * 16 + 16 * 16 + 16 * 16)
#define PARAMS (STORED + 2 * (64 + 256))
#define GROUPS 64
#define CELLS  4096

static const struct cost_counts counts = {
    .rays = 100, .marched = 900, .live = 500, .touched = 200, .evaluated = 1000};

static struct field_backend backend_of(const struct vkn_config *settings, bool half)
{
    return (struct field_backend){.precision = settings->precision,
                                  .sums = settings->gradient_sums,
                                  .f16_sums = settings->gradient_sums == VKN_SUMS_F16,
                                  .scatter_suffix = "",
                                  .f16 = half,
                                  .scratch_bytes = 1};
}

static bool cpu_kernels = true;

/* Returns the atomics of scatter_gradients with f16 accumulators in the given shader variant. */
static double f16_atomics(uint32_t features, const char *program)
{
    struct setup setup = {.config = config};
    struct cost cost;
    setup.config.grid.features = features;
    setup.config.gradient_sums = VKN_SUMS_F16;
    setup.backend = backend_of(&setup.config, true);
    setup.backend.scatter_suffix = program;
    assert_int_equal(field_model_create(&setup.config, &setup.model), VKN_OK);
    assert_true(setup_cost(&setup, 8, &counts, "scatter_gradients", &cost));
    return cost.atomics;
}

static struct cost cost_on(const struct vkn_config *settings, const struct field_backend *backend,
                           const char *pass)
{
    struct setup setup = {
        .config = *settings,
        .backend = *backend,
        .specialization.values[SPEC_CPU_KERNELS] = cpu_kernels,
        .constants = {.backward_groups = GROUPS,
                      .forward_groups = 10,
                      .camera_count = 5,
                      .view_count = 3},
    };
    struct cost cost;
    optim_configure(settings, &setup.constants);
    if (settings->gradient_sums == VKN_SUMS_F16) /* as in setup_create */
        setup.constants.norm_interval = 1;
    assert_int_equal(field_model_create(settings, &setup.model), VKN_OK);
    assert_int_equal(setup.model.mlp_params, STORED);
    assert_int_equal(setup.model.param_count, PARAMS);
    assert_true(setup_cost(&setup, 8, &counts, pass, &cost));
    return cost;
}

static struct cost cost_of(const struct vkn_config *settings, bool half, const char *pass)
{
    struct field_backend backend = backend_of(settings, half);
    return cost_on(settings, &backend, pass);
}

static void assert_same(double got, double want)
{
    if (fabs(got - want) > 1e-9 * fabs(want))
        fail_msg("%.10g instead of %.10g", got, want);
}

static void assert_cost(struct cost cost, double flops, double bytes, double memory, double atomics)
{
    assert_same(cost.flops, flops);
    assert_same(cost.bytes, bytes);
    assert_same(cost.memory, memory);
    assert_same(cost.atomics, atomics);
}

/* ---- loops --------------------------------------------------------------------------------- */

struct counter {
    double flops, gathered; /* bytes of grid entries */
};

static void position_sample(struct counter *c)
{
    for (int axis = 0; axis < 3; axis++)
        c->flops += 1 + 1; /* origin + t * direction */
}

static void to_unit_cube(struct counter *c)
{
    for (int axis = 0; axis < 3; axis++)
        c->flops += 1 + 1 + 1 + 2; /* - 0.5, / side, + 0.5, clamp */
}

static void cell_and_weights(struct counter *c)
{
    for (int axis = 0; axis < 3; axis++)
        c->flops += 1 + 1 + 1 + 1 + 1; /* * scale, + 0.5, floor, - floor; 1 - inside */
    for (int corner = 0; corner < 8; corner++)
        c->flops += 1 + 1; /* w.x * w.y * w.z */
}

static void encode(struct counter *c, int parameter_bytes)
{
    to_unit_cube(c);
    for (int level = 0; level < 2; level++) {
        cell_and_weights(c);
        for (int corner = 0; corner < 8; corner++)
            for (int f = 0; f < 2; f++) {
                c->flops += 1 + 1; /* += weight * feature */
                c->gathered += parameter_bytes;
            }
    }
}

static const int sizes[][2] = {{4, 16}, {16, 16}, {32, 16}, {16, 16}, {16, 3}};
static const bool rectified[] = {true, false, true, true, false};

static void layers(struct counter *c, int begin, int end)
{
    for (int i = begin; i < end; i++)
        for (int o = 0; o < sizes[i][1]; o++) {
            for (int k = 0; k < sizes[i][0]; k++)
                c->flops += 1 + 1;
            c->flops += rectified[i];
        }
}

/* Spherical harmonics of degree 3: squares, then bands 1 and 2. */
#define HARMONICS (3 + 3 + 3 * 2 + 2 + 2)

static void test_field_forward(void **state)
{
    (void)state;
    for (int bytes = 4; bytes >= 2; bytes -= 2) {
        struct counter position = {0}, sample = {0};
        position_sample(&position);
        encode(&position, bytes);
        assert_true(position.gathered == 2 * 8 * 2 * bytes);
        /* Sample, ray, grid; writes four features. Both levels are one group. */
        assert_cost(cost_of(&config, bytes == 2, "encode_samples"), 900 * position.flops,
                    900 * (12 + 24 + position.gathered + 4 * bytes),
                    900 * (12 + 4 * bytes) + 100 * 24 + 200 * 2 * bytes, 0);
        layers(&sample, 0, 5);
        sample.flops += HARMONICS + 3 * (1 + 1 + 1 + 1) + 1; /* 1 / (1 + exp(-raw)); exp */
        /* Sample, features, ray's direction; writes rgb and density. */
        assert_cost(cost_of(&config, bytes == 2, "field_forward"), 900 * sample.flops,
                    900 * (12 + 4 * bytes + 12 + 16) + USED * bytes,
                    900 * (12 + 4 * bytes + 16) + 100 * 12 + USED * bytes, 0);
    }
}

static void test_field_backward(void **state)
{
    (void)state;
    for (int bytes = 4; bytes >= 2; bytes -= 2) {
        struct counter sample = {0};
        layers(&sample, 0, 4);
        sample.flops += HARMONICS;
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < sizes[i][0]; k++)
                for (int o = 0; o < sizes[i][1]; o++)
                    sample.flops += 2 + 2; /* gradient of the input, of the weight */
        for (int i = 0; i < 5; i++)
            sample.flops += rectified[i] ? sizes[i][1] : 0;
        sample.flops += 3 * (1 + 1 + 1) + 2 + 1 + 1; /* * rgb * (1 - rgb); * exp(clamp(raw)) */
        /* Reads index, sample, rgb, density, gradients of both and four features; writes gradients
         * of the features. */
        double memory = 4 + 12 + 2 * 16 + 2 * 4 * bytes;
        double row = 16 + 16 + 5 * 16; /* inputs, harmonics, outputs of five layers */
        assert_cost(cost_of(&config, bytes == 2, "field_backward"), 500 * sample.flops,
                    500 * (memory + 12 + 4 * bytes * row) + 4.0 * 8 * STORED + USED * bytes,
                    500 * memory + 100 * 12 + 4.0 * 8 * STORED + USED * bytes, 0);
    }
}

static void test_scatter(void **state)
{
    (void)state;
    struct counter sample = {0};
    double atomics = 0;
    for (int level = 0; level < 2; level++) {
        position_sample(&sample);
        to_unit_cube(&sample);
        cell_and_weights(&sample);
        for (int corner = 0; corner < 8; corner++)
            for (int f = 0; f < 2; f++) {
                sample.flops += 1; /* weight * gradient */
                atomics++;
            }
    }
    struct vkn_config settings = config;
    assert_cost(cost_of(&settings, false, "scatter_gradients"), 500 * sample.flops,
                500 * (2 * (2 * 4 + 4 + 12 + 24) + atomics * 8),
                500 * (2 * 2 * 4 + 4 + 12) + 100 * 24 + 200 * 2 * 8, 500 * atomics);
    struct field_backend owned = backend_of(&settings, false);
    owned.sums_size = 8; /* a subgroup has a level for itself: the same bytes, no atomics */
    assert_cost(cost_on(&settings, &owned, "scatter_gradients"), 500 * sample.flops,
                500 * (2 * (2 * 4 + 4 + 12 + 24) + atomics * 8),
                500 * (2 * 2 * 4 + 4 + 12) + 100 * 24 + 200 * 2 * 8, 0);
    settings.gradient_sums = VKN_SUMS_FIXED;
    assert_same(cost_of(&settings, false, "scatter_gradients").atomics, 500 * 1.03 * atomics);
    settings.gradient_sums = VKN_SUMS_F16;
    assert_same(cost_of(&settings, false, "scatter_gradients").atomics, 500 * atomics / 2);
    assert_same(f16_atomics(2, "f16"), 500 * atomics / 2);
    assert_same(f16_atomics(4, "f16_cas"), 500 * atomics); /* twice as many pairs */
    assert_same(f16_atomics(4, "f16"), 500 * atomics / 2);
    settings.gradient_sums = VKN_SUMS_FIXED;
    settings.deterministic = true; /* all samples, without a list of live samples */
    assert_cost(cost_of(&settings, false, "scatter_gradients"), 900 * sample.flops,
                900 * (2 * (2 * 4 + 12 + 24) + atomics * 8 * 1.03),
                900 * (2 * 2 * 4 + 12) + 100 * 24 + 200 * 2 * 16, 900 * 1.03 * atomics);
}

static struct cost cost_outside_step(cost_function *function, bool half, bool refined)
{
    const struct field_backend backend = backend_of(&config, half);
    const struct Config constants = {.backward_groups = GROUPS};
    struct vkn_config settings = config;
    settings.scene.refine = refined ? VKN_REFINEMENT_POSES : VKN_REFINEMENT_OFF;
    struct field_model model;
    assert_int_equal(field_model_create(&settings, &model), VKN_OK);
    const struct cost_model all = {
        .config = &settings,
        .model = &model,
        .backend = &backend,
        .constants = &constants,
        .local_size = PASS_LOCAL_SIZE,
        .subgroup_size = 8,
    };
    return function(&all, &counts);
}

/* Gradients by position and direction, which refine cameras. */
static void test_input_gradients(void **state)
{
    (void)state;
    assert_int_equal(field_ngp.input_gradients.count, 1);
    for (int bytes = 4; bytes >= 2; bytes -= 2) {
        struct counter sample = {0};
        position_sample(&sample);
        to_unit_cube(&sample);
        for (int level = 0; level < 2; level++) {
            for (int axis = 0; axis < 3; axis++)
                sample.flops += 4 + 1 + 2; /* cell; 1 - inside; += scale * slope */
            for (int corner = 0; corner < 8; corner++) {
                for (int f = 0; f < 2; f++) {
                    sample.flops += 2; /* += gradient * feature */
                    sample.gathered += bytes;
                }
                for (int axis = 0; axis < 3; axis++)
                    sample.flops += 1 + 2; /* two weights; += value * weights */
            }
        }
        sample.flops += 3; /* / side */
        /* Reads index, sample, four features' gradients; writes the position's gradient, padded. */
        double memory = 4 + 12 + 4 * bytes + 16;
        assert_cost(cost_outside_step(field_ngp.input_gradients.passes[0].cost, bytes == 2, true),
                    500 * sample.flops, 500 * (memory + 24 + sample.gathered),
                    500 * memory + 100 * 24 + 200 * 2 * bytes, 0);
    }
    struct cost without = cost_outside_step(field_ngp.backward.passes[0].cost, false, false);
    assert_cost(cost_outside_step(field_ngp.backward.passes[0].cost, false, true),
                without.flops + 500 * 90, without.bytes + 500 * 16, without.memory + 500 * 16, 0);
}

/* ---- by hand ------------------------------------------------------------------------------- */

static void test_rays(void **state)
{
    (void)state;
    assert_cost(cost_of(&config, false, "generate_rays"), 91 * 100, 100 * (4 + 96 + 32 + 156),
                100 * (4 + 96 + 32) + 3 * 156, 0);
    /* 4096 bits and a word for each of 8 blocks are fewer than a word for each of 900 probes. */
    assert_cost(cost_of(&config, false, "march_rays"), (37 + 3) * 900, 100 * 40 + 900 * (4 + 12),
                100 * 40 + 900 * 12 + 512 + 32, 100);
    struct vkn_config repeatable = config;
    repeatable.deterministic = true;
    assert_cost(cost_of(&repeatable, false, "march_rays_count"), 37 * 900, 100 * 40 + 900 * 4,
                100 * 40 + 512 + 32, 0);
    assert_cost(cost_of(&repeatable, false, "scan_rays"), 0, 1200, 800, 0);
    /* Ray 24, end 4, first sample and count 8; the occupancy grid is not read. */
    struct vkn_config even = config;
    even.march.sampling = VKN_SAMPLING_UNIFORM;
    assert_cost(cost_of(&even, false, "sample_uniform"), 27 * 100 + 14 * 900, 100 * 36 + 900 * 12,
                100 * 36 + 900 * 12, 100);
    even.deterministic = true;
    assert_cost(cost_of(&even, false, "sample_uniform_count"), 27 * 100, 100 * 36, 100 * 36, 0);
    assert_cost(cost_of(&even, false, "sample_uniform_write"), 27 * 100 + 14 * 900,
                100 * 36 + 900 * 12, 100 * 36 + 900 * 12, 0);
    /* 36 as above, and first and count of the coarse samples 8. A quarter of the samples: distance
     * and width 8, density 4, ray 4 less. Writes all samples. The coarse field has a quarter as
     * many samples. */
    struct vkn_config coarse = config;
    coarse.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    coarse.march.coarse_samples = 20;
    coarse.march.fine_samples = 60;
    assert_cost(cost_of(&coarse, false, "sample_fine"), 27 * 100 + 15 * 225 + 8 * 675 + 20 * 900,
                100 * 44 + 225 * 16 + 900 * 12, 100 * 44 + 225 * 16 + 900 * 12, 100);
    assert_cost(cost_of(&coarse, false, "sample_uniform"), 27 * 100 + 14 * 225, 100 * 36 + 225 * 12,
                100 * 36 + 225 * 12, 100);
    /* First sample and count 8, pixel 16, background 12, end 4, 1/8 byte of loss sums; two atomics
     * for eight rays. */
    double ray = 8 + 16 + 12 + 4 + 0.125;
    assert_cost(cost_of(&config, false, "composite"), 47 * 100 + (16 + 38) * 500,
                ray * 100 + (2 * 28 + 16 + 4) * 500, ray * 100 + (28 + 16 + 4) * 500, 25);
    assert_cost(cost_of(&repeatable, false, "composite"), 47 * 100 + (16 + 38) * 500,
                ray * 100 + (2 * 28 + 16) * 500 + 16 * 400, ray * 100 + (28 + 16) * 500 + 16 * 400,
                112.5);
    cpu_kernels = false; /* one load; an atomic per ray and per subgroup (80) */
    assert_cost(cost_of(&config, false, "composite"), 47 * 100 + (16 + 38) * 500,
                ray * 100 + (28 + 16 + 4) * 500, ray * 100 + (28 + 16 + 4) * 500, 180);
    assert_same(cost_of(&repeatable, false, "composite").atomics, 160);
    struct vkn_config dropping = config; /* 800 live samples of which 500 get gradients */
    dropping.batch.keep = 0.625F;
    assert_cost(cost_of(&dropping, false, "composite"), 47 * 100 + 16 * 800 + 38 * 500,
                ray * 100 + 28 * 800 + (16 + 4) * 500, ray * 100 + 28 * 800 + (16 + 4) * 500, 180);
    dropping.loss.distortion = 0.01f;
    assert_same(cost_of(&dropping, false, "composite").flops,
                49 * 100 + (16 + 13) * 800 + (38 + 13 + 23) * 500);
    dropping.batch.keep = 0.1F; /* but no more samples are live than there are */
    assert_same(cost_of(&dropping, false, "composite").flops,
                49 * 100 + (16 + 13) * 900 + (38 + 13 + 23) * 500);
    /* Distortion loads samples again; FLOPs per sample: position 2, sums 11, twice, gradient 23. */
    struct vkn_config drawn = config;
    drawn.loss.distortion = 0.01f;
    ray += 4.0 / 64; /* a third partial sum */
    assert_cost(cost_of(&drawn, false, "composite"), 49 * 100 + (54 + 49) * 500,
                ray * 100 + (2 * 28 + 16 + 4) * 500, ray * 100 + (28 + 16 + 4) * 500, 180);
    cpu_kernels = true;
    assert_same(cost_of(&drawn, false, "composite").flops, 49 * 100 + (54 + 49) * 500);
    drawn.scene.contraction = VKN_CONTRACTION_CUBE;
    assert_same(cost_of(&drawn, false, "composite").flops, 49 * 100 + (54 + 73) * 500);
    drawn.loss.distortion_curve = VKN_DISTORTION_LADDER;
    assert_same(cost_of(&drawn, false, "composite").flops, 49 * 100 + (54 + 137) * 500);
    struct vkn_config known = config;
    known.loss.depth = 0.003F;
    known.batch.depth_share = 0.25F;
    /* Agreements of all samples, gradients of a quarter; distance and deviation per ray. */
    struct cost with = cost_of(&known, false, "composite"),
                without = cost_of(&config, false, "composite");
    assert_same(with.flops - without.flops, (9 + 15 / 4.0) * 500);
    assert_same(with.bytes - without.bytes, 8 * 100);
    assert_same(cost_of(&known, false, "generate_rays").bytes -
                    cost_of(&config, false, "generate_rays").bytes,
                16 / 4.0 * 100);
    double check = cost_of(&config, false, "check_gradients").bytes;
    assert_same(cost_of(&drawn, false, "check_gradients").bytes, check + 4 * 2); /* 2 workgroups */
}

static void test_refinement(void **state)
{
    (void)state;
    struct vkn_config refined = config;
    refined.scene.refine = VKN_REFINEMENT_POSES;
    /* Scale 6, t * gradient + gradient 6, cross product 9. Index 4, sample 12, gradients 32, ray
     * 96; six sums of two words and a count per ray. */
    assert_cost(cost_of(&refined, false, "view_gradients"), 21 * 500, 500 * (4 + 12 + 32 + 96),
                500 * (4 + 12 + 32) + 100 * 96, 13 * 100);
    struct vkn_config contracted = refined;
    contracted.scene.contraction = VKN_CONTRACTION_CUBE;
    assert_cost(cost_of(&contracted, false, "view_gradients"), 21 * 500,
                500 * (4 + 12 + 32 + 32 + 96), 500 * (4 + 12 + 32 + 32) + 100 * 96, 13 * 100);
    /* Every 16 steps: products with two matrices of 6 x 6 and 7 x 6; reads and writes six sums and
     * the view. */
    double bytes = 5 * 2.0 * (6 * 16 + 412) / 16;
    assert_cost(cost_of(&refined, false, "update_views"), 5 * 4.0 * (36 + 42) / 16, bytes, bytes,
                0);
    /* Lenses: 58 + 14 + 82 + 33; camera 156 and change 32, fourteen sums of two words and a count
     * per ray. A matrix of 8 x 8; fourteen sums, and the lens in the view. */
    refined.scene.refine = VKN_REFINEMENT_LENSES;
    assert_cost(cost_of(&refined, false, "view_gradients"), (21 + 187) * 500,
                500 * (4 + 12 + 32 + 96 + 188), 500 * (4 + 12 + 32) + 100 * 96 + 3 * 188, 29 * 100);
    bytes = 5 * 2.0 * (14 * 16 + 404) / 16;
    assert_cost(cost_of(&refined, false, "update_views"), 5 * 4.0 * 64 / 16, bytes, bytes, 0);
    /* Both, with 100 to turn back. */
    refined.scene.refine = VKN_REFINEMENT_ALL;
    assert_cost(cost_of(&refined, false, "view_gradients"), (21 + 287) * 500,
                500 * (4 + 12 + 32 + 96 + 188), 500 * (4 + 12 + 32) + 100 * 96 + 3 * 188, 42 * 100);
    bytes = 5 * 2.0 * (20 * 16 + 816) / 16;
    assert_cost(cost_of(&refined, false, "update_views"), 5 * 4.0 * (36 + 42 + 64) / 16, bytes,
                bytes, 0);
}

static void test_appearance(void **state)
{
    (void)state;
    struct vkn_config plain = config, exposure = config, full = config;
    exposure.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    full.scene.appearance = VKN_APPEARANCE_FULL;
    /* Colour 62, back 46, by transmittance 28; view 4, position 4, colour and transmittance 16, the
     * view of the camera 4 and its parameters, of three views at most. */
    struct cost without = cost_of(&plain, false, "composite");
    struct cost with = cost_of(&exposure, false, "composite");
    assert_cost((struct cost){.flops = with.flops - without.flops,
                              .bytes = with.bytes - without.bytes,
                              .memory = with.memory - without.memory,
                              .atomics = with.atomics - without.atomics},
                136 * 100, 100 * (24 + 8), 100 * 24 + 3 * 8, 0);
    with = cost_of(&full, false, "composite");
    assert_same(with.flops - without.flops, (136 + 147 + 201) * 100);
    assert_same(with.bytes - without.bytes, 100 * (24 + 4 + 144));
    /* Also end 4, pixel 16 and background 12 of a ray; parameters 35 and 656, each a sum of two
     * words and for each kind a count. */
    assert_cost(cost_of(&exposure, false, "appearance_gradients"), (62 + 46 + 35) * 100,
                100 * (24 + 8 + 32), 100 * (24 + 32) + 3 * 8, 3 * 100);
    assert_cost(cost_of(&full, false, "appearance_gradients"),
                (62 + 46 + 35 + 147 + 201 + 57 + 599 / 16.0) * 100, 100 * (24 + 148 + 32),
                100 * (24 + 32) + 3 * 148, (7 + 67 / 16.0) * 100);
    /* Every 16 steps: steps of five views' parameters, and a trend; sum, value and moments,
     * read and written, and the direction of the view. */
    double bytes = 5 * (2.0 * 28 * 36 + 12) / 16;
    assert_cost(cost_of(&full, false, "update_appearance"), 5 * (30.0 * 36 + 200) / 16, bytes,
                bytes, 0);
    bytes = 5 * (2.0 * 28 + 12) / 16;
    assert_cost(cost_of(&exposure, false, "update_appearance"), 5 * 230.0 / 16, bytes, bytes, 0);
}

static void test_sky(void **state)
{
    (void)state;
    struct vkn_config plain = config, sky = config, exposed = config;
    sky.scene.sky = exposed.scene.sky = VKN_SWITCH_ON;
    exposed.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    struct cost without = cost_of(&plain, false, "generate_rays");
    struct cost with = cost_of(&sky, false, "generate_rays");
    assert_same(with.flops - without.flops, 760 * 100);
    assert_same(with.bytes - without.bytes, 256 * 100);
    assert_same(cost_of(&sky, false, "composite").bytes - cost_of(&plain, false, "composite").bytes,
                16 * 100);
    /* Colour and transmittance 16, end 4, pixel 16, direction 12, the sky's 256 bytes; its colour
     * 760, weight 30, four texels 27 and four sums 8 each; 16 atomics. */
    assert_cost(cost_of(&sky, false, "sum_sky"), (760 + 30 + 4 * (27 + 32)) * 100, 100 * (48 + 256),
                100 * (48 + 256), 16 * 100);
    assert_same(cost_of(&exposed, false, "sum_sky").flops - cost_of(&sky, false, "sum_sky").flops,
                (62 + 46) * 100);
    double bytes = 2.0 * 64 * 69904 / 16;
    assert_cost(cost_of(&sky, false, "update_sky"), 20.0 * 69904 / 16, bytes, bytes, 0);
}

/* Proposal field: two levels of 16^3 = 4096 and 32^3 entries, 2^8 of each stored; a density MLP of
 * 4 x 16 (stored 16 x 16), ReLU, 16 x 1 (16 x 16). 100 rays of 20 bins, all live; it learns in one
 * of four steps. */
#define PROPOSED_STORED (16 * 16 + 16 * 16)
#define PROPOSED_USED   (4 * 16 + 16 * 1)
#define BINS            2000.0

static struct setup proposed_setup(bool deterministic, bool half)
{
    struct setup setup = {.config = config, .specialization.values[SPEC_CPU_KERNELS] = 1};
    struct vkn_config *all = &setup.config;
    all->deterministic = deterministic;
    all->gradient_sums = deterministic ? VKN_SUMS_FIXED : VKN_SUMS_F32;
    all->march.sampling = VKN_SAMPLING_PROPOSAL;
    all->march.coarse_samples = 20;
    all->march.fine_samples = 9;
    all->proposal.levels = 2;
    all->proposal.log2_entries = 8;
    all->proposal.finest = 32;
    all->proposal.width = 16;
    all->proposal.interval = 4;
    const struct vkn_config small = field_proposal_config(all);
    setup.backend = setup.proposal_backend = backend_of(all, half);
    setup.constants = (struct Config){.ray_capacity = 100,
                                      .ray_samples = 20,
                                      .fine_samples = 9,
                                      .group_limit = 65535,
                                      .norm_interval = 16};
    setup.proposal_backend.backward_groups = 24;
    assert_int_equal(field_model_create(all, &setup.model), VKN_OK);
    assert_int_equal(field_model_create(&small, &setup.proposal_model), VKN_OK);
    assert_int_equal(setup.proposal_model.mlp_params, PROPOSED_STORED);
    assert_int_equal(setup.proposal_model.param_count, PROPOSED_STORED + 2 * 2 * 256);
    return setup;
}

static void assert_proposal(const struct setup *setup, const char *pass, double flops, double bytes,
                            double memory, double atomics)
{
    struct cost cost;
    assert_true(setup_cost(setup, 8, &counts, pass, &cost));
    assert_cost(cost, flops, bytes, memory, atomics);
}

static void test_proposal(void **state)
{
    (void)state;
    for (int bytes = 4; bytes >= 2; bytes -= 2) {
        const struct setup setup = proposed_setup(false, bytes == 2);
        struct counter position = {0};
        position_sample(&position);
        encode(&position, bytes);
        /* Rays 24 + 4, first and count of bins and samples 16; a bin's sample 12, density 4; writes
         * samples. */
        assert_proposal(&setup, "sample_proposal", 27 * 100 + 23 * BINS + 35 * 900,
                        44 * 100 + 16 * BINS + 12 * 900, 44 * 100 + 16 * BINS + 12 * 900, 100);
        assert_proposal(&setup, "encode_proposal", BINS * position.flops,
                        BINS * (12 + 24 + position.gathered + 4 * bytes),
                        BINS * (12 + 4 * bytes) + 100 * 24 + 200 * 2 * bytes, 0);
        double forward = 2 * PROPOSED_USED + 16;
        assert_proposal(&setup, "proposal_forward", BINS * (forward + 1),
                        BINS * (4 * bytes + 16) + PROPOSED_USED * bytes,
                        BINS * (4 * bytes + 16) + PROPOSED_USED * bytes, 0);
        /* Index, sample, values and their gradients, features and their gradients; a row holds 3 x
         * 16 values, written and read back, as are their gradients. */
        double memory = 4 + 12 + 2 * 16 + 2 * 4 * bytes, row = 4 * bytes * 48;
        double partials = 4.0 * 24 * PROPOSED_STORED;
        double again = 2 * 4 * 16 + 16 + 13, back = 16 + 4 * PROPOSED_USED;
        assert_proposal(&setup, "proposal_backward", BINS * (again + back) / 4,
                        (BINS * (memory + 12 + row) + partials + PROPOSED_USED * bytes) / 4,
                        (BINS * memory + 100 * 12 + partials + PROPOSED_USED * bytes) / 4, 0);
        assert_proposal(&setup, "scatter_proposal", BINS * 2 * (6 + 15 + 12 + 19 + 16) / 4,
                        BINS * (4 * bytes + 2 * (4 + 12 + 24) + 32 * 8) / 4,
                        (BINS * (4 * bytes + 4 + 12) + 100 * 24 + 200 * 2 * 8) / 4, BINS * 32 / 4);
    }
}

/* The proposal learns from 20 bins and 9 samples of each ray, in one of four steps. */
static void test_interlevel(void **state)
{
    (void)state;
    const struct setup atomic = proposed_setup(false, false), fixed = proposed_setup(true, false);
    double flops = (26 * BINS + 47 * 900) / 4;
    /* Ray 24, end 4, first and count of bins and samples 16; samples 12, densities 4, of bins
     * twice; writes a gradient and the index of a live bin. */
    double memory = 44 * 100 + 16 * (BINS + 900);
    assert_proposal(&atomic, "interlevel", flops, (memory + (16 + 16 + 4) * BINS) / 4,
                    (memory + (16 + 4) * BINS) / 4, BINS / 8 / 4);
    assert_proposal(&fixed, "interlevel", flops, (memory + (16 + 16) * BINS) / 4,
                    (memory + 16 * BINS) / 4, 0);
    double sums = 24 * PROPOSED_STORED, bytes = 4 * (sums + PROPOSED_STORED);
    assert_proposal(&atomic, "reduce_proposal", sums / 4, bytes / 4, bytes / 4, 0);
    bytes += 12 * 1024 + 8 * 200 * 2; /* reads two words, writes one; clears two where touched */
    assert_proposal(&fixed, "reduce_proposal", sums / 4, bytes / 4, bytes / 4, 0);
    struct cost cost;
    struct setup other = {.config = config, .backend = backend_of(&config, false)};
    assert_int_equal(field_model_create(&config, &other.model), VKN_OK);
    assert_false(setup_cost(&other, 8, &counts, "interlevel", &cost));
}

static void test_optimizer(void **state)
{
    (void)state;
    struct vkn_config settings = config;
    double touched = STORED + 200 * 2, grid = PARAMS - STORED;
    assert_cost(cost_of(&config, false, "reduce_gradients"), GROUPS * STORED,
                4.0 * GROUPS * STORED + 4 * STORED, 4.0 * GROUPS * STORED + 4 * STORED, 0);
    settings.gradient_sums = VKN_SUMS_FIXED; /* two words read, one written; two cleared */
    assert_same(cost_of(&settings, false, "reduce_gradients").bytes,
                4.0 * (GROUPS + 1) * STORED + grid * (8 + 4) + 400 * 8);
    /* Sums of all workgroups, written and read; two losses of each of 2 groups; step statistics. */
    double groups = ceil(PARAMS / 64.0), sums = 8 * groups + 16 + sizeof(struct Stats);
    double norm = PARAMS / 16.0; /* in one step of 16, with clipping in each */
    assert_cost(cost_of(&config, false, "check_gradients"), 3 * norm + groups + 4, 4 * norm + sums,
                4 * norm + sums, 0);
    cpu_kernels = false; /* ten workgroups share both */
    sums = 80 + 80 + sizeof(struct Stats);
    assert_cost(cost_of(&config, false, "check_gradients"), 3 * norm + 10 + 20, 4 * norm + sums,
                4 * norm + sums, 0);
    cpu_kernels = true;
    settings = config;
    settings.optimizer.clip_norm = 1;
    double checked = cost_of(&settings, false, "check_gradients").bytes;
    assert_same(checked - cost_of(&config, false, "check_gradients").bytes, 4 * 15 * norm);
    settings = config;
    double updated = cost_of(&config, false, "update_weights").bytes;
    settings.gradient_sums = VKN_SUMS_F16; /* grid accumulators of two bytes instead of four */
    assert_same(cost_of(&settings, false, "reduce_gradients").bytes, 4.0 * (GROUPS + 1) * STORED);
    assert_same(cost_of(&settings, false, "check_gradients").bytes, checked - 2 * grid);
    assert_same(cost_of(&settings, false, "update_weights").bytes, updated - 2 * grid - 2 * 400);
    for (int half = 0; half < 2; half++) {
        /* All gradients; of updated parameters: gradient, weight, moments, step count, f16 copy. */
        double bytes = 4 * PARAMS + touched * (4 + 8 + 8 + 8 + 2 * half) + touched / 2 * 8;
        assert_cost(cost_of(&config, half, "update_weights"),
                    13 * touched + 2 * STORED + 7 * touched / 2, bytes, bytes, 0);
        settings = config;
        settings.optimizer.kind = VKN_OPTIMIZER_LION; /* one moment, no bias correction */
        bytes -= touched * 8;
        assert_cost(cost_of(&settings, half, "update_weights"),
                    10 * touched + 2 * STORED + touched / 2, bytes, bytes, 0);
        settings = config;
        settings.optimizer.moments = VKN_MOMENTS_BF16; /* both in one word */
        assert_cost(cost_of(&settings, half, "update_weights"),
                    13 * touched + 2 * STORED + 7 * touched / 2, bytes, bytes, 0);
        settings = config;
        settings.grid.decay = 0.1f; /* updates all entries; no parameter is without decay */
        bytes = 4 * PARAMS + PARAMS * (4 + 8 + 8 + 8 + 2.0 * half) + PARAMS * 4.0;
        assert_cost(cost_of(&settings, half, "update_weights"),
                    13 * PARAMS + 2 * PARAMS + 7 * PARAMS / 2.0, bytes, bytes, 0);
        double average = PARAMS * (4 + 4 + 4 + 2.0 * half) / 16;
        assert_cost(cost_of(&config, half, "update_average"), 3.0 * PARAMS / 16, average, average,
                    0);
    }
}

/* Checks passes of parameter averaging, which use step counts, previous counts and weights per
 * entry, and copy `values` numbers per parameter to the gradients' buffer, and back where
 * changed. */
static void check_averaging(enum vkn_optimizer kind, enum vkn_moment_type moments, double values)
{
    struct setup setup = {.config = config, .backend = backend_of(&config, false)};
    const double entries = STORED / 2.0 + (PARAMS - STORED) / 2.0, changed = STORED + 200 * 2;
    struct cost cost;
    setup.config.optimizer.kind = kind;
    setup.config.optimizer.moments = moments;
    const double packed = moments == VKN_MOMENTS_BF16 ? 8 : 0; /* words of both moments, read */
    assert_int_equal(field_model_create(&config, &setup.model), VKN_OK);
    assert_false(setup_cost(&setup, 8, &counts, "export_step_counts", &cost));
    setup.averaged = true;
    const struct {
        const char *name;
        double flops, bytes;
    } passes[] = {
        {"export_step_counts", 0, 12 * entries},
        {"import_step_counts", 2 * entries, 24 * entries},
        {"export_parameters", values * changed, values * (8 * changed + 4 * entries)},
        {"import_parameters", 0, values * (12 * changed + 4 * entries) + packed * changed},
    };
    for (size_t i = 0; i < BASE_COUNT(passes); i++) {
        assert_true(setup_cost(&setup, 8, &counts, passes[i].name, &cost));
        assert_cost(cost, passes[i].flops / 16, passes[i].bytes / 16, passes[i].bytes / 16, 0);
    }
}

static void test_averaging(void **state)
{
    (void)state;
    check_averaging(VKN_OPTIMIZER_ADAM, VKN_MOMENTS_F32, 4);
    check_averaging(VKN_OPTIMIZER_ADAM, VKN_MOMENTS_BF16, 4);
    check_averaging(VKN_OPTIMIZER_LION, VKN_MOMENTS_F32, 3);
}

static void test_occupancy(void **state)
{
    (void)state;
    struct counter cell = {0};
    encode(&cell, 4);
    layers(&cell, 0, 2);
    double weights = 4 * (4 * 16 + 16 * 16);
    /* Each of 1000 cells can reach all of the 64 and 256 entries. */
    assert_cost(cost_of(&config, false, "update_occupancy"), (CELLS + 1000 * (cell.flops + 9)) / 16,
                (CELLS * 8 + 1000 * cell.gathered + weights) / 16,
                (CELLS * 8 + (64 + 256) * 2 * 4 + weights) / 16, 0);
    assert_cost(cost_of(&config, false, "threshold_occupancy"), 16 / 16.0, 4, 4, 0);
    double bytes = (CELLS * 4 + CELLS / 8.0 + 8 * 4) / 16;
    assert_cost(cost_of(&config, false, "pack_occupancy"), CELLS / 16.0, bytes, bytes, 0);
}

/* Layer-by-layer MLP, density 32 wide: an encoding of 9 columns, stored as 32, and another of 9;
 * layers of 32 x 32, (32 + 32) x 32, 32 x 64 and (32 + 32) x 32, 32 x 32; biases of each. */
static void test_layers(void **state)
{
    (void)state;
    struct setup setup = {.config = config, .constants = {.backward_groups = 1}};
    setup.config.model = VKN_MODEL_VANILLA;
    setup.config.mlp.density_width = setup.config.mlp.color_width = setup.config.mlp.geometry = 32;
    setup.config.mlp.density_layers = setup.config.mlp.skip_layer = 2;
    setup.config.mlp.color_layers = 1;
    setup.config.mlp.position_octaves = setup.config.mlp.direction_octaves = 1;
    setup.config.batch.chunk = 64;
    const double layers[][2] = {{32, 32}, {64, 32}, {32, 64}, {64, 32}, {32, 32}};
    for (int half = 0; half < 2; half++) {
        double p = half ? 2 : 4, weights = 0, biases = 0, in = 0, density = 0, columns = 64 + 192;
        for (int i = 0; i < 5; i++) {
            weights += layers[i][0] * layers[i][1];
            biases += layers[i][1];
            in += layers[i][0];
            density += i < 3 ? 2 * (layers[i][0] + 1) * layers[i][1] : 0;
        }
        /* Transposed weights: inputs from other layers, and 32 inputs of the first layer. */
        double panels = p * (weights + 32 * biases + 32 * (32 + 32 + 64 + 32 + 32));
        double of_first = p * 3 * 32 * 32, of_colors = p * (96 * 32 + 32 * 64 + 32 * 64);
        setup.backend = backend_of(&setup.config, half);
        assert_int_equal(field_model_create(&setup.config, &setup.model), VKN_OK);
        assert_same(setup.model.param_count, weights + biases);
        assert_same(setup.model.columns, columns);
        struct cost cost;
        const struct {
            const char *pass;
            double flops, bytes;
        } passes[] = {
            {"pack_weights", 0, 8 * (weights + biases) + panels},
            {"pack_average", 0, (8 * (weights + biases) + panels) / 16},
            {"encode_inputs", 40 * 6 * 900, 900 * (36 + 64 * p)},
            {"layer_forward", 2 * (weights + biases) * 900, 900 * (in + 192) * p + panels / 2},
            {"field_values", 12 * 900, 900 * (16 + 4 * p)},
            {"encode_live", 40 * 6 * 500, 500 * (36 + 2 * 64 * p)},
            {"layer_forward_live", 2 * (weights + biases) * 500,
             500 * (in + 2 * 192) * p + panels / 2},
            {"field_output_gradients", 14 * 500, 500 * (32 + 128 * p)},
            /* Covers the second to the last layer; features have no ReLU in front. */
            {"layer_backward", 2.0 * 500 * 32 * (32 + 64 + 32 + 32),
             500 * p * (32 + 64 + 32 + 32 + 3 * 32 + 3 * 32 + 2 * 32 + 3 * 32) +
                 (panels - of_first) / 2},
            {"layer_weights", 2 * (weights + biases) * 500,
             500 * (in + 2 * 192) * p + 4 * (weights + biases)},
            {"update_cells", (CELLS + 1000 * (40 * 6 + density + 14)) / 16,
             (8 * CELLS + 1000 * (40 + 36 + 64 * p + (128 + 128) * p + 16 + 4 * p + 28) + 4 +
              (panels - of_colors) / 2) /
                 16},
        };
        for (size_t i = 0; i < BASE_COUNT(passes); i++) {
            assert_true(setup_cost(&setup, 8, &counts, passes[i].pass, &cost));

            assert_cost(cost, passes[i].flops, passes[i].bytes, passes[i].bytes, 0);
        }
        setup.constants.kept_rows = 8192;
        assert_true(setup_cost(&setup, 8, &counts, "gather_rows", &cost));
        assert_cost(cost, 0, 500 * (4 + 3 * columns * p), 500 * (4 + 3 * columns * p), 0);
        setup.constants.kept_rows = 0;
    }
}

/* Tests the same layers behind grid features, with gradients of the features, and 16 harmonics. */
static void test_layers_of_grid(void **state)
{
    (void)state;
    struct setup setup = {.config = config, .constants = {.backward_groups = 1}};
    setup.config.model = VKN_MODEL_LAYERED;
    setup.config.field.position = VKN_POSITION_HASH;
    setup.config.field.direction = VKN_DIRECTION_HARMONICS;
    setup.config.mlp.density_width = setup.config.mlp.color_width = setup.config.mlp.geometry = 32;
    setup.config.mlp.density_layers = setup.config.mlp.skip_layer = 2;
    setup.config.mlp.color_layers = 1;
    setup.config.batch.chunk = 64;
    for (int half = 0; half < 2; half++) {
        struct cost cost;
        double p = half ? 2 : 4, weights = 32 * 32 + 64 * 32 + 32 * 64 + 64 * 32 + 32 * 32;
        double features = setup.config.grid.levels * setup.config.grid.features;
        double panels = p * (weights + 32 * 192 + 32 * (32 + 32 + 32 + 64 + 32 + 32));
        setup.backend = backend_of(&setup.config, half);
        assert_int_equal(field_model_create(&setup.config, &setup.model), VKN_OK);
        assert_same(setup.model.mlp_params, weights + 192);
        const struct {
            const char *pass;
            double flops, bytes;
        } passes[] = {
            {"encode_inputs", 64 * 900, 900 * (36 + (features + 64) * p)},
            {"encode_live", 64 * 500, 500 * (36 + (features + 2 * 64) * p)},
            {"feature_gradients", 0, 500 * (4 + 2 * features * p)},
            /* Includes the features that the second layer reads again. */
            {"layer_backward", 2.0 * 500 * 32 * (64 + 32 + 64 + 32 + 32),
             500 * p * (64 + 32 + 64 + 32 + 32 + 2 * 32 + 3 * 32 + 3 * 32 + 2 * 32 + 3 * 32) +
                 panels / 2},
        };
        for (size_t i = 0; i < BASE_COUNT(passes); i++) {
            assert_true(setup_cost(&setup, 8, &counts, passes[i].pass, &cost));
            assert_cost(cost, passes[i].flops, passes[i].bytes, passes[i].bytes, 0);
        }
        /* With densities first, colour inputs of live samples are encoded, in two copies. */
        setup.config.march.visibility = VKN_SWITCH_ON;
        assert_true(setup_cost(&setup, 8, &counts, "encode_colors", &cost));
        assert_cost(cost, passes[1].flops, passes[1].bytes, passes[1].bytes, 0);
        setup.config.march.visibility = VKN_SWITCH_OFF;
        assert_true(setup_cost(&setup, 8, &counts, "encode_samples", &cost));
        assert_true(cost.flops > 0 && cost.bytes > cost.memory);
        assert_true(setup_cost(&setup, 8, &counts, "scatter_gradients", &cost));
        assert_true(cost.atomics > 0);
    }
}

/* Layers of 32 columns with one octave of each vector, behind a deformation if the model has one.
 */
static struct setup narrow_setup(enum vkn_model model)
{
    struct setup setup = {.config = config, .constants = {.backward_groups = 1}};
    setup.config.model = model;
    setup.config.mlp.density_width = setup.config.mlp.color_width = setup.config.mlp.geometry = 32;
    setup.config.mlp.density_layers = setup.config.mlp.skip_layer = 2;
    setup.config.mlp.color_layers = 1;
    setup.config.mlp.position_octaves = setup.config.mlp.direction_octaves = 1;
    setup.config.dynamic.canonical = VKN_CANONICAL_VANILLA;
    setup.config.dynamic.width = 32;
    setup.config.dynamic.layers = 1;
    setup.config.dynamic.position_octaves = setup.config.dynamic.time_octaves = 1;
    setup.config.batch.chunk = 64;
    return setup;
}

static void check_pass(struct setup *setup, const char *pass, double flops, double bytes)
{
    struct cost cost;
    assert_true(setup_cost(setup, 8, &counts, pass, &cost));
    assert_cost(cost, flops, bytes, bytes, 0);
}

/* Tests the same layers with gradients by position, behind a deformation of two 32 x 32 layers. */
static void test_deformed_layers(void **state)
{
    (void)state;
    struct setup setup = narrow_setup(VKN_MODEL_DYNAMIC);
    for (int half = 0; half < 2; half++) {
        double p = half ? 2 : 4, weights = 32 * (32 + 64 + 64 + 64 + 32), biases = 192;
        double panels = p * (weights + 32 * biases + 32 * (64 + 32 + 64 + 32 + 32));
        double deform = 2 * 32 * 33, deformation_panels = p * 2 * 32 * (32 + 32 + 32);
        setup.backend = backend_of(&setup.config, half);
        assert_int_equal(field_model_create(&setup.config, &setup.model), VKN_OK);
        assert_same(setup.model.param_count, weights + biases + deform);
        assert_same(setup.model.columns, 64 + 192 + 32 + 64);
        const struct {
            const char *pass;
            double flops, bytes;
        } passes[] = {
            {"pack_weights", 0, 8 * (weights + biases + deform) + panels + deformation_panels},
            {"encode_deformation", 40 * 4 * 900, 900 * (40 + 32 * p)},
            {"deformation_forward", 2 * deform * 900, 900 * 128 * p + deformation_panels / 2},
            {"encode_inputs", 40 * 6 * 900, 900 * (36 + 67 * p)},
            {"layer_forward", 2 * (weights + biases) * 900, 900 * (224 + 192) * p + panels / 2},
            {"encode_deformation_live", 40 * 4 * 500, 500 * (40 + 64 * p)},
            {"deformation_forward_live", 2 * deform * 500, 500 * 192 * p + deformation_panels / 2},
            {"layer_backward", 2.0 * 500 * 32 * (64 + 32 + 64 + 32 + 32),
             500 * p * (64 + 32 + 64 + 32 + 32 + 32 * (2 + 3 + 3 + 2 + 3)) + panels / 2},
            {"frequency_gradients", (5 * 3 + 24) * 500, 500 * (36 + 16 + (6 + 12) * p)},
            {"deformation_output_gradients", 3 * 500, 500 * (12 + 64 * p)},
            {"deformation_backward", 2 * 32 * 32 * 500, 500 * 128 * p + deformation_panels / 4},
            {"layer_weights", 2 * (weights + biases + deform) * 500,
             500 * (224 + 64 + 2 * (192 + 64)) * p + 4 * (weights + biases + deform)},
        };
        for (size_t i = 0; i < BASE_COUNT(passes); i++)
            check_pass(&setup, passes[i].pass, passes[i].flops, passes[i].bytes);
    }
}

/* The same layers with gradients of positions and directions, with and without the deformation. */
static void test_refined_layers(void **state)
{
    (void)state;
    static const enum vkn_model models[] = {VKN_MODEL_VANILLA, VKN_MODEL_DYNAMIC};
    for (int i = 0; i < 4; i++) {
        bool half = i % 2, deformed = i / 2;
        struct setup setup = narrow_setup(models[deformed]);
        double p = half ? 2 : 4, weights = 32 * (32 + 64 + 64 + 64 + 32), biases = 192;
        double panels = p * (weights + 32 * biases + 32 * (64 + 32 + 64 + 64 + 32));
        setup.config.scene.refine = VKN_REFINEMENT_POSES;
        setup.backend = backend_of(&setup.config, half);
        assert_int_equal(field_model_create(&setup.config, &setup.model), VKN_OK);
        check_pass(&setup, "layer_backward", 2.0 * 500 * 32 * (64 + 32 + 64 + 64 + 32),
                   500 * p * (64 + 32 + 64 + 32 + 32 + 32 * (2 + 3 + 3 + 4 + 3)) + panels / 2);
        /* Position 6 and its displacement 6, gradient 12; gradients and waves of each column. */
        check_pass(&setup, "frequency_gradients", (5 * 3 + 18 + 6 * deformed) * 500,
                   500 * (36 + 16 + (3 + 12 + 3 * deformed) * p));
        check_pass(&setup, "direction_gradients", 5 * 3 * 500, 500 * (4 + 16 + (3 + 12) * p));
        if (!deformed)
            continue;
        check_pass(&setup, "deformation_backward", 2 * 32 * (32 + 32) * 500,
                   500 * (128 + 96) * p + p * 32 * (32 + 32 + 32));
        check_pass(&setup, "deformation_input_gradients", (5 * 3 + 18 + 3) * 500,
                   500 * (36 + 12 + 16 + (3 + 12) * p));
    }
    struct setup layered = narrow_setup(VKN_MODEL_LAYERED);
    layered.config.field.direction = VKN_DIRECTION_HARMONICS;
    layered.config.scene.refine = VKN_REFINEMENT_POSES;
    layered.backend = backend_of(&layered.config, false);
    assert_int_equal(field_model_create(&layered.config, &layered.model), VKN_OK);
    check_pass(&layered, "direction_gradients", 90 * 500, 500 * (4 + 12 + 12 + 16 + 16 * 4));
    layered.config.field.direction = VKN_DIRECTION_NONE;
    check_pass(&layered, "direction_gradients", 0, 500 * (4 + 16));
}

static void test_floor(void **state)
{
    (void)state;
    const struct cost cost = {.flops = 1e9, .bytes = 8e9, .memory = 1e8, .atomics = 1e6};
    struct cost_peaks peaks = {0};
    const char *bound;
    assert_same(cost_floor(&cost, &peaks, &bound), 0);
    assert_string_equal(bound, "");
    peaks = (struct cost_peaks){.flops = 1e11, .bytes = 1e10, .atomics = 1e9};
    assert_same(cost_floor(&cost, &peaks, &bound), 1e-2);
    assert_string_equal(bound, "flops");
    peaks.bytes = 1e9;
    assert_same(cost_floor(&cost, &peaks, &bound), 1e-1);
    assert_string_equal(bound, "bytes");
    peaks.atomics = 1e6;
    assert_same(cost_floor(&cost, &peaks, &bound), 1);
    assert_string_equal(bound, "atomics");
}

static void test_unknown(void **state)
{
    (void)state;
    struct field_backend backend = backend_of(&config, false);
    struct setup setup = {.config = config, .backend = backend};
    struct cost cost = {.flops = 1};
    assert_int_equal(field_model_create(&config, &setup.model), VKN_OK);
    assert_false(setup_cost(&setup, 8, &counts, "no_such_pass", &cost));
    assert_same(cost.flops, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_field_forward),
        cmocka_unit_test(test_field_backward),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_input_gradients),
        cmocka_unit_test(test_rays),
        cmocka_unit_test(test_optimizer),
        cmocka_unit_test(test_averaging),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_deformed_layers),
        cmocka_unit_test(test_refined_layers),
        cmocka_unit_test(test_layers_of_grid),
        cmocka_unit_test(test_proposal),
        cmocka_unit_test(test_interlevel),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_refinement),
        cmocka_unit_test(test_appearance),
        cmocka_unit_test(test_sky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
