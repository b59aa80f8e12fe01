/* The files of fields in GLSL. */
#ifndef FIELD_GLSL_H
#define FIELD_GLSL_H

#include <vknerf/field.h>

#include <stdatomic.h>

#include "field/internal.h"

#define GLSL_SHADER_NAME 32u

/* What a field says of itself; 0 or "": nothing. */
struct glsl_pragmas {
    char name[64];
    uint32_t parameters, features, entry;
    float initial;
};

/* One that is known to the process, as long as that lives. */
struct glsl_field {
    uint32_t source;               /* number of its text, as settings name it */
    char sha256[BASE_SHA256_TEXT]; /* of the same text */
    struct gpu_snippet snippet;
    struct glsl_pragmas facts; /* complete */
    void (*initialize)(void *context, uint64_t seed, uint32_t count, float *parameters);
    void *context;
    atomic_bool checked; /* and found right, on some device */
    char encode[GLSL_SHADER_NAME], scatter[GLSL_SHADER_NAME],
        check[GLSL_SHADER_NAME]; /* programs */
    struct pass forward[2], densities[2], backward[3], occupancy[6];
    struct field_kind kind;
    struct glsl_field *next;
};

/* The lines "#pragma field KEY VALUE" of a text, the first of each key; VKN_BAD_INPUT names the
 * file and the line. */
vkn_status glsl_read_pragmas(const char *file, const char *text, struct glsl_pragmas *facts);
/* The field that a configuration trains; NULL: none. Never NULL where its model is of that kind. */
struct glsl_field *glsl_find(const struct vkn_config *config);
/* Whether a field of that SHA-256 is registered. */
bool glsl_is_registered(const char sha256[BASE_SHA256_TEXT]);
/* Lists its programs and passes. */
vkn_status glsl_make_kind(struct glsl_field *field);
/* Most seconds that a field's check runs; tests have less. */
extern double glsl_check_seconds;
/* Parameters as a training begins with them. */
void glsl_initialize(const struct glsl_field *field, uint64_t seed, uint64_t *state, float *params);

#endif
