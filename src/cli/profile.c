/* Prints the tables of train --profile: passes and buffers. */
#include <stdio.h>

#include "cli/training.h"

#define MIB (1024.0 * 1024.0)

/* Returns work per time, in units of 10^9 per second. */
static double giga(double work, double milliseconds)
{
    return milliseconds > 0.0 ? work / (1e6 * milliseconds) : 0.0;
}

static void print_row(const struct vkn_pass_profile *pass, double step)
{
    fprintf(stderr, "%-20s %10.4f %6.1f%% %10.2f %9.2f %9.3f", pass->name, pass->milliseconds,
            step > 0.0 ? 100.0 * pass->milliseconds / step : 0.0,
            giga(pass->flops, pass->milliseconds), giga(pass->bytes, pass->milliseconds),
            giga(pass->atomics, pass->milliseconds));
    if (pass->floor_milliseconds > 0.0)
        fprintf(stderr, " %10.4f %8.1f  %s\n", pass->floor_milliseconds,
                pass->milliseconds / pass->floor_milliseconds, pass->bound);
    else
        fprintf(stderr, " %10s %8s\n", "-", "-");
}

static void print_idle(const char *name, double milliseconds, double step)
{
    fprintf(stderr, "%-20s %10.4f %6.1f%%\n", name, milliseconds,
            step > 0.0 ? 100.0 * milliseconds / step : 0.0);
}

static void print_facts(const struct vkn_profile *profile)
{
    fprintf(stderr,
            "a step: %.0f rays, %.0f samples marched, %.0f live, %.0f grid entries touched; "
            "means of %llu steps, in %llu command buffers\n",
            profile->rays, profile->marched_samples, profile->live_samples,
            profile->touched_entries, (unsigned long long)profile->steps,
            (unsigned long long)profile->intervals);
    if (profile->peak_flops > 0.0 || profile->peak_bytes > 0.0)
        fprintf(stderr,
                "floors from this device's peaks: %.1f GFLOP/s in registers, %.1f GB/s copied, "
                "%.2f G atomics/s\n",
                1e-9 * profile->peak_flops, 1e-9 * profile->peak_bytes,
                1e-9 * profile->peak_atomics);
}

static void print_buffers(const struct vkn_train_result *result)
{
    double all = (double)result->gpu_memory_bytes;
    fprintf(stderr, "%-20s %10s %7s  %s\n", "buffer", "MiB", "share", "memory");
    for (size_t i = 0; i < result->buffer_count; i++) {
        const struct vkn_buffer_memory *buffer = &result->buffers[i];
        double bytes = (double)buffer->bytes;
        fprintf(stderr, "%-20s %10.3f %6.1f%%  %s\n", buffer->name, bytes / MIB,
                100.0 * bytes / all, buffer->on_host ? "host" : "device");
    }
    fprintf(stderr, "%-20s %10.3f %6.1f%%\n", "all buffers", all / MIB, 100.0);
}

static void print_times(const struct vkn_profile *profile)
{
    if (profile->pass_count == 0) {
        fprintf(stderr, "no pass was timed: the device gives no timestamps\n");
        return;
    }
    struct vkn_pass_profile all = {.name = "all passes", .bound = ""};
    double idle = profile->idle_milliseconds + profile->interval_idle_milliseconds;
    for (size_t i = 0; i < profile->pass_count; i++) {
        all.milliseconds += profile->passes[i]->milliseconds;
        all.flops += profile->passes[i]->flops;
        all.bytes += profile->passes[i]->bytes;
        all.atomics += profile->passes[i]->atomics;
        all.floor_milliseconds += profile->passes[i]->floor_milliseconds;
    }
    double step = all.milliseconds + idle;
    fprintf(stderr, "%-20s %10s %7s %10s %9s %9s %10s %8s  %s\n", "pass", "ms a step", "share",
            "GFLOP/s", "GB/s", "Gatomic/s", "floor ms", "x floor", "bound by");
    for (size_t i = 0; i < profile->pass_count; i++)
        print_row(profile->passes[i], step);
    print_row(&all, step);
    print_idle("idle between passes", profile->idle_milliseconds, step);
    print_idle("idle between submits", profile->interval_idle_milliseconds, step);
    print_facts(profile);
}

void training_print_profile(const struct vkn_train_result *result)
{
    if (result->profile)
        print_times(result->profile);
    print_buffers(result);
}
