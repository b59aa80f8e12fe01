/* Tests finish_distances, mesh_hidden and mesh_seen against double precision: what training views
 * see of a mesh's grid points and vertices, for all lenses and depth maps of a sphere. */
#include "certify/fixture.h"

#define WIDTH      26u
#define HEIGHT     22u
#define MOST_VIEWS 5u
#define PIXELS     (WIDTH * HEIGHT)
#define RADIUS     0.25
#define LAYERS     4u
#define NEW_LAYER  5u /* index of the slab's first new layer */
/* Values of the shaders' constants. */
#define MAX_SLOPE  8.0
#define MIN_COSINE 0.1

static const uint32_t points[3] = {15, 13, 12};
static const size_t layer = (size_t)15 * 13;

struct maps {
    struct fixture fixture;
    uint32_t views;
    bool contracted;
    struct MeshGrid grid;
    struct scene_camera cameras[MOST_VIEWS];
    float inverse_distance[MOST_VIEWS * PIXELS];
    size_t close; /* positions too near a limit to decide */
};

/* ---- views --------------------------------------------------------------------------------- */

/* Returns 1 / distance to a sphere around the centre; 0 where the ray misses it. */
static double sphere_nearness(const struct scene_camera *camera, double x, double y)
{
    double origin[3], direction[3], along = 0, squares = 0;
    if (!scene_camera_ray(camera, x, y, origin, direction))
        return 0;
    for (int i = 0; i < 3; i++) {
        along += (0.5 - origin[i]) * direction[i];
        squares += (0.5 - origin[i]) * (0.5 - origin[i]);
    }
    double reach = RADIUS * RADIUS - (squares - along * along);
    return reach > 0 ? 1 / (along - sqrt(reach)) : 0;
}

static void add_views(struct maps *maps, struct random *random)
{
    struct Camera cameras[MOST_VIEWS];
    for (uint32_t v = 0; v < maps->views; v++) {
        struct scene_camera *camera = &maps->cameras[v];
        *camera = random_camera(random, WIDTH, HEIGHT, 1.5, v % 2 == 1);
        if (v == 2) {
            camera->lens = VKN_LENS_FISHEYE;
            camera->k1 = 0.03f;
        }
        camera->first_pixel = v * PIXELS;
        for (uint32_t i = 0; i < PIXELS; i++) {
            uint32_t x = i % WIDTH, y = i / WIDTH;
            double sphere = sphere_nearness(camera, x + 0.5, y + 0.5);
            /* Random surfaces behind the sphere. */
            maps->inverse_distance[v * PIXELS + i] =
                (float)(sphere > 0 ? sphere : random_between(random, 0.3, 0.6));
        }
        cameras[v] = setup_camera(camera);
    }
    fixture_put(&maps->fixture, BIND_CAMERAS, cameras, maps->views * sizeof cameras[0]);
    fixture_put(&maps->fixture, BIND_VISIBILITY_MAPS, maps->inverse_distance,
                maps->views * PIXELS * 4ull);
}

static struct maps create_maps(struct gpu_device *device, uint32_t views, bool contracted)
{
    struct vkn_config settings = {
        .scene.aabb_scale = 1,
        .scene.contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE,
        .batch.max_rays = 1024,
    };
    struct random random = {31 + views};
    struct maps maps = {
        .fixture = fixture_configure(device, settings), .views = views, .contracted = contracted};
    maps.grid = (struct MeshGrid){.points = {points[0], points[1], points[2]},
                                  .layers = LAYERS,
                                  .origin = {-0.31f, -0.27f, -0.33f},
                                  .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                  .spacing = 0.1137f};
    fixture_allocate(&maps.fixture, views, 1);
    fixture_put(&maps.fixture, BIND_MESH, &maps.grid, sizeof maps.grid);
    add_views(&maps, &random);
    return maps;
}

/* ---- double precision ---------------------------------------------------------------------- */

static double mix(double a, double b, double t)
{
    return a + (b - a) * t;
}

/* Returns 1 / depth that the view shows; *close: rounding may choose another surface. */
static double nearness_at(const struct maps *maps, uint32_t view, double x, double y, bool *close)
{
    const struct scene_camera *camera = &maps->cameras[view];
    double u = fmin(fmax(x - 0.5, 0), WIDTH - 1), v = fmin(fmax(y - 0.5, 0), HEIGHT - 1);
    uint32_t left = (uint32_t)u, top = (uint32_t)v;
    uint32_t right = left + 1 < WIDTH ? left + 1 : left, low = top + 1 < HEIGHT ? top + 1 : top;
    const float *map = &maps->inverse_distance[view * PIXELS];
    const double n[4] = {map[top * WIDTH + left], map[top * WIDTH + right], map[low * WIDTH + left],
                         map[low * WIDTH + right]};
    double nearest = 0, farthest = 1e9;
    for (int i = 0; i < 4; i++) {
        nearest = fmax(nearest, n[i]);
        farthest = fmin(farthest, n[i]);
    }
    double limit = MAX_SLOPE * nearest / fminf(camera->focal_x, camera->focal_y);
    *close = *close || (nearest > 0 && fabs(nearest - farthest - limit) < 1e-4);
    if (nearest - farthest > limit)
        return nearest;
    return mix(mix(n[0], n[1], u - left), mix(n[2], n[3], u - left), v - top);
}

/* Returns whether a view's picture contains the position, and how far it is behind the visible
 * surface. `normal`: NULL for a position that may be seen from any side. */
static bool project_to_view(const struct maps *maps, uint32_t view, const double position[3],
                            const float *normal, double *behind, bool *close)
{
    const struct scene_camera *camera = &maps->cameras[view];
    double x = 0, y = 0, squares = 0, facing = 0; /* facing is a cosine */
    for (int i = 0; i < 3; i++) {
        double along = position[i] - camera->pose[4 * i + 3];
        squares += along * along;
        facing -= normal ? along * normal[i] : 0;
    }
    facing = normal ? facing / sqrt(squares) : 1;
    *close = *close || fabs(facing - MIN_COSINE) < 1e-5;
    if (facing <= MIN_COSINE || !scene_camera_project(camera, position, &x, &y))
        return false;
    double edge = fmin(fmin(x, WIDTH - x), fmin(y, HEIGHT - y));
    *close = *close || fabs(edge) < 1e-3;
    *behind = sqrt(squares) - 1 / fmax(nearness_at(maps, view, x, y, close), 1e-9);
    return edge >= 0;
}

/* Returns the smallest distance behind the surfaces of all views that contain the position; -1e9 if
 * fewer than `enough` do. */
static double min_distance_behind(struct maps *maps, const double position[3], const float *normal,
                                  uint32_t enough, bool *close)
{
    double least = 1e9;
    uint32_t looking = 0;
    *close = false;
    for (uint32_t view = 0; view < maps->views; view++) {
        double behind;
        if (project_to_view(maps, view, position, normal, &behind, close)) {
            least = fmin(least, behind);
            looking++;
        }
    }
    maps->close += *close;
    return looking >= enough ? least : -1e9;
}

/* ---- grid points --------------------------------------------------------------------------- */

/* Computes the position of value i; returns whether it may be filled. */
static bool fillable(const struct maps *maps, size_t i, double position[3])
{
    const uint32_t at[3] = {(uint32_t)(i % points[0]), (uint32_t)(i / points[0] % points[1]),
                            (uint32_t)(i / layer) + NEW_LAYER - MESH_OVERLAP};
    bool within = true, trained = true;
    for (int k = 0; k < 3; k++) {
        position[k] = maps->grid.origin[k] + (double)maps->grid.spacing * at[k];
        within = within && at[k] > 0 && at[k] + 1 < points[k];
        trained = trained && fabs(position[k] - 0.5) <= 0.5;
    }
    return within && (trained || maps->contracted);
}

/* Returns how many points became solid. */
static size_t check_points(struct maps *maps)
{
    struct fixture *fixture = &maps->fixture;
    struct random random = {5};
    size_t first = MESH_OVERLAP * layer, end = first + LAYERS * layer, solid = 0;
    float *before = random_floats(&random, end, -4, 2);
    fixture_put(fixture, BIND_MESH_VALUES, before, end * 4);
    fixture_run(fixture, "mesh_hidden", (struct Push){.a = NEW_LAYER, .b = maps->views},
                fixture_groups(fixture, (uint32_t)(LAYERS * layer) / MESH_TILE_STEPS + 1));
    float *after = fixture_read(fixture, BIND_MESH_VALUES);
    for (size_t i = 0; i < end; i++) {
        double position[3], expected = before[i];
        bool close = false;
        if (i >= first && fillable(maps, i, position)) {
            double behind =
                min_distance_behind(maps, position, NULL, (maps->views + 1) / 2, &close);
            expected = fmax(expected, fmin(behind / (double)maps->grid.spacing, MESH_LIMIT));
        }
        if (!close)
            check_close(after[i], expected, 2e-4, 1, "value", i);
        solid += before[i] <= 0 && expected > 0;
    }
    check_poisoned(after, end, fixture->buffers[BIND_MESH_VALUES].size / 4);
    free(before);
    free(after);
    return solid;
}

/* ---- vertices ------------------------------------------------------------------------------ */

#define VERTICES 300u

/* Makes a vertex on a sphere around the centre, facing outwards or inwards. */
static struct MeshVertex random_vertex(struct random *random)
{
    double direction[3], radius = RADIUS * random_between(random, 0.3, 1.7);
    double side = random_below(random, 4) == 0 ? -1 : 1;
    struct MeshVertex vertex = {.color = 0x5a5a5a5a};
    random_direction(random, direction);
    for (int i = 0; i < 3; i++) {
        vertex.position[i] = (float)(0.5 + radius * direction[i]);
        vertex.normal[i] = (float)(side * direction[i]);
    }
    return vertex;
}

/* Returns the number of visible vertices. */
static size_t check_vertices(struct maps *maps)
{
    struct fixture *fixture = &maps->fixture;
    struct MeshVertex vertices[VERTICES];
    struct random random = {8};
    size_t seen = 0;
    for (uint32_t i = 0; i < VERTICES; i++)
        vertices[i] = random_vertex(&random);
    fixture_put(fixture, BIND_MESH_VERTICES, vertices, sizeof vertices);
    fixture_run(fixture, "mesh_seen", (struct Push){.a = VERTICES - 1, .b = maps->views},
                fixture_groups(fixture, VERTICES));
    struct MeshVertex *after = fixture_read(fixture, BIND_MESH_VERTICES);
    for (uint32_t i = 0; i < VERTICES - 1; i++) {
        double position[3];
        bool close;
        for (int k = 0; k < 3; k++)
            position[k] = vertices[i].position[k];
        double behind = min_distance_behind(maps, position, vertices[i].normal, 1, &close);
        bool sees = behind > -1e9 && behind <= 2 * (double)maps->grid.spacing;
        uint32_t mark = (sees ? 255u : (uint32_t)MESH_UNSEEN) << 24;
        if (!close && fabs(behind - 2 * (double)maps->grid.spacing) > 1e-4)
            check_equal(after[i].color, mark);
        check_memory(&after[i], &vertices[i], offsetof(struct MeshVertex, color));
        seen += sees;
    }
    check_memory(&after[VERTICES - 1], &vertices[VERTICES - 1], sizeof *after);
    free(after);
    return seen;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void check(struct gpu_device *device, bool contracted)
{
    static struct maps maps;
    static const uint32_t views[] = {1, 3, 4, MOST_VIEWS};
    for (size_t n = 0; n < BASE_COUNT(views); n++) {
        maps = create_maps(device, views[n], contracted);
        size_t solid = check_points(&maps), seen = check_vertices(&maps);
        check_that(solid > (contracted ? 8 : 4));
        check_that(seen > 30 && seen < VERTICES - 30);
        check_that(maps.close < 20);
        fixture_destroy(&maps.fixture);
    }
}

static void test_bounded(struct gpu_device *device)
{
    check(device, false);
}

static void test_contracted(struct gpu_device *device)
{
    check(device, true);
}

static void test_distances(struct gpu_device *device)
{
    struct fixture fixture = fixture_configure(device, (struct vkn_config){.batch.max_rays = 256});
    const struct RayResult results[] = {{.transmittance = 0.5f, .depth = 0.25f},
                                        {.transmittance = 0.5001f, .depth = 3},
                                        {.transmittance = 0, .depth = 4},
                                        {.transmittance = 0.1f, .depth = 0}, /* at the camera */
                                        {.transmittance = 0.2f, .depth = 1}};
    fixture_allocate(&fixture, 1, 1);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_run(&fixture, "finish_distances", (struct Push){.a = 4}, 1);
    float *inverse_distance = fixture_read(&fixture, BIND_OUTPUT);
    check_that(inverse_distance[0] == 4 && inverse_distance[1] == 0 &&
               inverse_distance[2] == 0.25f);
    check_that(isfinite(inverse_distance[3]) && inverse_distance[3] > 1e5);
    check_poisoned(inverse_distance, 4, fixture.buffers[BIND_OUTPUT].size / 4);
    free(inverse_distance);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_bounded),
    TEST(test_contracted),
    TEST(test_distances),
};
const struct certify_part certify_visibility_maps = {"visibility_maps", tests, BASE_COUNT(tests)};
