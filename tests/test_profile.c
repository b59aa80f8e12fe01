/* Tests train --profile: times and work of passes, and trace.json. */
#include "step_fixture.h"

#include <cjson/cJSON.h>
#include <vknerf/run.h>

#define STEPS 52 /* ends within an update interval */

static void assert_near(const char *what, double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
        fail_msg("%s: %.12g, not %.12g", what, value, expected);
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* Three update intervals by hand: a whole one; one of 4 steps, 0.4 s later; and one that was
 * submitted so late that the gap before it does not count. Slots that did not run do not count. */
static void test_sums(void **state)
{
    (void)state;
    static const struct step_timing first[] = {{"update_occupancy", UPDATE_INTERVAL, 1.0, 1.5,
                                                false},
                                               {"composite", 0, 1.6, 1.8, false},
                                               {"composite", 15, 2.0, 2.3, false}},
                                    second[] = {{"update_occupancy", UPDATE_INTERVAL, 2.7, 2.95,
                                                 false},
                                                {"composite", 3, 3.0, 3.5, false},
                                                {"composite", 4, 3.5, 3.56, false},
                                                {"composite", 4, 3.56, 3.6, true}},
                                    third[] = {{"update_occupancy", UPDATE_INTERVAL, 9, 10, false}};
    const struct gpu_clocks clocks = {.device = 5, .host = 105};
    const struct profile_interval intervals[] = {
        {.timings = first, .count = 3, .to = 16, .clocks = &clocks},
        {.timings = second, .count = 3, .from = 16, .to = 20, .queued = true, .clocks = &clocks},
        {.timings = third, .count = 1, .from = 20, .to = 32, .clocks = &clocks},
    };
    struct profile sums = {.detailed = true};
    for (size_t i = 0; i < BASE_COUNT(intervals); i++)
        profile_add_interval(&sums, &intervals[i]);
    assert_int_equal(sums.pass_count, 2);
    assert_string_equal(sums.passes[0].name, "update_occupancy");
    assert_near("occupancy", sums.passes[0].seconds, 0.5 + 0.25 + 1);
    assert_near("steps of occupancy", sums.passes[0].steps, 16 + 4 + 12);
    assert_string_equal(sums.passes[1].name, "composite");
    assert_near("composite", sums.passes[1].seconds, 0.2 + 0.3 + 0.5);
    assert_near("steps of composite", sums.passes[1].steps, 3);
    assert_near("idle", sums.idle, 0.1 + 0.2 + 0.05);
    assert_near("idle between intervals", sums.interval_idle, 0.4);
    assert_int_equal(sums.interval_gaps, 1);
    assert_int_equal(sums.intervals, 3);
    /* Events: each update interval and each pass that ran, on the host's clock. */
    assert_int_equal(sums.event_count, 3 + 3 + 2 + 1);
    assert_near("begin of an interval", sums.events[0].begin, 101);
    assert_near("end of an interval", sums.events[0].end, 102.3);
    assert_near("idle of an interval", sums.events[0].idle, 0.3);
    assert_near("idle before a pass", sums.events[3].idle, 0.2);
    assert_int_equal(sums.events[3].step, 16);
    assert_int_equal(sums.events[6].step, 20);
    profile_free(&sums);
}

/* ---- a training ---------------------------------------------------------------------------- */

static bool has_timestamps(const struct tiny *tiny)
{
    return gpu_device_capabilities(tiny->trainer->device)->timestamp_period > 0;
}

/* Counts are within limits: live samples within marched ones, touched entries within the grid. */
static void check_work(const struct tiny *tiny, const struct vkn_profile *profile)
{
    const struct step *step = &tiny->trainer->step;
    uint32_t entries =
        (step->setup.model.param_count - step->setup.model.mlp_params) / step->setup.model.features;
    assert_true(profile->rays >= 64 && profile->rays <= step->setup.constants.ray_capacity);
    assert_true(profile->live_samples > 0);
    assert_true(profile->live_samples <= profile->marched_samples);
    assert_true(profile->touched_entries > 0 && profile->touched_entries <= entries);
    assert_true(profile->evaluated_cells > 0 && profile->evaluated_cells <= 4096);
    double params = 4.0 * step->setup.model.param_count;
    for (size_t i = 0; i < profile->pass_count; i++) {
        const struct vkn_pass_profile *pass = profile->passes[i];
        if (pass->bytes <= 0 || pass->memory_bytes > pass->bytes || pass->milliseconds <= 0)
            fail_msg("%s: %g bytes, %g of them from memory, %g ms", pass->name, pass->bytes,
                     pass->memory_bytes, pass->milliseconds);
        if (strcmp(pass->name, "update_weights") == 0)
            assert_true(pass->bytes > params && pass->bytes < 9 * params);
    }
}

/* Means per step, in milliseconds, agree with the sums and with the steps' own statistics. */
static void check_means(const struct tiny *tiny, const struct vkn_profile *profile)
{
    const struct profile *sums = &tiny->trainer->profile;
    const struct Stats *stats = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    double rays = 0, samples = 0, live = 0;
    for (uint32_t step = 1; step <= STEPS; step++) {
        rays += stats[step].rays;
        samples += stats[step].samples;
        live += stats[step].live;
    }
    assert_true(live < 0.9 * samples);
    assert_near("rays", profile->rays, rays / STEPS);
    assert_near("marched samples", profile->marched_samples, samples / STEPS);
    assert_near("live samples", profile->live_samples, live / STEPS);
    assert_near("idle", profile->idle_milliseconds, 1000 * sums->idle / STEPS);
    double gaps = sums->interval_gaps > 0 ? (double)sums->interval_gaps : 1;
    assert_near("idle between intervals", profile->interval_idle_milliseconds,
                1000 * sums->interval_idle / gaps / 16);
    for (size_t i = 0; i < profile->pass_count; i++) {
        const struct profile_pass *pass = &sums->passes[i];
        assert_string_equal(profile->passes[i]->name, pass->name);
        assert_near(pass->name, profile->passes[i]->milliseconds,
                    1000 * pass->seconds / pass->steps);
    }
}

/* Every pass of a step is timed and has a cost model. */
static void run_profile(struct step_tests *tests, bool deterministic)
{
    struct vkn_config config = tiny_config(deterministic);
    config.march.early_stop = 0.7f; /* not all marched samples are live */
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct vkn_profile *profile;
    ok(vkn_trainer_start_profile(tiny.trainer));
    ok(vkn_trainer_profile(tiny.trainer, &profile));
    assert_int_equal(profile->pass_count, 0);
    vkn_profile_free(&profile);
    tiny_run(&tiny, 20); /* stops within an update interval */
    tiny_run(&tiny, STEPS);
    ok(vkn_trainer_profile(tiny.trainer, &profile));
    assert_int_equal(profile->steps, has_timestamps(&tiny) ? STEPS : profile->steps);
    assert_int_equal(profile->pass_count, has_timestamps(&tiny) ? deterministic ? 18 : 16 : 0);
    assert_true(profile->idle_milliseconds >= 0 && profile->interval_idle_milliseconds >= 0);
    if (has_timestamps(&tiny)) {
        check_work(&tiny, profile);
        check_means(&tiny, profile);
    }
    vkn_profile_free(&profile);
    tiny_destroy(&tiny);
}

static void test_passes(void **state)
{
    run_profile(*state, false);
}

static void test_passes_deterministic(void **state)
{
    run_profile(*state, true);
}

/* Profiling changes no weights, and times of passes are available with and without it. */
static void test_nothing_changes(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    float *params[2];
    uint64_t size = 0;
    for (int profiled = 0; profiled < 2; profiled++) {
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        if (profiled)
            ok(vkn_trainer_start_profile(tiny.trainer));
        tiny_run(&tiny, 40);
        struct vkn_pass_time times[TRAIN_MAX_PASSES];
        size_t count = vkn_trainer_pass_times(tiny.trainer, times, TRAIN_MAX_PASSES);
        assert_int_equal(count, has_timestamps(&tiny) ? 18 : 0);
        for (size_t i = 0; i < count; i++)
            assert_true(times[i].milliseconds > 0);
        size = tiny.trainer->step.buffers.at[BIND_PARAMS].size;
        params[profiled] = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_PARAMS]);
        tiny_destroy(&tiny);
    }
    assert_memory_equal(params[0], params[1], size);
    free(params[0]);
    free(params[1]);
}

/* ---- idle time of a report ------------------------------------------------------------------ */

static void store_idle_share(void *context, const struct vkn_train_stats *stats)
{
    *(double *)context = stats->idle_share;
}

/* Idle share from the first update interval to the end of the last one, equal to that of the
 * trace's events. */
static void test_idle_share(void **state)
{
    struct step_tests *tests = *state;
    const struct vkn_config config = tiny_config(false);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    double share = -1;
    const struct vkn_train_run run = {
        .until_step = STEPS, .report_seconds = 1e9, .report = store_idle_share, .context = &share};
    ok(vkn_trainer_start_profile(tiny.trainer));
    ok(vkn_trainer_run(tiny.trainer, &run));
    const struct profile *sums = &tiny.trainer->profile;
    double busy = 0, begin = HUGE_VAL, end = -HUGE_VAL;
    for (size_t i = 0; i < sums->event_count; i++) {
        const struct trace_event *event = &sums->events[i];
        if (event->track != TRACE_DEVICE_INTERVALS)
            continue;
        busy += event->end - event->begin;
        begin = fmin(begin, event->begin);
        end = fmax(end, event->end);
    }
    if (!has_timestamps(&tiny))
        assert_true(isnan(share));
    else if (!(share > 0 && share < 1 && fabs(share - (1 - busy / (end - begin))) < 0.01))
        fail_msg("idle for %g of the time, not %g", share, 1 - busy / (end - begin));
    tiny_destroy(&tiny);
}

/* ---- trace.json ---------------------------------------------------------------------------- */

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item))
        fail_msg("%s: no number: %s", name, cJSON_PrintUnformatted(object));
    return item->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsString(item))
        fail_msg("%s: no text: %s", name, cJSON_PrintUnformatted(object));
    return item->valuestring;
}

/* An expected event and how often it occurs. */
struct seen {
    const char *name;
    size_t count;
};

static void see(struct seen *seen, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        seen[i].count += strcmp(seen[i].name, name) == 0;
}

/* Events of one device thread do not overlap. */
static void check_event(const cJSON *event, double ends[3][3])
{
    double process = number(event, "pid"), thread = number(event, "tid");
    double begin = number(event, "ts"), duration = number(event, "dur");
    assert_true(begin >= 0 && duration >= 0 && process >= 1 && process <= 2);
    assert_true(thread >= 1 && thread <= 2);
    assert_non_null(cJSON_GetObjectItemCaseSensitive(event, "args"));
    assert_true(number(cJSON_GetObjectItemCaseSensitive(event, "args"), "step") <= STEPS);
    double *end = &ends[(int)process][(int)thread];
    if (process == 2 && begin < *end - 0.002) /* microseconds with three digits */
        fail_msg("%s begins at %.3f, before %.3f", text(event, "name"), begin, *end);
    *end = begin + duration;
}

static void check_trace(const cJSON *trace, bool timestamps)
{
    struct seen host[] = {{"set up", 0}, {"submit", 0},     {"wait", 0},
                          {"report", 0}, {"evaluation", 0}, {"checkpoint", 0}};
    struct seen device[] = {{"period", 0},          {"begin_step", 0},     {"field_forward", 0},
                            {"field_backward", 0},  {"update_weights", 0}, {"update_average", 0},
                            {"update_occupancy", 0}};
    struct seen other[] = {{"process_name", 0}, {"thread_name", 0}, {"idle %", 0}};
    double ends[3][3] = {{0}};
    const cJSON *event;
    cJSON_ArrayForEach (event, cJSON_GetObjectItemCaseSensitive(trace, "traceEvents")) {
        const char *name = text(event, "name"), *kind = text(event, "ph");
        assert_true(strcmp(kind, "X") == 0 || strcmp(kind, "C") == 0 || strcmp(kind, "M") == 0);
        number(event, "ts");
        number(event, "tid");
        if (strcmp(kind, "X") == 0)
            check_event(event, ends);
        bool on_host = number(event, "pid") == 1;
        if (strcmp(kind, "X") != 0)
            see(other, BASE_COUNT(other), name);
        else
            see(on_host ? host : device, on_host ? BASE_COUNT(host) : BASE_COUNT(device), name);
    }
    /* Update intervals of 16 steps, cut at 32 for the evaluation and at the end. */
    const size_t intervals = 4;
    const size_t host_counts[] = {1, intervals, intervals, 0, 2, 2};
    for (size_t i = 0; i < BASE_COUNT(host); i++)
        if (i == 3 ? host[i].count == 0 : host[i].count != host_counts[i])
            fail_msg("%s: %zu times", host[i].name, host[i].count);
    for (size_t i = 0; i < BASE_COUNT(device); i++) {
        bool every_step = i > 0 && i < 5;
        assert_int_equal(device[i].count, !timestamps ? 0 : every_step ? STEPS : intervals);
    }
    assert_int_equal(other[0].count, 2);
    assert_int_equal(other[1].count, 3);
    assert_int_equal(other[2].count, timestamps ? intervals : 0);
    const cJSON *about = cJSON_GetObjectItemCaseSensitive(trace, "otherData");
    assert_int_equal(number(about, "lost_events"), 0);
    assert_true(strlen(text(about, "clock_alignment")) > 0 && strlen(text(about, "device")) > 0);
}

static cJSON *read_json(struct temporary *folder, const char *name)
{
    cJSON *json = NULL;
    ok(base_json_read(temporary_path(folder, name), (size_t)16 << 20, &json));
    return json;
}

/* Passes and idle time add up to the step. */
static void check_shares(const cJSON *summary, const cJSON *profile)
{
    double busy = 0, shares = 0;
    const cJSON *pass;
    cJSON_ArrayForEach (pass, cJSON_GetObjectItemCaseSensitive(summary, "passes")) {
        busy += number(pass, "milliseconds");
        shares += number(pass, "share");
    }
    cJSON_ArrayForEach (pass, cJSON_GetObjectItemCaseSensitive(summary, "passes")) {
        assert_true(fabs(number(pass, "share") - number(pass, "milliseconds") / busy) < 1e-4);
    }
    double idle =
        number(profile, "idle_milliseconds") + number(profile, "period_idle_milliseconds");
    assert_true(fabs(shares - 1) < 1e-4);
    assert_true(fabs(number(profile, "idle_share") - idle / (busy + idle)) < 1e-4);
}

static void assert_ratio(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-3 * fabs(wanted) + 1e-4))
        fail_msg("%.6g instead of %.6g", value, wanted);
}

/* Sampling statistics agree with the profile. */
static void check_sampling(const cJSON *summary, const cJSON *profile)
{
    const cJSON *sampling = cJSON_GetObjectItemCaseSensitive(summary, "sampling");
    assert_string_equal(text(sampling, "kind"), "occupancy");
    if (!profile) /* nothing is timed without timestamps */
        return;
    double rays = number(profile, "rays"), marched = number(profile, "marched_samples");
    assert_true(number(sampling, "steps") == number(profile, "steps"));
    assert_ratio(number(sampling, "rays"), rays * number(profile, "steps"));
    assert_ratio(number(sampling, "evaluated_per_ray"), marched / rays);
    assert_ratio(number(sampling, "live_per_ray"), number(profile, "live_samples") / rays);
    assert_ratio(number(sampling, "behind_share"), 1 - number(profile, "live_samples") / marched);
    assert_ratio(number(sampling, "empty_share"),
                 fmax(0, 1 - marched / rays / number(sampling, "march_steps_per_ray")));
    /* The clock begins after 16 steps. */
    double timed = number(sampling, "rays_per_second") * number(sampling, "seconds") /
                   number(sampling, "rays");
    assert_true(timed < 1 && timed > 0.9 * (1 - 16 / number(sampling, "steps")));
    assert_true(number(sampling, "coarse_per_ray") == 0);
}

/* All buffers' bytes, largest first, add up to the total. */
static void check_buffers(const cJSON *summary)
{
    double sum = 0, before = HUGE_VAL;
    const cJSON *buffer;
    bool parameters = false, control = false;
    cJSON_ArrayForEach (buffer, cJSON_GetObjectItemCaseSensitive(summary, "buffers")) {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(buffer, "on_host");
        double bytes = number(buffer, "bytes");
        assert_true(bytes > 0 && bytes <= before);
        parameters = parameters || (strcmp(text(buffer, "name"), "parameters") == 0 &&
                                    bytes >= 4 * 1536 && cJSON_IsFalse(host));
        control = control || (strcmp(text(buffer, "name"), "control") == 0 && cJSON_IsTrue(host));
        sum += bytes;
        before = bytes;
    }
    assert_true(parameters && control);
    assert_true(sum == number(summary, "gpu_memory_bytes"));
}

/* Each line has the device's idle share if there are timestamps. */
static void check_idle_shares(struct temporary *folder, bool timestamps)
{
    char *lines;
    size_t size;
    ok(base_file_read(temporary_path(folder, "run/metrics.jsonl"), 1 << 20, &lines, &size));
    const char *at = lines;
    size_t count = 0;
    for (; (at = strstr(at, "\"idle_share\": ")); count++) {
        at += strlen("\"idle_share\": ");
        if (timestamps)
            assert_true(*at != 'n' && strtod(at, NULL) >= 0 && strtod(at, NULL) < 1);
        else
            assert_int_equal(strncmp(at, "null", 4), 0);
    }
    assert_true(count > 0);
    free(lines);
}

/* `features`: for VKNERF_DISABLE. */
static void run_trace(struct step_tests *tests, const char *features, const char *alignment)
{
    struct temporary *folder = tests->folder;
    char *scene = base_format("%s", folder->path), *out = base_format("%s/run", folder->path);
    static const struct vkn_job quietly = {.quiet = true};
    struct vkn_config config = tiny_config(false);
    const struct vkn_train_params params = {.scene = scene,
                                            .out = out,
                                            .overwrite = true,
                                            .profile = true,
                                            .job = &quietly,
                                            .config = &config};
    config.steps = STEPS;
    config.eval_every.every = config.save_every = 32;
    struct vkn_train_result *result;
    if (features)
        setenv("VKNERF_DISABLE", features, 1);
    ok(vkn_run_train(&params, &result));
    unsetenv("VKNERF_DISABLE");
    cJSON *trace = read_json(folder, "run/trace.json"),
          *summary = read_json(folder, "run/summary.json");
    bool timestamps = result->pass_count > 0;
    check_trace(trace, timestamps);
    check_buffers(summary);
    check_sampling(summary, cJSON_GetObjectItemCaseSensitive(summary, "profile"));
    check_idle_shares(folder, timestamps);
    const cJSON *about = cJSON_GetObjectItemCaseSensitive(trace, "otherData");
    if (alignment && timestamps)
        assert_non_null(strstr(text(about, "clock_alignment"), alignment));
    const cJSON *profile = cJSON_GetObjectItemCaseSensitive(summary, "profile");
    assert_int_equal(profile != NULL, timestamps);
    if (timestamps) {
        check_shares(summary, profile);
        const cJSON *passes = cJSON_GetObjectItemCaseSensitive(summary, "passes");
        assert_true(number(cJSON_GetArrayItem(passes, 7), "flops") > 0);
    }
    cJSON_Delete(summary);
    cJSON_Delete(trace);
    vkn_train_result_free(&result);
    free(scene);
    free(out);
}

static void test_trace(void **state)
{
    run_trace(*state, NULL, NULL);
}

static void test_trace_by_fences(void **state)
{
    run_trace(*state, "calibrated_timestamps", "by fences");
}

static void test_trace_without_timestamps(void **state)
{
    run_trace(*state, "timestamps", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_passes_deterministic),
        cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_idle_share),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_trace_by_fences),
        cmocka_unit_test(test_trace_without_timestamps),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
