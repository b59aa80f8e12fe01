/* Tests the appearance of images against the reference: compositing with it, the gradients with
 * respect to its parameters, its update, and pictures. */
#include "certify/appearance.h"

/* ---- compositing ------------------------------------------------------------------------------
 */

/* With a sky the background of some rays is photographed, too. */
static void test_composite(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 4; n++) {
        struct fixture fixture =
            appearance_fixture(device, n % 2 ? VKN_APPEARANCE_FULL : VKN_APPEARANCE_EXPOSURE);
        fixture_set_constant(&fixture, SPEC_SKY, n / 2);
        struct inputs *inputs = appearance_inputs_create(7);
        appearance_put_inputs(&fixture, inputs);
        fixture_run(&fixture, "composite", (struct Push){.e = COMPOSITE_ALL},
                    fixture_groups(&fixture, RAYS));
        float(*gradients)[4] = fixture_read(&fixture, BIND_FIELD_GRADIENTS);
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        for (uint32_t r = 0; r < RAYS; r++)
            if (r % 8 != 3)
                appearance_check_ray(&fixture, inputs, r, (const float(*)[4])gradients,
                                     &results[r]);
        free(gradients);
        free(results);
        free(inputs);
        fixture_destroy(&fixture);
    }
}

/* A saturated pixel of the photograph has no gradient with a colour that is too bright, and pulls
 * such a colour down if it is not saturated. Coarse samples are composited without appearance. */
static void test_saturation(struct gpu_device *device)
{
    struct fixture fixture = appearance_fixture(device, VKN_APPEARANCE_EXPOSURE);
    struct inputs *inputs = appearance_inputs_create(8);
    for (uint32_t r = 0; r < RAYS; r++) {
        float target = r % 2 ? 1 : 0.9F;
        inputs->rays[r].last = 10;
        memcpy(inputs->rays[r].target, (float[4]){target, target, target, 1}, 16);
        inputs->results[r].count = SAMPLES;
        inputs->field[r * SAMPLES][3] = 1e4F;
    }
    for (uint32_t v = 0; v < VIEWS; v++)
        inputs->contents.views[v].values[0] = 9;
    appearance_put_inputs(&fixture, inputs);
    fixture_run(&fixture, "composite", (struct Push){0}, fixture_groups(&fixture, RAYS));
    float(*bright)[4] = fixture_read(&fixture, BIND_FIELD_GRADIENTS);
    appearance_put_inputs(&fixture, inputs);
    fixture_run(&fixture, "composite", (struct Push){.e = COMPOSITE_COARSE},
                fixture_groups(&fixture, RAYS));
    float(*coarse)[4] = fixture_read(&fixture, BIND_FIELD_GRADIENTS);
    for (uint32_t r = 0; r < RAYS; r++)
        for (int c = 0; c < 3; c++) {
            double by_plain =
                2 / 3.0 *
                ((double)inputs->field[r * SAMPLES][c] - (double)inputs->rays[r].target[c]) / RATIO;
            check_that(r % 2 ? fabsf(bright[r * SAMPLES][c]) < 1e-4F
                             : bright[r * SAMPLES][c] > 1e-3F);
            check_close(coarse[r * SAMPLES][c], by_plain, 1e-5, 1, "coarse gradient", r);
        }
    free(bright);
    free(coarse);
    free(inputs);
    fixture_destroy(&fixture);
}

/* ---- gradients of parameters ------------------------------------------------------------------
 */

/* Returns whether a ray has gradients with respect to all parameters: one block of 64 in 16. */
static bool is_complete(const struct fixture *fixture, uint32_t r)
{
    return (fixture->config.first_ray + r) / 64 % 16 == 0;
}

/* Adds the numerical gradient of a ray's loss. */
static void add_gradient(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                         double sums[APPEARANCE_PARAMETERS])
{
    const struct Ray *ray = &inputs->rays[r];
    const struct RayResult *result = &inputs->results[r];
    double p[APPEARANCE_PARAMETERS], color[3];
    int parameters = !appearance_is_full(fixture) ? 1
                     : is_complete(fixture, r)    ? APPEARANCE_PARAMETERS
                                                  : 3; /* exposure and gains */
    widen_floats(appearance_of_ray(inputs, ray)->values, APPEARANCE_PARAMETERS, p);
    widen_floats(result->color, 3, color);
    for (int k = 0; k < parameters; k++) {
        double before = p[k], transmittance = (double)result->transmittance;
        p[k] = before - STEP;
        double low = appearance_loss_of_color(fixture, ray, p, color, transmittance);
        p[k] = before + STEP;
        sums[k] += (double)ray->weight *
                   (appearance_loss_of_color(fixture, ray, p, color, transmittance) - low) /
                   (2 * STEP);
        p[k] = before;
    }
}

static void check_sums(struct gpu_device *device, enum vkn_appearance kind)
{
    struct fixture fixture = appearance_fixture(device, kind);
    struct inputs *inputs = appearance_inputs_create(9);
    struct contents after;
    double expected[VIEWS][APPEARANCE_PARAMETERS] = {{0}};
    uint32_t rays[VIEWS] = {0}, complete[VIEWS] = {0};
    struct random random = {10};
    fixture_set_constant(&fixture, SPEC_BY_ERROR, 1);
    fixture.config.error_unbiased = 1;
    fixture.config.first_ray = 10 * RAYS; /* the third rank's */
    for (uint32_t r = 0; r < RAYS; r++) {
        struct RayResult *result = &inputs->results[r];
        result->transmittance = r % 5 ? (float)random_between(&random, 0, 0.9) : 1;
        for (int c = 0; c < 3; c++)
            result->color[c] =
                (1 - result->transmittance) * (float)random_between(&random, 0.05, 0.5);
        if (r % 8 == 3)
            continue;
        uint32_t view = inputs->cameras[inputs->rays[r].view].view;
        rays[view]++;
        complete[view] += appearance_is_full(&fixture) && is_complete(&fixture, r) ? 1 : 0;
        add_gradient(&fixture, inputs, r, expected[view]);
    }
    inputs->contents.sums[5][0].low = 100; /* sums are added to */
    expected[5][0] += 100 / GRADIENT_UNITS;
    appearance_put_inputs(&fixture, inputs);
    fixture_run(&fixture, "appearance_gradients", (struct Push){0}, fixture_groups(&fixture, RAYS));
    fixture_get(&fixture, BIND_STATE, &after, sizeof after);
    for (uint32_t v = 0; v < VIEWS; v++) {
        for (int k = 0; k < APPEARANCE_PARAMETERS; k++)
            check_close(gradient_sum(&after.sums[v][k]), expected[v][k], 1e-4, 1,
                        "gradient of view", 100 * v + k);
        check_equal(after.sums[v][0].rays, rays[v]);
        check_equal(after.sums[v][APPEARANCE_IMAGE].rays, complete[v]);
    }
    check_memory(after.views, inputs->contents.views, sizeof after.views);
    free(inputs);
    fixture_destroy(&fixture);
}

static void test_gradients(struct gpu_device *device)
{
    check_sums(device, VKN_APPEARANCE_EXPOSURE);
    check_sums(device, VKN_APPEARANCE_FULL);
}

/* ---- the update -------------------------------------------------------------------------------
 */

/* Every seventh view has no rays. Views of three cameras; the camera of view 2 has no rays. */
static void random_update(struct contents *contents, bool full, struct random *random)
{
    memset(contents, 0, sizeof *contents);
    memset(contents->map, 0xff, sizeof contents->map);
    for (uint32_t v = 0; v < VIEWS; v++) {
        struct Appearance *view = &contents->views[v];
        double size = pow(10, random_between(random, 0, 4));
        bool has_rays = v % 7 != 2 && v != 2;
        appearance_random(random, view);
        view->updates = random_below(random, 40);
        view->camera_updates = random_below(random, 40);
        view->group = v % 7 == 2 ? 2 : v % 2;
        view->given = (float)random_between(random, -1, 1);
        for (int k = 0; k < APPEARANCE_PARAMETERS; k++) {
            uint64_t word =
                (uint64_t)(int64_t)(random_between(random, -size, size) * GRADIENT_UNITS);
            view->moment1[k] = (float)random_between(random, -size, size);
            view->moment2[k] = (float)random_between(random, 0, size * size);
            if (has_rays)
                contents->sums[v][k] =
                    (struct ErrorCell){.low = (uint32_t)word, .high = (uint32_t)(word >> 32)};
        }
        contents->sums[v][0].rays = has_rays ? 3 : 0;
        contents->sums[v][APPEARANCE_IMAGE].rays = has_rays && full ? 3 : 0;
    }
    contents->views[4].values[0] = 15.9F; /* near the limits */
    contents->views[5].values[7] = -1.49F;
}

static struct reference_appearance reference_of(const struct contents *contents, uint32_t v,
                                                const struct Camera *camera)
{
    const struct Appearance *view = &contents->views[v];
    struct reference_appearance result = {.updates = view->updates,
                                          .camera_updates = view->camera_updates,
                                          .group = view->group,
                                          .given = (double)view->given,
                                          .has_rays = contents->sums[v][0].rays > 0};
    widen_floats(view->values, APPEARANCE_PARAMETERS, result.values);
    widen_floats(view->moment1, APPEARANCE_PARAMETERS, result.moment1);
    widen_floats(view->moment2, APPEARANCE_PARAMETERS, result.moment2);
    for (int k = 0; k < APPEARANCE_PARAMETERS; k++)
        result.gradient[k] = gradient_sum(&contents->sums[v][k]);
    for (int i = 0; i < 3; i++)
        result.axis[i] = (double)camera->pose[4 * i + 2];
    return result;
}

static void check_view(const struct Appearance *after, const struct reference_appearance *expected,
                       uint32_t v)
{
    for (int k = 0; k < APPEARANCE_PARAMETERS; k++) {
        double size = fmax(1, sqrt(expected->moment2[k]));
        check_close(after->values[k], expected->values[k], 2e-4, 1, "value", 100 * v + k);
        check_close(after->moment1[k], expected->moment1[k], 1e-5, size, "moment", 100 * v + k);
        check_close(after->moment2[k], expected->moment2[k], 1e-5, size * size, "square",
                    100 * v + k);
    }
    check_equal(after->updates, expected->updates);
    check_equal(after->camera_updates, expected->camera_updates);
    check_equal(after->group, expected->group);
    check_that((double)after->given == expected->given);
}

/* Checks an update after `step` of 1000 steps, of the first `count` views. */
static void check_update(struct gpu_device *device, enum vkn_appearance kind, uint32_t step,
                         uint32_t count)
{
    struct fixture fixture = appearance_fixture(device, kind);
    static struct contents before, after;
    struct Camera cameras[VIEWS] = {{.width = 0}};
    struct reference_appearance expected[VIEWS];
    static const struct ErrorCell cleared[APPEARANCE_PARAMETERS];
    const struct Control control = {.time_progress = 0};
    struct random random = {step + count};
    random_update(&before, appearance_is_full(&fixture), &random);
    before.state.step = step;
    for (uint32_t v = 0; v < VIEWS; v++) {
        double axis[3];
        random_direction(&random, axis);
        for (int i = 0; i < 3; i++)
            cameras[v].pose[4 * i + 2] = (float)axis[i];
        before.views[v].group = before.views[v].group < count ? before.views[v].group : 0;
        expected[v] = reference_of(&before, v, &cameras[v]);
    }
    fixture.config.total_steps = 1000;
    fixture.config.camera_count = count;
    fixture.config.appearance_rate = 0.3F;
    fixture.config.appearance_final_rate = 0.01F;
    reference_update_appearance(appearance_is_full(&fixture), &fixture.config, step, 0, expected);
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    fixture_put(&fixture, BIND_CONTROL, &control, sizeof control);
    fixture_put(&fixture, BIND_CAMERAS, cameras, sizeof cameras);
    fixture_put(&fixture, BIND_STATE, &before, sizeof before);
    fixture_run(&fixture, "update_appearance", (struct Push){0}, 1);
    fixture_get(&fixture, BIND_STATE, &after, sizeof after);
    for (uint32_t v = 0; v < count; v++) {
        check_view(&after.views[v], &expected[v], v);
        check_memory(after.sums[v], cleared, sizeof cleared);
    }
    for (uint32_t v = count; v < VIEWS; v++)
        check_memory(&after.views[v], &before.views[v], sizeof *after.views);
    check_memory(after.map, before.map, sizeof before.map);
    fixture_destroy(&fixture);
}

/* Before the trend is taken out, when it is, and afterwards; enough views for all terms, for some,
 * for one. */
static void test_update(struct gpu_device *device)
{
    static const uint32_t steps[] = {500, 512, 527, 528, 900}, views[] = {VIEWS, 30, 9};
    for (size_t s = 0; s < BASE_COUNT(steps); s++)
        for (size_t v = 0; v < BASE_COUNT(views); v++)
            check_update(device, s + v == 2 ? VKN_APPEARANCE_FULL : VKN_APPEARANCE_EXPOSURE,
                         steps[s], views[v]);
    check_update(device, VKN_APPEARANCE_FULL, 900, VIEWS);
}

/* ---- pictures ---------------------------------------------------------------------------------
 */

static void check_picture(struct gpu_device *device, uint32_t kind, uint32_t per_pixel)
{
    struct fixture fixture = appearance_fixture(device, VKN_APPEARANCE_EXPOSURE);
    struct inputs *inputs = appearance_inputs_create(11);
    struct random random = {12 + kind};
    struct Appearance appearance;
    double p[APPEARANCE_PARAMETERS], position[2], pixel[3];
    const double background[3] = {1, 0.5, 0};
    appearance_random(&random, &appearance);
    memcpy(fixture.config.picture_appearance, appearance.values, sizeof appearance.values);
    fixture.config.picture_kind = kind;
    widen_floats(appearance.values, APPEARANCE_PARAMETERS, p);
    for (uint32_t r = 0; r < RAYS; r++) {
        inputs->results[r].transmittance = (float)random_between(&random, 0, 0.9);
        for (int c = 0; c < 3; c++)
            inputs->results[r].color[c] =
                (1 - inputs->results[r].transmittance) * (float)random_between(&random, 0.05, 0.5);
        for (int c = 0; c < 3; c++)
            inputs->rays[r].background[c] = (float)background[c];
    }
    appearance_put_inputs(&fixture, inputs);
    fixture_run(&fixture, "finish_pixels", (struct Push){.a = RAYS / per_pixel, .b = per_pixel},
                fixture_groups(&fixture, RAYS));
    struct Output *output = fixture_read(&fixture, BIND_OUTPUT);
    for (uint32_t i = 0; i < RAYS / per_pixel; i++) {
        double color[3] = {0}, transmittance = 0;
        for (uint32_t r = i * per_pixel; r < (i + 1) * per_pixel; r++) {
            transmittance += (double)inputs->results[r].transmittance / per_pixel;
            for (int c = 0; c < 3; c++)
                color[c] += (double)inputs->results[r].color[c] / per_pixel;
        }
        appearance_position_of(&inputs->rays[i * per_pixel], position);
        reference_pixel(p, kind == APPEARANCE_FULL, position, color, transmittance, background,
                        pixel);
        for (int c = 0; c < 3; c++)
            check_close(output[i].color[c], pixel[c], 1e-4, 1, "colour of pixel", i);
    }
    free(output);
    free(inputs);
    fixture_destroy(&fixture);
}

static void test_pictures(struct gpu_device *device)
{
    check_picture(device, APPEARANCE_EXPOSURE, 1);
    check_picture(device, APPEARANCE_FULL, 4);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_composite), TEST_BOTH(test_saturation), TEST_BOTH(test_gradients),
    TEST_BOTH(test_update),    TEST_BOTH(test_pictures),
};
const struct certify_part certify_appearance = {"appearance", tests, BASE_COUNT(tests)};
