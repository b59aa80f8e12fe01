/* Checks the topology of meshes. */
#ifndef TESTS_MESHES_H
#define TESTS_MESHES_H

#include "gpu_fixture.h"

#include "render/mesh.h"

static inline int compare_edges(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(uint32_t));
}

/* Checks that every edge belongs to two triangles, in opposite directions, and every vertex is
 * used. Returns the Euler characteristic. */
static inline long assert_closed(const struct render_mesh *mesh)
{
    size_t count = 3 * mesh->triangle_count;
    uint32_t(*edges)[2] = calloc(count + 1, sizeof *edges);
    uint8_t *used = calloc(mesh->vertex_count + 1, 1);
    assert_true(edges && used);
    for (size_t i = 0; i < count; i++) {
        const uint32_t *triangle = mesh->triangles[i / 3];
        uint32_t from = triangle[i % 3], to = triangle[(i + 1) % 3];
        assert_true(from < mesh->vertex_count && from != to);
        used[from] = 1;
        edges[i][0] = from;
        edges[i][1] = to;
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && memcmp(edges[i], edges[i + 1], sizeof *edges) == 0)
            fail_msg("edge %u-%u is used twice in one direction", edges[i][0], edges[i][1]);
        const uint32_t back[2] = {edges[i][1], edges[i][0]};
        if (!bsearch(back, edges, count, sizeof *edges, compare_edges))
            fail_msg("edge %u-%u has a triangle on one side only", edges[i][0], edges[i][1]);
    }
    for (size_t v = 0; v < mesh->vertex_count; v++)
        assert_true(used[v]);
    free(edges);
    free(used);
    return (long)mesh->vertex_count - (long)(count / 2) + (long)mesh->triangle_count;
}

#endif
