/* Declares the readers of scene formats (internal to the module scene). VKN_SCENE_FORMATS
 * (vknerf/choices.h) lists the formats; each reader is in a file of its own. */
#ifndef SCENE_READER_H
#define SCENE_READER_H

#include "scene/transforms.h"

/* The reader of one scene format. */
struct scene_reader {
    /* Files that identify a folder of the format, for messages: "poses_bounds.npy". */
    const char *looked_for;
    /* Ending of the name of a file that is a scene by itself; NULL: none. */
    const char *ending;
    /* Advice for a scene without views that are held out. */
    const char *hold_out;
    /* Sets *file to the file where reading starts, NULL when there is none, and *others as
     * scene_findings.others. Both start as NULL. The caller frees them, also after a failure. */
    vkn_status (*find)(const char *folder, char **file, char **others);
    /* Reads `files` and `single` as scene_assemble expects them, with images found. The caller
     * frees the files, also after a failure. */
    vkn_status (*read)(const char *file, const struct scene_options *options,
                       struct transforms files[SCENE_SPLITS], bool *single);
    /* Adds the files with cameras, with these new cameras in them, to *copies. */
    vkn_status (*write)(const char *file, const struct write_view *views, size_t count,
                        struct write_files *copies);
};

#define SCENE_READER(enumerator, name) extern const struct scene_reader scene_reader_##name;
VKN_SCENE_FORMATS(SCENE_READER)
#undef SCENE_READER

/* Returns the reader of a format; NULL for VKN_SCENE_AUTO. */
const struct scene_reader *reader_of(enum vkn_scene_format format);

/* Implements `find` for formats that one file identifies. Sets *file to folder/name; NULL: none. */
vkn_status reader_find(const char *folder, const char *name, char **file);
/* Returns whether a text ends with `end`. */
bool reader_ends_with(const char *text, const char *end);

#endif
