/* Writes HTML pages. A page is one of the files that cmake/Page.cmake joins from page/, with a
 * title, content that readers without scripts see, and one JSON object, of which the page's script
 * makes the rest. The functions escape all texts except texts marked "not escaped", which are
 * literals of this module. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/run.h"

/* A joined page. */
struct page_file {
    const char *begin, *end;
};
/* Pages of a run, a comparison, a refinement of cameras, and a certificate. */
extern const struct page_file page_run_file, page_comparison_file, page_refinement_file,
    page_certificate_file;

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
/* Adds a JSON text for a script element: escapes "<", and replaces bytes that are not UTF-8. */
void page_json(struct base_text *page, const char *json);
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
/* Adds a figure of a view: its pictures side by side. `facts`: HTML after the name; not escaped. */
void page_view(struct base_text *page, const char *name, const char *facts,
               const struct page_cell *cells, size_t count, size_t *budget);

/* Begins a tile of the header with its label (not escaped); the caller adds the value. Ends the
 * tile with a line of small text. */
void page_tile_begin(struct base_text *page, const char *label);
void page_tile_end(struct base_text *page, const char *more);
/* Adds a fact of the header with its name (not escaped), unless `value` is NULL. */
void page_fact(struct base_text *page, const char *name, const char *value);

typedef void (*page_function)(struct base_text *page, const void *context);
/* A document: title, `head`, `sections`, footer, data of the script. */
struct page_document {
    const struct page_file *file;
    const char *title, *sources; /* sources: of the footer, "certificate.json"; not escaped */
    page_function head, sections;
    const struct cJSON *data; /* NULL: none */
};
/* Writes the document; `context` is passed to its functions. */
vkn_status page_write(const char *path, const struct page_document *document, const void *context);
/* Begins a section; the page's script lists the titles. `id`, `title`: not escaped. */
void page_section(struct base_text *page, const char *id, const char *title);

/* ---- runs ------------------------------------------------------------------------------------ */

/* Most runs on a page: one CSS class of curves for each. */
#define PAGE_RUNS 12

/* A run on a page. */
struct page_run {
    struct run run;
    char *name;  /* the folder's; its path where two folders have the same name */
    char *scene; /* last part of the scene's path; "" when unknown */
};
/* Reads runs into runs[count] and names them. The caller frees them by page_free_runs, also after a
 * failure. */
vkn_status page_read_runs(const char *const *folders, size_t count, struct page_run *runs);
void page_free_runs(struct page_run *runs, size_t count);
/* Returns the JSON of a page: names, config.json, summary.json, appearance.json and log of each run
 * (run_metrics_json). It refers to the runs' JSON. The caller frees it; NULL when out of memory. */
struct cJSON *page_runs_json(const struct page_run *runs, size_t count);

/* Add what report.html shows without its script. */
void page_figures(struct base_text *page, const struct page_run *runs, size_t count);
void page_filmstrip(struct base_text *page, const struct run *run);
void page_views(struct base_text *page, const struct run *run);
/* Adds a table with the quality of each test view of a run. `caption`: NULL: none. */
void page_view_table(struct base_text *page, const struct run *run, const char *caption);

/* Returns the last component of a path ("lego" of "shared/data/lego/"), or the path if it has none.
 * The caller frees it; NULL when out of memory. */
char *page_last_part(const char *path);

#endif
