/* The cameras of a scene as a drawing. */
#ifndef REPORT_RIG_H
#define REPORT_RIG_H

#include "scene/scene.h"

/* A self-contained SVG: the cameras from above and from two sides with what they see of their surroundings,
 * training and other views apart, the cubes of training space, its axes, what the cameras look at,
 * and the sparse points. Fresh memory that the caller frees; NULL with an error recorded. */
char *report_rig(const struct inspection *inspection);

#endif
