/* Findings of shaders/field/snippet_check.comp. C and GLSL include this file. */
#ifndef SHARED_SNIPPET_H
#define SHARED_SNIPPET_H

#define SNIPPET_OK                     0
#define SNIPPET_DERIVATIVE             1 /* gradient of a parameter differs from finite differences */
#define SNIPPET_PARAMETER_BEFORE_FIRST 2 /* reads or writes a parameter before the first */
#define SNIPPET_READS                  3 /* encode reads a parameter after the last */
#define SNIPPET_BACKWARD_READS         4 /* encode_backward reads a parameter after the last */
#define SNIPPET_WRITES                 5 /* encode_backward adds to a gradient after the last parameter's */
#define SNIPPET_ODD_PAIR               6  /* parameter_pair of an odd index */
#define SNIPPET_PUTS_BEHIND_LAST       7  /* put_feature of an index after the last feature */
#define SNIPPET_PUTS_TWICE             8  /* put_feature of the same feature again */
#define SNIPPET_FEATURE_MISSING        9  /* encode does not put a feature */
#define SNIPPET_NOT_FINITE             10 /* put_feature of NaN or infinity */
#define SNIPPET_ASKS_BEHIND_LAST       11 /* feature_gradient of an index after the last feature */
#define SNIPPET_GRADIENT_NOT_FINITE    12 /* gradient of a parameter is not finite */

#endif
