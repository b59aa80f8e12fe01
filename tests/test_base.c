/* Tests src/base: errors, log, memory, paths, atomic file replacement, JSON, threads. */
#define _GNU_SOURCE /* attributes of running threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "base/internal.h"
#include "memory_limit.h"
#include "scenes.h"

/* ---- errors, log, memory ------------------------------------------------------------------- */

static void test_error_is_one_line(void **state)
{
    (void)state;
    assert_int_equal(base_fail(VKN_BAD_INPUT, "%s: bad\nfile\r", "a\tb"), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "a b: bad file ");
    base_fail(VKN_ERROR, "outer: %s", vkn_last_error());
    assert_string_equal(vkn_last_error(), "outer: a b: bad file ");
    char *longer = base_alloc(5000, 1);
    memset(longer, 'x', 4999);
    base_fail(VKN_ERROR, "%s", longer);
    assert_true(strlen(vkn_last_error()) < 2000);
    free(longer);
}

static void test_alloc(void **state)
{
    (void)state;
    uint8_t *bytes = base_alloc(16, 1), *none = base_alloc(0, 8);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(bytes[i], 0);
    assert_non_null(none);
    free(bytes);
    free(none);
    /* Elements do not overlap and are aligned for every type. */
    struct element {
        long double number;
        uint8_t byte;
    } **pointers = base_alloc_pointers(5, sizeof **pointers);
    for (size_t n = 0; n < 5; n++) {
        assert_true(pointers[n]->number == 0 &&
                    (uintptr_t)pointers[n] % _Alignof(struct element) == 0);
        memset(pointers[n], (int)n + 1, sizeof **pointers);
    }
    for (size_t n = 0; n < 5; n++)
        assert_int_equal(pointers[n]->byte, n + 1);
    free(pointers);
    free(base_alloc_pointers(0, 8));
    assert_null(base_alloc_pointers(SIZE_MAX, 1));
    assert_null(base_alloc_pointers(SIZE_MAX / 16, 16));
    assert_null(base_alloc(SIZE_MAX, 16));
    assert_error("out of memory");
}

static void test_text_grows(void **state)
{
    (void)state;
    struct base_text text = {0};
    for (int i = 0; i < 1000; i++)
        base_text_add(&text, "%d,", i % 10);
    base_text_add_bytes(&text, "a\0b", 3);
    base_text_add_bytes(&text, NULL, 0);
    assert_false(text.failed);
    assert_int_equal(text.size, 2003);
    assert_memory_equal(text.data + 1996, "8,9,a\0b", 8);
    assert_int_equal(strlen(text.data), 2001);
    free(text.data);
}

static void test_log_threshold(void **state)
{
    struct temporary *folder = *state;
    char *path = base_path_join(folder->path, "log");
    fflush(stderr);
    int saved = dup(2);
    assert_true(saved >= 0);
    assert_non_null(freopen(path, "w", stderr));
    base_log(BASE_LOG_DEBUG, "hidden");
    base_log(BASE_LOG_INFO, "shown %d", 1);
    base_log_threshold(BASE_LOG_WARNING);
    base_log(BASE_LOG_INFO, "hidden");
    base_log(BASE_LOG_WARNING, "shown %d", 2);
    base_log_threshold(BASE_LOG_INFO);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);

    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(path, 1000, &data, &size));
    assert_string_equal(data, "shown 1\nwarning: shown 2\n");
    free(data);
    free(path);
}

/* ---- paths, folders ------------------------------------------------------------------------ */

static void check_text(char *text, const char *wanted)
{
    assert_string_equal(text, wanted);
    free(text);
}

static void test_paths(void **state)
{
    (void)state;
    check_text(base_path_join("a", "b"), "a/b");
    check_text(base_path_join("a/", "b"), "a/b");
    check_text(base_path_join("a", "/b"), "/b");
    check_text(base_path_join("", "b"), "b");
    check_text(base_path_folder("a/b/c"), "a/b");
    check_text(base_path_folder("a//b/"), "a");
    check_text(base_path_folder("/a"), "/");
    check_text(base_path_folder("/"), "/");
    check_text(base_path_folder("a"), ".");
    check_text(base_path_folder(""), ".");
}

static void test_make_folder(void **state)
{
    struct temporary *folder = *state;
    char *deep = base_path_join(folder->path, "one/two//three/");
    assert_ok(base_make_folder(deep));
    assert_ok(base_make_folder(deep));
    assert_true(base_is_folder(deep));
    assert_false(base_file_exists(deep));
    free(deep);

    temporary_text(folder, "file", "x");
    char *below = base_path_join(folder->path, "file/two");
    assert_int_equal(base_make_folder(below), VKN_BAD_INPUT);
    assert_error("/file: cannot make this folder: a file of that name is in the way");
    bool exists = true;
    assert_ok(base_file_find(below, &exists));
    assert_false(exists);
    assert_ok(base_file_find(folder->path, &exists));
    assert_false(exists);
    free(below);
    assert_int_equal(base_make_folder(""), VKN_BAD_INPUT);
    assert_int_equal(base_make_folder("/proc/nothing/here"), VKN_BAD_INPUT);
    assert_error("/proc/nothing: cannot make this folder: ");
}

/* Links that lead nowhere: to themselves, or to a file that is absent. */
static void test_links_nowhere(void **state)
{
    struct temporary *folder = *state;
    char *loop = base_path_join(folder->path, "loop");
    assert_int_equal(symlink("loop", loop), 0);
    assert_true(base_file_exists(loop)); /* base_file_exists() cannot tell */
    bool exists = true;
    assert_int_equal(base_file_find(loop, &exists), VKN_BAD_INPUT);
    assert_error("/loop: cannot be examined: Too many levels of symbolic links");
    assert_false(base_is_folder(loop));
    assert_int_not_equal(base_make_folder(loop), VKN_OK);
    assert_error("/loop: cannot make this folder: Too many levels of symbolic links");
    free(loop);
    assert_int_equal(chdir(folder->path), 0);
    assert_int_equal(symlink("not there", "link"), 0);
    assert_int_equal(base_make_last_folder("link/scene"), VKN_BAD_INPUT);
    assert_error(": cannot make this folder: ");
    assert_int_equal(chdir("/"), 0);
}

/* base_make_last_folder() creates no missing parents, except `runs`, the default folder of runs. */
static void test_make_last_folder(void **state)
{
    struct temporary *folder = *state;
    static const char *const refused[] = {"mistyped/scene", "mistyped/a/scene//",
                                          "mistyped/runs/scene", "mistyped/scene/"};
    static const char *const made[] = {"scene",      "scene/",       "scene//a",
                                       "runs/scene", "scene/runs/b", "./here"};
    assert_int_equal(chdir(folder->path), 0);
    for (size_t i = 0; i < BASE_COUNT(refused); i++) {
        assert_int_equal(base_make_last_folder(refused[i]), VKN_BAD_INPUT);
        assert_error(": cannot make this folder: ");
        assert_false(base_is_folder("mistyped"));
    }
    assert_error(
        "mistyped/scene/: cannot make this folder: there is no folder mistyped to make it in");
    for (size_t i = 0; i < BASE_COUNT(made); i++) {
        assert_ok(base_make_last_folder(made[i]));
        assert_true(base_is_folder(made[i]));
    }
    assert_int_equal(chdir("/"), 0);
}

/* ---- files --------------------------------------------------------------------------------- */

static void assert_content(const char *path, const char *wanted)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(path, 1 << 20, &data, &size));
    assert_int_equal(size, strlen(wanted));
    assert_memory_equal(data, wanted, size + 1);
    free(data);
}

static void test_read_errors(void **state)
{
    struct temporary *folder = *state;
    char *data = NULL, *path = temporary_text(folder, "text", "12345");
    size_t size = 0;
    assert_ok(base_file_read(path, 5, &data, &size));
    free(data);
    assert_int_equal(base_file_read(path, 4, &data, &size), VKN_BAD_INPUT);
    assert_error("text: larger than the limit of 4 bytes");
    assert_null(data);
    assert_int_equal(base_file_read_any("/dev/zero", 100000, &data, &size), VKN_BAD_INPUT);
    assert_error("/dev/zero: larger than the limit");
    assert_int_equal(base_file_read("no/such", 4, &data, &size), VKN_BAD_INPUT);
    assert_error("no/such: No such file or directory");
    assert_int_equal(base_file_read(folder->path, 4, &data, &size), VKN_BAD_INPUT);
    assert_error("Is a directory");
    assert_int_equal(base_file_read("/dev/zero", 100000, &data, &size), VKN_BAD_INPUT);
    assert_error("/dev/zero: not a regular file");
    assert_ok(base_file_read_any("/dev/null", 0, &data, &size));
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    free(data);
}

/* base_file_read() refuses pipes, where it would wait for a writer; base_file_read_any() reads
 * them, for a file that the user names. */
static void test_read_pipes(void **state)
{
    struct temporary *folder = *state;
    char *data = NULL, *path = temporary_path(folder, "pipe");
    size_t size = 0;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(base_file_read(path, 100, &data, &size), VKN_BAD_INPUT);
    assert_error("pipe: not a regular file");
    uint8_t head[4];
    assert_int_equal(base_file_read_beginning(path, head, sizeof(head), &size, NULL),
                     VKN_BAD_INPUT);
    pid_t writer = fork();
    if (writer == 0) {
        int descriptor = open(path, O_WRONLY | O_CLOEXEC);
        _exit(write(descriptor, "piped", 5) == 5 ? 0 : 1);
    }
    assert_ok(base_file_read_any(path, 100, &data, &size));
    assert_string_equal(data, "piped");
    free(data);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
}

static void test_read_beginning(void **state)
{
    const char *path = temporary_text(*state, "text", "12345");
    uint64_t file_size = 0;
    uint8_t head[4];
    size_t size = 0;
    assert_ok(base_file_read_beginning(path, head, sizeof(head), &size, &file_size));
    assert_true(size == 4 && file_size == 5 && memcmp(head, "1234", 4) == 0);
}

static void test_replace(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "kept", "old");
    assert_ok(base_file_replace(path, "new content", 11));
    assert_content(path, "new content");
    struct stat information;
    assert_int_equal(stat(path, &information), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(information.st_mode & 0777, 0666 & ~mask);
    assert_ok(base_file_replace(path, NULL, 0));
    assert_content(path, "");
    assert_int_equal(temporary_count(folder), 1); /* no temporary file is left */
}

/* Replaces fsync() and rename() of the C library: records in which order files ("f") and folders
 * ("d") are flushed and files renamed ("r"), which decides what a power failure leaves. */
static struct {
    char calls[16];
    size_t count;
    ino_t inode; /* inode and size of the last file that was flushed */
    off_t size;
    int errors[2]; /* errors of the next two calls of fsync(); 0: success */
} flushes;

static void record_call(char call)
{
    assert_true(flushes.count + 1 < sizeof(flushes.calls));
    flushes.calls[flushes.count++] = call;
}

int fsync(int descriptor)
{
    struct stat information;
    int error = flushes.errors[0];
    assert_int_equal(fstat(descriptor, &information), 0);
    bool folder = S_ISDIR(information.st_mode);
    record_call(folder ? 'd' : 'f');
    if (!folder) {
        flushes.inode = information.st_ino;
        flushes.size = information.st_size;
    }
    flushes.errors[0] = flushes.errors[1];
    flushes.errors[1] = 0;
    errno = error;
    return error != 0 ? -1 : 0;
}

int rename(const char *from, const char *to)
{
    record_call('r');
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* The new content is flushed before the rename, and the folder after it. */
static void test_replace_flushes(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "kept", "old");
    struct stat information;
    memset(&flushes, 0, sizeof(flushes));
    flushes.errors[0] = EINTR; /* fsync() is repeated */
    assert_ok(base_file_replace(path, "new content", 11));
    assert_string_equal(flushes.calls, "ffrd");
    assert_int_equal(stat(path, &information), 0);
    assert_int_equal(information.st_ino, flushes.inode);
    assert_int_equal(flushes.size, 11);

    memset(&flushes, 0, sizeof(flushes));
    flushes.errors[0] = EIO;
    assert_int_equal(base_file_replace(path, "newer", 5), VKN_ERROR);
    assert_error("kept: cannot be written: Input/output error");
    assert_string_equal(flushes.calls, "f");
    assert_content(path, "new content");
    assert_int_equal(temporary_count(folder), 1);

    /* A file system that cannot flush folders is no error. */
    memset(&flushes, 0, sizeof(flushes));
    flushes.errors[1] = EINVAL;
    assert_ok(base_file_replace(path, "newest", 6));
    assert_string_equal(flushes.calls, "frd");
    assert_content(path, "newest");

    /* A device is written directly, without fsync() or rename(). */
    memset(&flushes, 0, sizeof(flushes));
    assert_ok(base_file_replace("/dev/null", "x", 1));
    assert_string_equal(flushes.calls, "");
}

static void test_replace_by_stream(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "kept", "old");
    struct base_file_writer writer, other;
    assert_ok(base_file_begin(&writer, path));
    assert_ok(base_file_begin(&other, path)); /* two writers have different temporary files */
    fputs("first", writer.stream);
    fputs("second", other.stream);
    assert_content(path, "old");
    base_file_abort(&writer);
    base_file_abort(&writer);
    assert_content(path, "old");
    assert_ok(base_file_commit(&other));
    assert_content(path, "second");
    assert_int_equal(temporary_count(folder), 1);
}

static void test_replace_unwritable(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "file", "x");
    char *below = base_path_join(folder->path, "file/x");
    assert_int_equal(base_file_replace(below, "x", 1), VKN_BAD_INPUT);
    assert_error("file/x: cannot be written: Not a directory");
    free(below);
    char *absent = base_path_join(folder->path, "absent/x");
    assert_int_equal(base_file_replace(absent, "x", 1), VKN_BAD_INPUT);
    assert_error("/absent/x: cannot be written: No such file or directory");
    free(absent);
    assert_int_equal(base_file_replace(folder->path, "x", 1), VKN_BAD_INPUT);
    assert_error("cannot be written: Is a directory");
    if (geteuid() != 0) { /* root may write everywhere */
        char *locked = base_path_join(folder->path, "locked");
        char *inside = base_path_join(locked, "x");
        assert_int_equal(mkdir(locked, 0500), 0);
        assert_int_equal(base_file_replace(inside, "x", 1), VKN_BAD_INPUT);
        assert_error("locked/x: cannot be written: Permission denied");
        free(inside);
        free(locked);
    }
}

/* A full device is written directly, fails, and stays a device. */
static void test_full_device(void **state)
{
    (void)state;
    assert_int_equal(base_file_replace("/dev/full", "x", 1), VKN_ERROR);
    assert_error("/dev/full: cannot be written: No space left on device");
    char *large = base_alloc(1 << 20, 1);
    assert_int_equal(base_file_replace("/dev/full", large, 1 << 20), VKN_ERROR);
    assert_error("/dev/full: cannot be written: No space left on device");
    struct base_file_writer writer;
    assert_ok(base_file_begin(&writer, "/dev/full"));
    fwrite(large, 1, 1 << 20, writer.stream);
    assert_int_equal(base_file_commit(&writer), VKN_ERROR);
    assert_error("/dev/full: cannot be written: ");
    free(large);
    struct stat information;
    assert_int_equal(stat("/dev/full", &information), 0);
    assert_true(S_ISCHR(information.st_mode));
    assert_ok(base_file_replace("/dev/null", "x", 1));
}

/* A write that fails leaves the old file and no temporary file. */
static void test_failed_write_keeps_old(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "kept", "old");
    char *large = base_alloc(1 << 20, 1);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 65536;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    vkn_status status = base_file_replace(path, large, 1 << 20);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    free(large);
    assert_int_equal(status, VKN_ERROR);
    assert_error("kept: cannot be written: File too large");
    assert_content(path, "old");
    assert_int_equal(temporary_count(folder), 1);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void check_syntax(const char *text, const char *message)
{
    cJSON *json = NULL;
    assert_int_equal(base_json_parse("x.json", text, strlen(text), &json), VKN_BAD_INPUT);
    assert_null(json);
    assert_string_equal(vkn_last_error(), message);
}

static void test_json_syntax(void **state)
{
    (void)state;
    check_syntax("", "x.json: line 1, column 1: not valid JSON: the file ends too early");
    check_syntax("{\"a\": 1,\n  \"b\": [1, 2",
                 "x.json: line 2, column 13: not valid JSON: the file ends too early");
    check_syntax("{\n \"m\": [0, nan]}", "x.json: line 2, column 11: not valid JSON near nan]}");
    check_syntax("{\"a\": 1}\n{}", "x.json: line 2, column 1: not valid JSON: text after the end");
    check_syntax("{\"a\" 1}", "x.json: line 1, column 6: not valid JSON near 1}");
    char deep[200];
    memset(deep, '[', 100);
    deep[100] = '\0';
    check_syntax(deep, "x.json: line 1, column 65: nested too deeply");
    cJSON *json = NULL;
    assert_int_equal(base_json_parse("x.json", "{}\0x", 4, &json), VKN_BAD_INPUT);
    /* Brackets in strings do not count as nesting. */
    char text[203] = "\"";
    memset(text + 1, '[', 200);
    text[201] = '"';
    assert_ok(base_json_parse("x.json", text, strlen(text), &json));
    cJSON_Delete(json);
}

static void test_json_file(void **state)
{
    struct temporary *folder = *state;
    cJSON *json = NULL;
    char *path = temporary_text(folder, "a.json", "{\"a\": [1, 2}");
    assert_int_equal(base_json_read(path, 1000, &json), VKN_BAD_INPUT);
    assert_error("a.json: line 1, column 11: not valid JSON near 2}");
    assert_int_equal(base_json_read(path, 3, &json), VKN_BAD_INPUT);
    assert_error("a.json: larger than the limit of 3 bytes");
    assert_int_equal(base_json_read("none.json", 3, &json), VKN_BAD_INPUT);
    assert_error("none.json: No such file or directory");
}

static void test_json_values(void **state)
{
    (void)state;
    static const char text[] =
        "{\"n\": 2.5, \"inf\": 1e999, \"s\": \"word\", \"b\": true, \"no\": null}";
    cJSON *json = NULL;
    double number = -1;
    bool flag = false;
    const char *string = "unchanged";
    assert_ok(base_json_parse("x", text, strlen(text), &json));
    assert_ok(base_json_number(json, "n", "f", true, 0, 10, &number));
    assert_true(number == 2.5);
    assert_ok(base_json_number(json, "absent", "f", false, 0, 10, &number));
    assert_ok(base_json_number(json, "no", "f", false, 0, 10, &number));
    assert_true(number == 2.5);
    assert_int_equal(base_json_number(json, "absent", "f", true, 0, 10, &number), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "f: absent: missing");
    assert_int_equal(base_json_number(json, "inf", "f: frames[3].", true, 0, 10, &number),
                     VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "f: frames[3].inf: not a finite number");
    assert_int_equal(base_json_number(json, "n", "f", true, 3, 10, &number), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "f: n: 2.5 is out of range (3 to 10)");
    assert_int_equal(base_json_number(json, "s", "f", true, 3, 10, &number), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "f: s: not a number");
    assert_ok(base_json_bool(json, "b", "f", true, &flag));
    assert_true(flag);
    assert_int_equal(base_json_bool(json, "n", "f", true, &flag), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "f: n: not true or false");
    assert_ok(base_json_string(json, "absent", "f", false, &string));
    assert_string_equal(string, "unchanged");
    assert_ok(base_json_string(json, "s", "f", true, &string));
    assert_string_equal(string, "word");
    assert_int_equal(base_json_string(json, "b", "f", true, &string), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "f: b: not a string");
    cJSON_Delete(json);
}

static void test_json_unknown_key(void **state)
{
    (void)state;
    static const char *const names[] = {"learning_rate", "steps", "seed"};
    cJSON *json = cJSON_Parse("{\"steps\": 1, \"lerning_rate\": 2}");
    assert_int_equal(base_json_only_keys(json, "c.json", names, 3), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(),
                        "c.json: lerning_rate: unknown key; did you mean learning_rate?");
    assert_int_equal(base_json_only_keys(json, "c.json: optim.", names + 1, 2), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "c.json: optim.lerning_rate: unknown key");
    cJSON_Delete(json);
    json = cJSON_Parse("{\"steps\": 1, \"seed\": 2}");
    assert_ok(base_json_only_keys(json, "c.json", names, 3));
    cJSON_Delete(json);
    assert_string_equal(base_nearest("sede", names, 3), "seed");
    assert_null(base_nearest("x", names, 3));
    assert_null(base_nearest("precision", names, 3));
}

/* ---- threads ------------------------------------------------------------------------------- */

struct work {
    atomic_int runs[1000];
    size_t fails_from, fails_every;
    size_t last_done;
};

static vkn_status count_or_fail(void *context, size_t index)
{
    struct work *work = context;
    atomic_fetch_add(&work->runs[index], 1);
    if (work->fails_every > 0 && index >= work->fails_from && index % work->fails_every == 0)
        return base_fail(VKN_NO_DEVICE, "index %zu failed", index);
    return VKN_OK;
}

static void note_done(void *context, size_t finished)
{
    struct work *work = context;
    assert_true(finished > work->last_done);
    work->last_done = finished;
}

static void test_parallel(void **state)
{
    (void)state;
    struct work *work = base_alloc(1, sizeof(*work));
    assert_ok(base_parallel(1000, count_or_fail, work, note_done));
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(atomic_load(&work->runs[i]), 1);
    assert_int_equal(work->last_done, 1000);
    assert_ok(base_parallel(0, count_or_fail, work, NULL));
    assert_ok(base_parallel(1, count_or_fail, work, NULL));
    assert_int_equal(atomic_load(&work->runs[0]), 2);
    free(work);
}

/* The message is that of the lowest index that fails, although many fail. */
struct gate {
    atomic_bool open;
    vkn_status status;
};

static vkn_status wait_for_gate(void *context)
{
    struct gate *gate = context;
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!atomic_load(&gate->open))
        nanosleep(&pause, NULL);
    return gate->status == VKN_OK ? VKN_OK : base_fail(gate->status, "the gate is broken");
}

/* A task runs in parallel to the thread that started it and returns its status. */
static void test_task(void **state)
{
    (void)state;
    struct base_task *task = NULL;
    assert_ok(base_task_wait(&task));
    for (int broken = 0; broken < 2; broken++) {
        struct gate gate = {.status = broken ? VKN_BAD_INPUT : VKN_OK};
        assert_ok(base_task_start(wait_for_gate, &gate, &task));
        assert_false(base_task_finished(task));
        atomic_store(&gate.open, true);
        assert_int_equal(base_task_wait(&task), gate.status);
        assert_null(task);
    }
    assert_error("the gate is broken");
    struct gate open = {.open = true};
    assert_ok(base_task_start(wait_for_gate, &open, &task));
    while (!base_task_finished(task)) {
    }
    assert_ok(base_task_wait(&task));
    assert_true(base_memory_total() >= (uint64_t)1 << 30);
}

/* Writes a file of a simulated /proc or /sys, and makes its folders. */
static void put(struct temporary *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    for (char *slash = path + strlen(folder->path) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_limits(const struct temporary *folder, uint64_t total, uint64_t available)
{
    const struct base_memory_limits limits = base_memory_limits(folder->path);
    assert_int_equal(limits.total, total);
    assert_int_equal(limits.available, available);
}

/* The limits are the minimum over the machine and all control groups, of versions 1 and 2, with and
 * without a cgroup namespace of a container. */
static void test_memory_limits(void **state)
{
    struct temporary *folder = *state;
    assert_limits(folder, UINT64_MAX, UINT64_MAX);
    put(folder, "proc/meminfo",
        "MemTotal:       8000 kB\nMemFree:   1 kB\nMemAvailable:   6000 kB\n");
    assert_limits(folder, 8000 << 10, 6000 << 10);

    put(folder, "proc/self/cgroup", "0::/a/b\n");
    put(folder, "sys/fs/cgroup/a/b/memory.max", "max\n");
    put(folder, "sys/fs/cgroup/a/b/memory.current", "100\n");
    assert_limits(folder, 8000 << 10, 6000 << 10);
    put(folder, "sys/fs/cgroup/a/memory.max", "5000000\n");
    put(folder, "sys/fs/cgroup/a/memory.current", "3000000\n");
    assert_limits(folder, 5000000, 2000000); /* the limit of the outer group */
    put(folder, "sys/fs/cgroup/a/memory.stat",
        "anon 7\ninactive_file 400000\nactive_file 100000\n");
    assert_limits(folder, 5000000, 2500000); /* the page cache of files counts as available */
    put(folder, "sys/fs/cgroup/a/memory.current", "6000000\n");
    assert_limits(folder, 5000000, 0);
    put(folder, "proc/self/cgroup", "0::/elsewhere/on/the/host\n");
    assert_limits(folder, 8000 << 10, 6000 << 10);
    put(folder, "sys/fs/cgroup/memory.max", "4000000\n");
    put(folder, "sys/fs/cgroup/memory.current", "1000000\n");
    assert_limits(folder, 4000000, 3000000); /* the root of the container's namespace */

    put(folder, "proc/self/cgroup",
        "3:cpu:/x\n2:memoryless:/\n1:cpu,memory:/docker/12\nnothing\n0::/\n");
    put(folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
    put(folder, "sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
    put(folder, "sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_inactive_file 90000\n");
    assert_limits(folder, 3000000, 2590000);
}

/* A check beyond the machine's memory fails with a message that names what to reduce. */
static void test_memory_check(void **state)
{
    (void)state;
    assert_ok(base_memory_check(1 << 20, "a picture", "--width"));
    assert_int_equal(base_memory_check(UINT64_MAX, "a picture", "--width"), VKN_BAD_INPUT);
    assert_error("a picture needs 17179869184.00 GiB of memory");
    assert_error("reduce --width");
    /* The allocation would fit a kernel that overcommits, but exceeds the machine's memory. */
    size_t size = base_memory_total() - ((size_t)1 << 20);
    assert_null(base_alloc(size, 1));
    assert_error("out of memory");
    assert_null(base_realloc(NULL, size));
    /* The process's own limit (ulimit -d) counts too. */
    const uint64_t most = (uint64_t)64 << 20;
    const struct rlimit before = limit_memory(RLIMIT_DATA, most);
    uint64_t available = base_memory_available();
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_in_range(available, most / 2, most);
}

struct stack_check {
    pthread_t caller;
    size_t default_size; /* bytes */
};

static vkn_status check_stack(void *context, size_t index)
{
    const struct stack_check *check = context;
    pthread_attr_t attributes;
    size_t size = 0;
    (void)index;
    if (pthread_equal(check->caller, pthread_self()) ||
        pthread_getattr_np(pthread_self(), &attributes))
        return base_fail(VKN_ERROR, "not a thread of its own");
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size >= (size_t)8 << 20 && size >= check->default_size
               ? VKN_OK
               : base_fail(VKN_ERROR, "a stack of %zu bytes", size);
}

/* Threads have 8 MiB of stack, or the default if it is larger. */
static void test_stacks(void **state)
{
    (void)state;
    pthread_t caller = pthread_self();
    pthread_attr_t before, other;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    for (size_t size = (size_t)256 << 10; size <= (size_t)16 << 20; size *= 64) {
        pthread_attr_init(&other);
        pthread_attr_setstacksize(&other, size);
        assert_int_equal(pthread_setattr_default_np(&other), 0);
        assert_ok(base_parallel(4, check_stack, &(struct stack_check){caller, size}, NULL));
    }
    assert_int_equal(pthread_setattr_default_np(&before), 0);
}

static void test_parallel_failure(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct work *work = base_alloc(1, sizeof(*work));
        work->fails_from = 100;
        work->fails_every = 3;
        assert_int_equal(base_parallel(1000, count_or_fail, work, NULL), VKN_NO_DEVICE);
        assert_string_equal(vkn_last_error(), "index 102 failed");
        assert_int_equal(atomic_load(&work->runs[999]), 0);
        for (size_t i = 0; i <= 102; i++)
            assert_int_equal(atomic_load(&work->runs[i]), 1);
        free(work);
    }
}

static void test_seconds(void **state)
{
    (void)state;
    double start = base_seconds();
    usleep(2000);
    double passed = base_seconds() - start;
    assert_true(passed >= 0.0019 && passed < 60);
}

/* Temporary files of a zombie process are removed: in a container, process 1 may never wait for its
 * children. */
static void test_remove_temporaries(void **state)
{
    struct temporary *folder = *state;
    char name[64];
    siginfo_t ended;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_true(child > 0);
    snprintf(name, sizeof name, "summary.json.%ld.3.tmp", (long)child);
    const char *left = temporary_text(folder, name, "half of it");
    snprintf(name, sizeof name, "mesh.glb.%ld.4.tmp", (long)child);
    const char *mesh = temporary_text(folder, name, "half of it");
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT),
                     0); /* the child stays a zombie */
    snprintf(name, sizeof name, "summary.json.%ld.3.tmp", (long)getppid());
    const char *others = temporary_text(folder, name, "of one that goes on");
    base_remove_temporaries(folder->path, "none of these");
    assert_false(base_file_exists(left) || base_file_exists(mesh));
    assert_true(base_file_exists(others));
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- programs ------------------------------------------------------------------------------- */

/* A script that test_program_run runs. */
struct script {
    struct base_text output;
    bool must_end; /* once there is output */
};

static void keep_output(void *context, const char *data, size_t size)
{
    struct script *script = context;
    base_text_add_bytes(&script->output, data, size);
}

static bool ends_with_output(void *context)
{
    const struct script *script = context;
    return script->must_end && script->output.size > 0;
}

/* Returns the output, which the caller frees. */
static char *run_script(const char *text, bool must_end, const char *expected)
{
    struct script script = {.must_end = must_end};
    char words[3][200] = {"sh", "-c", ""};
    snprintf(words[2], sizeof words[2], "%s", text);
    char *const arguments[] = {words[0], words[1], words[2], NULL};
    const struct base_program program = {.path = "/bin/sh",
                                         .arguments = arguments,
                                         .errors = -1,
                                         .keep = -1,
                                         .output = keep_output,
                                         .must_end = ends_with_output,
                                         .context = &script};
    char how[BASE_HOW_SIZE];
    assert_int_equal(base_program_run(&program, how), 0);
    assert_string_equal(how, expected);
    assert_non_null(script.output.data);
    return script.output.data;
}

static void test_program_run(void **state)
{
    (void)state;
    /* The sanitizer build's C library is not the shell's. */
    unsetenv("LD_LIBRARY_PATH");
    char *output = run_script("echo a; echo b >&2; exit 3", false, "exit status 3");
    assert_string_equal(output, "a\nb\n");
    free(output);
    output =
        run_script("trap 'echo bye; exit 0' TERM; echo a; while :; do sleep 0.05; done", true, "");
    assert_non_null(strstr(output, "\nbye\n")); /* the shell may say that sleep was terminated */
    free(output);
    output = run_script("trap '' TERM; echo a; exec sleep 60", true, "signal 9");
    free(output);
}

/* A program ends although its child keeps the output open; the child is killed. */
static void test_program_with_child(void **state)
{
    (void)state;
    double begin = base_seconds();
    char *output = run_script("sleep 60 & echo $!", false, "");
    assert_true(base_seconds() < begin + 30);
    pid_t child = (pid_t)strtol(output, NULL, 10);
    assert_true(child > 1);
    assert_true(ends_soon(child));
    free(output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_is_one_line),
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_text_grows),
        cmocka_unit_test_setup_teardown(test_log_threshold, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_paths),
        cmocka_unit_test_setup_teardown(test_make_folder, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_links_nowhere, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_make_last_folder, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_read_errors, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_read_pipes, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_read_beginning, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_replace, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_replace_flushes, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_replace_by_stream, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_replace_unwritable, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test(test_full_device),
        cmocka_unit_test_setup_teardown(test_failed_write_keeps_old, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test(test_json_syntax),
        cmocka_unit_test_setup_teardown(test_json_file, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_unknown_key),
        cmocka_unit_test_setup_teardown(test_memory_limits, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_memory_check),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_parallel_failure),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_task),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_program_run),
        cmocka_unit_test(test_program_with_child),
        cmocka_unit_test_setup_teardown(test_remove_temporaries, temporary_setup,
                                        temporary_teardown),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
