/* Refines pictures of a still camera in two passes, tile by tile from the centre outwards. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STILL_QUALITY         92  /* of JPEG */
#define FINE_SUPERSAMPLE      2u  /* rays along a pixel's edge in the second pass */
#define LEAST_TILE            32u /* pixels of a tile's edge */
#define MOST_TILE             1024u
/* Least seconds between unfinished pictures that are sent, without and during a training. */
#define SEND_SECONDS          0.35
#define TRAINING_SEND_SECONDS 0.9
/* Seconds of a pass during a training: the picture is scaled down accordingly. */
#define PASS_SECONDS          2.0
#define MAX_SIZE_RATIO        1.5 /* of pixel counts; the refinement restarts beyond it */

void refine_free(struct refinement *refinement)
{
    free(refinement->rgb);
    free(refinement->order);
    *refinement = (struct refinement){0};
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static int compare_distances(const void *left, const void *right, void *context)
{
    const struct refinement *r = context;
    const uint32_t tiles[2] = {*(const uint32_t *)left, *(const uint32_t *)right};
    double distance[2];
    for (int i = 0; i < 2; i++) {
        uint32_t column = tiles[i] % r->columns, row = tiles[i] / r->columns;
        distance[i] = hypot((column + 0.5) * r->tile_edge - 0.5 * r->width,
                            (row + 0.5) * r->tile_edge - 0.5 * r->height);
    }
    if (distance[0] < distance[1] || distance[0] > distance[1])
        return distance[0] < distance[1] ? -1 : 1;
    return tiles[0] < tiles[1] ? -1 : tiles[0] > tiles[1];
}

/* Begins a pass over the picture with `supersample`^2 rays per pixel. */
static bool begin_pass(const struct renderers *renderers, struct refinement *r,
                       uint32_t supersample)
{
    double rays = renderers->tile_seconds * frames_ray_rate(renderers, &r->request);
    double side = fmin(fmax(sqrt(rays) / supersample, LEAST_TILE), MOST_TILE);
    r->supersample = supersample;
    r->next = 0;
    r->model_version = renderers->model_version;
    r->complete = false;
    r->tile_edge = (uint32_t)side;
    r->columns = (r->width + r->tile_edge - 1) / r->tile_edge;
    r->tile_count = r->columns * ((r->height + r->tile_edge - 1) / r->tile_edge);
    uint32_t *order = realloc(r->order, r->tile_count * sizeof *order);
    if (!order)
        return false;
    r->order = order;
    for (uint32_t i = 0; i < r->tile_count; i++)
        order[i] = i;
    qsort_r(order, r->tile_count, sizeof *order, compare_distances, r);
    return true;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool render_tile(struct viewer *viewer, struct refinement *r)
{
    uint32_t number = r->order[r->next], x = number % r->columns * r->tile_edge,
             y = number / r->columns * r->tile_edge;
    const struct part part = {{r->width, r->height},
                              x,
                              y,
                              smaller(r->tile_edge, r->width - x),
                              smaller(r->tile_edge, r->height - y),
                              r->supersample};
    if (!frames_render(viewer, &r->request, &part, r->rgb + 3 * ((size_t)y * r->width + x),
                       3 * (size_t)r->width))
        return false;
    r->next++;
    r->unsent = true;
    return true;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Computes the picture's size: as requested or, during a training, as PASS_SECONDS allow. */
static void target_size(const struct renderers *renderers, const struct frame_request *request,
                        uint32_t size[2])
{
    double rays = renderers->time_share < 1
                      ? renderers->time_share * PASS_SECONDS * frames_ray_rate(renderers, request)
                      : HUGE_VAL;
    frames_size(request, rays, size);
}

/* Renders a coarse picture and scales it up to `size`, as the start of the refinement. */
static uint8_t *render_base(struct viewer *viewer, const struct frame_request *request,
                            const uint32_t size[2])
{
    uint32_t small[2];
    frames_size(request,
                viewer->renderers.moving_seconds * frames_ray_rate(&viewer->renderers, request),
                small);
    const struct part all = {{small[0], small[1]}, 0, 0, small[0], small[1], 1};
    uint32_t maps = frame_maps(request);
    uint8_t *coarse = malloc(3 * (size_t)small[0] * small[1] * maps),
            *rgb = malloc(3 * (size_t)size[0] * size[1] * maps);
    bool made = coarse && rgb && frames_render(viewer, request, &all, coarse, 3 * (size_t)small[0]);
    if (made)
        picture_enlarge(coarse, small, rgb, size, maps);
    free(coarse);
    if (made)
        return rgb;
    free(rgb);
    return NULL;
}

/* Begins a refinement: of the present picture if it shows the `same` view, else of a coarse one. */
static bool begin(struct viewer *viewer, struct refinement *r, const struct frame_request *request,
                  bool same)
{
    uint32_t size[2];
    uint8_t *rgb;
    target_size(&viewer->renderers, request, size);
    if (same) {
        rgb = malloc(3 * (size_t)size[0] * size[1] * frame_maps(request));
        if (rgb)
            picture_enlarge(r->rgb, (const uint32_t[]){r->width, r->height}, rgb, size,
                            frame_maps(request));
    } else {
        rgb = render_base(viewer, request, size);
    }
    refine_free(r);
    if (!rgb)
        return false;
    *r = (struct refinement){.request = *request,
                             .width = size[0],
                             .height = size[1],
                             .rgb = rgb,
                             .unsent = !same,
                             .sent_at = viewer_now()};
    return begin_pass(&viewer->renderers, r, 1);
}

/* Returns whether the picture's size is near the target, which depends on the measured speed. */
static bool fits(const struct renderers *renderers, const struct refinement *r)
{
    uint32_t size[2];
    target_size(renderers, &r->request, size);
    double ratio = (double)size[0] * size[1] / ((double)r->width * r->height);
    return ratio < MAX_SIZE_RATIO && ratio > 1.0 / MAX_SIZE_RATIO;
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Returns the share of the final quality: 1 only for a complete picture of full size. */
static double refined_share(const struct renderers *renderers, const struct refinement *r)
{
    double size = (double)r->width * r->height / ((double)r->request.width * r->request.height);
    double done = r->tile_count > 0 ? (double)r->next / r->tile_count : 0,
           first = 1.0 / (1 + FINE_SUPERSAMPLE * FINE_SUPERSAMPLE);
    if (r->complete && size >= 1)
        return 1;
    if (renderers->time_share < 1)
        return fmin(size, 0.999) * (r->covered ? 1 : done);
    return fmin(size, 0.999) * (r->supersample > 1 ? first + (1 - first) * done
                                : r->covered       ? first
                                                   : first * done);
}

static void send_picture(struct viewer *viewer, struct client *client, uint64_t exchange)
{
    struct refinement *r = &client->refinement;
    const struct frame_facts facts = {
        .width = r->width,
        .height = r->height,
        .maps = frame_maps(&r->request),
        .step = viewer->step,
        .milliseconds = 1e3 * r->spent_seconds,
        .refined_share = refined_share(&viewer->renderers, r),
    };
    r->unsent = !frames_send(viewer, client, exchange, r->rgb, &facts, STILL_QUALITY);
    r->spent_seconds = 0;
    r->sent_at = viewer_now();
}

/* Begins the second pass after the first, except during a training or with changed parameters. */
static bool end_pass(const struct renderers *renderers, struct refinement *r)
{
    r->covered = true;
    bool needs_second_pass = renderers->time_share >= 1 && r->supersample < FINE_SUPERSAMPLE &&
                             r->model_version == renderers->model_version;
    if (needs_second_pass)
        return begin_pass(renderers, r, FINE_SUPERSAMPLE);
    r->complete = true;
    return true;
}

/* Renders a tile, or begins a refinement or a pass. True also when there was nothing to do. */
static bool advance(struct viewer *viewer, struct client *client,
                    const struct frame_request *request)
{
    struct refinement *r = &client->refinement;
    const struct renderers *renderers = &viewer->renderers;
    bool same =
        r->rgb && client->refined_client == client->number && frame_same(&r->request, request);
    bool settled = same && r->complete,
         stale = same && r->model_version != renderers->model_version;
    client->refined_client = client->number;
    if (!same || ((settled || stale || r->next == 0) && !fits(renderers, r)))
        return begin(viewer, r, request, same);
    if (settled && stale)
        return begin_pass(renderers, r, 1);
    if (settled && r->supersample == 1 && renderers->time_share >= 1)
        return begin_pass(renderers, r, FINE_SUPERSAMPLE);
    if (settled)
        return true;
    if (!render_tile(viewer, r))
        return false;
    return r->next < r->tile_count || end_pass(renderers, r);
}

/* Lets the client wait until its frame may change. */
static void wait_for_change(struct viewer *viewer, struct client *client, uint64_t exchange)
{
    pthread_mutex_lock(&viewer->lock);
    if (client->waiting && client->waiting->number == exchange)
        client->ready_at = HUGE_VAL; /* until clients_refresh, or another request */
    pthread_mutex_unlock(&viewer->lock);
}

bool refine_work(struct viewer *viewer, struct client *client, const struct frame_request *request,
                 uint64_t exchange)
{
    struct refinement *r = &client->refinement;
    double began = viewer_now(),
           interval = viewer->renderers.time_share < 1 ? TRAINING_SEND_SECONDS : SEND_SECONDS;
    if (!advance(viewer, client, request)) {
        refine_free(r);
        return false;
    }
    double now = viewer_now();
    r->spent_seconds += now - began;
    if (r->unsent && (r->complete || now - r->sent_at > interval))
        send_picture(viewer, client, exchange);
    else if (r->complete && !r->unsent)
        wait_for_change(viewer, client, exchange);
    return true;
}
