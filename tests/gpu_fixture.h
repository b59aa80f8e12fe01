/* Opens devices under the validation layer and captures logs, for tests of src/gpu. */
#ifndef TESTS_GPU_FIXTURE_H
#define TESTS_GPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "certify/check.h"
#include "gpu/gpu.h"
#include "remove_tree.h"

static char cache_dir[] = "/tmp/vknerf-test-gpu-XXXXXX";

static inline void ok(vkn_status status)
{
    if (status != VKN_OK)
        fail_msg("status %d: %s", status, vkn_last_error());
}

static inline void assert_message(const char *part)
{
    if (!strstr(vkn_last_error(), part))
        fail_msg("\"%s\" is not in the message: %s", part, vkn_last_error());
}

static inline struct gpu_device *open_device(void)
{
    struct gpu_options options = {.cache_dir = cache_dir};
    struct gpu_device *device;
    ok(gpu_open(&options, &device));
    return device;
}

/* ---- standard error -------------------------------------------------------------------------- */

struct capture {
    FILE *file;
    int saved;
};

static inline struct capture capture_begin(void)
{
    struct capture capture = {tmpfile(), dup(STDERR_FILENO)};
    assert_true(capture.file && capture.saved >= 0);
    fflush(stderr);
    dup2(fileno(capture.file), STDERR_FILENO);
    return capture;
}

/* Returns what was written since capture_begin(); the caller frees it. */
static inline char *capture_end(struct capture *capture)
{
    fflush(stderr);
    dup2(capture->saved, STDERR_FILENO);
    close(capture->saved);
    fseek(capture->file, 0, SEEK_END);
    size_t size = (size_t)ftell(capture->file);
    rewind(capture->file);
    char *text = base_alloc(size + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, capture->file), size);
    fclose(capture->file);
    return text;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static inline int open_shared(void **state)
{
    *state = open_device();
    return 0;
}

static inline int close_shared(void **state)
{
    struct gpu_device *device = *state;
    gpu_close(&device);
    return 0;
}

/* Returns the only cache entry that begins so, or NULL; the caller frees the path. */
static inline char *cache_entry(const char *beginning)
{
    char *path = NULL;
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0) {
            assert_null(path);
            path = base_path_join(cache_dir, entry->d_name);
        }
    closedir(folder);
    return path;
}

static inline char *cache_file(void)
{
    return cache_entry("pipelines-");
}

/* Returns the folder of the binaries of shader objects. */
static inline char *shader_folder(void)
{
    return cache_entry("shaders-");
}

static inline bool prepare_tests(void)
{
    setenv("VKNERF_VALIDATION", "1", 1);
    return mkdtemp(cache_dir) != NULL;
}

static inline void clean_up_tests(void)
{
    remove_tree(cache_dir);
}

static inline void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(gpu_validation_messages(), 0);
}

#endif
