/* Replaces values in the text of JSON files. The rest of the text stays byte for byte. */
#include "scene/json_patch.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

vkn_status json_patch_set(cJSON *item, char *text)
{
    if (text == NULL)
        return VKN_ERROR;
    cJSON_Delete(item->child);
    cJSON_free(item->valuestring);
    item->child = NULL;
    item->valuestring = text;
    item->type = (item->type & ~0xff) | cJSON_Raw;
    return VKN_OK;
}

vkn_status json_patch_set_text(cJSON *item, struct base_text *text)
{
    if (!text->failed)
        return json_patch_set(item, text->data);
    free(text->data);
    return VKN_ERROR;
}

/* These functions walk over a text that has been parsed, so it is valid JSON. */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\' ? 1 : 0;
    return at + 1;
}

static const char *skip_value(const char *at)
{
    size_t depth = 0;
    do {
        depth += *at == '[' || *at == '{' ? 1 : 0;
        depth -= *at == ']' || *at == '}' ? 1 : 0;
        if (*at == '"')
            at = skip_string(at);
        else if (strchr("[]{},: \t\r\n", *at) != NULL)
            at++;
        else
            at += strcspn(at, "[]{},: \t\r\n");
    } while (depth > 0);
    return at;
}

/* Replaces the values in the text at `at` that are raw in the tree. Returns the value's end. */
static const char *replace_raw(struct write_patch *patch, const cJSON *item, const char *at)
{
    if (cJSON_IsRaw(item)) {
        const char *end = skip_value(at), *value = item->valuestring;
        write_replace(patch, (size_t)(at - patch->data), (size_t)(end - patch->data), value,
                      strlen(value));
        return end;
    }
    if (item->child == NULL)
        return skip_value(at);
    const cJSON *child = NULL;
    cJSON_ArrayForEach (child, item) {
        at = skip_blanks(at + 1);
        if (cJSON_IsObject(item))
            at = skip_blanks(skip_blanks(skip_string(at)) + 1);
        at = skip_blanks(replace_raw(patch, child, at));
    }
    return at + 1;
}

void json_patch_write(struct write_patch *patch, const struct cJSON *json)
{
    replace_raw(patch, json, skip_blanks(patch->data));
}
