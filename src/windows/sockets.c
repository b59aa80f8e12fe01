/* Calls Winsock as POSIX calls sockets. */
#include "windows/internal.h"

#include "windows/sockets.h"

#undef socket
#undef bind
#undef listen
#undef recv
#undef setsockopt
#undef getsockname
#undef shutdown
#undef getaddrinfo

/* Returns the result of a call, and sets errno if it is negative. */
static int result_of(int result)
{
    return result >= 0 ? result : windows_fail((DWORD)WSAGetLastError());
}

static void start_winsock(void)
{
    WSADATA data;
    (void)WSAStartup(MAKEWORD(2, 2), &data);
}

static void start_once(void)
{
    static pthread_once_t started = PTHREAD_ONCE_INIT;
    pthread_once(&started, start_winsock);
}

static int to_descriptor(SOCKET opened, int flags)
{
    u_long yes = 1;
    if (opened == INVALID_SOCKET)
        return windows_fail((DWORD)WSAGetLastError());
    SetHandleInformation((HANDLE)opened, HANDLE_FLAG_INHERIT, 0);
    if (flags & SOCK_NONBLOCK)
        ioctlsocket(opened, (long)FIONBIO, &yes);
    return (int)opened; /* handles are small numbers */
}

int windows_socket(int family, int type, int protocol)
{
    start_once();
    return to_descriptor(socket(family, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), protocol), type);
}

int windows_bind(int descriptor, const struct sockaddr *address, socklen_t size)
{
    return result_of(bind((SOCKET)descriptor, address, size));
}

int windows_listen(int descriptor, int backlog)
{
    return result_of(listen((SOCKET)descriptor, backlog));
}

int windows_accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags)
{
    return to_descriptor(accept((SOCKET)descriptor, address, size), flags);
}

ssize_t windows_recv(int descriptor, void *data, size_t size, int flags)
{
    return result_of(recv((SOCKET)descriptor, data, (int)size, flags));
}

/* SO_REUSEADDR of Windows lets two programs listen on one port; a port that was closed can be used
 * at once without it. */
int windows_setsockopt(int descriptor, int level, int option, const void *value, socklen_t size)
{
    if (level == SOL_SOCKET && option == SO_REUSEADDR)
        option = SO_EXCLUSIVEADDRUSE;
    return result_of(setsockopt((SOCKET)descriptor, level, option, value, size));
}

int windows_getsockname(int descriptor, struct sockaddr *address, socklen_t *size)
{
    return result_of(getsockname((SOCKET)descriptor, address, size));
}

int windows_shutdown(int descriptor, int how)
{
    return result_of(shutdown((SOCKET)descriptor, how));
}

int windows_close(int descriptor)
{
    return result_of(closesocket((SOCKET)descriptor));
}

int windows_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **found)
{
    start_once();
    return getaddrinfo(host, service, hints, found);
}

const char *windows_gai_strerror(int failure)
{
    switch (failure) {
    case EAI_NONAME:
        return "Name or service not known";
    case EAI_MEMORY:
        return "Memory allocation failure";
    case EAI_AGAIN:
        return "Temporary failure in name resolution";
    default:
        return "no address of this machine";
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Returns 1 if standard input can be read, or has ended. */
static int poll_input(int milliseconds)
{
    HANDLE input = GetStdHandle(STD_INPUT_HANDLE);
    DWORD available = 0;
    if (GetFileType(input) != FILE_TYPE_PIPE)
        return WaitForSingleObject(input, (DWORD)milliseconds) == WAIT_TIMEOUT ? 0 : 1;
    for (int waited = 0; waited <= milliseconds; waited += 20) {
        if (!PeekNamedPipe(input, NULL, 0, NULL, &available, NULL) || available > 0)
            return 1;
        Sleep(20);
    }
    return 0;
}

int windows_poll(struct pollfd *descriptors, size_t count, int milliseconds)
{
    if (count == 1 && descriptors[0].fd == STDIN_FILENO)
        return poll_input(milliseconds);
    for (size_t i = 0; i < count; i++)
        descriptors[i].events = descriptors[i].events & POLLIN ? POLLRDNORM : 0;
    int ready = result_of(WSAPoll(descriptors, (ULONG)count, milliseconds));
    for (size_t i = 0; i < count && ready > 0; i++)
        if (descriptors[i].revents & (POLLHUP | POLLERR | POLLNVAL))
            descriptors[i].revents |= POLLRDHUP;
    return ready;
}
