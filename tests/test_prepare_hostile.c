/* Tests preparations that are killed, and folders of photographs and scenes with unexpected
 * content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "stand_in.h"

/* ---- killed ---------------------------------------------------------------------------------- */

/* Kills prepare while the stand-in waits as `how` says; returns the process number in "waiting". */
static pid_t kill_in(struct request *request, const char *how)
{
    char *waiting = temporary_path(request->folder, "bin/waiting");
    fake(request->folder, how);
    pid_t child = fork();
    if (child == 0) {
        prepare(request);
        _exit(0);
    }
    await_line(waiting);
    char part[64];
    snprintf(part, sizeof(part), "scene: process %ld on ", (long)child);
    assert_fails(request, VKN_BAD_INPUT, part);
    assert_error(" is preparing this scene; wait for its end");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    char *process = content(request->folder, "bin/waiting");
    pid_t left = (pid_t)strtol(process, NULL, 10);
    free(process);
    unlink(waiting);
    assert_true(left > 0);
    return left;
}

/* Processes that a killed preparation started do not run during the next preparation. */
static void test_killed(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    assert_true(ends_soon(kill_in(&request, "slow exhaustive_matcher")));
    /* A child process of COLMAP gets no signal, but holds the lock. */
    pid_t left = kill_in(&request, "nested mapper");
    char part[96];
    snprintf(part, sizeof(part),
             "scene: process %ld (sleep) is still preparing this scene, though the vknerf",
             (long)left);
    assert_int_equal(kill(left, 0), 0);
    assert_fails(&request, VKN_BAD_INPUT, part);
    kill(left, SIGKILL);
    assert_true(ends_soon(left));
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "matcher", false); /* it had finished before the kill */
    assert_called(folder, "mapper", true);
}

/* ---- hostile folders ------------------------------------------------------------------------- */

/* The last line of the log that contains "left out" or "photographs ignored". */
static char logged[1024];

static void keep_line(void *context, enum vkn_log_level level, const char *line)
{
    (void)context;
    (void)level;
    if (strstr(line, "left out") != NULL || strstr(line, "photographs ignored") != NULL)
        snprintf(logged, sizeof(logged), "%s", line);
}

/* Makes five photographs, a folder with the name of one, and two files that cannot be decoded. */
static struct request damaged_pictures(struct temporary *folder)
{
    struct request request = five_pictures(folder);
    assert_ok(base_make_folder(temporary_path(folder, "given/a.jpg")));
    temporary_text(folder, "given/i.jpg", "");
    /* 40000x40000 pixels. */
    temporary_file(folder, "given/k.png",
                   "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x9c\x40\0\0\x9c\x40\x08\6\0\0\0"
                   "\121\014\016\005\0\0\0\0IDAT",
                   41);
    return request;
}

/* Broken and cyclic links, links to devices, folders, pipes, sockets and files that cannot be
 * decoded are named, left out and never opened: opening a pipe would block for ever. */
static void test_odd_entries(void **state)
{
    struct temporary *folder = *state;
    struct request request = damaged_pictures(folder);
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "b.png"};
    assert_int_equal(chdir(request.params.pictures), 0);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(sock, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(sock);
    assert_int_equal(mkfifo("c.jpg", 0600), 0);
    assert_int_equal(symlink("not/there", "d.jpg"), 0);
    assert_int_equal(symlink("e.jpg", "e.jpg"), 0);
    assert_int_equal(symlink("/dev/zero", "f.jpg"), 0);
    assert_int_equal(symlink("/dev/tty", "g.png"), 0);
    assert_int_equal(symlink("c.jpg", "h.tiff"), 0);  /* must not make prepare look for ffmpeg */
    assert_int_equal(symlink("p0.png", "p5.png"), 0); /* a photograph */
    temporary_text(folder, "given/j\n\033[31m.png", "\x89PNG broken");
    vkn_log_to(keep_line, NULL);
    assert_ok(prepare(&request));
    vkn_log_to(NULL, NULL);
    assert_int_equal(request.result.pictures, 6);
    assert_non_null(strstr(
        logged,
        "given: 11 of 17 photographs cannot be used and are left out: a.jpg (Is a directory), "
        "b.png (not a regular file), c.jpg (not a regular file), d.jpg (No such file or "
        "directory) and 7 more, which prepare.json lists"));
    char *record = content(folder, "scene/prepare.json");
    assert_non_null(strstr(record, "\"e.jpg\":\t\"Too many levels of symbolic links\""));
    free(record);
    assert_int_equal(chdir("/"), 0);
}

static void test_damaged_pictures(void **state)
{
    struct temporary *folder = *state;
    struct request request = damaged_pictures(folder);
    vkn_log_to(keep_line, NULL);
    assert_ok(prepare(&request));
    vkn_log_to(NULL, NULL);
    assert_int_equal(request.result.pictures, 5);
    assert_non_null(strstr(logged, "given: 3 of 8 photographs cannot be used and are left out: "
                                   "a.jpg (Is a directory), i.jpg (empty file), k.png ("));
    char *record = content(folder, "scene/prepare.json");
    assert_non_null(strstr(record, "40000x40000 pixels are more than the limit"));
    free(record);
    /* A second preparation keeps the record. */
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "extractor", false);
    record = content(folder, "scene/prepare.json");
    assert_non_null(strstr(record, "\"i.jpg\":\t\"empty file\""));
    free(record);
}

/* Nothing is written or removed through links in a scene's folder that came from elsewhere. */
static void test_own_folder(void **state)
{
    struct temporary *folder = *state;
    static const char *const links[] = {"scene/prepare", "scene/prepare/1",
                                        "scene/prepare/colmap.log", "scene/prepare/lock"};
    struct request request = five_pictures(folder);
    temporary_text(folder, "mine/1/kept", "mine");
    for (size_t i = 0; i < BASE_COUNT(links); i++) {
        char part[64];
        remove_tree(request.params.out);
        assert_ok(base_make_folder(temporary_path(folder, i == 0 ? "scene" : "scene/prepare")));
        assert_int_equal(symlink(temporary_path(folder, "mine"), temporary_path(folder, links[i])),
                         0);
        snprintf(part, sizeof(part), "%s: a link, which prepare did not make; remove it", links[i]);
        assert_fails(&request, VKN_BAD_INPUT, part);
        unlink(temporary_path(folder, links[i]));
    }
    assert_true(has(folder, "mine/1/kept") && !has(folder, "mine/lock"));
    assert_int_equal(mkfifo(temporary_path(folder, "scene/prepare/colmap.log"), 0600), 0);
    assert_fails(&request, VKN_BAD_INPUT, "colmap.log: neither a file nor a folder");
    unlink(temporary_path(folder, "scene/prepare/colmap.log"));
    assert_ok(prepare(&request));
    /* Links in place of an earlier scene's folders are removed, but not their targets. */
    remove_tree(temporary_path(folder, "scene/images"));
    assert_int_equal(
        symlink(temporary_path(folder, "mine"), temporary_path(folder, "scene/images")), 0);
    request.params.overwrite = true;
    assert_ok(prepare(&request));
    assert_true(has(folder, "mine/1/kept") && has(folder, "scene/images/p0.png") &&
                !has(folder, "mine/p0.png"));
}

static void test_long_names(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    char name[300] = "given/";
    memset(name + strlen(name), 'a', 251);
    memcpy(name + strlen("given/") + 251, ".png", 5);
    temporary_picture(folder, "given/a.png", 420, 30, 7);
    assert_int_equal(rename(temporary_path(folder, "given/a.png"), temporary_path(folder, name)),
                     0);
    assert_ok(prepare(&request));
    assert_int_equal(request.result.pictures, 6);
}

/* A model truncated by a full disk does not count as finished. */
static void test_cut_off(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    fake(folder, "cut off");
    assert_fails(&request, VKN_ERROR, "COLMAP's model is incomplete, as on a full disk: ");
    assert_error("images.bin: number of images: 5 do not fit into the 356 bytes that follow; run "
                 "the same command again");
    assert_false(has(folder, "scene/sparse"));
    fake(folder, "");
    assert_ok(prepare(&request));
    assert_called(folder, "mapper", true);
    assert_called(folder, "matcher", false);
}

/* On a full disk COLMAP reports it, loses features or matches, and exits with success. */
static void test_full_database(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    static const char *const stages[] = {"feature_extractor", "exhaustive_matcher"};
    for (size_t i = 0; i < BASE_COUNT(stages); i++) {
        char how[64];
        snprintf(how, sizeof(how), "full %s", stages[i]);
        fake(folder, how);
        assert_fails(&request, VKN_ERROR, "1/database.db: COLMAP cannot write to it: SQLite error");
        assert_error(": database or disk is full; run the same command again to continue");
        fake(folder, how);
        assert_fails(&request, VKN_ERROR, "database or disk is full");
        assert_called(folder, stages[i], true); /* the stage does not count as done */
        fake(folder, i == 0 ? "full exhaustive_matcher" : "");
    }
    assert_ok(prepare(&request));
    assert_called(folder, "feature_extractor", false);
}

static void test_bad_input(void **state)
{
    struct temporary *folder = *state;
    struct request request = request_of(folder, "given");
    fake(folder, "");
    assert_fails(&request, VKN_BAD_INPUT, "given: No such file or directory");
    struct request video = request_of(folder, "walk.mp4");
    temporary_text(folder, "walk.mp4", "not read");
    assert_fails(&video, VKN_ERROR,
                 "no ffmpeg in PATH; install it (apt-get install ffmpeg) to extract frames");
    video.params.masks = folder->path;
    assert_fails(&video, VKN_BAD_INPUT, "frames of a video have no masks");
    /* These failures do not tie the folder to other pictures. */
    base_make_folder(temporary_path(folder, "given"));
    assert_fails(&request, VKN_BAD_INPUT, "given: no photographs (JPEG or PNG) in this folder");
    temporary_text(folder, "given/a.CR2", "raw");
    assert_fails(&request, VKN_BAD_INPUT, "raw photographs such as a.CR2 have to be developed");
    temporary_picture(folder, "given/a.png", 20, 20, 0);
    assert_fails(&request, VKN_BAD_INPUT, "given: 1 picture, at least 3 from different places");
    struct request above = request_of(folder, "above"); /* its photographs are in images */
    temporary_text(folder, "above/images/a.CR2", "raw");
    assert_fails(&above, VKN_BAD_INPUT, "above/images: raw photographs such as a.CR2 have to be");
    temporary_text(folder, "given/b.jpg", "\xff\xd8\xff\xe0 broken");
    temporary_text(folder, "given/c.png", "");
    assert_fails(&request, VKN_BAD_INPUT, "only 1 of 3 pictures can be used");
    for (uint8_t i = 0; i < 3; i++)
        temporary_picture(folder,
                          i == 0   ? "given/d.png"
                          : i == 1 ? "given/e.png"
                                   : "given/f.png",
                          20, 20, i);
    request.params.masks = temporary_path(folder, "masks");
    assert_fails(&request, VKN_BAD_INPUT, "masks: not a folder (masks)");
    base_make_folder(request.params.masks);
    assert_fails(&request, VKN_BAD_INPUT, "no mask in this folder has the name of a picture");
    request.params.masks = NULL;
    assert_ok(prepare(&request)); /* without the broken ones */
    assert_int_equal(request.result.pictures, 4);
    temporary_text(folder, "given/g.heic", "no picture");
    assert_fails(&request, VKN_BAD_INPUT, "scene: was prepared before the pictures (");
    /* If only a few pictures need ffmpeg to be converted, they are left out. */
    request.params.overwrite = true;
    vkn_log_to(keep_line, NULL);
    assert_ok(prepare(&request));
    vkn_log_to(NULL, NULL);
    assert_non_null(strstr(
        logged,
        "g.heic (has to be converted by ffmpeg, which is not in PATH); install ffmpeg (apt-get"));
    assert_int_equal(request.result.pictures, 4);
    for (uint8_t i = 0; i < 5; i++)
        temporary_text(folder,
                       i == 0   ? "given/h.webp"
                       : i == 1 ? "given/i.tif"
                       : i == 2 ? "given/j.bmp"
                       : i == 3 ? "given/k.avif"
                                : "given/l.hif",
                       "no picture");
    assert_fails(&request, VKN_ERROR,
                 "no ffmpeg in PATH; install it (apt-get install ffmpeg) to convert");
    assert_error("such as g.heic");
}

/* Options without effect are refused. */
static void test_unused_options(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    request.params.frames = 3;
    assert_fails(&request, VKN_BAD_INPUT, "frames: is for videos, but ");
    request.params.frames = 0;
    request.params.sharpest = true;
    assert_fails(&request, VKN_BAD_INPUT, "sharpest: is for videos, but ");
    request.params.sharpest = false;
    request.params.equirectangular = true;
    request.params.camera_model = VKN_CAMERA_MODEL_OPENCV;
    assert_fails(&request, VKN_BAD_INPUT, "camera_model: not used with equirectangular pictures");
    request.params.equirectangular = false;
    request.params.pictures = temporary_path(folder, "given/p0.png");
    assert_fails(&request, VKN_BAD_INPUT, "p0.png: one photograph; name the folder that it is in");
    assert_false(has(folder, "scene"));
}

/* A user's own folder, or one of other photographs, is not written into. */
static void test_other_folders(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder), other = request_of(folder, "others");
    for (uint8_t i = 0; i < 3; i++) {
        const char *const names[] = {"others/a.png", "others/b.png", "others/c.png"};
        temporary_picture(folder, names[i], 40, 30, (uint8_t)(50 + i));
    }
    request.params.out = other.params.pictures;
    request.params.overwrite = true;
    assert_fails(&request, VKN_BAD_INPUT,
                 "others: this folder contains a.png, which prepare did not make");
    assert_false(has(folder, "others/prepare") || has(folder, "others/images"));
    request.params.out = temporary_path(folder, "not/there");
    remove_tree(temporary_path(folder, "not"));
    assert_fails(&request, VKN_BAD_INPUT,
                 "not/there: cannot make this folder: there is no folder ");
    assert_false(has(folder, "not"));
    request = request_of(folder, "given");
    assert_ok(prepare(&request));
    assert_fails(&other, VKN_BAD_INPUT, "scene: was prepared from other pictures (");
    assert_error("/given); --overwrite replaces it");
}

/* Photographs in subfolders, as on a telephone, among other files. */
static void test_folders_below(void **state)
{
    struct temporary *folder = *state;
    static const char *const names[] = {"given/DCIM/100/IMG_9.png", "given/DCIM/100/IMG_10.png",
                                        "given/DCIM/101/IMG_9.png", "given/__MACOSX/x.png",
                                        "given/masks/IMG_9.png",    "given/DCIM/._IMG_9.png"};
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        temporary_picture(folder, names[i], 40, 30, (uint8_t)i);
    temporary_text(folder, "given/DCIM/100/IMG_9.MOV", "video");
    temporary_text(folder, "given/DCIM/100/IMG_9.AAE", "edits");
    temporary_text(folder, "given/Thumbs.db", "thumbnails");
    fake(folder, "");
    struct request request = request_of(folder, "given");
    vkn_log_to(keep_line, NULL);
    assert_ok(prepare(&request));
    assert_int_equal(request.result.pictures, 3);
    assert_true(has(folder, "scene/images/00001_DCIM_100_IMG_9.png") &&
                has(folder, "scene/images/00003_DCIM_101_IMG_9.png"));
    assert_non_null(strstr(
        logged, "given: 1 file beside the photographs ignored: videos such as DCIM/100/IMG_9.MOV"));
    /* Next to photographs a subfolder may hold rejected ones, so it is not searched. */
    for (uint8_t i = 0; i < 3; i++)
        temporary_picture(folder,
                          i == 0   ? "given/a.png"
                          : i == 1 ? "given/b.png"
                                   : "given/c.png",
                          40, 30, i);
    request.params.overwrite = true;
    assert_ok(prepare(&request));
    vkn_log_to(NULL, NULL);
    assert_int_equal(request.result.pictures, 3);
    assert_true(has(folder, "scene/images/b.png"));
    assert_non_null(strstr(logged, "given: 3 files beside the photographs ignored: photographs in "
                                   "subfolders, such as DCIM/100/IMG_10.png"));
}

/* File types come from the content, not the name. */
static void test_wrong_names(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    assert_int_equal(
        rename(temporary_path(folder, "given/p0.png"), temporary_path(folder, "given/p0.HEIC")), 0);
    assert_int_equal(
        rename(temporary_path(folder, "given/p1.png"), temporary_path(folder, "given/p1.jfif")), 0);
    temporary_file(folder, "given/p5.jpg", "RIFF\x10\0\0\0WEBPVP8 \4\0\0\0", 20);
    temporary_file(folder, "given/p6.png",
                   "\0\0\0\x18"
                   "ftypheic\0\0\0\0",
                   16);
    vkn_log_to(keep_line, NULL);
    assert_ok(prepare(&request));
    vkn_log_to(NULL, NULL);
    assert_int_equal(request.result.pictures, 5);
    assert_true(has(folder, "scene/images/00001_p0.HEIC.jpg") &&
                has(folder, "scene/images/00002_p1.jfif.jpg"));
    assert_non_null(strstr(logged,
                           "2 of 7 photographs cannot be used and are left out: p5.jpg (has "
                           "to be converted by ffmpeg"));
    /* A stand-in for ffmpeg, which writes 40x30 pixels for each file, as if decoding tiles. */
    static const char heic[] = "\0\0\0\x18"
                               "ftypheic\0\0\0\0"
                               "\0\0\0\x14"
                               "ispe\0\0\0\0\0\0\x0f\xc0\0\0\x0b\xd0";
    temporary_file(folder, "given/p7.heic", heic, sizeof(heic) - 1);
    const char *ffmpeg = temporary_text(folder, "bin/ffmpeg",
                                        "#!/bin/sh\nexec /bin/cat \"${0%/*}/../given/p2.png\"\n");
    assert_int_equal(chmod(ffmpeg, 0700), 0);
    request.params.overwrite = true;
    vkn_log_to(keep_line, NULL);
    assert_ok(prepare(&request));
    vkn_log_to(NULL, NULL);
    assert_int_equal(request.result.pictures, 7);
    assert_non_null(strstr(logged,
                           "p7.heic (ffmpeg reads only 40x30 pixels of it, whose longer side "
                           "has 4032); HEIC becomes"));
}

static void test_bad_places(void **state)
{
    struct temporary *folder = *state;
    struct request request = five_pictures(folder);
    request.params.out = request.params.pictures;
    assert_fails(&request, VKN_BAD_INPUT, "must not contain the photographs");
    request.params.out = folder->path;
    assert_fails(&request, VKN_BAD_INPUT, "must not contain the photographs");
    request.params.out = temporary_impossible(folder, "scene");
    assert_fails(&request, VKN_BAD_INPUT, "cannot make this folder");
    temporary_text(folder, "other/images/mine.png", "mine");
    request.params.out = temporary_path(folder, "other");
    request.params.overwrite = true;
    assert_fails(&request, VKN_BAD_INPUT,
                 "this folder contains images, which prepare did not make");
    assert_true(has(folder, "other/images/mine.png"));
    /* The scene may be inside the photographs' folder. */
    request.params.out = temporary_path(folder, "given/scene");
    assert_ok(prepare(&request));
    request.params.overwrite = false;
    assert_ok(prepare(&request));
    temporary_text(folder, "given/scene/prepare.json", "{\"pictures\": 5");
    assert_fails(&request, VKN_BAD_INPUT, "prepare.json: line 1");
    request.params.overwrite = true;
    assert_fails(&request, VKN_BAD_INPUT, "which prepare did not make");
    request.params.out = NULL;
    assert_fails(&request, VKN_BAD_INPUT, "no folder is given for the scene");
    request.params.out = "x";
    request.params.frames = 2;
    assert_fails(&request, VKN_BAD_INPUT, "frames: 2 is not from 3 to 5000");
    request.params.frames = 5001;
    assert_fails(&request, VKN_BAD_INPUT, "frames: 5001 is not from 3 to 5000");
    assert_int_equal(vkn_prepare(&request.params, NULL), VKN_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_odd_entries, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_pictures, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_own_folder, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_long_names, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_cut_off, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_full_database, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_bad_input, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_unused_options, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_other_folders, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_folders_below, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_names, set_up, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_bad_places, set_up, temporary_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
