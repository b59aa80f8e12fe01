/* Declares the measurements and problems of a scene (internal to the module scene; see scene.h). */
#ifndef SCENE_INSPECT_H
#define SCENE_INSPECT_H

#include "scene/photo_consistency.h"
#include "scene/lens.h"

/* A problem and what to do about it: one line each, owned. */
struct inspect_problem {
    char *problem, *advice;
};

/* The number of views, over all splits, that have the same size. */
struct inspect_size {
    uint32_t width, height;
    size_t views;
};
/* A range of values over all views. */
struct inspect_range {
    double low, high;
};

/* The result of inspect_scene. Positions are in training space. Values that are unknown are 0. */
struct inspection {
    const struct vkn_scene *scene;
    const struct scene_findings *findings;
    double near;                /* distance from the camera at which rays start */
    size_t views;               /* number of views of all splits */
    struct inspect_size *sizes; /* most frequent first */
    size_t size_count;
    struct inspect_range focal_x, focal_y; /* pixels */
    struct inspect_range fov_x, fov_y;     /* degrees, through the centre of the image */
    /* Numbers of views with an undistorted perspective lens, and of all others by kind of lens. */
    size_t pinhole_views, lens_views[SCENE_LENSES];
    struct inspect_range box[3]; /* bounding box of the camera positions */
    double spread[3]; /* standard deviations of the training cameras' positions along their
                         principal axes, largest first */
    bool has_focus;
    double focus[3];    /* focus point of the training cameras, if has_focus */
    double distance;    /* mean distance of the training cameras from the focus point */
    double from_origin; /* distance of the cube's centre from the dataset's origin, dataset units */
    double rays_inside; /* fraction of the training views' rays that hit the cube */
    struct inspect_range point_box[3]; /* without the outermost 2 % of the points on each side */
    double points_inside;              /* fraction of the points inside the cube */
    double points_near;  /* fraction of the points that are nearer than `near` to a training camera
                            that sees them */
    size_t masked_views; /* views with a mask */
    size_t unused_views; /* masked views without a used pixel */
    double mean_hidden;  /* mean fraction of a masked view that is hidden */
    struct consistency consistency; /* how well poses fit the images */
    struct inspect_problem *problems;
    size_t problem_count;
};

/* Appends the scene's problems to the inspection; all other fields must be set (problems.c). */
vkn_status inspect_problems(struct inspection *inspection);
/* Appends one problem. */
__attribute__((format(__printf__, 3, 4))) vkn_status
inspect_add_problem(struct inspection *inspection, const char *advice, const char *format, ...);
/* Reports images in the views' folders that no view uses (unposed.c). */
vkn_status inspect_unposed(struct inspection *inspection);
/* Reports views whose poses do not fit their images. */
vkn_status inspect_consistency(struct inspection *inspection);

/* Returns a view by its index over all splits, in the order of the splits. split may be NULL. */
const struct scene_camera *inspect_view(const struct vkn_scene *scene, size_t index,
                                        enum scene_split_name *split);

#endif
