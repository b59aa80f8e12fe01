// Computes matrix products in cooperative matrices of MATRIX_M x MATRIX_N x MATRIX_K, accumulated in
// ACCUM_T. A subgroup computes M_BLOCKS blocks of rows by N_PANELS panels; the including file defines
// both constants. Shapes are literals, as in field/mlp_matrix.glsl.
// Used by the passes that field/product.glsl lists, with COOPMAT.

#ifndef STAGED
void finish_matrix(inout MATRIX_SUM(ACCUM_T) sum, uint row, uint column);
#endif

const uint M_TILES = M_BLOCKS * BLOCK_ROWS / MATRIX_M, N_TILES = N_PANELS * BLOCK_ROWS / MATRIX_N;
const uint TILES = M_TILES * N_TILES;

#include "field/unrolling.glsl"

// Block, and row in the block, at which row m of a subgroup's array of matrices begins; panel, and
// column in the panel, at which column n of this array begins.
#define BLOCK_OF(m)  ((m) * MATRIX_M / BLOCK_ROWS)
#define ROW_IN(m)    ((m) * MATRIX_M % BLOCK_ROWS)
#define PANEL_OF(n)  ((n) * MATRIX_N / BLOCK_ROWS)
#define COLUMN_IN(n) ((n) * MATRIX_N % BLOCK_ROWS)

void round_sums(inout MATRIX_SUM(ACCUM_T) sum)
{
    if (ROUNDS_SUMS)
        for (int i = 0; i < sum.length(); i++)
            sum[i] = ACCUM_T(round_sum(float(sum[i])));
}

// Adds the products of MATRIX_K inputs, from input k of chunk d on.
void add_products(uint block, uint blocks, uint panel, uint panels, uint d, uint k,
                  inout MATRIX_SUM(ACCUM_T) sum[TILES])
{
    MATRIX_A rows[M_TILES];
    [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++)
        coopMatLoad(rows[m], source_values,
                    source_chunk(min(block + BLOCK_OF(m), blocks - 1u), d) * CHUNK +
                        k * BLOCK_ROWS + ROW_IN(m),
                    BLOCK_ROWS, COLUMN_MAJOR);
    [[unroll]] for (uint n = 0; n < loop_bound(N_TILES); n++) {
        MATRIX_B columns;
        coopMatLoad(columns, panel_values,
                    panel_chunk(min(panel + PANEL_OF(n), panels - 1u), d) * CHUNK +
                        k * BLOCK_ROWS + COLUMN_IN(n),
                    BLOCK_ROWS, ROW_MAJOR);
        [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++)
            sum[m * N_TILES + n] = coopMatMulAdd(rows[m], columns, sum[m * N_TILES + n]);
    }
    [[unroll]] for (uint t = 0; t < loop_bound(TILES); t++)
        round_sums(sum[t]);
}

#ifdef STAGED
shared float staging[LOCAL_SIZE / SUBGROUP_SIZE * MATRIX_M * MATRIX_N];

void staging_barrier()
{
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
}

// All subgroups call this function, with a sum or without one, because a driver may treat a subgroup's
// barriers as the workgroup's.
void store_sum(MATRIX_SUM(ACCUM_T) sum, uint row, uint column, bool has_sum)
{
    uint first = gl_SubgroupID * MATRIX_M * MATRIX_N;
    if (has_sum)
        coopMatStore(sum, staging, first, MATRIX_M, COLUMN_MAJOR);
    staging_barrier();
    for (uint i = gl_SubgroupInvocationID; has_sum && i < MATRIX_M * MATRIX_N; i += SUBGROUP_SIZE)
        finish(row + i % MATRIX_M, column + i / MATRIX_M, staging[first + i]);
    staging_barrier();
}
#else
void store_sum(MATRIX_SUM(ACCUM_T) sum, uint row, uint column, bool has_sum)
{
    if (has_sum)
        finish_matrix(sum, row, column);
}
#endif

void multiply(uint block, uint blocks, uint panel, uint panels, uint depth, bool exists)
{
    MATRIX_SUM(ACCUM_T) sum[TILES];
    [[unroll]] for (uint i = 0; i < loop_bound(TILES); i++)
        sum[i] = MATRIX_SUM(ACCUM_T)(0.0);
    for (uint k = 0; k < depth * CHUNK_DEPTH; k += MATRIX_K)
        add_products(block, blocks, panel, panels, k / CHUNK_DEPTH, k % CHUNK_DEPTH, sum);
    [[unroll]] for (uint n = 0; n < loop_bound(N_TILES); n++)
        [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++) {
            uint row = block * BLOCK_ROWS + m * MATRIX_M, column = panel * BLOCK_ROWS + n * MATRIX_N;
            store_sum(sum[m * N_TILES + n], row, column,
                      exists && row < blocks * BLOCK_ROWS && column < panels * BLOCK_ROWS);
        }
}

// All subgroups of a workgroup run the same number of iterations: see store_sum.
void multiply_all(uint blocks, uint panels, uint depth, uint group, uint groups)
{
    const uint subgroups = LOCAL_SIZE / SUBGROUP_SIZE;
    uint across = (panels + N_PANELS - 1u) / N_PANELS;
    uint tiles = (blocks + M_BLOCKS - 1u) / M_BLOCKS * across;
    for (uint first = group * subgroups; first < tiles; first += groups * subgroups) {
        uint tile = min(first + gl_SubgroupID, tiles - 1u);
        multiply(tile / across * M_BLOCKS, blocks, tile % across * N_PANELS, panels, depth,
                 first + gl_SubgroupID < tiles);
    }
}
