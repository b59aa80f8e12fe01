/* Reads EXR files of one channel: scan lines of f16 or f32, without compression or with ZIP
 * (https://openexr.com/en/latest/OpenEXRFileLayout.html). */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "scene/exr.h"
#include "scene/scene.h"

#define MAX_FILE_SIZE   ((size_t)256 << 20)
#define MAX_COMPRESSION 1100u /* deflate shrinks data by at most 1032 */
#define VERSION         2u
#define LONG_NAMES      0x400u /* a flag beside the version */

enum { HALF = 1, FLOAT = 2 };                    /* types of values */
enum { UNCOMPRESSED = 0, ZIP_ROW = 2, ZIP = 3 }; /* compressions that are read */

static const uint8_t magic[4] = {0x76, 0x2f, 0x31, 0x01};

struct exr {
    const char *name; /* for messages */
    const uint8_t *data;
    size_t size, at;     /* bytes of the file; bytes that have been parsed */
    uint32_t value_size; /* bytes; 0: not given yet */
    uint32_t compression, chunk_rows;
    int64_t first_row;
    uint32_t width, height;
};

/* ---- the header ------------------------------------------------------------------------------ */

static int64_t read_signed(const uint8_t *data)
{
    return (int32_t)(uint32_t)base_integer_of(data, 4, false);
}

static vkn_status fail_truncated(const struct exr *exr)
{
    return base_fail(VKN_BAD_INPUT, "%s: truncated EXR file", exr->name);
}

static vkn_status read_channels(struct exr *exr, const uint8_t *value, size_t size)
{
    size_t name = strnlen((const char *)value, size);
    if (size != name + 1 + 16 + 1)
        return base_json_fail(exr->name, "channels", "not exactly one channel");
    const uint8_t *channel = value + name + 1;
    uint64_t type = base_integer_of(channel, 4, false);
    if (type != HALF && type != FLOAT)
        return base_json_fail(exr->name, "channels", "values are not floats");
    if (base_integer_of(channel + 8, 4, false) != 1 || base_integer_of(channel + 12, 4, false) != 1)
        return base_json_fail(exr->name, "channels", "pixels are left out (subsampling)");
    exr->value_size = type == HALF ? 2 : 4;
    return VKN_OK;
}

static vkn_status read_compression(struct exr *exr, const uint8_t *value, size_t size)
{
    unsigned compression = size == 1 ? value[0] : 255;
    if (compression != UNCOMPRESSED && compression != ZIP_ROW && compression != ZIP)
        return base_json_fail(exr->name, "compression",
                              "%u is not read; only none (0), ZIPS (2) and ZIP (3) are",
                              compression);
    exr->compression = compression;
    exr->chunk_rows = compression == ZIP ? 16 : 1;
    return VKN_OK;
}

static vkn_status read_window(struct exr *exr, const uint8_t *value, size_t size)
{
    if (size != 16)
        return base_json_fail(exr->name, "dataWindow", "not four numbers");
    exr->first_row = read_signed(value + 4);
    int64_t width = read_signed(value + 8) - read_signed(value) + 1;
    int64_t height = read_signed(value + 12) - exr->first_row + 1;
    if (width < 1 || height < 1)
        return base_json_fail(exr->name, "dataWindow", "empty image");
    if (width > SCENE_MAX_IMAGE_SIZE || height > SCENE_MAX_IMAGE_SIZE)
        return base_json_fail(exr->name, "dataWindow", "%lldx%lld pixels are more than %ux%u",
                              (long long)width, (long long)height, SCENE_MAX_IMAGE_SIZE,
                              SCENE_MAX_IMAGE_SIZE);
    exr->width = (uint32_t)width;
    exr->height = (uint32_t)height;
    return VKN_OK;
}

/* Returns the string that follows; NULL: its end is not in the file. */
static const char *read_string(struct exr *exr)
{
    const char *text = (const char *)exr->data + exr->at;
    size_t left = exr->size - exr->at, length = strnlen(text, left);
    if (length == left)
        return NULL;
    exr->at += length + 1;
    return text;
}

static vkn_status read_attribute(struct exr *exr)
{
    static const struct {
        const char *name;
        vkn_status (*read)(struct exr *exr, const uint8_t *value, size_t size);
    } attributes[] = {{"channels", read_channels},
                      {"compression", read_compression},
                      {"dataWindow", read_window}};
    const char *name = read_string(exr), *type = name != NULL ? read_string(exr) : NULL;
    if (type == NULL || exr->size - exr->at < 4)
        return fail_truncated(exr);
    size_t size = (size_t)base_integer_of(exr->data + exr->at, 4, false);
    exr->at += 4;
    if (size > exr->size - exr->at)
        return fail_truncated(exr);
    const uint8_t *value = exr->data + exr->at;
    exr->at += size;
    for (size_t i = 0; i < BASE_COUNT(attributes); i++)
        if (strcmp(name, attributes[i].name) == 0)
            return attributes[i].read(exr, value, size);
    return VKN_OK;
}

static vkn_status read_header(struct exr *exr)
{
    if (!exr_is(exr->data, exr->size))
        return base_fail(VKN_BAD_INPUT, "%s: not an EXR file", exr->name);
    if (exr->size < 8)
        return fail_truncated(exr);
    if ((base_integer_of(exr->data + 4, 4, false) & ~(uint64_t)LONG_NAMES) != VERSION)
        return base_fail(VKN_BAD_INPUT,
                         "%s: EXR files with tiles, several parts or deep pixels are not read",
                         exr->name);
    exr->at = 8;
    while (exr->at < exr->size && exr->data[exr->at] != 0)
        BASE_TRY(read_attribute(exr));
    if (exr->at++ == exr->size)
        return fail_truncated(exr);
    if (exr->value_size == 0 || exr->chunk_rows == 0 || exr->width == 0)
        return base_fail(VKN_BAD_INPUT, "%s: channels, compression or dataWindow is missing",
                         exr->name);
    return VKN_OK;
}

/* ---- the pixels ------------------------------------------------------------------------------ */

/* Decompresses a chunk to `wanted` bytes. ZIP compresses differences of bytes, of which the even
 * ones come first; there are as many odd ones. A chunk that would grow is not compressed. Returns a
 * status of zlib. */
static int decompress(const struct exr *exr, const uint8_t *data, size_t size, size_t wanted,
                      uint8_t *work, uint8_t *bytes)
{
    uLongf length = (uLongf)wanted;
    if (size == wanted) {
        memcpy(bytes, data, size);
        return Z_OK;
    }
    if (exr->compression == UNCOMPRESSED)
        return Z_DATA_ERROR;
    int status = uncompress(work, &length, data, (uLong)size);
    if (status != Z_OK || length != wanted)
        return status != Z_OK ? status : Z_DATA_ERROR;
    for (size_t i = 1; i < wanted; i++)
        work[i] = (uint8_t)(work[i - 1] + work[i] - 128);
    for (size_t i = 0; i < wanted; i++)
        bytes[i] = work[i / 2 + i % 2 * (wanted / 2)];
    return Z_OK;
}

static vkn_status read_chunk(const struct exr *exr, uint32_t first, uint8_t *work, uint8_t *bytes,
                             float *values)
{
    uint32_t left = exr->height - first, rows = left < exr->chunk_rows ? left : exr->chunk_rows;
    size_t count = (size_t)rows * exr->width;
    uint64_t start =
        base_integer_of(exr->data + exr->at + (size_t)first / exr->chunk_rows * 8, 8, false);
    if (start > exr->size - 8)
        return fail_truncated(exr);
    const uint8_t *chunk = exr->data + start;
    size_t size = (size_t)base_integer_of(chunk + 4, 4, false);
    if (size > exr->size - 8 - start)
        return fail_truncated(exr);
    int status = read_signed(chunk) == exr->first_row + first
                     ? decompress(exr, chunk + 8, size, count * exr->value_size, work, bytes)
                     : Z_DATA_ERROR;
    if (status == Z_MEM_ERROR)
        return base_fail(VKN_ERROR, "%s: out of memory", exr->name);
    if (status != Z_OK)
        return base_fail(VKN_BAD_INPUT, "%s: damaged rows from %u on", exr->name, first);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits =
            (uint32_t)base_integer_of(bytes + i * exr->value_size, exr->value_size, false);
        values[(size_t)first * exr->width + i] =
            exr->value_size == 2 ? base_from_f16(bits) : base_float_of(bits);
    }
    return VKN_OK;
}

vkn_status exr_parse(const char *name, const uint8_t *data, size_t size, float **values,
                     uint32_t *width, uint32_t *height)
{
    struct exr exr = {.name = name, .data = data, .size = size};
    *values = NULL;
    BASE_TRY(read_header(&exr));
    size_t count = (size_t)exr.width * exr.height, chunk = (size_t)exr.chunk_rows * exr.width * 4;
    size_t chunks = (exr.height + exr.chunk_rows - 1) / exr.chunk_rows;
    if (size - exr.at < chunks * 8 || size < count * exr.value_size / MAX_COMPRESSION)
        return fail_truncated(&exr);
    float *decoded = base_alloc(count, sizeof(float));
    uint8_t *buffers = base_alloc(chunk, 2);
    vkn_status status = decoded != NULL && buffers != NULL ? VKN_OK : VKN_ERROR;
    for (uint32_t row = 0; row < exr.height && status == VKN_OK; row += exr.chunk_rows)
        status = read_chunk(&exr, row, buffers, buffers + chunk, decoded);
    free(buffers);
    if (status != VKN_OK) {
        free(decoded);
        return status;
    }
    *values = decoded;
    *width = exr.width;
    *height = exr.height;
    return VKN_OK;
}

vkn_status exr_read(const char *path, float **values, uint32_t *width, uint32_t *height)
{
    char *data = NULL;
    size_t size = 0;
    *values = NULL;
    BASE_TRY(base_file_read(path, MAX_FILE_SIZE, &data, &size));
    vkn_status status = exr_parse(path, (const uint8_t *)data, size, values, width, height);
    free(data);
    return status;
}

bool exr_is(const uint8_t *data, size_t size)
{
    return size >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}
