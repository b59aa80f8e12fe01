/* Inside of the scene room: what looking a scene over finds, see scene.h. */
#ifndef SCENE_INSPECT_H
#define SCENE_INSPECT_H

#include "scene/photo_consistency.h"
#include "scene/lens.h"

/* A finding and what to do about it: one line each, fresh memory. */
struct inspect_problem {
    char *problem, *advice;
};

/* Views of all splits that have the same size, or a range of values over all views. */
struct inspect_size {
    uint32_t width, height;
    size_t views;
};
struct inspect_range {
    double low, high;
};

/* Positions are in training space. Where there is nothing to measure, numbers are 0. */
struct inspection {
    const struct vkn_scene *scene;
    const struct scene_findings *findings;
    double near;                /* rays start this far from the camera */
    size_t views;               /* of all splits */
    struct inspect_size *sizes; /* most frequent first */
    size_t size_count;
    struct inspect_range focal_x, focal_y; /* pixels */
    struct inspect_range fov_x, fov_y;     /* degrees, through the image's middle */
    size_t pinhole, lenses[SCENE_LENSES];  /* views by their lens: perspective ones without
                                            distortion; the others by kind */
    struct inspect_range box[3];           /* of the camera positions */
    double spread[3]; /* standard deviations of the training cameras' positions along their
                         principal axes, largest first */
    bool has_focus;
    double focus[3];    /* what the training cameras look at, when they do */
    double distance;    /* mean, of the training cameras from there */
    double from_origin; /* of the cube's middle from the dataset's origin, dataset units */
    double inside;      /* share of the training views' rays that meet the cube */
    struct inspect_range point_box[3]; /* of all but the outermost 2 % of the points on each side */
    double points_inside;              /* share of the points that the cube holds */
    double points_near; /* share of the points in front of a training camera nearer than `near` */
    size_t masked;      /* views with a mask */
    size_t blind;       /* of those, views that it hides completely */
    double hidden;      /* mean share of a masked view that its mask hides */
    struct consistency consistency; /* of poses and pictures */
    struct inspect_problem *problems;
    size_t problem_count;
};

/* Appends what is wrong; all else has been measured (problems.c). */
vkn_status inspect_problems(struct inspection *inspection);
__attribute__((format(printf, 3, 4))) vkn_status inspect_add_problem(struct inspection *inspection,
                                                                     const char *advice,
                                                                     const char *format, ...);
/* Pictures beside those of the views that no view uses (unposed.c). */
vkn_status inspect_unposed(struct inspection *inspection);
/* Views whose poses do not fit their pictures. */
vkn_status inspect_consistency(struct inspection *inspection);

/* View number `index` of all splits, in their order. *split may be NULL. */
const struct scene_camera *inspect_view(const struct vkn_scene *scene, size_t index,
                                        enum scene_split_name *split);

#endif
