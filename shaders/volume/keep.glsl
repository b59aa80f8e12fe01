// Chooses the rays whose live samples get gradients, by the rays' losses (arXiv 2408.03193). A ray is
// kept with probability p = clamp(keep_gain * loss / mean loss, keep_least, 1), and the gradient of a
// kept ray is multiplied by 1 / p: the expected gradient is that of all rays. The choice is random by
// seed, step and ray alone. optim/keep_gain.glsl adapts keep_gain.
// Rays of outlier cells are dropped, too: their gradients are 0.
// Pass: composite. The including file includes volume/ray_weight.glsl first.

layout(constant_id = SPEC_KEEP) const uint KEEP = 0;

// Returns the factor of the gradient of a ray with this loss, 0 if the ray is dropped. Rays of a
// coarse field are all kept, because keep_gain follows the losses of the main field.
float keep_weight(uint ray, float loss)
{
    if (is_outlier(ray))
        return 0.0;
    if (KEEP == 0u || push.e == COMPOSITE_COARSE || !(state.mean_loss > 0.0))
        return 1.0;
    float probability = clamp(state.keep_gain * loss / state.mean_loss, config.keep_least, 1.0);
    float pick = random_unit(state.step, config.first_ray + ray, RANDOM_KEEP).x;
    return pick < probability ? 1.0 / probability : 0.0;
}

// Adds a subgroup's numbers of live samples and of kept rays to the step's.
void count_kept(uint reached_samples, uint kept_rays)
{
    if (KEEP == 0u)
        return;
    if (reached_samples > 0u)
        atomicAdd(state.reached_count, reached_samples);
    if (kept_rays > 0u)
        atomicAdd(state.kept_rays, kept_rays);
}
