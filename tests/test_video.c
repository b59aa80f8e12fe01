/* Tests videos with a stand-in for ffmpeg: its arguments and input, and all kinds of failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/video.h"
#include "scenes.h"

/* The stand-in writes its arguments, one per line, and the number of bytes read to files beside
 * itself; $FAKE selects how it ends. */
static const char stand_in[] = "#!/bin/sh\n"
                               "here=${0%/*}\n"
                               "PATH=/usr/bin:/bin\n"
                               "printf '%s\\n' \"$@\" >\"$here/arguments\"\n"
                               "case $FAKE in\n"
                               "deaf) exit 1 ;;\n"
                               "early) exit 0 ;;\n"
                               "killed) kill -9 $$ ;;\n"
                               "esac\n"
                               "wc -c >\"$here/bytes\"\n"
                               "for file; do :; done\n"
                               "echo video | cat >\"${file#file:}\" || exit 1\n"
                               "[ \"$FAKE\" != fails ] || { printf '\\nno space\\nthen this\\nlast "
                               "words\\n\\n' >&2; exit 3; }\n";

#define WIDTH  300u
#define HEIGHT 200u
#define FRAMES 3u /* more than a socket buffers */

static const struct render_video_format rgb_format = {WIDTH, HEIGHT, 3, 12.5};
static const struct render_video_format grey_format = {WIDTH, HEIGHT, 1, 12.5};

static int set_up(void **state)
{
    if (temporary_setup(state) != 0)
        return -1;
    struct temporary *folder = *state;
    char *program = temporary_text(folder, "bin/ffmpeg", stand_in);
    char *dull = temporary_text(folder, "dull/ffmpeg", "not to be executed");
    char path[256];
    /* Entries of PATH without ffmpeg, or with one that is not executable, are skipped. */
    snprintf(path, sizeof(path), "/none::%s/dull:%s/bin", folder->path, folder->path);
    setenv("PATH", path, 1);
    setenv("FAKE", "", 1);
    assert_int_equal(chdir("/"), 0);
    unsetenv("LD_LIBRARY_PATH"); /* the sanitizers' libraries do not suit other programs */
    return chmod(program, 0700) != 0 || chmod(dull, 0600) != 0;
}

/* Returns the content of a file of the folder; the caller frees it. */
static char *content(struct temporary *folder, const char *name)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(temporary_path(folder, name), 1 << 20, &data, &size));
    return data;
}

static vkn_status make_of(const char *path, const struct render_video_format *format)
{
    struct render_video *video = NULL;
    uint8_t *pixels = base_alloc((size_t)format->width * format->height, format->channels);
    assert_non_null(pixels);
    vkn_status status = render_video_begin(path, format, &video), added = status;
    assert_true((video != NULL) == (status == VKN_OK));
    for (uint32_t frame = 0; frame < FRAMES && added == VKN_OK; frame++)
        added = render_video_add(video, pixels);
    if (status == VKN_OK)
        status = render_video_end(&video, true);
    assert_null(video);
    assert_true(added == VKN_OK || status != VKN_OK);
    free(pixels);
    return status;
}

static vkn_status make(const char *path)
{
    return make_of(path, &rgb_format);
}

/* ffmpeg gets exactly these arguments, ending in the name of a temporary file, and raw frames of
 * this size and rate. An MP4 plays everywhere, also while loading: 4:2:0 with even sides, the index
 * in front, and colours converted to and labelled as BT.709 with sRGB's curve. A GIF has one
 * palette for all frames. */
static void assert_arguments(const char *arguments, const char *pixels, bool gif, const char *name)
{
    char expected[1024];
    snprintf(expected, sizeof(expected),
             "-hide_banner\n-loglevel\nerror\n-nostats\n-y\n"
             "-f\nrawvideo\n-pix_fmt\n%s\n-s:v\n300x200\n-r\n12.5\n-i\npipe:0\n%sfile:%s.",
             pixels,
             gif ? "-filter_complex\n"
                   "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=sierra2_4a\n-f\ngif\n"
                 : "-vf\ncrop=trunc(iw/2)*2:trunc(ih/2)*2:0:0,"
                   "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p\n"
                   "-colorspace\nbt709\n-color_primaries\nbt709\n-color_trc\niec61966-2-1\n"
                   "-movflags\n+faststart\n-f\nmp4\n",
             name);
    if (strncmp(arguments, expected, strlen(expected)) != 0)
        fail_msg("%s is not %s", arguments, expected);
    const char *rest = arguments + strlen(expected);
    assert_int_equal(strcspn(rest, "\n") + 1, strlen(rest)); /* the last one */
    assert_string_equal(rest + strlen(rest) - 5, ".tmp\n");
}

static void check_names(struct temporary *folder, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(chdir(folder->path), 0);
        assert_ok(make(names[i]));
        char *arguments = content(folder, "bin/arguments"), *bytes = content(folder, "bin/bytes");
        char *video = content(folder, names[i]);
        assert_string_equal(video, "video\n");
        assert_int_equal(strtol(bytes, NULL, 10), FRAMES * WIDTH * HEIGHT * 3);
        assert_arguments(arguments, "rgb24", strstr(names[i], ".gif") != NULL, names[i]);
        free(arguments);
        free(bytes);
        free(video);
    }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(temporary_count(folder), 2 + count); /* nothing else is left */
}

/* Names that look like options, commands or protocols are only names. */
static void test_made(void **state)
{
    static const char *const names[] = {"turn.mp4", "-y 'a' $(x);%PATH%d \xc3\xa4.MP4", "^&.gif"};
    check_names(*state, names, BASE_COUNT(names));
}

static void test_names_of_unix(void **state)
{
    static const char *const names[] = {"a\"b\\.mp4", "pipe:1.gif"};
    check_names(*state, names, BASE_COUNT(names));
}

static void test_grey(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_path(folder, "depth.mp4");
    assert_ok(make_of(path, &grey_format));
    char *arguments = content(folder, "bin/arguments"), *bytes = content(folder, "bin/bytes");
    assert_arguments(arguments, "gray", false, path);
    assert_int_equal(strtol(bytes, NULL, 10), FRAMES * WIDTH * HEIGHT);
    free(arguments);
    free(bytes);
}

/* After a failure an older video is unchanged, and nothing else is left. */
static void check_failure(struct temporary *folder, const char *how, const char *message)
{
    char *path = temporary_text(folder, "old.gif", "old");
    setenv("FAKE", how, 1);
    assert_int_equal(make(path), VKN_ERROR);
    assert_error(path);
    assert_error(message);
    char *old = content(folder, "old.gif");
    assert_string_equal(old, "old");
    free(old);
}

static void test_failures(void **state)
{
    struct temporary *folder = *state;
    check_failure(folder, "fails", "ffmpeg failed (exit status 3): no space ... last words");
    check_failure(folder, "deaf", "ffmpeg failed (exit status 1): it says nothing");
    check_failure(folder, "early", "ffmpeg ended too early");
    setenv("PATH", "/none", 1);
    check_failure(folder, "", "no ffmpeg in PATH; install it");
    unsetenv("PATH");
    check_failure(folder, "", "no ffmpeg in PATH; install it");
}

static void test_failures_of_scripts(void **state)
{
    struct temporary *folder = *state;
    check_failure(folder, "killed", "ffmpeg failed (signal 9): ");
    temporary_text(folder, "broken/ffmpeg", "#!/none/at/all\n");
    char *broken = temporary_path(folder, "broken");
    chmod(temporary_path(folder, "broken/ffmpeg"), 0700);
    setenv("PATH", broken, 1);
    check_failure(folder, "", "broken/ffmpeg cannot be started: No such file");
}

static void test_full_disk(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_path(folder, "full.mp4");
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_int_equal(make(path), VKN_ERROR);
    assert_error("ffmpeg failed (exit status 1): ");
    assert_error("No space left on device");
}

static void test_bad_names(void **state)
{
    struct temporary *folder = *state;
    assert_int_equal(make("turn.avi"), VKN_BAD_INPUT);
    assert_error("turn.avi: a video's name ends in .mp4 or .gif");
    assert_int_equal(make(".mp4"), VKN_BAD_INPUT);
    assert_int_equal(make(""), VKN_BAD_INPUT);
    const struct render_video_format flat = {WIDTH, 1, 3, 12.5};
    assert_int_equal(make_of(temporary_path(folder, "flat.mp4"), &flat), VKN_BAD_INPUT);
    assert_error("flat.mp4: 300x1 pixels are too few for MP4");
    assert_int_equal(temporary_count(folder), 2);
    assert_int_equal(make(temporary_impossible(folder, "turn.mp4")), VKN_BAD_INPUT);
    assert_error("/turn.mp4: cannot be written: Not a directory");
}

static void test_given_up(void **state)
{
    struct temporary *folder = *state;
    struct render_video *video = NULL;
    assert_ok(render_video_end(&video, true)); /* none */
    assert_ok(render_video_begin(temporary_path(folder, "a.mp4"), &rgb_format, &video));
    assert_ok(render_video_end(&video, false));
    assert_false(base_file_exists(temporary_path(folder, "a.mp4")));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_made),
        TEST(test_names_of_unix),
        TEST(test_grey),
        TEST(test_failures),
        TEST(test_failures_of_scripts),
        TEST(test_full_disk),
        TEST(test_bad_names),
        TEST(test_given_up),
    };
    return cmocka_run_group_tests_name("video", tests, NULL, NULL);
}
