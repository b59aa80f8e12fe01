#version 460
// C = A * B, row-major: an invocation has ROWS rows of A and COLUMNS columns of B.
//   FP16      packed, sums of eight products added up in FP32, like the field's
//   otherwise FP32
#ifdef FP16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#define REAL float16_t
#define REAL4 f16vec4
#else
#define REAL float
#define REAL4 vec4
#endif
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 1) in;
layout(constant_id = 1) const uint LOCAL_SIZE = 64;
layout(constant_id = 2) const uint ROWS = 4;

const uint COLUMNS = 16;
const uint DEPTH = 16; // rows of B in shared memory at once

layout(std430, set = 0, binding = 0) readonly buffer BufferA { REAL4 a[]; };
layout(std430, set = 0, binding = 1) readonly buffer BufferB { REAL b[]; };
layout(std430, set = 0, binding = 2) writeonly buffer BufferC { REAL c[]; };
layout(push_constant) uniform PushBlock { uint m, n, k, a_at, b_at, c_at; };

shared REAL part[DEPTH * COLUMNS];

void load_part(uint column, uint depth)
{
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < DEPTH * COLUMNS; i += LOCAL_SIZE)
        part[i] = b[b_at + (depth + i / COLUMNS) * n + column + i % COLUMNS];
    barrier();
}

// Row r of this invocation: rows of neighbours are neighbours.
uint row_at(uint tile_row, uint r)
{
    return tile_row + r * LOCAL_SIZE + gl_LocalInvocationID.x;
}

void multiply(uint row, uint column)
{
    float sum[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++)
        sum[i] = 0.0;
    for (uint depth = 0; depth < k; depth += DEPTH) {
        load_part(column, depth);
        [[unroll]] for (uint eight = 0; eight < DEPTH; eight += 8u) {
#ifdef FP16
            f16vec2 pair[ROWS * COLUMNS / 2u];
            [[unroll]] for (uint i = 0; i < ROWS * COLUMNS / 2u; i++)
                pair[i] = f16vec2(0.0);
#endif
            [[unroll]] for (uint four = eight; four < eight + 8u; four += 4u) {
                REAL4 x[ROWS];
                [[unroll]] for (uint r = 0; r < ROWS; r++)
                    x[r] = a[(a_at + row_at(row, r) * k + depth + four) / 4u];
                [[unroll]] for (uint d = 0; d < 4u; d++)
                    [[unroll]] for (uint r = 0; r < ROWS; r++)
#ifdef FP16
                        [[unroll]] for (uint i = 0; i < COLUMNS / 2u; i++)
                            pair[r * COLUMNS / 2u + i] +=
                                f16vec2(x[r][d]) * f16vec2(part[(four + d) * COLUMNS + 2u * i],
                                                           part[(four + d) * COLUMNS + 2u * i + 1u]);
#else
                        [[unroll]] for (uint i = 0; i < COLUMNS; i++)
                            sum[r * COLUMNS + i] += x[r][d] * part[(four + d) * COLUMNS + i];
#endif
            }
#ifdef FP16
            [[unroll]] for (uint i = 0; i < ROWS * COLUMNS / 2u; i++) {
                sum[2u * i] += float(pair[i].x);
                sum[2u * i + 1u] += float(pair[i].y);
            }
#endif
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint i = 0; i < COLUMNS; i++)
            c[c_at + row_at(row, r) * n + column + i] = REAL(sum[r * COLUMNS + i]);
}

void main()
{
    uint columns = n / COLUMNS, tiles = m / (LOCAL_SIZE * ROWS) * columns;
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += gl_NumWorkGroups.x)
        multiply(tile / columns * LOCAL_SIZE * ROWS, tile % columns * COLUMNS);
}
