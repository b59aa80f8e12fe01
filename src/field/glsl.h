/* Declares the pragmas, the registration and the checks of fields in GLSL. */
#ifndef FIELD_GLSL_H
#define FIELD_GLSL_H

#include <vknerf/field.h>

#include <stdatomic.h>

#include "field/internal.h"

#define GLSL_SHADER_NAME 32u

/* The values of a field's pragmas; 0 or "" when a pragma is missing. */
struct glsl_pragmas {
    char name[64];
    uint32_t parameters, features, entry;
    float initial;
};

/* A registered field in GLSL; it lives until the process ends. */
struct glsl_field {
    uint32_t number;               /* CRC of its text, the setting glsl.source */
    char sha256[BASE_SHA256_TEXT]; /* of its text */
    struct gpu_snippet snippet;
    struct glsl_pragmas pragmas; /* with defaults for missing pragmas */
    void (*initialize)(void *context, uint64_t seed, uint32_t count, float *parameters);
    void *context;       /* of initialize */
    atomic_bool checked; /* the field has passed its check on some device */
    char encode[GLSL_SHADER_NAME], scatter[GLSL_SHADER_NAME],
        check[GLSL_SHADER_NAME]; /* names of shaders */
    struct pass forward[2], densities[2], backward[3], occupancy[6];
    struct field_kind kind;
    struct glsl_field *next;
};

/* Reads the lines "#pragma field KEY VALUE" of a text; the first line of each key counts.
 * VKN_BAD_INPUT names the file and the line. */
vkn_status glsl_read_pragmas(const char *file, const char *text, struct glsl_pragmas *pragmas);
/* Returns the field in GLSL that a configuration names; NULL for other models and when the field is
 * not registered. */
struct glsl_field *glsl_find(const struct vkn_config *config);
/* Returns whether a field with this SHA-256 is registered. */
bool glsl_is_registered(const char sha256[BASE_SHA256_TEXT]);
/* Registers the field's shaders and lists its passes. */
vkn_status glsl_make_kind(struct glsl_field *field);
/* Time limit of a field's check in seconds; tests shorten it. */
extern double glsl_check_seconds;
/* Sets the initial parameters, float[pragmas.parameters]: by the field's `initialize` with `seed`,
 * or if it is NULL, to random numbers from `state`. */
void glsl_initialize(const struct glsl_field *field, uint64_t seed, uint64_t *state, float *params);

#endif
