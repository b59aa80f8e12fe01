// Adds gradients with respect to the parameters of views, and the colours of the sky, in 64-bit fixed
// point: sums are the same in any order, and exact over the steps of an update interval.
// The including file declares STATE as `error_cells`.
// Passes: view_gradients, update_views, appearance_gradients, update_appearance, sum_sky, update_sky.

// Adds a 64-bit number to a sum.
void add_words(uint cell, uint low, uint high)
{
    uint before = atomicAdd(error_cells[cell].low, low);
    high += before + low < before ? 1u : 0u;
    if (high != 0u)
        atomicAdd(error_cells[cell].high, high);
}

// Adds a gradient to a sum, unless the gradient is beyond the range. Converts the magnitude: a float
// near 2^32, as the low word of a small negative value, would be a multiple of 256.
void add_gradient(uint cell, float value)
{
    float scaled = abs(value) * float(GRADIENT_UNITS / 4294967296.0), whole = floor(scaled);
    if (!(scaled < 1073741824.0))
        return;
    uint low = uint(min((scaled - whole) * 4294967296.0, 4294967040.0)), high = uint(whole);
    if (value < 0.0) {
        low = ~low + 1u;
        high = ~high + (low == 0u ? 1u : 0u);
    }
    add_words(cell, low, high);
}

// Moves a sum, with its number of summands, to another sum.
void move_sum(uint from, uint to)
{
    ErrorCell sum = error_cells[from];
    error_cells[from] = ErrorCell(0.0, 0u, 0u, 0u);
    add_words(to, sum.low, sum.high);
    if (sum.rays > 0u)
        atomicAdd(error_cells[to].rays, sum.rays);
}

// Returns a sum of gradients.
float gradient_of(uint cell)
{
    ErrorCell sum = error_cells[cell];
    // Converts the magnitude: the two words of a small negative sum are large.
    bool is_negative = int(sum.high) < 0;
    uint low = is_negative ? ~sum.low + 1u : sum.low;
    uint high = is_negative ? ~sum.high + (low == 0u ? 1u : 0u) : sum.high;
    float magnitude = (float(high) * 4294967296.0 + float(low)) / GRADIENT_UNITS;
    return is_negative ? -magnitude : magnitude;
}
