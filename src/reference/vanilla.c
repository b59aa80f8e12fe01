/* Reference frequencies of the vanilla model (Mildenhall et al., NeRF, ECCV 2020, section 5.1,
 * equation 4), of the position in the unit cube, mapped to -1 .. 1, and of the direction. Both are
 * padded with zeros to multiples of 32. */
#include "reference/reference.h"

#include <math.h>

#define PI 3.14159265358979323846

uint32_t reference_frequencies(uint32_t octaves, const double x[3], double *values)
{
    uint32_t count = 0;
    for (int axis = 0; axis < 3; axis++)
        values[count++] = x[axis];
    for (uint32_t octave = 0; octave < octaves; octave++) {
        for (int axis = 0; axis < 3; axis++)
            values[count++] = sin(ldexp(PI, (int)octave) * x[axis]);
        for (int axis = 0; axis < 3; axis++)
            values[count++] = cos(ldexp(PI, (int)octave) * x[axis]);
    }
    while (count % 32 != 0)
        values[count++] = 0;
    return count;
}

void reference_stretched(const struct reference_space *space, const double position[3],
                         double stretched[3])
{
    reference_to_unit(space, position, stretched);
    for (int i = 0; i < 3; i++)
        stretched[i] = 2 * fmin(fmax(stretched[i], 0), 1) - 1;
}
