/* Cuts a mesh into charts by growing them triangle by triangle. */
#include "render/atlas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/layout.h"

#define NONE              UINT32_MAX
#define MIN_COSINE        0.5 /* least cosine between a triangle's normal and the chart's axis */
#define SEED_COSINE       0.9 /* the same for a chart's first triangle, in the first pass */
/* Edge, in cells, of the squares that charts stay in: large charts waste texture space. */
#define TILE              64.0
#define OVERLAP_TOLERANCE 1e-4 /* overlap of projected triangles that is tolerated, cells */

/* ---- projection of triangles along an axis --------------------------------------------------- */

/* A projected triangle. */
struct projected {
    double at[3][2]; /* corners, in cells, counterclockwise */
};

struct cutter {
    const struct render_mesh *mesh;
    struct atlas *atlas;
    uint32_t *first,
        *adjacent;      /* vertex v's triangles: adjacent[first[v]] to adjacent[first[v + 1] - 1] */
    uint32_t *chart_of; /* [triangle]; NONE: not in a chart yet */
    size_t chart_capacity;
    /* Hash table from chart and cell to a chain of links: the projected triangles in the cell. */
    uint32_t *heads, mask;
    struct link {
        uint32_t triangle, next;
    } *links;
    size_t link_count, link_capacity;
};

static double in_cells(const struct atlas *atlas, const float position[3], uint32_t axis)
{
    return ((double)position[axis] - atlas->origin[axis]) / atlas->cell;
}

static void corners_of(const struct cutter *cutter, uint32_t triangle, double corners[3][3])
{
    for (int corner = 0; corner < 3; corner++)
        for (uint32_t i = 0; i < 3; i++)
            corners[corner][i] = in_cells(
                cutter->atlas,
                cutter->mesh->vertices[cutter->mesh->triangles[triangle][corner]].position, i);
}

/* Returns twice the triangle's area, and its unit normal. */
static double normal_of(const struct cutter *cutter, uint32_t triangle, double normal[3])
{
    double p[3][3], a[3], b[3], squares = 0;
    corners_of(cutter, triangle, p);
    for (int i = 0; i < 3; i++) {
        a[i] = p[1][i] - p[0][i];
        b[i] = p[2][i] - p[0][i];
    }
    for (int i = 0; i < 3; i++) {
        normal[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
        squares += normal[i] * normal[i];
    }
    double length = sqrt(squares);
    for (int i = 0; i < 3 && length > 0; i++)
        normal[i] /= length;
    return length;
}

/* Returns twice the signed area of o, a, b: positive where b is left of the line from o to a. */
static double cross(const double o[2], const double a[2], const double b[2])
{
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
}

static struct projected project(const struct cutter *cutter, uint32_t triangle, uint32_t axis)
{
    struct projected projected;
    double p[3][3];
    corners_of(cutter, triangle, p);
    for (int corner = 0; corner < 3; corner++)
        for (uint32_t i = 0; i < 2; i++)
            projected.at[corner][i] = p[corner][(axis + 1 + i) % 3];
    if (cross(projected.at[0], projected.at[1], projected.at[2]) < 0)
        for (int i = 0; i < 2; i++) {
            double swapped = projected.at[1][i];
            projected.at[1][i] = projected.at[2][i];
            projected.at[2][i] = swapped;
        }
    return projected;
}

/* Returns whether an edge of `a` has all of `b` on its outer side (separating axis theorem). */
static bool separates(const struct projected *a, const struct projected *b)
{
    for (int i = 0; i < 3; i++) {
        const double *from = a->at[i], *to = a->at[(i + 1) % 3];
        double slack = OVERLAP_TOLERANCE * hypot(to[0] - from[0], to[1] - from[1]);
        bool outside = true;
        for (int corner = 0; corner < 3; corner++)
            outside = outside && cross(from, to, b->at[corner]) <= slack;
        if (outside)
            return true;
    }
    return false;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static uint32_t *head_of(const struct cutter *cutter, uint32_t chart, long x, long y)
{
    uint32_t hash = chart * 0x9e3779b1u ^ (uint32_t)x * 0x85ebca77u ^ (uint32_t)y * 0xc2b2ae3du;
    hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
    return &cutter->heads[(hash ^ hash >> 16) & cutter->mask];
}

/* Returns the range of cells that a projected triangle covers. A triangle that only touches the
 * border of a cell does not cover the cell. */
static void cells_of(const struct projected *projected, long low[2], long high[2])
{
    for (int i = 0; i < 2; i++) {
        double least = fmin(projected->at[0][i], fmin(projected->at[1][i], projected->at[2][i]));
        double most = fmax(projected->at[0][i], fmax(projected->at[1][i], projected->at[2][i]));
        low[i] = (long)floor(least + 1e-3);
        high[i] = (long)floor(most - 1e-3);
        if (high[i] < low[i])
            high[i] = low[i];
    }
}

static bool overlaps(const struct cutter *cutter, uint32_t chart, const struct projected *projected)
{
    uint32_t axis = cutter->atlas->charts[chart].axis;
    long low[2], high[2];
    cells_of(projected, low, high);
    for (long y = low[1]; y <= high[1]; y++)
        for (long x = low[0]; x <= high[0]; x++)
            for (uint32_t l = *head_of(cutter, chart, x, y); l != NONE; l = cutter->links[l].next) {
                uint32_t other = cutter->links[l].triangle;
                if (cutter->chart_of[other] != chart)
                    continue;
                struct projected linked = project(cutter, other, axis);
                if (!separates(projected, &linked) && !separates(&linked, projected))
                    return true;
            }
    return false;
}

static vkn_status link_triangle(struct cutter *cutter, uint32_t chart,
                                const struct projected *projected, uint32_t triangle)
{
    long low[2], high[2];
    cells_of(projected, low, high);
    size_t wanted =
        cutter->link_count + (size_t)(high[0] - low[0] + 1) * (size_t)(high[1] - low[1] + 1);
    if (wanted > cutter->link_capacity) {
        size_t capacity = wanted + wanted / 2;
        void *grown =
            capacity < NONE ? base_realloc(cutter->links, capacity * sizeof *cutter->links) : NULL;
        if (!grown)
            return base_fail(VKN_ERROR, "out of memory for the charts of a texture");
        cutter->links = grown;
        cutter->link_capacity = capacity;
    }
    for (long y = low[1]; y <= high[1]; y++)
        for (long x = low[0]; x <= high[0]; x++) {
            uint32_t *head = head_of(cutter, chart, x, y);
            cutter->links[cutter->link_count] = (struct link){triangle, *head};
            *head = (uint32_t)cutter->link_count++;
        }
    return VKN_OK;
}

/* ---- growing charts -------------------------------------------------------------------------- */

/* Extends the bounds by a triangle. False: its centre is not in the chart's square. */
static bool extend_bounds(struct atlas_chart *chart, const struct projected *projected)
{
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int corner = 0; corner < 3; corner++) {
            chart->low[i] = fmin(chart->low[i], projected->at[corner][i]);
            chart->high[i] = fmax(chart->high[i], projected->at[corner][i]);
            sum += projected->at[corner][i];
        }
        double tile = floor(sum / 3 / TILE);
        if (chart->count > 0 && tile != chart->tile[i])
            return false;
        chart->tile[i] = tile;
    }
    return true;
}

/* Adds a triangle to the last chart if it lies in the chart's square and, unless it is the first or
 * has area 0, faces the axis (`sign`: 1 or -1) and overlaps no other triangle of the chart. */
static vkn_status add_if_it_fits(struct cutter *cutter, uint32_t triangle, double sign)
{
    struct atlas *atlas = cutter->atlas;
    uint32_t number = atlas->count - 1;
    struct atlas_chart *chart = &atlas->charts[number], wider = *chart;
    struct projected projected = project(cutter, triangle, chart->axis);
    double normal[3];
    if (!extend_bounds(&wider, &projected))
        return VKN_OK;
    if (normal_of(cutter, triangle, normal) > 0 && chart->count > 0 &&
        (sign * normal[chart->axis] < MIN_COSINE || overlaps(cutter, number, &projected)))
        return VKN_OK;
    *chart = wider;
    atlas->order[chart->first + chart->count++] = triangle;
    cutter->chart_of[triangle] = number;
    return link_triangle(cutter, number, &projected, triangle);
}

static vkn_status begin_chart(struct cutter *cutter, uint32_t axis)
{
    struct atlas *atlas = cutter->atlas;
    uint32_t first = 0;
    if (atlas->count > 0)
        first = atlas->charts[atlas->count - 1].first + atlas->charts[atlas->count - 1].count;
    if (atlas->count == cutter->chart_capacity) {
        size_t capacity = 2 * cutter->chart_capacity + 64;
        void *grown = base_realloc(atlas->charts, capacity * sizeof *atlas->charts);
        if (!grown)
            return base_fail(VKN_ERROR, "out of memory for the charts of a texture");
        atlas->charts = grown;
        cutter->chart_capacity = capacity;
    }
    atlas->charts[atlas->count++] = (struct atlas_chart){
        .axis = axis, .first = first, .low = {INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY}};
    return VKN_OK;
}

/* Starts a chart with the triangle `seed` and grows it breadth-first over adjacent triangles. */
static vkn_status grow(struct cutter *cutter, uint32_t seed, uint32_t axis, double sign)
{
    BASE_TRY(begin_chart(cutter, axis));
    BASE_TRY(add_if_it_fits(cutter, seed, sign));
    const struct atlas_chart *chart = &cutter->atlas->charts[cutter->atlas->count - 1];
    for (uint32_t n = 0; n < chart->count; n++) {
        const uint32_t *corners = cutter->mesh->triangles[cutter->atlas->order[chart->first + n]];
        for (int corner = 0; corner < 3; corner++)
            for (uint32_t i = cutter->first[corners[corner]];
                 i < cutter->first[corners[corner] + 1]; i++)
                if (cutter->chart_of[cutter->adjacent[i]] == NONE)
                    BASE_TRY(add_if_it_fits(cutter, cutter->adjacent[i], sign));
    }
    return VKN_OK;
}

/* Starts charts at triangles that face an axis; in a second pass, at all remaining triangles. */
static vkn_status grow_all(struct cutter *cutter)
{
    for (int second_pass = 0; second_pass < 2; second_pass++)
        for (uint32_t t = 0; t < cutter->mesh->triangle_count; t++) {
            double normal[3];
            uint32_t axis = 0;
            if (cutter->chart_of[t] != NONE)
                continue;
            double area = normal_of(cutter, t, normal);
            for (uint32_t i = 1; i < 3; i++)
                if (fabs(normal[i]) > fabs(normal[axis]))
                    axis = i;
            if (second_pass || (area > 0 && fabs(normal[axis]) > SEED_COSINE))
                BASE_TRY(grow(cutter, t, axis, normal[axis] < 0 ? -1.0 : 1.0));
        }
    return VKN_OK;
}

/* ---- cutting --------------------------------------------------------------------------------- */

static void list_adjacent(struct cutter *cutter)
{
    const struct render_mesh *mesh = cutter->mesh;
    for (size_t i = 0; i < 3 * mesh->triangle_count; i++)
        cutter->first[mesh->triangles[i / 3][i % 3] + 1]++;
    for (size_t v = 0; v < mesh->vertex_count; v++)
        cutter->first[v + 1] += cutter->first[v];
    for (size_t i = 3 * mesh->triangle_count; i-- > 0;) /* fills each vertex's range from its end */
        cutter->adjacent[--cutter->first[mesh->triangles[i / 3][i % 3] + 1]] = (uint32_t)(i / 3);
    memmove(cutter->first, cutter->first + 1, mesh->vertex_count * sizeof *cutter->first);
    cutter->first[mesh->vertex_count] = (uint32_t)(3 * mesh->triangle_count);
}

static vkn_status prepare(struct cutter *cutter)
{
    size_t triangles = cutter->mesh->triangle_count, buckets = 64;
    if (triangles > NONE / 4)
        return base_fail(VKN_BAD_INPUT,
                         "texture: %zu triangles are too many; a lower --resolution makes fewer",
                         triangles);
    while (buckets < triangles)
        buckets *= 2;
    cutter->mask = (uint32_t)(buckets - 1);
    cutter->first = base_alloc(cutter->mesh->vertex_count + 2, sizeof *cutter->first);
    cutter->adjacent = base_alloc(3 * triangles + 1, sizeof *cutter->adjacent);
    cutter->chart_of = base_alloc(triangles + 1, sizeof *cutter->chart_of);
    cutter->heads = base_alloc(buckets, sizeof *cutter->heads);
    cutter->atlas->order = base_alloc(triangles + 1, sizeof *cutter->atlas->order);
    if (!cutter->first || !cutter->adjacent || !cutter->chart_of || !cutter->heads ||
        !cutter->atlas->order)
        return VKN_ERROR;
    memset(cutter->heads, 0xff, buckets * sizeof *cutter->heads);
    memset(cutter->chart_of, 0xff, triangles * sizeof *cutter->chart_of);
    list_adjacent(cutter);
    return VKN_OK;
}

vkn_status atlas_cut(const struct render_mesh *mesh, double cell, const double origin[3],
                     struct atlas *atlas)
{
    *atlas = (struct atlas){.cell = cell, .origin = {origin[0], origin[1], origin[2]}};
    struct cutter cutter = {.mesh = mesh, .atlas = atlas};
    vkn_status status = prepare(&cutter);
    if (status == VKN_OK)
        status = grow_all(&cutter);
    free(cutter.first);
    free(cutter.adjacent);
    free(cutter.chart_of);
    free(cutter.heads);
    free(cutter.links);
    return status;
}

void atlas_destroy(struct atlas *atlas)
{
    free(atlas->order);
    free(atlas->charts);
    *atlas = (struct atlas){0};
}
