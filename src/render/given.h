/* Checks arrays of the caller's rays and points, and converts them to training space. */
#ifndef RENDER_GIVEN_H
#define RENDER_GIVEN_H

#include "render/internal.h"

/* What an array of the caller holds. */
enum given_kind {
    GIVEN_FINITE,    /* finite numbers */
    GIVEN_DIRECTION, /* vectors of a length that is neither 0 nor infinite */
    GIVEN_TIME,      /* numbers from 0 to 1 */
    GIVEN_DISTANCE   /* numbers of at least 0, infinity included */
};
struct given_array {
    const char *name;
    const double *values; /* [count][width] */
    unsigned width;
    enum given_kind kind;
    bool needed; /* must not be NULL if `count` is not 0 */
};
/* Returns VKN_BAD_INPUT "STRUCTURE: NAME: ..." if an array is missing, or has a wrong element. */
vkn_status given_check(const char *structure, size_t count, const struct given_array *arrays,
                       size_t array_count);
/* Returns element `index` as a ray in training space: origin, direction of unit length (0 if
 * `directions` is NULL) and time, which is the renderer's if `times` is NULL. */
struct Ray given_ray(const vkn_renderer *renderer, const double *origins, const double *directions,
                     const double *times, size_t index);

#endif
