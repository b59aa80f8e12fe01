/* Checks arrays of the caller's rays and points, and converts them to training space. */
#include "render/given.h"

#include <math.h>

static const char *const wanted[] = {
    [GIVEN_FINITE] = "finite numbers",
    [GIVEN_DIRECTION] = "vectors of a finite length above 0",
    [GIVEN_TIME] = "numbers from 0 to 1",
    [GIVEN_DISTANCE] = "numbers of at least 0",
};

static double length_of(const double vector[3])
{
    return hypot(hypot(vector[0], vector[1]), vector[2]);
}

static bool is_right(const struct given_array *array, const double *element)
{
    double length;
    switch (array->kind) {
    case GIVEN_DIRECTION:
        length = length_of(element);
        return length > 0 && isfinite(length);
    case GIVEN_TIME:
        return *element >= 0 && *element <= 1;
    case GIVEN_DISTANCE:
        return *element >= 0;
    case GIVEN_FINITE:
        break;
    }
    for (unsigned k = 0; k < array->width; k++)
        if (!isfinite(element[k]))
            return false;
    return true;
}

static vkn_status refuse(const char *structure, const struct given_array *array, size_t index)
{
    const double *element = array->values + array->width * index;
    if (array->width == 1)
        return base_fail(VKN_BAD_INPUT, "%s: %s: element %zu is %g: must be %s", structure,
                         array->name, index, element[0], wanted[array->kind]);
    return base_fail(VKN_BAD_INPUT, "%s: %s: element %zu is %g, %g, %g: must be %s", structure,
                     array->name, index, element[0], element[1], element[2], wanted[array->kind]);
}

vkn_status given_check(const char *structure, size_t count, const struct given_array *arrays,
                       size_t array_count)
{
    for (size_t a = 0; a < array_count; a++) {
        const struct given_array *array = &arrays[a];
        if (!array->values && array->needed && count > 0)
            return base_fail(VKN_BAD_INPUT, "%s: `%s` is NULL", structure, array->name);
        for (size_t i = 0; i < count && array->values; i++)
            if (!is_right(array, array->values + array->width * i))
                return refuse(structure, array, i);
    }
    return VKN_OK;
}

struct Ray given_ray(const vkn_renderer *renderer, const double *origins, const double *directions,
                     const double *times, size_t index)
{
    const struct vkn_config *config = &renderer->setup.config;
    struct Ray ray = {
        .time = times ? (float)times[index] : renderer->time, .distance_scale = 1, .weight = 1};
    double origin[3];
    scene_position_from_public(origins + 3 * index, config->scene.scale, config->scene.offset,
                               origin);
    const double *direction = directions ? directions + 3 * index : NULL;
    double length = direction ? length_of(direction) : 1;
    for (int i = 0; i < 3; i++) {
        ray.background[i] = renderer->setup.constants.render_background[i];
        ray.origin[i] = (float)origin[i];
        ray.direction[i] = direction ? (float)(direction[i] / length) : 0.0F;
    }
    return ray;
}
