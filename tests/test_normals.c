/* Tests the normals that the renderer computes for a ball of known density, and the background that
 * evaluation composites views onto. */
#include "step_fixture.h"

#include <vknerf/renderer.h>

#include "render/render.h"

/* Lengths in training space. The raw density is STEEP * (RADIUS - distance from the centre) +
 * OPAQUE, so that one marching step at the ball's surface stops most of a ray. */
#define RADIUS 0.3
#define STEEP  200.0
#define OPAQUE 5.0

/* A grid of one dense level, fine enough to interpolate the distance from the centre. */
static struct vkn_config ball_config(void)
{
    struct vkn_config config = tiny_config(false);
    config.precision = VKN_PRECISION_FP32;
    config.march.steps_per_unit = 256;
    config.grid.levels = 1;
    config.grid.log2_entries = 17;
    config.grid.coarsest = config.grid.finest = 40;
    return config;
}

static double distance_to_middle(const struct Level *level, uint32_t x, uint32_t y, uint32_t z)
{
    /* position = unit-cube position * scale + 0.5 */
    double side = level->scale, from[3] = {x - 0.5, y - 0.5, z - 0.5};
    for (int i = 0; i < 3; i++)
        from[i] = from[i] / side - 0.5;
    return sqrt(from[0] * from[0] + from[1] * from[1] + from[2] * from[2]);
}

/* The first feature is the raw density. Two hidden values carry its positive and its negative part
 * through the ReLU. All other weights are zero, which makes all colours grey. */
static void set_ball(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    const struct Level *level = &step->setup.model.level[0];
    const struct field_layer *layers = step->setup.model.layers;
    float *params = base_alloc(step->setup.model.param_count, sizeof *params);
    assert_int_equal(level->dense, 1);
    for (uint32_t entry = 0; entry < level->resolution * level->resolution * level->resolution;
         entry++) {
        uint32_t n = level->resolution;
        double distance = distance_to_middle(level, entry % n, entry / n % n, entry / n / n);
        params[level->first + 2 * entry] = (float)(STEEP * (RADIUS - distance) + OPAQUE);
    }
    params[reference_weight(&layers[0], 0, 0)] = 1;
    params[reference_weight(&layers[0], 0, 1)] = -1;
    params[reference_weight(&layers[1], 0, 0)] = 1;
    params[reference_weight(&layers[1], 1, 0)] = -1;
    tiny_put(tiny, &step->buffers.at[BIND_AVERAGE], params);
    free(params);
}

static void fill_occupancy(const struct tiny *tiny)
{
    const struct gpu_buffer *bits = &tiny->trainer->step.buffers.at[BIND_OCCUPANCY_BITS];
    uint8_t *ones = base_alloc(bits->size, 1);
    memset(ones, 0xff, bits->size);
    tiny_put(tiny, bits, ones);
    free(ones);
}

/* Computes the ball's normal where the ray hits the ball. Returns the cosine between normal and
 * ray: 0 at the rim, and where the ray misses. */
static double exact_normal(const double origin[3], const double direction[3], double normal[3])
{
    double along = 0, square = 0;
    for (int i = 0; i < 3; i++) {
        along -= (origin[i] - 0.5) * direction[i];
        square += (origin[i] - 0.5) * (origin[i] - 0.5);
    }
    double off = square - along * along; /* squared distance of the ray from the centre */
    if (off >= RADIUS * RADIUS)
        return 0;
    double t = along - sqrt(RADIUS * RADIUS - off);
    for (int i = 0; i < 3; i++)
        normal[i] = (origin[i] + t * direction[i] - 0.5) / RADIUS;
    return sqrt(1 - off / (RADIUS * RADIUS));
}

/* Normals are within 3 degrees, except at the rim, where the soft surface shows. */
static void check_picture(const struct scene_camera *camera, const struct vkn_picture *picture)
{
    uint32_t checked = 0;
    assert_non_null(picture->normal);
    for (uint32_t i = 0; i < picture->width * picture->height; i++) {
        double origin[3], direction[3], normal[3] = {0}, cosine = 0;
        uint32_t x = i % picture->width, y = i / picture->width;
        scene_camera_ray(camera, x + 0.5, y + 0.5, origin, direction);
        double steep = exact_normal(origin, direction, normal);
        const float *device = picture->normal + 3ull * i;
        if (steep < 0.5)
            continue;
        for (int c = 0; c < 3; c++)
            cosine += device[c] * normal[c];
        check_close(acos(fmin(cosine, 1)) * 180 / 3.14159265, 0, 3, 1, "angle at pixel", i);
        checked++;
    }
    assert_true(checked > 150);
}

/* ---- evaluation ---------------------------------------------------------------------------- */

/* Returns a channel of a pixel of the scene's image (see make_scene) on the background. */
static double target_of(const char *image, uint32_t x, uint32_t y, int channel, double background)
{
    int n = strstr(image, "train/z") ? 0 : strstr(image, "train/x") ? 1 : 2;
    const int straight[] = {20 * (int)x, 25 * (int)y, 100 * n};
    double alpha = x < 4 ? 60 / 255.0 : 1;
    return straight[channel] / 255.0 * alpha + (1 - alpha) * background;
}

/* Returns the PSNR of the picture on black plus the background times (1 - opacity). */
static double psnr_of(vkn_renderer *renderer, const struct scene_camera *camera, const char *image,
                      double background)
{
    struct vkn_picture picture;
    double sum = 0;
    ok(render_picture(renderer, camera, VKN_BACKGROUND_BLACK, 1, &picture));
    for (uint32_t i = 0; i < 12 * 10; i++)
        for (int c = 0; c < 3; c++) {
            double error = (double)picture.color[3 * i + c] +
                           (1 - (double)picture.opacity[i]) * background -
                           target_of(image, i % 12, i / 12, c, background);
            sum += error * error / (3 * 12 * 10);
        }
    /* The ball in the middle is opaque and grey, the corner is transparent. */
    check_close(picture.color[3 * (5 * 12 + 6)], 0.5, 1e-2, 1, "middle", 0);
    assert_true(picture.opacity[5 * 12 + 6] > 0.99f && picture.opacity[0] < 0.01f);
    render_picture_free(&picture);
    return -10 * log10(sum);
}

/* Checks that evaluation puts the requested background behind both the rendering and the images. */
static void check_evaluation(const struct tiny *tiny, vkn_renderer *renderer,
                             enum vkn_background background)
{
    const struct scene_split *split = &tiny->scene->splits[SCENE_TRAIN];
    struct report_progress *progress = NULL;
    ok(report_progress_begin(NULL, 0, 0, &progress));
    const struct render_evaluation request = {.renderer = renderer,
                                              .scene = tiny->scene,
                                              .split = SCENE_TRAIN,
                                              .background = background,
                                              .stride = 1,
                                              .progress = progress};
    struct vkn_evaluation *evaluation;
    double mean = 0;
    ok(render_evaluate(&request, &evaluation));
    assert_int_equal(evaluation->view_count, 3);
    assert_int_equal(evaluation->background, background);
    for (size_t i = 0; i < 3; i++) {
        double psnr = psnr_of(renderer, &split->cameras[i], evaluation->views[i]->image,
                              background == VKN_BACKGROUND_WHITE ? 1 : 0);
        /* evaluation has premultiplied colours of 8 bits */
        check_close(evaluation->views[i]->psnr, psnr, 0.05, 1, "PSNR of view", i);
        mean += psnr / 3;
    }
    check_close(evaluation->psnr, mean, 0.05, 1, "mean PSNR", 0);
    vkn_evaluation_free(&evaluation);
    report_progress_end(&progress);
}

/* The requested background wins, then the training's if it is a single colour, then white. */
static void test_backgrounds(void **state)
{
    (void)state;
    static const struct {
        enum vkn_background asked, trained, expected;
    } cases[] = {
        {VKN_BACKGROUND_DEFAULT, VKN_BACKGROUND_RANDOM, VKN_BACKGROUND_WHITE},
        {VKN_BACKGROUND_DEFAULT, VKN_BACKGROUND_WHITE, VKN_BACKGROUND_WHITE},
        {VKN_BACKGROUND_DEFAULT, VKN_BACKGROUND_BLACK, VKN_BACKGROUND_BLACK},
        {VKN_BACKGROUND_WHITE, VKN_BACKGROUND_BLACK, VKN_BACKGROUND_WHITE},
        {VKN_BACKGROUND_BLACK, VKN_BACKGROUND_WHITE, VKN_BACKGROUND_BLACK},
        {VKN_BACKGROUND_BLACK, VKN_BACKGROUND_RANDOM, VKN_BACKGROUND_BLACK},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        const struct vkn_config config = {.background = cases[i].trained};
        assert_int_equal(render_background(cases[i].asked, &config), cases[i].expected);
    }
}

/* ---- pictures ------------------------------------------------------------------------------ */

static void test_ball(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = ball_config();
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_renderer *renderer = NULL;
    set_ball(&tiny);
    fill_occupancy(&tiny);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    /* The camera is off the axis, so that confusing two axes would be noticed. */
    struct scene_camera camera = tiny.scene->splits[SCENE_TRAIN].cameras[0];
    camera.width = camera.height = 28;
    camera.center_x = 17;
    camera.center_y = 12;
    camera.focal_x = camera.focal_y = 40;
    for (uint32_t view = 0; view < 3; view++) {
        struct vkn_picture picture;
        memcpy(camera.pose, tiny.scene->splits[SCENE_TRAIN].cameras[view].pose, sizeof camera.pose);
        ok(render_picture(renderer, &camera, VKN_BACKGROUND_WHITE, 1 + view % 2, &picture));
        if (view > 0)
            check_picture(&camera, &picture);
        else
            assert_null(picture.normal);
        ok(vkn_renderer_enable_normals(renderer)); /* a second call changes nothing */
        render_picture_free(&picture);
    }
    check_evaluation(&tiny, renderer, VKN_BACKGROUND_WHITE);
    check_evaluation(&tiny, renderer, VKN_BACKGROUND_BLACK);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ball),
        cmocka_unit_test(test_backgrounds),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
