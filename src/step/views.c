/* Uploads the refinement of the training views' poses and lenses, and reads the refined cameras. */
#include <math.h>
#include <stdlib.h>

#include "rays/rays.h"
#include "step/internal.h"

_Static_assert(SCENE_POSE == VIEW_PARAMETERS && SCENE_GAUGES == VIEW_GAUGES &&
                   SCENE_LENS == LENS_PARAMETERS,
               "scene and shaders agree");
#define AT(member, word) \
    _Static_assert(offsetof(struct View, member) == 4 * (word), "shaders find " #member)
AT(turn, VIEW_TURN);
AT(shift, VIEW_SHIFT);
AT(latent, VIEW_LATENT);
AT(moment1, VIEW_MOMENT1);
AT(moment2, VIEW_MOMENT2);
AT(whitening, VIEW_WHITENING);
AT(gauge, VIEW_GAUGE);
AT(updates, VIEW_UPDATES);
AT(group, VIEW_GROUP);
AT(lens, VIEW_LENS);
AT(lens_latent, VIEW_LENS_LATENT);
AT(lens_moment1, VIEW_LENS_MOMENT1);
AT(lens_moment2, VIEW_LENS_MOMENT2);
AT(lens_whitening, VIEW_LENS_WHITENING);
AT(lens_updates, VIEW_LENS_UPDATES);
_Static_assert(sizeof(struct View) == 4 * VIEW_WORDS, "shaders find the next view");
_Static_assert(sizeof(struct View) % sizeof(struct ErrorCell) == 0, "checkpoints know the state");

#define MOST_CHANGE 80.0F /* exp(80) is finite in single precision */

static uint64_t views_offset(const struct step *step)
{
    return 4ull * step->setup.constants.first_view_word;
}

/* Returns whether the changes of a camera keep it finite: they are far below MOST_CHANGE. */
static bool is_finite(const struct View *view)
{
    bool finite = true;
    for (int i = 0; i < 3; i++)
        finite =
            finite && fabsf(view->turn[i]) < MOST_CHANGE && fabsf(view->shift[i]) < MOST_CHANGE;
    for (int i = 0; i < LENS_PARAMETERS; i++)
        finite = finite && fabsf(view->lens[i]) < MOST_CHANGE;
    return finite;
}

/* What follows the error map in a state, and the bytes of it; `before`: bytes before the map. */
struct tail {
    struct step_views views;
    const struct ErrorCell *view_sums, *appearance_sums;
    uint64_t size, before;
};

/* Returns the tail of a state of `count` views; without pointers if the state is too short. */
static struct tail find_tail(const struct saved_state *saved, uint64_t count)
{
    struct tail tail = {.before = sizeof(struct State)};
    if (saved->has_sky)
        tail.before += SKY_CELLS * sizeof(struct ErrorCell);
    uint64_t views = saved->has_views ? count : 0;
    uint64_t appearances = saved->has_appearances ? count : 0;
    tail.size = views * (VIEW_SUMS * sizeof(struct ErrorCell) + sizeof(struct View)) +
                appearances *
                    (APPEARANCE_PARAMETERS * sizeof(struct ErrorCell) + sizeof(struct Appearance));
    if (tail.size > saved->size)
        return tail;
    tail.view_sums = (const void *)((const char *)saved->data + saved->size - tail.size);
    tail.appearance_sums = tail.view_sums + VIEW_SUMS * views;
    const void *after = tail.appearance_sums + APPEARANCE_PARAMETERS * appearances;
    tail.views.cameras = after;
    tail.views.appearances = (const void *)(tail.views.cameras + views);
    return tail;
}

static vkn_status check_tail(const char *path, const struct saved_state *saved, uint64_t count,
                             uint64_t error_cells, const struct tail *tail)
{
    if (saved->size != tail->before + error_cells * sizeof(struct ErrorCell) + tail->size)
        return base_fail(VKN_BAD_INPUT, "%s: state: %s of other views than the scene's", path,
                         saved->has_views         ? "refined cameras"
                         : saved->has_appearances ? "appearances"
                                                  : "an error map");
    for (uint64_t v = 0; v < count; v++) {
        bool has_camera = !saved->has_views || is_finite(&tail->views.cameras[v]);
        if (!has_camera ||
            (saved->has_appearances && !step_appearance_is_finite(&tail->views.appearances[v])))
            return base_fail(VKN_BAD_INPUT, "%s: state: view %llu: its %s is not finite", path,
                             (unsigned long long)v, has_camera ? "appearance" : "camera");
    }
    return VKN_OK;
}

vkn_status step_find_views(const char *path, const struct saved_state *saved, uint64_t count,
                           uint64_t error_cells, struct step_views *views)
{
    const struct tail tail = find_tail(saved, count);
    BASE_TRY(check_tail(path, saved, count, error_cells, &tail));
    *views = tail.views;
    return VKN_OK;
}

/* Uploads the sky, which does not depend on the views. */
static vkn_status upload_sky(const struct step *step, const char *path,
                             const struct saved_state *saved)
{
    const uint64_t begin = sizeof(struct State), size = SKY_CELLS * sizeof(struct ErrorCell);
    if (!saved->has_sky || step->setup.constants.sky_cells == 0)
        return VKN_OK;
    if (saved->size < begin + size)
        return base_fail(VKN_BAD_INPUT, "%s: state: the sky is incomplete", path);
    return gpu_upload(step->device, &step->buffers.at[BIND_STATE], begin,
                      (const char *)saved->data + begin, size);
}

vkn_status step_upload_views(const struct step *step, const char *path,
                             const struct saved_state *saved, uint64_t error_cells,
                             bool weights_only)
{
    const struct Config *c = &step->setup.constants;
    const uint64_t count = c->camera_count, cell = sizeof(struct ErrorCell);
    const struct tail tail = find_tail(saved, count);
    bool has_tail = saved->has_views || saved->has_appearances;
    bool is_other = weights_only && saved->size != step->buffers.at[BIND_STATE].size;
    if (has_tail && is_other)
        base_log(BASE_LOG_WARNING,
                 "%s: cameras and exposures of its views are not taken over: the views or settings "
                 "are others",
                 path);
    if (has_tail && !is_other)
        BASE_TRY(check_tail(path, saved, count, error_cells, &tail));
    BASE_TRY(upload_sky(step, path, saved));
    if (!has_tail || is_other)
        return VKN_OK;
    const struct {
        bool is_trained;
        uint64_t offset;
        const void *data;
        uint64_t size;
    } parts[] = {
        {saved->has_views && rays_refine(&step->setup.config), step_view_sums_offset(step),
         tail.view_sums, count * VIEW_SUMS * cell},
        {saved->has_views && rays_refine(&step->setup.config), views_offset(step),
         tail.views.cameras, count * sizeof(struct View)},
        {saved->has_appearances && step_has_appearance(step),
         sizeof(struct State) + cell * c->first_appearance_sum, tail.appearance_sums,
         count * APPEARANCE_PARAMETERS * cell},
        {saved->has_appearances && step_has_appearance(step), 4ull * c->first_appearance_word,
         tail.views.appearances, count * sizeof(struct Appearance)},
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        if (parts[i].is_trained)
            BASE_TRY(gpu_upload(step->device, &step->buffers.at[BIND_STATE], parts[i].offset,
                                parts[i].data, parts[i].size));
    return VKN_OK;
}

static struct View begin_view(const struct scene_whitening *given)
{
    struct View view = {.group = (uint32_t)given->group};
    for (size_t p = 0; p < SCENE_POSE; p++)
        for (size_t k = 0; k < SCENE_POSE; k++)
            view.whitening[p * SCENE_POSE + k] = (float)given->whitening[p][k];
    for (size_t g = 0; g < SCENE_GAUGES; g++)
        for (size_t k = 0; k < SCENE_POSE; k++)
            view.gauge[g * SCENE_POSE + k] = (float)given->gauge[g][k];
    for (size_t p = 0; p < SCENE_LENS; p++)
        for (size_t k = 0; k < SCENE_LENS; k++)
            view.lens_whitening[p * SCENE_LENS + k] = (float)given->lens[p][k];
    return view;
}

static vkn_status begin_cameras(const struct step *step, const struct scene_split *train)
{
    size_t count = train->camera_count;
    if (!rays_refine(&step->setup.config))
        return VKN_OK;
    struct scene_whitening *given = base_alloc(count, sizeof *given);
    struct View *views = base_alloc(count, sizeof *views);
    vkn_status status = given && views ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        scene_whiten(train, given);
        for (size_t i = 0; i < count; i++)
            views[i] = begin_view(&given[i]);
        status = gpu_upload(step->device, &step->buffers.at[BIND_STATE], views_offset(step), views,
                            count * sizeof *views);
    }
    free(given);
    free(views);
    return status;
}

vkn_status step_begin_views(const struct step *step, const struct scene_split *train)
{
    BASE_TRY(begin_cameras(step, train));
    return step_begin_appearances(step, train);
}

static double length_of(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum);
}

void step_move_camera(const struct View *view, struct scene_camera *camera)
{
    double change[SCENE_LENS];
    scene_move_camera(camera, view->turn, view->shift);
    for (int p = 0; p < SCENE_LENS; p++)
        change[p] = (double)view->lens[p];
    scene_change_lens(change, camera);
}

vkn_status step_read_views(const struct step *step, size_t first, size_t count, struct View *views)
{
    return gpu_download(step->device, &step->buffers.at[BIND_STATE],
                        views_offset(step) + first * sizeof *views, views, count * sizeof *views);
}

vkn_status step_read_cameras(const struct step *step, const struct scene_split *train,
                             struct step_camera *cameras)
{
    const double limit = (double)step->setup.constants.refine_limit;
    size_t count = train->camera_count;
    struct View *views = base_alloc(count, sizeof *views);
    vkn_status status = views ? step_read_views(step, 0, count, views) : VKN_ERROR;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        const struct View *view = &views[i], *group = &views[view->group < count ? view->group : i];
        struct step_camera *camera = &cameras[i];
        *camera = (struct step_camera){
            .camera = train->cameras[i],
            .degrees = 180 / M_PI * length_of(view->turn, 3),
            .distance = length_of(view->shift, 3),
        };
        camera->at_limit = fmax(length_of(view->latent, VIEW_PARAMETERS),
                                length_of(group->lens_latent, LENS_PARAMETERS)) > 0.99 * limit;
        step_move_camera(view, &camera->camera);
        camera->pixels = scene_pixel_movement(train, i, &camera->camera);
    }
    free(views);
    return status;
}
