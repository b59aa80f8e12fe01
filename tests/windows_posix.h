/* Functions of POSIX that only tests use, and the tests that Windows skips. Included in front of
 * every test for Windows. */
#ifndef TESTS_WINDOWS_POSIX_H
#define TESTS_WINDOWS_POSIX_H

#include "windows/posix.h"

#include <setjmp.h>

#include <cmocka.h>

#include "windows_skips.h"

#define program_invocation_short_name "test"

/* Makes a folder whose name is `path` with other characters in place of the six last. */
static inline char *test_mkdtemp(char *path)
{
    static unsigned count;
    char *end = path + strlen(path) - 6;
    for (int i = 0; i < 1000; i++) {
        snprintf(end, 7, "%06x", ((unsigned)_getpid() * 131 + count++) & 0xffffffu);
        if (mkdir(path, 0777) == 0)
            return path;
    }
    return NULL;
}
#define mkdtemp test_mkdtemp

/* Makes a shell script executable: puts stand_in_windows.exe beside it, which acts for it. */
static inline int test_chmod(const char *path, unsigned mode)
{
    static char data[16 << 20];
    char start[2] = "", program[1024];
    FILE *script = fopen(path, "r"), *from = fopen(STAND_IN, "r"), *to = NULL;
    if (script != NULL)
        fread(start, 1, sizeof start, script);
    snprintf(program, sizeof program, "%s.exe", path);
    if ((mode & X_OK << 6) && start[0] == '#' && from != NULL && (to = fopen(program, "w")) != NULL)
        fwrite(data, 1, fread(data, 1, sizeof data, from), to);
    if (script != NULL)
        fclose(script);
    if (from != NULL)
        fclose(from);
    return to == NULL || fclose(to) == 0 ? 0 : -1;
}
#define chmod test_chmod

/* Sets PATH with the separator of Windows, and no validation layers, which Wine's root has not. */
static inline int test_setenv(const char *name, const char *value, int overwrite)
{
    char text[1024];
    if (strcmp(name, "VKNERF_VALIDATION") == 0)
        return 0;
    snprintf(text, sizeof text, "%s", value);
    for (char *at = text; strcmp(name, "PATH") == 0 && (at = strchr(at, ':')) != NULL;)
        *at = ';';
    return windows_setenv(name, strcmp(name, "PATH") == 0 ? text : value, overwrite);
}
#undef setenv
#define setenv test_setenv

static inline FILE *test_freopen(const char *path, const char *mode, FILE *stream)
{
    char binary[8];
    snprintf(binary, sizeof binary, "%cb", mode[0]);
    return freopen(path, binary, stream);
}
#define freopen test_freopen

/* A test that replaces dlopen, for a library that is missing, leaves the function as it is. */
#undef dlopen
#define dlopen test_dlopen

/* Returns whether a file has a second name, or every file of a folder has. */
static inline bool has_second_name(const char *path)
{
    struct stat status;
    DIR *folder = opendir(path);
    bool has = folder != NULL || (stat(path, &status) == 0 && status.st_nlink > 1);
    for (struct dirent *entry; has && folder != NULL && (entry = readdir(folder)) != NULL;) {
        char child[1024];
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        has = entry->d_name[0] == '.' || has_second_name(child);
    }
    if (folder != NULL)
        closedir(folder);
    return has;
}

/* ---- what Windows lacks ---------------------------------------------------------------------- */

/* Fails as a system call that does not exist. */
static inline int test_absent(void)
{
    errno = ENOSYS;
    return -1;
}
#define fork()                          test_absent()
#define waitpid(process, status, flags) ((void)(process), *(int *)(status) = -1, test_absent())
#define WIFEXITED(status)               ((status) >= 0)
#define WEXITSTATUS(status)             (status)
#define WIFSIGNALED(status)             ((void)(status), false)
#define WTERMSIG(status)                (status)
#define alarm(seconds)                  ((void)(seconds))
#define mkfifo(path, mode)              ((void)(path), test_absent())
#define posix_openpt(flags)             test_absent()
#define grantpt(terminal)               ((void)(terminal), test_absent())
#define unlockpt(terminal)              ((void)(terminal), test_absent())
#define ptsname(terminal)               ((void)(terminal), "")
#define TIOCSWINSZ                      2
#define SIGXFSZ                         SIGTERM
#define fchmod(descriptor, mode)        ((void)(descriptor), 0)
#define _SC_PAGESIZE                    2
#define geteuid()                       0
#define getppid()                       0
#define pause()                         ((void)test_absent())

/* Renames a file without the functions of the library, which tests replace. */
__declspec(dllimport) int __stdcall MoveFileExA(const char *from, const char *to,
                                                unsigned long flags);
#define renameat(from_folder, from, to_folder, to) (MoveFileExA(from, to, 1) ? 0 : test_absent())

typedef int id_t;
typedef int siginfo_t;
#define P_PID                                                 0
#define WEXITED                                               0
#define WNOWAIT                                               0
#define waitid(kind, process, ended, flags)                   ((void)(ended), test_absent())
#define MAP_FAILED                                            NULL
#define PROT_READ                                             0
#define PROT_WRITE                                            0
#define MAP_SHARED                                            0
#define MAP_ANONYMOUS                                         0
#define mmap(at, size, protection, flags, descriptor, offset) NULL
#define munmap(at, size)                                      ((void)(at))
#define pthread_getattr_np(thread, attributes)                ((void)(thread), test_absent())
#define pthread_getattr_default_np(attributes)                ((void)(attributes), test_absent())
#define pthread_setattr_default_np(attributes)                ((void)(attributes), test_absent())

/* Limits of the process's resources. */
typedef uint64_t rlim_t;
struct rlimit {
    rlim_t rlim_cur, rlim_max;
};
#define RLIMIT_AS                  0
#define RLIMIT_DATA                0
#define RLIMIT_FSIZE               0
#define getrlimit(resource, limit) ((void)(limit), test_absent())
#define setrlimit(resource, limit) ((void)(limit), test_absent())

#endif
