/* Tests reading settings in the JSON format of tiny-cuda-nn and instant-ngp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config.h"
#include "scenes.h"

static void ok(vkn_status status)
{
    if (status != VKN_OK)
        fail_msg("%s", vkn_last_error());
}

/* In the format of instant-ngp's configs/nerf/base.json. */
static const char base[] =
    "{\"loss\": {\"otype\": \"L2\"},"
    " \"optimizer\": {\"otype\": \"Ema\", \"decay\": 0.9, \"nested\": {"
    "   \"otype\": \"ExponentialDecay\", \"decay_start\": 2000, \"decay_interval\": 1000,"
    "   \"decay_base\": 0.5, \"nested\": {\"otype\": \"Adam\", \"learning_rate\": 2e-2,"
    "     \"beta1\": 0.8, \"beta2\": 0.98, \"epsilon\": 1e-10, \"l2_reg\": 1e-5,"
    "     \"adabound\": false, \"relative_decay\": 0}}},"
    " \"encoding\": {\"otype\": \"HashGrid\", \"n_levels\": 9, \"n_features_per_level\": 4,"
    "   \"log2_hashmap_size\": 13, \"base_resolution\": 8, \"per_level_scale\": 1.5},"
    " \"network\": {\"otype\": \"FullyFusedMLP\", \"activation\": \"ReLU\","
    "   \"output_activation\": \"None\", \"n_neurons\": 32, \"n_hidden_layers\": 2},"
    " \"dir_encoding\": {\"otype\": \"Composite\", \"nested\": ["
    "   {\"n_dims_to_encode\": 3, \"otype\": \"SphericalHarmonics\", \"degree\": 3},"
    "   {\"otype\": \"Identity\", \"n_bins\": 4}]},"
    " \"rgb_network\": {\"otype\": \"FullyFusedMLP\", \"activation\": \"ReLU\","
    "   \"output_activation\": \"None\", \"n_neurons\": 48, \"n_hidden_layers\": 3}}";

static void assert_setting(const struct vkn_config *config, const char *key, double value)
{
    const struct config_setting *setting = config_find(key);
    struct vkn_config wanted = {0};
    char text[40];
    if (setting->type == CONFIG_ENUM)
        snprintf(text, sizeof text, "%s", setting->names[(size_t)value]);
    else
        snprintf(text, sizeof text, "%.9g", value);
    ok(vkn_config_set(&wanted, "expected", key, text));
    const char *member = (const char *)config + setting->offset;
    if (memcmp(member, (const char *)&wanted + setting->offset, config_setting_size(setting)) != 0)
        fail_msg("%s is not %s", key, text);
}

/* Every number differs from its default. */
static void test_all(void **state)
{
    static const struct {
        const char *key;
        double value;
    } expected[] = {
        {"loss.kind", VKN_LOSS_L2},
        {"optimizer.ema_decay", 0.9},
        {"optimizer.decay_start", 2000},
        {"optimizer.decay_interval", 1000},
        {"optimizer.decay_factor", 0.5},
        {"optimizer.kind", VKN_OPTIMIZER_ADAM},
        {"optimizer.learning_rate", 2e-2},
        {"optimizer.beta1", 0.8},
        {"optimizer.beta2", 0.98},
        {"optimizer.epsilon", 1e-10},
        {"optimizer.weight_decay", 1e-5},
        {"field.position", VKN_POSITION_HASH},
        {"field.direction", VKN_DIRECTION_HARMONICS},
        {"field.activation", VKN_ACTIVATION_RELU},
        {"grid.levels", 9},
        {"grid.features", 4},
        {"grid.log2_entries", 13},
        {"grid.coarsest", 8},
        {"grid.finest", 205}, /* 8 * 1.5^8 */
        {"mlp.density_width", 32},
        {"mlp.density_layers", 2},
        {"mlp.skip_layer", 16},
        {"mlp.sh_degree", 3},
        {"mlp.color_width", 48},
        {"mlp.color_layers", 3},
    };
    struct vkn_config config = {0}, untouched = {0};
    (void)state;
    ok(vkn_config_parse_json(&config, "base.json", base, false));
    for (size_t i = 0; i < BASE_COUNT(expected); i++)
        assert_setting(&config, expected[i].key, expected[i].value);
    assert_int_equal(config_model(&config), VKN_MODEL_NGP);
    for (size_t i = 0; i < BASE_COUNT(expected); i++)
        config_inherit(&config, &untouched, expected[i].key);
    size_t given = 0;
    for (size_t i = 0; i < config_setting_count; i++) {
        bool listed = false;
        for (size_t n = 0; n < BASE_COUNT(expected); n++)
            listed |= strcmp(expected[n].key, config_settings[i].key) == 0;
        given += !listed && !config_is_unset(&config, config_settings[i].key);
    }
    assert_int_equal(given, 0);
}

/* A file with comments changes its parent; keys that only the parent's encoding has are dropped. */
static void test_parent(void **state)
{
    struct vkn_config config = {0};
    temporary_text(*state, "base.json", base);
    temporary_text(*state, "deep/frequency.json",
                   "{\"parent\": \"../base.json\", // \"quoted\"\n"
                   " \"optimizer\": {\"nested\": {\"nested\": {\"learning_rate\": 1e-3}}},\n"
                   " \"encoding\": {\"otype\": \"Frequency\", \"n_frequencies\": 7},\n"
                   " /* of the\n direction */ \"dir_encoding\": {\"otype\": \"frequency\","
                   " \"n_frequencies\": 3},\n"
                   " \"network\": {\"otype\": \"CutlassMLP\", \"n_neurons\": 256},\n"
                   " \"mlp\": {\"skip_layer\": 2}, \"march\": {\"resolution\": 32}}");
    ok(vkn_config_read_json(&config, temporary_path(*state, "deep/frequency.json")));
    assert_setting(&config, "model", VKN_MODEL_LAYERED);
    assert_setting(&config, "field.position", VKN_POSITION_FREQUENCIES);
    assert_setting(&config, "field.direction", VKN_DIRECTION_FREQUENCIES);
    assert_setting(&config, "mlp.position_octaves", 7);
    assert_setting(&config, "mlp.direction_octaves", 3);
    assert_setting(&config, "mlp.density_width", 256);
    assert_setting(&config, "mlp.density_layers", 2);
    assert_setting(&config, "mlp.skip_layer", 2);
    assert_setting(&config, "march.resolution", 32);
    assert_setting(&config, "optimizer.learning_rate", 1e-3);
    assert_setting(&config, "optimizer.ema_decay", 0.9);
    assert_true(config_is_unset(&config, "grid.levels"));
    assert_true(config_is_unset(&config, "grid.finest"));
}

/* The accepted names. */
static void test_names(void **state)
{
    static const struct {
        const char *json, *key;
        double value;
    } cases[] = {
        {"{\"encoding\": {\"otype\": \"Grid\", \"type\": \"Hash\"}}", "field.position",
         VKN_POSITION_HASH},
        {"{\"encoding\": {\"otype\": \"Identity\", \"scale\": 1.0, \"offset\": 0.0}}",
         "field.position", VKN_POSITION_IDENTITY},
        {"{\"dir_encoding\": {\"otype\": \"Identity\"}}", "field.direction",
         VKN_DIRECTION_IDENTITY},
        {"{\"dir_encoding\": {\"otype\": \"Empty\"}}", "field.direction", VKN_DIRECTION_NONE},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"LeakyReLU\"}}",
         "field.activation", VKN_ACTIVATION_LEAKY_RELU},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"Softplus\"}}",
         "field.activation", VKN_ACTIVATION_SOFTPLUS},
        {"{\"rgb_network\": {\"otype\": \"CutlassMLP\", \"activation\": \"Squareplus\","
         " \"output_activation\": \"Sigmoid\"}}",
         "field.activation", VKN_ACTIVATION_SQUAREPLUS},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"Sigmoid\"}}",
         "field.activation", VKN_ACTIVATION_SIGMOID},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"Tanh\"}}", "field.activation",
         VKN_ACTIVATION_TANH},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"None\"}}", "field.activation",
         VKN_ACTIVATION_NONE},
        {"{\"loss\": {\"otype\": \"Huber\"}}", "loss.kind", VKN_LOSS_HUBER},
        {"{\"loss\": {\"otype\": \"L1\"}}", "loss.kind", VKN_LOSS_L1},
        {"{\"loss\": {\"kind\": \"l1\"}, \"optimizer\": {\"beta1\": 0.5}}", "loss.kind",
         VKN_LOSS_L1},
        {"{\"encoding\": {\"otype\": \"HashGrid\"}, \"envmap\": {}, \"distortion_map\": {}}",
         "field.position", VKN_POSITION_HASH},
    };
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_config config = {0};
        ok(vkn_config_parse_json(&config, "names.json", cases[i].json, false));
        assert_setting(&config, cases[i].key, cases[i].value);
    }
}

/* A setting without counterpart is refused by the file's own name, and changes nothing. */
static void test_refused(void **state)
{
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"{\"encoding\": {\"n_levels\": 3}}", "encoding.otype: missing"},
        {"{\"encoding\": {\"otype\": \"OneBlob\"}}",
         "encoding.otype: OneBlob is none of HashGrid, Grid, Frequency, Identity"},
        {"{\"encoding\": {\"otype\": \"Grid\", \"type\": \"Dense\"}}",
         "encoding.type: Dense is none of Hash"},
        {"{\"encoding\": {\"otype\": \"HashGrid\", \"interpolation\": \"Nearest\"}}",
         "encoding.interpolation: Nearest is none of Linear"},
        {"{\"encoding\": {\"otype\": \"HashGrid\", \"n_features_per_level\": 8}}",
         "encoding.n_features_per_level: 8 is out of range (2 to 4)"},
        {"{\"encoding\": {\"otype\": \"HashGrid\", \"n_levels\": \"many\"}}",
         "encoding.n_levels: not a number"},
        {"{\"encoding\": {\"otype\": \"HashGrid\", \"n_quantization_bins\": 3}}",
         "encoding.n_quantization_bins: has no counterpart"},
        {"{\"encoding\": {\"otype\": \"HashGrid\", \"per_level_scale\": 0.5}}",
         "encoding.per_level_scale: not a number from 1 to 16"},
        {"{\"encoding\": {\"otype\": \"HashGrid\", \"per_level_scale\": 8}}",
         "encoding.per_level_scale: "},
        {"{\"encoding\": {\"otype\": \"Identity\", \"scale\": 2}}", "encoding.scale: "},
        {"{\"dir_encoding\": {\"otype\": \"SphericalHarmonics\", \"degree\": 5}}",
         "dir_encoding.degree: 5 is out of range (1 to 4)"},
        {"{\"dir_encoding\": {\"otype\": \"Composite\", \"nested\": []}}",
         "dir_encoding.nested: not a list of objects"},
        {"{\"dir_encoding\": {\"otype\": \"Composite\", \"nested\": [{\"otype\": \"OneBlob\"}]}}",
         "dir_encoding.nested[0].otype: OneBlob is none of"},
        {"{\"network\": {\"otype\": \"CutlassResNet\"}}",
         "network.otype: CutlassResNet is none of FullyFusedMLP, CutlassMLP"},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"Sine\"}}",
         "network.activation: Sine is none of ReLU, LeakyReLU"},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"activation\": \"Tanh\"},"
         " \"rgb_network\": {\"otype\": \"CutlassMLP\", \"activation\": \"ReLU\"}}",
         "rgb_network.activation: both networks have one"},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"output_activation\": \"Exponential\"}}",
         "network.output_activation: Exponential is none of None"},
        {"{\"network\": {\"otype\": \"CutlassMLP\", \"n_neurons\": 100}}",
         "network.n_neurons: 100 is not a multiple of 16"},
        {"{\"network\": {\"otype\": \"FullyFusedMLP\", \"feedback_alignment\": true}}",
         "network.feedback_alignment: "},
        {"{\"loss\": {\"otype\": \"RelativeL2\"}}", "loss.otype: RelativeL2 is none of Huber"},
        {"{\"optimizer\": {\"otype\": \"Shampoo\"}}", "optimizer.otype: Shampoo is none of Ema"},
        {"{\"optimizer\": {\"otype\": \"Ema\", \"nested\": {\"otype\": \"Adam\","
         " \"adabound\": true}}}",
         "optimizer.nested.adabound: "},
        {"{\"optimizer\": {\"otype\": \"ExponentialDecay\", \"decay_end\": 9}}",
         "optimizer.decay_end: has no counterpart"},
        {"{\"optimizer\": {\"otype\": \"Ema\", \"nested\": 3}}", "optimizer.nested: not an object"},
        {"{\"envmap\": {\"resolution\": 3}}", "envmap.resolution: unknown key"},
    };
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_config config = {0};
        const struct vkn_config none = {0};
        assert_int_equal(vkn_config_parse_json(&config, "bad.json", cases[i].json, false),
                         VKN_BAD_INPUT);
        assert_memory_equal(&config, &none, sizeof none);
        if (!strstr(vkn_last_error(), cases[i].error) || !strstr(vkn_last_error(), "bad.json"))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].json, vkn_last_error(),
                     cases[i].error);
    }
}

/* An object with `count` keys "k0", "k1", ... */
static char *text_of_keys(unsigned count)
{
    struct base_text text = {0};
    for (unsigned i = 0; i < count; i++)
        base_text_add(&text, "%s\"k%u\": 1", i > 0 ? ", " : "{", i);
    base_text_add(&text, "}");
    return text.data;
}

/* Merging a file with its parent searches all keys for each key, which took minutes for a file of
 * the maximum size; and a pipe never ends. */
static void check_bad(struct temporary *folder, const char *text, const char *error)
{
    struct vkn_config config = {0};
    const char *path = temporary_text(folder, "bad.json", text);
    assert_int_equal(vkn_config_read_json(&config, path), VKN_BAD_INPUT);
    if (!strstr(vkn_last_error(), error))
        fail_msg("%s: \"%s\"", text, vkn_last_error());
}

static void test_special_files(void **state)
{
    assert_int_equal(mkfifo(temporary_path(*state, "pipe"), 0600), 0);
    check_bad(*state, "{\"parent\": \"pipe\"}", "bad.json: parent: ");
    check_bad(*state, "{\"parent\": \"/dev/zero\"}",
              "bad.json: parent: /dev/zero is not a regular file");
    check_bad(*state, "{\"optimizer\": {\"rates\": \"/dev/zero\"}}",
              "optimizer.rates: /dev/zero is not a regular file");
}

static void test_hostile_files(void **state)
{
    char *many = text_of_keys(4097), *enough = text_of_keys(4096);
    temporary_text(*state, "many.json", many);
    temporary_text(*state, "enough.json", enough);
    check_bad(*state, "{\"parent\": \"many.json\"}", "many.json: more than 4096 keys");
    check_bad(*state, "{\"parent\": \".\"}", "is not a regular file");
    check_bad(*state, "{\"loss_scale.schedule\": \"none\"}",
              "loss_scale.schedule: none: No such file");
    struct vkn_config config = {0};
    assert_int_equal(vkn_config_read_json(&config, temporary_path(*state, "enough.json")),
                     VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "k0: unknown key"));
    free(many);
    free(enough);
}

static void test_files(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{\"parent\": \"bad.json\"}", "bad.json: parent: more than 8 levels of parents"},
        {"{\"parent\": 3}", "bad.json: parent: not the name of a file"},
        {"{\"parent\": \"none.json\"}", "none.json"},
        {"{\"parent\": \"list.json\"}", "list.json: not a JSON object"},
        {"{\"steps\": 3 /* no end", "bad.json: line 1"},
        {"{// one line\n\"steps\": x}", "bad.json: line 2"},
        {"[]", "bad.json: not a JSON object"},
    };
    temporary_text(*state, "list.json", "[1]");
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_config config = {0};
        temporary_text(*state, "bad.json", cases[i].text);
        assert_int_equal(vkn_config_read_json(&config, temporary_path(*state, "bad.json")),
                         VKN_BAD_INPUT);
        if (!strstr(vkn_last_error(), cases[i].error))
            fail_msg("%s: \"%s\"", cases[i].text, vkn_last_error());
    }
    struct vkn_config config = {0};
    temporary_text(*state, "good.json",
                   "{\"scene\": {\"path\": \"a//b/*c*/\\\"//\"}, \"steps\": 7}");
    ok(vkn_config_read_json(&config, temporary_path(*state, "good.json")));
    assert_int_equal(config.steps, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),           cmocka_unit_test(test_parent),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_files),         cmocka_unit_test(test_hostile_files),
        cmocka_unit_test(test_special_files),
    };
    return cmocka_run_group_tests(tests, temporary_setup, temporary_teardown);
}
