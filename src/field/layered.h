/* The files of the layered model. */
#ifndef FIELD_LAYERED_H
#define FIELD_LAYERED_H

#include "field/internal.h"

/* What passes cost that vanilla has not. */
cost_function layered_cost_encode, layered_cost_encode_live, layered_cost_encode_again,
    layered_cost_encode_cells, layered_cost_features;

#endif
