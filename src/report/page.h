/* Pieces of report.html. What goes through these is escaped; everything else is ours. The page is
 * well-formed XML too, so that a strict parser can check it. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/run.h"

extern const char page_style[], page_style_more[], page_script[];

/* Text for element content and attribute values: markup escaped, bytes that are not UTF-8 and
 * control characters replaced by U+FFFD. */
void page_text(struct base_text *page, const char *text);
/* Number with `digits` decimals, or "–" when not finite. */
void page_number(struct base_text *page, double value, int digits);
/* Whole number, thousands set apart by thin spaces. */
void page_count(struct base_text *page, double value);
/* <img> with the picture itself inside; a note in its place when the file is absent, no PNG or
 * JPEG, or does not lie inside the run directory. `*budget` is what may still be embedded, in
 * bytes. */
void page_picture(struct base_text *page, const char *folder, const char *path, const char *alt,
                  size_t *budget);

/* Sections of the page, in order. */
void page_head(struct base_text *page, const struct run *run);
void page_curves(struct base_text *page, const struct run *run);
void page_passes(struct base_text *page, const struct run *run);
void page_pictures(struct base_text *page, const struct run *run);
void page_config(struct base_text *page, const struct run *run);
void page_command(struct base_text *page, const struct run *run);

/* The scene's name: summary.json, else config.json, else NULL. */
const char *page_scene(const struct run *run);

#endif
