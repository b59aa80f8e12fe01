// Computes sines and cosines of the frequency encoding (Mildenhall et al., NeRF, ECCV 2020, section
// 5.1, equation 4): x and, for each octave k, sin(2^k pi x) and cos(2^k pi x). Vulkan guarantees sine
// and cosine only within [-pi, pi] and to 2^-11. Here the fraction of a full turn is exact, because
// 2^k is a power of two, and polynomials compute sine and cosine of that fraction.
// Passes: encode_inputs, encode_deformation, field_forward, field_backward.

// Returns sin(pi x) and cos(pi x) for any x whose float spacing is below a full turn.
vec2 half_turns(float x)
{
    float turn = x * 0.5;
    turn -= floor(turn + 0.5);      // -0.5 .. 0.5 of a turn
    float quarter = floor(turn * 4.0 + 0.5);
    float r = (turn * 4.0 - quarter) * 1.5707963267948966; // -pi / 4 .. pi / 4
    float r2 = r * r;
    // Taylor series, whose first omitted terms are below 2e-9 and 3e-10.
    float s = r * (1.0 + r2 * (-1.0 / 6.0 + r2 * (1.0 / 120.0 + r2 * (-1.0 / 5040.0 + r2 / 362880.0))));
    float c = 1.0 + r2 * (-0.5 + r2 * (1.0 / 24.0 + r2 * (-1.0 / 720.0 + r2 / 40320.0)));
    int q = int(quarter) & 3;
    vec2 swapped = (q & 1) == 0 ? vec2(s, c) : vec2(c, s);
    return vec2((q & 2) == 0 ? swapped.x : -swapped.x, q == 0 || q == 3 ? swapped.y : -swapped.y);
}
