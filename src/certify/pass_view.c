/* Tests generate_view_rays and random_view_rays, which make a picture's rays pixel by pixel or at
 * random, and finish_pixels and finish_normals, which turn rays into pixels. */
#include <float.h>

#include "certify/rays.h"

/* ---- rays ---------------------------------------------------------------------------------- */

/* Checks rays `first` to `first + count` of the second camera, counted pixel by pixel, with `edge`
 * squared rays per pixel, row by row within a pixel. */
static void check_view(struct fixture *fixture, const struct scene_camera *camera, uint32_t first,
                       uint32_t count, uint32_t log2_edge)
{
    uint32_t edge = 1u << log2_edge, capacity = fixture->config.ray_capacity;
    struct Push push = {.a = 1, .b = first, .c = count, .d = log2_edge};
    fixture_poison(fixture, BIND_RAYS);
    fixture_poison(fixture, BIND_RESULTS);
    fixture_run(fixture, "generate_view_rays", push, fixture_groups(fixture, count));
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t pixel = (first + r) / (edge * edge), inside = (first + r) % (edge * edge);
        uint32_t column = pixel % camera->width, row = pixel / camera->width;
        uint32_t right = inside % edge, down = inside / edge;
        double x = column + (right + 0.5) / edge, y = row + (down + 0.5) / edge;
        check_camera_ray(&rays[r], camera, x, y, &fixture->config, fixture_contracts(fixture), 0.5,
                         0.5, r);
        check_ray_position(&rays[r], camera->width, camera->height, x, y, r);
        check_that(rays[r].view == 1 && rays[r].time == camera->time);
        check_fresh_result(&results[r]);
        check_memory(rays[r].background, fixture->config.render_background, 12);
    }
    check_poisoned(rays, count * sizeof *rays / 4, capacity * sizeof *rays / 4);
    check_poisoned(results, count * sizeof *results / 4, capacity * sizeof *results / 4);
    free(rays);
    free(results);
}

/* Checks batch number `batch` of rays through distinct random positions of the second camera's
 * picture. */
static void check_scattered(struct fixture *fixture, const struct scene_camera *camera,
                            uint32_t batch)
{
    const uint32_t count = 500;
    uint32_t quarters[4] = {0};
    fixture_poison(fixture, BIND_RAYS);
    fixture_run(fixture, "random_view_rays", (struct Push){.a = 1, .b = batch, .c = count},
                fixture_groups(fixture, count));
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    for (uint32_t r = 0; r < count; r++) {
        double place[3];
        reference_random_unit(fixture->config.seed, batch, r, 1, place);
        check_camera_ray(&rays[r], camera, place[0] * camera->width, place[1] * camera->height,
                         &fixture->config, fixture_contracts(fixture), 0.5, 0.5, r);
        quarters[(place[0] > 0.5) + 2 * (place[1] > 0.5)]++;
    }
    for (int i = 0; i < 4; i++)
        check_that(quarters[i] > 80); /* of 125 */
    check_poisoned(rays, count * sizeof *rays / 4, fixture->config.ray_capacity * sizeof *rays / 4);
    free(rays);
}

static void test_view_rays(struct gpu_device *device)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .batch.max_rays = 1000};
    struct fixture fixture = fixture_configure(device, settings);
    struct random random = {80};
    struct scene_camera views[2] = {random_camera(&random, 8, 8, 1, false),
                                    random_camera(&random, 31, 19, 1.5, true)};
    views[1].time = 0.75f;
    const struct Camera cameras[2] = {setup_camera(&views[0]), setup_camera(&views[1])};
    const float background[3] = {0.5f, 1, 0};
    memcpy(fixture.config.render_background, background, sizeof background);
    fixture_allocate(&fixture, 2, 1);
    fixture_put(&fixture, BIND_CAMERAS, cameras, sizeof cameras);
    check_view(&fixture, &views[1], 0, 31 * 19, 0);
    check_view(&fixture, &views[1], 100, 333, 0);
    check_view(&fixture, &views[1], 4 * 31, 4 * 100, 1);
    check_view(&fixture, &views[1], 16 * 557, 16 * 32, 2); /* the picture's last rays */
    check_scattered(&fixture, &views[1], 0);
    check_scattered(&fixture, &views[1], 7);
    fixture_destroy(&fixture);
}

/* ---- crop box ------------------------------------------------------------------------------ */

/* Clips a span to the crop box, by slabs; a ray in a face is inside. False if nothing is left. */
static bool clip(const double origin[3], const double direction[3], const struct Config *config,
                 double span[2])
{
    for (int k = 0; k < 3; k++) {
        double from = 0, way = 0;
        for (int i = 0; i < 3; i++) {
            from += origin[i] * (double)config->crop_axes[3 * k + i];
            way += direction[i] * (double)config->crop_axes[3 * k + i];
        }
        double low = config->crop_low[k] - from, high = config->crop_high[k] - from;
        if (fabs(way) < 1e-12) {
            if (low > 0 || high < 0)
                return false;
            continue;
        }
        span[0] = fmax(span[0], fmin(low / way, high / way));
        span[1] = fmin(span[1], fmax(low / way, high / way));
    }
    return span[1] > span[0];
}

/* The clipped ray has those samples of the whole ray that are inside the box. */
static bool check_clipped(const struct fixture *fixture, const struct Ray *whole,
                          const struct Ray *ray, size_t index)
{
    struct reference_stepping stepping =
        reference_stepping(&fixture->config, fixture_contracts(fixture));
    double origin[3], direction[3], cube[2],
        span[2] = {fixture->config.near_distance, fixture->config.far_distance};
    for (int i = 0; i < 3; i++) {
        origin[i] = whole->origin[i];
        direction[i] = whole->direction[i];
    }
    bool meets = true;
    if (!fixture_contracts(fixture)) {
        meets = reference_cube(origin, direction, fixture->config.aabb_scale, cube);
        span[0] = fmax(span[0], cube[0]);
        span[1] = fmin(span[1], cube[1]);
    }
    meets = meets && span[1] > span[0] && clip(origin, direction, &fixture->config, span);
    if (fabs(span[1] - span[0]) < 1e-4) /* rounding decides */
        return false;
    check_equal(ray->last >= 0, meets);
    if (!meets)
        return false;
    double first = reference_steps_to(&stepping, span[0]),
           last = reference_steps_to(&stepping, span[1]);
    double slack = 3e-5 * (1 + last), skipped = (double)ray->step - (double)whole->step;
    check_close(ray->last, last, 1, slack, "last step of ray", index);
    check_close(skipped, round(skipped), 1, slack, "steps left out of ray", index);
    check_that(skipped >= 0 && ray->step > first - slack);
    if (skipped > 0.5)
        check_that(ray->step < first + 1 + slack);
    return skipped > 0.5 || ray->last < whole->last - slack;
}

static struct Ray *view_rays(struct fixture *fixture, uint32_t count)
{
    struct Push push = {.c = count};
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_run(fixture, "generate_view_rays", push, fixture_groups(fixture, count));
    return fixture_read(fixture, BIND_RAYS);
}

/* Sets the box's axes: those of the scene, or rotated by random angles. */
static void set_axes(struct fixture *fixture, struct random *random, bool are_rotated)
{
    struct scene_box box = {0};
    double axes[3][3];
    for (int i = 0; i < 3 && are_rotated; i++)
        box.rotation[i] = random_between(random, -180, 180);
    scene_box_axes(&box, axes);
    for (int i = 0; i < 9; i++)
        fixture->config.crop_axes[i] = (float)axes[i / 3][i % 3];
}

/* Checks boxes around, next to, behind and across the cameras' views; cameras may be inside. */
static void check_boxes(struct fixture *fixture, const struct scene_camera *camera,
                        struct random *random)
{
    const uint32_t count = camera->width * camera->height;
    const struct Camera shown = setup_camera(camera);
    uint32_t clipped = 0;
    fixture_put(fixture, BIND_CAMERAS, &shown, sizeof shown);
    for (int i = 0; i < 3; i++) {
        fixture->config.crop_low[i] = -FLT_MAX;
        fixture->config.crop_high[i] = FLT_MAX;
    }
    set_axes(fixture, random, false);
    struct Ray *whole = view_rays(fixture, count);
    for (int box = 0; box < 12; box++) {
        set_axes(fixture, random, box >= 6);
        for (int i = 0; i < 3; i++) {
            fixture->config.crop_low[i] = (float)random_between(random, -1.5, 0.6);
            fixture->config.crop_high[i] =
                fixture->config.crop_low[i] + (float)random_between(random, 0.05, 2);
            if (box == 0) { /* camera in a corner: rays begin on three faces */
                fixture->config.crop_low[i] = camera->pose[4 * i + 3];
                fixture->config.crop_high[i] = camera->pose[4 * i + 3] + 1;
            }
        }
        struct Ray *rays = view_rays(fixture, count);
        for (uint32_t r = 0; r < count; r++)
            clipped += check_clipped(fixture, &whole[r], &rays[r], r);
        free(rays);
    }
    check_that(clipped > count);
    /* Everything is inside: all bits are equal. */
    for (int i = 0; i < 3; i++) {
        fixture->config.crop_low[i] = -1e5f;
        fixture->config.crop_high[i] = 1e5f;
    }
    struct Ray *rays = view_rays(fixture, count);
    check_memory(rays, whole, count * sizeof *rays);
    free(rays);
    free(whole);
}

static void test_cropped_rays(struct gpu_device *device)
{
    for (int contracted = 0; contracted < 2; contracted++) {
        struct vkn_config settings = {.scene.aabb_scale = 4, .batch.max_rays = 640};
        settings.scene.contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE;
        struct fixture fixture = fixture_configure(device, settings);
        struct random random = {81};
        struct scene_camera views[3] = {random_camera(&random, 31, 19, 1.5, true),
                                        random_camera(&random, 21, 30, 0.4, false)};
        /* The rays of the middle column lie in a face of the first box. */
        views[2] = (struct scene_camera){.width = 21,
                                         .height = 21,
                                         .focal_x = 10,
                                         .focal_y = 10,
                                         .center_x = 10.5f,
                                         .center_y = 10.5f,
                                         .pose = {1, 0, 0, 0.25f, 0, 1, 0, 0.5f, 0, 0, 1, 2}};
        fixture_allocate(&fixture, 1, 1);
        for (int i = 0; i < 3; i++)
            check_boxes(&fixture, &views[i], &random);
        fixture_destroy(&fixture);
    }
}

/* ---- normals of samples -------------------------------------------------------------------- */

#define SAMPLES 200u

/* Computes minus the gradient of the density's logarithm by differences between corners of a
 * tetrahedron (Quilez, Normals for an SDF) as large as the sample's width. */
static void falling_gradient(const struct reference_field *field, const double position[3],
                             double reach, double normal[3])
{
    static const int corners[4][3] = {{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
    for (int c = 0; c < 3; c++)
        normal[c] = 0;
    for (int k = 0; k < 4; k++) {
        double corner[3];
        for (int c = 0; c < 3; c++)
            corner[c] = position[c] + reach * corners[k][c];
        double logarithm = reference_log_density(field, corner);
        for (int c = 0; c < 3; c++)
            normal[c] -= corners[k][c] * logarithm / (4 * reach);
    }
}

struct probes {
    struct Ray rays[SAMPLES];
    struct Sample samples[SAMPLES];
    float field[SAMPLES][4];
};

/* One sample per ray, with optical thicknesses around 1e-3, below which no normal is needed. */
static struct probes random_probes(struct random *random)
{
    struct probes probes = {0};
    for (uint32_t s = 0; s < SAMPLES; s++) {
        double direction[3];
        random_direction(random, direction);
        const float t = (float)random_between(random, 0.1, 1.2),
                    width = (float)exp(random_between(random, log(1e-3), log(0.1)));
        probes.samples[s] = (struct Sample){t, width, s};
        for (int c = 0; c < 3; c++) {
            probes.rays[s].origin[c] = (float)random_between(random, -0.2, 1.2);
            probes.rays[s].direction[c] = (float)direction[c];
        }
        probes.field[s][3] = (float)(pow(10, random_between(random, -5, -1)) / width);
    }
    return probes;
}

/* Returns whether the sample needs a normal. */
static bool check_sample_normal(const struct reference_field *field, const struct probes *probes,
                                uint32_t s, const float normal[3])
{
    double position[3], exact[3], size = 0, width = probes->samples[s].width;
    bool needed = probes->field[s][3] * width >= 1e-3;
    for (int c = 0; c < 3; c++)
        position[c] =
            probes->rays[s].origin[c] + (double)probes->samples[s].t * probes->rays[s].direction[c];
    falling_gradient(field, position, width, exact);
    for (int c = 0; c < 3; c++)
        size += fabs(exact[c]);
    for (int c = 0; c < 3; c++)
        check_close(normal[c], needed ? exact[c] : 0, 2e-3, needed ? size + 0.1 : 0,
                    "normal of sample", s);
    return needed;
}

static void check_sample_normals(struct gpu_device *device, enum vkn_density_activation activation)
{
    struct vkn_config settings = {.scene.aabb_scale = 4,
                                  .grid.levels = 3,
                                  .mlp = {.density_width = 16,
                                          .density_layers = 1,
                                          .geometry = 16,
                                          .color_width = 16,
                                          .color_layers = 1,
                                          .sh_degree = 1,
                                          .density_activation = activation},
                                  .batch.max_rays = SAMPLES};
    struct fixture fixture = fixture_configure(device, settings);
    struct random random = {90};
    struct probes probes = random_probes(&random);
    float *params = random_floats(&random, fixture.model.param_count, -1, 1);
    struct reference_field field = reference_field(&fixture.settings, &fixture.model, params);
    const struct State counts = {.sample_count = SAMPLES};
    uint32_t needed = 0;
    fixture_allocate(&fixture, 1, 1);
    fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
    fixture_put(&fixture, BIND_PARAMS, params, 4ull * fixture.model.param_count);
    fixture_put(&fixture, BIND_RAYS, probes.rays, sizeof probes.rays);
    fixture_put(&fixture, BIND_SAMPLES, probes.samples, sizeof probes.samples);
    fixture_put(&fixture, BIND_FIELD, probes.field, sizeof probes.field);
    fixture_run(&fixture, "sample_normals", (struct Push){0}, 2);
    float(*normals)[4] = fixture_read(&fixture, BIND_NORMALS);
    for (uint32_t s = 0; s < SAMPLES; s++)
        needed += check_sample_normal(&field, &probes, s, normals[s]);
    check_that(needed > 50 && needed < 150);
    free(normals);
    free(params);
    reference_field_destroy(&field);
    fixture_destroy(&fixture);
}

/* Narrow and wide samples at transparent and opaque positions. */
static void test_sample_normals(struct gpu_device *device)
{
    check_sample_normals(device, VKN_DENSITY_EXP);
    check_sample_normals(device, VKN_DENSITY_SOFTPLUS);
    check_sample_normals(device, VKN_DENSITY_RELU);
}

/* ---- pixels -------------------------------------------------------------------------------- */

static void check_pixel(const struct RayResult *results, const struct Ray *rays,
                        const float background[3], uint32_t pixel, uint32_t per_pixel,
                        const struct Output *device)
{
    double color[3] = {0}, opacity = 0, depth = 0;
    for (uint32_t i = pixel * per_pixel; i < (pixel + 1) * per_pixel; i++) {
        const struct RayResult *result = &results[i];
        for (int c = 0; c < 3; c++)
            color[c] += (result->color[c] + result->transmittance * background[c]) / per_pixel;
        opacity += (1.0 - result->transmittance) / per_pixel;
        depth += (double)result->depth * rays[i].distance_scale / per_pixel;
    }
    for (int c = 0; c < 3; c++) {
        double value = fmin(fmax(color[c], 0), 1);
        check_close(device->color[c], value, 1e-6, 1, "colour of pixel", pixel);
        check_close(device->packed >> (8 * c) & 255u, 255 * value, 0.501, 1, "byte of pixel",
                    pixel);
    }
    check_equal(device->packed >> 24, 255);
    check_close(device->opacity, opacity, 1e-6, 1, "opacity of pixel", pixel);
    check_close(device->depth, opacity > 0 ? depth / opacity : 0, 1e-5, 3, "depth of pixel", pixel);
}

static void unit_or_zero(double v[3])
{
    double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int i = 0; i < 3 && length > 0; i++)
        v[i] /= length;
}

/* Rays are weighted by opacity, and normals face the camera. */
static void check_normal(const struct RayResult *results, const struct Ray *rays,
                         const float (*sums)[4], uint32_t pixel, uint32_t per_pixel,
                         const struct Output *device)
{
    double normal[3] = {0};
    for (uint32_t i = pixel * per_pixel; i < (pixel + 1) * per_pixel; i++) {
        double unit[3] = {sums[i][0], sums[i][1], sums[i][2]}, along = 0;
        unit_or_zero(unit);
        for (int c = 0; c < 3; c++)
            along += unit[c] * rays[i].direction[c];
        for (int c = 0; c < 3; c++)
            unit[c] -= fmax(along, 0) * rays[i].direction[c];
        unit_or_zero(unit);
        for (int c = 0; c < 3; c++)
            normal[c] += (1.0 - results[i].transmittance) * unit[c];
    }
    unit_or_zero(normal);
    for (int c = 0; c < 3; c++)
        check_close(device->normal[c], normal[c], 1e-4, 1, "normal of pixel", pixel);
}

#define RAYS 304u

static void random_results(struct RayResult *results, struct Ray *rays, float (*sums)[4])
{
    struct random random = {71};
    for (uint32_t r = 0; r < RAYS; r++) {
        double direction[3];
        /* Includes uncovered pixels, and colours that must be clamped. */
        results[r].transmittance = r / 16 % 3 == 0 ? 1 : (float)random_between(&random, 0, 1);
        float opacity = 1 - results[r].transmittance;
        for (int c = 0; c < 3; c++)
            results[r].color[c] = opacity * (float)random_between(&random, 0, 1.3);
        results[r].depth = opacity * (float)random_between(&random, 0.5, 3);
        rays[r].distance_scale = (float)random_between(&random, 0.7, 1);
        float scale = (float)pow(10, random_between(&random, -12, 0)); /* of blurred surfaces */
        random_direction(&random, direction);
        for (int c = 0; c < 3; c++) {
            rays[r].direction[c] = (float)direction[c];
            sums[r][c] = opacity * scale * (float)random_between(&random, -500, 500);
        }
    }
}

static void check_pixels(struct fixture *fixture, const struct RayResult *results,
                         const struct Ray *rays, const float (*sums)[4])
{
    for (uint32_t per_pixel = 1; per_pixel <= 16; per_pixel *= 4) {
        uint32_t pixels = RAYS / per_pixel, first = per_pixel == 1 ? 0 : 11;
        struct Push push = {.a = pixels, .b = per_pixel, .c = first};
        fixture_poison(fixture, BIND_OUTPUT);
        fixture_run(fixture, sums ? "finish_normals" : "finish_pixels", push,
                    fixture_groups(fixture, pixels) + 1);
        struct Output *output = fixture_read(fixture, BIND_OUTPUT);
        for (uint32_t i = 0; i < pixels; i++) {
            check_pixel(results, rays, fixture->config.render_background, i, per_pixel,
                        &output[first + i]);
            if (sums)
                check_normal(results, rays, sums, i, per_pixel, &output[first + i]);
            else
                check_memory(output[first + i].normal, ((float[3]){0, 0, 0}), 12);
        }
        size_t words = sizeof *output / 4;
        check_poisoned(output, 0, first * words);
        check_poisoned(output, (first + pixels) * words, fixture->output_capacity * words);
        free(output);
    }
}

static void test_finish_pixels(struct gpu_device *device)
{
    struct fixture fixture = fixture_configure(device, (struct vkn_config){.batch.max_rays = 320});
    const float background[3] = {1, 0.25f, 0};
    struct RayResult results[RAYS] = {{{0}, 0, 0, 0, 0, 0}};
    struct Ray rays[RAYS] = {{.step = 0}};
    float sums[RAYS][4] = {{0}};
    random_results(results, rays, sums);
    for (uint32_t r = 0; r < RAYS; r++)
        memcpy(rays[r].background, background, sizeof background);
    memcpy(fixture.config.render_background, background, sizeof background);
    fixture_allocate(&fixture, 1, 1);
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    check_ok(gpu_upload(fixture.device, &fixture.buffers[BIND_NORMALS],
                        16ull * fixture.config.sample_capacity, sums, sizeof sums));
    check_pixels(&fixture, results, rays, NULL);
    check_pixels(&fixture, results, rays, (const float(*)[4])sums);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_view_rays),
    TEST(test_cropped_rays),
    TEST(test_sample_normals),
    TEST(test_finish_pixels),
};
const struct certify_part certify_view = {"view", tests, BASE_COUNT(tests)};
