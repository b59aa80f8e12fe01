// Defines sizes of blocks, panels and chunks for field/product.glsl.
// Passes: all of layer-by-layer models; vknerf bench.
#ifndef FIELD_BLOCKS_GLSL
#define FIELD_BLOCKS_GLSL

const uint BLOCK_ROWS = 16u; // rows of a block of activations; columns of a panel of weights
const uint CHUNK_DEPTH = 32u;
const uint CHUNK = CHUNK_DEPTH * BLOCK_ROWS;

// Returns `count`, a number of rows or columns, rounded up to a multiple of CHUNK_DEPTH.
uint whole_chunks(uint count)
{
    return (count + CHUNK_DEPTH - 1u) / CHUNK_DEPTH * CHUNK_DEPTH;
}

#endif
