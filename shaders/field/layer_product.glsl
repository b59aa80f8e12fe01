// Products of a layer's pass, from SOURCE and PANEL (field/chunks.glsl), which what includes this defines.
// ROUND_PRODUCTS is the operation of the policy that the sums are, ROUND_SUMS by default.
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
