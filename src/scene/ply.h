/* Reads point clouds from PLY files (Turk, "The PLY Polygon File Format", 1994; internal to the
 * module scene): a header of lines names elements and their properties; the elements' values follow
 * as text or in binary of either byte order. */
#ifndef SCENE_PLY_H
#define SCENE_PLY_H

#include "scene/transforms.h"

/* A point cloud. */
struct ply {
    struct transforms_point *points;
    size_t count;
    struct rejected_points left_out; /* points with a value not finite or a coordinate beyond 1e9 */
};
/* Frees what the cloud owns and sets it to zeros. */
void ply_free(struct ply *cloud);

/* Reads the positions and, when present, colours of the element `vertex` from the bytes of a file;
 * `file` is its name for messages, and data[size] must be readable and 0. x y z may have any type;
 * other properties and elements, including lists, are skipped. The caller frees the cloud with
 * ply_free, also after a failure. Returns VKN_BAD_INPUT when something is missing, cut off or not a
 * number. Counts that the file claims are checked against its size before memory is allocated. */
vkn_status ply_parse(const char *file, const char *data, size_t size, struct ply *cloud);

/* ---- the header (ply_header.c) --------------------------------------------------------------- */

/* Encoding of the values. */
enum ply_format { PLY_ASCII, PLY_LITTLE, PLY_BIG };

/* Types of a property. ply_type_sizes: bytes of each type in binary files. */
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

/* Meaning of a vertex property. */
enum ply_role { PLY_X, PLY_Y, PLY_Z, PLY_RED, PLY_GREEN, PLY_BLUE, PLY_ROLES };
extern const char *const ply_role_names[PLY_ROLES];

/* A property of an element. */
struct ply_property {
    enum ply_type type;
    enum ply_type count_type; /* type of the length of a list */
    bool is_list;
    enum ply_role role; /* PLY_ROLES: ignored */
};

/* An element: a list of equal records. */
struct ply_element {
    bool is_vertex;
    uint64_t count;
    size_t first_property, property_count; /* range of ply_header.properties */
};

#define PLY_MAX_ELEMENTS   32u
#define PLY_MAX_PROPERTIES 512u

/* A parsed header. */
struct ply_header {
    enum ply_format format;
    struct ply_element elements[PLY_MAX_ELEMENTS];
    size_t element_count;
    struct ply_property properties[PLY_MAX_PROPERTIES];
    size_t property_count;
    size_t size; /* bytes of the header; the values follow */
};

/* Reads the header and checks that it has one vertex element with x, y and z. */
vkn_status ply_read_header(const char *file, const char *data, size_t size,
                           struct ply_header *header);

#endif
