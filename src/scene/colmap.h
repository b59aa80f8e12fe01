/* Inside of the scene room: COLMAP's sparse models, as written in cameras, images and points3D
 * (.bin or .txt; the format is described in COLMAP's documentation, "Output Format"). */
#ifndef SCENE_COLMAP_H
#define SCENE_COLMAP_H

#include "scene/transforms.h"

struct colmap_camera {
    uint32_t id;
    size_t line; /* of the text; 0: binary */
    struct transforms_lens lens;
};

struct colmap_image {
    uint32_t id, camera_id;
    size_t line;           /* of the text; 0: binary */
    double rotation[4];    /* quaternion w x y z, world to camera (x right, y down, z forward) */
    double translation[3]; /* of the same */
    char *name;            /* owned */
};

/* A sparse model as its files have it. Zero-initialised, filled by the parsers below, one for each
 * of the three files; the caller frees it with colmap_free, after a failure too. */
struct colmap {
    struct colmap_camera *cameras;
    size_t camera_count;
    struct colmap_image *images;
    size_t image_count;
    struct transforms_point *points;
    size_t point_count;
    uint64_t *track_ends; /* of each point: where its ids end in `track` */
    uint32_t *track;      /* ids of the images that see the points, point after point */
    struct rejected_points left_out;
};
void colmap_free(struct colmap *model);

/* From the bytes of a file, of which `file` is the name for messages; data[size] is readable and 0.
 * What a file claims to hold is checked against its size before memory is taken. */
typedef vkn_status colmap_parser(const char *file, const char *data, size_t size,
                                 struct colmap *model);
colmap_parser colmap_binary_cameras, colmap_binary_images, colmap_binary_points;
colmap_parser colmap_text_cameras, colmap_text_images, colmap_text_points;

/* VKN_BAD_INPUT where two have one id; the parsers call these. */
vkn_status colmap_check_cameras(const char *file, const struct colmap *model);
vkn_status colmap_check_images(const char *file, const struct colmap *model);

/* Frames without images found, from cameras and images. `file` is that of the images. */
vkn_status colmap_frames(const char *file, struct colmap *model, struct transforms *transforms);
/* Points, and each frame's bounds from those that it sees. frame->index is still the image's place
 * in the model; frames of other images have been dropped. */
vkn_status colmap_points(struct colmap *model, struct transforms *transforms);

/* The model to read in a scene's folder, or where COLMAP, instant-ngp and nerfstudio leave models
 * in it: its cameras.bin or cameras.txt, NULL when there is none. Of several (sparse/0, sparse/1,
 * ...) the one with the most images; *others says in words which and what else there is, else it is
 * NULL. The caller frees both, after a failure too. */
vkn_status colmap_find(const char *folder, char **cameras, char **others);
/* How many images the model has that has `cameras`. */
vkn_status colmap_count_images(const char *cameras, size_t *count);

#endif
