/* Samples point clouds: the surface points that random rays of the training views hit. */
#include "render/mesh.h"

#include <stdlib.h>
#include <string.h>

#include "render/internal.h"
#include "volume/volume.h"

/* Sampling ends early if none of more than EMPTY_RAYS rays hits a surface, or if less than
 * LEAST_SHARE of more than ENOUGH_RAYS rays hit one. */
#define LEAST_SHARE (1.0 / 256)
#define ENOUGH_RAYS (1u << 16)
#define EMPTY_RAYS  (1u << 14)
#define LEAST_RAYS  256u /* of a batch */

struct cloud {
    struct vkn_renderer *renderer;
    const struct vkn_scene *scene;
    struct scene_camera *cameras; /* of the training views */
    const struct render_points_params *params;
    const struct scene_box_limits *box; /* NULL: everywhere */
    struct gpu_pipeline *generate_rays, *composite, *finish;
    struct render_mesh *points;
};

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void record(const struct cloud *cloud, struct gpu_recording *recording, uint32_t rays,
                   uint32_t batch)
{
    struct vkn_renderer *r = cloud->renderer;
    const struct vkn_scene *scene = cloud->scene;
    uint32_t groups = (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
    struct Push pick = {.b = batch, .c = rays};
    float offset[3];
    render_local_offset(scene, offset);
    struct Push placed = {.a = rays,
                          .b = float_bits((float)scene->scale),
                          .c = float_bits(offset[0]),
                          .d = float_bits(offset[1]),
                          .e = float_bits(offset[2])};
    gpu_record_dispatch(recording, cloud->generate_rays, r->bindings, &pick, sizeof pick, groups);
    render_record_march(r, recording, rays, NULL, cloud->composite);
    gpu_record_dispatch(recording, cloud->finish, r->bindings, &placed, sizeof placed, groups);
}

static bool wanted(const struct cloud *cloud, const struct MeshVertex *point)
{
    double position[3];
    for (int i = 0; i < 3; i++)
        position[i] = (double)point->position[i] + cloud->points->origin[i];
    return point->color != 0 && (!cloud->box || scene_box_contains(cloud->box, position));
}

/* Marches `rays` rays of one view and adds the points that they hit until the cloud is complete. */
static vkn_status collect_from_view(struct cloud *cloud, const struct scene_camera *camera,
                                    uint32_t rays, uint32_t batch)
{
    struct vkn_renderer *r = cloud->renderer;
    BASE_TRY(render_upload_camera(r, camera));
    GPU_ONCE(r->device, "points");
    record(cloud, recording, rays, batch);
    BASE_TRY(gpu_run_once(&recording));
    const struct MeshVertex *found = r->points.at[BIND_MESH_VERTICES].mapped;
    struct render_mesh *points = cloud->points;
    for (uint32_t i = 0; i < rays && points->vertex_count < cloud->params->count; i++)
        if (wanted(cloud, &found[i]))
            points->vertices[points->vertex_count++] = found[i];
    return VKN_OK;
}

static bool hits_too_rarely(uint64_t rays, size_t collected)
{
    return (collected == 0 && rays > EMPTY_RAYS) ||
           (rays > ENOUGH_RAYS && (double)collected < LEAST_SHARE * (double)rays);
}

/* Goes through the views repeatedly, with as many rays per view as would complete the cloud if all
 * hit a surface. After a first round of views without a hit, batches are as large as possible. */
static vkn_status collect_points(struct cloud *cloud, struct report_progress *progress,
                                 const volatile sig_atomic_t *stop)
{
    const size_t views = cloud->scene->splits[SCENE_TRAIN].camera_count;
    uint64_t rays = 0;
    size_t *collected = &cloud->points->vertex_count;
    for (uint32_t batch = 0; *collected < cloud->params->count; batch++) {
        size_t missing = cloud->params->count - *collected, view = batch % views;
        size_t share = missing / views + 1;
        uint32_t most = cloud->renderer->setup.constants.ray_capacity;
        uint32_t chosen = share < LEAST_RAYS ? LEAST_RAYS : share < most ? (uint32_t)share : most;
        if (progress)
            report_progress_count(progress, "collecting points", *collected, cloud->params->count);
        if (base_stop_asked(stop))
            return base_fail(VKN_INTERRUPTED, "interrupted while collecting points");
        if (view == 0 && hits_too_rarely(rays, *collected))
            break;
        if (*collected == 0 && batch >= views)
            chosen = most;
        BASE_TRY(collect_from_view(cloud, &cloud->cameras[view], chosen, batch));
        rays += chosen;
    }
    return VKN_OK;
}

static vkn_status prepare(struct cloud *cloud)
{
    struct vkn_renderer *r = cloud->renderer;
    const struct field_pass_request passes[] = {
        {"random_view_rays", &cloud->generate_rays, FIELD_NO_VARIANT},
        {volume_viewing.passes[VOLUME_HITS].name, &cloud->composite, FIELD_NO_VARIANT},
        {"finish_points", &cloud->finish, FIELD_NO_VARIANT},
    };
    if (cloud->scene->splits[SCENE_TRAIN].camera_count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: there are no train views", cloud->scene->path);
    BASE_TRY(render_split_cameras(r, cloud->scene, SCENE_TRAIN, &cloud->cameras));
    BASE_TRY(base_memory_check((uint64_t)cloud->params->count * sizeof(struct MeshVertex),
                               "a cloud of that many points", "--count"));
    cloud->points->vertices = base_alloc(cloud->params->count, sizeof(struct MeshVertex));
    if (!cloud->points->vertices)
        return VKN_ERROR;
    BASE_TRY(vkn_renderer_enable_normals(r));
    BASE_TRY(render_enable_points(r));
    r->setup.constants.seed = cloud->params->seed;
    BASE_TRY(render_upload_constants(r));
    return render_create_passes(r, passes, BASE_COUNT(passes));
}

vkn_status render_points(vkn_renderer *renderer, const struct vkn_scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_mesh *cloud)
{
    *cloud = (struct render_mesh){0};
    render_local_origin(scene, cloud->origin);
    const struct scene_box_limits box = scene_box_limits(&params->box);
    struct cloud work = {.renderer = renderer,
                         .scene = scene,
                         .params = params,
                         .box = scene_box_given(&params->box) ? &box : NULL,
                         .points = cloud};
    vkn_status status = prepare(&work);
    if (status == VKN_OK)
        status = collect_points(&work, progress, stop);
    cloud->device_bytes = gpu_memory_allocated(renderer->device);
    gpu_pipeline_destroy(&work.generate_rays);
    gpu_pipeline_destroy(&work.composite);
    gpu_pipeline_destroy(&work.finish);
    free(work.cameras);
    return status;
}
