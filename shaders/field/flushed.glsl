// Tells how many gradients 16 bits turned into zero (field/rounded.glsl): once, by whole subgroups, at the end.
// What includes this has declared `state`.
void count_flushed()
{
#ifdef F16_STORAGE
    uvec2 all = subgroupAdd(rounded_gradients);
    if (subgroupElect() && all.y > 0u) {
        atomicAdd(state.flushed, all.y - all.x);
        atomicAdd(state.rounded, all.y);
    }
#endif
}
