/* Warns of unusual gradients and losses, and advises what to change after a failure. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/config.h"
#include "monitor/internal.h"
#include "monitor/monitor.h"

/* On the bundled scene with dynamic scaling 0.04 % of the gradients underflow on average, and
 * 0.15 % at most; static scales at which 1, 2, 5 and 19 % underflow cost 0.4, 1, 1.7 and 9 dB in
 * 150 steps. Norms stay within ten times the usual one. */
#define MUCH_UNDERFLOW 0.02          /* share of the gradients */
#define MOST_UNDERFLOW 0.1           /* share above which little is learnt */
#define LARGE_JUMP     100.0         /* times the usual norm */
#define MANY_ZEROS     MONITOR_NORMS /* steps in a row */

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Returns the median of the last norms, at most MONITOR_NORMS; 0 until they are of as many steps.
 */
static double usual_norm(const struct monitor *monitor)
{
    float sorted[MONITOR_NORMS];
    uint32_t count = monitor->norm_count < MONITOR_NORMS ? monitor->norm_count : MONITOR_NORMS;
    if (monitor->norm_steps < MONITOR_NORMS)
        return 0.0;
    memcpy(sorted, monitor->norms, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    return 0.5 * ((double)sorted[(count - 1) / 2] + (double)sorted[count / 2]);
}

/* Adds `steps` in which a condition holds; returns whether to warn of it, at most once. */
static bool is_new(struct monitor *monitor, enum monitor_condition condition, uint32_t steps,
                   bool warn)
{
    monitor->counts[condition] += steps;
    if (!warn || monitor->warned[condition])
        return false;
    monitor->warned[condition] = true;
    return true;
}

/* Follows whether a dynamic scale has overflowed since it last grew. */
static void follow_scale(struct monitor *monitor, const struct Stats *stats, bool skipped)
{
    bool grew = stats->loss_scale > monitor->convergence.loss_scale;
    monitor->scale.overflowed = skipped || (monitor->scale.overflowed && !grew);
}

/* Returns what to change if gradients underflow; NULL if a dynamic scale will grow by itself. */
static const char *advise_underflow(const struct monitor_scale *scale, const struct Stats *stats)
{
    if (scale->kind != SCALE_DYNAMIC)
        return "use --loss-scale dynamic or a larger scale";
    if (stats->loss_scale >= scale->highest)
        return "use a larger loss_scale.maximum";
    if (scale->overflowed)
        return "a larger scale overflowed; --precision fp32 keeps small gradients";
    return stats->underflowed > scale->underflow ? NULL : "use a smaller loss_scale.underflow";
}

static bool check_underflow(struct monitor *monitor, const struct Stats *stats,
                            char line[MONITOR_LINE])
{
    bool is_much = (double)stats->underflowed > MUCH_UNDERFLOW;
    const char *advice = advise_underflow(&monitor->scale, stats);
    monitor->underflowed += (is_much - monitor->underflowed) / MONITOR_NORMS;
    monitor->lost += ((is_much && advice) - monitor->lost) / MONITOR_NORMS;
    if (!is_new(monitor, MONITOR_UNDERFLOW, is_much ? 1 : 0, advice && monitor->lost > 0.5))
        return false;
    snprintf(line, MONITOR_LINE,
             "step %u: %.0f %% of the gradients underflow in f16 at a loss scale of %.4g: %s; %s",
             stats->step, 100.0 * (double)stats->underflowed, (double)stats->loss_scale,
             (double)stats->underflowed > MOST_UNDERFLOW ? "little is learnt"
                                                         : "small gradients count as zero",
             advice);
    return true;
}

/* Warns of zero gradients, unless underflow explains them. */
static bool check_zero(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE])
{
    bool is_zero = !(stats->grad_norm > 0.0f);
    monitor->zeros_in_row = is_zero ? monitor->zeros_in_row + monitor->steps_of_norm : 0;
    if (!is_new(monitor, MONITOR_ZERO, is_zero ? monitor->steps_of_norm : 0,
                monitor->zeros_in_row >= MANY_ZEROS && monitor->underflowed < 0.5))
        return false;
    snprintf(line, MONITOR_LINE,
             "step %u: the gradient was zero in the last %d steps: nothing is learnt; check that "
             "the views see the training space (vknerf info SCENE), and optimizer.learning_rate",
             stats->step, MANY_ZEROS);
    return true;
}

/* Warns of jumps of the norm, unless `line` already has an `other` warning. */
static bool check_jump(struct monitor *monitor, const struct Stats *stats, bool other,
                       char line[MONITOR_LINE])
{
    double norm = (double)stats->grad_norm, usual = usual_norm(monitor);
    bool jumps = usual > 0.0 && norm > LARGE_JUMP * usual;
    if (norm > 0.0) {
        monitor->norms[monitor->norm_count++ % MONITOR_NORMS] = stats->grad_norm;
        monitor->norm_steps += monitor->steps_of_norm;
    }
    if (!is_new(monitor, MONITOR_JUMP, jumps ? monitor->steps_of_norm : 0, jumps && !other))
        return false;
    snprintf(line, MONITOR_LINE,
             "step %u: the gradient's norm jumps to %.3g, %.0f times the usual %.3g: lower "
             "optimizer.learning_rate, or clip such gradients with --set optimizer.clip_norm=%.1g",
             stats->step, norm, norm / usual, usual, 10.0 * usual);
    return true;
}

bool monitor_has_loss(const struct Stats *stats)
{
    return isfinite(stats->loss + stats->distortion_loss + stats->coarse_loss);
}

/* Warns once of a loss that is not finite: if parameters are NaN, all later losses are NaN too. */
static bool check_loss(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE])
{
    if (monitor_has_loss(stats) || monitor->nonfinite_losses++ > 0)
        return false;
    snprintf(line, MONITOR_LINE,
             "step %u: the loss is not finite: the field's values are not finite; lower "
             "optimizer.learning_rate, undo settings of policy.*, or compute in --precision fp32",
             stats->step);
    return true;
}

void monitor_begin(struct monitor *monitor, const struct Config *constants, uint32_t skipped_steps,
                   double constant_error)
{
    *monitor = (struct monitor){
        .scale = {.kind = constants->scale_kind,
                  .growth = constants->scale_growth,
                  .backoff = constants->scale_backoff,
                  .lowest = constants->scale_minimum,
                  .highest = constants->scale_maximum,
                  .underflow = constants->scale_underflow,
                  .interval = constants->scale_interval,
                  .points = constants->scale_points},
        .skips = {.state_skipped = skipped_steps},
        .convergence = {.constant_error = constant_error},
    };
    memcpy(monitor->scale.schedule, constants->schedule, sizeof monitor->scale.schedule);
}

/* Writes at most one warning to `line`; others follow at later steps. */
static bool check_gradient(struct monitor *monitor, const struct Stats *stats,
                           char line[MONITOR_LINE])
{
    if (!isfinite(stats->grad_norm)) /* a skipped step, of which skips_warn warns */
        return false;
    monitor->steps++;
    bool underflowed = check_underflow(monitor, stats, line);
    monitor->steps_of_norm++;
    if (stats->grad_norm < 0) /* not computed in this step */
        return underflowed;
    bool zero = check_zero(monitor, stats, line);
    bool jumps = check_jump(monitor, stats, underflowed || zero, line);
    monitor->steps_of_norm = 0;
    return underflowed || zero || jumps;
}

bool monitor_step(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE])
{
    bool skipped = skips_count(monitor, stats);
    follow_scale(monitor, stats, skipped);
    bool warns = convergence_step(monitor, stats, skipped, line);
    if (check_loss(monitor, stats, line))
        return true;
    return warns || check_gradient(monitor, stats, line) || skips_warn(monitor, stats, line);
}

/* Appends to the line, after "; " unless the line is empty. */
__attribute__((format(__printf__, 3, 4))) static size_t append(char line[MONITOR_LINE], size_t used,
                                                               const char *format, ...)
{
    va_list arguments;
    if (used > 0 && used < MONITOR_LINE)
        used += (size_t)snprintf(line + used, MONITOR_LINE - used, "; ");
    if (used >= MONITOR_LINE)
        return used;
    va_start(arguments, format);
    used += (size_t)vsnprintf(line + used, MONITOR_LINE - used, format, arguments);
    va_end(arguments);
    return used;
}

bool monitor_summary(const struct monitor *monitor, char line[MONITOR_LINE])
{
    static const char *const texts[] = {
        [MONITOR_UNDERFLOW] = "more than 2 % of the gradients underflowed in f16",
        [MONITOR_JUMP] = "the gradient's norm was more than 100 times the usual one",
        [MONITOR_ZERO] = "the gradient was zero"};
    const struct monitor_skips *skips = &monitor->skips;
    const struct monitor_convergence *convergence = &monitor->convergence;
    size_t used = 0;
    for (size_t i = 0; i < MONITOR_CONDITIONS; i++)
        if (monitor->warned[i])
            used = append(line, used, "in %llu of %llu steps %s",
                          (unsigned long long)monitor->counts[i],
                          (unsigned long long)monitor->steps, texts[i]);
    if (monitor->nonfinite_losses > 0)
        used = append(line, used, "steps whose loss was not finite: %llu",
                      (unsigned long long)monitor->nonfinite_losses);
    if (skips_are_many(monitor))
        used = append(line, used, "%llu of %llu steps (%.0f %%) were skipped",
                      (unsigned long long)skips->skipped, (unsigned long long)skips->steps,
                      100.0 * (double)skips->skipped / (double)skips->steps);
    if (convergence->warned_worse)
        used = append(line, used, "the training rays ended at %.2f dB, and had %.2f dB at step %u",
                      convergence_psnr(convergence->error), convergence_psnr(convergence->best),
                      convergence->best_step);
    if (convergence_is_constant(monitor))
        used = append(line, used,
                      "the training rays ended at %.2f dB, where one colour for all of them has "
                      "%.2f dB: nothing was learnt; %slower optimizer.learning_rate",
                      convergence_psnr(convergence->error),
                      convergence_psnr(convergence->constant_error),
                      monitor->zeros_in_row < MANY_ZEROS ? "train longer, or " : "");
    return used > 0;
}

/* ---- advice ---------------------------------------------------------------------------------- */

void monitor_advise(const struct monitor *monitor, const struct vkn_config *config,
                    const char *policy, bool skipped, struct base_text *text)
{
    float scale = monitor->convergence.loss_scale;
    char *rate = NULL;
    if (skipped && config->loss_scale.kind != VKN_LOSS_SCALE_DYNAMIC && scale > 1.0f)
        base_text_add(text, "use a smaller loss scale than %.4g, such as --loss-scale dynamic, or ",
                      (double)scale);
    else if (skipped && scale > 1.0f && scale <= config->loss_scale.minimum)
        base_text_add(text, "use a smaller loss_scale.minimum than %.4g, or ", (double)scale);
    else if (skipped && scale > 1.0f && !monitor->skips.settled)
        base_text_add(text, "begin with a smaller loss_scale.initial than %.4g, or ",
                      (double)config->loss_scale.initial);
    if (policy[0])
        base_text_add(text, "undo %s, or ", policy);
    if (vkn_config_get(config, "optimizer.learning_rate", &rate) == VKN_OK)
        base_text_add(text, "lower optimizer.learning_rate (%s now)", rate);
    vkn_free(rate);
    if (config->optimizer.clip_norm <= 0.0f && !skipped)
        base_text_add(text, ", or clip large gradients (optimizer.clip_norm)");
    if (config->precision != VKN_PRECISION_FP32)
        base_text_add(text, ", or compute in --precision fp32");
}
