/* Opens, examines, renames, links and removes files. */
#include "windows/internal.h"

#define SHARE_ALL     (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
#define TRIES         41                    /* of a file that another program has open */
#define TRY_AFTER     50                    /* milliseconds between two tries: 2 seconds in all */
#define LOCKED_OFFSET 0x7fffffff00000000ull /* behind the content, which others may read */

static bool names_folder(const wchar_t *path)
{
    DWORD attributes = GetFileAttributesW(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY);
}

/* ---- opening --------------------------------------------------------------------------------- */

static HANDLE open_handle(const wchar_t *path, int flags)
{
    int way = flags & (O_RDONLY | O_WRONLY | O_RDWR);
    DWORD access = way == O_WRONLY ? GENERIC_WRITE
                   : way == O_RDWR ? GENERIC_READ | GENERIC_WRITE
                                   : GENERIC_READ;
    DWORD creation = (flags & O_CREAT) && (flags & O_EXCL)    ? CREATE_NEW
                     : (flags & O_CREAT) && (flags & O_TRUNC) ? CREATE_ALWAYS
                     : (flags & O_CREAT)                      ? OPEN_ALWAYS
                     : (flags & O_TRUNC)                      ? TRUNCATE_EXISTING
                                                              : OPEN_EXISTING;
    DWORD kind = FILE_ATTRIBUTE_NORMAL;
    if (flags & O_NOFOLLOW)
        kind |= FILE_FLAG_OPEN_REPARSE_POINT;
    if (flags & O_DIRECTORY)
        kind |= FILE_FLAG_BACKUP_SEMANTICS;
    return CreateFileW(path, access, SHARE_ALL, NULL, creation, kind, NULL);
}

static int open_descriptor(HANDLE file, int flags)
{
    struct windows_stat opened;
    int descriptor =
        _open_osfhandle((intptr_t)file, (flags & (O_RDONLY | O_APPEND)) | O_BINARY | O_NOINHERIT);
    if (descriptor < 0) {
        CloseHandle(file);
        return -1;
    }
    if ((flags & O_NOFOLLOW) && windows_fstat(descriptor, &opened) == 0 &&
        S_ISLNK(opened.st_mode)) {
        close(descriptor);
        errno = ELOOP;
        return -1;
    }
    return descriptor;
}

int windows_open(const char *path, int flags, ...)
{
    wchar_t *wide = windows_wide_path(path);
    if (wide == NULL)
        return -1;
    HANDLE file = open_handle(wide, flags);
    DWORD error = GetLastError();
    bool is_folder =
        file == INVALID_HANDLE_VALUE && error == ERROR_ACCESS_DENIED && names_folder(wide);
    free(wide);
    if (file != INVALID_HANDLE_VALUE)
        return open_descriptor(file, flags);
    windows_fail_path(error, path);
    if (is_folder)
        errno = EISDIR;
    return -1;
}

/* Changes "e" of Linux's modes, which mingw-w64 does not know, into "b", which is needed. */
static void binary_mode(const char *mode, char binary[8])
{
    size_t size = 0;
    for (; *mode != '\0' && size < 5; mode++)
        if (*mode != 'e' && *mode != 'b' && *mode != 'x')
            binary[size++] = *mode;
    binary[size++] = 'b';
    binary[size] = '\0';
}

FILE *windows_fdopen(int descriptor, const char *mode)
{
    char binary[8];
    binary_mode(mode, binary);
    return _fdopen(descriptor, binary);
}

FILE *windows_fopen(const char *path, const char *mode)
{
    int creation = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    int way = strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    if (mode[0] == 'w' && strchr(mode, 'x') != NULL)
        creation |= O_EXCL;
    int descriptor = windows_open(path, creation | way, 0666);
    FILE *stream = descriptor >= 0 ? windows_fdopen(descriptor, mode) : NULL;
    if (stream == NULL && descriptor >= 0)
        close(descriptor);
    return stream;
}

FILE *windows_tmpfile(void)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    if (GetTempPathW(MAX_PATH + 1, folder) == 0 || GetTempFileNameW(folder, L"vkn", 0, path) == 0) {
        windows_fail(GetLastError());
        return NULL;
    }
    HANDLE file =
        CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, SHARE_ALL, NULL, CREATE_ALWAYS,
                    FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        windows_fail(GetLastError());
        return NULL;
    }
    int descriptor = open_descriptor(file, 0);
    return descriptor >= 0 ? windows_fdopen(descriptor, "w+") : NULL;
}

/* ---- examining ------------------------------------------------------------------------------- */

static struct timespec to_time(FILETIME time)
{
    const uint64_t units = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime; /* of 100 ns */
    const uint64_t epoch = 116444736000000000ull; /* 1970 since 1601 */
    uint64_t since = units > epoch ? units - epoch : 0;
    return (struct timespec){.tv_sec = (time_t)(since / 10000000),
                             .tv_nsec = (long)(since % 10000000 * 100)};
}

static uint32_t type_of(DWORD attributes, bool is_link)
{
    if (is_link)
        return S_IFLNK;
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? S_IFDIR : S_IFREG;
}

static bool is_link(HANDLE file, DWORD attributes)
{
    FILE_ATTRIBUTE_TAG_INFO tag;
    return (attributes & FILE_ATTRIBUTE_REPARSE_POINT) &&
           GetFileInformationByHandleEx(file, FileAttributeTagInfo, &tag, sizeof tag) &&
           (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK ||
            tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

static int examine(HANDLE file, struct windows_stat *information)
{
    BY_HANDLE_FILE_INFORMATION found;
    *information = (struct windows_stat){0};
    DWORD type = GetFileType(file);
    if (type == FILE_TYPE_CHAR || type == FILE_TYPE_PIPE) {
        information->st_mode = type == FILE_TYPE_CHAR ? S_IFCHR : S_IFIFO;
        return 0;
    }
    if (!GetFileInformationByHandle(file, &found))
        return windows_fail(GetLastError());
    information->st_mode = type_of(found.dwFileAttributes, is_link(file, found.dwFileAttributes));
    information->st_nlink = found.nNumberOfLinks;
    information->st_dev = found.dwVolumeSerialNumber;
    information->st_ino = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow;
    information->st_size = (int64_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow);
    information->st_mtim = to_time(found.ftLastWriteTime);
    information->st_ctim = to_time(found.ftCreationTime);
    return 0;
}

static int examine_path(const char *path, DWORD flags, struct windows_stat *information)
{
    wchar_t *wide = windows_wide_path(path);
    if (wide == NULL) {
        errno = errno == EILSEQ ? ENOENT : errno; /* no file has a name that is not UTF-8 */
        return -1;
    }
    HANDLE file = CreateFileW(wide, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
    DWORD error = GetLastError();
    free(wide);
    if (file == INVALID_HANDLE_VALUE)
        return windows_fail_path(error, path);
    int result = examine(file, information);
    CloseHandle(file);
    return result;
}

int windows_stat(const char *path, struct windows_stat *information)
{
    return examine_path(path, 0, information);
}

int windows_lstat(const char *path, struct windows_stat *information)
{
    return examine_path(path, FILE_FLAG_OPEN_REPARSE_POINT, information);
}

int windows_fstat(int descriptor, struct windows_stat *information)
{
    HANDLE file = (HANDLE)_get_osfhandle(descriptor);
    return file != INVALID_HANDLE_VALUE ? examine(file, information) : -1;
}

int windows_access(const char *path, int mode)
{
    wchar_t *wide = windows_wide_path(path);
    if (wide == NULL)
        return -1;
    DWORD attributes = GetFileAttributesW(wide), error = GetLastError();
    free(wide);
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return windows_fail_path(error, path);
    bool is_folder = attributes & FILE_ATTRIBUTE_DIRECTORY;
    return (mode & W_OK) && (attributes & FILE_ATTRIBUTE_READONLY) && !is_folder
               ? windows_fail(ERROR_ACCESS_DENIED)
               : 0;
}

/* ---- changing -------------------------------------------------------------------------------- */

int windows_mkdir(const char *path, unsigned mode)
{
    wchar_t *wide = windows_wide_path(path);
    (void)mode;
    if (wide == NULL)
        return -1;
    bool made = CreateDirectoryW(wide, NULL);
    DWORD error = GetLastError();
    free(wide);
    return made ? 0 : windows_fail_path(error, path);
}

static bool is_in_use(DWORD error)
{
    return error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION ||
           error == ERROR_LOCK_VIOLATION;
}

/* Replaces `to` also while a program has it open that shares it for deletion. Windows before
 * version 1709 of Windows 10, and some file systems, cannot do so. */
static bool replace_shared(const wchar_t *from, const wchar_t *to)
{
    enum { REPLACE = 1, POSIX_SEMANTICS = 2, RENAME_INFO_EX = 22 };
    struct {
        DWORD flags;
        HANDLE root;
        DWORD bytes;
        wchar_t name[32768];
    } *request;
    DWORD size = GetFullPathNameW(to, 0, NULL, NULL);
    HANDLE file = CreateFileW(from, DELETE | SYNCHRONIZE, SHARE_ALL, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    bool replaced = false;
    request = calloc(1, sizeof *request);
    if (file != INVALID_HANDLE_VALUE && request != NULL && size > 0 && size < 32768) {
        request->flags = REPLACE | POSIX_SEMANTICS;
        request->bytes = GetFullPathNameW(to, size, request->name, NULL) * sizeof(wchar_t);
        replaced = SetFileInformationByHandle(file, (FILE_INFO_BY_HANDLE_CLASS)RENAME_INFO_EX,
                                              request, sizeof *request);
    }
    if (file != INVALID_HANDLE_VALUE)
        CloseHandle(file);
    free(request);
    return replaced;
}

/* Calls a function of Windows for two paths. */
static int with_paths(const char *from, const char *to,
                      BOOL (*act)(const wchar_t *from, const wchar_t *to))
{
    wchar_t *wide_from = windows_wide_path(from), *wide_to = windows_wide_path(to);
    bool converted = wide_from != NULL && wide_to != NULL;
    bool done = converted && act(wide_from, wide_to);
    DWORD error = GetLastError();
    free(wide_from);
    free(wide_to);
    return done ? 0 : converted ? windows_fail_path(error, to) : -1;
}

static BOOL rename_file(const wchar_t *from, const wchar_t *to)
{
    for (int i = 0; !MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING); i++) {
        DWORD error = GetLastError();
        if (is_in_use(error) && replace_shared(from, to))
            return TRUE;
        if (!is_in_use(error) || i == TRIES - 1 || names_folder(to)) {
            SetLastError(error);
            return FALSE;
        }
        Sleep(TRY_AFTER);
    }
    return TRUE;
}

int windows_rename(const char *from, const char *to)
{
    return with_paths(from, to, rename_file);
}

static int remove_path(const char *path, BOOL(WINAPI *remove_it)(const wchar_t *path))
{
    wchar_t *wide = windows_wide_path(path);
    DWORD error = 0;
    if (wide == NULL)
        return -1;
    for (int i = 0; i < TRIES; i++) {
        error = remove_it(wide) ? 0 : GetLastError();
        if (error != ERROR_SHARING_VIOLATION)
            break;
        Sleep(TRY_AFTER);
    }
    free(wide);
    return error == 0 ? 0 : windows_fail_path(error, path);
}

static BOOL WINAPI delete_file(const wchar_t *path)
{
    DWORD attributes = GetFileAttributesW(path);
    const DWORD linked_folder = FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT;
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return FALSE;
    if ((attributes & linked_folder) == linked_folder)
        return RemoveDirectoryW(path);
    if (attributes & FILE_ATTRIBUTE_READONLY)
        SetFileAttributesW(path, attributes & ~(DWORD)FILE_ATTRIBUTE_READONLY);
    return DeleteFileW(path);
}

int windows_unlink(const char *path)
{
    return remove_path(path, delete_file);
}

int windows_rmdir(const char *path)
{
    return remove_path(path, RemoveDirectoryW);
}

int windows_remove(const char *path)
{
    struct windows_stat information;
    if (windows_lstat(path, &information) != 0)
        return -1;
    return S_ISDIR(information.st_mode) ? windows_rmdir(path) : windows_unlink(path);
}

static BOOL link_file(const wchar_t *from, const wchar_t *to)
{
    return CreateHardLinkW(to, from, NULL);
}

int windows_link(const char *from, const char *to)
{
    return with_paths(from, to, link_file);
}

/* Links every entry of a folder in a new folder. */
static int link_folder(const char *target, const char *path)
{
    DIR *folder = windows_mkdir(path, 0777) == 0 ? windows_opendir(target) : NULL;
    int result = folder != NULL ? 0 : -1;
    for (struct dirent *entry;
         result == 0 && folder != NULL && (entry = windows_readdir(folder)) != NULL;) {
        char from[4096], to[4096];
        bool is_itself = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        size_t size = (size_t)snprintf(from, sizeof from, "%s/%s", target, entry->d_name);
        size_t other_size = (size_t)snprintf(to, sizeof to, "%s/%s", path, entry->d_name);
        if (size >= sizeof from || other_size >= sizeof to) {
            errno = ENAMETOOLONG;
            result = -1;
        } else if (!is_itself) {
            result = windows_symlink(from, to);
        }
    }
    if (folder != NULL)
        windows_closedir(folder);
    return result;
}

static BOOL copy_file(const wchar_t *from, const wchar_t *to)
{
    return CopyFileW(from, to, TRUE);
}

int windows_symlink(const char *target, const char *path)
{
    struct windows_stat information;
    if (windows_stat(target, &information) != 0)
        return -1;
    if (S_ISDIR(information.st_mode))
        return link_folder(target, path);
    if (windows_link(target, path) == 0)
        return 0;
    /* The path is on another disk, or on one without links. */
    return errno == EEXIST ? -1 : with_paths(target, path, copy_file);
}

/* ---- open files ------------------------------------------------------------------------------ */

int windows_fsync(int descriptor)
{
    HANDLE file = (HANDLE)_get_osfhandle(descriptor);
    return FlushFileBuffers(file) ? 0 : windows_fail(GetLastError());
}

static OVERLAPPED at_offset(uint64_t offset)
{
    return (OVERLAPPED){.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
}

ssize_t windows_pread(int descriptor, void *data, size_t size, int64_t at)
{
    HANDLE file = (HANDLE)_get_osfhandle(descriptor);
    OVERLAPPED where = at_offset((uint64_t)at);
    DWORD done = 0, most = size < 1u << 30 ? (DWORD)size : 1u << 30;
    if (ReadFile(file, data, most, &done, &where) || GetLastError() == ERROR_HANDLE_EOF)
        return (ssize_t)done;
    return windows_fail(GetLastError());
}

ssize_t windows_pwrite(int descriptor, const void *data, size_t size, int64_t at)
{
    HANDLE file = (HANDLE)_get_osfhandle(descriptor);
    OVERLAPPED where = at_offset((uint64_t)at);
    DWORD done = 0, most = size < 1u << 30 ? (DWORD)size : 1u << 30;
    return WriteFile(file, data, most, &done, &where) ? (ssize_t)done
                                                      : windows_fail(GetLastError());
}

int windows_flock(int descriptor, int operation)
{
    HANDLE file = (HANDLE)_get_osfhandle(descriptor);
    OVERLAPPED where = at_offset(LOCKED_OFFSET);
    (void)operation;
    return LockFileEx(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &where)
               ? 0
               : windows_fail(GetLastError());
}
