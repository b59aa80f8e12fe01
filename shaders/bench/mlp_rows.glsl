// Rows of the MLPs from a buffer: the encoded position's values of one set of rows,
// [value / 2][row][2], 32 bits or, where the MLPs are, 16.

layout(std430, BINDING(SAMPLES)) readonly buffer RowBuffer { uint row_words[]; };

#if defined(FP16) || defined(COOPMAT)
#define PAIR_WORDS 1u
#else
#define PAIR_WORDS 2u
#endif

// Of the push constants.
#define ROW_COUNT push.a
#define FIRST_WORD push.b

uint pair_at(uint pair, uint row)
{
    return (pair * ROW_COUNT + row) * PAIR_WORDS;
}

void read_row(uint row)
{
    if (row_part() != 0u)
        return;
    [[unroll]] for (uint pair = 0; pair < ENCODED / 2u; pair++) {
        uint at = FIRST_WORD + pair_at(pair, row);
#if defined(FP16) || defined(COOPMAT)
        vec2 two = unpackHalf2x16(row_words[at]);
#else
        vec2 two = vec2(uintBitsToFloat(row_words[at]), uintBitsToFloat(row_words[at + 1u]));
#endif
        set_value(2u * pair, two.x);
        set_value(2u * pair + 1u, two.y);
    }
}
