#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mark_outliers: finds the outlier cells of the error map, which show what only their image shows,
// such as people who walk by. As in RobustNeRF (Sabour et al., 2023) the errors' quantile and the cells
// around a cell decide: single cells with a large error are details that the field has not learned. The
// errors are running means of a map of the whole image, so that rays need not be drawn in patches. A
// cell becomes an outlier cell if the mean error of the 5 x 5 cells around it is far above the quantile,
// or if that of 3 x 3 cells is above it and outlier cells are beside it. An update interval looks at one
// cell of each 2 x 2, so that the cells beside it keep their marks meanwhile.
//
//   buffer          shape                              access
//   CAMERAS         [camera]                           read
//   STATE, CONTROL  step; progress                     read
//   STATE           [view][cell] ErrorCell, summary    read, write
#include "shared/common.glsl"
#include "rays/camera.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };

#include "shared/progress.glsl"
#include "volume/loss.glsl"

// Least differences of an outlier cell, in units of the difference whose loss is the quantile.
// FAR_ABOVE: of the mean of 5 x 5 cells. ABOVE: of the mean of 3 x 3 cells, beside outlier cells.
// Smaller differences than LEAST_DIFFERENCE, of 0 to 1, do little harm.
const float FAR_ABOVE = 1.5, ABOVE = 1.2, LEAST_DIFFERENCE = 0.14;
const uint LEAST_BESIDE = 2u; // outlier cells beside an outlier cell
const int REACH = 2;

shared uint group_above, group_seen, group_outliers;

// Returns whether the field has learned enough, so that large errors mean more than an early step.
bool marking_begins()
{
    float share = float(state.step) / float(OUTLIER_STEPS);
    if (training_ends())
        share = max(share, training_progress() / OUTLIER_START);
    return share >= 1.0;
}

// Returns the loss of a difference that is `times` the quantile's, and LEAST_DIFFERENCE at least.
float least_error(float quantile, float times)
{
    const float typical = 0.1; // the ratio of losses depends little on the difference
    float ratio = channel_loss(times * typical).x / channel_loss(typical).x;
    return max(ratio * quantile, channel_loss(LEAST_DIFFERENCE).x);
}

// Sums of the cells with a ray around a cell, in a square of edge 3 and of edge 5.
struct Around {
    float near_error, error;
    uint near_count, count;
    uint beside; // outlier cells among the 8 nearest
};

Around around_cell(uint first, ivec2 at, ivec2 size)
{
    Around a = Around(0.0, 0.0, 0u, 0u, 0u);
    for (int y = -REACH; y <= REACH; y++)
        for (int x = -REACH; x <= REACH; x++) {
            ivec2 other = at + ivec2(x, y);
            if (any(lessThan(other, ivec2(0))) || any(greaterThanEqual(other, size)))
                continue;
            float signed_error = error_cells[first + uint(other.y * size.x + other.x)].error;
            float error = abs(signed_error);
            if (!(error > 0.0 && error < 1e6)) // no ray yet, or from a damaged checkpoint
                continue;
            bool near = max(abs(x), abs(y)) <= 1;
            a.error += error;
            a.count++;
            a.near_error += near ? error : 0.0;
            a.near_count += near ? 1u : 0u;
            a.beside += near && signed_error < 0.0 && (x != 0 || y != 0) ? 1u : 0u;
        }
    return a;
}

void look_at(uint view, ivec2 at, float quantile, bool marks)
{
    uint first = cameras[view].first_cell, columns = cameras[view].cell_columns;
    uint rows = (cameras[view].height + config.cell_edge - 1u) / config.cell_edge;
    if (at.x >= int(columns) || at.y >= int(rows))
        return;
    uint cell = first + uint(at.y) * columns + uint(at.x);
    float own = abs(error_cells[cell].error);
    if (!(own > 0.0))
        return;
    Around a = around_cell(first, at, ivec2(columns, rows));
    float near_error = a.near_error / float(max(a.near_count, 1u));
    bool is_far_above = a.error > least_error(quantile, FAR_ABOVE) * float(a.count);
    bool is_above = near_error > least_error(quantile, ABOVE) && a.beside >= LEAST_BESIDE;
    bool is_outlier = marks && (is_far_above || is_above);
    error_cells[cell].error = is_outlier ? -own : own;
    atomicAdd(group_seen, 1u);
    if (near_error > quantile)
        atomicAdd(group_above, 1u);
    if (is_outlier)
        atomicAdd(group_outliers, 1u);
}

void main()
{
    if (gl_LocalInvocationID.x == 0u)
        group_seen = group_above = group_outliers = 0u;
    barrier();
    uint turn = state.step / UPDATE_INTERVAL % OUTLIER_TURNS, summary = config.sky_cells + config.error_cells;
    float quantile = error_cells[summary].error;
    bool marks = marking_begins();
    for (uint view = gl_WorkGroupID.x; view < config.camera_count; view += gl_NumWorkGroups.x) {
        uint across = (cameras[view].cell_columns + 1u) / 2u;
        uint down = (cameras[view].height / config.cell_edge + 2u) / 2u;
        for (uint i = gl_LocalInvocationID.x; i < across * down; i += LOCAL_SIZE)
            look_at(view, ivec2(2u * (i % across) + turn % 2u, 2u * (i / across) + turn / 2u), quantile, marks);
    }
    barrier();
    if (gl_LocalInvocationID.x != 0u || group_seen == 0u)
        return;
    atomicAdd(error_cells[summary].low, group_above);
    atomicAdd(error_cells[summary].high, group_seen);
    atomicAdd(error_cells[summary].rays, group_outliers);
}
