/* Reads TensorBoard event files without code of the writer: TFRecord framing, CRC-32C and
 * protocol-buffer messages, by their specifications. Malformed input fails the test. Include after
 * cmocka.h. */
#ifndef TESTS_EVENT_READER_H
#define TESTS_EVENT_READER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checksums ------------------------------------------------------------------------------- */

/* Divides polynomials over GF(2), most significant bit first, on reflected input: the definition of
 * RFC 3720, 12.1. */
static inline uint32_t reader_reflect(uint32_t value, int bits)
{
    uint32_t result = 0;
    for (int i = 0; i < bits; i++)
        result |= (value >> i & 1) << (bits - 1 - i);
    return result;
}

static inline uint32_t reader_crc32c(const uint8_t *data, size_t size)
{
    uint32_t remainder = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        remainder ^= reader_reflect(data[i], 8) << 24;
        for (int bit = 0; bit < 8; bit++)
            remainder = remainder & 0x80000000 ? remainder << 1 ^ 0x1edc6f41 : remainder << 1;
    }
    return reader_reflect(remainder, 32) ^ 0xffffffff;
}

static inline uint32_t reader_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8;
    return rotated << 15 | rotated >> 17;
}

/* ---- messages -------------------------------------------------------------------------------- */

static inline uint64_t reader_number(const uint8_t *data, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | data[i];
    return value;
}

struct reader_field {
    unsigned number, wire;
    uint64_t value;      /* of wire types 0, 1 and 5 */
    const uint8_t *data; /* of wire type 2 */
    size_t size;
};

static inline uint64_t reader_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

static inline struct reader_field reader_next(const uint8_t **at, const uint8_t *end)
{
    uint64_t key = reader_varint(at, end);
    struct reader_field field = {.number = (unsigned)(key >> 3), .wire = (unsigned)(key & 7)};
    size_t fixed = field.wire == 1 ? 8 : field.wire == 5 ? 4 : 0;
    assert_true(field.wire == 0 || field.wire == 2 || fixed > 0);
    if (field.wire != 1 && field.wire != 5)
        field.value = reader_varint(at, end);
    if (field.wire == 2)
        fixed = field.size = (size_t)field.value;
    assert_true(fixed <= (size_t)(end - *at));
    if (field.wire == 1 || field.wire == 5)
        field.value = reader_number(*at, fixed);
    field.data = *at;
    *at += fixed;
    return field;
}

/* ---- events ---------------------------------------------------------------------------------- */

#define READER_MOST 4096

/* A scalar or a picture. */
struct reader_value {
    uint64_t step;
    double wall_time;
    char tag[64];
    bool picture;
    float scalar;
    uint64_t width, height, color_space;
    const uint8_t *encoded; /* points into the file's bytes */
    size_t size;
};

struct reader {
    uint8_t *bytes;
    size_t size, records;
    char version[32];
    bool started;        /* the file has a session start */
    uint64_t start_step; /* at this step */
    double wall_time;    /* of the last record */
    struct reader_value values[READER_MOST];
    size_t count;
};

static inline void reader_image(struct reader_value *value, const struct reader_field *image)
{
    for (const uint8_t *at = image->data, *end = at + image->size; at < end;) {
        struct reader_field field = reader_next(&at, end);
        if (field.number == 1)
            value->height = field.value;
        if (field.number == 2)
            value->width = field.value;
        if (field.number == 3)
            value->color_space = field.value;
        if (field.number == 4) {
            value->encoded = field.data;
            value->size = field.size;
        }
    }
    value->picture = true;
}

static inline void reader_summary(struct reader *reader, const struct reader_field *summary,
                                  uint64_t step)
{
    for (const uint8_t *at = summary->data, *end = at + summary->size; at < end;) {
        struct reader_field item = reader_next(&at, end);
        assert_true(item.number == 1 && item.wire == 2 && reader->count < READER_MOST);
        struct reader_value *value = &reader->values[reader->count++];
        *value = (struct reader_value){.step = step, .wall_time = reader->wall_time};
        for (const uint8_t *part = item.data, *item_end = part + item.size; part < item_end;) {
            struct reader_field field = reader_next(&part, item_end);
            if (field.number == 1) {
                assert_true(field.size < sizeof(value->tag));
                memcpy(value->tag, field.data, field.size);
            } else if (field.number == 2) {
                uint32_t bits = (uint32_t)field.value;
                assert_int_equal(field.wire, 5);
                memcpy(&value->scalar, &bits, sizeof(bits));
            } else {
                assert_int_equal(field.number, 4);
                reader_image(value, &field);
            }
        }
    }
}

static inline void reader_event(struct reader *reader, const uint8_t *at, size_t size)
{
    uint64_t step = 0;
    for (const uint8_t *end = at + size; at < end;) {
        struct reader_field field = reader_next(&at, end);
        if (field.number == 1) {
            double wall_time;
            assert_int_equal(field.wire, 1);
            memcpy(&wall_time, &field.value, sizeof(wall_time));
            assert_true(wall_time >= reader->wall_time);
            reader->wall_time = wall_time;
        } else if (field.number == 2) {
            step = field.value;
        } else if (field.number == 3) {
            assert_true(reader->records == 0 && field.size < sizeof(reader->version));
            memcpy(reader->version, field.data, field.size);
        } else if (field.number == 7) {
            struct reader_field status = reader_next(&field.data, field.data + field.size);
            assert_true(status.number == 1 && status.value == 1);
            reader->started = true;
            reader->start_step = step;
        } else {
            assert_int_equal(field.number, 5);
            reader_summary(reader, &field, step);
        }
    }
}

/* Reads a whole file; the caller calls reader_close(). */
static inline struct reader *reader_open(const char *path)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    FILE *stream = fopen(path, "rb");
    assert_true(reader && stream);
    reader->bytes = malloc(1 << 24);
    assert_non_null(reader->bytes);
    reader->size = fread(reader->bytes, 1, 1 << 24, stream);
    fclose(stream);
    for (size_t at = 0; at < reader->size; reader->records++) {
        const uint8_t *record = reader->bytes + at;
        assert_true(reader->size - at >= 16);
        uint64_t length = reader_number(record, 8);
        assert_true(length <= reader->size - at - 16);
        assert_int_equal(reader_unmask((uint32_t)reader_number(record + 8, 4)),
                         reader_crc32c(record, 8));
        assert_int_equal(reader_unmask((uint32_t)reader_number(record + 12 + length, 4)),
                         reader_crc32c(record + 12, length));
        reader_event(reader, record + 12, length);
        at += 16 + length;
    }
    return reader;
}

static inline void reader_close(struct reader *reader)
{
    free(reader->bytes);
    free(reader);
}

/* Returns NULL if there is no such value. */
static inline const struct reader_value *reader_find(const struct reader *reader, const char *tag,
                                                     uint64_t step)
{
    for (size_t i = 0; i < reader->count; i++)
        if (strcmp(reader->values[i].tag, tag) == 0 && reader->values[i].step == step)
            return &reader->values[i];
    return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

static inline int reader_by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Lists the names of a folder's event files in order; returns their number. */
static inline size_t reader_list(const char *folder, char names[][256], size_t capacity)
{
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(stream));) {
        if (!strstr(entry->d_name, "tfevents"))
            continue;
        assert_true(count < capacity);
        snprintf(names[count++], 256, "%s", entry->d_name);
    }
    closedir(stream);
    qsort(names, count, sizeof(names[0]), reader_by_name);
    return count;
}

#endif
