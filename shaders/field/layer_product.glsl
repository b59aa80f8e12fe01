// Sets up the matrix products of layers, from SOURCE and PANEL (field/chunks.glsl), which the
// including file defines. ROUND_PRODUCTS is the policy operation (ROUND_*) that rounds the sums, by
// default ROUND_SUMS.
// Passes: layer_forward, layer_backward, layer_weights.
#include "field/chunks.glsl"

#ifdef COOPMAT
layout(constant_id = SPEC_PRODUCT_BLOCKS) const uint M_BLOCKS = 1;
layout(constant_id = SPEC_PRODUCT_PANELS) const uint N_PANELS = 1;
#endif
#ifndef ROUND_PRODUCTS
#define ROUND_PRODUCTS ROUND_SUMS
#endif
const bool ROUNDS_SUMS = (ROUNDED & ROUND_PRODUCTS) != 0u;
float round_sum(float sum)
{
    return round_to(ROUND_PRODUCTS, sum);
}

#include "field/product.glsl"
