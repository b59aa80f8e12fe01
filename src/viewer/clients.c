/* Keeps the list of open pages, each of which waits for one frame at a time, served round robin. */
#include "viewer/internal.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define NO_FRAME    "the device has rendered no frame for 20 s; waiting"
#define MOST_PROBES 16u /* parked requests of /api/probe */

static struct client *find(struct viewer *viewer, const char *name)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (strcmp(viewer->clients[i].name, name) == 0)
            return &viewer->clients[i];
    return NULL;
}

/* Returns a free slot, or the slot of the page closed longest ago; NULL: all are in use. */
static struct client *find_slot(struct viewer *viewer, double now)
{
    struct client *slot = NULL;
    for (size_t i = 0; i < VIEWER_CLIENTS; i++) {
        struct client *client = &viewer->clients[i];
        bool is_free = !client->name[0] ||
                       (!client->waiting && now - client->seen_at > VIEWER_PRESENT_SECONDS);
        if (is_free && (!slot || client->seen_at < slot->seen_at))
            slot = client;
    }
    return slot;
}

static struct client *admit(struct viewer *viewer, const char *name, double now)
{
    struct client *client = find_slot(viewer, now);
    if (!client)
        return NULL;
    strncpy(client->name, name, VIEWER_NAME);
    client->name[VIEWER_NAME] = 0;
    client->number = ++viewer->last_client;
    client->refined_share = 0;
    return client;
}

void clients_wait(struct viewer *viewer, const char *name, struct exchange *exchange)
{
    double now = viewer_now();
    struct client *client = find(viewer, name);
    if (exchange->frame.background == VKN_BACKGROUND_DEFAULT)
        exchange->frame.background = (uint32_t)viewer->background;
    if (!client)
        client = admit(viewer, name, now);
    if (!client) {
        answer_fail(exchange, 503,
                    "%u other pages are open, the most allowed: waiting for one to close",
                    VIEWER_CLIENTS);
        return;
    }
    if (client->waiting)
        answer_fail(client->waiting, 409, "replaced by a newer request of this page");
    client->seen_at = now;
    client->waiting = exchange;
    if (!exchange->frame.still || !client->last_request.still ||
        !frame_same(&exchange->frame, &client->last_request))
        client->ready_at = now;
    if (!frame_same(&exchange->frame, &client->last_request)) {
        client->refined_share = 0;
        viewer->moved_at = now;
    }
    client->last_request = exchange->frame;
    answer_park(exchange);
    pthread_cond_signal(&viewer->wake_renderer);
}

/* ---- requests of /api/probe -------------------------------------------------------------------
 */

void probe_wait(struct viewer *viewer, struct exchange *exchange)
{
    struct exchange **end = &viewer->probes;
    uint32_t count = 0;
    for (; *end; end = &(*end)->next)
        count++;
    if (count >= MOST_PROBES) {
        answer_fail(exchange, 503, "too many requests at once");
        return;
    }
    exchange->next = NULL;
    *end = exchange;
    answer_park(exchange);
    pthread_cond_signal(&viewer->wake_renderer);
}

/* Refuses requests that were parked before a time; HUGE_VAL: all. */
static void probe_refuse(struct viewer *viewer, double parked_before, const char *why)
{
    struct exchange **at = &viewer->probes;
    while (*at) {
        struct exchange *exchange = *at;
        if (exchange->parked_at < parked_before) {
            *at = exchange->next;
            answer_fail(exchange, 503, "%s", why);
        } else {
            at = &exchange->next;
        }
    }
}

/* Removes an exchange that has ended from the list. */
static void probe_forget(struct viewer *viewer, const struct exchange *exchange)
{
    for (struct exchange **at = &viewer->probes; *at; at = &(*at)->next)
        if (*at == exchange) {
            *at = exchange->next;
            return;
        }
}

/* ---- pages ------------------------------------------------------------------------------------
 */

bool clients_present(const struct viewer *viewer, double now)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (viewer->clients[i].name[0] &&
            (viewer->clients[i].waiting ||
             now - viewer->clients[i].seen_at < VIEWER_PRESENT_SECONDS))
            return true;
    return false;
}

struct client *clients_next(struct viewer *viewer, double now)
{
    for (uint32_t i = 1; i <= VIEWER_CLIENTS; i++) {
        uint32_t slot = (viewer->last_served + i) % VIEWER_CLIENTS;
        struct client *client = &viewer->clients[slot];
        if (!client->waiting || client->ready_at > now)
            continue;
        viewer->last_served = slot;
        return client;
    }
    return NULL;
}

void clients_refresh(struct viewer *viewer)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        viewer->clients[i].ready_at = 0;
}

double clients_ready_at(const struct viewer *viewer)
{
    double first = viewer->probes ? 0 : HUGE_VAL;
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (viewer->clients[i].waiting)
            first = fmin(first, viewer->clients[i].ready_at);
    return first;
}

bool clients_waiting(const struct viewer *viewer)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (viewer->clients[i].waiting)
            return true;
    return viewer->probes != NULL;
}

void clients_refuse_waiting(struct viewer *viewer, const char *why)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++) {
        if (viewer->clients[i].waiting)
            answer_fail(viewer->clients[i].waiting, 503, "%s", why);
        viewer->clients[i].waiting = NULL;
    }
    probe_refuse(viewer, HUGE_VAL, why);
}

/* Returns whether another page waits for frames. */
static bool others_wait(const struct viewer *viewer, const struct client *client)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (&viewer->clients[i] != client && viewer->clients[i].waiting)
            return true;
    return false;
}

static void end_wait(const struct viewer *viewer, struct client *client, double waited)
{
    struct exchange *exchange = client->waiting;
    const struct answer nothing = {
        .code = 204, .is_frame = true, .facts = {.refined_share = client->refined_share}};
    char busy[VIEWER_MESSAGE];
    if (exchange->frame.still && waited > VIEWER_STILL_TIMEOUT)
        answer_set(exchange, &nothing);
    else if (waited > VIEWER_STILL_TIMEOUT && viewer_is_busy(viewer, busy))
        answer_fail(exchange, 503, "%s", busy);
    else if (waited > VIEWER_REQUEST_TIMEOUT)
        answer_fail(exchange, 503, "%s",
                    others_wait(viewer, client) ? "other pages use the device; waiting for a turn"
                                                : NO_FRAME);
    else
        return;
    client->waiting = NULL;
}

void clients_expire(struct viewer *viewer, double now)
{
    char busy[VIEWER_MESSAGE];
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (viewer->clients[i].waiting)
            end_wait(viewer, &viewer->clients[i], now - viewer->clients[i].waiting->parked_at);
    if (viewer_is_busy(viewer, busy))
        probe_refuse(viewer, now - VIEWER_STILL_TIMEOUT, busy);
    probe_refuse(viewer, now - VIEWER_REQUEST_TIMEOUT, NO_FRAME);
}

void clients_forget(struct viewer *viewer, const struct exchange *exchange)
{
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        if (viewer->clients[i].waiting == exchange)
            viewer->clients[i].waiting = NULL;
    probe_forget(viewer, exchange);
    for (struct exchange **job = &viewer->jobs; *job; job = &(*job)->next)
        if (*job == exchange) {
            *job = exchange->next;
            viewer->job_count--;
            return;
        }
}

/* ---- waiting, new parameters ----------------------------------------------------------------- */

void viewer_wait_for_request(struct viewer *viewer, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(fmin(fmax(seconds, 0.0), 0.999) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&viewer->lock);
    if (clients_ready_at(viewer) > viewer_now())
        pthread_cond_timedwait(&viewer->wake_renderer, &viewer->lock, &until);
    pthread_mutex_unlock(&viewer->lock);
}

void viewer_new_model(struct viewer *viewer, uint64_t step)
{
    viewer->renderers.model_version++;
    pthread_mutex_lock(&viewer->lock);
    viewer->step = step;
    clients_refresh(viewer);
    pthread_mutex_unlock(&viewer->lock);
}
