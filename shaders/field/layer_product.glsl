// Products of a layer's pass. What includes this defines ROWS_FROM(of) and PANELS_FROM(of) as of(NAME) of
// the buffers; they are read by address where there is one, see field/mlp_scalar.glsl. LOWERED_PRODUCTS is the
// operation of the policy that the sums are, LOWERED_SUMS by default.
#define NUMBER_OF(NAME) BIND_##NAME

layout(std430, ROWS_FROM(BINDING)) readonly buffer SourceBuffer { REAL source_values[]; };
layout(std430, PANELS_FROM(BINDING)) readonly buffer PanelBuffer { REAL panel_values[]; };
#ifdef ADDRESSES
struct Chunk { REAL4 at[128]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Chunks { Chunk chunk[]; };
layout(std430, BINDING(ADDRESSES)) readonly buffer AddressBuffer { uvec2 addresses[]; };
Chunks source_chunks, panel_chunks;
#define SOURCE4(c, i) source_chunks.chunk[c].at[i]
#define PANEL4(c, i)  panel_chunks.chunk[c].at[i]
#else
layout(std430, ROWS_FROM(BINDING)) readonly buffer SourceFourBuffer { REAL4 source4[]; };
layout(std430, PANELS_FROM(BINDING)) readonly buffer PanelFourBuffer { REAL4 panel4[]; };
#define SOURCE4(c, i) source4[(c) * (CHUNK / 4u) + (i)]
#define PANEL4(c, i)  panel4[(c) * (CHUNK / 4u) + (i)]
#endif

// Before any product.
void begin_products()
{
#ifdef ADDRESSES
    source_chunks = Chunks(addresses[ROWS_FROM(NUMBER_OF)]);
    panel_chunks = Chunks(addresses[PANELS_FROM(NUMBER_OF)]);
#endif
}

#ifdef COOPMAT
layout(constant_id = SPEC_PRODUCT_BLOCKS) const uint M_BLOCKS = 1;
layout(constant_id = SPEC_PRODUCT_PANELS) const uint N_PANELS = 1;
#endif
#ifndef LOWERED_PRODUCTS
#define LOWERED_PRODUCTS LOWERED_SUMS
#endif
#include "shared/lowered.glsl"
const bool LOWERS_SUMS = (LOWERED & LOWERED_PRODUCTS) != 0u;
float lower_sum(float sum)
{
    return lower(LOWERED_PRODUCTS, sum);
}

#include "field/product.glsl"
