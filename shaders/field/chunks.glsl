// Reads the operands of matrix products, four values at a time, from the buffers SOURCE and PANEL,
// which the including file defines as buffer numbers. With ADDRESSES the loads are by 64-bit address:
// see field/mlp_scalar.glsl.
// Passes: layer_forward, layer_backward, layer_weights; vknerf bench. With ADDRESSES reads ADDRESSES
// [buffer number] u64.
#include "shared/buffers.h"
#include "field/blocks.glsl"

#define NUMBERED(number) set = (number) / SET_SIZE, binding = (number) % SET_SIZE

layout(std430, NUMBERED(SOURCE)) readonly buffer SourceBuffer { STORAGE_T source_values[]; };
layout(std430, NUMBERED(PANEL)) readonly buffer PanelBuffer { STORAGE_T panel_values[]; };
#ifdef ADDRESSES
struct Chunk { STORAGE_T4 at[128]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Chunks { Chunk chunk[]; };
layout(std430, BINDING(ADDRESSES)) readonly buffer AddressBuffer { uvec2 addresses[]; };
Chunks source_chunks, panel_chunks;
#define SOURCE4(c, i) source_chunks.chunk[c].at[i]
#define PANEL4(c, i)  panel_chunks.chunk[c].at[i]
#else
layout(std430, NUMBERED(SOURCE)) readonly buffer SourceFourBuffer { STORAGE_T4 source4[]; };
layout(std430, NUMBERED(PANEL)) readonly buffer PanelFourBuffer { STORAGE_T4 panel4[]; };
#define SOURCE4(c, i) source4[(c) * (CHUNK / 4u) + (i)]
#define PANEL4(c, i)  panel4[(c) * (CHUNK / 4u) + (i)]
#endif

// Loads the buffers' addresses. Called before any product.
void begin_products()
{
#ifdef ADDRESSES
    source_chunks = Chunks(addresses[SOURCE]);
    panel_chunks = Chunks(addresses[PANEL]);
#endif
}
