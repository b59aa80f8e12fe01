/* Tests marching cubes on known values (meshes are closed, oriented and in the right position, for
 * any values and slabs), mesh components, unseen parts, textures and mesh files. */
#include "gpu_fixture.h"

#include <math.h>

#include "meshes.h"
#include "render/atlas.h"

struct random {
    uint64_t state;
};

/* splitmix64 (Steele, Lea and Flood 2014), mapped to -1 .. 1. */
static float random_value(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (float)((double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0);
}

static struct gpu_device *device;

/* ---- values on a grid ---------------------------------------------------------------------- */

struct volume {
    struct MeshGrid grid;
    float *values; /* [z][y][x]; -1 on the faces */
    struct marching marching;
};

static float *value_of(struct volume *volume, uint32_t x, uint32_t y, uint32_t z)
{
    const uint32_t *points = volume->grid.points;
    return volume->values + ((size_t)z * points[1] + y) * points[0] + x;
}

/* A source of layers for render_mesh: uploads the values from layer `first` on. */
static vkn_status fill(void *context, uint32_t first, bool *any)
{
    struct volume *volume = context;
    struct marching *m = &volume->marching;
    size_t layer = (size_t)m->grid.points[0] * m->grid.points[1];
    float *layers = calloc(m->grid.layers * layer, sizeof *layers);
    for (uint32_t l = 0; l < m->grid.layers; l++)
        for (size_t i = 0; i < layer; i++) {
            bool within = first + l < m->grid.points[2];
            float value = within ? volume->values[(first + l) * layer + i] : -1.0f;
            layers[l * layer + i] = value;
            *any = *any || value > 0.0f;
        }
    ok(gpu_upload(device, &m->buffers.at[BIND_MESH_VALUES], MESH_OVERLAP * layer * 4, layers,
                  m->grid.layers * layer * 4));
    free(layers);
    return VKN_OK;
}

static struct volume create_volume(uint32_t x, uint32_t y, uint32_t z, uint32_t layers)
{
    struct volume volume = {.grid = {.points = {x, y, z},
                                     .layers = layers,
                                     .origin = {-1, 2, 0.5f},
                                     .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                     .spacing = 0.25f}};
    volume.values = calloc((size_t)x * y * z, sizeof(float));
    assert_non_null(volume.values);
    return volume;
}

/* Sets the values of all points that are not on a face. */
static void set_values(struct volume *volume, float (*value)(void *context, const float p[3]),
                       void *context)
{
    const uint32_t *points = volume->grid.points;
    for (uint32_t z = 0; z < points[2]; z++)
        for (uint32_t y = 0; y < points[1]; y++)
            for (uint32_t x = 0; x < points[0]; x++) {
                bool face = x == 0 || y == 0 || z == 0 || x + 1 == points[0] ||
                            y + 1 == points[1] || z + 1 == points[2];
                float p[3];
                const uint32_t at[3] = {x, y, z};
                for (int i = 0; i < 3; i++)
                    p[i] = volume->grid.origin[i] + volume->grid.spacing * (float)at[i];
                float v = value(context, p);
                *value_of(volume, x, y, z) = face ? (float)-MESH_LIMIT : v;
            }
}

static struct render_mesh march(struct volume *volume, uint32_t capacity)
{
    const struct gpu_buffer *none[GPU_BINDINGS] = {NULL};
    struct marching_source source = {.context = volume, .fill = fill};
    struct render_mesh mesh = {0};
    ok(marching_create(device, &volume->grid, capacity, none, &volume->marching));
    ok(marching_run(&volume->marching, &source, &mesh));
    marching_destroy(&volume->marching);
    return mesh;
}

/* ---- volume of a mesh ------------------------------------------------------------------------ */

/* The volume by the divergence theorem; positive if triangles are counterclockwise from outside. */
static double enclosed_volume(const struct render_mesh *mesh)
{
    double sum = 0;
    for (size_t i = 0; i < mesh->triangle_count; i++) {
        const float *a = mesh->vertices[mesh->triangles[i][0]].position;
        const float *b = mesh->vertices[mesh->triangles[i][1]].position;
        const float *c = mesh->vertices[mesh->triangles[i][2]].position;
        for (int k = 0; k < 3; k++) {
            int l = (k + 1) % 3, m = (k + 2) % 3;
            sum += a[k] * ((double)b[l] * c[m] - (double)b[m] * c[l]) / 6;
        }
    }
    return sum;
}

/* ---- shapes -------------------------------------------------------------------------------- */

#define PI 3.14159265358979

static const float center[3] = {1.87f, 4.8f, 3.41f};

static float sphere(void *context, const float p[3])
{
    float squares = 0;
    for (int i = 0; i < 3; i++)
        squares += (p[i] - center[i]) * (p[i] - center[i]);
    return *(float *)context - sqrtf(squares);
}

static float torus(void *context, const float p[3])
{
    float ring = hypotf(p[0] - center[0], p[2] - center[2]) - *(float *)context;
    return 0.7f - hypotf(ring, p[1] - center[1]);
}

static float noise(void *context, const float p[3])
{
    (void)p;
    return random_value(context);
}

static void check_surface(const struct render_mesh *mesh,
                          float (*value)(void *context, const float p[3]), float size)
{
    for (size_t i = 0; i < mesh->vertex_count; i++) {
        const struct MeshVertex *v = &mesh->vertices[i];
        float length = 0, out[3], in[3];
        for (int k = 0; k < 3; k++) {
            length += v->normal[k] * v->normal[k];
            out[k] = v->position[k] + 0.01f * v->normal[k];
            in[k] = v->position[k] - 0.01f * v->normal[k];
        }
        assert_true(fabsf(length - 1) < 1e-5f);
        /* A chord of one voxel is spacing^2 / (8 radius) below a curved surface. */
        assert_true(fabsf(value(&size, v->position)) < 0.04f);
        /* Along the normal the signed distance changes by the length of the step. */
        float fall = (value(&size, in) - value(&size, out)) / 0.02f;
        if (!(fall > 0.995f))
            fail_msg("vertex %zu: the normal is %f from the surface's", i, acosf(fall));
    }
}

static void test_sphere(void **state)
{
    device = *state;
    float radius = 1.9f;
    struct volume volume = create_volume(23, 24, 25, 0);
    set_values(&volume, sphere, &radius);
    struct render_mesh mesh = march(&volume, 4096);
    assert_int_equal(assert_closed(&mesh), 2);
    check_surface(&mesh, sphere, radius);
    double exact = 4.0 / 3.0 * PI * pow(radius, 3);
    assert_true(fabs(enclosed_volume(&mesh) - exact) < 0.04 * exact);
    render_mesh_free(&mesh);
    free(volume.values);
}

static void test_torus(void **state)
{
    device = *state;
    float radius = 1.5f;
    struct volume volume = create_volume(24, 23, 25, 4);
    set_values(&volume, torus, &radius);
    struct render_mesh mesh = march(&volume, 100);
    assert_int_equal(assert_closed(&mesh), 0);
    check_surface(&mesh, torus, radius);
    render_mesh_free(&mesh);
    free(volume.values);
}

/* A sphere larger than the crop box is closed at the box's faces. */
static void test_faces(void **state)
{
    device = *state;
    float radius = 6.0f;
    struct volume volume = create_volume(9, 9, 9, 0);
    set_values(&volume, sphere, &radius);
    struct render_mesh mesh = march(&volume, 4096);
    assert_int_equal(assert_closed(&mesh), 2);
    double inner = pow(6 * 0.25, 3), outer = pow(8 * 0.25, 3), volume_of = enclosed_volume(&mesh);
    assert_true(volume_of > inner && volume_of < outer);
    render_mesh_free(&mesh);
    free(volume.values);
}

/* Noise has all 256 cases, next to each other. The mesh does not depend on slabs or windows. */
static void test_noise(void **state)
{
    device = *state;
    struct random random = {5};
    struct volume volume = create_volume(20, 17, 23, 0);
    set_values(&volume, noise, &random);
    uint8_t seen[256] = {0};
    for (uint32_t z = 0; z < 22; z++)
        for (uint32_t y = 0; y < 16; y++)
            for (uint32_t x = 0; x < 19; x++) {
                uint32_t inside = 0;
                for (uint32_t c = 0; c < 8; c++)
                    if (*value_of(&volume, x + (c & 1), y + (c >> 1 & 1), z + (c >> 2)) > 0)
                        inside |= 1u << c;
                seen[inside] = 1;
            }
    for (int i = 0; i < 256; i++)
        assert_true(seen[i]);
    struct render_mesh whole = march(&volume, 1 << 16);
    assert_closed(&whole);
    volume.grid.layers = 5;
    struct render_mesh parts = march(&volume, 333);
    assert_int_equal(parts.vertex_count, whole.vertex_count);
    assert_int_equal(parts.triangle_count, whole.triangle_count);
    assert_memory_equal(parts.triangles, whole.triangles, 12 * whole.triangle_count);
    for (size_t i = 0; i < whole.vertex_count; i++)
        assert_memory_equal(&parts.vertices[i], &whole.vertices[i], sizeof *whole.vertices);
    render_mesh_free(&whole);
    render_mesh_free(&parts);
    free(volume.values);
}

/* ---- positions and normals ------------------------------------------------------------------- */

/* Central differences; returns false at the grid's faces. */
static bool gradient_at(struct volume *volume, const uint32_t p[3], double gradient[3])
{
    for (int k = 0; k < 3; k++) {
        uint32_t above[3] = {p[0], p[1], p[2]}, below[3] = {p[0], p[1], p[2]};
        if (p[k] == 0 || p[k] + 1 == volume->grid.points[k])
            return false;
        above[k]++;
        below[k]--;
        gradient[k] = (double)*value_of(volume, above[0], above[1], above[2]) -
                      (double)*value_of(volume, below[0], below[1], below[2]);
    }
    return true;
}

/* Finds the grid edge of a vertex; returns the edge's axis. */
static int find_edge(const struct volume *volume, const struct MeshVertex *vertex, uint32_t from[3],
                     double *along)
{
    int axis = -1;
    for (int k = 0; k < 3; k++) {
        double position =
            ((double)vertex->position[k] - volume->grid.origin[k]) / volume->grid.spacing;
        double nearest = round(position);
        bool between = fabs(position - nearest) > 5e-4;
        from[k] = (uint32_t)(between ? floor(position) : nearest);
        assert_true(!between || axis < 0);
        if (between) {
            axis = k;
            *along = position - floor(position);
        }
    }
    assert_true(axis >= 0);
    return axis;
}

/* A vertex is at the zero between two points, but not at a point itself; its normal is the
 * gradient's, or the edge's if the gradient is 0. */
static void check_vertex(struct volume *volume, const struct MeshVertex *vertex)
{
    uint32_t from[3], to[3];
    double position = 0, g[2][3], normal[3], squares = 0;
    int axis = find_edge(volume, vertex, from, &position);
    memcpy(to, from, sizeof to);
    to[axis]++;
    double a = *value_of(volume, from[0], from[1], from[2]);
    double b = *value_of(volume, to[0], to[1], to[2]);
    double t = fmin(fmax(a / (a - b), 1e-3), 1 - 1e-3);
    assert_true((a > 0) != (b > 0));
    if (!(fabs(position - t) < 2e-5))
        fail_msg("%g of the way instead of %g from %g to %g", position, t, a, b);
    if (!gradient_at(volume, from, g[0]) || !gradient_at(volume, to, g[1]))
        return;
    for (int k = 0; k < 3; k++) {
        normal[k] = -(1 - t) * g[0][k] - t * g[1][k];
        squares += normal[k] * normal[k];
    }
    for (int k = 0; k < 3; k++) {
        double flat = k == axis ? (a > 0) - (b > 0) : 0;
        double expected = squares > 1e-9 ? normal[k] / sqrt(squares) : flat;
        assert_true(fabs(vertex->normal[k] - expected) < 1e-4);
    }
}

/* Many values are exactly 0. */
static float coarse_noise(void *context, const float p[3])
{
    (void)p;
    return roundf(2 * random_value(context)) / 2;
}

/* Alternately inside and outside: every central difference is 0. */
static float checkers(void *context, const float p[3])
{
    const struct volume *volume = context;
    long sum = 0;
    for (int k = 0; k < 3; k++)
        sum += lroundf((p[k] - volume->grid.origin[k]) / volume->grid.spacing);
    return sum % 2 ? 0.5f : -0.5f;
}

static void test_vertices(void **state)
{
    device = *state;
    struct random random = {6};
    for (int n = 0; n < 3; n++) {
        struct volume volume = create_volume(20, 17, 23, 0);
        set_values(&volume,
                   n == 0   ? noise
                   : n == 1 ? coarse_noise
                            : checkers,
                   n < 2 ? (void *)&random : &volume);
        struct render_mesh mesh = march(&volume, 1 << 16);
        assert_closed(&mesh);
        assert_true(mesh.vertex_count > 5000);
        for (size_t i = 0; i < mesh.vertex_count; i++)
            check_vertex(&volume, &mesh.vertices[i]);
        render_mesh_free(&mesh);
        free(volume.values);
    }
}

/* ---- components ------------------------------------------------------------------------------ */

/* Disjoint tetrahedra with interleaved vertices; the one before the last has one more triangle. */
static struct render_mesh tetrahedra(uint32_t count)
{
    static const uint32_t faces[4][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {2, 0, 3}};
    struct render_mesh mesh = {.vertex_count = 4 * count + 1, .triangle_count = 4 * count + 1};
    mesh.vertices = calloc(mesh.vertex_count, sizeof *mesh.vertices);
    mesh.triangles = calloc(mesh.triangle_count, sizeof *mesh.triangles);
    assert_true(mesh.vertices && mesh.triangles);
    for (uint32_t v = 0; v < mesh.vertex_count; v++)
        mesh.vertices[v].position[0] = (float)v;
    for (uint32_t t = 0; t < 4 * count; t++)
        for (int i = 0; i < 3; i++)
            mesh.triangles[t][i] = faces[t % 4][i] * count + t / 4;
    const uint32_t lid[3] = {count - 2, 2 * count - 2, 4 * count};
    memcpy(mesh.triangles[4 * count], lid, sizeof lid);
    return mesh;
}

static void test_components(void **state)
{
    (void)state;
    size_t parts, removed;
    struct render_mesh mesh = tetrahedra(5);
    ok(render_mesh_keep_components(&mesh, 4, false, &parts, &removed));
    assert_int_equal(parts, 5);
    assert_int_equal(removed, 0);
    assert_int_equal(mesh.vertex_count, 21);
    ok(render_mesh_keep_components(&mesh, 5, false, &parts, &removed));
    assert_int_equal(removed, 4);
    assert_int_equal(mesh.vertex_count, 5);
    assert_int_equal(mesh.triangle_count, 5);
    for (int v = 0; v < 5; v++)
        assert_true(mesh.vertices[v].position[0] == (v < 4 ? 3 + 5 * (float)v : 20));
    const uint32_t triangles[5][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {2, 0, 3}, {0, 1, 4}};
    assert_memory_equal(mesh.triangles, triangles, sizeof triangles);
    ok(render_mesh_keep_components(&mesh, 6, false, &parts, &removed));
    assert_int_equal(mesh.vertex_count + mesh.triangle_count, 0);
    ok(render_mesh_keep_components(&mesh, 6, true, &parts, &removed));
    assert_int_equal(parts + removed, 0);
    render_mesh_free(&mesh);

    mesh = tetrahedra(7);
    ok(render_mesh_keep_components(&mesh, 0, true, &parts, &removed));
    assert_int_equal(parts, 7);
    assert_int_equal(removed, 6);
    assert_int_equal(mesh.vertex_count, 5);
    assert_true(mesh.vertices[0].position[0] == 5);
    render_mesh_free(&mesh);
}

/* A strip of triangles v, v + 1, v + 2 with vertices 3 and 9 to 11 seen: triangles with a seen
 * vertex are kept, in order. */
static void test_unseen(void **state)
{
    (void)state;
    enum { VERTICES = 14 };
    size_t removed = 0;
    struct MeshVertex vertices[VERTICES];
    uint32_t triangles[VERTICES - 2][3];
    for (uint32_t v = 0; v < VERTICES; v++) {
        bool seen = v == 3 || (v >= 9 && v <= 11);
        vertices[v] = (struct MeshVertex){.position = {(float)v}};
        vertices[v].color = 0x123456u | (seen ? 255u : (uint32_t)MESH_UNSEEN) << 24;
        for (uint32_t i = 0; i < 3 && v + 2 < VERTICES; i++)
            triangles[v][i] = v + (v + i) % 3;
    }
    struct render_mesh mesh = {.vertices = vertices,
                               .triangles = triangles,
                               .vertex_count = VERTICES,
                               .triangle_count = VERTICES - 2};
    ok(render_mesh_drop_unseen(&mesh, &removed));
    /* Triangles 1 to 3 have vertex 3, 7 to 11 one of 9 to 11: vertices 1 to 5 and 7 to 13 stay. */
    assert_int_equal(removed, 2);
    assert_int_equal(mesh.vertex_count, 12);
    assert_int_equal(mesh.triangle_count, 8);
    for (uint32_t v = 0; v < 12; v++)
        assert_true(vertices[v].position[0] == (float)(v < 5 ? v + 1 : v + 2));
    for (uint32_t t = 0; t < 8; t++) {
        uint32_t first = t < 3 ? t + 1 : t + 4;
        for (uint32_t i = 0; i < 3; i++)
            assert_true(vertices[triangles[t][i]].position[0] == (float)(first + (first + i) % 3));
    }
    ok(render_mesh_drop_unseen(&mesh, &removed)); /* every triangle has a seen vertex */
    assert_int_equal(removed, 0);
    for (uint32_t v = 0; v < 12; v++)
        vertices[v].color = (uint32_t)MESH_UNSEEN << 24;
    ok(render_mesh_drop_unseen(&mesh, &removed));
    assert_int_equal(removed, 12);
    assert_int_equal(mesh.vertex_count + mesh.triangle_count, 0);
}

/* ---- textures ------------------------------------------------------------------------------ */

static uint32_t edge_of(const struct atlas *atlas, const struct atlas_chart *chart, int axis)
{
    return (uint32_t)ceil((chart->high[axis] - chart->low[axis]) * atlas->density) +
           2 * ATLAS_GUTTER;
}

/* A row begins directly below the highest chart of the row before. */
static void check_row(const struct atlas *atlas, const struct atlas_chart *first)
{
    bool below = first->y == 0;
    for (uint32_t c = 0; c < atlas->count && !below; c++)
        below = atlas->charts[c].y + edge_of(atlas, &atlas->charts[c], 1) == first->y;
    assert_true(below);
}

/* Each triangle is in one chart. Charts and their gutters do not overlap, and lie in the square. */
static void check_charts(const struct render_mesh *mesh, const struct atlas *atlas)
{
    uint8_t *listed = calloc(mesh->triangle_count, 1), *covered = calloc(atlas->size, atlas->size);
    uint32_t first = 0;
    assert_true(listed && covered);
    for (uint32_t c = 0; c < atlas->count; c++) {
        const struct atlas_chart *chart = &atlas->charts[c];
        assert_int_equal(chart->first, first);
        first += chart->count;
        for (uint32_t n = chart->first; n < first; n++)
            assert_int_equal(listed[atlas->order[n]]++, 0);
        uint32_t edge[2] = {edge_of(atlas, chart, 0), edge_of(atlas, chart, 1)};
        if (chart->x == 0)
            check_row(atlas, chart);
        assert_true(chart->x + edge[0] <= atlas->size && chart->y + edge[1] <= atlas->size);
        for (uint32_t y = chart->y; y < chart->y + edge[1]; y++)
            for (uint32_t x = chart->x; x < chart->x + edge[0]; x++)
                assert_int_equal(covered[(size_t)y * atlas->size + x]++, 0);
    }
    assert_int_equal(first, mesh->triangle_count);
    free(listed);
    free(covered);
}

/* Computes a point's barycentric coordinates. */
static void barycentric(float (*const texel)[2], double x, double y, double weights[3])
{
    double area = 0;
    for (int c = 0; c < 3; c++) {
        const float *from = texel[(c + 1) % 3], *to = texel[(c + 2) % 3];
        weights[c] = ((double)from[0] - x) * ((double)to[1] - y) -
                     ((double)to[0] - x) * ((double)from[1] - y);
        area += weights[c];
    }
    for (int c = 0; c < 3; c++)
        weights[c] = fabs(area) > 1e-6 ? weights[c] / area : -1;
}

/* No pixel is in two triangles; a chart is a projection that keeps at least half of a triangle's
 * area. */
static void check_texels(const struct render_mesh *mesh, double pixels)
{
    uint32_t size = mesh->texture_size, *owner = calloc((size_t)size * size, sizeof *owner);
    size_t overlaps = 0;
    assert_non_null(owner);
    for (uint32_t t = 0; t < mesh->triangle_count; t++) {
        float texel[3][2];
        double edges[2][3], normal = 0, low[2] = {INFINITY, INFINITY}, high[2] = {0, 0}, weights[3];
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 2; i++) {
                texel[c][i] = mesh->texels[mesh->triangles[t][c]][i];
                low[i] = fmin(low[i], (double)texel[c][i]);
                high[i] = fmax(high[i], (double)texel[c][i]);
            }
        for (int e = 0; e < 2; e++)
            for (int i = 0; i < 3; i++)
                edges[e][i] =
                    pixels * ((double)mesh->vertices[mesh->triangles[t][e + 1]].position[i] -
                              (double)mesh->vertices[mesh->triangles[t][0]].position[i]);
        for (int i = 0; i < 3; i++) {
            double part = edges[0][(i + 1) % 3] * edges[1][(i + 2) % 3] -
                          edges[0][(i + 2) % 3] * edges[1][(i + 1) % 3];
            normal += part * part;
        }
        double seen =
            fabs(((double)texel[1][0] - texel[0][0]) * ((double)texel[2][1] - texel[0][1]) -
                 ((double)texel[1][1] - texel[0][1]) * ((double)texel[2][0] - texel[0][0]));
        assert_true(seen >= 0.49 * sqrt(normal) - 0.02 && seen <= sqrt(normal) + 0.02);
        for (uint32_t y = (uint32_t)low[1]; y <= (uint32_t)high[1]; y++)
            for (uint32_t x = (uint32_t)low[0]; x <= (uint32_t)high[0]; x++) {
                barycentric(texel, x + 0.5, y + 0.5, weights);
                if (fmin(weights[0], fmin(weights[1], weights[2])) < 0.02)
                    continue;
                overlaps += owner[(size_t)y * size + x] != 0;
                owner[(size_t)y * size + x] = t + 1;
            }
    }
    assert_int_equal(overlaps, 0);
    free(owner);
}

/* Checks an atlas of `size` pixels (0: chosen) and returns its density. The mesh keeps its
 * triangles, in another order. */
static double check_atlas(const struct render_mesh *given, const struct volume *volume,
                          uint32_t size)
{
    struct atlas atlas;
    struct render_voxels voxels = {.edge = (double)volume->grid.spacing};
    struct render_mesh mesh = {.vertex_count = given->vertex_count,
                               .triangle_count = given->triangle_count,
                               .up = {0, 0, 1}};
    size_t charts;
    double density;
    for (int i = 0; i < 3; i++)
        voxels.box.low[i] = (double)volume->grid.origin[i];
    ok(atlas_cut(given, voxels.edge, voxels.box.low, &atlas));
    ok(atlas_pack(&atlas, size));
    check_charts(given, &atlas);
    mesh.vertices = calloc(mesh.vertex_count, sizeof *mesh.vertices);
    mesh.triangles = calloc(mesh.triangle_count, sizeof *mesh.triangles);
    memcpy(mesh.vertices, given->vertices, mesh.vertex_count * sizeof *mesh.vertices);
    memcpy(mesh.triangles, given->triangles, mesh.triangle_count * sizeof *mesh.triangles);
    ok(render_mesh_unwrap(&mesh, &voxels, size, &charts, &density));
    assert_int_equal(charts, atlas.count);
    assert_int_equal(mesh.texture_size, atlas.size);
    assert_true(density == atlas.density && mesh.up[2] == 1);
    assert_true(mesh.vertex_count >= given->vertex_count);
    for (uint32_t t = 0; t < mesh.triangle_count; t++)
        for (int c = 0; c < 3; c++) {
            const struct MeshVertex *vertex = &given->vertices[given->triangles[atlas.order[t]][c]];
            assert_memory_equal(&mesh.vertices[mesh.triangles[t][c]], vertex, sizeof *vertex);
        }
    check_texels(&mesh, density / voxels.edge);
    render_mesh_free(&mesh);
    atlas_destroy(&atlas);
    return density;
}

/* A plate with sides larger than the largest chart. */
static float plate(void *context, const float p[3])
{
    (void)context;
    float inside = 1;
    for (int i = 0; i < 3; i++)
        inside = fminf(inside, fminf(p[i] - (i == 0   ? -0.6f
                                             : i == 1 ? 2.4f
                                                      : 1.1f),
                                     (i == 2   ? 1.4f
                                      : i == 0 ? 34.0f
                                               : 20.0f) -
                                         p[i]));
    return inside;
}

static void test_atlas(void **state)
{
    device = *state;
    struct random random = {6};
    float radius = 1.9f;
    struct volume volume = create_volume(23, 24, 25, 0);
    set_values(&volume, sphere, &radius);
    struct render_mesh mesh = march(&volume, 4096);
    assert_true(check_atlas(&mesh, &volume, 0) >= 4);
    double coarse = check_atlas(&mesh, &volume, 128), fine = check_atlas(&mesh, &volume, 777);
    assert_true(coarse > 1 && fine > 3 * coarse);
    render_mesh_free(&mesh);
    /* All cases, with many surfaces in every column. */
    set_values(&volume, noise, &random);
    mesh = march(&volume, 1 << 16);
    check_atlas(&mesh, &volume, 2048);
    render_mesh_free(&mesh);
    free(volume.values);
    volume = create_volume(150, 80, 8, 0);
    set_values(&volume, plate, NULL);
    mesh = march(&volume, 1 << 16);
    check_atlas(&mesh, &volume, 0);
    render_mesh_free(&mesh);
    free(volume.values);
}

static void test_small_atlas(void **state)
{
    device = *state;
    struct random random = {6};
    struct volume volume = create_volume(23, 24, 25, 0);
    set_values(&volume, noise, &random);
    struct render_mesh mesh = march(&volume, 1 << 16);
    struct render_voxels voxels = {.edge = 0.25, .box.low = {-1, 2, 0.5}};
    const struct MeshVertex *vertices = mesh.vertices;
    size_t charts, count = mesh.triangle_count;
    double density;
    char *message = base_format("texture: 200 x 200 pixels are too few for %zu triangles; a larger "
                                "--texture (at most 16384), a lower --resolution",
                                count);
    assert_int_equal(render_mesh_unwrap(&mesh, &voxels, 200, &charts, &density), VKN_BAD_INPUT);
    assert_message(message);
    assert_true(mesh.vertices == vertices && mesh.triangle_count == count && !mesh.texels);
    free(message);
    render_mesh_free(&mesh);
    free(volume.values);
}

/* ---- files --------------------------------------------------------------------------------- */

/* Returns the bytes of a mesh file; the caller frees them. */
static char *write_mesh(const struct render_mesh *mesh, const char *name, size_t *size)
{
    char *path = base_path_join(cache_dir, name), *data;
    const struct render_format *format;
    struct base_file_writer writer;
    ok(render_find_format(RENDER_MESH, path, &format));
    ok(base_file_begin(&writer, path));
    ok(format->write(&writer, mesh));
    ok(base_file_commit(&writer));
    ok(base_file_read(path, 1 << 20, &data, size));
    unlink(path);
    free(path);
    return data;
}

static struct render_mesh one_triangle(struct MeshVertex vertices[3], uint32_t triangle[1][3])
{
    for (uint32_t v = 0; v < 3; v++) {
        vertices[v] = (struct MeshVertex){
            {(float)v, -0.5f, 1e-3f}, {0, v == 1 ? -1.0f : 1.0f, 0}, 0xff804000u + v};
        triangle[0][v] = 2 - v;
    }
    return (struct render_mesh){
        .vertices = vertices, .triangles = triangle, .vertex_count = 3, .triangle_count = 1};
}

static void test_ply(void **state)
{
    (void)state;
    struct MeshVertex vertices[3];
    uint32_t triangle[1][3];
    struct render_mesh mesh = one_triangle(vertices, triangle);
    size_t size;
    char *data = write_mesh(&mesh, "mesh.PLY", &size);
    static const char header[] =
        "ply\nformat binary_little_endian 1.0\ncomment vknerf " VKNERF_VERSION
        "\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        "property float nx\nproperty float ny\nproperty float nz\nproperty uchar red\n"
        "property uchar green\nproperty uchar blue\nelement face 1\n"
        "property list uchar int vertex_indices\nend_header\n";
    assert_int_equal(size, sizeof header - 1 + 3 * 27 + 13);
    assert_memory_equal(data, header, sizeof header - 1);
    const uint8_t *bytes = (const uint8_t *)data + sizeof header - 1;
    const uint8_t second[27] = {
        0, 0, 0x80, 0x3f, 0, 0, 0,    0xbf, 0x6f, 0x12, 0x83, 0x3a, /* x, y, z */
        0, 0, 0,    0,    0, 0, 0x80, 0xbf, 0,    0,    0,    0,    0x01, 0x40, 0x80};
    assert_memory_equal(bytes + 27, second, 27);
    const uint8_t face[13] = {3, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(bytes + 81, face, 13);
    free(data);

    mesh.triangle_count = 0;
    data = write_mesh(&mesh, "points.ply", &size);
    assert_null(strstr(data, "element face"));
    free(data);
}

static void test_obj(void **state)
{
    (void)state;
    struct MeshVertex vertices[3];
    uint32_t triangle[1][3];
    struct render_mesh mesh = one_triangle(vertices, triangle);
    size_t size;
    char *data = write_mesh(&mesh, "mesh.obj", &size);
    assert_string_equal(data, "# vknerf " VKNERF_VERSION "\n"
                              "v 0 -0.5 0.001 0.0000 0.2510 0.5020\nvn 0.0000 1.0000 0.0000\n"
                              "v 1 -0.5 0.001 0.0039 0.2510 0.5020\nvn 0.0000 -1.0000 0.0000\n"
                              "v 2 -0.5 0.001 0.0078 0.2510 0.5020\nvn 0.0000 1.0000 0.0000\n"
                              "f 3//3 2//2 1//1\n");
    free(data);
}

static void test_file_errors(void **state)
{
    (void)state;
    static const char *const names[] = {"a.ply", "a.obj", "a.glb"};
    const struct render_format *format;
    assert_int_equal(render_find_format(RENDER_MESH, "a/b.stl", &format), VKN_BAD_INPUT);
    assert_message("a/b.stl: ends in neither .ply, .obj nor .glb");
    assert_int_equal(render_find_format(RENDER_MESH, ".ply", &format), VKN_BAD_INPUT);
    assert_int_equal(render_find_format(RENDER_POINTS, "a.obj", &format), VKN_BAD_INPUT);
    assert_message("a.obj: does not end in .ply");
    /* A full disk is noticed before the last byte. */
    struct render_mesh mesh = tetrahedra(20000);
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        struct base_file_writer writer;
        ok(render_find_format(RENDER_MESH, names[i], &format));
        ok(base_file_begin(&writer, "/dev/full"));
        assert_int_equal(format->write(&writer, &mesh), VKN_ERROR);
        assert_message("/dev/full: cannot be written: No space left on device");
        base_file_abort(&writer);
    }
    render_mesh_free(&mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sphere),      cmocka_unit_test(test_torus),
        cmocka_unit_test(test_faces),       cmocka_unit_test(test_noise),
        cmocka_unit_test(test_vertices),    cmocka_unit_test(test_components),
        cmocka_unit_test(test_unseen),      cmocka_unit_test(test_atlas),
        cmocka_unit_test(test_small_atlas), cmocka_unit_test(test_ply),
        cmocka_unit_test(test_obj),         cmocka_unit_test(test_file_errors),
        cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
