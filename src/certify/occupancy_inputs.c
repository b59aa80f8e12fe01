/* Makes occupancy grids and fields, and runs the update of a grid. */
#include "certify/occupancy.h"
#include "rays/rays.h"

uint32_t occupancy_cells_of(const struct fixture *fixture)
{
    uint32_t n = fixture->constants.values[SPEC_RESOLUTION];
    return n * n * n;
}

uint32_t occupancy_cascades_of(const struct fixture *fixture)
{
    return fixture->constants.values[SPEC_CASCADES];
}

struct fixture occupancy_fixture_on(struct gpu_device *device, const struct backend_case *path,
                                    struct space_case space, uint32_t resolution)
{
    struct shape shape =
        shape_for(device, path, (struct shape){32, 2, 64, 2, 16, 6, 2, 4, 0, 0, 0});
    shape.aabb_scale = space.aabb_scale;
    shape.contracted = space.contracted;
    struct vkn_config settings = settings_of(path, &shape);
    settings.mlp.density_activation = space.activation;
    settings.march.resolution = resolution;
    settings.seed = 77;
    struct fixture fixture = fixture_configure(device, settings);
    fixture_allocate(&fixture, 3, 1);
    return fixture;
}

struct fixture occupancy_fixture_of_layers(struct gpu_device *device,
                                           const struct backend_case *path, struct space_case space)
{
    const struct shape shape = {32, 2, 32, 1, 32, 1, 2, 1, space.aabb_scale, 1, space.contracted};
    struct vkn_config settings = settings_of(path, &shape);
    settings.model = VKN_MODEL_VANILLA;
    settings.mlp.skip_layer = 2;
    settings.mlp.position_octaves = 4;
    settings.mlp.density_activation = space.activation;
    settings.march.resolution = 16;
    settings.seed = 78;
    struct fixture fixture = fixture_configure(device, settings);
    check_that(fixture.config.cells_per_chunk < occupancy_cells_of(&fixture)); /* several chunks */
    fixture_allocate(&fixture, 3, 1);
    return fixture;
}

struct fixture occupancy_fixture(struct gpu_device *device, struct space_case space,
                                 uint32_t resolution)
{
    const struct backend_case path = {.precision = VKN_PRECISION_FP32};
    return occupancy_fixture_on(device, &path, space, resolution);
}

float *occupancy_random_values(uint32_t count, uint32_t seed)
{
    struct random random = {seed};
    float *values = base_alloc(count, sizeof *values);
    for (uint32_t i = 0; i < count; i++) {
        const double kinds[4] = {-1, 0, random_between(&random, 0, 0.02),
                                 random_between(&random, 0, 2)};
        values[i] = (float)kinds[random_below(&random, 4)];
    }
    return values;
}

float *occupancy_random_params(const struct fixture *fixture)
{
    struct random random = {9};
    float *params = base_alloc(fixture->model.param_count, sizeof *params);
    field_initialize(&fixture->settings, &fixture->model, params);
    for (uint32_t i = fixture->model.mlp_params; i < fixture->model.param_count; i++)
        params[i] = (float)random_between(&random, -2, 2);
    return params;
}

void occupancy_put_params(struct fixture *fixture, const float *params)
{
    fixture_put(fixture, BIND_PARAMS, params, 4ull * fixture->model.param_count);
    if (fixture->backend.copies)
        fixture_run(fixture, "round_parameters", (struct Push){0}, 3);
}

void occupancy_run_update(struct fixture *fixture, uint32_t groups)
{
    const struct pass *passes[FIELD_MAX_PASSES];
    size_t count = field_list_passes(&fixture->model, &fixture->model.kind->occupancy, passes);
    const struct setup setup = fixture_setup(fixture);
    const struct repeats repeats = setup_repeats(&setup);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && passes[first]->by_chunk && passes[end]->by_chunk)
            end++;
        uint32_t chunks = pass_chunks(passes[first], &repeats);
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            for (size_t i = first; i < end; i++) {
                fixture_choose_product(fixture, passes[i]->name);
                fixture_run_pass(fixture, passes[i], chunk, groups);
            }
    }
    if (!fixture->model.kind->sums_cells)
        fixture_run_pass(fixture, &rays_sums.passes[0], 0, groups);
}
