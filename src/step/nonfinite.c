/* Finds and describes values of a step that are not finite, by downloading its buffers. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "optim/optim.h"
#include "step/internal.h"

#define MAX_F16 65504.0f /* the largest finite f16 */

/* A range [first, end) of parameters: a layer of the MLPs, or a level of the hash grid. */
struct param_range {
    uint32_t first, end;
    char name[80];
};
#define MAX_PARAM_RANGES (FIELD_MAX_LAYERS + MAX_LEVELS + 1)

/* ---- names ----------------------------------------------------------------------------------- */

static const char *mlp_name(const struct field_model *model, uint32_t layer)
{
    if (layer + model->deformation_layers >= model->layer_count)
        return "deformation MLP";
    return model->layers[layer].mlp == 0 ? "density MLP" : "colour MLP";
}

static struct param_range layer_range(const struct field_model *model, uint32_t layer)
{
    uint32_t first_of_mlp = layer, last = layer + 1;
    while (first_of_mlp > 0 && model->layers[first_of_mlp - 1].mlp == model->layers[layer].mlp)
        first_of_mlp--;
    while (last < model->layer_count && model->layers[last].mlp == model->layers[layer].mlp)
        last++;
    struct param_range param_range = {
        .first = model->layers[layer].first,
        .end = layer + 1 < model->layer_count ? model->layers[layer + 1].first : model->mlp_params,
    };
    snprintf(param_range.name, sizeof param_range.name, "layer %u of %u of the %s",
             layer - first_of_mlp + 1, last - first_of_mlp, mlp_name(model, layer));
    return param_range;
}

/* Lists ranges that cover all parameters, in order. */
static size_t list_param_ranges(const struct field_model *model,
                                struct param_range param_ranges[MAX_PARAM_RANGES])
{
    size_t count = 0;
    uint32_t end = model->mlp_params;
    for (uint32_t i = 0; i < model->layer_count; i++)
        param_ranges[count++] = layer_range(model, i);
    for (uint32_t i = 0; i < model->levels; i++) {
        struct param_range *param_range = &param_ranges[count++];
        param_range->first = model->level[i].first;
        param_range->end = end =
            i + 1 < model->levels ? model->level[i + 1].first : model->param_count;
        snprintf(param_range->name, sizeof param_range->name,
                 "level %u of %u of the hash grid (resolution %u)", i + 1, model->levels,
                 model->level[i].resolution);
    }
    if (end < model->param_count) {
        param_ranges[count] = (struct param_range){.first = end, .end = model->param_count};
        snprintf(param_ranges[count++].name, sizeof param_ranges->name,
                 "the field's further parameters");
    }
    return count;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* A field of the step: the main field, or the coarse field or proposal. */
struct checked_field {
    const struct field_model *model;
    const struct buffers *buffers;
    bool coarse;
    const char *suffix; /* in messages: "" or " of the proposal" */
};

/* Returns the buffer's values, which the caller frees; NULL when the buffer is empty or the
 * download fails. */
static float *read_back(const struct step *step, const struct gpu_buffer *buffer)
{
    float *values = buffer->size > 0 ? base_alloc(buffer->size, 1) : NULL;
    if (values && gpu_download(step->device, buffer, 0, values, buffer->size) != VKN_OK) {
        free(values);
        values = NULL;
    }
    return values;
}

static uint64_t count_nonfinite(const float *values, uint64_t count, float most)
{
    uint64_t beyond = 0;
    for (uint64_t i = 0; i < count; i++)
        beyond += !(fabsf(values[i]) <= most);
    return beyond;
}

/* Searches float[param_count] for NaN and for magnitudes above `most`, and describes the first
 * range with any. With `backwards` the layers are searched in the order of the backward pass. */
static bool find_nonfinite(const struct checked_field *field, const float *values, float most,
                           bool backwards, const char *what, char text[STEP_NONFINITE_TEXT])
{
    struct param_range param_ranges[MAX_PARAM_RANGES];
    size_t count = list_param_ranges(field->model, param_ranges), others = 0,
           layers = field->model->layer_count;
    const struct param_range *first = NULL;
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        /* The backward pass goes from the last layer to the first, then to the hash grid. */
        const struct param_range *param_range =
            &param_ranges[backwards && i < layers ? layers - 1 - i : i];
        uint64_t beyond = count_nonfinite(values + param_range->first,
                                          param_range->end - param_range->first, most);
        others += beyond > 0 && first;
        found = first ? found : beyond;
        first = first || beyond == 0 ? first : param_range;
    }
    if (!first)
        return false;
    int used = snprintf(text, STEP_NONFINITE_TEXT, "%s of %s%s (%llu of %u)", what, first->name,
                        field->suffix, (unsigned long long)found, first->end - first->first);
    if (others > 0 && used > 0 && (size_t)used < STEP_NONFINITE_TEXT)
        snprintf(text + used, STEP_NONFINITE_TEXT - (size_t)used,
                 ", and of %zu more layers or levels", others);
    return true;
}

static bool check_buffer(const struct step *step, const struct checked_field *field,
                         uint32_t number, float most, const char *what,
                         char text[STEP_NONFINITE_TEXT])
{
    const struct saved_buffer saved = {.number = number, .coarse = field->coarse};
    float *values = base_alloc(step_saved_size(step, &saved), 1);
    bool found = values && step_download_saved(step, &saved, values) == VKN_OK &&
                 find_nonfinite(field, values, most, false, what, text);
    free(values);
    return found;
}

static size_t list_fields(const struct step *step, struct checked_field fields[STEP_FIELDS])
{
    fields[0] = (struct checked_field){&step->setup.model, &step->buffers, false, ""};
    if (!step->coarse.arena)
        return 1;
    bool is_proposal = step->setup.config.march.sampling == VKN_SAMPLING_PROPOSAL;
    fields[1] = (struct checked_field){&step->coarse_setup.model, &step->coarse, true,
                                       is_proposal ? " of the proposal" : " of the coarse field"};
    return 2;
}

bool step_nonfinite_weights(struct step *step, char text[STEP_NONFINITE_TEXT])
{
    const char *const *moments = optim_kind(&step->setup.config)->moment_names;
    const struct {
        uint32_t number;
        const char *what; /* NULL: the optimiser has no such moment */
    } buffers[] = {{BIND_PARAMS, "the weights"},
                   {BIND_MOMENT1, moments[0]},
                   {BIND_MOMENT2, moments[1]},
                   {BIND_AVERAGE, "the averaged weights"}};
    struct checked_field fields[STEP_FIELDS];
    size_t count = list_fields(step, fields);
    for (size_t i = 0; i < BASE_COUNT(buffers); i++)
        for (size_t n = 0; n < count; n++)
            if (buffers[i].what &&
                check_buffer(step, &fields[n], buffers[i].number, FLT_MAX, buffers[i].what, text))
                return true;
    return false;
}

static bool find_nonfinite_cells(const struct step *step, char text[STEP_NONFINITE_TEXT])
{
    const struct gpu_buffer *buffer = &step->buffers.at[BIND_OCCUPANCY];
    uint64_t count = buffer->size / sizeof(float), beyond = 0;
    float *values = read_back(step, buffer);
    if (values)
        beyond = count_nonfinite(values, count, FLT_MAX);
    free(values);
    if (beyond > 0)
        snprintf(text, STEP_NONFINITE_TEXT,
                 "the densities of the occupancy grid (%llu of %llu cells)",
                 (unsigned long long)beyond, (unsigned long long)count);
    return beyond > 0;
}

bool step_nonfinite_saved(struct step *step, char text[STEP_NONFINITE_TEXT])
{
    BASE_KEEP_ERROR;
    return step_nonfinite_weights(step, text) || find_nonfinite_cells(step, text);
}

/* Searches for parameters that are finite as f32 and overflow in their f16 copy. */
static bool find_large_weights(const struct step *step, char text[STEP_NONFINITE_TEXT])
{
    struct checked_field fields[STEP_FIELDS];
    size_t count = step->setup.backend.f16 ? list_fields(step, fields) : 0;
    for (size_t n = 0; n < count; n++)
        if (check_buffer(step, &fields[n], BIND_PARAMS, MAX_F16, "the f16 copies of the weights",
                         text))
            return true;
    return false;
}

/* ---- one more step --------------------------------------------------------------------------- */

static vkn_status clear_buffer(const struct step *step, const struct gpu_buffer *buffer)
{
    void *zeros = buffer->size > 0 ? base_alloc(buffer->size, 1) : NULL;
    if (buffer->size > 0 && !zeros)
        return VKN_ERROR;
    vkn_status status = zeros ? gpu_upload(step->device, buffer, 0, zeros, buffer->size) : VKN_OK;
    free(zeros);
    return status;
}

/* Runs a step up to update_weights, which would clear the gradients. */
static vkn_status run_to_gradients(struct step *step)
{
    GPU_ONCE(step->device, "search for values that are not finite");
    step_record_part(step, recording, ANY_STEP, NULL, "update_weights");
    return gpu_run_once(&recording);
}

/* Runs run_to_gradients even if a limit on steps is reached. */
static vkn_status run_gradients(struct step *step)
{
    struct Control *control = step->buffers.at[BIND_CONTROL].mapped;
    const struct gpu_buffer *config = &step->buffers.at[BIND_CONFIG];
    const uint64_t offset = offsetof(struct Config, total_steps);
    const uint32_t total = step->setup.constants.total_steps, none = UINT32_MAX;
    uint32_t limit = control->step_limit;
    BASE_TRY(gpu_upload(step->device, config, offset, &none, sizeof none));
    control->step_limit = UINT32_MAX;
    vkn_status status = run_to_gradients(step);
    control->step_limit = limit;
    vkn_status restored = gpu_upload(step->device, config, offset, &total, sizeof total);
    return status == VKN_OK ? restored : status;
}

/* Appends the largest weight of the main field and its range to the text. */
static void add_largest(const struct step *step, char *text, size_t size)
{
    struct param_range param_ranges[MAX_PARAM_RANGES];
    size_t count = list_param_ranges(&step->setup.model, param_ranges), largest_range = 0;
    float *weights = read_back(step, &step->buffers.at[BIND_PARAMS]), largest = 0.0f;
    for (size_t i = 0; weights && i < count; i++)
        for (uint32_t k = param_ranges[i].first; k < param_ranges[i].end; k++)
            if (fabsf(weights[k]) > largest) {
                largest = fabsf(weights[k]);
                largest_range = i;
            }
    if (weights)
        snprintf(text, size, "; the largest weight is %.3g, in %s", (double)largest,
                 param_ranges[largest_range].name);
    free(weights);
}

/* Searches values float[sample][4]: red, green, blue, density. */
static bool find_outputs(const struct step *step, uint32_t number, const char *what,
                         char text[STEP_NONFINITE_TEXT])
{
    struct State state;
    const struct buffers *buffers = &step->buffers;
    if (gpu_download(step->device, &buffers->at[BIND_STATE], 0, &state, sizeof state) != VKN_OK)
        return false;
    float *values = read_back(step, &buffers->at[number]);
    uint64_t capacity = buffers->at[number].size / (4 * sizeof *values);
    uint64_t samples = state.sample_count < capacity ? state.sample_count : capacity;
    uint64_t colors = 0, densities = 0;
    for (uint64_t i = 0; values && i < samples; i++) {
        densities += !isfinite(values[4 * i + 3]);
        colors += count_nonfinite(values + 4 * i, 3, FLT_MAX) > 0;
    }
    free(values);
    if (densities + colors == 0)
        return false;
    int used = snprintf(text, STEP_NONFINITE_TEXT,
                        "%s, though weights are finite (%llu densities and %llu colours of %llu "
                        "samples)",
                        what, (unsigned long long)densities, (unsigned long long)colors,
                        (unsigned long long)samples);
    if (used > 0 && (size_t)used < STEP_NONFINITE_TEXT)
        add_largest(step, text + used, STEP_NONFINITE_TEXT - (size_t)used);
    return true;
}

static bool find_gradients(const struct step *step, char text[STEP_NONFINITE_TEXT])
{
    struct checked_field fields[STEP_FIELDS];
    size_t count = list_fields(step, fields);
    for (size_t n = 0; n < count; n++) {
        float *values = read_back(step, &fields[n].buffers->at[BIND_GRADIENTS]);
        bool found =
            values && find_nonfinite(&fields[n], values, FLT_MAX, true, "the gradients", text);
        free(values);
        if (found)
            return true;
    }
    return false;
}

/* Runs the failed step again up to its gradients, because a finished step has cleared them, and
 * restores the state. Synchronous ranks cannot run a step by themselves. */
static bool find_in_step(struct step *step, char text[STEP_NONFINITE_TEXT])
{
    const struct gpu_buffer *buffers = step->buffers.at;
    struct State state;
    if (step->ranks ||
        gpu_download(step->device, &buffers[BIND_STATE], 0, &state, sizeof state) != VKN_OK ||
        run_gradients(step) != VKN_OK)
        return false;
    bool found = find_outputs(step, BIND_FIELD, "the outputs of the MLPs", text) ||
                 find_outputs(step, BIND_FIELD_GRADIENTS, "the gradients of the outputs", text) ||
                 find_gradients(step, text);
    struct checked_field fields[STEP_FIELDS];
    size_t count = list_fields(step, fields);
    for (size_t n = 0; n < count; n++) {
        (void)clear_buffer(step, &fields[n].buffers->at[BIND_GRADIENTS]);
        (void)clear_buffer(step, &fields[n].buffers->at[BIND_ACCUMULATORS]);
    }
    (void)gpu_upload(step->device, &buffers[BIND_STATE], 0, &state, sizeof state);
    return found;
}

bool step_nonfinite_values(struct step *step, char text[STEP_NONFINITE_TEXT])
{
    return find_large_weights(step, text) || find_in_step(step, text);
}
