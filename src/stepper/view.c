/* Pictures of a field that the caller evaluates. */
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

/* Of the renderer's round of samples: lists them, asks for their values and puts these in place. */
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
    BASE_TRY(stepper_called("vkn_stepper_render", "field", s->field(s->user, samples)));
    const struct gpu_buffer *values = listing_buffer(&s->viewed, &samples->values);
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(s->device, "values of a view", 0, &recording);
    if (status == VKN_OK) {
        gpu_record_barrier(recording);
        gpu_record_copy(recording, values, 0, &view->at[BIND_FIELD], 0, 16ull * samples->count);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

static vkn_status find_view(const struct vkn_stepper *s, const struct vkn_stepper_view *view,
                            enum scene_split_name *split)
{
    BASE_TRY(render_split(s->scene, view->split, split));
    size_t views = s->scene->splits[*split].camera_count;
    if (view->view >= views)
        return base_fail(VKN_BAD_INPUT, "vkn_stepper_render: view: %u, and there are %zu %s views", view->view, views,
                         scene_split_names[*split]);
    return VKN_OK;
}

static vkn_status measure(const struct vkn_stepper *s, enum scene_split_name split, size_t view,
                          enum vkn_background background, const struct vkn_picture *picture, double *psnr)
{
    struct render_target target;
    vkn_status status = render_read_target(s->scene, split, view, background, &target);
    if (status == VKN_OK)
        *psnr = vkn_psnr(picture->color, target.rgb, target.used, picture->width, picture->height);
    render_target_free(&target);
    return status;
}

static vkn_status render(struct vkn_stepper *s, const struct vkn_stepper_view *view, struct vkn_picture *picture,
                         double *psnr)
{
    enum scene_split_name split;
    BASE_TRY(find_view(s, view, &split));
    enum vkn_background background = render_background(view->background, &s->step.setup.config);
    if (!s->renderer) {
        BASE_TRY(render_of_step(&s->step, &s->steps, s->scene->path, &s->renderer));
        render_ask(s->renderer, evaluate, s);
    }
    BASE_TRY(vkn_render(s->renderer, &s->scene->splits[split].cameras[view->view], background, view->supersample,
                        picture));
    return psnr ? measure(s, split, view->view, background, picture, psnr) : VKN_OK;
}

vkn_status vkn_stepper_render(vkn_stepper *stepper, const struct vkn_stepper_view *view, vkn_field_fn *field,
                              void *user, struct vkn_picture *picture, double *psnr)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    BASE_NEED(field);
    struct vkn_stepper_view own;
    struct vkn_picture rendered = {0};
    BASE_TRY(BASE_READ("vkn_stepper_render: view", view, &own, supersample));
    stepper->field = field;
    stepper->user = user;
    vkn_status status = render(stepper, &own, &rendered, psnr);
    if (status != VKN_OK || !picture)
        vkn_picture_free(&rendered);
    if (picture)
        *picture = rendered;
    return status;
}
