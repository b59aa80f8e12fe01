/* Computes statistics of the sampling: samples per ray, and the shares that were skipped. */
#include <math.h>

#include <cjson/cJSON.h>

#include "config/config.h"
#include "train/internal.h"
#include "train/train.h"

/* Returns the number of coarse samples for `marched` counted samples. Hierarchical sampling counts
 * fine and coarse samples, sampling with a proposal counts fine samples only. */
static double coarse_of(const vkn_trainer *trainer, double marched)
{
    const struct Config *constants = &trainer->step.setup.constants;
    double counted = constants->fine_samples;
    if (trainer->config.march.sampling != VKN_SAMPLING_PROPOSAL)
        counted += constants->ray_samples;
    return constants->fine_samples > 0 ? marched * constants->ray_samples / counted : 0.0;
}

struct train_sampling train_sampling(const vkn_trainer *trainer)
{
    const struct profile *profile = &trainer->profile;
    struct train_sampling sampling = {
        .kind = trainer->config.march.sampling,
        .steps = profile->steps,
        .seconds = trainer->seconds - trainer->seconds_before,
        .rays = profile->rays,
        .timed_rays = profile->rays - trainer->untimed_rays,
        .march_steps = setup_ray_steps(&trainer->step.setup, trainer->scene),
    };
    if (!(profile->rays > 0.0 && profile->marched > 0.0))
        return sampling;
    double coarse = coarse_of(trainer, profile->marched);
    sampling.evaluated = (profile->marched + coarse) / profile->rays;
    sampling.coarse = coarse / profile->rays;
    sampling.live = profile->live / profile->rays;
    sampling.behind_share = 1.0 - profile->live / profile->marched;
    if (sampling.kind == VKN_SAMPLING_OCCUPANCY && sampling.march_steps > 0.0)
        sampling.empty_share = fmax(0.0, 1.0 - sampling.evaluated / sampling.march_steps);
    return sampling;
}

/* Rounds to a millionth. */
static void add(cJSON *json, const char *name, double value)
{
    cJSON_AddNumberToObject(json, name, round(1e6 * value) / 1e6);
}

struct cJSON *train_sampling_json(const struct train_sampling *sampling)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", config_sampling_names[sampling->kind]);
    add(json, "steps", (double)sampling->steps);
    add(json, "seconds", sampling->seconds);
    add(json, "rays", sampling->rays);
    if (!(sampling->rays > 0.0))
        return json;
    if (sampling->seconds > 0.0)
        add(json, "rays_per_second", sampling->timed_rays / sampling->seconds);
    add(json, "evaluated_per_ray", sampling->evaluated);
    add(json, "coarse_per_ray", sampling->coarse);
    add(json, "live_per_ray", sampling->live);
    add(json, "march_steps_per_ray", sampling->march_steps);
    if (sampling->kind == VKN_SAMPLING_OCCUPANCY)
        add(json, "empty_share", sampling->empty_share);
    add(json, "behind_share", sampling->behind_share);
    return json;
}
