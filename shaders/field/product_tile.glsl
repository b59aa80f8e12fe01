// Computes matrix products on GPUs without cooperative matrices: a workgroup of 256 invocations
// computes 8 blocks of rows by 4 panels, an invocation 8 rows by 4 columns. One chunk of each block
// and panel is in shared memory at a time.
// Used by the passes that field/product.glsl lists, with TILED and without COOPMAT.

const uint TILE_BLOCKS = 8u, TILE_PANELS = 4u;
const uint FOURS = CHUNK / 4u; // loads per chunk

shared STORAGE_T4 source_tile[TILE_BLOCKS * FOURS];
shared STORAGE_T4 panel_tile[TILE_PANELS * FOURS];

void load_tiles(uint block, uint blocks, uint panel, uint panels, uint d)
{
    barrier();
    [[unroll]] for (uint b = 0; b < TILE_BLOCKS; b += LOCAL_SIZE / FOURS) {
        uint mine = b + gl_LocalInvocationID.x / FOURS, i = gl_LocalInvocationID.x % FOURS;
        source_tile[mine * FOURS + i] = SOURCE4(source_chunk(min(block + mine, blocks - 1u), d), i);
    }
    [[unroll]] for (uint p = 0; p < TILE_PANELS; p += LOCAL_SIZE / FOURS) {
        uint mine = p + gl_LocalInvocationID.x / FOURS, i = gl_LocalInvocationID.x % FOURS;
        panel_tile[mine * FOURS + i] = PANEL4(panel_chunk(min(panel + mine, panels - 1u), d), i);
    }
    barrier();
}

// Adds the products of the loaded chunks. Each of the 16 x 16 invocations computes eight rows (half
// a block) by four columns (a quarter of a panel).
void add_tiles(uint x_at, uint w_at, inout vec4 sum[8])
{
    [[dont_unroll]] for (uint eight = 0; eight < 4u * CHUNK_DEPTH; eight += 32u) {
        COMPUTE_T4 packed_sum[8];
        [[unroll]] for (uint r = 0; r < 8u; r++)
            packed_sum[r] = COMPUTE_T4(0.0);
        [[unroll]] for (uint k = 0; k < 32u; k += 4u) {
            STORAGE_T4 w = panel_tile[w_at + eight + k];
            STORAGE_T4 x[2] = {source_tile[x_at + eight + k], source_tile[x_at + eight + k + 1u]};
            [[unroll]] for (uint r = 0; r < 8u; r++)
                if (PACKED_PRODUCTS)
                    packed_sum[r] += x[r / 4u][r % 4u] * w;
                else
                    sum[r] += float(x[r / 4u][r % 4u]) * vec4(w);
        }
        [[unroll]] for (uint r = 0; r < 8u; r++)
            [[unroll]] for (uint e = 0; e < 4u; e++)
                sum[r][e] = round_sum(PACKED_PRODUCTS ? sum[r][e] + float(packed_sum[r][e]) : sum[r][e]);
    }
}

void multiply(uint block, uint blocks, uint panel, uint panels, uint depth)
{
    uint down = gl_LocalInvocationID.x % 16u, across = gl_LocalInvocationID.x / 16u;
    uint x_at = down / 2u * FOURS + down % 2u * 2u, w_at = across / 4u * FOURS + across % 4u;
    vec4 sum[8];
    [[unroll]] for (uint r = 0; r < 8u; r++)
        sum[r] = vec4(0.0);
    for (uint d = 0; d < depth; d++) {
        load_tiles(block, blocks, panel, panels, d);
        add_tiles(x_at, w_at, sum);
    }
    uint row = block * BLOCK_ROWS + down * 8u, column = panel * BLOCK_ROWS + across * 4u;
    if (row < blocks * BLOCK_ROWS && column < panels * BLOCK_ROWS)
        [[unroll]] for (uint e = 0; e < 4u; e++)
            [[unroll]] for (uint r = 0; r < 8u; r++)
                finish(row + r, column + e, sum[r][e]);
}

void multiply_all(uint blocks, uint panels, uint depth, uint group, uint groups)
{
    uint across = (panels + TILE_PANELS - 1u) / TILE_PANELS;
    uint tiles = (blocks + TILE_BLOCKS - 1u) / TILE_BLOCKS * across;
    for (uint tile = group; tile < tiles; tile += groups)
        multiply(tile / across * TILE_BLOCKS, blocks, tile % across * TILE_PANELS, panels, depth);
}
