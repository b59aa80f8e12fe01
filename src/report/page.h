/* Adds the HTML of report.html and of comparisons. The functions escape all texts except texts
 * marked "not escaped", which are literals of this module. The page is also well-formed XML, so
 * that a strict parser can check it. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/run.h"

extern const char page_style[], page_style_more[], page_style_pictures[], page_script[];

/* Adds a text for element content or an attribute value: escapes markup, and replaces control
 * characters and bytes that are not UTF-8 by U+FFFD. */
void page_text(struct base_text *page, const char *text);
/* Adds a number with `digits` decimals, or "–" when it is not finite. */
void page_number(struct base_text *page, double value, int digits);
/* Adds a table's cell with a number, and `unit` (not escaped) if the number is finite. */
void page_number_cell(struct base_text *page, double value, int digits, const char *unit);
/* Adds a whole number with thin spaces between thousands. */
void page_count(struct base_text *page, double value);
/* Writes "step 20", or "an unknown step" when `step` is not finite. */
#define PAGE_STEP_NAME 64
void page_step_name(char name[PAGE_STEP_NAME], double step);
/* Adds a short line in the colour of a curve's CSS class. */
void page_swatch(struct base_text *page, const char *css_class);
/* Adds an <img> with the picture embedded, or a note when the file is missing, is no PNG or JPEG,
 * or is outside the run directory; other errors fail the page. `edge`: longest side in pixels,
 * longer pictures are scaled down; 0: unchanged. `*budget`: bytes that may still be embedded.
 * Returns whether a picture was added. */
bool page_picture(struct base_text *page, const char *folder, const char *path, const char *alt,
                  uint32_t edge, size_t *budget);

/* Most bytes of pictures in a page. Notes replace further pictures. */
#define PAGE_PICTURE_BUDGET ((size_t)64 << 20)

/* One of the pictures of a view. */
struct page_cell {
    const char *css_class;     /* CSS class of the cell: "target", "render", "r1"; not escaped */
    const char *name;          /* caption */
    const char *folder, *path; /* run directory and path in it; path NULL: not recorded */
    double psnr;               /* NaN: not shown */
};
/* Heading of a view's pictures. */
struct page_view {
    const char *name;
    const char *facts; /* HTML after the name; not escaped */
    const char *style; /* CSS of the figure; not escaped */
};
/* Adds a figure of a view: its pictures side by side, and a slider between any two of them. */
void page_view(struct base_text *page, const struct page_view *view, const struct page_cell *cells,
               size_t count, size_t *budget);

/* Begins a tile of the header with its label (not escaped); the caller adds the value. Ends the
 * tile with a line of small text. */
void page_tile_begin(struct base_text *page, const char *label);
void page_tile_end(struct base_text *page, const char *more);
/* Adds a fact of the header with its name (not escaped), unless `value` is NULL. */
void page_fact(struct base_text *page, const char *name, const char *value);

typedef void (*page_function)(struct base_text *page, const void *context);
/* A document: title and style, `head`, list of contents, `sections`, footer, script. */
struct page_document {
    const char *title, *footer; /* the footer is not escaped */
    page_function head, sections;
};
/* Adds the document; `context` is passed to its functions. */
void page_document(struct base_text *page, const struct page_document *document,
                   const void *context);
/* Returns the error of a page that failed: "PATH: not written: " and the last recorded error. */
vkn_status page_fail(const char *path);
/* Begins a section; the list of contents repeats its title. `id`, `title`: not escaped. */
void page_section(struct base_text *page, const char *id, const char *title);

/* Add the header and the sections of report.html. */
void page_head(struct base_text *page, const struct run *run);
void page_curves(struct base_text *page, const struct run *run);
void page_passes(struct base_text *page, const struct run *run);
void page_buffers(struct base_text *page, const struct run *run);
void page_filmstrip(struct base_text *page, const struct run *run);
void page_pictures(struct base_text *page, const struct run *run);
void page_exposures(struct base_text *page, const struct run *run);
void page_config(struct base_text *page, const struct run *run);
void page_command(struct base_text *page, const struct run *run);

/* Calls `visit` for each leaf of `config`, with dots between keys. Lists of values are leaves. */
typedef void (*page_config_visit)(void *context, const char *key, const struct cJSON *value);
void page_config_walk(const struct cJSON *config, page_config_visit visit, void *context);
/* Returns a leaf's value as text, which the caller frees; NULL when out of memory. */
char *page_config_value(const struct cJSON *item);

/* Return the scene's path, the device, its driver, and the backend (else the precision): from
 * summary.json, else from config.json, else NULL. */
const char *page_scene(const struct run *run);
const char *page_device(const struct run *run);
const char *page_driver(const struct run *run);
const char *page_backend(const struct run *run);
/* Returns the last component of a path ("lego" of "shared/data/lego/"), or the path if it has none.
 * The caller frees it; NULL when out of memory. */
char *page_last_part(const char *path);
/* Returns the name of a run's folder, also for paths that end in "." or "..". Caller frees it. */
char *page_run_name(const char *folder);
/* Finds the names of the run and of its scene; *scene is NULL when unknown or equal to *name. The
 * caller frees both, also after a failure. False when out of memory. */
bool page_names(const struct run *run, char **name, char **scene);

#endif
