/* Detects a training that has diverged or learns nothing: by losses that are not finite, by steps
 * that are all skipped, and by comparing the error of the training rays with its best value and
 * with the error of an image of one colour. */
#include "monitor/internal.h"

#include <math.h>
#include <stdio.h>

/* Errors are means over 64 steps. In 24 trainings of the bundled scene, lego and two others (128 to
 * 2048 steps, 512 to 65536 samples, fp32 and fp16) errors rise to at most 1.13 times the best one,
 * and after 128 steps they are below 0.55 times the error of one colour. */
#define WORSE_FACTOR   4.0   /* over the best error: 6 dB */
#define WORSE_STEPS    256u  /* steps in a row until the warning */
#define DIVERGED_STEPS 512u  /* steps in a row as bad as one colour until failure */
#define CONSTANT_SHARE 0.9   /* of the error of one colour: nothing is learnt at or above it */
#define CONSTANT_STEPS 2048u /* steps until the warning that nothing is learnt */
#define LEAST_STEPS    128u  /* of a training whose summary says that nothing was learnt */
#define SKIPPED_ROW    16u   /* skipped steps in a row after which the weights are not sound */

double convergence_psnr(double error)
{
    return -10.0 * log10(fmax(error, 1e-10));
}

/* ---- all steps are skipped ------------------------------------------------------------------- */

/* Returns whether no later step can have a lower loss scale. */
static bool is_lowest(const struct monitor_scale *scale, const struct Stats *stats)
{
    if (scale->kind == SCALE_DYNAMIC)
        return stats->loss_scale <= scale->lowest || scale->backoff >= 1.0f;
    for (uint32_t i = 0; scale->kind == SCALE_SCHEDULE && i < scale->points; i++)
        if (scale->schedule[i].step >= stats->step && scale->schedule[i].value < stats->loss_scale)
            return false;
    return true;
}

static void end_training(struct monitor_convergence *convergence, enum monitor_end why,
                         const struct Stats *stats, uint32_t steps)
{
    if (convergence->end != MONITOR_GOES_ON)
        return;
    convergence->end = why;
    convergence->end_step = stats->step;
    convergence->since_step = stats->step + 1 - steps;
}

static void check_steps(struct monitor *monitor, const struct Stats *stats, bool skipped)
{
    struct monitor_convergence *convergence = &monitor->convergence;
    bool at_lowest = skipped && is_lowest(&monitor->scale, stats);
    convergence->nonfinite_in_row = monitor_has_loss(stats) ? 0 : convergence->nonfinite_in_row + 1;
    convergence->lowest_in_row = at_lowest ? convergence->lowest_in_row + 1 : 0;
    if (convergence->nonfinite_in_row >= MONITOR_END_STEPS)
        end_training(convergence, MONITOR_NO_LOSS, stats, convergence->nonfinite_in_row);
    else if (convergence->lowest_in_row >= MONITOR_END_STEPS)
        end_training(convergence, MONITOR_NO_STEP, stats, convergence->lowest_in_row);
}

/* ---- nothing is learnt ----------------------------------------------------------------------- */

/* Adds the step's error to the ring. Returns whether the mean of a full ring was computed. */
static bool add_error(struct monitor_convergence *convergence, const struct Stats *stats)
{
    double sum = 0.0;
    if (!isfinite(stats->square) || !monitor_has_loss(stats))
        return false;
    convergence->errors[convergence->error_count++ % MONITOR_NORMS] = stats->square;
    if (convergence->error_count < MONITOR_NORMS)
        return false;
    for (size_t i = 0; i < MONITOR_NORMS; i++)
        sum += (double)convergence->errors[i];
    convergence->error = sum / MONITOR_NORMS;
    if (convergence->best > 0.0 && convergence->error >= convergence->best)
        return true;
    convergence->best = convergence->error;
    convergence->best_step = stats->step;
    return true;
}

/* Warns of an error far above the best one, and ends a training that is worse than one colour after
 * it was better. */
static bool check_worse(struct monitor_convergence *convergence, const struct Stats *stats,
                        char *line)
{
    bool is_worse = convergence->error >= WORSE_FACTOR * convergence->best &&
                    convergence->error >= convergence->constant_error / WORSE_FACTOR;
    bool as_constant = convergence->best <= convergence->constant_error / 2 &&
                       convergence->error >= convergence->constant_error;
    convergence->worse_in_row = is_worse ? convergence->worse_in_row + 1 : 0;
    convergence->constant_in_row = as_constant ? convergence->constant_in_row + 1 : 0;
    if (convergence->constant_in_row >= DIVERGED_STEPS)
        end_training(convergence, MONITOR_DIVERGED, stats, convergence->constant_in_row);
    if (convergence->warned_worse || convergence->worse_in_row < WORSE_STEPS)
        return false;
    convergence->warned_worse = true;
    snprintf(line, MONITOR_LINE,
             "step %u: the training rays have been 6 dB worse than at their best for %u steps "
             "(%.2f dB, %.2f dB at step %u): lower optimizer.learning_rate",
             stats->step, WORSE_STEPS, convergence_psnr(convergence->error),
             convergence_psnr(convergence->best), convergence->best_step);
    return true;
}

static bool check_constant(struct monitor_convergence *convergence, const struct Stats *stats,
                           char *line)
{
    if (convergence->warned_constant || convergence->error_count < CONSTANT_STEPS ||
        convergence->best < CONSTANT_SHARE * convergence->constant_error)
        return false;
    convergence->warned_constant = true;
    snprintf(
        line, MONITOR_LINE,
        "step %u: nothing has been learnt: the training rays are at %.2f dB, where one colour "
        "for all of them has %.2f dB: lower optimizer.learning_rate, and see whether the poses "
        "fit (vknerf info SCENE)",
        stats->step, convergence_psnr(convergence->error),
        convergence_psnr(convergence->constant_error));
    return true;
}

bool convergence_step(struct monitor *monitor, const struct Stats *stats, bool skipped,
                      char line[MONITOR_LINE])
{
    struct monitor_convergence *convergence = &monitor->convergence;
    convergence->loss_scale = stats->loss_scale;
    check_steps(monitor, stats, skipped);
    if (!add_error(convergence, stats) || !(convergence->constant_error > 0.0))
        return false;
    bool warns = check_worse(convergence, stats, line);
    return !warns ? check_constant(convergence, stats, line) : warns;
}

bool convergence_is_constant(const struct monitor *monitor)
{
    const struct monitor_convergence *convergence = &monitor->convergence;
    return convergence->constant_error > 0.0 && convergence->error_count >= LEAST_STEPS &&
           convergence->error >= CONSTANT_SHARE * convergence->constant_error;
}

/* ---- failure --------------------------------------------------------------------------------- */

bool monitor_ended(const struct monitor *monitor, char line[MONITOR_LINE])
{
    const struct monitor_convergence *convergence = &monitor->convergence;
    switch (convergence->end) {
    case MONITOR_NO_LOSS:
        snprintf(line, MONITOR_LINE, "the training has diverged: since step %u no loss was finite",
                 convergence->since_step);
        return true;
    case MONITOR_NO_STEP:
        snprintf(
            line, MONITOR_LINE,
            "no step is taken any more: every step since step %u was skipped, because gradients "
            "are not finite at the lowest loss scale",
            convergence->since_step);
        return true;
    case MONITOR_DIVERGED:
        snprintf(line, MONITOR_LINE,
                 "the training has diverged: since step %u the training rays are worse than one "
                 "colour for all of them (%.2f dB, %.2f dB), after %.2f dB at step %u",
                 convergence->since_step, convergence_psnr(convergence->error),
                 convergence_psnr(convergence->constant_error), convergence_psnr(convergence->best),
                 convergence->best_step);
        return true;
    default:
        return false;
    }
}

void monitor_describe_failure(const struct monitor *monitor, uint32_t step, char line[MONITOR_LINE])
{
    const struct monitor_convergence *convergence = &monitor->convergence;
    if (convergence->nonfinite_in_row > 0)
        snprintf(line, MONITOR_LINE, "the training has diverged: since step %u no loss was finite",
                 step + 1 - convergence->nonfinite_in_row);
    else
        snprintf(line, MONITOR_LINE,
                 "no step was taken: all %u were skipped, because their gradients are not finite "
                 "at a loss scale of %.4g",
                 monitor->skips.state_skipped, (double)convergence->loss_scale);
}

bool monitor_is_sound(const struct monitor *monitor)
{
    const struct monitor_convergence *convergence = &monitor->convergence;
    return convergence->end == MONITOR_GOES_ON && convergence->nonfinite_in_row == 0 &&
           monitor->skips.in_row < SKIPPED_ROW && convergence->worse_in_row == 0 &&
           convergence->constant_in_row == 0;
}
