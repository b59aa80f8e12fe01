/* vknerf/prepare.h: from photographs or a video to a scene: pictures, their masks, where each was
 * taken from. ffmpeg and COLMAP do the work, programs of their own that have to be in PATH. */
#ifndef VKNERF_PREPARE_H
#define VKNERF_PREPARE_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* Of vkn_prepare. */
struct vkn_prepare_params {
    size_t size;
    const struct vkn_job *job; /* NULL: all defaults; no device is used */
    const char *pictures;      /* folder of photographs, or a video */
    const char *out; /* folder of the scene; what an interrupted call left there is gone on with */
    bool overwrite;  /* what other pictures were prepared there before is lost */
    const char *masks; /* folder of masks, bright where pixels count, named as docs/scenes.md says;
                          NULL: `masks` in the folder of the photographs, or beside it when that is
                          `images` */
    uint32_t frames;   /* to take of a video; 0: 150 */
    bool sharpest; /* of as many windows of the video the sharpest frame each, instead of the middle
                      one */
    bool equirectangular; /* pictures show everything around, 2:1: each becomes eight views of 90
                             degrees */
    enum vkn_matcher matcher; /* AUTO: exhaustive up to 200 photographs, else sequential */
    enum vkn_camera_model camera_model; /* AUTO: OPENCV where one camera took all pictures, else
                                           SIMPLE_RADIAL */
};

/* What vkn_prepare has made. */
struct vkn_prepare_result {
    size_t size;
    size_t pictures;   /* of the scene */
    size_t registered; /* of these, whose poses were found */
    size_t points;     /* of the sparse model */
    size_t models;     /* that COLMAP made; the scene has the one with the most pictures */
    double seconds;    /* that this call took */
};

/* Makes `out`/images, images_2 and so on, masks and sparse/0 (docs/prepare.md), with progress on
 * standard error. What an earlier call of the same pictures has finished is not done again.
 * VKN_BAD_INPUT: a picture or the video cannot be used, `out` holds something else, or poses were
 * found for fewer than three pictures. VKN_ERROR: ffmpeg or COLMAP is not there (the message names
 * the package) or fails (the message has its last words). VKN_INTERRUPTED: call again to go on. */
VKN_API vkn_status vkn_prepare(const struct vkn_prepare_params *params,
                               struct vkn_prepare_result *result);

VKN_END_DECLARATIONS

#endif
