/* Renders pictures of a field that the caller evaluates. */
#include "render/render.h"
#include "stepper/internal.h"

static uint32_t groups_of(const struct vkn_stepper *s)
{
    return s->step.setup.constants.forward_groups;
}

static void record_list(struct vkn_stepper *s, struct gpu_recording *recording, uint32_t rays)
{
    listing_record(&s->viewed, recording, s->list_samples, LIST_VIEW, rays, groups_of(s));
}

static vkn_status call_field(struct vkn_stepper *s, const struct vkn_samples *samples)
{
    BASE_CALLBACK(gpu_guard(s->device), "vkn_stepper_render", "field", s, true);
    return stepper_check_callback("vkn_stepper_render", "field", s->field(s->user, samples));
}

/* Evaluates a batch of the renderer's samples: lists the samples, calls the caller's function, and
 * copies its values to BIND_FIELD. Sets *any to whether there were samples. */
static vkn_status evaluate(void *context, const struct buffers *view, uint32_t rays, bool *any)
{
    struct vkn_stepper *s = context;
    struct vkn_samples *samples = &s->viewed.samples;
    if (!s->viewed.bindings)
        BASE_TRY(listing_create(s->device, view, s->host, &s->viewed));
    BASE_TRY(stepper_run(s, "samples of a view", record_list, rays));
    *any = listing_read(&s->viewed)->samples > 0;
    if (!*any)
        return VKN_OK;
    BASE_TRY(call_field(s, samples));
    const struct gpu_buffer *values = listing_buffer(&s->viewed, &samples->values);
    struct gpu_recording *recording = NULL;
    BASE_TRY(gpu_record_begin(s->device, "values of a view", 0, &recording));
    gpu_record_barrier(recording);
    gpu_record_copy(recording, values, 0, &view->at[BIND_FIELD], 0, 16ull * samples->count);
    return gpu_run_once(&recording);
}

vkn_status vkn_stepper_render(vkn_stepper *stepper, const struct vkn_camera *camera,
                              const struct vkn_picture_params *params, vkn_field_fn *field,
                              void *user, struct vkn_picture **picture)
{
    BASE_C_LOCALE;
    BASE_NEED(picture);
    *picture = NULL;
    BASE_NEED(stepper);
    BASE_NEED(camera);
    BASE_NEED(field);
    struct vkn_stepper *s = stepper;
    BASE_USE(gpu_guard(s->device), s);
    s->field = field;
    s->user = user;
    if (!s->renderer) {
        BASE_TRY(render_of_step(&s->step, &s->steps, s->scene->path, &s->renderer));
        render_set_evaluator(s->renderer, evaluate, s);
    }
    return vkn_render(s->renderer, camera, params, picture);
}
