/* Inside of the scene room: photo-consistency, whether the sparse points have the colours of the
 * pictures that they are projected to. Where a view's pose belongs to its picture they have, up to
 * exposure, and far more so than under the poses of other views; what the poses are wrong by does
 * not matter. */
#ifndef SCENE_PHOTO_CONSISTENCY_H
#define SCENE_PHOTO_CONSISTENCY_H

#include "scene/scene.h"

/* A point in a view's picture. */
struct consistency_point {
    float x, y;         /* in the picture, from 0 to 1 */
    float color[3];     /* the point's own, sRGB, 0..255 */
    double position[3]; /* training space */
};

struct consistency_points {
    struct consistency_point *list;
    size_t count;
    size_t outside; /* tracked points that the view does not have in its picture */
};

/* A view with a small picture, and what it sees of the sparse model. */
struct consistency_sampled_view {
    enum scene_split_name split;
    size_t index;
    const struct scene_camera *camera;
    double limit;           /* of its lens (scene_camera_limit) */
    uint32_t width, height; /* of `pixels` */
    uint32_t *pixels;       /* like those of scene_split; NULL: the picture cannot be read */
    struct consistency_points tracked; /* points that the model's tracks say this view sees */
    struct consistency_points nearest; /* the nearest point in each part of the picture */
};

/* A sample of views of all splits, evenly spread. As many as decoding takes a few seconds for:
 * pictures that the scene holds in memory cost nothing, and a copy in a folder images_N is read
 * instead of a large picture. */
struct consistency_sample {
    struct consistency_sampled_view *sampled_views;
    size_t count;
    size_t views; /* of all splits */
};
/* A picture that cannot be read is left out; only too little memory is an error. */
vkn_status consistency_sample_read(const struct vkn_scene *scene,
                                   struct consistency_sample *sample);
void consistency_sample_free(struct consistency_sample *sample);
/* A copy of an image that is `factor` times smaller: in a folder images_N beside the folder images
 * that it is in, with another extension as well. Fresh memory; NULL where there is none, or no
 * memory. */
char *consistency_find_copy(const char *image_path, uint32_t factor);

/* The correlation, from -1 to 1, of the points' colours with the picture's where they are, each
 * channel about its mean: exposure, by a factor or an offset, does not change it. The picture is
 * moved right by `shift` of its width, and what leaves it comes in on the left. *count: the points
 * compared; pixels that are transparent or do not count are left out. 0 where either side is of one
 * colour. */
double consistency_correlation(const struct consistency_sampled_view *sampled,
                               const struct consistency_points *points, double shift,
                               size_t *count);

/* How well a view's pose fits its picture. */
struct consistency_fit {
    size_t points;    /* compared; 0: too few, or of one colour, and nothing else is known */
    double agreement; /* their correlation with the picture, times the share of the tracked points
                         in the picture */
    double others;    /* the median of that under the poses of other views */
    double fit;   /* (agreement - others) / (1 - others): 1 is perfect, 0 no better than any other
                     pose */
    double error; /* standard error of `fit` */
};

struct consistency_view {
    enum scene_split_name split;
    size_t index;
    struct consistency_fit tracked, nearest; /* of either kind of points */
    bool blind;                              /* the view sees hardly any of the points */
    bool poor;                               /* the pose does not fit */
};

enum consistency_verdict {
    CONSISTENCY_UNKNOWN, /* cannot be checked: `reason` */
    CONSISTENCY_GOOD,
    CONSISTENCY_SOME_WRONG, /* the poses of some views do not fit */
    CONSISTENCY_MOST_WRONG, /* those of most do not */
    CONSISTENCY_BLIND,      /* most views see hardly any of the points */
    CONSISTENCY_FOLDED, /* tracked points fit, but the nearest in view do not: parts of the model
                           lie over others */
};

struct consistency {
    enum consistency_verdict verdict;
    const char *reason; /* why it cannot be checked; static */
    struct consistency_view *views;
    size_t count; /* of `views`: the sample's pictures that could be read */
    size_t sampled, total;
    size_t scored;  /* of these, views with enough points */
    size_t poor;    /* of these, views that do not fit */
    size_t blind;   /* views that see hardly any of the points */
    bool tracked;   /* the model has tracks, whose points decide */
    double fit;     /* median over the views, of tracked points where there are tracks, else of the
                       nearest */
    double nearest; /* median over the views, of the nearest points */
};
/* For consistency_free, after a failure too. VKN_ERROR: out of memory. */
vkn_status consistency_measure(const struct vkn_scene *scene, struct consistency *consistency);
void consistency_free(struct consistency *consistency);
/* From the views' fits: which are poor, and what that means for the capture. */
vkn_status consistency_judge(struct consistency *consistency);
/* The fit that a view's verdict is by. */
const struct consistency_fit *consistency_deciding_fit(const struct consistency *consistency,
                                                       const struct consistency_view *view);
/* What is wrong in words, with up to so many views' names, and what to do; NULL where nothing is
 * wrong. The caller frees *problem; *advice is static. */
vkn_status consistency_explain(const struct vkn_scene *scene, const struct consistency *consistency,
                               size_t names, char **problem, const char **advice);
/* The name of a view's image, from the scene's folder on; part of image_path. */
const char *consistency_name(const struct vkn_scene *scene, const struct consistency_view *view);

#endif
