/* Implements vkn_certify: runs the parts in processes of their own and writes the certificate. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <vknerf/certify.h>

#include "certify/internal.h"
#include "report/report.h"

/* ---- events of a part ------------------------------------------------------------------------ */

/* Adds a test to the running part. */
static void add_test(struct certificate *c, cJSON *test)
{
    cJSON *notes = cJSON_DetachItemFromObjectCaseSensitive(c->part, "notes");
    if (notes)
        cJSON_AddItemToObject(test, "notes", notes);
    cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(c->part, "tests"), test);
    c->test[0] = '\0';
    c->done++;
}

static void add_note(struct certificate *c, const char *note)
{
    cJSON *notes = cJSON_GetObjectItemCaseSensitive(c->part, "notes");
    if (!notes)
        notes = cJSON_AddArrayToObject(c->part, "notes");
    cJSON_AddItemToArray(notes, cJSON_CreateString(note));
}

static void read_device(struct certificate *c, cJSON *event)
{
    cJSON *device = cJSON_DetachItemFromObjectCaseSensitive(event, "device");
    c->is_cpu = strcmp(base_json_text(device, "type"), "cpu") == 0;
    cJSON_AddItemToObject(c->json, "device", device);
    if (cJSON_HasObjectItem(event, "cache"))
        c->cache = base_format("%s", base_json_text(event, "cache"));
}

static void show_progress(struct certificate *c)
{
    char what[160];
    snprintf(what, sizeof what, "%s: %s", base_json_text(c->part, "part"), c->test);
    report_progress_count(c->progress, what, c->done, c->total);
}

/* Reads an event of the running part. */
static void read_event(struct certificate *c, const char *line)
{
    cJSON *event = NULL;
    if (base_json_parse("certify", line, strlen(line), &event) != VKN_OK)
        return; /* what a driver prints */
    if (cJSON_HasObjectItem(event, "begin")) {
        snprintf(c->test, sizeof c->test, "%s", base_json_text(event, "begin"));
        c->pass[0] = '\0';
        show_progress(c);
    } else if (cJSON_HasObjectItem(event, "pass")) {
        snprintf(c->pass, sizeof c->pass, "%s", base_json_text(event, "pass"));
    }
    if (cJSON_HasObjectItem(event, "note"))
        add_note(c, base_json_text(event, "note"));
    if (cJSON_HasObjectItem(event, "device"))
        read_device(c, event);
    if (cJSON_HasObjectItem(event, "error"))
        snprintf(c->error, sizeof c->error, "%s", base_json_text(event, "error"));
    if (cJSON_HasObjectItem(event, "result"))
        add_test(c, event);
    else
        cJSON_Delete(event);
}

/* ---- running the parts ----------------------------------------------------------------------- */

static bool is_wanted(const struct certificate *c, const char *part)
{
    return !c->params->only || base_list_has(c->params->only, part);
}

/* Records a test that did not come back. */
static void add_lost_test(struct certificate *c, const char *how)
{
    cJSON *test = cJSON_CreateObject();
    bool hung = strncmp(how, "hung", strlen("hung")) == 0;
    cJSON_AddStringToObject(test, "result", hung ? "hung" : "crashed");
    cJSON_AddStringToObject(test, "test", c->test);
    cJSON_AddStringToObject(test, "message", how);
    cJSON_AddStringToObject(test, "pass", c->pass);
    add_test(c, test);
}

/* Runs a process with the tests of a part after `after`. Sets *again to whether tests are left
 * because the process ended before all had run. */
static vkn_status run_process(struct certificate *c, const char *name, const char *after,
                              bool *again)
{
    const char *arguments[8] = {"certify", "--part", name};
    size_t count = 3;
    char how[BASE_HOW_SIZE];
    if (c->params->full)
        arguments[count++] = "--full";
    if (after) {
        arguments[count++] = "--after";
        arguments[count] = after;
    }
    c->test[0] = c->error[0] = '\0';
    BASE_TRY(certify_run(c, arguments, read_event, how));
    *again = c->test[0] != '\0';
    if (*again)
        add_lost_test(c, how);
    else if (how[0])
        cJSON_AddStringToObject(c->part, "error", c->error[0] ? c->error : how);
    return VKN_OK;
}

/* A process that ends early without a word must not look like one without failures. */
static void check_complete(struct certificate *c, size_t tests_of_part)
{
    const cJSON *tests = cJSON_GetObjectItemCaseSensitive(c->part, "tests");
    int expected = (int)tests_of_part;
    char message[64];
    if (cJSON_GetArraySize(tests) == expected || cJSON_HasObjectItem(c->part, "error"))
        return;
    snprintf(message, sizeof message, "%d of %d tests have run", cJSON_GetArraySize(tests),
             expected);
    cJSON_AddStringToObject(c->part, "error", message);
}

static vkn_status run_part(struct certificate *c, const char *name, const char *kernels,
                           size_t tests_of_part)
{
    bool again = true;
    char after[sizeof c->test] = "";
    c->part = cJSON_CreateObject();
    cJSON_AddItemToArray(c->parts, c->part);
    cJSON_AddStringToObject(c->part, "part", name);
    cJSON_AddStringToObject(c->part, "kernels", kernels);
    cJSON_AddArrayToObject(c->part, "tests");
    while (again) {
        BASE_TRY(run_process(c, name, after[0] ? after : NULL, &again));
        const cJSON *tests = cJSON_GetObjectItemCaseSensitive(c->part, "tests");
        const cJSON *last = cJSON_GetArrayItem(tests, cJSON_GetArraySize(tests) - 1);
        snprintf(after, sizeof after, "%s", base_json_text(last, "test"));
    }
    check_complete(c, tests_of_part);
    return VKN_OK;
}

/* Opens the device in a process of its own, and finds out what it is. */
static vkn_status run_device(struct certificate *c)
{
    char how[BASE_HOW_SIZE] = "";
    bool again;
    c->part = cJSON_CreateObject();
    vkn_status status = run_process(c, CERTIFY_DEVICE, NULL, &again);
    snprintf(how, sizeof how, "%s", base_json_text(c->part, "error"));
    cJSON_Delete(c->part);
    c->part = NULL;
    if (status == VKN_OK && !cJSON_HasObjectItem(c->json, "device"))
        return base_fail(VKN_NO_DEVICE, "%s", c->error[0] ? c->error : how);
    return status;
}

/* What is done with a part: its name, the kernels that run ("cpu" or "gpu"), its number of tests.
 */
typedef vkn_status part_visit(struct certificate *c, const char *name, const char *kernels,
                              size_t tests);

static vkn_status count_part(struct certificate *c, const char *name, const char *kernels,
                             size_t tests)
{
    (void)name;
    (void)kernels;
    c->total += tests;
    return VKN_OK;
}

/* Visits the wanted parts of passes; on a CPU device first all with its own kernels, then those
 * that also run with the kernels of GPUs. */
static vkn_status visit_parts(struct certificate *c, part_visit *visit)
{
    const unsigned all = CERTIFY_CPU_KERNELS | CERTIFY_GPU_KERNELS;
    for (size_t i = 0; i < certify_part_count; i++) {
        const struct certify_part *part = certify_parts[i];
        if (is_wanted(c, part->name))
            BASE_TRY(visit(c, part->name, c->is_cpu ? "cpu" : "gpu",
                           certify_count_tests(part, c->is_cpu ? CERTIFY_CPU_KERNELS : all)));
    }
    for (size_t i = 0; i < certify_part_count && c->is_cpu; i++) {
        size_t tests = certify_count_tests(certify_parts[i], CERTIFY_GPU_KERNELS);
        char name[64];
        snprintf(name, sizeof name, "%s" CERTIFY_GPU_SUFFIX, certify_parts[i]->name);
        if (tests > 0 && is_wanted(c, name))
            BASE_TRY(visit(c, name, "gpu", tests));
    }
    return VKN_OK;
}

static vkn_status run_parts(struct certificate *c)
{
    BASE_TRY(visit_parts(c, run_part));
    if (is_wanted(c, CERTIFY_TRAININGS))
        BASE_TRY(certify_trainings(c));
    return is_wanted(c, CERTIFY_BENCH) ? certify_bench(c) : VKN_OK;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Adds a feature that a failed test needs, once. */
static void switch_off(cJSON *list, const cJSON *test)
{
    const char *feature = base_json_text(test, "feature");
    const cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (strcmp(base_json_text(item, "feature"), feature) == 0)
            return;
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "feature", feature);
    cJSON_AddStringToObject(entry, "test", base_json_text(test, "test"));
    cJSON_AddStringToObject(entry, "pass", base_json_text(test, "pass"));
    cJSON_AddItemToArray(list, entry);
}

/* Adds the numbers of tests, and what is switched off because tests have failed. */
static void add_verdict(struct certificate *c, bool complete)
{
    size_t tests = 0, failed = 0;
    cJSON *off = cJSON_CreateArray();
    const cJSON *part, *test;
    cJSON_ArrayForEach (part, c->parts) {
        failed += cJSON_HasObjectItem(part, "error");
        cJSON_ArrayForEach (test, cJSON_GetObjectItemCaseSensitive(part, "tests")) {
            bool passed = strcmp(base_json_text(test, "result"), "passed") == 0;
            tests++;
            failed += !passed;
            if (!passed && base_json_text(test, "feature")[0])
                switch_off(off, test);
        }
    }
    cJSON_AddBoolToObject(c->json, "complete", complete && !c->params->only);
    cJSON_AddNumberToObject(c->json, "tests", (double)tests);
    cJSON_AddNumberToObject(c->json, "failed", (double)failed);
    cJSON_AddItemToObject(c->json, "switched_off", off);
}

/* Adds the SHA-256 of the certificate without it, so that a changed one is noticed. */
static char *print_with_hash(struct certificate *c)
{
    char hash[BASE_SHA256_TEXT], *text = base_json_print(c->json);
    if (!text)
        return NULL;
    base_sha256(text, strlen(text), hash);
    cJSON_AddStringToObject(c->json, "sha256", hash);
    free(text);
    return base_json_print(c->json);
}

static vkn_status write_files(const struct certificate *c, const char *text)
{
    const char *folder = c->params->out;
    char *json = base_path_join(folder, "certificate.json"),
         *page = base_path_join(folder, "certificate.html");
    vkn_status status = json && page ? base_file_replace(json, text, strlen(text)) : VKN_ERROR;
    if (status == VKN_OK)
        status = report_write_certificate(c->json, page);
    free(json);
    free(page);
    return status;
}

/* Keeps the verdict for vknerf info and later runs on this device; a failure is only reported. */
static void keep_verdict(struct certificate *c)
{
    cJSON *parts = cJSON_DetachItemViaPointer(c->json, c->parts);
    char *text = base_json_print(c->json), *folder = base_path_folder(c->cache);
    cJSON_Delete(parts);
    if (!text || !folder || base_make_folder(folder) != VKN_OK ||
        base_file_replace(c->cache, text, strlen(text)) != VKN_OK)
        base_log(BASE_LOG_WARNING, "the certificate is not kept for vknerf info: %s",
                 vkn_last_error());
    free(folder);
    free(text);
}

static vkn_status finish(struct certificate *c, vkn_status status, char **json)
{
    add_verdict(c, status == VKN_OK);
    *json = print_with_hash(c);
    if (!*json)
        return VKN_ERROR;
    BASE_TRY(write_files(c, *json));
    bool is_plain = !c->params->only && !c->job->shader_dir && !gpu_fault_injected(NULL);
    if (c->cache && status == VKN_OK && is_plain)
        keep_verdict(c);
    return status;
}

/* ---- vkn_certify ----------------------------------------------------------------------------- */

static void describe(struct certificate *c)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    c->json = cJSON_CreateObject();
    cJSON_AddNumberToObject(c->json, "version", 1);
    cJSON_AddStringToObject(c->json, "vknerf", VKNERF_VERSION);
    cJSON_AddStringToObject(c->json, "commit", base_commit());
    cJSON_AddStringToObject(c->json, "date", date);
    cJSON_AddBoolToObject(c->json, "full", c->params->full);
    c->parts = cJSON_AddArrayToObject(c->json, "parts");
}

static vkn_status open_log(struct certificate *c)
{
    BASE_TRY(base_make_last_folder(c->params->out));
    char *path = base_path_join(c->params->out, "certify.log");
    if (!path)
        return VKN_ERROR;
    c->log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    vkn_status status = VKN_OK;
    if (c->log < 0)
        status = base_fail(base_status_of_errno(errno), "%s: %s", path, strerror(errno));
    free(path);
    return status;
}

/* Fails if the folder has trainings, which are not repeated into the same folders. */
static vkn_status check_out(const struct certificate *c)
{
    char *path = base_path_join(c->params->out, CERTIFY_TRAININGS);
    bool exists = path && base_is_folder(path);
    free(path);
    if (exists && is_wanted(c, CERTIFY_TRAININGS))
        return base_fail(VKN_BAD_INPUT,
                         "%s: this folder has a certificate; choose a new folder for --out",
                         c->params->out);
    return path ? VKN_OK : VKN_ERROR;
}

/* Fails if `only` names a part that does not exist. */
static vkn_status check_only(const char *only)
{
    for (const char *at = only; at && *at;) {
        char name[64];
        size_t size = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        unsigned kernels;
        if (!certify_find_part(name, &kernels) && strcmp(name, CERTIFY_TRAININGS) != 0 &&
            strcmp(name, CERTIFY_BENCH) != 0)
            return base_fail(VKN_BAD_INPUT, "--only: %s is no part of a certificate", name);
        at += size + (at[size] == ',');
    }
    return VKN_OK;
}

static vkn_status run(struct certificate *c, char **json)
{
    BASE_TRY(check_only(c->params->only));
    if (is_wanted(c, CERTIFY_TRAININGS) && !c->params->scene)
        return base_fail(VKN_BAD_INPUT, "vkn_certify: no scene is given for the trainings");
    BASE_TRY(check_out(c));
    BASE_TRY(open_log(c));
    double start = base_seconds();
    describe(c);
    BASE_TRY(run_device(c));
    BASE_TRY(visit_parts(c, count_part));
    BASE_TRY(report_progress_begin(c->job, 0, 0, &c->progress));
    c->total += is_wanted(c, CERTIFY_TRAININGS) ? CERTIFY_TRAINING_COUNT : 0;
    vkn_status status = run_parts(c);
    report_progress_end(&c->progress);
    if (status != VKN_OK && status != VKN_INTERRUPTED)
        return status;
    cJSON_AddNumberToObject(c->json, "seconds", base_seconds() - start);
    return finish(c, status, json);
}

vkn_status vkn_certify(const struct vkn_certify_params *given, char **json)
{
    BASE_C_LOCALE;
    BASE_NEED(json);
    *json = NULL;
    struct vkn_certify_params params;
    struct vkn_job job;
    BASE_TRY(BASE_READ("vkn_certify", vkn_certify_params, given, &params, out));
    BASE_TRY(BASE_READ("vkn_job", vkn_job, params.job, &job, stop));
    if (!params.command || params.command_count == 0)
        return base_fail(VKN_BAD_INPUT, "vkn_certify: no command is given");
    for (size_t i = 0; i < params.command_count; i++)
        if (!params.command[i])
            return base_fail(VKN_BAD_INPUT, "vkn_certify: word %zu of command is NULL", i);
    if (!params.out || !params.out[0])
        return base_fail(VKN_BAD_INPUT, "no folder is given for the certificate");
    struct certificate c = {.params = &params, .job = &job, .log = -1};
    vkn_status status = run(&c, json);
    if (c.log >= 0)
        close(c.log);
    free(c.cache);
    cJSON_Delete(c.json);
    return status;
}
