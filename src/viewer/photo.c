/* Answers /api/photo: a photograph of a view, scaled down to the requested width. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>

#define PHOTO_QUALITY 85 /* of JPEG */

struct shrinking {
    const float *color;
    uint8_t *rgb;
    double sums[3]; /* of RGB over the photograph's pixels in one pixel of the result */
};

static inline void add(void *context, size_t pixel)
{
    struct shrinking *shrinking = context;
    for (size_t c = 0; c < 3; c++)
        shrinking->sums[c] += (double)shrinking->color[3 * pixel + c];
}

static inline void put(void *context, size_t pixel, uint64_t count)
{
    struct shrinking *shrinking = context;
    for (size_t c = 0; c < 3; c++) {
        double mean = shrinking->sums[c] / (double)count;
        shrinking->rgb[3 * pixel + c] = (uint8_t)lround(255.0 * fmin(fmax(mean, 0.0), 1.0));
        shrinking->sums[c] = 0;
    }
}

static struct answer encode(const struct vkn_picture *picture, uint32_t most)
{
    struct answer answer = {.code = 200, .type = "image/jpeg"};
    uint32_t width = picture->width < most ? picture->width : most;
    uint32_t height = (uint32_t)fmax(1.0, round((double)picture->height * width / picture->width));
    uint8_t *rgb = malloc(3 * (size_t)width * height);
    if (rgb) {
        const uint32_t from[2] = {picture->width, picture->height};
        const uint32_t to[2] = {width, height < from[1] ? height : from[1]};
        pixels_shrink(from, from[0], to, add, put, &(struct shrinking){picture->color, rgb, {0}});
        const struct pixels_jpeg jpeg = {rgb, width, height, 3, PHOTO_QUALITY, NULL, 0};
        answer.data = pixels_write_jpeg(&jpeg, &answer.size);
    }
    free(rgb);
    return answer.data ? answer : answer_error(500, "out of memory");
}

struct answer photo_answer(struct viewer *viewer, const struct photo_request *request)
{
    struct vkn_picture *picture = NULL;
    if (!viewer->scene)
        return answer_error(404, "the run's scene was not found");
    if (request->view >= vkn_scene_view_count(viewer->scene, request->split))
        return answer_error(404, "there is no such view");
    if (vkn_scene_image(viewer->scene, request->split, request->view, viewer->background,
                        &picture) != VKN_OK)
        return answer_error(404, vkn_last_error());
    const struct answer answer = encode(picture, request->width);
    vkn_picture_free(&picture);
    return answer;
}
