#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_errors: moves the error of each cell of the error map towards the mean loss of the rays
// since the last update interval, and sets the sums of these losses to zero. With loss.robust the pass
// also moves the quantile of errors towards the share INLIERS of cells.
//
//   buffer  shape                                              access
//   STATE   [view][cell] ErrorCell, the summary with robust    read, write
#include "shared/common.glsl"

layout(constant_id = SPEC_ROBUST) const uint ROBUST = 0;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };

const float INLIERS = 0.8;       // share of cells below the quantile, as in RobustNeRF
const float QUANTILE_RATE = 4.0; // change of the quantile's binary logarithm per share of cells

// Moves the quantile against the share of cells above it.
void move_quantile()
{
    uint at = config.sky_cells + config.error_cells;
    ErrorCell summary = error_cells[at];
    float quantile = summary.error > 0.0 ? summary.error : 1.0;
    if (summary.high > 0u)
        quantile *= exp2(QUANTILE_RATE * (float(summary.low) / float(summary.high) - (1.0 - INLIERS)));
    error_cells[at] = ErrorCell(clamp(quantile, 1e-12, 1.0), 0u, 0u, 0u);
}

void main()
{
    const float memory = float(ROBUST != 0u ? OUTLIER_MEMORY : ERROR_MEMORY);
    if (ROBUST != 0u && gl_GlobalInvocationID.x == 0u)
        move_quantile();
    for (uint i = gl_GlobalInvocationID.x; i < config.error_cells; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        ErrorCell cell = error_cells[config.sky_cells + i];
        if (cell.rays == 0u)
            continue;
        float rays = float(cell.rays);
        float error = (float(cell.high) * 4294967296.0 + float(cell.low)) / (ERROR_UNITS * rays);
        // An error that is neither positive nor 0 comes from a damaged checkpoint.
        if (abs(cell.error) > 0.0)
            error = mix(abs(cell.error), error, rays / (rays + memory));
        error = max(error, 1e-12); // an error of 0 means: no ray yet
        error_cells[config.sky_cells + i] = ErrorCell(cell.error < 0.0 ? -error : error, 0u, 0u, 0u);
    }
}
