/* Draws cameras from three sides. */
#include <math.h>
#include <string.h>

#include "report/camera_panels.h"
#include "report/chart.h"
#include "report/page.h"
#include "scene/scene.h"

#define FRUSTUM      0.055 /* length, as a share of a panel's side */
#define MANY_CAMERAS 100.0 /* more cameras are drawn smaller */
#define MARGIN       1.12

static const char *const axis_names[3] = {"x", "y", "z"};

/* ---- geometry -------------------------------------------------------------------------------- */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double result[3])
{
    result[0] = a[1] * b[2] - a[2] * b[1];
    result[1] = a[2] * b[0] - a[0] * b[2];
    result[2] = a[0] * b[1] - a[1] * b[0];
}

static void copy(const double from[3], double to[3], double sign)
{
    for (int i = 0; i < 3; i++)
        to[i] = sign * from[i];
}

void panels_include(double low[3], double high[3], const double point[3])
{
    for (int i = 0; i < 3; i++) {
        low[i] = fmin(low[i], point[i]);
        high[i] = fmax(high[i], point[i]);
    }
}

/* Sets the panels' directions. `right`: the dataset's x made perpendicular to up, or its y where up
 * is close to x. */
static void set_directions(struct camera_panels *panels, const double up[3])
{
    double right[3] = {0}, back[3];
    int axis = fabs(up[0]) < 0.9 ? 0 : 1;
    for (int i = 0; i < 3; i++)
        right[i] = (i == axis ? 1 : 0) - up[axis] * up[i];
    double length = sqrt(dot(right, right));
    for (int i = 0; i < 3; i++)
        right[i] /= length;
    cross(right, up, back); /* towards the reader of the front panel */
    static const char *const names[3] = {"from above", "from the front", "from the right"};
    for (int i = 0; i < 3; i++) {
        struct camera_panel *panel = &panels->panels[i];
        panel->name = names[i];
        copy(i == 2 ? back : right, panel->right, i == 2 ? -1 : 1);
        copy(i == 0 ? back : up, panel->up, i == 0 ? -1 : 1);
    }
}

void panels_fit(struct camera_panels *panels, const double up[3], const double low[3],
                const double high[3], size_t views)
{
    set_directions(panels, up);
    /* Where up is not an axis, panels show half of the box's diagonal in every direction. */
    double squared = 0, reach = 0;
    bool is_aligned = true;
    for (int i = 0; i < 3; i++) {
        panels->center[i] = 0.5 * (low[i] + high[i]);
        reach = fmax(reach, 0.5 * (high[i] - low[i]));
        squared += pow(0.5 * (high[i] - low[i]), 2);
        is_aligned = is_aligned && (fabs(up[i]) < 1e-6 || fabs(up[i]) > 0.999);
    }
    panels->reach = MARGIN * (is_aligned ? reach : sqrt(squared)) / (1 - FRUSTUM);
    double shrink = sqrt(MANY_CAMERAS / (double)views);
    panels->frustum_length = 2 * FRUSTUM * panels->reach * fmin(1, fmax(0.5, shrink));
}

void panels_project(const struct camera_panels *panels, const struct camera_panel *panel,
                    const double point[3], double at[2])
{
    double offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = point[i] - panels->center[i];
    double scale = 0.5 * PANELS_SIDE / panels->reach;
    at[0] = 0.5 * PANELS_SIDE + scale * dot(offset, panel->right);
    at[1] = 0.5 * PANELS_SIDE - scale * dot(offset, panel->up);
}

void panels_frustum(const struct camera_panels *panels, const struct scene_camera *camera,
                    double points[PANELS_POINTS][3])
{
    /* Panoramas are drawn with a frustum of 90 degrees around their centre. */
    static const double corners[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    static const double panorama[4][2] = {
        {0.375, 0.25}, {0.625, 0.25}, {0.625, 0.75}, {0.375, 0.75}};
    const double(*shares)[2] = scene_is_panoramic(camera->lens) ? panorama : corners;
    double length = panels->frustum_length;
    for (int corner = 0; corner < 4; corner++) {
        double direction[3], forward = 0;
        scene_camera_ray(camera, shares[corner][0] * camera->width,
                         shares[corner][1] * camera->height, points[0], direction);
        for (int i = 0; i < 3; i++)
            forward -= direction[i] * (double)camera->pose[4 * i + 2];
        /* Frusta of perspective lenses have equal heights, frusta of other lenses equal sides. */
        double along = scene_is_perspective(camera->lens) ? length / fmax(forward, 0.3) : length;
        for (int i = 0; i < 3; i++)
            points[1 + corner][i] = points[0][i] + along * direction[i];
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

void panels_label(struct base_text *svg, double x, double y, const char *attributes,
                  const char *text)
{
    base_text_add(svg, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    page_text(svg, text);
    base_text_add(svg, "</text>\n");
}

void panels_add_line(const struct camera_panels *panels, const struct camera_panel *panel,
                     const double from[3], const double to[3])
{
    double a[2], b[2];
    panels_project(panels, panel, from, a);
    panels_project(panels, panel, to, b);
    base_text_add(panels->svg, "M%.1f %.1fL%.1f %.1f", a[0], a[1], b[0], b[1]);
}

void panels_add_frustum(const struct camera_panels *panels, const struct camera_panel *panel,
                        const double points[PANELS_POINTS][3])
{
    for (int corner = 0; corner < 4; corner++) {
        panels_add_line(panels, panel, points[0], points[1 + corner]);
        panels_add_line(panels, panel, points[1 + corner], points[1 + (corner + 1) % 4]);
    }
    double at[2];
    panels_project(panels, panel, points[0], at);
    base_text_add(panels->svg, "M%.1f %.1fm-1.6 0h3.2m-1.6 -1.6v3.2", at[0], at[1]);
}

void panels_draw_cube(const struct camera_panels *panels, const struct camera_panel *panel,
                      double side, const char *css_class)
{
    base_text_add(panels->svg, "<path class=\"%s\" d=\"", css_class);
    for (unsigned corner = 0; corner < 8; corner++) {
        for (unsigned axis = 0; axis < 3; axis++) {
            double from[3], to[3];
            if ((corner >> axis & 1) != 0)
                continue;
            for (unsigned i = 0; i < 3; i++) {
                from[i] = 0.5 + ((corner >> i & 1) != 0 ? 0.5 : -0.5) * side;
                to[i] = i == axis ? 0.5 + 0.5 * side : from[i];
            }
            panels_add_line(panels, panel, from, to);
        }
    }
    base_text_add(panels->svg, "\"/>\n");
}

/* Draws the dataset's axes in the panel's corner, except axes that point at the reader. */
static void draw_axes(const struct camera_panels *panels, const struct camera_panel *panel)
{
    double x = 50, y = PANELS_SIDE - 50;
    for (int axis = 0; axis < 3; axis++) {
        double right = panel->right[axis], up = panel->up[axis];
        if (hypot(right, up) < 0.15)
            continue;
        base_text_add(panels->svg, "<path class=\"axis %s\" d=\"M%.1f %.1fl%.1f %.1f\"/>\n",
                      axis_names[axis], x, y, 22 * right, -22 * up);
        char attributes[64];
        snprintf(attributes, sizeof(attributes), "class=\"axis small middle %s\"",
                 axis_names[axis]);
        panels_label(panels->svg, x + 30 * right, y - 30 * up + 4, attributes, axis_names[axis]);
    }
}

/* Draws a scale bar of a round length in dataset units at the lower right. */
static void draw_scale(const struct camera_panels *panels)
{
    double most = 0.5 * panels->reach / panels->scale;
    if (!(most > 0 && isfinite(most)))
        return;
    double length = ticks_round_down(most);
    double width = length * panels->scale * 0.5 * PANELS_SIDE / panels->reach;
    double right = PANELS_SIDE - 14, y = PANELS_SIDE - 14;
    base_text_add(panels->svg,
                  "<path class=\"frame\" stroke-width=\"1.5\" d=\"M%.1f %.1fv-6v3h%.1fv-3v6\"/>\n",
                  right - width, y + 3, width);
    char text[64];
    snprintf(text, sizeof(text), "%g in the dataset's units", length);
    panels_label(panels->svg, right, y - 8, "class=\"small end\"", text);
}

void panels_open(const struct camera_panels *panels, const char *attributes)
{
    base_text_add(panels->svg, "<svg %s>\n", attributes);
}

void panels_close(const struct camera_panels *panels, const struct camera_panel *panel)
{
    base_text_add(panels->svg,
                  "<rect class=\"frame\" x=\"0.5\" y=\"0.5\" width=\"%.0f\" height=\"%.0f\"/>\n",
                  PANELS_SIDE - 1, PANELS_SIDE - 1);
    draw_axes(panels, panel);
    draw_scale(panels);
    panels_label(panels->svg, 10, 20, "class=\"name\"", panel->name);
    base_text_add(panels->svg, "</svg>\n");
}
