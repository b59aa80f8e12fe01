/* Time, threads, processes, the machine, terminals and libraries. */
#include "windows/internal.h"

#include <ntsecapi.h>

/* ---- time, threads --------------------------------------------------------------------------- */

struct tm *windows_localtime_r(const time_t *time, struct tm *result)
{
    return localtime_s(result, time) == 0 ? result : NULL;
}

struct tm *windows_gmtime_r(const time_t *time, struct tm *result)
{
    return gmtime_s(result, time) == 0 ? result : NULL;
}

/* Conditions of winpthreads wait for a time of CLOCK_REALTIME. */
int windows_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    const int64_t second = 1000000000;
    struct timespec now, real;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &real);
    int64_t wait = (until->tv_sec - now.tv_sec) * second + until->tv_nsec - now.tv_nsec;
    int64_t end = real.tv_sec * second + real.tv_nsec + (wait > 0 ? wait : 0);
    const struct timespec real_end = {.tv_sec = end / second, .tv_nsec = (long)(end % second)};
#undef pthread_cond_timedwait
    return pthread_cond_timedwait(condition, mutex, &real_end);
}

/* ---- processes ------------------------------------------------------------------------------- */

int windows_kill(int64_t process, int signal)
{
    DWORD code = 0;
    if (signal != 0) {
        errno = EINVAL;
        return -1;
    }
    HANDLE handle = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)process);
    bool runs = handle != NULL && GetExitCodeProcess(handle, &code) && code == STILL_ACTIVE;
    bool is_hidden = handle == NULL && GetLastError() == ERROR_ACCESS_DENIED;
    if (handle != NULL)
        CloseHandle(handle);
    errno = runs ? errno : is_hidden ? EPERM : ESRCH;
    return runs ? 0 : -1;
}

int windows_pipe2(int ends[2], int flags)
{
    (void)flags;
    return _pipe(ends, 1 << 16, O_BINARY | O_NOINHERIT);
}

int windows_setenv(const char *name, const char *value, int overwrite)
{
    if (!overwrite && getenv(name) != NULL)
        return 0;
    return _putenv_s(name, value);
}

int windows_unsetenv(const char *name)
{
    return _putenv_s(name, "");
}

/* ---- the machine ----------------------------------------------------------------------------- */

long windows_sysconf(int name)
{
    (void)name; /* _SC_NPROCESSORS_ONLN */
    return (long)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

int windows_gethostname(char *name, size_t size)
{
    wchar_t wide[256];
    DWORD length = sizeof wide / sizeof wide[0];
    if (!GetComputerNameExW(ComputerNameDnsHostname, wide, &length))
        return windows_fail(GetLastError());
    char *narrow = windows_narrow(wide);
    if (narrow == NULL)
        return -1;
    snprintf(name, size, "%s", narrow);
    free(narrow);
    return 0;
}

ssize_t windows_getrandom(void *data, size_t size, unsigned flags)
{
    (void)flags;
    return RtlGenRandom(data, (ULONG)size) ? (ssize_t)size : -1;
}

/* ---- terminals ------------------------------------------------------------------------------- */

int windows_isatty(int descriptor)
{
    DWORD mode;
    return GetConsoleMode((HANDLE)_get_osfhandle(descriptor), &mode) ? 1 : 0;
}

int windows_ioctl(int descriptor, unsigned long request, struct winsize *size)
{
    CONSOLE_SCREEN_BUFFER_INFO screen;
    (void)request; /* TIOCGWINSZ */
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(descriptor), &screen))
        return windows_fail(GetLastError());
    size->ws_col = (unsigned short)(screen.srWindow.Right - screen.srWindow.Left + 1);
    size->ws_row = (unsigned short)(screen.srWindow.Bottom - screen.srWindow.Top + 1);
    return 0;
}
