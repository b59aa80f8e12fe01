/* Collects the times of passes and the events of a training run. */
#include "train/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EVENTS ((size_t)1 << 17)

/* ---- events -------------------------------------------------------------------------------- */

static void add_event(struct profile *profile, const struct trace_event *event)
{
    if (profile->event_count == profile->event_capacity) {
        size_t capacity = profile->event_capacity ? 2 * profile->event_capacity : 1024;
        struct trace_event *grown =
            capacity <= MAX_EVENTS ? realloc(profile->events, capacity * sizeof(*grown)) : NULL;
        if (!grown) {
            profile->events_lost++;
            return;
        }
        profile->events = grown;
        profile->event_capacity = capacity;
    }
    profile->events[profile->event_count++] = *event;
}

void profile_add_host(struct profile *profile, const char *name, double began, uint64_t step)
{
    if (profile->detailed)
        add_event(profile, &(struct trace_event){.name = name,
                                                 .track = TRACE_HOST,
                                                 .begin = began,
                                                 .end = base_seconds(),
                                                 .step = step});
}

/* Returns whether the trace has the passes of an interval: one of the first four, or one whose
 * number is a power of two or one more. */
static bool is_sampled(uint64_t interval)
{
    return interval < 4 || (interval & (interval - 1)) == 0 ||
           ((interval - 1) & (interval - 2)) == 0;
}

/* Returns host time minus device time from calibrated clocks. Without them, lowers fence_offset,
 * the upper bound so far, and returns 0. */
static double clock_offset(struct profile *profile, const struct profile_interval *interval)
{
    if (interval->clocks) {
        profile->clocks_read = true;
        profile->deviation = fmax(profile->deviation, interval->clocks->deviation);
        /* Inexact readings must not make intervals overlap. */
        double offset = interval->clocks->host - interval->clocks->device;
        offset = fmax(offset, profile->aligned_end - interval->timings->begin);
        profile->aligned_end = interval->timings[interval->count - 1].end + offset;
        return offset;
    }
    double offset = interval->wait_end - interval->timings[interval->count - 1].end;
    if (profile->intervals == 0 || offset < profile->fence_offset)
        profile->fence_offset = offset;
    return 0.0;
}

/* Returns a slot's step; for passes that run once an interval, the interval's last step. */
static uint64_t step_of(const struct profile_interval *interval, uint32_t slot)
{
    return slot < UPDATE_INTERVAL ? interval->from / UPDATE_INTERVAL * UPDATE_INTERVAL + slot + 1
                                  : interval->to;
}

/* Returns whether the slot's step ran: after a stop within an interval the other slots are idle. */
static bool ran(const struct profile_interval *interval, uint32_t slot)
{
    uint64_t step = step_of(interval, slot);
    return slot == UPDATE_INTERVAL || (interval->from < step && step <= interval->to);
}

static void add_events(struct profile *profile, const struct profile_interval *interval,
                       double offset, double idle)
{
    const struct step_timing *timings = interval->timings;
    const struct step_timing *last = &timings[interval->count - 1];
    add_event(profile, &(struct trace_event){.name = "period",
                                             .track = TRACE_DEVICE_INTERVALS,
                                             .begin = timings->begin + offset,
                                             .end = last->end + offset,
                                             .step = interval->to,
                                             .idle = idle});
    for (uint32_t i = 0; is_sampled(profile->intervals) && i < interval->count; i++)
        if (ran(interval, timings[i].slot))
            add_event(profile, &(struct trace_event){
                                   .name = timings[i].name,
                                   .track = TRACE_DEVICE_PASSES,
                                   .begin = timings[i].begin + offset,
                                   .end = timings[i].end + offset,
                                   .step = step_of(interval, timings[i].slot),
                                   .idle = i > 0 ? timings[i].begin - timings[i - 1].end : 0.0,
                               });
}

/* ---- sums ---------------------------------------------------------------------------------- */

static void add_pass(struct profile *profile, const char *name, double seconds, double steps)
{
    uint32_t i = 0;
    while (i < profile->pass_count && strcmp(profile->passes[i].name, name) != 0)
        i++;
    if (i == STEP_MAX_PASSES)
        return;
    if (i == profile->pass_count)
        profile->passes[profile->pass_count++].name = name;
    profile->passes[i].seconds += seconds;
    profile->passes[i].steps += steps;
}

static double add_idle(struct profile *profile, const struct profile_interval *interval)
{
    const struct step_timing *timings = interval->timings;
    double idle = 0.0;
    for (uint32_t i = 1; i < interval->count; i++)
        if (ran(interval, timings[i - 1].slot) || ran(interval, timings[i].slot))
            idle += timings[i].begin - timings[i - 1].end;
    profile->idle += idle;
    if (interval->queued && profile->intervals > 0) {
        profile->interval_idle += fmax(timings->begin - profile->last_end, 0.0);
        profile->interval_gaps++;
    }
    profile->last_end = timings[interval->count - 1].end;
    return idle;
}

void profile_add_interval(struct profile *profile, const struct profile_interval *interval)
{
    if (interval->count == 0)
        return;
    for (uint32_t i = 0; i < interval->count; i++) {
        const struct step_timing *timing = &interval->timings[i];
        if (ran(interval, timing->slot))
            add_pass(profile, timing->name, timing->end - timing->begin,
                     timing->again                     ? 0.0
                     : timing->slot == UPDATE_INTERVAL ? (double)(interval->to - interval->from)
                                                       : 1.0);
    }
    if (profile->detailed) {
        double offset = clock_offset(profile, interval), idle = add_idle(profile, interval);
        add_events(profile, interval, offset, idle);
    }
    profile->intervals++;
}

/* ---- the file ------------------------------------------------------------------------------ */

vkn_status profile_write_trace(struct profile *profile, const char *path, double origin,
                               const char *device, const char *driver)
{
    for (size_t i = 0; !profile->clocks_read && i < profile->event_count; i++)
        if (profile->events[i].track != TRACE_HOST) {
            profile->events[i].begin += profile->fence_offset;
            profile->events[i].end += profile->fence_offset;
        }
    profile->fence_offset = 0.0;
    const struct trace trace = {
        .device = device,
        .driver = driver,
        .clocks = profile->clocks_read
                      ? "VK_EXT_calibrated_timestamps: device clock and CLOCK_MONOTONIC read "
                        "together after every update interval"
                      : "by fences: no update interval ends later than the host noticed",
        .deviation = profile->clocks_read ? profile->deviation : -1.0,
        .origin = origin,
        .events = profile->events,
        .count = profile->event_count,
        .lost = profile->events_lost,
    };
    return report_write_trace(path, &trace);
}

void profile_free(struct profile *profile)
{
    free(profile->events);
    profile->events = NULL;
}
