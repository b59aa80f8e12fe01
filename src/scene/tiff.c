/* Reads TIFF files (the first image, in 8 bits) with libtiff, if it is installed. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loading/loading.h"
#include "scene/image.h"

#define FILE_NAME "libtiff.so.6"

/* tiff.h */
enum { TAG_WIDTH = 256, TAG_HEIGHT = 257, TAG_ORIENTATION = 274 };
enum { TOP_LEFT = 1 };

/* Largest single allocation of libtiff, against hostile files. */
#define MOST_AT_ONCE ((ptrdiff_t)1 << 30)

struct tiff;
struct options;
typedef ptrdiff_t transfer(void *source, void *data, ptrdiff_t size);
typedef uint64_t seeker(void *source, uint64_t offset, int whence);
typedef int closer(void *source);
typedef uint64_t measurer(void *source);
typedef int handler(struct tiff *tiff, void *source, const char *module, const char *format,
                    va_list arguments);

/* X(NAME, result, parameters): functions used from tiffio.h (libtiff 4.5; not needed to build). */
#define FUNCTIONS(X)                                                                               \
    X(OpenOptionsAlloc, struct options *, (void))                                                  \
    X(OpenOptionsFree, void, (struct options *))                                                   \
    X(OpenOptionsSetMaxSingleMemAlloc, void, (struct options *, ptrdiff_t size))                   \
    X(OpenOptionsSetErrorHandlerExtR, void, (struct options *, handler *, void *source))           \
    X(OpenOptionsSetWarningHandlerExtR, void, (struct options *, handler *, void *source))         \
    X(ClientOpenExt, struct tiff *,                                                                \
      (const char *name, const char *mode, void *source, transfer *read, transfer *write,          \
       seeker *seek, closer *close, measurer *size, void *map, void *unmap, struct options *))     \
    X(GetField, int, (struct tiff *, uint32_t tag, ...))                                           \
    X(ReadRGBAImageOriented, int,                                                                  \
      (struct tiff *, uint32_t width, uint32_t height, uint32_t *abgr, int orientation, int stop)) \
    X(Close, void, (struct tiff *))

// NOLINTNEXTLINE(bugprone-macro-parentheses): types and names
#define POINTER(name, result, parameters) result(*name) parameters;
static struct {
    FUNCTIONS(POINTER)
} libtiff;
static bool loaded; /* all functions have been found */

static void load(void)
{
    static const char *const files[] = {FILE_NAME, NULL};
    void *library = loading_open(files);
    loaded = true;
#define FIND(name, result, parameters) \
    loaded = loading_find(library, "TIFF" #name, &libtiff.name) && loaded;
    FUNCTIONS(FIND)
}

/* ---- callbacks of libtiff -------------------------------------------------------------------- */

struct source {
    struct image_file *file;
    uint64_t at;
};

static ptrdiff_t read_bytes(void *context, void *data, ptrdiff_t size)
{
    struct source *source = context;
    uint64_t left = source->at < source->file->size ? source->file->size - source->at : 0;
    size_t taken = left < (uint64_t)size ? left : (size_t)size;
    memcpy(data, source->file->data + (taken > 0 ? source->at : 0), taken);
    source->at += taken;
    return (ptrdiff_t)taken;
}

static ptrdiff_t refuse_to_write(void *context, void *data, ptrdiff_t size)
{
    (void)context, (void)data, (void)size;
    return -1;
}

static uint64_t seek(void *context, uint64_t offset, int whence)
{
    struct source *source = context;
    uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source->at : source->file->size;
    return source->at = from + offset;
}

static int leave_open(void *context)
{
    (void)context;
    return 0;
}

static uint64_t measure_source(void *context)
{
    return ((struct source *)context)->file->size;
}

static int record_error(struct tiff *tiff, void *context, const char *module, const char *format,
                        va_list arguments)
{
    char message[200];
    (void)tiff, (void)module;
    vsnprintf(message, sizeof(message), format, arguments);
    image_problem(((struct source *)context)->file, "cannot be decoded (%s)", message);
    return 1;
}

static int ignore_warning(struct tiff *tiff, void *context, const char *module, const char *format,
                          va_list arguments)
{
    (void)tiff, (void)context, (void)module, (void)format, (void)arguments;
    return 1;
}

static struct tiff *open_tiff(struct source *source)
{
    struct options *options = libtiff.OpenOptionsAlloc();
    if (options == NULL) {
        source->file->out_of_memory = true;
        return NULL;
    }
    libtiff.OpenOptionsSetMaxSingleMemAlloc(options, MOST_AT_ONCE);
    libtiff.OpenOptionsSetErrorHandlerExtR(options, record_error, source);
    libtiff.OpenOptionsSetWarningHandlerExtR(options, ignore_warning, source);
    struct tiff *tiff = libtiff.ClientOpenExt("", "rm", source, read_bytes, refuse_to_write, seek,
                                              leave_open, measure_source, NULL, NULL, options);
    libtiff.OpenOptionsFree(options);
    if (tiff == NULL)
        image_problem(source->file, "cannot be decoded (no TIFF)");
    return tiff;
}

/* ---- the format ------------------------------------------------------------------------------ */

static bool tiff_is(const uint8_t *data, size_t size)
{
    return size >= 4 && (memcmp(data, "II*", 4) == 0 || memcmp(data, "MM\0*", 4) == 0 ||
                         memcmp(data, "II+", 4) == 0 || memcmp(data, "MM\0+", 4) == 0);
}

/* Reads the size, only from a complete file: the header may be at the end. */
static bool tiff_measure(struct image_file *file)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct source source = {.file = file};
    pthread_once(&once, load);
    if (!loaded)
        image_problem(file, "TIFF needs " FILE_NAME " 4.5, which is missing: install libtiff6");
    struct tiff *tiff = loaded && file->is_whole ? open_tiff(&source) : NULL;
    if (tiff == NULL)
        return !image_failed(file);
    libtiff.GetField(tiff, TAG_WIDTH, &file->width);
    libtiff.GetField(tiff, TAG_HEIGHT, &file->height);
    libtiff.Close(tiff);
    return true;
}

/* Converts libtiff's premultiplied pixels, red in the lowest byte, to straight alpha. */
static void straighten(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++, pixels += 4) {
        uint32_t abgr, alpha;
        memcpy(&abgr, pixels, 4);
        alpha = abgr >> 24;
        for (size_t c = 0; c < 3; c++) {
            uint32_t value = abgr >> (8 * c) & 255;
            value = alpha > 0 ? (value * 255 + alpha / 2) / alpha : 0;
            pixels[c] = (uint8_t)(value < 255 ? value : 255);
        }
        pixels[3] = (uint8_t)alpha;
    }
}

/* Decodes rows as they are stored; the caller applies the orientation. */
static bool tiff_decode(struct image_file *file, void *rgba)
{
    struct source source = {.file = file};
    struct tiff *tiff = open_tiff(&source);
    if (tiff == NULL)
        return false;
    uint16_t orientation = TOP_LEFT;
    libtiff.GetField(tiff, TAG_ORIENTATION, &orientation);
    if (!libtiff.ReadRGBAImageOriented(tiff, file->width, file->height, rgba, orientation, 1))
        image_problem(file, "cannot be decoded");
    libtiff.Close(tiff);
    straighten(rgba, (size_t)file->width * file->height);
    return !image_failed(file);
}

const struct image_format image_tiff = {tiff_is, tiff_measure, tiff_decode};
