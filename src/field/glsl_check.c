/* Checks a field in GLSL by shaders/field/snippet_check.comp, and reports the worst error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field/glsl.h"
#include "shared/snippet.h"

#define POSITIONS       256u
#define PARAMS_EACH     16u /* parameters that are checked at each position */
#define FIRST_PARAMETER 64u /* not 0, to detect code that ignores first_parameter */
#define LOCAL_SIZE      64u

double glsl_check_seconds = 20; /* a correct field takes milliseconds */

struct finding { /* result of one position, as the shader writes it */
    uint32_t kind, index;
    float derivative, differences;
};

/* ---- messages -------------------------------------------------------------------------------- */

static double error_of(const struct finding *finding)
{
    double derivative = (double)finding->derivative, differences = (double)finding->differences;
    return fabs(derivative - differences) / fmax(fabs(derivative), fabs(differences));
}

/* Returns the first error other than a wrong derivative, because it may cause wrong derivatives;
 * else the worst derivative. */
static const struct finding *worst_finding(const struct finding findings[POSITIONS])
{
    const struct finding *chosen = &findings[0];
    for (const struct finding *f = findings; f < findings + POSITIONS; f++) {
        bool worse = f->kind == SNIPPET_DERIVATIVE && chosen->kind == SNIPPET_DERIVATIVE &&
                     error_of(f) > error_of(chosen);
        bool first = f->kind > SNIPPET_DERIVATIVE && chosen->kind <= SNIPPET_DERIVATIVE;
        if (worse || first || chosen->kind == SNIPPET_OK)
            chosen = f;
    }
    return chosen;
}

static vkn_status report_finding(const struct glsl_field *field, const struct finding *found)
{
    static const struct {
        const char *text;
        bool of_features;
    } messages[] = {
        [SNIPPET_READS] = {"encode: reads parameter %u of %u", false},
        [SNIPPET_BACKWARD_READS] = {"encode_backward: reads parameter %u of %u", false},
        [SNIPPET_WRITES] = {"encode_backward: adds to parameter %u of %u", false},
        [SNIPPET_ODD_PAIR] = {"parameter_pair: %u of %u is odd", false},
        [SNIPPET_PUTS_BEHIND_LAST] = {"encode: puts feature %u of %u", true},
        [SNIPPET_PUTS_TWICE] = {"encode: puts feature %u of %u twice", true},
        [SNIPPET_FEATURE_MISSING] = {"encode: does not put feature %u of %u", true},
        [SNIPPET_NOT_FINITE] = {"encode: feature %u of %u is not finite", true},
        [SNIPPET_ASKS_BEHIND_LAST] = {"encode_backward: asks for the gradient of feature %u of %u",
                                      true},
        [SNIPPET_GRADIENT_NOT_FINITE] =
            {"encode_backward: the gradient of parameter %u of %u is not finite", false},
    };
    const struct glsl_pragmas *pragmas = &field->pragmas;
    char text[128];
    if (found->kind == SNIPPET_OK)
        return VKN_OK;
    if (found->kind == SNIPPET_DERIVATIVE)
        return base_fail(VKN_BAD_INPUT,
                         "%s: encode_backward: parameter %u off by %.1g: adds %.4g, finite "
                         "differences give %.4g",
                         field->snippet.file, found->index, error_of(found),
                         (double)found->derivative, (double)found->differences);
    if (found->kind == SNIPPET_PARAMETER_BEFORE_FIRST)
        return base_fail(VKN_BAD_INPUT,
                         "%s: uses parameter %u, which is before first_parameter, %u",
                         field->snippet.file, found->index, FIRST_PARAMETER);
    if (found->kind >= BASE_COUNT(messages))
        return base_fail(VKN_ERROR, "%s: the check has not finished", field->snippet.file);
    /* A format of the table above: NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
    snprintf(text, sizeof text, messages[found->kind].text, found->index,
             messages[found->kind].of_features ? pragmas->features : pragmas->parameters);
    return base_fail(VKN_BAD_INPUT, "%s: %s", field->snippet.file, text);
}

/* ---- running --------------------------------------------------------------------------------- */

struct run {
    struct gpu_device *device;
    const struct glsl_field *field;
    float *params;
    struct buffers buffers;
    struct gpu_bindings *bindings;
    struct gpu_pipeline *pipeline;
    uint32_t local_size;
};

/* Draws parameters in +-1, or within 0.125 of the field's own initial values. Features that are
 * linear in the parameters can be checked at any values. */
static vkn_status fill_params(struct run *run)
{
    const struct vkn_config config = {0};
    uint32_t count = run->field->pragmas.parameters;
    uint64_t state = field_random_begin(&config);
    run->params = base_alloc(FIRST_PARAMETER + FIELD_PAD(count), sizeof *run->params);
    if (!run->params)
        return VKN_ERROR;
    float *values = run->params + FIRST_PARAMETER, bound = run->field->initialize ? 0.125f : 1;
    if (run->field->initialize)
        glsl_initialize(run->field, config.seed, &state, values);
    for (uint32_t i = 0; i < count; i++)
        values[i] += bound * field_random(&state);
    return VKN_OK;
}

static vkn_status prepare(struct run *run)
{
    struct gpu_constants constants = {.count = SPEC_COUNT};
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    const uint32_t mask = BUFFERS(CONFIG) | BUFFERS(PARAMS) | BUFFERS(FIELD);
    BASE_TRY(fill_params(run));
    struct buffer_counts counts = {.samples = POSITIONS,
                                   .params =
                                       FIRST_PARAMETER + FIELD_PAD(run->field->pragmas.parameters)};
    uint32_t subgroup = gpu_device_capabilities(run->device)->subgroup_size;
    run->local_size = LOCAL_SIZE > subgroup ? LOCAL_SIZE : subgroup;
    const struct gpu_pipeline_options options = {
        .name = run->field->check, .local_size = run->local_size, .constants = &constants};
    BASE_TRY(gpu_pipeline_create(run->device, &options, &run->pipeline));
    BASE_TRY(buffers_create(run->device, BUFFERS_OF_TRIAL, mask, &counts, &run->buffers));
    buffers_bind(&run->buffers, mask, bound);
    BASE_TRY(gpu_bindings_create(run->device, bound, &run->bindings));
    return gpu_upload(run->device, &run->buffers.at[BIND_PARAMS], 0, run->params,
                      counts.params * sizeof *run->params);
}

static vkn_status run_positions(struct run *run, uint32_t positions)
{
    const struct Push push = {.a = positions, .b = PARAMS_EACH, .c = FIRST_PARAMETER};
    const struct gpu_buffer *buffer = &run->buffers.at[BIND_FIELD];
    struct gpu_recording *recording = NULL;
    BASE_TRY(gpu_record_begin(run->device, "field check", 0, &recording));
    gpu_record_fill(recording, buffer, 0, UINT64_MAX, UINT32_MAX);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, run->pipeline, run->bindings, &push, sizeof push,
                        (POSITIONS + run->local_size - 1) / run->local_size);
    return gpu_run_once(&recording);
}

/* Reports an endless loop as an error of the field, whether the time limit or the driver's watchdog
 * ends it. */
static vkn_status run_within_limit(struct run *run)
{
    double limit = gpu_set_wait_limit(run->device, glsl_check_seconds), began = base_seconds();
    if (limit < glsl_check_seconds)
        gpu_set_wait_limit(run->device, limit);
    vkn_status status = run_positions(run, POSITIONS);
    gpu_set_wait_limit(run->device, limit);
    if (status != VKN_NO_DEVICE)
        return status;
    return base_fail(VKN_BAD_INPUT, "%s: does not end: %.3g s at %u positions",
                     run->field->snippet.file, base_seconds() - began, POSITIONS);
}

/* Runs without positions first: CPU devices compile a shader when it first runs, which may take
 * longer than the time limit. */
static vkn_status run_shader(struct run *run, struct finding findings[POSITIONS])
{
    BASE_TRY(run_positions(run, 0));
    BASE_TRY(run_within_limit(run));
    return gpu_download(run->device, &run->buffers.at[BIND_FIELD], 0, findings,
                        POSITIONS * sizeof *findings);
}

static vkn_status run_check(struct gpu_device *device, struct glsl_field *field)
{
    struct run run = {.device = device, .field = field};
    struct finding findings[POSITIONS];
    vkn_status status = prepare(&run);
    if (status == VKN_OK)
        status = run_shader(&run, findings);
    gpu_pipeline_destroy(&run.pipeline);
    gpu_bindings_destroy(&run.bindings);
    buffers_destroy(&run.buffers);
    free(run.params);
    return status == VKN_OK ? report_finding(field, worst_finding(findings)) : status;
}

vkn_status field_check_glsl(struct gpu_device *device, const struct vkn_config *config, bool again)
{
    struct glsl_field *field = glsl_find(config);
    struct field_model model;
    if (config->model != VKN_MODEL_GLSL)
        return VKN_OK;
    if (!field)
        return field_model_create(config, &model); /* fails with the message */
    if (field->checked && !again)
        return VKN_OK;
    BASE_TRY(run_check(device, field));
    field->checked = true;
    base_log(BASE_LOG_INFO,
             "%s: field %s: %u parameters, %u features; encode_backward agrees with "
             "finite differences",
             field->snippet.file, field->pragmas.name, field->pragmas.parameters,
             field->pragmas.features);
    return VKN_OK;
}
