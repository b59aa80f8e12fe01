/* Tests which images have a plain background, and the defaults that follow from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include <vknerf/scene.h>

#include "gpu/gpu.h"
#include "images/images.h"
#include "pixels/pixels.h"
#include "scenes.h"
#include "step/step.h"

#define WIDTH  48u
#define HEIGHT 32u

/* A capture whose images show an object in front of a background. */
struct capture {
    size_t views, cut;  /* of these, `cut` have an object that covers half of the border */
    uint8_t color[3];   /* of the background */
    int noise, quality; /* amplitude of noise; quality of JPEG files, 0: PNG files */
    uint8_t alpha;      /* of the background; 0: 255 */
    bool gradient;      /* the background gets brighter to the right */
    enum { UNMASKED, OBJECT_ONLY, NO_OBJECT } mask; /* used pixels */
};

static uint8_t clamped(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void draw(const struct capture *capture, size_t view, uint8_t *rgba, uint8_t *mask)
{
    uint32_t state = (uint32_t)view * 747796405u + 1;
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++, rgba += 4) {
        int x = (int)(i % WIDTH), y = (int)(i / WIDTH), dx = x - 24, dy = y - 16;
        bool is_object = view < capture->cut ? x < 24 : dx * dx + dy * dy < 100;
        for (int c = 0; c < 3; c++) {
            state = state * 1664525u + 1013904223u;
            int noise = (int)(state >> 24) * (2 * capture->noise + 1) / 256 - capture->noise;
            int color = (int)capture->color[c] + (capture->gradient ? x - 24 : 0) + noise;
            rgba[c] = is_object ? (uint8_t)(4 * x + 40 * c + 3 * (int)view) : clamped(color);
        }
        rgba[3] = !is_object && capture->alpha > 0 ? capture->alpha : 255;
        mask[i] = is_object == (capture->mask == OBJECT_ONLY) ? 255 : 0;
    }
}

static void write_image(struct temporary *folder, const struct capture *capture, size_t view)
{
    uint8_t rgba[4 * WIDTH * HEIGHT], mask[WIDTH * HEIGHT];
    char name[32];
    draw(capture, view, rgba, mask);
    snprintf(name, sizeof name, "m%zu.png", view);
    if (capture->mask)
        assert_ok(scene_image_write_png(temporary_path(folder, name), mask, WIDTH, HEIGHT, 1));
    snprintf(name, sizeof name, "%zu.%s", view, capture->quality > 0 ? "jpg" : "png");
    char *path = temporary_path(folder, name);
    if (capture->quality == 0) {
        assert_ok(scene_image_write_png(path, rgba, WIDTH, HEIGHT, 4));
        return;
    }
    const struct pixels_jpeg picture = {.pixels = rgba,
                                        .width = WIDTH,
                                        .height = HEIGHT,
                                        .channels = 4,
                                        .quality = capture->quality};
    size_t size = 0;
    void *jpeg = pixels_write_jpeg(&picture, &size);
    assert_non_null(jpeg);
    assert_ok(base_file_replace(path, jpeg, size));
    free(jpeg);
}

static void write_capture(struct temporary *folder, const struct capture *capture)
{
    struct base_text text = {0};
    base_text_add(&text, "{\"camera_angle_x\": 0.7, \"frames\": [");
    for (size_t i = 0; i < capture->views; i++) {
        char mask[48] = "";
        if (capture->mask)
            snprintf(mask, sizeof mask, "\"mask_path\": \"m%zu.png\", ", i);
        write_image(folder, capture, i);
        base_text_add(&text,
                      "%s{\"file_path\": \"%zu.%s\", %s\"transform_matrix\": "
                      "[[1,0,0,%zu],[0,1,0,0],[0,0,1,4],[0,0,0,1]]}",
                      i > 0 ? "," : "", i, capture->quality > 0 ? "jpg" : "png", mask, i);
    }
    base_text_add(&text, "]}");
    temporary_text(folder, "transforms_train.json", text.data);
    free(text.data);
}

static struct vkn_scene *open_capture(struct temporary *folder, const struct capture *capture)
{
    struct vkn_scene *scene = NULL;
    write_capture(folder, capture);
    assert_ok(scene_open(&(struct scene_options){.path = folder->path}, &scene));
    return scene;
}

/* ---- recognising ----------------------------------------------------------------------------- */

#define NONE  VKN_BACKGROUND_DEFAULT
#define WHITE VKN_BACKGROUND_WHITE
#define BLACK VKN_BACKGROUND_BLACK

static const struct {
    struct capture capture;
    bool is_plain;
    enum vkn_background named;
} cases[] = {
    {{.views = 4, .color = {255, 255, 255}}, true, WHITE},
    {{.views = 4, .color = {0, 0, 0}}, true, BLACK},
    {{.views = 4, .color = {128, 128, 128}}, true, NONE},
    {{.views = 4, .color = {255, 255, 0}}, true, NONE},
    {{.views = 4, .color = {252, 253, 252}}, true, WHITE},
    {{.views = 4, .color = {251, 255, 255}}, true, NONE}, /* white would cost PSNR */
    {{.views = 4, .color = {3, 0, 2}}, true, BLACK},
    {{.views = 4, .color = {0, 4, 0}}, true, NONE},
    {{.views = 4, .color = {255, 255, 255}, .quality = 60}, true, WHITE},
    {{.views = 4, .color = {255, 255, 255}, .noise = 6}, true, WHITE},
    {{.views = 4, .color = {128, 128, 128}, .noise = 3, .quality = 90}, true, NONE},
    {{.views = 4, .color = {128, 128, 128}, .noise = 40}, false, NONE},
    {{.views = 4, .color = {200, 200, 200}, .gradient = true}, false, NONE},
    {{.views = 4, .color = {255, 255, 255}, .alpha = 254}, false, NONE},
    {{.views = 4, .color = {255, 255, 255}, .mask = OBJECT_ONLY}, false, NONE},
    {{.views = 4, .color = {255, 255, 255}, .mask = NO_OBJECT}, true, WHITE},
    {{.views = 3, .color = {255, 255, 255}}, true, WHITE},
    {{.views = 2, .color = {255, 255, 255}}, false, NONE},
    {{.views = 16, .cut = 4, .color = {255, 255, 255}}, true, WHITE},
    {{.views = 16, .cut = 5, .color = {255, 255, 255}}, false, NONE},
};

static void check_background(const struct vkn_scene *scene, size_t i)
{
    const struct scene_background *background = &scene->background;
    if (background->is_plain != cases[i].is_plain ||
        scene_plain_background(scene) != cases[i].named)
        fail_msg("case %zu: %d, %d", i, background->is_plain, scene_plain_background(scene));
    for (int c = 0; c < 3 && background->is_plain; c++)
        assert_in_range(background->color[c] + 2, cases[i].capture.color[c],
                        cases[i].capture.color[c] + 4);
}

/* Images in memory and streamed images have the same background. */
static void test_recognised(void **state)
{
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct temporary *folder = NULL;
        assert_int_equal(temporary_setup((void **)&folder), 0);
        struct vkn_scene *scene = open_capture(folder, &cases[i].capture);
        struct vkn_config streamed = {.scene.host_budget = 1}, loaded = {0};
        assert_ok(stream_load(scene, &streamed, NULL, NULL));
        assert_null(scene->splits[SCENE_TRAIN].pixels);
        check_background(scene, i);
        scene->background = (struct scene_background){0};
        assert_ok(stream_load(scene, &loaded, NULL, NULL));
        assert_non_null(scene->splits[SCENE_TRAIN].pixels);
        check_background(scene, i);
        scene_close(&scene);
        temporary_teardown((void **)&folder);
    }
    (void)state;
}

/* Evenly spaced views are read, in large images every pixel along the border. A view that cannot be
 * read does not count. */
static void test_sample(void **state)
{
    struct temporary *folder = *state;
    const struct capture capture = {.views = 40, .cut = 11, .color = {255, 255, 255}};
    struct vkn_scene *scene = open_capture(folder, &capture);
    scene_find_background(scene); /* views 0, 2, 5, 7, 10, 12, ...: five of sixteen are cut */
    assert_int_equal(scene->background.views, 16);
    assert_int_equal(scene->background.plain_views, 11);
    assert_false(scene->background.is_plain);
    temporary_text(folder, "0.png", "");
    temporary_text(folder, "2.png", "");
    scene_find_background(scene);
    assert_int_equal(scene->background.views, 14);
    assert_true(scene->background.is_plain);
    scene_close(&scene);
}

/* ---- what follows ---------------------------------------------------------------------------- */

static void resolve(const struct vkn_scene *scene, struct vkn_config *config)
{
    const struct gpu_capabilities device = {.type = GPU_DISCRETE};
    assert_ok(setup_resolve_config(config, scene, &device));
}

static void assert_distortion(const struct vkn_config *config, double wanted)
{
    assert_true(fabs((double)config->loss.distortion - wanted) < 1e-8);
}

static void test_defaults(void **state)
{
    struct vkn_scene *scene = open_capture(*state, &cases[0].capture);
    const struct vkn_config linear = {.loss.distortion_curve = VKN_DISTORTION_LINEAR};
    struct vkn_config before = linear, config = linear, other = linear, proposal = linear;
    struct vkn_config given = {.background = VKN_BACKGROUND_WHITE, .loss.distortion = 0.5F};
    struct vkn_config ladder = {0};
    other.background = VKN_BACKGROUND_BLACK;
    proposal.march.sampling = VKN_SAMPLING_PROPOSAL;
    resolve(scene, &before);
    assert_int_equal(before.background, VKN_BACKGROUND_RANDOM);
    assert_distortion(&before, -1);
    scene_find_background(scene);
    resolve(scene, &config);
    assert_int_equal(config.background, VKN_BACKGROUND_WHITE);
    assert_distortion(&config, 3e-3);
    resolve(scene, &other);
    assert_int_equal(other.background, VKN_BACKGROUND_BLACK);
    assert_distortion(&other, -1);
    resolve(scene, &given);
    assert_distortion(&given, 0.5);
    resolve(scene, &proposal);
    assert_distortion(&proposal, 2e-3);
    resolve(scene, &ladder);
    assert_distortion(&ladder, 3e-3); /* few views */
    scene_close(&scene);
}

static void test_info(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene_info_params params = {.size = sizeof params, .scene = folder->path};
    for (size_t i = 0; i < 3; i++) {
        static const char *const wanted[] = {
            "plain white background, #ffffff along the borders of 4 of 4 images",
            "plain black background, #000000 along the borders of 4 of 4 images",
            "plain background, #808080 along the borders of 4 of 4 images",
        };
        char *text = NULL;
        write_capture(folder, &cases[i].capture);
        assert_ok(vkn_scene_info_json(&params, &text));
        cJSON *json = cJSON_Parse(text);
        assert_string_equal(cJSON_GetObjectItem(json, "background")->valuestring, wanted[i]);
        cJSON_Delete(json);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recognised),
        cmocka_unit_test_setup_teardown(test_sample, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_defaults, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_info, temporary_setup, temporary_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
