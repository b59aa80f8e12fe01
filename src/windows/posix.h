/* windows: the functions of POSIX that the project uses and mingw-w64 lacks, or has with other
 * behaviour. The build for Windows includes this header in front of every source file; on other
 * systems nothing of this folder is compiled.
 *
 * Paths are UTF-8. They may be longer than 260 characters, and use slashes or backslashes. Files
 * are opened in binary mode, are not inherited by other programs, and can be renamed or removed
 * while they are open. Where nothing else is said, a function does what POSIX says. */
#ifndef WINDOWS_POSIX_H
#define WINDOWS_POSIX_H

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <pthread.h>
#include <process.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The compiler checks formats as C11 has them, which the build chooses. */
#define __printf__ __gnu_printf__

/* mingw-w64 has two numbers for one error; Linux has one. */
#undef EWOULDBLOCK
#define EWOULDBLOCK EAGAIN

/* ---- for files FILE_windows.c ---------------------------------------------------------------- */

/* Return text in UTF-16 or UTF-8, which the caller frees; NULL: failed, errno is set. */
wchar_t *windows_wide(const char *text);
char *windows_narrow(const wchar_t *text);
/* Sets errno to that of an error of GetLastError, or of WSAGetLastError, and returns -1. */
int windows_fail(unsigned long error);

/* ---- files ----------------------------------------------------------------------------------- */

#define O_CLOEXEC   O_NOINHERIT
#define O_NONBLOCK  0          /* regular files do not block */
#define O_NOCTTY    0          /* no file becomes a terminal of the process */
#define O_NOFOLLOW  0x10000000 /* this number and the next are not used by mingw-w64 */
#define O_DIRECTORY 0x20000000

/* Opens a file. Accepts /dev/null. */
int windows_open(const char *path, int flags, ...);
FILE *windows_fopen(const char *path, const char *mode);
FILE *windows_fdopen(int descriptor, const char *mode);
FILE *windows_tmpfile(void);
#undef open
#define open    windows_open
#define fopen   windows_fopen
#define fdopen  windows_fdopen
#define tmpfile windows_tmpfile

#define S_IFLNK 0xa000
#undef S_ISREG
#undef S_ISDIR
#define S_ISREG(mode) (((mode) & S_IFMT) == S_IFREG)
#define S_ISDIR(mode) (((mode) & S_IFMT) == S_IFDIR)
#define S_ISLNK(mode) (((mode) & S_IFMT) == S_IFLNK)

/* What stat finds. Permissions are not read: st_mode is the type of the file. */
struct windows_stat {
    uint32_t st_mode, st_nlink;
    uint64_t st_dev, st_ino;
    int64_t st_size;
    struct timespec st_mtim, st_ctim;
};
int windows_stat(const char *path, struct windows_stat *information);
int windows_lstat(const char *path, struct windows_stat *information);
int windows_fstat(int descriptor, struct windows_stat *information);
#undef stat
#undef fstat
#define stat  windows_stat
#define lstat windows_lstat
#define fstat windows_fstat

#define R_OK 4
#define W_OK 2
#define X_OK 1
int windows_access(const char *path, int mode);
int windows_mkdir(const char *path, unsigned mode);
int windows_unlink(const char *path);
int windows_rmdir(const char *path);
int windows_remove(const char *path);
/* Replaces `to` at once, also while another program reads it. If another program keeps a file open
 * that it does not share, for example a virus scanner, tries again for 2 seconds. */
int windows_rename(const char *from, const char *to);
int windows_link(const char *from, const char *to);
/* Only administrators may make symbolic links. Makes a second name of a file instead, or a copy on
 * another disk; of a folder, a folder with such files. The target is an absolute path. */
int windows_symlink(const char *target, const char *path);
/* Returns the absolute path with slashes and without links; `resolved` must be NULL. */
char *windows_realpath(const char *path, char *resolved);
/* Reads /proc/self/exe, the path of the program, and no other link. */
ssize_t windows_readlink(const char *path, char *target, size_t size);
#define access                                          windows_access
#define mkdir                                           windows_mkdir
#define unlink                                          windows_unlink
#define rmdir                                           windows_rmdir
#define remove                                          windows_remove
#define rename                                          windows_rename
#define link                                            windows_link
#define symlink                                         windows_symlink
#define AT_FDCWD                                        0
#define AT_SYMLINK_FOLLOW                               0
#define linkat(from_folder, from, to_folder, to, flags) windows_link(from, to)
#define realpath                                        windows_realpath
#define readlink                                        windows_readlink

int windows_fsync(int descriptor);
ssize_t windows_pread(int descriptor, void *data, size_t size, int64_t at);
ssize_t windows_pwrite(int descriptor, const void *data, size_t size, int64_t at);
#define fsync  windows_fsync
#define pread  windows_pread
#define pwrite windows_pwrite

/* flock knows LOCK_EX | LOCK_NB only. A child process does not inherit the lock. */
#define LOCK_EX 2
#define LOCK_NB 4
int windows_flock(int descriptor, int operation);
#define flock windows_flock

/* ---- folders --------------------------------------------------------------------------------- */

typedef struct windows_folder DIR;
struct dirent {
    char d_name[1024]; /* 255 characters of UTF-16 take 765 bytes */
};
DIR *windows_opendir(const char *path);
struct dirent *windows_readdir(DIR *folder);
void windows_rewinddir(DIR *folder);
int windows_closedir(DIR *folder);
/* `order` must be alphasort, which compares bytes. */
int windows_scandir(const char *path, struct dirent ***entries,
                    int (*filter)(const struct dirent *entry),
                    int (*order)(const struct dirent **a, const struct dirent **b));
int windows_alphasort(const struct dirent **a, const struct dirent **b);
#define opendir   windows_opendir
#define readdir   windows_readdir
#define rewinddir windows_rewinddir
#define closedir  windows_closedir
#define scandir   windows_scandir
#define alphasort windows_alphasort

/* ---- text, sorting --------------------------------------------------------------------------- */

char *windows_strcasestr(const char *text, const char *part);
char *windows_strndup(const char *text, size_t most);
void *windows_memmem(const void *data, size_t size, const void *part, size_t part_size);
char *windows_strerror(int error);
void windows_qsort_r(void *data, size_t count, size_t size,
                     int (*compare)(const void *a, const void *b, void *context), void *context);
#define strcasestr windows_strcasestr
#define strndup    windows_strndup
#define memmem     windows_memmem
#define qsort_r    windows_qsort_r
#define strerror   windows_strerror

/* Locales of threads: only the locale "C" can be made. */
typedef intptr_t locale_t;
#define LC_ALL_MASK 1
locale_t windows_newlocale(int mask, const char *name, locale_t base);
locale_t windows_uselocale(locale_t locale);
#define newlocale windows_newlocale
#define uselocale windows_uselocale

/* ---- time, threads, signals ------------------------------------------------------------------ */

struct tm *windows_localtime_r(const time_t *time, struct tm *result);
struct tm *windows_gmtime_r(const time_t *time, struct tm *result);
#define localtime_r windows_localtime_r
#define gmtime_r    windows_gmtime_r

/* The time to wait until is of CLOCK_MONOTONIC, the clock of all conditions of the project. */
int windows_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until);
#undef pthread_cond_timedwait
#define pthread_cond_timedwait windows_cond_timedwait
static inline int windows_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock)
{
    (void)attributes;
    (void)clock;
    return 0;
}
#undef pthread_condattr_setclock
#define pthread_condattr_setclock windows_condattr_setclock
/* Windows neither forks nor sends signals to threads. */
static inline int windows_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    (void)prepare;
    (void)parent;
    (void)child;
    return 0;
}
typedef _sigset_t sigset_t;
static inline int windows_sigmask(int how, const sigset_t *set, sigset_t *previous)
{
    (void)how;
    (void)set;
    (void)previous;
    return 0;
}
#undef SIG_SETMASK
#undef pthread_atfork
#undef pthread_sigmask
#define SIG_SETMASK     0
#define sigfillset(set) ((void)(*(set) = 0))
#define pthread_atfork  windows_atfork
#define pthread_sigmask windows_sigmask

/* ---- processes, the machine ------------------------------------------------------------------ */

#define SIGKILL 9
#define SIGBUS  7
/* Returns whether the process exists, if the signal is 0; other signals cannot be sent. */
int windows_kill(int64_t process, int signal);
#define kill windows_kill

int windows_pipe2(int ends[2], int flags);
#define pipe2 windows_pipe2

#define _SC_NPROCESSORS_ONLN 1
long windows_sysconf(int name);
#define sysconf windows_sysconf

/* Changes the environment of the C library and that of the system, which drivers read. */
int windows_setenv(const char *name, const char *value, int overwrite);
int windows_unsetenv(const char *name);
#define setenv   windows_setenv
#define unsetenv windows_unsetenv

int windows_gethostname(char *name, size_t size);
ssize_t windows_getrandom(void *data, size_t size, unsigned flags);
#define gethostname windows_gethostname
#define getrandom   windows_getrandom

#define malloc_usable_size(memory) _msize(memory)

/* ---- terminals, waiting ---------------------------------------------------------------------- */

int windows_isatty(int descriptor);
#undef isatty
#define isatty windows_isatty

#define TIOCGWINSZ 1
struct winsize {
    unsigned short ws_row, ws_col;
};
int windows_ioctl(int descriptor, unsigned long request, struct winsize *size);
#define ioctl windows_ioctl

/* ---- libraries ------------------------------------------------------------------------------- */

/* Opens a DLL by the name of the library on Linux: windows/libraries.c has the names. */
#define RTLD_NOW   0
#define RTLD_LOCAL 0
typedef struct {
    const char *dli_fname;
} Dl_info;
void *windows_dlopen(const char *name, int flags);
void *windows_dlsym(void *library, const char *name);
int windows_dlclose(void *library);
char *windows_dlerror(void);
#define dlopen                       windows_dlopen
#define dlsym                        windows_dlsym
#define dlclose                      windows_dlclose
#define dlerror                      windows_dlerror
#define dladdr(address, information) ((void)(address), (void)(information), 0)

#endif
