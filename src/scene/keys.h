/* Checks the keys of a transforms.json (internal to the module scene). */
#ifndef SCENE_KEYS_H
#define SCENE_KEYS_H

#include "scene/transforms.h"

struct cJSON;

/* Checks the keys of one JSON object: the top level of the file (`top`) or a frame. Returns
 * VKN_BAD_INPUT for a key that changes cameras, colours or masks in an unsupported way, unless its
 * value is empty (keys_is_empty_value). Counts unread keys in transforms->unread. `where` is the
 * prefix of messages (base_json_number). */
vkn_status keys_check(const struct cJSON *object, bool top, const char *where,
                      struct transforms *transforms);
/* Counts an unread key in transforms->unread. `note` of its first occurrence is copied. */
vkn_status keys_add_unread(const char *name, const char *note, struct transforms *transforms);
/* Moves unread keys to findings->unread, or logs one warning when `findings` is NULL. */
vkn_status keys_report(struct transforms files[SCENE_SPLITS], struct scene_findings *findings);
/* Returns "; keys that are not read: ..." or, without such keys, "": a hint that is appended to
 * messages about missing keys. The caller frees it; NULL: out of memory. */
char *keys_hint(const struct transforms *transforms);
/* Fails with the message that a key is missing, with the hint of keys_hint. */
vkn_status keys_missing(const char *where, const char *name, const struct transforms *transforms);
/* Returns whether a value is empty: false, null, 0, an empty string, or a list of zeros. */
bool keys_is_empty_value(const struct cJSON *value);

#endif
