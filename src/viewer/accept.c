/* Accepts connections and passes those whose request line has the token to libmicrohttpd.
 *
 * A connection is pending until it is passed on or closed. Connections without the token are
 * passed on at a limited rate once their request head is complete: the viewer answers with the
 * reason and closes them. Beyond that rate they are closed without an answer, and connections are
 * accepted at a limited rate, so that a flood costs a training little. The thread also closes
 * connections that take too long. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PENDING            128u /* most pending connections; a new one replaces the oldest */
#define PENDING_OF_ADDRESS 64u  /* most pending connections of one address */
#define PENDING_SECONDS    5.0
#define PENDING_HEAD       8192u /* most bytes of a request head */
#define REFUSALS           100.0 /* requests without the token that are answered, per second */
#define REFUSALS_AT_ONCE   100.0
#define REFUSALS_OPEN      32u /* most connections without the token in libmicrohttpd */
#define BATCH              16u /* connections accepted between two pauses of a flood */
#define PAUSE_NANOSECONDS  8000000
#define TICK_MILLISECONDS  100 /* between checks of incomplete heads */

struct pending {
    int socket;
    double since;    /* viewer_now() */
    bool may_refuse; /* the rate limit allows an answer without the token */
    bool partial;    /* a part of the head has arrived */
    bool closed;     /* the peer has closed its side */
    bool check;      /* is checked next: new bytes may have arrived */
    struct sockaddr_storage address;
    socklen_t size;
};

struct acceptor {
    struct viewer *viewer;
    int socket;
    pthread_t thread;
    bool ending;  /* guarded by the viewer's lock */
    bool flooded; /* this iteration closed connections without an answer, or could not accept any */
    double ticked_at; /* viewer_now() of the last check of incomplete heads */
    struct allowance refusals;
    struct pending pending[PENDING]; /* oldest first */
    size_t count;
};

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns the bytes that identify a peer: of an IPv6 address the first 64 bits, because networks
 * give each customer 2^64 addresses. IPv4 mapped into IPv6 counts as IPv4. */
static size_t address_key(const struct sockaddr_storage *address, const uint8_t **key)
{
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        bool v4 = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        *key = v6->sin6_addr.s6_addr + (v4 ? 12 : 0);
        return v4 ? 4 : 8;
    }
    *key = (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    return 4;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const uint8_t *keys[2];
    size_t sizes[2] = {address_key(a, &keys[0]), address_key(b, &keys[1])};
    return sizes[0] == sizes[1] && memcmp(keys[0], keys[1], sizes[0]) == 0;
}

/* ---- pending connections --------------------------------------------------------------------- */

static void forget(struct acceptor *acceptor, size_t number)
{
    struct pending *pending = &acceptor->pending[number];
    memmove(pending, pending + 1, (--acceptor->count - number) * sizeof *pending);
}

/* Closes a pending connection by a TCP reset, so that the system keeps no state of it. */
static void reset_connection(struct acceptor *acceptor, size_t number)
{
    const struct linger none = {.l_onoff = 1};
    const struct pending *pending = &acceptor->pending[number];
    acceptor->flooded = acceptor->flooded || !pending->may_refuse;
    setsockopt(pending->socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(pending->socket);
    forget(acceptor, number);
}

/* Counts a connection before it is passed on. The count must be exact: libmicrohttpd 0.9.75
 * deadlocks when it gets more connections than its limit. */
static bool reserve(struct viewer *viewer, bool has_token)
{
    pthread_mutex_lock(&viewer->lock);
    uint32_t others = viewer->handed_over - connections_with_token(viewer);
    bool allowed =
        viewer->handed_over < VIEWER_CONNECTIONS && (has_token || others < REFUSALS_OPEN);
    viewer->handed_over += allowed;
    pthread_mutex_unlock(&viewer->lock);
    return allowed;
}

static void pass_on(struct acceptor *acceptor, size_t number, bool has_token)
{
    const struct pending pending = acceptor->pending[number];
    struct viewer *viewer = acceptor->viewer;
    if (has_token && pending.may_refuse)
        acceptor->refusals.credit += 1;
    if (!reserve(viewer, has_token)) {
        reset_connection(acceptor, number);
        return;
    }
    forget(acceptor, number);
    if (mhd.add_connection(viewer->daemon, pending.socket,
                           (const struct sockaddr *)&pending.address, pending.size))
        return;
    pthread_mutex_lock(&viewer->lock);
    viewer->handed_over--; /* libmicrohttpd has closed the socket */
    pthread_mutex_unlock(&viewer->lock);
}

static void evict_one(struct acceptor *acceptor, const struct sockaddr_storage *address)
{
    size_t oldest = 0, same = 0;
    for (size_t i = acceptor->count; i-- > 0;)
        if (same_address(&acceptor->pending[i].address, address)) {
            oldest = i;
            same++;
        }
    if (same >= PENDING_OF_ADDRESS)
        reset_connection(acceptor, oldest);
    else if (acceptor->count >= PENDING)
        reset_connection(acceptor, 0);
}

static void accept_some(struct acceptor *acceptor, double now)
{
    for (size_t i = 0; i < BATCH; i++) {
        struct pending new = {.since = now, .check = true, .size = sizeof new.address};
        new.socket = accept4(acceptor->socket, (struct sockaddr *)&new.address, &new.size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (new.socket < 0) {
            /* Out of descriptors or memory: the next call would fail at once. */
            acceptor->flooded =
                acceptor->flooded || (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR);
            return;
        }
        new.may_refuse = allowance_take(&acceptor->refusals, now);
        evict_one(acceptor, &new.address);
        acceptor->pending[acceptor->count++] = new;
    }
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* Returns whether the request line, which may be incomplete, has the token. */
static bool shows_token(const struct viewer *viewer, const char *head, size_t size)
{
    static const char name[] = "token=";
    const size_t name_length = sizeof name - 1;
    const char *end = memchr(head, '\n', size);
    const char *found = memmem(head, end ? (size_t)(end - head) : size, name, name_length);
    char token[VIEWER_NAME + 1] = "";
    if (!found || (size_t)(head + size - found) < name_length + VIEWER_NAME)
        return false;
    memcpy(token, found + name_length, VIEWER_NAME);
    return address_token_is(viewer, token);
}

/* Returns whether the head is complete, so that libmicrohttpd need not wait. A head must not begin
 * with an empty line, which libmicrohttpd would skip. */
static bool is_complete_head(const char *head, size_t size)
{
    return size > 0 && head[0] > ' ' && memmem(head, size, "\r\n\r\n", 4);
}

enum verdict { VERDICT_PENDING, VERDICT_TOKEN, VERDICT_REFUSED, VERDICT_RESET };

/* Decides by the bytes of the head that have arrived. They stay in the socket (MSG_PEEK). */
static enum verdict decide(const struct acceptor *acceptor, struct pending *pending, double now)
{
    char head[PENDING_HEAD];
    ssize_t received = recv(pending->socket, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    size_t size = received > 0 ? (size_t)received : 0;
    pending->check = false;
    pending->partial = size > 0;
    if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR))
        return VERDICT_RESET;
    if (shows_token(acceptor->viewer, head, size))
        return VERDICT_TOKEN;
    if (pending->may_refuse && is_complete_head(head, size))
        return VERDICT_REFUSED;
    bool over = pending->closed || now - pending->since > PENDING_SECONDS || size == sizeof head;
    return over || (!pending->may_refuse && memchr(head, '\n', size)) ? VERDICT_RESET
                                                                      : VERDICT_PENDING;
}

static void check_pending(struct acceptor *acceptor, double now)
{
    bool tick = now - acceptor->ticked_at >= 1e-3 * TICK_MILLISECONDS;
    if (tick)
        acceptor->ticked_at = now;
    for (size_t i = acceptor->count; i-- > 0;) {
        struct pending *pending = &acceptor->pending[i];
        enum verdict verdict =
            pending->check || tick ? decide(acceptor, pending, now) : VERDICT_PENDING;
        if (verdict == VERDICT_RESET)
            reset_connection(acceptor, i);
        else if (verdict != VERDICT_PENDING)
            pass_on(acceptor, i, verdict == VERDICT_TOKEN);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Waits at most a tick for a connection or the first bytes of a head. */
static void wait_for_more(struct acceptor *acceptor)
{
    struct pollfd polled[PENDING + 1] = {{.fd = acceptor->socket, .events = POLLIN}};
    for (size_t i = 0; i < acceptor->count; i++) {
        const struct pending *pending = &acceptor->pending[i];
        /* A peeked head keeps its socket readable; further bytes are checked at the next tick. */
        short events = pending->partial ? POLLRDHUP : POLLRDHUP | POLLIN;
        polled[i + 1] = (struct pollfd){.fd = pending->socket, .events = events};
    }
    if (poll(polled, acceptor->count + 1, TICK_MILLISECONDS) <= 0)
        return;
    for (size_t i = 0; i < acceptor->count; i++) {
        acceptor->pending[i].check = polled[i + 1].revents != 0;
        acceptor->pending[i].closed = polled[i + 1].revents & POLLRDHUP;
    }
}

static bool keep_running(struct acceptor *acceptor)
{
    struct viewer *viewer = acceptor->viewer;
    pthread_mutex_lock(&viewer->lock);
    connections_expire(viewer, viewer_now());
    bool ending = acceptor->ending;
    pthread_mutex_unlock(&viewer->lock);
    return !ending;
}

static void *run(void *context)
{
    struct acceptor *acceptor = context;
    const struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};
    pthread_setname_np(pthread_self(), "viewer-accept");
    while (keep_running(acceptor)) {
        double now = viewer_now();
        acceptor->flooded = false;
        accept_some(acceptor, now);
        check_pending(acceptor, now);
        if (acceptor->flooded)
            nanosleep(&pause, NULL);
        wait_for_more(acceptor);
    }
    while (acceptor->count > 0)
        reset_connection(acceptor, 0);
    return NULL;
}

bool accept_start(struct viewer *viewer, int socket)
{
    struct acceptor *acceptor = calloc(1, sizeof *acceptor);
    if (!acceptor)
        return false;
    acceptor->viewer = viewer;
    acceptor->socket = socket;
    acceptor->refusals =
        (struct allowance){REFUSALS, REFUSALS_AT_ONCE, REFUSALS_AT_ONCE, viewer_now()};
    if (pthread_create(&acceptor->thread, NULL, run, acceptor) != 0) {
        free(acceptor);
        return false;
    }
    viewer->acceptor = acceptor;
    return true;
}

void accept_stop(struct viewer *viewer)
{
    struct acceptor *acceptor = viewer->acceptor;
    if (!acceptor)
        return;
    pthread_mutex_lock(&viewer->lock);
    acceptor->ending = true;
    pthread_mutex_unlock(&viewer->lock);
    shutdown(acceptor->socket, SHUT_RDWR); /* wakes the thread */
    pthread_join(acceptor->thread, NULL);
    close(acceptor->socket);
    free(acceptor);
    viewer->acceptor = NULL;
}
