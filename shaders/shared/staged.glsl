// Synchronises data that a subgroup stages in shared memory for its own invocations.
// Passes: march_rays, sample_uniform, sample_fine, sample_proposal, interlevel.

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

// Waits until the subgroup's writes to staged data can be read. On a CPU device a subgroup is one
// vector, whose lanes run in lockstep; at a barrier lavapipe would still suspend the subgroup, which
// took a third of the time of march_rays.
void wait_for_staged()
{
    if (CPU_KERNELS != 0u)
        subgroupMemoryBarrierShared();
    else
        subgroupBarrier();
}
