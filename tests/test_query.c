/* Tests the field at points against the double-precision reference, and colours along rays against
 * pictures of the same rays, for each kind of field, sampling and space. */
#include "step_fixture.h"

#include <math.h>

#include <vknerf/vknerf.h>

#include "certify/fixture.h"
#include "reference/reference.h"

#define POINTS 200u
#define WIDTH  40u
#define HEIGHT 30u /* more rays than a batch of a CPU device */
#define RAYS   (WIDTH * HEIGHT)

static struct vkn_config plain(void)
{
    struct vkn_config config = tiny_config(true);
    config.precision = VKN_PRECISION_FP32;
    config.scene.fixed_transform = VKN_SWITCH_ON;
    config.scene.offset[0] = 0.55;
    config.scene.offset[1] = config.scene.offset[2] = 0.5;
    config.scene.scale = 0.4;
    config.scene.aabb_scale = 1;
    return config;
}

static struct vkn_config contracted(void)
{
    struct vkn_config config = plain();
    config.scene.contraction = VKN_CONTRACTION_CUBE;
    config.scene.scale = 0.2;
    return config;
}

static struct vkn_config dynamic(void)
{
    struct vkn_config config = plain();
    config.model = VKN_MODEL_DYNAMIC;
    return config;
}

static struct vkn_config hierarchical(void)
{
    struct vkn_config config = plain();
    config.model = VKN_MODEL_LAYERED;
    config.mlp.density_width = config.mlp.color_width = 32;
    config.mlp.geometry = 32;
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 16;
    config.march.fine_samples = 16;
    config.batch.samples = 0;
    config.batch.max_rays = 64;
    return config;
}

static struct vkn_config proposed(void)
{
    struct vkn_config config = plain();
    tiny_propose(&config);
    config.batch.samples = 0;
    return config;
}

static const struct kind {
    const char *name;
    struct vkn_config (*config)(void);
} kinds[] = {{"plain", plain},
             {"contracted", contracted},
             {"dynamic", dynamic},
             {"hierarchical", hierarchical},
             {"proposal", proposed}};

/* ---- points ---------------------------------------------------------------------------------- */

struct points {
    double positions[POINTS][3], directions[POINTS][3], times[POINTS];
    float densities[POINTS], colors[POINTS][3];
};

static struct vkn_points given(struct points *points)
{
    return (struct vkn_points){
        .size = sizeof(struct vkn_points),
        .count = POINTS,
        .positions = points->positions[0],
        .directions = points->directions[0],
        .times = points->times,
        .densities = points->densities,
        .colors = points->colors[0],
    };
}

/* Chooses positions in the dataset's units, a third of them outside of the cube. */
static void choose(struct points *points, const struct vkn_config *config)
{
    struct random random = {5};
    for (size_t p = 0; p < POINTS; p++) {
        double reach = p % 3 ? 0.5 : 1.5;
        random_direction(&random, points->directions[p]);
        for (int i = 0; i < 3; i++) {
            double training = 0.5 + random_between(&random, -reach, reach);
            points->positions[p][i] = (training - (double)(float)config->scene.offset[i]) /
                                      (double)(float)config->scene.scale;
            points->directions[p][i] *= 3.5;
        }
        points->times[p] = random_between(&random, 0, 1);
    }
}

/* Compares with the field of the trainer's average parameters. */
static void check_points(const struct tiny *tiny, const struct points *points)
{
    const struct step *step = &tiny->trainer->step;
    const struct vkn_config *config = vkn_trainer_config(tiny->trainer);
    float *params = tiny_read(tiny, &step->buffers.at[BIND_AVERAGE]);
    struct reference_field field = reference_field(config, &step->setup.model, params);
    size_t outside = 0;
    for (size_t p = 0; p < POINTS; p++) {
        double position[3], direction[3], expected[4], norm = 0;
        scene_position_from_public(points->positions[p], config->scene.scale, config->scene.offset,
                                   position);
        for (int i = 0; i < 3; i++) {
            direction[i] = points->directions[p][i] / 3.5;
            norm = fmax(norm, fabs(position[i] - 0.5) * 2 / field.space.side);
        }
        field.time = points->times[p];
        reference_field_forward(&field, position, direction, expected);
        double unit =
            reference_shrinking(&field.space, position) * (double)(float)config->scene.scale;
        bool is_outside = norm > 1 && !field.space.contracted;
        outside += is_outside;
        if (is_outside)
            memset(expected, 0, sizeof expected);
        check_close(points->densities[p], expected[3] * unit, 1e-3, expected[3] * unit + 1e-3,
                    "density at point", p);
        for (int c = 0; c < 3; c++)
            check_close(points->colors[p][c], expected[c], 1e-3, 1, "colour at point", p);
    }
    assert_true(field.space.contracted || (outside > 20 && outside < POINTS / 2));
    reference_field_destroy(&field);
    free(params);
}

/* ---- rays ------------------------------------------------------------------------------------ */

struct rays {
    double origins[RAYS][3], directions[RAYS][3], times[RAYS];
    float colors[RAYS][3], opacities[RAYS], depths[RAYS], normals[RAYS][3];
};
static struct rays rays;

static struct vkn_rays given_rays(bool normals)
{
    return (struct vkn_rays){
        .size = sizeof(struct vkn_rays),
        .count = RAYS,
        .origins = rays.origins[0],
        .directions = rays.directions[0],
        .times = rays.times,
        .colors = rays.colors[0],
        .opacities = rays.opacities,
        .depths = rays.depths,
        .normals = normals ? rays.normals[0] : NULL,
    };
}

/* Computes the rays of a pinhole camera, with directions of length 1 / cosine. */
static void set_rays(const struct vkn_camera *camera)
{
    for (size_t r = 0; r < RAYS; r++) {
        const size_t column = r % WIDTH, line = r / WIDTH;
        const double u = ((double)column + 0.5 - camera->center_x) / camera->focal_x,
                     v = ((double)line + 0.5 - camera->center_y) / camera->focal_y;
        for (int i = 0; i < 3; i++) {
            const double *row = &camera->pose[4 * i];
            rays.origins[r][i] = row[3];
            rays.directions[r][i] = u * row[0] - v * row[1] - row[2];
        }
        rays.times[r] = camera->time;
    }
}

static double length_of(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* Renders the camera and its rays. Rounding moves samples of few rays into or out of cells. */
static void check_rays(vkn_renderer *renderer, const struct vkn_camera *camera,
                       const struct vkn_picture_params *params, bool normals)
{
    struct vkn_picture *picture = NULL;
    const struct vkn_rays request = given_rays(normals);
    double sum = 0, highest = 0, visible = 0;
    set_rays(camera);
    ok(vkn_render(renderer, camera, params, &picture));
    ok(vkn_render_rays(renderer, &request, params));
    for (size_t r = 0; r < RAYS; r++) {
        double opacity = picture->opacity[r];
        double worst = fabs(rays.opacities[r] - opacity);
        visible += opacity;
        for (int c = 0; c < 3; c++)
            worst = fmax(worst, fabs(rays.colors[r][c] - (double)picture->color[3 * r + c]));
        for (int c = 0; c < 3 && normals; c++)
            worst = fmax(worst, fabs(rays.normals[r][c] - (double)picture->normal[3 * r + c]) / 20);
        double depth = picture->depth[r] * length_of(rays.directions[r]);
        worst = fmax(worst, opacity * fabs(rays.depths[r] - depth) / (depth + 1));
        sum += worst;
        highest = fmax(highest, worst);
    }
    assert_true(visible > 0.05 * RAYS && picture->width == WIDTH);
    if (sum / RAYS > 2e-4 || highest > 0.05)
        fail_msg("the rays' pictures differ by %g in the mean, %g at most", sum / RAYS, highest);
    vkn_picture_free(&picture);
}

/* Integrates densities along rays between two distances, with the midpoint rule. */
static void check_integral(vkn_renderer *renderer, const struct vkn_camera *camera)
{
    enum { STEPS = POINTS };
    static struct points points;
    static double nearest[RAYS], farthest[RAYS];
    struct vkn_points request = given(&points);
    struct vkn_rays bounded = given_rays(false);
    double begin = 2.5, end = 4.5;
    request.colors = NULL;
    request.directions = NULL;
    bounded.nearest = nearest;
    bounded.farthest = farthest;
    set_rays(camera);
    for (size_t r = 0; r < RAYS; r++) {
        nearest[r] = begin;
        farthest[r] = end;
    }
    ok(vkn_render_rays(renderer, &bounded, NULL));
    double most = 0;
    for (size_t r = 7; r < RAYS; r += 111) {
        double length = length_of(rays.directions[r]), thickness = 0;
        for (size_t p = 0; p < STEPS; p++) {
            double t = begin + ((double)p + 0.5) / STEPS * (end - begin);
            points.times[p] = rays.times[r];
            for (int i = 0; i < 3; i++)
                points.positions[p][i] = rays.origins[r][i] + t / length * rays.directions[r][i];
        }
        ok(vkn_renderer_query(renderer, &request));
        for (size_t p = 0; p < STEPS; p++)
            thickness += (double)points.densities[p] * (end - begin) / STEPS;
        check_close(rays.opacities[r], 1 - exp(-thickness), 0.03, 1, "opacity of ray", r);
        most = fmax(most, thickness);
    }
    assert_true(most > 0.1);
    memcpy(farthest, nearest, sizeof farthest); /* no sample: the background */
    ok(vkn_render_rays(renderer, &bounded, NULL));
    for (size_t r = 0; r < RAYS; r++)
        assert_true(rays.opacities[r] == 0 && rays.depths[r] == 0 && rays.colors[r][1] == 1);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static struct vkn_camera camera_of(const struct tiny *tiny)
{
    struct vkn_camera camera = {.size = sizeof camera};
    ok(vkn_scene_camera(tiny->scene, VKN_SPLIT_TRAIN, 1, &camera));
    camera.focal_x *= (double)WIDTH / camera.width;
    camera.focal_y = camera.focal_x;
    camera.center_x = 0.45 * WIDTH;
    camera.center_y = 0.5 * HEIGHT;
    camera.width = WIDTH;
    camera.height = HEIGHT;
    return camera;
}

static void test_kinds(void **state)
{
    const struct step_tests *tests = *state;
    for (size_t k = 0; k < BASE_COUNT(kinds); k++) {
        static struct points points;
        struct vkn_config config = kinds[k].config();
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        vkn_renderer *renderer = NULL;
        print_message("%s\n", kinds[k].name);
        tiny_run(&tiny, 16);
        ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
        const struct vkn_camera camera = camera_of(&tiny);
        const struct vkn_points request = given(&points);
        choose(&points, vkn_trainer_config(tiny.trainer));
        ok(vkn_renderer_query(renderer, &request));
        check_points(&tiny, &points);
        check_rays(renderer, &camera, NULL, false);
        if (kinds[k].config != hierarchical && kinds[k].config != proposed)
            check_integral(renderer, &camera);
        vkn_renderer_destroy(&renderer);
        tiny_destroy(&tiny);
    }
}

/* Pictures with parameters, normals, and the times of a renderer of a checkpoint. */
static void test_parameters(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = dynamic();
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 16);
    char *path = tiny_save(tests, &tiny, "query.safetensors");
    vkn_renderer *renderer = NULL;
    const struct vkn_camera camera = camera_of(&tiny);
    const struct vkn_picture_params black = {.background = VKN_BACKGROUND_BLACK},
                                    cropped = {.size = sizeof cropped,
                                               .crop = {-1, -1, -1, 0.5, 1, 1},
                                               .crop_rotation = {20, 30, 40},
                                               .exposure = 1},
                                    clear = {.size = sizeof clear, .transparent = true};
    ok(vkn_renderer_open(tests->context, path, VKN_PRECISION_FP32, &renderer));
    check_rays(renderer, &camera, &black, false);
    check_rays(renderer, &camera, &cropped, false);
    ok(vkn_renderer_enable_normals(renderer));
    check_rays(renderer, &camera, &clear, true);

    static struct points one, other;
    struct vkn_points request = given(&one);
    choose(&one, vkn_trainer_config(tiny.trainer));
    choose(&other, vkn_trainer_config(tiny.trainer));
    for (size_t p = 0; p < POINTS; p++)
        one.times[p] = 0.75;
    ok(vkn_renderer_query(renderer, &request));
    request = given(&other);
    request.times = NULL;
    ok(vkn_renderer_query(renderer, &request));
    assert_memory_not_equal(one.densities, other.densities, sizeof one.densities);
    ok(vkn_renderer_set_time(renderer, 0.75));
    ok(vkn_renderer_query(renderer, &request));
    assert_memory_equal(one.densities, other.densities, sizeof one.densities);
    assert_memory_equal(one.colors, other.colors, sizeof one.colors);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
    free(path);
}

/* More points than a batch of the device; every 97th is the same. Only densities are wanted. */
static void test_many(void **state)
{
    enum { COUNT = 70000, PERIOD = 97 };
    const struct step_tests *tests = *state;
    struct vkn_config config = plain();
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_renderer *renderer = NULL;
    double(*positions)[3] = base_alloc(COUNT, sizeof *positions);
    float *densities = base_alloc(COUNT + 1, sizeof *densities);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    for (size_t p = 0; p < COUNT; p++)
        positions[p][0] = 1e-2 * (double)(p % PERIOD) - 0.5;
    densities[COUNT] = -7;
    const struct vkn_points request = {
        .count = COUNT, .positions = positions[0], .densities = densities};
    ok(vkn_renderer_query(renderer, &request));
    for (size_t p = PERIOD; p < COUNT; p++)
        assert_true(densities[p] == densities[p % PERIOD] && densities[p] > 0);
    assert_true(densities[0] != densities[PERIOD - 1] && densities[COUNT] == -7);
    free(positions);
    free(densities);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

#define refuses(call, part)                    \
    do {                                       \
        assert_int_equal(call, VKN_BAD_INPUT); \
        assert_error(part);                    \
    } while (0)

static void test_refused(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = plain();
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_renderer *renderer = NULL;
    static struct points points;
    const struct vkn_camera camera = camera_of(&tiny);
    double nearest[RAYS] = {[3] = 2}, farthest[RAYS] = {[3] = 1};
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));

    choose(&points, vkn_trainer_config(tiny.trainer));
    struct vkn_points request = given(&points);
    request.positions = NULL;
    refuses(vkn_renderer_query(renderer, &request), "vkn_points: `positions` is NULL");
    request.count = 0;
    ok(vkn_renderer_query(renderer, &request));
    request = given(&points);
    request.directions = NULL;
    refuses(vkn_renderer_query(renderer, &request), "vkn_points: `directions` is NULL");
    request = given(&points);
    points.times[9] = 1.5;
    refuses(vkn_renderer_query(renderer, &request),
            "vkn_points: times: element 9 is 1.5: must be numbers from 0 to 1");
    memset(points.directions[8], 0, sizeof points.directions[8]);
    refuses(vkn_renderer_query(renderer, &request),
            "vkn_points: directions: element 8 is 0, 0, 0: must be vectors of a finite length");
    points.positions[7][1] = NAN;
    refuses(vkn_renderer_query(renderer, &request), "vkn_points: positions: element 7 is ");

    set_rays(&camera);
    struct vkn_rays traced = given_rays(true);
    refuses(vkn_render_rays(renderer, &traced, NULL),
            "vkn_rays: normals: need vkn_renderer_enable_normals first");
    traced = given_rays(false);
    refuses(vkn_render_rays(renderer, &traced, &(struct vkn_picture_params){.supersample = 2}),
            "supersample: 2: must be 0 or 1");
    traced.nearest = nearest;
    traced.farthest = farthest;
    refuses(vkn_render_rays(renderer, &traced, NULL),
            "vkn_rays: nearest: element 3 is 2: must be at most farthest, 1");
    nearest[2] = -1;
    refuses(vkn_render_rays(renderer, &traced, NULL),
            "vkn_rays: nearest: element 2 is -1: must be numbers of at least 0");
    traced.count = 0;
    ok(vkn_render_rays(renderer, &traced, NULL));
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

int main(void)
{
    tiny_groups = TINY_GROUPS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
