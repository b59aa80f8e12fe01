/* vknerf bench: measures the throughput of a device and prints it as tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <vknerf/bench.h>

#include "cli/cli.h"

/* ---- the table ------------------------------------------------------------------------------- */

const char *cli_text_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

double cli_number_of(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Writes a rate such as "12.3 GFLOP/s". */
static void write_rate(double rate, const char *unit, char *text, size_t size)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t prefix = 0;
    for (; rate >= 999.5 && prefix + 1 < sizeof(prefixes) / sizeof(prefixes[0]); prefix++)
        rate /= 1000;
    snprintf(text, size, "%.*f %s%s",
             rate < 9.995   ? 2
             : rate < 99.95 ? 1
                            : 0,
             rate, prefixes[prefix], unit);
}

/* Writes a time such as "1.23 ms +-2%": the median, and half the interquartile range over the
 * median. */
static void write_time(const cJSON *seconds, char *text, size_t size)
{
    double median = cli_number_of(seconds, "median");
    double spread =
        (cli_number_of(seconds, "upper_quartile") - cli_number_of(seconds, "lower_quartile")) /
        (2 * median);
    double scaled = median < 1e-3 ? median * 1e6 : median < 1 ? median * 1e3 : median;
    snprintf(text, size, "%.*f %s +-%.1f%%",
             scaled < 10    ? 2
             : scaled < 100 ? 1
                            : 0,
             scaled,
             median < 1e-3 ? "us"
             : median < 1  ? "ms"
                           : "s",
             100 * spread);
}

static void write_share(double share, const char *unit, char *text, size_t size)
{
    if (isfinite(share))
        snprintf(text, size, "%.1f%s", *unit ? 100 * share : share, unit);
    else
        snprintf(text, size, "-");
}

static void print_result(const cJSON *result)
{
    char rate[32], time[32], share[16], ratio[16];
    const char *fault = cli_text_of(result, "fault");
    printf("%-5s %-32s %-32s ", cli_text_of(result, "suite"), cli_text_of(result, "case"),
           cli_text_of(result, "path"));
    if (fault[0]) {
        printf("%s\n", fault);
        return;
    }
    write_rate(cli_number_of(result, "rate"), cli_text_of(result, "unit"), rate, sizeof(rate));
    write_time(cJSON_GetObjectItemCaseSensitive(result, "seconds"), time, sizeof(time));
    write_share(cli_number_of(result, "share"), "%", share, sizeof(share));
    double vendor = cli_number_of(result, "vendor_ratio");
    snprintf(ratio, sizeof(ratio), isfinite(vendor) ? "%.2f" : "-", vendor);
    printf("%15s %17s %7s %7s\n", rate, time, share, ratio);
}

static int print_table(const char *text)
{
    cJSON *bench = cJSON_Parse(text);
    if (!bench)
        return cli_fail(VKN_ERROR, "out of memory");
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(bench, "device"), *result;
    const cJSON *tuning = cJSON_GetObjectItemCaseSensitive(bench, "tuning");
    const cJSON *programs = cJSON_GetObjectItemCaseSensitive(bench, "programs");
    const cJSON *sampling = cJSON_GetObjectItemCaseSensitive(bench, "sampling");
    printf("%s, %s\n", cli_text_of(device, "name"), cli_text_of(device, "driver"));
    if (tuning || programs || sampling) {
        if (tuning)
            cli_print_tuning(tuning);
        else if (programs)
            cli_print_programs(programs);
        else
            cli_print_sampling(sampling);
        cJSON_Delete(bench);
        return cli_finish_output();
    }
    if (cli_text_of(bench, "vendor_library")[0])
        printf("vendor's library: %s\n", cli_text_of(bench, "vendor_library"));
    printf("%-5s %-32s %-32s %15s %17s %7s %7s\n", "suite", "case", "path", "rate", "time",
           "of peak", "/vendor");
    cJSON_ArrayForEach (result, cJSON_GetObjectItemCaseSensitive(bench, "results"))
        print_result(result);
    cJSON_Delete(bench);
    return cli_finish_output();
}

/* ---- the command ----------------------------------------------------------------------------- */

static int report(const struct vkn_bench_params *params, char *text, bool json, vkn_status status)
{
    if (!text)
        return cli_status(status);
    int code = json ? cli_print_json(text) : print_table(text);
    if (!json)
        free(text);
    if (params->out && code == VKN_OK)
        fprintf(stderr, "%s: bench.json, bench.svg\n", params->out);
    return status == VKN_OK ? code : cli_status(status);
}

/* Sets environment variables of drivers as the suite needs them. */
static void prepare(const struct vkn_bench_params *params)
{
    bool trains = params->tune || params->suite == VKN_BENCH_SAMPLING;
    if (trains && params->precision <= VKN_PRECISION_FP32 && !getenv("VKNERF_MEASURE"))
        vkn_prefer_wide_vectors();             /* as in vknerf train */
    if (params->suite == VKN_BENCH_PROGRAMS) { /* disables caches, so that drivers compile */
        setenv("MESA_SHADER_CACHE_DISABLE", "true", 0);
        setenv("__GL_SHADER_DISK_CACHE", "0", 0);
    }
}

static int run(struct vkn_bench_params *params, bool json)
{
    char *scene = NULL, *text = NULL;
    vkn_log_quiet(params->job->quiet);
    if (params->suite == VKN_BENCH_SAMPLING && !params->scene) {
        int found = cli_find_bundled(&scene);
        if (found != VKN_OK)
            return found;
        params->scene = scene;
    }
    prepare(params);
    vkn_status status = vkn_bench(params, &text);
    free(scene);
    return report(params, text, json, status);
}

static int run_with(struct vkn_bench_params *params, const struct options_settings *settings,
                    bool json)
{
    vkn_config *config = NULL;
    vkn_status status = vkn_config_create(&config);
    if (status == VKN_OK)
        status = options_settings_apply(settings, config);
    params->config = config;
    int code = status == VKN_OK ? run(params, json) : cli_status(status);
    vkn_config_destroy(&config);
    return code;
}

/* An option that sets a setting. */
#define SETTING(option, text, setting, helps) \
    {.name = (option),                        \
     .value = (text),                         \
     .help = (helps),                         \
     .kind = OPTION_SETTING,                  \
     .target = &settings,                     \
     .key = (setting)}

int cmd_bench(int argc, char **argv)
{
    static const char *const suites[] = {"all",  "gemm",     "mlp",      "grid",
                                         "step", "programs", "sampling", NULL};
    struct vkn_job job = {.stop = &cli_stop};
    struct vkn_bench_params params = {.job = &job};
    struct options_settings settings;
    bool json = false;
    const struct option options[] = {
        {OPTION("--suite", "gemm|mlp|grid|step|all|programs|sampling", CHOICE, &params.suite,
                "what to measure; default all: matrix products, MLPs, hash grid, training step. "
                "programs: compiler statistics of every shader. sampling: training with each "
                "march.sampling"),
         .choices = suites},
        {OPTION("--precision", CLI_NAMES(VKN_PRECISIONS), CHOICE, &params.precision,
                "measure only this precision; default all that the device offers"),
         .choices = cli_precisions},
        {OPTION("--tune", NULL, FLAG, &params.tune,
                "instead of a suite: find the backend's fastest tile sizes and store them")},
        {OPTION(
            "--quick", NULL, FLAG, &params.quick,
            "only the smallest cases, few repetitions; programs: only pipelines of the precision "
            "that auto is expected to choose")},
        {OPTION("--full", NULL, FLAG, &params.full, "all sizes, on CPU devices too")},
        {OPTION("--flexible", NULL, FLAG, &params.flexible,
                "also matrix shapes that only VK_NV_cooperative_matrix2 offers")},
        {OPTION("--batch", "N", COUNT, &params.batch, "only N rows or samples, a multiple of 512")},
        {OPTION("--width", "N", COUNT, &params.width, "only MLPs of width N, 16 to 128")},
        {OPTION("--depth", "N", COUNT, &params.depth, "only MLPs of N layers, 1 to 8")},
        {OPTION("--entries", "N", COUNT, &params.log2_entries, "only hash tables of 2^N entries")},
        {OPTION("--repetitions", "N", COUNT, &params.repetitions,
                "number of timed runs of a case; default 20, on CPU devices 5")},
        {OPTION("--scene", "SCENE", TEXT, &params.scene,
                "scene of the training step; default synthetic; for sampling the bundled one")},
        CLI_FORMAT_OPTION(params.format),
        SETTING("--downscale", "K", "scene.downscale",
                "for sampling: factor by which images are reduced"),
        SETTING("--seconds", "S", "seconds",
                "for sampling: training time of each run in seconds; default 30, with --quick 1"),
        SETTING("--seed", "N", "seed",
                "for sampling: seed of the random number generators; default 0"),
        {OPTION("--seeds", "N", COUNT, &params.seeds,
                "for sampling: number of seeds, from --seed on; default 1")},
        {OPTION("--set", "KEY=VALUE", ASSIGN, &settings,
                "for sampling: any setting by its key, see vknerf train --help; repeatable")},
        {OPTION("--out", "DIR", TEXT, &params.out, "folder for bench.json and a chart, bench.svg")},
        {OPTION("--json", NULL, FLAG, &json, "print the results as one JSON object")},
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "bench",
        .usage = "bench [OPTION ...]",
        .summary =
            "Measures the throughput of the device in every precision that it offers, as a share\n"
            "of its peaks. The same run measures the peaks of arithmetic and memory. Each case is\n"
            "compared with a reference before it is timed. docs/bench.md says what is counted.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
    };
    if (!options_settings_begin(&settings, argc))
        return cli_fail(VKN_ERROR, "out of memory");
    const char *none;
    int code = options_parse(&command, argc, argv, &none);
    if (code == OPTIONS_GO_ON)
        code = run_with(&params, &settings, json);
    options_settings_end(&settings);
    return code;
}
