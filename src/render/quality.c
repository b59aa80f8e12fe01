/* How close a picture comes to its target: PSNR and SSIM. */
#include <vknerf/renderer.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "report/report.h"

double vkn_psnr(const float *a, const float *b, uint32_t width, uint32_t height)
{
    double sum = 0.0;
    for (uint32_t y = 0; y < height; y++) {
        size_t first = (size_t)y * width * 3;
        for (size_t i = first; i < first + (size_t)width * 3; i++) {
            double difference = (double)a[i] - (double)b[i];
            sum += difference * difference;
        }
    }
    return report_psnr(sum / (3.0 * width * height));
}

/* ---- SSIM ---------------------------------------------------------------------------------- */

/* Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural
 * similarity", 2004, equations 14 to 16, for colours in 0..1. */
#define WINDOW 11
#define SIGMA  1.5
#define C1     (0.01 * 0.01)
#define C2     (0.03 * 0.03)

/* What is averaged in a window: a, b, a a, b b, a b. */
enum { MEAN_A, MEAN_B, MEAN_AA, MEAN_BB, MEAN_AB, MOMENTS };

struct ssim {
    double weights[WINDOW];
    size_t width;       /* values in a row: 3 per pixel */
    size_t valid_width; /* the same of windows */
    double *line;       /* MOMENTS rows of `width`: products of one image row */
    double *rows;       /* a ring of WINDOW x MOMENTS rows of `valid_width`: blurred along x */
};

static void set_weights(double weights[WINDOW])
{
    double sum = 0.0;
    for (int i = 0; i < WINDOW; i++) {
        double x = (i - 0.5 * (WINDOW - 1)) / SIGMA;
        weights[i] = exp(-0.5 * x * x);
        sum += weights[i];
    }
    for (int i = 0; i < WINDOW; i++)
        weights[i] /= sum;
}

static void multiply_row(const struct ssim *ssim, const float *a, const float *b)
{
    for (size_t i = 0; i < ssim->width; i++) {
        double va = a[i], vb = b[i];
        ssim->line[MEAN_A * ssim->width + i] = va;
        ssim->line[MEAN_B * ssim->width + i] = vb;
        ssim->line[MEAN_AA * ssim->width + i] = va * va;
        ssim->line[MEAN_BB * ssim->width + i] = vb * vb;
        ssim->line[MEAN_AB * ssim->width + i] = va * vb;
    }
}

static double *ring_row(const struct ssim *ssim, size_t y, int moment)
{
    return ssim->rows + (y % WINDOW * MOMENTS + (size_t)moment) * ssim->valid_width;
}

/* One image row into the ring, blurred along x. */
static void add_row(const struct ssim *ssim, size_t y, const float *a, const float *b)
{
    multiply_row(ssim, a, b);
    for (int moment = 0; moment < MOMENTS; moment++) {
        const double *in = ssim->line + (size_t)moment * ssim->width;
        double *out = ring_row(ssim, y, moment);
        memset(out, 0, ssim->valid_width * sizeof(*out));
        for (int tap = 0; tap < WINDOW; tap++) {
            double weight = ssim->weights[tap];
            const double *from = in + (size_t)3 * tap; /* three colours apart */
            for (size_t i = 0; i < ssim->valid_width; i++)
                out[i] += weight * from[i];
        }
    }
}

/* Sum of the SSIM of the windows whose lowest row is `last`. */
static double sum_windows(const struct ssim *ssim, size_t last)
{
    const double *rows[WINDOW];
    for (size_t tap = 0; tap < WINDOW; tap++)
        rows[tap] = ring_row(ssim, last + 1 - WINDOW + tap, 0);
    double sum = 0.0;
    for (size_t i = 0; i < ssim->valid_width; i++) {
        double m[MOMENTS] = {0};
        for (int tap = 0; tap < WINDOW; tap++)
            for (size_t moment = 0; moment < MOMENTS; moment++)
                m[moment] += ssim->weights[tap] * rows[tap][moment * ssim->valid_width + i];
        double both = m[MEAN_A] * m[MEAN_B];
        double squares = m[MEAN_A] * m[MEAN_A] + m[MEAN_B] * m[MEAN_B];
        double covariance = m[MEAN_AB] - both, variances = m[MEAN_AA] + m[MEAN_BB] - squares;
        sum += (2.0 * both + C1) * (2.0 * covariance + C2) / ((squares + C1) * (variances + C2));
    }
    return sum;
}

double vkn_ssim(const float *a, const float *b, uint32_t width, uint32_t height)
{
    if (width < WINDOW || height < WINDOW)
        return (double)NAN;
    struct ssim ssim = {.width = (size_t)3 * width,
                        .valid_width = 3 * ((size_t)width - WINDOW + 1)};
    set_weights(ssim.weights);
    ssim.line = base_alloc(MOMENTS * ssim.width, sizeof(double));
    ssim.rows = base_alloc((size_t)WINDOW * MOMENTS * ssim.valid_width, sizeof(double));
    double sum = (double)NAN;
    if (ssim.line && ssim.rows) {
        sum = 0.0;
        for (size_t y = 0; y < height; y++) {
            add_row(&ssim, y, a + y * ssim.width, b + y * ssim.width);
            if (y + 1 >= WINDOW)
                sum += sum_windows(&ssim, y);
        }
    }
    free(ssim.line);
    free(ssim.rows);
    return sum / ((double)ssim.valid_width * (height - WINDOW + 1));
}
