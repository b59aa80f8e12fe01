/* Tests the refinement of poses and lenses: the gradients that view_gradients sums, the update of
 * the views by update_views, and the rays of refined views. */
#include "certify/views.h"
#include "certify/rays.h"

/* ---- gradients ----------------------------------------------------------------------------- */

static void test_view_gradients(struct gpu_device *device)
{
    views_check_gradients(device, REFINE_POSES, false, false);
    views_check_gradients(device, REFINE_POSES, true, false);
    views_check_gradients(device, REFINE_LENSES, false, false);
    views_check_gradients(device, REFINE_POSES | REFINE_LENSES, true, false);
}

static void test_deterministic(struct gpu_device *device)
{
    views_check_gradients(device, REFINE_POSES | REFINE_LENSES, false, true);
}

/* ---- updates ------------------------------------------------------------------------------- */

/* Describes when an update happens, and whether views then move. */
struct update_case {
    uint32_t total_steps, time_schedule, step;
    float time_progress, start, limit;
    bool moves;
};

static float *pose_of(struct View *view, int k)
{
    return k < 3 ? &view->turn[k] : &view->shift[k - 3];
}

/* Fills the gauges with orthonormal vectors: each has latent parameters of its own. */
static void random_gauges(struct View *views, struct random *random)
{
    for (uint32_t i = 0; i < VIEWS * VIEW_PARAMETERS; i++) {
        uint32_t g = i % VIEW_GAUGES, k = i % VIEW_PARAMETERS;
        uint32_t count = (VIEWS * VIEW_PARAMETERS - 1 - g) / VIEW_GAUGES + 1;
        views[i / VIEW_PARAMETERS].gauge[g * VIEW_PARAMETERS + k] =
            (float)((random_below(random, 2) ? 1 : -1) / sqrt(count));
    }
}

/* Rotations are up to about a radian. A view without updates has not moved. */
static void random_view(struct View *view, struct random *random, double size)
{
    view->updates = random_below(random, 40);
    for (int i = 0; i < VIEW_PARAMETERS * VIEW_PARAMETERS; i++)
        view->whitening[i] = (float)random_between(random, -0.15, 0.15);
    for (int k = 0; k < VIEW_PARAMETERS && view->updates > 0; k++) {
        view->latent[k] = (float)random_between(random, -3, 3);
        view->moment1[k] = (float)random_between(random, -size, size);
        view->moment2[k] = (float)random_between(random, 0, size * size);
    }
    for (int i = 0; i < VIEW_PARAMETERS; i++)
        for (int k = 0; k < VIEW_PARAMETERS; k++)
            *pose_of(view, i) += view->whitening[i * VIEW_PARAMETERS + k] * view->latent[k];
}

/* Returns the group of a view. A group in a damaged checkpoint counts as the last view. */
static uint32_t group_of(const struct View *view)
{
    return view->group < VIEWS ? view->group : VIEWS - 1;
}

/* Views 0, 3, 6, ... up to 90 are a camera group; so are 1, 4, ...; one view's group is damaged;
 * others have lenses of their own. Members of a group do not read their own latent parameters. */
static void random_lens(struct refined *refined, uint32_t v, struct random *random, double size)
{
    struct View *view = &refined->views[v], *group;
    view->group = v < 90 && v % 3 < 2 ? v % 3 : v == 101 ? UINT32_MAX : v;
    view->lens_updates = random_below(random, 40);
    for (int i = 0; i < LENS_PARAMETERS * LENS_PARAMETERS; i++)
        view->lens_whitening[i] = (float)random_between(random, -0.15, 0.15);
    for (int k = 0; k < LENS_PARAMETERS && view->lens_updates > 0; k++) {
        view->lens_latent[k] = (float)random_between(random, -3, 3);
        view->lens_moment1[k] = (float)random_between(random, -size, size);
        view->lens_moment2[k] = (float)random_between(random, 0, size * size);
    }
    group = &refined->views[group_of(view)];
    for (int i = 0; i < LENS_PARAMETERS; i++)
        for (int k = 0; k < LENS_PARAMETERS; k++)
            view->lens[i] += group->lens_whitening[i * LENS_PARAMETERS + k] * group->lens_latent[k];
}

static void random_sum(struct ErrorCell *sum, struct random *random, double size)
{
    uint64_t word = (uint64_t)(int64_t)(random_between(random, -size, size) * GRADIENT_UNITS);
    *sum = (struct ErrorCell){.low = (uint32_t)word, .high = (uint32_t)(word >> 32)};
}

/* A quarter of the views has no rays. */
static void random_views(struct refined *refined, struct random *random)
{
    memset(refined, 0, sizeof *refined);
    memset(refined->map, 0xff, sizeof refined->map);
    random_gauges(refined->views, random);
    for (uint32_t v = 0; v < VIEWS; v++) {
        double size = pow(10, random_between(random, 0, 4));
        random_view(&refined->views[v], random, size);
        random_lens(refined, v, random, size);
        for (int k = 0; k < VIEW_SUMS && v % 4; k++)
            random_sum(&refined->sums[v][k], random, size);
        refined->sums[v][0].rays = refined->sums[v][VIEW_PARAMETERS].rays =
            v % 4 ? 1 + random_below(random, 9) : 0;
    }
}

static struct reference_view reference_of(const struct refined *refined, uint32_t v)
{
    const struct View *view = &refined->views[v];
    struct reference_view result = {.updates = view->updates,
                                    .lens_updates = view->lens_updates,
                                    .group = group_of(view),
                                    .has_rays = refined->sums[v][0].rays > 0};
    widen_floats(view->turn, 3, result.pose);
    widen_floats(view->shift, 3, &result.pose[3]);
    widen_floats(view->latent, VIEW_PARAMETERS, result.latent);
    widen_floats(view->moment1, VIEW_PARAMETERS, result.moment1);
    widen_floats(view->moment2, VIEW_PARAMETERS, result.moment2);
    widen_floats(view->whitening, BASE_COUNT(view->whitening), result.whitening[0]);
    widen_floats(view->gauge, BASE_COUNT(view->gauge), result.gauge[0]);
    widen_floats(view->lens, LENS_PARAMETERS, result.lens);
    widen_floats(view->lens_latent, LENS_PARAMETERS, result.lens_latent);
    widen_floats(view->lens_moment1, LENS_PARAMETERS, result.lens_moment1);
    widen_floats(view->lens_moment2, LENS_PARAMETERS, result.lens_moment2);
    widen_floats(view->lens_whitening, BASE_COUNT(view->lens_whitening), result.lens_whitening[0]);
    for (int k = 0; k < VIEW_SUMS; k++)
        result.gradient[k] = gradient_sum(&refined->sums[v][k]);
    return result;
}

static void check_latents(const float *after, const double *latent, const double *moment1,
                          const double *moment2, int count, uint32_t v)
{
    double size = 1;
    for (int k = 0; k < count; k++)
        size = fmax(size, sqrt(moment2[k]));
    for (int k = 0; k < count; k++) {
        check_close(after[k], latent[k], 1e-5, 1, "latent of view", v);
        check_close(after[count + k], moment1[k], 1e-5, size, "moment of view", v);
        check_close(after[2 * count + k], moment2[k], 1e-5, size * size, "square of view", v);
    }
}

/* What is not refined does not change. */
static void check_view(struct View *after, const struct View *before, uint32_t refine,
                       const struct reference_view *expected, uint32_t v)
{
    size_t pose = offsetof(struct View, whitening);
    check_latents(after->latent, expected->latent, expected->moment1, expected->moment2,
                  VIEW_PARAMETERS, v);
    check_latents(after->lens_latent, expected->lens_latent, expected->lens_moment1,
                  expected->lens_moment2, LENS_PARAMETERS, v);
    for (int k = 0; k < VIEW_PARAMETERS; k++)
        check_close(*pose_of(after, k), expected->pose[k], 1e-5, 1, "pose of view", v);
    for (int k = 0; k < LENS_PARAMETERS; k++)
        check_close(after->lens[k], expected->lens[k], 1e-5, 1, "lens of view", v);
    check_equal(after->updates, expected->updates);
    check_equal(after->lens_updates, expected->lens_updates);
    check_equal(after->group, before->group);
    check_memory(after->whitening, before->whitening, sizeof before->whitening);
    check_memory(after->gauge, before->gauge, sizeof before->gauge);
    check_memory(after->lens_whitening, before->lens_whitening, sizeof before->lens_whitening);
    if (!(refine & REFINE_POSES))
        check_memory(after, before, pose);
    if (!(refine & REFINE_LENSES))
        check_memory(&after->group, &before->group, sizeof *after - offsetof(struct View, group));
}

static void put_update(struct fixture *fixture, const struct update_case *c,
                       struct refined *refined)
{
    const struct Control control = {.time_progress = c->time_progress};
    refined->state.step = c->step;
    fixture->config.total_steps = c->total_steps;
    fixture->config.time_schedule = c->time_schedule;
    fixture->config.refine_rate = 0.25f;
    fixture->config.refine_final_rate = 0.01f;
    fixture->config.refine_start = c->start;
    fixture->config.refine_limit = c->limit;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_CONTROL, &control, sizeof control);
    fixture_put(fixture, BIND_STATE, refined, sizeof *refined);
}

/* Returns whether the limit holds back latent parameters, which it always bounds. */
static bool is_limited(const float *latent, size_t count, float limit)
{
    double squared = 0, most = pow((double)limit, 2);
    for (size_t k = 0; k < count; k++)
        squared += pow((double)latent[k], 2);
    check_that(squared < most * 1.000001);
    return squared > most * 0.999999;
}

/* Returns the number of views that the limit holds back. */
static uint32_t check_update(struct fixture *fixture, uint32_t refine, const struct update_case *c,
                             uint64_t seed)
{
    static struct refined before, after;
    static struct reference_view expected[VIEWS];
    static const struct ErrorCell cleared[VIEW_SUMS];
    struct random random = {seed};
    uint32_t limited = 0;
    random_views(&before, &random);
    put_update(fixture, c, &before);
    fixture_run(fixture, "update_views", (struct Push){0}, 1);
    fixture_get(fixture, BIND_STATE, &after, sizeof after);
    for (uint32_t v = 0; v < VIEWS; v++)
        expected[v] = reference_of(&before, v);
    reference_update_views(refine, &fixture->config, c->step, (double)c->time_progress, expected);
    for (uint32_t v = 0; v < VIEWS; v++) {
        const struct View *view = &after.views[v];
        bool moved = c->moves && before.sums[v][0].rays > 0;
        check_view(&after.views[v], &before.views[v], refine, &expected[v], v);
        if (refine & REFINE_POSES) {
            limited += is_limited(view->latent, VIEW_PARAMETERS, c->limit);
            check_equal(view->updates, before.views[v].updates + moved);
            check_memory(after.sums[v], cleared, VIEW_PARAMETERS * sizeof *cleared);
        } else if (view->group == v) {
            limited += is_limited(view->lens_latent, LENS_PARAMETERS, c->limit);
        }
        if (refine & REFINE_LENSES)
            check_memory(after.sums[v] + VIEW_PARAMETERS, cleared, LENS_SUMS * sizeof *cleared);
    }
    check_memory(after.map, before.map, sizeof before.map);
    check_memory(&after.state, &before.state, sizeof before.state);
    return limited;
}

/* Before the start, views keep their moments and counts. */
static void test_updates(struct gpu_device *device)
{
    static const struct update_case cases[] = {
        {UINT32_MAX, 0, 5000, 0.9f, 0.05f, 100, true}, /* without an end the rate is constant */
        {1000, 0, 400, 0.9f, 0.05f, 4, true},
        {1000, 0, 40, 0.9f, 0.05f, 4, false},
        {UINT32_MAX, 1, 5000, 0.7f, 0, 4, true},
        {1000, 1, 100, 0.6f, 0.5f, 100, true}, /* time is further than steps */
        {1000, 1, 600, 0.1f, 0.5f, 100, true},
        {1000, 1, 100, 0.1f, 0.5f, 100, false},
        {1000, 0, 1200, 0, 0.5f, 100, true}, /* a resumed run beyond its end */
    };
    for (uint32_t refine = REFINE_POSES; refine <= (REFINE_POSES | REFINE_LENSES); refine++) {
        struct fixture fixture =
            views_fixture(device, (struct vkn_config){.scene.aabb_scale = 1}, refine, 1);
        for (size_t i = 0; i < BASE_COUNT(cases); i++) {
            uint32_t limited = check_update(&fixture, refine, &cases[i], 30 + i);
            uint32_t most = refine & REFINE_POSES ? VIEWS : VIEWS - 59; /* views or groups */
            check_that(cases[i].limit > 10 ? limited == 0 : limited > most / 5 && limited < most);
        }
        fixture_destroy(&fixture);
    }
}

/* Before the start, new views stay exactly where they are. */
static void test_start(struct gpu_device *device)
{
    static struct refined before, after;
    static const struct update_case early = {1000, 0, 10, 0, 0.05f, 4, false};
    struct random random = {5};
    const struct vkn_config settings = {.scene.aabb_scale = 1};
    struct fixture fixture = views_fixture(device, settings, REFINE_POSES | REFINE_LENSES, 1);
    random_views(&before, &random);
    for (uint32_t v = 0; v < VIEWS; v++) {
        memset(&before.views[v], 0, offsetof(struct View, whitening));
        memset(before.views[v].lens, 0,
               offsetof(struct View, lens_whitening) - offsetof(struct View, lens));
        before.views[v].updates = before.views[v].lens_updates = 0;
    }
    put_update(&fixture, &early, &before);
    fixture_run(&fixture, "update_views", (struct Push){0}, 1);
    fixture_get(&fixture, BIND_STATE, &after, sizeof after);
    for (uint32_t v = 0; v < VIEWS; v++) {
        struct View *view = &after.views[v];
        for (int k = 0; k < VIEW_PARAMETERS; k++)
            check_that(view->latent[k] == 0 && *pose_of(view, k) == 0);
        for (int k = 0; k < LENS_PARAMETERS; k++)
            check_that(view->lens_latent[k] == 0 && view->lens[k] == 0);
        check_memory(view->moment1, before.views[v].moment1,
                     offsetof(struct View, lens) - offsetof(struct View, moment1));
        check_memory(view->lens_moment1, before.views[v].lens_moment1,
                     sizeof *view - offsetof(struct View, lens_moment1));
    }
    fixture_destroy(&fixture);
}

/* ---- rays ---------------------------------------------------------------------------------- */

#define CAMERAS 6u
#define WIDTH   40u
#define PIXELS  (WIDTH * 30)
#define DRAWN   4000u

/* Angles by which the cameras' views turn. */
static const double turns[CAMERAS] = {1e-7, 1e-4, 1e-2, 0, 0.3, 1};

static uint32_t view_of(uint32_t camera)
{
    return VIEWS - 1 - 20 * camera;
}

static void random_cameras(struct scene_camera cameras[CAMERAS], struct refined *refined)
{
    struct random random = {6};
    memset(refined, 0xff, sizeof *refined); /* views without a camera are NaN */
    refined->state = (struct State){.step = 1, .ray_count = DRAWN};
    for (uint32_t c = 0; c < CAMERAS; c++) {
        struct View *view = &refined->views[view_of(c)];
        double axis[3];
        cameras[c] = random_camera(&random, WIDTH, PIXELS / WIDTH, 1.6, c % 2);
        random_direction(&random, axis);
        for (int i = 0; i < 3; i++) {
            *pose_of(view, i) = (float)(turns[c] * axis[i]);
            *pose_of(view, 3 + i) = (float)random_between(&random, -0.1, 0.1);
        }
        for (int k = 0; k < LENS_PARAMETERS; k++)
            view->lens[k] = (float)random_between(&random, -0.02, 0.02);
    }
}

/* Cuts rows out of every other camera's image, and reduces every third. */
static struct scene_camera resident_part(const struct scene_camera *camera, uint32_t c)
{
    struct scene_camera part = c % 2 ? scene_crop_camera(camera, 8, 16) : *camera;
    return c % 3 ? part : scene_shrink_camera(&part, 2);
}

/* Rays pass through the pixels of the changed cameras. */
static void check_rays(struct gpu_device *device, uint32_t refine)
{
    static struct refined views;
    struct scene_camera cameras[CAMERAS];
    struct Camera on_device[CAMERAS];
    uint32_t *pixels = base_alloc(CAMERAS * PIXELS, sizeof *pixels);
    const struct vkn_config settings = {.scene.aabb_scale = 1, .batch.max_rays = DRAWN + 96};
    struct fixture fixture = views_fixture(device, settings, REFINE_POSES, CAMERAS * PIXELS);
    random_cameras(cameras, &views);
    for (uint32_t i = 0; i < CAMERAS * PIXELS; i++)
        pixels[i] = i | 0xff000000u; /* red and green encode the pixel's index */
    for (uint32_t c = 0; c < CAMERAS; c++) {
        struct scene_camera whole = cameras[c], resident = resident_part(&whole, c);
        on_device[c] = setup_camera(&resident);
        on_device[c].first_pixel = c * PIXELS;
        on_device[c].view = view_of(c);
        struct View view = views.views[view_of(c)];
        memset(view.turn, 0, refine & REFINE_POSES ? 0 : offsetof(struct View, latent));
        memset(view.lens, 0, refine & REFINE_LENSES ? 0 : sizeof view.lens);
        whole = views_moved_camera(&whole, &view);
        cameras[c] = resident_part(&whole, c);
    }
    fixture_set_constant(&fixture, SPEC_REFINE, refine);
    fixture.config.view_count = CAMERAS;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    fixture_put(&fixture, BIND_CAMERAS, on_device, sizeof on_device);
    fixture_put(&fixture, BIND_PIXELS, pixels, CAMERAS * PIXELS * sizeof *pixels);
    fixture_put(&fixture, BIND_STATE, &views, sizeof views);
    fixture_run(&fixture, "generate_rays", (struct Push){.b = fixture.local_size},
                fixture_groups(&fixture, DRAWN));
    struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
    for (uint32_t r = 0; r < DRAWN; r++) {
        uint32_t i = (uint32_t)round((double)rays[r].target[0] * 255) |
                     (uint32_t)round((double)rays[r].target[1] * 255) << 8;
        check_equal(rays[r].view, i / PIXELS);
        uint32_t width = cameras[i / PIXELS].width, x = i % PIXELS % width, y = i % PIXELS / width;
        check_camera_ray(&rays[r], &cameras[i / PIXELS], x + 0.5, y + 0.5, &fixture.config, false,
                         0, 1, r);
    }
    free(rays);
    free(pixels);
    fixture_destroy(&fixture);
}

static void test_rays(struct gpu_device *device)
{
    for (uint32_t refine = 0; refine <= (REFINE_POSES | REFINE_LENSES); refine++)
        check_rays(device, refine);
}

static const struct certify_test tests[] = {
    TEST(test_view_gradients), TEST(test_deterministic), TEST(test_updates),
    TEST(test_start),          TEST(test_rays),
};
const struct certify_part certify_views = {"views", tests, BASE_COUNT(tests)};
