/* Inside of the scene room: readers of the formats that scenes are written in. The list of them is
 * VKN_SCENE_FORMATS (vknerf/choices.h); each is in a file of its own. */
#ifndef SCENE_READER_H
#define SCENE_READER_H

#include "scene/transforms.h"

struct scene_reader {
    /* What a folder of the format has, for messages that there is none: "poses_bounds.npy". */
    const char *looked_for;
    /* How the name of a file ends that stands for a scene by itself; NULL: none does. */
    const char *ending;
    /* What to do about a scene without views that are held out. */
    const char *hold_out;
    /* The file in a folder that reading begins with, NULL when there is none; `others` are those of
     * scene_findings. Both are NULL before. The caller frees them, after a failure too. */
    vkn_status (*find)(const char *folder, char **file, char **others);
    /* Reads `files` and `single` as scene_assemble takes them, images found. The caller frees the
     * files, after a failure too. */
    vkn_status (*read)(const char *file, const struct scene_options *options,
                       struct transforms files[SCENE_SPLITS], bool *single);
};

#define SCENE_READER(enumerator, name) extern const struct scene_reader scene_reader_##name;
VKN_SCENE_FORMATS(SCENE_READER)
#undef SCENE_READER

/* NULL: of VKN_SCENE_AUTO. */
const struct scene_reader *reader_of(enum vkn_scene_format format);

/* For `find` of a format that one file tells: folder/name in fresh memory, NULL when it is not
 * there. */
vkn_status reader_find(const char *folder, const char *name, char **file);
bool reader_ends_with(const char *text, const char *end);

#endif
