/* Draws cameras from above, from the front and from the right: three square SVG panels. */
#ifndef REPORT_CAMERA_PANELS_H
#define REPORT_CAMERA_PANELS_H

#include "base/base.h"

struct scene_camera; /* scene.h */

#define PANELS_SIDE 400.0 /* of a panel, user units: about one pixel each */

struct camera_panel {
    const char *name;
    double right[3], up[3]; /* directions in training space that point right and up */
};

struct camera_panels {
    struct camera_panel panels[3];
    double center[3], reach; /* panels show `center` +- reach, training units */
    double frustum_length;   /* length of a drawn camera, training units */
    double scale;            /* training units per unit of the dataset; 0: no scale bar */
    struct base_text *svg;
};

/* The position of a camera, and the corners of its drawn frustum, in training space. */
#define PANELS_POINTS 5

/* Extends the box [low, high] by a point. */
void panels_include(double low[3], double high[3], const double point[3]);
/* Sets directions and range, for `views` cameras in the box [low, high]; `up` has unit length. */
void panels_fit(struct camera_panels *panels, const double up[3], const double low[3],
                const double high[3], size_t views);
/* Projects a point to a position in the panel, user units. */
void panels_project(const struct camera_panels *panels, const struct camera_panel *panel,
                    const double point[3], double at[2]);
/* Computes the points of a camera's frustum. */
void panels_frustum(const struct camera_panels *panels, const struct scene_camera *camera,
                    double points[PANELS_POINTS][3]);

/* Begins a panel: an <svg> with these attributes (not escaped). */
void panels_open(const struct camera_panels *panels, const char *attributes);
/* Ends a panel with its frame, the dataset's axes, the scale bar and its name. */
void panels_close(const struct camera_panels *panels, const struct camera_panel *panel);
/* Adds a line, or a camera's frustum with a cross at its position, to the data of a path. */
void panels_add_line(const struct camera_panels *panels, const struct camera_panel *panel,
                     const double from[3], const double to[3]);
void panels_add_frustum(const struct camera_panels *panels, const struct camera_panel *panel,
                        const double points[PANELS_POINTS][3]);
/* Draws the edges of the cube with side `side` around the centre of training space. */
void panels_draw_cube(const struct camera_panels *panels, const struct camera_panel *panel,
                      double side, const char *css_class);
/* Adds a text; `attributes` are not escaped. */
void panels_label(struct base_text *svg, double x, double y, const char *attributes,
                  const char *text);

#endif
