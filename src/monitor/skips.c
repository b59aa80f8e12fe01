/* Warns when too many steps are skipped because of values that are not finite, and gives advice. */
#include "monitor/internal.h"

#include <stdio.h>

/* By default a dynamic scale overflows once in 2000 steps. On the bundled scene a scale that begins
 * with 2^40 backs off 7 times after its search, while gradients grow. */
#define RECENT          64   /* steps */
#define MANY_RECENT     16   /* skipped of the recent ones */
#define SHARE_OF_ALL    0.05 /* skipped of all steps */
#define FEW             8    /* skipped steps up to which the summary says nothing */
#define LEAST_FOR_SHARE 256  /* steps after which SHARE_OF_ALL counts during training */

static unsigned count_bits(uint64_t bits)
{
    unsigned count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

bool skips_count(struct monitor *monitor, const struct Stats *stats)
{
    struct monitor_skips *skips = &monitor->skips;
    bool skipped = stats->skipped_steps != skips->state_skipped;
    bool in_search = skipped && !skips->settled && monitor->scale.kind == SCALE_DYNAMIC;
    skips->state_skipped = stats->skipped_steps;
    skips->settled = skips->settled || !in_search;
    skips->steps++;
    skips->skipped += skipped;
    skips->searched += in_search;
    skips->recent = skips->recent << 1 | (skipped && !in_search);
    skips->in_row = skipped ? skips->in_row + 1 : 0;
    return skipped;
}

static double skipped_share(const struct monitor_skips *skips)
{
    double steps = (double)(skips->steps - skips->searched);
    return steps > 0.0 ? (double)(skips->skipped - skips->searched) / steps : 0.0;
}

bool skips_are_many(const struct monitor *monitor)
{
    const struct monitor_skips *skips = &monitor->skips;
    return skips->warned_row || skips->warned_share ||
           (skipped_share(skips) > SHARE_OF_ALL && skips->skipped - skips->searched > FEW);
}

/* ---- what to change -------------------------------------------------------------------------- */

/* Advises to change the setting that is furthest from its default. */
static void advise_dynamic(const struct monitor *monitor, char *text, size_t size)
{
    const struct monitor_scale *scale = &monitor->scale;
    if (monitor->convergence.loss_scale <= scale->lowest && scale->lowest > 1.0f)
        snprintf(text, size, "use a smaller loss_scale.minimum (%g now)", (double)scale->lowest);
    else if (!monitor->skips.settled)
        snprintf(text, size, "begin with a smaller loss_scale.initial");
    else if (scale->growth > 2.0f && scale->interval < 2000)
        snprintf(
            text, size,
            "the scale grows too much too often: use a smaller loss_scale.growth (%g now, 2 by "
            "default) or a longer loss_scale.interval (%u now, 2000 by default)",
            (double)scale->growth, scale->interval);
    else if (scale->interval < 2000)
        snprintf(text, size,
                 "the scale grows too often: use a longer loss_scale.interval (%u now, 2000 by "
                 "default)",
                 scale->interval);
    else if (scale->growth > 2.0f)
        snprintf(text, size,
                 "the scale grows too much: use a smaller loss_scale.growth (%g now, 2 by default)",
                 (double)scale->growth);
    else if (scale->backoff > 0.5f)
        snprintf(
            text, size,
            "the scale comes down too slowly: use a smaller loss_scale.backoff (%g now, 0.5 by "
            "default)",
            (double)scale->backoff);
    else
        snprintf(text, size, "lower optimizer.learning_rate, or compute in --precision fp32");
}

static void advise(const struct monitor *monitor, const struct Stats *stats, char *text,
                   size_t size)
{
    uint32_t kind = monitor->scale.kind;
    if (kind == SCALE_DYNAMIC)
        advise_dynamic(monitor, text, size);
    else if (kind == SCALE_SCHEDULE)
        snprintf(
            text, size,
            "lower the scale of loss_scale.schedule at this step, or use --loss-scale dynamic");
    else if (stats->loss_scale > 1.0f)
        snprintf(text, size, "use a smaller static scale, or --loss-scale dynamic");
    else
        snprintf(text, size, "lower optimizer.learning_rate");
}

/* ---- warnings -------------------------------------------------------------------------------- */

bool skips_warn(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE])
{
    struct monitor_skips *skips = &monitor->skips;
    unsigned recent = count_bits(skips->recent);
    bool is_row = !skips->warned_row && !skips->warned_share && skips->in_row >= RECENT;
    bool are_many = !skips->warned_share && recent > MANY_RECENT;
    bool is_share = !skips->warned_share && skips->steps - skips->searched >= LEAST_FOR_SHARE &&
                    skipped_share(skips) > SHARE_OF_ALL;
    char advice[MONITOR_LINE / 2], count[96];
    if ((!is_row && !are_many && !is_share) ||
        monitor->convergence.nonfinite_in_row > 0) /* check_loss warns of steps without a loss */
        return false;
    skips->warned_row = skips->warned_row || is_row;
    skips->warned_share = skips->warned_share || are_many || is_share;
    if (is_row)
        snprintf(count, sizeof count, "the last %d steps were skipped", RECENT);
    else if (are_many)
        snprintf(count, sizeof count, "%u of the last %llu steps were skipped", recent,
                 (unsigned long long)(skips->steps < RECENT ? skips->steps : RECENT));
    else
        snprintf(count, sizeof count, "%llu of %llu steps (%.0f %%) were skipped",
                 (unsigned long long)skips->skipped, (unsigned long long)skips->steps,
                 100.0 * (double)skips->skipped / (double)skips->steps);
    advise(monitor, stats, advice, sizeof advice);
    snprintf(line, MONITOR_LINE,
             "step %u: %s: at a loss scale of %.4g their gradients are not finite; %s", stats->step,
             count, (double)stats->loss_scale, advice);
    return true;
}
