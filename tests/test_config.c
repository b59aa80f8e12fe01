/* Tests settings: text and JSON to struct and back for every key, ranges, names, suggestions. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include <vknerf/vknerf.h>

#include "config/config.h"
#include "own_program.h"
#include "step/step.h"

static void assert_error(const char *expected)
{
    if (!strstr(vkn_last_error(), expected))
        print_error("\"%s\" is not in \"%s\"\n", expected, vkn_last_error());
    assert_non_null(strstr(vkn_last_error(), expected));
}

static void set(struct vkn_config *config, const char *key, const char *value)
{
    vkn_status status = vkn_config_set(config, "--set", key, value);
    if (status != VKN_OK)
        print_error("%s\n", vkn_last_error());
    assert_int_equal(status, VKN_OK);
}

static void refuse(const char *key, const char *value, const char *message)
{
    struct vkn_config config = {.seed = 5}, before = config;
    assert_int_equal(vkn_config_set(&config, "--set", key, value), VKN_BAD_INPUT);
    assert_error(message);
    assert_memory_equal(&config, &before, sizeof(config));
}

static void parse(struct vkn_config *config, const char *json)
{
    vkn_status status = vkn_config_parse_json(config, "test.json", json, false);
    if (status != VKN_OK)
        print_error("%s\n", vkn_last_error());
    assert_int_equal(status, VKN_OK);
}

static void refuse_json(const char *json, const char *message)
{
    struct vkn_config config = {.seed = 5}, before = config;
    assert_int_equal(vkn_config_parse_json(&config, "test.json", json, false), VKN_BAD_INPUT);
    assert_error(message);
    assert_memory_equal(&config, &before, sizeof(config));
}

/* ---- absurd values --------------------------------------------------------------------------- */

/* A value is either accepted and reads back equal after it is written, or refused with a message
 * that names file and key, and changes nothing. */
static void accepts_or_refuses_absurd_values(void **state)
{
    (void)state;
    static const char *const values[] = {"1e308",
                                         "-1e308",
                                         "1e309",
                                         "1e-400",
                                         "-0",
                                         "-0.0",
                                         "0",
                                         "NaN",
                                         "Infinity",
                                         "null",
                                         "true",
                                         "[]",
                                         "{}",
                                         "[[]]",
                                         "[1]",
                                         "[null]",
                                         "[1e308, 1e308, 1e308]",
                                         "[1, 2, 3, 4, 5]",
                                         "[[1, 1e308]]",
                                         "[[-1, 1]]",
                                         "[[1e30, 1]]",
                                         "4294967295",
                                         "4294967296",
                                         "9007199254740993",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "\"1\"",
                                         "\"1e400\"",
                                         "\"-0\"",
                                         "\"\"",
                                         "\"nan\"",
                                         "\"inf\"",
                                         "\"0x10\"",
                                         "\"1e19G\"",
                                         "\"-1k\"",
                                         "\"1,2,3\"",
                                         "\",,\"",
                                         "\"1x1e308\"",
                                         "\"default\"",
                                         "\"\\u001b[31m\"",
                                         "{\"levels\": {\"levels\": {}}}"};
    size_t accepted = 0, refused = 0;
    for (size_t k = 0; k < config_setting_count; k++)
        for (size_t i = 0; i < BASE_COUNT(values); i++) {
            char json[256];
            snprintf(json, sizeof json, "{\"%s\": %s}", config_settings[k].key, values[i]);
            struct vkn_config config = {.seed = 5}, before = config, again = {0};
            if (vkn_config_parse_json(&config, "test.json", json, false) == VKN_OK) {
                char *text = vkn_config_write_json(&config);
                assert_non_null(text);
                assert_int_equal(vkn_config_parse_json(&again, "again", text, false), VKN_OK);
                assert_memory_equal(&again, &config, sizeof config);
                free(text);
                accepted++;
                continue;
            }
            bool line = strncmp(values[i], "NaN", 3) == 0 || strncmp(values[i], "Inf", 3) == 0;
            if (strncmp(vkn_last_error(), "test.json: ", 11) != 0 ||
                strpbrk(vkn_last_error(), "\n\x1b") ||
                (!line && !strstr(vkn_last_error(), config_settings[k].key)))
                fail_msg("%s: %s", json, vkn_last_error());
            assert_memory_equal(&config, &before, sizeof config);
            refused++;
        }
    print_message("%u accepted, %u refused\n", (unsigned)accepted, (unsigned)refused);
    assert_true(accepted > config_setting_count && refused > 20 * config_setting_count);
}

/* ---- all keys ------------------------------------------------------------------------------ */

static char points_path[] = "/tmp/vknerf-points-XXXXXX";

static int make_points_file(void **state)
{
    (void)state;
    int descriptor = mkstemp(points_path);
    return descriptor < 0 || close(descriptor) != 0;
}

static int remove_points_file(void **state)
{
    (void)state;
    return unlink(points_path);
}

static void write_points(const char *text)
{
    assert_int_equal(base_file_replace(points_path, text, strlen(text)), VKN_OK);
}

/* Writes a valid text that is not the setting's default; another one if `which` is 1. */
static void sample_text(const struct config_setting *setting, unsigned which, char text[128])
{
    double low = setting->minimum, high = setting->maximum;
    char points[80];
    snprintf(points, sizeof(points), which ? "0 %.9g\n1 %.9g\n4294967295 0.1" : "7,%.9g", high,
             low);
    if (setting->type == CONFIG_POINTS)
        write_points(points);
    const char *fixed =
        setting->type == CONFIG_BOOL      ? "true"
        : setting->type == CONFIG_ENUM    ? setting->names[1]
        : setting->type == CONFIG_U64     ? which ? "18446744073709551615" : "9007199254740993"
        : setting->type == CONFIG_BYTES   ? which ? "1125899906842624" : "3M"
        : setting->type == CONFIG_SECONDS ? which ? "0.1" : "12.000000000000002"
        : setting->type == CONFIG_POINTS  ? points_path
        : setting->type == CONFIG_STEPS   ? which ? "1,500,4294967295" : "100x1.1"
        : setting->type == CONFIG_DOUBLE && setting->count == 3
            ? which ? "-1690738.8711574324,-17860741.299999997,0.1" : "0.1,0.2,-0.30000000000000004"
        : setting->type == CONFIG_DOUBLE ? which ? "0.1" : "0.33333333333333331"
        : setting->count == 3            ? which ? "0.1,0.2,0.3" : "0.33333334,1,1.5"
                                         : NULL;
    if (fixed)
        snprintf(text, 128, "%s", fixed);
    else if (setting->type == CONFIG_U32)
        snprintf(text, 128, "%.0f", which || low == 0 ? high : low);
    else
        snprintf(text, 128, "%.9g", (double)(float)(which ? high : low + (high - low) / 3));
}

/* Each key, set by itself, reads back bit for bit from text and from JSON. */
static void every_key_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_setting_count; i++) {
        for (unsigned which = 0; which < 2; which++) {
            struct vkn_config config = {0}, empty = {0}, read = {0}, by_path = {0};
            char text[128], json[256];
            sample_text(&config_settings[i], which, text);
            set(&config, config_settings[i].key, text);
            assert_memory_not_equal(&config, &empty, sizeof(config));

            char *written = vkn_config_write_json(&config);
            assert_non_null(written);
            parse(&read, written);
            assert_memory_equal(&read, &config, sizeof(config));
            free(written);

            snprintf(json, sizeof(json), "{\"%s\": \"%s\"}", config_settings[i].key, text);
            parse(&by_path, json);
            assert_memory_equal(&by_path, &config, sizeof(config));
        }
    }
}

/* Every byte of the struct that is not padding belongs to exactly one setting. */
static void every_field_has_a_key(void **state)
{
    (void)state;
    unsigned char owners[sizeof(struct vkn_config)] = {0};
    size_t covered = 0;
    for (size_t i = 0; i < config_setting_count; i++) {
        const struct config_setting *setting = &config_settings[i];
        size_t size = setting->type == CONFIG_BOOL     ? sizeof(bool)
                      : setting->type == CONFIG_POINTS ? sizeof(struct vkn_schedule_point)
                      : setting->type == CONFIG_U64 || setting->type == CONFIG_BYTES ||
                              setting->type == CONFIG_SECONDS || setting->type == CONFIG_DOUBLE
                          ? 8
                          : 4;
        for (size_t byte = 0; byte < size * setting->count; byte++, covered++)
            assert_int_equal(owners[setting->offset + byte]++, 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(setting->key, config_settings[j].key);
    }
    /* Runs of more than 7 unowned bytes would be a forgotten field, shorter ones may be padding; a
     * forgotten 4-byte field between others is not padding, since all of those are 4-byte aligned.
     */
    for (size_t byte = 0; byte + 4 <= sizeof(owners); byte += 4) {
        bool owned = owners[byte] != 0;
        bool padding = (byte + 4) % 8 == 0 && (byte + 4 == sizeof(owners) || owners[byte - 1] != 0);
        assert_true(owned || padding);
    }
    assert_true(covered + 32 > sizeof(owners));
}

static void written_json_is_nested(void **state)
{
    (void)state;
    struct vkn_config config = {.steps = 5, .optimizer.learning_rate = 0.01f};
    char *text = vkn_config_write_json(&config);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    assert_int_equal(cJSON_GetObjectItem(json, "steps")->valueint, 5);
    cJSON *optimizer = cJSON_GetObjectItem(json, "optimizer");
    assert_true(cJSON_GetObjectItem(optimizer, "learning_rate")->valuedouble == 0.01);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(optimizer, "milestones")), 3);
    assert_string_equal(cJSON_GetObjectItem(json, "background")->valuestring, "default");
    assert_non_null(strstr(text, "0.01,")); /* and not 0.00999999978 */
    cJSON_Delete(json);
    free(text);
}

static void help_names_every_key(void **state)
{
    (void)state;
    char *help = vkn_config_help();
    assert_non_null(help);
    for (size_t i = 0; i < config_setting_count; i++) {
        size_t headings = 0;
        assert_non_null(strstr(help, config_settings[i].key));
        for (size_t n = 0; n < config_heading_count; n++)
            headings += config_is_under(&config_settings[i], &config_headings[n]);
        if (headings != 1)
            fail_msg("%s is under %zu headings", config_settings[i].key, headings);
    }
    assert_non_null(strstr(help, "\nLoss scaling:\n  loss_scale.kind "));
    assert_non_null(strstr(help, "  0..18446744073709551615; default 0\n"));
    free(help);
}

/* vkn_config_setting() returns every setting of the help. */
static void lists_every_setting(void **state)
{
    (void)state;
    bool names = false, truths = false;
    vkn_setting setting = {.size = sizeof setting};
    assert_int_equal(vkn_config_setting_count(), config_setting_count);
    for (size_t i = 0; i < vkn_config_setting_count(); i++) {
        assert_int_equal(vkn_config_setting(i, &setting), VKN_OK);
        assert_string_equal(setting.key, config_settings[i].key);
        assert_string_equal(setting.help, config_settings[i].help);
        assert_string_equal(setting.default_text, config_default_text(&config_settings[i]));
        struct vkn_config config = {0};
        for (size_t n = 0; setting.choices && setting.choices[n]; n++)
            set(&config, setting.key, setting.choices[n]);
        assert_true(setting.choices || config_settings[i].type != CONFIG_ENUM);
        names = names || (strcmp(setting.key, "loss.kind") == 0 && setting.choices);
        truths = truths || (strcmp(setting.key, "deterministic") == 0 && setting.choices);
    }
    assert_true(names && truths);
    assert_int_equal(vkn_config_setting(config_setting_count, &setting), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "vkn_config_setting: there are"));
    setting.size = 8;
    assert_int_equal(vkn_config_setting(0, &setting), VKN_BAD_INPUT);
}

/* ---- defaults ------------------------------------------------------------------------------- */

/* Copies the text after "; default " from the setting's help. */
static void help_default(const char *help, const struct config_setting *setting, char text[128])
{
    char name[64];
    snprintf(name, sizeof(name), "  %s ", setting->key);
    const char *line = strncmp(help, name, strlen(name)) == 0 ? help : NULL;
    for (const char *at = help; !line && (at = strchr(at, '\n')); at++)
        if (strncmp(at + 1, name, strlen(name)) == 0)
            line = at + 1;
    const char *from = line ? strstr(line, "; default ") : NULL;
    if (!from) {
        fail_msg("no default of %s in the help", setting->key);
        return;
    }
    from += strlen("; default ");
    snprintf(text, 128, "%.*s", (int)strcspn(from, "\n"), from);
}

/* Reduces "19, CPU 15" to the number for a GPU or a CPU. */
static void select_device(char text[128], bool cpu)
{
    char *on_cpu = strstr(text, ", CPU ");
    if (on_cpu && cpu)
        memmove(text, on_cpu + strlen(", CPU "), strlen(on_cpu + strlen(", CPU ")) + 1);
    else if (on_cpu)
        *on_cpu = 0;
}

static void check_default(const struct config_setting *setting, char text[128], bool cpu)
{
    const struct config_facts facts = {
        .is_cpu = cpu, .downscale = 1, .scale = 1, .aabb_scale = 1, .fixed_transform = true};
    struct vkn_config resolved = {0}, from_help = {0};
    assert_int_equal(config_resolve(&resolved, &facts), VKN_OK);
    if (setting->fallback.origin == CONFIG_VALUE) {
        select_device(text, cpu);
        set(&from_help, setting->key, text);
    }
    size_t at = setting->offset;
    if (memcmp((char *)&resolved + at, (char *)&from_help + at, config_setting_size(setting)) != 0)
        fail_msg("%s is not %s by default on a %s", setting->key, text, cpu ? "CPU" : "GPU");
}

/* The default in --help, given as a value, sets the same bits as config_resolve(). test_settings
 * covers defaults that follow from rules and the scene. */
static void defaults_are_what_help_says(void **state)
{
    (void)state;
    char *help = vkn_config_help();
    assert_non_null(help);
    for (size_t i = 0; i < config_setting_count; i++) {
        const struct config_setting *setting = &config_settings[i];
        for (int cpu = 0; cpu < 2; cpu++) {
            char text[128];
            help_default(help, setting, text);
            assert_string_equal(text, config_default_text(setting));
            if (!setting->fallback.rule && setting->fallback.origin != CONFIG_SCENE)
                check_default(setting, text, cpu);
        }
    }
    free(help);
    assert_true(config_default_number("save_seconds") == 60.0);
    assert_true(config_default_number("save_every") == 0.0 && config_default_number("none") == 0.0);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void accepts_numbers_and_names(void **state)
{
    (void)state;
    struct vkn_config config = {0};
    set(&config, "steps", "2e4");
    assert_int_equal(config.steps, 20000);
    set(&config, "optimizer.learning_rate", "5e-3");
    assert_true(config.optimizer.learning_rate == 5e-3f);
    set(&config, "optimizer.milestones", "0.1,0.2,0.3");
    assert_true(config.optimizer.milestones[2] == 0.3f);
    set(&config, "optimizer.weight_decay", "-1");
    assert_true(config.optimizer.weight_decay == -1.0f);
    set(&config, "loss.kind", "l1");
    assert_int_equal(config.loss.kind, VKN_LOSS_L1);
    set(&config, "background", "black");
    assert_int_equal(config.background, VKN_BACKGROUND_BLACK);
    set(&config, "deterministic", "true");
    set(&config, "deterministic", "false");
    assert_false(config.deterministic);
    set(&config, "scene.image_budget", "512M");
    assert_int_equal(config.scene.image_budget, 512u << 20);
    set(&config, "scene.image_budget", "1.5G");
    assert_int_equal(config.scene.image_budget, 3u << 29);
    set(&config, "scene.image_budget", "2K");
    assert_int_equal(config.scene.image_budget, 2048);
    set(&config, "scene.image_budget", "1e6");
    assert_int_equal(config.scene.image_budget, 1000000);
    set(&config, "steps", "default");
    assert_int_equal(config.steps, 0);
}

/* 20k is 20000, not 20480; 512m is 512 * 1024 * 1024 bytes; 5m is 300 seconds. */
static void accepts_units(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text;
        double value;
    } cases[] = {
        {"steps", "20k", 20000},
        {"steps", "20K", 20000},
        {"steps", "5m", 5e6},
        {"steps", "2.3M", 2300000},
        {"steps", "1.001k", 1001},
        {"steps", "4g", 4e9},
        {"seed", "5G", 5e9},
        {"batch.samples", "64k", 64000},
        {"scene.image_budget", "512m", 512 << 20},
        {"scene.image_budget", "1.5g", 1.5 * (1 << 30)},
        {"scene.image_budget", "2k", 2048},
        {"seconds", "90s", 90},
        {"seconds", "5m", 300},
        {"seconds", "2h", 7200},
        {"seconds", "1.5h", 5400},
        {"seconds", "0.25", 0.25},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_config config = {0}, by_json = {0};
        char json[64];
        set(&config, cases[i].key, cases[i].text);
        const struct config_setting *setting = config_find(cases[i].key);
        const char *address = (const char *)&config + setting->offset;
        double value = setting->type == CONFIG_U32       ? *(const uint32_t *)address
                       : setting->type == CONFIG_SECONDS ? *(const double *)address
                                                         : (double)*(const uint64_t *)address;
        if (value != cases[i].value)
            fail_msg("%s=%s is %.17g", cases[i].key, cases[i].text, value);
        snprintf(json, sizeof(json), "{\"%s\": \"%s\"}", cases[i].key, cases[i].text);
        parse(&by_json, json);
        assert_memory_equal(&by_json, &config, sizeof(config));
    }
    uint64_t count = 0;
    assert_true(vkn_parse_count("1.5M", &count) && count == 1500000);
    assert_true(vkn_parse_count("0", &count) && count == 0);
    assert_false(vkn_parse_count("1.5", &count) || vkn_parse_count("k", &count) ||
                 vkn_parse_count("", &count) || vkn_parse_count("-1k", &count) ||
                 vkn_parse_count("5h", &count) || vkn_parse_count("99999999999G", &count));
}

static void refuses_bad_values(void **state)
{
    (void)state;
    refuse("steps", "x", "--set: steps: x is not a number");
    refuse("steps", "", "--set: steps: its value is missing");
    refuse("steps", "5x", "--set: steps: 5x is not a number");
    refuse("steps", "5,6", "--set: steps: 5,6: more than 1 number");
    refuse("steps", "1.5", "--set: steps: 1.5 is not a whole number");
    refuse("steps", "-1", "--set: steps: -1 is out of range (1 to 4294967295");
    refuse("steps", "4294967296", "--set: steps: 4294967296 is out of range");
    refuse("steps", "20q", "20q is not a number, such as 20000 or 20k");
    refuse("steps", "k", "k is not a number");
    refuse("steps", "5h", "5h is not a number");
    refuse("steps", "0x10", "0x10 is not a number");
    refuse("steps", "e", "e is not a number");
    refuse("steps", "+", "+ is not a number");
    refuse("steps", " 5", " 5 is not a number");
    refuse("steps", "20kk", "20kk is not a number");
    refuse("steps", "5G", "5000000000 is out of range");
    refuse("steps", "1.0001k", "1000.1 is not a whole number");
    refuse("seconds", "20k", "20k is not a number of seconds, such as 90, 5m or 2h");
    refuse("seconds", "5M", "5M is not a number of seconds");
    refuse("optimizer.learning_rate", "1m", "1m is not a number");
    refuse("seed", "-1", "--set: seed: -1 is out of range");
    refuse("seed", "18446744073709551616", "--set: seed: ");
    refuse("optimizer.learning_rate", "nan", "is not a number");
    refuse("optimizer.learning_rate", "inf", "is not a number");
    refuse("optimizer.learning_rate", "1e999", "not a finite number");
    refuse("optimizer.beta1", "1", "--set: optimizer.beta1: 1 is out of range (1e-06 to 0.999999");
    refuse("optimizer.milestones", "0.1,0.2", "is not a list of 3 numbers");
    refuse("optimizer.milestones", "0.1,0.2,0.3,0.4", "more than 3 numbers");
    refuse("optimizer.milestones", "0.1,0.2,9", "9 is out of range");
    refuse("mlp.color_width", "24",
           "--set: mlp.color_width: 24 is not a multiple of 16 (16 to 256)");
    refuse("scene.image_budget", "512MB", "512MB is not a number of bytes, such as 512M");
    refuse("scene.image_budget", "M", "M is not a number of bytes");
    refuse("loss_scale.schedule", "", "its value is missing");
    refuse("scene.image_budget", "1.0001K", "is not a whole number");
    refuse("scene.image_budget", "2000000G", "is out of range (1 to 1125899906842624");
    refuse("scene.image_budget", "-1M", "is out of range");
    refuse("grid.features", "3", "3 is not a multiple of 2");
    refuse("deterministic", "yes", "--set: deterministic: yes is neither true nor false");
    refuse("loss.kind", "l3", "--set: loss.kind: l3 is none of default, huber, l2, l1");
    refuse("model", "vanila",
           "--set: model: vanila is none of default, ngp, vanilla, dynamic, layered, glsl");
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* Lowest and highest accepted values of each number, and their refused neighbours. zeros_mean_zero
 * tests 0. */
static const struct {
    const char *key, *below, *least, *most, *above;
} ranges[] = {
    {"seed", "-1", "1", "18446744073709551615", "18446744073709551616"},
    {"steps", "-1", "1", "4294967295", "4294967296"},
    {"seconds", "-1e-9", "1e-9", "1e9", "1000000001"},
    {"save_every", "-1", "1", "4294967295", "4294967296"},
    {"save_seconds", "-1.001", "-1", "1e6", "1.01e6"},
    {"keep", "-1", "1", "10000", "10001"},
    {"eval_views", "-1", "1", "64", "65"},
    {"scene.downscale", "-1", "1", "64", "65"},
    {"scene.scale", "9.99e-11", "1e-10", "1e10", "1.001e10"},
    {"scene.offset", "-1.001e18", "-1e18", "1e18", "1.001e18"},
    {"scene.aabb_scale", "-1", "1", "128", "129"},
    {"scene.unit_length", "9.99e-10", "1e-9", "1e9", "1.001e9"},
    {"scene.image_budget", "-1", "1", "1125899906842624", "1125899906842625"},
    {"scene.host_budget", "-1", "1", "1048576G", "1048577G"},
    {"refine.initial_rate", "9.99e-9", "1e-8", "0.125", "0.1251"},
    {"appearance.initial_rate", "9.99e-9", "1e-8", "10", "10.1"},
    {"appearance.final_rate", "9.99e-9", "1e-8", "10", "10.1"},
    {"refine.final_rate", "9.99e-9", "1e-8", "0.125", "0.1251"},
    {"refine.start", "-1.001", "-1", "1", "1.001"},
    {"refine.limit", "9.99e-6", "1e-5", "1", "1.001"},
    {"refine.detail", "-1.001", "-1", "1000", "1000.1"},
    {"progressive.start_downscale", "1", "2", "8", "10"},
    {"progressive.milestones", "9.99e-7", "1e-6", "2", "2.001"},
    {"grid.levels", "-1", "1", "32", "33"},
    {"grid.features", "1", "2", "4", "6"},
    {"grid.log2_entries", "7", "8", "24", "25"},
    {"grid.coarsest", "1", "2", "1024", "1025"},
    {"grid.finest", "1", "2", "1048576", "1048577"},
    {"grid.initial", "9.99e-10", "1e-9", "1", "1.001"},
    {"grid.decay", "9.99e-7", "1e-6", "1e6", "1.001e6"},
    {"mlp.density_width", "8", "16", "256", "272"},
    {"mlp.density_layers", "-1", "1", "12", "13"},
    {"mlp.geometry", "8", "16", "256", "272"},
    {"mlp.color_width", "8", "16", "256", "272"},
    {"mlp.color_layers", "-1", "1", "8", "9"},
    {"mlp.sh_degree", "-1", "1", "4", "5"},
    {"mlp.position_octaves", "-1", "1", "16", "17"},
    {"mlp.direction_octaves", "-1", "1", "8", "9"},
    {"mlp.skip_layer", "-1", "1", "16", "17"},
    {"dynamic.width", "16", "32", "256", "288"},
    {"dynamic.layers", "-1", "1", "8", "9"},
    {"dynamic.position_octaves", "-1", "1", "8", "9"},
    {"dynamic.time_octaves", "-1", "1", "8", "9"},
    {"dynamic.learning_rate_factor", "9.99e-7", "1e-6", "10", "10.01"},
    {"dynamic.time_bins", "-1", "1", "64", "65"},
    {"dynamic.curriculum", "-1.001", "-1", "1", "1.001"},
    {"glsl.source", "-1", "1", "4294967295", "4294967296"},
    {"batch.chunk", "-1", "64", "16777216", "16777280"},
    {"batch.keep", "0.0099", "0.01", "1", "1.001"},
    {"batch.samples", "1023", "1024", "16777216", "16777217"},
    {"batch.max_rays", "63", "64", "4194304", "4194305"},
    {"batch.by_error", "-0.001", "1e-9", "0.9", "0.901"},
    {"batch.depth_share", "9.99e-4", "1e-3", "1", "1.01"},
    {"march.ray_samples", "-1", "1", "1024", "1025"},
    {"parallel.ranks_per_device", "0", "1", "16", "17"},
    {"parallel.buckets", "0", "1", "8", "9"},
    {"march.coarse_samples", "-1", "1", "256", "257"},
    {"march.fine_samples", "-1", "1", "512", "513"},
    {"march.resolution", "8", "16", "512", "520"},
    {"march.occupancy_decay", "9.99e-4", "1e-3", "1", "1.001"},
    {"march.occupancy_threshold", "9.99e-10", "1e-9", "1e3", "1000.1"},
    {"march.cone_angle", "-1.001", "-1", "1", "1.001"},
    {"march.steps_per_unit", "15", "16", "65536", "65537"},
    {"march.early_stop", "9.99e-10", "1e-9", "1", "1.001"},
    {"march.near_distance", "9.99e-7", "1e-6", "1e3", "1000.1"},
    {"march.near_start", "-1.001", "-1", "1e3", "1000.1"},
    {"march.near_steps", "-1", "1", "4294967295", "4294967296"},
    {"march.far_distance", "9.99e-7", "1e-6", "1e9", "1.001e9"},
    {"march.alpha_threshold", "9.99e-10", "1e-9", "1", "1.001"},
    {"proposal.levels", "-1", "1", "16", "17"},
    {"proposal.log2_entries", "7", "8", "24", "25"},
    {"proposal.finest", "15", "16", "65536", "65537"},
    {"proposal.width", "8", "16", "128", "144"},
    {"proposal.anneal_steps", "-1", "1", "4294967295", "4294967296"},
    {"proposal.interval", "-1", "1", "1000", "1001"},
    {"loss.delta", "9.99e-7", "1e-6", "10", "10.01"},
    {"loss.distortion", "-1.001", "-1", "10", "10.01"},
    {"loss.depth", "-1.001", "-1", "10", "10.01"},
    {"loss.near_density", "-1.001", "-1", "10", "10.01"},
    {"loss.interlevel", "9.99e-10", "1e-9", "1e3", "1000.1"},
    {"optimizer.learning_rate", "9.99e-10", "1e-9", "10", "10.01"},
    {"optimizer.beta1", "9.99e-7", "1e-6", "0.999999", "0.9999991"},
    {"optimizer.beta2", "9.99e-7", "1e-6", "0.999999", "0.9999991"},
    {"optimizer.epsilon", "9.99e-31", "1e-30", "1", "1.001"},
    {"optimizer.weight_decay", "-1.001", "-1", "1", "1.001"},
    {"optimizer.warmup_steps", "-1", "1", "4294967295", "4294967296"},
    {"optimizer.final_rate", "9.99e-13", "1e-12", "10", "10.01"},
    {"optimizer.decay_factor", "9.99e-7", "1e-6", "1", "1.001"},
    {"optimizer.milestones", "9.99e-7", "1e-6", "2", "2.001"},
    {"optimizer.decay_start", "-1", "1", "4294967295", "4294967296"},
    {"optimizer.decay_interval", "-1", "1", "4294967295", "4294967296"},
    {"optimizer.ema_decay", "9.99e-7", "1e-6", "0.999999", "0.9999991"},
    {"optimizer.clip_norm", "9.99e-10", "1e-9", "1e9", "1.001e9"},
    {"loss_scale.initial", "9.99e-7", "1e-6", "8.5e37", "8.501e37"},
    {"loss_scale.minimum", "9.99e-7", "1e-6", "8.5e37", "8.501e37"},
    {"loss_scale.maximum", "9.99e-7", "1e-6", "8.5e37", "8.501e37"},
    {"loss_scale.growth", "0.999", "1", "1024", "1025"},
    {"loss_scale.backoff", "9.99e-4", "1e-3", "1", "1.001"},
    {"loss_scale.interval", "-1", "1", "4294967295", "4294967296"},
    {"loss_scale.underflow", "9.99e-7", "1e-6", "1", "1.001"},
    {"loss_scale.hysteresis", "-1", "1", "4294967295", "4294967296"},
    {"loss_scale.max_backoffs", "-1", "1", "4294967295", "4294967296"},
    {"loss_scale.rate_cut_factor", "9.99e-4", "1e-3", "1", "1.001"},
};

/* Writes the value once per element of the setting. */
static void repeat(const struct config_setting *setting, const char *value, char text[128])
{
    text[0] = 0;
    size_t count = setting->type == CONFIG_STEPS ? 1 : setting->count;
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), 128 - strlen(text), "%s%s", i ? "," : "", value);
}

static void check_range(const struct config_setting *setting, const char *value, bool accepted)
{
    struct vkn_config config = {0};
    char text[128];
    repeat(setting, value, text);
    vkn_status status = vkn_config_set(&config, "--set", setting->key, text);
    if (status != (accepted ? VKN_OK : VKN_BAD_INPUT))
        fail_msg("%s=%s is %s", setting->key, text, accepted ? "refused" : "accepted");
    if (!accepted)
        assert_error(setting->key);
}

static bool is_number(const struct config_setting *setting)
{
    return setting->type != CONFIG_BOOL && setting->type != CONFIG_ENUM &&
           setting->type != CONFIG_POINTS && setting->type != CONFIG_STEPS;
}

static bool has_range(const char *key)
{
    size_t i = 0;
    while (i < BASE_COUNT(ranges) && strcmp(ranges[i].key, key) != 0)
        i++;
    return i < BASE_COUNT(ranges);
}

static void numbers_have_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(ranges); i++) {
        const struct config_setting *setting = config_find(ranges[i].key);
        assert_non_null(setting);
        check_range(setting, ranges[i].below, false);
        check_range(setting, ranges[i].least, true);
        check_range(setting, ranges[i].most, true);
        check_range(setting, ranges[i].above, false);
    }
    for (size_t i = 0; i < config_setting_count; i++) {
        if (is_number(&config_settings[i]) && !has_range(config_settings[i].key))
            fail_msg("%s is missing in the table `ranges`", config_settings[i].key);
    }
}

/* ---- zero ---------------------------------------------------------------------------------- */

/* The numbers that accept a written 0, with the value stored in the struct and written to JSON;
 * other numbers refuse 0. */
static const struct {
    const char *key, *json;
    double stored;
} zeros[] = {
    {"seed", "0", 0},
    {"seconds", "0", 0},
    {"eval_every", "0", VKN_NO_STEPS},
    {"save_every", "0", 0},
    {"save_seconds", "0", -1},
    {"scene.offset", "[0,0,0]", 0},
    {"refine.start", "0", -1},
    {"refine.detail", "0", -1},
    {"batch.by_error", "0", 0},
    {"march.cone_angle", "0", -1},
    {"march.near_start", "0", -1},
    {"optimizer.weight_decay", "0", -1},
    {"dynamic.curriculum", "0", -1},
    {"march.far_distance", "0", 0},
    {"march.alpha_threshold", "0", 0},
    {"grid.decay", "0", 0},
    {"loss.distortion", "0", -1},
    {"loss.depth", "0", -1},
    {"loss.near_density", "0", -1},
    {"optimizer.clip_norm", "0", 0},
    {"loss_scale.minimum", "0", 0},
    {"loss_scale.maximum", "0", 0},
};

/* Returns NULL if the setting refuses 0. */
static const char *zero_json(const char *key, double *stored)
{
    for (size_t i = 0; i < BASE_COUNT(zeros); i++) {
        if (strcmp(zeros[i].key, key) == 0) {
            *stored = zeros[i].stored;
            return zeros[i].json;
        }
    }
    return NULL;
}

/* Compares the first element of a number setting. */
static void assert_stored(const struct vkn_config *config, const struct config_setting *setting,
                          double expected)
{
    const char *address = (const char *)config + setting->offset;
    double value = setting->type == CONFIG_U32     ? *(const uint32_t *)address
                   : setting->type == CONFIG_FLOAT ? (double)*(const float *)address
                   : setting->type == CONFIG_DOUBLE || setting->type == CONFIG_SECONDS
                       ? *(const double *)address
                       : (double)*(const uint64_t *)address;
    if (value != expected)
        fail_msg("%s: %g instead of %g", setting->key, value, expected);
}

/* Returns the setting's JSON as vkn_config_write_json writes it; the caller frees it. */
static char *written(const struct vkn_config *config, const char *key)
{
    char *text = vkn_config_write_json(config), group[64];
    cJSON *json = cJSON_Parse(text), *object = json;
    const char *dot = strchr(key, '.');
    snprintf(group, sizeof(group), "%.*s", dot ? (int)(dot - key) : 0, key);
    if (dot)
        object = cJSON_GetObjectItemCaseSensitive(json, group);
    char *printed =
        cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(object, dot ? dot + 1 : key));
    assert_non_null(printed);
    cJSON_Delete(json);
    free(text);
    return printed;
}

static void accept_zero(const struct config_setting *setting, const char *text,
                        const char *json_text, double stored)
{
    struct vkn_config config = {0}, read = {0}, again = {0};
    char json[128];
    set(&config, setting->key, text);
    assert_stored(&config, setting, stored);
    char *item = written(&config, setting->key);
    assert_string_equal(item, json_text);
    snprintf(json, sizeof(json), "{\"%s\": %s}", setting->key, item);
    parse(&read, json);
    assert_memory_equal(&read, &config, sizeof(config));
    assert_int_equal(vkn_config_parse_json(&again, "config.json", json, true), VKN_OK);
    assert_memory_equal(&again, &config, sizeof(config));
    free(item);
}

static void refuse_zero(const struct config_setting *setting, const char *text)
{
    char message[192], json[128], range[96];
    snprintf(message, sizeof(message), "--set: %s: 0 is out of range (%s, or default)",
             setting->key, config_print_range(range, setting, " to "));
    refuse(setting->key, text, message);
    snprintf(json, sizeof(json), setting->count > 1 ? "{\"%s\": [%s]}" : "{\"%s\": %s}",
             setting->key, text);
    refuse_json(json, "0 is out of range (");
    refuse_json(json, setting->key);
    /* A recorded run of an earlier version may hold 0 as the default. */
    struct vkn_config config = {.seed = 5}, before = config;
    assert_int_equal(vkn_config_parse_json(&config, "config.json", json, true), VKN_OK);
    assert_memory_equal(&config, &before, sizeof(config));
}

/* A written 0 never means the default. */
static void zeros_mean_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_setting_count; i++) {
        const struct config_setting *setting = &config_settings[i];
        double stored = 0;
        const char *json = zero_json(setting->key, &stored);
        char text[128];
        repeat(setting, "0", text);
        if (json)
            accept_zero(setting, text, json, stored);
        else if (is_number(setting))
            refuse_zero(setting, text);
        else if (setting->type != CONFIG_POINTS) /* whose value is a file name */
            refuse(setting->key, "0", setting->key);
    }
    refuse("optimizer.milestones", "0.5,0,0.9", "0 is out of range");
    refuse_json("{\"optimizer\": {\"milestones\": [0.5, 0, 0.9]}}", "0 is out of range");
    struct vkn_config config = {0};
    set(&config, "optimizer.weight_decay", "1e-60"); /* 0 as a float */
    assert_true(config.optimizer.weight_decay == -1.0f);
    refuse("loss_scale.initial", "1e-60", "out of range");
}

/* "default", or null in JSON, resets a setting, and a default setting is written like that. */
static void defaults_are_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_setting_count; i++) {
        const struct config_setting *setting = &config_settings[i];
        struct vkn_config config = {0}, empty = {0};
        char text[128], json[128];
        sample_text(setting, 1, text);
        set(&config, setting->key, text);
        set(&config, setting->key, "default");
        assert_memory_equal(&config, &empty, sizeof(config));
        set(&config, setting->key, text);
        snprintf(json, sizeof(json), "{\"%s\": null}", setting->key);
        parse(&config, json);
        assert_memory_equal(&config, &empty, sizeof(config));
        set(&config, setting->key, text);
        snprintf(json, sizeof(json), "{\"%s\": \"default\"}", setting->key);
        parse(&config, json);
        assert_memory_equal(&config, &empty, sizeof(config));
        set(&config, setting->key, text);
        char *item = written(&empty, setting->key);
        snprintf(json, sizeof(json), "{\"%s\": %s}", setting->key, item);
        parse(&config, json);
        assert_memory_equal(&config, &empty, sizeof(config));
        free(item);
    }
    struct vkn_config config = {.optimizer.milestones = {0.5f, 0, 0.9f}};
    char *item = written(&config, "optimizer.milestones");
    assert_string_equal(item, "[0.5,null,0.9]");
    free(item);
}

/* ---- points -------------------------------------------------------------------------------- */

static void read_points(const char *text, size_t count, const struct vkn_schedule_point *expected)
{
    struct vkn_config config = {.loss_scale.schedule = {{1, 2}, {3, 4}, {5, 6}, {7, 8}}};
    write_points(text);
    set(&config, "loss_scale.schedule", points_path);
    assert_memory_equal(config.loss_scale.schedule, expected, count * sizeof(*expected));
    for (size_t i = count; i < VKN_SCHEDULE_POINTS; i++)
        assert_true(config.loss_scale.schedule[i].value == 0.0f &&
                    config.loss_scale.schedule[i].step == 0);
}

static void reads_points(void **state)
{
    (void)state;
    static const struct vkn_schedule_point points[] = {{0, 1024}, {500, 65536}, {20000, 0.5}};
    read_points("0 1024\n500 65536\n20000 0.5\n", 3, points);
    read_points("# step scale\n\n  0,1024 # from the start\r\n\t500 , 65536\r\n2e4\t5e-1", 3,
                points);
    read_points("[[0, 1024], [500, 65536],\n [20000, 0.5]]\n", 3, points);
    read_points("\n [[0, 1024]]", 1, points);
    read_points("\xef\xbb\xbf"
                "0 1024\r\f500 65536 \v\r20000 0.5\r",
                3, points); /* with a byte order mark */
    read_points("\xef\xbb\xbf[[0, 1024]]", 1, points);
    read_points("0 1024", 1, points);
    char full[VKN_SCHEDULE_POINTS * 8] = "";
    struct vkn_schedule_point many[VKN_SCHEDULE_POINTS];
    for (unsigned i = 0; i < VKN_SCHEDULE_POINTS; i++) {
        snprintf(full + strlen(full), sizeof(full) - strlen(full), "%u 8\n", i);
        many[i] = (struct vkn_schedule_point){i, 8};
    }
    read_points(full, VKN_SCHEDULE_POINTS, many);
}

static void refuse_points(const char *text, const char *problem)
{
    write_points(text);
    char *message = base_format("%s: %s", points_path, problem);
    refuse("loss_scale.schedule", points_path, message);
    assert_null(strchr(vkn_last_error(), '\n'));
    free(message);
}

static void refuses_bad_points(void **state)
{
    (void)state;
    refuse_points("", "no line with a step and a scale");
    refuse_points("# nothing\n\n", "no line with a step and a scale");
    refuse_points("[]", "no line with a step and a scale");
    refuse_points("\xff\xfe"
                  "0",
                  "text in UTF-16; save it as UTF-8");
    refuse_points("0 8\n5\n", "line 2: not a step and a scale");
    refuse_points("0 8\n\n5 8 9\n", "line 3: not a step and a scale");
    refuse_points("five 8", "line 1: not a step and a scale");
    refuse_points("5 eight", "line 1: not a step and a scale");
    refuse_points("5x8", "line 1: not a step and a scale");
    refuse_points("1.5 8", "line 1: step 1.5 is not a whole number from 0 to 4294967295");
    refuse_points("-1 8", "line 1: step -1 is not a whole number");
    refuse_points("4294967296 8", "line 1: step 4294967296 is not a whole number");
    refuse_points("nan 8", "line 1: step nan is not a whole number");
    refuse_points("# a\n0 8\n20 8\n10 8\n", "line 4: step 10 does not come after step 20");
    refuse_points("20 8\n20 9\n", "line 2: step 20 does not come after step 20");
    refuse_points("0 0", "line 1: scale 0 is out of range (1e-06 to 8.5e+37)");
    refuse_points("0 -8", "line 1: scale -8 is out of range");
    refuse_points("0 inf", "line 1: scale inf is out of range");
    refuse_points("0 nan", "line 1: scale nan is out of range");
    refuse_points("0 1e38", "line 1: scale 1e+38 is out of range");
    refuse_points("[[0, 8], 5]", "[1]: not [step, scale]");
    refuse_points("[[0, 8], [5]]", "[1]: not [step, scale]");
    refuse_points("[[0, 8], [5, \"8\"]]", "[1]: not [step, scale]");
    refuse_points("[[5, 8], [0, 8]]", "[1]: step 0 does not come after step 5");
    refuse_points("[[0, 8],\n [5, 8}", "line 2");
    char many[(VKN_SCHEDULE_POINTS + 1) * 8] = "";
    for (unsigned i = 0; i <= VKN_SCHEDULE_POINTS; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "%u 8\n", i);
    refuse_points(many, "line 33: more than 32 points");
    assert_int_equal(base_file_replace(points_path, "0 8\0 9", 6), VKN_OK);
    refuse("loss_scale.schedule", points_path, "not a text file");
    char *below = base_format("%s/points", points_path), *message = base_format("%s: ", below);
    refuse("loss_scale.schedule", below, message);
    free(below);
    free(message);
    refuse_json("{\"loss_scale\": {\"schedule\": 5}}",
                "test.json: loss_scale.schedule: not a list of [step, scale]");
    refuse_json("{\"loss_scale\": {\"schedule\": {}}}", "not a list of [step, scale]");
    refuse_json("{\"loss_scale\": {\"schedule\": [[0, 8], [0, 9]]}}",
                "test.json: loss_scale.schedule[1]: step 0 does not come after step 0");
}

/* An empty list in a file removes an earlier list. */
static void empties_points(void **state)
{
    (void)state;
    struct vkn_config config = {.loss_scale.schedule = {{0, 8}}}, empty = {0};
    parse(&config, "{\"loss_scale\": {\"schedule\": []}}");
    assert_memory_equal(&config, &empty, sizeof(config));
}

/* The learning rate's points are named rates in messages. */
static void refuses_bad_rates(void **state)
{
    (void)state;
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"# nothing", "no line with a step and a rate"},
        {"0 1e-2\n5\n", "line 2: not a step and a rate"},
        {"0 0", "line 1: rate 0 is out of range (1e-12 to 10)"},
        {"5 11", "line 1: rate 11 is out of range"},
        {"[[0, 1e-2], 5]", "[1]: not [step, rate]"},
        {"5 1e-2\n5 1e-3", "line 2: step 5 does not come after step 5"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        write_points(cases[i].text);
        refuse("optimizer.rates", points_path, cases[i].problem);
    }
    refuse_json("{\"optimizer\": {\"rates\": 5}}",
                "test.json: optimizer.rates: not a list of [step, rate]");
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Checks the first six steps that `text` evaluates at; UINT32_MAX means none. */
static void assert_steps(const char *text, const uint64_t expected[6])
{
    struct vkn_config config = {.eval_every = {.every = 9, .factor = 9, .at = {1, 2, 3, 4}}};
    uint64_t step = 0;
    set(&config, "eval_every", text);
    for (size_t i = 0; i < 6; i++) {
        uint64_t next = config_next_step(&config.eval_every, step);
        if (next != expected[i])
            fail_msg("%s: after %llu comes %llu, not %llu", text, (unsigned long long)step,
                     (unsigned long long)next, (unsigned long long)expected[i]);
        step = next;
    }
}

#define NEVER UINT32_MAX

static void reads_steps(void **state)
{
    (void)state;
    assert_steps("500", (const uint64_t[]){500, 1000, 1500, 2000, 2500, 3000});
    assert_steps("1e3", (const uint64_t[]){1000, 2000, 3000, 4000, 5000, 6000});
    assert_steps("0", (const uint64_t[]){NEVER, NEVER, NEVER, NEVER, NEVER, NEVER});
    assert_steps("100,500,2000", (const uint64_t[]){100, 500, 2000, NEVER, NEVER, NEVER});
    assert_steps("100x2", (const uint64_t[]){100, 200, 400, 800, 1600, 3200});
    assert_steps("100x1.5", (const uint64_t[]){100, 150, 225, 338, 506, 759});
    assert_steps("2x1.1", (const uint64_t[]){2, 3, 4, 5, 6, 7}); /* no step twice */
    assert_steps("5e8x3", (const uint64_t[]){500000000, 1500000000, NEVER, NEVER, NEVER, NEVER});
    /* Resumed between two evaluations. */
    struct vkn_config config = {0};
    set(&config, "eval_every", "1k,2k");
    assert_int_equal(config_next_step(&config.eval_every, 1000), 2000);
    set(&config, "eval_every", "100x2");
    assert_int_equal(config_next_step(&config.eval_every, 399), 400);
    assert_int_equal(config_next_step(&config.eval_every, 400), 800);
    parse(&config, "{\"eval_every\": [7, 9]}");
    assert_int_equal(config_next_step(&config.eval_every, 7), 9);
    parse(&config, "{\"eval_every\": [8]}");
    assert_int_equal(config_next_step(&config.eval_every, 8), NEVER);
    parse(&config, "{\"eval_every\": 8}");
    assert_int_equal(config_next_step(&config.eval_every, 8), 16);
    parse(&config, "{\"eval_every\": []}");
    assert_int_equal(config_next_step(&config.eval_every, 8), NEVER);
}

static void refuses_bad_steps(void **state)
{
    (void)state;
    static const char *const bad[] = {"x",   "5x",  "x2",   "0x2", "5x2x2",
                                      "5xx", "a,b", "5,,6", "5,",  "5;6"};
    for (size_t i = 0; i < BASE_COUNT(bad); i++)
        refuse("eval_every", bad[i], "is not a number of steps, a list (100,500,2000) or a series");
    refuse("eval_every", "", "its value is missing");
    refuse("eval_every", "-1", "--set: eval_every: -1 is out of range (1 to 4294967295");
    refuse("eval_every", "4294967296", "out of range");
    refuse("eval_every", "1.5", "1.5 is not a whole number");
    refuse("eval_every", "100,500,400", "step 400 does not come after step 500");
    refuse("eval_every", "0,500", "step 0 does not come after step 0");
    refuse("eval_every", "100x1", "factor 1 is out of range (1.01 to 1024)");
    refuse("eval_every", "100x-2", "factor -2 is out of range");
    refuse("eval_every", "1.5x2", "1.5 is not a whole number");
    char many[256] = "1";
    for (unsigned i = 2; i <= VKN_STEPS + 1; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), ",%u", i);
    refuse("eval_every", many, "more than 32 steps");
    refuse_json("{\"eval_every\": [1, \"2\"]}", "test.json: eval_every: not a number");
    refuse_json("{\"eval_every\": {}}", "test.json: eval_every: not a number");
    refuse_json("{\"eval_every\": [2, 1]}", "step 1 does not come after step 2");
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void suggests_keys(void **state)
{
    (void)state;
    refuse("optimizer.lerning_rate", "1", "did you mean optimizer.learning_rate?");
    refuse("learning_rate", "1", "did you mean optimizer.learning_rate?");
    refuse("lerning_rate", "1", "did you mean optimizer.learning_rate?");
    refuse("step", "1", "did you mean steps?");
    refuse("grid", "1", "unknown key");
    refuse("completely.different.thing", "1", "unknown key; vknerf train --help lists all keys");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void reads_nested_and_flat(void **state)
{
    (void)state;
    struct vkn_config config = {.eval_every.every = 7};
    parse(&config, "{\"steps\": 100, \"grid\": {\"levels\": 8}, \"mlp.geometry\": 32,"
                   " \"seconds\": null, \"deterministic\": true}");
    assert_int_equal(config.steps, 100);
    assert_int_equal(config.grid.levels, 8);
    assert_int_equal(config.mlp.geometry, 32);
    assert_int_equal(config.eval_every.every, 7);
    assert_true(config.deterministic);
}

static void refuses_bad_json(void **state)
{
    (void)state;
    refuse_json("{\"steps\": 1", "test.json: line 1");
    refuse_json("[1]", "test.json: not a JSON object");
    refuse_json("{\"stepz\": 1}", "test.json: stepz: unknown key; did you mean steps?");
    refuse_json("{\"steps\": 3, \"grid\": {\"level\": 1}}",
                "test.json: grid.level: unknown key; did you mean grid.levels?");
    refuse_json("{\"grid\": 3}", "test.json: grid: unknown key");
    refuse_json("{\"steps\": 3, \"grid\": {\"levels\": true}}", "grid.levels: not a number");
    refuse_json("{\"steps\": {}}", "test.json: steps: not a number");
    refuse_json("{\"steps\": 1e300}", "test.json: steps: 1e+300 is out of range");
    refuse_json("{\"deterministic\": 1}", "test.json: deterministic: not true or false");
    refuse_json("{\"background\": 1}", "test.json: background: not a string");
    refuse_json("{\"optimizer\": {\"milestones\": [1]}}", "not a list of 3 numbers");
    refuse_json("{\"optimizer\": {\"milestones\": 1}}", "not a list of 3 numbers");
    refuse_json("{\"optimizer\": {\"milestones\": [0.1, 0.2, \"x\"]}}", "not a number");
}

static void reads_the_config_of_a_run(void **state)
{
    (void)state;
    struct vkn_config config = {0};
    parse(&config, "{\"steps\": 3, \"scene\": {\"downscale\": 2, \"path\": \"/x\"},"
                   " \"device\": \"d\", \"driver\": \"d\", \"version\": \"1\","
                   " \"command\": [\"vknerf\", \"train\"]}");
    assert_int_equal(config.scene.downscale, 2);
    assert_int_equal(vkn_config_parse_json(&config, "test.json", "{\"other\": {\"x\": 1}}", true),
                     VKN_OK);
}

static void reads_files(void **state)
{
    (void)state;
    char path[] = "/tmp/vknerf-config-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    struct vkn_config config = {0};
    assert_int_equal(base_file_replace(path, "{\"seed\": 9}", 11), VKN_OK);
    assert_int_equal(vkn_config_read_json(&config, path), VKN_OK);
    assert_int_equal(config.seed, 9);
    static const char marked[] = "\xef\xbb\xbf// saved on Windows\r\n{\"seed\": 10}\r\n";
    assert_int_equal(base_file_replace(path, marked, sizeof marked - 1), VKN_OK);
    assert_int_equal(vkn_config_read_json(&config, path), VKN_OK);
    assert_int_equal(config.seed, 10);
    unlink(path);
    assert_int_equal(vkn_config_read_json(&config, path), VKN_BAD_INPUT);
    assert_error(path);
}

/* With contraction, steps of constant size would never reach the far end of a ray. */
static void contraction_needs_growing_steps(void **state)
{
    (void)state;
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    const struct gpu_capabilities device = {.type = GPU_CPU};
    struct vkn_config config = {.scene.contraction = VKN_CONTRACTION_CUBE};
    assert_int_equal(setup_resolve_config(&config, &scene, &device), VKN_OK);
    assert_true(config.march.cone_angle > 0);
    assert_int_equal(config.grid.finest, 2 * 512);
    config.march.cone_angle = -1;
    assert_int_equal(setup_resolve_config(&config, &scene, &device), VKN_BAD_INPUT);
    assert_error("config: march.cone_angle: -1: contracted space");
    config.scene.contraction = VKN_CONTRACTION_NONE;
    assert_int_equal(setup_resolve_config(&config, &scene, &device), VKN_OK);
}

/* ---- command line -------------------------------------------------------------------------- */

/* Expects that `vknerf train` with these arguments fails with the message. */
static void assert_command(const char *arguments, const char *expected)
{
    char command[512], how[BASE_HOW_SIZE];
    snprintf(command, sizeof(command), "train assets/demo --quiet --out %s.run %s", points_path,
             arguments);
    char *output = own_program_run(command, -1, how);
    assert_string_not_equal(how, "");
    if (!strstr(output, expected))
        fail_msg("train %s: \"%s\" is not in \"%s\"", arguments, expected, output);
    free(output);
}

/* Every option sets its key: the message of a refused value names both. */
static void options_set_keys(void **state)
{
    (void)state;
    static const struct {
        const char *option, *key, *bad;
    } options[] = {
        {"--steps", "steps", "-1"},
        {"--seconds", "seconds", "-1"},
        {"--loss-scale", "loss_scale.initial", "static:x"},
        {"--lr-schedule", "optimizer.final_rate", "cosine:x"},
        {"--lr-schedule", "optimizer.final_rate", "exponential:x"},
        {"--downscale", "scene.downscale", "-1"},
        {"--image-memory", "scene.image_budget", "-1"},
        {"--background", "background", "blue"},
        {"--seed", "seed", "-1"},
        {"--eval-every", "eval_every", "-1"},
        {"--save-every", "save_every", "-1"},
        {"--save-seconds", "save_seconds", "-2"},
        {"--keep", "keep", "-1"},
        {"--set", "march.occupancy_decay", "march.occupancy_decay=2"},
    };
    for (size_t i = 0; i < BASE_COUNT(options); i++) {
        char arguments[128], expected[128];
        snprintf(arguments, sizeof(arguments), "%s %s", options[i].option, options[i].bad);
        snprintf(expected, sizeof(expected), "%s: %s: ", options[i].option, options[i].key);
        assert_command(arguments, expected);
    }
    /* Options without a value are checked by a combination that is refused. */
    assert_command("--downscale 8 --progressive --deterministic --seconds 5",
                   "progressive.enabled: in a deterministic run the reduction depends on");
}

/* Renamed keys and values are read under their old names, on the command line and in files. */
static void reads_renamed_settings(void **state)
{
    (void)state;
    static const struct {
        const char *old, *old_value, *key, *value;
    } renamed[] = {
        {"scene.placed", "true", "scene.fixed_transform", "true"},
        {"mlp.checkpoint", "on", "mlp.activation_checkpointing", "on"},
        {"dynamic.rate", "0.5", "dynamic.learning_rate_factor", "0.5"},
        {"dynamic.time_slices", "3", "dynamic.time_bins", "3"},
        {"policy.products", "f32", "policy.matmul", "f32"},
        {"policy.sums", "f16", "policy.accumulators", "f16"},
        {"policy.grid_sums", "f16", "policy.grid_gradients", "f16"},
        {"policy.weight_sums", "f16", "policy.weight_gradients", "f16"},
        {"policy.masters", "bf16", "policy.master_parameters", "bf16"},
        {"march.decay", "0.5", "march.occupancy_decay", "0.5"},
        {"march.threshold", "0.5", "march.occupancy_threshold", "0.5"},
        {"optimizer.average_decay", "0.5", "optimizer.ema_decay", "0.5"},
        {"loss_scale.falls", "7", "loss_scale.max_backoffs", "7"},
        {"loss_scale.fall_factor", "0.25", "loss_scale.rate_cut_factor", "0.25"},
        {"parallel.virtual", "2", "parallel.ranks_per_device", "2"},
        {"parallel.wire", "f16", "parallel.communication_type", "f16"},
        {"parallel.pieces", "3", "parallel.buckets", "3"},
        {"gradient_sums", "float", "gradient_sums", "f32"},
        {"gradient_sums", "swap", "gradient_sums", "cas"},
        {"gradient_sums", "half", "gradient_sums", "f16"},
        {"parallel.mode", "exact", "parallel.mode", "synchronous"},
    };
    for (size_t i = 0; i < BASE_COUNT(renamed); i++) {
        struct vkn_config old = {0}, set = {0}, read = {0}, now = {0};
        char json[128];
        assert_int_equal(vkn_config_set(&old, NULL, renamed[i].old, renamed[i].old_value), VKN_OK);
        assert_int_equal(vkn_config_set(&set, NULL, renamed[i].key, renamed[i].value), VKN_OK);
        assert_memory_equal(&old, &set, sizeof old);
        assert_memory_not_equal(&old, &now, sizeof old);
        bool quoted = isalpha((unsigned char)renamed[i].old_value[0]) &&
                      strcmp(renamed[i].old_value, "true") != 0;
        snprintf(json, sizeof json, "{\"%s\": %s%s%s}", renamed[i].old, quoted ? "\"" : "",
                 renamed[i].old_value, quoted ? "\"" : "");
        assert_int_equal(vkn_config_parse_json(&read, NULL, json, true), VKN_OK);
        assert_memory_equal(&read, &set, sizeof read);
        char *written = vkn_config_write_json(&read);
        assert_int_equal(vkn_config_parse_json(&now, NULL, written, false), VKN_OK);
        assert_memory_equal(&now, &set, sizeof now);
        free(written);
    }
    struct vkn_config config = {0};
    assert_int_equal(vkn_config_parse_json(&config, NULL,
                                           "{\"parallel\": {\"wire\": \"f16\", \"pieces\": 3}}",
                                           false),
                     VKN_OK);
    assert_true(config.parallel.communication_type == VKN_COMMUNICATION_F16 &&
                config.parallel.buckets == 3);
    assert_int_equal(vkn_config_set(&config, "--set", "march.threshold", "no"), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "--set: march.occupancy_threshold: "));
}

static void suggests_for_synonyms(void **state)
{
    (void)state;
    static const struct {
        const char *word, *key;
    } words[] = {{"optimizer.lr", "optimizer.learning_rate"},
                 {"lr", "optimizer.learning_rate"},
                 {"LR", "optimizer.learning_rate"},
                 {"grid.log2_hashmap_size", "grid.log2_entries"},
                 {"encoding.n_levels", "grid.levels"},
                 {"batch-size", "batch.samples"},
                 {"max_num_iterations", "steps"},
                 {"base_resolution", "grid.coarsest"},
                 {"near_plane", "march.near_distance"},
                 {"learning_rate", "optimizer.learning_rate"},
                 {"loss_scale.growht", "loss_scale.growth"},
                 {"min_loss_scale", "loss_scale.minimum"},
                 {"loss_scale_window", "loss_scale.interval"},
                 {"fp16.initial_scale_power", "loss_scale.initial"},
                 {"mlp.width", "mlp.density_width"},
                 {"depth_loss_mult", "loss.depth"}};
    for (size_t i = 0; i < BASE_COUNT(words); i++) {
        char expected[160];
        struct vkn_config config = {0};
        snprintf(expected, sizeof(expected), "--set: %s: unknown key; did you mean %s?",
                 words[i].word, words[i].key);
        assert_int_equal(vkn_config_set(&config, "--set", words[i].word, "1"), VKN_BAD_INPUT);
        assert_string_equal(vkn_last_error(), expected);
    }
    for (size_t i = 0; i < config_synonym_count; i++) {
        const struct config_synonym *row = &config_synonyms[i];
        if (strchr(row->name, '.') != NULL && config_find(row->name) == NULL)
            fail_msg("%s: there is no setting %s", row->word, row->name);
        if (config_find(row->word) != NULL && strncmp(row->name, "--", 2) != 0)
            fail_msg("%s: is a setting itself", row->word);
        for (size_t k = 0; k < i; k++)
            if (strcmp(config_synonyms[k].word, row->word) == 0 &&
                strcmp(config_synonyms[k].name, row->name) == 0)
                fail_msg("%s: twice", row->word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suggests_for_synonyms),
        cmocka_unit_test(reads_renamed_settings),
        cmocka_unit_test(accepts_or_refuses_absurd_values),
        cmocka_unit_test(every_key_round_trips),
        cmocka_unit_test(every_field_has_a_key),
        cmocka_unit_test(written_json_is_nested),
        cmocka_unit_test(help_names_every_key),
        cmocka_unit_test(lists_every_setting),
        cmocka_unit_test(defaults_are_what_help_says),
        cmocka_unit_test(accepts_numbers_and_names),
        cmocka_unit_test(accepts_units),
        cmocka_unit_test(refuses_bad_values),
        cmocka_unit_test(numbers_have_ranges),
        cmocka_unit_test(zeros_mean_zero),
        cmocka_unit_test(defaults_are_written),
        cmocka_unit_test(reads_points),
        cmocka_unit_test(refuses_bad_points),
        cmocka_unit_test(empties_points),
        cmocka_unit_test(refuses_bad_rates),
        cmocka_unit_test(reads_steps),
        cmocka_unit_test(refuses_bad_steps),
        cmocka_unit_test(suggests_keys),
        cmocka_unit_test(reads_nested_and_flat),
        cmocka_unit_test(refuses_bad_json),
        cmocka_unit_test(reads_the_config_of_a_run),
        cmocka_unit_test(reads_files),
        cmocka_unit_test(contraction_needs_growing_steps),
        cmocka_unit_test(options_set_keys),
    };
    return cmocka_run_group_tests(tests, make_points_file, remove_points_file);
}
