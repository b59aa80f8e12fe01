/* Reference of the appearance of images, in double precision, written from docs/appearance.md. */
#include "reference/reference.h"

#include <math.h>
#include <string.h>

static double decode(double s)
{
    return s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
}

static double encode(double l)
{
    return l <= 0.0031308 ? 12.92 * l : 1.055 * pow(l, 1 / 2.4) - 0.055;
}

/* Returns the light that reaches the sensor at a position, as a share of that at the centre. */
static double vignetting(const double p[5], const double position[2])
{
    double x = position[0] - p[0] / 4, y = position[1] - p[1] / 4, r2 = x * x + y * y;
    return 1 + p[2] * r2 + p[3] * r2 * r2 + p[4] * r2 * r2 * r2;
}

/* Changes white balance and primaries; the sum of the channels stays. */
static void balance(const double p[9], double light[3])
{
    const double gains[3] = {exp2(p[1]), 1, exp2(p[2])};
    double before = light[0] + light[1] + light[2], after = 0, mixed[3] = {0};
    for (int k = 0; k < 3; k++) {
        double primary[3] = {p[3 + 2 * k] / 32, p[4 + 2 * k] / 32, 0};
        primary[2] = -primary[0] - primary[1];
        primary[k] += 1;
        for (int c = 0; c < 3; c++)
            mixed[c] += primary[c] * gains[k] * light[k];
        after += gains[k] * light[k];
    }
    for (int c = 0; c < 3; c++)
        light[c] = before > 0 ? mixed[c] * before / after : 0;
}

static double curve(const double p[4], double x)
{
    double toe = exp(p[0]), shoulder = exp(p[1]), center = 1 / (1 + exp(-p[3]));
    double height = shoulder * center / (toe * (1 - center) + shoulder * center);
    double y = x < center ? height * pow(x / center, toe)
                          : 1 - (1 - height) * pow((1 - x) / (1 - center), shoulder);
    return pow(y, exp(p[2]));
}

void reference_photograph(const double p[APPEARANCE_PARAMETERS], bool is_full,
                          const double position[2], const double scene[3], double color[3])
{
    for (int c = 0; c < 3; c++) {
        color[c] = exp2(p[0]) * decode(scene[c]);
        if (is_full)
            color[c] *= vignetting(p + APPEARANCE_VIGNETTING + (ptrdiff_t)5 * c, position);
    }
    if (is_full)
        balance(p, color);
    for (int c = 0; c < 3; c++) {
        color[c] = encode(fmin(fmax(color[c], 0), 1));
        if (is_full)
            color[c] = curve(p + APPEARANCE_CURVE + (ptrdiff_t)4 * c, color[c]);
    }
}

void reference_pixel(const double p[APPEARANCE_PARAMETERS], bool is_full, const double position[2],
                     const double color[3], double transmittance, const double background[3],
                     double pixel[3])
{
    double scene[3], share = fmax(1 - transmittance, 1e-6);
    for (int c = 0; c < 3; c++)
        scene[c] = color[c] / share;
    reference_photograph(p, is_full, position, scene, pixel);
    for (int c = 0; c < 3; c++)
        pixel[c] = share * pixel[c] + transmittance * background[c];
}

/* ---- the update ------------------------------------------------------------------------------ */

#define TYPICAL 0.2
#define TERMS   9

/* Returns the terms of the trend that a view's direction has. */
static int list_terms(const struct reference_appearance *view, double terms[TERMS])
{
    const double *d = view->axis;
    const double all[TERMS] = {1,
                               d[0],
                               d[1],
                               d[2],
                               d[0] * d[1],
                               d[1] * d[2],
                               d[0] * d[2],
                               d[0] * d[0] - d[1] * d[1],
                               3 * d[2] * d[2] - 1};
    memcpy(terms, all, sizeof all);
    return TERMS;
}

/* Solves a * x = b by Gauss elimination with pivots. */
static void solve(int count, double a[TERMS][TERMS], double b[TERMS])
{
    for (int i = 0; i < count; i++) {
        int pivot = i;
        for (int r = i + 1; r < count; r++)
            pivot = fabs(a[r][i]) > fabs(a[pivot][i]) ? r : pivot;
        for (int c = 0; c < count; c++) {
            double swapped = a[i][c];
            a[i][c] = a[pivot][c];
            a[pivot][c] = swapped;
        }
        double swapped = b[i];
        b[i] = b[pivot];
        b[pivot] = swapped;
        for (int r = 0; r < count; r++) {
            double factor = r == i ? 0 : a[r][i] / a[i][i];
            for (int c = 0; c < count; c++)
                a[r][c] -= factor * a[i][c];
            b[r] -= factor * b[i];
        }
    }
    for (int i = 0; i < count; i++)
        b[i] /= a[i][i];
}

/* Takes the trend out of values, of which `used` terms are fitted. */
static void take_out_trend(struct reference_appearance *views, uint32_t count, int used,
                           bool is_robust, int parameter, const double *before)
{
    double a[TERMS][TERMS] = {{0}}, b[TERMS] = {0}, terms[TERMS], weights = 0;
    used = count < 16 ? 1 : count < 40 && used > 4 ? 4 : used;
    for (uint32_t v = 0; v < count; v++) {
        double value = views[v].values[parameter] - (parameter == 0 ? views[v].given : 0);
        double weight = is_robust ? pow(1 + pow(value / TYPICAL, 2), -2) : 1;
        list_terms(&views[v], terms);
        weights += weight;
        for (int i = 0; i < used; i++) {
            b[i] += weight * terms[i] * (views[v].values[parameter] - before[v]);
            for (int j = 0; j < used; j++)
                a[i][j] += weight * terms[i] * terms[j];
        }
    }
    for (int i = 0; i < used; i++)
        a[i][i] += 1e-3 * weights;
    solve(used, a, b);
    for (uint32_t v = 0; v < count; v++) {
        list_terms(&views[v], terms);
        for (int i = 0; i < used; i++)
            views[v].values[parameter] -= b[i] * terms[i];
    }
}

#define MOST_VIEWS 256

/* before[view][parameter]: the values before the update. */
static void take_out_trends(struct reference_appearance *views, uint32_t count, uint32_t step,
                            int parameter, double before[MOST_VIEWS][APPEARANCE_IMAGE])
{
    bool is_late = parameter == 0 && step >= 512 + UPDATE_INTERVAL;
    bool is_robust = parameter == 0 && step >= 512 && !is_late;
    double from[MOST_VIEWS];
    for (uint32_t v = 0; v < count; v++)
        from[v] = is_late ? before[v][parameter] : parameter == 0 ? views[v].given : 0;
    for (int i = 0; i < (is_robust ? 16 : 1); i++)
        take_out_trend(views, count,
                       is_late || i >= 8 ? TERMS
                       : is_robust       ? 4
                                         : 1,
                       is_robust || is_late, parameter, from);
}

/* Takes a step with parameters [first, end) of a view. */
static void update(const struct reference_optimizer *adam, int first, int end, uint32_t updates,
                   const double *gradient, struct reference_appearance *view)
{
    for (int k = first; k < end; k++) {
        double most = k == 0 ? 16 : 1.5, one = 1;
        reference_significant_steps(adam, updates, 1, &gradient[k], &one, &view->values[k],
                                    &view->moment1[k], &view->moment2[k]);
        if (k >= 3)
            view->values[k] *= 1 - fmin(0.1 * adam->rate, 1);
        view->values[k] = fmin(fmax(view->values[k], -most), most);
    }
}

/* Updates the camera whose first view is `first`, and copies its parameters to all its views. */
static void update_camera(const struct reference_optimizer *adam, uint32_t count, uint32_t first,
                          struct reference_appearance *views)
{
    double gradient[APPEARANCE_PARAMETERS] = {0};
    bool has_rays = false;
    for (uint32_t v = 0; v < count; v++)
        for (int k = APPEARANCE_IMAGE; k < APPEARANCE_PARAMETERS && views[v].group == first; k++) {
            gradient[k] += views[v].gradient[k];
            has_rays |= views[v].has_rays;
        }
    if (has_rays)
        update(adam, APPEARANCE_IMAGE, APPEARANCE_PARAMETERS, ++views[first].camera_updates,
               gradient, &views[first]);
    for (uint32_t v = 0; v < count; v++)
        if (views[v].group == first)
            memcpy(views[v].values + APPEARANCE_IMAGE, views[first].values + APPEARANCE_IMAGE,
                   sizeof views->values - APPEARANCE_IMAGE * sizeof *views->values);
}

void reference_update_appearance(bool is_full, const struct Config *config, uint32_t step,
                                 double time_progress, struct reference_appearance *views)
{
    double progress = reference_progress(config, step, time_progress);
    double first = config->appearance_rate, last = config->appearance_final_rate;
    const struct reference_optimizer adam = {.rate = first * pow(last / first, fmin(progress, 1)),
                                             .beta1 = 0.9,
                                             .beta2 = 0.9,
                                             .epsilon = 1e-15};
    uint32_t count = config->camera_count;
    double before[MOST_VIEWS][APPEARANCE_IMAGE];
    for (uint32_t v = 0; v < count; v++)
        memcpy(before[v], views[v].values, sizeof before[v]);
    for (uint32_t v = 0; v < count; v++)
        if (views[v].has_rays)
            update(&adam, 0, is_full ? APPEARANCE_IMAGE : 1, ++views[v].updates, views[v].gradient,
                   &views[v]);
    for (uint32_t v = 0; v < count && is_full; v++)
        if (views[v].group == v)
            update_camera(&adam, count, v, views);
    for (int k = 0; k < (is_full ? APPEARANCE_IMAGE : 1); k++)
        take_out_trends(views, count, step, k, before);
}
