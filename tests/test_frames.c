/* Tests the files of a rendering: videos show what the pictures show, and depths of all frames
 * share one scale. A script replaces ffmpeg and writes its input to the video. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/depths.h"
#include "render/render.h"
#include "render/writer.h"
#include "scene/image.h"
#include "scenes.h"

/* $FAKE: part of the names of videos for which the script fails. */
static const char stand_in[] = "#!/bin/sh\n"
                               "PATH=/usr/bin:/bin\n"
                               "for file; do :; done\n"
                               "case $file in *$FAKE*) echo no luck >&2; exit 1 ;; esac\n"
                               "cat >\"${file#file:}\"\n";

#define WIDTH  3u
#define HEIGHT 2u
#define PIXELS (WIDTH * HEIGHT)
#define FRAMES 2u

static int set_up(void **state)
{
    if (temporary_setup(state) != 0)
        return -1;
    struct temporary *folder = *state;
    char *program = temporary_text(folder, "bin/ffmpeg", stand_in);
    setenv("PATH", temporary_path(folder, "bin"), 1);
    setenv("FAKE", "nothing", 1);
    unsetenv("LD_LIBRARY_PATH"); /* not for the machine's programs */
    return chmod(program, 0700);
}

/* ---- a rendering --------------------------------------------------------------------------- */

/* Asks for all maps, with a video of each. */
static struct vkn_render_params all_maps(struct temporary *folder)
{
    return (struct vkn_render_params){
        .color = true,
        .depth = true,
        .opacity = true,
        .normal = true,
        .video = temporary_path(folder, "turn.mp4"),
        .depth_video = temporary_path(folder, "turn_depth.mp4"),
        .opacity_video = temporary_path(folder, "turn_opacity.mp4"),
        .normal_video = temporary_path(folder, "turn_normal.mp4"),
        .out = temporary_path(folder, "out"),
    };
}

/* Depth 9 has a low opacity and is ignored; depth 2 is in both frames. */
static float depths[FRAMES][PIXELS] = {{2, 3, 4, 0, 9, 2.5f}, {6, 5, 2, 9, 0, 3}};
static float opacities[FRAMES][PIXELS] = {{1, 1, 0.5f, 0, 0.4f, 1}, {1, 0.9f, 1, 0.1f, 0, 0.6f}};

static vkn_status add(struct render_frames *frames, unsigned frame)
{
    float color[3 * PIXELS], normal[3 * PIXELS];
    for (unsigned i = 0; i < 3 * PIXELS; i++) {
        color[i] = (float)(i + 20 * frame) / 255.0f;
        normal[i] = i % 3 == frame ? -1.0f : 0.0f;
    }
    return render_frames_add(frames, &(struct vkn_picture){.width = WIDTH,
                                                           .height = HEIGHT,
                                                           .color = color,
                                                           .opacity = opacities[frame],
                                                           .depth = depths[frame],
                                                           .normal = normal});
}

static vkn_status make(const struct vkn_render_params *params, unsigned count, vkn_status rendered,
                       struct vkn_render_result *result)
{
    struct scene_camera cameras[FRAMES] = {{.width = WIDTH, .height = HEIGHT},
                                           {.width = WIDTH, .height = HEIGHT}};
    const struct scene_camera_path views = {.cameras = cameras, .count = FRAMES};
    struct render_frames *frames = NULL;
    vkn_status status = render_frames_begin(params, &views, &frames);
    assert_true((frames != NULL) == (status == VKN_OK));
    if (status != VKN_OK)
        return status;
    for (unsigned frame = 0; frame < count; frame++)
        assert_ok(add(frames, frame));
    if (rendered != VKN_OK)
        base_fail(rendered, "its end");
    status = render_frames_end(&frames, rendered, result);
    assert_null(frames);
    return status;
}

/* ---- contents of files ----------------------------------------------------------------------- */

/* Reads a file of `wanted` bytes; the caller frees the result. */
static uint8_t *content(struct temporary *folder, const char *name, size_t wanted)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(temporary_path(folder, name), 1 << 20, &data, &size));
    assert_int_equal(size, wanted);
    return (uint8_t *)data;
}

/* Each frame of the video equals its picture. */
static void check_video(struct temporary *folder, const char *kind, unsigned channels,
                        unsigned frames)
{
    char name[64];
    snprintf(name, sizeof(name), "turn%s.mp4", kind);
    uint8_t *video = content(folder, name, (size_t)frames * PIXELS * channels);
    for (unsigned frame = 0; frame < frames; frame++) {
        uint8_t *rgba = NULL;
        uint32_t width = 0, height = 0;
        snprintf(name, sizeof(name), "out/frame_%04u%s.png", frame, kind);
        assert_ok(scene_image_read(temporary_path(folder, name), &rgba, &width, &height));
        assert_true(width == WIDTH && height == HEIGHT);
        for (unsigned i = 0; i < PIXELS * channels; i++)
            assert_int_equal(video[frame * PIXELS * channels + i],
                             rgba[i / channels * 4 + i % channels]);
        free(rgba);
    }
    free(video);
}

static void check_videos(struct temporary *folder, unsigned frames)
{
    check_video(folder, "", 3, frames);
    check_video(folder, "_depth", 1, frames);
    check_video(folder, "_opacity", 1, frames);
    check_video(folder, "_normal", 3, frames);
}

static bool exists(struct temporary *folder, const char *name)
{
    return base_file_exists(temporary_path(folder, name));
}

static size_t count_in(struct temporary *folder, const char *name)
{
    struct temporary inner = {0};
    const int length = snprintf(inner.path, sizeof(inner.path), "%s/%s", folder->path, name);
    assert_true(length < (int)sizeof(inner.path));
    return temporary_count(&inner);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_one_scale(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = all_maps(folder);
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    assert_true(result.frames == FRAMES && result.depth_nearest == 2 && result.depth_farthest == 6);
    check_videos(folder, FRAMES);
    uint8_t *depth = content(folder, "turn_depth.mp4", (size_t)FRAMES * PIXELS);
    static const uint8_t wanted[FRAMES * PIXELS] = {255, 192, 128, 0, 0, 223,
                                                    1,   65,  255, 0, 0, 192};
    for (unsigned i = 0; i < FRAMES * PIXELS; i++)
        assert_in_range(depth[i] + 1, wanted[i], wanted[i] + 2);
    free(depth);
    static const char scale[] = "{\"255\": 2, \"1\": 6, \"0\": null, \"unit\": \"of the dataset\", "
                                "\"depth_unit_scale_factor\": 0.0001}\n";
    uint8_t *json = content(folder, "out/depth_scale.json", strlen(scale));
    assert_memory_equal(json, scale, strlen(scale));
    free(json);
}

static void test_interrupted(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = all_maps(folder);
    assert_int_equal(make(&params, 1, VKN_INTERRUPTED, &result), VKN_INTERRUPTED);
    assert_error("its end");
    assert_true(result.frames == 1 && result.depth_farthest == 4);
    check_videos(folder, 1);
}

/* Without any frame there is no video, whatever ended the rendering. */
static void test_no_frames(void **state)
{
    struct temporary *folder = *state;
    static const vkn_status ends[] = {VKN_INTERRUPTED, VKN_ERROR};
    struct vkn_render_params params = all_maps(folder);
    temporary_text(folder, "turn_normal.mp4", "old");
    temporary_text(folder, "out/depth_scale.json", "of an earlier rendering");
    for (unsigned i = 0; i < BASE_COUNT(ends); i++) {
        struct vkn_render_result result;
        assert_int_equal(make(&params, i, ends[i], &result), ends[i]);
        assert_false(exists(folder, "turn.mp4") || exists(folder, "turn_depth.mp4"));
    }
    free(content(folder, "turn_normal.mp4", 3));
    uint8_t *scale = content(folder, "out/depth_scale.json", 12);
    assert_memory_equal(scale, "{\"0\": null}\n", 12);
    free(scale);
}

/* If one video fails, the others and all pictures are complete. */
static void test_one_fails(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = all_maps(folder);
    setenv("FAKE", "_depth", 1);
    assert_int_equal(make(&params, FRAMES, VKN_OK, &result), VKN_ERROR);
    assert_error("turn_depth.mp4: ffmpeg failed (exit status 1): no luck; the frames are in ");
    assert_false(exists(folder, "turn_depth.mp4"));
    assert_true(exists(folder, "out/frame_0001_depth.png"));
    check_video(folder, "", 3, FRAMES);
    check_video(folder, "_normal", 3, FRAMES);
    setenv("PATH", "/none", 1);
    assert_int_equal(make(&params, FRAMES, VKN_OK, &result), VKN_ERROR);
    assert_error("turn.mp4: no ffmpeg in PATH");
    assert_int_equal(result.frames, FRAMES);
}

/* A video that cannot be written removes the videos that were begun. */
static void test_bad_path(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = all_maps(folder);
    params.normal_video = temporary_impossible(folder, "turn.mp4");
    assert_int_equal(make(&params, FRAMES, VKN_OK, &result), VKN_BAD_INPUT);
    assert_error("/turn.mp4: cannot be written: Not a directory");
    assert_int_equal(temporary_count(folder), 3); /* bin, out and the file instead of a folder */
}

/* A rendering removes the frames of an earlier rendering, and no file of the user's. */
static void test_older_frames(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = all_maps(folder);
    params.video = params.depth_video = params.opacity_video = params.normal_video = NULL;
    params.depth_values = true;
    temporary_text(folder, "out/frame_0007.png", "somebody's");
    temporary_text(folder, "out/frame_01.png", "somebody's");
    temporary_text(folder, "out/notes.txt", "somebody's");
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    assert_int_equal(count_in(folder, "out"), 5 * FRAMES + 2 + 3);
    params = (struct vkn_render_params){.color = true, .out = params.out};
    assert_ok(make(&params, 1, VKN_OK, &result));
    assert_int_equal(count_in(folder, "out"), 1 + 1 + 3);
    assert_true(exists(folder, "out/frame_0000.png") && exists(folder, "out/vknerf_frames.json"));
    free(content(folder, "out/frame_0007.png", 10));
}

/* An unfinished rendering keeps older frames; the next finished rendering removes them. */
static void test_older_frames_stay(void **state)
{
    static const vkn_status ends[] = {VKN_INTERRUPTED, VKN_ERROR};
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = {.depth = true, .out = temporary_path(folder, "out")};
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    params = (struct vkn_render_params){.color = true, .out = params.out};
    for (unsigned i = 0; i < BASE_COUNT(ends); i++) {
        assert_int_equal(make(&params, 1, ends[i], &result), ends[i]);
        assert_int_equal(count_in(folder, "out"), FRAMES + 3);
        assert_true(exists(folder, "out/frame_0001_depth.png"));
    }
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    assert_int_equal(count_in(folder, "out"), FRAMES + 1);
}

/* A rendering that stops before it overwrites a user's file does not list that file as its own. */
static void test_frames_in_the_way(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = {.color = true, .out = temporary_path(folder, "out")};
    temporary_text(folder, "out/frame_0001.png", "somebody's");
    assert_int_equal(make(&params, 1, VKN_INTERRUPTED, &result), VKN_INTERRUPTED);
    assert_ok(make(&params, 1, VKN_OK, &result));
    free(content(folder, "out/frame_0001.png", 10));
    assert_ok(make(&params, FRAMES, VKN_OK, &result)); /* now the frame is vknerf's */
    assert_ok(make(&params, 1, VKN_OK, &result));
    assert_false(exists(folder, "out/frame_0001.png"));
}

/* An invalid list of frames removes no file. */
static void test_broken_list(void **state)
{
    static const char *const lists[] = {"{\"rgb\": -1}", "{\"rgb\": 1e9, \"depth\": 2}", "[", ""};
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = {.color = true, .out = temporary_path(folder, "out")};
    for (unsigned i = 0; i < BASE_COUNT(lists); i++) {
        temporary_text(folder, "out/frame_0001.png", "somebody's");
        temporary_text(folder, "out/vknerf_frames.json", lists[i]);
        assert_ok(make(&params, 1, VKN_OK, &result));
        free(content(folder, "out/frame_0001.png", 10));
    }
}

/* A single view has its own scale, as in views/: nearest is white, farthest the darkest grey. */
static void test_one_depth(void **state)
{
    static const uint8_t wanted[PIXELS] = {255, 128, 1, 0, 0, 192};
    struct temporary *folder = *state;
    const char *path = temporary_path(folder, "depth.png");
    const struct vkn_picture picture = {
        .width = WIDTH, .height = HEIGHT, .depth = depths[0], .opacity = opacities[0]};
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    assert_ok(render_write_depth(path, &picture));
    assert_ok(scene_image_read(path, &rgba, &width, &height));
    assert_true(width == WIDTH && height == HEIGHT);
    for (unsigned i = 0; i < PIXELS; i++)
        assert_in_range(rgba[4 * i] + 1, wanted[i], wanted[i] + 2);
    free(rgba);
}

/* 16-bit depths are multiples of one unit; no colours or 8-bit maps are written with them. */
static void test_16_bits(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = {.depth16 = true, .out = temporary_path(folder, "out")};
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    assert_true(fabs(result.depth_unit - 1e-4) < 1e-12);
    for (unsigned frame = 0; frame < FRAMES; frame++) {
        char name[32];
        struct image_mask *steps;
        uint32_t width, height;
        snprintf(name, sizeof name, "out/frame_%04u_depth16.png", frame);
        assert_ok(image_read_mask(temporary_path(folder, name), &steps, &width, &height));
        assert_true(width == WIDTH && height == HEIGHT);
        for (unsigned i = 0; i < PIXELS; i++) {
            bool solid = opacities[frame][i] >= 0.5f;
            assert_int_equal(steps[i].value, solid ? lround((double)depths[frame][i] / 1e-4) : 0);
        }
        free(steps);
    }
    assert_int_equal(count_in(folder, "out"), FRAMES + 2); /* the unit, and the list of frames */
    params = (struct vkn_render_params){.opacity = true, .out = params.out};
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    assert_int_equal(count_in(folder, "out"), FRAMES + 1);
}

/* The unit is the smallest of 1, 2 or 5 times a power of ten with which 16 bits reach the depth. */
static void test_units(void **state)
{
    (void)state;
    static const double cases[][2] = {{6, 1e-4},       {6.5535, 1e-4},  {6.5536, 2e-4}, {20, 5e-4},
                                      {1e-3, 2e-8},    {65535, 1},      {65536, 2},     {1e9, 2e4},
                                      {0.65535, 1e-5}, {327675.0, 5.0}, {3, 5e-5},      {0, 0}};
    for (unsigned i = 0; i < BASE_COUNT(cases); i++) {
        const struct render_depths scale = {.farthest = cases[i][0]};
        double unit = render_depths_unit(&scale);
        assert_true(fabs(unit - cases[i][1]) <= 1e-9 * cases[i][1]);
        assert_true(unit * 65535 >= cases[i][0] * (1 - 1e-12));
    }
    float far[3] = {1e-6f, 6.5535f, 0};
    const struct render_depths depths_of_far = {.farthest = 6.5535, .values = far};
    uint16_t steps[3];
    render_depths_quantize(&depths_of_far, 3, steps);
    assert_true(steps[0] == 1 && steps[1] == 65535 && steps[2] == 0);
}

/* ---- the background writer ------------------------------------------------------------------- */

#define FILES 45u /* more than are written at once */

static struct render_file numbered(struct temporary *folder, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "files/%u.png", number);
    struct render_file file = {.path = base_format("%s/%s", folder->path, name),
                               .pixels = malloc(60ul * 50),
                               .width = 60,
                               .height = 50,
                               .channels = 1,
                               .bits = 8};
    assert_non_null(file.pixels);
    memset(file.pixels, (int)number, 60ul * 50);
    return file;
}

static void test_writer(void **state)
{
    struct temporary *folder = *state;
    struct render_writer writer = {0};
    assert_ok(base_make_folder(temporary_path(folder, "files")));
    for (unsigned i = 0; i < FILES; i++) {
        const struct render_file file = numbered(folder, i);
        assert_ok(render_writer_add(&writer, &file));
    }
    assert_ok(render_writer_finish(&writer));
    for (unsigned i = 0; i < FILES; i++) {
        char name[32];
        uint8_t *rgba = NULL;
        uint32_t width = 0, height = 0;
        snprintf(name, sizeof name, "files/%u.png", i);
        assert_ok(scene_image_read(temporary_path(folder, name), &rgba, &width, &height));
        assert_true(width == 60 && height == 50 && rgba[0] == i && rgba[4 * 2999] == i);
        free(rgba);
    }
    /* A path below a file: the first failure is reported once, by the next file in the same slot or
     * at the end, and no file remains. */
    folder = *state;
    for (unsigned count = 1; count <= FILES; count += FILES - 1) {
        vkn_status status = VKN_OK;
        writer = (struct render_writer){0};
        for (unsigned i = 0; i < count && status == VKN_OK; i++) {
            struct render_file file = numbered(folder, i);
            free(file.path);
            file.path = base_format("%s/%u.png", temporary_impossible(folder, "none"), i);
            status = render_writer_add(&writer, &file);
        }
        assert_int_equal(status, count == 1 ? VKN_OK : VKN_BAD_INPUT);
        if (status == VKN_OK)
            status = render_writer_finish(&writer);
        assert_int_equal(status, VKN_BAD_INPUT);
        assert_error("/0.png: cannot be written: Not a directory");
        render_writer_finish(&writer);
        assert_ok(render_writer_finish(&writer));
    }
    /* A file without pixels (out of memory) fails at once. */
    struct render_file file = numbered(folder, 0);
    free(file.pixels);
    file.pixels = NULL;
    assert_int_equal(render_writer_add(&writer, &file), VKN_ERROR);
    assert_ok(render_writer_finish(&writer));
}

/* A frame that cannot be written fails the rendering, at the latest when it ends. */
static void test_unwritten(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct scene_camera cameras[FRAMES] = {{.width = WIDTH, .height = HEIGHT},
                                           {.width = WIDTH, .height = HEIGHT}};
    const struct scene_camera_path views = {.cameras = cameras, .count = FRAMES};
    struct vkn_render_params params = {.color = true, .out = temporary_path(folder, "out")};
    struct render_frames *frames = NULL;
    assert_ok(render_frames_begin(&params, &views, &frames));
    assert_ok(base_make_folder(temporary_path(folder, "out/frame_0001.png")));
    vkn_status status = add(frames, 0);
    if (status == VKN_OK)
        status = add(frames, 1);
    status = render_frames_end(&frames, status, &result);
    assert_true(status != VKN_OK);
    assert_non_null(strstr(vkn_last_error(), "frame_0001.png"));
    assert_true(exists(folder, "out/frame_0000.png"));
}

/* With depth values only no pictures and no scale are written. */
static void test_numbers(void **state)
{
    struct temporary *folder = *state;
    struct vkn_render_result result;
    struct vkn_render_params params = {.depth_values = true,
                                       .out = temporary_path(folder, "numbers")};
    assert_ok(make(&params, FRAMES, VKN_OK, &result));
    free(content(folder, "numbers/frame_0001_depth.npy", 128 + PIXELS * sizeof(float)));
    assert_false(exists(folder, "numbers/frame_0000.png"));
    assert_false(exists(folder, "numbers/depth_scale.json"));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_one_scale),
        TEST(test_interrupted),
        TEST(test_no_frames),
        TEST(test_one_fails),
        TEST(test_bad_path),
        TEST(test_numbers),
        TEST(test_older_frames),
        TEST(test_older_frames_stay),
        TEST(test_frames_in_the_way),
        TEST(test_broken_list),
        TEST(test_one_depth),
        TEST(test_16_bits),
        TEST(test_units),
        TEST(test_writer),
        TEST(test_unwritten),
    };
    return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
