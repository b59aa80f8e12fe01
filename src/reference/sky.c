/* Reference of the sky: octahedral maps, their interpolation, weights and updates. */
#include "reference/reference.h"

#include <math.h>

#define LEVELS 4

static int edge_of(int level)
{
    return (int)lround(pow(4, level + 1));
}

/* Maps a direction to the octahedron |x| + |y| + |z| = 1, and folds its lower half outwards. */
static void unfold(const double d[3], double uv[2])
{
    double sum = fabs(d[0]) + fabs(d[1]) + fabs(d[2]), x = d[0] / sum, y = d[1] / sum;
    if (d[2] < 0) {
        double outer = copysign(1 - fabs(y), x);
        y = copysign(1 - fabs(x), y);
        x = outer;
    }
    uv[0] = (x + 1) / 2;
    uv[1] = (y + 1) / 2;
}

/* Returns the texel at a position of the unfolded square or a little beyond: beyond an edge lies
 * the point that is reflected in the edge and in the middle of the edge. */
static uint32_t texel_at(int level, double u, double v)
{
    int edge = edge_of(level), first = 0;
    if (u < 0 || u > 1) {
        u = u < 0 ? -u : 2 - u;
        v = 1 - v;
    }
    if (v < 0 || v > 1) {
        v = v < 0 ? -v : 2 - v;
        u = 1 - u;
    }
    for (int l = 0; l < level; l++)
        first += edge_of(l) * edge_of(l);
    return (uint32_t)(first + (int)fmin(v * edge, edge - 1) * edge + (int)fmin(u * edge, edge - 1));
}

uint32_t reference_sky_texel(int level, const double direction[3])
{
    double uv[2];
    unfold(direction, uv);
    return texel_at(level, uv[0], uv[1]);
}

void reference_sky(const struct ErrorCell (*texels)[4], const double direction[3], double color[3])
{
    double uv[2];
    unfold(direction, uv);
    color[0] = color[1] = color[2] = 0.5;
    for (int level = 0; level < LEVELS; level++) {
        double edge = edge_of(level), weights = 1.0 / 16, sums[3];
        for (int c = 0; c < 3; c++)
            sums[c] = color[c] / 16;
        double u = floor(uv[0] * edge - 0.5), v = floor(uv[1] * edge - 0.5);
        for (int i = 0; i < 4; i++) {
            double x = u + i % 2, y = v + (i > 1);
            double near = (1 - fabs(uv[0] * edge - 0.5 - x)) * (1 - fabs(uv[1] * edge - 0.5 - y));
            const struct ErrorCell *texel =
                texels[texel_at(level, (x + 0.5) / edge, (y + 0.5) / edge)];
            double weight = near * (double)texel[3].error;
            weights += weight;
            for (int c = 0; c < 3; c++)
                sums[c] += weight * (double)texel[c].error;
        }
        for (int c = 0; c < 3; c++)
            color[c] = sums[c] / weights;
    }
}

double reference_sky_tolerance(uint32_t step)
{
    return fmax(0.1, pow(0.5, step / 32.0));
}

double reference_sky_weight(const double difference[3], double transmittance, uint32_t step)
{
    double most = fmax(fabs(difference[0]), fmax(fabs(difference[1]), fabs(difference[2])));
    double tolerance = reference_sky_tolerance(step);
    double estimator = 1 / pow(1 + pow(most / tolerance, 2), 2);
    return estimator * 0.1 / tolerance * fmax(pow(transmittance, 2), 0.05);
}
