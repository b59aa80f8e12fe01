/* Plans which image strips are resident at each step: a pure function of step and seed. */
#include "images/images.h"

#include <math.h>
#include <stdlib.h>

#include "shared/layout.h"

/* Bytes per update interval: a millisecond on PCIe; decoded pixels of three images of 800x800. */
#define COPIED_BYTES    ((uint64_t)16 << 20)
#define DECODED_BYTES   ((uint64_t)8 << 20)
#define CYCLE_INTERVALS 256u /* longest cycle in update intervals: a fifth of 20000 steps */
#define LEAST_SLOTS     2u
#define MOST_STRIPS     16u
#define LEAST_ROWS      4u /* of a strip, after downscaling */
#define LEAST_CELL_EDGE 16u
#define LEAST_MASK_EDGE 2u    /* with loss.robust: cells are also the pixels of masks */
#define MOST_VIEW_CELLS 4096u /* a view of 1024 x 1024 pixels has as many with the least edge */

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static size_t view_count(const struct scene_split *train)
{
    return scene_share_count(train->share, train->camera_count);
}

/* Returns a view by its index in the split's share. */
static const struct scene_camera *view_at(const struct scene_split *train, size_t index)
{
    return &train->cameras[scene_share_view(train->share, index)];
}

static const struct scene_camera *largest_view(const struct scene_split *train)
{
    const struct scene_camera *largest = view_at(train, 0);
    for (size_t i = 1; i < view_count(train); i++) {
        const struct scene_camera *view = view_at(train, i);
        if ((uint64_t)view->width * view->height > (uint64_t)largest->width * largest->height)
            largest = view;
    }
    return largest;
}

static vkn_status check_shrink(const struct scene_split *train, uint32_t shrink)
{
    for (size_t i = 0; i < view_count(train); i++) {
        const struct scene_camera *view = view_at(train, i);
        if (view->width < shrink || view->height < shrink)
            return base_fail(VKN_BAD_INPUT,
                             "%s: %ux%u pixels are too few for a progressive.start_downscale of %u",
                             view->image_path, view->width, view->height, shrink);
    }
    return VKN_OK;
}

/* ---- strips -------------------------------------------------------------------------------- */

/* Returns the first row of a strip; for strip plan->strips, the height. */
static uint32_t strip_begin(const struct images_plan *plan, uint32_t height, uint32_t strip)
{
    if (strip == plan->strips)
        return height;
    uint32_t rows = plan->rows > 0 ? plan->rows : 1;
    return (uint32_t)((uint64_t)(height / rows) * strip / plan->strips) * rows;
}

struct images_strip images_strip(const struct images_plan *plan, const struct scene_split *train,
                                 uint32_t image_strip, uint32_t slot, uint32_t shrink)
{
    const uint32_t strip = image_strip % plan->strips;
    const uint32_t view = (uint32_t)scene_share_view(plan->share, image_strip / plan->strips);
    const struct scene_camera *camera = &train->cameras[view];
    uint32_t begin = strip_begin(plan, camera->height, strip);
    uint32_t rows = strip_begin(plan, camera->height, strip + 1) - begin;
    struct scene_camera crop = scene_crop_camera(camera, begin, rows);
    struct images_strip result = {view,   begin, rows,
                                  shrink, slot,  scene_shrink_camera(&crop, shrink)};
    if (plan->resident < plan->image_strips)
        result.camera.first_pixel = slot * plan->slot_pixels;
    return result;
}

/* Cuts every view into `strips` strips. */
static void plan_strips(const struct scene_split *train, uint32_t strips, uint32_t rows,
                        struct images_plan *plan)
{
    plan->strips = strips;
    plan->rows = rows;
    plan->image_strips = plan->views * strips;
    plan->slot_pixels = 1;
    for (uint32_t i = 0; i < plan->image_strips; i++) {
        struct images_strip image_strip = images_strip(plan, train, i, 0, 1);
        uint64_t pixels = (uint64_t)image_strip.rows * image_strip.camera.width;
        plan->slot_pixels = pixels > plan->slot_pixels ? pixels : plan->slot_pixels;
    }
}

/* Returns the number of strips per view; each has at least LEAST_ROWS rows in the lowest view. */
static uint32_t choose_strips(const struct scene_split *train, uint32_t shrink)
{
    uint32_t strips = MOST_STRIPS;
    for (size_t i = 0; i < view_count(train); i++) {
        uint32_t possible = view_at(train, i)->height / (shrink * LEAST_ROWS);
        strips = possible < strips ? possible : strips;
    }
    return strips > 0 ? strips : 1;
}

/* ---- the plan ------------------------------------------------------------------------------ */

static uint64_t strip_bytes(const struct images_plan *plan)
{
    return 4 * plan->slot_pixels + sizeof(struct Camera);
}

/* Chooses how many strips enter in each update interval, at most `most`. */
static void plan_exchange(const struct vkn_scene *scene, const struct vkn_config *config,
                          uint64_t most, uint64_t range, struct images_plan *plan)
{
    uint64_t scale = scene->load_downscale > 0 ? scene->load_downscale : 1;
    uint64_t decoded = 4 * plan->slot_pixels * scale * scale;
    uint64_t wanted =
        images_fit_host(scene, config) ? COPIED_BYTES / strip_bytes(plan) : DECODED_BYTES / decoded;
    uint64_t by_cycle = (plan->image_strips + CYCLE_INTERVALS - 1) / CYCLE_INTERVALS;
    wanted = wanted > by_cycle ? wanted : by_cycle;
    wanted = minimum(wanted, minimum(most, range / strip_bytes(plan)));
    plan->exchanged = wanted > 0 ? (uint32_t)wanted : 1;
    plan->exchange_bytes = plan->exchanged * strip_bytes(plan);
}

/* Plans streaming into as many slots as the budget holds. */
static vkn_status plan_slots(const struct vkn_scene *scene, const struct vkn_config *config,
                             uint64_t budget, uint64_t range, struct images_plan *plan)
{
    const struct scene_camera *largest = largest_view(&scene->splits[SCENE_TRAIN]);
    uint64_t slots = minimum(budget, range) / (4 * plan->slot_pixels);
    if (slots < LEAST_SLOTS)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %ux%u pixels in %u strips of %.2f MiB: at least %u strips must fit, "
                         "but images have only %.2f MiB of device memory (scene.image_budget); see "
                         "--image-memory, --downscale",
                         largest->image_path, largest->width, largest->height, plan->strips,
                         base_mib(4 * plan->slot_pixels), LEAST_SLOTS,
                         base_mib(minimum(budget, range)));
    uint64_t resident = minimum(slots, plan->image_strips - 1);
    plan_exchange(scene, config, resident, range, plan);
    plan->resident = (uint32_t)(resident / plan->exchanged * plan->exchanged);
    plan->pixels = plan->resident * plan->slot_pixels;
    return VKN_OK;
}

bool images_fit_host(const struct vkn_scene *scene, const struct vkn_config *config)
{
    uint64_t budget =
        config->scene.host_budget > 0 ? config->scene.host_budget : base_memory_total() / 4;
    return 4 * scene->splits[SCENE_TRAIN].pixel_count <= budget;
}

uint32_t images_error_cells(const struct images_plan *plan, uint32_t pixels)
{
    return (pixels + plan->cell_edge - 1) / plan->cell_edge;
}

/* Sizes the cells of the error map: the least power of two as their edge with which no view has
 * more than MOST_VIEW_CELLS. All views of all ranks count, at the size of the last stage, so that
 * the map depends neither on the number of ranks nor on the step. */
static void plan_view_cells(const struct scene_split *train, bool robust, struct images_plan *plan)
{
    plan->cell_edge = robust ? LEAST_MASK_EDGE : LEAST_CELL_EDGE;
    for (size_t i = 0; i < train->camera_count; i++) {
        const struct scene_camera *view = &train->cameras[i];
        while ((uint64_t)images_error_cells(plan, view->width) *
                   images_error_cells(plan, view->height) >
               MOST_VIEW_CELLS)
            plan->cell_edge *= 2;
    }
    for (size_t i = 0; i < train->camera_count; i++) {
        const struct scene_camera *view = &train->cameras[i];
        uint32_t cells =
            images_error_cells(plan, view->width) * images_error_cells(plan, view->height);
        plan->view_cells = cells > plan->view_cells ? cells : plan->view_cells;
    }
}

uint64_t images_saved_cells(const struct scene_split *train, const struct saved_state *saved,
                            struct images_plan *plan)
{
    *plan = (struct images_plan){0};
    plan_view_cells(train, saved->has_outliers, plan);
    uint64_t cells = (uint64_t)train->camera_count * plan->view_cells;
    return saved->has_map ? cells + saved->has_outliers : 0;
}

/* Sizes the error map: the cells of the largest view of all ranks, and of the largest strip, which
 * may begin and end within cells. */
static void plan_cells(const struct scene_split *train, bool robust, struct images_plan *plan)
{
    plan_view_cells(train, robust, plan);
    for (size_t i = 0; i < train->camera_count; i++) {
        const struct scene_camera *view = &train->cameras[i];
        uint32_t columns = images_error_cells(plan, view->width);
        plan->cuts_panoramas |= plan->strips > 1 && view->lens == VKN_LENS_EQUIRECTANGULAR;
        for (uint32_t strip = 0; strip < plan->strips; strip++) {
            uint32_t begin = strip_begin(plan, view->height, strip);
            uint32_t end = strip_begin(plan, view->height, strip + 1);
            uint32_t cells = columns * (images_error_cells(plan, end) - begin / plan->cell_edge);
            plan->slot_cells = cells > plan->slot_cells ? cells : plan->slot_cells;
        }
    }
}

/* Returns the mean of the cosine of latitude over a camera's rows. */
static double mean_cosine(const struct scene_camera *camera)
{
    double top = -(double)camera->center_y / (double)camera->focal_y;
    double bottom = top + camera->height / (double)camera->focal_y;
    return (sin(bottom) - sin(top)) / (bottom - top);
}

/* Returns the first of a view's known depths that is at `row` or below it. */
static size_t first_depth(const struct scene_split *train, const struct scene_camera *view,
                          uint32_t row)
{
    size_t low = view->first_depth, high = low + view->depth_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uint32_t)train->depths[middle].y < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct Camera images_camera(const struct images_plan *plan, const struct scene_split *train,
                            const struct images_strip *image_strip)
{
    const struct scene_camera *view = &train->cameras[image_strip->view];
    struct Camera camera = setup_camera(&image_strip->camera);
    camera.view = image_strip->view;
    camera.first_row = image_strip->first_row;
    camera.shrink = image_strip->shrink;
    camera.first_cell = plan->first_cell + image_strip->view * plan->view_cells;
    camera.cell_columns = images_error_cells(plan, view->width);
    if (plan->depths > 0) {
        size_t first = first_depth(train, view, image_strip->first_row);
        size_t end = first_depth(train, view, image_strip->first_row + image_strip->rows);
        camera.first_depth = (uint32_t)first;
        camera.depth_count = (uint32_t)(end - first);
    }
    /* All strips are equally likely. A draw of a panorama's strip is kept in proportion to the
     * strip's mean cosine of latitude. 0.636 is 2 / pi, the mean over a whole sphere: draws of
     * other views are kept as often as draws of a panorama on average. */
    if (plan->cuts_panoramas) {
        double share = view->lens == VKN_LENS_EQUIRECTANGULAR
                           ? mean_cosine(&image_strip->camera) / mean_cosine(view)
                           : 1.0;
        camera.strip_share = (float)fmin(0.636 * share, 1.0);
    }
    return camera;
}

static uint32_t longer_side(const struct scene_camera *camera)
{
    return camera->width > camera->height ? camera->width : camera->height;
}

vkn_status images_make_plan(const struct vkn_scene *scene, const struct vkn_config *config,
                            uint64_t most, uint64_t range, struct images_plan *plan)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    uint64_t budget = config->scene.image_budget > 0 ? config->scene.image_budget : most;
    uint32_t shrink = images_shrink(config, 0.0);
    if (config->progressive.enabled)
        BASE_TRY(check_shrink(train, shrink));
    *plan = (struct images_plan){
        .cameras = (uint32_t)train->camera_count,
        .views = (uint32_t)view_count(train),
        .share = train->share,
        .resident = (uint32_t)view_count(train),
        .pixels = train->pixel_count,
        .all_bytes = 4 * train->pixel_count,
        .depths = config->loss.depth > 0 ? train->depth_count : 0,
        .first_cell = config->scene.sky == VKN_SWITCH_ON ? SKY_CELLS : 0,
        .times = {1.0F, 0.0F},
    };
    for (size_t i = 0; i < train->camera_count; i++) {
        plan->times[0] = fminf(plan->times[0], train->cameras[i].time);
        plan->times[1] = fmaxf(plan->times[1], train->cameras[i].time);
        plan->view_size += (float)longer_side(&train->cameras[i]) / (float)train->camera_count;
    }
    scene_up(train, plan->up);
    plan_strips(train, 1, shrink, plan);
    if (plan->all_bytes > minimum(budget, range)) {
        if (images_fit_host(scene, config))
            plan_strips(train, choose_strips(train, shrink), shrink, plan);
        BASE_TRY(plan_slots(scene, config, budget, range, plan));
    } else if (config->progressive.enabled) {
        plan_exchange(scene, config, plan->views / 4, range, plan);
    }
    plan->bytes = 4 * plan->pixels;
    plan_cells(train, config->loss.robust == VKN_SWITCH_ON, plan);
    return VKN_OK;
}

vkn_status images_check(const struct vkn_scene *scene)
{
    for (size_t i = 0; i < scene->splits[SCENE_TRAIN].camera_count; i++)
        if (scene->splits[SCENE_TRAIN].cameras[i].width == 0)
            return base_fail(VKN_BAD_INPUT, "%s: training image %zu is empty", scene->path, i);
    if (scene->splits[SCENE_TRAIN].camera_count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: no training frames", scene->path);
    return VKN_OK;
}

/* Images get three quarters of the memory that the other buffers leave; the rest is for evaluation
 * and other processes. A deterministic run must not depend on what other processes leave free. */
vkn_status images_plan_step(const struct gpu_device *device, const struct vkn_scene *scene,
                            const struct setup *setup, struct images_plan *plan)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    const struct step_images none = {0};
    uint64_t memory =
        setup->config.deterministic ? capabilities->device_memory : gpu_memory_available(device);
    uint64_t others = step_memory(setup, &none);
    uint64_t most = memory > others ? (memory - others) / 4 * 3 : 0;
    return images_make_plan(scene, &setup->config, most, capabilities->max_buffer_range, plan);
}

struct step_images images_of_step(const struct images_plan *plan)
{
    return (struct step_images){
        .views = plan->cameras,
        .slots = plan->exchanged > 0 ? plan->resident : 0,
        .resident = plan->resident,
        .pixels = plan->pixels,
        .cell_edge = plan->cell_edge,
        .view_cells = plan->view_cells,
        .slot_cells = plan->slot_cells,
        .depths = plan->depths,
        .times = {plan->times[0], plan->times[1]},
        .up = {(float)plan->up[0], (float)plan->up[1], (float)plan->up[2]},
        .view_size = plan->view_size,
        .share = plan->share,
    };
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
    for (uint32_t i = 0; i < plan->image_strips; i++)
        order[i] = i;
    for (uint32_t i = plan->image_strips; i > 1; i--) { /* Fisher and Yates */
        uint32_t j = (uint32_t)(next_random(&seed) % i), swapped = order[j];
        order[j] = order[i - 1];
        order[i - 1] = swapped;
    }
}

uint64_t images_position(const struct images_plan *plan, uint64_t window, uint32_t slot)
{
    uint64_t first = window * plan->exchanged;
    return first + (slot + plan->resident - first % plan->resident) % plan->resident;
}

uint64_t images_entry_window(const struct images_plan *plan, uint64_t position)
{
    return position < plan->resident ? 0 : (position - plan->resident) / plan->exchanged + 1;
}

/* ---- times --------------------------------------------------------------------------------- */

float images_latest_time(const struct Config *constants, uint64_t step, double time_progress)
{
    bool limited = constants->total_steps != UINT32_MAX;
    double progress = limited ? (double)step / constants->total_steps : time_progress;
    if (constants->curriculum <= 0)
        return 1.0F;
    if (!limited && !constants->time_schedule)
        progress = (double)step / constants->decay_start;
    progress = fmax(progress, time_progress) / (double)constants->curriculum;
    double share = (double)CURRICULUM_START + (1.0 - (double)CURRICULUM_START) * progress;
    double first = (double)constants->first_time, last = (double)constants->last_time;
    return share < 1.0 ? (float)(first + share * (last - first)) : 1.0F;
}

struct view_time {
    float time;
    uint32_t view; /* index in the share */
};

static int compare_times(const void *a, const void *b)
{
    const struct view_time *one = a, *other = b;
    if (one->time != other->time)
        return one->time < other->time ? -1 : 1;
    return one->view < other->view ? -1 : 1;
}

vkn_status images_sort(const struct scene_split *train, struct scene_share share, uint32_t *order)
{
    size_t count = scene_share_count(share, train->camera_count);
    struct view_time *sorted = base_alloc(count, sizeof *sorted);
    if (!sorted)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        sorted[i] =
            (struct view_time){train->cameras[scene_share_view(share, i)].time, (uint32_t)i};
    qsort(sorted, count, sizeof *sorted, compare_times);
    for (size_t i = 0; i < count; i++)
        order[i] = sorted[i].view;
    free(sorted);
    return VKN_OK;
}

static float view_time_of(const struct images_plan *plan, const struct scene_split *train,
                          uint32_t image_strip)
{
    return train->cameras[scene_share_view(plan->share, image_strip / plan->strips)].time;
}

uint32_t images_available(const struct images_plan *plan, const struct scene_split *train,
                          const uint32_t *order, float latest, uint32_t *available)
{
    float earliest = view_time_of(plan, train, 0);
    uint32_t count = 0;
    for (uint32_t i = 1; i < plan->image_strips; i++)
        earliest = fminf(earliest, view_time_of(plan, train, i));
    for (uint32_t i = 0; i < plan->image_strips; i++)
        if (view_time_of(plan, train, order[i]) <= fmaxf(latest, earliest))
            available[count++] = order[i];
    return count;
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

double images_progress(const struct vkn_config *config, uint64_t interval)
{
    return config->steps > 0 ? (double)(interval * UPDATE_INTERVAL) / config->steps : 0.0;
}
