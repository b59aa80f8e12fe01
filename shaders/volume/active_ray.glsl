// Returns whether a ray of a training step is in the loss: see Ray.last.
// Passes: composite, find_visible, appearance_gradients, sum_sky.
bool is_active_ray(uint ray)
{
    return ray < state.ray_count && rays[min(ray, state.ray_count - 1u)].last > -1.5;
}
