/* Draws the cameras of a scene as an SVG. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "report/camera_panels.h"
#include "report/page.h"
#include "report/report.h"
#include "scene/scene.h"

/* User units: three panels in a row, a title above, a legend below. */
#define GAP          20.0
#define TOP          78.0
#define WIDTH        (3 * PANELS_SIDE + 4 * GAP)
#define HEIGHT       (TOP + PANELS_SIDE + 92)
#define MOST_CAMERAS 600u
#define MOST_POINTS  3000u
#define LARGER_CUBE  2.5 /* largest side of a drawn reconstructed cube / extent of the rest */

static const char *const split_colors[SCENE_SPLITS] = {"#2a78c9", "#3b9c4f", "#e07b1f"};

struct drawing {
    struct inspect_overview shown;
    struct camera_panels panels;
    bool shows_region; /* aabb_scale is above 1, and the cube of that side is shown */
    struct base_text svg;
};

/* ---- panels ---------------------------------------------------------------------------------- */

static void include_cube(double low[3], double high[3], double side)
{
    const double ends[2][3] = {{0.5 - side / 2, 0.5 - side / 2, 0.5 - side / 2},
                               {0.5 + side / 2, 0.5 + side / 2, 0.5 + side / 2}};
    panels_include(low, high, ends[0]);
    panels_include(low, high, ends[1]);
}

/* Sets the range: cameras, focus point, unit cube, and the reconstructed cube if not too large. */
static void set_range(struct drawing *drawing)
{
    const struct inspect_overview *shown = &drawing->shown;
    double low[3], high[3], up[3], side = shown->scene->aabb_scale;
    for (int i = 0; i < 3; i++) {
        low[i] = shown->low[i];
        high[i] = shown->high[i];
    }
    include_cube(low, high, 1);
    if (shown->has_focus)
        panels_include(low, high, shown->focus);
    double largest = 0;
    for (int i = 0; i < 3; i++)
        largest = fmax(largest, high[i] - low[i]);
    drawing->shows_region = side > 1 && side <= LARGER_CUBE * largest;
    if (drawing->shows_region)
        include_cube(low, high, side);
    scene_up(&shown->scene->splits[SCENE_TRAIN], up);
    panels_fit(&drawing->panels, up, low, high, shown->views);
}

static void draw_points(struct drawing *drawing, const struct camera_panel *panel)
{
    const struct scene_findings *findings = drawing->shown.findings;
    if (findings->point_count == 0)
        return;
    base_text_add(&drawing->svg, "<path class=\"point\" d=\"");
    for (size_t n = 0; n < findings->point_count; n += 1 + findings->point_count / MOST_POINTS) {
        double at[2];
        panels_project(&drawing->panels, panel, findings->points[n], at);
        bool visible = fabs(at[0] - 0.5 * PANELS_SIDE) < 0.5 * PANELS_SIDE &&
                       fabs(at[1] - 0.5 * PANELS_SIDE) < 0.5 * PANELS_SIDE;
        if (visible)
            base_text_add(&drawing->svg, "M%.1f %.1fh0", at[0], at[1]);
    }
    base_text_add(&drawing->svg, "\"/>\n");
}

static void draw_cameras(struct drawing *drawing, const struct camera_panel *panel)
{
    size_t every = 1 + drawing->shown.views / MOST_CAMERAS;
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        const struct scene_split *views = &drawing->shown.scene->splits[split];
        if (views->camera_count == 0)
            continue;
        base_text_add(&drawing->svg, "<path class=\"camera\" stroke=\"%s\" d=\"",
                      split_colors[split]);
        for (size_t n = 0; n < views->camera_count; n += every) {
            double points[PANELS_POINTS][3];
            panels_frustum(&drawing->panels, &views->cameras[n], points);
            panels_add_frustum(&drawing->panels, panel, points);
        }
        base_text_add(&drawing->svg, "\"/>\n");
    }
}

static void draw_focus(struct drawing *drawing, const struct camera_panel *panel)
{
    double at[2];
    if (!drawing->shown.has_focus)
        return;
    panels_project(&drawing->panels, panel, drawing->shown.focus, at);
    base_text_add(&drawing->svg,
                  "<path class=\"focus\" d=\"M%.1f %.1fm-7 0h14m-7 -7v14\"/>"
                  "<circle class=\"focus\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                  at[0], at[1], at[0], at[1]);
}

static void draw_panel(struct drawing *drawing, int index)
{
    const struct camera_panel *panel = &drawing->panels.panels[index];
    char attributes[96];
    snprintf(attributes, sizeof(attributes), "x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\"",
             GAP + index * (PANELS_SIDE + GAP), TOP, PANELS_SIDE, PANELS_SIDE);
    panels_open(&drawing->panels, attributes);
    draw_points(drawing, panel);
    panels_draw_cube(&drawing->panels, panel, 1, "unit");
    if (drawing->shows_region)
        panels_draw_cube(&drawing->panels, panel, drawing->shown.scene->aabb_scale, "whole");
    draw_cameras(drawing, panel);
    draw_focus(drawing, panel);
    panels_close(&drawing->panels, panel);
}

/* ---- title and legend ------------------------------------------------------------------------ */

static void draw_title(struct drawing *drawing)
{
    const struct inspect_overview *shown = &drawing->shown;
    const struct vkn_scene *scene = shown->scene;
    char text[256];
    panels_label(&drawing->svg, GAP, 32, "class=\"title\"", scene->path);
    snprintf(text, sizeof(text),
             "%zu views (%s), %ux%u pixels%s, field of view %.3g x %.3g degrees, "
             "%zu problem%s",
             shown->views, config_scene_format_names[scene->format], shown->width, shown->height,
             shown->sizes_differ ? " and other sizes" : "", shown->fov[0], shown->fov[1],
             shown->problems, shown->problems == 1 ? "" : "s");
    panels_label(&drawing->svg, GAP, 56, "", text);
}

/* Adds an entry of the legend; returns the x of the next one. */
static double add_entry(struct drawing *drawing, double x, double y, const char *mark,
                        const char *text)
{
    base_text_add(&drawing->svg, "<g transform=\"translate(%.0f %.0f)\">%s</g>\n", x, y, mark);
    panels_label(&drawing->svg, x + 34, y + 4, "", text);
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
    double x = GAP + 6, y = TOP + PANELS_SIDE + 34;
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
    drawing.panels.svg = &drawing.svg;
    drawing.panels.scale = drawing.shown.scene->scale;
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
                  "path.axis{stroke-width:2}path.x{stroke:#c8322f}path.y{stroke:#2f8f3a}"
                  "path.z{stroke:#2f55c8}text.x{fill:#c8322f}text.y{fill:#2f8f3a}"
                  "text.z{fill:#2f55c8}"
                  ".focus{fill:none;stroke:#c81f8c;stroke-width:1.6}"
                  ".point{stroke:#8a8a8a;stroke-width:1.4;stroke-linecap:round;"
                  "stroke-opacity:0.6}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
    draw_title(&drawing);
    for (int i = 0; i < 3; i++)
        draw_panel(&drawing, i);
    draw_legend(&drawing);
    base_text_add(&drawing.svg, "</svg>\n");
    if (drawing.svg.failed) {
        free(drawing.svg.data);
        base_fail(VKN_ERROR, "out of memory for a drawing of %zu cameras", drawing.shown.views);
        return NULL;
    }
    return drawing.svg.data;
}
