/* Tests layers of MLPs up to 256 wide and with skip connections: offsets and initial values of
 * weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "field/internal.h"

/* The NeRF paper's trunk, with its skip connection; its view branch; a third MLP. */
static const struct field_mlp mlps[] = {
    {.inputs = 64,
     .used_inputs = 63,
     .width = 256,
     .hidden = 8,
     .outputs = 272,
     .used_outputs = 257,
     .skip_at = 5},
    {.inputs = 288,
     .used_inputs = 283,
     .width = 128,
     .hidden = 1,
     .outputs = 16,
     .used_outputs = 3},
    {.inputs = 32, .used_inputs = 32, .width = 64, .hidden = 0, .outputs = 16, .used_outputs = 1},
};

static void add_all(struct field_model *model)
{
    *model = (struct field_model){0};
    for (size_t i = 0; i < BASE_COUNT(mlps); i++)
        assert_int_equal(field_add_mlp(model, &mlps[i]), VKN_OK);
}

static void test_offsets(void **state)
{
    static const uint32_t shapes[][3] = {
        /* inputs, outputs, skip */
        {64, 256, 0},  {256, 256, 0}, {256, 256, 0}, {256, 256, 0}, {320, 256, 64}, {256, 256, 0},
        {256, 256, 0}, {256, 256, 0}, {256, 272, 0}, {288, 128, 0}, {128, 16, 0},   {32, 16, 0},
    };
    static const uint32_t mlp_of[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2};
    struct field_model model;
    uint32_t first = 0, activations = 0;
    (void)state;
    add_all(&model);
    assert_int_equal(model.layer_count, BASE_COUNT(shapes));
    for (uint32_t i = 0; i < model.layer_count; i++) {
        const struct field_layer *layer = &model.layers[i];
        assert_int_equal(layer->first, first);
        assert_int_equal(layer->inputs, shapes[i][0]);
        assert_int_equal(layer->outputs, shapes[i][1]);
        assert_int_equal(layer->skip, shapes[i][2]);
        assert_int_equal(layer->mlp, mlp_of[i]);
        assert_int_equal(layer->last, i == 8 || i == 10 || i == 11);
        first += layer->inputs * layer->outputs;
        activations += layer->outputs;
    }
    assert_int_equal(model.mlp_params, first);
    assert_int_equal(model.activations, activations);
    assert_int_equal(model.layers[4].used_inputs, 256 + 63);
    assert_int_equal(model.layers[8].used_outputs, 257);
}

/* Weights are within Glorot's bounds and nearly reach them; padding is zero. */
static void test_random(void **state)
{
    struct field_model model;
    uint64_t seed = 7;
    (void)state;
    add_all(&model);
    float *params = malloc(model.mlp_params * sizeof *params);
    assert_non_null(params);
    field_random_weights(&model, &seed, params);
    for (uint32_t n = 0; n < model.layer_count; n++) {
        const struct field_layer *layer = &model.layers[n];
        double bound = sqrt(6.0 / (layer->used_inputs + layer->used_outputs)), largest = 0;
        for (uint32_t i = 0; i < layer->inputs; i++)
            for (uint32_t o = 0; o < layer->outputs; o++) {
                double value = fabs((double)params[layer->first + i * layer->outputs + o]);
                bool used = i < layer->used_inputs && o < layer->used_outputs;
                assert_true(used ? value <= bound * 1.000001 : value == 0);
                largest = value > largest ? value : largest;
            }
        assert_true(largest > 0.8 * bound);
    }
    free(params);
}

static void test_limits(void **state)
{
    struct field_model model = {0};
    const struct field_mlp wide = {.inputs = 16,
                                   .used_inputs = 16,
                                   .width = 272,
                                   .hidden = 1,
                                   .outputs = 16,
                                   .used_outputs = 16};
    const struct field_mlp deep = {.inputs = 16,
                                   .used_inputs = 16,
                                   .width = 16,
                                   .hidden = FIELD_MAX_LAYERS,
                                   .outputs = 16,
                                   .used_outputs = 16};
    (void)state;
    assert_int_equal(field_add_mlp(&model, &wide), VKN_BAD_INPUT);
    model = (struct field_model){0};
    assert_int_equal(field_add_mlp(&model, &deep), VKN_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
