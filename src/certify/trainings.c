/* Trains the bundled scene in every precision, repeats a deterministic training, and runs vknerf
 * bench, each in a process of its own. */
#include <stdlib.h>

#include <cjson/cJSON.h>
#include <vknerf/certify.h>

#include "certify/internal.h"
#include "report/report.h"
#include "safetensors/safetensors.h"

/* Length of a training, and the PSNR of test views (dB) that each precision exceeds by about 1 dB
 * on lavapipe with seed 1 (docs/gpus.md). */
struct length {
    const char *steps, *samples;
    double floor;
};
static const struct length cpu_training = {"96", "batch.samples=8192", 18.5},
                           full_cpu_training = {"600", "batch.samples=16384", 31.0},
                           gpu_training = {"600", "batch.samples=65536", 33.0};
static const struct length repeated = {"48", "batch.samples=4096", 0};
#define JSON_LIMIT ((size_t)16 << 20)

struct training {
    const char *name, *precision;
    const char *needs; /* member of the device that must be true; NULL: none */
};
static const struct training trainings[] = {
    {"fp32", "fp32", NULL},
    {"fp16", "fp16", "float16"},
    {"coopmat", "coopmat", "cooperative_matrix"},
};

static cJSON *begin_part(struct certificate *c, const char *name)
{
    c->part = cJSON_CreateObject();
    cJSON_AddItemToArray(c->parts, c->part);
    cJSON_AddStringToObject(c->part, "part", name);
    return cJSON_AddArrayToObject(c->part, "tests");
}

/* Adds a test; `message` is NULL if it passed. Returns its object. */
static cJSON *add_result(cJSON *tests, const char *name, const char *message)
{
    cJSON *test = cJSON_CreateObject();
    cJSON_AddStringToObject(test, "test", name);
    cJSON_AddStringToObject(test, "result", message ? "failed" : "passed");
    if (message)
        cJSON_AddStringToObject(test, "message", message);
    cJSON_AddItemToArray(tests, test);
    return test;
}

/* Trains into OUT/`folder`; writes how the process ended. */
static vkn_status train(struct certificate *c, const char *folder, const char *precision,
                        const struct length *length, bool deterministic, char how[BASE_HOW_SIZE])
{
    const char *arguments[] = {"train",       c->params->scene,
                               "--out",       folder,
                               "--steps",     length->steps,
                               "--set",       length->samples,
                               "--precision", precision,
                               "--seed",      "1",
                               "--profile",   deterministic ? "--deterministic" : NULL,
                               NULL};
    return certify_run(c, arguments, NULL, how);
}

/* Reads a file of a folder. */
static vkn_status read_json(const char *folder, const char *name, cJSON **json)
{
    char *path = base_path_join(folder, name);
    vkn_status status = path ? base_json_read(path, JSON_LIMIT, json) : VKN_ERROR;
    free(path);
    return status;
}

/* Moves members from one object to another. */
static void move_members(cJSON *to, cJSON *from, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(from, names[i]);
        if (item)
            cJSON_AddItemToObject(to, names[i], item);
    }
}

/* Judges a training by its summary. */
static void judge(cJSON *tests, const struct training *training, const struct length *length,
                  const char *folder, const char *how)
{
    static const char *const members[] = {"psnr",          "ssim",   "seconds", "path",
                                          "skipped_steps", "passes", "profile"};
    cJSON *summary = NULL;
    char message[160];
    if (how[0] || read_json(folder, "summary.json", &summary) != VKN_OK) {
        add_result(tests, training->name, how[0] ? how : vkn_last_error());
        return;
    }
    double psnr = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(summary, "psnr"));
    snprintf(message, sizeof message, "PSNR of %.2f dB, at least %.2f dB expected", psnr,
             length->floor);
    cJSON *test = add_result(tests, training->name, psnr >= length->floor ? NULL : message);
    cJSON_AddNumberToObject(test, "floor", length->floor);
    move_members(test, summary, members, BASE_COUNT(members));
    cJSON_Delete(summary);
}

static bool offers(const struct certificate *c, const char *member)
{
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(c->json, "device");
    return !member || cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(device, member));
}

/* ---- repeated training ----------------------------------------------------------------------- */

/* Compares all tensors of two checkpoints; writes the first difference. */
static bool compare_tensors(const struct safetensors_file *a, const struct safetensors_file *b,
                            char *message, size_t size)
{
    snprintf(message, size, "the checkpoints have different tensors");
    if (safetensors_count(a) != safetensors_count(b))
        return false;
    for (size_t i = 0; i < safetensors_count(a); i++) {
        const struct safetensors_tensor *x = safetensors_at(a, i), *y = safetensors_at(b, i);
        snprintf(message, size, "two trainings with the same seed differ in the tensor %s",
                 x->name);
        if (strcmp(x->name, y->name) != 0 || x->size != y->size ||
            memcmp(x->data, y->data, x->size) != 0)
            return false;
    }
    return true;
}

static vkn_status open_checkpoint(const char *folder, struct safetensors_file **file)
{
    char *path = base_path_join(folder, "checkpoint.safetensors");
    vkn_status status = path ? safetensors_open(path, file) : VKN_ERROR;
    free(path);
    return status;
}

static void compare_checkpoints(cJSON *tests, char *const folders[2])
{
    struct safetensors_file *files[2] = {NULL};
    char message[256];
    bool same = false;
    vkn_status status = open_checkpoint(folders[0], &files[0]);
    if (status == VKN_OK)
        status = open_checkpoint(folders[1], &files[1]);
    if (status == VKN_OK)
        same = compare_tensors(files[0], files[1], message, sizeof message);
    else
        snprintf(message, sizeof message, "%s", vkn_last_error());
    add_result(tests, "same bits", same ? NULL : message);
    for (int i = 0; i < 2; i++)
        safetensors_close(&files[i]);
}

/* Trains twice with --deterministic, and compares the results bit by bit. */
static vkn_status train_twice(struct certificate *c, cJSON *tests, char *const folders[2])
{
    char how[BASE_HOW_SIZE] = "";
    for (int i = 0; i < 2 && how[0] == '\0'; i++)
        BASE_TRY(train(c, folders[i], "fp32", &repeated, true, how));
    if (how[0])
        add_result(tests, "same bits", how);
    else
        compare_checkpoints(tests, folders);
    return VKN_OK;
}

/* ---- all trainings --------------------------------------------------------------------------- */

static void show(const struct certificate *c, const char *name)
{
    char what[64];
    snprintf(what, sizeof what, "%s: %s", CERTIFY_TRAININGS, name);
    report_progress_count(c->progress, what, c->done, c->total);
}

/* Returns the path of a training in OUT, which the caller frees. */
static char *folder_of(const struct certificate *c, const char *name)
{
    return base_format("%s/%s/%s", c->params->out, CERTIFY_TRAININGS, name);
}

static vkn_status train_precision(struct certificate *c, cJSON *tests,
                                  const struct training *training)
{
    const struct length *length = !c->is_cpu        ? &gpu_training
                                  : c->params->full ? &full_cpu_training
                                                    : &cpu_training;
    char how[BASE_HOW_SIZE] = "", *folder = folder_of(c, training->name);
    show(c, training->name);
    vkn_status status =
        folder ? train(c, folder, training->precision, length, false, how) : VKN_ERROR;
    if (status == VKN_OK)
        judge(tests, training, length, folder, how);
    c->done++;
    free(folder);
    return status;
}

vkn_status certify_trainings(struct certificate *c)
{
    char *parent = base_path_join(c->params->out, CERTIFY_TRAININGS);
    vkn_status made = parent ? base_make_folder(parent) : VKN_ERROR;
    free(parent);
    BASE_TRY(made);
    cJSON *tests = begin_part(c, CERTIFY_TRAININGS);
    for (size_t i = 0; i < BASE_COUNT(trainings); i++)
        if (offers(c, trainings[i].needs))
            BASE_TRY(train_precision(c, tests, &trainings[i]));
    char *folders[2] = {folder_of(c, "first"), folder_of(c, "second")};
    show(c, "same bits");
    vkn_status status = folders[0] && folders[1] ? train_twice(c, tests, folders) : VKN_ERROR;
    free(folders[0]);
    free(folders[1]);
    return status;
}

/* ---- bench ----------------------------------------------------------------------------------- */

/* Adds one test for all cases of vknerf bench: no result may be wrong. */
static void judge_bench(cJSON *tests, const cJSON *bench)
{
    const cJSON *result;
    char message[320] = "";
    cJSON_ArrayForEach (result, cJSON_GetObjectItemCaseSensitive(bench, "results")) {
        const char *fault = base_json_text(result, "fault");
        if (strncmp(fault, "wrong", strlen("wrong")) == 0 && message[0] == '\0')
            snprintf(message, sizeof message, "%s of %s: %s", base_json_text(result, "case"),
                     base_json_text(result, "path"), fault);
    }
    add_result(tests, CERTIFY_BENCH, message[0] ? message : NULL);
}

vkn_status certify_bench(struct certificate *c)
{
    cJSON *tests = begin_part(c, CERTIFY_BENCH), *bench = NULL;
    char how[BASE_HOW_SIZE], *folder = base_path_join(c->params->out, CERTIFY_BENCH);
    const char *const arguments[] = {"bench", "--out", folder,
                                     c->params->full && !c->is_cpu ? "--full" : "--quick", NULL};
    report_progress_count(c->progress, CERTIFY_BENCH, c->done, c->total);
    vkn_status status = folder ? certify_run(c, arguments, NULL, how) : VKN_ERROR;
    if (status == VKN_OK && how[0] == '\0' && read_json(folder, "bench.json", &bench) == VKN_OK) {
        judge_bench(tests, bench);
        cJSON_AddItemToObject(c->part, "bench", bench);
    } else if (status == VKN_OK) {
        add_result(tests, CERTIFY_BENCH, how[0] ? how : vkn_last_error());
    }
    free(folder);
    return status;
}
