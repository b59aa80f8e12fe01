/* When a training has diverged or learns nothing: by losses that are not finite, by steps that are
 * all skipped, and by the error of the training rays beside its best and beside that of a picture
 * of one colour. */
#include "monitor/internal.h"

#include <math.h>
#include <stdio.h>

/* Errors are means of 64 steps. In 24 trainings of the bundled scene, lego and two others (128 to
 * 2048 steps, 512 to 65536 samples, fp32 and fp16) they rise to 1.13 times their best at the most,
 * and are below 0.55 times that of one colour after 128 steps. */
#define WORSE_FACTOR 4.0   /* of the best: 6 dB */
#define WORSE_STEPS  256u  /* in a row, to be told */
#define GONE_STEPS   512u  /* in a row as bad as one colour, for the end */
#define PLAIN_SHARE  0.9   /* of the error of one colour: as good as nothing is learnt above it */
#define PLAIN_STEPS  2048u /* after which that is told */
#define LEAST_STEPS  128u  /* of a training at whose end it is */
#define DOUBTFUL     16u   /* skipped steps in a row */

double course_psnr(double error)
{
    return -10.0 * log10(fmax(error, 1e-10));
}

/* ---- no step is taken ------------------------------------------------------------------------ */

/* No scale to come is below the step's. */
static bool is_lowest(const struct monitor_scale *scale, const struct Stats *stats)
{
    if (scale->kind == SCALE_DYNAMIC)
        return stats->loss_scale <= scale->lowest || scale->backoff >= 1.0f;
    for (uint32_t i = 0; scale->kind == SCALE_SCHEDULE && i < scale->points; i++)
        if (scale->schedule[i].step >= stats->step && scale->schedule[i].value < stats->loss_scale)
            return false;
    return true;
}

static void end(struct monitor_course *course, enum monitor_end why, const struct Stats *stats,
                uint32_t steps)
{
    if (course->end != MONITOR_GOES_ON)
        return;
    course->end = why;
    course->end_step = stats->step;
    course->since = stats->step + 1 - steps;
}

static void check_steps(struct monitor *monitor, const struct Stats *stats, bool skipped)
{
    struct monitor_course *course = &monitor->course;
    bool bottom = skipped && is_lowest(&monitor->scale, stats);
    course->lost_in_row = isfinite(stats->loss) ? 0 : course->lost_in_row + 1;
    course->bottom_in_row = bottom ? course->bottom_in_row + 1 : 0;
    if (course->lost_in_row >= MONITOR_LOST)
        end(course, MONITOR_NO_LOSS, stats, course->lost_in_row);
    else if (course->bottom_in_row >= MONITOR_LOST)
        end(course, MONITOR_NO_STEP, stats, course->bottom_in_row);
}

/* ---- nothing is learnt ----------------------------------------------------------------------- */

/* Whether the mean of the last errors is new. */
static bool take_error(struct monitor_course *course, const struct Stats *stats)
{
    double sum = 0.0;
    if (!isfinite(stats->square) || !isfinite(stats->loss))
        return false;
    course->errors[course->count++ % MONITOR_NORMS] = stats->square;
    if (course->count < MONITOR_NORMS)
        return false;
    for (size_t i = 0; i < MONITOR_NORMS; i++)
        sum += (double)course->errors[i];
    course->error = sum / MONITOR_NORMS;
    if (course->best > 0.0 && course->error >= course->best)
        return true;
    course->best = course->error;
    course->best_step = stats->step;
    return true;
}

/* Near its best nothing is wrong, whatever it is beside one colour. */
static bool check_worse(struct monitor_course *course, const struct Stats *stats, char *line)
{
    bool worse = course->error >= WORSE_FACTOR * course->best &&
                 course->error >= course->plain / WORSE_FACTOR;
    bool gone = course->best <= course->plain / 2 && course->error >= course->plain;
    course->worse_in_row = worse ? course->worse_in_row + 1 : 0;
    course->gone_in_row = gone ? course->gone_in_row + 1 : 0;
    if (course->gone_in_row >= GONE_STEPS)
        end(course, MONITOR_WORSE, stats, course->gone_in_row);
    if (course->told_worse || course->worse_in_row < WORSE_STEPS)
        return false;
    course->told_worse = true;
    snprintf(line, MONITOR_LINE,
             "step %u: the training rays have been 6 dB worse than at their best for %u steps "
             "(%.2f dB, %.2f dB at step %u): lower optimizer.learning_rate",
             stats->step, WORSE_STEPS, course_psnr(course->error), course_psnr(course->best),
             course->best_step);
    return true;
}

static bool check_plain(struct monitor_course *course, const struct Stats *stats, char *line)
{
    if (course->told_plain || course->count < PLAIN_STEPS ||
        course->best < PLAIN_SHARE * course->plain)
        return false;
    course->told_plain = true;
    snprintf(
        line, MONITOR_LINE,
        "step %u: nothing has been learnt: the training rays are at %.2f dB, where one colour "
        "for all of them has %.2f dB: lower optimizer.learning_rate, and see whether the poses "
        "fit (vknerf info SCENE)",
        stats->step, course_psnr(course->error), course_psnr(course->plain));
    return true;
}

bool course_step(struct monitor *monitor, const struct Stats *stats, bool skipped,
                 char line[MONITOR_LINE])
{
    struct monitor_course *course = &monitor->course;
    course->scale = stats->loss_scale;
    check_steps(monitor, stats, skipped);
    if (!take_error(course, stats) || !(course->plain > 0.0))
        return false;
    bool worse = check_worse(course, stats, line);
    return !worse ? check_plain(course, stats, line) : worse;
}

bool course_is_plain(const struct monitor *monitor)
{
    const struct monitor_course *course = &monitor->course;
    return course->plain > 0.0 && course->count >= LEAST_STEPS &&
           course->error >= PLAIN_SHARE * course->plain;
}

/* ---- the end --------------------------------------------------------------------------------- */

bool monitor_ended(const struct monitor *monitor, char line[MONITOR_LINE])
{
    const struct monitor_course *course = &monitor->course;
    switch (course->end) {
    case MONITOR_NO_LOSS:
        snprintf(line, MONITOR_LINE, "the training has diverged: since step %u no loss was finite",
                 course->since);
        return true;
    case MONITOR_NO_STEP:
        snprintf(
            line, MONITOR_LINE,
            "no step is taken any more: every step since step %u was skipped, for gradients are "
            "not finite, and no lower loss scale is to come",
            course->since);
        return true;
    case MONITOR_WORSE:
        snprintf(line, MONITOR_LINE,
                 "the training has diverged: since step %u the training rays are worse than one "
                 "colour for all of them (%.2f dB, %.2f dB), after %.2f dB at step %u",
                 course->since, course_psnr(course->error), course_psnr(course->plain),
                 course_psnr(course->best), course->best_step);
        return true;
    default:
        return false;
    }
}

void monitor_failed(const struct monitor *monitor, uint32_t step, char line[MONITOR_LINE])
{
    const struct monitor_course *course = &monitor->course;
    if (course->lost_in_row > 0)
        snprintf(line, MONITOR_LINE, "the training has diverged: since step %u no loss was finite",
                 step + 1 - course->lost_in_row);
    else
        snprintf(line, MONITOR_LINE,
                 "no step was taken: all %u were skipped, for their gradients are not finite at a "
                 "loss scale of %.4g",
                 monitor->skips.before, (double)course->scale);
}

bool monitor_is_sound(const struct monitor *monitor)
{
    const struct monitor_course *course = &monitor->course;
    return course->end == MONITOR_GOES_ON && course->lost_in_row == 0 &&
           monitor->skips.in_row < DOUBTFUL && course->worse_in_row == 0 &&
           course->gone_in_row == 0;
}
