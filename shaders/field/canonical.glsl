// Where the field is asked: at a sample's place or, of a scene that moves, where the deformation says that it
// is in the canonical scene. That waits in the place of the sample's colour, which comes after it, and is there
// again when the colour is done with.
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
