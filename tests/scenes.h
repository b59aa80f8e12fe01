/* Makes temporary folders with files, pictures and scenes, and checks messages, for tests. Include
 * after cmocka.h. Also waits for processes. */
#ifndef TESTS_SCENES_H
#define TESTS_SCENES_H

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "remove_tree.h"
#include "scene/scene.h"

#define assert_ok(call)                                                         \
    do {                                                                        \
        vkn_status assert_ok_status = (call);                                   \
        if (assert_ok_status != VKN_OK)                                         \
            fail_msg("status %d: %s", (int)assert_ok_status, vkn_last_error()); \
    } while (0)

/* Checks that the last error is one line that contains `part`. */
#define assert_error(part)                                                             \
    do {                                                                               \
        if (strstr(vkn_last_error(), (part)) == NULL)                                  \
            fail_msg("\"%s\" is not in the message \"%s\"", (part), vkn_last_error()); \
        assert_null(strchr(vkn_last_error(), '\n'));                                   \
    } while (0)

/* Returns whether a process that is no child of this one ends within 5 seconds. In containers it
 * may stay as a zombie, of state Z. */
static inline bool ends_soon(pid_t process)
{
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    for (int i = 0; i < 500 && kill(process, 0) == 0; i++) {
        FILE *file = fopen(path, "re");
        bool zombie = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'Z';
        if (file)
            fclose(file);
        if (zombie)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return kill(process, 0) != 0;
}

/* A folder for one test; paths that its functions return are freed with it. */
struct temporary {
    char path[64];
    char *texts[320];
    size_t text_count;
};

static inline int temporary_setup(void **state)
{
    struct temporary *folder = calloc(1, sizeof(*folder));
    if (folder == NULL)
        return -1;
    strcpy(folder->path, "/tmp/vknerf-test-XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) != NULL ? 0 : -1;
}

static inline int temporary_teardown(void **state)
{
    struct temporary *folder = *state;
    remove_tree(folder->path);
    for (size_t i = 0; i < folder->text_count; i++)
        free(folder->texts[i]);
    free(folder);
    return 0;
}

/* Returns the number of entries in the folder. */
static inline size_t temporary_count(const struct temporary *folder)
{
    DIR *stream = opendir(folder->path);
    assert_non_null(stream);
    size_t count = 0;
    while (readdir(stream) != NULL)
        count++;
    closedir(stream);
    return count - 2;
}

/* Returns the path of `name` in the folder, and makes its parent folders. */
static inline char *temporary_path(struct temporary *folder, const char *name)
{
    char *path = base_path_join(folder->path, name), *parent = base_path_folder(path);
    assert_ok(base_make_folder(parent));
    free(parent);
    assert_true(folder->text_count < BASE_COUNT(folder->texts));
    folder->texts[folder->text_count++] = path;
    return path;
}

static inline char *temporary_file(struct temporary *folder, const char *name, const void *data,
                                   size_t size)
{
    char *path = temporary_path(folder, name);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
    return path;
}

static inline char *temporary_text(struct temporary *folder, const char *name, const char *text)
{
    return temporary_file(folder, name, text, strlen(text));
}

/* Writes an RGBA picture whose pixel (x, y) is (x, y, seed, 255). */
static inline char *temporary_picture(struct temporary *folder, const char *name, uint32_t width,
                                      uint32_t height, uint8_t seed)
{
    char *path = temporary_path(folder, name);
    uint8_t *pixels = base_alloc((size_t)width * height, 4);
    assert_non_null(pixels);
    for (uint32_t i = 0; i < width * height; i++) {
        const uint8_t pixel[4] = {(uint8_t)(i % width), (uint8_t)(i / width), seed, 255};
        memcpy(pixels + (size_t)4 * i, pixel, 4);
    }
    assert_ok(scene_image_write_png(path, pixels, width, height, 4));
    free(pixels);
    return path;
}

/* Returns a path that even root cannot create: its parent is a file. */
static inline char *temporary_impossible(struct temporary *folder, const char *name)
{
    char *path = base_path_join(temporary_text(folder, "a file", ""), name);
    assert_true(folder->text_count < BASE_COUNT(folder->texts));
    return folder->texts[folder->text_count++] = path;
}

/* Checks that opening fails with VKN_BAD_INPUT and `part` in the message. */
static inline void assert_open_fails(const struct scene_options *options, const char *part)
{
    struct vkn_scene *scene = NULL;
    assert_int_equal(scene_open(options, &scene), VKN_BAD_INPUT);
    assert_null(scene);
    assert_error(part);
}

#endif
