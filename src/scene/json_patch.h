/* Replaces values in the text of JSON files (internal to the module scene). */
#ifndef SCENE_JSON_PATCH_H
#define SCENE_JSON_PATCH_H

#include "scene/write.h"

struct cJSON;

/* Replace an item of a parsed file by a raw text, which they take; NULL: out of memory. Keys may
 * follow the value: "2, \"next\": 3". */
vkn_status json_patch_set(struct cJSON *item, char *text);
vkn_status json_patch_set_text(struct cJSON *item, struct base_text *text);
/* Replaces the values of items that are raw in the text patch->data, of which `json` was parsed. */
void json_patch_write(struct write_patch *patch, const struct cJSON *json);

#endif
