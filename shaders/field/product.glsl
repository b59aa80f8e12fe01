// Matrix products Y = X * W of layers that are too wide to go through an MLP in one pass.
//
// Activations lie in blocks of 16 rows, [row / 16][column][row % 16]; weights in panels of 16 columns,
// [column / 16][row][column % 16]. The summed dimension comes in chunks: 32 columns of a block or 32
// rows of a panel, CHUNK consecutive values. So a lane's values are next to its neighbours', a matrix
// of any shape is loaded from one range of memory, and a pass over a panel reads consecutive memory:
// columns a kilobyte apart, as in wide rows, evict each other from the first-level cache.
//
// The including file declares
//   SOURCE4(chunk, i)            four values of a chunk of the activations, from 4 i on, as STORAGE_T4
//   PANEL4(chunk, i)             four values of a chunk of the weights
//   uint source_chunk(uint block, uint depth)  index of chunk number `depth` of a block
//   uint panel_chunk(uint panel, uint depth)   index of chunk number `depth` of a panel
//   PACKED_PRODUCTS              whether the products of FP16 are packed f16, otherwise FP32
//   float round_sum(float sum)   rounds a partial sum, if ROUNDS_SUMS
//   void finish(uint row, uint column, float sum)   stores an output
//   with COOPMAT: source_values[] and panel_values[], f16; without STAGED finish_matrix(sum, row, column),
//   for MATRIX_M x MATRIX_N outputs; with STAGED sums go through finish, lane by lane
// and calls
//   multiply_all(blocks, panels, depth, group, groups)   multiplies all blocks by all panels, summing over
//                                `depth` chunks, as workgroup `group` of `groups`
// Passes: layer_forward, layer_backward, layer_weights; bench.

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
