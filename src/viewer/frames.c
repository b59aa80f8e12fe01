/* Renders frames and parts of frames, and sends them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "viewer/internal.h"

/* ---- the renderers --------------------------------------------------------------------------- */

static vkn_status open_renderer(struct renderers *renderers, vkn_renderer **renderer)
{
    return renderers->trainer ? vkn_renderer_of_trainer(renderers->trainer, renderer)
                              : vkn_renderer_open(renderers->context, renderers->checkpoint,
                                                  renderers->precision, renderer);
}

/* Normals have their own renderer: with normals all pictures take three times as long. */
static vkn_renderer **renderers_cached(struct renderers *renderers,
                                       const struct frame_request *request)
{
    return frame_has_normals(request) ? &renderers->normal : &renderers->color;
}

vkn_status renderers_get(struct renderers *renderers, const struct frame_request *request,
                         vkn_renderer **renderer)
{
    bool normals = frame_has_normals(request);
    vkn_renderer **cached = renderers_cached(renderers, request);
    vkn_status status = *cached ? VKN_OK : open_renderer(renderers, cached);
    if (status == VKN_OK && normals)
        status = vkn_renderer_enable_normals(*cached);
    if (status != VKN_OK)
        vkn_renderer_destroy(cached);
    *renderer = *cached;
    return status;
}

void renderers_close(struct renderers *renderers)
{
    vkn_renderer_destroy(&renderers->color);
    vkn_renderer_destroy(&renderers->normal);
}

/* ---- rendering ------------------------------------------------------------------------------- */

#define LEAST_RAYS     1536.0
#define LEAST_MEASURED 256.0   /* rays of a picture whose speed is measured */
#define FIRST_RAY_RATE 40000.0 /* rays per second, until they are measured */

/* Returns the camera of a part: the whole picture's camera with a shifted principal point. */
static struct vkn_camera camera_of(const struct frame_request *request, const struct part *part)
{
    const double degree = 3.14159265358979323846 / 180.0;
    double focal = 0.5 * part->full[1] / tan(0.5 * degree * request->fov);
    struct vkn_camera camera = {
        .size = sizeof camera,
        .width = part->width,
        .height = part->height,
        .focal_x =
            focal * part->full[0] * request->height / ((double)part->full[1] * request->width),
        .focal_y = focal,
        /* Not exactly 0: a principal point of 0, 0 means the centre of the part. */
        .center_x = request->center[0] * part->full[0] - part->x + 1e-6,
        .center_y = request->center[1] * part->full[1] - part->y + 1e-6,
        .time = request->time,
    };
    memcpy(camera.pose, request->pose, sizeof camera.pose);
    return camera;
}

double frames_ray_rate(const struct renderers *renderers, const struct frame_request *request)
{
    double ray_rate = renderers->ray_rate[frame_has_normals(request)];
    return ray_rate > 0 ? ray_rate : FIRST_RAY_RATE;
}

static void update_ray_rate(struct renderers *renderers, const struct frame_request *request,
                            double rays, double seconds)
{
    double *ray_rate = &renderers->ray_rate[frame_has_normals(request)],
           measured = rays / fmax(seconds, 1e-5);
    *ray_rate = *ray_rate > 0 ? 0.5 * (*ray_rate + measured) : measured;
}

vkn_status frames_picture(struct viewer *viewer, const struct frame_request *request,
                          const struct part *part, struct vkn_picture **picture)
{
    struct vkn_camera camera = camera_of(request, part);
    struct vkn_picture_params params = {
        .size = sizeof params,
        .background = (enum vkn_background)request->background,
        .supersample = part->supersample,
        .exposure = request->exposure,
    };
    if (request->cropped) {
        memcpy(params.crop, request->crop, sizeof params.crop);
        memcpy(params.crop_rotation, request->crop + 6, sizeof params.crop_rotation);
    }
    vkn_renderer *renderer = NULL;
    bool opens = !*renderers_cached(&viewer->renderers, request);
    if (opens)
        viewer_begin_activity(viewer, "compiling the pipelines of pictures");
    vkn_status status = renderers_get(&viewer->renderers, request, &renderer);
    if (opens)
        viewer_begin_activity(viewer, NULL);
    double began = viewer_now();
    if (status == VKN_OK)
        status = vkn_render(renderer, &camera, &params, picture);
    double rays = (double)part->width * part->height * part->supersample * part->supersample;
    if (status == VKN_OK && rays >= LEAST_MEASURED)
        update_ray_rate(&viewer->renderers, request, rays, viewer_now() - began);
    return status;
}

bool frames_render(struct viewer *viewer, const struct frame_request *request,
                   const struct part *part, uint8_t *rgb, size_t pitch)
{
    struct vkn_picture *picture = NULL;
    if (frames_picture(viewer, request, part, &picture) != VKN_OK) {
        viewer_set_message(viewer, "%s", vkn_last_error());
        return false;
    }
    picture_colors(picture, request, (enum viewer_map)request->map, viewer->focus_distance, rgb,
                   pitch);
    if (request->second_map != MAP_NONE)
        picture_colors(picture, request, (enum viewer_map)request->second_map,
                       viewer->focus_distance, rgb + part->full[1] * pitch, pitch);
    vkn_picture_free(&picture);
    return true;
}

void frames_size(const struct frame_request *request, double rays, uint32_t size[2])
{
    double all = (double)request->width * request->height;
    double factor = fmin(1.0, sqrt(fmax(rays, LEAST_RAYS) / all));
    size[0] = (uint32_t)fmax(1.0, round(request->width * factor));
    size[1] = (uint32_t)fmax(1.0, round(request->height * factor));
}

/* ---- sending --------------------------------------------------------------------------------- */

bool frames_answer(struct viewer *viewer, struct client *client, uint64_t exchange,
                   const struct answer *answer)
{
    pthread_mutex_lock(&viewer->lock);
    bool waits = client->waiting && client->waiting->number == exchange;
    if (waits) {
        answer_set(client->waiting, answer);
        client->waiting = NULL;
        client->seen_at = viewer_now();
    }
    pthread_mutex_unlock(&viewer->lock);
    if (!waits)
        free(answer->data);
    return waits;
}

bool frames_send(struct viewer *viewer, struct client *client, uint64_t exchange,
                 const uint8_t *rgb, const struct frame_facts *facts, int quality)
{
    struct answer picture = {.code = 200, .type = "image/jpeg", .is_frame = true, .facts = *facts};
    const struct pixels_jpeg jpeg = {
        rgb, facts->width, facts->height * facts->maps, 3, quality, NULL, 0};
    picture.data = pixels_write_jpeg(&jpeg, &picture.size);
    if (!picture.data)
        picture = answer_error(500, "out of memory");
    return frames_answer(viewer, client, exchange, &picture);
}
