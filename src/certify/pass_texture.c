/* Tests texture_rasterize, texture_list, texture_samples and texture_colors: which triangle a texel
 * shows, where on it, and its colour; and splat_samples and splat_colors. */
#include "certify/fixture.h"

#define WIDTH     48u
#define ROWS      40u
#define PIXELS    (WIDTH * ROWS)
#define TRIANGLES 24u
#define REACH     1.5
#define SPLATS    7u
#define SAMPLES   (SPLAT_VIEWS + SPLAT_DEPTHS)

static const struct MeshGrid grid = {
    .spacing = 0.04f, .scale = 0.4f, .offset = {0.5f, 0.3f, 0.2f}, .time = 0.625f};

struct scene {
    struct fixture fixture;
    struct reference_space space;
    struct TextureTriangle triangles[TRIANGLES];
};

static struct scene create_scene(struct gpu_device *device, bool contracted)
{
    struct vkn_config settings = {
        .scene.aabb_scale = 2,
        .scene.contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE,
        .batch = {.max_rays = 1024, .samples = 8192},
    };
    struct scene scene = {.fixture = fixture_configure(device, settings),
                          .space = {.side = 2, .contracted = contracted}};
    struct random random = {7};
    fixture_allocate(&scene.fixture, 1, PIXELS);
    fixture_put(&scene.fixture, BIND_MESH, &grid, sizeof grid);
    /* Some overlap, some leave the texture, the last one has no area. */
    for (uint32_t t = 0; t < TRIANGLES; t++) {
        double x = random_between(&random, 0, WIDTH), y = random_between(&random, 0, ROWS);
        for (int c = 0; c < 3; c++) {
            double normal[3];
            scene.triangles[t].texel[2 * c] = (float)(x + random_between(&random, -6, 6));
            scene.triangles[t].texel[2 * c + 1] = (float)(y + random_between(&random, -6, 6));
            random_direction(&random, normal);
            normal[2] += 2; /* so that no two are opposite */
            for (int i = 0; i < 3; i++) {
                scene.triangles[t].position[3 * c + i] = (float)random_between(&random, -2, 2);
                scene.triangles[t].normal[3 * c + i] = (float)normal[i];
            }
        }
    }
    for (int i = 2; i < 6; i++)
        scene.triangles[TRIANGLES - 1].texel[i] = scene.triangles[TRIANGLES - 1].texel[i % 2];
    fixture_put(&scene.fixture, BIND_TEXTURE_TRIANGLES, scene.triangles, sizeof scene.triangles);
    return scene;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static double area_of(const struct TextureTriangle *triangle)
{
    const float *at = triangle->texel;
    return fabs(((double)at[2] - at[0]) * ((double)at[5] - at[1]) -
                ((double)at[3] - at[1]) * ((double)at[4] - at[0]));
}

/* Finds the point of a triangle nearest to a texel's centre by trial: the inside, then points along
 * its edges. Returns the distance. */
static double nearest(const struct TextureTriangle *triangle, uint32_t pixel, double weights[3])
{
    const uint32_t column = pixel % WIDTH, row = pixel / WIDTH;
    const double p[2] = {column + 0.5, row + 0.5};
    double corner[3][2], best = INFINITY;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 2; i++)
            corner[c][i] = triangle->texel[2 * c + i];
    const double *a = corner[0], *b = corner[1], *c = corner[2];
    double area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    double v = ((p[0] - a[0]) * (c[1] - a[1]) - (p[1] - a[1]) * (c[0] - a[0])) / area;
    double w = ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])) / area;
    if (fabs(area) > 1e-6 && v >= 0 && w >= 0 && v + w <= 1) {
        weights[0] = 1 - v - w;
        weights[1] = v;
        weights[2] = w;
        return 0;
    }
    for (int edge = 0; edge < 3; edge++)
        for (int n = 0; n <= 1000; n++) {
            double t = n / 1000.0, square = 0;
            for (int i = 0; i < 2; i++) {
                double away = p[i] - (1 - t) * corner[edge][i] - t * corner[(edge + 1) % 3][i];
                square += away * away;
            }
            if (square >= best)
                continue;
            best = square;
            weights[edge] = 1 - t;
            weights[(edge + 1) % 3] = t;
            weights[(edge + 2) % 3] = 0;
        }
    return sqrt(best);
}

/* A triangle's corners are within 12 texels of each other. */
static bool is_far(const struct TextureTriangle *triangle, uint32_t pixel)
{
    const uint32_t column = pixel % WIDTH, row = pixel / WIDTH;
    return hypot(column - (double)triangle->texel[0], row - (double)triangle->texel[1]) > 20;
}

/* Computes which triangle a texel shows; returns false where rounding decides. */
static bool expected_claim(const struct scene *scene, uint32_t pixel, uint32_t *claim)
{
    *claim = TEXEL_NONE;
    for (uint32_t t = 0; t < TRIANGLES; t++) {
        if (is_far(&scene->triangles[t], pixel))
            continue;
        double weights[3], distance = nearest(&scene->triangles[t], pixel, weights);
        if (fabs(distance - REACH) < 1e-3 || (distance > 0 && distance < 1e-3) ||
            (distance == 0 && fmin(weights[0], fmin(weights[1], weights[2])) < 1e-3))
            return false;
        uint32_t candidate = distance > 0 ? TEXEL_MARGIN | t : t;
        if (distance <= REACH && candidate < *claim)
            *claim = candidate;
    }
    return true;
}

static uint32_t *check_claims(struct scene *scene)
{
    struct fixture *fixture = &scene->fixture;
    uint32_t counts[3] = {0}, claim, *blank = base_alloc(PIXELS, sizeof *blank);
    memset(blank, 0xff, PIXELS * sizeof *blank);
    fixture_put(fixture, BIND_TEXELS, blank, PIXELS * sizeof *blank);
    free(blank);
    fixture_run(fixture, "texture_rasterize", (struct Push){.a = TRIANGLES, .b = WIDTH, .c = ROWS},
                fixture_groups(fixture, TRIANGLES));
    uint32_t *texels = fixture_read(fixture, BIND_TEXELS);
    for (uint32_t i = 0; i < PIXELS; i++) {
        if (!expected_claim(scene, i, &claim))
            continue;
        check_equal(texels[i], claim);
        counts[claim == TEXEL_NONE ? 0 : claim & TEXEL_MARGIN ? 1 : 2]++;
    }
    check_that(counts[0] > 300 && counts[1] > 100 && counts[2] > 100);
    check_poisoned(texels, PIXELS, fixture->buffers[BIND_TEXELS].size / 4);
    return texels;
}

/* Texels that show a triangle are listed once each. */
static uint32_t check_list(struct fixture *fixture, const uint32_t *texels, uint32_t **list)
{
    struct State state = {.live_count = 0};
    uint8_t listed[PIXELS] = {0};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_run(fixture, "texture_list", (struct Push){.b = WIDTH, .c = ROWS},
                fixture_groups(fixture, PIXELS) + 1);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    *list = fixture_read(fixture, BIND_MESH_POINTS);
    for (uint32_t i = 0; i < state.live_count; i++) {
        check_that((*list)[i] < PIXELS);
        listed[(*list)[i]]++;
    }
    for (uint32_t i = 0; i < PIXELS; i++)
        check_equal(listed[i], texels[i] != TEXEL_NONE);
    return state.live_count;
}

static void check_samples(struct scene *scene, const uint32_t *texels, const uint32_t *list,
                          struct Push push)
{
    struct fixture *fixture = &scene->fixture;
    fixture_run(fixture, "texture_samples", push, fixture_groups(fixture, push.b));
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    uint32_t checked = 0;
    for (uint32_t i = 0; i < push.b; i++) {
        const struct TextureTriangle *triangle =
            &scene->triangles[texels[list[push.a + i]] & ~TEXEL_MARGIN];
        double weights[3], position[3] = {0}, normal[3] = {0}, length = 0;
        if (area_of(triangle) < 2) /* rounding decides the position on it */
            continue;
        checked++;
        nearest(triangle, list[push.a + i], weights);
        for (int k = 0; k < 9; k++) {
            position[k % 3] += weights[k / 3] * triangle->position[k];
            normal[k % 3] += weights[k / 3] * triangle->normal[k];
        }
        for (int k = 0; k < 3; k++)
            length += normal[k] * normal[k];
        for (int k = 0; k < 3; k++) {
            normal[k] /= sqrt(length);
            check_close(rays[i].direction[k], -normal[k], 2e-3, 1, "direction", i);
            check_close(rays[i].origin[k],
                        position[k] * grid.scale + grid.offset[k] + grid.spacing * normal[k], 2e-3,
                        1, "origin", i);
        }
        check_that(rays[i].time == grid.time);
        for (uint32_t k = 0; k < TEXTURE_SAMPLES; k++) {
            const struct Sample *sample = &samples[TEXTURE_SAMPLES * i + k];
            check_equal(sample->ray, i);
            check_close(sample->t, (2 * k + 1) * grid.spacing / TEXTURE_SAMPLES, 1e-6, 1, "t", i);
            check_close(sample->width, 2 * grid.spacing / TEXTURE_SAMPLES, 1e-6, 1, "width", i);
        }
    }
    check_that(checked > push.b / 2);
    free(rays);
    free(samples);
}

/* Alpha compositing without background; if all samples are empty, the fifth of eight counts. */
static void check_colors(struct scene *scene, const uint32_t *list, struct Push push)
{
    struct fixture *fixture = &scene->fixture;
    struct random random = {9};
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    float *field = random_floats(&random, 4ull * TEXTURE_SAMPLES * push.b, 0, 1);
    for (uint32_t i = 0; i < TEXTURE_SAMPLES * push.b; i++)
        field[4 * i + 3] = i < TEXTURE_SAMPLES ? 0 : expf(12 * field[4 * i + 3] - 4);
    fixture_put(fixture, BIND_FIELD, field, 16ull * TEXTURE_SAMPLES * push.b);
    fixture_run(fixture, "texture_colors", push, fixture_groups(fixture, push.b));
    uint32_t *texels = fixture_read(fixture, BIND_TEXELS);
    for (uint32_t i = 0; i < push.b; i++) {
        double color[3] = {0}, left = 1;
        for (uint32_t k = 0; k < TEXTURE_SAMPLES; k++) {
            const float *value = field + 4 * (TEXTURE_SAMPLES * i + k);
            double position[3], width = 2 * grid.spacing / TEXTURE_SAMPLES;
            for (int axis = 0; axis < 3; axis++)
                position[axis] = rays[i].origin[axis] + (k + 0.5) * width * rays[i].direction[axis];
            double alpha =
                1 - exp(-value[3] * width * reference_shrinking(&scene->space, position));
            for (int c = 0; c < 3; c++)
                color[c] += left * alpha * value[c];
            left *= 1 - alpha;
        }
        for (int c = 0; c < 3; c++) {
            double expected = left < 1 ? color[c] / (1 - left)
                                       : field[4 * (TEXTURE_SAMPLES * i + TEXTURE_SAMPLES / 2) + c];
            check_close(texels[list[push.a + i]] >> 8 * c & 255u, 255 * expected, 0.6, 1, "colour",
                        i);
        }
        check_equal(texels[list[push.a + i]] >> 24, 0);
    }
    free(rays);
    free(field);
    free(texels);
}

static void check_texture(struct gpu_device *device, bool contracted)
{
    struct scene scene = create_scene(device, contracted);
    uint32_t *list, *texels = check_claims(&scene);
    uint32_t count = check_list(&scene.fixture, texels, &list);
    struct Push push = {.a = 5, .b = count - 5 < 1000 ? count - 5 : 1000, .c = WIDTH};
    check_samples(&scene, texels, list, push);
    check_colors(&scene, list, push);
    free(list);
    free(texels);
    fixture_destroy(&scene.fixture);
}

static void test_bounded(struct gpu_device *device)
{
    check_texture(device, false);
}

static void test_contracted(struct gpu_device *device)
{
    check_texture(device, true);
}

/* ---- splats ---------------------------------------------------------------------------------- */

static void make_splats(struct fixture *fixture, struct Splat splats[SPLATS])
{
    struct random random = {11};
    memset(splats, 0, SPLATS * sizeof *splats);
    for (uint32_t i = 0; i < SPLATS; i++) {
        double normal[3];
        random_direction(&random, normal);
        for (int k = 0; k < 3; k++) {
            splats[i].position[k] = (float)random_between(&random, -2, 2);
            splats[i].normal[k] = (float)normal[k];
        }
        splats[i].spacing = (float)random_between(&random, 0.01, 0.2);
    }
    fixture_put(fixture, BIND_SPLATS, splats, SPLATS * sizeof *splats);
}

/* Samples lie on all sides of the normal, none behind, then through the splat's depth. */
static void check_splat_samples(const struct Splat *splat, const struct Ray *rays,
                                const struct Sample *samples, uint32_t first)
{
    double sum[3] = {0}, width = 2 * splat->spacing * grid.scale / SPLAT_DEPTHS;
    for (uint32_t k = 0; k < SAMPLES; k++) {
        double facing = 0, length = 0;
        for (int i = 0; i < 3; i++) {
            double down =
                k < SPLAT_VIEWS ? 0 : ((k - SPLAT_VIEWS) + 0.5 - SPLAT_DEPTHS / 2.0) * width;
            facing += rays[k].direction[i] * splat->normal[i];
            length += rays[k].direction[i] * rays[k].direction[i];
            sum[i] += k < SPLAT_VIEWS ? rays[k].direction[i] : 0;
            check_close(rays[k].origin[i],
                        splat->position[i] * grid.scale + grid.offset[i] - down * splat->normal[i],
                        1e-5, 1, "origin", k);
        }
        check_close(length, 1, 1e-5, 1, "length", k);
        check_that(facing <= 1e-5 && (k < SPLAT_VIEWS || facing < -0.9999));
        check_that(rays[k].time == grid.time);
        check_that(samples[k].t == 0 && samples[k].ray == first + k);
        check_close(samples[k].width, width, 1e-6, 1, "width", k);
    }
    /* A half sphere's mean point is at half of the radius. */
    for (int i = 0; i < 3; i++)
        check_close(sum[i] / SPLAT_VIEWS, -0.5 * splat->normal[i], 0.1, 1, "mean", (size_t)i);
}

/* Real spherical harmonic as viewers of the format define it, by associated Legendre functions with
 * their sign; m < 0 has sines. */
static double harmonic(int l, int m, const double d[3])
{
    static const double factorial[] = {1, 1, 2, 6, 24, 120, 720};
    int a = abs(m);
    double s = sqrt(1 - d[2] * d[2]), turn = atan2(d[1], d[0]);
    double p = a == 0   ? (l == 0   ? 1
                           : l == 1 ? d[2]
                           : l == 2 ? 1.5 * d[2] * d[2] - 0.5
                                    : 2.5 * pow(d[2], 3) - 1.5 * d[2])
               : a == 1 ? -s * (l == 1   ? 1
                                : l == 2 ? 3 * d[2]
                                         : 7.5 * d[2] * d[2] - 1.5)
               : a == 2 ? s * s * (l == 2 ? 3 : 15 * d[2])
                        : -15 * s * s * s;
    double size =
        sqrt((2 * l + 1) / (4 * 3.14159265358979323846) * factorial[l - a] / factorial[l + a]);
    return m == 0 ? size * p : sqrt(2) * size * p * (m < 0 ? sin(a * turn) : cos(a * turn));
}

/* Colours of degree 3 are recovered from their values at the views before mirroring; opacity
 * follows from the densities in the splat's depth. */
static void check_splat_colors(struct scene *scene, const struct Ray *rays)
{
    struct fixture *fixture = &scene->fixture;
    struct random random = {13};
    float *field = random_floats(&random, 4ull * SAMPLES * SPLATS, 0, 1);
    double wanted[SPLATS][SPLAT_HARMONICS][3];
    static const double z[4] = {-0.86113631159405, -0.33998104358486, 0.33998104358486,
                                0.86113631159405};
    for (uint32_t i = 0; i < SPLATS; i++) {
        for (int n = 0; n < SPLAT_HARMONICS; n++)
            for (int c = 0; c < 3; c++)
                wanted[i][n][c] = random_between(&random, -1, 1);
        for (uint32_t k = 0; k < SPLAT_VIEWS; k++) {
            double turn = 2 * 3.14159265358979323846 * (k % 7) / 7,
                   s = sqrt(1 - z[k / 7] * z[k / 7]);
            const double d[3] = {s * cos(turn), s * sin(turn), z[k / 7]};
            float *value = field + 4 * (SAMPLES * i + k);
            value[0] = value[1] = value[2] = 0;
            for (int l = 0, n = 0; l <= 3; l++)
                for (int m = -l; m <= l; m++, n++)
                    for (int c = 0; c < 3; c++)
                        value[c] += (float)(wanted[i][n][c] * harmonic(l, m, d));
        }
        field[4 * (SAMPLES * i + SPLAT_VIEWS) + 3] = i == 0 ? (float)NAN : 2000;
    }
    fixture_put(fixture, BIND_FIELD, field, 16ull * SAMPLES * SPLATS);
    fixture_run(fixture, "splat_colors", (struct Push){.a = SPLATS},
                fixture_groups(fixture, SPLATS));
    struct Splat *splats = fixture_read(fixture, BIND_SPLATS);
    for (uint32_t i = 0; i < SPLATS; i++) {
        double thickness = 0, width = 2 * splats[i].spacing * grid.scale / SPLAT_DEPTHS;
        for (uint32_t k = SAMPLES * i + SPLAT_VIEWS; k < SAMPLES * (i + 1); k++) {
            const double position[3] = {rays[k].origin[0], rays[k].origin[1], rays[k].origin[2]};
            if (!isnan(field[4 * k + 3]))
                thickness +=
                    field[4 * k + 3] * width * reference_shrinking(&scene->space, position);
        }
        check_close(splats[i].opacity, 1 - exp(-thickness), 1e-5, 1, "opacity", i);
        for (int n = 0; n < SPLAT_HARMONICS; n++)
            for (int c = 0; c < 3; c++)
                check_close(splats[i].harmonics[3 * n + c], wanted[i][n][c], 1e-5, 1, "harmonic",
                            (size_t)n);
    }
    free(splats);
    free(field);
}

static void check_splats(struct gpu_device *device, bool contracted)
{
    struct scene scene = create_scene(device, contracted);
    struct Splat splats[SPLATS];
    make_splats(&scene.fixture, splats);
    fixture_run(&scene.fixture, "splat_samples", (struct Push){.a = SPLATS},
                fixture_groups(&scene.fixture, SPLATS * SAMPLES));
    struct Ray *rays = fixture_read(&scene.fixture, BIND_RAYS);
    struct Sample *samples = fixture_read(&scene.fixture, BIND_SAMPLES);
    for (uint32_t i = 0; i < SPLATS; i++)
        check_splat_samples(&splats[i], rays + SAMPLES * i, samples + SAMPLES * i, SAMPLES * i);
    check_splat_colors(&scene, rays);
    free(rays);
    free(samples);
    fixture_destroy(&scene.fixture);
}

static void test_splats(struct gpu_device *device)
{
    check_splats(device, false);
}

static void test_far_splats(struct gpu_device *device)
{
    check_splats(device, true);
}

static const struct certify_test tests[] = {
    TEST(test_bounded),
    TEST(test_contracted),
    TEST(test_splats),
    TEST(test_far_splats),
};
const struct certify_part certify_texture = {"texture", tests, BASE_COUNT(tests)};
