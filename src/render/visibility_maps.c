/* Renders visibility maps of the training views, and bounds the surface points in them. */
#include "render/visibility_maps.h"

#include <math.h>
#include <stdlib.h>

#include "render/internal.h"
#include "render/field_query.h"
#include "volume/volume.h"

#define MOST_VIEWS 1024u
/* Pixels of all maps together: 64 MiB on GPUs; on CPU devices half a minute of rendering. */
#define GPU_PIXELS (1u << 24)
#define CPU_PIXELS (1u << 20)

struct map_renderer {
    struct vkn_renderer *renderer;
    struct visibility_maps *visibility_maps;
    struct gpu_pipeline *find_density, *composite, *finish;
};

/* ---- views --------------------------------------------------------------------------------- */

static vkn_status choose_views(struct map_renderer *map_renderer, const struct vkn_scene *scene)
{
    uint64_t all = scene->splits[SCENE_TRAIN].camera_count;
    uint64_t count = all < MOST_VIEWS ? all : MOST_VIEWS;
    struct scene_camera *views;
    struct visibility_maps *visibility_maps = map_renderer->visibility_maps;
    bool cpu = gpu_device_capabilities(visibility_maps->device)->type == GPU_CPU;
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: there are no train views", scene->path);
    BASE_TRY(render_split_cameras(map_renderer->renderer, scene, SCENE_TRAIN, &views));
    /* Every chosen view is at or after its place in the maps' list. */
    for (uint64_t i = 0; i < count; i++) {
        views[i] =
            scene_fit_camera(&views[i * all / count], (cpu ? CPU_PIXELS : GPU_PIXELS) / count);
        views[i].first_pixel = visibility_maps->pixels;
        visibility_maps->pixels += (uint64_t)views[i].width * views[i].height;
    }
    visibility_maps->map_cameras = views;
    visibility_maps->views = (uint32_t)count;
    return VKN_OK;
}

static vkn_status upload_views(const struct visibility_maps *visibility_maps)
{
    struct Camera *cameras = base_alloc(visibility_maps->views, sizeof *cameras);
    if (!cameras)
        return VKN_ERROR;
    for (uint32_t i = 0; i < visibility_maps->views; i++)
        cameras[i] = setup_camera(&visibility_maps->map_cameras[i]);
    vkn_status status = gpu_upload(visibility_maps->device, &visibility_maps->cameras, 0, cameras,
                                   visibility_maps->views * sizeof *cameras);
    free(cameras);
    return status;
}

static vkn_status prepare(struct map_renderer *map_renderer)
{
    struct vkn_renderer *r = map_renderer->renderer;
    struct visibility_maps *visibility_maps = map_renderer->visibility_maps;
    const struct gpu_buffer_request requests[] = {
        {&visibility_maps->cameras, "visibility map cameras",
         visibility_maps->views * sizeof(struct Camera), GPU_DEVICE},
        {&visibility_maps->inverse_distance, "visibility maps", 4 * visibility_maps->pixels,
         GPU_DEVICE},
    };
    const struct field_pass_request passes[] = {
        {volume_viewing.passes[VOLUME_DISTANCES].name, &map_renderer->composite, FIELD_NO_VARIANT},
        {"finish_distances", &map_renderer->finish, FIELD_NO_VARIANT},
    };
    BASE_TRY(gpu_arena_create(r->device, requests, BASE_COUNT(requests), &visibility_maps->arena));
    BASE_TRY(upload_views(visibility_maps));
    BASE_TRY(render_upload_constants(r));
    BASE_TRY(render_create_passes(r, passes, BASE_COUNT(passes)));
    const struct render_field field = render_field_of(r);
    return field_query_create_forward(&field, true, &map_renderer->find_density);
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* Renders `rays` pixels of the uploaded camera from `first` on, into the maps from `offset` on. */
static vkn_status render_rays(const struct map_renderer *map_renderer, uint32_t first,
                              uint32_t rays, uint64_t offset)
{
    struct vkn_renderer *r = map_renderer->renderer;
    uint32_t groups = (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
    struct Push view = {.b = first, .c = rays}, finish = {.a = rays};
    GPU_ONCE(r->device, "visibility maps");
    gpu_record_dispatch(recording, r->generate_view_rays, r->bindings, &view, sizeof view, groups);
    render_record_march(r, recording, rays, map_renderer->find_density, map_renderer->composite);
    gpu_record_dispatch(recording, map_renderer->finish, r->bindings, &finish, sizeof finish,
                        groups);
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &r->buffers.at[BIND_OUTPUT], 0,
                    &map_renderer->visibility_maps->inverse_distance, 4 * offset, 4ull * rays);
    return gpu_run_once(&recording);
}

static vkn_status render_maps(const struct map_renderer *map_renderer,
                              struct report_progress *progress, const volatile sig_atomic_t *stop)
{
    struct vkn_renderer *r = map_renderer->renderer;
    for (uint32_t i = 0; i < map_renderer->visibility_maps->views; i++) {
        const struct scene_camera *camera = &map_renderer->visibility_maps->map_cameras[i];
        uint32_t pixels = camera->width * camera->height, most = r->setup.constants.ray_capacity;
        if (progress)
            report_progress_count(progress, "rendering visibility maps", i,
                                  map_renderer->visibility_maps->views);
        BASE_TRY(render_upload_camera(r, camera));
        for (uint32_t first = 0; first < pixels; first += most) {
            if (base_stop_asked(stop))
                return base_fail(VKN_INTERRUPTED, "interrupted while rendering visibility maps");
            uint32_t rays = pixels - first < most ? pixels - first : most;
            BASE_TRY(render_rays(map_renderer, first, rays, camera->first_pixel + first));
        }
    }
    return VKN_OK;
}

vkn_status visibility_maps_create(vkn_renderer *renderer, const struct vkn_scene *scene,
                                  struct report_progress *progress,
                                  const volatile sig_atomic_t *stop,
                                  struct visibility_maps *visibility_maps)
{
    *visibility_maps = (struct visibility_maps){.device = renderer->device};
    struct map_renderer map_renderer = {.renderer = renderer, .visibility_maps = visibility_maps};
    vkn_status status = choose_views(&map_renderer, scene);
    if (status == VKN_OK)
        status = prepare(&map_renderer);
    if (status == VKN_OK)
        status = render_maps(&map_renderer, progress, stop);
    gpu_pipeline_destroy(&map_renderer.find_density);
    gpu_pipeline_destroy(&map_renderer.composite);
    gpu_pipeline_destroy(&map_renderer.finish);
    return status;
}

void visibility_maps_destroy(struct visibility_maps *visibility_maps)
{
    gpu_arena_destroy(&visibility_maps->arena);
    free(visibility_maps->map_cameras);
    visibility_maps->map_cameras = NULL;
}

/* ---- the box of surface points -------------------------------------------------------------- */

#define BOX_POINTS (1u << 18) /* surface points that the box is computed from, at most */
#define BOX_MARGIN (1.0 / 64)

struct surface_points {
    size_t count;
    float *values[3]; /* [axis][count], in training space */
};

static void add_pixel(struct surface_points *surface_points, const struct vkn_scene *scene,
                      const struct scene_camera *camera, uint32_t pixel, double inverse_distance)
{
    double origin[3], direction[3], position[3], reach = 0.0;
    uint32_t column = pixel % camera->width, row = pixel / camera->width;
    if (!(inverse_distance > 0.0) ||
        !scene_camera_ray(camera, column + 0.5, row + 0.5, origin, direction))
        return;
    for (int i = 0; i < 3; i++) {
        position[i] = origin[i] + direction[i] / inverse_distance;
        reach = fmax(reach, fabs(position[i] - 0.5));
    }
    if (reach > 0.5 * scene->aabb_scale)
        return;
    for (int i = 0; i < 3; i++)
        surface_points->values[i][surface_points->count] = (float)position[i];
    surface_points->count++;
}

static void add_pixels(struct surface_points *surface_points,
                       const struct visibility_maps *visibility_maps, const struct vkn_scene *scene,
                       const float *inverse_distance)
{
    uint64_t stride = visibility_maps->pixels / BOX_POINTS + 1, number = 0;
    for (uint32_t v = 0; v < visibility_maps->views; v++) {
        const struct scene_camera *camera = &visibility_maps->map_cameras[v];
        for (uint32_t i = 0; i < camera->width * camera->height; i++)
            if (number++ % stride == 0)
                add_pixel(surface_points, scene, camera, i,
                          (double)inverse_distance[camera->first_pixel + i]);
    }
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Computes the box in training space, margin included. */
static void bound(const struct surface_points *surface_points, double outlier_share, double low[3],
                  double high[3])
{
    double longest = 0.0;
    for (int i = 0; i < 3; i++) {
        size_t ignored = (size_t)(outlier_share * (double)surface_points->count);
        qsort(surface_points->values[i], surface_points->count, sizeof *surface_points->values[i],
              compare);
        low[i] = surface_points->count ? (double)surface_points->values[i][ignored] : 0.0;
        high[i] = surface_points->count
                      ? (double)surface_points->values[i][surface_points->count - 1 - ignored]
                      : 1.0;
        longest = fmax(longest, high[i] - low[i]);
    }
    for (int i = 0; i < 3; i++) {
        low[i] -= BOX_MARGIN * longest;
        high[i] += BOX_MARGIN * longest;
    }
}

vkn_status visibility_maps_box(const struct visibility_maps *visibility_maps,
                               const struct vkn_scene *scene, double outlier_share, double low[3],
                               double high[3])
{
    struct surface_points surface_points = {0};
    float *inverse_distance = base_alloc(visibility_maps->pixels, sizeof *inverse_distance);
    bool ready = inverse_distance != NULL;
    for (int i = 0; i < 3; i++) {
        surface_points.values[i] = base_alloc(BOX_POINTS, sizeof *surface_points.values[i]);
        ready = ready && surface_points.values[i];
    }
    vkn_status status =
        ready ? gpu_download(visibility_maps->device, &visibility_maps->inverse_distance, 0,
                             inverse_distance, visibility_maps->pixels * sizeof *inverse_distance)
              : VKN_ERROR;
    if (status == VKN_OK) {
        add_pixels(&surface_points, visibility_maps, scene, inverse_distance);
        bound(&surface_points, outlier_share, low, high);
        for (int i = 0; i < 3; i++) {
            low[i] = (low[i] - scene->offset[i]) / scene->scale;
            high[i] = (high[i] - scene->offset[i]) / scene->scale;
        }
    }
    for (int i = 0; i < 3; i++)
        free(surface_points.values[i]);
    free(inverse_distance);
    return status;
}
