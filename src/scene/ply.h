/* Inside of the scene room: point clouds in PLY files (Turk, "The PLY Polygon File Format", 1994):
 * a header of lines that names elements and their properties, then the elements' values, as text or
 * in binary of either byte order. */
#ifndef SCENE_PLY_H
#define SCENE_PLY_H

#include "scene/transforms.h"

struct ply {
    struct transforms_point *points;
    size_t count;
    struct rejected_points left_out; /* a coordinate or colour is not finite, or a coordinate beyond
                                        1e9 */
};
void ply_free(struct ply *cloud);

/* The positions and, where it has them, colours of the element `vertex`, from the bytes of a file,
 * of which `file` is the name for messages; data[size] is readable and 0. x y z may be of any type;
 * other properties and elements, lists too, are stepped over. The caller frees with ply_free, after
 * a failure too. VKN_BAD_INPUT where something is missing, cut off, or no number; what a file
 * claims to hold is checked against its size before memory is taken. */
vkn_status ply_parse(const char *file, const char *data, size_t size, struct ply *cloud);

/* ---- the header (ply_header.c) --------------------------------------------------------------- */

enum ply_format { PLY_ASCII, PLY_LITTLE, PLY_BIG };

enum ply_type {
    PLY_INT8,
    PLY_UINT8,
    PLY_INT16,
    PLY_UINT16,
    PLY_INT32,
    PLY_UINT32,
    PLY_FLOAT,
    PLY_DOUBLE,
    PLY_TYPES
};
extern const size_t ply_type_sizes[PLY_TYPES];

/* What a vertex's property is to us. */
enum ply_role { PLY_X, PLY_Y, PLY_Z, PLY_RED, PLY_GREEN, PLY_BLUE, PLY_ROLES };
extern const char *const ply_role_names[PLY_ROLES];

struct ply_property {
    enum ply_type type;
    enum ply_type count_type; /* of a list: that of the number of its values */
    bool list;
    enum ply_role role; /* PLY_ROLES: none */
};

struct ply_element {
    bool is_vertex;
    uint64_t count;
    size_t first, properties; /* of ply_header.properties */
};

#define PLY_MAX_ELEMENTS   32u
#define PLY_MAX_PROPERTIES 512u

struct ply_header {
    enum ply_format format;
    struct ply_element elements[PLY_MAX_ELEMENTS];
    size_t element_count;
    struct ply_property properties[PLY_MAX_PROPERTIES];
    size_t property_count;
    size_t size; /* bytes: the values begin there */
};

/* There is one vertex element, with x, y and z. */
vkn_status ply_read_header(const char *file, const char *data, size_t size,
                           struct ply_header *header);

#endif
