/* Checks requests for permission and routes them to their handlers. */
#include "viewer/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTION_MEMORY (24u << 10) /* bytes; limits the size of a request's head */
#define TIMEOUT           10u         /* seconds without data after which a connection is closed */

/* ---- routes ---------------------------------------------------------------------------------- */

static void set_answer(struct exchange *exchange, struct answer answer)
{
    answer_set(exchange, &answer);
}

static const char *header(const struct exchange *exchange, const char *name)
{
    return mhd.lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static const char *argument(const struct exchange *exchange, const char *name)
{
    return mhd.lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

static void get_page(struct exchange *exchange)
{
    set_answer(exchange, answer_page(200, viewer_page, viewer_page_end));
}

/* Answers a request that needs the run before it is opened. */
static void fail_busy(struct exchange *exchange)
{
    char why[VIEWER_MESSAGE];
    (void)viewer_is_busy(exchange->viewer, why);
    answer_fail(exchange, 503, "%s", why);
}

static void get_scene(struct exchange *exchange)
{
    const char *facts = exchange->viewer->facts;
    if (facts)
        set_answer(exchange, answer_text(200, "application/json", strdup(facts)));
    else
        fail_busy(exchange);
}

static void get_state(struct exchange *exchange)
{
    const char *from = argument(exchange, "from");
    exchange->viewer->state_polled_at = viewer_now();
    set_answer(exchange, state_answer(exchange->viewer, from ? strtoul(from, NULL, 10) : 0));
}

static void get_poses(struct exchange *exchange)
{
    set_answer(exchange, poses_answer(exchange->viewer));
}

static void queue_job(struct exchange *exchange, enum job job)
{
    if (!exchange->viewer->facts)
        fail_busy(exchange);
    else if (!worker_enqueue(exchange, job))
        answer_fail(exchange, 503, "too many requests at once");
}

static void get_photo(struct exchange *exchange)
{
    char problem[128];
    if (request_photo(exchange->connection, &exchange->photo, problem))
        queue_job(exchange, JOB_PHOTO);
    else
        answer_fail(exchange, 400, "%s", problem);
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    return length <= VIEWER_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               length;
}

static void get_frame(struct exchange *exchange)
{
    char problem[128];
    const char *client = argument(exchange, "client");
    if (!client || !client[0])
        client = "-";
    if (!is_name(client))
        answer_fail(exchange, 400, "client: is not 1 to %d letters and digits", VIEWER_NAME);
    else if (!request_frame(exchange->connection, &exchange->frame, problem))
        answer_fail(exchange, 400, "%s", problem);
    else if (!exchange->viewer->facts)
        fail_busy(exchange);
    else
        clients_wait(exchange->viewer, client, exchange);
}

static void get_probe(struct exchange *exchange)
{
    char problem[128];
    if (!request_probe(exchange->connection, exchange, problem))
        answer_fail(exchange, 400, "%s", problem);
    else if (!exchange->viewer->facts)
        fail_busy(exchange);
    else
        probe_wait(exchange->viewer, exchange);
}

static void post_control(struct exchange *exchange)
{
    set_answer(exchange, control_answer(exchange->viewer, exchange->body));
}

/* Takes one of the requests that change something. False: refused. */
static bool may_change(struct exchange *exchange)
{
    bool may = allowance_take(&exchange->viewer->commands, viewer_now());
    if (!may)
        answer_fail(exchange, 429, "too many requests that change something: wait a second");
    return may;
}

static void post_path(struct exchange *exchange)
{
    if (may_change(exchange))
        queue_job(exchange, JOB_PATH);
}

/* Queues a job that reads the file of the request's name. */
static void queue_read(struct exchange *exchange, enum job job)
{
    const char *name = argument(exchange, "name");
    exchange->name = name ? strdup(name) : NULL;
    queue_job(exchange, job);
}

static void get_path(struct exchange *exchange)
{
    queue_read(exchange, JOB_READ_PATH);
}

static void get_file(struct exchange *exchange)
{
    queue_read(exchange, JOB_FILE);
}

static void post_task(struct exchange *exchange)
{
    if (!exchange->viewer->facts)
        fail_busy(exchange);
    else if (may_change(exchange))
        set_answer(exchange, task_answer(exchange->viewer, exchange->body));
}

static void get_task(struct exchange *exchange)
{
    set_answer(exchange, task_state_answer(exchange->viewer));
}

static const struct route {
    const char *path;
    bool is_post;
    void (*answer)(struct exchange *exchange);
} routes[] = {
    {"/", false, get_page},           {"/api/scene", false, get_scene},
    {"/api/state", false, get_state}, {"/api/photo", false, get_photo},
    {"/api/frame", false, get_frame}, {"/api/control", true, post_control},
    {"/api/poses", false, get_poses}, {"/api/probe", false, get_probe},
    {"/api/path", false, get_path},   {"/api/path", true, post_path},
    {"/api/task", false, get_task},   {"/api/task", true, post_task},
    {"/api/file", false, get_file},
};

/* Returns the route of a request, or one with the path and another method, or NULL. */
static const struct route *find_route(const char *path, bool is_post)
{
    const struct route *found = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (strcmp(routes[i].path, path) == 0 && (!found || routes[i].is_post == is_post))
            found = &routes[i];
    return found;
}

static size_t most_body(const struct exchange *exchange)
{
    bool has_path = exchange->route && exchange->route->answer == post_path;
    return has_path ? VIEWER_PATH_BODY : VIEWER_BODY;
}

/* ---- permission ------------------------------------------------------------------------------ */

/* Returns why a request is refused; NULL: it is allowed. Host and Origin are checked because pages
 * of other sites can make a browser send requests, also by DNS rebinding. */
static const char *refusal(const struct exchange *exchange, bool is_post)
{
    const struct viewer *viewer = exchange->viewer;
    const char *origin = header(exchange, "Origin");
    if (!address_host_is(viewer, header(exchange, "Host")))
        return "the Host header is not a name of the viewer";
    if (!address_token_is(viewer, argument(exchange, "token")))
        return "the token is not that of the printed address";
    if ((is_post || origin) && !address_origin_is(viewer, origin))
        return "the request comes from another page";
    return NULL;
}

static bool is_json(const struct exchange *exchange)
{
    static const char json[] = "application/json";
    const char *type = header(exchange, "Content-Type");
    size_t length = sizeof json - 1;
    return type && strncasecmp(type, json, length) == 0 &&
           (type[length] == 0 || type[length] == ';');
}

/* Refuses a request before its body arrives. False: the request is valid; its route answers. */
static bool refuse(struct exchange *exchange, const char *path, const char *method)
{
    bool is_post = strcmp(method, "POST") == 0;
    const struct route *route = exchange->route = find_route(path, is_post);
    const char *why = refusal(exchange, is_post), *length = header(exchange, "Content-Length");
    exchange->closes = !address_token_is(exchange->viewer, argument(exchange, "token"));
    if (exchange->connection_data && !exchange->closes)
        exchange->connection_data->has_token = true;
    if (why && strcmp(path, "/") == 0 && !is_post)
        set_answer(exchange, answer_page(403, viewer_denied, viewer_denied_end));
    else if (why)
        answer_fail(exchange, 403, "%s", why);
    else if (!route)
        answer_fail(exchange, 404, "no such path");
    else if (strcmp(method, route->is_post ? "POST" : "GET") != 0)
        answer_fail(exchange, 405, "use %s", route->is_post ? "POST" : "GET");
    else if (is_post && !is_json(exchange))
        answer_fail(exchange, 415, "the body is not application/json");
    else if (length && strtoull(length, NULL, 10) > most_body(exchange))
        answer_fail(exchange, 413, "the body is larger than %zu bytes", most_body(exchange));
    return exchange->answered;
}

/* ---- libmicrohttpd --------------------------------------------------------------------------- */

static enum MHD_Result begin_request(struct viewer *viewer, struct MHD_Connection *connection,
                                     const char *path, const char *method, void **context)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return MHD_NO;
    *context = exchange;
    exchange->viewer = viewer;
    exchange->connection = connection;
    exchange->connection_data = connection_of(connection);
    exchange->number = ++viewer->last_exchange;
    connection_begin_phase(exchange->connection_data, PHASE_BODY);
    return refuse(exchange, path, method) ? answer_queue(exchange) : MHD_YES;
}

/* Appends to the body. A chunked body that is too long closes the connection. */
static enum MHD_Result add_body(struct exchange *exchange, const char *data, size_t *size)
{
    if (exchange->size + *size > most_body(exchange))
        return MHD_NO;
    char *larger = realloc(exchange->body, exchange->size + *size + 1);
    if (!larger)
        return MHD_NO;
    memcpy(larger + exchange->size, data, *size);
    exchange->size += *size;
    larger[exchange->size] = 0;
    exchange->body = larger;
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result continue_request(struct exchange *exchange, const char *data, size_t *size)
{
    if (*size > 0)
        return add_body(exchange, data, size);
    connection_begin_phase(exchange->connection_data, PHASE_WORK);
    if (!exchange->answered && exchange->viewer->ending)
        answer_fail(exchange, 503, "the program is ending");
    if (!exchange->answered && exchange->route)
        exchange->route->answer(exchange);
    return exchange->answered ? answer_queue(exchange) : MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **exchange)
{
    struct viewer *viewer = context;
    (void)version;
    pthread_mutex_lock(&viewer->lock);
    enum MHD_Result result = *exchange ? continue_request(*exchange, data, size)
                                       : begin_request(viewer, connection, path, method, exchange);
    pthread_mutex_unlock(&viewer->lock);
    return result;
}

/* Frees an exchange, however it ended. */
static void complete(void *context, struct MHD_Connection *connection, void **exchange,
                     enum MHD_RequestTerminationCode how)
{
    struct viewer *viewer = context;
    struct exchange *ended = *exchange;
    (void)connection, (void)how;
    if (!ended)
        return;
    pthread_mutex_lock(&viewer->lock);
    clients_forget(viewer, ended);
    connection_begin_phase(ended->connection_data, PHASE_HEAD); /* of the next request */
    pthread_mutex_unlock(&viewer->lock);
    answer_clear(&ended->answer);
    free(ended->name);
    free(ended->body);
    free(ended);
    *exchange = NULL;
}

bool server_start(struct viewer *viewer, int socket, char *message)
{
    viewer->daemon = mhd.start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
            MHD_USE_NO_LISTEN_SOCKET,
        0, NULL, NULL, handle, viewer, MHD_OPTION_CONNECTION_LIMIT, VIEWER_CONNECTIONS + 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notice, viewer, MHD_OPTION_NOTIFY_COMPLETED,
        complete, viewer, MHD_OPTION_END);
    if (viewer->daemon && accept_start(viewer, socket))
        return true;
    snprintf(message, VIEWER_MESSAGE, "the viewer's server cannot be started");
    return false;
}

void server_stop(struct viewer *viewer)
{
    accept_stop(viewer);
    if (viewer->daemon)
        mhd.stop_daemon(viewer->daemon);
    viewer->daemon = NULL;
}
