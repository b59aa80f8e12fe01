/* Writes the page of a refinement of cameras. */
#ifndef REPORT_REFINEMENT_H
#define REPORT_REFINEMENT_H

#include "report/page.h"
#include "report/report.h"

struct refinement {
    const struct report_refinement *shown;
    size_t *order;      /* views by movement in pixels, largest first, unknown ones last */
    size_t known;       /* number of views whose movement is known */
    size_t limited;     /* number of views at the limit */
    size_t rolled_back; /* number of views that keep their poses */
    size_t shared;      /* length of the folders that all image files share */
};

/* Adds a number with its sign and `digits` decimals, or "–" when it is not finite. */
void refinement_signed(struct base_text *page, double value, int digits);
/* Returns a view's image file; "–" when unknown. */
const char *refinement_path(const struct report_refinement *shown, size_t view);
/* Returns the length of the folders that the image files of all views share. */
size_t refinement_shared(const struct report_refinement *shown);
/* Explains movements, and names what to do about views that keep their cameras. */
void refinement_advice(struct base_text *page, const struct refinement *refinement);

/* Add the sections that readers without scripts see, too. */
void refinement_cameras(struct base_text *page, const struct refinement *refinement);
void refinement_pictures(struct base_text *page, const struct refinement *refinement);

#endif
