// Stratified samples: one in each of config.ray_samples bins.

// Where in its bin a ray's sample lies, 0 to 1.
float offset_in_bin(uint ray, uint bin)
{
#ifdef TRAIN
    return random_unit(state.step, (config.first_ray + ray) * config.ray_samples + bin, RANDOM_SAMPLE).x;
#else
    return 0.5;
#endif
}
