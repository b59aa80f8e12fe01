/* Computes the triangle table of marching cubes. In each face of a cell the surface is a set of
 * lines from edge to edge. The lines of all faces form closed loops around the cell, and each loop
 * is filled with triangles. */
#include "render/marching_cubes.h"

#include <string.h>

#define CORNERS  8u
#define EDGES    12u
#define MAX_LOOP 7u /* edges of the longest loop */

/* Returns the edge between two corners. A corner's bits are its coordinates. Edge 4 * axis + k
 * starts at the corner whose coordinates along the next two axes (cyclically) are the bits of k. */
static uint32_t edge_between(uint32_t a, uint32_t b)
{
    uint32_t low = a & b, axis = (a ^ b) >> 1; /* 1, 2, 4 to 0, 1, 2 */
    return 4 * axis + (low >> (axis + 1) % 3 & 1u) + 2 * (low >> (axis + 2) % 3 & 1u);
}

/* Lists a face's corners, counterclockwise seen from outside the cell. */
static void face_corners(uint32_t axis, uint32_t side, uint32_t corners[4])
{
    uint32_t first = side << axis;
    uint32_t u = 1u << (axis + 1) % 3, v = 1u << (axis + 2) % 3;
    const uint32_t around[4] = {first, first | u, first | u | v, first | v};
    for (uint32_t i = 0; i < 4; i++)
        corners[i] = around[side ? i : 3 - i];
}

/* Finds the lines of all faces. next[e]: the edge that the line from edge e leads to; EDGES: the
 * surface does not cross e. Going around a face, a line starts at an edge from an inside to an
 * outside corner and leads to the previous crossed edge: it cuts off the inside corners between
 * both edges. Two inside corners at opposite ends of a face's diagonal are therefore separated. The
 * neighbouring cell has the same corners in the face and so the same lines, reversed. Each crossed
 * edge lies in two faces: a line starts at it in one face, another ends at it in the other. */
static void trace_lines(uint32_t inside, uint32_t next[EDGES])
{
    for (uint32_t e = 0; e < EDGES; e++)
        next[e] = EDGES;
    for (uint32_t face = 0; face < 6; face++) {
        uint32_t corners[4];
        face_corners(face / 2, face % 2, corners);
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t corner = corners[i], next_corner = corners[(i + 1) % 4], back = i;
            if (!(inside >> corner & 1u) || inside >> next_corner & 1u)
                continue;
            while (inside >> corners[back] & 1u)
                back = (back + 3) % 4;
            next[edge_between(corner, next_corner)] =
                edge_between(corners[back], corners[(back + 1) % 4]);
        }
    }
}

/* Returns whether both edges lie in one face of the cell. */
static bool share_face(uint32_t a, uint32_t b)
{
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t side[2], edge[2] = {a, b};
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t bit = (axis + 2 - edge[i] / 4) % 3; /* bit of k for `axis` */
            side[i] = edge[i] / 4 == axis ? 2 + i : edge[i] >> bit & 1u;
        }
        if (side[0] == side[1])
            return true;
    }
    return false;
}

/* Returns the vertex of a loop that all triangles of its fan share. The fan's inner lines must not
 * lie in a face of the cell: the neighbouring cell's fan may have the same line, and four triangles
 * would share it. Every loop has such a vertex. Loops run clockwise seen from outside. */
static uint32_t fan_corner(const uint32_t *loop, uint32_t length)
{
    for (uint32_t first = 0; first < length; first++) {
        bool good = true;
        for (uint32_t i = 2; i + 1 < length; i++)
            good = good && !share_face(loop[first], loop[(first + i) % length]);
        if (good)
            return first;
    }
    return length;
}

static void add_edge(uint32_t words[2], uint32_t *corners, uint32_t edge)
{
    words[*corners / 8] |= edge << 4 * (*corners % 8);
    ++*corners;
}

static void fill_case(uint32_t inside, uint32_t words[2])
{
    uint32_t next[EDGES], corners = 0;
    trace_lines(inside, next);
    for (uint32_t begin = 0; begin < EDGES; begin++) {
        uint32_t loop[MAX_LOOP], length = 0;
        for (uint32_t e = begin, to = next[e]; to != EDGES; e = to, to = next[e]) {
            loop[length++] = e;
            next[e] = EDGES;
        }
        if (length == 0)
            continue;
        uint32_t first = fan_corner(loop, length);
        for (uint32_t i = 1; i + 1 < length; i++) {
            add_edge(words, &corners, loop[first]);
            add_edge(words, &corners, loop[(first + i + 1) % length]);
            add_edge(words, &corners, loop[(first + i) % length]);
        }
    }
    words[1] |= corners / 3 << 28;
}

void marching_table(uint32_t table[MESH_TABLE_WORDS])
{
    memset(table, 0, MESH_TABLE_WORDS * sizeof *table);
    for (uint32_t inside = 0; inside < 1u << CORNERS; inside++)
        fill_case(inside, table + (size_t)2 * inside);
}
