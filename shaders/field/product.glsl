// Products of layers that are too wide to go through an MLP in one piece: Y = X * W, both as large as
// they come.
//
// Activations lie in blocks of 16 rows, [row / 16][column][row % 16]; weights in panels of 16 columns,
// [column / 16][row][column % 16]. What products add up over comes in chunks, 32 columns of a block or 32
// rows of a panel, CHUNK values one after the other. So a lane's values lie beside its neighbours', a
// matrix is loaded from one stretch of memory whatever its shape, and a pass over a panel is one too:
// columns a kilobyte apart, as wide rows have them, push each other out of the nearest cache.
//
// What includes this has declared
//   SOURCE4(chunk, i)            four values of the activations' chunk, from 4 i on, as STORAGE_T4
//   PANEL4(chunk, i)             of the weights'
//   uint source_chunk(uint block, uint depth)  number of a block's chunk, from 0 to DEPTH - 1
//   uint panel_chunk(uint panel, uint depth)
//   PACKED_PRODUCTS              whether those of FP16 are packed, else in FP32
//   float round_sum(float sum)   what a sum so far is kept as, ROUNDS_SUMS where that is not itself
//   void finish(uint row, uint column, float sum)   what becomes of an output
//   with COOPMAT source_values[] and panel_values[], of f16, and without STAGED (where sums go through finish, lane by
//   lane) finish_matrix(sum, row, column), of MATRIX_M x MATRIX_N outputs
// and calls
//   multiply_all(blocks, panels, depth, group, groups)   blocks, panels and chunks to add up, shared out
//                                among so many workgroups, of which this is one

#include "field/blocks.glsl"

uint source_chunk(uint block, uint depth);
uint panel_chunk(uint panel, uint depth);
void finish(uint row, uint column, float sum);

#ifdef COOPMAT
#include "field/matrix.glsl"
#endif

#if defined(COOPMAT)
#include "field/product_matrix.glsl"
#elif defined(TILED)
#include "field/product_tile.glsl"
#else
#include "field/product_rows.glsl"
#endif
