/* Registers fields in GLSL in this process. */
#include <float.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "field/glsl.h"

#define MOST_BYTES ((size_t)256 << 10) /* of a field's text, which checkpoints store */

/* The registered fields, which are never removed. */
static struct {
    pthread_mutex_t lock;
    struct glsl_field *first;
} registered = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct glsl_field *find(uint32_t number)
{
    struct glsl_field *field = registered.first;
    while (field && field->number != number)
        field = field->next;
    return field;
}

struct glsl_field *glsl_find(const struct vkn_config *config)
{
    if (config->model != VKN_MODEL_GLSL)
        return NULL;
    pthread_mutex_lock(&registered.lock);
    struct glsl_field *field = find(config->glsl.source);
    pthread_mutex_unlock(&registered.lock);
    return field;
}

bool glsl_is_registered(const char sha256[BASE_SHA256_TEXT])
{
    pthread_mutex_lock(&registered.lock);
    struct glsl_field *field = registered.first;
    while (field && strcmp(field->sha256, sha256) != 0)
        field = field->next;
    pthread_mutex_unlock(&registered.lock);
    return field != NULL;
}

const char *vkn_field_source(const vkn_config *config)
{
    const struct glsl_field *field = config ? glsl_find(config) : NULL;
    return field ? field->snippet.text : NULL;
}

/* ---- the source ------------------------------------------------------------------------------ */

/* Returns a pragma for each member that is set, then the text; #line keeps the line numbers of the
 * text. NULL when memory is short. */
static char *compose(const struct vkn_field *field, const char *text)
{
    struct base_text whole = {0};
    if (field->name && field->name[0])
        base_text_add(&whole, "#pragma field name %s\n", field->name);
    if (field->parameters)
        base_text_add(&whole, "#pragma field parameters %u\n", field->parameters);
    if (field->features)
        base_text_add(&whole, "#pragma field features %u\n", field->features);
    if (field->entry)
        base_text_add(&whole, "#pragma field entry %u\n", field->entry);
    if (field->initial > 0)
        base_text_add(&whole, "#pragma field initial %.9g\n", (double)field->initial);
    if (whole.size > 0)
        base_text_add(&whole, "#line 1\n");
    base_text_add(&whole, "%s", text);
    if (!whole.failed)
        return whole.data;
    free(whole.data);
    return NULL;
}

static vkn_status check_text(const char *file, const char *text, size_t size)
{
    static const char *const functions[] = {"encode", "encode_backward"};
    if (size > MOST_BYTES || strlen(text) != size || !base_is_utf8(text))
        return base_fail(VKN_BAD_INPUT, "%s: not UTF-8 text of up to 256 KiB", file);
    for (size_t i = 0; i < BASE_COUNT(functions); i++)
        if (!strstr(text, functions[i]))
            return base_fail(VKN_BAD_INPUT,
                             "%s: there is no function void %s(vec3 position, uint "
                             "first_parameter)",
                             file, functions[i]);
    return VKN_OK;
}

/* Reads the field's text into *source, which the caller frees. */
static vkn_status read_source(const struct vkn_field *field, char **source)
{
    char *read = NULL;
    size_t size = field->text ? strlen(field->text) : 0;
    const char *file = field->file ? field->file : "field";
    if (!field->text && !field->file)
        return base_fail(VKN_BAD_INPUT, "vkn_field_register: neither `file` nor `text` is given");
    if (!field->text)
        BASE_TRY(base_text_read_any(field->file, MOST_BYTES, &read, &size));
    const char *text = field->text ? field->text : read;
    vkn_status status = check_text(file, text, size);
    if (status == VKN_OK) {
        *source = compose(field, text);
        status = *source ? VKN_OK : VKN_ERROR;
    }
    free(read);
    return status;
}

/* ---- registering ----------------------------------------------------------------------------- */

/* Sets the members of a field. Takes ownership of `source`, even on failure. */
static vkn_status complete_field(struct glsl_field *field, const struct vkn_field *given,
                                 char *source)
{
    field->snippet.text = source;
    field->snippet.file = base_format("%s", given->file ? given->file : "field");
    if (!field->snippet.file)
        return VKN_ERROR;
    BASE_TRY(glsl_read_pragmas(field->snippet.file, source, &field->pragmas));
    const char *slash = strrchr(field->snippet.file, '/');
    if (!field->pragmas.name[0])
        snprintf(field->pragmas.name, sizeof field->pragmas.name, "%s",
                 slash ? slash + 1 : field->snippet.file);
    field->initialize = given->initialize;
    field->context = given->context;
    return glsl_make_kind(field);
}

static void destroy(struct glsl_field *field)
{
    BASE_KEEP_ERROR;
    free((char *)(uintptr_t)field->snippet.text);
    free((char *)(uintptr_t)field->snippet.file);
    free(field);
}

/* Adds a field under the lock; takes ownership of `source`. */
static vkn_status add(const struct vkn_field *given, char *source, uint32_t number)
{
    struct glsl_field *field = base_alloc(1, sizeof *field);
    if (!field) {
        free(source);
        return VKN_ERROR;
    }
    field->number = number;
    base_sha256(source, strlen(source), field->sha256);
    vkn_status status = complete_field(field, given, source);
    if (status != VKN_OK) {
        destroy(field);
        return status;
    }
    field->next = registered.first;
    registered.first = field;
    return VKN_OK;
}

/* Returns the number of a text, the setting glsl.source; never 0, which means no field. */
static uint32_t number_of(const char *source)
{
    uint32_t number = base_crc32c(0, source, strlen(source));
    return number ? number : 1;
}

/* Registers a field unless it is registered already; takes ownership of `source`. Sets *number to
 * the field's number. */
static vkn_status register_once(const struct vkn_field *given, char *source, uint32_t *number)
{
    *number = number_of(source);
    pthread_mutex_lock(&registered.lock);
    struct glsl_field *field = find(*number);
    vkn_status status = VKN_OK;
    if (!field) {
        status = add(given, source, *number);
    } else {
        if (strcmp(field->snippet.text, source) != 0)
            status = base_fail(VKN_BAD_INPUT,
                               "%s: has the same number (CRC) as %s: change a comment in it",
                               given->file ? given->file : "field", field->snippet.file);
        else if (given->initialize) {
            field->initialize = given->initialize;
            field->context = given->context;
        }
        free(source);
    }
    pthread_mutex_unlock(&registered.lock);
    return status;
}

vkn_status vkn_field_register(const vkn_field *given, vkn_config *config)
{
    BASE_C_LOCALE;
    BASE_NEED(given);
    struct vkn_field field;
    char *source = NULL;
    uint32_t number = 0;
    BASE_TRY(BASE_READ("struct vkn_field", vkn_field, given, &field, context));
    BASE_RANGE(&field, initial, 0, FLT_MAX);
    BASE_TRY(read_source(&field, &source));
    if (!source)
        return VKN_ERROR;
    BASE_TRY(register_once(&field, source, &number));
    if (config) {
        config->model = VKN_MODEL_GLSL;
        config->glsl.source = number;
    }
    return VKN_OK;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

vkn_status field_register_stored(const char *path, const char *text,
                                 const struct vkn_config *config)
{
    const struct vkn_field field = {.size = sizeof field, .file = path, .text = text};
    char sha256[BASE_SHA256_TEXT];
    if (!text)
        return base_fail(VKN_BAD_INPUT, "%s: the GLSL of its field is missing", path);
    BASE_TRY(check_text(path, text, strlen(text)));
    if (config->glsl.source != number_of(text))
        return base_fail(VKN_BAD_INPUT, "%s: glsl.source: %u, but the number of its GLSL is %u",
                         path, config->glsl.source, number_of(text));
    base_sha256(text, strlen(text), sha256);
    if (!vkn_field_is_trusted(sha256))
        return base_fail(VKN_BAD_INPUT,
                         "%s: holds a program, its field in GLSL with SHA-256 %s: it runs with "
                         "--trust (vkn_field_trust) only; vknerf info FILE --field prints it",
                         path, sha256);
    return vkn_field_register(&field, NULL);
}
