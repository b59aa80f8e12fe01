// Products of a layer's pass, from SOURCE and PANEL (field/chunks.glsl), which what includes this defines.
// LOWERED_PRODUCTS is the operation of the policy that the sums are, LOWERED_SUMS by default.
#include "field/chunks.glsl"

#ifdef COOPMAT
layout(constant_id = SPEC_PRODUCT_BLOCKS) const uint M_BLOCKS = 1;
layout(constant_id = SPEC_PRODUCT_PANELS) const uint N_PANELS = 1;
#endif
#ifndef LOWERED_PRODUCTS
#define LOWERED_PRODUCTS LOWERED_SUMS
#endif
#include "shared/lowered.glsl"
#include "field/packed.glsl"
const bool LOWERS_SUMS = (LOWERED & LOWERED_PRODUCTS) != 0u;
float lower_sum(float sum)
{
    return lower(LOWERED_PRODUCTS, sum);
}

#include "field/product.glsl"
