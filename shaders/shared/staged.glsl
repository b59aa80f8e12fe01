// Synchronises data that a subgroup stages in shared memory for its own invocations.
// Passes: march_rays, sample_uniform, sample_fine, sample_proposal, interlevel.

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

// Waits between a subgroup's writes to staged data and its reads. A CPU device's subgroup is one
// vector and runs in step. A barrier would stop it in lavapipe all the same, which took a third of the
// march's time.
void wait_for_staged()
{
    if (CPU_SHAPED != 0u)
        subgroupMemoryBarrierShared();
    else
        subgroupBarrier();
}
