/* vknerf certify: tests a device, and writes its certificate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <vknerf/certify.h>

#include "cli/cli.h"

/* ---- result ---------------------------------------------------------------------------------- */

static bool has_passed(const cJSON *test)
{
    return strcmp(cli_text_of(test, "result"), "passed") == 0;
}

static void print_failures(const cJSON *part)
{
    const cJSON *test;
    const char *name = cli_text_of(part, "part"), *error = cli_text_of(part, "error");
    if (error[0])
        printf("FAILED: %s: %s\n", name, error);
    cJSON_ArrayForEach (test, cJSON_GetObjectItemCaseSensitive(part, "tests")) {
        if (has_passed(test))
            continue;
        const char *pass = cli_text_of(test, "pass"), *backend = cli_text_of(test, "backend"),
                   *feature = cli_text_of(test, "feature");
        printf("FAILED: %s: %s: %s", name, cli_text_of(test, "test"), cli_text_of(test, "message"));
        printf("%s%s%s%s", pass[0] ? "; last pass: " : "", pass, backend[0] ? ", " : "", backend);
        printf("%s%s\n", feature[0] ? "; switched off: " : "", feature);
    }
}

static void print_certificate(const cJSON *json, const char *out)
{
    const cJSON *part, *device = cJSON_GetObjectItemCaseSensitive(json, "device");
    cJSON_ArrayForEach (part, cJSON_GetObjectItemCaseSensitive(json, "parts"))
        print_failures(part);
    printf("%s (%s): %.0f tests, %.0f failed, %.0f s\n", cli_text_of(device, "name"),
           cli_text_of(device, "driver"), cli_number_of(json, "tests"),
           cli_number_of(json, "failed"), cli_number_of(json, "seconds"));
    printf("certificate: %s/certificate.html\n", out);
}

static int print_result(const struct vkn_certify_params *params, char *text, bool json)
{
    cJSON *certificate = cJSON_Parse(text);
    bool failed = cli_number_of(certificate, "failed") != 0;
    int code;
    if (json) {
        code = cli_print_json(text);
    } else {
        print_certificate(certificate, params->out);
        code = cli_finish_output();
        free(text);
    }
    cJSON_Delete(certificate);
    return code == VKN_OK && failed ? VKN_ERROR : code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool needs_scene(const char *only)
{
    return !only || strstr(only, "trainings");
}

static int certify(struct vkn_certify_params *params, bool json)
{
    char *scene = NULL, *text = NULL;
    int code = cli_find_program(&params->command, &params->command_count);
    if (code != OPTIONS_GO_ON)
        return code;
    code = needs_scene(params->only) ? cli_find_bundled(&scene) : VKN_OK;
    if (code != VKN_OK)
        return code;
    params->scene = scene;
    vkn_status status = vkn_certify(params, &text);
    free(scene);
    code = text ? print_result(params, text, json) : VKN_OK;
    return status != VKN_OK ? cli_status(status) : code;
}

int cmd_certify(int argc, char **argv)
{
    struct vkn_job job = {.size = sizeof job, .stop = &cli_stop};
    struct vkn_certify_params params = {.size = sizeof params, .job = &job};
    const char *part = NULL, *after = NULL, *positional = NULL;
    bool json = false;
    const struct option options[] = {
        {OPTION("--out", "DIR", TEXT, (void *)&params.out,
                "folder for certificate.json, certificate.html, trainings and logs")},
        {OPTION("--full", NULL, FLAG, &params.full,
                "every case and longer trainings on CPU devices, all of vknerf bench on GPUs")},
        {OPTION("--only", "PART,...", TEXT, (void *)&params.only,
                "only these parts, as certificate.json names them")},
        {OPTION("--limit", "S", COUNT, &params.limit,
                "seconds without progress after which a part counts as hung; default 120, on CPU "
                "devices 600")},
        {OPTION("--part", "PART", TEXT, (void *)&part,
                "run one part in this process, and print its events as JSON lines")},
        {OPTION("--after", "TEST", TEXT, (void *)&after,
                "with --part: begin with the test that follows TEST")},
        {OPTION("--json", NULL, FLAG, &json, "print the certificate as one JSON object")},
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "certify",
        .usage = "certify --out DIR [OPTION ...]",
        .summary = "Tests the device: every pass of training and rendering is compared with the "
                   "same\ncomputation in double precision, in every precision, matrix shape and "
                   "kind of\ngradient sums; then the bundled scene is trained in every precision, "
                   "and speed is\nmeasured. Each part runs in a process of its own, so that a hang "
                   "ends only that\npart. DIR gets certificate.html, to read and to send to "
                   "others. Features whose\ntests fail are switched off on this device.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
    };
    int code = options_parse(&command, argc, argv, &positional);
    if (code != OPTIONS_GO_ON)
        return code;
    if (part)
        return cli_status(vkn_certify_part(&job, part, after, params.full));
    if (!params.out)
        return cli_fail(VKN_BAD_INPUT, "certify: --out DIR is missing; see vknerf certify --help");
    return certify(&params, json);
}
