/* Pieces of report.html and of comparisons. What goes through these is escaped; everything else is
 * ours. The page is well-formed XML too, so that a strict parser can check it. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/run.h"

extern const char page_style[], page_style_more[], page_style_pictures[], page_script[];

/* Text for element content and attribute values: markup escaped, bytes that are not UTF-8 and
 * control characters replaced by U+FFFD. */
void page_text(struct base_text *page, const char *text);
/* Number with `digits` decimals, or "–" when not finite. */
void page_number(struct base_text *page, double value, int digits);
/* Whole number, thousands set apart by thin spaces. */
void page_count(struct base_text *page, double value);
/* "step 20", or "an unknown step" when not finite. */
#define PAGE_STEP_NAME 64
void page_step_name(char name[PAGE_STEP_NAME], double step);
/* A short line in the colour of a curve. */
void page_swatch(struct base_text *page, const char *css_class);
/* <img> with the picture itself inside; a note in its place when the file is absent, no PNG or
 * JPEG, or does not lie inside the run directory; other errors fail the page. `edge`: made smaller
 * when a side is longer than so many pixels; 0: as it is. `*budget` is what may still be embedded,
 * in bytes. Returns whether there is a picture. */
bool page_picture(struct base_text *page, const char *folder, const char *path, const char *alt,
                  uint32_t edge, size_t *budget);

/* Bytes of pictures in one page; beyond, views are listed with their numbers only. */
#define PAGE_PICTURE_BUDGET ((size_t)64 << 20)

/* One of the pictures that show the same view. */
struct page_cell {
    const char *css_class;     /* class of the cell: "target", "render", "r1"; ours */
    const char *name;          /* what it is */
    const char *folder, *path; /* NULL path: not recorded */
    double psnr;               /* NaN: none is shown */
};
/* What stands above a view's pictures. */
struct page_view {
    const char *name;
    const char *facts; /* ours, not escaped */
    const char *style; /* of the figure; ours */
};
/* A figure of a view: the pictures side by side, and a slider between any two of them. */
void page_view(struct base_text *page, const struct page_view *view, const struct page_cell *cells,
               size_t count, size_t *budget);

typedef void (*page_part)(struct base_text *page, const void *context);
/* A document: title and style, then `head`, a list of the sections that `sections` makes, these,
 * footer and script. */
struct page_document {
    const char *title, *footer; /* the former is escaped */
    page_part head, sections;
};
void page_document(struct base_text *page, const struct page_document *document,
                   const void *context);
/* The error of a page that failed: that `path` is not written, and what was recorded last. */
vkn_status page_fail(const char *path);
/* Begins a section: <section id="..."> and its heading, which the list of contents shows. `id` and
 * `title` are ours, not escaped. */
void page_section(struct base_text *page, const char *id, const char *title);

/* Sections of the page, in order. */
void page_head(struct base_text *page, const struct run *run);
void page_curves(struct base_text *page, const struct run *run);
void page_passes(struct base_text *page, const struct run *run);
void page_buffers(struct base_text *page, const struct run *run);
void page_filmstrip(struct base_text *page, const struct run *run);
void page_pictures(struct base_text *page, const struct run *run);
void page_config(struct base_text *page, const struct run *run);
void page_command(struct base_text *page, const struct run *run);

/* The leaves of a configuration: nested objects become dotted keys, lists of plain values stay. */
typedef void (*page_config_visit)(void *context, const char *key, const struct cJSON *value);
void page_config_walk(const struct cJSON *config, page_config_visit visit, void *context);
/* A leaf's value as text in fresh memory; NULL on no memory. */
char *page_config_value(const struct cJSON *item);

/* The scene's path, the device, its driver and the path (else precision) on it: from summary.json,
 * else config.json, else NULL. */
const char *page_scene(const struct run *run);
const char *page_device(const struct run *run);
const char *page_driver(const struct run *run);
const char *page_path(const struct run *run);
/* The last part of a path, "lego" of "shared/data/lego/", in fresh memory; the path itself when it
 * has none. */
char *page_last_part(const char *path);
/* The name of a run's folder, also where its path ends in "." or "..": the last part in fresh
 * memory. */
char *page_run_name(const char *folder);
/* The run's name, and the scene's, or NULL where that is the same or not known; both in fresh
 * memory, also after a failure, which is one of memory. */
bool page_names(const struct run *run, char **name, char **scene);

#endif
