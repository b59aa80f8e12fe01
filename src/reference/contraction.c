/* Reference contraction of space (Barron et al. 2022, equation 10), in the maximum norm. */
#include "reference/reference.h"

#include <math.h>

struct reference_space reference_space(const struct vkn_config *config)
{
    bool contracted = config->scene.contraction == VKN_CONTRACTION_CUBE;
    double end = contracted ? 1024 * config->scene.aabb_scale / 2.0 : INFINITY;
    return (struct reference_space){
        .side = config->scene.aabb_scale,
        .contracted = contracted,
        .ladder = config->loss.distortion_curve == VKN_DISTORTION_LADDER,
        .nearest = config->march.near_distance,
        .farthest = config->march.far_distance > 0 ? fmin(config->march.far_distance, end) : end,
    };
}

/* Zip-NeRF (Barron et al. 2023), equation for P(x, lambda), of infinity too. */
static double power_ladder(double x, double lambda)
{
    double size = fabs(lambda - 1);
    return size / lambda * (pow(x / size + 1, lambda) - 1);
}

static double norm(const double v[3])
{
    return fmax(fmax(fabs(v[0]), fabs(v[1])), fabs(v[2]));
}

void reference_to_unit(const struct reference_space *space, const double position[3],
                       double unit[3])
{
    double x[3], reach = space->contracted ? 2 : 1;
    for (int i = 0; i < 3; i++)
        x[i] = (position[i] - 0.5) / (space->side / 2);
    double r = norm(x);
    for (int i = 0; i < 3; i++) {
        double y = space->contracted && r > 1 ? (2 - 1 / r) * (x[i] / r) : x[i];
        unit[i] = 0.5 + 0.5 * y / reach;
    }
}

/* d (2 - 1 / r) / d r */
double reference_shrinking(const struct reference_space *space, const double position[3])
{
    const double x[3] = {position[0] - 0.5, position[1] - 0.5, position[2] - 0.5};
    double r = norm(x) / (space->side / 2);
    return space->contracted && r > 1 ? 1 / (r * r) : 1;
}

double reference_normalized(const struct reference_space *space, double t)
{
    double r = t / (space->side / 2);
    if (space->ladder) {
        double unit = 2 * space->nearest, begin = power_ladder(0.5, -0.25);
        return (power_ladder(t / unit, -0.25) - begin) /
               (power_ladder(space->farthest / unit, -0.25) - begin);
    }
    return (space->contracted && r > 1 ? 2 - 1 / r : r) / 2;
}

void reference_from_unit(const struct reference_space *space, const double unit[3],
                         double position[3])
{
    double y[3], reach = space->contracted ? 2 : 1;
    for (int i = 0; i < 3; i++)
        y[i] = (unit[i] - 0.5) / 0.5 * reach;
    double s = norm(y);
    for (int i = 0; i < 3; i++) {
        /* The device's floats distinguish points up to a norm of 10^4. */
        double x = space->contracted && s > 1 ? y[i] / s / fmax(2 - s, 1e-4) : y[i];
        position[i] = 0.5 + x * space->side / 2;
    }
}
