/* Lists the candidate backends for a precision setting, creates them, and finds the fastest. */
#include "tuner/internal.h"

#include <string.h>

#include "config/config.h"

/* ---- candidates -------------------------------------------------------------------------- */

static void add_candidate(struct field_candidate *candidates, uint32_t *count,
                          enum vkn_precision precision, enum vkn_matrix_shape shape,
                          bool conversions)
{
    for (uint32_t i = 0; i < *count; i++)
        if (candidates[i].precision == precision && candidates[i].shape == shape &&
            candidates[i].conversions == conversions)
            return;
    struct field_candidate *candidate = &candidates[(*count)++];
    *candidate = (struct field_candidate){
        .precision = precision, .shape = shape, .conversions = conversions};
    snprintf(candidate->name, sizeof candidate->name, "%s%s", config_precision_names[precision],
             conversions ? " with conversions" : "");
}

/* Adds the cooperative matrices that are timed. NVIDIA computes 16x16x16 as two products of
 * 16x8x16, whose accumulators need fewer registers; 16x8x16 has no conversions, which need N = K.
 */
static void add_matrices(const struct vkn_config *config, struct field_candidate *candidates,
                         uint32_t *count)
{
    enum vkn_matrix_shape shape = config->matrix.shape;
    if (!config->matrix.conversions)
        add_candidate(candidates, count, VKN_PRECISION_COOPMAT, shape, false);
    if (config->matrix.accumulate != VKN_ACCUMULATE_F16)
        add_candidate(candidates, count, VKN_PRECISION_COOPMAT, shape, true);
    if (!config->matrix.conversions && shape == VKN_SHAPE_DEFAULT)
        add_candidate(candidates, count, VKN_PRECISION_COOPMAT, VKN_SHAPE_16X8X16, false);
}

uint32_t field_list_candidates(const struct vkn_config *config,
                               struct field_candidate candidates[FIELD_MAX_CANDIDATES])
{
    enum vkn_matrix_shape shape = config->matrix.shape;
    uint32_t count = 0;
    if (config->precision == VKN_PRECISION_AUTO) {
        add_candidate(candidates, &count, VKN_PRECISION_FP32, VKN_SHAPE_DEFAULT, false);
        add_candidate(candidates, &count, VKN_PRECISION_FP16, VKN_SHAPE_DEFAULT, false);
        add_matrices(config, candidates, &count);
        for (uint32_t i = 0; i < count; i++)
            candidates[i].timed = true;
        return count;
    }
    if (config->precision == VKN_PRECISION_COOPMAT) {
        if (shape == VKN_SHAPE_DEFAULT && !config->matrix.conversions)
            add_matrices(config, candidates, &count);
        for (uint32_t i = 0; i < count; i++)
            candidates[i].timed = true;
        add_candidate(candidates, &count, VKN_PRECISION_COOPMAT, shape, config->matrix.conversions);
        add_candidate(candidates, &count, VKN_PRECISION_COOPMAT, shape, false);
        for (int other = VKN_SHAPE_16X16X16; other > VKN_SHAPE_DEFAULT; other--)
            add_candidate(candidates, &count, VKN_PRECISION_COOPMAT, (enum vkn_matrix_shape)other,
                          false);
    }
    if (config->precision != VKN_PRECISION_FP32)
        add_candidate(candidates, &count, VKN_PRECISION_FP16, VKN_SHAPE_DEFAULT, false);
    add_candidate(candidates, &count, VKN_PRECISION_FP32, VKN_SHAPE_DEFAULT, false);
    return count;
}

/* Measurements repeat to within a few percent; smaller gains do not justify a loss of precision. */
#define WORTHWHILE 0.95

uint32_t field_fastest(const struct field_candidate *candidates, uint32_t count)
{
    uint32_t fastest = 0;
    while (fastest + 1 < count && candidates[fastest].verdict != FIELD_CORRECT)
        fastest++;
    for (uint32_t i = fastest + 1; i < count; i++)
        if (candidates[i].verdict == FIELD_CORRECT &&
            candidates[i].milliseconds < WORTHWHILE * candidates[fastest].milliseconds)
            fastest = i;
    return fastest;
}

vkn_status field_predict_fastest(const struct vkn_config *config, const struct field_model *model,
                                 const struct gpu_capabilities *device,
                                 struct field_backend *backend)
{
    static const enum vkn_precision promising[] = {VKN_PRECISION_COOPMAT, VKN_PRECISION_FP16};
    struct vkn_config wanted = *config;
    for (size_t i = 0; i < BASE_COUNT(promising) && device->type != GPU_CPU; i++) {
        wanted.precision = promising[i];
        if (field_backend_create(&wanted, model, device, backend) == VKN_OK)
            return VKN_OK;
    }
    wanted.precision = VKN_PRECISION_FP32;
    return field_backend_create(&wanted, model, device, backend);
}

/* ---- creating backends ------------------------------------------------------------------- */

/* Returns the first of `features` (NULL-terminated) that VKNERF_DISABLE lists; NULL: none. */
static const char *switched_off(const char *const *features)
{
    while (*features && !gpu_disabled(*features))
        features++;
    return *features;
}

static void explain_absence(const struct gpu_capabilities *device,
                            struct field_candidate *candidate)
{
    static const char *const f16_features[] = {"float16", "storage16", NULL};
    static const char *const matrix_features[] = {"cooperative_matrix",
                                                  "memory_model",
                                                  "subgroup_size_control",
                                                  "float16",
                                                  "storage16",
                                                  NULL};
    static const char *const matrix2_features[] = {"cooperative_matrix2", "maintenance4", NULL};
    const char *what = NULL, *const *features = NULL;
    if (!device->float16 || !device->storage16) {
        what = "16-bit arithmetic and storage";
        features = f16_features;
    } else if (candidate->precision == VKN_PRECISION_COOPMAT && !device->cooperative_matrix) {
        what = "cooperative matrices";
        features = matrix_features;
    } else if (candidate->conversions && !device->cooperative_matrix2) {
        what = "conversions of matrices by VK_NV_cooperative_matrix2";
        features = matrix2_features;
    }
    const char *off = features ? switched_off(features) : NULL;
    if (!what)
        snprintf(candidate->why, sizeof candidate->why, "%s", vkn_last_error());
    else if (off)
        snprintf(candidate->why, sizeof candidate->why, "no %s: VKNERF_DISABLE=%s", what, off);
    else
        snprintf(candidate->why, sizeof candidate->why, "the device has no %s", what);
}

static struct vkn_config settings_of(const struct vkn_config *config,
                                     const struct field_candidate *candidate)
{
    struct vkn_config wanted = *config;
    wanted.precision = candidate->precision;
    wanted.matrix.shape = candidate->shape;
    wanted.matrix.conversions = candidate->conversions;
    return wanted;
}

/* Creates the candidate's backend. If the self-test removes its matrix shape, tries the next. */
static vkn_status create_backend(struct gpu_device *device, const struct vkn_config *config,
                                 const struct field_model *model, struct field_candidate *candidate,
                                 bool *shapes_removed)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct vkn_config wanted = settings_of(config, candidate);
    struct field_backend *backend = &candidate->backend;
    for (;;) {
        BASE_TRY(field_backend_create(&wanted, model, capabilities, backend));
        if (backend->precision != VKN_PRECISION_COOPMAT)
            return VKN_OK;
        if (backend->shape.flexible && candidate->shape != config->matrix.shape)
            return base_fail(VKN_BAD_INPUT, "not a shape of the hardware");
        uint32_t count_before = capabilities->shape_count;
        BASE_TRY(
            gpu_self_test_matrices(device, backend->shape.m, backend->shape.n, backend->shape.k));
        if (capabilities->shape_count == count_before)
            return VKN_OK;
        *shapes_removed = true;
    }
}

vkn_status field_candidate_create(struct gpu_device *device, const struct vkn_config *config,
                                  const struct field_model *model,
                                  struct field_candidate *candidate, bool *shapes_removed)
{
    char forward[FIELD_SHADER_NAME];
    vkn_status status = create_backend(device, config, model, candidate, shapes_removed);
    if (status == VKN_BAD_INPUT) {
        candidate->verdict = FIELD_UNSUPPORTED;
        explain_absence(gpu_device_capabilities(device), candidate);
        if (candidate->precision == VKN_PRECISION_COOPMAT && *shapes_removed)
            snprintf(candidate->why, sizeof candidate->why, "matrices failed the self-test");
        return VKN_OK;
    }
    BASE_TRY(status);
    field_apply_tuning(device, config, model, &candidate->backend);
    field_backend_describe(&candidate->backend, candidate->name);
    const struct pass *pass = workload_pass(model, FIELD_PASS_FORWARD);
    if (!pass) /* a user's kind of field: its creation reports missing shaders */
        return VKN_OK;
    field_backend_shader_name(&candidate->backend, pass->name, pass->variant, forward);
    if (!gpu_shader_exists(forward)) {
        candidate->verdict = FIELD_UNSUPPORTED;
        snprintf(candidate->why, sizeof candidate->why, "%s is not part of this build", forward);
        base_fail(VKN_BAD_INPUT, "config: precision: %s", candidate->why);
    }
    return VKN_OK;
}

vkn_status field_discard_tuning(struct gpu_device *device, const struct vkn_config *config,
                                const struct field_model *model, struct field_candidate *candidate)
{
    struct vkn_config wanted = settings_of(config, candidate);
    struct field_backend backend;
    BASE_TRY(field_backend_create(&wanted, model, gpu_device_capabilities(device), &backend));
    BASE_TRY(field_tuning_save(device, model, &backend, NULL));
    candidate->backend = backend;
    return VKN_OK;
}
