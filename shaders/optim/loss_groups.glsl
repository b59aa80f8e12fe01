// Composite's workgroups, each of which leaves a loss and a squared error from REDUCE_LOSS on.
uint loss_groups()
{
    return state.dispatches[CPU_SHAPED != 0u ? DISPATCH_RAYS : DISPATCH_FORWARD].x;
}
