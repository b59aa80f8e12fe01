// How far the training is. What includes this has declared state and control.

// Whether it ends, by steps or time.
bool training_ends()
{
    return config.total_steps != 0xffffffffu || config.time_schedule != 0u;
}

// Share of it that is over, by steps or time, whichever is further.
float training_progress()
{
    float progress = config.total_steps != 0xffffffffu
                         ? float(state.step) / float(config.total_steps) : 0.0;
    if (config.time_schedule != 0u)
        progress = max(progress, control.time_progress);
    return progress;
}

// Share of the time whose views are drawn: from the first moments on ever more, so that what moves has always a
// shape already that is followed a little further (D-NeRF, section 4.3). 1 without a curriculum and at its end.
float curriculum_share()
{
    if (config.curriculum == 0.0)
        return 1.0;
    float progress = training_ends() ? training_progress() : float(state.step) / float(config.decay_start);
    return clamp(mix(CURRICULUM_START, 1.0, progress / config.curriculum), 0.0, 1.0);
}
