/* Tests the gradient of a whole training step, as recorded, against finite differences of the loss.
 *
 * After the first step Adam's first moments are (1 - beta1) times the unscaled gradient of the mean
 * loss over the rays. With scene.refine the state has the gradients of the summed loss by the poses
 * and lenses of the views. Rays and sample positions are the device's, the loss is the reference's.
 */
#include "step_probe.h"

#include "rays/rays.h"

/* Parameters probed: of the MLPs and of the grid; of vanilla's weights and biases, per layer. */
#define PROBES        64u
#define WEIGHT_PROBES 20u
#define BIAS_PROBES   2u

/* Parameters of a camera: rotation about its position, translation, lens as in struct View. */
#define CAMERA_PARAMETERS (VIEW_PARAMETERS + LENS_PARAMETERS)

/* A change of a camera. The samples keep their distances from the camera. */
struct movement {
    const struct scene_camera *camera; /* NULL: no camera moves */
    uint32_t parameter;
    double by; /* radians, training units, or units of the lens's parameter */
};

struct step_outcome {
    struct State state;
    struct Ray *rays;
    struct RayResult *results;
    struct Sample *samples;
    double *gradients;
    double (*camera_gradients)[VIEW_SUMS]; /* of the views; NULL: no refinement */
    struct value *values; /* of the samples, by the reference before any parameter is changed */
    struct movement movement;
};

struct value {
    double canonical[3], output[4];
};

/* Index of no parameter, which no sample reads. */
#define NO_PARAMETER    UINT32_MAX
/* Index of a parameter that every sample reads. */
#define EVERY_PARAMETER 0

/* Gives a coarse field or a proposal large gradients, because these must not move cameras. */
static void put_coarse_grid(struct tiny *tiny, struct random *random)
{
    const struct step *step = &tiny->trainer->step;
    const struct field_model *model = &step->coarse_setup.model;
    float *params = tiny_read(tiny, &step->coarse.at[BIND_PARAMS]);
    for (uint32_t i = model->mlp_params; i < model->param_count; i++)
        params[i] = (float)random_between(random, -1, 1);
    tiny_put(tiny, &step->coarse.at[BIND_PARAMS], params);
    free(params);
}

/* Makes raw densities around 1, and grid entries large enough to matter. The average is zero, a
 * field of raw density 0, so that confusing weights and average is noticed. */
static float *put_params(struct tiny *tiny, uint32_t seed)
{
    /* A ReLU's field of zeros would have no samples. */
    bool zeros = vkn_trainer_config(tiny->trainer)->mlp.density_activation != VKN_DENSITY_RELU;
    const struct field_model *model = &tiny->trainer->step.setup.model;
    struct random random = {seed};
    float *params = tiny_read(tiny, &tiny->trainer->step.buffers.at[BIND_PARAMS]);
    for (uint32_t i = model->mlp_params; i < model->param_count; i++)
        params[i] = (float)random_between(&random, -1, 1);
    for (uint32_t n = 0; n < model->layer_count; n++)
        for (uint32_t o = 0; model->layers[n].biases && o < model->layers[n].outputs; o++)
            params[reference_weight(&model->layers[n], model->layers[n].inputs, o)] =
                (float)random_between(&random, -0.3, 0.3);
    /* The deformation moves samples by about a cell of the finest level. */
    const struct field_layer *last = &model->layers[model->layer_count - 1];
    for (uint32_t i = 0; model->deformation_layers > 0 && i < last->inputs; i++)
        for (uint32_t o = 0; o < last->used_outputs; o++)
            params[reference_weight(last, i, o)] = (float)random_between(&random, -0.05, 0.05);
    tiny_put(tiny, &tiny->trainer->step.buffers.at[BIND_PARAMS], params);
    float *average = base_alloc(model->param_count, sizeof *average);
    tiny_put(tiny, &tiny->trainer->step.buffers.at[BIND_AVERAGE], zeros ? average : params);
    free(average);
    if (rays_have_coarse(&tiny->trainer->step.setup.config))
        put_coarse_grid(tiny, &random);
    ok(step_round_parameters(&tiny->trainer->step));
    return params;
}

/* Reads the fixed-point sums after the state; returns NULL without refinement. */
static double (*read_camera_gradients(const struct tiny *tiny))[VIEW_SUMS]
{
    const struct step *step = &tiny->trainer->step;
    size_t views = tiny->scene->splits[SCENE_TRAIN].camera_count;
    if (step->setup.config.scene.refine == VKN_REFINEMENT_OFF)
        return NULL;
    char *state = tiny_read(tiny, &step->buffers.at[BIND_STATE]);
    const struct ErrorCell *sums = (const struct ErrorCell *)(state + sizeof(struct State));
    double(*gradients)[VIEW_SUMS] = base_alloc(views, sizeof *gradients);
    sums += step->setup.constants.first_sum;
    for (size_t i = 0; i < views * VIEW_SUMS; i++, sums++)
        gradients[i / VIEW_SUMS][i % VIEW_SUMS] =
            (double)(int64_t)((uint64_t)sums->high << 32 | sums->low) / GRADIENT_UNITS;
    free(state);
    return gradients;
}

static struct step_outcome run_step(struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    struct step_outcome outcome = {0};
    tiny_run(tiny, 1);
    outcome.rays = tiny_read(tiny, &step->buffers.at[BIND_RAYS]);
    outcome.results = tiny_read(tiny, &step->buffers.at[BIND_RESULTS]);
    outcome.samples = tiny_read(tiny, &step->buffers.at[BIND_SAMPLES]);
    ok(gpu_download(tiny->trainer->device, &step->buffers.at[BIND_STATE], 0, &outcome.state,
                    sizeof outcome.state));
    float *moments = tiny_read(tiny, &step->buffers.at[BIND_MOMENT1]);
    outcome.gradients = base_alloc(step->setup.model.param_count, sizeof *outcome.gradients);
    for (uint32_t i = 0; i < step->setup.model.param_count; i++)
        outcome.gradients[i] = moments[i] / (1 - (double)step->setup.constants.beta1);
    free(moments);
    outcome.camera_gradients = read_camera_gradients(tiny);
    assert_int_equal(outcome.state.step, 1);
    assert_int_equal(outcome.state.updates, 1);
    assert_true(outcome.state.sample_count > 150);
    return outcome;
}

static void outcome_destroy(struct step_outcome *outcome)
{
    free(outcome->rays);
    free(outcome->results);
    free(outcome->samples);
    free(outcome->gradients);
    free(outcome->camera_gradients);
    free(outcome->values);
}

static bool has_grid(const struct step *step)
{
    return step->setup.config.march.sampling == VKN_SAMPLING_OCCUPANCY;
}

/* Returns the length of the step at a sample. Without an occupancy grid the sample stores it. */
static double width_of(const struct step *step, const struct reference_stepping *stepping,
                       const struct Sample *sample)
{
    return has_grid(step) ? reference_step_size(stepping, sample->t) : sample->width;
}

static struct reference_field field_at(const struct reference_field *field, const struct Ray *ray)
{
    struct reference_field at = *field;
    at.time = ray->time;
    return at;
}

/* The line of a ray after the movement of its camera. */
struct line {
    double origin[3], direction[3];
};

static bool is_from(const struct Ray *ray, const struct scene_camera *camera)
{
    double distance = 0;
    for (int i = 0; camera && i < 3; i++)
        distance = fmax(distance, fabs((double)ray->origin[i] - (double)camera->pose[4 * i + 3]));
    return camera && distance < 1e-4;
}

/* Turns a vector about an axis of the world. */
static void turn(uint32_t axis, double angle, double v[3])
{
    uint32_t i = (axis + 1) % 3, k = (axis + 2) % 3;
    double a = v[i], b = v[k];
    v[i] = cos(angle) * a - sin(angle) * b;
    v[k] = sin(angle) * a + cos(angle) * b;
}

static void change_lens(const struct movement *movement, double direction[3])
{
    double change[LENS_PARAMETERS] = {0}, before[3];
    memcpy(before, direction, sizeof before);
    change[movement->parameter - VIEW_PARAMETERS] = movement->by;
    reference_change_lens(movement->camera, change, before, direction);
}

static struct line line_of(const struct step_outcome *outcome, uint32_t r)
{
    const struct Ray *ray = &outcome->rays[r];
    const struct movement *movement = &outcome->movement;
    struct line line;
    for (int i = 0; i < 3; i++) {
        line.origin[i] = ray->origin[i];
        line.direction[i] = ray->direction[i];
    }
    if (!is_from(ray, movement->camera))
        return line;
    if (movement->parameter < 3)
        turn(movement->parameter, movement->by, line.direction);
    else if (movement->parameter < VIEW_PARAMETERS)
        line.origin[movement->parameter - 3] += movement->by;
    else
        change_lens(movement, line.direction);
    return line;
}

static void position_on(const struct line *line, double t, double position[3])
{
    for (int i = 0; i < 3; i++)
        position[i] = line->origin[i] + t * line->direction[i];
}

static void keep_values(const struct reference_field *field, struct step_outcome *outcome,
                        uint32_t capacity)
{
    outcome->values = base_alloc(capacity, sizeof *outcome->values);
    for (uint32_t r = 0; r < outcome->state.ray_count; r++) {
        const struct line line = line_of(outcome, r);
        const struct reference_field at = field_at(field, &outcome->rays[r]);
        for (uint32_t s = 0; s < outcome->results[r].count; s++) {
            uint32_t index = outcome->results[r].first + s;
            double position[3];
            position_on(&line, outcome->samples[index].t, position);
            reference_canonical(&at, position, outcome->values[index].canonical);
            reference_field_forward(&at, position, line.direction, outcome->values[index].output);
        }
    }
}

/* Evaluates a sample, unless it does not read the parameter. */
static void value_of(const struct reference_field *field, const struct value *kept,
                     const double position[3], const double direction[3], uint32_t parameter,
                     double output[4])
{
    if (parameter < field->model->mlp_params || reference_reads(field, kept->canonical, parameter))
        reference_field_forward(field, position, direction, output);
    else
        memcpy(output, kept->output, sizeof kept->output);
}

/* The loss that a step reports, and the loss of density near the camera. */
struct losses {
    double reported, near;
};

static struct losses ray_losses(const struct reference_field *field, const struct step *step,
                                const struct step_outcome *outcome, uint32_t r, uint32_t parameter)
{
    static struct reference_sample samples[MAX_RAY_SAMPLES];
    const struct reference_stepping stepping =
        reference_stepping(&step->setup.constants, field->space.contracted);
    const struct Ray *ray = &outcome->rays[r];
    const struct reference_field at = field_at(field, ray);
    const struct line line = line_of(outcome, r);
    struct reference_ray result = reference_ray_start;
    double loss = 0, slope;
    for (uint32_t s = 0; s < outcome->results[r].count; s++) {
        uint32_t index = outcome->results[r].first + s;
        const struct Sample *sample = &outcome->samples[index];
        double t = sample->t, width = width_of(step, &stepping, sample), position[3], output[4];
        position_on(&line, t, position);
        value_of(&at, &outcome->values[index], position, line.direction, parameter, output);
        samples[s] = (struct reference_sample){
            .t = t,
            .width = width * reference_shrinking(&field->space, position),
            .color = {output[0], output[1], output[2]},
            .density = output[3],
        };
        reference_normalize(&field->space, width, &samples[s]);
    }
    reference_composite(&result, samples, outcome->results[r].count,
                        step->setup.constants.early_stop);
    for (int c = 0; c < 3; c++) {
        double background = ray->background[c];
        double target = ray->target[c] + (1.0 - ray->target[3]) * background;
        loss += reference_loss(
            step->setup.specialization.values[SPEC_LOSS], step->setup.constants.loss_delta,
            result.color[c] + result.transmittance * background - target, &slope);
    }
    double weight = step->setup.config.loss.distortion;
    double near =
        reference_near_density(&result, samples, step->setup.constants.near_start, 0, NULL);
    return (struct losses){
        loss / 3 + (weight > 0 ? weight * reference_distortion(&result, samples, 0, NULL) : 0),
        step->setup.config.loss.near_density * near,
    };
}

/* Returns the mean losses over the step's rays; rays whose samples did not fit count as 0. */
static struct losses mean_losses(const struct reference_field *field, const struct step *step,
                                 const struct step_outcome *outcome, uint32_t parameter)
{
    struct losses mean = {0};
    for (uint32_t r = 0; r < outcome->state.ray_count; r++) {
        if (outcome->rays[r].last == -2)
            continue;
        struct losses one = ray_losses(field, step, outcome, r, parameter);
        mean.reported += one.reported / outcome->state.ray_count;
        mean.near += one.near / outcome->state.ray_count;
    }
    return mean;
}

static double probed_loss(const struct probed *probed, uint32_t parameter)
{
    struct losses mean = mean_losses(probed->field, probed->step, probed->outcome, parameter);
    return mean.reported + mean.near;
}

static void check_loss(const struct tiny *tiny, const struct reference_field *field,
                       const struct step_outcome *outcome)
{
    const struct Stats *stats = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    const struct step *step = &tiny->trainer->step;
    struct losses mean = mean_losses(field, step, outcome, NO_PARAMETER);
    bool has_near = step->setup.constants.near_start > step->setup.constants.near_distance;
    assert_true(has_near == (mean.near > 0));
    double loss = mean.reported;
    loss *= (double)outcome->state.ray_count / outcome->state.live_rays; /* reported per live ray */
    double reported = (double)stats[1].loss + (double)stats[1].distortion_loss;
    check_close(reported, loss, 1e-4, loss, "loss of step", 1);
    bool has_distortion = tiny->trainer->step.setup.config.loss.distortion > 0;
    assert_true(has_distortion == (stats[1].distortion_loss > 0));
    if (tiny->trainer->step.setup.config.loss.kind == VKN_LOSS_L2) /* PSNR counts the same */
        check_close(stats[1].loss, stats[1].square, 1e-5, stats[1].square, "loss of step", 1);
}

/* The occupancy grid is that of the average: a smallest step has the same optical thickness in
 * every cell; unseen cells have -1. */
static void check_occupancy(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    enum vkn_density_activation activation = step->setup.config.mlp.density_activation;
    double thickness = (double)step->setup.constants.step_min * reference_density_of(activation, 0);
    if (activation == VKN_DENSITY_RELU)
        return; /* the average equals the weights, see put_params */
    if (!has_grid(step))
        return;
    /* The last eight bits of a dynamic scene's cells hold the time at which they were found. */
    double tolerance = step->setup.model.deformation_layers > 0 ? ldexp(1, -15) : 1e-5;
    float *values = tiny_read(tiny, &step->buffers.at[BIND_OCCUPANCY]);
    size_t count = step->buffers.at[BIND_OCCUPANCY].size / sizeof *values, seen = 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i] < 0)
            continue;
        check_close(values[i], thickness, tolerance, thickness, "cell", i);
        seen++;
    }
    assert_true(seen > count / 100);
    free(values);
}

/* Counts samples that contraction moves. */
static uint32_t count_outside(const struct reference_field *field,
                              const struct step_outcome *outcome)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < outcome->state.ray_count; r++) {
        const struct line line = line_of(outcome, r);
        for (uint32_t s = 0; s < outcome->results[r].count; s++) {
            double position[3];
            position_on(&line, outcome->samples[outcome->results[r].first + s].t, position);
            count += reference_shrinking(&field->space, position) < 1;
        }
    }
    return count;
}

static void probe_parameters(struct reference_field *field, const struct step *step,
                             const struct step_outcome *outcome, struct random *random)
{
    const struct field_model *model = &step->setup.model;
    const struct probed probed = {probed_loss, field, step, outcome, outcome->gradients};
    if (!model->layers[0].biases) {
        probe(&probed, 0, step->setup.constants.first_layered, PROBES, random,
              "gradient of weight");
        probe(&probed, model->mlp_params, model->param_count, PROBES, random,
              "gradient of grid parameter");
    }
    if (model->layers[0].biases && model->levels > 0)
        probe(&probed, model->mlp_params, model->param_count, PROBES, random,
              "gradient of grid parameter");
    for (uint32_t n = 0; n < model->layer_count; n++) {
        uint32_t first = model->layers[n].first;
        if (!model->layers[n].biases)
            continue;
        uint32_t biases = first + model->layers[n].inputs * model->layers[n].outputs;
        probe(&probed, first, biases, WEIGHT_PROBES, random, "gradient of weight");
        probe(&probed, biases, biases + model->layers[n].outputs, BIAS_PROBES, random,
              "gradient of bias");
    }
}

/* Returns the derivative of the loss, summed over the rays, by a parameter of a camera. */
static double differentiate(const struct reference_field *field, const struct step *step,
                            struct step_outcome *outcome, const struct scene_camera *camera,
                            uint32_t parameter)
{
    double above = 0, below = 0;
    for (uint32_t r = 0; r < outcome->state.ray_count; r++) {
        if (outcome->rays[r].last == -2 || !is_from(&outcome->rays[r], camera))
            continue;
        outcome->movement = (struct movement){camera, parameter, DIFFERENCE};
        struct losses losses = ray_losses(field, step, outcome, r, EVERY_PARAMETER);
        above += losses.reported + losses.near;
        outcome->movement.by = -DIFFERENCE;
        losses = ray_losses(field, step, outcome, r, EVERY_PARAMETER);
        below += losses.reported + losses.near;
    }
    outcome->movement = (struct movement){0};
    return (above - below) / (2 * DIFFERENCE);
}

/* Returns the largest gradient by a rotation, by a translation if p is one, or by parameter p of a
 * lens. */
static double largest_like(const struct step_outcome *outcome, size_t views, uint32_t p)
{
    uint32_t first = p < VIEW_PARAMETERS ? p / 3 * 3 : p,
             end = p < VIEW_PARAMETERS ? first + 3 : p + 1;
    double largest = 0;
    for (size_t v = 0; v < views; v++)
        for (uint32_t k = first; k < end; k++)
            largest = fmax(largest, fabs(outcome->camera_gradients[v][k]));
    return largest;
}

static void check_cameras(const struct tiny *tiny, const struct reference_field *field,
                          struct step_outcome *outcome, double tolerance)
{
    const struct scene_split *train = &tiny->scene->splits[SCENE_TRAIN];
    const size_t views = train->camera_count;
    const double rounding = 100 / GRADIENT_UNITS / tolerance; /* of summands to fixed point */
    /* A fisheye has no p1 and p2. */
    uint32_t count = CAMERA_PARAMETERS - (train->cameras[0].lens == VKN_LENS_FISHEYE ? 2 : 0);
    for (uint32_t p = 0; p < count; p++) {
        double largest = largest_like(outcome, views, p);
        assert_true(largest > (p < VIEW_PARAMETERS ? 1e-3 : 4e-6));
        for (size_t v = 0; v < views; v++) {
            double expected =
                differentiate(field, &tiny->trainer->step, outcome, &train->cameras[v], p);
            check_close(outcome->camera_gradients[v][p], expected, tolerance,
                        fabs(expected) + 0.1 * largest + rounding, "gradient of camera",
                        100 * v + p);
        }
    }
}

static void check_step(const struct step_tests *tests, struct vkn_config config, uint32_t seed)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    assert_true(config.precision == VKN_PRECISION_AUTO ||
                step->setup.backend.precision == config.precision); /* the self-test passes */
    float *params = put_params(&tiny, seed);
    struct step_outcome outcome = run_step(&tiny);
    struct reference_field field =
        reference_field(vkn_trainer_config(tiny.trainer), &step->setup.model, params);
    struct random random = {seed};
    for (uint32_t i = 0; i < step->setup.model.param_count && step->setup.backend.f16; i++)
        field.params[i] = reference_round_to_f16(field.params[i]);
    keep_values(&field, &outcome, step->setup.constants.sample_capacity);
    assert_true(!field.space.contracted || count_outside(&field, &outcome) > 100);
    if (!step->setup.backend.f16) {
        check_loss(&tiny, &field, &outcome);
        check_occupancy(&tiny);
        probe_parameters(&field, step, &outcome, &random);
    }
    if (outcome.camera_gradients)
        check_cameras(&tiny, &field, &outcome, step->setup.backend.f16 ? 0.1 : 1e-3);
    reference_field_destroy(&field);
    outcome_destroy(&outcome);
    free(params);
    tiny_destroy(&tiny);
}

static struct vkn_config config_of(bool deterministic)
{
    struct vkn_config config = tiny_config(deterministic);
    config.optimizer.weight_decay = -1; /* none: the gradient is that of the loss */
    config.march.steps_per_unit = 16;
    config.batch.samples = 1024;
    config.batch.max_rays = 64;
    return config;
}

static struct vkn_config refined(struct vkn_config config)
{
    config.scene.refine = VKN_REFINEMENT_ALL;
    config.refine.detail = -1; /* differences of the loss see all levels */
    return config;
}

static struct vkn_config refined_of(bool deterministic)
{
    return refined(config_of(deterministic));
}

static void test_float(void **state)
{
    check_step(*state, config_of(false), 1);
    check_step(*state, refined_of(false), 1);
}

static void test_fixed_point(void **state)
{
    check_step(*state, refined_of(true), 2);
}

/* Another loss with distortion on the power ladder, loss scaling, larger steps in a larger cube,
 * densities before colours. */
static void test_variant(void **state)
{
    struct vkn_config config = refined_of(false);
    config.loss.kind = VKN_LOSS_L2;
    config.loss.distortion = 0.3f;
    config.loss.distortion_curve = VKN_DISTORTION_LADDER;
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 4096;
    config.march.visibility = VKN_SWITCH_ON;
    config.scene.aabb_scale = 4;
    config.march.steps_per_unit = 8;
    config.loss.near_density = 0.2f;
    config.scene.contraction = VKN_CONTRACTION_NONE;
    config.background = VKN_BACKGROUND_WHITE;
    config.grid.finest = 32;
    check_step(*state, config, 3);
}

/* GPU kernels on a CPU device skip variants: test_dynamic_contracted and test_relu cover contracted
 * space and other activations there. */
static bool has_variants(const struct step_tests *tests)
{
    return !has_slow_gpu_kernels(tests->context->device);
}

/* Samples in contracted space, far outside the cube. */
static void test_contraction(void **state)
{
    if (!has_variants(*state))
        return;
    struct vkn_config config = refined_of(false);
    config.scene.contraction = VKN_CONTRACTION_CUBE;
    config.march.cone_angle = 1.0f / 8;
    config.loss.distortion = 0.1f;
    config.grid.finest = 32;
    check_step(*state, config, 4);
}

/* Lenses of every kind that has parameters; the images are 12 x 10 pixels. */
static void test_lenses(void **state)
{
    static const char *const lenses[] = {
        "\"fl_x\": 14, \"fl_y\": 13, \"cx\": 6.5, \"cy\": 4.7, \"k1\": 0.2, \"k2\": -0.3, \"k3\": "
        "0.1, "
        "\"p1\": 0.02, \"p2\": -0.03",
        "\"camera_model\": \"OPENCV_FISHEYE\", \"fl_x\": 14, \"fl_y\": 15, \"cx\": 5.6, \"k1\": "
        "0.1, "
        "\"k2\": -0.1, \"k3\": 0.05, \"k4\": 0.02",
        "\"camera_model\": \"THIN_PRISM_FISHEYE\", \"fl_x\": 14, \"fl_y\": 15, \"k1\": 0.1, "
        "\"k2\": -0.1, "
        "\"k4\": 0.1, \"p1\": 0.03, \"sx1\": 0.05, \"sy1\": -0.04",
    };
    const struct step_tests *tests = *state;
    struct vkn_config config = refined_of(false);
    for (size_t i = 0; i < BASE_COUNT(lenses) && has_variants(tests); i++) {
        char *text =
            base_format("{%s%s", lenses[i], transforms + strlen("{\"camera_angle_x\": 0.6"));
        temporary_text(tests->folder, "transforms_train.json", text);
        free(text);
        check_step(tests, config, 40 + (uint32_t)i);
    }
    temporary_text(tests->folder, "transforms_train.json", transforms);
}

static void test_softplus(void **state)
{
    if (!has_variants(*state))
        return;
    struct vkn_config config = refined_of(false);
    config.mlp.density_activation = VKN_DENSITY_SOFTPLUS;
    check_step(*state, config, 5);
}

/* Samples without a grid. Only the main field's loss moves cameras. */
static void test_samplings(void **state)
{
    if (!has_variants(*state))
        return;
    struct vkn_config config = refined_of(false);
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 12;
    check_step(*state, config, 23);
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 12;
    config.march.fine_samples = 8;
    check_step(*state, config, 24);
    tiny_propose(&config);
    check_step(*state, config, 25);
}

/* Streams strips of views, so that the device's cameras are not numbered like the views. The cells
 * of an error map precede the gradients. */
static void test_streamed(void **state)
{
    if (!has_variants(*state))
        return;
    struct vkn_config config = refined_of(false);
    config.scene.image_budget = 4 * 12 * 10 * 2;
    config.batch.by_error = 0.5f;
    check_step(*state, config, 26);
}

static void test_relu(void **state)
{
    struct vkn_config config = config_of(false);
    config.mlp.density_activation = VKN_DENSITY_RELU;
    check_step(*state, config, 6);
}

/* Vanilla with several chunks of rows. */
static struct vkn_config vanilla_of(bool deterministic, enum vkn_checkpointing checkpoint)
{
    const struct vkn_config config = {
        .model = VKN_MODEL_VANILLA,
        .deterministic = deterministic,
        .seed = 3,
        .steps = 60,
        .mlp = {.density_width = 32,
                .density_layers = 2,
                .geometry = 32,
                .color_width = 32,
                .color_layers = 1,
                .position_octaves = 4,
                .direction_octaves = 2,
                .skip_layer = 2,
                .activation_checkpointing = checkpoint},
        .march = {.resolution = 16, .steps_per_unit = 16},
        .batch = {.samples = 1024, .chunk = 64, .max_rays = 64},
        .optimizer.weight_decay = -1,
    };
    return config;
}

static void test_vanilla(void **state)
{
    check_step(*state, vanilla_of(false, VKN_CHECKPOINTING_OFF), 7);
    check_step(*state, refined(vanilla_of(false, VKN_CHECKPOINTING_OFF)), 7);
}

/* Colours of visible samples only, in several chunks. Only with CPU kernels: tests above use the
 * layers' kernels of both kinds. */
static void test_vanilla_uniform(void **state)
{
    const struct step_tests *tests = *state;
    if (!gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)))
        return;
    struct vkn_config config = refined(vanilla_of(false, VKN_CHECKPOINTING_ON));
    config.march.visibility = VKN_SWITCH_ON;
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 5;
    check_step(*state, config, 8);
}

/* The deformation in several chunks, with the time next to the canonical field's features. */
static struct vkn_config dynamic_of(bool deterministic)
{
    struct vkn_config config = config_of(deterministic);
    config.model = VKN_MODEL_DYNAMIC;
    config.batch.chunk = 64;
    config.dynamic.width = 32;
    config.dynamic.layers = 2;
    config.dynamic.position_octaves = 2;
    config.dynamic.time_octaves = 3;
    config.dynamic.time_features = VKN_SWITCH_ON;
    return config;
}

static void test_dynamic(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = refined(dynamic_of(false));
    config.refine.detail = 1e-3f; /* cuts no level in front of which there is a deformation */
    if (gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)))
        check_step(tests, config, 9);
}

/* Contracted space, densities before colours, fixed-point sums. Only with GPU kernels: tests above
 * use the layers' kernels of both kinds. */
static void test_dynamic_contracted(void **state)
{
    const struct step_tests *tests = *state;
    if (gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)))
        return;
    struct vkn_config config = refined(dynamic_of(true));
    config.scene.contraction = VKN_CONTRACTION_CUBE;
    config.march.cone_angle = 1.0f / 8;
    config.march.visibility = VKN_SWITCH_ON;
    config.grid.finest = 32;
    config.dynamic.time_features = VKN_SWITCH_OFF;
    config.refine.detail = 1e-3f;
    check_step(*state, config, 10);
}

/* Vanilla's field after a deformation: kept activations, and a skip layer that reads position and
 * time again. */
static struct vkn_config deformed_of(bool deterministic, enum vkn_checkpointing checkpoint)
{
    struct vkn_config config = vanilla_of(deterministic, checkpoint);
    config.model = VKN_MODEL_DYNAMIC;
    config.dynamic = dynamic_of(deterministic).dynamic;
    config.dynamic.canonical = VKN_CANONICAL_VANILLA;
    config.mlp.position_octaves = 3;
    return config;
}

static void test_deformed(void **state)
{
    const struct step_tests *tests = *state;
    if (!gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)))
        return;
    check_step(tests, deformed_of(false, VKN_CHECKPOINTING_OFF), 11);
    check_step(tests, refined(deformed_of(false, VKN_CHECKPOINTING_OFF)), 11);
}

/* GPU kernels in contracted space: live samples pass through all layers again; there is no skip
 * layer. */
static void test_deformed_contracted(void **state)
{
    const struct step_tests *tests = *state;
    if (gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)))
        return;
    struct vkn_config config = refined(deformed_of(true, VKN_CHECKPOINTING_ON));
    config.scene.contraction = VKN_CONTRACTION_CUBE;
    config.march.cone_angle = 1.0f / 8;
    config.march.visibility = VKN_SWITCH_ON;
    config.mlp.skip_layer = 3;
    config.dynamic.time_features = VKN_SWITCH_OFF;
    check_step(*state, config, 12);
}

/* Each encoding and activation function of the layered model, except vanilla's ReLU, with skip
 * layers, kept and recomputed activations. */
static const struct layered {
    enum vkn_position_encoding position;
    enum vkn_direction_encoding direction;
    enum vkn_activation activation;
    enum vkn_checkpointing checkpoint;
    bool deterministic, visibility;
    uint32_t features, skip;
} layered[] = {
    {VKN_POSITION_HASH, VKN_DIRECTION_FREQUENCIES, VKN_ACTIVATION_SOFTPLUS, VKN_CHECKPOINTING_ON,
     true, true, 4, 3},
    {VKN_POSITION_HASH, VKN_DIRECTION_NONE, VKN_ACTIVATION_LEAKY_RELU, VKN_CHECKPOINTING_OFF, false,
     false, 2, 2},
    {VKN_POSITION_FREQUENCIES, VKN_DIRECTION_HARMONICS, VKN_ACTIVATION_TANH, VKN_CHECKPOINTING_OFF,
     false, false, 2, 2},
    {VKN_POSITION_FREQUENCIES, VKN_DIRECTION_IDENTITY, VKN_ACTIVATION_SIGMOID, VKN_CHECKPOINTING_ON,
     false, false, 2, 9},
    {VKN_POSITION_IDENTITY, VKN_DIRECTION_FREQUENCIES, VKN_ACTIVATION_SQUAREPLUS,
     VKN_CHECKPOINTING_ON, true, false, 2, 2},
    {VKN_POSITION_IDENTITY, VKN_DIRECTION_HARMONICS, VKN_ACTIVATION_NONE, VKN_CHECKPOINTING_OFF,
     false, false, 2, 9},
};

static struct vkn_config layered_of(const struct layered *of)
{
    struct vkn_config config = refined(vanilla_of(of->deterministic, of->checkpoint));
    config.model = VKN_MODEL_LAYERED;
    config.field.position = of->position;
    config.field.direction = of->direction;
    config.field.activation = of->activation;
    config.grid = tiny_config(false).grid;
    config.grid.features = of->features;
    config.mlp.density_layers = 3;
    config.mlp.skip_layer = of->skip;
    config.march.visibility = of->visibility ? VKN_SWITCH_ON : VKN_SWITCH_DEFAULT;
    return config;
}

/* With other seeds rounding switches ReLUs of ngp, which changes gradients by up to a third. */
static void test_precisions(void **state)
{
    const struct step_tests *tests = *state;
    struct {
        struct vkn_config config;
        uint32_t seed;
    } cases[] = {
        {refined_of(false), 33},
        {layered_of(&layered[2]), 33},
        {refined(dynamic_of(false)), 36},
        {refined(deformed_of(false, VKN_CHECKPOINTING_ON)), 22},
    };
    for (size_t i = 0; i < BASE_COUNT(cases) && has_variants(tests); i++) {
        struct vkn_config *config = &cases[i].config;
        config->precision = VKN_PRECISION_FP16;
        check_step(tests, *config, cases[i].seed);
        config->precision = VKN_PRECISION_COOPMAT;
        config->matrix.shape = VKN_SHAPE_8X8X8;
        if (gpu_device_capabilities(tests->context->device)->cooperative_matrix)
            check_step(tests, *config, cases[i].seed);
    }
}

/* The layered model's encodings after a deformation, with the time as an input: grid features with
 * densities before colours, and the plain position with kept activations. */
static void test_deformed_layered(void **state)
{
    const struct step_tests *tests = *state;
    if (!gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)))
        return;
    struct vkn_config config = refined(deformed_of(true, VKN_CHECKPOINTING_ON));
    config.dynamic.canonical = VKN_CANONICAL_LAYERED;
    config.field.activation = VKN_ACTIVATION_TANH;
    config.grid = tiny_config(false).grid;
    config.march.visibility = VKN_SWITCH_ON;
    check_step(tests, config, 20);
    config.deterministic = false;
    config.field.position = VKN_POSITION_IDENTITY;
    config.field.direction = VKN_DIRECTION_HARMONICS;
    config.mlp.activation_checkpointing = VKN_CHECKPOINTING_OFF;
    config.march.visibility = VKN_SWITCH_DEFAULT;
    check_step(tests, config, 21);
}

/* Only with CPU kernels: tests above use the layers' kernels of both kinds, and activation
 * functions are the same code in both. */
static void test_layered(void **state)
{
    const struct step_tests *tests = *state;
    if (!gpu_cpu_kernels(gpu_device_capabilities(tests->context->device)) && !check_everything())
        return;
    for (uint32_t i = 0; i < BASE_COUNT(layered); i++)
        check_step(tests, layered_of(&layered[i]), 13 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float),    cmocka_unit_test(test_fixed_point),
        cmocka_unit_test(test_variant),  cmocka_unit_test(test_contraction),
        cmocka_unit_test(test_lenses),   cmocka_unit_test(test_softplus),
        cmocka_unit_test(test_relu),     cmocka_unit_test(test_samplings),
        cmocka_unit_test(test_streamed), cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_vanilla),  cmocka_unit_test(test_vanilla_uniform),
        cmocka_unit_test(test_dynamic),  cmocka_unit_test(test_dynamic_contracted),
        cmocka_unit_test(test_deformed), cmocka_unit_test(test_deformed_contracted),
        cmocka_unit_test(test_layered),  cmocka_unit_test(test_deformed_layered),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
