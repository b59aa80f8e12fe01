/* The structure of PNG and JPEG files: sizes from the header, and whether the file is whole. */
#include <string.h>

#include "scene/image.h"

static const uint8_t png_signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static uint32_t big_endian_16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t big_endian_32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- PNG (W3C PNG specification, sections 5 and 11) ---------------------------------------- */

uint32_t image_crc32(const uint8_t *data, size_t size)
{
    /* Half-byte table of the reflected polynomial 0xedb88320 (PNG specification, annex D). */
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

/* Bytes that the deflate stream must hold: rows of packed samples, one filter byte each. */
static uint64_t png_decoded_size(uint32_t width, uint32_t height, unsigned depth, unsigned color)
{
    static const uint8_t samples[8] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
    uint64_t bits = color < 8 ? (uint64_t)width * samples[color] * depth : 0;
    return height * (1 + (bits + 7) / 8);
}

static const char *png_header(const uint8_t *data, size_t size, struct image_header *header)
{
    if (size < 8 + 25)
        return "truncated PNG";
    if (big_endian_32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0)
        return "corrupt PNG (no header)";
    header->width = big_endian_32(data + 16);
    header->height = big_endian_32(data + 20);
    header->decoded_size = png_decoded_size(header->width, header->height, data[24], data[25]);
    return header->width == 0 || header->height == 0 ? "corrupt PNG (empty image)" : NULL;
}

static const char *png_check(const uint8_t *data, size_t size, const struct image_header *header)
{
    uint64_t compressed = 0;
    size_t position = sizeof(png_signature);
    for (;;) {
        if (size - position < 12 || big_endian_32(data + position) > size - position - 12)
            return "truncated PNG";
        size_t length = big_endian_32(data + position);
        const uint8_t *type = data + position + 4;
        bool critical = (type[0] & 0x20) == 0;
        if (critical && image_crc32(type, length + 4) != big_endian_32(type + 4 + length))
            return "corrupt PNG (wrong checksum)";
        if (memcmp(type, "IDAT", 4) == 0)
            compressed += length;
        if (memcmp(type, "IEND", 4) == 0)
            break;
        position += length + 12;
    }
    /* Deflate shrinks at most 1032 times: a tiny file that promises a huge image is refused before
     * memory is spent on it. */
    return compressed * 1032 < header->decoded_size ? "truncated PNG (too little data)" : NULL;
}

/* ---- JPEG (ITU-T T.81, annex B) ------------------------------------------------------------ */

enum { JPEG_TEM = 0x01, JPEG_DHT = 0xc4, JPEG_SOI = 0xd8, JPEG_EOI = 0xd9, JPEG_SOS = 0xda };

static bool jpeg_is_frame(unsigned marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static bool jpeg_has_no_length(unsigned marker)
{
    return (marker >= 0xd0 && marker <= JPEG_SOI) || marker == JPEG_TEM;
}

/* Position behind the next marker from `position` on, skipping coded data (where 0xff stands before
 * 0 or a restart number) and padding; 0 when the data ends before one. */
static size_t jpeg_next_marker(const uint8_t *data, size_t size, size_t position, unsigned *marker)
{
    for (; position + 1 < size; position++) {
        if (data[position] != 0xff)
            continue;
        unsigned next = data[position + 1];
        if (next == 0 || next == 0xff || (next >= 0xd0 && next <= 0xd7))
            continue;
        *marker = next;
        return position + 2;
    }
    return 0;
}

/* Huffman tables: 16 counts of codes by length, then that many symbols. stb 2.27 writes past its
 * array when there are more than the 256 symbols that exist, so they are counted before it sees
 * them. */
static bool jpeg_tables_are_sane(const uint8_t *segment, size_t length)
{
    size_t position = 2;
    while (position < length) {
        if (length - position < 17)
            return false;
        size_t symbols = 0;
        for (size_t i = 1; i <= 16; i++)
            symbols += segment[position + i];
        if (symbols > 256 || symbols > length - position - 17)
            return false;
        position += 17 + symbols;
    }
    return true;
}

/* Walks the segments up to the frame header (`whole` false) or to the end mark. `*found` tells
 * whether it got there. */
static const char *jpeg_walk(const uint8_t *data, size_t size, bool whole,
                             struct image_header *header, bool *found)
{
    unsigned marker = 0, scans = 0;
    size_t position = 2;
    *found = false;
    while ((position = jpeg_next_marker(data, size, position, &marker)) != 0) {
        if (marker == JPEG_EOI) {
            *found = scans > 0;
            return scans > 0 ? NULL : "corrupt JPEG (no picture)";
        }
        if (jpeg_has_no_length(marker))
            continue;
        if (size - position < 2)
            return NULL;
        size_t length = big_endian_16(data + position);
        if (length < 2)
            return "corrupt JPEG (segment length)";
        if (length > size - position)
            return NULL;
        scans += marker == JPEG_SOS ? 1 : 0;
        if (marker == JPEG_DHT && !jpeg_tables_are_sane(data + position, length))
            return "corrupt JPEG (Huffman table)";
        if (jpeg_is_frame(marker) && !whole) {
            if (length < 8)
                return "corrupt JPEG (frame header)";
            header->height = big_endian_16(data + position + 3);
            header->width = big_endian_16(data + position + 5);
            *found = true;
            return header->width == 0 || header->height == 0 ? "corrupt JPEG (empty image)" : NULL;
        }
        position += length;
    }
    return NULL;
}

static const char *jpeg_check(const uint8_t *data, size_t size)
{
    struct image_header unused;
    bool found = false;
    const char *problem = jpeg_walk(data, size, true, &unused, &found);
    if (problem != NULL)
        return problem;
    return found ? NULL : "truncated JPEG";
}

/* ---- either -------------------------------------------------------------------------------- */

const char *image_header_read(const uint8_t *data, size_t size, struct image_header *header)
{
    *header = (struct image_header){.orientation = exif_orientation(data, size)};
    if (size == 0)
        return "empty file";
    size_t compared = size < sizeof(png_signature) ? size : sizeof(png_signature);
    if (memcmp(data, png_signature, compared) == 0) {
        header->kind = IMAGE_PNG;
        return png_header(data, size, header);
    }
    if (size >= 2 && data[0] == 0xff && data[1] == JPEG_SOI) {
        bool found = false;
        header->kind = IMAGE_JPEG;
        return jpeg_walk(data, size, false, header, &found);
    }
    return "neither a PNG nor a JPEG file";
}

const char *image_check(const uint8_t *data, size_t size, const struct image_header *header)
{
    return header->kind == IMAGE_PNG ? png_check(data, size, header) : jpeg_check(data, size);
}
