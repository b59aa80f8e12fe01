/* Marches rays until all have ended, in iterations of up to march_samples samples per ray. */
#include "render/difference_normals.h"

#include <math.h>

#include "rays/rays.h"

/* The passes of an iteration and their bindings. NULL passes are skipped. */
struct march_passes {
    const struct setup *setup;
    struct gpu_pipeline *const *forward;
    const struct gpu_bindings *bindings;
    const struct gpu_pipeline *sample, *density, *normals, *composite;
};

static uint32_t ray_subgroup_groups(const struct vkn_renderer *r, uint32_t rays)
{
    uint32_t subgroups = PASS_LOCAL_SIZE / gpu_device_capabilities(r->device)->subgroup_size;
    return (rays + subgroups - 1) / subgroups;
}

static struct Push iteration_push(const struct vkn_renderer *r, uint32_t rays, uint32_t iteration)
{
    uint32_t samples = r->march_samples;
    return (struct Push){.a = samples, .b = rays, .c = iteration * samples};
}

static void record_samples(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                           uint32_t iteration, const struct march_passes *march_passes)
{
    const struct Push push = iteration_push(r, rays, iteration);
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &r->buffers.at[BIND_STATE], offsetof(struct State, sample_count), 4,
                    0);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, march_passes->sample, march_passes->bindings, &push, sizeof push,
                        ray_subgroup_groups(r, rays));
    gpu_record_compute_barrier(recording);
}

static void record_composite(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                             uint32_t iteration, const struct march_passes *march_passes)
{
    const struct Push push = iteration_push(r, rays, iteration);
    /* One invocation per ray on CPU devices, else one subgroup. */
    bool cpu = r->setup.specialization.values[SPEC_CPU_KERNELS];
    gpu_record_dispatch(
        recording, march_passes->composite, march_passes->bindings, &push, sizeof push,
        cpu ? (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE : ray_subgroup_groups(r, rays));
}

static void record_iteration(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                             uint32_t iteration, const struct march_passes *march_passes)
{
    const struct Push push = iteration_push(r, rays, iteration);
    uint32_t most = rays * r->march_samples / PASS_LOCAL_SIZE;
    uint32_t forward_groups = r->setup.constants.forward_groups;
    uint32_t groups = most < forward_groups ? most : forward_groups;
    record_samples(r, recording, rays, iteration, march_passes);
    setup_record_forward(march_passes->setup, recording, march_passes->forward,
                         march_passes->density, march_passes->bindings, groups);
    if (march_passes->normals) {
        gpu_record_dispatch(recording, march_passes->normals, march_passes->bindings, &push,
                            sizeof push, groups);
        gpu_record_compute_barrier(recording);
    } else if (march_passes->composite && r->difference_normals) {
        difference_normals_record(r, recording, groups);
    }
    if (march_passes->composite)
        record_composite(r, recording, rays, iteration, march_passes);
}

/* Returns the number of iterations after which every ray has ended. */
static uint32_t count_iterations(const struct vkn_renderer *r)
{
    uint32_t steps = rays_max_steps(&r->setup.config, &r->setup.constants);
    return (steps + r->march_samples - 1) / r->march_samples;
}

/* Copies the step's State, whose occupancy threshold changes during training. */
static void record_state(const struct vkn_renderer *r, struct gpu_recording *recording)
{
    if (r->step)
        gpu_record_copy(recording, &r->step->buffers.at[BIND_STATE], 0, &r->buffers.at[BIND_STATE],
                        0, sizeof(struct State));
}

void render_record_march(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                         const struct gpu_pipeline *density, const struct gpu_pipeline *composite)
{
    uint32_t iterations = count_iterations(r);
    const struct march_passes march_passes = {
        &r->setup, r->forward,        r->bindings, r->sample_view_rays,
        density,   r->sample_normals, composite};
    const struct march_passes coarse = {.setup = &r->coarse_setup,
                                        .forward = r->find_coarse_density ? r->forward
                                                                          : r->proposal_forward,
                                        .bindings = r->coarse_bindings,
                                        .sample = r->sample_coarse_rays,
                                        .density = r->find_coarse_density};
    record_state(r, recording);
    if (r->finish_normals)
        gpu_record_fill(recording, &r->normals.at[BIND_NORMALS],
                        16ull * r->setup.constants.sample_capacity, UINT64_MAX, 0);
    if (coarse.sample)
        record_iteration(r, recording, rays, 0, &coarse);
    for (uint32_t iteration = 0; iteration < iterations; iteration++) {
        if (iteration > 0 && r->march_iterations_per_submit > 0 &&
            iteration % r->march_iterations_per_submit == 0)
            gpu_record_split(recording);
        record_iteration(r, recording, rays, iteration, &march_passes);
    }
    gpu_record_barrier(recording);
}

vkn_status render_march_with_evaluator(struct vkn_renderer *r, uint32_t rays)
{
    const struct march_passes march_passes = {
        .bindings = r->bindings, .sample = r->sample_view_rays, .composite = r->composite_view};
    uint32_t iterations = count_iterations(r);
    for (uint32_t iteration = 0; iteration < iterations; iteration++) {
        bool any = false;
        GPU_ONCE(r->device, "samples of a view");
        if (iteration > 0)
            record_composite(r, recording, rays, iteration - 1, &march_passes);
        else
            record_state(r, recording);
        record_samples(r, recording, rays, iteration, &march_passes);
        BASE_TRY(gpu_run_once(&recording));
        BASE_TRY(r->evaluate(r->evaluate_context, &r->buffers, rays, &any));
        if (!any)
            return VKN_OK;
    }
    GPU_ONCE(r->device, "last samples of a view");
    record_composite(r, recording, rays, iterations - 1, &march_passes);
    return gpu_run_once(&recording);
}

/* Aims at submissions of 50 ms. The first iterations take about four times the mean time, because
 * all rays are still active. march_iterations_per_submit 0 (CPU devices) stays 0. */
void render_choose_submit_size(struct vkn_renderer *r, double seconds)
{
    uint32_t iterations = count_iterations(r);
    r->march_iterations_per_submit =
        r->march_iterations_per_submit ? 1 + (uint32_t)(iterations * fmin(0.0125 / seconds, 1)) : 0;
}
