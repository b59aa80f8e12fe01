/* Makes fixtures with refined views, and checks the gradients that view_gradients sums for them. */
#include "certify/lenses.h"
#include "certify/views.h"

struct fixture views_fixture(struct gpu_device *device, struct vkn_config settings, uint32_t refine,
                             uint64_t pixels)
{
    settings.scene.refine = (enum vkn_refinement)(VKN_REFINEMENT_OFF + refine);
    struct fixture fixture = fixture_configure(device, settings);
    fixture.config.error_cells = fixture.config.first_sum = CELLS;
    fixture.config.first_view_word = offsetof(struct refined, views) / 4;
    fixture.config.near_start = fixture.config.near_distance;
    fixture_allocate(&fixture, VIEWS, pixels);
    check_that(fixture.buffers[BIND_STATE].size >= sizeof(struct refined));
    return fixture;
}

/* Returns a - b, in 1 / GRADIENT_UNITS. */
static double difference(const struct ErrorCell *a, const struct ErrorCell *b)
{
    uint64_t units = ((uint64_t)a->high << 32 | a->low) - ((uint64_t)b->high << 32 | b->low);
    return (double)(int64_t)units / GRADIENT_UNITS;
}

#define SAMPLES 2000u
#define USED    12u           /* cameras that have most samples, strips of six views */
#define HUGE_AT (SAMPLES - 1) /* sample whose gradients exceed the range of the sums */
#define ZERO_AT (SAMPLES - 2) /* sample without gradients */
#define RATIO   (192.0 / 128) /* rays / loss scale */

struct gradients {
    struct Camera cameras[VIEWS];
    struct scene_camera refined[VIEWS]; /* with the pose and lens of struct View */
    struct Ray rays[SAMPLES];           /* one per sample, in reverse order */
    struct Sample samples[SAMPLES];
    float inputs[SAMPLES][8], field[SAMPLES][4], field_gradients[SAMPLES][4];
    uint32_t live[SAMPLES], live_count;
    bool is_live[SAMPLES];
};

/* Places every other sample outside the cube, away from the edges of the contraction. */
static void random_position(struct random *random, double side, uint32_t s, double position[3])
{
    uint32_t axis = random_below(random, 3);
    double norm = s % 2 ? random_between(random, 1.05, 8) : random_between(random, 0.1, 0.95);
    for (uint32_t i = 0; i < 3; i++) {
        double x = random_between(random, -0.9, 0.9);
        if (i == axis)
            x = x < 0 ? -1 : 1;
        position[i] = 0.5 + side / 2 * norm * x;
    }
}

/* Draws a direction that the lens sees. */
static void direction_of(const struct scene_camera *camera, struct random *random,
                         double direction[3])
{
    double origin[3];
    while (!scene_camera_ray(camera, random_between(random, 0.1, 0.9) * camera->width,
                             random_between(random, 0.1, 0.9) * camera->height, origin, direction))
        ;
}

/* Neighbouring samples are mostly of one camera. */
static void random_sample(struct gradients *g, struct random *random, double side, uint32_t s)
{
    struct Ray *ray = &g->rays[SAMPLES - 1 - s];
    double position[3], direction[3], t = random_between(random, 0, side);
    memset(ray, 0xff, sizeof *ray); /* NaN in members that must not be read */
    ray->view = s % 7 ? ray[1].view : random_below(random, USED);
    random_position(random, side, s, position);
    direction_of(&g->refined[ray->view], random, direction);
    for (int i = 0; i < 3; i++) {
        ray->direction[i] = (float)direction[i];
        ray->origin[i] = (float)(position[i] - t * direction[i]);
    }
    g->samples[s] = (struct Sample){.t = (float)t, .width = NAN, .ray = SAMPLES - 1 - s};
}

/* Views have gradients of different sizes. Some samples have a gradient that is not finite. */
static void random_gradients(struct gradients *g, struct random *random, uint32_t s)
{
    double size = pow(10, (int)(g->rays[SAMPLES - 1 - s].view / 2) - 2);
    for (int i = 0; i < 8; i++)
        g->inputs[s][i] = i % 4 == 3 ? NAN : (float)random_between(random, -size, size);
    memset(g->field[s], 0xff, sizeof g->field[s]);
    memset(g->field_gradients[s], 0xff, sizeof g->field_gradients[s]);
    g->field[s][3] = (float)random_between(random, 0, 5);
    g->field_gradients[s][3] = (float)random_between(random, -size, size);
    if (s % 97 == 5)
        g->inputs[s][1] = NAN;
    if (s % 97 == 6)
        g->inputs[s][6] = -INFINITY;
    if (s % 97 == 7)
        g->inputs[s][4] = 1e31f;
}

static void list_live(struct gradients *g, struct random *random, bool deterministic)
{
    for (uint32_t s = 0; s < SAMPLES; s++) {
        g->is_live[s] = s >= ZERO_AT || random_below(random, 4) > 0;
        if (g->is_live[s])
            g->live[g->live_count++] = s;
        else if (deterministic) /* all samples are read */
            for (int i = 0; i < 8; i++)
                g->inputs[s][i] = g->field_gradients[s][3] = 0;
    }
    for (uint32_t n = 0; n < SAMPLES / 10; n++) {
        uint32_t a = random_below(random, g->live_count), b = random_below(random, g->live_count);
        uint32_t swapped = g->live[a];
        g->live[a] = g->live[b];
        g->live[b] = swapped;
    }
}

struct scene_camera views_moved_camera(const struct scene_camera *camera, const struct View *view)
{
    const double w[3] = {view->turn[0], view->turn[1], view->turn[2]};
    struct scene_camera moved = *camera;
    double rotation[3][3], change[LENS_PARAMETERS];
    reference_rotation(w, rotation);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            double sum = 0;
            for (int n = 0; n < 3; n++)
                sum += rotation[i][n] * camera->pose[4 * n + k];
            moved.pose[4 * i + k] = (float)sum;
        }
        moved.pose[4 * i + 3] += view->shift[i];
    }
    widen_floats(view->lens, LENS_PARAMETERS, change);
    scene_change_lens(change, &moved);
    return moved;
}

/* Each view has a lens of its own, of which two strips are resident. */
static void make_cameras(struct gradients *g, struct random *random, uint32_t refine,
                         struct View views[VIEWS])
{
    memset(g->cameras, 0xff, sizeof g->cameras);
    for (uint32_t c = 0; c < VIEWS; c++) {
        uint32_t view = (VIEWS - 1 - c) / 2;
        struct scene_camera camera = certify_lenses[view % BASE_COUNT(certify_lenses)].camera;
        const struct scene_camera placed = random_camera(random, 1, 1, 1, false);
        memcpy(camera.pose, placed.pose, sizeof camera.pose);
        for (int k = 0; k < 3; k++) {
            views[view].turn[k] =
                refine & REFINE_POSES ? (float)random_between(random, -0.3, 0.3) : 0;
            views[view].shift[k] = 0;
        }
        for (uint32_t k = 0; k < LENS_PARAMETERS; k++) {
            double most = k < 4 ? 0.1 : k < 6 ? 0.01 : camera.lens == VKN_LENS_FISHEYE ? 0 : 0.003;
            views[view].lens[k] =
                refine & REFINE_LENSES ? (float)random_between(random, -most, most) : 0;
        }
        if (refine & REFINE_LENSES)
            g->cameras[c] = setup_camera(&camera);
        g->cameras[c].view = view;
        g->refined[c] = camera;
    }
    for (uint32_t c = 0; c < VIEWS; c++)
        g->refined[c] = views_moved_camera(&g->refined[c], &views[g->cameras[c].view]);
}

static struct gradients *make_gradients(double side, bool deterministic, uint32_t refine,
                                        struct View views[VIEWS])
{
    struct random random = {1};
    struct gradients *g = base_alloc(1, sizeof *g);
    make_cameras(g, &random, refine, views);
    for (uint32_t s = 0; s < SAMPLES; s++) {
        random_sample(g, &random, side, s);
        random_gradients(g, &random, s);
    }
    for (uint32_t s = ZERO_AT; s < SAMPLES; s++) { /* in the cube, each with a camera of its own */
        struct Ray *ray = &g->rays[SAMPLES - 1 - s];
        *ray = (struct Ray){
            .origin = {0.5f, 0.5f, 0.5f}, .direction = {0.6f, 0.8f}, .view = 50 + s % 2 * 2};
        memset(g->inputs[s], 0, sizeof g->inputs[s]);
        g->samples[s].t = 1;
    }
    g->inputs[HUGE_AT][0] = 1e29f;
    list_live(g, &random, deterministic);
    return g;
}

static void random_sums(struct refined *refined, struct random *random)
{
    memset(refined, 0xff, sizeof *refined);
    refined->state = (struct State){.sample_count = SAMPLES, .ray_count = 192, .loss_scale = 128};
    for (uint32_t i = 0; i < VIEWS * VIEW_SUMS; i++)
        refined->sums[i / VIEW_SUMS][i % VIEW_SUMS] = (struct ErrorCell){
            .low = random_below(random, 3) ? random_word(random) : UINT32_MAX,
            .high = random_below(random, 5) - 2,
            .rays = random_below(random, 3),
        };
}

/* The sum of a view, the size of what is added, and the number of samples with a gradient. */
struct expected {
    double sum[VIEW_SUMS], size[VIEW_SUMS];
    uint32_t count;
};

static void add_expected(const struct gradients *g, uint32_t s, const struct reference_space *space,
                         uint32_t refine, struct expected *expected)
{
    const struct Ray *ray = &g->rays[g->samples[s].ray];
    struct expected *of_view = &expected[g->cameras[ray->view].view];
    struct reference_moving_sample sample = {.t = (double)g->samples[s].t};
    double gradient[VIEW_SUMS], size = 0;
    if (s == HUGE_AT)
        of_view->count++;
    if (!g->is_live[s] || s >= ZERO_AT || (s % 97 >= 5 && s % 97 <= 7))
        return;
    for (int i = 0; i < 3; i++) {
        sample.origin[i] = (double)ray->origin[i];
        sample.direction[i] = (double)ray->direction[i];
        sample.by_position[i] = RATIO * (double)g->inputs[s][i];
        sample.by_direction[i] = RATIO * (double)g->inputs[s][4 + i];
        size += fabs(sample.by_position[i]) * (1 + sample.t) + fabs(sample.by_direction[i]);
    }
    sample.by_log_width = RATIO * (double)g->field_gradients[s][3] * (double)g->field[s][3];
    if (refine & REFINE_LENSES && !scene_is_panoramic(g->refined[ray->view].lens))
        sample.camera = &g->refined[ray->view];
    reference_view_gradient(space, &sample, gradient);
    if (sample.camera) { /* the principal point is in focal lengths before the change */
        const struct Camera *given = &g->cameras[ray->view];
        gradient[VIEW_PARAMETERS + 2] *= given->focal_x / sample.camera->focal_x;
        gradient[VIEW_PARAMETERS + 3] *= given->focal_y / sample.camera->focal_y;
    }
    for (int k = 0; k < VIEW_SUMS; k++)
        of_view->sum[k] += gradient[k];
    size += fabs(sample.by_log_width) * (1 + sample.t);
    for (int k = 0; k < VIEW_SUMS; k++)
        of_view->size[k] += k > VIEW_PARAMETERS + LENS_SCALE ? size * size : size;
    of_view->count++;
}

/* Checks `count` sums of a view, with tolerance `rounding`. A summand is rounded to less than a
 * unit. */
static void check_sums(const struct ErrorCell *before, const struct ErrorCell *after, int count,
                       const struct expected *expected, const double *sums, const double *sizes,
                       double rounding, uint32_t view)
{
    uint32_t added = after[0].rays - before[0].rays;
    if (expected->count == 0) {
        check_memory(after, before, count * sizeof *after);
        return;
    }
    check_that(added > 0 && added <= expected->count);
    for (int k = 0; k < count; k++) {
        check_close(difference(&after[k], &before[k]), sums[k],
                    rounding * sizes[k] + added / GRADIENT_UNITS, 1, "gradient of view",
                    view * 100 + k);
        check_that(after[k].error == 0 && (k == 0 || after[k].rays == before[k].rays));
    }
}

static void check_gradients(uint32_t refine, const struct ErrorCell before[VIEW_SUMS],
                            const struct ErrorCell after[VIEW_SUMS],
                            const struct expected *expected, uint32_t view)
{
    static const struct expected none;
    check_sums(before, after, VIEW_PARAMETERS, refine & REFINE_POSES ? expected : &none,
               expected->sum, expected->size, 1e-6, view);
    check_sums(before + VIEW_PARAMETERS, after + VIEW_PARAMETERS, LENS_SUMS,
               refine & REFINE_LENSES ? expected : &none, expected->sum + VIEW_PARAMETERS,
               expected->size + VIEW_PARAMETERS, 1e-4, view);
}

void views_check_gradients(struct gpu_device *device, uint32_t refine, bool contracted,
                           bool deterministic)
{
    static struct refined before, after;
    struct expected expected[VIEWS] = {0};
    struct random random = {4};
    const struct vkn_config settings = {
        .deterministic = deterministic,
        .scene = {.aabb_scale = 4,
                  .contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .batch = {.samples = 2048, .max_rays = 2048},
    };
    struct fixture fixture = views_fixture(device, settings, refine, 1);
    const struct reference_space space = reference_space(&fixture.settings);
    random_sums(&before, &random);
    struct gradients *g = make_gradients(4, deterministic, refine, before.views);
    if (!deterministic) {
        before.state.live_count = g->live_count;
        fixture_put(&fixture, BIND_LIVE, g->live, 4ull * g->live_count);
    }
    if (contracted) {
        fixture_put(&fixture, BIND_FIELD, g->field, sizeof g->field);
        fixture_put(&fixture, BIND_FIELD_GRADIENTS, g->field_gradients, sizeof g->field_gradients);
    }
    fixture_put(&fixture, BIND_STATE, &before, sizeof before);
    fixture_put(&fixture, BIND_CAMERAS, g->cameras, sizeof g->cameras);
    fixture_put(&fixture, BIND_RAYS, g->rays, sizeof g->rays);
    fixture_put(&fixture, BIND_SAMPLES, g->samples, sizeof g->samples);
    fixture_put(&fixture, BIND_INPUT_GRADIENTS, g->inputs, sizeof g->inputs);
    fixture_run(&fixture, "view_gradients", (struct Push){0}, 3);
    fixture_get(&fixture, BIND_STATE, &after, sizeof after);
    for (uint32_t s = 0; s < SAMPLES; s++)
        add_expected(g, s, &space, refine, expected);
    for (uint32_t v = 0; v < VIEWS; v++)
        check_gradients(refine, before.sums[v], after.sums[v], &expected[v], v);
    check_memory(&after.state, &before.state, sizeof before.state);
    check_memory(after.map, before.map, sizeof before.map);
    check_memory(after.views, before.views, sizeof before.views);
    free(g);
    fixture_destroy(&fixture);
}
