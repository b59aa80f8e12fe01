/* Creates renderers of checkpoints: reads the field's tensors and uploads them. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "rays/rays.h"
#include "render/internal.h"

/* Tensors of a checkpoint that pictures need, by buffer, and the buffers that receive them. */
static const struct {
    uint32_t saved, to;
} tensors[] = {
    {BIND_AVERAGE, BIND_PARAMS},
    {BIND_OCCUPANCY, BIND_OCCUPANCY},
    {BIND_STATE, BIND_STATE},
};

static vkn_status upload_tensor(struct vkn_renderer *r, const struct safetensors_file *file,
                                uint32_t number, bool coarse, const struct gpu_buffer *buffer)
{
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    const struct safetensors_tensor *tensor = NULL;
    size_t count = buffers_list_saved(BUFFERS_ALL, coarse, saved), i = 0;
    while (i + 1 < count && (saved[i].number != number || saved[i].coarse != coarse))
        i++;
    BASE_TRY(checkpoint_find(file, &saved[i], buffer->size / 4, &tensor));
    /* An error map may follow the state. */
    uint64_t size = tensor->size < buffer->size ? tensor->size : buffer->size;
    return gpu_upload(r->device, buffer, 0, tensor->data, size);
}

static vkn_status load_field(struct vkn_renderer *r, const struct safetensors_file *file)
{
    for (size_t i = 0; i < BASE_COUNT(tensors); i++)
        BASE_TRY(upload_tensor(r, file, tensors[i].saved, false, &r->buffers.at[tensors[i].to]));
    if (r->coarse.arena)
        BASE_TRY(upload_tensor(r, file, BIND_AVERAGE, true, &r->coarse.at[BIND_PARAMS]));
    BASE_TRY(render_upload_constants(r));
    GPU_ONCE(r->device, "field of a checkpoint");
    struct Push none = {0};
    if (r->setup.backend.copies)
        gpu_record_dispatch(recording, r->round_parameters, r->bindings, &none, sizeof none, 1024);
    if (r->setup.backend.copies && r->coarse_bindings)
        gpu_record_dispatch(recording, r->round_proposal ? r->round_proposal : r->round_parameters,
                            r->coarse_bindings, &none, sizeof none, 1024);
    uint32_t cascades = setup_repeats(&r->setup).cascades;
    uint32_t groups = rays_pack_groups(&r->setup.config, PASS_LOCAL_SIZE);
    for (struct Push push = {0}; r->pack_occupancy && push.c < cascades; push.c++) {
        gpu_record_dispatch(recording, r->pack_occupancy, r->bindings, &push, sizeof push, groups);
        gpu_record_compute_barrier(recording);
    }
    return gpu_run_once(&recording);
}

/* Keeps the path, and the state of a training that refined cameras, estimated appearances or looked
 * for outliers. Only with a scene, which the renderer does not have, is it known how many views
 * there are. */
static vkn_status keep_state(struct vkn_renderer *r, const char *path,
                             const struct safetensors_file *file)
{
    const struct saved_state state = checkpoint_state(file);
    bool is_kept = state.has_views || state.has_appearances || state.has_outliers;
    r->checkpoint = base_format("%s", path);
    if (!r->checkpoint || !is_kept)
        return r->checkpoint ? VKN_OK : VKN_ERROR;
    void *copy = base_alloc(state.size, 1);
    r->state = state;
    r->state.data = copy;
    if (!copy)
        return VKN_ERROR;
    memcpy(copy, state.data, state.size);
    return VKN_OK;
}

static vkn_status open_file(struct vkn_context *context, const char *path,
                            const struct safetensors_file *file, enum vkn_precision precision,
                            vkn_renderer **renderer)
{
    const char *json = safetensors_metadata_value(file, CHECKPOINT_CONFIG);
    const char *step = safetensors_metadata_value(file, CHECKPOINT_STEP);
    if (!safetensors_metadata_value(file, CHECKPOINT_SCENE))
        return base_fail(VKN_BAD_INPUT, "%s: the checkpoint's %s is missing", path,
                         CHECKPOINT_SCENE);
    struct vkn_config config = {0};
    BASE_TRY(vkn_config_parse_json(&config, path, json, true));
    char *scene = checkpoint_scene(file);
    vkn_status created =
        scene ? render_create(context->device, &config, precision, scene, NULL, NULL, renderer)
              : VKN_ERROR;
    free(scene);
    BASE_TRY(created);
    (*renderer)->context = context_hold(context);
    (*renderer)->checkpoint_step = strtoull(step, NULL, 10);
    vkn_status status = load_field(*renderer, file);
    if (status == VKN_OK)
        status = keep_state(*renderer, path, file);
    if (status != VKN_OK)
        vkn_renderer_destroy(renderer);
    return status;
}

vkn_status vkn_renderer_open(vkn_context *context, const char *checkpoint,
                             enum vkn_precision precision, vkn_renderer **renderer)
{
    BASE_C_LOCALE;
    BASE_NEED(renderer);
    *renderer = NULL;
    BASE_NEED(context);
    BASE_NEED(checkpoint);
    BASE_TRY(base_check_choice(__func__, "precision", precision, VKN_PRECISION_COOPMAT));
    BASE_USE(gpu_guard(context->device), NULL);
    struct safetensors_file *file = NULL;
    BASE_TRY(checkpoint_open(checkpoint, &file));
    vkn_status status = open_file(context, checkpoint, file, precision, renderer);
    safetensors_close(&file);
    return status;
}
