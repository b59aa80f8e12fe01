/* COLMAP's camera models (src/colmap/sensor/models.h of its repository lists ids and parameters).
 */
#include <math.h>
#include <string.h>

#include "scene/colmap.h"

#define LARGEST_PIXELS      1e7
#define LARGEST_COEFFICIENT 1e3

/* Parameters: f both focal lengths, x y the focal length of an axis, u v the centre, 1 2 3 4 radial
 * coefficients, p q tangential ones, w h the size once more, of a panorama all around. Models that
 * are not supported are here for the message. */
static const struct colmap_model models[] = {
    {0, "SIMPLE_PINHOLE", 3, "fuv"},
    {1, "PINHOLE", 4, "xyuv"},
    {2, "SIMPLE_RADIAL", 4, "fuv1"},
    {3, "RADIAL", 5, "fuv12"},
    {4, "OPENCV", 8, "xyuv12pq"},
    {5, "OPENCV_FISHEYE", 8, "xyuv1234"},
    {6, "FULL_OPENCV", 12, NULL},
    {7, "FOV", 5, NULL},
    {8, "SIMPLE_RADIAL_FISHEYE", 4, "fuv1"},
    {9, "RADIAL_FISHEYE", 5, "fuv12"},
    {10, "THIN_PRISM_FISHEYE", 12, NULL},
    {11, "RAD_TAN_THIN_PRISM_FISHEYE", 16, NULL},
    {12, "SIMPLE_DIVISION", 4, NULL},
    {13, "DIVISION", 5, NULL},
    {14, "SIMPLE_FISHEYE", 3, "fuv"},
    {15, "FISHEYE", 4, "xyuv"},
    {16, "EUCM", 6, NULL},
    {17, "EQUIRECTANGULAR", 2, "wh"},
};

const struct colmap_model *colmap_model_by_id(int id)
{
    for (size_t i = 0; i < BASE_COUNT(models); i++)
        if (models[i].id == id)
            return &models[i];
    return NULL;
}

const struct colmap_model *colmap_model_by_name(const char *name, size_t length)
{
    for (size_t i = 0; i < BASE_COUNT(models); i++)
        if (strlen(models[i].name) == length && strncmp(models[i].name, name, length) == 0)
            return &models[i];
    return NULL;
}

vkn_status colmap_unsupported(const char *where, const char *name)
{
    return base_fail(VKN_BAD_INPUT,
                     "%s: model %s is not supported (SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, "
                     "RADIAL, OPENCV and fisheye models of the same are); undistort the images "
                     "first",
                     where, name);
}

/* Where a parameter goes, and what it may be. */
static bool store(char parameter, double value, struct transforms_lens *lens)
{
    static const char coefficients[] = "12pq34"; /* the order of transforms_lens.distortion */
    const char *place = strchr(coefficients, parameter);
    if (place != NULL) {
        lens->distortion[place - coefficients] = value;
        return fabs(value) <= LARGEST_COEFFICIENT;
    }
    if (parameter == 'u' || parameter == 'v') {
        lens->center[parameter - 'u'] = value;
        return fabs(value) <= LARGEST_PIXELS;
    }
    if (parameter == 'w' || parameter == 'h')
        return value == lens->size[parameter == 'w' ? 0 : 1];
    if (parameter == 'f' || parameter == 'x')
        lens->focal[0] = value;
    if (parameter == 'f' || parameter == 'y')
        lens->focal[1] = value;
    return value >= 1e-3 && value <= LARGEST_PIXELS;
}

vkn_status colmap_lens(const struct colmap_model *model, const char *where, const double size[2],
                       const double *parameters, struct transforms_lens *lens)
{
    *lens = lens_none;
    if (model->parameters == NULL)
        return colmap_unsupported(where, model->name);
    for (int axis = 0; axis < 2; axis++) {
        if (!(size[axis] >= 1 && size[axis] <= LARGEST_PIXELS))
            return base_fail(VKN_BAD_INPUT, "%s: %s %g is out of range (1 to %g)", where,
                             axis == 0 ? "width" : "height", size[axis], LARGEST_PIXELS);
        lens->size[axis] = size[axis];
    }
    lens->kind = strstr(model->name, "FISHEYE") != NULL ? VKN_LENS_FISHEYE : VKN_LENS_PERSPECTIVE;
    if (strcmp(model->name, "EQUIRECTANGULAR") == 0)
        lens->kind = VKN_LENS_EQUIRECTANGULAR;
    for (unsigned i = 0; i < model->count; i++)
        if (!store(model->parameters[i], parameters[i], lens))
            return base_fail(VKN_BAD_INPUT, "%s: parameter %u of %s, %g, is out of range", where,
                             i + 1, model->name, parameters[i]);
    return VKN_OK;
}
