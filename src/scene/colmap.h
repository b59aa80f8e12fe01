/* Reads COLMAP's sparse models: the files cameras, images and points3D (.bin or .txt; the format is
 * described in COLMAP's documentation, "Output Format"). Internal to the module scene. */
#ifndef SCENE_COLMAP_H
#define SCENE_COLMAP_H

#include "scene/transforms.h"

/* Bytes of a file: from `begin` to before `end`. */
struct colmap_span {
    size_t begin, end;
};

/* A camera of cameras.bin or cameras.txt. */
struct colmap_camera {
    uint32_t id;
    size_t line; /* line of the text file; 0: binary */
    struct transforms_lens lens;
    bool is_new; /* set by the writer: the lens is not the file's */
    const struct lens_model *model;
    struct colmap_span name, parameters; /* bytes of the model's number or name and parameters */
};

/* An image of images.bin or images.txt, with its pose. */
struct colmap_image {
    uint32_t id, camera_id;
    size_t line;             /* line of the text file; 0: binary */
    double rotation[4];      /* quaternion w x y z, world to camera (x right, y down, z forward) */
    double translation[3];   /* world to camera */
    char *name;              /* owned */
    struct colmap_span pose; /* of the rotation and the translation */
    struct colmap_span points2d; /* of the list of 2D points */
    size_t point2d_count;
};

/* An element of a point's track. */
struct colmap_observation {
    uint32_t image;   /* id */
    uint32_t point2d; /* index in the image's list of 2D points */
};

/* A sparse model as its files describe it. The caller sets it to zeros, calls a parser for each of
 * the three files, and calls colmap_free, also after a failure. */
struct colmap {
    struct colmap_camera *cameras;
    size_t camera_count;
    struct colmap_image *images;
    size_t image_count;
    struct transforms_point *points;
    struct colmap_point {
        struct colmap_span position, error;
    } *point_spans; /* [point] */
    size_t point_count;
    uint64_t *track_ends;             /* [point]: index in `track` after the point's last element */
    struct colmap_observation *track; /* the tracks of all points, point after point */
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

/* Read the positions of an image's 2D points, in pixels, from the images file. */
typedef void colmap_points2d(const char *data, const struct colmap_image *image,
                             double (*points)[2]);
colmap_points2d colmap_binary_points2d, colmap_text_points2d;

/* Return VKN_BAD_INPUT when two cameras or images have the same id. The parsers call these. */
vkn_status colmap_check_cameras(const char *file, const struct colmap *model);
vkn_status colmap_check_images(const char *file, const struct colmap *model);

/* Returns the camera with an id of cameras that are sorted by ids; NULL: there is none. */
struct colmap_camera *colmap_find_camera(const struct colmap *model, uint32_t id);
/* Makes frames from cameras, which it sorts by ids, and images without searching image files.
 * `file`: the images' file. */
vkn_status colmap_frames(const char *file, struct colmap *model, struct transforms *transforms);
/* Copies the points, and sets each frame's depth bounds and tracked points from the tracks.
 * frame->index must still be the image's index in the model; frames may have been dropped. */
vkn_status colmap_points(struct colmap *model, struct transforms *transforms);

/* Image ids of a model and their frames. */
struct colmap_id {
    uint32_t id;
    size_t frame;
};
/* Returns the image ids of the frames that were not dropped, sorted, in fresh memory. */
struct colmap_id *colmap_list_ids(const struct colmap *model, const struct transforms *transforms);
/* Returns the frame of an image id; NULL: there is none, or it was dropped. */
struct transforms_frame *colmap_find_frame(const struct colmap_id *ids,
                                           const struct transforms *transforms, uint32_t id);

/* The three files of a model. All are binary or all are text; points may be absent. */
struct colmap_files {
    bool binary;
    char *cameras, *images, *points;
};
/* Names the files of the model whose cameras file is `cameras`. The caller calls colmap_free_files,
 * also after a failure. */
vkn_status colmap_name_files(const char *cameras, struct colmap_files *files);
void colmap_free_files(struct colmap_files *files);
/* Reads the bytes of a file of a model for its parser; the caller frees *data. */
vkn_status colmap_read_file(const char *file, char **data, size_t *size);

/* Implements scene_reader.write. */
vkn_status colmap_write(const char *cameras, const struct write_view *views, size_t count,
                        struct write_files *copies);

/* Finds the model to read: cameras.bin or cameras.txt in the folder or in the subfolders that
 * COLMAP, instant-ngp and nerfstudio use; NULL when there is none. Of several models (sparse/0,
 * sparse/1, ...) the one with the most images is chosen, and *others describes the choice; else
 * *others is NULL. The caller frees *cameras and *others, also after a failure. */
vkn_status colmap_find(const char *folder, char **cameras, char **others);
/* Counts the images of the model whose cameras file is `cameras`. */
vkn_status colmap_count_images(const char *cameras, size_t *count);

#endif
