/* Begins steps with the caller's rays, and with the caller's samples on them. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stepper/internal.h"

/* ---- checks ---------------------------------------------------------------------------------- */

static vkn_status refuse(const char *member, uint32_t index, double value, const char *wanted)
{
    return base_fail(VKN_BAD_INPUT, "vkn_stepper_rays: %s: element %u is %g: must be %s", member,
                     index, value, wanted);
}

/* Checks that `count` numbers are from `low` to `high`; `values` may be NULL. */
static vkn_status check_numbers(const char *member, const float *values, uint32_t count, float low,
                                float high, const char *wanted)
{
    for (uint32_t i = 0; i < count && values; i++)
        if (!(values[i] >= low && values[i] <= high))
            return refuse(member, i, (double)values[i], wanted);
    return VKN_OK;
}

#define FINITE -FLT_MAX, FLT_MAX, "finite"

static vkn_status check_rays(const struct vkn_stepper_rays *rays)
{
    uint32_t n = rays->count;
    BASE_TRY(check_numbers("origins", rays->origins, 3 * n, FINITE));
    BASE_TRY(check_numbers("directions", rays->directions, 3 * n, FINITE));
    BASE_TRY(check_numbers("nearest", rays->nearest, n, 0, INFINITY, "at least 0"));
    BASE_TRY(check_numbers("farthest", rays->farthest, n, 0, INFINITY, "at least 0"));
    BASE_TRY(check_numbers("times", rays->times, n, 0, 1, "from 0 to 1"));
    BASE_TRY(check_numbers("targets", rays->targets, 4 * n, FINITE));
    BASE_TRY(check_numbers("backgrounds", rays->backgrounds, 3 * n, FINITE));
    BASE_TRY(check_numbers("weights", rays->weights, n, 0, FLT_MAX, "from 0 to the largest float"));
    for (uint32_t r = 0; r < n; r++) {
        const float *d = rays->directions + 3 * (size_t)r;
        if (d[0] == 0.0F && d[1] == 0.0F && d[2] == 0.0F)
            return refuse("directions", 3 * r, 0, "a vector of a length above 0");
        if (rays->nearest && rays->farthest && rays->nearest[r] > rays->farthest[r])
            return refuse("nearest", r, (double)rays->nearest[r], "at most `farthest`");
    }
    return VKN_OK;
}

static vkn_status check_range(const struct vkn_stepper_rays *rays, uint32_t ray, uint32_t *next)
{
    uint32_t first = rays->ranges[2 * (size_t)ray], count = rays->ranges[2 * (size_t)ray + 1];
    char wanted[64];
    if (first != *next) {
        snprintf(wanted, sizeof wanted, "%u, where the ray before ends", *next);
        return refuse("ranges", 2 * ray, first, wanted);
    }
    uint32_t left = rays->sample_count - first, most = MAX_RAY_SAMPLES;
    most = left < most ? left : most;
    if (count > most) {
        snprintf(wanted, sizeof wanted, "at most %u", most);
        return refuse("ranges", 2 * ray + 1, count, wanted);
    }
    *next += count;
    for (uint32_t i = first; i < *next; i++) {
        if (!(rays->t_starts[i] >= (i > first ? rays->t_starts[i - 1] : 0.0F)) ||
            isinf(rays->t_starts[i]))
            return refuse("t_starts", i, (double)rays->t_starts[i],
                          "finite, and at least 0 and the ray's start before");
        if (!(rays->t_ends[i] >= rays->t_starts[i]) || isinf(rays->t_ends[i]))
            return refuse("t_ends", i, (double)rays->t_ends[i], "finite, and at least t_starts");
    }
    return VKN_OK;
}

static vkn_status check_samples(const struct vkn_stepper *s, const struct vkn_stepper_rays *rays)
{
    uint32_t next = 0, capacity = s->step.setup.constants.sample_capacity;
    if (!rays->t_ends || !rays->ranges)
        return base_fail(VKN_BAD_INPUT, "vkn_stepper_rays: `%s` is NULL",
                         rays->t_ends ? "ranges" : "t_ends");
    BASE_TRY(base_check_range("vkn_stepper_rays", "sample_count", rays->sample_count, 0, capacity));
    for (uint32_t r = 0; r < rays->count; r++)
        BASE_TRY(check_range(rays, r, &next));
    if (next == rays->sample_count)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "vkn_stepper_rays: sample_count: %u: the ranges have %u samples",
                     rays->sample_count, next);
}

static vkn_status check(const struct vkn_stepper *s, const struct vkn_stepper_rays *rays)
{
    BASE_TRY(base_check_range("vkn_stepper_rays", "count", rays->count, 1,
                              s->step.setup.constants.ray_capacity));
    if (!rays->origins || !rays->directions)
        return base_fail(VKN_BAD_INPUT, "vkn_stepper_rays: `%s` is NULL",
                         rays->origins ? "directions" : "origins");
    BASE_TRY(check_rays(rays));
    return rays->t_starts ? check_samples(s, rays) : VKN_OK;
}

/* ---- uploads --------------------------------------------------------------------------------- */

static void copy(float *to, const float *from, size_t index, size_t width)
{
    if (from)
        memcpy(to, from + width * index, width * sizeof *to);
}

/* Returns a ray for the pass given_rays, or, with the caller's samples, for compositing: only the
 * sign of `last` matters then. */
static struct Ray ray_of(const struct vkn_stepper *s, const struct vkn_stepper_rays *rays, size_t r)
{
    const struct Config *constants = &s->step.setup.constants;
    struct Ray ray = {.step = constants->near_distance,
                      .last = constants->far_distance,
                      .distance_scale = 1,
                      .weight = 1};
    float farthest = INFINITY;
    const float *d = rays->directions + 3 * r;
    double length = hypot(hypot((double)d[0], (double)d[1]), (double)d[2]);
    for (int i = 0; i < 3; i++)
        ray.direction[i] = (float)((double)d[i] / length);
    copy(ray.origin, rays->origins, r, 3);
    copy(&ray.step, rays->nearest, r, 1);
    copy(&farthest, rays->farthest, r, 1);
    ray.last = fminf(ray.last, farthest);
    copy(&ray.time, rays->times, r, 1);
    copy(ray.target, rays->targets, r, 4);
    copy(ray.background, rays->backgrounds, r, 3);
    copy(&ray.weight, rays->weights, r, 1);
    return ray;
}

static vkn_status upload_rays(const struct vkn_stepper *s, const struct vkn_stepper_rays *rays)
{
    struct Ray *made = base_alloc(rays->count, sizeof *made);
    for (size_t r = 0; r < rays->count && made; r++)
        made[r] = ray_of(s, rays, r);
    vkn_status status = made ? gpu_upload(s->device, &s->step.buffers.at[BIND_RAYS], 0, made,
                                          rays->count * sizeof *made)
                             : VKN_ERROR;
    free(made);
    return status;
}

/* Uploads samples, and each ray's range of them. */
static vkn_status upload_samples(const struct vkn_stepper *s, const struct vkn_stepper_rays *rays)
{
    const struct buffers *buffers = &s->step.buffers;
    struct RayResult *results = base_alloc(rays->count, sizeof *results);
    struct Sample *samples = base_alloc((size_t)rays->sample_count + 1, sizeof *samples);
    for (uint32_t r = 0; r < rays->count && results && samples; r++) {
        uint32_t first = rays->ranges[2 * (size_t)r], count = rays->ranges[2 * (size_t)r + 1];
        results[r] = (struct RayResult){.transmittance = 1, .first = first, .count = count};
        for (uint32_t i = first; i < first + count; i++)
            samples[i] = (struct Sample){.t = 0.5F * (rays->t_starts[i] + rays->t_ends[i]),
                                         .width = rays->t_ends[i] - rays->t_starts[i],
                                         .ray = r};
    }
    vkn_status status = results && samples ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = gpu_upload(s->device, &buffers->at[BIND_RESULTS], 0, results,
                            rays->count * sizeof *results);
    if (status == VKN_OK && rays->sample_count > 0)
        status = gpu_upload(s->device, &buffers->at[BIND_SAMPLES], 0, samples,
                            rays->sample_count * sizeof *samples);
    if (status == VKN_OK)
        status =
            gpu_upload(s->device, &buffers->at[BIND_STATE], offsetof(struct State, sample_count),
                       &rays->sample_count, sizeof rays->sample_count);
    free(results);
    free(samples);
    return status;
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Sets a dispatch size, where the host keeps it and where the device reads it. */
static void set_dispatch(const struct vkn_stepper *s, struct gpu_recording *recording,
                         uint32_t which, uint32_t groups)
{
    const struct gpu_buffer *at = s->step.buffers.at;
    uint32_t limit = s->step.setup.constants.group_limit;
    groups = groups < limit ? groups : limit;
    gpu_record_fill(recording, &at[BIND_STATE],
                    offsetof(struct State, dispatches) + which * sizeof(struct Dispatch), 4,
                    groups);
    gpu_record_fill(recording, &at[BIND_DISPATCHES], which * sizeof(struct Dispatch), 4, groups);
}

static uint32_t groups_for(uint32_t count, uint32_t size)
{
    return (count + size - 1) / size;
}

/* Begins the step, then replaces the ray count that the step has chosen. */
static void record_begin(struct vkn_stepper *s, struct gpu_recording *recording, uint32_t rays)
{
    uint32_t local = s->step.local_size;
    gpu_record_barrier(recording);
    step_record_part(&s->step, recording, ANY_STEP, NULL, "generate_rays");
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &s->step.buffers.at[BIND_STATE], offsetof(struct State, ray_count),
                    4, rays);
    set_dispatch(s, recording, DISPATCH_RAYS, groups_for(rays, local));
    set_dispatch(s, recording, DISPATCH_MARCH,
                 groups_for(rays, local / gpu_device_capabilities(s->device)->subgroup_size));
    gpu_record_barrier(recording);
}

/* Returns the name of the pass after generate_rays, which places samples. */
static const char *sampling_pass(const struct step *step)
{
    size_t i = 0;
    while (strcmp(step->passes[i].pass->name, "generate_rays") != 0)
        i++;
    return step->passes[i + 1].pass->name;
}

static void record_march(struct vkn_stepper *s, struct gpu_recording *recording, uint32_t rays)
{
    const struct Push push = {.c = rays};
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, s->given_rays, s->step.sets[0].training, &push, sizeof push,
                        groups_for(rays, PASS_LOCAL_SIZE));
    gpu_record_barrier(recording);
    step_record_part(&s->step, recording, ANY_STEP, sampling_pass(&s->step), "composite");
    stepper_record_listing(s, recording);
}

static void record_samples(struct vkn_stepper *s, struct gpu_recording *recording, uint32_t rays)
{
    (void)rays;
    gpu_record_barrier(recording);
    stepper_record_listing(s, recording);
}

vkn_status vkn_stepper_sample_rays(vkn_stepper *stepper, const struct vkn_stepper_rays *rays,
                                   const struct vkn_samples **samples)
{
    BASE_C_LOCALE;
    BASE_NEED(samples);
    *samples = NULL;
    BASE_NEED(stepper);
    BASE_NEED(rays);
    struct vkn_stepper *s = stepper;
    BASE_USE(gpu_guard(s->device), s);
    struct vkn_stepper_rays own;
    BASE_TRY(BASE_READ(__func__, vkn_stepper_rays, rays, &own, ranges));
    BASE_TRY(check(s, &own));
    BASE_TRY(stepper_check_steps(s, __func__));
    s->sampled = false;
    if (s->stream)
        BASE_TRY(stream_advance(s->stream, s->steps, 0.0));
    BASE_TRY(stepper_run(s, "begin of a step", record_begin, own.count));
    BASE_TRY(upload_rays(s, &own));
    if (own.t_starts)
        BASE_TRY(upload_samples(s, &own));
    BASE_TRY(stepper_run(s, "given rays", own.t_starts ? record_samples : record_march, own.count));
    stepper_read_listing(s);
    *samples = &s->listing.samples;
    return VKN_OK;
}
