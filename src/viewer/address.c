/* Listens on a port, and checks tokens, hosts and origins of requests. */
#include "viewer/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIED_PORTS 100u
#define BACKLOG     512 /* most connections that wait to be accepted */

bool address_random(void *bytes, size_t size)
{
    return getrandom(bytes, size, 0) == (ssize_t)size;
}

void address_hex(const uint8_t *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- listening ------------------------------------------------------------------------------- */

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    const struct sockaddr_in *v4 = (const void *)address;
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}

static bool is_wildcard(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == INADDR_ANY;
}

static void set_port(struct sockaddr *address, uint16_t port)
{
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

static uint16_t port_of(int descriptor)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    if (getsockname(descriptor, (struct sockaddr *)&bound, &size) != 0)
        return 0;
    return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
                                             : ((struct sockaddr_in *)(void *)&bound)->sin_port);
}

/* Returns a listening socket, or -1 with errno. */
static int listen_at(struct addrinfo *found, uint16_t port)
{
    const int yes = 1;
    int descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    set_port(found->ai_addr, port);
    if (bind(descriptor, found->ai_addr, found->ai_addrlen) == 0 &&
        listen(descriptor, BACKLOG) == 0)
        return descriptor;
    int failure = errno;
    close(descriptor);
    errno = failure;
    return -1;
}

static int listen_somewhere(struct addrinfo *found, const struct viewer_params *params)
{
    uint32_t tries = params->any_port && params->port > 0 ? TRIED_PORTS : 1;
    int descriptor = -1;
    for (uint32_t i = 0; i < tries && descriptor < 0 && params->port + i < 65536; i++) {
        descriptor = listen_at(found, (uint16_t)(params->port + i));
        if (descriptor < 0 && errno != EADDRINUSE)
            break;
    }
    return descriptor;
}

/* Sets is_open and the printed URL's host: this machine's name when listening on all addresses. */
static void name_host(struct viewer *viewer, const struct viewer_params *params,
                      const struct addrinfo *found)
{
    const char *given = params->address ? params->address : "127.0.0.1";
    viewer->is_open = !is_loopback(found->ai_addr);
    if (is_wildcard(found->ai_addr) && gethostname(viewer->host, sizeof viewer->host - 1) == 0 &&
        viewer->host[0])
        return;
    snprintf(viewer->host, sizeof viewer->host, strchr(given, ':') ? "[%s]" : "%s", given);
}

int address_listen(struct viewer *viewer, const struct viewer_params *params, char *message)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const char *given = params->address ? params->address : "127.0.0.1";
    struct addrinfo *found = NULL;
    uint8_t token[VIEWER_NAME / 2];
    if (!address_random(token, sizeof token)) {
        snprintf(message, VIEWER_MESSAGE,
                 "the system has no random numbers for the viewer's token");
        return -1;
    }
    address_hex(token, sizeof token, viewer->token);
    int failure = getaddrinfo(given, NULL, &hints, &found);
    if (failure != 0) {
        snprintf(message, VIEWER_MESSAGE, "--view-address: %s: %s", given, gai_strerror(failure));
        return -1;
    }
    int descriptor = listen_somewhere(found, params);
    if (descriptor < 0)
        snprintf(message, VIEWER_MESSAGE, "%s, port %u: the viewer cannot listen there: %s", given,
                 params->port, strerror(errno));
    viewer->port = descriptor < 0 ? 0 : port_of(descriptor);
    name_host(viewer, params, found);
    freeaddrinfo(found);
    snprintf(viewer->address, sizeof viewer->address, "http://%s:%u/?token=%s", viewer->host,
             viewer->port, viewer->token);
    return descriptor;
}

/* ---- checks of requests ---------------------------------------------------------------------- */

bool address_token_is(const struct viewer *viewer, const char *token)
{
    unsigned differs = !token || strlen(token) != VIEWER_NAME;
    for (size_t i = 0; i < VIEWER_NAME && token && token[i]; i++)
        differs |= (unsigned char)(token[i] ^ viewer->token[i]);
    return differs == 0;
}

/* Returns the host without the port, which a tunnel may change. False: not HOST[:PORT]. */
static bool split_host(const char *text, char *host, size_t size)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    if (text[0] == '[' && !end)
        return false;
    size_t length = end ? (size_t)(end + 1 - text) : strcspn(text, ":");
    const char *port = text + length;
    if (length == 0 || length >= size ||
        (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
        return false;
    memcpy(host, text, length);
    host[length] = 0;
    return true;
}

/* Returns whether the host is an IP address, which no name server can redirect. */
static bool is_ip_address(const char *host)
{
    struct in6_addr address;
    char inner[64];
    size_t length = strlen(host);
    if (host[0] != '[')
        return inet_pton(AF_INET, host, &address) == 1;
    snprintf(inner, sizeof inner, "%.*s", (int)(length - 2), host + 1);
    return inet_pton(AF_INET6, inner, &address) == 1;
}

bool address_host_is(const struct viewer *viewer, const char *text)
{
    static const char *const local_names[] = {"127.0.0.1", "localhost", "[::1]"};
    char host[256];
    if (!text || !split_host(text, host, sizeof host))
        return false;
    for (size_t i = 0; i < sizeof local_names / sizeof local_names[0]; i++)
        if (strcasecmp(host, local_names[i]) == 0)
            return true;
    return strcasecmp(host, viewer->host) == 0 || (viewer->is_open && is_ip_address(host));
}

bool address_origin_is(const struct viewer *viewer, const char *origin)
{
    static const char scheme[] = "http://";
    return origin && strncasecmp(origin, scheme, sizeof scheme - 1) == 0 &&
           address_host_is(viewer, origin + sizeof scheme - 1);
}
