/* Collects the files of a copy of a scene. */
#include "scene/write.h"

#include <stdlib.h>
#include <string.h>

void write_replace(struct write_patch *patch, size_t begin, size_t end, const void *bytes,
                   size_t size)
{
    base_text_add_bytes(&patch->text, patch->data + patch->copied, begin - patch->copied);
    base_text_add_bytes(&patch->text, bytes, size);
    patch->copied = end;
}

static vkn_status add(struct write_files *files, const char *name, struct base_text *text)
{
    struct write_file *grown =
        base_realloc(files->items, (files->count + 1) * sizeof(*files->items));
    if (grown == NULL)
        return base_fail(VKN_ERROR, "out of memory (%zu files)", files->count + 1);
    files->items = grown;
    struct write_file *file = &files->items[files->count];
    *file = (struct write_file){.name = base_format("%s", name), .is_left_out = text == NULL};
    if (file->name == NULL)
        return VKN_ERROR;
    if (text != NULL)
        file->text = *text;
    files->count++;
    return VKN_OK;
}

vkn_status write_add(struct write_files *files, const char *name, struct write_patch *patch,
                     size_t size)
{
    write_replace(patch, size, size, "", 0);
    vkn_status status = patch->text.failed || name == NULL ? VKN_ERROR : VKN_OK;
    if (status == VKN_OK)
        status = add(files, name, &patch->text);
    if (status != VKN_OK)
        free(patch->text.data);
    return status;
}

vkn_status write_leave_out(struct write_files *files, const char *name)
{
    return add(files, name, NULL);
}

vkn_status write_check_frame(const char *file, const char *list, uint32_t frame, size_t count)
{
    if (frame < count)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s[%u]: it has a new camera, but there are only %zu", file,
                     list, frame, count);
}
