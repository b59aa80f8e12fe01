/* The triangles of marching cubes, derived: in each face of a cell the surface runs from edge to
 * edge; end to end these lines make closed loops around the cell, and the loops are filled. */
#include "render/marching_cubes.h"

#include <string.h>

#define CORNERS  8u
#define EDGES    12u
#define MAX_LOOP 7u /* edges; the longest that there is */

/* A corner's bits are its coordinates. Edge 4 * axis + k begins at the corner whose coordinates
 * along the two axes behind `axis` (cyclically) are the bits of k. */
static uint32_t edge_between(uint32_t a, uint32_t b)
{
    uint32_t low = a & b, axis = (a ^ b) >> 1; /* 1, 2, 4 to 0, 1, 2 */
    return 4 * axis + (low >> (axis + 1) % 3 & 1u) + 2 * (low >> (axis + 2) % 3 & 1u);
}

/* A face's corners, counterclockwise seen from outside of the cell. */
static void face_corners(uint32_t axis, uint32_t side, uint32_t corners[4])
{
    uint32_t first = side << axis;
    uint32_t u = 1u << (axis + 1) % 3, v = 1u << (axis + 2) % 3;
    const uint32_t around[4] = {first, first | u, first | u | v, first | v};
    for (uint32_t i = 0; i < 4; i++)
        corners[i] = around[side ? i : 3 - i];
}

/* Around a face, the surface leaves the face through an edge from an inside corner to an outside
 * one and comes in through the crossed edge before, so that every line cuts off the inside corners
 * that lie between the two. Where two inside corners face each other across the diagonal that keeps
 * them apart. The neighbouring cell sees the same corners and so the same lines, the other way
 * round. An edge lies in two faces: it is left in one and come to in the other. next[e]: the edge
 * that a line goes to from e; EDGES: the surface does not cross e. */
static void trace_lines(uint32_t inside, uint32_t next[EDGES])
{
    for (uint32_t e = 0; e < EDGES; e++)
        next[e] = EDGES;
    for (uint32_t face = 0; face < 6; face++) {
        uint32_t corners[4];
        face_corners(face / 2, face % 2, corners);
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t here = corners[i], there = corners[(i + 1) % 4], back = i;
            if (!(inside >> here & 1u) || inside >> there & 1u)
                continue;
            while (inside >> corners[back] & 1u)
                back = (back + 3) % 4;
            next[edge_between(here, there)] = edge_between(corners[back], corners[(back + 1) % 4]);
        }
    }
}

/* Whether both edges lie in one face of the cell. */
static bool share_face(uint32_t a, uint32_t b)
{
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t side[2], edge[2] = {a, b};
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t place = (axis + 2 - edge[i] / 4) % 3; /* bit of k that counts along `axis` */
            side[i] = edge[i] / 4 == axis ? 2 + i : edge[i] >> place & 1u;
        }
        if (side[0] == side[1])
            return true;
    }
    return false;
}

/* A loop, which runs clockwise seen from outside, is filled by a fan from one of its corners. Its
 * inner lines must not lie in a face, where the neighbour's may lie as well: four triangles would
 * share them. Returns the corner to begin with; every loop has one. */
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
