/* Tests generate_rays: every ray goes through a pixel of a camera, and all pixels are equally
 * likely; and given_rays, whose rays the host gives. */
#include "certify/rays.h"
#include "certify/rays_inputs.h"

#define STEPS 40u

static void test_pixels(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 1);
    uint32_t *hits = base_alloc(PIXELS, sizeof *hits), by_camera[CAMERAS] = {0};
    for (uint32_t step = 1; step <= STEPS; step++) {
        struct Ray *rays = rays_run_step(&fixture, step, RAYS);
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        rays_check(&fixture, &views, rays, RAYS, hits);
        for (uint32_t r = 0; r < RAYS; r++)
            check_fresh_result(&results[r]);
        uint32_t capacity = fixture.config.ray_capacity;
        check_poisoned(rays, RAYS * sizeof *rays / 4, capacity * sizeof *rays / 4);
        check_poisoned(results, RAYS * sizeof *results / 4, capacity * sizeof *results / 4);
        free(results);
        free(rays);
    }
    for (uint32_t i = 0; i < PIXELS; i++)
        by_camera[rays_camera_of(i)] += hits[i];
    rays_check_uniform(by_camera, CAMERAS, "cameras");
    for (uint32_t i = 0; i < CAMERAS; i++)
        rays_check_uniform(hits + views.cameras[i].first_pixel, rays_sizes[i][0] * rays_sizes[i][1],
                           "pixels");
    free(hits);
    fixture_destroy(&fixture);
}

/* Cameras inside a larger cube, or outside of one in contracted space, with steps that grow with
 * distance. */
static void check_cone(struct gpu_device *device, uint32_t aabb_scale,
                       enum vkn_contraction contraction, float far)
{
    struct views views = rays_views_create(0.8);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_BLACK, aabb_scale, contraction, 2);
    uint32_t *hits = base_alloc(PIXELS, sizeof *hits);
    check_that(fixture.config.cone_angle > 0);
    if (far > 0)
        fixture.config.far_distance = far;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    struct Ray *rays = rays_run_step(&fixture, 1, 777);
    rays_check(&fixture, &views, rays, 777, hits);
    free(rays);
    free(hits);
    fixture_destroy(&fixture);
}

static void test_cone(struct gpu_device *device)
{
    check_cone(device, 16, VKN_CONTRACTION_NONE, 0);
    check_cone(device, 1, VKN_CONTRACTION_CUBE, 0);
    check_cone(device, 16, VKN_CONTRACTION_NONE, 3);
    check_cone(device, 1, VKN_CONTRACTION_CUBE, 20);
}

/* Masked pixels get no ray while others exist; the others get equally many rays. */
static void test_ignored_pixels(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    struct random random = {7};
    bool ignored[PIXELS];
    for (uint32_t i = 0; i < PIXELS; i++) {
        ignored[i] = random_below(&random, 100) < 60;
        if (ignored[i])
            views.pixels[i] = SCENE_IGNORED;
    }
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 8);
    uint32_t *hits = base_alloc(PIXELS, sizeof *hits), counts[PIXELS], kept = 0, missed = 0;
    for (uint32_t step = 1; step <= STEPS; step++) {
        struct Ray *rays = rays_run_step(&fixture, step, RAYS);
        for (uint32_t r = 0; r < RAYS; r++) {
            if (rays[r].last == -3.0f)
                missed++;
            else
                hits[rays_pixel_of(&views, &rays[r], r)]++;
        }
        free(rays);
    }
    check_that(missed < STEPS * RAYS / 500); /* 0.6 ^ 16 is 0.0003 */
    for (uint32_t camera = 0, i = 0; camera < CAMERAS; camera++, kept = 0) {
        for (uint32_t n = 0; n < rays_sizes[camera][0] * rays_sizes[camera][1]; n++, i++) {
            check_that(!ignored[i] || hits[i] == 0);
            if (!ignored[i])
                counts[kept++] = hits[i];
        }
        rays_check_uniform(counts, kept, "pixels that count");
    }
    free(hits);
    fixture_destroy(&fixture);
}

/* Rays of a strip have positions in the whole image: the second camera's pixels are every second
 * row and column of the third view, from its row 20 on. */
static void test_strip(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 3);
    struct Camera cameras[CAMERAS];
    fixture_get(&fixture, BIND_CAMERAS, cameras, sizeof cameras);
    cameras[1].view = 2;
    cameras[1].first_row = 20;
    cameras[1].shrink = 2;
    cameras[2].width = 128;
    cameras[2].height = 116;
    fixture_put(&fixture, BIND_CAMERAS, cameras, sizeof cameras);
    fixture.config.first_view = 1;
    fixture.config.view_count = 1;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    struct Ray *rays = rays_run_step(&fixture, 1, 500);
    for (uint32_t r = 0; r < 500; r++) {
        uint32_t pixel =
            rays_pixel_of(&views, &rays[r], r) - (uint32_t)views.cameras[1].first_pixel;
        uint32_t column = pixel % 64, row = pixel / 64;
        check_ray_position(&rays[r], 128, 116, 2 * column + 1, 20 + 2 * row + 1, r);
    }
    free(rays);
    fixture_destroy(&fixture);
}

/* With a subset of the views, as when images are streamed, only their pixels get rays. */
static void test_some_views(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 9);
    uint32_t *hits = base_alloc(PIXELS, sizeof *hits), by_camera[CAMERAS] = {0};
    fixture.config.first_view = 1;
    fixture.config.view_count = 2;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    struct Ray *rays = rays_run_step(&fixture, 4, RAYS);
    rays_check(&fixture, &views, rays, RAYS, hits);
    for (uint32_t i = 0; i < PIXELS; i++)
        by_camera[rays_camera_of(i)] += hits[i];
    check_equal(by_camera[0], 0);
    rays_check_uniform(by_camera + 1, 2, "cameras");
    free(rays);
    /* Every second view: the first and the third. */
    memset(hits, 0, PIXELS * sizeof *hits);
    memset(by_camera, 0, sizeof by_camera);
    fixture.config.first_view = 0;
    fixture.config.view_stride = 2;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    rays = rays_run_step(&fixture, 5, RAYS);
    rays_check(&fixture, &views, rays, RAYS, hits);
    for (uint32_t i = 0; i < PIXELS; i++)
        by_camera[rays_camera_of(i)] += hits[i];
    check_equal(by_camera[1], 0);
    by_camera[1] = by_camera[2];
    rays_check_uniform(by_camera, 2, "every other camera");
    free(rays);
    free(hits);
    fixture_destroy(&fixture);
}

/* During the curriculum only views whose time has come get rays: the first `drawn` of the chosen[2]
 * views chosen[0], chosen[0] + chosen[1], ... All views have the times 0.25, 0.5 and 0.75. */
static void check_curriculum(struct fixture *fixture, const struct views *views, uint32_t step,
                             const uint32_t chosen[3], uint32_t drawn)
{
    uint32_t *hits = base_alloc(PIXELS, sizeof *hits), by_camera[CAMERAS] = {0}, count = 0;
    fixture->config.first_view = chosen[0];
    fixture->config.view_stride = chosen[1];
    fixture->config.view_count = chosen[2];
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    struct Ray *rays = rays_run_step(fixture, step, RAYS);
    for (uint32_t r = 0; r < RAYS; r++)
        check_that(rays[r].last != -3.0f);
    rays_check(fixture, views, rays, RAYS, hits);
    for (uint32_t i = 0; i < PIXELS; i++)
        by_camera[rays_camera_of(i)] += hits[i];
    for (uint32_t n = 0; n < drawn; n++) {
        by_camera[n] = by_camera[chosen[0] + n * chosen[1]];
        count += by_camera[n];
    }
    check_equal(count, RAYS);
    if (drawn > 1)
        rays_check_uniform(by_camera, drawn, "cameras whose time has come");
    free(rays);
    free(hits);
}

static void test_curriculum(struct gpu_device *device)
{
    static const uint32_t all[] = {0, 1, 3}, later[] = {1, 1, 2}, every_other[] = {0, 2, 2};
    struct views views = rays_views_create(1.6);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 9);
    fixture.config.curriculum = 0.5f;
    fixture.config.total_steps = 1000;
    fixture.config.first_time = 0.25f;
    fixture.config.last_time = 0.75f;
    check_curriculum(&fixture, &views, 0, all, 1);
    check_curriculum(&fixture, &views, 200, all, 1); /* 0.48 */
    check_curriculum(&fixture, &views, 250, all, 2); /* 0.525 */
    check_curriculum(&fixture, &views, 499, all, 2);
    check_curriculum(&fixture, &views, 500, all, 3);
    check_curriculum(&fixture, &views, 499, every_other, 1);
    check_curriculum(&fixture, &views, 500, every_other, 2);
    check_curriculum(&fixture, &views, 250, later, 1);
    check_curriculum(&fixture, &views, 0, later, 1); /* none has come: the earliest view */
    /* Without a step limit the learning rate's schedule sets the pace. */
    fixture.config.total_steps = UINT32_MAX;
    fixture.config.decay_start = 2000;
    check_curriculum(&fixture, &views, 440, all, 1); /* 0.498 */
    check_curriculum(&fixture, &views, 450, all, 2); /* 0.501 */
    fixture_destroy(&fixture);
}

/* Half of the rays begin at `first` from their cameras, the others at near_distance; `jitter` is
 * the most by which a march begins later. */
static void check_starts(struct fixture *fixture, uint32_t step, double first, double jitter)
{
    struct reference_stepping stepping = reference_stepping(&fixture->config, false);
    double near = reference_steps_to(&stepping, fixture->config.near_distance);
    double far = reference_steps_to(&stepping, first), slack = 1e-3;
    uint32_t counts[2] = {0};
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    struct Ray *rays = rays_run_step(fixture, step, RAYS);
    for (uint32_t r = 0; r < RAYS; r++) {
        bool is_far = rays[r].step > near + jitter + slack;
        double from = is_far ? far : near;
        if (!(rays[r].step > from - slack && rays[r].step < from + jitter + slack))
            check_fail("step %u, ray %u begins at %.7g, not %.7g", step, r, rays[r].step, from);
        counts[is_far]++;
    }
    if (far > near + jitter)
        rays_check_uniform(counts, 2, "rays that begin further away");
    else
        check_equal(counts[0], RAYS);
    free(rays);
}

/* Cameras inside a cube of side 16: rays begin neither at its faces nor beyond them. */
static void test_near_start(struct gpu_device *device)
{
    struct views views = rays_views_create(0.8);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 16, VKN_CONTRACTION_NONE, 9);
    fixture.config.near_distance = 0.25f;
    fixture.config.near_start = 1.25f;
    fixture.config.near_steps = 100;
    fixture.config.total_steps = UINT32_MAX;
    check_starts(&fixture, 0, 1.25, 1);
    check_starts(&fixture, 40, 0.85, 1);
    check_starts(&fixture, 100, 0.25, 1);
    check_starts(&fixture, 1000, 0.25, 1);
    fixture.config.ray_samples = 64; /* not a march: bins begin where the ray does */
    check_starts(&fixture, 40, 0.85, 0);
    fixture.config.total_steps = 125; /* 40 % of them are 50 */
    check_starts(&fixture, 40, 0.45, 0);
    check_starts(&fixture, 50, 0.25, 0);
    fixture.config.total_steps = UINT32_MAX;
    fixture.config.time_schedule = 1;
    const struct Control control = {.time_progress = 0.3f};
    fixture_put(&fixture, BIND_CONTROL, &control, sizeof control);
    check_starts(&fixture, 40, 0.5, 0);
    fixture_destroy(&fixture);
}

/* If all pixels are masked, or none is in the lens's reach, no ray is in the loss. */
static void test_nothing_counts(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    for (int lens = 0; lens < 2; lens++) {
        for (uint32_t i = 0; i < PIXELS && lens == 0; i++)
            views.pixels[i] = SCENE_IGNORED;
        for (uint32_t i = 0; i < CAMERAS && lens == 1; i++) {
            views.cameras[i].k1 = -0.3f; /* reaches 0.7 */
            views.cameras[i].center_x = -views.cameras[i].focal_x;
        }
        struct fixture fixture =
            rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 8);
        struct Ray *rays = rays_run_step(&fixture, 1, 640);
        for (uint32_t r = 0; r < 640; r++)
            check_that(rays[r].last == -3.0f);
        free(rays);
        fixture_destroy(&fixture);
        views = rays_views_create(1.6);
    }
}

static void test_backgrounds(struct gpu_device *device)
{
    static const enum vkn_background kinds[] = {VKN_BACKGROUND_WHITE, VKN_BACKGROUND_BLACK};
    struct views views = rays_views_create(1.6);
    double values[RAYS];
    for (size_t n = 0; n < BASE_COUNT(kinds); n++) {
        struct fixture fixture = rays_fixture(device, &views, kinds[n], 1, VKN_CONTRACTION_NONE, 3);
        struct Ray *rays = rays_run_step(&fixture, 9, 500);
        for (uint32_t r = 0; r < 500; r++)
            for (int c = 0; c < 3; c++)
                check_that(rays[r].background[c] ==
                           (kinds[n] == VKN_BACKGROUND_WHITE ? 1.0f : 0.0f));
        free(rays);
        fixture_destroy(&fixture);
    }
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 3);
    struct Ray *rays = rays_run_step(&fixture, 9, RAYS);
    for (int c = 0; c < 3; c++) {
        for (uint32_t r = 0; r < RAYS; r++)
            values[r] = rays[r].background[c];
        rays_check_uniform_values(values, RAYS, "background");
    }
    free(rays);
    fixture_destroy(&fixture);
}

/* The random start within a ray's first step is uniform, and independent of the background. */
static void test_jitter(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 4);
    struct reference_stepping stepping = reference_stepping(&fixture.config, false);
    struct Ray *rays = rays_run_step(&fixture, 3, RAYS);
    double values[RAYS], matmul[3] = {0};
    size_t count = 0;
    for (uint32_t r = 0; r < RAYS; r++) {
        double origin[3], direction[3], span[2];
        for (int i = 0; i < 3; i++) {
            origin[i] = rays[r].origin[i];
            direction[i] = rays[r].direction[i];
        }
        if (rays[r].last < 0 || !reference_cube(origin, direction, 1, span))
            continue;
        values[count] = rays[r].step - reference_steps_to(&stepping, span[0]);
        for (int c = 0; c < 3; c++)
            matmul[c] += 12 * (values[count] - 0.5) * (rays[r].background[c] - 0.5);
        count++;
    }
    check_that(count > 1000);
    rays_check_uniform_values(values, count, "jitter");
    for (int c = 0; c < 3; c++) /* a correlation's standard deviation is 1 / sqrt(count) */
        check_that(fabs(matmul[c] / (double)count) < 5 / sqrt((double)count));
    free(rays);
    fixture_destroy(&fixture);
}

/* The same step gives the same rays, another step or seed gives others. */
static void test_repeats(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    struct fixture fixture =
        rays_fixture(device, &views, VKN_BACKGROUND_RANDOM, 1, VKN_CONTRACTION_NONE, 6);
    struct Ray *rays = rays_run_step(&fixture, 5, 640), *again = rays_run_step(&fixture, 5, 640);
    struct Ray *next = rays_run_step(&fixture, 6, 640);
    fixture.config.seed++;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    struct Ray *seeded = rays_run_step(&fixture, 5, 640);
    uint32_t same_next = 0, same_seeded = 0;
    check_memory(rays, again, 640 * sizeof *rays);
    for (uint32_t r = 0; r < 640; r++) {
        uint32_t pixel = rays_pixel_of(&views, &rays[r], r);
        same_next += pixel == rays_pixel_of(&views, &next[r], r);
        same_seeded += pixel == rays_pixel_of(&views, &seeded[r], r);
    }
    check_that(same_next < 64 && same_seeded < 64);
    free(rays);
    free(again);
    free(next);
    free(seeded);
    fixture_destroy(&fixture);
}

/* Rays go through the pixels of known depths, which are equally likely in a view, with the given
 * probability; views without known depths have other rays; masked pixels have none. */
static void test_known_depths(struct gpu_device *device)
{
    struct views views = rays_views_create(1.6);
    const uint32_t hidden = (uint32_t)views.cameras[2].first_pixel + 3 * rays_sizes[2][0] + 3;
    for (int masked = 0; masked < 2; masked++) {
        if (masked)
            views.pixels[hidden] = SCENE_IGNORED;
        struct fixture fixture = rays_fixture_of_depths(device, &views);
        uint32_t hits[DEPTHS] = {0}, known = 0;
        for (uint32_t step = 1; step <= STEPS; step++) {
            struct Ray *rays = rays_run_step(&fixture, step, RAYS);
            for (uint32_t r = 0; r < RAYS; r++) {
                if (rays[r].last == -3.0f || rays[r].known_sigma == 0)
                    continue;
                known++;
                hits[rays_depth_of_ray(&views, &rays[r], r)]++;
            }
            free(rays);
        }
        /* The views have 0, 4 and 3 depths. A masked pixel is drawn again, of any view. */
        const double each = 1.0 / 3 / MANY_DEPTHS;
        double share = masked ? 0.4 * 6 * each / (1 - 0.4 * each) : 0.4 * 7 * each;
        check_statistic(known / (double)(STEPS * RAYS), share, 0.002, 1, "share", 0);
        rays_check_uniform(hits, 4, "depths of the second view");
        check_that((hits[5] == 0) == masked);
        hits[5] = hits[6];
        rays_check_uniform(hits + 4, 3, "depths of the third view");
        fixture_destroy(&fixture);
    }
}

/* ---- given rays ------------------------------------------------------------------------------ */

/* Makes rays from random origins and directions, between random distances or without limits. */
static void make_given_rays(const struct Config *config, struct Ray *rays, uint32_t count)
{
    struct random random = {81};
    for (uint32_t r = 0; r < count; r++) {
        double direction[3];
        random_direction(&random, direction);
        memset(&rays[r], 0xa5, sizeof rays[r]);
        for (int i = 0; i < 3; i++) {
            rays[r].origin[i] = (float)random_between(&random, -2, 3);
            rays[r].direction[i] = (float)direction[i];
        }
        rays[r].step = r % 3 ? (float)random_between(&random, 0, 2) : config->near_distance;
        rays[r].last =
            r % 4 ? rays[r].step + (float)random_between(&random, 0, 3) : config->far_distance;
        rays[r].time = (float)r / (float)count;
    }
}

static void check_given_rays(struct gpu_device *device, enum vkn_contraction contraction)
{
    enum { COUNT = 700 };
    static struct Ray given[COUNT];
    struct fixture fixture = fixture_configure(
        device, (struct vkn_config){.scene = {.aabb_scale = 2, .contraction = contraction},
                                    .batch.max_rays = 1000});
    make_given_rays(&fixture.config, given, COUNT);
    fixture_allocate(&fixture, 1, 1);
    fixture_poison(&fixture, BIND_RAYS);
    fixture_poison(&fixture, BIND_RESULTS);
    check_ok(gpu_upload(device, &fixture.buffers[BIND_RAYS], 0, given, sizeof given));
    fixture_run(&fixture, "given_rays", (struct Push){.c = COUNT}, fixture_groups(&fixture, COUNT));
    struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
    struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
    for (uint32_t r = 0; r < COUNT; r++) {
        const struct Ray *ray = &rays[r];
        const double limits[2] = {given[r].step, given[r].last};
        double origin[3], direction[3];
        for (int i = 0; i < 3; i++) {
            origin[i] = given[r].origin[i];
            direction[i] = given[r].direction[i];
        }
        check_ray_span(ray, origin, direction, limits, &fixture.config, fixture_contracts(&fixture),
                       0.5, 0.5, r);
        struct Ray kept = given[r];
        kept.step = ray->step;
        kept.last = ray->last;
        check_memory(ray, &kept, sizeof kept);
        check_fresh_result(&results[r]);
    }
    check_poisoned(rays, COUNT * sizeof *rays / 4, fixture.config.ray_capacity * sizeof *rays / 4);
    free(rays);
    free(results);
    fixture_destroy(&fixture);
}

static void test_given_rays(struct gpu_device *device)
{
    check_given_rays(device, VKN_CONTRACTION_NONE);
    check_given_rays(device, VKN_CONTRACTION_CUBE);
}

static const struct certify_test tests[] = {
    TEST(test_pixels),     TEST(test_cone),       TEST(test_backgrounds),
    TEST(test_jitter),     TEST(test_repeats),    TEST(test_ignored_pixels),
    TEST(test_some_views), TEST(test_strip),      TEST(test_nothing_counts),
    TEST(test_curriculum), TEST(test_near_start), TEST(test_known_depths),
    TEST(test_given_rays),
};
const struct certify_part certify_rays = {"rays", tests, BASE_COUNT(tests)};
