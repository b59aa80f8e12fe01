#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_errors: moves the error of each cell of the error map towards the mean loss of the rays
// since the last update interval, and sets the sums of these losses to zero.
//
//   buffer  shape                        access
//   STATE   [view][cell] ErrorCell       read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < config.error_cells; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        ErrorCell cell = error_cells[i];
        if (cell.rays == 0u)
            continue;
        float rays = float(cell.rays);
        float error = (float(cell.high) * 4294967296.0 + float(cell.low)) / (ERROR_UNITS * rays);
        // An error that is neither positive nor 0 comes from a damaged checkpoint.
        if (cell.error > 0.0)
            error = mix(cell.error, error, rays / (rays + float(ERROR_MEMORY)));
        error_cells[i] = ErrorCell(max(error, 1e-12), 0u, 0u, 0u); // an error of 0 means: no ray yet
    }
}
