/* Checks results and turns them into JSON. */
#include <cjson/cJSON.h>
#include <math.h>

#include "bench/internal.h"

void bench_add_size(struct bench_result *result, const char *name, double value)
{
    for (uint32_t i = 0; i < BENCH_MAX_SIZES; i++)
        if (!result->sizes[i].name) {
            result->sizes[i].name = name;
            result->sizes[i].value = value;
            return;
        }
}

vkn_status bench_record_failure(struct bench_result *result, vkn_status status)
{
    if (status == VKN_OK || status == VKN_NO_DEVICE || status == VKN_INTERRUPTED)
        return status;
    snprintf(result->fault, sizeof result->fault, "%s", vkn_last_error());
    return VKN_OK;
}

void bench_compare(struct bench_check *check, double got, double want, double scale)
{
    double error = fabs(got - want) / scale;
    check->outputs++;
    /* NaN counts as infinite. */
    if (!(error <= check->error))
        check->error = isfinite(error) ? error : HUGE_VAL;
}

bool bench_passed(struct bench_result *result)
{
    const struct bench_check *check = &result->check;
    if (check->outputs > 0 && check->error <= check->tolerance)
        return true;
    snprintf(result->fault, sizeof result->fault,
             "wrong: the relative error of an output is %.3g, more than %.3g", check->error,
             check->tolerance);
    return false;
}

/* Returns the FLOPs, bytes or samples of an iteration, according to the unit. */
static double amount(const struct bench_result *result)
{
    return result->unit[0] == 'F'   ? result->flops
           : result->unit[0] == 'B' ? result->bytes
                                    : result->samples;
}

double bench_rate(const struct bench_result *result)
{
    return result->fault[0] || result->times.median <= 0 ? 0
                                                         : amount(result) / result->times.median;
}

static void add_amount(cJSON *json, const char *name, double value)
{
    if (value > 0)
        cJSON_AddNumberToObject(json, name, value);
}

static void add_check(cJSON *json, const struct bench_check *check)
{
    cJSON *object = cJSON_AddObjectToObject(json, "check");
    cJSON_AddNumberToObject(object, "outputs", check->outputs);
    if (isfinite(check->error))
        cJSON_AddNumberToObject(object, "error", check->error);
    else
        cJSON_AddNullToObject(object, "error");
    cJSON_AddNumberToObject(object, "tolerance", check->tolerance);
}

static void add_times(cJSON *json, const struct bench_result *result)
{
    const struct bench_times *times = &result->times;
    cJSON *seconds = cJSON_AddObjectToObject(json, "seconds");
    cJSON_AddNumberToObject(seconds, "median", times->median);
    cJSON_AddNumberToObject(seconds, "lower_quartile", times->lower);
    cJSON_AddNumberToObject(seconds, "upper_quartile", times->upper);
    cJSON_AddNumberToObject(seconds, "least", times->least);
    cJSON_AddNumberToObject(seconds, "most", times->most);
    cJSON_AddNumberToObject(json, "repetitions", times->repetitions);
    cJSON_AddNumberToObject(json, "turns", times->iterations);
    cJSON_AddStringToObject(json, "clock", times->by_device_clock ? "device" : "host");
    double rate = bench_rate(result);
    cJSON_AddNumberToObject(json, "rate", rate);
    if (result->peak > 0) {
        cJSON_AddNumberToObject(json, "peak", result->peak);
        cJSON_AddNumberToObject(json, "share", rate / result->peak);
    }
    if (result->vendor && result->vendor_rate > 0) {
        cJSON_AddStringToObject(json, "vendor", result->vendor);
        cJSON_AddNumberToObject(json, "vendor_ratio", rate / result->vendor_rate);
    }
}

void bench_add_result(struct bench *bench, const struct bench_result *result)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "suite", result->suite);
    cJSON_AddStringToObject(json, "case", result->name);
    cJSON_AddStringToObject(json, "path", result->backend);
    cJSON *sizes = cJSON_AddObjectToObject(json, "sizes");
    for (uint32_t i = 0; i < BENCH_MAX_SIZES && result->sizes[i].name; i++)
        cJSON_AddNumberToObject(sizes, result->sizes[i].name, result->sizes[i].value);
    cJSON_AddStringToObject(json, "unit", result->unit);
    add_amount(json, "flops", result->flops);
    add_amount(json, "bytes", result->bytes);
    add_amount(json, "samples", result->samples);
    if (result->check.outputs)
        add_check(json, &result->check);
    if (result->fault[0])
        cJSON_AddStringToObject(json, "fault", result->fault);
    else
        add_times(json, result);
    for (cJSON *item = result->more ? result->more->child : NULL; item;) {
        cJSON *next = item->next;
        cJSON_AddItemToObject(json, item->string, cJSON_DetachItemViaPointer(result->more, item));
        item = next;
    }
    cJSON_Delete(result->more);
    cJSON_AddItemToArray(bench->results, json);
}
