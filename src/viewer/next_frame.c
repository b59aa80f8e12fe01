/* Chooses what is rendered next: a probe, a frame of a moving camera, or a strip of a picture of a
 * camera at rest. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOVING_QUALITY 80 /* of JPEG */

static void send_failure(struct viewer *viewer, struct client *client, uint64_t exchange)
{
    char message[256];
    pthread_mutex_lock(&viewer->lock);
    memcpy(message, viewer->message, sizeof message);
    pthread_mutex_unlock(&viewer->lock);
    const struct answer failure = answer_error(500, message);
    frames_answer(viewer, client, exchange, &failure);
}

/* ---- a moving camera ------------------------------------------------------------------------- */

static void render_moving(struct viewer *viewer, struct client *client,
                          const struct frame_request *request, uint64_t exchange)
{
    double began = viewer_now();
    uint32_t size[2];
    frames_size(request,
                viewer->renderers.moving_seconds * frames_ray_rate(&viewer->renderers, request),
                size);
    const struct part all = {{size[0], size[1]}, 0, 0, size[0], size[1], 1};
    uint8_t *rgb = malloc(3 * (size_t)size[0] * size[1] * frame_maps(request));
    if (rgb && frames_render(viewer, request, &all, rgb, 3 * (size_t)size[0])) {
        const struct frame_facts facts = {
            .width = size[0],
            .height = size[1],
            .maps = frame_maps(request),
            .step = viewer->step,
            .milliseconds = 1e3 * (viewer_now() - began),
            .refined_share =
                fmin(0.999, (double)size[0] * size[1] / ((double)request->width * request->height)),
        };
        if (frames_send(viewer, client, exchange, rgb, &facts, MOVING_QUALITY))
            client->sent =
                (struct sent_picture){client->number, *request, (double)size[0] * size[1],
                                      viewer->renderers.model_version};
    } else {
        send_failure(viewer, client, exchange);
    }
    free(rgb);
}

/* ---- the next frame -------------------------------------------------------------------------- */

double frames_work(struct viewer *viewer)
{
    double began = viewer_now(), probing = probe_work(viewer);
    struct frame_request request;
    uint64_t exchange = 0;
    if (probing > 0)
        return probing;
    pthread_mutex_lock(&viewer->lock);
    struct client *client = clients_next(viewer, began);
    if (client) {
        request = client->waiting->frame;
        exchange = client->waiting->number;
    }
    pthread_mutex_unlock(&viewer->lock);
    if (!client)
        return 0;
    if (!request.still)
        render_moving(viewer, client, &request, exchange);
    else if (!refine_work(viewer, client, &request, exchange))
        send_failure(viewer, client, exchange);
    return fmax(viewer_now() - began, 1e-6);
}
