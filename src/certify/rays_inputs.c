/* Makes cameras with numbered pixels and known depths, and compares their rays with them. */
#include "certify/rays_inputs.h"

const uint32_t rays_sizes[CAMERAS][2] = {{37, 23}, {64, 48}, {5, 9}};

struct views rays_views_create(double distance)
{
    struct views views = {0};
    struct random random = {5};
    uint32_t first = 0;
    for (uint32_t i = 0; i < CAMERAS; i++) {
        views.cameras[i] =
            random_camera(&random, rays_sizes[i][0], rays_sizes[i][1], distance, i > 0);
        views.cameras[i].first_pixel = first;
        views.cameras[i].time = 0.25f * (float)(i + 1);
        first += rays_sizes[i][0] * rays_sizes[i][1];
    }
    for (uint32_t i = 0; i < PIXELS; i++)
        views.pixels[i] = i | (i * 2654435761u & 0xffff0000u);
    return views;
}

struct fixture rays_fixture(struct gpu_device *device, const struct views *views,
                            enum vkn_background background, uint32_t aabb_scale,
                            enum vkn_contraction contraction, uint64_t seed)
{
    struct vkn_config settings = {
        .background = background,
        .scene = {.aabb_scale = aabb_scale, .contraction = contraction},
        .batch.max_rays = RAYS + 100,
        .seed = seed,
    };
    struct fixture fixture = fixture_configure(device, settings);
    struct Camera cameras[CAMERAS];
    fixture_allocate(&fixture, CAMERAS, PIXELS);
    for (uint32_t i = 0; i < CAMERAS; i++) {
        cameras[i] = setup_camera(&views->cameras[i]);
        cameras[i].view = i;
    }
    fixture_put(&fixture, BIND_CAMERAS, cameras, sizeof cameras);
    fixture_put(&fixture, BIND_PIXELS, views->pixels, sizeof views->pixels);
    return fixture;
}

struct Ray *rays_run_step(struct fixture *fixture, uint32_t step, uint32_t rays)
{
    struct State state = {.step = step, .ray_count = rays};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_poison(fixture, BIND_RAYS);
    fixture_poison(fixture, BIND_RESULTS);
    fixture_run(fixture, "generate_rays", (struct Push){.b = fixture->local_size},
                fixture_groups(fixture, rays));
    return fixture_read(fixture, BIND_RAYS);
}

uint32_t rays_pixel_of(const struct views *views, const struct Ray *ray, size_t index)
{
    uint32_t word = 0;
    for (int c = 0; c < 4; c++) {
        double byte = ray->target[c] * 255.0;
        check_close(byte, round(byte), 1e-4, 1, "byte of ray", index);
        word |= (uint32_t)round(byte) << (8 * c);
    }
    uint32_t pixel = word & 0xffffu;
    check_that(pixel < PIXELS);
    check_equal(word, views->pixels[pixel]);
    return pixel;
}

uint32_t rays_camera_of(uint32_t pixel)
{
    uint32_t camera = 0, end = rays_sizes[0][0] * rays_sizes[0][1];
    while (pixel >= end && camera + 1 < CAMERAS) {
        camera++;
        end += rays_sizes[camera][0] * rays_sizes[camera][1];
    }
    return camera;
}

void rays_check(const struct fixture *fixture, const struct views *views, const struct Ray *rays,
                uint32_t count, uint32_t *hits)
{
    for (uint32_t r = 0; r < count; r++) {
        uint32_t pixel = rays_pixel_of(views, &rays[r], r);
        const struct scene_camera *camera = &views->cameras[rays_camera_of(pixel)];
        check_equal(rays[r].view, rays_camera_of(pixel));
        check_that(rays[r].time == camera->time);
        uint32_t pixel_index = pixel - (uint32_t)camera->first_pixel;
        uint32_t x = pixel_index % camera->width, y = pixel_index / camera->width;
        check_camera_ray(&rays[r], camera, x + 0.5, y + 0.5, &fixture->config,
                         fixture_contracts(fixture), 0, 1, r);
        check_ray_position(&rays[r], camera->width, camera->height, x + 0.5, y + 0.5, r);
        hits[pixel]++;
    }
}

void rays_check_uniform(const uint32_t *hits, size_t count, const char *what)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < count; i++)
        total += hits[i];
    double mean = total / (double)count, freedom = (double)count - 1;
    for (size_t i = 0; i < count; i++)
        sum += (hits[i] - mean) * (hits[i] - mean) / mean;
    if (!(fabs(sum - freedom) < 5 * sqrt(2 * freedom) + 5))
        check_fail("%s: chi-square %.1f for %.0f degrees of freedom", what, sum, freedom);
}

void rays_check_uniform_values(const double *values, size_t count, const char *what)
{
    uint32_t bins[20] = {0};
    for (size_t i = 0; i < count; i++) {
        check_that(values[i] > -1e-3 && values[i] < 1 + 1e-3);
        bins[(size_t)fmin(fmax(values[i] * 20, 0), 19)]++;
    }
    rays_check_uniform(bins, BASE_COUNT(bins), what);
}
/* Known depths of the second camera; of the rows from 2 * 3 on of the third, whose pixels are every
 * second row and column of a view. */
static const struct Depth depths[DEPTHS] = {
    {0.5f, 0.2f, 0.7f, 0.01f},    {63.9f, 11.3f, 0.9f, 0.02f}, {20.0f, 47.5f, 1.1f, 0.03f},
    {31.2f, 47.99f, 1.3f, 0.04f}, {0.1f, 6.0f, 1.5f, 0.05f},   {7.4f, 12.9f, 1.7f, 0.06f},
    {9.99f, 23.99f, 1.9f, 0.07f}, /* the last row and column */
};
static const uint32_t depth_pixels[DEPTHS][3] = {{1, 0, 0}, {1, 63, 11}, {1, 20, 47}, {1, 31, 47},
                                                 {2, 0, 0}, {2, 3, 3},   {2, 4, 8}};

struct fixture rays_fixture_of_depths(struct gpu_device *device, struct views *views)
{
    struct vkn_config settings = {.scene.aabb_scale = 1, .batch.max_rays = RAYS + 100, .seed = 3};
    struct fixture fixture = fixture_configure(device, settings);
    struct Camera cameras[CAMERAS];
    fixture_set_constant(&fixture, SPEC_DEPTH, 1);
    fixture.config.depth_share = 0.4f;
    fixture.config.first_depth_word = CAMERAS * sizeof(struct Camera) / 4;
    fixture_allocate(&fixture, CAMERAS + DEPTHS,
                     PIXELS); /* the depths take less than as many cameras */
    fixture.config.camera_count = fixture.config.view_count = CAMERAS;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    for (uint32_t i = 0; i < CAMERAS; i++) {
        cameras[i] = setup_camera(&views->cameras[i]);
        cameras[i].view = i;
        cameras[i].first_depth = i == 2 ? 4 : 0;
        cameras[i].depth_count = i == 2 ? 3 : i == 1 ? 4 : 0;
    }
    cameras[2].first_row = 6;
    cameras[2].shrink = 2;
    char all[sizeof cameras + sizeof depths];
    memcpy(all, cameras, sizeof cameras);
    memcpy(all + sizeof cameras, depths, sizeof depths);
    fixture_put(&fixture, BIND_CAMERAS, all, sizeof all);
    fixture_put(&fixture, BIND_PIXELS, views->pixels, sizeof views->pixels);
    return fixture;
}

uint32_t rays_depth_of_ray(const struct views *views, const struct Ray *ray, size_t index)
{
    uint32_t depth = 0;
    while (depth < DEPTHS - 1 &&
           fabsf(ray->known_sigma * ray->distance_scale / depths[depth].sigma - 1) > 1e-5f)
        depth++;
    const uint32_t *at = depth_pixels[depth];
    check_close(ray->known_sigma * ray->distance_scale, depths[depth].sigma, 1e-6, 1, "sigma",
                index);
    check_close(ray->known_t * ray->distance_scale, depths[depth].depth, 1e-6, 1, "depth", index);
    check_equal(rays_pixel_of(views, ray, index),
                views->cameras[at[0]].first_pixel + at[2] * rays_sizes[at[0]][0] + at[1]);
    return depth;
}
