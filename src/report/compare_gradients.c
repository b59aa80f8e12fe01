/* Adds the table of skipped steps, underflowed gradients, gradient norms and idle time. */
#include <math.h>

#include "report/compare.h"

static double skipped_of(const struct run *run, double seconds)
{
    (void)seconds;
    return fmax(run->summary.skipped_steps, run_last(&run->metrics, RUN_SKIPPED));
}

static double skipped_share_of(const struct run *run, double seconds)
{
    double steps = fmax(run->summary.step, run_last(&run->metrics, RUN_STEP));
    return steps > 0.0 ? 100.0 * skipped_of(run, seconds) / steps : (double)NAN;
}

static double underflowed_of(const struct run *run, double seconds)
{
    (void)seconds;
    return 100.0 * compare_mean(run, RUN_UNDERFLOWED);
}

static double norm_of(const struct run *run, double seconds)
{
    (void)seconds;
    return compare_mean(run, RUN_GRAD_NORM);
}

static double idle_of(const struct run *run, double seconds)
{
    (void)seconds;
    return 100.0 * compare_mean(run, RUN_IDLE);
}

static const struct measure gradients[] = {
    {"Skipped steps", skipped_of, BETTER_LOW, FORMAT_COUNT, 0},
    {"Skipped, %", skipped_share_of, BETTER_LOW, FORMAT_NUMBER, 1},
    {"Underflowed, %", underflowed_of, BETTER_LOW, FORMAT_NUMBER, 2},
    {"Gradient norm", norm_of, BETTER_NONE, FORMAT_QUANTITY, 0},
    {"Idle, %", idle_of, BETTER_LOW, FORMAT_NUMBER, 1},
};

void compare_gradients(struct base_text *page, const struct comparison *comparison)
{
    page_section(page, "gradients", "Gradients and idle time");
    compare_table(page, comparison, "Gradients", "Precision", page_backend, gradients,
                  BASE_COUNT(gradients));
    base_text_add(page,
                  "<p>Skipped: steps whose loss or gradient was not finite. Underflowed: "
                  "gradients of activations that became zero in f16. Idle: time in which "
                  "the device ran no step. All but skipped steps are means over the log.</p>\n"
                  "</section>\n");
}
