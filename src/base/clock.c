/* Reads the monotonic clock, and sleeps. */
#include <time.h>

#include "base/base.h"

double base_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void base_sleep(double seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}
