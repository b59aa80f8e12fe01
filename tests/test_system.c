/* Tests functions of the operating system as the project uses them, of which Windows has its own:
 * files, folders, locks, programs, threads, text. The program starts itself as a child process. */
#define _GNU_SOURCE // NOLINT(bugprone-reserved-identifier): declares memmem and qsort_r
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/random.h>

#include "scenes.h"

/* Umlauts, Japanese, a letter beyond UTF-16's first plane; spaces. */
#define NAME "\xc3\xa4 \xc3\x96\xc3\x9f \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"

static void assert_content(const char *path, const char *expected)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(path, 1 << 20, &data, &size));
    assert_string_equal(data, expected);
    free(data);
}

/* ---- files and folders ----------------------------------------------------------------------- */

/* Checks that a name of UTF-8 is created, listed, examined, renamed and removed in a folder. */
static void check_name(struct temporary *folder, const char *parent)
{
    char *directory = temporary_path(folder, parent), *path = base_path_join(directory, NAME);
    char *renamed = base_path_join(directory, NAME ".txt");
    struct stat file;
    assert_ok(base_make_folder(directory));
    assert_ok(base_file_replace(path, "text", 4));
    assert_int_equal(stat(path, &file), 0);
    assert_true(S_ISREG(file.st_mode) && file.st_size == 4);
    assert_int_equal(rename(path, renamed), 0);
    assert_int_equal(stat(path, &file), -1);
    assert_int_equal(errno, ENOENT);
    assert_content(renamed, "text");

    DIR *stream = opendir(directory);
    unsigned found = 0, others = 0;
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (strcmp(entry->d_name, NAME ".txt") == 0)
            found++;
        else if (entry->d_name[0] != '.')
            others++;
    closedir(stream);
    assert_true(found == 1 && others == 0);
    assert_int_equal(rmdir(directory), -1); /* not empty */
    assert_int_equal(remove(renamed), 0);
    assert_int_equal(rmdir(directory), 0);
    assert_false(base_is_folder(directory));
    free(path);
    free(renamed);
}

static void test_names(void **state)
{
    check_name(*state, NAME);
}

static void test_long_paths(void **state)
{
    struct base_text name = {0};
    for (int i = 0; i < 5; i++)
        base_text_add(&name, "%sa folder whose long name has \xc3\xa4, and which is one of %d",
                      i > 0 ? "/" : "", i);
    assert_true(name.size > 260);
    check_name(*state, name.data);
    free(name.data);
}

static void test_listing(void **state)
{
    struct temporary *folder = *state;
    static const char *const names[] = {"b", "c", "a", "_", "\xc3\xa4", "b c", "10", "9"};
    static const char *const sorted[] = {"10", "9", "_", "a", "b", "b c", "c", "\xc3\xa4"};
    struct dirent **entries = NULL;
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        temporary_text(folder, names[i], "");
    int count = scandir(folder->path, &entries, NULL, alphasort);
    assert_int_equal(count, 2 + BASE_COUNT(sorted)); /* . and .. are the first */
    for (int i = 0; i < count; i++) {
        const char *expected = i == 0 ? "." : i == 1 ? ".." : sorted[i - 2];
        assert_string_equal(entries[i]->d_name, expected);
        free(entries[i]);
    }
    free(entries);
    assert_null(opendir(temporary_path(folder, "absent")));
    assert_int_equal(errno, ENOENT);
    assert_null(opendir(temporary_path(folder, "a")));
    assert_int_equal(errno, ENOTDIR);
}

/* A file that is read is replaced; the reader sees the old content. */
static void test_replace_open(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "kept", "old"), *new = temporary_text(folder, "new", "new");
    char read[8] = "";
    FILE *reader = fopen(path, "r");
    assert_non_null(reader);
    assert_int_equal(rename(new, path), 0);
    assert_content(path, "new");
    assert_int_equal(fread(read, 1, sizeof read, reader), 3);
    assert_string_equal(read, "old");
    assert_int_equal(temporary_count(folder), 1);
    fclose(reader);
}

static void test_remove_open(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "kept", "old"), read[8] = "";
    FILE *reader = fopen(path, "r"), *writer = NULL;
    assert_non_null(reader);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(temporary_count(folder), 0);
    assert_int_equal(fread(read, 1, sizeof read, reader), 3);
    fclose(reader);
    assert_non_null(writer = fopen(path, "w"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(temporary_count(folder), 0);
    fclose(writer);
}

static void test_stat(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "a", "12345"), *link_path = temporary_path(folder, "b");
    struct stat file, other;
    assert_int_equal(link(path, link_path), 0);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(stat(link_path, &other), 0);
    assert_true(S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode) && file.st_size == 5);
    assert_true(file.st_ino == other.st_ino && file.st_dev == other.st_dev);
    assert_int_equal(file.st_nlink, 2);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(stat(temporary_text(folder, "c", ""), &other), 0);
    assert_true(file.st_ino != other.st_ino);
    double later = (double)(other.st_mtim.tv_sec - file.st_mtim.tv_sec) +
                   1e-9 * (double)(other.st_mtim.tv_nsec - file.st_mtim.tv_nsec);
    assert_true(later > 0.02 && later < 60);
    assert_true(fabs((double)(time(NULL) - other.st_mtim.tv_sec)) < 60);
    assert_int_equal(stat(folder->path, &file), 0);
    assert_true(S_ISDIR(file.st_mode) && !S_ISREG(file.st_mode));
    assert_int_equal(stat(temporary_path(folder, "\xff"), &other), -1); /* not UTF-8 */
    assert_int_equal(errno, ENOENT);
    assert_int_equal(open(path, O_WRONLY | O_CREAT | O_EXCL, 0666), -1);
    assert_int_equal(errno, EEXIST);
    assert_content(path, "12345");
    assert_int_equal(open(folder->path, O_WRONLY), -1);
    assert_int_equal(errno, EISDIR);
}

/* A link of a file or a folder has the content of its target. On Windows it is a second name, and a
 * copy on another disk. */
static void test_links(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "from/" NAME, "text"),
         *from = temporary_path(folder, "from");
    char *to = temporary_path(folder, "to"), other[] = "/dev/shm/vknerf-test-XXXXXX";
    struct stat file, linked;
    temporary_text(folder, "from/below/b", "below");
    assert_int_equal(symlink(path, temporary_path(folder, "link")), 0);
    assert_content(temporary_path(folder, "link"), "text");
    assert_int_equal(symlink(path, temporary_path(folder, "link")), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(symlink(from, to), 0);
    assert_content(temporary_path(folder, "to/below/b"), "below");
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(stat(temporary_path(folder, "to/" NAME), &linked), 0);
    assert_true(file.st_ino == linked.st_ino && file.st_dev == linked.st_dev);

    assert_non_null(mkdtemp(other));
    char *copy = base_path_join(other, "to"), *content = base_path_join(copy, NAME);
    assert_int_equal(symlink(from, copy), 0);
    assert_content(content, "text");
    free(content);
    free(copy);
    remove_tree(other);
    assert_content(path, "text");
}

static void test_realpath(void **state)
{
    struct temporary *folder = *state;
    char *plain = realpath(temporary_text(folder, NAME "/a", ""), NULL);
    char *odd = realpath(temporary_path(folder, NAME "/.././" NAME "/a"), NULL);
    assert_non_null(plain);
    assert_non_null(strstr(plain, NAME "/a"));
    assert_string_equal(plain, odd);
    assert_null(strchr(plain, '\\'));
    assert_true(base_path_is_absolute(plain) && !base_path_is_absolute(NAME "/a"));
    char *joined = base_path_join(folder->path, plain);
    assert_string_equal(joined, plain);
    free(joined);
    assert_null(realpath(temporary_path(folder, "absent"), NULL));
    assert_int_equal(errno, ENOENT);
    free(plain);
    free(odd);
}

/* A file is locked once. Others can read the line that its owner wrote. */
static void test_lock(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_path(folder, "lock"), line[16] = "";
    int owner = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), other = open(path, O_RDWR);
    assert_true(owner >= 0 && other >= 0);
    assert_int_equal(flock(owner, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(pwrite(owner, "owner\n", 6, 0), 6);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_int_equal(pread(other, line, sizeof line, 0), 6);
    assert_string_equal(line, "owner\n");
    assert_int_equal(pread(other, line, sizeof line, 100), 0);
    close(owner);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
}

static void test_temporary_file(void **state)
{
    char data[8] = "";
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite("a\nb\r\n", 1, 5, file), 5);
    rewind(file);
    assert_int_equal(fread(data, 1, sizeof data, file), 5);
    assert_memory_equal(data, "a\nb\r\n", 5);
    assert_int_equal(isatty(fileno(file)), 0);
    fclose(file);
}

/* ---- programs -------------------------------------------------------------------------------- */

static char *own_path;

/* Acts as a child process. */
static int act(int count, char **arguments)
{
    if (strcmp(arguments[1], "echo") == 0)
        for (int i = 2; i < count; i++)
            fwrite(arguments[i], 1, strlen(arguments[i]) + 1, stdout);
    else if (strcmp(arguments[1], "exit") == 0)
        return (int)strtol(arguments[2], NULL, 10);
    else if (strcmp(arguments[1], "wait") == 0)
        nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    return 0;
}

struct child {
    bool must_end;
    struct base_text output;
};

static void append(void *context, const char *data, size_t size)
{
    base_text_add_bytes(&((struct child *)context)->output, data, size);
}

static bool must_end(void *context)
{
    return ((struct child *)context)->must_end;
}

static void test_arguments(void **state)
{
    (void)state;
    char *arguments[] = {
        own_path,       "echo",           "a b", "\"",        "",    "\\",    "a\\",
        "a\\\"b\\\\\"", "a b\\\\",        NAME,  "%PATH% $A", "'*'", "^&|<>", "--x=\"y z\"",
        "\ttab",        "-s\\\\server\\", NULL};
    struct child child = {0};
    struct base_text expected = {0};
    char how[BASE_HOW_SIZE];
    for (size_t i = 2; arguments[i] != NULL; i++)
        base_text_add_bytes(&expected, arguments[i], strlen(arguments[i]) + 1);
    const struct base_program program = {own_path, arguments, -1, -1, append, must_end, &child};
    assert_int_equal(base_program_run(&program, how), 0);
    assert_string_equal(how, "");
    assert_int_equal(child.output.size, expected.size);
    assert_memory_equal(child.output.data, expected.data, expected.size);
    free(child.output.data);
    free(expected.data);
}

static void test_endings(void **state)
{
    struct temporary *folder = *state;
    char *leaves[] = {own_path, "exit", "42", NULL}, *waits[] = {own_path, "wait", NULL};
    struct child child = {0};
    char how[BASE_HOW_SIZE];
    struct base_program program = {own_path, leaves, -1, -1, append, must_end, &child};
    assert_int_equal(base_program_run(&program, how), 0);
    assert_string_equal(how, "exit status 42");
    program.arguments = waits;
    child.must_end = true;
    double began = base_seconds();
    assert_int_equal(base_program_run(&program, how), 0);
    assert_true(base_seconds() - began < 30);
    assert_string_not_equal(how, "");
    child.must_end = false;
    program.path = temporary_path(folder, "absent");
    assert_int_equal(base_program_run(&program, how), ENOENT);
    program.path = temporary_text(folder, "text", "no program");
    assert_int_not_equal(base_program_run(&program, how), 0);
    free(child.output.data);
}

/* Writing to a program that has ended fails, and no signal ends the writer. */
static void test_deaf_child(void **state)
{
    static const char data[1 << 16];
    char *arguments[] = {own_path, "exit", "0", NULL};
    struct base_process process;
    char how[BASE_HOW_SIZE];
    int ends[2];
    ssize_t written = 0;
    (void)state;
    assert_int_equal(base_input_pipe(ends), 0);
    const int streams[3] = {ends[0], -1, -1};
    assert_int_equal(base_program_start(own_path, arguments, streams, -1, &process), 0);
    close(ends[0]);
    for (int i = 0; i < 1000 && written >= 0; i++)
        written = base_input_write(ends[1], data, sizeof data);
    assert_int_equal(written, -1);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
    assert_true(base_program_ended(&process, true, how));
    assert_string_equal(how, "");
}

static void test_environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("VKNERF_TEST_SYSTEM", "one", 1), 0);
    assert_int_equal(setenv("VKNERF_TEST_SYSTEM", "two", 0), 0);
    assert_string_equal(getenv("VKNERF_TEST_SYSTEM"), "one");
    assert_int_equal(unsetenv("VKNERF_TEST_SYSTEM"), 0);
    assert_null(getenv("VKNERF_TEST_SYSTEM"));
}

/* ---- threads, text --------------------------------------------------------------------------- */

static void test_timed_wait(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_t attributes;
    pthread_cond_t condition;
    struct timespec until;
    (void)state;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition, &attributes);
    pthread_mutex_lock(&mutex);
    for (int milliseconds = 0; milliseconds <= 300; milliseconds += 300) {
        double began = base_seconds();
        int result = 0;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += milliseconds * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (result == 0) /* waiting may end early by chance */
            result = pthread_cond_timedwait(&condition, &mutex, &until);
        assert_int_equal(result, ETIMEDOUT);
        assert_true(base_seconds() - began >= 1e-3 * milliseconds - 0.02);
        assert_true(base_seconds() - began < 10);
    }
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&condition);
}

static void print_in_scope(char *text, size_t size)
{
    BASE_C_LOCALE;
    snprintf(text, size, "%g", 0.5);
}

/* Scopes may be nested; an inner one does not end the outer one. */
static void test_locale_scopes(void **state)
{
    (void)state;
    char inner[16], outer[16];
    {
        BASE_C_LOCALE;
        print_in_scope(inner, sizeof inner);
        snprintf(outer, sizeof outer, "%g", strtod("1.5", NULL));
        assert_string_equal(localeconv()->decimal_point, ".");
    }
    assert_string_equal(inner, "0.5");
    assert_string_equal(outer, "1.5");
}

static int compare_by(const void *a, const void *b, void *context)
{
    return *(const int *)context * (*(const int *)a - *(const int *)b);
}

static void test_text(void **state)
{
    (void)state;
    const char text[] = "A Bc\0d";
    int numbers[] = {3, 1, 2}, order = -1;
    assert_ptr_equal(strcasestr(text, "bC"), text + 2);
    assert_ptr_equal(strcasestr(text, ""), text);
    assert_null(strcasestr(text, "bcd"));
    assert_null(strcasestr("", "a"));
    assert_ptr_equal(memmem(text, 6, "c\0d", 3), text + 3);
    assert_null(memmem(text, 5, "c\0d", 3));
    assert_null(memmem(text, 2, "A Bc", 4));
    assert_ptr_equal(memmem(text, 6, "", 0), text);
    char *copy = strndup(text, 3), *whole = strndup(text, 100);
    assert_string_equal(copy, "A B");
    assert_string_equal(whole, "A Bc");
    free(copy);
    free(whole);
    qsort_r(numbers, 3, sizeof numbers[0], compare_by, &order);
    assert_true(numbers[0] == 3 && numbers[1] == 2 && numbers[2] == 1);
    qsort_r(numbers, 0, sizeof numbers[0], compare_by, &order);
}

static void test_random(void **state)
{
    uint8_t a[32] = {0}, b[32] = {0};
    (void)state;
    assert_int_equal(getrandom(a, sizeof a, 0), sizeof a);
    assert_int_equal(getrandom(b, sizeof b, 0), sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t i = 8; i < sizeof a; i += 8) /* all bytes are written */
        assert_memory_not_equal(a, a + i, 8);
}

int main(int argc, char **argv)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_long_paths),
        TEST(test_listing),
        TEST(test_replace_open),
        TEST(test_remove_open),
        TEST(test_stat),
        TEST(test_links),
        TEST(test_realpath),
        TEST(test_lock),
        cmocka_unit_test(test_temporary_file),
        cmocka_unit_test(test_arguments),
        TEST(test_endings),
        cmocka_unit_test(test_deaf_child),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_timed_wait),
        cmocka_unit_test(test_locale_scopes),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_random),
    };
    if (argc > 1)
        return act(argc, argv);
    own_path = realpath(argv[0], NULL);
    unsetenv("LD_LIBRARY_PATH"); /* the sanitized test's path is not for the child */
    int failed = own_path != NULL ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(own_path);
    return failed;
}
