/* Chooses the backend of a run: the one asked for if it passes the self-test, or the fastest. */
#include "tuner/internal.h"

#include <stdlib.h>
#include <string.h>

struct chooser {
    struct gpu_device *device;
    const struct gpu_capabilities *capabilities;
    struct vkn_config *config;
    struct field_model model;
    struct field_choice *choice;
    struct field_trial_cache *cache;
    struct field_workload *workload; /* created when the first backend is run */
    bool shapes_removed;             /* the self-test removed matrix shapes */
};

static vkn_status create_candidate(struct chooser *chooser, struct field_candidate *candidate)
{
    return field_candidate_create(chooser->device, chooser->config, &chooser->model, candidate,
                                  &chooser->shapes_removed);
}

/* ---- trials ------------------------------------------------------------------------------ */

static vkn_status run_backend(struct chooser *chooser, const struct field_backend *backend,
                              struct field_trial *trial)
{
    if (!chooser->workload)
        BASE_TRY(field_workload_create(chooser->device, chooser->config, &chooser->workload));
    BASE_TRY(field_workload_try(chooser->workload, backend, trial));
    field_trial_cache_add(chooser->cache, chooser->config, backend, trial);
    return VKN_OK;
}

/* A tuned backend that fails is tested again untuned. */
static vkn_status run(struct chooser *chooser, struct field_candidate *candidate,
                      struct field_trial *trial)
{
    BASE_TRY(run_backend(chooser, &candidate->backend, trial));
    if (!trial->fault[0] || !candidate->backend.tuned ||
        field_discard_tuning(chooser->device, chooser->config, &chooser->model, candidate) !=
            VKN_OK)
        return VKN_OK;
    base_log(BASE_LOG_WARNING, "\"%s\": %s is not tuned any more: the self-test found %s",
             chooser->capabilities->name, candidate->name, trial->fault);
    return run_backend(chooser, &candidate->backend, trial);
}

static void set_verdict(const struct chooser *chooser, struct field_candidate *candidate,
                        const struct field_trial *trial)
{
    if (trial->given_up) {
        snprintf(candidate->why, sizeof candidate->why,
                 "others took too long to compile; VKNERF_MEASURE=1 tries again");
        return;
    }
    candidate->milliseconds = trial->milliseconds;
    candidate->verdict = trial->fault[0] ? FIELD_WRONG : FIELD_CORRECT;
    snprintf(candidate->why, sizeof candidate->why, "%s", trial->fault);
    if (trial->fault[0])
        base_log(BASE_LOG_WARNING, "\"%s\": %s is switched off: the self-test found %s",
                 chooser->capabilities->name, candidate->name, trial->fault);
}

/* ---- the fastest precision --------------------------------------------------------------- */

/* Returns why fp32 is chosen without measuring; NULL: candidates must be measured. */
static const char *skip_reason(const struct chooser *chooser, uint32_t offered_count)
{
    const char *measure = getenv("VKNERF_MEASURE");
    if (chooser->config->deterministic)
        return "deterministic: the result must not depend on a measurement";
    if (!chooser->model.kind->precisions)
        return "the model has no other";
    if (offered_count == 1)
        return "the device offers nothing else";
    /* CPU devices compute f16 in f32, and matrices lane by lane: on lavapipe, fp16 and coopmat take
     * two to four times as long as fp32, and compiling all shaders only to find that out takes 20
     * seconds. */
    if (chooser->capabilities->type == GPU_CPU && !(measure && strcmp(measure, "1") == 0))
        return "CPU devices multiply f32 fastest";
    return NULL;
}

double field_compile_limit = 20;

/* The candidates to measure, likely fastest first: cooperative matrices, then fp16. fp32, the
 * reference, is not in the list. */
struct measurement {
    struct chooser *chooser;
    uint32_t order[FIELD_MAX_CANDIDATES], count;
    bool given_up[FIELD_MAX_CANDIDATES]; /* [candidate] */
    double began;
};

static bool is_measured(const struct field_candidate *candidate)
{
    return candidate->timed && candidate->verdict != FIELD_UNSUPPORTED;
}

static void order_candidates(struct measurement *measurement)
{
    const struct field_choice *choice = measurement->chooser->choice;
    for (int with_matrices = 1; with_matrices >= 0; with_matrices--)
        for (uint32_t i = 0; i < choice->count; i++)
            if (is_measured(&choice->candidates[i]) &&
                choice->candidates[i].precision != VKN_PRECISION_FP32 &&
                (choice->candidates[i].precision == VKN_PRECISION_COOPMAT) == with_matrices)
                measurement->order[measurement->count++] = i;
}

/* Compiles a candidate, as work of base_parallel. Ignores failures: the trial meets them again. */
static vkn_status compile_next(void *context, size_t index)
{
    struct measurement *measurement = context;
    uint32_t candidate = measurement->order[index];
    const struct field_choice *choice = measurement->chooser->choice;
    if (index > 0 && base_seconds() - measurement->began > field_compile_limit)
        measurement->given_up[candidate] = true;
    else
        (void)workload_compile(measurement->chooser->workload,
                               &choice->candidates[candidate].backend);
    return VKN_OK;
}

/* Compiles all candidates in parallel, because a GPU's compiler takes up to a minute for one. CPU
 * devices compile when a pipeline first runs, so there is nothing to do. */
static vkn_status compile_all(struct measurement *measurement)
{
    struct chooser *chooser = measurement->chooser;
    char names[FIELD_MAX_CANDIDATES * FIELD_SHADER_NAME] = "";
    for (uint32_t i = 0; i < measurement->count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 chooser->choice->candidates[measurement->order[i]].name);
    base_log(BASE_LOG_INFO, "%s: measures which %s%s", chooser->capabilities->name,
             chooser->config->precision == VKN_PRECISION_AUTO ? "precision is fastest, once: fp32, "
                                                              : "matrices are fastest, once: ",
             names);
    BASE_TRY(field_workload_create(chooser->device, chooser->config, &chooser->workload));
    measurement->began = base_seconds();
    if (chooser->capabilities->type == GPU_CPU && field_compile_limit > 0)
        return VKN_OK;
    return base_parallel(measurement->count, compile_next, measurement, NULL);
}

/* All candidates are measured again unless all are cached: times are compared only within one
 * measurement. */
static vkn_status measure(struct chooser *chooser)
{
    struct measurement measurement = {.chooser = chooser};
    struct field_choice *choice = chooser->choice;
    struct field_trial trials[FIELD_MAX_CANDIDATES];
    bool cached = true;
    for (uint32_t i = 0; i < choice->count; i++)
        if (is_measured(&choice->candidates[i]))
            cached = cached && field_trial_cache_find(chooser->cache, chooser->config,
                                                      &choice->candidates[i].backend, &trials[i]);
    order_candidates(&measurement);
    if (!cached)
        BASE_TRY(compile_all(&measurement));
    for (uint32_t i = 0; i < choice->count; i++) {
        struct field_candidate *candidate = &choice->candidates[i];
        if (!is_measured(candidate))
            continue;
        if (!cached && measurement.given_up[i]) {
            trials[i] = (struct field_trial){.given_up = true};
            field_trial_cache_add(chooser->cache, chooser->config, &candidate->backend, &trials[i]);
        } else if (!cached) {
            BASE_TRY(run(chooser, candidate, &trials[i]));
        }
        set_verdict(chooser, candidate, &trials[i]);
    }
    return VKN_OK;
}

/* Writes, after `prefix`, the speed-up of the chosen backend: over the first one that is correct
 * or, if that was chosen, over the second fastest. */
static void explain_fastest(struct field_choice *choice, const char *prefix)
{
    struct field_candidate others[FIELD_MAX_CANDIDATES];
    const struct field_candidate *chosen = &choice->candidates[choice->chosen];
    uint32_t count = 0;
    for (uint32_t i = 0; i < choice->count; i++)
        if (i != choice->chosen && choice->candidates[i].verdict == FIELD_CORRECT)
            others[count++] = choice->candidates[i];
    if (count == 0) {
        snprintf(choice->why, sizeof choice->why, "%sall others failed the self-test", prefix);
        return;
    }
    const struct field_candidate *other =
        &others[choice->chosen ? 0 : field_fastest(others, count)];
    if (chosen->milliseconds > 0)
        snprintf(choice->why, sizeof choice->why, "%smeasured %.2g times as fast as %s", prefix,
                 other->milliseconds / chosen->milliseconds, other->name);
    else /* devices that execute nothing: tools/vendors.sh */
        snprintf(choice->why, sizeof choice->why, "%sits measured time is 0, which says nothing",
                 prefix);
}

/* Creates the timed candidates from `begin` on, and adds the number that the device offers to
 * *offered_count. Removes a shape that the configuration does not name if the device does not have
 * the shape, or has it as its default. */
static vkn_status create_timed(struct chooser *chooser, uint32_t begin, uint32_t *offered_count)
{
    struct field_choice *choice = chooser->choice;
    for (uint32_t i = begin; i < choice->count && choice->candidates[i].timed; i++) {
        struct field_candidate *candidate = &choice->candidates[i];
        BASE_TRY(create_candidate(chooser, candidate));
        bool known = false;
        for (uint32_t k = 0; k < i; k++)
            known = known || strcmp(choice->candidates[k].name, candidate->name) == 0;
        if (candidate->verdict != FIELD_UNSUPPORTED && !known) {
            (*offered_count)++;
        } else if (candidate->shape != chooser->config->matrix.shape &&
                   candidate->precision == VKN_PRECISION_COOPMAT) {
            memmove(candidate, candidate + 1, (choice->count - i - 1) * sizeof *candidate);
            choice->count--;
            i--;
        }
    }
    return VKN_OK;
}

static vkn_status choose_fastest(struct chooser *chooser)
{
    struct field_choice *choice = chooser->choice;
    uint32_t offered_count = 1;
    BASE_TRY(create_candidate(chooser, &choice->candidates[0]));
    if (choice->candidates[0].verdict == FIELD_UNSUPPORTED)
        return VKN_BAD_INPUT;
    BASE_TRY(create_timed(chooser, 1, &offered_count));
    const char *why = skip_reason(chooser, offered_count);
    if (!why) {
        BASE_TRY(measure(chooser));
        choice->chosen = field_fastest(choice->candidates, choice->count);
        explain_fastest(choice, "");
        return VKN_OK;
    }
    snprintf(choice->why, sizeof choice->why, "%s", why);
    choice->candidates[0].verdict = FIELD_CORRECT;
    for (uint32_t i = 1; i < choice->count; i++)
        if (choice->candidates[i].verdict == FIELD_NOT_TRIED)
            snprintf(choice->candidates[i].why, sizeof choice->candidates[i].why, "%s", why);
    return VKN_OK;
}

/* ---- a precision that the user asked for ------------------------------------------------- */

/* fp32 is the reference and is not tested; tuned fp32 was tested when it was tuned. */
static vkn_status test_candidate(struct chooser *chooser, struct field_candidate *candidate)
{
    struct field_trial trial = {0};
    if (candidate->precision != VKN_PRECISION_FP32 &&
        (!field_trial_cache_find(chooser->cache, chooser->config, &candidate->backend, &trial) ||
         trial.given_up))
        BASE_TRY(run(chooser, candidate, &trial));
    set_verdict(chooser, candidate, &trial);
    return VKN_OK;
}

/* The default shape can be in the list a second time, under its name; it is not tested again. */
static bool tried_before(const struct field_choice *choice, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (choice->candidates[i].verdict == FIELD_WRONG &&
            strcmp(choice->candidates[i].name, choice->candidates[index].name) == 0)
            return true;
    return false;
}

/* Times the cooperative matrices of a configuration that leaves the shape open. Sets *found if one
 * of them is correct and therefore chosen. */
static vkn_status choose_matrices(struct chooser *chooser, bool *found)
{
    struct field_choice *choice = chooser->choice;
    uint32_t offered_count = 1;
    *found = false;
    if (!choice->candidates[0].timed || chooser->shapes_removed ||
        choice->candidates[0].verdict == FIELD_UNSUPPORTED)
        return VKN_OK;
    BASE_TRY(create_timed(chooser, 1, &offered_count));
    if (skip_reason(chooser, offered_count))
        return VKN_OK;
    BASE_TRY(measure(chooser));
    choice->chosen = field_fastest(choice->candidates, choice->count);
    *found = choice->candidates[choice->chosen].verdict == FIELD_CORRECT;
    if (*found)
        explain_fastest(choice, "asked for; ");
    return VKN_OK;
}

static vkn_status choose_requested(struct chooser *chooser)
{
    struct field_choice *choice = chooser->choice;
    bool found;
    BASE_TRY(create_candidate(chooser, &choice->candidates[0]));
    /* The device does not support the requested precision; field_backend_create has said why. */
    if (choice->candidates[0].verdict == FIELD_UNSUPPORTED && !chooser->shapes_removed)
        return VKN_BAD_INPUT;
    BASE_TRY(choose_matrices(chooser, &found));
    for (uint32_t i = 0; i < choice->count && !found; i++) {
        struct field_candidate *candidate = &choice->candidates[i];
        if (i > 0 && candidate->verdict == FIELD_NOT_TRIED)
            BASE_TRY(create_candidate(chooser, candidate));
        if (candidate->verdict != FIELD_NOT_TRIED || tried_before(choice, i))
            continue;
        BASE_TRY(test_candidate(chooser, candidate));
        found = candidate->verdict == FIELD_CORRECT;
        if (!found)
            continue;
        choice->chosen = i;
        snprintf(choice->why, sizeof choice->why, i == 0 ? "asked for" : "%s failed the self-test",
                 choice->candidates[0].name);
    }
    return found ? VKN_OK : VKN_BAD_INPUT;
}

/* ---- the choice -------------------------------------------------------------------------- */

static void explain_sums(const struct chooser *chooser)
{
    const struct field_choice *choice = chooser->choice;
    const char *why;
    if (chooser->config->deterministic)
        why = "deterministic: the same in any order";
    else if (chooser->config->gradient_sums != VKN_SUMS_DEFAULT)
        why = "asked for (gradient_sums)";
    else if (choice->candidates[choice->chosen].backend.sums_size)
        why = "few subgroups at a time, so that each has a level for itself";
    else if (chooser->capabilities->float_atomic_add)
        why = "the device adds f32 atomically";
    else if (gpu_disabled("float_atomics"))
        why = "no atomic f32 addition: VKNERF_DISABLE=float_atomics";
    else
        why = "no atomic f32 addition that passes the self-test";
    snprintf(chooser->choice->why_sums, sizeof chooser->choice->why_sums, "%s", why);
}

/* Writes the backend's precision and matrix settings into the configuration. */
static void apply_backend(struct vkn_config *config, const struct field_backend *backend)
{
    config->precision = backend->precision;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        return;
    config->matrix.shape = field_backend_shape(backend);
    config->matrix.accumulate = backend->f16_accumulate ? VKN_ACCUMULATE_F16 : VKN_ACCUMULATE_F32;
    config->matrix.conversions = backend->conversions;
}

vkn_status field_choose(struct gpu_device *device, struct vkn_config *config,
                        struct field_choice *choice)
{
    struct chooser chooser = {
        .device = device,
        .capabilities = gpu_device_capabilities(device),
        .config = config,
        .choice = choice,
    };
    *choice = (struct field_choice){0};
    BASE_TRY(field_model_create_canonical(config, &chooser.model));
    chooser.cache = field_trial_cache_open(device);
    choice->count = field_list_candidates(config, choice->candidates);
    if (!chooser.model.kind->precisions)
        choice->count = 1;
    vkn_status status = config->precision == VKN_PRECISION_AUTO ? choose_fastest(&chooser)
                                                                : choose_requested(&chooser);
    if (status == VKN_OK) {
        explain_sums(&chooser);
        apply_backend(config, &choice->candidates[choice->chosen].backend);
    }
    field_trial_cache_close(&chooser.cache);
    field_workload_destroy(&chooser.workload);
    return status;
}

const char *field_choice_why(const struct field_choice *choice, enum field_operation operation)
{
    const struct field_backend *backend = &choice->candidates[choice->chosen].backend;
    const char *fp32 = field_policy(operation, VKN_PRECISION_FP32);
    if (operation == FIELD_GRID_SUMS)
        return choice->why_sums;
    if (strcmp(fp32, field_policy(operation, VKN_PRECISION_FP16)) == 0 &&
        strcmp(fp32, field_policy(operation, VKN_PRECISION_COOPMAT)) == 0)
        return "the same in every precision";
    if (operation == FIELD_SUMS && backend->precision == VKN_PRECISION_COOPMAT)
        return backend->f16_accumulate ? "asked for (matrix.accumulate)"
                                       : "f16 only when asked for (matrix.accumulate)";
    return choice->why;
}
