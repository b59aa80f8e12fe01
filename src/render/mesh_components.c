/* Removes unseen parts and small connected components from a mesh. */
#include "render/mesh.h"

#include <stdlib.h>

/* Removes vertices that are not `kept`, and their triangles. `numbers`: scratch, [vertex]. */
static void compact(struct render_mesh *mesh, const bool *kept, uint32_t *numbers)
{
    uint32_t vertices = 0;
    size_t triangles = 0;
    for (uint32_t v = 0; v < mesh->vertex_count; v++) {
        numbers[v] = vertices;
        if (kept[v])
            mesh->vertices[vertices++] = mesh->vertices[v];
    }
    for (size_t t = 0; t < mesh->triangle_count; t++) {
        const uint32_t *from = mesh->triangles[t];
        if (!kept[from[0]] || !kept[from[1]] || !kept[from[2]])
            continue;
        for (int corner = 0; corner < 3; corner++)
            mesh->triangles[triangles][corner] = numbers[from[corner]];
        triangles++;
    }
    mesh->vertex_count = vertices;
    mesh->triangle_count = triangles;
}

static bool seen(const struct render_mesh *mesh, uint32_t vertex)
{
    return mesh->vertices[vertex].color >> 24 != MESH_UNSEEN;
}

vkn_status render_mesh_drop_unseen(struct render_mesh *mesh, size_t *removed)
{
    uint32_t *numbers = base_alloc(mesh->vertex_count + 1, sizeof *numbers);
    bool *kept = base_alloc(mesh->vertex_count + 1, sizeof *kept);
    size_t before = mesh->vertex_count;
    if (numbers && kept) {
        for (size_t t = 0; t < mesh->triangle_count; t++) {
            const uint32_t *corners = mesh->triangles[t];
            if (seen(mesh, corners[0]) || seen(mesh, corners[1]) || seen(mesh, corners[2]))
                kept[corners[0]] = kept[corners[1]] = kept[corners[2]] = true;
        }
        compact(mesh, kept, numbers);
    }
    *removed = before - mesh->vertex_count;
    vkn_status status = numbers && kept ? VKN_OK : VKN_ERROR;
    free(numbers);
    free(kept);
    return status;
}

/* ---- connected components ------------------------------------------------------------------
 * Disjoint sets of vertices, joined by triangles (Tarjan 1975, with path halving). */

static uint32_t find_root(uint32_t *parents, uint32_t vertex)
{
    while (parents[vertex] != vertex) {
        parents[vertex] = parents[parents[vertex]];
        vertex = parents[vertex];
    }
    return vertex;
}

/* Sets the parent of every vertex to the first vertex of its component. */
static void join(const struct render_mesh *mesh, uint32_t *parents)
{
    for (uint32_t v = 0; v < mesh->vertex_count; v++)
        parents[v] = v;
    for (size_t t = 0; t < mesh->triangle_count; t++)
        for (int corner = 1; corner < 3; corner++) {
            uint32_t a = find_root(parents, mesh->triangles[t][0]);
            uint32_t b = find_root(parents, mesh->triangles[t][corner]);
            parents[a > b ? a : b] = a > b ? b : a;
        }
    for (uint32_t v = 0; v < mesh->vertex_count; v++)
        parents[v] = find_root(parents, v);
}

/* Returns the number of components. sizes[first vertex]: a component's vertex count. */
static size_t count_components(const struct render_mesh *mesh, const uint32_t *parents,
                               uint32_t *sizes, uint32_t *largest)
{
    size_t components = 0;
    *largest = 0;
    for (uint32_t v = 0; v < mesh->vertex_count; v++) {
        components += parents[v] == v;
        sizes[parents[v]]++;
    }
    for (uint32_t v = 0; v < mesh->vertex_count; v++)
        if (sizes[v] > sizes[*largest])
            *largest = v;
    return components;
}

vkn_status render_mesh_keep_components(struct render_mesh *mesh, size_t vertices, bool only_largest,
                                       size_t *components, size_t *removed)
{
    uint32_t *parents = base_alloc(mesh->vertex_count + 1, sizeof *parents);
    uint32_t *sizes = base_alloc(mesh->vertex_count + 1, sizeof *sizes);
    bool *kept = base_alloc(mesh->vertex_count + 1, sizeof *kept);
    *components = *removed = 0;
    if (parents && sizes && kept) {
        uint32_t first;
        join(mesh, parents);
        *components = count_components(mesh, parents, sizes, &first);
        for (uint32_t v = 0; v < mesh->vertex_count; v++) {
            uint32_t root = parents[v]; /* at most v, so kept[root] is set unless root is v */
            kept[v] = root == v ? (only_largest ? v == first : sizes[v] >= vertices) : kept[root];
            *removed += root == v && !kept[v];
        }
        if (*removed > 0)
            compact(mesh, kept, sizes);
    }
    vkn_status status = parents && sizes && kept ? VKN_OK : VKN_ERROR;
    free(parents);
    free(sizes);
    free(kept);
    return status;
}
