#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry, from the mean of all ranks' steps: this rank's share of the numbers, as a factor beside a mean; and the
// count that all ranks go on with. None has taken more steps with an entry than with all.
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"

layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(STEP_COUNTS)) buffer CountBuffer { uint counts[]; };
layout(std430, BINDING(SYNCED_COUNTS)) buffer BeforeBuffer { uint before[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        uint i = push.a + n;
        float mean = steps[i];
        uint count = min(before[i] + uint(ceil(mean)), control.min_updates);
        steps[i] = mean > 0.0 ? float(counts[i] - before[i]) / mean : UNTOUCHED;
        counts[i] = count;
        before[i] = count;
    }
}
