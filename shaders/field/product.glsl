// Computes matrix products Y = X * W of layers, for MLPs that are too wide for one pass.
//
// Activations are in blocks of 16 rows, [row / 16][column][row % 16]; weights are in panels of 16
// columns, [column / 16][row][column % 16]. The summed dimension is split into chunks: 32 columns of
// a block or 32 rows of a panel, CHUNK consecutive values. So neighbouring lanes read neighbouring
// values, a matrix of any shape is loaded from one range of memory, and a loop over a panel reads
// consecutive memory: columns a kilobyte apart, as in wide rows, would evict each other from the
// first-level cache.
//
// The including file declares
//   SOURCE4(chunk, i)            four values of a chunk of the activations, from 4 i on, as STORAGE_T4
//   PANEL4(chunk, i)             four values of a chunk of the weights
//   uint source_chunk(uint block, uint depth)  index of chunk number `depth` of a block
//   uint panel_chunk(uint panel, uint depth)   index of chunk number `depth` of a panel
//   PACKED_PRODUCTS              whether FP16 computes products in packed f16, otherwise in FP32
//   float round_sum(float sum)   rounds a partial sum, if ROUNDS_SUMS
//   void finish(uint row, uint column, float sum)   stores an output
//   with COOPMAT: source_values[] and panel_values[], f16; without STAGED also finish_matrix(sum, row, column),
//   which stores MATRIX_M x MATRIX_N outputs (with STAGED finish stores them, lane by lane)
// and calls
//   multiply_all(blocks, panels, depth, group, groups)   multiplies all blocks by all panels, summing over
//                                `depth` chunks, as workgroup `group` of `groups`
// Passes: layer_forward, layer_backward, layer_weights; vknerf bench.

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
