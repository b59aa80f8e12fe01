/* Reads COLMAP's sparse models: the files cameras, images and points3D (.bin or .txt; the format is
 * described in COLMAP's documentation, "Output Format"). Internal to the module scene. */
#ifndef SCENE_COLMAP_H
#define SCENE_COLMAP_H

#include "scene/transforms.h"

/* A camera of cameras.bin or cameras.txt. */
struct colmap_camera {
    uint32_t id;
    size_t line; /* line of the text file; 0: binary */
    struct transforms_lens lens;
};

/* An image of images.bin or images.txt, with its pose. */
struct colmap_image {
    uint32_t id, camera_id;
    size_t line;           /* line of the text file; 0: binary */
    double rotation[4];    /* quaternion w x y z, world to camera (x right, y down, z forward) */
    double translation[3]; /* world to camera */
    char *name;            /* owned */
};

/* A sparse model as its files describe it. The caller sets it to zeros, calls a parser for each of
 * the three files, and calls colmap_free, also after a failure. */
struct colmap {
    struct colmap_camera *cameras;
    size_t camera_count;
    struct colmap_image *images;
    size_t image_count;
    struct transforms_point *points;
    size_t point_count;
    uint64_t *track_ends; /* [point]: index in `track` after the point's last id */
    uint32_t *track;      /* ids of the images that see each point, point after point */
    struct rejected_points left_out;
};
/* Frees what the model owns and sets it to zeros. */
void colmap_free(struct colmap *model);

/* Parses the bytes of a file; `file` is its name for messages. data[size] must be readable and 0.
 * Counts that the file claims are checked against its size before memory is allocated. */
typedef vkn_status colmap_parser(const char *file, const char *data, size_t size,
                                 struct colmap *model);
colmap_parser colmap_binary_cameras, colmap_binary_images, colmap_binary_points;
colmap_parser colmap_text_cameras, colmap_text_images, colmap_text_points;

/* Return VKN_BAD_INPUT when two cameras or images have the same id. The parsers call these. */
vkn_status colmap_check_cameras(const char *file, const struct colmap *model);
vkn_status colmap_check_images(const char *file, const struct colmap *model);

/* Makes frames from cameras and images without searching image files. `file`: the images' file. */
vkn_status colmap_frames(const char *file, struct colmap *model, struct transforms *transforms);
/* Copies the points, and sets each frame's depth bounds and tracked points from the tracks.
 * frame->index must still be the image's index in the model; frames may have been dropped. */
vkn_status colmap_points(struct colmap *model, struct transforms *transforms);

/* Finds the model to read: cameras.bin or cameras.txt in the folder or in the subfolders that
 * COLMAP, instant-ngp and nerfstudio use; NULL when there is none. Of several models (sparse/0,
 * sparse/1, ...) the one with the most images is chosen, and *others describes the choice; else
 * *others is NULL. The caller frees *cameras and *others, also after a failure. */
vkn_status colmap_find(const char *folder, char **cameras, char **others);
/* Counts the images of the model whose cameras file is `cameras`. */
vkn_status colmap_count_images(const char *cameras, size_t *count);

#endif
