// Returns offsets of stratified samples: a ray has one sample in each of config.ray_samples bins.
// Passes: sample_uniform, sample_fine.

// Returns the offset of a ray's sample in its bin, 0 to 1: random in training, the middle in
// rendering.
float offset_in_bin(uint ray, uint bin)
{
#ifdef TRAIN
    return random_unit(state.step, (config.first_ray + ray) * config.ray_samples + bin, RANDOM_SAMPLE).x;
#else
    return 0.5;
#endif
}
