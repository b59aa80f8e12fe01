/* What the kinds of models share. */
#ifndef FIELD_INTERNAL_H
#define FIELD_INTERNAL_H

#include "field/field.h"

#define FIELD_PAD(n) (((n) + 15u) / 16u * 16u) /* to whole matrix tiles */

/* VKN_BAD_INPUT with the key and the message unless `good`. */
vkn_status field_check(bool good, const char *key, const char *message);
/* The next random number of a stream, in [-1, 1). */
float field_random(uint64_t *state);
/* Weights of all layers, Xavier uniform (Glorot and Bengio 2010), padding zero. */
void field_random_weights(const struct field_model *model, uint64_t *state, float *params);

#endif
