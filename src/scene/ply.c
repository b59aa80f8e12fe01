/* Reads the values of a PLY file. */
#include "scene/ply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct values {
    const char *file;
    enum ply_format format;
    const char *at, *end; /* current position, end of the file */
    const char *begin;    /* start of the file */
};

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the line number of the current position in a text file. */
static size_t line_number(const struct values *values)
{
    size_t line = 1;
    for (const char *c = values->begin; c < values->at; c++)
        line += *c == '\n' || (*c == '\r' && (c + 1 == values->end || c[1] != '\n')) ? 1 : 0;
    return line;
}

/* Returns whether the rest of the line, or of the file, is blank. */
static bool at_line_end(const struct values *values)
{
    const char *at = values->at;
    while (at < values->end && is_space(*at) && *at != '\n' && *at != '\r')
        at++;
    return at == values->end || is_space(*at);
}

/* Reads a number from text. Returns NULL or the problem. */
static const char *read_text_number(struct values *values, double *value)
{
    while (values->at < values->end && is_space(*values->at))
        values->at++;
    if (values->at == values->end)
        return "cut off";
    char *end = NULL;
    *value = strtod(values->at, &end);
    if (end == values->at || end > values->end || (end < values->end && !is_space(*end)))
        return "not a number";
    values->at = end;
    return NULL;
}

static double decode(uint64_t bits, enum ply_type type)
{
    uint32_t low = (uint32_t)bits;
    double number = 0;
    float single = 0;
    switch (type) {
    case PLY_INT8:
        return (int8_t)bits;
    case PLY_INT16:
        return (int16_t)bits;
    case PLY_INT32:
        return (int32_t)low;
    case PLY_FLOAT:
        memcpy(&single, &low, sizeof(single));
        return (double)single;
    case PLY_DOUBLE:
        memcpy(&number, &bits, sizeof(number));
        return number;
    default:
        return (double)bits;
    }
}

static const char *read_value(struct values *values, enum ply_type type, double *value)
{
    if (values->format == PLY_ASCII)
        return read_text_number(values, value);
    size_t size = ply_type_sizes[type];
    if (size > (size_t)(values->end - values->at))
        return "cut off";
    const uint8_t *bytes = (const uint8_t *)values->at;
    uint64_t bits = base_integer_of(bytes, size, values->format == PLY_BIG);
    values->at += size;
    *value = decode(bits, type);
    return NULL;
}

static const char *skip_list(struct values *values, const struct ply_property *property)
{
    double count = 0, value = 0;
    const char *problem = read_value(values, property->count_type, &count);
    if (problem != NULL)
        return problem;
    if (!(count >= 0 && count <= UINT32_MAX && floor(count) == count))
        return "the length of a list is not a whole number below 2^32";
    size_t length = (size_t)count, size = ply_type_sizes[property->type];
    if (values->format == PLY_ASCII) {
        for (size_t i = 0; i < length && problem == NULL; i++)
            problem = read_value(values, property->type, &value);
        return problem;
    }
    if (length > (size_t)(values->end - values->at) / size)
        return "cut off";
    values->at += length * size;
    return NULL;
}

/* ---- elements -------------------------------------------------------------------------------- */

static uint8_t color_of(enum ply_type type, double value)
{
    bool is_fraction = type == PLY_FLOAT || type == PLY_DOUBLE;
    double level = is_fraction ? 255 * value : value;
    return (uint8_t)(level >= 0 ? fmin(level, 255) + 0.5 : 0);
}

/* Stores a value in a point. Returns NULL, or why the point cannot be used. */
static const char *store(const struct ply_property *property, double value,
                         struct transforms_point *point)
{
    if (property->role <= PLY_Z) {
        point->position[property->role] = value;
        return fabs(value) <= POINTS_MAX_COORDINATE ? NULL : "not finite or beyond 1e9";
    }
    point->color[property->role - PLY_RED] = color_of(property->type, value);
    return isfinite(value) ? NULL : "not finite";
}

static vkn_status bad_item(const struct values *values, const struct ply_element *element,
                           uint64_t index, size_t property, enum ply_role role, const char *problem)
{
    char name[32], line[48] = "";
    snprintf(name, sizeof(name), property < element->property_count ? "property %zu" : "its line",
             property + 1);
    if (values->format == PLY_ASCII)
        snprintf(line, sizeof(line), "line %zu: ", line_number(values));
    return base_fail(VKN_BAD_INPUT, "%s: %s%s %llu of %llu: %s: %s", values->file, line,
                     element->is_vertex ? "vertex" : "item", (unsigned long long)index + 1,
                     (unsigned long long)element->count,
                     role < PLY_ROLES ? ply_role_names[role] : name, problem);
}

static vkn_status read_item(struct values *values, const struct ply_header *header,
                            const struct ply_element *element, uint64_t index,
                            struct transforms_point *point, bool *usable)
{
    const struct ply_property *properties = header->properties + element->first_property;
    for (size_t i = 0; i < element->property_count; i++) {
        const struct ply_property *property = &properties[i];
        double value = 0;
        const char *problem = property->is_list ? skip_list(values, property)
                                                : read_value(values, property->type, &value);
        if (problem != NULL)
            return bad_item(values, element, index, i, property->role, problem);
        if (property->role != PLY_ROLES && *usable)
            problem = store(property, value, point);
        if (problem != NULL) {
            bad_item(values, element, index, i, property->role, problem);
            *usable = false;
        }
    }
    if (values->format == PLY_ASCII && !at_line_end(values))
        return bad_item(values, element, index, element->property_count, PLY_ROLES,
                        "more or fewer values than there are properties in the header");
    return VKN_OK;
}

/* Checks an element's count against the bytes that follow. In text a number takes at least a digit
 * and a blank, except the file's last number, which may end without a blank. */
static vkn_status check_count(const struct values *values, const struct ply_header *header,
                              const struct ply_element *element)
{
    const struct ply_property *properties = header->properties + element->first_property;
    size_t smallest = 0, left = (size_t)(values->end - values->at);
    for (size_t i = 0; i < element->property_count; i++)
        smallest += values->format == PLY_ASCII
                        ? 2
                        : ply_type_sizes[properties[i].is_list ? properties[i].count_type
                                                               : properties[i].type];
    size_t available = values->format == PLY_ASCII ? left + 1 : left;
    if (smallest == 0 || element->count <= available / smallest)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: element %s: %llu do not fit into the %zu bytes that follow", values->file,
                     element->is_vertex ? "vertex" : "before or after vertex",
                     (unsigned long long)element->count, left);
}

static vkn_status read_vertices(struct values *values, const struct ply_header *header,
                                const struct ply_element *element, struct ply *cloud)
{
    cloud->points = base_alloc((size_t)element->count, sizeof(*cloud->points));
    if (cloud->points == NULL)
        return VKN_ERROR;
    for (uint64_t i = 0; i < element->count; i++) {
        bool usable = true;
        BASE_TRY(read_item(values, header, element, i, &cloud->points[cloud->count], &usable));
        if (usable)
            cloud->count++;
        else
            BASE_TRY(points_reject(&cloud->left_out));
    }
    return VKN_OK;
}

static vkn_status read_element(struct values *values, const struct ply_header *header,
                               const struct ply_element *element, struct ply *cloud)
{
    if (element->property_count == 0)
        return VKN_OK;
    BASE_TRY(check_count(values, header, element));
    struct transforms_point other = {0}; /* unused: only vertices have properties with a role */
    bool usable = true;
    if (element->is_vertex)
        return read_vertices(values, header, element, cloud);
    for (uint64_t i = 0; i < element->count; i++)
        BASE_TRY(read_item(values, header, element, i, &other, &usable));
    return VKN_OK;
}

void ply_free(struct ply *cloud)
{
    free(cloud->points);
    free(cloud->left_out.first);
    *cloud = (struct ply){0};
}

vkn_status ply_parse(const char *file, const char *data, size_t size, struct ply *cloud)
{
    struct ply_header header;
    *cloud = (struct ply){0};
    BASE_TRY(ply_read_header(file, data, size, &header));
    struct values values = {file, header.format, data + header.size, data + size, data};
    for (size_t i = 0; i < header.element_count; i++)
        BASE_TRY(read_element(&values, &header, &header.elements[i], cloud));
    while (values.at < values.end && is_space(*values.at))
        values.at++;
    if (values.format == PLY_ASCII && values.at < values.end)
        return base_fail(VKN_BAD_INPUT, "%s: line %zu: more lines than the header says there are",
                         file, line_number(&values));
    return VKN_OK;
}
