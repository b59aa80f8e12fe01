/* Corrects the colours of a picture towards its target by least squares, so that PSNR can be
 * measured apart from exposure and white balance (color_correct of multinerf, Barron et al., 2022).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/internal.h"

#define TERMS      10 /* products of two channels 6, channels 3, constant 1 */
#define AFFINE     4  /* the last terms */
#define ITERATIONS 5
#define UNCLIPPED  (0.5 / 255) /* distance from black and white of values that count */
#define RIDGE      1e-6        /* of a pixel; keeps terms that pictures lack at zero */

static bool is_unclipped(double value)
{
    return value >= UNCLIPPED && value <= 1 - UNCLIPPED;
}

/* Computes the terms of a colour; without `quadratic` the first are 0. */
static void list_terms(const float color[3], bool quadratic, double terms[TERMS])
{
    int count = 0;
    memset(terms, 0, TERMS * sizeof *terms);
    for (int i = 0; i < 3; i++)
        for (int j = i; j < 3; j++, count++)
            terms[count] = quadratic ? (double)color[i] * (double)color[j] : 0;
    for (int i = 0; i < 3; i++)
        terms[TERMS - AFFINE + i] = (double)color[i];
    terms[TERMS - 1] = 1;
}

/* Solves the normal equations by Cholesky's method; `matrix` is symmetric and positive. */
static void solve(double matrix[TERMS][TERMS], double values[TERMS])
{
    for (int i = 0; i < TERMS; i++) {
        matrix[i][i] += RIDGE;
        for (int j = 0; j <= i; j++) {
            double rest = matrix[i][j];
            for (int k = 0; k < j; k++)
                rest -= matrix[i][k] * matrix[j][k];
            matrix[i][j] = i == j ? sqrt(fmax(rest, 1e-12)) : rest / matrix[j][j];
        }
    }
    for (int i = 0; i < TERMS; i++) {
        for (int k = 0; k < i; k++)
            values[i] -= matrix[i][k] * values[k];
        values[i] /= matrix[i][i];
    }
    for (int i = TERMS - 1; i >= 0; i--) {
        for (int k = i + 1; k < TERMS; k++)
            values[i] -= matrix[k][i] * values[k];
        values[i] /= matrix[i][i];
    }
}

/* Fits the coefficients of a channel of the target over the used pixels whose values are not
 * clipped in the target, in the picture as rendered, and in the picture corrected so far. */
static void fit_channel(const struct vkn_picture *picture, const struct vkn_picture *target,
                        const float *corrected, int channel, bool quadratic, double fit[TERMS])
{
    double matrix[TERMS][TERMS] = {{0}}, terms[TERMS];
    size_t pixels = (size_t)picture->width * picture->height;
    memset(fit, 0, TERMS * sizeof *fit);
    for (size_t i = 0; i < pixels; i++) {
        size_t at = 3 * i + (size_t)channel;
        double wanted = (double)target->color[at];
        if (!target->used[i] || !is_unclipped(wanted) ||
            !is_unclipped((double)picture->color[at]) || !is_unclipped((double)corrected[at]))
            continue;
        list_terms(corrected + 3 * i, quadratic, terms);
        for (int j = 0; j < TERMS; j++) {
            fit[j] += terms[j] * wanted;
            for (int k = 0; k <= j; k++)
                matrix[j][k] += terms[j] * terms[k];
        }
    }
    if (matrix[TERMS - 1][TERMS - 1] > 0)
        solve(matrix, fit);
    else
        fit[TERMS - AFFINE + channel] = 1;
}

/* Replaces the colours by the fitted ones, except values that are clipped in the picture as
 * rendered, such as a white background: the fit does not know them. */
static void correct(double fit[3][TERMS], bool quadratic, const struct vkn_picture *picture,
                    float *colors)
{
    size_t pixels = (size_t)picture->width * picture->height;
    for (size_t i = 0; i < pixels; i++) {
        double terms[TERMS];
        list_terms(colors + 3 * i, quadratic, terms);
        for (size_t c = 0; c < 3; c++) {
            double value = 0;
            for (int k = 0; k < TERMS; k++)
                value += fit[c][k] * terms[k];
            if (is_unclipped((double)picture->color[3 * i + c]))
                colors[3 * i + c] = (float)fmin(fmax(value, 0), 1);
        }
    }
}

vkn_status render_corrected_psnr(const struct vkn_picture *picture,
                                 const struct vkn_picture *target, bool quadratic, double *psnr)
{
    size_t pixels = (size_t)picture->width * picture->height;
    float *colors = base_alloc(3 * pixels, sizeof *colors);
    if (!colors)
        return VKN_ERROR;
    memcpy(colors, picture->color, 3 * pixels * sizeof *colors);
    for (int i = 0; i < ITERATIONS; i++) {
        double fit[3][TERMS];
        for (int c = 0; c < 3; c++)
            fit_channel(picture, target, colors, c, quadratic, fit[c]);
        correct(fit, quadratic, picture, colors);
    }
    *psnr = vkn_psnr(colors, target->color, target->used, picture->width, picture->height);
    free(colors);
    return VKN_OK;
}
