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
};

/* Add a number with its sign and `digits` decimals, or "–" when it is not finite; a table's cell
 * with such a number. */
void refinement_signed(struct base_text *page, double value, int digits);
void refinement_signed_cell(struct base_text *page, double value, int digits);
/* Returns the means of PSNR and SSIM over the seeds; NaN when one is unknown. */
struct report_refined_seed refinement_mean(const struct report_refinement *shown);
/* Returns a view's image file without the folders that all views share; "–" when unknown. */
const char *refinement_image(const struct report_refinement *shown, size_t view);

/* Add two charts with a row for each seed: PSNR before and after, and their difference. */
void refinement_quality_charts(struct base_text *page, const struct report_refinement *shown);
/* Adds a histogram of the views' movements in pixels; adds it with its explanation. */
void refinement_histogram(struct base_text *page, const struct refinement *refinement);
void refinement_movements(struct base_text *page, const struct refinement *refinement);

/* Add the sections. */
void refinement_cameras(struct base_text *page, const struct refinement *refinement);
void refinement_pictures(struct base_text *page, const struct refinement *refinement);
void refinement_seeds(struct base_text *page, const struct refinement *refinement);
void refinement_views(struct base_text *page, const struct refinement *refinement);

#endif
