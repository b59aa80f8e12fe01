/* Tests PSNR and SSIM against values by hand and a slow implementation of the definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <vknerf/renderer.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static float *make(uint32_t width, uint32_t height)
{
    float *image = calloc((size_t)3 * width * height, sizeof(*image));
    assert_non_null(image);
    return image;
}

static float next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 16777216.0f;
}

/* Makes a picture with smooth and noisy parts, and a similar one. */
static void make_pair(uint32_t width, uint32_t height, float **a, float **b)
{
    uint32_t state = 7 * width + height;
    *a = make(width, height);
    *b = make(width, height);
    for (size_t i = 0; i < (size_t)3 * width * height; i++) {
        float smooth = 0.5f + 0.4f * sinf((float)i * 0.01f);
        (*a)[i] = i % 5 ? smooth : next_random(&state);
        (*b)[i] = 0.9f * (*a)[i] + 0.1f * next_random(&state);
    }
}

/* ---- PSNR ---------------------------------------------------------------------------------- */

static void psnr_by_hand(void **state)
{
    (void)state;
    float a[2 * 2 * 3] = {0}, b[2 * 2 * 3] = {0};
    assert_true(vkn_psnr(a, b, NULL, 2, 2) == 100.0); /* equal: the maximum */
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = 0.1f;
    assert_true(fabs(vkn_psnr(a, b, NULL, 2, 2) - 20.0) < 1e-5); /* 0.01 everywhere */
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = i == 0 ? 1.0f : 0.0f;
    assert_true(fabs(vkn_psnr(a, b, NULL, 2, 2) - 10.0 * log10(12.0)) < 1e-9); /* one of twelve */
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = 1.0f;
    assert_true(fabs(vkn_psnr(a, b, NULL, 2, 2)) < 1e-12);
    b[5] = NAN;
    assert_true(isnan(vkn_psnr(a, b, NULL, 2, 2)));
}

/* Masked pixels may have any value. */
static void psnr_of_some(void **state)
{
    (void)state;
    float a[2 * 2 * 3] = {0}, b[2 * 2 * 3];
    const uint8_t used[4] = {1, 0, 0, 1}, none[4] = {0};
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = i < 3 || i >= 9 ? 0.1f : NAN;
    assert_true(fabs(vkn_psnr(a, b, used, 2, 2) - 20.0) < 1e-5);
    assert_true(isnan(vkn_psnr(a, b, none, 2, 2)));
}

/* ---- SSIM ---------------------------------------------------------------------------------- */

/* The definition for one window: weighted means, variances and covariance. */
static double slow_window(const float *a, const float *b, uint32_t width, uint32_t left,
                          uint32_t top, uint32_t c)
{
    double weights[11][11], total = 0.0, mean_a = 0.0, mean_b = 0.0;
    for (int y = 0; y < 11; y++)
        for (int x = 0; x < 11; x++) {
            int dx = x - 5, dy = y - 5;
            weights[y][x] = exp(-(dx * dx + dy * dy) / (2.0 * 1.5 * 1.5));
            total += weights[y][x];
        }
    for (uint32_t y = 0; y < 11; y++)
        for (uint32_t x = 0; x < 11; x++) {
            size_t at = 3 * ((size_t)(top + y) * width + left + x) + c;
            weights[y][x] /= total;
            mean_a += weights[y][x] * a[at];
            mean_b += weights[y][x] * b[at];
        }
    double variance_a = 0.0, variance_b = 0.0, covariance = 0.0;
    for (uint32_t y = 0; y < 11; y++)
        for (uint32_t x = 0; x < 11; x++) {
            size_t at = 3 * ((size_t)(top + y) * width + left + x) + c;
            double da = a[at] - mean_a, db = b[at] - mean_b;
            variance_a += weights[y][x] * da * da;
            variance_b += weights[y][x] * db * db;
            covariance += weights[y][x] * da * db;
        }
    double c1 = 0.0001, c2 = 0.0009;
    return (2 * mean_a * mean_b + c1) * (2 * covariance + c2) /
           ((mean_a * mean_a + mean_b * mean_b + c1) * (variance_a + variance_b + c2));
}

static double slow_ssim(const float *a, const float *b, uint32_t width, uint32_t height)
{
    double sum = 0.0;
    uint64_t count = 0;
    for (uint32_t top = 0; top + 11 <= height; top++)
        for (uint32_t left = 0; left + 11 <= width; left++)
            for (uint32_t c = 0; c < 3; c++, count++)
                sum += slow_window(a, b, width, left, top, c);
    return sum / (double)count;
}

static double ssim_of(const float *a, const float *b, const uint8_t *used, uint32_t width,
                      uint32_t height)
{
    double ssim = 0.0;
    assert_int_equal(vkn_ssim(a, b, used, width, height, &ssim), VKN_OK);
    return ssim;
}

static void ssim_like_the_definition(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{11, 11}, {12, 11}, {11, 17}, {40, 23}, {33, 64}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        float *a, *b;
        make_pair(sizes[i][0], sizes[i][1], &a, &b);
        double expected = slow_ssim(a, b, sizes[i][0], sizes[i][1]);
        double actual = ssim_of(a, b, NULL, sizes[i][0], sizes[i][1]);
        assert_true(expected > 0.1 && expected < 0.999);
        assert_true(fabs(actual - expected) < 1e-9);
        assert_true(fabs(ssim_of(b, a, NULL, sizes[i][0], sizes[i][1]) - actual) < 1e-12);
        free(a);
        free(b);
    }
}

/* With a mask only windows without masked pixels count. */
static void ssim_of_some(void **state)
{
    (void)state;
    enum { WIDTH = 31, HEIGHT = 29 };
    float *a = NULL, *b = NULL;
    uint8_t used[WIDTH * HEIGHT];
    make_pair(WIDTH, HEIGHT, &a, &b);
    memset(used, 1, sizeof(used));
    used[3 * WIDTH + 20] = used[15 * WIDTH] = used[15 * WIDTH + 30] = used[28 * WIDTH + 9] = 0;
    double expected = 0;
    size_t windows = 0;
    for (uint32_t y = 0; y + 11 <= HEIGHT; y++) {
        for (uint32_t x = 0; x + 11 <= WIDTH; x++) {
            bool counts = true;
            for (uint32_t i = 0; i < 121; i++)
                counts = counts && used[(y + i / 11) * WIDTH + x + i % 11];
            for (uint32_t c = 0; c < 3 && counts; c++, windows++)
                expected += slow_window(a, b, WIDTH, x, y, c);
        }
    }
    assert_true(windows > 500 && windows < 1000); /* of 1197 */
    for (size_t i = 0; i < COUNT(used); i++)
        if (!used[i])
            b[3 * i] = 17;
    double difference = ssim_of(a, b, used, WIDTH, HEIGHT) - expected / (double)windows;
    assert_true(fabs(difference) < 1e-9);
    memset(used, 0, sizeof(used));
    assert_true(isnan(ssim_of(a, b, used, WIDTH, HEIGHT)));
    free(a);
    free(b);
}

static void ssim_by_hand(void **state)
{
    (void)state;
    const uint32_t width = 20, height = 16;
    float *a = make(width, height), *b = make(width, height);
    for (size_t i = 0; i < (size_t)3 * width * height; i++) {
        a[i] = 0.25f;
        b[i] = 0.75f;
    }
    assert_true(fabs(ssim_of(a, a, NULL, width, height) - 1.0) < 1e-12);
    /* Without structure only the means count: (2 ab + C1) / (a a + b b + C1). */
    double expected = (2 * 0.25 * 0.75 + 0.0001) / (0.0625 + 0.5625 + 0.0001);
    assert_true(fabs(ssim_of(a, b, NULL, width, height) - expected) < 1e-9);
    free(a);
    free(b);
}

static void ssim_needs_a_window(void **state)
{
    (void)state;
    float *a = make(11, 11);
    assert_true(isnan(ssim_of(a, a, NULL, 10, 11)));
    assert_true(isnan(ssim_of(a, a, NULL, 11, 10)));
    assert_false(isnan(ssim_of(a, a, NULL, 11, 11)));
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psnr_by_hand),
        cmocka_unit_test(psnr_of_some),
        cmocka_unit_test(ssim_like_the_definition),
        cmocka_unit_test(ssim_of_some),
        cmocka_unit_test(ssim_by_hand),
        cmocka_unit_test(ssim_needs_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
