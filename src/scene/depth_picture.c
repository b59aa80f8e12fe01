/* Reads depth pictures: 16-bit PNG files of distances along the optical axis, 0 where unknown. */
#include <math.h>
#include <stdlib.h>

#include "scene/image.h"
#include "scene/transforms.h"

#define MOST_PIXELS   4096.0 /* about the most pixels of a picture that are used, evenly spaced */
#define PICTURE_SIGMA 0.02   /* relative standard deviation of a depth */
#define OPAQUE        65535u /* alpha of a pixel without alpha, in a picture of 16 bits */
/* Largest relative difference of the aspect ratios, without the rounding of an image's size. */
#define SAME_SHAPE    0.02

struct depth_picture {
    struct image_mask *pixels;
    uint32_t width, height;
};

/* Checks that the picture has 16 bits, the shape of the view's image, and any depth. */
static vkn_status check(const char *path, const struct scene_camera *camera,
                        const struct depth_picture *picture)
{
    const size_t count = (size_t)picture->width * picture->height;
    double shape = (double)picture->width * camera->height / picture->height / camera->width;
    size_t known = 0;
    if (camera->applied_orientation > EXIF_UPRIGHT)
        return base_fail(VKN_BAD_INPUT, "%s: its photograph is turned by an EXIF orientation",
                         path);
    if (picture->pixels[0].alpha != OPAQUE)
        return base_fail(VKN_BAD_INPUT, "%s: not a 16-bit grey picture of depths", path);
    if (fabs(shape - 1) > SAME_SHAPE + 1.0 / camera->width + 1.0 / camera->height)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %ux%u pixels do not have the shape of the image of %ux%u", path,
                         picture->width, picture->height, camera->width, camera->height);
    for (size_t i = 0; i < count; i++)
        known += picture->pixels[i].value > 0 ? 1 : 0;
    return known > 0 ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: all depths are 0, unknown", path);
}

/* Adds the depth of a pixel. `unit`: training units per value. */
static void add_pixel(const struct scene_camera *camera, const struct depth_picture *picture,
                      uint32_t column, uint32_t row, double unit, struct base_text *list)
{
    const uint16_t value = picture->pixels[(size_t)row * picture->width + column].value;
    double x = (column + 0.5) / picture->width * camera->width;
    double y = (row + 0.5) / picture->height * camera->height;
    double origin[3], direction[3], along = 0;
    if (value == 0 || !scene_camera_ray(camera, x, y, origin, direction))
        return;
    for (int i = 0; i < 3; i++)
        along -= direction[i] * (double)camera->pose[4 * i + 2];
    double depth = value * unit / along * scene_camera_depth_scale(camera, direction);
    const struct scene_depth known = {(float)x, (float)y, (float)depth,
                                      (float)(PICTURE_SIGMA * depth)};
    if (along > 0 && depth_is_usable(camera, &known))
        base_text_add_bytes(list, &known, sizeof known);
}

vkn_status depth_picture_read(const struct vkn_scene *scene, const struct scene_camera *camera,
                              struct base_text *list)
{
    struct depth_picture picture;
    BASE_TRY(image_read_mask(camera->depth_path, &picture.pixels, &picture.width, &picture.height));
    vkn_status status = check(camera->depth_path, camera, &picture);
    uint32_t stride = (uint32_t)ceil(sqrt(picture.width / MOST_PIXELS * picture.height));
    for (uint32_t row = stride / 2; row < picture.height && status == VKN_OK; row += stride)
        for (uint32_t column = stride / 2; column < picture.width; column += stride)
            add_pixel(camera, &picture, column, row, camera->depth_unit * scene->scale, list);
    free(picture.pixels);
    return status;
}
