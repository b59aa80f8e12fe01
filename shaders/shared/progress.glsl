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
