/* Reference compositing (Max, Optical Models for Direct Volume Rendering, 1995) and losses. A
 * sample's opacity is 1 - exp(-density * width). */
#include "reference/reference.h"

#include <math.h>
#include <string.h>

const struct reference_ray reference_ray_start = {.transmittance = 1, .closest = INFINITY};

static double opacity(const struct reference_sample *sample)
{
    return -expm1(-sample->density * sample->width);
}

static double rounded(const struct reference_ray *ray, double x)
{
    return ray->round ? ray->round(x) : x;
}

static double opacity_of(const struct reference_ray *ray, const struct reference_sample *sample)
{
    return ray->round ? rounded(ray, 1 - rounded(ray, exp(-sample->density * sample->width)))
                      : opacity(sample);
}

bool reference_alpha_test(const struct reference_ray *ray, const struct reference_sample *sample)
{
    return opacity_of(ray, sample) >= ray->current_alpha_threshold;
}

static double alpha_of(const struct reference_ray *ray, const struct reference_sample *sample)
{
    return reference_alpha_test(ray, sample) ? opacity_of(ray, sample) : 0;
}

void reference_composite(struct reference_ray *ray, const struct reference_sample *samples,
                         size_t count, double early_stop)
{
    ray->reached = ray->live = 0;
    for (size_t i = 0; i < count && ray->transmittance >= early_stop; i++) {
        double alpha = alpha_of(ray, &samples[i]);
        double weight = rounded(ray, ray->transmittance * alpha);
        for (int c = 0; c < 3; c++)
            ray->color[c] =
                rounded(ray, ray->color[c] + rounded(ray, weight * samples[i].color[c]));
        ray->depth = rounded(ray, ray->depth + rounded(ray, weight * samples[i].t));
        ray->transmittance = rounded(ray, ray->transmittance * (1 - alpha));
        ray->reached++;
        ray->live += reference_alpha_test(ray, &samples[i]);
        ray->closest = fmin(ray->closest, fabs(ray->transmittance / early_stop - 1));
    }
}

double reference_loss(enum vkn_loss kind, double delta, double difference, double *slope)
{
    double size = fabs(difference), sign = (difference > 0) - (difference < 0);
    switch (kind) { /* no default: the compiler reports a missing loss */
    case VKN_LOSS_L2:
        *slope = 2 * difference;
        return difference * difference;
    case VKN_LOSS_L1:
        *slope = sign;
        return size;
    case VKN_LOSS_HUBER: /* Robust Estimation of a Location Parameter, 1964 */
        *slope = size <= delta ? difference : delta * sign;
        return size <= delta ? size * size / 2 : delta * (size - delta / 2);
    case VKN_LOSS_CHARBONNIER: /* 1994 */
        *slope = difference / sqrt(size * size + delta * delta);
        return sqrt(size * size + delta * delta) - delta;
    case VKN_LOSS_DEFAULT: /* not in an effective configuration */
        break;
    }
    *slope = NAN;
    return NAN;
}

/* Back to front: the colour of a sample and all behind it is C_i = alpha_i c_i + (1 - alpha_i)
 * C_i+1, and the last C is the background. The gradient flows from C_0 through all C_i. */
void reference_composite_backward(const struct reference_ray *ray,
                                  const struct reference_sample *samples,
                                  const double background[3], const double color_gradient[3],
                                  double (*gradients)[4])
{
    double behind[3] = {background[0], background[1], background[2]};
    /* gradients[i][3] first holds the transmittance in front of sample i. */
    for (size_t i = 0; i < ray->reached; i++)
        gradients[i][3] = i ? gradients[i - 1][3] * (1 - alpha_of(ray, &samples[i - 1])) : 1;
    for (size_t i = ray->reached; i > 0; i--) {
        const struct reference_sample *sample = &samples[i - 1];
        double alpha = alpha_of(ray, sample), by_alpha = 0;
        double through = gradients[i - 1][3];
        for (int c = 0; c < 3; c++) {
            double color = sample->color[c], reaching = through * color_gradient[c];
            by_alpha += reaching * (color - behind[c]);
            gradients[i - 1][c] = reaching * alpha;
            behind[c] = alpha * color + (1 - alpha) * behind[c];
        }
        gradients[i - 1][3] = by_alpha * sample->width * exp(-sample->density * sample->width);
        if (!reference_alpha_test(ray, sample))
            memset(gradients[i - 1], 0, sizeof gradients[i - 1]);
    }
}

double reference_keep_probability(const struct Config *config, const struct State *state,
                                  double loss)
{
    if (state->mean_loss == 0)
        return 1;
    double probability = state->keep_gain * (loss / state->mean_loss);
    return fmin(1, fmax(config->keep_least, probability));
}

double reference_keep_weight(const struct Config *config, const struct State *state, uint32_t ray,
                             double probability)
{
    double unit[3];
    reference_random_unit(config->seed, state->step, config->first_ray + ray, 8, unit);
    return unit[0] < probability ? 1 / probability : 0;
}

void reference_normalize(const struct reference_space *space, double width,
                         struct reference_sample *sample)
{
    double near = fmax(sample->t - width / 2, 0), far = sample->t + width / 2;
    sample->middle = reference_normalized(space, sample->t);
    sample->extent = reference_normalized(space, far) - reference_normalized(space, near);
}

/* Mip-NeRF 360 (Barron et al. 2022), equation 15, and its derivatives by the weights. */
double reference_distortion(const struct reference_ray *ray, const struct reference_sample *samples,
                            double weight, double (*gradients)[4])
{
    static double weights[MAX_RAY_SAMPLES], by_weight[MAX_RAY_SAMPLES];
    double loss = 0, transmittance = 1;
    for (size_t i = 0; i < ray->reached; i++) {
        double alpha = alpha_of(ray, &samples[i]);
        weights[i] = rounded(ray, transmittance * alpha);
        transmittance = rounded(ray, transmittance * (1 - alpha));
    }
    for (size_t i = 0; i < ray->reached; i++) {
        double within = weights[i] * samples[i].extent / 3, others = 0;
        for (size_t k = 0; k < ray->reached; k++)
            others += weights[k] * fabs(samples[i].middle - samples[k].middle);
        loss += weights[i] * (others + within);
        by_weight[i] = 2 * (others + within);
    }
    transmittance = 1;
    for (size_t i = 0; gradients && i < ray->reached; i++) {
        transmittance *= 1 - alpha_of(ray, &samples[i]);
        double by_thickness = transmittance * by_weight[i];
        for (size_t k = i + 1; k < ray->reached; k++)
            by_thickness -= weights[k] * by_weight[k];
        if (reference_alpha_test(ray, &samples[i]))
            gradients[i][3] += weight * samples[i].width * by_thickness;
    }
    return loss;
}

double reference_near_density(const struct reference_ray *ray,
                              const struct reference_sample *samples, double range, double weight,
                              double (*gradients)[4])
{
    double loss = 0;
    for (size_t i = 0; i < ray->reached; i++) {
        double by_density = fmax(1 - samples[i].t / range, 0) * samples[i].width;
        if (!reference_alpha_test(ray, &samples[i]))
            continue;
        loss += by_density * samples[i].density;
        if (gradients)
            gradients[i][3] += weight * by_density;
    }
    return loss;
}

/* The agreement is composited as a grey channel on black. */
double reference_known_depth(const struct reference_ray *ray,
                             const struct reference_sample *samples, double t, double sigma,
                             double weight, double (*gradients)[4])
{
    static struct reference_sample grey[MAX_RAY_SAMPLES];
    static double by_grey[MAX_RAY_SAMPLES][4];
    const double black[3] = {0};
    struct reference_ray composited = reference_ray_start;
    composited.current_alpha_threshold = ray->current_alpha_threshold;
    for (size_t i = 0; i < ray->reached; i++) {
        double unit = hypot(sigma, samples[i].length / 2);
        grey[i] = samples[i];
        grey[i].color[0] = 1 / (1 + pow((samples[i].t - t) / unit, 2));
        grey[i].color[1] = grey[i].color[2] = 0;
    }
    reference_composite(&composited, grey, ray->reached, 0);
    const double likelihood = composited.color[0] + 0.05;
    const double slope[3] = {-weight / likelihood, 0, 0};
    reference_composite_backward(&composited, grey, black, slope, by_grey);
    for (size_t i = 0; i < ray->reached && gradients; i++)
        gradients[i][3] += by_grey[i][3];
    return -log(likelihood / 1.05);
}
