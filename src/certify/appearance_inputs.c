/* Makes random rays of views with an appearance each, and computes their losses. */
#include "certify/appearance.h"

struct fixture appearance_fixture(struct gpu_device *device, enum vkn_appearance kind)
{
    const struct vkn_config settings = {.scene.appearance = kind, .loss.kind = VKN_LOSS_L2};
    struct fixture fixture = fixture_configure(device, settings);
    fixture.config.error_cells = fixture.config.first_appearance_sum = CELLS;
    fixture.config.first_appearance_word = offsetof(struct contents, views) / 4;
    fixture.config.early_stop = 0;
    fixture.config.loss_near = fixture.config.loss_distortion = 0;
    fixture_allocate(&fixture, VIEWS, 1);
    check_that(fixture.buffers[BIND_STATE].size >= sizeof(struct contents));
    return fixture;
}

bool appearance_is_full(const struct fixture *fixture)
{
    return fixture->settings.scene.appearance == VKN_APPEARANCE_FULL;
}

void appearance_random(struct random *random, struct Appearance *appearance)
{
    *appearance = (struct Appearance){.values[0] = (float)random_between(random, -1, 0.2)};
    for (int k = 1; k < APPEARANCE_PARAMETERS; k++)
        appearance->values[k] = (float)random_between(random, -0.3, 0.3);
}

void appearance_position_of(const struct Ray *ray, double position[2])
{
    position[0] = (int16_t)(ray->position & 0xffff) / 32767.0;
    position[1] = (int16_t)(ray->position >> 16) / 32767.0;
}

static void random_ray(struct inputs *inputs, struct random *random, uint32_t r)
{
    struct Ray *ray = &inputs->rays[r];
    memset(ray, 0xff, sizeof *ray); /* NaN in members that must not be read */
    ray->view = random_below(random, VIEWS);
    ray->position = ((random_word(random) >> 17) - 16384) & 0xffff;
    ray->position |= ((random_word(random) >> 17) - 16384) << 16;
    ray->weight = (float)random_between(random, 0.5, 2);
    ray->last = r % 8 == 3 ? -3 : 10;
    ray->target[3] = r % 3 ? 1 : (float)random_between(random, 0, 1);
    ray->has_sky = r % 3 == 1;
    for (int c = 0; c < 3; c++) {
        ray->target[c] = ray->target[3] * (float)random_between(random, 0, 1);
        ray->background[c] = (float)random_between(random, 0, 1);
    }
    inputs->results[r] =
        (struct RayResult){.transmittance = 1, .first = r * SAMPLES, .count = r % 16 ? SAMPLES : 0};
    for (uint32_t s = r * SAMPLES; s < (r + 1) * SAMPLES; s++) {
        inputs->samples[s] = (struct Sample){.t = (float)s, .width = 0.5F, .ray = r};
        for (int c = 0; c < 3; c++)
            inputs->field[s][c] = (float)random_between(random, 0.05, 0.5);
        inputs->field[s][3] = (float)exp(random_between(random, -1, 2));
    }
}

struct inputs *appearance_inputs_create(uint64_t seed)
{
    struct inputs *inputs = base_alloc(1, sizeof *inputs);
    struct random random = {seed};
    check_that(inputs != NULL);
    inputs->contents.state = (struct State){.ray_count = RAYS, .loss_scale = 128};
    for (uint32_t v = 0; v < VIEWS; v++) {
        appearance_random(&random, &inputs->contents.views[v]);
        inputs->cameras[v].view = 3 * v / 4;
    }
    for (uint32_t r = 0; r < RAYS; r++)
        random_ray(inputs, &random, r);
    return inputs;
}

void appearance_put_inputs(struct fixture *fixture, const struct inputs *inputs)
{
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_STATE, &inputs->contents, sizeof inputs->contents);
    fixture_put(fixture, BIND_CAMERAS, inputs->cameras, sizeof inputs->cameras);
    fixture_put(fixture, BIND_RAYS, inputs->rays, sizeof inputs->rays);
    fixture_put(fixture, BIND_RESULTS, inputs->results, sizeof inputs->results);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, sizeof inputs->samples);
    fixture_put(fixture, BIND_FIELD, inputs->field, sizeof inputs->field);
}

const struct Appearance *appearance_of_ray(const struct inputs *inputs, const struct Ray *ray)
{
    return &inputs->contents.views[inputs->cameras[ray->view].view];
}

double appearance_loss_of_color(const struct fixture *fixture, const struct Ray *ray,
                                const double p[APPEARANCE_PARAMETERS], const double color[3],
                                double transmittance)
{
    double position[2], background[3], pixel[3], loss = 0, slope;
    appearance_position_of(ray, position);
    widen_floats(ray->background, 3, background);
    reference_pixel(p, appearance_is_full(fixture), position, color, transmittance, background,
                    pixel);
    if (fixture->constants.values[SPEC_SKY] && ray->has_sky) {
        for (int c = 0; c < 3; c++)
            background[c] = color[c] + transmittance * background[c];
        reference_photograph(p, appearance_is_full(fixture), position, background, pixel);
    }
    for (int c = 0; c < 3; c++) {
        double target = ray->target[c] + (1.0 - ray->target[3]) * background[c];
        loss += reference_loss(VKN_LOSS_L2, 1, pixel[c] - target, &slope) / 3;
    }
    return loss;
}

static void composite(uint32_t count, const double (*field)[4], double color[3],
                      double *transmittance)
{
    *transmittance = 1;
    memset(color, 0, 3 * sizeof *color);
    for (uint32_t s = 0; s < count; s++) {
        double alpha = -expm1(-field[s][3] * 0.5);
        for (int c = 0; c < 3; c++)
            color[c] += *transmittance * alpha * field[s][c];
        *transmittance *= 1 - alpha;
    }
}

static double loss_of_field(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                            const double (*field)[4])
{
    double color[3], transmittance, p[APPEARANCE_PARAMETERS];
    widen_floats(appearance_of_ray(inputs, &inputs->rays[r])->values, APPEARANCE_PARAMETERS, p);
    composite(inputs->results[r].count, field, color, &transmittance);
    double loss = appearance_loss_of_color(fixture, &inputs->rays[r], p, color, transmittance);
    for (uint32_t s = 0; s < inputs->results[r].count; s++)
        if (fixture->constants.values[SPEC_SKY] && inputs->rays[r].has_sky)
            loss += (double)SKY_LOSS * field[s][3] * 0.5;
    return loss;
}

void appearance_check_ray(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                          const float (*gradients)[4], const struct RayResult *result)
{
    double field[SAMPLES][4], color[3], transmittance;
    for (uint32_t s = 0; s < SAMPLES; s++)
        widen_floats(inputs->field[r * SAMPLES + s], 4, field[s]);
    composite(inputs->results[r].count, (const double(*)[4])field, color, &transmittance);
    check_close(result->transmittance, transmittance, 1e-5, 1, "transmittance of ray", r);
    for (int c = 0; c < 3; c++)
        check_close(result->color[c], color[c], 1e-5, 1, "colour of ray", r);
    for (uint32_t i = 0; i < 4 * inputs->results[r].count; i++) {
        double *value = &field[i / 4][i % 4], before = *value;
        *value = before - STEP;
        double low = loss_of_field(fixture, inputs, r, (const double(*)[4])field);
        *value = before + STEP;
        double high = loss_of_field(fixture, inputs, r, (const double(*)[4])field);
        *value = before;
        check_close(gradients[r * SAMPLES + i / 4][i % 4] * RATIO, (high - low) / (2 * STEP), 1e-4,
                    1, "gradient of ray", 100 * r + i);
    }
}
