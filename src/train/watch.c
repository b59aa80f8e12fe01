#include "train/watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With dynamic scaling the bundled scene flushes 0.04 % on average and 0.15 % at most; static scales
 * that flush 1, 2, 5 and 19 % cost it 0.4, 1, 1.7 and 9 dB in 150 steps. Its norms stay within tenfold
 * of the usual one. */
#define MUCH_FLUSHED 0.02
#define LARGE_JUMP   100.0
#define MANY_ZEROS   WATCH_NORMS /* steps in a row */

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* 0 until there are enough. */
static double usual_norm(const struct watch *watch)
{
    float sorted[WATCH_NORMS];
    if (watch->norm_count < WATCH_NORMS)
        return 0.0;
    memcpy(sorted, watch->norms, sizeof sorted);
    qsort(sorted, WATCH_NORMS, sizeof *sorted, by_size);
    return 0.5 * ((double)sorted[WATCH_NORMS / 2 - 1] + (double)sorted[WATCH_NORMS / 2]);
}

/* Counts a condition that holds in this step; whether it is to be told for the first time. */
static bool is_new(struct watch *watch, enum watch_condition condition, bool holds, bool tell)
{
    watch->counts[condition] += holds;
    if (!tell || watch->told[condition])
        return false;
    watch->told[condition] = true;
    return true;
}

static bool watch_flushed(struct watch *watch, const struct Stats *stats, char line[WATCH_LINE])
{
    bool much = (double)stats->flushed > MUCH_FLUSHED;
    watch->flushed += (much - watch->flushed) / WATCH_NORMS;
    if (!is_new(watch, WATCH_FLUSHED, much, watch->flushed > 0.5))
        return false;
    snprintf(line, WATCH_LINE,
             "step %u: 16 bits turn %.0f %% of the gradients into zero at a loss scale of %.4g: "
             "little is learnt; use --loss-scale dynamic or a larger scale",
             stats->step, 100.0 * (double)stats->flushed, (double)stats->loss_scale);
    return true;
}

/* Zero gradients that flushing explains are not told once more. */
static bool watch_zero(struct watch *watch, const struct Stats *stats, char line[WATCH_LINE])
{
    bool zero = !(stats->grad_norm > 0.0f);
    watch->zeros = zero ? watch->zeros + 1 : 0;
    if (!is_new(watch, WATCH_ZERO, zero, watch->zeros >= MANY_ZEROS && watch->flushed < 0.5))
        return false;
    snprintf(line, WATCH_LINE,
             "step %u: the gradient was zero in the last %d steps: nothing is learnt; do the views "
             "see the training space (vknerf info SCENE), and is the learning rate sound?",
             stats->step, MANY_ZEROS);
    return true;
}

/* There is one line by step. */
static bool watch_jump(struct watch *watch, const struct Stats *stats, bool other,
                       char line[WATCH_LINE])
{
    double norm = (double)stats->grad_norm, usual = usual_norm(watch);
    bool jumps = usual > 0.0 && norm > LARGE_JUMP * usual;
    if (norm > 0.0)
        watch->norms[watch->norm_count++ % WATCH_NORMS] = stats->grad_norm;
    if (!is_new(watch, WATCH_JUMP, jumps, jumps && !other))
        return false;
    snprintf(line, WATCH_LINE,
             "step %u: the gradient's norm jumps to %.3g, %.0f times the usual %.3g: lower "
             "optimizer.learning_rate, or cut such gradients with --set optimizer.clip_norm=%.1g",
             stats->step, norm, norm / usual, usual, 10.0 * usual);
    return true;
}

/* Such a step is skipped, and where parameters are no numbers any more all that follow are. */
static bool watch_loss(struct watch *watch, const struct Stats *stats, char line[WATCH_LINE])
{
    if (isfinite(stats->loss) || watch->lost++ > 0)
        return false;
    snprintf(line, WATCH_LINE,
             "step %u: the loss is not finite: the field's values are no numbers; lower "
             "optimizer.learning_rate, undo settings of policy.*, or compute in --precision fp32",
             stats->step);
    return true;
}

bool watch_step(struct watch *watch, const struct Stats *stats, char line[WATCH_LINE])
{
    if (watch_loss(watch, stats, line))
        return true;
    if (!isfinite(stats->grad_norm)) /* skipped, which is told elsewhere */
        return false;
    watch->steps++;
    bool flushed = watch_flushed(watch, stats, line);
    bool zero = watch_zero(watch, stats, line);
    bool jumps = watch_jump(watch, stats, flushed || zero, line);
    return flushed || zero || jumps;
}

bool watch_summary(const struct watch *watch, char line[WATCH_LINE])
{
    static const char *const texts[] = {
        [WATCH_FLUSHED] = "16 bits turned more than 2 % of the gradients into zero",
        [WATCH_JUMP] = "the gradient's norm was more than 100 times the usual one",
        [WATCH_ZERO] = "the gradient was zero"};
    size_t used = 0;
    for (size_t i = 0; i < WATCH_CONDITIONS; i++)
        if (watch->told[i] && used < WATCH_LINE)
            used += (size_t)snprintf(line + used, WATCH_LINE - used, "%sin %llu of %llu steps %s",
                                     used > 0 ? "; " : "", (unsigned long long)watch->counts[i],
                                     (unsigned long long)watch->steps, texts[i]);
    if (watch->lost > 0 && used < WATCH_LINE)
        used += (size_t)snprintf(line + used, WATCH_LINE - used,
                                 "%ssteps whose loss was not finite: %llu", used > 0 ? "; " : "",
                                 (unsigned long long)watch->lost);
    return used > 0;
}
