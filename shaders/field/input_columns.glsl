// Declares which columns hold a row's inputs: features or frequencies of the position, then frequencies
// of the time, padded to whole chunks; then the encoded direction. The including file includes
// field/encoding.glsl and field/layers.glsl.
// Passes: encode_inputs, direction_gradients.

layout(constant_id = SPEC_DIRECTION) const uint DIRECTION = DIRECTION_HARMONICS;

// Without a grid FEATURES is 0 and LEVELS is the number of octaves of the position. Unless the
// direction is encoded as harmonics, SH_DEGREE is the number of octaves of the direction.
const uint POSITION_INPUTS = FEATURES > 0u ? LEVELS * FEATURES : 3u + 6u * LEVELS;
const uint DENSITY_INPUTS = POSITION_INPUTS + TIME_INPUTS;
const uint DIRECTION_INPUTS = DIRECTION == DIRECTION_NONE        ? 0u
                              : DIRECTION == DIRECTION_HARMONICS ? SH_SIZE
                                                                 : 3u + 6u * SH_DEGREE;
