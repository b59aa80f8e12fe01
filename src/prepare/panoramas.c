/* Splits equirectangular images into perspective images with ffmpeg's filter v360. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

/* Neighbouring views overlap by half, so that two views see each feature. There are no views
 * straight up and down, which show mostly sky and the photographer. */
#define STEP 45 /* degrees between neighbouring views */

struct splitting {
    struct preparation *preparation;
    const char *folder; /* folder of the views */
    char *panoramas;    /* folder of the panoramas */
    char **names;       /* [count] of the panoramas */
    char **problems;    /* [panorama] why it is skipped; NULL: it is used */
    size_t count;
    _Atomic size_t misshapen; /* number of images that are not twice as wide as high */
};

uint32_t panorama_view_size(uint32_t width)
{
    /* 90 degrees are a quarter of the panorama's pixels. */
    uint32_t size = width / 4 & ~1u;
    return size < 2048 ? size : 2048;
}

/* Makes the filter "[0:v]split=8[i0]...;[i0]v360=...:yaw=0[o0];...". */
static char *filter_of(uint32_t size)
{
    struct base_text text = {0};
    base_text_add(&text, "[0:v]split=%d", PANORAMA_VIEWS);
    for (int i = 0; i < PANORAMA_VIEWS; i++)
        base_text_add(&text, "[i%d]", i);
    for (int i = 0; i < PANORAMA_VIEWS; i++)
        base_text_add(&text,
                      ";[i%d]v360=e:flat:h_fov=90:v_fov=90:yaw=%d:w=%u:h=%u:interp=cubic,"
                      "format=yuvj444p[o%d]",
                      i, i * STEP <= 180 ? i * STEP : i * STEP - 360, size, size, i);
    if (!text.failed)
        return text.data;
    free(text.data);
    return NULL;
}

static void add_outputs(struct arguments *arguments, const struct splitting *splitting,
                        const char *name)
{
    static const char *const options[] = {"-frames:v", "1",  "-q:v",   "1",       "-qmin",
                                          "1",         "-f", "image2", "-update", "1"};
    for (int i = 0; i < PANORAMA_VIEWS; i++) {
        arguments_add(arguments, "-map");
        arguments_add(arguments, "[o%d]", i);
        for (size_t k = 0; k < BASE_COUNT(options); k++)
            arguments_add(arguments, "%s", options[k]);
        arguments_add(arguments, "file:%s/%.*s_%d.jpg", splitting->folder,
                      (int)(strrchr(name, '.') - name), name, i);
    }
}

/* Decodes a panorama, since ffmpeg splits half an image without an error. Sets *problem for a
 * damaged image; returns other errors, such as a full disk. */
static vkn_status check_panorama(const char *path, uint32_t *width, uint32_t *height,
                                 char **problem)
{
    uint8_t *rgba = NULL;
    vkn_status status = scene_image_read(path, &rgba, width, height);
    free(rgba);
    if (status != VKN_BAD_INPUT)
        return status;
    *problem = base_format("%s", vkn_last_error());
    return *problem != NULL ? VKN_OK : VKN_ERROR;
}

/* Skips an image that is not twice as wide as high. */
static vkn_status reject_shape(struct splitting *splitting, const char *path, uint32_t width,
                               uint32_t height, char **problem)
{
    splitting->misshapen++;
    *problem = base_format("%s: %ux%u pixels; an equirectangular picture is twice as wide as high",
                           path, width, height);
    return *problem != NULL ? VKN_OK : VKN_ERROR;
}

static vkn_status split_panorama(struct splitting *splitting, const char *name, const char *path,
                                 char **problem)
{
    static const char *const input[] = {
        "ffmpeg",        "-hide_banner", "-loglevel", "error",         "-nostats", "-nostdin", "-y",
        FFMPEG_ONE_FILE, "-f",           "image2",    "-pattern_type", "none",     "-i"};
    uint32_t width = 0, height = 0;
    BASE_TRY(check_panorama(path, &width, &height, problem));
    if (*problem != NULL)
        return VKN_OK;
    if (width != 2 * height || width < 64)
        return reject_shape(splitting, path, width, height, problem);
    char *filter = filter_of(panorama_view_size(width));
    struct program ffmpeg = {.name = "ffmpeg"};
    for (size_t i = 0; i < BASE_COUNT(input); i++)
        arguments_add(&ffmpeg.arguments, "%s", input[i]);
    arguments_add(&ffmpeg.arguments, "file:%s", path);
    arguments_add(&ffmpeg.arguments, "-filter_complex");
    arguments_add(&ffmpeg.arguments, "%s", filter != NULL ? filter : "");
    add_outputs(&ffmpeg.arguments, splitting, name);
    ffmpeg.arguments.failed |= filter == NULL;
    vkn_status status = program_run(splitting->preparation, &ffmpeg);
    free(filter);
    return status;
}

static vkn_status split_one(void *context, size_t index)
{
    struct splitting *splitting = context;
    char *path = base_path_join(splitting->panoramas, splitting->names[index]);
    vkn_status status = path != NULL ? split_panorama(splitting, splitting->names[index], path,
                                                      &splitting->problems[index])
                                     : VKN_ERROR;
    free(path);
    return status;
}

static void show_progress(void *context, size_t finished)
{
    const struct splitting *splitting = context;
    report_progress_count(splitting->preparation->progress, "splitting panoramas", finished,
                          splitting->count);
}

static vkn_status list_panoramas(struct splitting *splitting)
{
    struct dirent **entries = NULL;
    int count = scandir(splitting->panoramas, &entries, NULL, alphasort);
    if (count < 0)
        return base_fail(VKN_ERROR, "%s: %s", splitting->panoramas, strerror(errno));
    splitting->names = base_alloc((size_t)count + 1, sizeof(char *));
    for (int i = 0; i < count; i++) {
        if (splitting->names != NULL && entries[i]->d_name[0] != '.')
            splitting->names[splitting->count++] = base_format("%s", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    for (size_t i = 0; i < splitting->count; i++)
        if (splitting->names[i] == NULL)
            return VKN_ERROR;
    splitting->problems = base_alloc(splitting->count + 1, sizeof(char *));
    return splitting->names != NULL && splitting->problems != NULL ? VKN_OK : VKN_ERROR;
}

/* Assigns each problem to its photograph, or logs it for a video frame. */
static vkn_status report_problems(const struct splitting *splitting)
{
    for (size_t i = 0; i < splitting->count; i++) {
        if (splitting->problems[i] == NULL)
            continue;
        char *path = base_path_join(splitting->panoramas, splitting->names[i]);
        vkn_status status =
            path != NULL ? source_reject_named(&splitting->preparation->source, splitting->names[i],
                                               path, splitting->problems[i])
                         : VKN_ERROR;
        free(path);
        BASE_TRY(status);
    }
    return VKN_OK;
}

/* Fails if no photograph is a panorama, or if any video frame is no panorama. */
static vkn_status refuse_shapes(const struct splitting *splitting)
{
    const struct source *source = &splitting->preparation->source;
    const char *file = NULL, *reason = NULL;
    if (splitting->misshapen == 0 || (!source->is_video && splitting->misshapen < splitting->count))
        return VKN_OK;
    for (size_t i = 0; i < splitting->count && reason == NULL; i++) {
        reason = splitting->problems[i] != NULL ? strrchr(splitting->problems[i], '/') : NULL;
        for (size_t k = 0; reason != NULL && k < source->count; k++)
            if (strcmp(source->pictures[k].name, splitting->names[i]) == 0)
                file = source->pictures[k].file;
        reason = reason != NULL ? strstr(reason, ": ") : NULL;
    }
    return base_fail(VKN_BAD_INPUT, "%s%s%s%s", splitting->preparation->params->pictures,
                     file != NULL ? "/" : "", file != NULL ? file : "",
                     reason != NULL ? reason : "");
}

static void free_splitting(struct splitting *splitting)
{
    for (size_t i = 0; i < splitting->count; i++) {
        free(splitting->names[i]);
        if (splitting->problems != NULL)
            free(splitting->problems[i]);
    }
    free(splitting->names);
    free(splitting->problems);
    free(splitting->panoramas);
}

vkn_status panoramas_split(struct preparation *preparation, const char *folder)
{
    struct splitting splitting = {.preparation = preparation, .folder = folder};
    char *parent = base_path_folder(folder);
    splitting.panoramas = parent != NULL ? base_path_join(parent, "panoramas") : NULL;
    free(parent);
    vkn_status status = program_require("ffmpeg", "to split equirectangular pictures");
    if (status == VKN_OK && splitting.panoramas == NULL)
        status = VKN_ERROR;
    if (status == VKN_OK)
        status = files_move(folder, splitting.panoramas);
    if (status == VKN_OK)
        status = base_make_folder(folder);
    if (status == VKN_OK)
        status = list_panoramas(&splitting);
    if (status == VKN_OK)
        status = base_parallel(splitting.count, split_one, &splitting, show_progress);
    if (status == VKN_OK)
        status = refuse_shapes(&splitting);
    if (status == VKN_OK)
        status = report_problems(&splitting);
    free_splitting(&splitting);
    return status;
}
