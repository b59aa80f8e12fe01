/* Estimates the remaining time of a training on a CPU device and suggests shorter trainings;
 * suggests a longer one if the time limit left few steps. */
#include "run/training.h"

#include <math.h>

#include "config/config.h"

#define ETA_REPORT                                                                          \
    4u                      /* number of the report at which the speed is known well enough \
                             */
#define LONG_SECONDS  600.0 /* seconds of a training that is worth a remark */
#define SHORT_SECONDS 300.0 /* seconds of the training that the remark suggests */
#define FINE_PIXELS   256u  /* longest image side whose detail a CPU device can train in minutes */

/* Returns the thousands of steps that fit in SHORT_SECONDS seconds, at least 1. */
static double short_thousands(double steps_per_second)
{
    return fmax(1.0, round(steps_per_second * SHORT_SECONDS / 1000.0));
}

static uint32_t fitting_downscale(uint32_t longest_side)
{
    uint32_t factor = 1;
    while (longest_side / factor > FINE_PIXELS && factor < 8)
        factor *= 2;
    return factor;
}

static void write_line(char line[256], double steps_per_second, double seconds_left,
                       uint32_t shrink, const struct vkn_config *config)
{
    char smaller[64] = "";
    if (shrink > 1)
        snprintf(smaller, sizeof(smaller), "; --downscale %u trains on smaller images",
                 shrink * (config->scene.downscale > 1 ? config->scene.downscale : 1));
    bool in_hours = seconds_left >= 3.0 * 3600.0;
    snprintf(
        line, 256,
        "%u steps take about %.0f %s more on this CPU device; --seconds %.0fm or --steps %.0fk "
        "ends sooner, Ctrl-C saves%s",
        config->steps, seconds_left / (in_hours ? 3600.0 : 60.0), in_hours ? "hours" : "minutes",
        SHORT_SECONDS / 60.0, short_thousands(steps_per_second), smaller);
}

/* Returns the steps after which pictures are usually sharp: fewer with hash grids than with
 * frequencies (docs/history/learning.md). */
static uint32_t usual_steps(const struct vkn_config *config)
{
    return config->field.position == VKN_POSITION_FREQUENCIES ? 4000 : 1000;
}

bool eta_few_steps(const struct vkn_config *config, uint64_t step, double seconds, char line[256])
{
    uint32_t usual = usual_steps(config);
    if (!(config->seconds > 0.0 && seconds >= config->seconds) || step == 0 || step >= usual)
        return false;
    double wanted = seconds * usual / (double)step;
    snprintf(line, 256,
             "%u steps in %.9g s are few: this model usually needs %u for sharp pictures; train "
             "for longer (--seconds %.0f) or on smaller images (--downscale %u)",
             (unsigned)step, config->seconds, usual, ceil(wanted / 10.0) * 10.0,
             2 * (config->scene.downscale > 1 ? config->scene.downscale : 1));
    return true;
}

bool eta_update(struct eta *eta, const struct vkn_config *config,
                const struct vkn_train_stats *stats, uint32_t longest_side, char line[256])
{
    if (++eta->reports == 1) {
        eta->first_step = stats->step;
        eta->first_seconds = stats->seconds;
    }
    if (eta->reports != ETA_REPORT || config->seconds > 0.0 || config->steps <= stats->step)
        return false;
    double seconds = stats->seconds - eta->first_seconds;
    double steps_per_second = (double)(stats->step - eta->first_step) / seconds;
    double seconds_left = (double)(config->steps - stats->step) / steps_per_second;
    if (!(seconds > 0.0 && seconds_left > LONG_SECONDS))
        return false;
    write_line(line, steps_per_second, seconds_left, fitting_downscale(longest_side), config);
    return true;
}
