/* vknerf/refine.h: refines the cameras of a scene, and judges whether they have become better. */
#ifndef VKNERF_REFINE_H
#define VKNERF_REFINE_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* Which cameras to keep. */
enum vkn_refine_verdict {
    VKN_REFINE_EQUAL,    /* the original ones: the difference is within its noise */
    VKN_REFINE_REFINED,  /* the refined ones (with `cameras`: the others) */
    VKN_REFINE_ORIGINAL, /* the original ones */
};

/* Parameters of vkn_refine. */
struct vkn_refine_params {
    size_t size;
    /* The trainings: `scene`, `config` and `job` are used, and `out` is the folder of the result.
     * scene.refine of the configuration says what is refined, by default the poses. Its limits
     * `steps` and `seconds` hold for the first training, the others take as many steps. */
    const struct vkn_train_params *train;
    /* The scene with other cameras, which are compared with those of train->scene; NULL: refines
     * the cameras of train->scene. */
    const char *cameras;
    uint32_t seeds; /* trainings with each of the two sets of cameras, at least 2; 0: 2 */
};

/* Result of vkn_refine. Arrays have an element for the original and one for the other cameras. */
struct vkn_refine_result {
    size_t size;
    enum vkn_refine_verdict verdict; /* which cameras to keep */
    double psnr[2], ssim[2];         /* means over test views and seeds; PSNR in dB */
    double difference;               /* psnr[1] - psnr[0] */
    double noise;   /* standard error of the difference, between seeds or views, the larger; dB */
    double pixels;  /* mean movement of the views that were not rolled back, in pixels of the
                       training images, see docs/cameras.md; NaN with `cameras` */
    size_t views;   /* refined views; with `cameras` all views */
    size_t limited; /* views that would move further than refine.limit */
    size_t misfits; /* refined views that still do not fit the field */
    uint64_t steps; /* of each training */
    double seconds; /* wall time of this call */
    size_t rolled_back; /* limited or misfits: they keep their original poses. Needs `size` */
    double threshold;   /* smaller differences may be noise: twice `noise`, or more if there are few
                           test views; dB. Needs `size` */
};

/* Refines the cameras of all views, test views included, in a training of all views. Then trains
 * from the start with the original cameras and with the refined ones, both fixed, with each seed,
 * and compares the PSNR of the test views: refined test views have moved along with the training
 * views. Writes into `out` the scene with the refined cameras, in the format of the original, which
 * is never changed and whose images it links to; verdict.json; report.html; and the trainings, in
 * `out`/refine. A view that would move further than refine.limit, or does not fit the field, keeps
 * its original pose. The same call continues after VKN_INTERRUPTED. VKN_BAD_INPUT: the scene has
 * fewer than two views, no view has moved or all would keep their poses, `out` has other content or
 * comes from other settings, the scene has changed since the call that began, or the scenes have
 * different images. */
VKN_API vkn_status vkn_refine(const struct vkn_refine_params *params,
                              struct vkn_refine_result *result);
/* Returns the content of verdict.json in `out`, in memory that the caller frees; NULL, with an
 * error, if it cannot be read. */
VKN_API char *vkn_refine_json(const char *out);

VKN_END_DECLARATIONS

#endif
