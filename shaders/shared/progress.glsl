// Computes the progress of the training and of a curriculum. The including file declares state and
// control.
// Passes: begin_step, finish_step, generate_rays, mark_outliers, pick_cells, store_cells.

// Returns whether the training has an end, in steps or time.
bool training_ends()
{
    return config.total_steps != 0xffffffffu || config.time_schedule != 0u;
}

// Returns the finished share of the training, by steps or time, whichever is further.
float training_progress()
{
    float progress = config.total_steps != 0xffffffffu
                         ? float(state.step) / float(config.total_steps) : 0.0;
    if (config.time_schedule != 0u)
        progress = max(progress, control.time_progress);
    return progress;
}

// Returns the share of the time range whose views are drawn. It grows from CURRICULUM_START to 1, so
// that the field follows a moving object from a known shape (D-NeRF, section 4.3); 1 without a
// curriculum.
float curriculum_share()
{
    if (config.curriculum == 0.0)
        return 1.0;
    float progress = training_ends() ? training_progress() : float(state.step) / float(config.decay_start);
    return clamp(mix(CURRICULUM_START, 1.0, progress / config.curriculum), 0.0, 1.0);
}
