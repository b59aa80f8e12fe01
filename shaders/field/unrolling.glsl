// Returns `count`, on CPU devices in a form that compilers cannot evaluate. On GPUs loops over
// matrices must be unrolled to keep the matrices in registers. A CPU device's compiler would also
// unroll loops of constant length, which takes minutes.
// Passes: all with cooperative matrices or tiles.
uint loop_bound(uint count)
{
    return CPU_KERNELS != 0u ? count + gl_NumWorkGroups.z - 1u : count;
}
