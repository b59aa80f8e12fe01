#include "render/sight.h"

#include <math.h>
#include <stdlib.h>

#include "render/internal.h"
#include "render/probe.h"
#include "volume/volume.h"

#define MOST_VIEWS 1024u
/* Pixels of all views together: 64 MiB; what a CPU device renders in half a minute. */
#define GPU_PIXELS (1u << 24)
#define CPU_PIXELS (1u << 20)

struct looker {
    struct vkn_renderer *renderer;
    struct sight *sight;
    struct gpu_program *find_density, *composite, *finish;
};

/* ---- views --------------------------------------------------------------------------------- */

static vkn_status choose_views(struct looker *looker, const struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    uint64_t count = train->camera_count < MOST_VIEWS ? train->camera_count : MOST_VIEWS;
    struct sight *sight = looker->sight;
    bool cpu = gpu_device_capabilities(sight->device)->type == GPU_CPU;
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: there are no train views", scene->path);
    sight->shown = base_alloc(count, sizeof *sight->shown);
    if (!sight->shown)
        return VKN_ERROR;
    for (uint64_t i = 0; i < count; i++) {
        const struct scene_camera *view = &train->cameras[i * train->camera_count / count];
        struct scene_camera camera =
            scene_fit_camera(view, (cpu ? CPU_PIXELS : GPU_PIXELS) / count);
        camera.first_pixel = sight->pixels;
        sight->shown[i] = camera;
        sight->pixels += (uint64_t)camera.width * camera.height;
    }
    sight->views = (uint32_t)count;
    return VKN_OK;
}

static vkn_status upload_views(const struct sight *sight)
{
    struct Camera *cameras = base_alloc(sight->views, sizeof *cameras);
    if (!cameras)
        return VKN_ERROR;
    for (uint32_t i = 0; i < sight->views; i++)
        cameras[i] = setup_camera(&sight->shown[i]);
    vkn_status status =
        gpu_upload(sight->device, &sight->cameras, 0, cameras, sight->views * sizeof *cameras);
    free(cameras);
    return status;
}

static vkn_status prepare(struct looker *looker)
{
    struct vkn_renderer *r = looker->renderer;
    struct sight *sight = looker->sight;
    const struct gpu_buffer_request requests[] = {
        {&sight->cameras, "sight cameras", sight->views * sizeof(struct Camera), GPU_DEVICE},
        {&sight->nearness, "sight", 4 * sight->pixels, GPU_DEVICE},
    };
    const struct field_pass_request passes[] = {
        {volume_viewing.passes[VOLUME_DISTANCES].name, &looker->composite, FIELD_SAME},
        {"finish_distances", &looker->finish, FIELD_SAME},
    };
    BASE_TRY(gpu_arena_create(r->device, requests, BASE_COUNT(requests), &sight->arena));
    BASE_TRY(upload_views(sight));
    BASE_TRY(render_upload_constants(r));
    BASE_TRY(render_create_passes(r, passes, BASE_COUNT(passes)));
    const struct render_field field = render_field_of(r);
    return probe_create_forward(&field, true, &looker->find_density);
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* `rays` of the view that the renderer's camera is, from pixel `first` on, into the map at
 * `place`. */
static vkn_status look(const struct looker *looker, uint32_t first, uint32_t rays, uint64_t place)
{
    struct vkn_renderer *r = looker->renderer;
    uint32_t groups = (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
    struct Push view = {.b = first, .c = rays}, finish = {.a = rays};
    GPU_ONCE(r->device, "sight");
    gpu_record_dispatch(recording, r->generate_view_rays, r->bindings, &view, sizeof view, groups);
    render_record_rounds(r, recording, rays, looker->find_density, looker->composite);
    gpu_record_dispatch(recording, looker->finish, r->bindings, &finish, sizeof finish, groups);
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &r->buffers.at[BIND_OUTPUT], 0, &looker->sight->nearness, 4 * place,
                    4ull * rays);
    return gpu_run_once(&recording);
}

static vkn_status look_around(const struct looker *looker, struct report_progress *progress,
                              const volatile sig_atomic_t *stop)
{
    struct vkn_renderer *r = looker->renderer;
    for (uint32_t i = 0; i < looker->sight->views; i++) {
        const struct scene_camera *camera = &looker->sight->shown[i];
        uint32_t pixels = camera->width * camera->height, most = r->setup.constants.ray_capacity;
        if (progress)
            report_progress_count(progress, "looking from the views", i, looker->sight->views);
        BASE_TRY(render_upload_camera(r, camera));
        for (uint32_t first = 0; first < pixels; first += most) {
            if (base_stop_asked(stop))
                return base_fail(VKN_INTERRUPTED, "interrupted while looking from the views");
            uint32_t rays = pixels - first < most ? pixels - first : most;
            BASE_TRY(look(looker, first, rays, camera->first_pixel + first));
        }
    }
    return VKN_OK;
}

vkn_status sight_create(vkn_renderer *renderer, const struct vkn_scene *scene,
                        struct report_progress *progress, const volatile sig_atomic_t *stop,
                        struct sight *sight)
{
    *sight = (struct sight){.device = renderer->device};
    struct looker looker = {.renderer = renderer, .sight = sight};
    vkn_status status = choose_views(&looker, scene);
    if (status == VKN_OK)
        status = prepare(&looker);
    if (status == VKN_OK)
        status = look_around(&looker, progress, stop);
    gpu_program_destroy(&looker.find_density);
    gpu_program_destroy(&looker.composite);
    gpu_program_destroy(&looker.finish);
    return status;
}

void sight_destroy(struct sight *sight)
{
    gpu_arena_destroy(&sight->arena);
    free(sight->shown);
    sight->shown = NULL;
}

/* ---- what is seen -------------------------------------------------------------------------- */

#define BOX_POINTS (1u << 18) /* that a box is found from, about */
#define BOX_MARGIN (1.0 / 64)

struct seen {
    size_t count;
    float *along[3]; /* places, training space */
};

static void add_pixel(struct seen *seen, const struct vkn_scene *scene,
                      const struct scene_camera *camera, uint32_t pixel, double nearness)
{
    double origin[3], direction[3], place[3], reach = 0.0;
    uint32_t column = pixel % camera->width, row = pixel / camera->width;
    if (!(nearness > 0.0) || !scene_camera_ray(camera, column + 0.5, row + 0.5, origin, direction))
        return;
    for (int i = 0; i < 3; i++) {
        place[i] = origin[i] + direction[i] / nearness;
        reach = fmax(reach, fabs(place[i] - 0.5));
    }
    if (reach > 0.5 * scene->aabb_scale)
        return;
    for (int i = 0; i < 3; i++)
        seen->along[i][seen->count] = (float)place[i];
    seen->count++;
}

static void add_pixels(struct seen *seen, const struct sight *sight, const struct vkn_scene *scene,
                       const float *nearness)
{
    uint64_t stride = sight->pixels / BOX_POINTS + 1, number = 0;
    for (uint32_t v = 0; v < sight->views; v++) {
        const struct scene_camera *camera = &sight->shown[v];
        for (uint32_t i = 0; i < camera->width * camera->height; i++)
            if (number++ % stride == 0)
                add_pixel(seen, scene, camera, i, (double)nearness[camera->first_pixel + i]);
    }
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* In training space, as all but the margin is. */
static void bound(const struct seen *seen, double outliers, double low[3], double high[3])
{
    double longest = 0.0;
    for (int i = 0; i < 3; i++) {
        size_t out = (size_t)(outliers * (double)seen->count);
        qsort(seen->along[i], seen->count, sizeof *seen->along[i], compare);
        low[i] = seen->count ? (double)seen->along[i][out] : 0.0;
        high[i] = seen->count ? (double)seen->along[i][seen->count - 1 - out] : 1.0;
        longest = fmax(longest, high[i] - low[i]);
    }
    for (int i = 0; i < 3; i++) {
        low[i] -= BOX_MARGIN * longest;
        high[i] += BOX_MARGIN * longest;
    }
}

vkn_status sight_box(const struct sight *sight, const struct vkn_scene *scene, double outliers,
                     double low[3], double high[3])
{
    struct seen seen = {0};
    float *nearness = base_alloc(sight->pixels, sizeof *nearness);
    bool room = nearness != NULL;
    for (int i = 0; i < 3; i++) {
        seen.along[i] = base_alloc(BOX_POINTS, sizeof *seen.along[i]);
        room = room && seen.along[i];
    }
    vkn_status status = room ? gpu_download(sight->device, &sight->nearness, 0, nearness,
                                            sight->pixels * sizeof *nearness)
                             : VKN_ERROR;
    if (status == VKN_OK) {
        add_pixels(&seen, sight, scene, nearness);
        bound(&seen, outliers, low, high);
        for (int i = 0; i < 3; i++) {
            low[i] = (low[i] - scene->offset[i]) / scene->scale;
            high[i] = (high[i] - scene->offset[i]) / scene->scale;
        }
    }
    for (int i = 0; i < 3; i++)
        free(seen.along[i]);
    free(nearness);
    return status;
}
