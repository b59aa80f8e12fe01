/* Rays to their ends: each takes up to round_samples samples a round. */
#include "render/corners.h"

#include <math.h>

#include "rays/rays.h"

/* What of a field's samples is found out, with the bindings for that; NULL: nothing. */
struct look {
    const struct setup *setup;
    struct gpu_program *const *forward;
    const struct gpu_bindings *bindings;
    const struct gpu_program *sample, *density, *normals, *composite;
};

static uint32_t marching_groups(const struct vkn_renderer *r, uint32_t rays)
{
    uint32_t subgroups = PASS_LOCAL_SIZE / gpu_device_capabilities(r->device)->subgroup_size;
    return (rays + subgroups - 1) / subgroups;
}

static struct Push round_push(const struct vkn_renderer *r, uint32_t rays, uint32_t round)
{
    uint32_t samples = r->round_samples;
    return (struct Push){.a = samples, .b = rays, .c = round * samples};
}

/* The next samples of all rays, in round number `round`. */
static void record_samples(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                           uint32_t round, const struct look *look)
{
    const struct Push push = round_push(r, rays, round);
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &r->buffers.at[BIND_STATE], offsetof(struct State, sample_count), 4,
                    0);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, look->sample, look->bindings, &push, sizeof push,
                        marching_groups(r, rays));
    gpu_record_program_barrier(recording);
}

/* Adds them up, once they are evaluated. */
static void record_composite(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                             uint32_t round, const struct look *look)
{
    const struct Push push = round_push(r, rays, round);
    bool alone = r->setup.specialization.values[SPEC_CPU_SHAPED]; /* an invocation for each ray */
    gpu_record_dispatch(recording, look->composite, look->bindings, &push, sizeof push,
                        alone ? (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE
                              : marching_groups(r, rays));
}

static void record_round(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                         uint32_t round, const struct look *look)
{
    const struct Push push = round_push(r, rays, round);
    uint32_t most = rays * r->round_samples / PASS_LOCAL_SIZE;
    uint32_t forward_groups = r->setup.constants.forward_groups;
    uint32_t sharing = most < forward_groups ? most : forward_groups;
    record_samples(r, recording, rays, round, look);
    setup_record_forward(look->setup, recording, look->forward, look->density, look->bindings,
                         sharing);
    if (look->normals) {
        gpu_record_dispatch(recording, look->normals, look->bindings, &push, sizeof push, sharing);
        gpu_record_program_barrier(recording);
    } else if (look->composite && r->corners) {
        corners_record(r, recording, sharing);
    }
    if (look->composite)
        record_composite(r, recording, rays, round, look);
}

/* Until all rays have ended. */
static uint32_t count_rounds(const struct vkn_renderer *r)
{
    uint32_t steps = rays_most_steps(&r->setup.config, &r->setup.constants);
    return (steps + r->round_samples - 1) / r->round_samples;
}

/* What a step's field leaves out depends on how far it is trained. */
static void record_state(const struct vkn_renderer *r, struct gpu_recording *recording)
{
    if (r->step)
        gpu_record_copy(recording, &r->step->buffers.at[BIND_STATE], 0, &r->buffers.at[BIND_STATE],
                        0, sizeof(struct State));
}

void render_record_rounds(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                          const struct gpu_program *density, const struct gpu_program *composite)
{
    uint32_t rounds = count_rounds(r);
    const struct look look = {&r->setup, r->forward,        r->bindings, r->sample_view_rays,
                              density,   r->sample_normals, composite};
    const struct look coarse = {.setup = &r->coarse_setup,
                                .forward =
                                    r->find_coarse_density ? r->forward : r->proposal_forward,
                                .bindings = r->coarse_bindings,
                                .sample = r->sample_coarse_rays,
                                .density = r->find_coarse_density};
    record_state(r, recording);
    if (r->finish_normals)
        gpu_record_fill(recording, &r->normals.at[BIND_NORMALS],
                        16ull * r->setup.constants.sample_capacity, UINT64_MAX, 0);
    if (coarse.sample)
        record_round(r, recording, rays, 0, &coarse);
    for (uint32_t round = 0; round < rounds; round++) {
        if (round > 0 && r->part_rounds > 0 && round % r->part_rounds == 0)
            gpu_record_cut(recording);
        record_round(r, recording, rays, round, &look);
    }
    gpu_record_barrier(recording);
}

vkn_status render_ask_rounds(struct vkn_renderer *r, uint32_t rays)
{
    const struct look look = {
        .bindings = r->bindings, .sample = r->sample_view_rays, .composite = r->composite_view};
    uint32_t rounds = count_rounds(r);
    for (uint32_t round = 0; round < rounds; round++) {
        bool any = false;
        GPU_ONCE(r->device, "samples of a view");
        if (round > 0)
            record_composite(r, recording, rays, round - 1, &look);
        else
            record_state(r, recording);
        record_samples(r, recording, rays, round, &look);
        BASE_TRY(gpu_run_once(&recording));
        BASE_TRY(r->evaluate(r->evaluate_context, &r->buffers, rays, &any));
        if (!any)
            return VKN_OK;
    }
    GPU_ONCE(r->device, "last samples of a view");
    record_composite(r, recording, rays, rounds - 1, &look);
    return gpu_run_once(&recording);
}

/* As many rounds in 50 ms as fit when each takes four times the mean, as the first do: rays end. */
void render_choose_part(struct vkn_renderer *r, double seconds)
{
    uint32_t rounds = count_rounds(r);
    r->part_rounds = r->part_rounds ? 1 + (uint32_t)(rounds * fmin(0.0125 / seconds, 1)) : 0;
}
