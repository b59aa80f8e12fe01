/* vknerf/prepare.h: makes a scene from photographs or a video: images, masks and camera poses. Runs
 * ffmpeg and COLMAP, which must be in PATH. Keeps the poses of captures of some other programs. */
#ifndef VKNERF_PREPARE_H
#define VKNERF_PREPARE_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* Parameters of vkn_prepare. */
struct vkn_prepare_params {
    size_t size;
    const struct vkn_job *job; /* NULL: all defaults; no device is used */
    const char *pictures;      /* folder of photographs, a video, or a capture of another program:
                                  its folder or file */
    const char *out;           /* folder of the scene; an interrupted call is continued there */
    bool overwrite;            /* replaces a scene in `out` that was made from other images */
    /* Folder of masks, bright where pixels count, with the names that docs/scenes.md gives. NULL:
     * `masks` in the folder of the photographs, or next to that folder if it is called `images`. */
    const char *masks;
    uint32_t frames; /* number of frames to use of a video; 0: 150 */
    bool sharpest;   /* uses the sharpest frame of each of `frames` windows of the video, instead of
                        the middle one */
    bool equirectangular; /* the images are 2:1 panoramas: each becomes eight views of 90 degrees */
    enum vkn_matcher matcher; /* AUTO: exhaustive up to 200 photographs, else sequential */
    enum vkn_camera_model camera_model; /* AUTO: OPENCV if one camera took all images, else
                                           SIMPLE_RADIAL */
    /* Metres of a unit of the capture of another program, for its transforms.json; 0: 1 if the
     * program's units are metres, else unknown. Needs `size`. */
    double unit_length;
};

/* Result of vkn_prepare. */
struct vkn_prepare_result {
    size_t size;
    size_t pictures;   /* images of the scene */
    size_t registered; /* images whose poses were found */
    size_t points;     /* points of the sparse model or the capture */
    size_t models;     /* models that COLMAP made; the scene has the one with most images */
    double seconds;    /* wall time of this call */
};

/* Writes `out`/images, images_2 and so on, masks and sparse/0 (docs/prepare.md), with progress on
 * standard error. A capture of another program has transforms.json instead of sparse/0. Stages that
 * an earlier call with the same images completed are skipped. VKN_BAD_INPUT: an image or the video
 * cannot be used, `out` holds something else, or poses were found for fewer than three images.
 * VKN_ERROR: ffmpeg or COLMAP is missing (the message names the package) or fails (the message has
 * its last output). VKN_INTERRUPTED: call again to continue. */
VKN_API vkn_status vkn_prepare(const struct vkn_prepare_params *params,
                               struct vkn_prepare_result *result);

VKN_END_DECLARATIONS

#endif
