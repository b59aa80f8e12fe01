/* Opens checkpoints, checks their content, and finds their tensors. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "field/field.h"
#include "optim/optim.h"
#include "rays/rays.h"

/* ---- plausible content ----------------------------------------------------------------------- */

/* All content is checked, because shaders take indices and loop counts from it, and because a model
 * of NaN would look like a trained one. */

#define MOST_RAYS  4194304u /* of batch.max_rays */
#define MOST_RANKS 256u
#define MOST_ROWS  65535u /* of workgroups in y */

struct check {
    const char *path;
    vkn_status failure; /* status of a fault: VKN_BAD_INPUT when reading, VKN_ERROR when writing */
};

/* ---- elements ------------------------------------------------------------------------------ */

#define NOT_FINITE 0x7f800000u /* exponent of NaN and infinity */

/* Scans blocks without a branch inside, so that the compiler vectorises the loop. */
static size_t first_not_finite(const uint32_t *words, size_t count)
{
    enum { BLOCK = 1024 };
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t end = from + BLOCK < count ? from + BLOCK : count;
        uint32_t bad = 0;
        for (size_t i = from; i < end; i++)
            bad |= (words[i] & NOT_FINITE) == NOT_FINITE;
        for (size_t i = from; i < end && bad; i++)
            if ((words[i] & NOT_FINITE) == NOT_FINITE)
                return i;
    }
    return count;
}

static vkn_status check_finite(const struct check *check, const struct safetensors_tensor *tensor)
{
    size_t count = (size_t)tensor->size / 4, bad = first_not_finite(tensor->data, count);
    if (bad == count)
        return VKN_OK;
    return base_fail(check->failure, "%s: tensor %s: element %zu is not finite%s", check->path,
                     tensor->name, bad,
                     check->failure == VKN_ERROR ? ": the training has diverged; not saved" : "");
}

static vkn_status check_counts(const struct check *check, const struct safetensors_tensor *tensor,
                               uint32_t most)
{
    const uint32_t *counts = tensor->data;
    for (size_t i = 0; i < tensor->size / 4; i++)
        if (counts[i] > most)
            return base_fail(check->failure,
                             "%s: tensor %s: element %zu is %u, more than the %u "
                             "updates",
                             check->path, tensor->name, i, counts[i], most);
    return VKN_OK;
}

/* ---- the state ----------------------------------------------------------------------------- */

static vkn_status check_word(const struct check *check, const char *name, uint32_t value,
                             uint32_t least, uint32_t most)
{
    if (value >= least && value <= most)
        return VKN_OK;
    return base_fail(check->failure, "%s: state: %s: %u is out of range (%u to %u)", check->path,
                     name, value, least, most);
}

static vkn_status check_real(const struct check *check, const char *name, float value, double least,
                             double most)
{
    if (isfinite(value) && (double)value >= least && (double)value <= most)
        return VKN_OK;
    return base_fail(check->failure, "%s: state: %s: %g is out of range (%g to %g)", check->path,
                     name, (double)value, least, most);
}

/* Checks the workgroup counts of passes, which are zero before the first step. */
static vkn_status check_dispatches(const struct check *check, const struct State *state)
{
    for (size_t i = 0; i < DISPATCH_COUNT; i++) {
        const Dispatch *dispatch = &state->dispatches[i];
        char name[32];
        snprintf(name, sizeof(name), "dispatches[%zu]", i);
        BASE_TRY(check_word(check, name, dispatch->x, 0, MOST_RAYS));
        BASE_TRY(check_word(check, name, dispatch->y, 0, i == DISPATCH_ENTRIES ? MOST_ROWS : 1));
        BASE_TRY(check_word(check, name, dispatch->z, 0, 1));
        BASE_TRY(check_word(check, name, dispatch->finished, 0, 0));
    }
    return VKN_OK;
}

#define WORD(field, least, most) \
    BASE_TRY(check_word(check, #field, state->field, (uint32_t)(least), (uint32_t)(most)))
#define REAL(field, least, most) BASE_TRY(check_real(check, #field, state->field, (least), (most)))

/* Members that are not listed may have any value: counts of samples and of rounded gradients may
 * wrap around, and the next step overwrites them. fit_rays in train/checkpoint.c checks the ray
 * count against the configuration. */
static vkn_status check_state(const struct check *check, const struct State *state)
{
    WORD(step, 0, UINT32_MAX - 1);
    WORD(running, 0, 1);
    WORD(ray_count, 1, MOST_RAYS);
    WORD(live_rays, 0, MOST_RANKS * MOST_RAYS);
    REAL(learning_rate, 0, HUGE_VAL);
    REAL(loss_scale, 1e-45, HUGE_VAL);
    WORD(skipped_steps, 0, state->step);
    WORD(updates, 0, state->step - state->skipped_steps);
    WORD(good_steps, 0, state->updates);
    WORD(nonfinite, 0, 1);
    REAL(gradient_factor, 0, HUGE_VAL);
    if (state->nonfinite == 0)
        REAL(grad_norm, 0, HUGE_VAL);
    WORD(average_step, 0, state->step);
    REAL(average_weight, 0, 1.001);
    REAL(threshold, -HUGE_VAL, HUGE_VAL);
    WORD(settled, 0, 1);
    WORD(backoffs, 0, state->skipped_steps);
    WORD(rate_cuts, 0, MAX_RATE_CUTS);
    WORD(tolerated, 0, state->skipped_steps);
    WORD(kept_rays, 0, state->live_rays);
    REAL(keep_gain, 0, 1024);
    REAL(mean_loss, 0, HUGE_VAL);
    REAL(update_rate, 0, HUGE_VAL);
    WORD(update_skipped, 0, 1);
    return check_dispatches(check, state);
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* Returns the tensor of BIND_STATE; `tensors` are in the order of `saved`. */
static const struct safetensors_tensor *state_of(const struct safetensors_tensor *tensors,
                                                 const struct saved_buffer *saved, size_t count)
{
    size_t i = 0;
    while (i + 1 < count && saved[i].number != BIND_STATE)
        i++;
    return &tensors[i];
}

static vkn_status check_tensors(const struct check *check, const struct safetensors_tensor *tensors,
                                const struct saved_buffer *saved, size_t count)
{
    struct State state = {0};
    const struct safetensors_tensor *words = state_of(tensors, saved, count);
    memcpy(&state, words->data, words->size < sizeof(state) ? (size_t)words->size : sizeof(state));
    for (size_t i = 0; i < count; i++)
        if (tensors[i].type == SAFETENSORS_F32)
            BASE_TRY(check_finite(check, &tensors[i]));
    BASE_TRY(check_state(check, &state));
    for (size_t i = 0; i < count; i++)
        if (saved[i].number == BIND_STEP_COUNTS)
            BASE_TRY(check_counts(check, &tensors[i], state.updates));
    return VKN_OK;
}

vkn_status checkpoint_check_new(const char *path, const struct safetensors_tensor *tensors,
                                const struct saved_buffer *saved, size_t count)
{
    return check_tensors(&(struct check){path, VKN_ERROR}, tensors, saved, count);
}

/* ---- a file -------------------------------------------------------------------------------- */

static bool has_shape(const struct vkn_config *config, const struct vkn_config *field)
{
    const char *keys[FIELD_MAX_KEYS];
    size_t count = field_shape_keys(field, keys);
    for (size_t i = 0; i < count; i++)
        if (config_is_unset(config, keys[i]))
            return false;
    return true;
}

/* Creates the models of the fine field and of the coarse field or proposal; without a coarse field
 * models[1] is zero. */
static vkn_status create_models(const struct vkn_config *config, struct field_model models[2])
{
    const struct vkn_config proposal = field_proposal_config(config);
    BASE_TRY(field_model_create(config, &models[0]));
    if (rays_have_proposal(config))
        return field_model_create(&proposal, &models[1]);
    models[1] = rays_have_coarse(config) ? models[0] : (struct field_model){0};
    return VKN_OK;
}

/* Reads configuration and models. A checkpoint's configuration has to be complete, because defaults
 * may depend on the scene. */
static vkn_status read_models(const char *path, const struct safetensors_file *file,
                              struct vkn_config *config, struct field_model models[2])
{
    const char *json = safetensors_metadata_value(file, CHECKPOINT_CONFIG);
    *config = (struct vkn_config){0};
    if (!json)
        return base_fail(VKN_BAD_INPUT, "%s: %s: missing", path, CHECKPOINT_CONFIG);
    BASE_TRY(vkn_config_parse_json(config, path, json, true));
    if (config->model == VKN_MODEL_GLSL)
        BASE_TRY(field_register_stored(path, safetensors_metadata_value(file, CHECKPOINT_FIELD),
                                       config));
    const struct vkn_config proposal = field_proposal_config(config);
    if (!rays_are_complete(config) || !has_shape(config, config) ||
        (rays_have_proposal(config) && !has_shape(config, &proposal)))
        return base_fail(VKN_BAD_INPUT, "%s: %s: settings of the model are missing", path,
                         CHECKPOINT_CONFIG);
    vkn_status status = create_models(config, models);
    if (status != VKN_OK)
        return base_fail(status, "%s: %s", path, vkn_last_error());
    return VKN_OK;
}

static vkn_status find_tensors(const char *path, const struct safetensors_file *file,
                               const struct buffer_counts counts[2],
                               const struct saved_buffer *saved, size_t count,
                               struct safetensors_tensor *tensors)
{
    for (size_t i = 0; i < count; i++) {
        const struct safetensors_tensor *found = NULL;
        BASE_TRY(checkpoint_find(
            file, &saved[i],
            buffers_bytes(BUFFERS_OF_STEP, saved[i].number, &counts[saved[i].coarse]) / 4, &found));
        if (found->rank != 1)
            return base_fail(VKN_BAD_INPUT, "%s: tensor %s has %u dimensions, expected 1", path,
                             saved[i].tensor, found->rank);
        tensors[i] = *found;
    }
    return VKN_OK;
}

static vkn_status check_step(const char *path, const struct safetensors_file *file,
                             const struct safetensors_tensor *state)
{
    const char *text = safetensors_metadata_value(file, CHECKPOINT_STEP);
    char *end = NULL;
    uint32_t step;
    /* struct State begins with the step. A tensor that was found has data:
     * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    memcpy(&step, state->data, sizeof(step));
    if (text && text[0] >= '0' && text[0] <= '9' && strtoull(text, &end, 10) == step && *end == 0)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s: not the state's step %u", path, CHECKPOINT_STEP, step);
}

static vkn_status check_content(const char *path, const struct safetensors_file *file)
{
    struct vkn_config config;
    struct field_model models[2];
    struct buffer_counts counts[2] = {{0}};
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    struct safetensors_tensor tensors[MAX_SAVED_BUFFERS] = {0};
    BASE_TRY(read_models(path, file, &config, models));
    size_t count = buffers_list_saved(optim_buffer_mask(&config), rays_have_coarse(&config), saved);
    for (size_t i = 0; i < 2 && models[i].kind; i++) {
        field_size_buffers(&models[i], &counts[i]);
        rays_size_buffers(&config, &counts[i]);
        optim_size_tensors(&config, &counts[i]);
    }
    BASE_TRY(find_tensors(path, file, counts, saved, count, tensors));
    BASE_TRY(check_step(path, file, state_of(tensors, saved, count)));
    return check_tensors(&(struct check){path, VKN_BAD_INPUT}, tensors, saved, count);
}

/* ---- opening --------------------------------------------------------------------------------- */

char *checkpoint_scene(const struct safetensors_file *file)
{
    const char *path = safetensors_metadata_value(file, CHECKPOINT_SCENE);
    const char *bytes = safetensors_metadata_value(file, CHECKPOINT_SCENE_BYTES);
    char *scene = base_format("%s", bytes ? bytes : path);
    if (!scene || !bytes)
        return scene;
    size_t size = strlen(bytes) / 2;
    for (size_t i = 0; i < size; i++) {
        const char digits[3] = {bytes[2 * i], bytes[2 * i + 1], 0};
        scene[i] = (char)strtoul(digits, NULL, 16);
    }
    scene[size] = 0;
    return scene;
}

static vkn_status check_format(const char *path, const struct safetensors_file *file)
{
    const char *format = safetensors_metadata_value(file, CHECKPOINT_FORMAT);
    if (!format)
        return base_fail(VKN_BAD_INPUT, "%s: not a checkpoint of vknerf (no %s)", path,
                         CHECKPOINT_FORMAT);
    if (strcmp(format, CHECKPOINT_FORMAT_VALUE) != 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %s: format %s is that of another version of vknerf; this one reads "
                         "format %s",
                         path, CHECKPOINT_FORMAT, format, CHECKPOINT_FORMAT_VALUE);
    return VKN_OK;
}

vkn_status checkpoint_open(const char *path, struct safetensors_file **file)
{
    BASE_TRY(safetensors_open(path, file));
    vkn_status status = check_format(path, *file);
    if (status == VKN_OK)
        status = check_content(path, *file);
    if (status != VKN_OK)
        safetensors_close(file);
    return status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* 32-bit words of the shortest struct State that any version wrote. */
#define LEAST_STATE_WORDS (offsetof(struct State, tolerated) / 4)

/* Returns NULL when the file does not have the tensor. */
static const struct safetensors_tensor *find_by_name(const struct safetensors_file *file,
                                                     const char *name)
{
    for (size_t i = 0; i < safetensors_count(file); i++)
        if (strcmp(safetensors_at(file, i)->name, name) == 0)
            return safetensors_at(file, i);
    return NULL;
}

bool checkpoint_has(const struct safetensors_file *file, const char *name, uint64_t count)
{
    const struct safetensors_tensor *tensor = find_by_name(file, name);
    return tensor && tensor->size / 4 == count;
}

/* Returns the elements of the file's state if an older version wrote it, or a sky, an error
 * map, refined views or appearances follow it, else `count`. */
static uint64_t state_elements(const struct safetensors_file *file, const char *name,
                               uint64_t count)
{
    const struct safetensors_tensor *tensor = find_by_name(file, name);
    uint64_t elements = tensor ? tensor->size / 4 : 0;
    bool older = elements >= LEAST_STATE_WORDS && elements < sizeof(struct State) / 4;
    bool longer = elements >= sizeof(struct State) / 4 &&
                  (4 * elements - sizeof(struct State)) % sizeof(struct ErrorCell) == 0;
    return older || longer ? elements : count;
}

struct saved_state checkpoint_state(const struct safetensors_file *file)
{
    BASE_KEEP_ERROR;
    struct vkn_config config = {0};
    struct saved_state state = {0};
    const char *json = safetensors_metadata_value(file, CHECKPOINT_CONFIG);
    const struct safetensors_tensor *tensor = find_by_name(file, "state");
    if (vkn_config_parse_json(&config, "", json, true) != VKN_OK || !tensor)
        return state;
    state.has_views = config.scene.refine > VKN_REFINEMENT_OFF;
    state.has_appearances = config.scene.appearance > VKN_APPEARANCE_OFF;
    state.has_outliers = config.loss.robust == VKN_SWITCH_ON;
    state.has_map = config.batch.by_error > 0.0F || state.has_outliers;
    state.has_sky = config.scene.sky == VKN_SWITCH_ON;
    if (state.has_views || state.has_appearances || state.has_outliers || state.has_sky) {
        state.data = tensor->data;
        state.size = tensor->size;
    }
    return state;
}

bool checkpoint_skipped(const struct safetensors_file *file, uint32_t *skipped)
{
    BASE_KEEP_ERROR;
    const struct saved_buffer saved = {.number = BIND_STATE, .tensor = "state"};
    const struct safetensors_tensor *state = NULL;
    if (checkpoint_find(file, &saved, sizeof(struct State) / 4, &state) != VKN_OK)
        return false;
    memcpy(skipped, (const char *)state->data + offsetof(struct State, skipped_steps),
           sizeof *skipped);
    return true;
}

vkn_status checkpoint_find(const struct safetensors_file *file, const struct saved_buffer *saved,
                           uint64_t count, const struct safetensors_tensor **tensor)
{
    if (saved->number == BIND_STATE)
        count = state_elements(file, saved->tensor, count);
    return safetensors_find(file, saved->tensor, saved->is_f32 ? SAFETENSORS_F32 : SAFETENSORS_U32,
                            count, tensor);
}
