#include "render/sight.h"

#include <stdlib.h>

#include "render/internal.h"
#include "train/step.h"

#define MOST_VIEWS 1024u
/* Pixels of all views together: 64 MiB; what a CPU device renders in half a minute. */
#define GPU_PIXELS (1u << 24)
#define CPU_PIXELS (1u << 20)

struct looker {
    struct vkn_renderer *renderer;
    const struct probe *probe;
    struct sight *sight;
    struct scene_camera *cameras; /* of the maps' sizes */
    uint64_t pixels;
    struct gpu_program *composite, *finish;
};

/* ---- views --------------------------------------------------------------------------------- */

static vkn_status choose_views(struct looker *looker, const struct scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    uint64_t count = train->camera_count < MOST_VIEWS ? train->camera_count : MOST_VIEWS;
    bool cpu = gpu_device_capabilities(looker->renderer->device)->type == GPU_CPU;
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: there are no train views", scene->path);
    looker->cameras = base_alloc(count, sizeof *looker->cameras);
    if (!looker->cameras)
        return VKN_ERROR;
    for (uint64_t i = 0; i < count; i++) {
        const struct scene_camera *view = &train->cameras[i * train->camera_count / count];
        struct scene_camera camera =
            scene_fit_camera(view, (cpu ? CPU_PIXELS : GPU_PIXELS) / count);
        camera.first_pixel = looker->pixels;
        looker->cameras[i] = camera;
        looker->pixels += (uint64_t)camera.width * camera.height;
    }
    looker->sight->views = (uint32_t)count;
    return VKN_OK;
}

static vkn_status upload_views(struct looker *looker)
{
    struct sight *sight = looker->sight;
    struct Camera *cameras = base_alloc(sight->views, sizeof *cameras);
    if (!cameras)
        return VKN_ERROR;
    for (uint32_t i = 0; i < sight->views; i++)
        cameras[i] = step_camera(&looker->cameras[i]);
    vkn_status status = gpu_upload(looker->renderer->device, &sight->cameras, 0, cameras,
                                   sight->views * sizeof *cameras);
    free(cameras);
    return status;
}

static vkn_status prepare(struct looker *looker)
{
    struct vkn_renderer *r = looker->renderer;
    struct sight *sight = looker->sight;
    const struct gpu_buffer_request requests[] = {
        {&sight->cameras, "sight cameras", sight->views * sizeof(struct Camera), GPU_DEVICE},
        {&sight->nearness, "sight", 4 * looker->pixels, GPU_DEVICE},
    };
    const struct render_pass passes[] = {
        {"composite_distances", &looker->composite, FIELD_SAME},
        {"finish_distances", &looker->finish, FIELD_SAME},
    };
    BASE_TRY(gpu_arena_create(r->device, requests, BASE_COUNT(requests), &sight->arena));
    BASE_TRY(upload_views(looker));
    BASE_TRY(gpu_upload(r->device, &r->constants_buffer, 0, &r->constants, sizeof r->constants));
    return render_create_passes(r, passes, BASE_COUNT(passes));
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* `rays` of the view that the renderer's camera is, from pixel `first` on, into the map at `place`. */
static vkn_status look(const struct looker *looker, uint32_t first, uint32_t rays, uint64_t place)
{
    struct vkn_renderer *r = looker->renderer;
    struct gpu_recording *recording = NULL;
    uint32_t groups = (rays + LOCAL_SIZE_VIEW - 1) / LOCAL_SIZE_VIEW;
    struct Push view = {.b = first, .c = rays}, finish = {.a = rays};
    vkn_status status = gpu_record_begin(r->device, "sight", 0, &recording);
    if (status == VKN_OK) {
        gpu_record_dispatch(recording, r->generate_view_rays, r->bindings, &view, sizeof view,
                            groups);
        render_record_rounds(r, recording, rays, looker->probe->find_density, looker->composite);
        gpu_record_dispatch(recording, looker->finish, r->bindings, &finish, sizeof finish, groups);
        gpu_record_barrier(recording);
        gpu_record_copy(recording, &r->output, 0, &looker->sight->nearness, 4 * place, 4ull * rays);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

static vkn_status look_around(const struct looker *looker, struct report_progress *progress,
                              const volatile sig_atomic_t *stop)
{
    struct vkn_renderer *r = looker->renderer;
    for (uint32_t i = 0; i < looker->sight->views; i++) {
        const struct scene_camera *camera = &looker->cameras[i];
        struct Camera view = step_camera(camera);
        uint32_t pixels = camera->width * camera->height, most = r->constants.ray_capacity;
        if (progress)
            report_progress_count(progress, "looking from the views", i, looker->sight->views);
        BASE_TRY(gpu_upload(r->device, &r->camera, 0, &view, sizeof view));
        for (uint32_t first = 0; first < pixels; first += most) {
            if (stop && *stop)
                return base_fail(VKN_INTERRUPTED, "interrupted while looking from the views");
            uint32_t rays = pixels - first < most ? pixels - first : most;
            BASE_TRY(look(looker, first, rays, camera->first_pixel + first));
        }
    }
    return VKN_OK;
}

vkn_status sight_create(vkn_renderer *renderer, const struct probe *probe,
                        const struct scene *scene, struct report_progress *progress,
                        const volatile sig_atomic_t *stop, struct sight *sight)
{
    *sight = (struct sight){0};
    struct looker looker = {.renderer = renderer, .probe = probe, .sight = sight};
    vkn_status status = choose_views(&looker, scene);
    if (status == VKN_OK)
        status = prepare(&looker);
    if (status == VKN_OK)
        status = look_around(&looker, progress, stop);
    gpu_program_destroy(&looker.composite);
    gpu_program_destroy(&looker.finish);
    free(looker.cameras);
    return status;
}

void sight_destroy(struct sight *sight)
{
    gpu_arena_destroy(&sight->arena);
}
