/* Tests the sky against the reference: the background of training and view rays, its sums and their
 * update, and pictures that show it. */
#include "certify/fixture.h"

#define RAYS 192u
#define SIDE 32u    /* of the camera's image, in pixels */
#define LOW  (-0.1) /* height above which there is sky */
#define STEP 1e-5   /* of numerical derivatives */

/* The contents of BIND_STATE. */
struct contents {
    struct State state;
    struct ErrorCell texels[SKY_TEXELS][4];
    struct Appearance view;
};

static struct fixture fixture_of(struct gpu_device *device, enum vkn_appearance kind)
{
    const struct vkn_config settings = {
        .scene.sky = VKN_SWITCH_ON, .scene.appearance = kind, .background = VKN_BACKGROUND_RANDOM};
    struct fixture fixture = fixture_configure(device, settings);
    const float up[3] = {0.36F, 0.48F, 0.8F};
    check_equal(fixture.config.sky_cells, SKY_CELLS);
    fixture.config.first_appearance_word = offsetof(struct contents, view) / 4;
    fixture.config.near_start = 0;
    memcpy(fixture.config.sky_up, up, sizeof up);
    fixture_allocate(&fixture, 1, SIDE * SIDE);
    check_that(fixture.buffers[BIND_STATE].size >=
               sizeof(struct contents) -
                   (kind > VKN_APPEARANCE_OFF ? 0 : sizeof(struct Appearance)));
    return fixture;
}

/* Fills the sky: a third of the texels has had no rays. */
static void random_sky(struct random *random, struct contents *contents)
{
    memset(contents, 0, sizeof *contents);
    contents->state.ray_count = RAYS;
    contents->view.values[0] = -0.7F;
    for (uint32_t t = 0; t < SKY_TEXELS; t++) {
        for (int c = 0; c < 3; c++)
            contents->texels[t][c].error = (float)random_between(random, 0.2, 0.8);
        contents->texels[t][3].error =
            random_below(random, 3) ? (float)random_between(random, 0, 8) : 0;
    }
}

static const struct ErrorCell (*texels_of(const struct contents *contents))[4]
{
    return (const struct ErrorCell(*)[4])contents->texels;
}

static void put_state(struct fixture *fixture, const struct contents *contents)
{
    uint64_t size = fixture->buffers[BIND_STATE].size;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_STATE, contents, size < sizeof *contents ? size : sizeof *contents);
}

static bool has_appearance(const struct fixture *fixture)
{
    return fixture->settings.scene.appearance > VKN_APPEARANCE_OFF;
}

/* Computes the colour that the photograph shows of a colour. */
static void photograph(const struct fixture *fixture, const struct contents *contents,
                       const double scene[3], double color[3])
{
    const double exposure[APPEARANCE_PARAMETERS] = {(double)contents->view.values[0]};
    memcpy(color, scene, 3 * sizeof *color);
    if (has_appearance(fixture))
        reference_photograph(exposure, false, (double[2]){0, 0}, scene, color);
}

static double height_of(const struct fixture *fixture, const double direction[3])
{
    double height = 0;
    for (int i = 0; i < 3; i++)
        height += (double)fixture->config.sky_up[i] * direction[i];
    return height;
}

/* ---- rays ------------------------------------------------------------------------------------ */

static double byte_of(double value)
{
    return round(255 * fmin(fmax(value, 0), 1));
}

/* Draws a pixel that differs from the sky by less or by more than the tolerance. Every eighth pixel
 * is not opaque. */
static uint32_t random_pixel(const struct fixture *fixture, const struct contents *contents,
                             struct random *random, const double direction[3], double tolerance)
{
    double sky[3], shown[3];
    reference_sky(texels_of(contents), direction, sky);
    photograph(fixture, contents, sky, shown);
    uint32_t pixel = (random_below(random, 8) ? 255u : 254u) << 24;
    bool differs = random_below(random, 2) == 1;
    uint32_t farthest = random_below(random, 3);
    for (uint32_t c = 0; c < 3; c++) {
        double most = differs && c == farthest ? 1.3 : 0.7,
               least = differs && c == farthest ? 1.1 : 0;
        double difference = random_between(random, least, most) * tolerance;
        double value = shown[c] > 0.5 ? shown[c] - difference : shown[c] + difference;
        pixel |= (uint32_t)byte_of(value) << (8 * c);
    }
    return pixel;
}

static void check_ray(const struct fixture *fixture, const struct contents *contents,
                      const struct Ray *ray, uint32_t index, uint32_t seen[2])
{
    double direction[3], sky[3], shown[3], drawn[3], farthest = 0;
    for (int i = 0; i < 3; i++)
        direction[i] = (double)ray->direction[i];
    reference_sky(texels_of(contents), direction, sky);
    photograph(fixture, contents, sky, shown);
    for (int c = 0; c < 3; c++)
        farthest = fmax(farthest, fabs((double)ray->target[c] - shown[c]));
    double tolerance = reference_sky_tolerance(contents->state.step);
    bool near_horizon = fabs(height_of(fixture, direction) - LOW) < 1e-4;
    if (fabs(farthest - tolerance) < 1e-3 || near_horizon)
        return;
    bool has_sky =
        ray->target[3] == 1 && farthest < tolerance && height_of(fixture, direction) > LOW;
    check_equal(ray->has_sky, has_sky);
    reference_random_unit(fixture->config.seed, contents->state.step, index, 2, drawn);
    for (int c = 0; c < 3; c++)
        check_close(ray->background[c], has_sky ? sky[c] : drawn[c], 2e-4, 1, "background", index);
    seen[has_sky]++;
}

/* Rays of training: pixels that may show the sky have it as their background. */
static void check_training_rays(struct gpu_device *device, enum vkn_appearance kind, uint32_t step)
{
    static struct contents contents;
    struct fixture fixture = fixture_of(device, kind);
    struct random random = {step};
    struct scene_camera view = random_camera(&random, SIDE, SIDE, 1.5, false);
    struct Camera camera = setup_camera(&view);
    uint32_t pixels[SIDE * SIDE], seen[2] = {0};
    for (int i = 0; i < 3; i++) /* the horizon crosses the image */
        fixture.config.sky_up[i] = view.pose[4 * i + 1];
    random_sky(&random, &contents);
    contents.state.step = step;
    for (uint32_t p = 0; p < SIDE * SIDE; p++) {
        double origin[3], direction[3];
        const uint32_t row = p / SIDE;
        scene_camera_ray(&view, p % SIDE + 0.5, row + 0.5, origin, direction);
        pixels[p] =
            random_pixel(&fixture, &contents, &random, direction, reference_sky_tolerance(step));
    }
    put_state(&fixture, &contents);
    fixture_put(&fixture, BIND_CAMERAS, &camera, sizeof camera);
    fixture_put(&fixture, BIND_PIXELS, pixels, sizeof pixels);
    fixture_run(&fixture, "generate_rays", (struct Push){.b = fixture.local_size},
                fixture_groups(&fixture, RAYS));
    struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
    for (uint32_t r = 0; r < RAYS; r++)
        check_ray(&fixture, &contents, &rays[r], r, seen);
    check_that(seen[0] > RAYS / 8 && seen[1] > RAYS / 16);
    free(rays);
    fixture_destroy(&fixture);
}

static void test_training_rays(struct gpu_device *device)
{
    check_training_rays(device, VKN_APPEARANCE_OFF, 60);
    check_training_rays(device, VKN_APPEARANCE_OFF, 1000);
    check_training_rays(device, VKN_APPEARANCE_EXPOSURE, 1000);
}

/* Rays of pictures: all see the sky, or none. Values of a damaged checkpoint count as 0, as the
 * limit, or as a texel without rays. */
static void test_view_rays(struct gpu_device *device)
{
    static struct contents contents, damaged;
    struct fixture fixture = fixture_of(device, VKN_APPEARANCE_OFF);
    struct random random = {90};
    struct scene_camera view = random_camera(&random, SIDE, SIDE, 1.5, false);
    const struct Camera camera = setup_camera(&view);
    const struct Push push = {.c = RAYS};
    random_sky(&random, &contents);
    damaged = contents;
    for (uint32_t t = 0; t < SKY_TEXELS; t++) {
        struct ErrorCell *cells = contents.texels[t], *wrong = damaged.texels[t];
        cells[0].error = t % 2 ? 0 : cells[0].error;
        wrong[0].error = t % 2 ? NAN : cells[0].error;
        cells[1].error = t % 3 ? 1 : cells[1].error;
        wrong[1].error = t % 3 ? 1e30F : cells[1].error;
        cells[3].error = t % 5 ? cells[3].error : 0;
        wrong[3].error = t % 5 ? cells[3].error : -INFINITY;
    }
    for (uint32_t shows = 0; shows < 2; shows++) {
        fixture.config.picture_sky = shows;
        put_state(&fixture, shows ? &damaged : &contents);
        fixture_put(&fixture, BIND_CAMERAS, &camera, sizeof camera);
        fixture_run(&fixture, "generate_view_rays", push, fixture_groups(&fixture, RAYS));
        struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
        for (uint32_t r = 0; r < RAYS; r++) {
            double direction[3], sky[3];
            for (int i = 0; i < 3; i++)
                direction[i] = (double)rays[r].direction[i];
            reference_sky(texels_of(&contents), direction, sky);
            for (int c = 0; c < 3; c++)
                check_close(rays[r].background[c],
                            shows ? sky[c] : (double)fixture.config.render_background[c], 2e-4, 1,
                            "background", r);
        }
        free(rays);
    }
    fixture_destroy(&fixture);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void random_rays(const struct fixture *fixture, const struct contents *contents,
                        struct random *random, struct Ray *rays, struct RayResult *results)
{
    for (uint32_t r = 0; r < RAYS; r++) {
        double direction[3], sky[3], shown[3];
        random_direction(random, direction);
        rays[r] = (struct Ray){.last = r % 16 == 3 ? -3 : 10, .target[3] = r % 16 == 5 ? 0.9F : 1};
        for (int i = 0; i < 3; i++)
            rays[r].direction[i] = (float)direction[i];
        reference_sky(texels_of(contents), direction, sky);
        photograph(fixture, contents, sky, shown);
        double spread = r % 4 ? 0.1 : 0.6;
        for (int c = 0; c < 3; c++)
            rays[r].target[c] =
                (float)fmin(fmax(shown[c] + random_between(random, -spread, spread), 0), 1);
        results[r] = (struct RayResult){.transmittance = r % 3 ? (float)random_between(random, 0, 1)
                                                               : (float)(r % 2)};
    }
}

/* Computes the difference between photograph and sky as one of the ray's colour. */
static void difference_of(const struct fixture *fixture, const struct contents *contents,
                          const struct Ray *ray, const double sky[3], double difference[3])
{
    double shown[3], squares[2] = {0}, back[3];
    photograph(fixture, contents, sky, shown);
    for (int c = 0; c < 3; c++)
        difference[c] = (double)ray->target[c] - shown[c];
    if (!has_appearance(fixture))
        return;
    for (int c = 0; c < 3; c++) {
        double low[3], high[3], moved[3] = {sky[0], sky[1], sky[2]};
        moved[c] = sky[c] - STEP;
        photograph(fixture, contents, moved, low);
        moved[c] = sky[c] + STEP;
        photograph(fixture, contents, moved, high);
        back[c] = difference[c] * (high[c] - low[c]) / (2 * STEP);
        squares[0] += difference[c] * difference[c];
        squares[1] += back[c] * back[c];
    }
    for (int c = 0; c < 3; c++)
        difference[c] = back[c] / fmax(squares[1] / squares[0], 1);
}

/* Adds what a ray adds to the sums of the texels. */
static void add_ray(const struct fixture *fixture, const struct contents *contents,
                    const struct Ray *ray, double transmittance, double (*sums)[4])
{
    double direction[3], sky[3], difference[3];
    for (int i = 0; i < 3; i++)
        direction[i] = (double)ray->direction[i];
    if (ray->last < -1.5F || ray->target[3] < 1 || height_of(fixture, direction) < LOW)
        return;
    reference_sky(texels_of(contents), direction, sky);
    difference_of(fixture, contents, ray, sky, difference);
    double weight = reference_sky_weight(difference, transmittance, contents->state.step);
    for (int level = 0; level < SKY_LEVELS && weight > 0.001; level++) {
        double *sum = sums[reference_sky_texel(level, direction)];
        for (int c = 0; c < 3; c++)
            sum[c] += weight * fmin(fmax(sky[c] + difference[c], 0), 1);
        sum[3] += weight;
    }
}

static void check_sums(struct gpu_device *device, enum vkn_appearance kind, uint32_t step)
{
    static struct contents contents, after;
    static double expected[SKY_TEXELS][4];
    struct fixture fixture = fixture_of(device, kind);
    struct random random = {31 + step};
    struct Camera camera = {.view = 0};
    struct Ray rays[RAYS];
    struct RayResult results[RAYS];
    random_sky(&random, &contents);
    contents.state.step = step;
    memset(expected, 0, sizeof expected);
    random_rays(&fixture, &contents, &random, rays, results);
    for (uint32_t r = 0; r < RAYS; r++)
        add_ray(&fixture, &contents, &rays[r], (double)results[r].transmittance, expected);
    put_state(&fixture, &contents);
    fixture_put(&fixture, BIND_CAMERAS, &camera, sizeof camera);
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_run(&fixture, "sum_sky", (struct Push){0}, fixture_groups(&fixture, RAYS));
    fixture_get(&fixture, BIND_STATE, &after, sizeof(struct State) + sizeof after.texels);
    for (uint32_t t = 0; t < SKY_TEXELS; t++)
        for (int c = 0; c < 4; c++) {
            check_close(gradient_sum(&after.texels[t][c]), expected[t][c], 2e-3, 1, "sum",
                        4 * t + c);
            check_that(after.texels[t][c].error == contents.texels[t][c].error);
        }
    fixture_destroy(&fixture);
}

static void test_sums(struct gpu_device *device)
{
    check_sums(device, VKN_APPEARANCE_OFF, 20);
    check_sums(device, VKN_APPEARANCE_OFF, 1000);
    check_sums(device, VKN_APPEARANCE_EXPOSURE, 1000);
}

/* ---- update ---------------------------------------------------------------------------------- */

static void test_update(struct gpu_device *device)
{
    static struct contents before, after;
    struct fixture fixture = fixture_of(device, VKN_APPEARANCE_OFF);
    struct random random = {5};
    random_sky(&random, &before);
    for (uint32_t t = 0; t < SKY_TEXELS; t++) {
        double added = t % 3 ? random_between(&random, 0, t % 9 ? 4 : 40) : 0;
        for (int c = 0; c < 4; c++) {
            double share = c < 3 ? random_between(&random, 0, 1) : 1;
            before.texels[t][c].low = (uint32_t)(added * share * GRADIENT_UNITS);
        }
    }
    put_state(&fixture, &before);
    fixture_run(&fixture, "update_sky", (struct Push){0}, 7);
    fixture_get(&fixture, BIND_STATE, &after, sizeof(struct State) + sizeof after.texels);
    for (uint32_t t = 0; t < SKY_TEXELS; t++) {
        double had = (double)before.texels[t][3].error, added = gradient_sum(&before.texels[t][3]);
        for (int c = 0; c < 4; c++) {
            const struct ErrorCell *cell = &after.texels[t][c];
            double expected = (double)before.texels[t][c].error;
            if (added > 0)
                expected =
                    c == 3 ? fmin(had + added, 8)
                           : (had * expected + gradient_sum(&before.texels[t][c])) / (had + added);
            check_close(cell->error, expected, 1e-5, 1, "value", 4 * t + c);
            check_that(cell->low == 0 && cell->high == 0 && cell->rays == 0);
        }
    }
    fixture_destroy(&fixture);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* The sky is in the photograph: exposed with the colours in front of it. */
static void test_finish_pixels(struct gpu_device *device)
{
    const uint32_t per_pixel = 4;
    struct fixture fixture = fixture_of(device, VKN_APPEARANCE_OFF);
    struct random random = {17};
    struct Ray rays[RAYS] = {{.step = 0}};
    struct RayResult results[RAYS] = {{.count = 0}};
    for (uint32_t r = 0; r < RAYS; r++) {
        results[r].transmittance = (float)random_between(&random, 0, 1);
        for (int c = 0; c < 3; c++) {
            results[r].color[c] =
                (1 - results[r].transmittance) * (float)random_between(&random, 0, 0.6);
            rays[r].background[c] = (float)random_between(&random, 0, 0.6);
        }
    }
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    for (uint32_t kind = 0; kind < 2; kind++) {
        fixture.config.picture_sky = 1;
        fixture.config.picture_kind = kind;
        fixture.config.picture_appearance[0] = 0.8F;
        fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
        const struct Push push = {.a = RAYS / per_pixel, .b = per_pixel};
        fixture_run(&fixture, "finish_pixels", push, fixture_groups(&fixture, RAYS / per_pixel));
        struct Output *output = fixture_read(&fixture, BIND_OUTPUT);
        for (uint32_t p = 0; p < RAYS / per_pixel; p++) {
            const double exposure[APPEARANCE_PARAMETERS] = {(double)0.8F};
            double scene[3] = {0}, color[3], opacity = 0;
            for (uint32_t r = per_pixel * p; r < per_pixel * (p + 1); r++) {
                opacity += (1 - (double)results[r].transmittance) / per_pixel;
                for (int c = 0; c < 3; c++)
                    scene[c] += ((double)results[r].color[c] +
                                 (double)results[r].transmittance * (double)rays[r].background[c]) /
                                per_pixel;
            }
            memcpy(color, scene, sizeof color);
            if (kind)
                reference_photograph(exposure, false, (double[2]){0, 0}, scene, color);
            check_close(output[p].opacity, opacity, 1e-5, 1, "opacity", p);
            for (int c = 0; c < 3; c++)
                check_close(output[p].color[c], color[c], 2e-5, 1, "colour", p);
        }
        free(output);
    }
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_training_rays), TEST(test_view_rays),     TEST(test_sums),
    TEST(test_update),        TEST(test_finish_pixels),
};
const struct certify_part certify_sky = {"sky", tests, BASE_COUNT(tests)};
