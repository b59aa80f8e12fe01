/* The files of the ngp model. */
#ifndef FIELD_NGP_H
#define FIELD_NGP_H

#include "field/field.h"

#define FIELD_NGP_DIRECTION 16u /* values of the direction's spherical harmonics */

/* What its passes cost. */
cost_function ngp_cost_encode, ngp_cost_forward, ngp_cost_densities, ngp_cost_colors,
    ngp_cost_backward, ngp_cost_scatter, ngp_cost_reduce, ngp_cost_occupancy,
    ngp_cost_input_gradients;

#endif
