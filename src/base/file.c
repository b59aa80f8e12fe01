/* Reads whole files and replaces files atomically. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define STREAM_LIMIT ((size_t)64 << 20) /* bytes; ends endless streams, such as /dev/zero */

vkn_status base_status_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
        return VKN_BAD_INPUT;
    default:
        return VKN_ERROR;
    }
}

/* Records an error for an errno. Returns the status so that analysers see that it is not VKN_OK. */
static vkn_status fail_errno(const char *path, const char *what, int error)
{
    vkn_status status = base_status_of_errno(error);
    base_fail(status, "%s: %s%s", path, what, strerror(error));
    return status;
}

/* Reads to the end; fails after `limit` bytes. Does not use the file's size: pipes have none. */
static vkn_status read_stream(FILE *stream, const char *path, size_t limit, struct base_text *text)
{
    char block[65536];
    do {
        size_t got = fread(block, 1, sizeof(block), stream);
        if (ferror(stream))
            return fail_errno(path, "cannot be read: ", errno);
        if (got > limit - text->size)
            return base_fail(VKN_BAD_INPUT, "%s: larger than the limit of %zu bytes", path, limit);
        base_text_add_bytes(text, block, got);
        if (text->failed)
            return VKN_ERROR;
    } while (!feof(stream));
    return VKN_OK;
}

/* Checks the type before opening: opening a pipe would block, and opening a device may have side
 * effects. Checks again after opening, because the file may have been replaced in between. */
static vkn_status open_regular(const char *path, FILE **stream)
{
    struct stat information;
    *stream = NULL;
    if (stat(path, &information) != 0)
        return fail_errno(path, "", errno);
    int descriptor = -1;
    if (S_ISREG(information.st_mode)) {
        descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (descriptor < 0)
            return fail_errno(path, "", errno);
        if (fstat(descriptor, &information) != 0 || !S_ISREG(information.st_mode)) {
            close(descriptor);
            descriptor = -1;
        }
    }
    if (descriptor < 0)
        return base_fail(
            VKN_BAD_INPUT,
            S_ISDIR(information.st_mode) ? "%s: Is a directory" : "%s: not a regular file", path);
    *stream = fdopen(descriptor, "rb");
    if (*stream == NULL) {
        close(descriptor);
        return base_fail(VKN_ERROR, "%s: out of memory", path);
    }
    return VKN_OK;
}

static vkn_status open_any(const char *path, FILE **stream)
{
    *stream = fopen(path, "rbe");
    return *stream != NULL ? VKN_OK : fail_errno(path, "", errno);
}

static vkn_status read_whole(FILE *stream, const char *path, size_t limit, struct base_text *text)
{
    struct stat information;
    bool is_regular = fstat(fileno(stream), &information) == 0 && S_ISREG(information.st_mode);
    if (!is_regular && limit > STREAM_LIMIT)
        limit = STREAM_LIMIT;
    if (is_regular && (uint64_t)information.st_size > limit)
        return base_fail(VKN_BAD_INPUT, "%s: larger than the limit of %zu bytes", path, limit);
    return read_stream(stream, path, limit, text);
}

static vkn_status read_opened(FILE *stream, const char *path, size_t limit, char **data,
                              size_t *size)
{
    struct base_text text = {0};
    vkn_status status = read_whole(stream, path, limit, &text);
    fclose(stream);
    if (status != VKN_OK) {
        free(text.data);
        return status;
    }
    *data = text.data;
    *size = text.size;
    return VKN_OK;
}

vkn_status base_file_read(const char *path, size_t limit, char **data, size_t *size)
{
    FILE *stream = NULL;
    *data = NULL;
    *size = 0;
    BASE_TRY(open_regular(path, &stream));
    return read_opened(stream, path, limit, data, size);
}

vkn_status base_file_read_any(const char *path, size_t limit, char **data, size_t *size)
{
    FILE *stream = NULL;
    *data = NULL;
    *size = 0;
    BASE_TRY(open_any(path, &stream));
    return read_opened(stream, path, limit, data, size);
}

vkn_status base_file_read_beginning(const char *path, void *data, size_t most, size_t *size,
                                    uint64_t *file_size)
{
    FILE *stream = NULL;
    struct stat information = {0};
    *size = 0;
    BASE_TRY(open_regular(path, &stream));
    errno = 0;
    *size = fread(data, 1, most, stream);
    int error = ferror(stream) || fstat(fileno(stream), &information) != 0 ? errno : 0;
    fclose(stream);
    if (file_size != NULL)
        *file_size = (uint64_t)information.st_size;
    return error == 0 ? VKN_OK : fail_errno(path, "cannot be read: ", error);
}

/* Creates a file in the folder of `path` with the permissions of the user's umask. The name is
 * unique per process and call, so that runs never share a temporary file. */
static int open_temporary(const char *path, char **temporary)
{
    static atomic_uint counter;
    for (int attempt = 0; attempt < 100; attempt++) {
        *temporary =
            base_format("%s.%ld.%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        if (*temporary == NULL)
            return -1;
        int descriptor = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
        free(*temporary);
        *temporary = NULL;
    }
    errno = EEXIST;
    return -1;
}

vkn_status base_file_begin(struct base_file_writer *writer, const char *path)
{
    *writer = (struct base_file_writer){.path = base_format("%s", path)};
    if (writer->path == NULL)
        return VKN_ERROR;
    struct stat information;
    bool exists = stat(path, &information) == 0;
    int error = 0, descriptor = -1;
    errno = 0;
    if (exists && S_ISDIR(information.st_mode))
        errno = EISDIR;
    else if (exists && !S_ISREG(information.st_mode))
        /* Devices and pipes are written, not replaced. */
        descriptor = open(path, O_WRONLY | O_CLOEXEC);
    else
        descriptor = open_temporary(path, &writer->temporary);
    error = errno;
    writer->stream = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (writer->stream != NULL)
        return VKN_OK;

    if (descriptor >= 0)
        close(descriptor);
    base_file_abort(writer);
    if (error != ENOMEM && error != 0)
        return fail_errno(path, "cannot be written: ", error);
    base_fail(VKN_ERROR, "%s: out of memory", path);
    return VKN_ERROR;
}

void base_file_abort(struct base_file_writer *writer)
{
    BASE_KEEP_ERROR;
    if (writer->stream != NULL)
        fclose(writer->stream);
    if (writer->temporary != NULL)
        unlink(writer->temporary);
    free(writer->temporary);
    free(writer->path);
    *writer = (struct base_file_writer){0};
}

static int retry_fsync(int descriptor)
{
    int result = 0;
    do {
        result = fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* A rename is durable only when the folder is on disk. File systems that cannot sync a folder are
 * accepted. */
static void sync_folder(const char *path)
{
    char *folder = base_path_folder(path);
    if (folder == NULL)
        return;
    int descriptor = open(folder, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        retry_fsync(descriptor);
        close(descriptor);
    }
    free(folder);
}

/* Returns 0 or the errno of the failure. Does not sync devices and pipes, which do not support
 * fsync. */
static int flush_and_close(struct base_file_writer *writer)
{
    FILE *stream = writer->stream;
    bool failed_before = ferror(stream) != 0, to_disk = writer->temporary != NULL;
    int error = 0;
    if (fflush(stream) != 0 || (to_disk && retry_fsync(fileno(stream)) != 0))
        error = errno;
    else if (failed_before)
        error = EIO; /* an earlier write failed; its errno is lost */
    if (fclose(stream) != 0 && error == 0)
        error = errno;
    writer->stream = NULL;
    return error;
}

vkn_status base_file_commit(struct base_file_writer *writer)
{
    int error = flush_and_close(writer);
    if (error == 0 && writer->temporary != NULL) {
        if (rename(writer->temporary, writer->path) != 0) {
            error = errno;
        } else {
            free(writer->temporary);
            writer->temporary = NULL;
            sync_folder(writer->path);
        }
    }
    if (error != 0)
        base_fail(VKN_ERROR, "%s: cannot be written: %s", writer->path, strerror(error));
    base_file_abort(writer); /* frees, and removes the temporary file after a failure */
    return error != 0 ? VKN_ERROR : VKN_OK;
}

vkn_status base_file_replace(const char *path, const void *data, size_t size)
{
    struct base_file_writer writer;
    BASE_TRY(base_file_begin(&writer, path));
    errno = 0;
    if (size > 0 && fwrite(data, 1, size, writer.stream) != size) {
        int error = errno;
        base_file_abort(&writer);
        return base_fail(VKN_ERROR, "%s: cannot be written: %s", path,
                         error != 0 ? strerror(error) : "short write");
    }
    return base_file_commit(&writer);
}
