/* Loads libmicrohttpd when a viewer starts, so that the program runs without it. */
#ifndef VIEWER_LIBRARIES_H
#define VIEWER_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>
/* Empty macros of Windows, whose headers microhttpd.h includes. */
#undef near
#undef far

/* The functions that the viewer uses, as microhttpd.h declares them: NAME, result, parameters. */
#define MHD_FUNCTIONS(X)                                                                     \
    X(start_daemon, struct MHD_Daemon *,                                                     \
      (unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_context, \
       MHD_AccessHandlerCallback handle, void *context, ...))                                \
    X(stop_daemon, void, (struct MHD_Daemon * daemon))                                       \
    X(lookup_connection_value, const char *,                                                 \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *key))        \
    X(queue_response, enum MHD_Result,                                                       \
      (struct MHD_Connection * connection, unsigned code, struct MHD_Response *response))    \
    X(add_connection, enum MHD_Result,                                                       \
      (struct MHD_Daemon * daemon, MHD_socket socket, const struct sockaddr *address,        \
       socklen_t size))                                                                      \
    X(get_connection_info, const union MHD_ConnectionInfo *,                                 \
      (struct MHD_Connection * connection, enum MHD_ConnectionInfoType type, ...))           \
    X(suspend_connection, void, (struct MHD_Connection * connection))                        \
    X(resume_connection, void, (struct MHD_Connection * connection))                         \
    X(create_response_from_buffer, struct MHD_Response *,                                    \
      (size_t size, void *buffer, enum MHD_ResponseMemoryMode mode))                         \
    X(create_response_from_fd, struct MHD_Response *, (size_t size, int descriptor))         \
    X(add_response_header, enum MHD_Result,                                                  \
      (struct MHD_Response * response, const char *header, const char *content))             \
    X(destroy_response, void, (struct MHD_Response * response))

// NOLINTBEGIN(bugprone-macro-parentheses): types and names
#define POINTER(name, result, parameters) result(*name) parameters;
extern struct mhd {
    MHD_FUNCTIONS(POINTER)
} mhd;
#undef POINTER
// NOLINTEND(bugprone-macro-parentheses)

/* Loads the library. False: `message` names the missing package. */
bool libraries_load(char *message, size_t size);

#endif
