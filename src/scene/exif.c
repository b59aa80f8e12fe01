/* Reads EXIF data: Exif 2.32 (CIPA DC-008), a TIFF inside of JPEG's APP1 or PNG's eXIf. Also
 * records the first error message about an image file. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scene/image.h"

#define TAG_ORIENTATION 0x0112u
#define TAG_EXIF        0x8769u /* offset of the directory of the camera's settings */
#define TAG_TIME        0x829au /* exposure time */
#define TAG_APERTURE    0x829du /* f-number */
#define TAG_ISO         0x8827u
#define TAG_FOCAL       0x920au
#define TYPE_SHORT      3u
#define TYPE_RATIONAL   5u
#define ENTRY_SIZE      12u

/* TIFF data. Offsets count from the start of the data. */
struct tiff {
    const uint8_t *data;
    size_t size;
    bool little_endian;
};

/* Returns an integer of `bytes` bytes; 0 beyond the end. */
static uint32_t read_integer(const struct tiff *tiff, size_t at, size_t bytes)
{
    if (at > tiff->size || tiff->size - at < bytes)
        return 0;
    return (uint32_t)base_integer_of(tiff->data + at, bytes, !tiff->little_endian);
}

/* Returns the offset of the entry with this tag and type (0: any) of a directory; 0: none. */
static size_t find_tag(const struct tiff *tiff, size_t directory, uint32_t tag, uint32_t type)
{
    uint32_t count = read_integer(tiff, directory, 2);
    for (uint32_t i = 0; i < count; i++) {
        size_t entry = directory + 2 + (size_t)i * ENTRY_SIZE;
        if (read_integer(tiff, entry, 2) == tag &&
            (type == 0 || read_integer(tiff, entry + 2, 2) == type))
            return entry;
    }
    return 0;
}

/* Returns a rational number of a directory; 0: none. */
static double read_rational(const struct tiff *tiff, size_t directory, uint32_t tag)
{
    size_t entry = find_tag(tiff, directory, tag, TYPE_RATIONAL);
    size_t at = entry > 0 ? read_integer(tiff, entry + 8, 4) : 0;
    uint32_t numerator = read_integer(tiff, at, 4), denominator = read_integer(tiff, at + 4, 4);
    return entry > 0 && denominator > 0 ? (double)numerator / denominator : 0.0;
}

static void read_tiff(const struct tiff *tiff, size_t start, struct exif *exif)
{
    size_t directory = read_integer(tiff, 4, 4);
    size_t entry = find_tag(tiff, directory, TAG_ORIENTATION, TYPE_SHORT);
    uint32_t orientation = entry > 0 ? read_integer(tiff, entry + 8, 2) : 0;
    if (orientation >= 1 && orientation <= 8) {
        exif->orientation = orientation;
        exif->orientation_at = start + entry + 8 + (tiff->little_endian ? 0 : 1);
    }
    entry = find_tag(tiff, directory, TAG_EXIF, 0);
    if (entry == 0)
        return;
    directory = read_integer(tiff, entry + 8, 4);
    exif->focal = read_rational(tiff, directory, TAG_FOCAL);
    exif->time = read_rational(tiff, directory, TAG_TIME);
    exif->aperture = read_rational(tiff, directory, TAG_APERTURE);
    entry = find_tag(tiff, directory, TAG_ISO, TYPE_SHORT);
    exif->iso = entry > 0 ? read_integer(tiff, entry + 8, 2) : 0;
}

/* Reads TIFF data. `start` is its offset in the file. */
static void read_block(const uint8_t *data, size_t size, size_t start, struct exif *exif)
{
    struct tiff tiff = {data, size, size > 0 && data[0] == 'I'};
    if (read_integer(&tiff, 2, 2) == 42)
        read_tiff(&tiff, start, exif);
}

/* Reads the content of an APP1 segment (`size` bytes); returns false when it is not EXIF. */
static bool read_segment(const uint8_t *data, size_t size, size_t start, struct exif *exif)
{
    static const char name[6] = "Exif"; /* followed by two zero bytes */
    if (size < 14 || memcmp(data, name, sizeof(name)) != 0)
        return false;
    read_block(data + sizeof(name), size - sizeof(name), start + sizeof(name), exif);
    return true;
}

struct exif exif_read(const uint8_t *data, size_t size)
{
    struct exif exif = {.orientation = EXIF_UPRIGHT};
    if (size < 4 || data[0] != 0xff || data[1] != 0xd8)
        return exif;
    for (size_t at = 2; at + 4 <= size && data[at] == 0xff;) {
        size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        if (length < 2 || length + 2 > size - at || data[at + 1] == 0xda)
            break;
        if (data[at + 1] == 0xe1 && read_segment(data + at + 4, length - 2, at + 4, &exif)) {
            exif.segment = at;
            exif.segment_size = length + 2;
            break;
        }
        at += length + 2;
    }
    return exif;
}

/* Reads PNG's chunks: length, type, content, checksum (W3C PNG specification, 5 and 11.3.4.6). */
static struct exif read_png(const uint8_t *data, size_t size)
{
    const struct tiff file = {data, size, false};
    struct exif exif = {.orientation = EXIF_UPRIGHT};
    for (size_t at = 8; at < size && size - at >= 12;) {
        size_t length = read_integer(&file, at, 4);
        const uint8_t *type = data + at + 4;
        if (length > size - at - 12 || memcmp(type, "IDAT", 4) == 0)
            break;
        if (memcmp(type, "eXIf", 4) == 0) {
            read_block(type + 4, length, 0, &exif);
            break;
        }
        at += length + 12;
    }
    return exif;
}

struct exif exif_of_image(const uint8_t *data, size_t size)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'};
    struct exif exif = {.orientation = EXIF_UPRIGHT};
    if (size >= sizeof(png) && memcmp(data, png, sizeof(png)) == 0)
        return read_png(data, size);
    if (size >= 2 && data[0] == data[1] && (data[0] == 'I' || data[0] == 'M')) {
        read_block(data, size, 0, &exif);
        return exif;
    }
    return exif_read(data, size);
}

bool exif_exposure(const struct exif *exif, float *exposure)
{
    double aperture = exif->aperture > 0 ? exif->aperture : 1;
    double light = exif->time * exif->iso / (aperture * aperture);
    *exposure = light > 0 ? (float)log2(light) : 0;
    return light > 0;
}

void image_problem(struct image_file *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (file->problem[0] == '\0')
        vsnprintf(file->problem, sizeof(file->problem), format, arguments);
    va_end(arguments);
}

bool image_failed(const struct image_file *file)
{
    return file->out_of_memory || file->problem[0] != '\0';
}
