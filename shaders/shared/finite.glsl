// Tells gradients that overflow, or whose sums may: the pass that computes gradients sets
// State.nonfinite, so that no pass has to read all of them.
// Passes: scatter_gradients, reduce_gradients.

// Returns true also for NaN.
bool overflows(float x)
{
    return !(abs(x) < MOST_GRADIENT);
}

bool overflows(vec4 x)
{
    return !all(lessThan(abs(x), vec4(MOST_GRADIENT)));
}
