/* Calls the public API where that is forbidden: in callbacks, while another thread is in a call, in
 * a forked process. Each call is refused with a message that names the function, and changes
 * nothing. tests/test_api_sweep.py compares the tables with the headers. */
#include "step_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include <vknerf/vknerf.h>

/* ---- every call with a status, for callbacks that may make no call --------------------------- */

static char *text;
static const double zero[3];

/* The arguments are NULL or 0: the call is refused before it looks at them. */
/* clang-format off */
#define CALLS(X)                                                                                   \
    X(vkn_context_create(NULL, NULL)) X(vkn_context_vulkan(NULL, NULL))                            \
    X(vkn_info_json(NULL, NULL)) X(vkn_config_create(NULL)) X(vkn_config_copy(NULL, NULL))         \
    X(vkn_config_set(NULL, NULL, NULL, NULL)) X(vkn_config_set_number(NULL, NULL, 0))              \
    X(vkn_config_get(NULL, NULL, NULL)) X(vkn_config_read_json(NULL, NULL))                        \
    X(vkn_config_parse_json(NULL, NULL, NULL, false)) X(vkn_config_setting(0, NULL))               \
    X(vkn_scene_open(NULL, NULL, NULL)) X(vkn_scene_create(NULL, NULL, 0, NULL, NULL))             \
    X(vkn_scene_camera(NULL, VKN_SPLIT_TRAIN, 0, NULL)) X(vkn_scene_look_at(NULL, NULL, NULL))     \
    X(vkn_scene_find_look(NULL, NULL))                                                             \
    X(vkn_scene_image(NULL, VKN_SPLIT_TRAIN, 0, VKN_BACKGROUND_WHITE, NULL))                       \
    X(vkn_scene_check_path(NULL, NULL)) X(vkn_scene_read_path(NULL, NULL, NULL, NULL))             \
    X(vkn_scene_info_json(NULL, &text))                                                            \
    X(vkn_camera_look_at(NULL, zero, zero, zero)) X(vkn_picture_write(NULL, VKN_MAP_COLOR, NULL))  \
    X(vkn_trainer_create(NULL, NULL, NULL, NULL)) X(vkn_trainer_resume(NULL, NULL))                \
    X(vkn_trainer_init(NULL, NULL)) X(vkn_trainer_save(NULL, NULL))                                \
    X(vkn_trainer_images(NULL, NULL)) X(vkn_trainer_communication(NULL, NULL))                     \
    X(vkn_trainer_run(NULL, NULL)) X(vkn_trainer_start_profile(NULL))                              \
    X(vkn_trainer_profile(NULL, NULL)) X(vkn_renderer_of_trainer(NULL, NULL))                      \
    X(vkn_renderer_open(NULL, NULL, VKN_PRECISION_AUTO, NULL)) X(vkn_renderer_enable_normals(NULL)) \
    X(vkn_renderer_set_time(NULL, 0)) X(vkn_render(NULL, NULL, NULL, NULL))                        \
    X(vkn_renderer_query(NULL, NULL)) X(vkn_render_rays(NULL, NULL, NULL))                         \
    X(vkn_trainer_tensor(NULL, 0, NULL)) X(vkn_trainer_read_tensor(NULL, NULL, NULL, 0))           \
    X(vkn_trainer_write_tensor(NULL, NULL, NULL, 0)) X(vkn_trainer_occupancy(NULL, NULL))          \
    X(vkn_trainer_set_occupancy(NULL, NULL)) X(vkn_scene_orbit_camera(NULL, 0, 0, NULL))           \
    X(vkn_renderer_export(NULL, NULL, NULL, NULL)) X(vkn_stepper_occupancy(NULL, NULL))            \
    X(vkn_stepper_set_occupancy(NULL, NULL)) X(vkn_stepper_set_loss_scale(NULL, 1))                \
    X(vkn_stepper_sample_rays(NULL, NULL, NULL))                                                   \
    X(vkn_renderer_camera(NULL, NULL, VKN_SPLIT_TRAIN, 0, NULL))                                   \
    X(vkn_ssim(NULL, NULL, NULL, 0, 0, NULL)) X(vkn_run_train(NULL, NULL))                         \
    X(vkn_find_batch(NULL, NULL)) X(vkn_run_config(NULL, NULL)) X(vkn_run_report(NULL, NULL))      \
    X(vkn_run_inspect(NULL, NULL)) X(vkn_run_eval(NULL, NULL)) X(vkn_run_render(NULL, NULL))       \
    X(vkn_run_export(NULL, NULL)) X(vkn_prepare(NULL, NULL)) X(vkn_bench(NULL, NULL))              \
    X(vkn_refine(NULL, NULL)) X(vkn_certify(NULL, NULL))                                           \
    X(vkn_certify_part(NULL, NULL, NULL, false))                                                   \
    X(vkn_field_register(NULL, NULL)) X(vkn_field_check(NULL, NULL))                               \
    X(vkn_stepper_create(NULL, NULL, NULL, NULL, NULL)) X(vkn_stepper_sample(NULL, NULL))          \
    X(vkn_stepper_composite(NULL, NULL)) X(vkn_stepper_update_grid(NULL, NULL, NULL))              \
    X(vkn_stepper_render(NULL, NULL, NULL, NULL, NULL, NULL))                                      \
    X(vkn_adam_create(NULL, NULL, NULL)) X(vkn_adam_step(NULL, 0, NULL))                           \
    X(vkn_run_field(NULL, NULL, NULL)) X(vkn_run_info_json(NULL, NULL)) X(vkn_field_trust("0"))
/* clang-format on */

/* Failures are counted: a failed assertion would leave a listener without releasing the log's lock,
 * and cmocka's assertions do not work in other threads. */
static _Atomic unsigned failures;

static void fail_later(const char *call, vkn_status status)
{
    failures++;
    print_message("%s: status %d: %s\n", call, (int)status, vkn_last_error());
}

static void expect_refused(vkn_status status, const char *call, const char *part)
{
    size_t name = strcspn(call, "(");
    if (status != VKN_BAD_INPUT || strncmp(vkn_last_error(), call, name) != 0 ||
        !strstr(vkn_last_error(), part))
        fail_later(call, status);
}

static void call_all(const char *part)
{
#define CALL(call)               \
    base_fail(VKN_OK, "%s", ""); \
    expect_refused(call, #call, part);
    CALLS(CALL)
#undef CALL
}

/* ---- calls that use a device ----------------------------------------------------------------- */

struct objects {
    const struct step_tests *tests;
    struct tiny tiny;
    vkn_trainer *trainer;
    vkn_renderer *renderer;
    vkn_stepper *stepper;
    vkn_adam *adam;
    char *checkpoint;
    struct vkn_camera camera;
    unsigned visits, reports, asked, lines, evaluated;
    bool destroy; /* in `between_steps`: the objects that may be destroyed there */
};

static vkn_status no_density(void *user, const struct vkn_samples *samples)
{
    (void)user;
    (void)samples;
    return VKN_OK;
}

static vkn_context *context_of(const struct objects *o)
{
    return o->trainer->context;
}

static vkn_status make_trainer(struct objects *o)
{
    vkn_trainer *object = NULL;
    vkn_status status = vkn_trainer_create(context_of(o), o->trainer->scene, NULL, &object);
    vkn_trainer_destroy(&object);
    return status;
}
static vkn_status run_trainer(struct objects *o)
{
    return vkn_trainer_run(o->trainer, NULL);
}
static vkn_status resume_trainer(struct objects *o)
{
    return vkn_trainer_resume(o->trainer, o->checkpoint);
}
static vkn_status init_trainer(struct objects *o)
{
    return vkn_trainer_init(o->trainer, o->checkpoint);
}
static vkn_status profile_trainer(struct objects *o)
{
    return vkn_trainer_start_profile(o->trainer);
}
static vkn_status save_trainer(struct objects *o)
{
    return vkn_trainer_save(o->trainer, o->checkpoint);
}
static vkn_status show_trainer(struct objects *o)
{
    vkn_renderer *object = NULL;
    vkn_status status = vkn_renderer_of_trainer(o->trainer, &object);
    vkn_renderer_destroy(&object);
    return status;
}
static vkn_status open_renderer(struct objects *o)
{
    vkn_renderer *object = NULL;
    vkn_status status =
        vkn_renderer_open(context_of(o), o->checkpoint, VKN_PRECISION_AUTO, &object);
    vkn_renderer_destroy(&object);
    return status;
}
static vkn_status want_normals(struct objects *o)
{
    return vkn_renderer_enable_normals(o->renderer);
}
static vkn_status find_camera(struct objects *o)
{
    struct vkn_camera camera = {.size = sizeof camera};
    return vkn_renderer_camera(o->renderer, o->trainer->scene, VKN_SPLIT_TRAIN, 0, &camera);
}
static vkn_status render(struct objects *o)
{
    struct vkn_picture *picture = NULL;
    vkn_status status = vkn_render(o->renderer, &o->camera, NULL, &picture);
    vkn_picture_free(&picture);
    return status;
}
static vkn_status check_field(struct objects *o)
{
    return vkn_field_check(context_of(o), NULL);
}
static vkn_status make_stepper(struct objects *o)
{
    vkn_stepper *object = NULL;
    vkn_status status = vkn_stepper_create(context_of(o), o->trainer->scene, NULL, NULL, &object);
    vkn_stepper_destroy(&object);
    return status;
}
static vkn_status sample(struct objects *o)
{
    const struct vkn_samples *samples = NULL;
    return vkn_stepper_sample(o->stepper, &samples);
}
static vkn_status composite(struct objects *o)
{
    const struct vkn_composited *composited = NULL;
    return vkn_stepper_composite(o->stepper, &composited);
}
static vkn_status update_grid(struct objects *o)
{
    return vkn_stepper_update_grid(o->stepper, no_density, NULL);
}
static vkn_status render_stepper(struct objects *o)
{
    struct vkn_picture *picture = NULL;
    vkn_status status =
        vkn_stepper_render(o->stepper, &o->camera, NULL, no_density, NULL, &picture);
    vkn_picture_free(&picture);
    return status;
}
static vkn_status make_adam(struct objects *o)
{
    vkn_adam *object = NULL;
    vkn_status status =
        vkn_adam_create(context_of(o), &(struct vkn_adam_params){.count = 4}, &object);
    vkn_adam_destroy(&object);
    return status;
}
static vkn_status step_adam(struct objects *o)
{
    return vkn_adam_step(o->adam, 0, NULL);
}

enum { IN_TRAINING = 1, OF_STEPPER = 2 }; /* changes the trainer; uses the stepper */
static const struct device_call {
    const char *name;
    vkn_status (*call)(struct objects *o);
    unsigned changes;
} device_calls[] = {
    {"vkn_trainer_create", make_trainer, 0},
    {"vkn_trainer_run", run_trainer, IN_TRAINING},
    {"vkn_trainer_resume", resume_trainer, IN_TRAINING},
    {"vkn_trainer_init", init_trainer, IN_TRAINING},
    {"vkn_trainer_start_profile", profile_trainer, IN_TRAINING},
    {"vkn_trainer_save", save_trainer, 0},
    {"vkn_renderer_of_trainer", show_trainer, 0},
    {"vkn_renderer_open", open_renderer, 0},
    {"vkn_renderer_enable_normals", want_normals, 0},
    {"vkn_renderer_camera", find_camera, 0},
    {"vkn_render", render, 0},
    {"vkn_field_check", check_field, 0},
    {"vkn_stepper_create", make_stepper, 0},
    {"vkn_stepper_sample", sample, OF_STEPPER},
    {"vkn_stepper_composite", composite, OF_STEPPER},
    {"vkn_stepper_update_grid", update_grid, OF_STEPPER},
    {"vkn_stepper_render", render_stepper, OF_STEPPER},
    {"vkn_adam_create", make_adam, 0},
    {"vkn_adam_step", step_adam, 0},
};

/* Expects that the calls with a bit of `changes` are refused; 0 means all calls. */
static void refuse_device_calls(struct objects *o, unsigned changes, const char *part)
{
    for (size_t i = 0; i < BASE_COUNT(device_calls); i++) {
        base_fail(VKN_OK, "%s", "");
        if (!changes || device_calls[i].changes & changes)
            expect_refused(device_calls[i].call(o), device_calls[i].name, part);
    }
}

/* Expects that destruction is refused and leaves the pointer unchanged. */
#define keeps(destroy, pointer, part)                                                           \
    do {                                                                                        \
        void *keeps_before = pointer;                                                           \
        base_fail(VKN_OK, "%s", "");                                                            \
        destroy(&(pointer));                                                                    \
        expect_refused((pointer) == keeps_before ? VKN_BAD_INPUT : VKN_OK, #destroy "(", part); \
    } while (0)

static struct objects make(const struct step_tests *tests)
{
    struct vkn_config config = tiny_config(true);
    struct objects o = {.tests = tests,
                        .checkpoint = base_path_join(tests->folder->path, "use.safetensors")};
    o.tiny = tiny_create(tests->context, tests->folder, &config);
    o.trainer = o.tiny.trainer;
    ok(vkn_trainer_save(o.trainer, o.checkpoint));
    ok(vkn_renderer_open(tests->context, o.checkpoint, VKN_PRECISION_AUTO, &o.renderer));
    ok(vkn_scene_camera(o.tiny.scene, VKN_SPLIT_TRAIN, 0, &o.camera));
    ok(vkn_stepper_create(tests->context, o.tiny.scene, &config,
                          &(struct vkn_stepper_params){.host = true}, &o.stepper));
    ok(vkn_adam_create(tests->context, &(struct vkn_adam_params){.count = 4}, &o.adam));
    return o;
}

static void end(struct objects *o)
{
    vkn_adam_destroy(&o->adam);
    vkn_stepper_destroy(&o->stepper);
    vkn_renderer_destroy(&o->renderer);
    tiny_destroy(&o->tiny);
    free(o->checkpoint);
    assert_int_equal(failures, 0);
}

/* ---- the log --------------------------------------------------------------------------------- */

static void second_listener(void *user, enum vkn_log_level level, const char *line)
{
    (void)level;
    (void)line;
    ((struct objects *)user)->lines += 100;
}

static void first_listener(void *user, enum vkn_log_level level, const char *line)
{
    struct objects *o = user;
    (void)level;
    o->lines++;
    if (strcmp(line, "a line") != 0)
        fail_later(line, VKN_OK);
    call_all("called by the callback of vkn_log_to");
    keeps(vkn_trainer_destroy, o->tiny.trainer, "called by the callback of vkn_log_to");
    keeps(vkn_renderer_destroy, o->renderer, "called by the callback of vkn_log_to");
    keeps(vkn_stepper_destroy, o->stepper, "called by the callback of vkn_log_to");
    keeps(vkn_adam_destroy, o->adam, "called by the callback of vkn_log_to");
    base_log(BASE_LOG_WARNING, "of its own"); /* goes to standard error, not to the listener */
    vkn_log_quiet(true);
    vkn_log_to(second_listener, o);
}

static void test_log(void **state)
{
    struct objects o = make(*state);
    vkn_log_to(first_listener, &o);
    base_fail(VKN_OK, "%s", "mine");
    base_log(BASE_LOG_WARNING, "a line");
    assert_int_equal(o.lines, 1);
    assert_string_equal(vkn_last_error(), "mine");
    base_log(BASE_LOG_WARNING, "another");
    assert_int_equal(o.lines, 101);
    vkn_log_to(NULL, NULL);
    ok(render(&o)); /* the renderer still works */
    end(&o);
}

/* Threads that log while the main thread replaces the listener. */
struct loggers {
    _Atomic bool over;
    _Atomic unsigned line_counts[2];
};

static void count_line(void *user, enum vkn_log_level level, const char *line)
{
    (void)level;
    (void)line;
    atomic_fetch_add((_Atomic unsigned *)user, 1);
}

static void *log_repeatedly(void *user)
{
    struct loggers *loggers = user;
    while (!atomic_load(&loggers->over))
        base_log(BASE_LOG_WARNING, "and on");
    return NULL;
}

static void test_listeners_of_threads(void **state)
{
    (void)state;
    struct loggers loggers = {.over = false};
    pthread_t threads[2];
    vkn_log_to(count_line, &loggers.line_counts[1]);
    for (size_t i = 0; i < BASE_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_repeatedly, &loggers), 0);
    for (unsigned i = 0; i < 2000; i++)
        vkn_log_to(count_line, &loggers.line_counts[i % 2]);
    vkn_log_to(count_line, &loggers.line_counts[0]);
    unsigned before = atomic_load(&loggers.line_counts[1]); /* a replaced listener is not called */
    while (atomic_load(&loggers.line_counts[0]) < 10)
        sched_yield();
    assert_int_equal(atomic_load(&loggers.line_counts[1]), before);
    atomic_store(&loggers.over, true);
    for (size_t i = 0; i < BASE_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    vkn_log_to(NULL, NULL);
}

/* ---- callbacks of a training ----------------------------------------------------------------- */

static void check_report(void *context, const struct vkn_train_stats *stats)
{
    struct objects *o = context;
    o->reports++;
    refuse_device_calls(o, 0, "called by the callback `report` of vkn_trainer_run");
    keeps(vkn_trainer_destroy, o->tiny.trainer,
          "called by the callback `report` of vkn_trainer_run");
    /* Calls that only read are allowed. */
    struct vkn_images images = {.size = sizeof images};
    ok(vkn_trainer_images(o->trainer, &images));
    assert_int_equal(vkn_trainer_step(o->trainer), stats->step);
    struct vkn_vulkan vulkan = {0};
    ok(vkn_context_vulkan(context_of(o), &vulkan));
}

static double check_due(void *context)
{
    struct objects *o = context;
    o->asked++;
    refuse_device_calls(o, 0, "called by the callback `due` of vkn_trainer_run");
    return 0;
}

static void *use_in_thread(void *context)
{
    struct objects *o = context;
    refuse_device_calls(o, 0, "another thread is using the context");
    keeps(vkn_trainer_destroy, o->tiny.trainer, "another thread is using the context");
    keeps(vkn_renderer_destroy, o->renderer, "another thread is using the context");
    keeps(vkn_stepper_destroy, o->stepper, "another thread is using the context");
    keeps(vkn_adam_destroy, o->adam, "another thread is using the context");
    return NULL;
}

static vkn_status check_visit(void *context)
{
    struct objects *o = context;
    pthread_t thread;
    if (o->visits++ > 0)
        return VKN_OK;
    refuse_device_calls(
        o, IN_TRAINING,
        "called by the callback `between_steps` of vkn_trainer_run, for the object");
    keeps(vkn_trainer_destroy, o->tiny.trainer,
          "called by the callback `between_steps` of vkn_trainer_run");
    ok(save_trainer(o));
    ok(show_trainer(o));
    ok(render(o));
    ok(step_adam(o));
    assert_int_equal(pthread_create(&thread, NULL, use_in_thread, o), 0);
    pthread_join(thread, NULL);
    /* The trainer keeps the scene and the device alive after the caller has released the others. */
    vkn_scene_close(&o->tiny.scene);
    vkn_renderer_destroy(&o->renderer);
    assert_true(!o->tiny.scene && !o->renderer);
    ok(vkn_renderer_open(context_of(o), o->checkpoint, VKN_PRECISION_AUTO, &o->renderer));
    return VKN_OK;
}

static void test_training(void **state)
{
    struct objects o = make(*state);
    const struct vkn_train_run run = {.size = sizeof run,
                                      .until_step = 20,
                                      .report_seconds = 1e-6,
                                      .report = check_report,
                                      .context = &o,
                                      .due = check_due,
                                      .between_steps = check_visit};
    ok(vkn_trainer_run(o.trainer, &run));
    assert_int_equal(vkn_trainer_step(o.trainer), 20);
    assert_true(o.visits > 0 && o.reports > 0 && o.asked > 0);
    ok(run_trainer(&o)); /* the trainer runs again without callbacks */
    end(&o);
}

/* ---- callbacks of a stepper ------------------------------------------------------------------ */

static vkn_status check_density(void *user, const struct vkn_samples *samples)
{
    struct objects *o = user;
    memset(samples->densities.data, 0, 4u * samples->count);
    if (o->evaluated++ > 0)
        return VKN_OK;
    refuse_device_calls(o, OF_STEPPER,
                        "called by the callback `density` of vkn_stepper_update_grid");
    keeps(vkn_stepper_destroy, o->stepper, "called by the callback `density`");
    ok(step_adam(o));
    return VKN_OK;
}

static vkn_status check_field_values(void *user, const struct vkn_samples *samples)
{
    struct objects *o = user;
    memset(samples->values.data, 0, 16u * samples->count);
    if (o->evaluated++ > 0)
        return VKN_OK;
    refuse_device_calls(o, OF_STEPPER, "called by the callback `field` of vkn_stepper_render");
    keeps(vkn_stepper_destroy, o->stepper, "called by the callback `field`");
    return VKN_OK;
}

static void test_stepper(void **state)
{
    struct objects o = make(*state);
    struct vkn_picture *picture = NULL;
    ok(vkn_stepper_render(o.stepper, &o.camera, NULL, check_field_values, &o, &picture));
    assert_true(o.evaluated > 0);
    vkn_picture_free(&picture);
    o.evaluated = 0;
    ok(vkn_stepper_update_grid(o.stepper, check_density, &o));
    assert_true(o.evaluated > 0);
    end(&o);
}

/* ---- forked processes ------------------------------------------------------------------------ */

/* Ends by _exit(): an exit handler of Mesa's waits for threads that the child does not have, and
 * crashes. */
static void test_in_child(struct objects *o)
{
    struct vkn_vulkan vulkan = {0};
    vkn_context *context = NULL;
    alarm(60);
    refuse_device_calls(o, 0, "does not survive fork()");
    expect_refused(vkn_context_vulkan(context_of(o), &vulkan), "vkn_context_vulkan",
                   "does not survive fork()");
    vkn_context *shared = o->tests->context;
    vkn_adam_destroy(&o->adam);
    vkn_stepper_destroy(&o->stepper);
    vkn_renderer_destroy(&o->renderer);
    vkn_trainer_destroy(&o->tiny.trainer);
    vkn_context_destroy(&shared);
    assert_true(!o->adam && !o->stepper && !o->renderer && !o->tiny.trainer && !shared);
    if (failures > 0)
        _exit(1);
#if defined(__SANITIZE_THREAD__) /* ThreadSanitizer ends a forked process that starts threads */
    _exit(42);
#endif
    /* The child may create a context of its own. */
    vkn_renderer *renderer = NULL;
    struct vkn_picture *picture = NULL;
    ok(vkn_context_create(NULL, &context));
    ok(vkn_renderer_open(context, o->checkpoint, VKN_PRECISION_AUTO, &renderer));
    ok(vkn_render(renderer, &o->camera, NULL, &picture));
    vkn_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
    vkn_context_destroy(&context);
    _exit(42);
}

static void test_fork(void **state)
{
    struct objects o = make(*state);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        test_in_child(&o);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
        fail_msg("the child's status is %x", (unsigned)status);
    ok(render(&o)); /* the parent's objects still work */
    ok(run_trainer(&o));
    end(&o);
}

int main(void)
{
    alarm(300); /* these tests hung in earlier versions */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),      cmocka_unit_test(test_listeners_of_threads),
        cmocka_unit_test(test_training), cmocka_unit_test(test_stepper),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
