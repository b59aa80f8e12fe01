/* Runs one step: samples rays, then composites the caller's values to loss and gradients. */
#include <math.h>

#include "stepper/internal.h"

vkn_status stepper_run(struct vkn_stepper *s, const char *name, stepper_recorder *record,
                       uint32_t number)
{
    struct gpu_recording *recording = NULL;
    BASE_TRY(gpu_record_begin(s->device, name, 0, &recording));
    record(s, recording, number);
    return gpu_run_once(&recording);
}

vkn_status stepper_check_callback(const char *call, const char *function, vkn_status status)
{
    if (status == VKN_OK)
        return VKN_OK;
    return base_fail(status, "%s: the caller's function `%s` ended with status %d", call, function,
                     (int)status);
}

vkn_status stepper_check_steps(const struct vkn_stepper *s, const char *what)
{
    if (s->steps < s->step.setup.constants.total_steps)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: all %llu steps of the configuration have been taken", what,
                     (unsigned long long)s->steps);
}

void stepper_read_listing(struct vkn_stepper *s)
{
    const struct ListSummary *listed = listing_read(&s->listing);
    s->listing.samples.step = s->steps = listed->step;
    s->listing.samples.learning_rate = listed->learning_rate;
    s->listing.samples.rays_in_loss = listed->rays_in_loss;
    s->sampled = true;
}

static vkn_status run_again(struct gpu_recording *recording)
{
    BASE_TRY(gpu_submit(recording));
    return gpu_wait(recording);
}

vkn_status vkn_stepper_sample(vkn_stepper *stepper, const struct vkn_samples **samples)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    BASE_NEED(samples);
    struct vkn_stepper *s = stepper;
    BASE_USE(gpu_guard(s->device), s);
    *samples = NULL;
    s->sampled = false;
    BASE_TRY(stepper_check_steps(s, __func__));
    if (s->stream)
        BASE_TRY(stream_advance(s->stream, s->steps, 0.0));
    BASE_TRY(run_again(s->sampling));
    stepper_read_listing(s);
    *samples = &s->listing.samples;
    return VKN_OK;
}

vkn_status vkn_stepper_set_loss_scale(vkn_stepper *stepper, float scale)
{
    BASE_NEED(stepper);
    BASE_USE(gpu_guard(stepper->device), stepper);
    BASE_TRY(base_check_range(__func__, "scale", (double)scale, 0x1p-24, 0x1p24));
    return gpu_upload(stepper->device, &stepper->step.buffers.at[BIND_STATE],
                      offsetof(struct State, loss_scale), &scale, sizeof scale);
}

static void record_no_gradients(struct vkn_stepper *s, struct gpu_recording *recording,
                                uint32_t number)
{
    (void)number;
    gpu_record_fill(recording, &s->gradients, 0, UINT64_MAX, 0);
}

vkn_status vkn_stepper_composite(vkn_stepper *stepper, const struct vkn_composited **composited)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    BASE_NEED(composited);
    struct vkn_stepper *s = stepper;
    BASE_USE(gpu_guard(s->device), s);
    struct vkn_composited *result = &s->composited;
    *composited = NULL;
    if (!s->sampled)
        return base_fail(VKN_BAD_INPUT,
                         "vkn_stepper_composite: there are no samples: call vkn_stepper_sample "
                         "first, and vkn_stepper_update_grid not in between");
    s->sampled = false;
    BASE_TRY(run_again(s->compositing));
    const struct Stats *ring = s->step.buffers.at[BIND_STATS].mapped,
                       *stats = &ring[s->steps % STATS_RING];
    const struct vkn_samples *samples = &s->listing.samples;
    result->finite = stats->skipped_steps == result->skipped;
    result->skipped = stats->skipped_steps;
    /* Converts the mean over the rays in the loss to a mean over all rays: gradients are divided by
     * the number of all rays, the only one that is known before compositing. */
    float share = (float)samples->rays_in_loss / (float)samples->rays;
    result->distortion_loss = stats->distortion_loss * share;
    result->loss = stats->loss * share + result->distortion_loss;
    result->mean_square = stats->square;
    result->live = stats->live;
    if (!result->finite)
        BASE_TRY(stepper_run(s, "no gradients", record_no_gradients, 0));
    *composited = result;
    return VKN_OK;
}
