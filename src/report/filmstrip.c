/* Adds pictures of a few test views during training: a row per view, a column per evaluation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"

#define MOST_COLUMNS   12
#define MOST_ROWS      8
#define THUMBNAIL_EDGE 160u
#define STRIP_BUDGET   ((size_t)16 << 20)

struct strip {
    const struct run *run;
    const struct run_evaluation *columns[MOST_COLUMNS];
    const char *rows[MOST_ROWS]; /* names of views */
    size_t column_count, row_count, budget;
};

static const struct run_picture *find_picture(const struct run_evaluation *evaluation,
                                              const char *name)
{
    for (size_t i = 0; i < evaluation->picture_count; i++) {
        const struct run_picture *picture = &evaluation->pictures[i];
        if (picture->name && strcmp(picture->name, name) == 0)
            return picture;
    }
    return NULL;
}

static void add_rows(struct strip *strip, const struct run_evaluation *evaluation)
{
    for (size_t i = 0; i < evaluation->picture_count && strip->row_count < MOST_ROWS; i++) {
        const char *name = evaluation->pictures[i].name;
        bool known = name == NULL;
        for (size_t row = 0; row < strip->row_count && !known; row++)
            known = strcmp(strip->rows[row], name) == 0;
        if (!known)
            strip->rows[strip->row_count++] = name;
    }
}

/* Chooses evaluations with pictures: all, or the first, the last and evenly spread ones between. */
static vkn_status choose_columns(const struct run *run, struct strip *strip)
{
    *strip = (struct strip){.run = run, .budget = STRIP_BUDGET};
    size_t count = 0, most = run->summary.evaluation_count;
    const struct run_evaluation **all = base_alloc(most, sizeof(const struct run_evaluation *));
    if (all == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < most; i++)
        if (run->summary.evaluations[i].picture_count > 0)
            all[count++] = &run->summary.evaluations[i];
    strip->column_count = count < MOST_COLUMNS ? count : MOST_COLUMNS;
    for (size_t i = 0; i < strip->column_count; i++) {
        size_t index = strip->column_count > 1 ? i * (count - 1) / (strip->column_count - 1) : 0;
        strip->columns[i] = all[index];
        add_rows(strip, all[index]);
    }
    free(all);
    return VKN_OK;
}

/* ---- cells ---------------------------------------------------------------------------------- */

static void add_picture(struct base_text *page, struct strip *strip, const char *view,
                        const char *what, const char *path)
{
    char *alt = base_format("%s, %s", view, what);
    if (alt)
        page_picture(page, strip->run->folder, path, alt, THUMBNAIL_EDGE, &strip->budget);
    page->failed |= alt == NULL;
    free(alt);
}

static void add_render(struct base_text *page, struct strip *strip, const char *view,
                       const struct run_evaluation *evaluation)
{
    const struct run_picture *picture = find_picture(evaluation, view);
    base_text_add(page, "<td>");
    if (picture) {
        char what[PAGE_STEP_NAME];
        page_step_name(what, evaluation->step);
        add_picture(page, strip, view, what, picture->render);
        base_text_add(page, "<span>");
        page_number(page, picture->psnr, 2);
        base_text_add(page, "%s</span>", isfinite(picture->psnr) ? " dB" : "");
    }
    base_text_add(page, "</td>\n");
}

/* Adds the target image, from the first evaluation that has it. */
static void add_target(struct base_text *page, struct strip *strip, const char *view)
{
    const char *target = NULL;
    for (size_t i = 0; i < strip->column_count && !target; i++) {
        const struct run_picture *picture = find_picture(strip->columns[i], view);
        target = picture ? picture->target : NULL;
    }
    base_text_add(page, "<td class=\"target\">");
    add_picture(page, strip, view, "target", target);
    base_text_add(page, "</td>\n");
}

static void add_row(struct base_text *page, struct strip *strip, const char *view)
{
    base_text_add(page, "<tr><th scope=\"row\">");
    page_text(page, view);
    base_text_add(page, "</th>\n");
    for (size_t i = 0; i < strip->column_count; i++)
        add_render(page, strip, view, strip->columns[i]);
    add_target(page, strip, view);
    base_text_add(page, "</tr>\n");
}

static void add_head(struct base_text *page, const struct strip *strip)
{
    base_text_add(page, "<thead><tr><th scope=\"col\">View</th>\n");
    for (size_t i = 0; i < strip->column_count; i++) {
        base_text_add(page, "<th scope=\"col\">step ");
        page_count(page, strip->columns[i]->step);
        base_text_add(page, "</th>\n");
    }
    base_text_add(page, "<th scope=\"col\">target</th></tr></thead>\n");
}

/* Adds nothing when the only evaluation is the final one, whose views the page shows anyway. */
void page_filmstrip(struct base_text *page, const struct run *run)
{
    struct strip strip;
    if (choose_columns(run, &strip) != VKN_OK) {
        page->failed = true;
        return;
    }
    size_t least = run->summary.picture_count > 0 ? 2 : 1;
    if (strip.column_count < least || strip.row_count == 0)
        return;
    page_section(page, "formed", "Test views during training");
    base_text_add(page, "<div class=\"strip\" tabindex=\"0\" role=\"region\" "
                        "aria-label=\"Pictures of evaluations\">\n");
    base_text_add(page, "<table>\n"); /* on a narrow screen the strip scrolls */
    add_head(page, &strip);
    base_text_add(page, "<tbody>\n");
    for (size_t i = 0; i < strip.row_count; i++)
        add_row(page, &strip, strip.rows[i]);
    base_text_add(page, "</tbody>\n</table>\n</div>\n</section>\n");
}
