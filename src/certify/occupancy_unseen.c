/* Checks mark_unseen_cells: which cells no camera sees. */
#include "certify/occupancy.h"

enum seen { UNSEEN, SEEN, MAYBE };

/* Returns the distance from a camera to the nearest point of a cell's bounding box. */
static double distance_of(const struct reference_space *space, const struct scene_camera *camera,
                          uint32_t resolution, uint32_t cascade, const uint32_t cell[3])
{
    double low[3], high[3], squared = 0;
    for (uint32_t k = 0; k < 8; k++) {
        const double inside[3] = {k & 1, k >> 1 & 1, k >> 2};
        double corner[3];
        reference_cell_position(space, resolution, cascade, cell, inside, corner);
        for (int i = 0; i < 3; i++) {
            low[i] = k ? fmin(low[i], corner[i]) : corner[i];
            high[i] = k ? fmax(high[i], corner[i]) : corner[i];
        }
    }
    for (int i = 0; i < 3; i++) {
        double at = camera->pose[4 * i + 3], beyond = fmax(fmax(low[i] - at, at - high[i]), 0);
        squared += beyond * beyond;
    }
    return sqrt(squared);
}

/* A camera sees a point if the point projects into the picture and the ray through that pixel leads
 * back to the point: a strong distortion can fold far points into the picture. */
static enum seen camera_sees(const struct scene_camera *camera, const double point[3])
{
    double x, y, origin[3], direction[3], along = 0, squared = 0;
    if (!scene_camera_project(camera, point, &x, &y))
        return UNSEEN;
    double margin = fmin(fmin(x, camera->width - x), fmin(y, camera->height - y));
    if (margin < -2e-3)
        return UNSEEN;
    scene_camera_ray(camera, x, y, origin, direction);
    for (int i = 0; i < 3; i++) {
        along += direction[i] * (point[i] - origin[i]);
        squared += (point[i] - origin[i]) * (point[i] - origin[i]);
    }
    double cosine = along / sqrt(squared);
    if (cosine < 0.99)
        return UNSEEN;
    return cosine > 0.999999 && margin > 2e-3 ? SEEN : MAYBE;
}

/* Tests a cell's corners and centre, from cameras not further than `far`. Points inside the cube do
 * not count for the contracted cascade. */
static enum seen cell_seen(const struct reference_space *space, const struct scene_camera *cameras,
                           uint32_t count, uint32_t resolution, uint32_t cascade,
                           const uint32_t cell[3], double far)
{
    enum seen seen = UNSEEN;
    bool outside = false;
    for (int i = 0; i < 3; i++)
        outside = outside || cell[i] < resolution / 4 || cell[i] >= resolution / 4 * 3;
    if (cascade == reference_cubes(space) && !outside)
        return UNSEEN;
    for (uint32_t k = 0; k < 9; k++) {
        const double inside[3] = {k & 1, k >> 1 & 1, k >> 2 & 1}, middle[3] = {0.5, 0.5, 0.5};
        double position[3];
        reference_cell_position(space, resolution, cascade, cell, k == 8 ? middle : inside,
                                position);
        for (uint32_t i = 0; i < count; i++) {
            double away = distance_of(space, &cameras[i], resolution, cascade, cell) / far - 1;
            enum seen one = away > 1e-5 ? UNSEEN : camera_sees(&cameras[i], position);
            if (one == SEEN && away > -1e-5)
                one = MAYBE;
            if (one == SEEN)
                return SEEN;
            seen = one == MAYBE ? MAYBE : seen;
        }
    }
    return seen;
}

void occupancy_check_unseen(struct gpu_device *device, struct space_case space_case,
                            const struct scene_camera *views, uint32_t cameras_used,
                            uint32_t groups, float far)
{
    struct fixture fixture = occupancy_fixture(device, space_case, 16);
    const struct reference_space space = reference_space(&fixture.settings);
    struct Camera cameras[3];
    for (uint32_t i = 0; i < cameras_used; i++)
        cameras[i] = setup_camera(&views[i]);
    fixture.config.camera_count = cameras_used;
    if (far > 0)
        fixture.config.far_distance = far;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    fixture_put(&fixture, BIND_CAMERAS, cameras, cameras_used * sizeof *cameras);
    uint32_t counts[3] = {0}, cells = occupancy_cells_of(&fixture),
             total = cells * occupancy_cascades_of(&fixture);
    /* In parts; the last one ends with the grid. */
    const uint32_t ends[] = {0, 777, total / 3, UINT32_MAX};
    for (size_t i = 1; i < BASE_COUNT(ends); i++)
        fixture_run(&fixture, "mark_unseen_cells",
                    (struct Push){.a = ends[i - 1], .b = fixture.local_size, .d = ends[i]}, groups);
    float *values = fixture_read(&fixture, BIND_OCCUPANCY);
    for (uint32_t i = 0; i < total; i++) {
        uint32_t cell[3];
        reference_morton_cell(i % cells, cell);
        enum seen seen = cell_seen(&space, views, cameras_used, 16, i / cells, cell,
                                   (double)fixture.config.far_distance);
        counts[seen]++;
        check_that(values[i] == 0 || values[i] == -1);
        if (seen != MAYBE && (values[i] == 0) != (seen == SEEN))
            check_fail("cell %u of cascade %u: %g", i % cells, i / cells, values[i]);
    }
    /* A whole panorama sees everything. */
    bool whole = views->lens == VKN_LENS_EQUIRECTANGULAR && far == 0 &&
                 2 * M_PI * (double)views->focal_x < 1.001 * views->width;
    for (uint32_t i = 0; i < total && whole; i++)
        check_that(values[i] == 0);
    check_that(counts[SEEN] > total / 500 && (whole || counts[UNSEEN] > total / 20));
    check_that(counts[MAYBE] < total / 100);
    free(values);
    fixture_destroy(&fixture);
}
