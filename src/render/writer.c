/* Writes PNG files on other threads: a ring of files, each written by its own task. */
#include "render/writer.h"

#include <stdlib.h>

#include "scene/scene.h"

static vkn_status write_file(void *context)
{
    const struct render_file *file = context;
    if (file->bits == 16)
        return scene_image_write_png16(file->path, file->pixels, file->width, file->height);
    return scene_image_write_png(file->path, file->pixels, file->width, file->height,
                                 file->channels);
}

static vkn_status finish_slot(struct render_write_slot *slot)
{
    vkn_status status = base_task_wait(&slot->task);
    free(slot->file.path);
    free(slot->file.pixels);
    slot->file = (struct render_file){0};
    return status;
}

/* Returns the size of the ring. The oldest file must be written before another one is added. */
static size_t ring_size(void)
{
    uint32_t processors = base_processors();
    return processors < 2 ? 2 : processors < RENDER_MOST_FILES ? processors : RENDER_MOST_FILES;
}

vkn_status render_writer_add(struct render_writer *writer, const struct render_file *file)
{
    struct render_write_slot *slot = &writer->slots[writer->count % ring_size()];
    vkn_status status = finish_slot(slot);
    slot->file = *file;
    if (status == VKN_OK)
        status = file->path && file->pixels ? VKN_OK : VKN_ERROR;
    if (status != VKN_OK) {
        BASE_KEEP_ERROR;
        finish_slot(slot);
        return status;
    }
    writer->count++;
    return base_task_start(write_file, &slot->file, &slot->task);
}

vkn_status render_writer_finish(struct render_writer *writer)
{
    struct base_kept_error first;
    vkn_status status = VKN_OK;
    size_t slots = ring_size();
    for (size_t i = 0; i < slots; i++) { /* oldest file first */
        vkn_status one = finish_slot(&writer->slots[(writer->count + i) % slots]);
        if (one != VKN_OK && status == VKN_OK) {
            status = one;
            base_error_keep(&first);
        }
    }
    if (status != VKN_OK)
        base_error_restore(&first);
    return status;
}
