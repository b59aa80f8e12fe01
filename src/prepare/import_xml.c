/* Reads XML into a tree of cJSON with libexpat, if it is installed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loading/loading.h"
#include "prepare/import.h"

#define FILE_NAME  "libexpat.so.1"
#define MAX_DEPTH  64
#define MAX_VALUES BASE_JSON_VALUES

typedef void (*start_handler)(void *context, const char *name, const char **attributes);
typedef void (*end_handler)(void *context, const char *name);
typedef void (*text_handler)(void *context, const char *text, int size);
typedef void (*doctype_handler)(void *context, const char *name, const char *system,
                                const char *public, int has_subset);

/* X(NAME, result, parameters): functions used from expat.h (not needed to build). */
#define FUNCTIONS(X)                                                            \
    X(XML_ParserCreate, void *, (const char *encoding))                         \
    X(XML_SetUserData, void, (void *parser, void *context))                     \
    X(XML_SetElementHandler, void, (void *parser, start_handler, end_handler))  \
    X(XML_SetCharacterDataHandler, void, (void *parser, text_handler))          \
    X(XML_SetStartDoctypeDeclHandler, void, (void *parser, doctype_handler))    \
    X(XML_Parse, int, (void *parser, const char *data, int size, int is_final)) \
    X(XML_StopParser, int, (void *parser, unsigned char is_resumable))          \
    X(XML_GetErrorCode, int, (void *parser))                                    \
    X(XML_ErrorString, const char *, (int code))                                \
    X(XML_GetCurrentLineNumber, unsigned long, (void *parser))                  \
    X(XML_ParserFree, void, (void *parser))

// NOLINTNEXTLINE(bugprone-macro-parentheses): types and names
#define POINTER(name, result, parameters) static result(*name) parameters;
FUNCTIONS(POINTER)

static bool loaded; /* all functions have been found */

static void load(void)
{
    static const char *const files[] = {FILE_NAME, NULL};
    void *library = loading_open(files);
    loaded = true;
#define FIND(name, result, parameters) loaded = loading_find(library, #name, &(name)) && loaded;
    FUNCTIONS(FIND)
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* A file that is being read. */
struct reading {
    void *parser;
    cJSON *open[MAX_DEPTH + 1]; /* the root and the open elements */
    size_t depth, values;
    struct base_text text; /* of the innermost element, since its last child */
    const char *problem;   /* why reading stops; NULL: it goes on */
};

static void stop(struct reading *reading, const char *problem)
{
    reading->problem = reading->problem != NULL ? reading->problem : problem;
    XML_StopParser(reading->parser, 0);
}

static void add(struct reading *reading, const char *name, cJSON *item)
{
    if (item == NULL || !cJSON_AddItemToObject(reading->open[reading->depth], name, item)) {
        cJSON_Delete(item);
        stop(reading, "out of memory");
    }
    if (++reading->values > MAX_VALUES)
        stop(reading, "too many elements");
}

static void add_attribute(struct reading *reading, const char *name, const char *value)
{
    char *key = base_format("@%s", name);
    if (key != NULL)
        add(reading, key, cJSON_CreateString(value));
    else
        stop(reading, "out of memory");
    free(key);
}

static void on_start(void *context, const char *name, const char **attributes)
{
    struct reading *reading = context;
    if (reading->problem != NULL)
        return;
    if (reading->depth == MAX_DEPTH) {
        stop(reading, "elements are nested too deep");
        return;
    }
    cJSON *element = cJSON_CreateObject();
    add(reading, name, element);
    if (reading->problem != NULL)
        return;
    reading->open[++reading->depth] = element;
    reading->text.size = 0;
    for (; *attributes != NULL && reading->problem == NULL; attributes += 2)
        add_attribute(reading, attributes[0], attributes[1]);
}

static void on_end(void *context, const char *name)
{
    struct reading *reading = context;
    (void)name;
    if (reading->problem != NULL)
        return;
    if (reading->text.size > 0 && strspn(reading->text.data, " \t\r\n") < reading->text.size)
        add(reading, "#text", cJSON_CreateString(reading->text.data));
    reading->text.size = 0;
    reading->depth--;
}

static void on_text(void *context, const char *text, int size)
{
    struct reading *reading = context;
    base_text_add_bytes(&reading->text, text, (size_t)size);
    if (reading->text.failed)
        stop(reading, "out of memory");
}

/* Refuses declarations of entities, which could expand without end or name other files. */
static void on_doctype(void *context, const char *name, const char *system, const char *public,
                       int has_subset)
{
    (void)name;
    (void)system;
    (void)public;
    (void)has_subset;
    stop(context, "a DOCTYPE is not supported");
}

/* ---- reading --------------------------------------------------------------------------------- */

static vkn_status fail(const struct reading *reading, const char *path)
{
    bool no_memory = reading->problem != NULL && strcmp(reading->problem, "out of memory") == 0;
    const char *problem = reading->problem != NULL
                              ? reading->problem
                              : XML_ErrorString(XML_GetErrorCode(reading->parser));
    return base_fail(no_memory ? VKN_ERROR : VKN_BAD_INPUT, "%s: line %lu: %s", path,
                     XML_GetCurrentLineNumber(reading->parser), problem);
}

static vkn_status parse(struct reading *reading, const char *path, const char *text, size_t size)
{
    reading->parser = XML_ParserCreate(NULL);
    reading->open[0] = cJSON_CreateObject();
    if (reading->parser == NULL || reading->open[0] == NULL)
        return base_fail(VKN_ERROR, "%s: out of memory", path);
    XML_SetUserData(reading->parser, reading);
    XML_SetElementHandler(reading->parser, on_start, on_end);
    XML_SetCharacterDataHandler(reading->parser, on_text);
    XML_SetStartDoctypeDeclHandler(reading->parser, on_doctype);
    int parsed = XML_Parse(reading->parser, text, (int)size, 1);
    return parsed != 0 && reading->problem == NULL ? VKN_OK : fail(reading, path);
}

vkn_status import_read_xml(struct import *import, const char *path, struct cJSON **root)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct reading reading = {0};
    char *text = NULL;
    size_t size = 0;
    pthread_once(&once, load);
    *root = NULL;
    if (!loaded)
        return base_fail(VKN_ERROR,
                         "%s: XML needs " FILE_NAME ", which is missing: apt-get install libexpat1",
                         path);
    BASE_TRY(import_read_text(import, path, &text, &size));
    vkn_status status = parse(&reading, path, text, size);
    if (reading.parser != NULL)
        XML_ParserFree(reading.parser);
    free(reading.text.data);
    free(text);
    if (status == VKN_OK)
        *root = reading.open[0];
    else
        cJSON_Delete(reading.open[0]);
    return status;
}

const char *import_xml_text(const struct cJSON *element, const char *name)
{
    const cJSON *child = name != NULL ? cJSON_GetObjectItemCaseSensitive(element, name) : element;
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(child, "#text"));
}
