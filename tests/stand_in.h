/* Puts a fake COLMAP (fake_colmap.sh) into PATH and makes pictures, for tests of vkn_prepare.
 * Include after cmocka.h. */
#ifndef TESTS_STAND_IN_H
#define TESTS_STAND_IN_H

#include <sys/stat.h>
#include <time.h>

#include "photographs.h"
#include "prepare/internal.h"

static inline int set_up(void **state)
{
    char path[512], *script = NULL;
    size_t size = 0;
    if (temporary_setup(state) != 0)
        return -1;
    struct temporary *folder = *state;
    snprintf(path, sizeof(path), "%s/tests/fake_colmap.sh", getenv("VKNERF_SOURCE_DIR"));
    assert_ok(base_file_read(path, 1 << 20, &script, &size));
    char *program = temporary_file(folder, "bin/colmap", script, size);
    free(script);
    snprintf(path, sizeof(path), "%s/bin", folder->path);
    setenv("PATH", path, 1);
    unsetenv("LD_LIBRARY_PATH"); /* the sanitized test's path is not for other programs */
    vkn_log_quiet(false);
    return chmod(program, 0700);
}

static inline char *content(struct temporary *folder, const char *name)
{
    char *data = NULL;
    size_t size = 0;
    assert_ok(base_file_read(temporary_path(folder, name), 1 << 20, &data, &size));
    return data;
}

static inline void fake(struct temporary *folder, const char *how)
{
    temporary_text(folder, "bin/fake", how);
    unlink(temporary_path(folder, "bin/calls"));
}

/* Checks whether a call of the fake COLMAP since fake() contains `part`. */
static inline void assert_called(struct temporary *folder, const char *part, bool is)
{
    char *calls = base_file_exists(temporary_path(folder, "bin/calls"))
                      ? content(folder, "bin/calls")
                      : strdup("");
    if ((strstr(calls, part) != NULL) != is)
        fail_msg("\"%s\" is%s in: %s", part, is ? " not" : "", calls);
    free(calls);
}

static inline bool has(struct temporary *folder, const char *name)
{
    char *path = temporary_path(folder, name);
    return base_file_exists(path) || base_is_folder(path);
}

/* Waits up to 10 seconds until a file has content: the process number in "bin/waiting". */
static inline void await_line(const char *path)
{
    struct stat file;
    for (int i = 0; i < 1000 && (stat(path, &file) != 0 || file.st_size == 0); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* Parameters and result of vkn_prepare(); the scene is written to "scene". */
struct request {
    struct temporary *folder;
    struct vkn_job job;
    struct vkn_prepare_params params;
    struct vkn_prepare_result result;
};

static inline struct request request_of(struct temporary *folder, const char *pictures)
{
    struct request request = {.folder = folder, .job = {.quiet = true}};
    request.params.pictures = temporary_path(folder, pictures);
    request.params.out = temporary_path(folder, "scene");
    return request;
}

static inline vkn_status prepare(struct request *request)
{
    request->params.job = &request->job;
    request->result = (struct vkn_prepare_result){0};
    return vkn_prepare(&request->params, &request->result);
}

static inline struct request five_pictures(struct temporary *folder)
{
    for (uint8_t i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "given/p%u.png", i);
        temporary_picture(folder, name, 40, 30, i);
    }
    fake(folder, "");
    return request_of(folder, "given");
}

static inline void assert_fails(struct request *request, vkn_status status, const char *part)
{
    vkn_status got = prepare(request);
    if (got != status)
        fail_msg("status %d instead of %d: %s", (int)got, (int)status, vkn_last_error());
    assert_error(part);
}

#endif
