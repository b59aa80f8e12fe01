/* Warns of ranks that the others have been waiting for. */
#include <string.h>

#include "parallel/internal.h"

#define SILENCE      10.0 /* seconds until the first warning of a missing rank */
#define LATE_SILENCE 60.0 /* the same of a rank that may be late, see parallel_may_be_late */
/* Seconds. A waiting rank polls several times a second. A longer time between two polls means that
 * the rank itself was suspended, and is not counted as waiting. */
#define LONGEST_LOOK 1.0

void parallel_count_wait(struct parallel_wait *wait)
{
    double now = base_seconds(), passed = wait->looked != 0 ? now - wait->looked : 0.0;
    wait->looked = now;
    wait->seconds += passed < LONGEST_LOOK ? passed : LONGEST_LOOK;
}

bool parallel_may_be_late(const struct parallel *parallel, const bool *here)
{
    return parallel->expects_delays && (!parallel->begun || !here[0]);
}

void parallel_name_missing(const struct parallel *parallel, const bool *here,
                           char names[PARALLEL_NAMES])
{
    uint32_t missing = 0, named = 0;
    for (uint32_t rank = 0; rank < parallel->size; rank++)
        missing += !here[rank];
    size_t used = (size_t)snprintf(names, PARALLEL_NAMES, "%s",
                                   missing == 0   ? ""
                                   : missing == 1 ? "rank"
                                                  : "ranks");
    for (uint32_t rank = 0; rank < parallel->size && named < 16; rank++)
        if (!here[rank])
            used += (size_t)snprintf(names + used, PARALLEL_NAMES - used, "%s %u",
                                     named++ > 0 ? "," : "", rank);
    if (named < missing)
        snprintf(names + used, PARALLEL_NAMES - used, " and %u more", missing - named);
}

static void warn_missing(const struct parallel *parallel, const bool *here, double seconds)
{
    char names[PARALLEL_NAMES];
    uint32_t first = 0;
    while (first < parallel->size && !here[first])
        first++;
    parallel_name_missing(parallel, here, names);
    if (names[0] == '\0' || first != parallel->rank)
        return;
    base_log(BASE_LOG_WARNING,
             "%s: no answer for %.0f s (step %llu)%s; waiting goes on until the run is stopped",
             names, seconds, (unsigned long long)parallel->step,
             parallel_may_be_late(parallel, here) ? ", which may load, compile, evaluate or save"
                                                  : "");
}

void parallel_warn_missing(const struct parallel *parallel, const bool *here,
                           struct parallel_wait *wait)
{
    double first = parallel_may_be_late(parallel, here) ? LATE_SILENCE : SILENCE;
    if (wait->seconds < (wait->told > 0 ? 2 * wait->told : first))
        return;
    wait->told = wait->seconds;
    warn_missing(parallel, here, wait->seconds);
}
