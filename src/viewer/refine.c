/* Refines pictures of a still camera: renders whole pictures of growing quality, each of them strip
 * by strip. A page keeps its picture until the next one is whole. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>

#define STILL_QUALITY    92     /* of JPEG */
#define FINE_SUPERSAMPLE 2u     /* rays along a pixel's edge of the finest picture */
#define STRIP_RAYS       1024.0 /* least number of rays of a strip */
/* Seconds of a picture that are too short to show a coarser one before it. */
#define SHORT_SECONDS    0.15
/* Seconds of a picture of half the resolution that are long enough to show a quarter before it. */
#define LONG_SECONDS     2.0
/* Seconds from picture to picture during a training, of which rendering has its share: of the first
 * picture, which the model soon makes outdated, and most seconds. Pictures are sized accordingly.
 */
#define FIRST_SECONDS    1.0
#define MOST_SECONDS     2.5
#define SEAMLESS_SECONDS 0.25 /* of rendering, most between two submissions of a training */
#define GROWTH           2.0  /* of the number of rays from picture to picture */

void refine_free(struct refinement *refinement)
{
    free(refinement->rgb);
    *refinement = (struct refinement){0};
}

/* ---- the next picture ------------------------------------------------------------------------ */

/* Returns the number of rays of the next picture during a training. */
static double training_rays(const struct renderers *renderers, const struct frame_request *request,
                            double shown)
{
    double per_second = renderers->time_share * frames_ray_rate(renderers, request),
           pixels = (double)request->width * request->height;
    double rays = shown > 0 ? fmax(FIRST_SECONDS * per_second, GROWTH * shown)
                            : renderers->moving_seconds * frames_ray_rate(renderers, request);
    return fmin(fmin(rays, MOST_SECONDS * per_second), pixels);
}

/* Returns the number of rays of the next picture when rendering has all of the time: the finest of
 * those that take a short time, else the coarsest that has at least `least` rays. */
static double view_rays(const struct renderers *renderers, const struct frame_request *request,
                        double least)
{
    double rate = frames_ray_rate(renderers, request),
           pixels = (double)request->width * request->height;
    double coarsest = fmin(renderers->moving_seconds * rate, pixels);
    const double rays[] = {coarsest, pixels / 4 > LONG_SECONDS * rate ? pixels / 16 : coarsest,
                           pixels / 4, pixels, FINE_SUPERSAMPLE * FINE_SUPERSAMPLE * pixels};
    double chosen = 0;
    for (size_t i = 0; i < sizeof rays / sizeof rays[0]; i++)
        if (rays[i] >= least && (chosen <= 0 || rays[i] < SHORT_SECONDS * rate))
            chosen = rays[i];
    return chosen;
}

/* Returns the number of rays of the next picture; 0: the page's picture is final. */
static double next_rays(const struct renderers *renderers, const struct client *client,
                        const struct frame_request *request)
{
    const struct sent_picture *sent = &client->sent;
    double pixels = (double)request->width * request->height,
           most = FINE_SUPERSAMPLE * FINE_SUPERSAMPLE * pixels;
    bool same = sent->client == client->number && frame_same(&sent->request, request);
    bool fresh = same && sent->model_version == renderers->model_version;
    double shown = same ? sent->rays : 0;
    if (renderers->time_share < 1)
        return fresh && shown >= pixels ? 0 : training_rays(renderers, request, shown);
    if (fresh && shown >= most)
        return 0;
    return view_rays(renderers, request, fmin(fresh ? 1.5 * shown : 0.99 * shown, most));
}

/* Begins a picture. False: out of memory. */
static bool begin(const struct renderers *renderers, struct refinement *r,
                  const struct frame_request *request, double rays)
{
    uint32_t size[2];
    double pixels = (double)request->width * request->height;
    frames_size(request, rays, size);
    *r = (struct refinement){
        .request = *request,
        .width = size[0],
        .height = size[1],
        .supersample = rays > pixels ? FINE_SUPERSAMPLE : 1,
        .rgb = malloc(3 * (size_t)size[0] * size[1] * frame_maps(request)),
        .model_version = renderers->model_version,
    };
    return r->rgb != NULL;
}

/* ---- strips ---------------------------------------------------------------------------------- */

static double rays_per_row(const struct refinement *r)
{
    return (double)r->width * r->supersample * r->supersample;
}

/* Returns the number of rows of the next strip. During a training all rows that take a short time
 * together are rendered at once, because strips of different steps have visible seams. */
static uint32_t strip_rows(const struct renderers *renderers, const struct refinement *r)
{
    double rate = frames_ray_rate(renderers, &r->request), left = r->height - r->rows,
           rows = fmax(renderers->strip_seconds * rate, STRIP_RAYS) / rays_per_row(r);
    if (renderers->time_share < 1 && left * rays_per_row(r) < SEAMLESS_SECONDS * rate)
        return (uint32_t)left;
    return (uint32_t)fmin(fmax(rows, 1), left);
}

static bool render_strip(struct viewer *viewer, struct refinement *r)
{
    double began = viewer_now();
    uint32_t rows = strip_rows(&viewer->renderers, r);
    const struct part part = {{r->width, r->height}, 0, r->rows, r->width, rows, r->supersample};
    if (!frames_render(viewer, &r->request, &part, r->rgb + 3 * (size_t)r->rows * r->width,
                       3 * (size_t)r->width))
        return false;
    r->rows += rows;
    r->spent_seconds += viewer_now() - began;
    return true;
}

/* Returns the share of the finest picture's rays in the page's picture and the one in work, less
 * than 1 until that picture is sent. */
static double refined_share(const struct client *client, const struct refinement *r)
{
    double pixels = (double)r->request.width * r->request.height;
    bool same =
        client->sent.client == client->number && frame_same(&client->sent.request, &r->request);
    double rays = (same ? client->sent.rays : 0) + r->rows * rays_per_row(r);
    return fmin(rays / (FINE_SUPERSAMPLE * FINE_SUPERSAMPLE * pixels), 0.999);
}

static void send_picture(struct viewer *viewer, struct client *client, uint64_t exchange)
{
    struct refinement *r = &client->refinement;
    double pixels = (double)r->request.width * r->request.height,
           rays = r->height * rays_per_row(r);
    bool training = viewer->renderers.time_share < 1;
    const struct frame_facts facts = {
        .width = r->width,
        .height = r->height,
        .maps = frame_maps(&r->request),
        .step = viewer->step,
        .milliseconds = 1e3 * r->spent_seconds,
        .refined_share = rays > pixels ? 1 : fmin(rays / ((training ? 1 : 4) * pixels), 0.999),
    };
    if (!frames_send(viewer, client, exchange, r->rgb, &facts, STILL_QUALITY))
        return; /* kept for the page's next request */
    client->sent = (struct sent_picture){client->number, r->request, rays, r->model_version};
    refine_free(r);
}

/* Lets the client wait until its frame may change. */
static void wait_for_change(struct viewer *viewer, struct client *client, uint64_t exchange)
{
    pthread_mutex_lock(&viewer->lock);
    if (client->waiting && client->waiting->number == exchange)
        client->ready_at = HUGE_VAL; /* until clients_refresh, or another request */
    client->refined_share = 1;
    pthread_mutex_unlock(&viewer->lock);
}

bool refine_work(struct viewer *viewer, struct client *client, const struct frame_request *request,
                 uint64_t exchange)
{
    struct refinement *r = &client->refinement;
    if (r->rgb && !frame_same(&r->request, request))
        refine_free(r);
    if (!r->rgb) {
        double rays = next_rays(&viewer->renderers, client, request);
        if (rays <= 0) {
            wait_for_change(viewer, client, exchange);
            return true;
        }
        if (!begin(&viewer->renderers, r, request, rays))
            return false;
    }
    if (r->rows < r->height && !render_strip(viewer, r)) {
        refine_free(r);
        return false;
    }
    pthread_mutex_lock(&viewer->lock);
    client->refined_share = refined_share(client, r);
    pthread_mutex_unlock(&viewer->lock);
    if (r->rows == r->height)
        send_picture(viewer, client, exchange);
    return true;
}
