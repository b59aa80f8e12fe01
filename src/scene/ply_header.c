/* Reads the header of a PLY file. */
#include <string.h>

#include "scene/ply.h"

const size_t ply_type_sizes[PLY_TYPES] = {1, 1, 2, 2, 4, 4, 4, 8};
const char *const ply_role_names[PLY_ROLES] = {"x", "y", "z", "red", "green", "blue"};

#define MAX_WORDS 6u /* most words of a line that are kept; relevant lines have fewer */

struct word {
    const char *text;
    size_t size;
};

struct lines {
    const char *file;
    const char *at, *end;
    char ending;   /* last character of every line; '\0' before the first line is read */
    size_t number; /* of the line, from 1 */
    struct word words[MAX_WORDS];
    size_t count;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the character that ends the first line and so all lines, since binary data may follow: a
 * line feed, possibly after a carriage return, or a carriage return alone, as in Turk's text. */
static char find_ending(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *carriage = memchr(at, '\r', (size_t)(end - at));
    bool is_carriage = carriage != NULL && (newline == NULL || carriage + 1 < newline);
    return (char)(is_carriage ? '\r' : '\n');
}

static bool next_line(struct lines *lines)
{
    size_t left = (size_t)(lines->end - lines->at);
    if (lines->ending == '\0' && left > 0)
        lines->ending = find_ending(lines->at, lines->end);
    const char *newline = left > 0 ? memchr(lines->at, lines->ending, left) : NULL;
    lines->count = 0;
    if (newline == NULL)
        return false;
    for (const char *c = lines->at; c < newline && lines->count < MAX_WORDS;) {
        const char *begin = c;
        while (c < newline && !is_blank(*c))
            c++;
        if (c > begin)
            lines->words[lines->count++] = (struct word){begin, (size_t)(c - begin)};
        while (c < newline && is_blank(*c))
            c++;
    }
    lines->at = newline + 1;
    lines->number++;
    return true;
}

static bool is_word(const struct lines *lines, size_t index, const char *text)
{
    const struct word *word = &lines->words[index];
    return index < lines->count && word->size == strlen(text) &&
           memcmp(word->text, text, word->size) == 0;
}

static vkn_status bad_line(const struct lines *lines, const char *what, const char *problem)
{
    return base_fail(VKN_BAD_INPUT, "%s: line %zu: %s: %s", lines->file, lines->number, what,
                     problem);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static vkn_status read_format(const struct lines *lines, struct ply_header *header)
{
    static const char *const names[] = {[PLY_ASCII] = "ascii",
                                        [PLY_LITTLE] = "binary_little_endian",
                                        [PLY_BIG] = "binary_big_endian"};
    for (unsigned i = 0; i < BASE_COUNT(names); i++) {
        if (!is_word(lines, 1, names[i]))
            continue;
        header->format = (enum ply_format)i;
        return is_word(lines, 2, "1.0") ? VKN_OK
                                        : bad_line(lines, "format", "its version is not 1.0");
    }
    return bad_line(lines, "format", "neither ascii, binary_little_endian nor binary_big_endian");
}

static vkn_status read_element(const struct lines *lines, struct ply_header *header)
{
    if (lines->count != 3)
        return bad_line(lines, "element", "not a name and a number");
    if (header->element_count == PLY_MAX_ELEMENTS)
        return bad_line(lines, "element", "more than 32 of them");
    struct ply_element *element = &header->elements[header->element_count];
    const struct word *word = &lines->words[2];
    uint64_t count = 0;
    for (size_t i = 0; i < word->size; i++) {
        unsigned digit = (unsigned)(word->text[i] - '0');
        if (digit > 9 || count > (UINT64_MAX - digit) / 10)
            return bad_line(lines, "element", "its number is not from 0 to 2^64 - 1");
        count = 10 * count + digit;
    }
    *element = (struct ply_element){is_word(lines, 1, "vertex"), count, header->property_count, 0};
    for (size_t i = 0; i < header->element_count && element->is_vertex; i++)
        if (header->elements[i].is_vertex)
            return bad_line(lines, "element", "vertex comes twice");
    header->element_count++;
    return VKN_OK;
}

static vkn_status read_type(const struct lines *lines, size_t index, enum ply_type *type)
{
    static const char *const names[PLY_TYPES][2] = {
        {"char", "int8"}, {"uchar", "uint8"}, {"short", "int16"},   {"ushort", "uint16"},
        {"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"double", "float64"}};
    for (unsigned i = 0; i < PLY_TYPES; i++) {
        if (!is_word(lines, index, names[i][0]) && !is_word(lines, index, names[i][1]))
            continue;
        *type = (enum ply_type)i;
        return VKN_OK;
    }
    return bad_line(lines, "property", "its type is none of PLY's (float, uchar, int, ...)");
}

static vkn_status read_property(const struct lines *lines, struct ply_header *header)
{
    if (header->element_count == 0)
        return bad_line(lines, "property", "there is no element before it");
    if (header->property_count == PLY_MAX_PROPERTIES)
        return bad_line(lines, "property", "more than 512 of them");
    struct ply_element *element = &header->elements[header->element_count - 1];
    struct ply_property property = {.is_list = is_word(lines, 1, "list"), .role = PLY_ROLES};
    size_t type = property.is_list ? 3 : 1;
    if (lines->count != type + 2)
        return bad_line(lines, "property", "not a type and a name");
    if (property.is_list)
        BASE_TRY(read_type(lines, 2, &property.count_type));
    BASE_TRY(read_type(lines, type, &property.type));
    for (unsigned i = 0; i < PLY_ROLES && element->is_vertex && !property.is_list; i++)
        if (is_word(lines, type + 1, ply_role_names[i]))
            property.role = (enum ply_role)i;
    header->properties[header->property_count++] = property;
    element->property_count++;
    return VKN_OK;
}

/* ---- the header ------------------------------------------------------------------------------ */

static vkn_status check_vertices(const char *file, const struct ply_header *header)
{
    const struct ply_element *vertex = NULL;
    unsigned roles = 0;
    for (size_t i = 0; i < header->element_count; i++)
        if (header->elements[i].is_vertex)
            vertex = &header->elements[i];
    if (vertex == NULL)
        return base_json_fail(file, "element vertex", "missing from the header");
    for (size_t i = 0; i < vertex->property_count; i++)
        roles |= 1u << header->properties[vertex->first_property + i].role;
    for (unsigned i = PLY_X; i <= PLY_Z; i++)
        if ((roles >> i & 1) == 0)
            return base_fail(VKN_BAD_INPUT, "%s: element vertex: property %s: missing", file,
                             ply_role_names[i]);
    return VKN_OK;
}

vkn_status ply_read_header(const char *file, const char *data, size_t size,
                           struct ply_header *header)
{
    size_t bom_size = 0;
    bool has_format = false;
    *header = (struct ply_header){0};
    BASE_TRY(base_text_bom(file, data, size, &bom_size));
    struct lines lines = {.file = file, .at = data + bom_size, .end = data + size};
    if (!next_line(&lines) || !is_word(&lines, 0, "ply"))
        return base_fail(VKN_BAD_INPUT, "%s: not a PLY file (its first line is not \"ply\")", file);
    while (next_line(&lines) && !is_word(&lines, 0, "end_header")) {
        if (is_word(&lines, 0, "format")) {
            has_format = true;
            BASE_TRY(read_format(&lines, header));
        } else if (is_word(&lines, 0, "element")) {
            BASE_TRY(read_element(&lines, header));
        } else if (is_word(&lines, 0, "property")) {
            BASE_TRY(read_property(&lines, header));
        } else if (lines.count > 0 && !is_word(&lines, 0, "comment") &&
                   !is_word(&lines, 0, "obj_info")) {
            return bad_line(&lines, "header", "not a line of a PLY header");
        }
    }
    if (!is_word(&lines, 0, "end_header"))
        return base_json_fail(file, "header", "cut off (there is no end_header)");
    if (!has_format)
        return base_json_fail(file, "format", "missing from the header");
    header->size = (size_t)(lines.at - data);
    return check_vertices(file, header);
}
