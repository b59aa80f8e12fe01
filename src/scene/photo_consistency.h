/* Measures photo-consistency: whether the colours of the sparse points agree with the images at the
 * points' projections (internal to the module scene). When a view's pose belongs to its image the
 * colours agree up to exposure, and far better than under the poses of other views. The test is
 * independent of the cause of a wrong pose. */
#ifndef SCENE_PHOTO_CONSISTENCY_H
#define SCENE_PHOTO_CONSISTENCY_H

#include "scene/scene.h"

/* A sparse point that is projected into a view's image. */
struct consistency_point {
    float x, y;         /* image position, from 0 to 1 */
    float color[3];     /* of the point, sRGB, 0..255 */
    double position[3]; /* training space */
};

/* The points of a view. */
struct consistency_points {
    struct consistency_point *list;
    size_t count;
    size_t outside; /* number of tracked points that project outside of the image */
};

/* A view of the sample: a small image, and the projections of sparse points. */
struct consistency_sampled_view {
    enum scene_split_name split;
    size_t index;
    const struct scene_camera *camera;
    double limit;           /* scene_camera_limit(camera) */
    uint32_t width, height; /* of `pixels` */
    uint32_t *pixels; /* [height][width], like scene_split.pixels; NULL: the image cannot be read */
    struct consistency_points tracked; /* points whose tracks list this view */
    struct consistency_points nearest; /* the nearest point in each cell of the image */
};

/* A sample of views, evenly spaced over all splits. The number of views is limited so that
 * decoding takes a few seconds. Images in memory need no decoding, and copies in a folder images_N
 * are read instead of large images. */
struct consistency_sample {
    struct consistency_sampled_view *sampled_views;
    size_t count;
    size_t views; /* number of views in all splits */
};
/* Reads a sample. A view without a readable image has no pixels; VKN_ERROR: out of memory. */
vkn_status consistency_sample_read(const struct vkn_scene *scene,
                                   struct consistency_sample *sample);
/* Frees what the sample owns. */
void consistency_sample_free(struct consistency_sample *sample);
/* Finds a copy, `factor` times smaller, of an image in the folder images or images_M: in the folder
 * images_N beside it, with any extension. The caller frees the path; NULL: none, or no memory. */
char *consistency_find_copy(const char *image_path, uint32_t factor);

/* Returns the correlation, from -1 to 1, between the points' colours and the image's at the
 * projections, each channel about its mean; it is independent of gain and offset of the exposure.
 * The image is shifted to the right, cyclically, by `shift` of its width. *count: number of
 * compared points; transparent and ignored pixels are left out. Returns 0 when the points or the
 * pixels have a single colour. */
double consistency_correlation(const struct consistency_sampled_view *sampled,
                               const struct consistency_points *points, double shift,
                               size_t *count);

/* How well a view's pose fits its image. */
struct consistency_fit {
    size_t points; /* number of compared points; 0 (too few, or of one colour): all fields are 0 */
    double agreement; /* correlation times the fraction of tracked points in the image */
    double others;    /* median agreement under the poses of other views */
    double fit;   /* (agreement - others) / (1 - others): 1 is perfect, 0 no better than others */
    double error; /* standard error of `fit` */
};

/* The result of a view. */
struct consistency_view {
    enum scene_split_name split;
    size_t index;
    struct consistency_fit tracked, nearest; /* fits by the tracked and by the nearest points */
    bool is_blind;                           /* the view sees hardly any of the points */
    bool is_poor;                            /* the pose does not fit */
};

/* The result of a capture. */
enum consistency_verdict {
    CONSISTENCY_UNKNOWN, /* cannot be checked; `reason` says why */
    CONSISTENCY_GOOD,
    CONSISTENCY_SOME_WRONG, /* the poses of some views do not fit */
    CONSISTENCY_MOST_WRONG, /* the poses of most views do not fit */
    CONSISTENCY_BLIND,      /* most views see hardly any of the points */
    CONSISTENCY_FOLDED, /* tracked points fit, but the nearest visible points do not: parts of the
                           model overlap */
};

/* The photo-consistency of a capture. */
struct consistency {
    enum consistency_verdict verdict;
    const char *reason; /* why poses cannot be checked; static */
    struct consistency_view *views;
    size_t count;          /* length of `views`: views of the sample whose images could be read */
    size_t sampled, total; /* numbers of views in the sample and in the scene */
    size_t scored_views;   /* views with enough points */
    size_t poor_views;     /* views whose pose does not fit */
    size_t blind_views;    /* views that see hardly any of the points */
    bool uses_tracks;      /* true: fits by tracked points decide; false: by the nearest points */
    double fit;            /* median over the views of the fit by the deciding kind of points */
    double nearest_fit;    /* median over the views of the fit by the nearest points */
};
/* Measures the photo-consistency of a scene. The caller frees the result with consistency_free,
 * also after a failure. VKN_ERROR: out of memory. */
vkn_status consistency_measure(const struct vkn_scene *scene, struct consistency *consistency);
/* Frees what the result owns. */
void consistency_free(struct consistency *consistency);
/* Sets the verdict and marks poor views by the views' fits. */
vkn_status consistency_judge(struct consistency *consistency);
/* Returns the view's fit by the deciding kind of points (uses_tracks). */
const struct consistency_fit *consistency_deciding_fit(const struct consistency *consistency,
                                                       const struct consistency_view *view);
/* Describes what is wrong, with the names of up to `names` views, and what to do. *problem is NULL
 * when nothing is wrong; the caller frees it. *advice is static. */
vkn_status consistency_explain(const struct vkn_scene *scene, const struct consistency *consistency,
                               size_t names, char **problem, const char **advice);
/* Returns the name of a view's image relative to the scene's folder; a part of image_path. */
const char *consistency_name(const struct vkn_scene *scene, const struct consistency_view *view);

#endif
