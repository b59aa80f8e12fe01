/* Saves and loads checkpoints: the configuration and all buffers that a step changes. */
#include <vknerf/field.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "train/internal.h"

/* ---- the scene's path ---------------------------------------------------------------------- */

/* Encodes the path in hexadecimal: metadata must be UTF-8, a path may hold any bytes. */
static char *path_in_hex(const char *path)
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
    /* Two deterministic runs write identical files, so the training time is left out. */
    snprintf(seconds, sizeof seconds, "%.17g",
             trainer->config.deterministic ? 0.0 : trainer->seconds);
    char *bytes = path_in_hex(trainer->scene->path);
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
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    struct safetensors_tensor tensors[MAX_SAVED_BUFFERS];
    void *data[MAX_SAVED_BUFFERS] = {NULL};
    size_t count = step_list_saved(&trainer->step, saved);
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        uint64_t size = step_saved_size(&trainer->step, &saved[i]);
        data[i] = base_alloc(size, 1);
        status = data[i] ? step_download_saved(&trainer->step, &saved[i], data[i]) : VKN_ERROR;
        tensors[i] = (struct safetensors_tensor){
            .name = saved[i].tensor,
            .type = saved[i].is_f32 ? SAFETENSORS_F32 : SAFETENSORS_U32,
            .rank = 1,
            .shape = {size / 4},
            .data = data[i],
            .size = size,
        };
    }
    if (status == VKN_OK)
        status = checkpoint_check_new(checkpoint, tensors, saved, count);
    /* The number of ranks is no part of the trained state: any number of ranks can resume it. */
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

/* Finds the tensor of a saved buffer. If only weights are loaded and the file has no coarse field,
 * a coarse field gets the fine field's tensor; a proposal stays as it is (*tensor is NULL). */
static vkn_status find_tensor(const vkn_trainer *trainer, const struct safetensors_file *file,
                              const struct saved_buffer *saved, bool weights_only,
                              const struct safetensors_tensor **tensor)
{
    uint64_t count = step_saved_size(&trainer->step, saved) / 4;
    bool found = !weights_only || !saved->coarse || checkpoint_has(file, saved->tensor, count);
    *tensor = NULL;
    if (!found && trainer->config.march.sampling == VKN_SAMPLING_PROPOSAL)
        return VKN_OK;
    struct saved_buffer source = *saved;
    source.tensor = found ? saved->tensor : saved->fine;
    return checkpoint_find(file, &source, count, tensor);
}

static vkn_status upload_tensors(vkn_trainer *trainer, const char *path,
                                 const struct safetensors_file *file, bool weights_only)
{
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    const struct safetensors_tensor *tensors[MAX_SAVED_BUFFERS] = {NULL};
    const struct step *step = &trainer->step;
    const struct scene_split *train = &trainer->scene->splits[SCENE_TRAIN];
    struct images_plan plan; /* of the error map */
    size_t count = step_list_saved(step, saved);
    /* All tensors are checked before the first upload, so that a failure changes nothing. */
    for (size_t i = 0; i < count; i++)
        if (!weights_only || saved[i].is_inherited)
            BASE_TRY(find_tensor(trainer, file, &saved[i], weights_only, &tensors[i]));
    const struct saved_state state = checkpoint_state(file);
    uint64_t cells = images_saved_cells(train, &state, &plan);
    BASE_TRY(step_upload_views(step, path, &state, cells, weights_only));
    for (size_t i = 0; i < count; i++)
        if (tensors[i])
            BASE_TRY(step_upload_saved(step, &saved[i], tensors[i]->data, tensors[i]->size));
    return step_round_parameters(&trainer->step);
}

/* Restarts loss scaling if its settings have changed, because the old scale is then no estimate of
 * a good one; otherwise clamps a dynamic scale to the new limits. */
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

/* Checks the ray count, which bounds indices of shaders: a damaged file must not cause accesses
 * outside buffers. Lowers the count if the batch has become smaller. */
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

/* Refuses a checkpoint of another field in GLSL: its parameters mean nothing to this field. */
static vkn_status check_field(const vkn_trainer *trainer, const char *path,
                              const struct safetensors_file *file)
{
    const char *then = safetensors_metadata_value(file, CHECKPOINT_FIELD);
    const char *now = vkn_field_source(&trainer->config);
    if (strcmp(then ? then : "", now ? now : "") == 0)
        return VKN_OK;
    return base_fail(
        VKN_BAD_INPUT,
        "%s: trained with another field in GLSL: resume without --field, or use --init "
        "to take over its weights",
        path);
}

/* Refuses a checkpoint of another optimiser: its moments mean nothing to this one. Checkpoints
 * without an optimiser's name are older than the setting and hold Adam's moments. */
static vkn_status check_optimizer(const vkn_trainer *trainer, const char *path,
                                  const struct vkn_config *then)
{
    enum vkn_optimizer kind = then->optimizer.kind ? then->optimizer.kind : VKN_OPTIMIZER_ADAM;
    enum vkn_optimizer now = trainer->config.optimizer.kind;
    if (kind == now)
        return VKN_OK;
    return base_fail(
        VKN_BAD_INPUT,
        "%s: optimizer.kind: trained with %s, not %s: resume with the same optimiser, or use "
        "--init to take over its weights",
        path, config_optimizer_names[kind], config_optimizer_names[now]);
}

void train_restart_monitor(vkn_trainer *trainer, uint32_t skipped_steps)
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
    train_restart_monitor(trainer, state.skipped_steps);
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
    BASE_TRY(setup_check_resumed(path, &then, &trainer->config));
    BASE_TRY(upload_tensors(trainer, path, file, false));
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
    vkn_status status = upload_tensors(trainer, checkpoint, file, true);
    safetensors_close(&file);
    if (status == VKN_OK)
        train_restart_monitor(trainer, trainer->monitor.skips.state_skipped);
    /* Until the grid's first update, the uploaded values decide which cells are occupied. */
    return status == VKN_OK ? step_pack_occupancy(&trainer->step) : status;
}
