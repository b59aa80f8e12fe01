/* Says what is not finite in a step that has gone wrong, and where: reads the step's buffers back
 * once. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "optim/optim.h"
#include "pipeline/internal.h"

#define MOST_F16 65504.0f /* the largest number of 16 bits */

/* A place among the parameters: a layer of the MLPs, or a level of the grid. */
struct place {
    uint32_t first, end;
    char name[80];
};
#define MOST_PLACES (FIELD_MAX_LAYERS + MAX_LEVELS + 1)

/* ---- names ----------------------------------------------------------------------------------- */

static const char *mlp_name(const struct field_model *model, uint32_t layer)
{
    if (layer + model->warp_layers >= model->layer_count)
        return "deformation MLP";
    return model->layers[layer].mlp == 0 ? "density MLP" : "colour MLP";
}

static struct place layer_place(const struct field_model *model, uint32_t layer)
{
    uint32_t first_of_mlp = layer, last = layer + 1;
    while (first_of_mlp > 0 && model->layers[first_of_mlp - 1].mlp == model->layers[layer].mlp)
        first_of_mlp--;
    while (last < model->layer_count && model->layers[last].mlp == model->layers[layer].mlp)
        last++;
    struct place place = {
        .first = model->layers[layer].first,
        .end = layer + 1 < model->layer_count ? model->layers[layer + 1].first : model->mlp_params,
    };
    snprintf(place.name, sizeof place.name, "layer %u of %u of the %s", layer - first_of_mlp + 1,
             last - first_of_mlp, mlp_name(model, layer));
    return place;
}

/* In the order of the parameters, without a gap. */
static size_t list_places(const struct field_model *model, struct place places[MOST_PLACES])
{
    size_t count = 0;
    uint32_t end = model->mlp_params;
    for (uint32_t i = 0; i < model->layer_count; i++)
        places[count++] = layer_place(model, i);
    for (uint32_t i = 0; i < model->levels; i++) {
        struct place *place = &places[count++];
        place->first = model->level[i].first;
        place->end = end = i + 1 < model->levels ? model->level[i + 1].first : model->param_count;
        snprintf(place->name, sizeof place->name, "level %u of %u of the hash grid (resolution %u)",
                 i + 1, model->levels, model->level[i].resolution);
    }
    if (end < model->param_count) {
        places[count] = (struct place){.first = end, .end = model->param_count};
        snprintf(places[count++].name, sizeof places->name, "the field's further parameters");
    }
    return count;
}

/* ---- what is not finite ---------------------------------------------------------------------- */

/* Fields of the step: its own; that of coarse samples or the proposal. */
struct examined {
    const struct field_model *model;
    const struct buffers *buffers;
    const char *of; /* behind a name */
};

/* Fresh memory; NULL where the buffer is none, cannot be read, or does not fit. */
static float *read_back(const struct step *step, const struct gpu_buffer *buffer)
{
    float *values = buffer->size > 0 ? base_alloc(buffer->size, 1) : NULL;
    if (values && gpu_download(step->device, buffer, 0, values, buffer->size) != VKN_OK) {
        free(values);
        values = NULL;
    }
    return values;
}

static uint64_t count_beyond(const float *values, uint64_t count, float most)
{
    uint64_t beyond = 0;
    for (uint64_t i = 0; i < count; i++)
        beyond += !(fabsf(values[i]) <= most);
    return beyond;
}

/* Looks through a buffer with a value for each parameter, whose magnitude is `most` at the most:
 * from the first place, or `backwards`, as gradients come about. */
static bool find_beyond(const struct examined *field, const float *values, float most,
                        bool backwards, const char *what, char text[STEP_FOUND])
{
    struct place places[MOST_PLACES];
    size_t count = list_places(field->model, places), others = 0,
           layers = field->model->layer_count;
    const struct place *first = NULL;
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) {
        /* Gradients go from the last layer to the first, and from there to the grid. */
        const struct place *place = &places[backwards && i < layers ? layers - 1 - i : i];
        uint64_t beyond = count_beyond(values + place->first, place->end - place->first, most);
        others += beyond > 0 && first;
        found = first ? found : beyond;
        first = first || beyond == 0 ? first : place;
    }
    if (!first)
        return false;
    int used = snprintf(text, STEP_FOUND, "%s of %s%s (%llu of %u)", what, first->name, field->of,
                        (unsigned long long)found, first->end - first->first);
    if (others > 0 && used > 0 && (size_t)used < STEP_FOUND)
        snprintf(text + used, STEP_FOUND - (size_t)used, ", and of %zu more layers or levels",
                 others);
    return true;
}

static bool examine_buffer(const struct step *step, const struct examined *field, uint32_t number,
                           float most, const char *what, char text[STEP_FOUND])
{
    float *values = read_back(step, &field->buffers->at[number]);
    bool found = values && find_beyond(field, values, most, false, what, text);
    free(values);
    return found;
}

static size_t list_fields(const struct step *step, struct examined fields[STEP_FIELDS])
{
    fields[0] = (struct examined){&step->setup.model, &step->buffers, ""};
    if (!step->coarse.arena)
        return 1;
    bool proposal = step->setup.config.march.sampling == VKN_SAMPLING_PROPOSAL;
    fields[1] = (struct examined){&step->coarse_setup.model, &step->coarse,
                                  proposal ? " of the proposal" : " of the coarse field"};
    return 2;
}

bool step_find_weights(struct step *step, char text[STEP_FOUND])
{
    const char *const *moments = optim_kind(&step->setup.config)->moment_names;
    const struct {
        uint32_t number;
        const char *what;
    } buffers[] = {{BIND_PARAMS, "the weights"},
                   {BIND_MOMENT1, moments[0]},
                   {BIND_MOMENT2, moments[1]},
                   {BIND_AVERAGE, "the averaged weights"}};
    struct examined fields[STEP_FIELDS];
    size_t count = list_fields(step, fields);
    for (size_t i = 0; i < BASE_COUNT(buffers); i++)
        for (size_t n = 0; n < count; n++)
            if (examine_buffer(step, &fields[n], buffers[i].number, FLT_MAX, buffers[i].what, text))
                return true;
    return false;
}

static bool find_cells(const struct step *step, char text[STEP_FOUND])
{
    const struct gpu_buffer *buffer = &step->buffers.at[BIND_OCCUPANCY];
    uint64_t count = buffer->size / sizeof(float), beyond = 0;
    float *values = read_back(step, buffer);
    if (values)
        beyond = count_beyond(values, count, FLT_MAX);
    free(values);
    if (beyond > 0)
        snprintf(text, STEP_FOUND, "the densities of the occupancy grid (%llu of %llu cells)",
                 (unsigned long long)beyond, (unsigned long long)count);
    return beyond > 0;
}

bool step_find_unsaved(struct step *step, char text[STEP_FOUND])
{
    BASE_KEEP_ERROR;
    return step_find_weights(step, text) || find_cells(step, text);
}

/* Finite in 32 bits, infinite in the copy that the field reads. */
static bool find_large_weights(const struct step *step, char text[STEP_FOUND])
{
    struct examined fields[STEP_FIELDS];
    size_t count = step->setup.backend.f16 ? list_fields(step, fields) : 0;
    for (size_t n = 0; n < count; n++)
        if (examine_buffer(step, &fields[n], BIND_PARAMS, MOST_F16,
                           "as numbers of 16 bits, the weights", text))
            return true;
    return false;
}

/* ---- what one more step finds ---------------------------------------------------------------- */

static vkn_status clear(const struct step *step, const struct gpu_buffer *buffer)
{
    void *zeros = buffer->size > 0 ? base_alloc(buffer->size, 1) : NULL;
    if (buffer->size > 0 && !zeros)
        return VKN_ERROR;
    vkn_status status = zeros ? gpu_upload(step->device, buffer, 0, zeros, buffer->size) : VKN_OK;
    free(zeros);
    return status;
}

/* Records and runs a step up to the update of weights, which would clear what it has found. */
static vkn_status run_part(struct step *step)
{
    GPU_ONCE(step->device, "what is not finite");
    step_record_part(step, recording, ANY_SLOT, NULL, "update_weights");
    return gpu_run_once(&recording);
}

/* The same, whatever limit of steps is reached. */
static vkn_status run_gradients(struct step *step)
{
    struct Control *control = step->buffers.at[BIND_CONTROL].mapped;
    const struct gpu_buffer *config = &step->buffers.at[BIND_CONFIG];
    const uint64_t place = offsetof(struct Config, total_steps);
    const uint32_t total = step->setup.constants.total_steps, none = UINT32_MAX;
    uint32_t limit = control->step_limit;
    BASE_TRY(gpu_upload(step->device, config, place, &none, sizeof none));
    control->step_limit = UINT32_MAX;
    vkn_status status = run_part(step);
    control->step_limit = limit;
    vkn_status restored = gpu_upload(step->device, config, place, &total, sizeof total);
    return status == VKN_OK ? restored : status;
}

/* Where the field's own weights are largest. */
static void add_largest(const struct step *step, char *text, size_t size)
{
    struct place places[MOST_PLACES];
    size_t count = list_places(&step->setup.model, places), at = 0;
    float *weights = read_back(step, &step->buffers.at[BIND_PARAMS]), largest = 0.0f;
    for (size_t i = 0; weights && i < count; i++)
        for (uint32_t k = places[i].first; k < places[i].end; k++)
            if (fabsf(weights[k]) > largest) {
                largest = fabsf(weights[k]);
                at = i;
            }
    if (weights)
        snprintf(text, size, "; the largest weight is %.3g, in %s", (double)largest,
                 places[at].name);
    free(weights);
}

/* Of samples as they are marched: [sample][r g b density]. */
static bool find_outputs(const struct step *step, uint32_t number, const char *what,
                         char text[STEP_FOUND])
{
    struct State state;
    const struct buffers *buffers = &step->buffers;
    if (gpu_download(step->device, &buffers->at[BIND_STATE], 0, &state, sizeof state) != VKN_OK)
        return false;
    float *values = read_back(step, &buffers->at[number]);
    uint64_t room = buffers->at[number].size / (4 * sizeof *values);
    uint64_t samples = state.sample_count < room ? state.sample_count : room;
    uint64_t colors = 0, densities = 0;
    for (uint64_t i = 0; values && i < samples; i++) {
        densities += !isfinite(values[4 * i + 3]);
        colors += count_beyond(values + 4 * i, 3, FLT_MAX) > 0;
    }
    free(values);
    if (densities + colors == 0)
        return false;
    int used = snprintf(text, STEP_FOUND,
                        "%s, though weights are finite (%llu densities and %llu colours of %llu "
                        "samples)",
                        what, (unsigned long long)densities, (unsigned long long)colors,
                        (unsigned long long)samples);
    if (used > 0 && (size_t)used < STEP_FOUND)
        add_largest(step, text + used, STEP_FOUND - (size_t)used);
    return true;
}

static bool find_gradients(const struct step *step, char text[STEP_FOUND])
{
    struct examined fields[STEP_FIELDS];
    size_t count = list_fields(step, fields);
    for (size_t n = 0; n < count; n++) {
        float *values = read_back(step, &fields[n].buffers->at[BIND_GRADIENTS]);
        bool found =
            values && find_beyond(&fields[n], values, FLT_MAX, true, "the gradients", text);
        free(values);
        if (found)
            return true;
    }
    return false;
}

/* What a step has found is gone behind it, so it is taken once more; the state becomes what it was.
 * Ranks that take a step together have no such part of it. */
static bool find_in_step(struct step *step, char text[STEP_FOUND])
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
    struct examined fields[STEP_FIELDS];
    size_t count = list_fields(step, fields);
    for (size_t n = 0; n < count; n++) {
        (void)clear(step, &fields[n].buffers->at[BIND_GRADIENTS]);
        (void)clear(step, &fields[n].buffers->at[BIND_FIXED]);
    }
    (void)gpu_upload(step->device, &buffers[BIND_STATE], 0, &state, sizeof state);
    return found;
}

bool step_find_values(struct step *step, char text[STEP_FOUND])
{
    return find_large_weights(step, text) || find_in_step(step, text);
}
