// What a subgroup stages in shared memory for its own invocations.

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

// Between a subgroup's writing of what is staged and its reading. A CPU's subgroup is one vector and so in
// step; lavapipe stops it at a barrier all the same, which took a third of the march's time.
void wait_for_staged()
{
    if (CPU_SHAPED != 0u)
        subgroupMemoryBarrierShared();
    else
        subgroupBarrier();
}
