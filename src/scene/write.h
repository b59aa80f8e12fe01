/* Collects the files of a scene's copy (internal to the module scene). */
#ifndef SCENE_WRITE_H
#define SCENE_WRITE_H

#include "scene/lens.h"

/* A new camera of a frame, checked. */
struct write_view {
    uint32_t file, frame; /* as in struct scene_camera */
    double pose[12];      /* as in struct scene_new_camera, with an orthonormal rotation */
    bool has_lens;
    struct transforms_lens lens; /* with focal lengths, centre and size, if has_lens */
};

/* A copy of a file's bytes in which parts are replaced. */
struct write_patch {
    const char *data;      /* the file's bytes */
    size_t copied;         /* number of them that the copy has already, or replaces */
    struct base_text text; /* the copy */
};
/* Replaces the bytes from `begin` to before `end`, which must lie behind all parts replaced before.
 */
void write_replace(struct write_patch *patch, size_t begin, size_t end, const void *bytes,
                   size_t size);

/* Files of a copy, with names relative to the folder of the file where reading starts. Files that
 * are left out have no data: they are neither written nor linked. */
struct write_files {
    struct write_file {
        char *name;
        struct base_text text;
        bool is_left_out;
    } *items;
    size_t count;
};
/* Adds a file: the copy of a file of `size` bytes. Takes patch->text, also after a failure. */
vkn_status write_add(struct write_files *files, const char *name, struct write_patch *patch,
                     size_t size);
/* Adds the name of a file that is left out. */
vkn_status write_leave_out(struct write_files *files, const char *name);

/* Checks that a file still has the frame of a new camera: VKN_BAD_INPUT "FILE: LIST[3]: ...". */
vkn_status write_check_frame(const char *file, const char *list, uint32_t frame, size_t count);

#endif
