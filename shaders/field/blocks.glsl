// Blocks, panels and chunks: field/product.glsl.
#ifndef FIELD_BLOCKS_GLSL
#define FIELD_BLOCKS_GLSL

const uint BLOCK_ROWS = 16u; // of activations; columns of a panel
const uint CHUNK_DEPTH = 32u;
const uint CHUNK = CHUNK_DEPTH * BLOCK_ROWS;

// Rows or columns, with those that fill up the last chunk.
uint whole_chunks(uint count)
{
    return (count + CHUNK_DEPTH - 1u) / CHUNK_DEPTH * CHUNK_DEPTH;
}

#endif
