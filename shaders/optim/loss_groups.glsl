// Returns the number of workgroups of composite. Each of them stored a loss and a squared error from
// REDUCE_LOSS on and, if DISTORTION is not 0, a distortion loss from REDUCE_DISTORTION on.
// Passes: check_gradients, finish_step, export_step_stats, import_step_stats.

layout(constant_id = SPEC_DISTORTION) const uint DISTORTION = DISTORTION_NONE;

uint loss_groups()
{
    return state.dispatches[CPU_KERNELS != 0u ? DISPATCH_RAYS : DISPATCH_FORWARD].x;
}
