// Computes matrix products on CPU devices: an invocation computes one row and the 16 columns of a
// panel. A workgroup is one subgroup, whose rows are in one block.
// Used by the passes that field/product.glsl lists, on CPU devices.

// Returns this lane's value among the SUBGROUP_SIZE values of a chunk from 4 i on. Each lane loads
// all these values and selects its own: lavapipe then loads a vector, whereas an address per lane
// would be a gather, which takes ten times as long.
STORAGE_T lane_value(uint chunk, uint i)
{
    STORAGE_T x = STORAGE_T(0.0);
    [[unroll]] for (uint j = 0; j < SUBGROUP_SIZE / 4u; j++) {
        STORAGE_T4 four = SOURCE4(chunk, i + j);
        [[unroll]] for (uint e = 0; e < 4u; e++)
            x = gl_SubgroupInvocationID == 4u * j + e ? four[e] : x;
    }
    return x;
}

// Adds the products of chunk `source` and chunk `panel` to sum[j]. Packed products are added in f16
// over eight inputs, then in FP32.
void add_chunk(uint source, uint panel, uint first_row, inout float sum[BLOCK_ROWS])
{
    [[unroll]] for (uint eight = 0; eight < CHUNK_DEPTH; eight += 8u) {
        COMPUTE_T4 packed_sum[4];
        [[unroll]] for (uint j = 0; j < 4u; j++)
            packed_sum[j] = COMPUTE_T4(0.0);
        [[unroll]] for (uint k = 0; k < 8u; k++) { // constant bounds, so that it is unrolled
            STORAGE_T x = lane_value(source, 4u * (eight + k) + first_row / 4u);
            [[unroll]] for (uint j = 0; j < 4u; j++) {
                STORAGE_T4 w = PANEL4(panel, 4u * (eight + k) + j);
                if (PACKED_PRODUCTS)
                    packed_sum[j] += x * w;
                else
                    [[unroll]] for (uint e = 0; e < 4u; e++)
                        sum[4u * j + e] += float(x) * float(w[e]);
            }
        }
        [[unroll]] for (uint j = 0; j < BLOCK_ROWS; j++)
            sum[j] = round_sum(PACKED_PRODUCTS ? sum[j] + float(packed_sum[j / 4u][j % 4u]) : sum[j]);
    }
}

// Clamps a counter below its end, because some drivers run a loop's body once more with all lanes
// off, and loads by address are not checked.
uint bounded(uint counter, uint end)
{
    return min(counter, max(end, 1u) - 1u);
}

// Multiplies rows of a block, from `first_row` on, by a panel. `first_row` is a constant, so that the
// offsets of the loads are constants.
void multiply(uint block, uint panel, uint depth, uint first_row)
{
    float sum[BLOCK_ROWS];
    [[unroll]] for (uint j = 0; j < BLOCK_ROWS; j++)
        sum[j] = 0.0;
    for (uint d = 0; d < depth; d++)
        add_chunk(source_chunk(block, bounded(d, depth)), panel_chunk(panel, bounded(d, depth)), first_row, sum);
    [[unroll]] for (uint j = 0; j < BLOCK_ROWS; j++)
        finish(block * BLOCK_ROWS + first_row + gl_LocalInvocationID.x, panel * BLOCK_ROWS + j, sum[j]);
}

void multiply_all(uint blocks, uint panels, uint depth, uint group, uint groups)
{
    for (uint block = group; block < blocks; block += groups)
        for (uint panel = 0; panel < panels; panel++)
            [[unroll]] for (uint row = 0; row < BLOCK_ROWS; row += SUBGROUP_SIZE)
                multiply(bounded(block, blocks), bounded(panel, panels), depth, row);
}
