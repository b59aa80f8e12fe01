/* Reports the compiler's statistics for the shaders of training steps and of rendering, for each
 * backend of the device. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "bench/internal.h"
#include "field/field.h"
#include "step/step.h"
#include "render/render.h"
#include "tuner/tuner.h"

/* Configurations whose steps differ: the default one, the default model with each way of sampling
 * and with options, the other models, and the dynamic model with another canonical field. */
#define NUMBERED(enumerator, name) NUMBER_OF_##enumerator,
enum { VKN_SAMPLINGS(NUMBERED) SAMPLINGS };
enum { VKN_MODELS(NUMBERED) };
#define MODELS        NUMBER_OF_VKN_MODEL_GLSL /* without GLSL, which has no shaders of its own */
#define STEPS         (1 + SAMPLINGS + MODELS)
#define MAX_PIPELINES (STEPS * (2 * STEP_MAX_PIPELINES + RENDER_MAX_PIPELINES))

/* Assumed counts for a step of the default model on a GPU, see docs/cost_model.md. */
static const struct cost_counts assumed = {
    .rays = 8192, .marched = 400000, .live = 1u << 18, .touched = 3e6, .evaluated = 1u << 19};

/* A configuration that the device refuses. */
struct refusal {
    enum vkn_model model;
    char fault[1024];
};

struct compilation {
    struct bench *bench;
    const char *path;
    bool expected; /* AUTO is expected to choose this backend */
    /* The default one first; only setups and pipelines are used. Without a model: refused. */
    struct step steps[STEPS];
    struct field_pass_request requests[MAX_PIPELINES];
    const struct setup *owner[MAX_PIPELINES]; /* setup that the shader is compiled for */
    size_t step_count, count; /* number of requests: of steps, which come first; of all */
    struct refusal refused[STEPS];
    size_t refused_count;
};

static void add_pipelines(struct compilation *work, const struct setup *owner, size_t count)
{
    for (size_t i = 0; i < count; i++)
        work->owner[work->count++] = owner;
}

/* Lists the shaders of all steps, default first, then those of rendering; is_listed skips
 * duplicates. */
static void list_pipelines(struct compilation *work)
{
    for (size_t i = 0; i < STEPS; i++) {
        struct step *step = &work->steps[i];
        struct field_pass_request *requests = work->requests;
        if (!step->setup.model.kind)
            continue;
        add_pipelines(work, &step->setup, step_list_pipelines(step, false, requests + work->count));
        add_pipelines(work, &step->coarse_setup,
                      step_list_pipelines(step, true, requests + work->count));
    }
    work->step_count = work->count;
    for (size_t i = 0; i < STEPS; i++) {
        const struct setup *setup = &work->steps[i].setup;
        if (!setup->model.kind)
            continue;
        add_pipelines(work, setup, render_list_pipelines(setup, work->requests + work->count));
    }
}

/* Configures step number `step`, see STEPS. */
static vkn_status set_up(struct compilation *work, const struct bench_backend *backend, size_t step,
                         struct vkn_config *config)
{
    const struct gpu_capabilities *device = work->bench->capabilities;
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    *config = (struct vkn_config){0};
    bench_backend_settings(backend, config);
    size_t sampling = step > 0 && step <= SAMPLINGS ? step - 1 : 0;
    size_t model = step <= SAMPLINGS ? 0 : step - SAMPLINGS;
    config->model = model < MODELS ? (enum vkn_model)(VKN_MODEL_NGP + model) : VKN_MODEL_DYNAMIC;
    if (model == MODELS)
        config->dynamic.canonical = VKN_CANONICAL_VANILLA;
    config->march.sampling = (enum vkn_sampling)(VKN_SAMPLING_OCCUPANCY + sampling);
    if (config->march.sampling == VKN_SAMPLING_UNIFORM) {
        config->march.visibility = VKN_SWITCH_ON; /* so that its shaders are compiled, too */
        config->parallel.mode = VKN_PARALLEL_AVERAGE;
    } else if (step > 0) {
        config->loss.robust = VKN_SWITCH_ON;
        config->loss.depth = 3e-3F;
        config->scene.sky = VKN_SWITCH_ON;
        config->optimizer.moments = VKN_MOMENTS_BF16;
    }
    if (config->march.sampling == VKN_SAMPLING_HIERARCHICAL) { /* likewise */
        config->parallel.ranks_per_device = 2;
        config->parallel.communication_type = VKN_COMMUNICATION_F16;
    }
    if (config->march.sampling == VKN_SAMPLING_PROPOSAL || model > 0) {
        config->scene.refine = VKN_REFINEMENT_ALL;
        config->scene.appearance = VKN_APPEARANCE_FULL;
    }
    BASE_TRY(setup_resolve_config(config, &scene, device));
    BASE_TRY(setup_create_tuned(config, work->bench->device, &work->steps[step].setup));
    if (config->parallel.mode == VKN_PARALLEL_AVERAGE)
        setup_set_rank(&work->steps[step].setup, 2, 0);
    work->steps[step].coarse_setup = setup_of_coarse(&work->steps[step].setup);
    return VKN_OK;
}

/* Leaves out a configuration that does not fit on the device. */
static void refuse(struct compilation *work, size_t step, enum vkn_model model)
{
    work->steps[step] = (struct step){0};
    struct refusal *refusal = &work->refused[work->refused_count++];
    refusal->model = model;
    snprintf(refusal->fault, sizeof refusal->fault, "%s", vkn_last_error());
}

static vkn_status configure(struct compilation *work, const struct bench_backend *backend)
{
    char name[FIELD_SHADER_NAME], expected[FIELD_SHADER_NAME];
    struct vkn_config config = {0};
    struct field_backend promising;
    work->path = backend->name;
    for (size_t i = STEPS; i-- > 0;) {
        vkn_status status = set_up(work, backend, i, &config);
        if (status != VKN_BAD_INPUT || i == 0)
            BASE_TRY(status);
        else
            refuse(work, i, config.model);
    }
    const struct setup *setup = &work->steps[0].setup;
    memset(&config.matrix, 0, sizeof config.matrix);
    BASE_TRY(field_predict_fastest(&config, &setup->model, work->bench->capabilities, &promising));
    work->expected = strcmp(field_backend_describe(&setup->backend, name),
                            field_backend_describe(&promising, expected)) == 0;
    list_pipelines(work);
    return VKN_OK;
}

static bool is_proposal(const struct compilation *work, size_t index)
{
    return work->owner[index]->model.kind == work->owner[index]->proposal_model.kind;
}

/* Returns whether the shader belongs to the step of the default configuration. */
static bool is_default(const struct compilation *work, size_t index)
{
    return index < work->step_count && work->owner[index] == &work->steps[0].setup;
}

/* Returns whether two shaders of one pass differ by options, which concern no pass of the field. */
static bool differ_by_options(const struct compilation *work, size_t a, size_t b)
{
    uint32_t variant = work->requests[b].variant;
    return is_default(work, a) && work->owner[b] == &work->steps[1].setup &&
           (variant == FIELD_NO_VARIANT || variant == FIELD_F16_PARAMS);
}

/* Returns whether the shader is in the list already: begin_step runs twice in a step, and rendering
 * shares shaders with steps. */
static bool is_listed(const struct compilation *work, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(work->requests[i].pass, work->requests[index].pass) == 0 &&
            is_proposal(work, i) == is_proposal(work, index) && !differ_by_options(work, i, index))
            return true;
    return false;
}

/* Adds the costs of the pass and the counts of the step; does nothing for shaders that belong to no
 * pass. */
static void add_work(const struct compilation *work, const struct setup *setup, const char *pass,
                     cJSON *json)
{
    uint32_t subgroup_size = work->bench->capabilities->subgroup_size;
    struct cost cost;
    if (!setup_cost(setup, subgroup_size, &assumed, pass, &cost))
        return;
    /* Drivers of other vendors may have atomics of f32 where Mesa has none. */
    struct setup with_floats = *setup;
    if (with_floats.backend.sums == VKN_SUMS_FIXED)
        with_floats.backend.sums = VKN_SUMS_F32;
    struct cost float_cost;
    if (!setup_cost(&with_floats, subgroup_size, &assumed, pass, &float_cost))
        return;
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"float_memory_bytes", float_cost.memory},
        {"float_atomics", float_cost.atomics},
        {"flops", cost.flops},
        {"bytes", cost.bytes},
        {"memory_bytes", cost.memory},
        {"atomics", cost.atomics},
        {"rays", assumed.rays},
        {"marched", assumed.marched},
        {"live", assumed.live},
        {"levels", setup->model.levels},
        {"summed", setup->model.mlp_params},
        {"groups", setup->backend.backward_groups},
        {"forward_parts", 1.0 * setup->backend.forward_size / setup->backend.forward_rows},
        {"backward_parts", 1.0 * setup->backend.backward_size / setup->backend.backward_rows},
        {"sample_lanes", setup->backend.sample_lanes},
    };
    cJSON *object = cJSON_AddObjectToObject(json, "work");
    for (size_t i = 0; i < BASE_COUNT(fields); i++)
        cJSON_AddNumberToObject(object, fields[i].name, fields[i].value);
}

/* Adds NAME, or "proposal:NAME" for a proposal's shader, whose sizes differ. */
static void add_name(const struct compilation *work, size_t index, const char *key,
                     const char *name, cJSON *json)
{
    char text[FIELD_SHADER_NAME + 16];
    snprintf(text, sizeof(text), "%s%s", is_proposal(work, index) ? "proposal:" : "", name);
    cJSON_AddStringToObject(json, key, text);
}

static vkn_status compile(struct compilation *work, size_t index)
{
    const struct field_pass_request *request = &work->requests[index];
    const struct setup *setup = work->owner[index];
    char name[FIELD_SHADER_NAME];
    struct gpu_pipeline *pipeline = NULL;
    vkn_status status = field_backend_create_pipeline(
        work->bench->device, &setup->backend, request->pass, request->variant, PASS_LOCAL_SIZE,
        &setup->specialization, &pipeline);
    if (status == VKN_NO_DEVICE)
        return status;
    cJSON *json = pipeline ? gpu_pipeline_statistics(pipeline) : cJSON_CreateObject();
    if (!pipeline)
        cJSON_AddStringToObject(json, "fault", vkn_last_error());
    field_backend_shader_name(&setup->backend, request->pass, request->variant, name);
    cJSON_AddStringToObject(json, "path", work->path);
    add_name(work, index, "program", name, json);
    add_name(work, index, "pass", request->pass, json);
    cJSON_AddStringToObject(json, "use", index < work->step_count ? "step" : "pictures");
    cJSON_AddBoolToObject(json, "expected", work->expected);
    cJSON_AddBoolToObject(json, "default", is_default(work, index));
    if (index < work->step_count)
        add_work(work, setup, request->pass, json);
    cJSON_AddItemToArray(work->bench->pipelines, json);
    gpu_pipeline_destroy(&pipeline);
    return VKN_OK;
}

static void report_refusal(const struct compilation *work, const struct refusal *refusal)
{
    char name[FIELD_SHADER_NAME];
    snprintf(name, sizeof name, "model %s", config_model_names[refusal->model]);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "fault", refusal->fault);
    cJSON_AddStringToObject(json, "path", work->path);
    cJSON_AddStringToObject(json, "program", name);
    cJSON_AddStringToObject(json, "pass", "");
    cJSON_AddStringToObject(json, "use", "refused");
    cJSON_AddBoolToObject(json, "expected", work->expected);
    cJSON_AddBoolToObject(json, "default", false);
    cJSON_AddItemToArray(work->bench->pipelines, json);
}

static vkn_status compile_all(struct compilation *work)
{
    if (work->bench->params->quick && !work->expected)
        return VKN_OK;
    for (size_t i = 0; i < work->refused_count; i++)
        if (bench_next(work->bench))
            report_refusal(work, &work->refused[i]);
    for (size_t i = 0; i < work->count; i++)
        if (!is_listed(work, i) && bench_next(work->bench))
            BASE_TRY(compile(work, i));
    return VKN_OK;
}

vkn_status bench_pipelines(struct bench *bench)
{
    if (!bench->pipelines)
        bench->pipelines = cJSON_CreateArray();
    for (uint32_t i = 0; i < bench->backend_count; i++) {
        struct compilation *work = base_alloc(1, sizeof *work);
        if (!work)
            return VKN_ERROR;
        work->bench = bench;
        vkn_status status = configure(work, &bench->backends[i]);
        if (status == VKN_OK)
            status = compile_all(work);
        free(work);
        BASE_TRY(status);
    }
    return VKN_OK;
}
