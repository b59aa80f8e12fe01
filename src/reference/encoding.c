/* Reference encodings: multiresolution hash grid (Mueller et al. 2022, section 3) and real
 * spherical harmonics. */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One corner of the cell that contains a position. */
struct corner {
    size_t entry; /* index of its first parameter */
    double weight;
};

static size_t entry_of(const struct field_model *model, const struct Level *level,
                       const uint32_t at[3])
{
    uint32_t n = level->resolution, index;
    if (level->dense) {
        index = at[0] + n * (at[1] + n * at[2]);
    } else { /* equation 4; tables have 2^k entries */
        const uint32_t primes[3] = {1u, 2654435761u, 805459861u};
        index = 0;
        for (int i = 0; i < 3; i++)
            index ^= at[i] * primes[i];
        index %= level->entries;
    }
    return level->first + (size_t)index * model->features;
}

/* `unit`: a position in the unit cube. */
static void find_corners(const struct reference_field *field, const struct Level *level,
                         const double unit[3], struct corner corners[8])
{
    double fraction[3];
    uint32_t cell[3];
    for (int i = 0; i < 3; i++) {
        double scaled = fmin(fmax(unit[i], 0), 1) * level->scale + 0.5;
        cell[i] = (uint32_t)scaled;
        fraction[i] = scaled - cell[i];
    }
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t at[3];
        corners[k].weight = 1;
        for (uint32_t i = 0; i < 3; i++) {
            at[i] = cell[i] + (k >> i & 1u);
            corners[k].weight *= (k >> i & 1u) ? fraction[i] : 1 - fraction[i];
            /* Points are numbered from 0 to resolution - 1. A corner beyond has weight 0, or a
             * rounding error. */
            if (level->dense && at[i] >= level->resolution)
                at[i] = level->resolution - 1;
        }
        corners[k].entry = entry_of(field->model, level, at);
    }
}

void reference_encode(const struct reference_field *field, const double position[3],
                      double *features)
{
    uint32_t count = field->model->features;
    double unit[3], held[3];
    reference_to_unit(&field->space, position, unit);
    reference_to_unit(&field->space, field->held, held);
    for (uint32_t level = 0; level < field->model->levels; level++) {
        struct corner corners[8];
        bool moves = field->finest == 0 || field->model->level[level].scale <= field->finest;
        find_corners(field, &field->model->level[level], moves ? unit : held, corners);
        for (uint32_t f = 0; f < count; f++) {
            features[level * count + f] = 0;
            for (int k = 0; k < 8; k++)
                features[level * count + f] +=
                    corners[k].weight * field->params[corners[k].entry + f];
        }
    }
}

void reference_encode_backward(const struct reference_field *field, const double position[3],
                               const double *feature_gradient, double *gradients)
{
    uint32_t count = field->model->features;
    double unit[3];
    reference_to_unit(&field->space, position, unit);
    for (uint32_t level = 0; level < field->model->levels; level++) {
        struct corner corners[8];
        find_corners(field, &field->model->level[level], unit, corners);
        for (int k = 0; k < 8; k++)
            for (uint32_t f = 0; f < count; f++)
                gradients[corners[k].entry + f] +=
                    corners[k].weight * feature_gradient[level * count + f];
    }
}

bool reference_reads(const struct reference_field *field, const double position[3],
                     size_t parameter)
{
    const struct Level *level = field->model->level, *end = level + field->model->levels;
    struct corner corners[8];
    double unit[3];
    if (field->model->levels == 0)
        return false;
    while (level + 1 < end && parameter >= level[1].first)
        level++;
    reference_to_unit(&field->space, position, unit);
    find_corners(field, level, unit, corners);
    for (int k = 0; k < 8; k++)
        if (parameter - corners[k].entry < field->model->features)
            return true;
    return false;
}

double reference_nearest_face(const struct reference_field *field, const double position[3])
{
    double unit[3], nearest = 0.5;
    reference_to_unit(&field->space, position, unit);
    for (uint32_t level = 0; level < field->model->levels; level++)
        for (int i = 0; i < 3; i++) {
            double scaled = fmin(fmax(unit[i], 0), 1) * field->model->level[level].scale + 0.5;
            nearest = fmin(nearest, fabs(scaled - round(scaled)));
        }
    return nearest;
}

/* Associated Legendre function P_l^m(z) for 0 <= m, with the Condon-Shortley sign. */
static double legendre(int l, int m, double z)
{
    double below = 0, value = 1;
    for (int i = 1; i <= m; i++)
        value *= -(2 * i - 1) * sqrt(fmax(1 - z * z, 0));
    for (int i = m + 1; i <= l; i++) {
        double next = (z * (2 * i - 1) * value - (i + m - 1) * below) / (i - m);
        below = value;
        value = next;
    }
    return value;
}

static double factorial(int n)
{
    return n < 2 ? 1 : n * factorial(n - 1);
}

/* Caches the last result: samples of a ray have the same direction. */
static struct {
    uint32_t degree;
    double direction[3], values[REFERENCE_HARMONICS];
} harmonics;

/* Value l (l + 1) + m is Y_l^m, orthonormal on the sphere: sqrt(2) K P_l^|m| times cos(m phi) for
 * m > 0, sin(|m| phi) for m < 0. */
static void compute_harmonics(uint32_t degree, const double direction[3],
                              double values[REFERENCE_HARMONICS])
{
    double phi = atan2(direction[1], direction[0]);
    for (int i = 0; i < REFERENCE_HARMONICS; i++)
        values[i] = 0;
    for (int l = 0; l < (int)degree; l++)
        for (int m = -l; m <= l; m++) {
            int order = abs(m);
            double scale =
                sqrt((2 * l + 1) / (4 * M_PI) * factorial(l - order) / factorial(l + order));
            double turn = m == 0 ? 1 : sqrt(2) * (m > 0 ? cos(order * phi) : sin(order * phi));
            values[l * (l + 1) + m] = scale * turn * legendre(l, order, direction[2]);
        }
}

void reference_harmonics(uint32_t degree, const double direction[3],
                         double values[REFERENCE_HARMONICS])
{
    const double *last = harmonics.direction;
    if (degree != harmonics.degree || direction[0] != last[0] || direction[1] != last[1] ||
        direction[2] != last[2]) {
        harmonics.degree = degree;
        memcpy(harmonics.direction, direction, sizeof harmonics.direction);
        compute_harmonics(degree, direction, harmonics.values);
    }
    memcpy(values, harmonics.values, sizeof harmonics.values);
}
