/* Warns of ranks that other ranks wait for. */
#include <string.h>

#include "parallel/internal.h"

#define WARN_SECONDS      10.0 /* seconds until the first warning of a missing rank */
#define LATE_WARN_SECONDS 60.0 /* the same for ranks that may be late (parallel_may_be_late) */
/* Most seconds between two polls that count as waiting. A waiting rank polls several times a
 * second; if more time passes, the rank itself was suspended. */
#define LONGEST_POLL      1.0

void parallel_count_wait(struct parallel_wait *wait)
{
    double now = base_seconds(), passed = wait->last_poll != 0 ? now - wait->last_poll : 0.0;
    wait->last_poll = now;
    wait->seconds += passed < LONGEST_POLL ? passed : LONGEST_POLL;
}

bool parallel_may_be_late(const struct parallel *parallel, const bool *present)
{
    return parallel->expects_delays && (!parallel->has_begun || !present[0]);
}

void parallel_name_missing(const struct parallel *parallel, const bool *present,
                           char names[PARALLEL_NAMES])
{
    uint32_t missing = 0, named = 0;
    for (uint32_t rank = 0; rank < parallel->size; rank++)
        missing += !present[rank];
    size_t used = (size_t)snprintf(names, PARALLEL_NAMES, "%s",
                                   missing == 0   ? ""
                                   : missing == 1 ? "rank"
                                                  : "ranks");
    for (uint32_t rank = 0; rank < parallel->size && named < 16; rank++)
        if (!present[rank])
            used += (size_t)snprintf(names + used, PARALLEL_NAMES - used, "%s %u",
                                     named++ > 0 ? "," : "", rank);
    if (named < missing)
        snprintf(names + used, PARALLEL_NAMES - used, " and %u more", missing - named);
}

static void warn_missing(const struct parallel *parallel, const bool *present, double seconds)
{
    char names[PARALLEL_NAMES];
    uint32_t first = 0;
    while (first < parallel->size && !present[first])
        first++;
    parallel_name_missing(parallel, present, names);
    if (names[0] == '\0' || first != parallel->rank)
        return;
    base_log(BASE_LOG_WARNING,
             "%s: no answer for %.0f s (step %llu)%s; waiting goes on until the run is stopped",
             names, seconds, (unsigned long long)parallel->step,
             parallel_may_be_late(parallel, present) ? ", which may load, compile, evaluate or save"
                                                     : "");
}

void parallel_warn_missing(const struct parallel *parallel, const bool *present,
                           struct parallel_wait *wait)
{
    double first = parallel_may_be_late(parallel, present) ? LATE_WARN_SECONDS : WARN_SECONDS;
    if (wait->seconds < (wait->last_warning > 0 ? 2 * wait->last_warning : first))
        return;
    wait->last_warning = wait->seconds;
    warn_missing(parallel, present, wait->seconds);
}
