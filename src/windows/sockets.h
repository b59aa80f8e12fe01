/* Sockets and poll as POSIX has them. Stands for <sys/socket.h>, <netinet/in.h>, <arpa/inet.h>,
 * <netdb.h> and <poll.h>. In a file that includes this header, close closes a socket. */
#ifndef WINDOWS_SOCKETS_H
#define WINDOWS_SOCKETS_H

#include <winsock2.h>
#include <ws2tcpip.h>
#undef near /* keywords of old compilers, and members of structures here */
#undef far

#define SOCK_CLOEXEC  0x10000
#define SOCK_NONBLOCK 0x20000
#define MSG_DONTWAIT  0 /* all sockets are made non-blocking */
#define SHUT_RDWR     SD_BOTH
#define POLLRDHUP     0x2000 /* the peer has closed its side */

/* Set errno where the functions of Windows do not. */
int windows_socket(int family, int type, int protocol);
int windows_bind(int descriptor, const struct sockaddr *address, socklen_t size);
int windows_listen(int descriptor, int backlog);
int windows_accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags);
ssize_t windows_recv(int descriptor, void *data, size_t size, int flags);
int windows_setsockopt(int descriptor, int level, int option, const void *value, socklen_t size);
int windows_getsockname(int descriptor, struct sockaddr *address, socklen_t *size);
int windows_shutdown(int descriptor, int how);
int windows_close(int descriptor);
int windows_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **found);
const char *windows_gai_strerror(int failure);
/* Waits for sockets, or, if the only descriptor is 0, for standard input. */
int windows_poll(struct pollfd *descriptors, size_t count, int milliseconds);
#undef gai_strerror
#define socket(family, type, protocol)            windows_socket(family, type, protocol)
#define bind(descriptor, address, size)           windows_bind(descriptor, address, size)
#define listen(descriptor, backlog)               windows_listen(descriptor, backlog)
#define accept4(descriptor, address, size, flags) windows_accept4(descriptor, address, size, flags)
#define recv(descriptor, data, size, flags)       windows_recv(descriptor, data, size, flags)
#define setsockopt(descriptor, level, option, value, size) \
    windows_setsockopt(descriptor, level, option, value, size)
#define getsockname(descriptor, address, size)   windows_getsockname(descriptor, address, size)
#define shutdown(descriptor, how)                windows_shutdown(descriptor, how)
#define close(descriptor)                        windows_close(descriptor)
#define getaddrinfo(host, service, hints, found) windows_getaddrinfo(host, service, hints, found)
#define gai_strerror(failure)                    windows_gai_strerror(failure)
#define poll(descriptors, count, milliseconds)   windows_poll(descriptors, count, milliseconds)

#endif
