/* Makes EXR files of one channel, for tests. Include after cmocka.h. */
#ifndef TESTS_EXR_H
#define TESTS_EXR_H

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/base.h"

enum { EXR_UNCOMPRESSED = 0, EXR_ZIPS = 2, EXR_ZIP = 3 };

struct exr_kind {
    bool is_half;
    uint8_t compression;
    int32_t column, row; /* of the first pixel in the data window */
    bool is_upwards;     /* rows are stored from the bottom */
};

static inline void exr_number(struct base_text *text, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        base_text_add_bytes(text, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static inline void exr_attribute(struct base_text *text, const char *name, const char *type,
                                 size_t size)
{
    base_text_add_bytes(text, name, strlen(name) + 1);
    base_text_add_bytes(text, type, strlen(type) + 1);
    exr_number(text, size, 4);
}

/* Makes a header, up to the table of offsets. */
static inline struct base_text exr_header(const struct exr_kind *kind, uint32_t width,
                                          uint32_t height)
{
    struct base_text text = {0};
    exr_number(&text, 20000630, 4);
    exr_number(&text, 2, 4);
    exr_attribute(&text, "channels", "chlist", 19);
    base_text_add_bytes(&text, "R", 2);
    exr_number(&text, kind->is_half ? 1 : 2, 4);
    exr_number(&text, 0, 4);
    exr_number(&text, 1, 4);
    exr_number(&text, 1, 4);
    exr_number(&text, 0, 1);
    exr_attribute(&text, "compression", "compression", 1);
    exr_number(&text, kind->compression, 1);
    for (int i = 0; i < 2; i++) {
        exr_attribute(&text, i == 0 ? "dataWindow" : "displayWindow", "box2i", 16);
        exr_number(&text, (uint32_t)kind->column, 4);
        exr_number(&text, (uint32_t)kind->row, 4);
        exr_number(&text, (uint32_t)kind->column + width - 1, 4);
        exr_number(&text, (uint32_t)kind->row + height - 1, 4);
    }
    exr_attribute(&text, "lineOrder", "lineOrder", 1);
    exr_number(&text, kind->is_upwards ? 1 : 0, 1);
    exr_attribute(&text, "pixelAspectRatio", "float", 4);
    exr_number(&text, base_bits_of(1), 4);
    exr_attribute(&text, "screenWindowCenter", "v2f", 8);
    exr_number(&text, 0, 8);
    exr_attribute(&text, "screenWindowWidth", "float", 4);
    exr_number(&text, base_bits_of(1), 4);
    exr_attribute(&text, "comments", "string", 0);
    exr_number(&text, 0, 1);
    return text;
}

/* Compresses as EXR's ZIP does: even bytes, odd bytes, differences, zlib. Replaces *bytes unless
 * the data would grow. */
static inline void exr_compress(struct base_text *bytes)
{
    uint8_t *work = base_alloc(bytes->size, 1), *packed = base_alloc(2 * bytes->size + 64, 1);
    uLongf size = 2 * bytes->size + 64;
    for (size_t i = 0; i < bytes->size; i++)
        work[i / 2 + i % 2 * (bytes->size / 2)] = (uint8_t)bytes->data[i];
    for (size_t i = bytes->size; i-- > 1;)
        work[i] = (uint8_t)(work[i] - work[i - 1] + 128);
    assert_int_equal(compress(packed, &size, work, bytes->size), Z_OK);
    if (size < bytes->size) {
        bytes->size = 0;
        base_text_add_bytes(bytes, packed, size);
    }
    free(work);
    free(packed);
}

/* Makes a file of values[row][column]. */
static inline struct base_text exr_file(const struct exr_kind *kind, uint32_t width,
                                        uint32_t height, const float *values)
{
    struct base_text text = exr_header(kind, width, height), chunks = {0};
    const uint32_t rows = kind->compression == EXR_ZIP ? 16 : 1, count = (height + rows - 1) / rows;
    uint64_t offsets[256] = {0};
    assert_true(count <= BASE_COUNT(offsets));
    for (uint32_t n = 0; n < count; n++) {
        uint32_t chunk = kind->is_upwards ? count - 1 - n : n, first = chunk * rows;
        uint32_t end = first + rows < height ? first + rows : height;
        struct base_text bytes = {0};
        for (uint32_t i = first * width; i < end * width; i++)
            exr_number(&bytes, kind->is_half ? base_to_f16(values[i]) : base_bits_of(values[i]),
                       kind->is_half ? 2 : 4);
        if (kind->compression != EXR_UNCOMPRESSED)
            exr_compress(&bytes);
        offsets[chunk] = text.size + 8 * (size_t)count + chunks.size;
        exr_number(&chunks, (uint32_t)kind->row + first, 4);
        exr_number(&chunks, bytes.size, 4);
        base_text_add_bytes(&chunks, bytes.data, bytes.size);
        free(bytes.data);
    }
    for (uint32_t chunk = 0; chunk < count; chunk++)
        exr_number(&text, offsets[chunk], 8);
    base_text_add_bytes(&text, chunks.data, chunks.size);
    free(chunks.data);
    return text;
}

#endif
