// GPUs need loops over matrices unrolled, to keep these in registers; a CPU device's compiler would unroll
// them too, and take minutes, if it knew that nothing is added here.
uint loop_bound(uint count)
{
    return CPU_SHAPED != 0u ? count + gl_NumWorkGroups.z - 1u : count;
}
