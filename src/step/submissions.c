/* Splits the work of an update interval into submissions that are short enough for watchdogs and
 * for a responsive screen. The split does not change any result. */
#include <math.h>
#include <string.h>

#include "step/internal.h"

/* Longest submission in seconds. Some systems reset a device after two seconds, and the screen may
 * stand still during a submission. */
#define SUBMISSION_SECONDS 0.05
/* Submissions are chosen again when times have changed by more than this factor. */
#define TOLERANCE          2.0

bool step_splits_submissions(const struct step *step)
{
    return gpu_device_capabilities(step->device)->type != GPU_CPU;
}

double step_seconds(const struct step *step)
{
    double seconds = 0;
    for (size_t i = 0; i < step->pass_count; i++)
        if (step->passes[i].phase == STEP_EVERY)
            seconds += fmax(step->pass_seconds[i], 0);
    return seconds;
}

double step_interval_seconds(const struct step *step)
{
    double seconds = UPDATE_INTERVAL * step_seconds(step);
    for (size_t i = 0; i < step->pass_count; i++)
        if (step->passes[i].phase != STEP_EVERY)
            seconds += fmax(step->pass_seconds[i], 0);
    return seconds;
}

bool step_begins_submission(struct step *step, size_t pass)
{
    double next = step->pass_seconds[pass] / step_pass_chunks(step, pass);
    bool begins = step->measured && step->submission_seconds > 0 &&
                  (next < 0 || step->submission_seconds + next > SUBMISSION_SECONDS);
    step->submission_seconds =
        (begins ? 0 : step->submission_seconds) + (next < 0 ? SUBMISSION_SECONDS : next);
    return begins;
}

/* Returns whether an interval is one submission, as it was planned. */
static bool is_one_submission(const struct step *step, double planned_seconds)
{
    return fmax(step_interval_seconds(step), planned_seconds) <= SUBMISSION_SECONDS;
}

bool step_submissions_differ(const struct step *step, double planned_seconds)
{
    double seconds = step_interval_seconds(step);
    return step->measured && !is_one_submission(step, planned_seconds) &&
           !(planned_seconds > 0 && seconds <= TOLERANCE * planned_seconds &&
             planned_seconds <= TOLERANCE * seconds);
}

vkn_status step_prepare(struct step *step, uint32_t recording, uint64_t steps)
{
    /* In joined steps no pass is measured alone, so their submissions could not be chosen. */
    bool fits =
        !step_splits_submissions(step) || is_one_submission(step, step->planned_seconds[recording]);
    bool joined =
        fits && steps == UPDATE_INTERVAL && !step->profile && setup_joins_steps(&step->setup);
    if (joined == step->joined[recording] &&
        !step_submissions_differ(step, step->planned_seconds[recording]))
        return VKN_OK;
    step->joined[recording] = joined;
    gpu_recording_destroy(&step->intervals[recording]);
    return step_record_interval(step, recording);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Measures one pass, including the time to submit it and wait for it. */
static vkn_status measure_pass(struct step *step, size_t pass, uint32_t slot, uint32_t chunk)
{
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(step->device, "first step", 0, &recording);
    if (status == VKN_OK) {
        step_record_pass(step, recording, &step->passes[pass], slot, chunk, true);
        status = gpu_record_end(recording);
    }
    double began = base_seconds();
    if (status == VKN_OK)
        status = gpu_submit(recording);
    if (status == VKN_OK)
        status = gpu_wait(recording);
    if (slot != UPDATE_INTERVAL || step->pass_seconds[pass] >= 0)
        step->pass_seconds[pass] += base_seconds() - began;
    gpu_recording_destroy(&recording);
    return status;
}

vkn_status step_measure_passes(struct step *step, enum step_phase phase, uint32_t slot, size_t from,
                               size_t end)
{
    for (size_t first = from, next; first < end; first = next) {
        next = step_chunk_end(step, first);
        uint32_t chunks = step_pass_chunks(step, first);
        bool runs = step->passes[first].phase == phase &&
                    step_pass_runs(&step->passes[first], false, false);
        for (uint32_t chunk = 0; runs && chunk < chunks; chunk++)
            for (size_t i = first; i < next; i++)
                BASE_TRY(measure_pass(step, i, slot, chunk));
    }
    return VKN_OK;
}

void step_reset_times(struct step *step, bool begins_interval)
{
    for (size_t i = 0; i < step->pass_count; i++)
        step->pass_seconds[i] = step->passes[i].phase == STEP_EVERY || begins_interval ? 0 : -1;
}

vkn_status step_measure(struct step *step, uint32_t slot)
{
    size_t all = step->pass_count;
    step_reset_times(step, slot == 0);
    BASE_TRY(step_measure_passes(step, STEP_INTERVAL_BEGIN, UPDATE_INTERVAL, 0, all));
    BASE_TRY(step_measure_passes(step, STEP_INTERVAL_GRID, UPDATE_INTERVAL, 0, all));
    BASE_TRY(step_measure_passes(step, STEP_EVERY, slot, 0, all));
    BASE_TRY(step_measure_passes(step, STEP_INTERVAL_END, UPDATE_INTERVAL, 0, all));
    step->measured = true;
    return VKN_OK;
}

/* Follows increases at once and decreases gradually. */
static double smoothed(double previous, double current)
{
    return fmax(current, 0.75 * previous);
}

static uint32_t passes_of_label(const struct step *step, const struct step_pass *pass)
{
    uint32_t count = 0;
    for (size_t i = 0; i < step->pass_count; i++)
        count += step->passes[i].phase == pass->phase &&
                 strcmp(step_pass_label(&step->passes[i]), step_pass_label(pass)) == 0;
    return count;
}

/* Updates the time of a pass from the last slot in which it ran: the sum over its chunks, divided
 * by the number of passes with its label. */
static void update_pass_time(struct step *step, size_t number, const struct step_timing *timings,
                             uint32_t count)
{
    const struct step_pass *pass = &step->passes[number];
    double seconds = 0;
    bool ran = false;
    for (uint32_t k = 0; k < count; k++) {
        bool in_step = timings[k].slot < UPDATE_INTERVAL;
        if (in_step != (pass->phase == STEP_EVERY) ||
            strcmp(step_pass_label(pass), timings[k].name) != 0)
            continue;
        seconds = (timings[k].again ? seconds : 0) + timings[k].end - timings[k].begin;
        ran = true;
    }
    if (ran)
        step->pass_seconds[number] =
            smoothed(step->pass_seconds[number], seconds / passes_of_label(step, pass));
}

void step_update_times(struct step *step, const struct step_timing *timings, uint32_t count,
                       double seconds)
{
    if (!step->measured)
        return;
    for (size_t i = 0; i < step->pass_count; i++)
        update_pass_time(step, i, timings, count);
    double factor = smoothed(1, seconds / step_interval_seconds(step));
    for (size_t i = 0; count == 0 && seconds > 0 && i < step->pass_count; i++)
        step->pass_seconds[i] *= factor;
}

vkn_status step_set_samples(struct step *step, uint32_t samples)
{
    double factor = (double)samples / step->setup.constants.target_samples;
    for (size_t i = 0; i < step->pass_count; i++)
        step->pass_seconds[i] *= factor;
    step->setup.config.batch.samples = step->setup.constants.target_samples = samples;
    return step_upload_constants(step);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

#define CELL_POINTS  9u         /* points of a cell that are projected into each camera */
#define FIRST_POINTS (1u << 24) /* points of the first run, which is short on every device */

vkn_status step_mark_unseen(struct step *step)
{
    struct buffer_counts counts = setup_counts(&step->setup);
    uint64_t cells = counts.cells,
             points = (uint64_t)CELL_POINTS * (step->setup.constants.camera_count + 1);
    uint64_t batch = step_splits_submissions(step) ? FIRST_POINTS / points + 1 : cells;
    for (uint64_t first = 0; first < cells;) {
        uint64_t end = cells - first > batch ? first + batch : cells;
        double began = base_seconds();
        BASE_TRY(step_run_pipeline(step, step->mark_unseen_cells,
                                   (struct Push){.a = (uint32_t)first, .d = (uint32_t)end}));
        double seconds = base_seconds() - began;
        first = end;
        if (seconds < SUBMISSION_SECONDS / 4)
            batch *= 2;
        else if (seconds > SUBMISSION_SECONDS)
            batch = batch / 2 + 1;
    }
    return VKN_OK;
}
