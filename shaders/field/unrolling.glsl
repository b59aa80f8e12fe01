// Returns `count`, on CPU devices in a form that compilers cannot evaluate. GPUs need loops over
// matrices unrolled, to keep the matrices in registers. A CPU device's compiler would unroll loops of
// constant length too, which takes minutes.
// Passes: those with cooperative matrices or tiles.
uint loop_bound(uint count)
{
    return CPU_SHAPED != 0u ? count + gl_NumWorkGroups.z - 1u : count;
}
