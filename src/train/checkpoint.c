/* Checkpoints: everything that a step changes, and the configuration, in one safetensors file. */
#include <vknerf/field.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "train/internal.h"

/* ---- the scene's path ---------------------------------------------------------------------- */

/* Metadata are UTF-8, file names any bytes. */
static char *path_bytes(const char *path)
{
    struct base_text text = {0};
    base_text_add(&text, "%s", "");
    for (; *path; path++)
        base_text_add(&text, "%02x", (unsigned)(unsigned char)*path);
    if (!text.failed)
        return text.data;
    free(text.data);
    return NULL;
}

/* ---- writing ------------------------------------------------------------------------------- */

static vkn_status write_file(vkn_trainer *trainer, const char *path,
                             const struct safetensors_tensor *tensors, size_t tensor_count,
                             const char *config)
{
    char step[32], seconds[32];
    snprintf(step, sizeof step, "%" PRIu64, trainer->steps_done);
    /* Two deterministic runs leave the same file, so it cannot hold what a clock said. */
    snprintf(seconds, sizeof seconds, "%.17g",
             trainer->config.deterministic ? 0.0 : trainer->seconds);
    char *bytes = path_bytes(trainer->scene->path);
    const char *field = vkn_field_source(&trainer->config);
    struct safetensors_metadata metadata[8] = {
        {CHECKPOINT_FORMAT, CHECKPOINT_FORMAT_VALUE},
        {SAFETENSORS_CHECKSUM, SAFETENSORS_CHECKSUM_UNSET},
        {CHECKPOINT_CONFIG, config},
        {CHECKPOINT_SCENE, trainer->scene->path},
        {CHECKPOINT_STEP, step},
        {CHECKPOINT_SECONDS, seconds},
    };
    size_t count = 6;
    if (!base_is_utf8(trainer->scene->path))
        metadata[count++] = (struct safetensors_metadata){CHECKPOINT_SCENE_BYTES, bytes};
    if (field)
        metadata[count++] = (struct safetensors_metadata){CHECKPOINT_FIELD, field};
    vkn_status status =
        bytes ? safetensors_write(path, tensors, tensor_count, metadata, count) : VKN_ERROR;
    free(bytes);
    return status;
}

vkn_status vkn_trainer_save(vkn_trainer *trainer, const char *checkpoint)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(checkpoint);
    BASE_USE(gpu_guard(trainer->device), NULL);
    struct saved_buffer kept[MAX_SAVED_BUFFERS];
    struct safetensors_tensor tensors[MAX_SAVED_BUFFERS];
    void *data[MAX_SAVED_BUFFERS] = {NULL};
    size_t count = step_list_saved(&trainer->step, kept);
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        const struct gpu_buffer *buffer = step_saved(&trainer->step, &kept[i]);
        data[i] = base_alloc(buffer->size, 1);
        status =
            data[i] ? gpu_download(trainer->device, buffer, 0, data[i], buffer->size) : VKN_ERROR;
        tensors[i] = (struct safetensors_tensor){
            .name = kept[i].tensor,
            .type = kept[i].real ? SAFETENSORS_F32 : SAFETENSORS_U32,
            .rank = 1,
            .shape = {buffer->size / 4},
            .data = data[i],
            .size = buffer->size,
        };
    }
    if (status == VKN_OK)
        status = checkpoint_check_new(checkpoint, tensors, kept, count);
    /* Who trained is not what was trained: any number of ranks goes on with it, in any way. */
    struct vkn_config recorded = trainer->config;
    recorded.parallel.ranks_per_device = 1;
    recorded.parallel.buckets = 0;
    char *config = status == VKN_OK ? vkn_config_write_json(&recorded) : NULL;
    if (status == VKN_OK)
        status = config ? write_file(trainer, checkpoint, tensors, count, config) : VKN_ERROR;
    free(config);
    for (size_t i = 0; i < count; i++)
        free(data[i]);
    return status;
}

/* Whether the file has that tensor, of so many elements. */
static bool has_tensor(const struct safetensors_file *file, const char *name, uint64_t count)
{
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        if (strcmp(tensor->name, name) == 0)
            return tensor->size / 4 == count;
    }
    return false;
}

/* Where the file has no coarse field to begin with, one begins as the fine one, and a proposal as
 * it is: *tensor is NULL then. */
static vkn_status find_tensor(const vkn_trainer *trainer, const struct safetensors_file *file,
                              const struct saved_buffer *kept, bool weights_only,
                              const struct safetensors_tensor **tensor)
{
    uint64_t count = step_saved(&trainer->step, kept)->size / 4;
    bool there = !weights_only || !kept->coarse || has_tensor(file, kept->tensor, count);
    *tensor = NULL;
    if (!there && trainer->config.march.sampling == VKN_SAMPLING_PROPOSAL)
        return VKN_OK;
    struct saved_buffer source = *kept;
    source.tensor = there ? kept->tensor : kept->fine;
    return checkpoint_find(file, &source, count, tensor);
}

/* What an older program's state lacks is zero. */
static vkn_status upload_tensor(const vkn_trainer *trainer, const struct gpu_buffer *buffer,
                                const struct safetensors_tensor *tensor)
{
    static const struct State none;
    BASE_TRY(gpu_upload(trainer->device, buffer, 0, tensor->data, tensor->size));
    if (tensor->size == buffer->size)
        return VKN_OK;
    return gpu_upload(trainer->device, buffer, tensor->size, &none, buffer->size - tensor->size);
}

static vkn_status upload_tensors(vkn_trainer *trainer, const struct safetensors_file *file,
                                 bool weights_only)
{
    struct saved_buffer kept[MAX_SAVED_BUFFERS];
    const struct safetensors_tensor *tensors[MAX_SAVED_BUFFERS] = {NULL};
    const struct step *step = &trainer->step;
    size_t count = step_list_saved(step, kept);
    /* All are checked before the first one changes anything. */
    for (size_t i = 0; i < count; i++)
        if (!weights_only || kept[i].weights)
            BASE_TRY(find_tensor(trainer, file, &kept[i], weights_only, &tensors[i]));
    for (size_t i = 0; i < count; i++)
        if (tensors[i])
            BASE_TRY(upload_tensor(trainer, step_saved(step, &kept[i]), tensors[i]));
    return step_round_parameters(&trainer->step);
}

/* A loss scale that was found under other settings says nothing about these; of other limits, it
 * keeps to the new ones. */
static void renew_loss_scale(const struct vkn_config *then, const struct vkn_config *now,
                             struct State *state)
{
    bool same = then->precision == now->precision &&
                then->loss_scale.kind == now->loss_scale.kind &&
                config_limit_scale(now, then->loss_scale.initial) == now->loss_scale.initial;
    for (size_t i = 0; i < VKN_SCHEDULE_POINTS; i++) {
        struct vkn_schedule_point a = then->loss_scale.schedule[i], b = now->loss_scale.schedule[i];
        same = same && a.step == b.step && a.value == b.value;
    }
    if (same && now->loss_scale.kind == VKN_LOSS_SCALE_DYNAMIC)
        state->loss_scale = config_limit_scale(now, state->loss_scale);
    if (same)
        return;
    state->loss_scale = now->loss_scale.initial;
    state->good_steps = state->settled = state->backoffs = state->tolerated = 0;
}

/* The device indexes by the rays: a damaged file must not send it out of its buffers. A run with a
 * smaller batch than before goes on with as many as it has room for. */
static vkn_status fit_rays(const char *path, const struct vkn_config *then, uint32_t capacity,
                           struct State *state)
{
    uint32_t most = then->batch.max_rays > capacity ? then->batch.max_rays : capacity;
    if (state->ray_count == 0 || state->ray_count > most)
        return base_fail(VKN_BAD_INPUT, "%s: state: %u rays a step do not fit this configuration",
                         path, state->ray_count);
    if (state->ray_count > capacity)
        state->ray_count = capacity / 64 * 64;
    return VKN_OK;
}

/* Parameters mean nothing to another field than the one that they were trained in. */
static vkn_status check_field(const vkn_trainer *trainer, const char *path,
                              const struct safetensors_file *file)
{
    const char *then = safetensors_metadata_value(file, CHECKPOINT_FIELD);
    const char *now = vkn_field_source(&trainer->config);
    if (strcmp(then ? then : "", now ? now : "") == 0)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: its field in GLSL is another: a run goes on with the one that it began "
                     "with, without --field; --init takes over its weights",
                     path);
}

/* Moments mean nothing to another optimiser than the one that made them. Checkpoints from before
 * there was a choice name none: they are Adam's. */
static vkn_status check_optimizer(const vkn_trainer *trainer, const char *path,
                                  const struct vkn_config *then)
{
    enum vkn_optimizer kind = then->optimizer.kind ? then->optimizer.kind : VKN_OPTIMIZER_ADAM;
    enum vkn_optimizer now = trainer->config.optimizer.kind;
    if (kind == now)
        return VKN_OK;
    return base_fail(
        VKN_BAD_INPUT,
        "%s: optimizer.kind: %s, not %s: a run goes on with the one that it began with; "
        "--init takes over its weights",
        path, config_optimizer_names[kind], config_optimizer_names[now]);
}

/* What was seen of other weights says nothing about these. */
static void restart_monitor(vkn_trainer *trainer, uint32_t skipped_steps)
{
    monitor_begin(&trainer->monitor, &trainer->step.setup.constants, skipped_steps,
                  trainer->monitor.convergence.constant_error);
    trainer->ended = false;
}

static vkn_status resume_state(vkn_trainer *trainer, const char *path,
                               const struct vkn_config *then)
{
    struct State state;
    const struct gpu_buffer *buffer = &trainer->step.buffers.at[BIND_STATE];
    BASE_TRY(gpu_download(trainer->device, buffer, 0, &state, sizeof state));
    BASE_TRY(fit_rays(path, then, trainer->step.setup.constants.ray_capacity, &state));
    renew_loss_scale(then, &trainer->config, &state);
    trainer->steps_done = state.step;
    trainer->images_current = false;
    trainer->rate_cuts = state.rate_cuts;
    restart_monitor(trainer, state.skipped_steps);
    return gpu_upload(trainer->device, buffer, 0, &state, sizeof state);
}

static vkn_status resume_from(vkn_trainer *trainer, const char *path,
                              const struct safetensors_file *file)
{
    struct vkn_config then = {0};
    BASE_TRY(check_field(trainer, path, file));
    BASE_TRY(vkn_config_parse_json(&then, path, safetensors_metadata_value(file, CHECKPOINT_CONFIG),
                                   true));
    BASE_TRY(check_optimizer(trainer, path, &then));
    BASE_TRY(upload_tensors(trainer, file, false));
    const char *seconds = safetensors_metadata_value(file, CHECKPOINT_SECONDS);
    char *end = NULL;
    double value = seconds ? strtod(seconds, &end) : 0.0;
    if (!seconds || end == seconds || !(value >= 0.0))
        return base_fail(VKN_BAD_INPUT, "%s: %s: not a number of seconds", path,
                         CHECKPOINT_SECONDS);
    BASE_TRY(resume_state(trainer, path, &then));
    trainer->seconds = value;
    trainer->seconds_before = value;
    return step_pack_occupancy(&trainer->step);
}

vkn_status vkn_trainer_resume(vkn_trainer *trainer, const char *checkpoint)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(checkpoint);
    BASE_USE(gpu_guard(trainer->device), trainer);
    struct safetensors_file *file = NULL;
    BASE_TRY(checkpoint_open(checkpoint, &file));
    vkn_status status = resume_from(trainer, checkpoint, file);
    safetensors_close(&file);
    return status;
}

vkn_status vkn_trainer_init(vkn_trainer *trainer, const char *checkpoint)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(checkpoint);
    BASE_USE(gpu_guard(trainer->device), trainer);
    struct safetensors_file *file = NULL;
    BASE_TRY(checkpoint_open(checkpoint, &file));
    vkn_status status = upload_tensors(trainer, file, true);
    safetensors_close(&file);
    if (status == VKN_OK)
        restart_monitor(trainer, trainer->monitor.skips.before);
    /* The threshold is the state's: until the first update decides, what the file holds counts. */
    return status == VKN_OK ? step_pack_occupancy(&trainer->step) : status;
}
