/* Reads depth pictures: distances along the optical axis as 16-bit PNG, EXR or .npy files. Values
 * that are not positive or not finite are unknown. */
#include <math.h>
#include <stdlib.h>

#include "scene/exr.h"
#include "scene/image.h"
#include "scene/npy.h"
#include "scene/transforms.h"

#define MOST_PIXELS   4096.0 /* about the most pixels of a picture that are used, evenly spaced */
#define PICTURE_SIGMA 0.02   /* relative standard deviation of a depth */
#define OPAQUE        65535u /* alpha of a pixel without alpha, in a picture of 16 bits */
/* Largest relative difference of the aspect ratios, without the rounding of an image's size. */
#define SAME_SHAPE    0.02

struct depth_picture {
    float *values; /* [row][column]; not positive or not finite: unknown */
    uint32_t width, height;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads a picture of 16 bits, whose pixels' values are depths. The caller frees *pixels, also after
 * a failure. */
static vkn_status read_16_bits(const char *path, struct image_mask **pixels, uint32_t *width,
                               uint32_t *height)
{
    BASE_TRY(image_read_mask(path, pixels, width, height));
    return (*pixels)[0].alpha == OPAQUE
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: not a 16-bit grey picture of depths", path);
}

static vkn_status read_integers(const char *path, struct depth_picture *picture)
{
    struct image_mask *pixels = NULL;
    vkn_status status = read_16_bits(path, &pixels, &picture->width, &picture->height);
    const size_t count = status == VKN_OK ? (size_t)picture->width * picture->height : 0;
    picture->values = status == VKN_OK ? base_alloc(count, sizeof *picture->values) : NULL;
    for (size_t i = 0; i < count && picture->values != NULL; i++)
        picture->values[i] = pixels[i].value;
    free(pixels);
    return status == VKN_OK && picture->values == NULL ? VKN_ERROR : status;
}

static vkn_status read_array(const char *path, struct depth_picture *picture)
{
    struct npy array;
    vkn_status status = npy_read(path, &array);
    const size_t count = status == VKN_OK ? array.rows * array.columns : 0;
    if (status == VKN_OK &&
        (count == 0 || array.rows > SCENE_MAX_IMAGE_SIZE || array.columns > SCENE_MAX_IMAGE_SIZE))
        status = base_json_fail(path, "shape", "(%zu, %zu) is not the size of a picture",
                                array.rows, array.columns);
    picture->values = status == VKN_OK ? base_alloc(count, sizeof *picture->values) : NULL;
    for (size_t i = 0; i < count && picture->values != NULL; i++)
        picture->values[i] = (float)array.values[i];
    picture->width = (uint32_t)array.columns;
    picture->height = (uint32_t)array.rows;
    npy_free(&array);
    return status == VKN_OK && picture->values == NULL ? VKN_ERROR : status;
}

/* Reads a picture, whose content decides its type. */
static vkn_status read_picture(const char *path, struct depth_picture *picture)
{
    uint8_t first[8];
    size_t size = 0;
    BASE_TRY(base_file_read_beginning(path, first, sizeof first, &size, NULL));
    if (exr_is(first, size))
        return exr_read(path, &picture->values, &picture->width, &picture->height);
    return npy_is(first, size) ? read_array(path, picture) : read_integers(path, picture);
}

vkn_status scene_filter_depth(const char *depth, const char *confidence, const char *filtered)
{
    struct image_mask *depths = NULL, *levels = NULL;
    uint32_t width = 0, height = 0, columns = 0, rows = 0;
    vkn_status status = read_16_bits(depth, &depths, &width, &height);
    if (status == VKN_OK)
        status = image_read_mask(confidence, &levels, &columns, &rows);
    uint16_t *values = status == VKN_OK ? base_alloc((size_t)width * height, sizeof *values) : NULL;
    for (size_t i = 0; i < (size_t)width * height && values != NULL; i++) {
        size_t row = i / width * rows / height, column = i % width * columns / width;
        values[i] = levels[row * columns + column].value > 0 ? depths[i].value : 0;
    }
    if (status == VKN_OK)
        status =
            values != NULL ? scene_image_write_png16(filtered, values, width, height) : VKN_ERROR;
    free(depths);
    free(levels);
    free(values);
    return status;
}

/* ---- known depths ---------------------------------------------------------------------------- */

static bool is_known(float value)
{
    return value > 0 && isfinite(value);
}

/* Checks that the picture has the shape of the view's image, and any depth. */
static vkn_status check(const char *path, const struct scene_camera *camera,
                        const struct depth_picture *picture)
{
    const size_t count = (size_t)picture->width * picture->height;
    double shape = (double)picture->width * camera->height / picture->height / camera->width;
    size_t known = 0;
    if (camera->applied_orientation > EXIF_UPRIGHT)
        return base_fail(VKN_BAD_INPUT, "%s: its photograph is turned by an EXIF orientation",
                         path);
    if (fabs(shape - 1) > SAME_SHAPE + 1.0 / camera->width + 1.0 / camera->height)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %ux%u pixels do not have the shape of the image of %ux%u", path,
                         picture->width, picture->height, camera->width, camera->height);
    for (size_t i = 0; i < count; i++)
        known += is_known(picture->values[i]) ? 1 : 0;
    return known > 0 ? VKN_OK
                     : base_fail(VKN_BAD_INPUT,
                                 "%s: all depths are unknown (0, negative or not finite)", path);
}

/* Adds the depth of a pixel. `unit`: training units per value. */
static void add_pixel(const struct scene_camera *camera, const struct depth_picture *picture,
                      uint32_t column, uint32_t row, double unit, struct base_text *list)
{
    const float value = picture->values[(size_t)row * picture->width + column];
    double x = (column + 0.5) / picture->width * camera->width;
    double y = (row + 0.5) / picture->height * camera->height;
    double origin[3], direction[3], along = 0;
    if (!is_known(value) || !scene_camera_ray(camera, x, y, origin, direction))
        return;
    for (int i = 0; i < 3; i++)
        along -= direction[i] * (double)camera->pose[4 * i + 2];
    double depth = (double)value * unit / along * scene_camera_depth_scale(camera, direction);
    const struct scene_depth known = {(float)x, (float)y, (float)depth,
                                      (float)(PICTURE_SIGMA * depth)};
    if (along > 0 && depth_is_usable(camera, &known))
        base_text_add_bytes(list, &known, sizeof known);
}

vkn_status depth_picture_read(const struct vkn_scene *scene, const struct scene_camera *camera,
                              struct base_text *list)
{
    struct depth_picture picture = {0};
    BASE_TRY(read_picture(camera->depth_path, &picture));
    vkn_status status = check(camera->depth_path, camera, &picture);
    uint32_t stride = (uint32_t)ceil(sqrt(picture.width / MOST_PIXELS * picture.height));
    for (uint32_t row = stride / 2; row < picture.height && status == VKN_OK; row += stride)
        for (uint32_t column = stride / 2; column < picture.width; column += stride)
            add_pixel(camera, &picture, column, row, camera->depth_unit * scene->scale, list);
    free(picture.values);
    return status;
}
