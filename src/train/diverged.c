/* The end of a training that has diverged: says what was not finite first, by reading the buffers
 * of the step back once, and what to change. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <vknerf/config.h>

#include "train/internal.h"

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
static float *read_back(const struct vkn_trainer *t, const struct gpu_buffer *buffer)
{
    float *values = buffer->size > 0 ? base_alloc(buffer->size, 1) : NULL;
    if (values && gpu_download(t->device, buffer, 0, values, buffer->size) != VKN_OK) {
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
                        bool backwards, const char *what, char *text, size_t size)
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
    int used = snprintf(text, size, "%s of %s%s (%llu of %u)", what, first->name, field->of,
                        (unsigned long long)found, first->end - first->first);
    if (others > 0 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", and of %zu more layers or levels", others);
    return true;
}

static bool examine_buffer(const struct vkn_trainer *t, const struct examined *field,
                           uint32_t number, float most, const char *what, char *text, size_t size)
{
    float *values = read_back(t, &field->buffers->at[number]);
    bool found = values && find_beyond(field, values, most, false, what, text, size);
    free(values);
    return found;
}

static size_t list_fields(const struct vkn_trainer *t, struct examined fields[STEP_FIELDS])
{
    const struct step *step = &t->step;
    fields[0] = (struct examined){&step->setup.model, &step->buffers, ""};
    if (!step->coarse.arena)
        return 1;
    bool proposal = t->config.march.sampling == VKN_SAMPLING_PROPOSAL;
    fields[1] = (struct examined){&step->coarse_setup.model, &step->coarse,
                                  proposal ? " of the proposal" : " of the coarse field"};
    return 2;
}

static bool find_weights(const struct vkn_trainer *t, char *text, size_t size)
{
    static const struct {
        uint32_t number;
        const char *what;
    } buffers[] = {{BIND_PARAMS, "the weights"},
                   {BIND_MOMENT1, "Adam's first moments"},
                   {BIND_MOMENT2, "Adam's second moments"},
                   {BIND_AVERAGE, "the averaged weights"}};
    struct examined fields[STEP_FIELDS];
    size_t count = list_fields(t, fields);
    for (size_t i = 0; i < BASE_COUNT(buffers); i++)
        for (size_t n = 0; n < count; n++)
            if (examine_buffer(t, &fields[n], buffers[i].number, FLT_MAX, buffers[i].what, text,
                               size))
                return true;
    return false;
}

/* Finite in 32 bits, infinite in the copy that the field reads. */
static bool find_large_weights(const struct vkn_trainer *t, char *text, size_t size)
{
    struct examined fields[STEP_FIELDS];
    size_t count = t->step.setup.backend.half ? list_fields(t, fields) : 0;
    for (size_t n = 0; n < count; n++)
        if (examine_buffer(t, &fields[n], BIND_PARAMS, MOST_F16,
                           "as numbers of 16 bits, the weights", text, size))
            return true;
    return false;
}

/* ---- what one more step finds ---------------------------------------------------------------- */

static vkn_status clear(const struct vkn_trainer *t, const struct gpu_buffer *buffer)
{
    void *zeros = buffer->size > 0 ? base_alloc(buffer->size, 1) : NULL;
    if (buffer->size > 0 && !zeros)
        return VKN_ERROR;
    vkn_status status = zeros ? gpu_upload(t->device, buffer, 0, zeros, buffer->size) : VKN_OK;
    free(zeros);
    return status;
}

/* Records and runs a step up to the update of weights, which would clear what it has found. */
static vkn_status run_part(struct vkn_trainer *t)
{
    struct gpu_recording *recording = NULL;
    BASE_TRY(gpu_record_begin(t->device, "what is not finite", 0, &recording));
    step_record_part(&t->step, recording, ANY_SLOT, NULL, "update_weights");
    return gpu_run_once(&recording);
}

/* The same, whatever limit of steps is reached. */
static vkn_status run_gradients(struct vkn_trainer *t)
{
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    const struct gpu_buffer *config = &t->step.buffers.at[BIND_CONFIG];
    const uint64_t place = offsetof(struct Config, total_steps);
    const uint32_t total = t->step.setup.constants.total_steps, none = UINT32_MAX;
    uint32_t limit = control->step_limit;
    BASE_TRY(gpu_upload(t->device, config, place, &none, sizeof none));
    control->step_limit = UINT32_MAX;
    vkn_status status = run_part(t);
    control->step_limit = limit;
    vkn_status restored = gpu_upload(t->device, config, place, &total, sizeof total);
    return status == VKN_OK ? restored : status;
}

/* Of samples as they are marched: [sample][r g b density]. */
static bool find_values(const struct vkn_trainer *t, uint32_t number, const char *what, char *text,
                        size_t size)
{
    struct State state;
    const struct buffers *buffers = &t->step.buffers;
    if (gpu_download(t->device, &buffers->at[BIND_STATE], 0, &state, sizeof state) != VKN_OK)
        return false;
    float *values = read_back(t, &buffers->at[number]);
    uint64_t room = buffers->at[number].size / (4 * sizeof *values);
    uint64_t samples = state.sample_count < room ? state.sample_count : room;
    uint64_t colors = 0, densities = 0;
    for (uint64_t i = 0; values && i < samples; i++) {
        densities += !isfinite(values[4 * i + 3]);
        colors += count_beyond(values + 4 * i, 3, FLT_MAX) > 0;
    }
    free(values);
    if (densities + colors > 0)
        snprintf(text, size,
                 "%s of samples, though weights are finite (%llu densities and %llu "
                 "colours of %llu samples)",
                 what, (unsigned long long)densities, (unsigned long long)colors,
                 (unsigned long long)samples);
    return densities + colors > 0;
}

static bool find_gradients(const struct vkn_trainer *t, char *text, size_t size)
{
    struct examined fields[STEP_FIELDS];
    size_t count = list_fields(t, fields);
    for (size_t n = 0; n < count; n++) {
        float *values = read_back(t, &fields[n].buffers->at[BIND_GRADIENTS]);
        bool found =
            values && find_beyond(&fields[n], values, FLT_MAX, true, "the gradients", text, size);
        free(values);
        if (found)
            return true;
    }
    return false;
}

/* What a step has found is gone behind it, so it is taken once more; the state becomes what it was.
 * Ranks that take a step together have no such part of it. */
static bool find_in_step(struct vkn_trainer *t, char *text, size_t size)
{
    const struct gpu_buffer *buffers = t->step.buffers.at;
    struct State state;
    if (t->step.ranks || t->parallel ||
        gpu_download(t->device, &buffers[BIND_STATE], 0, &state, sizeof state) != VKN_OK ||
        run_gradients(t) != VKN_OK)
        return false;
    bool found = find_values(t, BIND_FIELD, "activations: the outputs", text, size) ||
                 find_values(t, BIND_FIELD_GRADIENTS, "the gradients of the outputs", text, size) ||
                 find_gradients(t, text, size);
    struct examined fields[STEP_FIELDS];
    size_t count = list_fields(t, fields);
    for (size_t n = 0; n < count; n++) {
        (void)clear(t, &fields[n].buffers->at[BIND_GRADIENTS]);
        (void)clear(t, &fields[n].buffers->at[BIND_FIXED]);
    }
    (void)gpu_upload(t->device, &buffers[BIND_STATE], 0, &state, sizeof state);
    return found;
}

/* ---- what to change -------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void advise(struct base_text *text, const char *format,
                                                         ...)
{
    va_list arguments;
    char part[256];
    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
    base_text_add(text, "%s%s", text->size > 0 ? ", or " : "", part);
}

static void add_advice(const struct vkn_trainer *t, struct base_text *text)
{
    enum monitor_end why = t->monitor.course.end;
    bool half = t->config.precision != VKN_PRECISION_FP32;
    char *rate = NULL;
    if (why == MONITOR_NO_STEP && t->config.loss_scale.kind != VKN_LOSS_SCALE_DYNAMIC &&
        t->monitor.course.scale > 1.0f)
        advise(text, "use a smaller loss scale than %.4g, such as --loss-scale dynamic",
               (double)t->monitor.course.scale);
    if (t->backend_policy[0])
        advise(text, "undo %s", t->backend_policy);
    if (vkn_config_get(&t->config, "optimizer.learning_rate", &rate) == VKN_OK)
        advise(text, "lower optimizer.learning_rate (%s now)", rate);
    vkn_free(rate);
    if (t->config.optimizer.clip_norm <= 0.0f && why != MONITOR_NO_STEP)
        advise(text, "cut large gradients (optimizer.clip_norm)");
    if (half)
        advise(text, "compute in --precision fp32");
}

static vkn_status fail(struct vkn_trainer *t, uint32_t step, const char *why, const char *first)
{
    struct base_text advice = {0};
    add_advice(t, &advice);
    t->ended = true;
    vkn_status status = base_fail(
        VKN_ERROR, "step %u: %s%s%s; %s", step, why, first[0] ? "; not finite first: " : "", first,
        advice.failed || !advice.data ? "lower optimizer.learning_rate" : advice.data);
    free(advice.data);
    return status;
}

vkn_status train_end_early(struct vkn_trainer *t)
{
    char why[MONITOR_LINE], first[256] = "";
    (void)monitor_ended(&t->monitor, why);
    if (t->monitor.course.end != MONITOR_WORSE && !find_weights(t, first, sizeof first) &&
        !find_large_weights(t, first, sizeof first) && !find_in_step(t, first, sizeof first))
        first[0] = 0;
    return fail(t, t->monitor.course.end_step, why, first);
}

vkn_status train_check_end(struct vkn_trainer *t)
{
    const struct monitor *monitor = &t->monitor;
    const struct monitor_skips *skips = &monitor->skips;
    char why[MONITOR_LINE], first[256] = "";
    if (skips->steps > 0 && skips->before == t->steps_done) {
        snprintf(why, sizeof why,
                 "no step was taken: all %u were skipped, for their gradients are not finite at a "
                 "loss scale of %.4g",
                 skips->before, (double)monitor->course.scale);
        if (!find_weights(t, first, sizeof first))
            (void)find_in_step(t, first, sizeof first);
        return fail(t, (uint32_t)t->steps_done, why, first);
    }
    if (monitor->course.lost_in_row == 0 || !find_weights(t, first, sizeof first))
        return VKN_OK;
    snprintf(why, sizeof why, "the training has diverged: since step %u no loss was finite",
             (uint32_t)t->steps_done + 1 - monitor->course.lost_in_row);
    return fail(t, (uint32_t)t->steps_done, why, first);
}

bool train_has_ended(const vkn_trainer *trainer)
{
    return trainer->ended;
}

bool train_is_sound(const vkn_trainer *trainer)
{
    return !trainer->ended && monitor_is_sound(&trainer->monitor);
}
