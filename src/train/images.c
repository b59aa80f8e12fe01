#include "train/images.h"

#include "shared/layout.h"

/* Bytes that a period may bring in without anyone noticing: 0.3 ms on PCIe, and three 800x800 images'
 * decoding. */
#define EXCHANGE_BYTES  ((uint64_t)8 << 20)
/* Periods in which all views come by at the latest, where the budget's eighth allows: a fifth of a
 * training of 20000 steps. */
#define CYCLE_PERIODS   256u
#define LEAST_SLOTS     4u

static double mib(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t view_pixels(const struct scene_camera *camera)
{
    return (uint64_t)camera->width * camera->height;
}

static const struct scene_camera *largest_view(const struct scene_split *train)
{
    const struct scene_camera *largest = &train->cameras[0];
    for (size_t i = 1; i < train->camera_count; i++)
        if (view_pixels(&train->cameras[i]) > view_pixels(largest))
            largest = &train->cameras[i];
    return largest;
}

static vkn_status check_shrink(const struct scene_split *train, const struct vkn_config *config)
{
    uint32_t shrink = images_shrink(config, 0.0);
    for (size_t i = 0; i < train->camera_count; i++)
        if (train->cameras[i].width < shrink || train->cameras[i].height < shrink)
            return base_fail(VKN_BAD_INPUT,
                             "%s: of %ux%u pixels nothing is left at a "
                             "progressive.start_downscale of %u",
                             train->cameras[i].image_path, train->cameras[i].width,
                             train->cameras[i].height, shrink);
    return VKN_OK;
}

/* Sets how many views are exchanged by period, of as many as `most`. */
static void plan_exchange(uint64_t most, uint64_t range, struct images_plan *plan)
{
    uint64_t view = 4 * plan->slot_pixels + sizeof(struct Camera);
    uint64_t wanted = EXCHANGE_BYTES / (4 * plan->slot_pixels);
    uint64_t by_cycle = (plan->views + CYCLE_PERIODS - 1) / CYCLE_PERIODS;
    wanted = least(wanted > by_cycle ? wanted : by_cycle, least(most, range / view));
    plan->exchanged = wanted > 0 ? (uint32_t)wanted : 1;
    plan->exchange = plan->exchanged * view;
}

/* Some views at a time, in as many slots as the budget holds. */
static vkn_status plan_slots(const struct scene_camera *largest, uint64_t budget, uint64_t range,
                             struct images_plan *plan)
{
    uint64_t slot = 4 * plan->slot_pixels + sizeof(struct Camera), slots = budget / slot;
    plan_exchange(slots / 8, range, plan);
    uint64_t exchanges = (uint64_t)IMAGES_EXCHANGES * plan->exchanged;
    uint64_t resident = slots > exchanges ? slots - exchanges : 0;
    resident = least(resident, range / (4 * plan->slot_pixels));
    resident = least(resident, plan->views - 1);
    resident = resident / plan->exchanged * plan->exchanged;
    if (slots < LEAST_SLOTS || resident == 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: the largest of the training images has %ux%u pixels (%.2f MiB), and "
                         "%.2f MiB of device memory are left to images (scene.image_budget): room "
                         "for %u such is needed; see --image-memory, --downscale",
                         largest->image_path, largest->width, largest->height, mib(slot),
                         mib(least(budget, range)), LEAST_SLOTS);
    plan->resident = (uint32_t)resident;
    plan->pixels = resident * plan->slot_pixels;
    return VKN_OK;
}

bool images_fit_host(const struct scene *scene, const struct vkn_config *config)
{
    uint64_t budget = config->scene.host_budget > 0 ? config->scene.host_budget : base_memory() / 4;
    return 4 * scene->splits[SCENE_TRAIN].pixel_count <= budget;
}

vkn_status images_make_plan(const struct scene *scene, const struct vkn_config *config,
                            uint64_t most, uint64_t range, struct images_plan *plan)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    const struct scene_camera *largest = largest_view(train);
    uint64_t budget = config->scene.image_budget > 0 ? config->scene.image_budget : most;
    *plan = (struct images_plan){
        .views = (uint32_t)train->camera_count,
        .resident = (uint32_t)train->camera_count,
        .slot_pixels = view_pixels(largest),
        .pixels = train->pixel_count,
        .all_bytes = 4 * train->pixel_count,
    };
    if (config->progressive.enabled) {
        BASE_TRY(check_shrink(train, config));
        plan_exchange(plan->views / 4, range, plan);
    }
    if (plan->all_bytes > range || plan->all_bytes + IMAGES_EXCHANGES * plan->exchange > budget)
        BASE_TRY(plan_slots(largest, budget, range, plan));
    plan->bytes = 4 * plan->pixels + IMAGES_EXCHANGES * plan->exchange;
    return VKN_OK;
}

/* ---- the sequence -------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void images_shuffle(const struct images_plan *plan, uint64_t seed, uint32_t *order)
{
    for (uint32_t i = 0; i < plan->views; i++)
        order[i] = i;
    for (uint32_t i = plan->views; i > 1; i--) { /* Fisher and Yates */
        uint32_t j = (uint32_t)(next_random(&seed) % i), kept = order[j];
        order[j] = order[i - 1];
        order[i - 1] = kept;
    }
}

uint64_t images_position(const struct images_plan *plan, uint64_t window, uint32_t slot)
{
    uint64_t first = window * plan->exchanged;
    return first + (slot + plan->resident - first % plan->resident) % plan->resident;
}

uint64_t images_entry(const struct images_plan *plan, uint64_t position)
{
    return position < plan->resident ? 0
                                     : (position - plan->resident) / plan->exchanged + 1;
}

uint64_t images_place(const struct images_plan *plan, const struct scene_split *train,
                      uint32_t view, uint32_t slot)
{
    return plan->resident == plan->views ? train->cameras[view].first_pixel
                                         : slot * plan->slot_pixels;
}

/* ---- stages -------------------------------------------------------------------------------- */

uint32_t images_shrink(const struct vkn_config *config, double progress)
{
    if (!config->progressive.enabled)
        return 1;
    uint32_t shrink = config->progressive.start_downscale;
    for (size_t i = 0; i < BASE_COUNT(config->progressive.milestones) && shrink > 1; i++)
        if (progress >= (double)config->progressive.milestones[i])
            shrink /= 2;
    return shrink;
}

double images_progress(const struct vkn_config *config, uint64_t period)
{
    return config->steps > 0 ? (double)(period * PERIOD_STEPS) / config->steps : 0.0;
}
