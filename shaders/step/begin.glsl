// Advances the step and its schedules, chooses the ray count, and sets the dispatch sizes of the step's
// passes. The including file declares STATE as `state`, CONTROL as `control`, and SAMPLING. push.b:
// workgroup size of the passes.
// Passes: begin_step, finish_step. Writes STATE and DISPATCHES.
#include "rays/occupancy.glsl"

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;
layout(constant_id = SPEC_BY_ERROR) const uint BY_ERROR = 0;

layout(std430, BINDING(DISPATCHES)) writeonly buffer DispatchBuffer { Dispatch dispatches[]; };

void set_dispatch(uint which, uint groups, bool runs)
{
    state.dispatches[which] = Dispatch(runs ? min(groups, config.group_limit) : 0u, 1u, 1u, 0u);
}

uint groups_for(uint invocations, uint local_size)
{
    return (invocations + local_size - 1u) / local_size;
}

#include "shared/progress.glsl"
#include "shared/proposal.glsl"

float stepped_rate(float rate)
{
    if (training_ends()) {
        float progress = training_progress();
        for (uint i = 0; i < 4u; i++)
            if (progress >= config.milestones[i])
                rate *= config.decay_factor;
    } else if (state.step >= config.decay_start) {
        float decays = float(1u + (state.step - config.decay_start) / config.decay_interval);
        rate *= pow(config.decay_factor, decays);
    }
    return rate;
}

// Interpolates linearly between the schedule's points, with a constant rate before the first and
// after the last.
float interpolated_rate()
{
    uint last = config.rate_points - 1u, i = 0u;
    while (i < last && state.step >= config.rates[i + 1u].step)
        i++;
    SchedulePoint a = config.rates[i], b = config.rates[min(i + 1u, last)];
    if (state.step <= a.step || i == last)
        return a.value;
    return mix(a.value, b.value, float(state.step - a.step) / float(b.step - a.step));
}

float scheduled_rate()
{
    float rate = config.learning_rate;
    if (config.rate_kind == RATE_STEP)
        return stepped_rate(rate);
    if (config.rate_kind == RATE_POINTS)
        return interpolated_rate();
    float progress = clamp(training_progress(), 0.0, 1.0);
    if (config.rate_kind == RATE_EXPONENTIAL)
        return rate * pow(config.final_rate / rate, progress);
    // Computes (1 + cos(pi p)) / 2 as the square of cos(pi p / 2): so a device's inexact cosine affects
    // the small rates at the end least.
    float half_cosine = cos(1.5707963 * progress);
    return mix(config.final_rate, rate, half_cosine * half_cosine);
}

float learning_rate()
{
    float rate = scheduled_rate();
    if (state.step < config.warmup_steps)
        rate *= float(state.step + 1u) / float(config.warmup_steps);
    for (uint i = 0; i < min(state.rate_cuts, MAX_RATE_CUTS); i++)
        rate *= config.rate_cut_factor;
    return rate;
}

// Returns the scheduled loss scale, which is constant from each point to the next; before the first
// point returns the current loss scale.
float scheduled_scale()
{
    float scale = state.loss_scale;
    for (uint i = 0; i < config.scale_points && state.step >= config.schedule[i].step; i++)
        scale = config.schedule[i].value;
    return scale;
}

// Returns the ray count of the next step: about target_samples of its samples carry a gradient, and
// all samples fit. The sample counts are totals over the ranks, so that all ranks take the same number of
// rays.
uint next_ray_count()
{
    if (state.live_rays == 0u)
        return state.ray_count;
    float rays = float(state.live_rays);
    float wanted_rays = float(config.target_samples) * rays / max(float(state.live_count), 1.0);
    float fitting_rays = 0.9 * float(config.sample_capacity) * float(state.ray_count * config.ranks) /
                    max(float(state.sample_count), 1.0);
    if (SAMPLING != SAMPLING_OCCUPANCY) // the samples per ray are fixed, and ray_capacity rays always fit
        fitting_rays = float(config.ray_capacity);
    // Growth is gradual: the next pixels may need more samples than the current pixels.
    float next = min(min(wanted_rays, fitting_rays), 2.0 * float(state.ray_count));
    uint count = uint(clamp(next, float(MIN_STEP_RAYS), float(config.ray_capacity)));
    return count / MIN_STEP_RAYS * MIN_STEP_RAYS;
}

void set_dispatches(uint slot)
{
    uint limit = min(config.total_steps, control.step_limit);
    if (slot == UPDATE_INTERVAL) {
        bool due = state.step % UPDATE_INTERVAL == 0u && state.step < limit;
        uint groups = min(groups_for(CASCADES * CELLS / 4u, push.b), REDUCE_GROUPS);
        set_dispatch(DISPATCH_OCCUPANCY, groups, due);
        set_dispatch(DISPATCH_THRESHOLD, 1u, due);
        set_dispatch(DISPATCH_PACK, groups_for(CELLS / BLOCK_CELLS, push.b), due);
        set_dispatch(DISPATCH_AVERAGE, 0u, false);
        // The sums of the error map are no part of the state: a resumed training computes them again.
        if (BY_ERROR != 0u)
            set_dispatch(DISPATCH_MARCH, config.slot_count, true);
        return;
    }

    bool runs = (slot == ANY_STEP || state.step % UPDATE_INTERVAL == slot) && state.step < limit;
    if (runs) {
        state.ray_count = next_ray_count();
        state.learning_rate = learning_rate();
        if (config.scale_kind == SCALE_SCHEDULE)
            state.loss_scale = scheduled_scale();
        state.sample_count = 0u;
        state.live_count = 0u;
        state.live_rays = 0u;
        state.reached_count = 0u;
        state.kept_rays = 0u;
        state.nonfinite = 0u;
        state.underflowed = 0u;
        state.rounded = 0u;
        state.step++;
    }
    // Resets the dispatches of the occupancy update, so that a stop within an update interval and a
    // resume leave the same state.
    set_dispatch(DISPATCH_OCCUPANCY, 0u, false);
    set_dispatch(DISPATCH_THRESHOLD, 0u, false);
    set_dispatch(DISPATCH_PACK, 0u, false);
    uint local_size = push.b;
    uint forward_groups = min(groups_for(config.sample_capacity, local_size),
                              config.forward_groups);
    state.running = runs ? 1u : 0u;
    set_dispatch(DISPATCH_RAYS, groups_for(state.ray_count, local_size), runs);
    set_dispatch(DISPATCH_MARCH, groups_for(state.ray_count, local_size / SUBGROUP_SIZE), runs);
    set_dispatch(DISPATCH_FORWARD, forward_groups, runs);
    set_dispatch(DISPATCH_BACKWARD, config.backward_groups, runs);
    set_dispatch(DISPATCH_SUMMED, groups_for(config.summed_params, local_size), runs);
    set_dispatch(DISPATCH_PARAMS, min(groups_for(config.param_count, local_size), MAX_PARAM_WORKGROUPS), runs);
    uint entry_groups = groups_for(config.entry_count, local_size), groups_x = min(entry_groups, config.group_limit);
    set_dispatch(DISPATCH_ENTRIES, groups_x, runs);
    state.dispatches[DISPATCH_ENTRIES].y = groups_for(entry_groups, groups_x);
    set_dispatch(DISPATCH_ONE, 1u, runs);
    set_dispatch(DISPATCH_SCAN, 1u, runs && DETERMINISTIC != 0u);

    // Refreshes the moving average at the end of the update interval and of the training.
    if (runs && (state.step % UPDATE_INTERVAL == 0u || state.step == config.total_steps)) {
        float passed = float(state.step - state.average_step);
        state.average_weight = (1.0 - pow(config.average_decay, passed)) /
                               (1.0 - pow(config.average_decay, float(state.step)));
        state.average_step = state.step;
        set_dispatch(DISPATCH_AVERAGE,
                     min(groups_for(config.param_count, local_size), 65535u), true);
    }
}

void set_proposal(uint which, uint groups)
{
    uint x = min(groups, config.group_limit);
    bool is_two_dimensional = which == DISPATCH_ENTRIES && x > 0u;
    dispatches[DISPATCH_PROPOSAL + which] = Dispatch(x, is_two_dimensional ? groups_for(groups, x) : 1u, 1u, 0u);
}

// Sets the dispatch sizes of the passes that train a proposal: the step's sizes, except where a size
// depends on the proposal's parameters.
void set_proposal_dispatches()
{
    bool learns = state.running != 0u && proposal_learns();
    for (uint i = 0; i < DISPATCH_COUNT; i++)
        set_proposal(i, learns ? state.dispatches[i].x : 0u);
    set_proposal(DISPATCH_BACKWARD, learns ? config.proposal_groups : 0u);
    set_proposal(DISPATCH_SUMMED, learns ? groups_for(config.proposal_summed, push.b) : 0u);
    set_proposal(DISPATCH_PARAMS, learns ? min(groups_for(config.proposal_params, push.b), MAX_PARAM_WORKGROUPS) : 0u);
    set_proposal(DISPATCH_ENTRIES, learns ? groups_for(config.proposal_entries, push.b) : 0u);
}

// Begins the step with this number in the update interval, see begin_step.comp. One invocation calls
// it.
void begin(uint slot)
{
    set_dispatches(slot);
    for (uint i = 0; i < DISPATCH_COUNT; i++)
        dispatches[i] = state.dispatches[i];
    if (SAMPLING == SAMPLING_PROPOSAL)
        set_proposal_dispatches();
}
