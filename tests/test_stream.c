/* Tests image streaming during training: resident images, repeatability and resuming, quality, and
 * the memory budget. Creating a trainer takes longer than a hundred steps, so each test has one
 * trainer and restarts it from a checkpoint. */
#include "step_fixture.h"
#include "render/render.h"

#include <math.h>
#include <unistd.h>

#include <vknerf/run.h>

#define VIEWS 12u
#define SIZE  48u

/* ---- a scene of files ---------------------------------------------------------------------- */

/* A cloud in the cube's centre with Gaussian density and linear colour, which the model can learn
 * almost exactly, so that two trainings end alike. */
static void cloud(const double origin[3], const double direction[3], double rgb[3])
{
    const double step = 1.0 / 48;
    double clear = 1;
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int n = 0; n < 48; n++) {
        double p[3], square = 0, t = 1.32 - 0.5 + (n + 0.5) * step;
        for (int i = 0; i < 3; i++) {
            p[i] = origin[i] + t * direction[i] - 0.5;
            square += p[i] * p[i];
        }
        double opacity = 1 - exp(-30 * exp(-square / (2 * 0.12 * 0.12)) * step);
        for (int i = 0; i < 3; i++)
            rgb[i] += clear * opacity * fmin(fmax(0.5 + 1.2 * p[i], 0), 1);
        clear *= 1 - opacity;
    }
}

/* A camera on a spiral around the centre, looking at it; one picture is lower than the others. */
static struct scene_camera spiral_camera(uint32_t view)
{
    double height = 0.8 - 1.6 * (view + 0.5) / VIEWS, angle = 2.399963 * view;
    double flat = sqrt(1 - height * height), s = sin(angle), c = cos(angle);
    const double rows[3][3] = {
        {-s, -c * height, c * flat}, {c, -s * height, s * flat}, {0, flat, height}};
    struct scene_camera camera = {.width = SIZE,
                                  .height = view == 3 ? SIZE - 6 : SIZE,
                                  .focal_x = 1.6f * SIZE,
                                  .focal_y = 1.6f * SIZE,
                                  .center_x = SIZE / 2.0f,
                                  .center_y = SIZE / 2.0f};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            camera.pose[4 * i + j] = (float)rows[i][j];
        camera.pose[4 * i + 3] = (float)(0.5 + 1.32 * rows[i][2]);
    }
    return camera;
}

static void write_picture(struct temporary *folder, const char *name,
                          const struct scene_camera *camera)
{
    uint8_t pixels[3 * SIZE * SIZE];
    for (uint32_t i = 0; i < camera->width * camera->height; i++) {
        double origin[3], direction[3], rgb[3];
        uint32_t x = i % SIZE, y = i / SIZE;
        scene_camera_ray(camera, x + 0.5, y + 0.5, origin, direction);
        cloud(origin, direction, rgb);
        for (int c = 0; c < 3; c++)
            pixels[3 * i + (uint32_t)c] = (uint8_t)lrint(255 * rgb[c]);
    }
    ok(scene_image_write_png(temporary_path(folder, name), pixels, camera->width, camera->height,
                             3));
}

static void write_scene(struct temporary *folder)
{
    struct base_text json = {0};
    base_text_add(&json, "{\"scale\": 1, \"offset\": [0, 0, 0], \"aabb_scale\": 1, \"frames\": [");
    for (uint32_t view = 0; view < VIEWS; view++) {
        const struct scene_camera camera = spiral_camera(view);
        const float *p = camera.pose;
        char name[32];
        snprintf(name, sizeof name, "view_%02u.png", view);
        write_picture(folder, name, &camera);
        base_text_add(&json,
                      "%s{\"file_path\": \"%s\", \"fl_x\": %.9g, \"fl_y\": %.9g, \"cx\": %g, "
                      "\"cy\": %g, \"w\": %u, \"h\": %u, \"transform_matrix\": [",
                      view > 0 ? ", " : "", name, (double)camera.focal_x, (double)camera.focal_y,
                      (double)camera.center_x, (double)camera.center_y, camera.width,
                      camera.height);
        for (int row = 0; row < 3; row++, p += 4)
            base_text_add(&json, "[%.9g, %.9g, %.9g, %.9g], ", (double)p[0], (double)p[1],
                          (double)p[2], (double)p[3]);
        base_text_add(&json, "[0, 0, 0, 1]]}");
    }
    base_text_add(&json, "]}");
    assert_false(json.failed);
    temporary_text(folder, "transforms_train.json", json.data);
    free(json.data);
}

static int setup(void **state)
{
    return step_tests_open(state, write_scene);
}

/* Sets a budget of `images` of the largest images. */
static struct vkn_config config_of(uint32_t images, bool deterministic)
{
    struct vkn_config config = tiny_config(deterministic);
    config.background = VKN_BACKGROUND_BLACK;
    config.steps = 16 * 12;
    config.scene.image_budget = images * 4ull * SIZE * SIZE;
    return config;
}

static void make_progressive(struct vkn_config *config)
{
    config->progressive.enabled = true;
    config->progressive.start_downscale = 4;
    config->progressive.milestones[0] = 0.25f;
    config->progressive.milestones[1] = 0.5f;
}

/* From now on images are read from files. Returns the pixels, which the caller frees after the
 * trainer: a background thread may still read them. */
static void *forget_pixels(const struct tiny *tiny)
{
    struct scene_split *train = &tiny->scene->splits[SCENE_TRAIN];
    void *pixels = train->pixels;
    assert_non_null(pixels);
    train->pixels = NULL;
    return pixels;
}

static char *save(const struct step_tests *tests, const struct tiny *tiny, const char *name)
{
    char *path = base_path_join(tests->folder->path, name);
    ok(vkn_trainer_save(tiny->trainer, path));
    return path;
}

/* ---- resident images ----------------------------------------------------------------------- */

/* Slots hold the image strips, in the size, and the cameras that the plan has for the window. */
static void assert_window(const struct tiny *tiny, uint64_t window)
{
    const struct step *step = &tiny->trainer->step;
    const struct images_plan *plan = &tiny->trainer->images;
    const struct scene_split *train = &tiny->scene->splits[SCENE_TRAIN];
    const struct vkn_config *config = vkn_trainer_config(tiny->trainer);
    uint32_t order[16 * VIEWS], expected[SIZE * SIZE];
    uint32_t *pixels = tiny_read(tiny, &step->buffers.at[BIND_PIXELS]);
    struct Camera *cameras = tiny_read(tiny, &step->buffers.at[BIND_CAMERAS]);
    images_shuffle(plan, config->seed, order);
    for (uint32_t slot = 0; slot < plan->resident; slot++) {
        uint64_t position = images_position(plan, window, slot);
        uint32_t shrink =
            images_shrink(config, images_progress(config, images_entry_window(plan, position)));
        struct images_strip image_strip =
            images_strip(plan, train, order[position % plan->image_strips], slot, shrink);
        struct Camera camera = setup_camera(&image_strip.camera);
        camera.view = image_strip.view;
        camera.first_row = image_strip.first_row;
        camera.shrink = shrink;
        camera.first_cell = image_strip.view * plan->view_cells;
        camera.cell_columns = (SIZE + 15) / 16;
        assert_memory_equal(&cameras[VIEWS + slot], &camera, sizeof camera);
        ok(scene_read_rows(tiny->scene, SCENE_TRAIN, image_strip.view, image_strip.first_row,
                           image_strip.rows, shrink, expected));
        assert_memory_equal(pixels + image_strip.camera.first_pixel, expected,
                            4ull * image_strip.camera.width * image_strip.camera.height);
    }
    /* All cameras come first, for the pass that finds unseen cells. */
    for (uint32_t view = 0; view < VIEWS; view++)
        assert_true(cameras[view].height == train->cameras[view].height &&
                    cameras[view].center_y == train->cameras[view].center_y);
    assert_int_equal(step->setup.constants.camera_count, VIEWS);
    assert_int_equal(step->setup.constants.view_count, plan->resident);
    free(pixels);
    free(cameras);
}

/* Stops within and at the end of update intervals; images from host memory, then from files. */
static void test_windows(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = config_of(4, true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct images_plan *plan = &tiny.trainer->images;
    char *start = save(tests, &tiny, "start");
    struct vkn_images images = {0};
    void *pixels = NULL;
    assert_true(plan->strips == 10 && plan->exchanged == 38 && plan->resident == 38);
    assert_true(plan->bytes <= config.scene.image_budget);
    uint64_t held = gpu_memory_allocated(tiny.trainer->device);
    for (int files = 0; files < 2; files++) {
        for (uint32_t step = 8; step <= 80; step += step < 40 ? 8 : 20) {
            tiny_run(&tiny, step);
            assert_window(&tiny, (step - 1) / 16);
        }
        vkn_trainer_images(tiny.trainer, &images);
        assert_int_equal(images.exchanged, 4 * 38 * (files + 1));
        assert_int_equal(images.late, 0);
        assert_true((images.host_bytes > 0) == (files == 0));
        if (files == 0) {
            pixels = forget_pixels(&tiny);
            ok(vkn_trainer_resume(tiny.trainer, start));
        }
    }
    assert_int_equal(gpu_memory_allocated(tiny.trainer->device),
                     held); /* streaming allocates nothing */
    tiny_destroy(&tiny);
    free(pixels);
    free(start);
}

/* ---- the same bits ------------------------------------------------------------------------- */

static volatile sig_atomic_t stop;

static void stop_soon(void *context, const struct vkn_train_stats *stats)
{
    (void)context;
    if (stats->step >= 32)
        stop = 1;
}

/* Interrupts as Ctrl-C would, while images are being streamed. */
static void run_interrupted(const struct tiny *tiny, uint32_t until_step)
{
    const struct vkn_train_run run = {
        .stop = &stop, .report_seconds = 1e-9, .report = stop_soon, .until_step = until_step};
    stop = 0;
    assert_int_equal(vkn_trainer_run(tiny->trainer, &run), VKN_INTERRUPTED);
    assert_true(vkn_trainer_step(tiny->trainer) >= 32 &&
                vkn_trainer_step(tiny->trainer) < until_step);
}

static void assert_same_files(const char *first, const char *second)
{
    char *a = NULL, *b = NULL;
    size_t a_size = 0, b_size = 0;
    ok(base_file_read(first, SIZE_MAX, &a, &a_size));
    ok(base_file_read(second, SIZE_MAX, &b, &b_size));
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    free(a);
    free(b);
}

/* Training with streaming and growing images gives the same checkpoint without stops, in parts that
 * resume each other, after an interruption, and with images from files. */
static void test_repeats(void **state)
{
    static const uint32_t parts[] = {7, 32, 53, 80};
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(4, true);
    config.steps = 80;
    make_progressive(&config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    char *start = save(tests, &tiny, "start");
    tiny_run(&tiny, 80);
    assert_window(&tiny, 4);
    char *whole = save(tests, &tiny, "whole"), *part = NULL;
    for (size_t i = 0; i < BASE_COUNT(parts); i++) {
        ok(vkn_trainer_resume(tiny.trainer, i == 0 ? start : part));
        tiny_run(&tiny, parts[i]);
        free(part);
        part = save(tests, &tiny, "part");
    }
    assert_same_files(whole, part);
    free(part);

    ok(vkn_trainer_resume(tiny.trainer, start));
    void *pixels = forget_pixels(&tiny);
    run_interrupted(&tiny, 80);
    part = save(tests, &tiny, "part");
    ok(vkn_trainer_resume(tiny.trainer, part));
    tiny_run(&tiny, 80);
    free(part);
    part = save(tests, &tiny, "part");
    assert_same_files(whole, part);
    tiny_destroy(&tiny);
    free(pixels);
    free(part);
    free(whole);
    free(start);
}

/* ---- progressive --------------------------------------------------------------------------- */

/* All images are resident: a new stage's replace the old ones within a few intervals. */
static void test_stages(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(64, true);
    make_progressive(&config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct images_plan *plan = &tiny.trainer->images;
    struct vkn_images images = {0};
    assert_int_equal(plan->resident, VIEWS);
    assert_int_equal(plan->exchanged, 3); /* four intervals for all */
    for (uint32_t interval = 0; interval < 12; interval++) {
        tiny_run(&tiny, 16 * interval + 16);
        assert_window(&tiny, interval);
        vkn_trainer_images(tiny.trainer, &images);
        assert_int_equal(images.streamed_per_interval, 0);
        assert_int_equal(images.downscale, interval < 3 ? 4 : interval < 6 ? 2 : 1);
        /* Three per interval from the stage's first; a stage may end before all are loaded. */
        uint32_t expected = interval < 3 ? 0 : 3 * (interval - 2);
        assert_int_equal(images.exchanged, expected < 21 ? expected : 21);
    }
    tiny_destroy(&tiny);
}

/* In a run with a time limit images grow with time, and a resumed run continues at its own time.
 * Images that are not loaded in time are exchanged later. */
static void test_time(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(4, false);
    make_progressive(&config);
    config.steps = 0;
    config.seconds = 1e6;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct images_plan *plan = &tiny.trainer->images;
    struct vkn_images images = {0};
    tiny_run(&tiny, 160);
    vkn_trainer_images(tiny.trainer, &images);
    assert_int_equal(images.downscale, 4);
    assert_int_equal(images.exchanged / plan->exchanged + images.late, 9);
    assert_true(images.exchanged > 0);
    assert_window(&tiny, images.exchanged / plan->exchanged);
    char *path = save(tests, &tiny, "timed");
    /* As with --resume --seconds: 160 steps took a quarter of the time, 16 more take little. */
    tiny.trainer->config.seconds = vkn_trainer_seconds(tiny.trainer) / 0.26;
    ok(vkn_trainer_resume(tiny.trainer, path));
    tiny_run(&tiny, 176);
    vkn_trainer_images(tiny.trainer, &images);
    assert_int_equal(images.downscale, 2);
    struct Camera *cameras = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_CAMERAS]);
    for (uint32_t slot = 0; slot < plan->resident; slot++)
        assert_int_equal(cameras[VIEWS + slot].width, SIZE / 2);
    free(cameras);
    tiny_destroy(&tiny);
    free(path);
}

static void refuse(const struct step_tests *tests, const struct vkn_config *config,
                   const char *part)
{
    vkn_scene *scene = NULL;
    vkn_trainer *trainer = NULL;
    ok(vkn_scene_open(tests->folder->path, config, &scene));
    assert_int_equal(vkn_trainer_create(tests->context, scene, config, &trainer), VKN_BAD_INPUT);
    assert_null(trainer);
    assert_error(part);
    vkn_scene_close(&scene);
}

static void test_refused(void **state)
{
    struct vkn_config config = config_of(4, true);
    config.progressive.enabled = true;
    config.progressive.start_downscale = 6;
    refuse(*state, &config, "config: progressive.start_downscale: 6 is neither 2, 4 nor 8");
    config.progressive.start_downscale = 0;
    config.steps = 0;
    config.seconds = 5;
    refuse(*state, &config,
           "config: progressive.enabled: in a deterministic run the reduction depends on");
    config = config_of(1, true);
    config.scene.host_budget = 1;
    refuse(*state, &config, ".png: 48x48 pixels in 1 strips of 0.01 MiB: at least 2");
}

/* ---- a share ------------------------------------------------------------------------------- */

/* The second of five ranks has views 1, 6 and 11; after the list of all cameras its windows are as
 * if no other views existed. With parameter averaging it runs here without the others. */
static void test_share(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(2, true);
    struct parallel_group *group;
    struct tiny tiny = {.context = tests->context};
    config.parallel.images = VKN_PART_SHARE;
    config.parallel.mode = VKN_PARALLEL_AVERAGE;
    ok(parallel_group_create(5, &group));
    ok(vkn_scene_open(tests->folder->path, &config, &tiny.scene));
    ok(train_create(tiny.context, tiny.scene, &config, parallel_group_rank(group, 1),
                    &tiny.trainer));
    tiny.trainer->parallel = NULL;
    const struct images_plan *plan = &tiny.trainer->images;
    assert_true(plan->cameras == VIEWS && plan->views == 3 && plan->strips > 1);
    assert_true(plan->resident < plan->image_strips && plan->bytes <= config.scene.image_budget);
    assert_int_equal(tiny.scene->splits[SCENE_TRAIN].pixel_count, 3 * SIZE * SIZE);
    for (uint32_t step = 8; step <= 56; step += 16) {
        tiny_run(&tiny, step);
        assert_window(&tiny, (step - 1) / 16);
    }
    for (uint32_t image_strip = 0; image_strip < plan->image_strips; image_strip++)
        assert_int_equal(
            images_strip(plan, &tiny.scene->splits[SCENE_TRAIN], image_strip, 0, 1).view % 5, 1);
    tiny_destroy(&tiny);
    parallel_group_destroy(&group);
}

/* ---- quality ------------------------------------------------------------------------------- */

/* Returns the mean PSNR over all training views after the last step. */
static double quality_of(const struct tiny *tiny)
{
    vkn_renderer *renderer = NULL;
    double sum = 0;
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    for (size_t view = 0; view < VIEWS; view++) {
        const struct scene_camera *camera = &tiny->scene->splits[SCENE_TRAIN].cameras[view];
        struct vkn_picture picture = {0};
        uint32_t pixels[SIZE * SIZE];
        float target[3 * SIZE * SIZE];
        ok(render_picture(renderer, camera, VKN_BACKGROUND_BLACK, 1, &picture));
        ok(scene_read_view(tiny->scene, SCENE_TRAIN, view, 1, pixels));
        for (uint32_t i = 0; i < 3 * camera->width * camera->height; i++)
            target[i] = (float)(pixels[i / 3] >> 8 * (i % 3) & 255) / 255.0f;
        sum += vkn_psnr(picture.color, target, NULL, camera->width, camera->height);
        render_picture_free(&picture);
    }
    vkn_renderer_destroy(&renderer);
    return sum / VIEWS;
}

/* A half-trained field improves equally with half of the images resident and with all. (Trained
 * from the start, so few steps differ by a dB between seeds.) */
static void test_quality(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config streaming = config_of(6, true), all = config_of(64, true);
    streaming.steps = all.steps = 288;
    const float early[] = {0.5f, 0.75f, 0.9f}; /* for less noise at the end */
    memcpy(streaming.optimizer.milestones, early, sizeof early);
    memcpy(all.optimizer.milestones, early, sizeof early);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &all);
    assert_int_equal(tiny.trainer->images.exchanged, 0);
    tiny_run(&tiny, 160);
    char *half = save(tests, &tiny, "half");
    double before = quality_of(&tiny);
    tiny_run(&tiny, all.steps);
    double resident = quality_of(&tiny);
    uint64_t held = gpu_memory_allocated(tiny.trainer->device), bytes = 0;
    uint64_t images = tiny.trainer->images.bytes;
    tiny_destroy(&tiny);

    tiny = tiny_create(tests->context, tests->folder, &streaming);
    const struct images_plan *plan = &tiny.trainer->images;
    ok(vkn_trainer_resume(tiny.trainer, half));
    tiny_run(&tiny, streaming.steps);
    double streamed = quality_of(&tiny);
    print_message("PSNR: %.2f dB halfway, then %.2f dB with half of the images at a time, %.2f dB "
                  "with all\n",
                  before, streamed, resident);
    assert_true(resident > before + 0.5);
    assert_true(fabs(streamed - resident) < 0.1);

    /* The budget is kept; staging memory and a camera per strip come on top. */
    assert_true(plan->bytes <= streaming.scene.image_budget && plan->bytes < images);
    uint64_t more =
        IMAGES_EXCHANGES * plan->exchange_bytes + plan->resident * sizeof(struct Camera);
    held = held - images + plan->bytes + more;
    uint64_t now = gpu_memory_allocated(tiny.trainer->device);
    assert_true(now + 4096 > held && now < held + 4096); /* alignment of a few buffers */
    ok(train_memory(tiny.trainer->device, tiny.scene, &tiny.trainer->config, &bytes));
    assert_true(bytes <= now);
    tiny_destroy(&tiny);
    free(half);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* An image that cannot be read when it is needed ends the run, which is saved. This test comes last
 * because the file stays damaged. */
static void test_damaged(void **state)
{
    const struct step_tests *tests = *state;
    static const struct vkn_job quietly = {.quiet = true};
    struct vkn_config config = config_of(4, true);
    struct vkn_train_params params = {
        .job = &quietly, .scene = tests->folder->path, .config = &config};
    struct vkn_train_result *result;
    uint32_t order[VIEWS];
    const struct images_plan plan = {.image_strips = VIEWS}; /* from files strips are whole views */
    char name[32], *out = base_path_join(tests->folder->path, "run");
    images_shuffle(&plan, config.seed, order);
    snprintf(name, sizeof name, "view_%02u.png", order[6]); /* four resident, then others */
    char *image = base_path_join(tests->folder->path, name);
    assert_int_equal(truncate(image, 100), 0);
    config.scene.host_budget = 1;
    params.out = out;
    assert_int_equal(vkn_run_train(&params, &result), VKN_BAD_INPUT);
    assert_error(name);
    assert_error("truncated PNG; step 16 is saved, go on with: vknerf train --resume ");
    struct vkn_run_state run = {0};
    ok(vkn_run_inspect(out, &run));
    assert_true(run.exists && !run.finished && run.step == 16);
    vkn_train_result_free(&result);
    free(image);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows), cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_stages),  cmocka_unit_test(test_time),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_share),
        cmocka_unit_test(test_quality), cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, setup, step_tests_teardown);
}
