/* Photographs of the scene's views, as small as somebody wants them. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>

#define PHOTO_QUALITY 85 /* of JPEG */

/* The mean of the pixels that fall into each pixel of the smaller picture. */
static void shrink(const struct vkn_picture *picture, uint32_t width, uint32_t height, uint8_t *rgb)
{
    for (uint32_t y = 0; y < height; y++) {
        uint32_t rows[2] = {(uint32_t)((uint64_t)y * picture->height / height),
                            (uint32_t)((uint64_t)(y + 1) * picture->height / height)};
        for (uint32_t x = 0; x < width; x++) {
            uint32_t columns[2] = {(uint32_t)((uint64_t)x * picture->width / width),
                                   (uint32_t)((uint64_t)(x + 1) * picture->width / width)};
            double sum[3] = {0}, count = (double)(rows[1] - rows[0]) * (columns[1] - columns[0]);
            for (uint32_t row = rows[0]; row < rows[1]; row++)
                for (uint32_t column = columns[0]; column < columns[1]; column++)
                    for (size_t c = 0; c < 3; c++)
                        sum[c] +=
                            (double)picture->color[3 * ((size_t)row * picture->width + column) + c];
            for (size_t c = 0; c < 3; c++)
                rgb[3 * ((size_t)y * width + x) + c] =
                    (uint8_t)lround(255.0 * fmin(fmax(sum[c] / count, 0.0), 1.0));
        }
    }
}

static struct answer encode(const struct vkn_picture *picture, uint32_t most)
{
    struct answer answer = {.code = 200, .type = "image/jpeg"};
    uint32_t width = picture->width < most ? picture->width : most;
    uint32_t height = (uint32_t)fmax(1.0, round((double)picture->height * width / picture->width));
    uint8_t *rgb = malloc(3 * (size_t)width * height);
    if (rgb) {
        shrink(picture, width, height < picture->height ? height : picture->height, rgb);
        const struct jpeg_picture jpeg = {rgb, width, height, 3, PHOTO_QUALITY, NULL, 0};
        answer.data = jpeg_write(&jpeg, &answer.size);
    }
    free(rgb);
    return answer.data ? answer : answer_error(500, "out of memory");
}

struct answer photo_answer(struct viewer *viewer, const struct photo_request *request)
{
    struct vkn_picture *picture = NULL;
    if (!viewer->scene)
        return answer_error(404, "the run's scene is not there");
    if (request->view >= vkn_scene_view_count(viewer->scene, request->split))
        return answer_error(404, "there is no such view");
    if (vkn_scene_image(viewer->scene, request->split, request->view, viewer->background,
                        &picture) != VKN_OK)
        return answer_error(404, vkn_last_error());
    const struct answer answer = encode(picture, request->width);
    vkn_picture_free(&picture);
    return answer;
}
