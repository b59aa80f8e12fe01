/* Computes PSNR and SSIM of a picture against its target. */
#include <vknerf/renderer.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "report/report.h"

double vkn_psnr(const float *a, const float *b, const uint8_t *used, uint32_t width,
                uint32_t height)
{
    if (!a || !b)
        return (double)NAN;
    double sum = 0.0;
    size_t pixels = (size_t)width * height, counted = 0;
    for (size_t pixel = 0; pixel < pixels; pixel++) {
        if (used && !used[pixel])
            continue;
        for (size_t i = 3 * pixel; i < 3 * pixel + 3; i++) {
            double difference = (double)a[i] - (double)b[i];
            sum += difference * difference;
        }
        counted++;
    }
    return counted ? report_psnr(sum / (3.0 * (double)counted)) : (double)NAN;
}

/* ---- SSIM ---------------------------------------------------------------------------------- */

/* Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural
 * similarity", 2004, equations 14 to 16, for colours in 0..1. */
#define WINDOW 11
#define SIGMA  1.5
#define C1     (0.01 * 0.01)
#define C2     (0.03 * 0.03)

/* Quantities that are averaged over a window: a, b, a^2, b^2, a b. */
enum { MEAN_A, MEAN_B, MEAN_AA, MEAN_BB, MEAN_AB, MOMENTS };

struct ssim {
    double weights[WINDOW];
    size_t width;       /* values in a row: 3 per pixel */
    size_t valid_width; /* windows in a row, times 3 */
    double *line;       /* [MOMENTS][width]: moments of one image row */
    double *rows;       /* [WINDOW][MOMENTS][valid_width]: ring of rows blurred along x */
    uint32_t *unused;   /* [column]: unused pixels of the last WINDOW rows */
    size_t windows;     /* windows summed so far, counted once per colour channel */
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

/* Adds one image row to the ring, blurred along x. */
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

/* Updates ssim->unused for the WINDOW rows that end with row `last`. */
static void count_unused(struct ssim *ssim, const uint8_t *used, size_t last)
{
    size_t width = ssim->width / 3;
    for (size_t x = 0; x < width && used; x++) {
        ssim->unused[x] += !used[last * width + x];
        if (last >= WINDOW)
            ssim->unused[x] -= !used[(last - WINDOW) * width + x];
    }
}

/* Returns the sum of the SSIM of the windows whose last row is `last`. */
static double sum_windows(struct ssim *ssim, size_t last)
{
    const double *rows[WINDOW];
    for (size_t tap = 0; tap < WINDOW; tap++)
        rows[tap] = ring_row(ssim, last + 1 - WINDOW + tap, 0);
    double sum = 0.0;
    size_t unused = 0; /* unused pixels in the window */
    for (size_t column = 0; column + 1 < WINDOW; column++)
        unused += ssim->unused[column];
    for (size_t i = 0; i < ssim->valid_width; i++) {
        double m[MOMENTS] = {0};
        if (i % 3 == 0)
            unused += ssim->unused[i / 3 + WINDOW - 1];
        if (i % 3 == 0 && i > 0)
            unused -= ssim->unused[i / 3 - 1];
        if (unused > 0)
            continue;
        ssim->windows++;
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

vkn_status vkn_ssim(const float *a, const float *b, const uint8_t *used, uint32_t width,
                    uint32_t height, double *result)
{
    BASE_NEED(a);
    BASE_NEED(b);
    BASE_NEED(result);
    *result = (double)NAN;
    if (width < WINDOW || height < WINDOW)
        return VKN_OK;
    struct ssim ssim = {.width = (size_t)3 * width,
                        .valid_width = 3 * ((size_t)width - WINDOW + 1)};
    set_weights(ssim.weights);
    ssim.line = base_alloc(MOMENTS * ssim.width, sizeof(double));
    ssim.rows = base_alloc((size_t)WINDOW * MOMENTS * ssim.valid_width, sizeof(double));
    ssim.unused = base_alloc(width, sizeof(*ssim.unused));
    bool ready = ssim.line && ssim.rows && ssim.unused;
    double sum = 0.0;
    for (size_t y = 0; y < height && ready; y++) {
        add_row(&ssim, y, a + y * ssim.width, b + y * ssim.width);
        count_unused(&ssim, used, y);
        if (y + 1 >= WINDOW)
            sum += sum_windows(&ssim, y);
    }
    free(ssim.line);
    free(ssim.rows);
    free(ssim.unused);
    if (ssim.windows > 0)
        *result = sum / (double)ssim.windows;
    return ready ? VKN_OK : VKN_ERROR;
}
