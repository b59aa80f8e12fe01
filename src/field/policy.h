/* The precision policy: what each operation of training is stored and computed in, by precision. */
#ifndef FIELD_POLICY_H
#define FIELD_POLICY_H

#include "field/path.h"

enum field_operation {
    FIELD_PARAMETERS,    /* hash table and MLP weights, as the step reads them */
    FIELD_INTERPOLATION, /* of the grid's features */
    FIELD_ACTIVATIONS,
    FIELD_PRODUCTS, /* of the MLPs */
    FIELD_SUMS,
    FIELD_ACTIVATION_GRADIENTS,
    FIELD_WEIGHT_SUMS, /* of the weights' gradients */
    FIELD_GRID_SUMS,
    FIELD_COMPOSITING, /* sigmoid, density's exp, transmittance, colour, loss */
    FIELD_UPDATE,      /* masters, moments, moving average, gradient norm */
    FIELD_OPERATIONS
};

/* Whether 16 bits are involved; the table decides it for the code as well. `precision` is not AUTO.
 */
bool field_is_half(enum field_operation operation, enum vkn_precision precision);
/* "MLP products"; "f16 matrices" as the table has it; the same as a path does it. */
const char *field_operation_name(enum field_operation operation);
const char *field_policy(enum field_operation operation, enum vkn_precision precision);
const char *field_policy_of(enum field_operation operation, const struct field_path *path);

#endif
