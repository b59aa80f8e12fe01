/* Limits requests: rate limits, and a time limit for each phase of a request. */
#include "viewer/internal.h"

#include <math.h>
#include <sys/socket.h>
#include <time.h>

double viewer_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- rate limits ----------------------------------------------------------------------------- */

double allowance_left(struct allowance *allowance, double now)
{
    double earned = allowance->rate * fmax(now - allowance->refilled_at, 0);
    allowance->credit = fmin(allowance->credit + earned, allowance->most);
    allowance->refilled_at = now;
    return allowance->credit;
}

bool allowance_take(struct allowance *allowance, double now)
{
    if (allowance_left(allowance, now) < 1)
        return false;
    allowance->credit -= 1;
    return true;
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct connection *find_free(struct viewer *viewer)
{
    for (size_t i = 0; i < VIEWER_CONNECTIONS; i++)
        if (!viewer->connections[i].is_open)
            return &viewer->connections[i];
    return NULL;
}

static void open_connection(struct viewer *viewer, struct MHD_Connection *connection,
                            void **context)
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *data = find_free(viewer);
    *context = data;
    if (data && info) {
        *data = (struct connection){.is_open = true, .socket = info->connect_fd};
        connection_begin_phase(data, PHASE_HEAD);
    } else if (info) {
        shutdown(info->connect_fd, SHUT_RDWR); /* cannot happen, see accept.c */
    }
}

void connection_notice(void *context, struct MHD_Connection *connection, void **data,
                       enum MHD_ConnectionNotificationCode what)
{
    struct viewer *viewer = context;
    pthread_mutex_lock(&viewer->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        open_connection(viewer, connection, data);
    } else {
        viewer->handed_over--;
        if (*data)
            *(struct connection *)*data = (struct connection){0}; /* before the socket is closed */
    }
    pthread_mutex_unlock(&viewer->lock);
}

uint32_t connections_with_token(const struct viewer *viewer)
{
    uint32_t count = 0;
    for (size_t i = 0; i < VIEWER_CONNECTIONS; i++)
        count += viewer->connections[i].is_open && viewer->connections[i].has_token;
    return count;
}

struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void connection_begin_phase(struct connection *connection, enum phase phase)
{
    static const double seconds[] = {[PHASE_HEAD] = 10,
                                     [PHASE_BODY] = 10,
                                     [PHASE_WORK] = HUGE_VAL,
                                     [PHASE_ANSWER] = 60,
                                     [PHASE_FILE] = 3600};
    if (connection)
        connection->deadline = viewer_now() + seconds[phase];
}

/* Shuts sockets down; libmicrohttpd's thread then closes the connections. */
void connections_expire(struct viewer *viewer, double now)
{
    for (size_t i = 0; i < VIEWER_CONNECTIONS; i++) {
        struct connection *connection = &viewer->connections[i];
        if (!connection->is_open || connection->deadline > now)
            continue;
        shutdown(connection->socket, SHUT_RDWR);
        connection->deadline = HUGE_VAL;
    }
}
