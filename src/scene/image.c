/* Image files: decoding PNG and JPEG, encoding PNG (stb), with limits against hostile files. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#include <stb_image.h>

#include "scene/image.h"

#define MAX_FILE_SIZE ((size_t)1 << 30)
#define FIRST_BYTES   65536u /* a header is nearly always within */

static vkn_status check_size(const char *name, const struct image_header *header)
{
    if (header->width > SCENE_MAX_IMAGE_SIZE || header->height > SCENE_MAX_IMAGE_SIZE)
        return base_fail(VKN_BAD_INPUT, "%s: %ux%u pixels are more than the limit of %ux%u", name,
                         header->width, header->height, SCENE_MAX_IMAGE_SIZE, SCENE_MAX_IMAGE_SIZE);
    /* stb counts in int, and gives no reason where that overflows. */
    if (header->decoded_size > INT_MAX)
        return base_fail(VKN_BAD_INPUT, "%s: %ux%u pixels of 16 bits are too many", name,
                         header->width, header->height);
    return VKN_OK;
}

/* The header alone; when `data` holds only the beginning of the file, *width stays 0 if that was
 * not enough. */
static vkn_status read_header(const char *name, const uint8_t *data, size_t size,
                              struct image_header *header)
{
    const char *problem = image_header_read(data, size, header);
    if (problem != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: %s", name, problem);
    return check_size(name, header);
}

static vkn_status size_of_beginning(const char *path, struct image_header *header)
{
    size_t size = 0;
    uint8_t *data = base_alloc(FIRST_BYTES, 1);
    if (data == NULL)
        return VKN_ERROR;
    vkn_status status = base_file_read_beginning(path, data, FIRST_BYTES, &size, NULL);
    if (status == VKN_OK)
        status = read_header(path, data, size, header);
    free(data);
    return status;
}

vkn_status image_measure(const char *path, struct image_header *header)
{
    *header = (struct image_header){0};
    BASE_TRY(size_of_beginning(path, header));
    if (header->width > 0)
        return VKN_OK;
    char *data = NULL;
    size_t size = 0;
    BASE_TRY(base_file_read(path, MAX_FILE_SIZE, &data, &size));
    vkn_status status = read_header(path, (const uint8_t *)data, size, header);
    free(data);
    BASE_TRY(status);
    return header->width > 0 ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: truncated JPEG", path);
}

vkn_status scene_image_size(const char *path, uint32_t *width, uint32_t *height)
{
    struct image_header header;
    BASE_TRY(image_measure(path, &header));
    *width = header.width;
    *height = header.height;
    return VKN_OK;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Makes pixels of a whole file for image_decode and image_read_mask: fresh memory, which free()
 * releases, or NULL where it cannot be decoded. */
typedef void *decoder(const uint8_t *data, int size, int *width, int *height);

/* 16-bit RGBA in the decoder's memory to 8 bits, each value to the nearest: 65535 becomes 255. NULL
 * without memory. */
static uint8_t *round_samples(const uint16_t *wide, size_t count)
{
    uint8_t *bytes = base_alloc(count, 1);
    stb_short_of_memory |= bytes == NULL;
    for (size_t i = 0; i < count && bytes != NULL; i++)
        bytes[i] = (uint8_t)(((uint32_t)wide[i] * 255 + 32767) / 65535);
    return bytes;
}

/* 8-bit RGBA. stb, which allocates with malloc, would cut the lower half of 16-bit samples off. */
static void *decode_rgba(const uint8_t *data, int size, int *width, int *height)
{
    int channels = 0;
    if (!stbi_is_16_bit_from_memory(data, size))
        return stbi_load_from_memory(data, size, width, height, &channels, 4);
    uint16_t *wide = stbi_load_16_from_memory(data, size, width, height, &channels, 4);
    uint8_t *rgba = NULL;
    if (wide != NULL)
        rgba = round_samples(wide, (size_t)4 * (size_t)*width * (size_t)*height);
    free(wide);
    return rgba;
}

#define LARGEST(a, b) ((a) > (b) ? (a) : (b))

/* struct image_mask in the place of 8-bit RGBA, which is as large, or of the 16-bit one. */
static void *decode_mask(const uint8_t *data, int size, int *width, int *height)
{
    int channels = 0;
    bool wide = stbi_is_16_bit_from_memory(data, size) != 0;
    void *rgba = wide ? (void *)stbi_load_16_from_memory(data, size, width, height, &channels, 4)
                      : stbi_load_from_memory(data, size, width, height, &channels, 4);
    size_t count = rgba != NULL ? (size_t)*width * (size_t)*height : 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t pixel[4];
        if (wide)
            memcpy(pixel, (const uint16_t *)rgba + 4 * i, sizeof(pixel));
        for (size_t c = 0; c < 4 && !wide; c++)
            pixel[c] = ((const uint8_t *)rgba)[4 * i + c];
        const struct image_mask mask = {LARGEST(LARGEST(pixel[0], pixel[1]), pixel[2]), pixel[3]};
        memcpy((uint8_t *)rgba + sizeof(mask) * i, &mask, sizeof(mask));
    }
    return rgba;
}

static vkn_status decode(const char *name, const uint8_t *data, size_t size, decoder *make,
                         void **decoded, uint32_t *width, uint32_t *height)
{
    *decoded = NULL;
    struct image_header header;
    BASE_TRY(read_header(name, data, size, &header));
    const char *problem = image_check(data, size, &header);
    if (problem == NULL && header.width == 0)
        problem = "corrupt JPEG (no frame header)";
    if (problem != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: %s", name, problem);
    if (size > INT_MAX)
        return base_fail(VKN_BAD_INPUT, "%s: larger than %d bytes", name, INT_MAX);

    int decoded_width = 0, decoded_height = 0;
    stb_short_of_memory = false;
    void *pixels = make(data, (int)size, &decoded_width, &decoded_height);
    if (pixels == NULL && stb_short_of_memory)
        return base_fail(VKN_ERROR, "%s: out of memory for its %ux%u pixels", name, header.width,
                         header.height);
    if (pixels == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: cannot be decoded (%s)", name, stbi_failure_reason());
    if ((uint32_t)decoded_width != header.width || (uint32_t)decoded_height != header.height) {
        free(pixels);
        return base_fail(VKN_BAD_INPUT, "%s: corrupt (two sizes in one file)", name);
    }
    *decoded = pixels;
    *width = header.width;
    *height = header.height;
    return VKN_OK;
}

vkn_status image_decode(const char *name, const uint8_t *data, size_t size, uint8_t **rgba,
                        uint32_t *width, uint32_t *height)
{
    void *pixels = NULL;
    vkn_status status = decode(name, data, size, decode_rgba, &pixels, width, height);
    *rgba = pixels;
    return status;
}

static vkn_status read_file(const char *path, decoder *make, void **pixels, uint32_t *width,
                            uint32_t *height)
{
    *pixels = NULL;
    char *data = NULL;
    size_t size = 0;
    BASE_TRY(base_file_read(path, MAX_FILE_SIZE, &data, &size));
    vkn_status status = decode(path, (const uint8_t *)data, size, make, pixels, width, height);
    free(data);
    return status;
}

vkn_status scene_image_read(const char *path, uint8_t **rgba, uint32_t *width, uint32_t *height)
{
    void *pixels = NULL;
    vkn_status status = read_file(path, decode_rgba, &pixels, width, height);
    *rgba = pixels;
    return status;
}

vkn_status image_read_mask(const char *path, struct image_mask **pixels, uint32_t *width,
                           uint32_t *height)
{
    void *decoded = NULL;
    vkn_status status = read_file(path, decode_mask, &decoded, width, height);
    *pixels = decoded;
    return status;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static vkn_status encode(const struct image_png *image, struct base_text *text)
{
    bool sizes_fit =
        image->width > 0 && image->height > 0 && image->width <= SCENE_MAX_IMAGE_SIZE &&
        image->height <= SCENE_MAX_IMAGE_SIZE && image->channels >= 1 && image->channels <= 4;
    if (!sizes_fit)
        return base_fail(VKN_ERROR, "PNG: cannot write an image of %ux%u with %u channels",
                         image->width, image->height, image->channels);
    if (image_png_encode(image, text) && !text->failed)
        return VKN_OK;
    free(text->data);
    *text = (struct base_text){0};
    return base_fail(VKN_ERROR, "PNG: out of memory for an image of %ux%u", image->width,
                     image->height);
}

vkn_status scene_image_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                                  uint32_t channels, uint8_t **png, size_t *size)
{
    const struct image_png image = {pixels, width, height, channels, 8};
    struct base_text text = {0};
    vkn_status status = encode(&image, &text);
    *png = (uint8_t *)text.data;
    *size = text.size;
    return status;
}

static vkn_status write_file(const char *path, const struct image_png *image)
{
    struct base_text text = {0};
    BASE_TRY(encode(image, &text));
    vkn_status status = base_file_replace(path, text.data, text.size);
    free(text.data);
    return status;
}

vkn_status scene_image_write_png(const char *path, const uint8_t *pixels, uint32_t width,
                                 uint32_t height, uint32_t channels)
{
    return write_file(path, &(struct image_png){pixels, width, height, channels, 8});
}

vkn_status scene_image_write_png16(const char *path, const uint16_t *grey, uint32_t width,
                                   uint32_t height)
{
    return write_file(path, &(struct image_png){grey, width, height, 1, 16});
}
