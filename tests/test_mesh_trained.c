/* The mesh of the bundled scene, trained for a while, against the signed distances that its pictures were
 * rendered from. */
#include "step_fixture.h"

#include "geometry.h"
#include "meshes.h"

#define STEPS  480u
#define VOXELS 64u

/* The board's underside, which no view sees, is cut off. */
static const struct render_mesh_params params = {
    .low = {-1.3, -1.3, -0.62}, .high = {1.3, 1.3, 1.1}, .resolution = VOXELS};

struct trained {
    vkn_context *context;
    vkn_scene *scene;
    vkn_trainer *trainer;
    vkn_renderer *renderer;
};

static struct trained train(void)
{
    struct trained trained = {0};
    struct vkn_context_params device = {0};
    struct vkn_config config = {.scene.downscale = 2, .steps = STEPS};
    struct vkn_train_run run = {.until_step = STEPS};
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    ok(vkn_context_create(&device, &trained.context));
    ok(vkn_scene_open(path, &config, &trained.scene));
    ok(vkn_trainer_create(trained.context, trained.scene, &config, &trained.trainer));
    ok(vkn_trainer_run(trained.trainer, &run));
    ok(vkn_renderer_of_trainer(trained.trainer, &trained.renderer));
    free(path);
    return trained;
}

static void destroy(struct trained *trained)
{
    vkn_renderer_destroy(&trained->renderer);
    vkn_trainer_destroy(&trained->trainer);
    vkn_scene_close(&trained->scene);
    vkn_context_destroy(&trained->context);
}

/* Distance to the nearest surface; the glass has two sides as well. */
static double distance(const struct MeshVertex *vertex)
{
    const vec3 p = vec(vertex->position[0], vertex->position[1], vertex->position[2]);
    return fmin(fabs(geometry_distance(p)), fabs(geometry_part_distance(PART_GLASS, p)));
}

static void test_distance(void **state)
{
    (void)state;
    struct trained trained = train();
    struct MeshGrid grid;
    struct sight sight;
    struct render_mesh mesh;
    size_t above = 0, near = 0;
    double worst = 0;
    ok(render_mesh_grid(trained.scene, vkn_trainer_config(trained.trainer), &params, &grid));
    ok(sight_create(trained.renderer, trained.scene, NULL, NULL, &sight));
    ok(render_mesh(trained.renderer, &grid, VKN_UNSEEN_FILL, &sight, NULL, NULL, &mesh));
    sight_destroy(&sight);
    assert_closed(&mesh);
    double voxel = render_mesh_voxel(&grid);
    for (size_t v = 0; v < mesh.vertex_count; v++) {
        if ((double)mesh.vertices[v].position[2] < params.low[2] + 1.5 * voxel)
            continue; /* on the crop's face */
        double off = distance(&mesh.vertices[v]);
        above++;
        near += off <= 2 * voxel;
        worst = fmax(worst, off);
    }
    print_message("%zu of %zu vertices within two voxels of %g, the worst at %.1f\n", near, above,
                  voxel, worst / voxel);
    assert_true(above > 5000);
    assert_true((double)near > 0.95 * (double)above);
    assert_true(worst < 8 * voxel);
    render_mesh_free(&mesh);
    destroy(&trained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distance)};
    vkn_log_quiet(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
