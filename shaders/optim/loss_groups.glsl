// Returns the number of workgroups of composite, each of which stored a loss and a squared error from
// REDUCE_LOSS on and, with distortion, a distortion loss from REDUCE_DISTORTION on.
// Passes: check_gradients, export_step_stats, import_step_stats.
uint loss_groups()
{
    return state.dispatches[CPU_KERNELS != 0u ? DISPATCH_RAYS : DISPATCH_FORWARD].x;
}

layout(constant_id = SPEC_DISTORTION) const uint DISTORTION = DISTORTION_NONE;
