/* What shaders/field/snippet_check.comp finds. Included by C and by GLSL. */
#ifndef SHARED_SNIPPET_H
#define SHARED_SNIPPET_H

#define SNIPPET_OK                     0
#define SNIPPET_DERIVATIVE             1 /* of a parameter is not what differences say */
#define SNIPPET_PARAMETER_BEFORE_FIRST 2 /* a parameter before the first */
#define SNIPPET_READS                  3 /* encode reads a parameter behind the last */
#define SNIPPET_BACKWARD_READS         4 /* encode_backward does */
#define SNIPPET_WRITES                 5 /* and adds to its gradient */
#define SNIPPET_ODD_PAIR               6 /* parameter_pair of an odd number */
#define SNIPPET_PUTS_BEHIND_LAST       7 /* a feature behind the last; */
#define SNIPPET_PUTS_TWICE             8
#define SNIPPET_FEATURE_MISSING        9
#define SNIPPET_NOT_FINITE             10
#define SNIPPET_ASKS_BEHIND_LAST       11 /* the gradient of a feature behind the last; */
#define SNIPPET_GRADIENT_NOT_FINITE    12 /* of a parameter, not finite */

#endif
