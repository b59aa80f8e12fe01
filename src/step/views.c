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

/* Bytes of a view in BIND_STATE: sums of gradients, and struct View. */
#define VIEW_BYTES (VIEW_SUMS * sizeof(struct ErrorCell) + sizeof(struct View))

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

vkn_status step_find_views(const char *path, const void *state, uint64_t size, uint64_t count,
                           uint64_t error_cells, const struct View **views)
{
    const uint64_t map = error_cells * sizeof(struct ErrorCell);
    const void *after = (const char *)state + size;
    if (size != sizeof(struct State) + map + count * VIEW_BYTES)
        return base_fail(VKN_BAD_INPUT,
                         "%s: state: refined cameras of other views than the scene's", path);
    *views = (const struct View *)after - count;
    for (uint64_t v = 0; v < count; v++)
        if (!is_finite(&(*views)[v]))
            return base_fail(VKN_BAD_INPUT, "%s: state: view %llu: its camera is not finite", path,
                             (unsigned long long)v);
    return VKN_OK;
}

vkn_status step_upload_views(const struct step *step, const char *path, const void *state,
                             uint64_t size)
{
    const struct gpu_buffer *buffer = &step->buffers.at[BIND_STATE];
    const struct View *found;
    uint64_t first = step_view_sums_offset(step), bytes = buffer->size - first;
    bool has_map = size != sizeof(struct State) + bytes;
    BASE_TRY(step_find_views(path, state, size, bytes / VIEW_BYTES,
                             has_map ? step->setup.constants.error_cells : 0, &found));
    return gpu_upload(step->device, buffer, first, (const char *)state + size - bytes, bytes);
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

vkn_status step_begin_views(const struct step *step, const struct scene_split *train)
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
