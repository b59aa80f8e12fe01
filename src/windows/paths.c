/* Converts paths between UTF-8 and UTF-16, and resolves them. */
#include "windows/internal.h"

#define LONG_PATH 240 /* characters; folders allow 12 less than the 260 of files */

/* ---- errors ---------------------------------------------------------------------------------- */

int windows_fail(unsigned long error)
{
    static const struct {
        DWORD error;
        int number;
    } rows[] = {
        {ERROR_FILE_NOT_FOUND, ENOENT},
        {ERROR_PATH_NOT_FOUND, ENOENT},
        {ERROR_INVALID_NAME, ENOENT},
        {ERROR_BAD_NETPATH, ENOENT},
        {ERROR_BAD_NET_NAME, ENOENT},
        {ERROR_INVALID_DRIVE, ENOENT},
        {ERROR_MOD_NOT_FOUND, ENOENT},
        {ERROR_ACCESS_DENIED, EACCES},
        {740, EACCES}, /* ERROR_ELEVATION_REQUIRED, which mingw-w64 lacks */
        {ERROR_SHARING_VIOLATION, EACCES},
        {ERROR_LOCK_VIOLATION, EAGAIN},
        {ERROR_PRIVILEGE_NOT_HELD, EPERM},
        {ERROR_WRITE_PROTECT, EROFS},
        {ERROR_FILE_EXISTS, EEXIST},
        {ERROR_ALREADY_EXISTS, EEXIST},
        {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
        {ERROR_DIRECTORY, ENOTDIR},
        {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
        {ERROR_DISK_FULL, ENOSPC},
        {ERROR_HANDLE_DISK_FULL, ENOSPC},
        {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
        {ERROR_OUTOFMEMORY, ENOMEM},
        {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
        {ERROR_INVALID_HANDLE, EBADF},
        {ERROR_NOT_SAME_DEVICE, EXDEV},
        {ERROR_INVALID_FUNCTION, ENOSYS},
        {ERROR_NOT_SUPPORTED, ENOSYS},
        {ERROR_BROKEN_PIPE, EPIPE},
        {ERROR_NO_DATA, EPIPE},
        {ERROR_BAD_EXE_FORMAT, ENOEXEC},
        {ERROR_NO_UNICODE_TRANSLATION, EILSEQ},
        {WSAEWOULDBLOCK, EAGAIN},
        {WSAEADDRINUSE, EADDRINUSE},
        {WSAEADDRNOTAVAIL, EADDRNOTAVAIL},
        {WSAEACCES, EACCES},
        {WSAECONNRESET, ECONNRESET},
        {WSAECONNABORTED, ECONNABORTED},
        {WSAEMFILE, EMFILE},
        {WSAEINTR, EINTR},
        {WSAENOTSOCK, ENOTSOCK},
        {WSAEAFNOSUPPORT, EAFNOSUPPORT},
    };
    errno = EIO;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].error == error)
            errno = rows[i].number;
    return -1;
}

int windows_fail_path(DWORD error, const char *path)
{
    windows_fail(error);
    const char *slash = strrchr(path, '/');
    if (error != ERROR_PATH_NOT_FOUND || slash == NULL || slash == path)
        return -1;
    struct windows_stat information;
    char *parent = strndup(path, (size_t)(slash - path));
    if (parent != NULL && windows_stat(parent, &information) == 0)
        errno = S_ISREG(information.st_mode) ? ENOTDIR : ENOENT;
    free(parent);
    return -1;
}

/* ---- encodings ------------------------------------------------------------------------------- */

wchar_t *windows_wide(const char *text)
{
    int size = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = size > 0 ? malloc((size_t)size * sizeof *wide) : NULL;
    if (size <= 0)
        windows_fail(GetLastError());
    else if (wide == NULL)
        errno = ENOMEM;
    else
        MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, size);
    return wide;
}

char *windows_narrow(const wchar_t *text)
{
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = size > 0 ? malloc((size_t)size) : NULL;
    if (narrow != NULL)
        WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, size, NULL, NULL);
    else
        errno = ENOMEM;
    return narrow;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Returns the absolute path with the prefix of long paths; frees `path`. */
static wchar_t *lengthen(wchar_t *path)
{
    static const wchar_t local[] = L"\\\\?\\", remote[] = L"\\\\?\\UNC\\";
    DWORD size = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *full = malloc((wcslen(remote) + size + 1) * sizeof *full);
    if (full == NULL || size == 0) {
        errno = full == NULL ? ENOMEM : ENOENT;
        free(full);
        free(path);
        return NULL;
    }
    wchar_t *absolute = full + wcslen(remote);
    GetFullPathNameW(path, size + 1, absolute, NULL);
    free(path);
    bool is_remote = absolute[0] == L'\\' && absolute[1] == L'\\';
    const wchar_t *prefix = is_remote ? remote : local;
    memcpy(full, prefix, wcslen(prefix) * sizeof *full);
    if (is_remote)
        absolute += 2;
    memmove(full + wcslen(prefix), absolute, (wcslen(absolute) + 1) * sizeof *full);
    return full;
}

wchar_t *windows_wide_path(const char *path)
{
    if (strcmp(path, "/dev/null") == 0)
        return windows_wide("NUL");
    if (path[0] == '\0') {
        errno = ENOENT;
        return NULL;
    }
    wchar_t *wide = windows_wide(path);
    if (wide == NULL || wcslen(wide) < LONG_PATH || wcsncmp(wide, L"\\\\?\\", 4) == 0)
        return wide;
    return lengthen(wide);
}

/* Returns a path of Windows with slashes and without the prefix of long paths; frees `wide`. */
static char *with_slashes(wchar_t *wide)
{
    static const char local[] = "\\\\?\\", remote[] = "\\\\?\\UNC\\";
    char *path = wide != NULL ? windows_narrow(wide) : NULL;
    free(wide);
    if (path == NULL)
        return NULL;
    if (strncmp(path, remote, strlen(remote)) == 0)
        memmove(path + 2, path + strlen(remote), strlen(path + strlen(remote)) + 1);
    else if (strncmp(path, local, strlen(local)) == 0)
        memmove(path, path + strlen(local), strlen(path + strlen(local)) + 1);
    for (char *at = path; (at = strchr(at, '\\')) != NULL;)
        *at = '/';
    return path;
}

static wchar_t *final_path(HANDLE file)
{
    DWORD size = GetFinalPathNameByHandleW(file, NULL, 0, 0);
    wchar_t *path = size > 0 ? malloc(((size_t)size + 1) * sizeof *path) : NULL;
    if (size == 0)
        windows_fail(GetLastError());
    else if (path == NULL)
        errno = ENOMEM;
    else
        GetFinalPathNameByHandleW(file, path, size + 1, 0);
    return path;
}

char *windows_realpath(const char *path, char *resolved)
{
    wchar_t *wide = windows_wide_path(path);
    (void)resolved;
    if (wide == NULL)
        return NULL;
    HANDLE file = CreateFileW(wide, FILE_READ_ATTRIBUTES,
                              FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    free(wide);
    if (file == INVALID_HANDLE_VALUE) {
        windows_fail_path(GetLastError(), path);
        return NULL;
    }
    wchar_t *found = final_path(file);
    CloseHandle(file);
    return with_slashes(found);
}

ssize_t windows_readlink(const char *path, char *target, size_t size)
{
    wchar_t name[32768];
    DWORD length = GetModuleFileNameW(NULL, name, sizeof name / sizeof name[0]);
    if (strcmp(path, "/proc/self/exe") != 0 || length == 0) {
        errno = EINVAL;
        return -1;
    }
    char *program = with_slashes(_wcsdup(name));
    if (program == NULL)
        return -1;
    size_t bytes = strlen(program) < size ? strlen(program) : size;
    memcpy(target, program, bytes);
    free(program);
    return (ssize_t)bytes;
}
