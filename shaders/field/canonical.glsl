// Returns the position at which the field is evaluated: the sample's position or, with a deformation,
// its canonical position. FIELD holds canonical positions until field values overwrite them. The
// backward pass stores the positions again once field values are not needed.
// Passes: encode_samples, input_gradients, scatter_gradients.
// Reads FIELD [sample] vec4, SAMPLES and RAYS.
#include "field/sample.glsl"

layout(constant_id = SPEC_DEFORMED) const uint DEFORMED = 0;

layout(std430, BINDING(FIELD)) readonly buffer CanonicalBuffer { vec4 canonical[]; };

vec3 canonical_position(uint index)
{
    vec3 direction;
    if (DEFORMED != 0u)
        return canonical[index].xyz;
    return sample_position(index, direction);
}
