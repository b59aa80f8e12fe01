/* Inside of the scene room: the keys of a transforms.json, which programs write them, and what
 * becomes of each. */
#ifndef SCENE_KEYS_H
#define SCENE_KEYS_H

#include "scene/transforms.h"

struct cJSON;

/* Checks the keys of one object of a file: its top, or one of its frames. Refuses keys that change
 * cameras, colours or masks in a way that is not supported, unless their value says nothing (false,
 * null, 0, ""). Counts in transforms->unread the keys that nothing reads. `where` is the message
 * prefix (base_json_number). */
vkn_status keys_check(const struct cJSON *object, bool top, const char *where,
                      struct transforms *transforms);
/* Counts a key in transforms->unread; the note of its first time is kept, by value. */
vkn_status keys_add_unread(const char *name, const char *note, struct transforms *transforms);
/* Tells of the keys that nothing reads: moves them to findings->unread, or, where findings is NULL,
 * logs one warning about those of all files. */
vkn_status keys_report(struct transforms files[SCENE_SPLITS], struct scene_findings *findings);
/* "; keys that are not read: ..." for a message about what is missing, or "", in fresh memory; NULL
 * without memory. */
char *keys_hint(const struct transforms *transforms);
/* Records that a key is missing, with that hint. */
vkn_status keys_missing(const char *where, const char *name, const struct transforms *transforms);
/* Whether a value says nothing: false, null, 0, an empty text, or a list of such values. */
bool keys_is_empty_value(const struct cJSON *value);

#endif
