/* Draws the cameras of a scene as an SVG. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "report/page.h"
#include "scene/scene.h"

/* User units, about one pixel each: three square panels in a row, a title above, a legend below. */
#define PANEL        400.0
#define GAP          20.0
#define TOP          78.0
#define WIDTH        (3 * PANEL + 4 * GAP)
#define HEIGHT       (TOP + PANEL + 92)
#define FRUSTUM      0.055 /* length, as a share of a panel's side */
#define MANY_CAMERAS 100.0 /* more cameras are drawn smaller */
#define MARGIN       1.12
#define MOST_CAMERAS 600u
#define MOST_POINTS  3000u
#define LARGER_CUBE  2.5 /* largest side of a drawn reconstructed cube / extent of the rest */

static const char *const split_colors[SCENE_SPLITS] = {"#2a78c9", "#3b9c4f", "#e07b1f"};
static const char *const axis_colors[3] = {"#c8322f", "#2f8f3a", "#2f55c8"};
static const char *const axis_names[3] = {"x", "y", "z"};

struct panel {
    const char *name;
    double right[3], up[3]; /* directions in training space that point right and up */
    double left;            /* of the panel, user units */
};

struct drawing {
    struct inspect_overview shown;
    struct panel panels[3];
    double center[3], reach; /* panels show `center` +- reach, training units */
    bool shows_region;       /* aabb_scale is above 1, and the cube of that side is shown */
    double frustum_length;   /* length of a drawn camera, training units */
    struct base_text svg;
};

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

/* Sets the panels' directions. `right`: the dataset's x made perpendicular to up, or its y where up
 * is close to x. */
static void set_directions(struct drawing *drawing)
{
    double up[3], right[3] = {0}, back[3];
    scene_up(&drawing->shown.scene->splits[SCENE_TRAIN], up);
    int axis = fabs(up[0]) < 0.9 ? 0 : 1;
    for (int i = 0; i < 3; i++)
        right[i] = (i == axis ? 1 : 0) - up[axis] * up[i];
    double length = sqrt(dot(right, right));
    for (int i = 0; i < 3; i++)
        right[i] /= length;
    cross(right, up, back); /* towards the reader of the front panel */
    static const char *const names[3] = {"from above", "from the front", "from the right"};
    for (int i = 0; i < 3; i++) {
        struct panel *panel = &drawing->panels[i];
        panel->name = names[i];
        panel->left = GAP + i * (PANEL + GAP);
        copy(i == 2 ? back : right, panel->right, i == 2 ? -1 : 1);
        copy(i == 0 ? back : up, panel->up, i == 0 ? -1 : 1);
    }
}

static void include_point(double low[3], double high[3], const double point[3])
{
    for (int i = 0; i < 3; i++) {
        low[i] = fmin(low[i], point[i]);
        high[i] = fmax(high[i], point[i]);
    }
}

static void include_cube(double low[3], double high[3], double side)
{
    const double ends[2][3] = {{0.5 - side / 2, 0.5 - side / 2, 0.5 - side / 2},
                               {0.5 + side / 2, 0.5 + side / 2, 0.5 + side / 2}};
    include_point(low, high, ends[0]);
    include_point(low, high, ends[1]);
}

/* Sets the range: cameras, focus point, unit cube, and the reconstructed cube if not too large. */
static void set_range(struct drawing *drawing)
{
    const struct inspect_overview *shown = &drawing->shown;
    double low[3], high[3], side = shown->scene->aabb_scale;
    for (int i = 0; i < 3; i++) {
        low[i] = shown->low[i];
        high[i] = shown->high[i];
    }
    include_cube(low, high, 1);
    if (shown->has_focus)
        include_point(low, high, shown->focus);
    double largest = 0;
    for (int i = 0; i < 3; i++)
        largest = fmax(largest, high[i] - low[i]);
    drawing->shows_region = side > 1 && side <= LARGER_CUBE * largest;
    if (drawing->shows_region)
        include_cube(low, high, side);
    /* Where up is not an axis, panels show half of the box's diagonal in every direction. */
    double squared = 0;
    drawing->reach = 0;
    for (int i = 0; i < 3; i++) {
        drawing->center[i] = 0.5 * (low[i] + high[i]);
        drawing->reach = fmax(drawing->reach, 0.5 * (high[i] - low[i]));
        squared += pow(0.5 * (high[i] - low[i]), 2);
    }
    bool is_aligned = true;
    for (int i = 0; i < 3; i++) {
        double share = fabs(drawing->panels[1].up[i]);
        is_aligned = is_aligned && (share < 1e-6 || share > 0.999);
    }
    drawing->reach = MARGIN * (is_aligned ? drawing->reach : sqrt(squared)) / (1 - FRUSTUM);
    double shrink = sqrt(MANY_CAMERAS / (double)shown->views);
    drawing->frustum_length = 2 * FRUSTUM * drawing->reach * fmin(1, fmax(0.5, shrink));
}

/* Projects a point to a position in a panel, user units. */
static void project(const struct drawing *drawing, const struct panel *panel, const double point[3],
                    double at[2])
{
    double offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = point[i] - drawing->center[i];
    double scale = 0.5 * PANEL / drawing->reach;
    at[0] = panel->left + 0.5 * PANEL + scale * dot(offset, panel->right);
    at[1] = TOP + 0.5 * PANEL - scale * dot(offset, panel->up);
}

/* ---- elements -------------------------------------------------------------------------------- */

static void add_label(struct drawing *drawing, double x, double y, const char *attr,
                      const char *text)
{
    base_text_add(&drawing->svg, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attr);
    page_text(&drawing->svg, text);
    base_text_add(&drawing->svg, "</text>\n");
}

static void add_line(struct drawing *drawing, const struct panel *panel, const double from[3],
                     const double to[3])
{
    double a[2], b[2];
    project(drawing, panel, from, a);
    project(drawing, panel, to, b);
    base_text_add(&drawing->svg, "M%.1f %.1fL%.1f %.1f", a[0], a[1], b[0], b[1]);
}

/* Draws the edges of the cube with side `side` around the centre of training space. */
static void draw_cube(struct drawing *drawing, const struct panel *panel, double side,
                      const char *attr)
{
    base_text_add(&drawing->svg, "<path %s d=\"", attr);
    for (unsigned corner = 0; corner < 8; corner++) {
        for (unsigned axis = 0; axis < 3; axis++) {
            double from[3], to[3];
            if ((corner >> axis & 1) != 0)
                continue;
            for (unsigned i = 0; i < 3; i++) {
                from[i] = 0.5 + ((corner >> i & 1) != 0 ? 0.5 : -0.5) * side;
                to[i] = i == axis ? 0.5 + 0.5 * side : from[i];
            }
            add_line(drawing, panel, from, to);
        }
    }
    base_text_add(&drawing->svg, "\"/>\n");
}

static void draw_points(struct drawing *drawing, const struct panel *panel)
{
    const struct scene_findings *findings = drawing->shown.findings;
    if (findings->point_count == 0)
        return;
    base_text_add(&drawing->svg, "<path class=\"point\" d=\"");
    for (size_t n = 0; n < findings->point_count; n += 1 + findings->point_count / MOST_POINTS) {
        double at[2];
        project(drawing, panel, findings->points[n], at);
        bool visible = fabs(at[0] - panel->left - 0.5 * PANEL) < 0.5 * PANEL &&
                       fabs(at[1] - TOP - 0.5 * PANEL) < 0.5 * PANEL;
        if (visible)
            base_text_add(&drawing->svg, "M%.1f %.1fh0", at[0], at[1]);
    }
    base_text_add(&drawing->svg, "\"/>\n");
}

static void draw_camera(struct drawing *drawing, const struct panel *panel,
                        const struct scene_camera *view)
{
    /* Panoramas are drawn with a frustum of 90 degrees around their centre. */
    static const double corners[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    static const double panorama[4][2] = {
        {0.375, 0.25}, {0.625, 0.25}, {0.625, 0.75}, {0.375, 0.75}};
    const double(*shares)[2] = scene_is_panoramic(view->lens) ? panorama : corners;
    double ends[4][3], at[3], middle[2], length = drawing->frustum_length;
    for (int corner = 0; corner < 4; corner++) {
        double direction[3], forward = 0;
        scene_camera_ray(view, shares[corner][0] * view->width, shares[corner][1] * view->height,
                         at, direction);
        for (int i = 0; i < 3; i++)
            forward -= direction[i] * (double)view->pose[4 * i + 2];
        /* Frusta of perspective lenses have equal heights, frusta of other lenses equal sides. */
        double along = scene_is_perspective(view->lens) ? length / fmax(forward, 0.3) : length;
        for (int i = 0; i < 3; i++)
            ends[corner][i] = at[i] + along * direction[i];
    }
    for (int corner = 0; corner < 4; corner++) {
        add_line(drawing, panel, at, ends[corner]);
        add_line(drawing, panel, ends[corner], ends[(corner + 1) % 4]);
    }
    project(drawing, panel, at, middle);
    base_text_add(&drawing->svg, "M%.1f %.1fm-1.6 0h3.2m-1.6 -1.6v3.2", middle[0], middle[1]);
}

static void draw_cameras(struct drawing *drawing, const struct panel *panel)
{
    size_t every = 1 + drawing->shown.views / MOST_CAMERAS;
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        const struct scene_split *views = &drawing->shown.scene->splits[split];
        if (views->camera_count == 0)
            continue;
        base_text_add(&drawing->svg, "<path class=\"camera\" stroke=\"%s\" d=\"",
                      split_colors[split]);
        for (size_t n = 0; n < views->camera_count; n += every)
            draw_camera(drawing, panel, &views->cameras[n]);
        base_text_add(&drawing->svg, "\"/>\n");
    }
}

/* Draws the dataset's axes in the panel's corner, except axes that point at the reader. */
static void draw_axes(struct drawing *drawing, const struct panel *panel)
{
    double x = panel->left + 50, y = TOP + PANEL - 50;
    for (int axis = 0; axis < 3; axis++) {
        double right = panel->right[axis], up = panel->up[axis];
        if (hypot(right, up) < 0.15)
            continue;
        base_text_add(&drawing->svg,
                      "<path stroke=\"%s\" stroke-width=\"2\" d=\"M%.1f %.1fl%.1f %.1f\"/>\n",
                      axis_colors[axis], x, y, 22 * right, -22 * up);
        char attr[96];
        snprintf(attr, sizeof(attr), "class=\"small middle\" style=\"fill:%s\"", axis_colors[axis]);
        add_label(drawing, x + 30 * right, y - 30 * up + 4, attr, axis_names[axis]);
    }
}

/* Draws a scale bar of a round length in dataset units at the lower right. */
static void draw_scale(struct drawing *drawing, const struct panel *panel)
{
    double scale = (double)drawing->shown.scene->scale, most = 0.5 * drawing->reach / scale;
    double unit = pow(10, floor(log10(most)));
    double length = unit * (most >= 5 * unit ? 5 : most >= 2 * unit ? 2 : 1);
    double width = length * scale * 0.5 * PANEL / drawing->reach;
    double right = panel->left + PANEL - 14, y = TOP + PANEL - 14;
    base_text_add(&drawing->svg,
                  "<path class=\"frame\" stroke-width=\"1.5\" d=\"M%.1f %.1fv-6v3h%.1fv-3v6\"/>\n",
                  right - width, y + 3, width);
    char text[64];
    snprintf(text, sizeof(text), "%g in the dataset's units", length);
    add_label(drawing, right, y - 8, "class=\"small end\"", text);
}

static void draw_focus(struct drawing *drawing, const struct panel *panel)
{
    double at[2];
    if (!drawing->shown.has_focus)
        return;
    project(drawing, panel, drawing->shown.focus, at);
    base_text_add(&drawing->svg,
                  "<path class=\"focus\" d=\"M%.1f %.1fm-7 0h14m-7 -7v14\"/>"
                  "<circle class=\"focus\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                  at[0], at[1], at[0], at[1]);
}

static void draw_panel(struct drawing *drawing, const struct panel *panel)
{
    base_text_add(&drawing->svg, "<clipPath id=\"clip%.0f\"><rect x=\"%.0f\" y=\"%.0f\" ",
                  panel->left, panel->left, TOP);
    base_text_add(&drawing->svg, "width=\"%.0f\" height=\"%.0f\"/></clipPath>\n", PANEL, PANEL);
    base_text_add(&drawing->svg, "<g clip-path=\"url(#clip%.0f)\">\n", panel->left);
    draw_points(drawing, panel);
    draw_cube(drawing, panel, 1, "class=\"unit\"");
    if (drawing->shows_region)
        draw_cube(drawing, panel, drawing->shown.scene->aabb_scale, "class=\"whole\"");
    draw_cameras(drawing, panel);
    draw_focus(drawing, panel);
    base_text_add(&drawing->svg, "</g>\n<rect class=\"frame\" x=\"%.0f\" y=\"%.0f\" ", panel->left,
                  TOP);
    base_text_add(&drawing->svg, "width=\"%.0f\" height=\"%.0f\"/>\n", PANEL, PANEL);
    draw_axes(drawing, panel);
    draw_scale(drawing, panel);
    add_label(drawing, panel->left + 10, TOP + 20, "class=\"name\"", panel->name);
}

/* ---- title and legend ------------------------------------------------------------------------ */

static void draw_title(struct drawing *drawing)
{
    const struct inspect_overview *shown = &drawing->shown;
    const struct vkn_scene *scene = shown->scene;
    char text[256];
    add_label(drawing, GAP, 32, "class=\"title\"", scene->path);
    snprintf(text, sizeof(text),
             "%zu views (%s), %ux%u pixels%s, field of view %.3g x %.3g degrees, "
             "%zu problem%s",
             shown->views, config_scene_format_names[scene->format], shown->width, shown->height,
             shown->sizes_differ ? " and other sizes" : "", shown->fov[0], shown->fov[1],
             shown->problems, shown->problems == 1 ? "" : "s");
    add_label(drawing, GAP, 56, "", text);
}

/* Adds an entry of the legend; returns the x of the next one. */
static double add_entry(struct drawing *drawing, double x, double y, const char *mark,
                        const char *text)
{
    base_text_add(&drawing->svg, "<g transform=\"translate(%.0f %.0f)\">%s</g>\n", x, y, mark);
    add_label(drawing, x + 34, y + 4, "", text);
    return x + 34 + 7.2 * (double)strlen(text) + 26;
}

static double add_split_entry(struct drawing *drawing, double x, double y, unsigned split)
{
    char mark[160], text[64];
    size_t count = drawing->shown.scene->splits[split].camera_count;
    if (count == 0)
        return x;
    snprintf(mark, sizeof(mark),
             "<path class=\"camera\" stroke=\"%s\" d=\"M0 0L24 -9V9ZM0 0m-2 0h4m-2 -2v4\"/>",
             split_colors[split]);
    snprintf(text, sizeof(text), "%zu %s views", count, scene_split_names[split]);
    return add_entry(drawing, x, y, mark, text);
}

static void draw_legend(struct drawing *drawing)
{
    const struct inspect_overview *shown = &drawing->shown;
    double x = GAP + 6, y = TOP + PANEL + 34;
    char text[160];
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        x = add_split_entry(drawing, x, y, split);
    if (shown->has_focus)
        x = add_entry(drawing, x, y,
                      "<path class=\"focus\" d=\"M5 0h14m-7 -7v14\"/>"
                      "<circle class=\"focus\" cx=\"12\" cy=\"0\" r=\"4.5\"/>",
                      "focus point of the training views");
    if (shown->findings->point_count > 0) {
        snprintf(text, sizeof(text), "%zu points", shown->findings->point_count);
        add_entry(drawing, x, y, "<path class=\"point\" d=\"M4 -4h0M12 2h0M20 -2h0M15 6h0\"/>",
                  text);
    }
    x = GAP + 6;
    y += 32;
    x = add_entry(drawing, x, y, "<path class=\"unit\" d=\"M2 -8H22V8H2Z\"/>",
                  "the unit cube, the finest part of training space");
    double side = shown->scene->aabb_scale;
    if (side <= 1)
        return;
    snprintf(text, sizeof(text), "reconstructed region: a cube of side %g%s", side,
             drawing->shows_region ? "" : ", larger than this drawing");
    add_entry(drawing, x, y, "<path class=\"whole\" d=\"M2 -8H22V8H2Z\"/>", text);
}

char *report_camera_drawing(const struct inspection *inspection)
{
    struct drawing drawing = {.shown = inspect_overview(inspection)};
    set_directions(&drawing);
    set_range(&drawing);
    base_text_add(&drawing.svg,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "width=\"%.0f\" height=\"%.0f\" font-family=\"system-ui, sans-serif\" "
                  "font-size=\"14\">\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    base_text_add(&drawing.svg,
                  "<style>text{fill:#222;stroke:#fff;stroke-width:3;paint-order:stroke}."
                  "title{font-size:20px;font-weight:600}"
                  ".name{font-weight:600;fill:#555}.small{font-size:12px}"
                  ".middle{text-anchor:middle}.end{text-anchor:end}path{fill:none}"
                  ".frame{fill:none;stroke:#999}.unit{stroke:#444;stroke-width:1.2}"
                  ".whole{stroke:#999;stroke-dasharray:5 4}"
                  ".camera{stroke-width:0.8;stroke-opacity:0.75}"
                  ".focus{fill:none;stroke:#c81f8c;stroke-width:1.6}"
                  ".point{stroke:#8a8a8a;stroke-width:1.4;stroke-linecap:round;"
                  "stroke-opacity:0.6}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
    draw_title(&drawing);
    for (int i = 0; i < 3; i++)
        draw_panel(&drawing, &drawing.panels[i]);
    draw_legend(&drawing);
    base_text_add(&drawing.svg, "</svg>\n");
    if (drawing.svg.failed) {
        free(drawing.svg.data);
        base_fail(VKN_ERROR, "out of memory for a drawing of %zu cameras", drawing.shown.views);
        return NULL;
    }
    return drawing.svg.data;
}
