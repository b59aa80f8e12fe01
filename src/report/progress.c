/* Shows progress lines on standard error. */
#include "report/progress_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <vknerf/run.h>

/* Seconds between updates. */
#define TERMINAL_INTERVAL 0.1
#define PLAIN_INTERVAL    5.0

struct report_progress {
    bool quiet, terminal;
    struct base_progress receiver;
    struct report_goal goal;
    double shown_at;    /* time of the last update, base_seconds */
    size_t shown_width; /* of the text on the terminal's current line */
    bool pending;       /* `line` has not been shown yet */
    char line[REPORT_LINE_SIZE];
    char what[64];      /* name of the current count; "": a training */
    double count_began; /* base_seconds */
    bool count_shown;   /* a plain line of this count has been written */
};

static bool is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* Returns the columns for text. The last column stays empty, because some terminals wrap there. */
static size_t line_width(const struct report_progress *progress)
{
    if (!progress->terminal)
        return REPORT_LINE_SIZE - 1;
    size_t columns = 0;
    const char *variable = getenv("COLUMNS");
    if (variable)
        columns = (size_t)strtoul(variable, NULL, 10);
    struct winsize size;
    if (columns == 0 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns == 0)
        columns = 80;
    if (columns < 20)
        columns = 20;
    return columns < REPORT_LINE_SIZE ? columns - 1 : REPORT_LINE_SIZE - 1;
}

/* Rewrites the terminal's current line; spaces overwrite the rest of a longer text. */
static void show(struct report_progress *progress)
{
    size_t width = strlen(progress->line);
    if (progress->terminal) {
        size_t cover = progress->shown_width > width ? progress->shown_width - width : 0;
        fprintf(stderr, "\r%s%*s", progress->line, (int)cover, "");
        progress->shown_width = width;
    } else {
        fprintf(stderr, "%s\n", progress->line);
    }
    fflush(stderr);
    progress->shown_at = base_seconds();
    progress->pending = false;
}

static void show_when_due(struct report_progress *progress, bool at_once)
{
    double interval = progress->terminal ? TERMINAL_INTERVAL : PLAIN_INTERVAL;
    progress->pending = true;
    if (at_once || base_seconds() - progress->shown_at >= interval)
        show(progress);
}

vkn_status report_progress_begin(const struct vkn_job *job, uint64_t total_steps,
                                 double total_seconds, struct report_progress **progress)
{
    *progress = base_alloc(1, sizeof(**progress));
    if (!*progress)
        return VKN_ERROR;
    (*progress)->quiet = !job || job->quiet;
    if (job)
        (*progress)->receiver = (struct base_progress){job->progress, job->progress_context};
    (*progress)->terminal = is_terminal();
    (*progress)->goal = (struct report_goal){total_steps, total_seconds};
    /* A terminal shows the first update at once, a file only after PLAIN_INTERVAL. */
    (*progress)->shown_at = base_seconds() - ((*progress)->terminal ? TERMINAL_INTERVAL : 0.0);
    return VKN_OK;
}

void report_progress_train(struct report_progress *progress, const struct report_metrics *metrics,
                           double steps_per_second)
{
    base_progress_report(&progress->receiver, "training", metrics->step, progress->goal.steps);
    if (progress->quiet)
        return;
    progress->what[0] = 0;
    report_train_line(progress->line, line_width(progress), &progress->goal, metrics,
                      steps_per_second);
    show_when_due(progress, false);
}

void report_progress_count(struct report_progress *progress, const char *what, size_t done,
                           size_t total)
{
    base_progress_report(&progress->receiver, what, done, total);
    if (progress->quiet)
        return;
    bool training_line_pending = progress->pending && !progress->what[0];
    if (strncmp(progress->what, what, sizeof(progress->what) - 1) != 0) {
        if (training_line_pending && !progress->terminal)
            show(progress);
        snprintf(progress->what, sizeof(progress->what), "%s", what);
        progress->count_began = base_seconds();
        progress->count_shown = false;
    }
    report_count_line(progress->line, line_width(progress), what, done, total,
                      base_seconds() - progress->count_began);
    /* A file gets no line about a count that ends before its first line is due. */
    bool complete = done >= total;
    show_when_due(progress, complete && (progress->terminal || progress->count_shown));
    progress->count_shown |= !progress->pending;
    if (complete) {
        progress->pending = false;
        progress->what[0] = 0;
    }
}

void report_progress_pause(struct report_progress *progress)
{
    if (progress->pending)
        show(progress);
    if (progress->shown_width) {
        fputc('\n', stderr);
        fflush(stderr);
        progress->shown_width = 0;
    }
}

void report_progress_end(struct report_progress **progress)
{
    BASE_KEEP_ERROR;
    if (!*progress)
        return;
    report_progress_pause(*progress);
    free(*progress);
    *progress = NULL;
}
