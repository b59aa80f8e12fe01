/* Formats progress lines. */
#include "report/progress_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void report_duration(char text[32], double seconds)
{
    if (!(seconds >= 0.0 && seconds < 1e10)) {
        snprintf(text, 32, "-");
        return;
    }
    uint64_t whole = (uint64_t)(seconds + 0.5);
    unsigned s = (unsigned)(whole % 60), m = (unsigned)(whole / 60 % 60);
    uint64_t h = whole / 3600;
    if (h >= 48)
        snprintf(text, 32, "%" PRIu64 " d %" PRIu64 " h", h / 24, h % 24);
    else if (h)
        snprintf(text, 32, "%" PRIu64 ":%02u:%02u", h, m, s);
    else
        snprintf(text, 32, "%u:%02u", m, s);
}

void report_quantity(char text[32], double value)
{
    static const char prefixes[] = " kMGTPE";
    if (!isfinite(value)) {
        snprintf(text, 32, "-");
        return;
    }
    size_t prefix = 0;
    while (fabs(value) >= 999.5 && prefix + 2 < sizeof(prefixes)) {
        value /= 1000.0;
        prefix++;
    }
    char unit[3] = {' ', prefixes[prefix], 0};
    const char *suffix = prefix ? unit : "";
    double size = fabs(value);
    if (size >= 999.5)
        snprintf(text, 32, "%.2e%s", value, suffix);
    else if (size < 0.0995)
        snprintf(text, 32, "%.3g", value);
    else
        snprintf(text, 32, "%.*f%s", size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, value, suffix);
}

/* ---- fitting -------------------------------------------------------------------------------- */

#define MAX_PARTS     10
#define NOTABLE_SHARE 0.05 /* larger shares of skipped steps are shown */

struct parts {
    char text[MAX_PARTS][96];
    int importance[MAX_PARTS]; /* the least important part is dropped first */
    size_t count;
};

__attribute__((format(__printf__, 3, 4))) static void add(struct parts *parts, int importance,
                                                          const char *format, ...)
{
    if (parts->count == MAX_PARTS)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parts->text[parts->count], sizeof(parts->text[0]), format, arguments);
    va_end(arguments);
    parts->importance[parts->count++] = importance;
}

static size_t joined_width(const struct parts *parts)
{
    size_t width = 0;
    for (size_t i = 0; i < parts->count; i++)
        width += strlen(parts->text[i]) + (i ? 2 : 0);
    return width;
}

static void drop_least(struct parts *parts)
{
    size_t least = 0;
    for (size_t i = 1; i < parts->count; i++) {
        if (parts->importance[i] < parts->importance[least])
            least = i;
    }
    parts->count--;
    for (size_t i = least; i < parts->count; i++) {
        memcpy(parts->text[i], parts->text[i + 1], sizeof(parts->text[i]));
        parts->importance[i] = parts->importance[i + 1];
    }
}

static void join(char line[REPORT_LINE_SIZE], size_t width, struct parts *parts)
{
    while (parts->count > 1 && joined_width(parts) > width)
        drop_least(parts);
    size_t used = 0;
    line[0] = 0;
    for (size_t i = 0; i < parts->count && used < REPORT_LINE_SIZE; i++)
        used += (size_t)snprintf(line + used, REPORT_LINE_SIZE - used, "%s%s", i ? "  " : "",
                                 parts->text[i]);
    if (width < REPORT_LINE_SIZE)
        line[width] = 0;
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Formats " (24%)" of the steps or " (24% of the time)", whichever limit is nearer. */
static void add_percent(char text[32], const struct report_goal *goal,
                        const struct report_metrics *metrics)
{
    double steps = goal->steps ? (double)metrics->step / (double)goal->steps : -1.0;
    double seconds = goal->seconds > 0.0 ? metrics->seconds / goal->seconds : -1.0;
    double fraction = fmin(fmax(steps, seconds), 1.0);
    text[0] = 0;
    if (fraction >= 0.0)
        snprintf(text, 32, " (%d%%%s)", (int)(fraction * 100.0),
                 seconds > steps ? " of the time" : "");
}

/* Returns the seconds until the first limit is reached. */
static double seconds_left(const struct report_goal *goal, const struct report_metrics *metrics,
                           double steps_per_second)
{
    double left = (double)INFINITY;
    if (goal->steps && steps_per_second > 0.0)
        left = fmax((double)goal->steps - (double)metrics->step, 0.0) / steps_per_second;
    if (goal->seconds > 0.0)
        left = fmin(left, fmax(goal->seconds - metrics->seconds, 0.0));
    return left;
}

/* Adds skipped steps, with their share if it exceeds what the search for a loss scale causes. */
static void add_skipped(struct parts *parts, const struct report_metrics *metrics)
{
    double share = (double)metrics->skipped_steps / (double)metrics->step;
    if (metrics->skipped_steps > 0 && share > NOTABLE_SHARE &&
        metrics->step >= metrics->skipped_steps)
        add(parts, 75, "%" PRIu64 " steps skipped (%.0f%%)", metrics->skipped_steps, 100.0 * share);
    else if (metrics->skipped_steps > 0)
        add(parts, 75, "%" PRIu64 " steps skipped", metrics->skipped_steps);
}

void report_train_line(char line[REPORT_LINE_SIZE], size_t width, const struct report_goal *goal,
                       const struct report_metrics *metrics, double steps_per_second)
{
    struct parts parts = {.count = 0};
    char total[32] = "", percent[32], text[32];
    if (goal->steps)
        snprintf(total, sizeof(total), "/%" PRIu64, goal->steps);
    add_percent(percent, goal, metrics);
    add(&parts, 100, "step %" PRIu64 "%s%s", metrics->step, total, percent);
    report_quantity(text, metrics->loss);
    add(&parts, 60, "loss %s", text);
    if (isfinite(metrics->psnr))
        add(&parts, 80, "psnr %.2f dB", metrics->psnr);
    report_quantity(text, steps_per_second);
    add(&parts, 70, "%s steps/s", text);
    report_quantity(text, metrics->rays_per_second);
    add(&parts, 20, "%s rays/s", text);
    report_quantity(text, metrics->samples_per_second);
    add(&parts, 40, "%s samples/s", text);
    add_skipped(&parts, metrics);
    if (isfinite(metrics->exchange_share))
        add(&parts, 30, "%.0f%% all-reduce", 100.0 * metrics->exchange_share);
    report_duration(text, metrics->seconds);
    add(&parts, 50, "elapsed %s", text);
    double left = seconds_left(goal, metrics, steps_per_second);
    report_duration(text, left);
    if (isfinite(left))
        add(&parts, 90, "ETA %s", text);
    join(line, width, &parts);
}

#define LEAST_SECONDS 0.1 /* shorter times give no meaningful rate */

void report_count_line(char line[REPORT_LINE_SIZE], size_t width, const char *what, size_t done,
                       size_t total, double seconds)
{
    struct parts parts = {.count = 0};
    char text[32];
    if (total)
        add(&parts, 100, "%.60s %zu/%zu (%u%%)", what, done, total,
            (unsigned)((double)(done < total ? done : total) / (double)total * 100.0));
    else
        add(&parts, 100, "%.60s %zu", what, done);
    double rate = seconds >= LEAST_SECONDS ? (double)done / seconds : 0.0;
    if (rate > 0.0) {
        report_quantity(text, rate);
        add(&parts, 50, "%s/s", text);
    }
    if (rate > 0.0 && total > done) {
        report_duration(text, (double)(total - done) / rate);
        add(&parts, 90, "ETA %s", text);
    }
    join(line, width, &parts);
}
