/* Reads and writes SCENE/prepare.json, the progress of the preparation, so that a second call
 * continues where the first one stopped. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "prepare/internal.h"

#define RECORD      "prepare.json"
#define MOST_BYTES  ((size_t)16 << 20)
#define LARGEST_SUM 4294967295.0

static const char *const stage_names[STAGE_COUNT] = {"images", "features", "matches", "models"};

/* ---- reading --------------------------------------------------------------------------------- */

static vkn_status read_sum(const cJSON *object, const char *name, const char *file, uint32_t *sum)
{
    double value = 0;
    BASE_TRY(base_json_number(object, name, file, false, 0, LARGEST_SUM, &value));
    *sum = (uint32_t)value;
    return VKN_OK;
}

static vkn_status read_attempt(const cJSON *object, const char *file, struct record *record,
                               size_t number)
{
    for (size_t i = 0; i < STAGE_COUNT; i++)
        BASE_TRY(read_sum(object, stage_names[i], file, &record->stages[number][i]));
    BASE_TRY(read_sum(object, "database", file, &record->database[number]));
    return read_sum(object, "extracted", file, &record->extracted[number]);
}

static vkn_status parse(const cJSON *json, const char *file, struct record *record)
{
    const char *pictures = NULL;
    BASE_TRY(base_json_string(json, "pictures", file, true, &pictures));
    record->pictures = base_format("%s", pictures);
    if (record->pictures == NULL)
        return VKN_ERROR;
    const cJSON *attempts = cJSON_GetObjectItemCaseSensitive(json, "attempts"), *attempt;
    size_t number = 0;
    cJSON_ArrayForEach (attempt, attempts) {
        if (number < MAX_ATTEMPTS)
            BASE_TRY(read_attempt(attempt, file, record, number++));
    }
    return VKN_OK;
}

/* Skips the photographs that were skipped when the images were made. */
static vkn_status read_left_out(const cJSON *json, struct source *source)
{
    const cJSON *left_out = cJSON_GetObjectItemCaseSensitive(json, "left_out");
    for (size_t i = 0; i < source->count; i++) {
        struct source_picture *picture = &source->pictures[i];
        const cJSON *problem = cJSON_GetObjectItemCaseSensitive(left_out, picture->file);
        if (picture->problem != NULL || !cJSON_IsString(problem))
            continue;
        picture->problem = base_format("%s", problem->valuestring);
        if (picture->problem == NULL)
            return VKN_ERROR;
    }
    return VKN_OK;
}

vkn_status record_read(struct preparation *preparation)
{
    cJSON *json = NULL;
    bool exists = false;
    char *file = base_path_join(preparation->out, RECORD);
    vkn_status status = file != NULL ? base_file_find(file, &exists) : VKN_ERROR;
    if (status == VKN_OK && exists)
        status = base_json_read(file, MOST_BYTES, &json);
    if (status == VKN_OK && exists)
        status = parse(json, file, &preparation->record);
    if (status == VKN_OK && exists && !preparation->params->overwrite &&
        preparation->record.stages[0][STAGE_IMAGES] == preparation->source.checksum)
        status = read_left_out(json, &preparation->source);
    cJSON_Delete(json);
    free(file);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes the original names of the images and the skipped photographs. */
static void add_names(cJSON *json, const struct source *source)
{
    cJSON *names = cJSON_AddObjectToObject(json, "names");
    cJSON *left_out = cJSON_AddObjectToObject(json, "left_out");
    for (size_t i = 0; i < source->count; i++)
        if (source->pictures[i].problem != NULL)
            cJSON_AddStringToObject(left_out, source->pictures[i].file,
                                    source->pictures[i].problem);
        else if (strcmp(source->pictures[i].name, source->pictures[i].file) != 0)
            cJSON_AddStringToObject(names, source->pictures[i].name, source->pictures[i].file);
}

vkn_status record_write(const struct preparation *preparation)
{
    const struct record *record = &preparation->record;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "pictures", record->pictures);
    cJSON *attempts = cJSON_AddArrayToObject(json, "attempts");
    for (size_t number = 0; number < MAX_ATTEMPTS; number++) {
        cJSON *attempt = cJSON_CreateObject();
        for (size_t i = 0; i < STAGE_COUNT; i++)
            cJSON_AddNumberToObject(attempt, stage_names[i], record->stages[number][i]);
        cJSON_AddNumberToObject(attempt, "database", record->database[number]);
        cJSON_AddNumberToObject(attempt, "extracted", record->extracted[number]);
        cJSON_AddItemToArray(attempts, attempt);
    }
    add_names(json, &preparation->source);
    char *text = base_json_print(json), *file = base_path_join(preparation->out, RECORD);
    vkn_status status =
        text != NULL && file != NULL ? base_file_replace(file, text, strlen(text)) : VKN_ERROR;
    cJSON_Delete(json);
    free(text);
    free(file);
    return status;
}

void record_free(struct record *record)
{
    free(record->pictures);
    *record = (struct record){0};
}
