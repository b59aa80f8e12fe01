/* Reads image files of all formats, within limits, and encodes PNG. */
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"

#define MAX_FILE_SIZE ((size_t)1 << 30)
#define FIRST_BYTES   65536u /* enough for nearly every header */

/* ---- formats --------------------------------------------------------------------------------- */

static const struct image_format *const formats[] = {&image_png, &image_jpeg, &image_webp,
                                                     &image_tiff, &image_stb};

static const char *const usual_endings[] = {"png", "jpg", "jpeg", NULL};
static const char *const other_endings[] = {"webp", "tif", "tiff", "bmp",
                                            "tga",  "gif", "hdr",  NULL};
const char *const *const image_endings[IMAGE_ENDINGS] = {usual_endings, other_endings};

static vkn_status fail(const char *name, const struct image_file *file)
{
    if (file->out_of_memory)
        return base_fail(VKN_ERROR, "%s: out of memory for its pixels", name);
    return base_fail(VKN_BAD_INPUT, "%s: %s", name, file->problem);
}

static const struct image_format *format_of(struct image_file *file)
{
    for (size_t i = 0; i < BASE_COUNT(formats) && file->size > 0; i++)
        if (formats[i]->is(file->data, file->size))
            return formats[i];
    image_problem(file, file->size > 0 ? "not a PNG, JPEG, WebP, TIFF, BMP, TGA, GIF or HDR file"
                                       : "empty file");
    return NULL;
}

/* Detects the format and reads the size. *format: NULL after a failure. */
static vkn_status measure(const char *name, struct image_file *file,
                          const struct image_format **format)
{
    *format = format_of(file);
    if (*format == NULL || !(*format)->measure(file))
        return fail(name, file);
    if (file->is_whole && (file->width == 0 || file->height == 0))
        return base_fail(VKN_BAD_INPUT, "%s: corrupt (empty image)", name);
    if (file->width > SCENE_MAX_IMAGE_SIZE || file->height > SCENE_MAX_IMAGE_SIZE)
        return base_fail(VKN_BAD_INPUT, "%s: %ux%u pixels are more than the limit of %ux%u", name,
                         file->width, file->height, SCENE_MAX_IMAGE_SIZE, SCENE_MAX_IMAGE_SIZE);
    return VKN_OK;
}

vkn_status image_read_header(const char *name, const uint8_t *data, size_t size, bool whole,
                             struct image_header *header)
{
    struct image_file file = {.data = data, .size = size, .is_whole = whole};
    const struct image_format *format;
    BASE_TRY(measure(name, &file, &format));
    *header = (struct image_header){file.width, file.height, exif_of_image(data, size)};
    return VKN_OK;
}

vkn_status image_measure(const char *path, struct image_header *header)
{
    *header = (struct image_header){0};
    size_t size = 0;
    uint8_t *beginning = base_alloc(FIRST_BYTES, 1);
    if (beginning == NULL)
        return VKN_ERROR;
    vkn_status status = base_file_read_beginning(path, beginning, FIRST_BYTES, &size, NULL);
    if (status == VKN_OK)
        status = image_read_header(path, beginning, size, size < FIRST_BYTES, header);
    free(beginning);
    BASE_TRY(status);
    if (header->width > 0)
        return VKN_OK;
    char *data = NULL;
    BASE_TRY(base_file_read(path, MAX_FILE_SIZE, &data, &size));
    status = image_read_header(path, (const uint8_t *)data, size, true, header);
    free(data);
    return status;
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

/* Decodes a file to 8-bit RGBA or, with `precise` and 16-bit samples, to 16-bit RGBA, and sets
 * file->is_16_bit to say which. The caller frees *pixels. */
static vkn_status decode(const char *name, struct image_file *file, bool precise, void **pixels)
{
    const struct image_format *format;
    *pixels = NULL;
    file->is_whole = true;
    BASE_TRY(measure(name, file, &format));
    /* Refuses a small file that claims a huge image before memory is allocated. */
    if (file->size < file->min_size)
        return base_fail(VKN_BAD_INPUT, "%s: truncated (too little data)", name);
    file->is_16_bit = file->is_16_bit && precise;
    void *rgba = base_alloc((size_t)file->width * file->height, file->is_16_bit ? 8 : 4);
    file->out_of_memory = rgba == NULL;
    if (rgba == NULL || !format->decode(file, rgba)) {
        free(rgba);
        return fail(name, file);
    }
    *pixels = rgba;
    return VKN_OK;
}

static vkn_status decode_file(const char *path, struct image_file *file, bool precise,
                              void **pixels)
{
    char *data = NULL;
    *pixels = NULL;
    BASE_TRY(base_file_read(path, MAX_FILE_SIZE, &data, &file->size));
    file->data = (const uint8_t *)data;
    vkn_status status = decode(path, file, precise, pixels);
    free(data);
    return status;
}

vkn_status image_decode(const char *name, const uint8_t *data, size_t size, uint8_t **rgba,
                        uint32_t *width, uint32_t *height)
{
    struct image_file file = {.data = data, .size = size};
    void *pixels;
    vkn_status status = decode(name, &file, false, &pixels);
    *rgba = pixels;
    *width = file.width;
    *height = file.height;
    return status;
}

vkn_status scene_image_read(const char *path, uint8_t **rgba, uint32_t *width, uint32_t *height)
{
    struct image_file file = {0};
    void *pixels;
    vkn_status status = decode_file(path, &file, false, &pixels);
    *rgba = pixels;
    *width = file.width;
    *height = file.height;
    return status;
}

#define LARGEST(a, b) ((a) > (b) ? (a) : (b))

/* Converts 8-bit or 16-bit RGBA to struct image_mask, in place. */
static void reduce_to_mask(uint8_t *rgba, bool is_16_bit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t pixel[4];
        if (is_16_bit)
            memcpy(pixel, rgba + 8 * i, sizeof(pixel));
        for (size_t c = 0; c < 4 && !is_16_bit; c++)
            pixel[c] = rgba[4 * i + c];
        const struct image_mask mask = {LARGEST(LARGEST(pixel[0], pixel[1]), pixel[2]), pixel[3]};
        memcpy(rgba + sizeof(mask) * i, &mask, sizeof(mask));
    }
}

vkn_status image_read_mask(const char *path, struct image_mask **pixels, uint32_t *width,
                           uint32_t *height)
{
    struct image_file file = {0};
    void *rgba;
    *pixels = NULL;
    BASE_TRY(decode_file(path, &file, true, &rgba));
    reduce_to_mask(rgba, file.is_16_bit, (size_t)file.width * file.height);
    *pixels = rgba;
    *width = file.width;
    *height = file.height;
    return VKN_OK;
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
