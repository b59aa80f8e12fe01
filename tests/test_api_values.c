/* Gives every member of the public API's input structures invalid values: the call is refused with
 * a message that names the member. tests/test_api_sweep.py checks that the tables have every
 * member. */
#include "step_fixture.h"

#include <limits.h>
#include <sys/stat.h>

#include <vknerf/vknerf.h>

/* The invalid values that are tried for a member. */
enum kind {
    CHOICE, /* an enumeration: values without an enumerator */
    REAL,   /* a double of any sign: NaN and infinities */
    AMOUNT, /* a double that must not be negative: also -1 */
    FACTOR, /* as AMOUNT, but a float */
    LIMIT,  /* a uint32_t with an upper limit: UINT32_MAX */
    ANY,    /* not tried: every value is valid, or only the device decides what is too large */
};

struct member {
    const char *name;
    enum kind kind;
    size_t offset, count;
};
#define MEMBER(structure, member, kind) {#member, kind, offsetof(struct structure, member), 1}
#define ARRAY(structure, member, kind)                  \
    {#member, kind, offsetof(struct structure, member), \
     sizeof(((struct structure *)NULL)->member) / sizeof(((struct structure *)NULL)->member[0])}

/* ---- calls ----------------------------------------------------------------------------------- */

static const struct step_tests *tests;
static struct tiny tiny;
static vkn_renderer *renderer;
static struct vkn_camera camera;
static const struct vkn_job quiet = {.quiet = true};

#define NOWHERE "no/such/place"

static vkn_status render_with(const struct vkn_camera *from,
                              const struct vkn_picture_params *params)
{
    struct vkn_picture *picture = NULL;
    vkn_status status = vkn_render(renderer, from, params, &picture);
    vkn_picture_free(&picture);
    return status;
}
static vkn_status call_vkn_camera(const void *given)
{
    return render_with(given, NULL);
}
static vkn_status call_vkn_picture_params(const void *given)
{
    return render_with(&camera, given);
}
static vkn_status call_vkn_points(const void *given)
{
    return vkn_renderer_query(renderer, given);
}
static vkn_status call_vkn_rays(const void *given)
{
    return vkn_render_rays(renderer, given, NULL);
}
static vkn_status call_vkn_tensor(const void *given)
{
    return vkn_trainer_tensor(tiny.trainer, 0, (struct vkn_tensor *)(uintptr_t)given);
}
static vkn_status call_vkn_occupancy(const void *given)
{
    return vkn_trainer_occupancy(tiny.trainer, (struct vkn_occupancy *)(uintptr_t)given);
}
static vkn_status call_vkn_stepper_rays(const void *given)
{
    vkn_stepper *stepper = NULL;
    const struct vkn_samples *samples = NULL;
    const struct vkn_config config = tiny_config(true);
    ok(vkn_stepper_create(tests->context, tiny.scene, &config, NULL, &stepper));
    vkn_status status = vkn_stepper_sample_rays(stepper, given, &samples);
    vkn_stepper_destroy(&stepper);
    return status;
}
static vkn_status call_vkn_train_run(const void *given)
{
    return vkn_trainer_run(tiny.trainer, given);
}
static vkn_status call_vkn_adam_params(const void *given)
{
    vkn_adam *adam = NULL;
    vkn_status status = vkn_adam_create(tests->context, given, &adam);
    vkn_adam_destroy(&adam);
    return status;
}
static vkn_status call_vkn_stepper_params(const void *given)
{
    vkn_stepper *stepper = NULL;
    const struct vkn_config config = tiny_config(true);
    vkn_status status = vkn_stepper_create(tests->context, tiny.scene, &config, given, &stepper);
    vkn_stepper_destroy(&stepper);
    return status;
}
static vkn_status call_vkn_view(const void *given)
{
    vkn_scene *scene = NULL;
    const struct vkn_view *views[] = {given};
    vkn_status status = vkn_scene_create("memory", views, 1, NULL, &scene);
    vkn_scene_close(&scene);
    return status;
}
static vkn_status call_vkn_eval_params(const void *given)
{
    struct vkn_evaluation *evaluation = NULL;
    return vkn_run_eval(given, &evaluation);
}
static vkn_status call_vkn_render_params(const void *given)
{
    struct vkn_render_result result = {0};
    return vkn_run_render(given, &result);
}
static vkn_status call_vkn_export_params(const void *given)
{
    struct vkn_export_result result = {0};
    return vkn_run_export(given, &result);
}
static vkn_status call_vkn_prepare_params(const void *given)
{
    struct vkn_prepare_result result = {0};
    return vkn_prepare(given, &result);
}
static vkn_status call_vkn_refine_params(const void *given)
{
    struct vkn_refine_result result = {0};
    return vkn_refine(given, &result);
}
static vkn_status call_vkn_scene_info_params(const void *given)
{
    char *json = NULL;
    return vkn_scene_info_json(given, &json);
}
static vkn_status call_vkn_bench_params(const void *given)
{
    char *json = NULL;
    return vkn_bench(given, &json);
}
static vkn_status call_vkn_certify_params(const void *given)
{
    char *json = NULL;
    return vkn_certify(given, &json);
}
static vkn_status call_vkn_batch_params(const void *given)
{
    struct vkn_batch_search *search = NULL;
    vkn_status status = vkn_find_batch(given, &search);
    vkn_batch_search_free(&search);
    return status;
}
static vkn_status call_vkn_train_params(const void *given)
{
    struct vkn_train_result *result = NULL;
    vkn_status status = vkn_run_train(given, &result);
    vkn_train_result_free(&result);
    return status;
}
static vkn_status call_vkn_report_params(const void *given)
{
    char *file = NULL;
    return vkn_run_report(given, &file);
}
static vkn_status call_vkn_field(const void *given)
{
    return vkn_field_register(given, NULL);
}
static vkn_status call_vkn_job(const void *given)
{
    struct vkn_evaluation *evaluation = NULL;
    const struct vkn_eval_params params = {.size = sizeof params, .job = given, .run = NOWHERE};
    return vkn_run_eval(&params, &evaluation);
}
static vkn_status call_vkn_train_callbacks(const void *given)
{
    const struct vkn_train_params params = {
        .size = sizeof params, .job = &quiet, .scene = NOWHERE, .callbacks = given};
    return call_vkn_train_params(&params);
}
static vkn_status call_vkn_context_params(const void *given)
{
    char *json = NULL;
    vkn_status status = vkn_info_json(given, &json);
    vkn_free(json);
    return status;
}

/* Output structures: only `size` is read. */
static vkn_status call_vkn_images(const void *given)
{
    return vkn_trainer_images(tiny.trainer, (struct vkn_images *)(uintptr_t)given);
}
static vkn_status call_vkn_communication(const void *given)
{
    return vkn_trainer_communication(tiny.trainer, (struct vkn_communication *)(uintptr_t)given);
}
static vkn_status call_vkn_run_state(const void *given)
{
    return vkn_run_inspect(tests->folder->path, (struct vkn_run_state *)(uintptr_t)given);
}
static vkn_status call_vkn_scene_look(const void *given)
{
    return vkn_scene_find_look(tiny.scene, (struct vkn_scene_look *)(uintptr_t)given);
}
static vkn_status call_vkn_camera_path(const void *given)
{
    return vkn_scene_read_path(tiny.scene, NOWHERE, NULL,
                               (struct vkn_camera_path *)(uintptr_t)given);
}
static vkn_status call_vkn_setting(const void *given)
{
    return vkn_config_setting(0, (vkn_setting *)(uintptr_t)given);
}
static vkn_status call_vkn_vulkan(const void *given)
{
    return vkn_context_vulkan(tests->context, (struct vkn_vulkan *)(uintptr_t)given);
}
static vkn_status call_vkn_render_result(const void *given)
{
    return vkn_run_render(&(struct vkn_render_params){.run = NOWHERE, .out = NOWHERE},
                          (struct vkn_render_result *)(uintptr_t)given);
}
static vkn_status call_vkn_export_result(const void *given)
{
    return vkn_run_export(&(struct vkn_export_params){.run = NOWHERE, .mesh = "a.ply"},
                          (struct vkn_export_result *)(uintptr_t)given);
}
static vkn_status call_vkn_prepare_result(const void *given)
{
    return vkn_prepare(&(struct vkn_prepare_params){.pictures = NOWHERE, .out = NOWHERE},
                       (struct vkn_prepare_result *)(uintptr_t)given);
}
static vkn_status call_vkn_refine_result(const void *given)
{
    const struct vkn_train_params train = {.scene = NOWHERE, .out = NOWHERE};
    return vkn_refine(&(struct vkn_refine_params){.train = &train},
                      (struct vkn_refine_result *)(uintptr_t)given);
}
static vkn_status call_vkn_adam_result(const void *given)
{
    vkn_adam *adam = NULL;
    ok(vkn_adam_create(tests->context, &(struct vkn_adam_params){.count = 4}, &adam));
    vkn_status status = vkn_adam_step(adam, 0, (struct vkn_adam_result *)(uintptr_t)given);
    vkn_adam_destroy(&adam);
    return status;
}

/* ---- structures ------------------------------------------------------------------------------ */

static double no_visit(void *context)
{
    (void)context;
    return HUGE_VAL;
}
static vkn_status visit_nothing(void *context, vkn_trainer *trainer, bool *save)
{
    (void)context;
    (void)trainer;
    *save = false;
    return VKN_OK;
}

static const char *const runs[] = {NOWHERE};
static uint8_t pixels[4 * 12 * 10];

/* Valid structures: the call fails with the message `ends`, or returns VKN_OK if it is NULL. */
static struct vkn_camera right_camera;
static struct vkn_picture_params right_picture = {.size = sizeof right_picture};
static const double one_vector[3] = {0, 0, 1};
static float one_value;
static struct vkn_points right_points = {
    .size = sizeof right_points, .count = 1, .positions = one_vector, .densities = &one_value};
static struct vkn_rays right_rays = {.size = sizeof right_rays,
                                     .count = 1,
                                     .origins = one_vector,
                                     .directions = one_vector,
                                     .opacities = &one_value};
static struct vkn_tensor right_tensor;
static struct vkn_occupancy right_occupancy;
static const float one_direction[3] = {0, 0, 1};
static struct vkn_stepper_rays right_stepper_rays = {.size = sizeof right_stepper_rays,
                                                     .count = 1,
                                                     .origins = one_direction,
                                                     .directions = one_direction};
static struct vkn_train_run right_run = {.size = sizeof right_run, .until_step = 1};
static struct vkn_adam_params right_adam = {.size = sizeof right_adam, .count = 4};
static struct vkn_stepper_params right_stepper = {.size = sizeof right_stepper};
static struct vkn_view right_view = {
    .size = sizeof right_view, .camera = &camera, .pixels = pixels};
static struct vkn_eval_params right_eval = {
    .size = sizeof right_eval, .job = &quiet, .run = NOWHERE};
static struct vkn_render_params right_render = {
    .size = sizeof right_render, .job = &quiet, .run = NOWHERE, .out = NOWHERE, .video = "a.mp4"};
static struct vkn_export_params right_export = {
    .size = sizeof right_export, .job = &quiet, .run = NOWHERE, .mesh = "a.glb", .texture = 1};
static struct vkn_prepare_params right_prepare = {
    .size = sizeof right_prepare, .job = &quiet, .pictures = NOWHERE, .out = NOWHERE};
static struct vkn_train_params refining = {
    .size = sizeof refining, .job = &quiet, .scene = NOWHERE, .out = NOWHERE};
static struct vkn_refine_params right_refine = {.size = sizeof right_refine, .train = &refining};
static struct vkn_scene_info_params right_info = {.size = sizeof right_info, .scene = NOWHERE};
static struct vkn_bench_params right_bench = {
    .size = sizeof right_bench, .job = &quiet, .suite = VKN_BENCH_SAMPLING, .scene = NOWHERE};
static const char *const words[] = {NOWHERE};
static struct vkn_certify_params right_certify = {.size = sizeof right_certify,
                                                  .job = &quiet,
                                                  .command = words,
                                                  .command_count = 1,
                                                  .scene = NOWHERE,
                                                  .out = NOWHERE};
static struct vkn_train_params right_train = {
    .size = sizeof right_train, .job = &quiet, .scene = NOWHERE};
static struct vkn_batch_params right_batch = {.size = sizeof right_batch, .train = &right_train};
static struct vkn_report_params right_report = {
    .size = sizeof right_report, .runs = runs, .run_count = 1};
static struct vkn_field right_field = {.size = sizeof right_field,
                                       .text = "void encode() {} void encode_backward() {}",
                                       .parameters = 2,
                                       .features = 2};
static struct vkn_job right_job = {.size = sizeof right_job, .quiet = true};
static struct vkn_train_callbacks right_callbacks = {
    .size = sizeof right_callbacks, .due = no_visit, .between_steps = visit_nothing};
static struct vkn_context_params right_context = {.size = sizeof right_context};
static struct vkn_images right_images;
static struct vkn_communication right_communication;
static struct vkn_run_state right_state;
static struct vkn_scene_look right_look;
static struct vkn_camera_path right_path;
static vkn_setting right_setting;
static struct vkn_vulkan right_vulkan;
static struct vkn_render_result right_rendered;
static struct vkn_export_result right_exported;
static struct vkn_prepare_result right_prepared;
static struct vkn_refine_result right_refined;
static struct vkn_adam_result right_stepped;

static const struct member camera_members[] = {
    MEMBER(vkn_camera, width, ANY),     MEMBER(vkn_camera, height, ANY),
    MEMBER(vkn_camera, focal_x, REAL),  MEMBER(vkn_camera, focal_y, AMOUNT),
    MEMBER(vkn_camera, center_x, REAL), MEMBER(vkn_camera, center_y, REAL),
    MEMBER(vkn_camera, lens, CHOICE),   MEMBER(vkn_camera, k1, REAL),
    MEMBER(vkn_camera, k2, REAL),       MEMBER(vkn_camera, p1, REAL),
    MEMBER(vkn_camera, p2, REAL),       MEMBER(vkn_camera, k3, REAL),
    MEMBER(vkn_camera, k4, REAL),       MEMBER(vkn_camera, time, AMOUNT),
    ARRAY(vkn_camera, pose, REAL),      MEMBER(vkn_camera, sx1, REAL),
    MEMBER(vkn_camera, sy1, REAL)};
static const struct member picture_members[] = {
    MEMBER(vkn_picture_params, background, CHOICE), MEMBER(vkn_picture_params, supersample, LIMIT),
    ARRAY(vkn_picture_params, crop, REAL), MEMBER(vkn_picture_params, exposure, REAL),
    ARRAY(vkn_picture_params, crop_rotation, REAL)};
static const struct member run_members[] = {MEMBER(vkn_train_run, until_step, ANY),
                                            MEMBER(vkn_train_run, seconds, AMOUNT),
                                            MEMBER(vkn_train_run, report_seconds, AMOUNT)};
static const struct member adam_members[] = {
    MEMBER(vkn_adam_params, count, LIMIT),          MEMBER(vkn_adam_params, entry, LIMIT),
    MEMBER(vkn_adam_params, learning_rate, FACTOR), MEMBER(vkn_adam_params, beta1, FACTOR),
    MEMBER(vkn_adam_params, beta2, FACTOR),         MEMBER(vkn_adam_params, epsilon, FACTOR),
    MEMBER(vkn_adam_params, weight_decay, FACTOR),  MEMBER(vkn_adam_params, clip_norm, FACTOR)};
static const struct member view_members[] = {MEMBER(vkn_view, split, CHOICE)};
static const struct member eval_members[] = {
    MEMBER(vkn_eval_params, format, CHOICE), MEMBER(vkn_eval_params, split, CHOICE),
    MEMBER(vkn_eval_params, background, CHOICE), MEMBER(vkn_eval_params, precision, CHOICE),
    MEMBER(vkn_eval_params, stride, ANY)};
static const struct member render_members[] = {
    MEMBER(vkn_render_params, format, CHOICE),     MEMBER(vkn_render_params, split, CHOICE),
    MEMBER(vkn_render_params, orbit, LIMIT),       MEMBER(vkn_render_params, interpolate, LIMIT),
    MEMBER(vkn_render_params, time, ANY),          MEMBER(vkn_render_params, fps, AMOUNT),
    MEMBER(vkn_render_params, background, CHOICE), MEMBER(vkn_render_params, precision, CHOICE),
    MEMBER(vkn_render_params, supersample, LIMIT), MEMBER(vkn_render_params, width, ANY),
    MEMBER(vkn_render_params, height, ANY),        ARRAY(vkn_render_params, crop, REAL),
    MEMBER(vkn_render_params, lens, CHOICE),       MEMBER(vkn_render_params, exposure, REAL),
    ARRAY(vkn_render_params, crop_rotation, REAL)};
static const struct member export_members[] = {MEMBER(vkn_export_params, format, CHOICE),
                                               MEMBER(vkn_export_params, precision, CHOICE),
                                               ARRAY(vkn_export_params, crop_low, REAL),
                                               ARRAY(vkn_export_params, crop_high, REAL),
                                               MEMBER(vkn_export_params, resolution, ANY),
                                               MEMBER(vkn_export_params, threshold, AMOUNT),
                                               MEMBER(vkn_export_params, time, ANY),
                                               MEMBER(vkn_export_params, unseen, CHOICE),
                                               MEMBER(vkn_export_params, min_component, AMOUNT),
                                               MEMBER(vkn_export_params, point_count, ANY),
                                               MEMBER(vkn_export_params, seed, ANY),
                                               MEMBER(vkn_export_params, texture, ANY),
                                               MEMBER(vkn_export_params, unit_length, AMOUNT),
                                               ARRAY(vkn_export_params, crop_rotation, REAL)};
static const struct member prepare_members[] = {MEMBER(vkn_prepare_params, frames, ANY),
                                                MEMBER(vkn_prepare_params, matcher, CHOICE),
                                                MEMBER(vkn_prepare_params, camera_model, CHOICE),
                                                MEMBER(vkn_prepare_params, unit_length, AMOUNT)};
static const struct member refine_members[] = {MEMBER(vkn_refine_params, seeds, LIMIT)};
static const struct member info_members[] = {
    MEMBER(vkn_scene_info_params, format, CHOICE), MEMBER(vkn_scene_info_params, downscale, ANY),
    MEMBER(vkn_scene_info_params, scale, FACTOR), MEMBER(vkn_scene_info_params, aabb_scale, ANY),
    MEMBER(vkn_scene_info_params, unit_length, AMOUNT)};
static const struct member bench_members[] = {
    MEMBER(vkn_bench_params, suite, CHOICE),    MEMBER(vkn_bench_params, precision, CHOICE),
    MEMBER(vkn_bench_params, batch, ANY),       MEMBER(vkn_bench_params, width, ANY),
    MEMBER(vkn_bench_params, depth, ANY),       MEMBER(vkn_bench_params, log2_entries, ANY),
    MEMBER(vkn_bench_params, repetitions, ANY), MEMBER(vkn_bench_params, seeds, ANY),
    MEMBER(vkn_bench_params, format, CHOICE)};
static const struct member certify_members[] = {MEMBER(vkn_certify_params, limit, ANY),
                                                MEMBER(vkn_certify_params, command_count, ANY)};
static const struct member batch_members[] = {MEMBER(vkn_batch_params, memory_budget, ANY),
                                              MEMBER(vkn_batch_params, seconds, AMOUNT)};
static const struct member train_members[] = {MEMBER(vkn_train_params, command_count, LIMIT)};
static const struct member report_members[] = {MEMBER(vkn_report_params, run_count, ANY)};
static const struct member field_members[] = {
    MEMBER(vkn_field, parameters, LIMIT), MEMBER(vkn_field, features, LIMIT),
    MEMBER(vkn_field, entry, LIMIT), MEMBER(vkn_field, initial, FACTOR)};

#define NONE        NULL, 0
#define OF(members) members, BASE_COUNT(members)
#define STRUCTURE(structure, right, members, ends) \
    {#structure, call_##structure, &(right), sizeof(right), members, ends}
static const struct structure {
    const char *name;
    vkn_status (*call)(const void *given);
    const void *right;
    size_t size;
    const struct member *members;
    size_t member_count;
    const char *ends;
} structures[] = {
    STRUCTURE(vkn_camera, right_camera, OF(camera_members), NULL),
    STRUCTURE(vkn_picture_params, right_picture, OF(picture_members), NULL),
    STRUCTURE(vkn_points, right_points, NONE, NULL),
    STRUCTURE(vkn_tensor, right_tensor, NONE, NULL),
    STRUCTURE(vkn_occupancy, right_occupancy, NONE, NULL),
    STRUCTURE(vkn_stepper_rays, right_stepper_rays, NONE, NULL),
    STRUCTURE(vkn_rays, right_rays, NONE, NULL),
    STRUCTURE(vkn_train_run, right_run, OF(run_members), NULL),
    STRUCTURE(vkn_adam_params, right_adam, OF(adam_members), NULL),
    STRUCTURE(vkn_stepper_params, right_stepper, NONE, NULL),
    STRUCTURE(vkn_view, right_view, OF(view_members), NULL),
    STRUCTURE(vkn_eval_params, right_eval, OF(eval_members), NOWHERE),
    STRUCTURE(vkn_render_params, right_render, OF(render_members), NOWHERE),
    STRUCTURE(vkn_export_params, right_export, OF(export_members), NOWHERE),
    STRUCTURE(vkn_prepare_params, right_prepare, OF(prepare_members), NOWHERE),
    STRUCTURE(vkn_refine_params, right_refine, OF(refine_members), NOWHERE),
    STRUCTURE(vkn_scene_info_params, right_info, OF(info_members), NOWHERE),
    STRUCTURE(vkn_bench_params, right_bench, OF(bench_members), NOWHERE),
    STRUCTURE(vkn_certify_params, right_certify, OF(certify_members), NOWHERE),
    STRUCTURE(vkn_batch_params, right_batch, OF(batch_members), NOWHERE),
    STRUCTURE(vkn_train_params, right_train, OF(train_members), NOWHERE),
    STRUCTURE(vkn_report_params, right_report, OF(report_members), NOWHERE),
    STRUCTURE(vkn_field, right_field, OF(field_members), NULL),
    STRUCTURE(vkn_job, right_job, NONE, NOWHERE),
    STRUCTURE(vkn_train_callbacks, right_callbacks, NONE, NOWHERE),
    STRUCTURE(vkn_context_params, right_context, NONE, NULL),
    STRUCTURE(vkn_images, right_images, NONE, NULL),
    STRUCTURE(vkn_communication, right_communication, NONE, NULL),
    STRUCTURE(vkn_run_state, right_state, NONE, NULL),
    STRUCTURE(vkn_scene_look, right_look, NONE, NULL),
    STRUCTURE(vkn_camera_path, right_path, NONE, NOWHERE),
    STRUCTURE(vkn_setting, right_setting, NONE, NULL),
    STRUCTURE(vkn_vulkan, right_vulkan, NONE, NULL),
    STRUCTURE(vkn_render_result, right_rendered, NONE, NOWHERE),
    STRUCTURE(vkn_export_result, right_exported, NONE, NOWHERE),
    STRUCTURE(vkn_prepare_result, right_prepared, NONE, NOWHERE),
    STRUCTURE(vkn_refine_result, right_refined, NONE, NOWHERE),
    STRUCTURE(vkn_adam_result, right_stepped, NONE, NULL),
};

/* ---- sweeps ---------------------------------------------------------------------------------- */

/* Returns a copy of the valid structure, whose one member the caller makes invalid and frees. */
static unsigned char *copy_of(const struct structure *s)
{
    unsigned char *copy = base_alloc(1, s->size);
    memcpy(copy, s->right, s->size);
    return copy;
}

static unsigned failures;

static void expect(const struct structure *s, const void *given, const char *named,
                   const char *what)
{
    base_fail(VKN_OK, "%s", "");
    vkn_status status = s->call(given);
    if (status == VKN_BAD_INPUT && strstr(vkn_last_error(), named))
        return;
    failures++;
    print_message("struct %s with %s: status %d: %s\n", s->name, what, (int)status,
                  vkn_last_error());
}

static void test_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(structures); i++) {
        const struct structure *s = &structures[i];
        unsigned char *copy = copy_of(s);
        vkn_status status = s->call(copy);
        if (s->ends ? status == VKN_OK || !strstr(vkn_last_error(), s->ends) : status != VKN_OK)
            fail_msg("struct %s: status %d: %s", s->name, (int)status, vkn_last_error());
        free(copy);
    }
}

static void test_sizes(void **state)
{
    static const size_t sizes[] = {1, sizeof(size_t), 65537, (size_t)1 << 40, SIZE_MAX};
    (void)state;
    failures = 0;
    for (size_t i = 0; i < BASE_COUNT(structures); i++)
        for (size_t k = 0; k < BASE_COUNT(sizes); k++) {
            unsigned char *copy = copy_of(&structures[i]);
            char what[64], message[128];
            snprintf(what, sizeof what, "size %zu", sizes[k]);
            snprintf(message, sizeof message,
                     "struct %s: its member `size` is %zu, must be 0 or its sizeof, at least ",
                     structures[i].name, sizes[k]);
            memcpy(copy, &sizes[k], sizeof sizes[k]);
            expect(&structures[i], copy, message, what);
            free(copy);
        }
    assert_int_equal(failures, 0);
}

/* Returns the member's name in messages, some of which use the command line's name. */
static const char *named(const char *member)
{
    return strcmp(member, "min_component") == 0 ? "min" : member;
}

/* The last message says which numbers are accepted. */
static void expect_range(const struct structure *s, const char *what)
{
    static const char *const ranges[] = {" to ",      " at least ", " at most ", " more than ",
                                         " positive", " negative",  " finite",   " above ",
                                         " or ",      " is NULL"};
    for (size_t i = 0; i < BASE_COUNT(ranges); i++)
        if (strstr(vkn_last_error(), ranges[i]))
            return;
    failures++;
    print_message("struct %s with %s: no range: %s\n", s->name, what, vkn_last_error());
}

static void try_double(const struct structure *s, const struct member *m, double value)
{
    for (size_t i = 0; i < m->count; i++) {
        unsigned char *copy = copy_of(s);
        char what[96];
        const float narrow = (float)value;
        snprintf(what, sizeof what, "%s[%zu] %g", m->name, i, value);
        if (m->kind == FACTOR)
            memcpy(copy + m->offset + i * sizeof narrow, &narrow, sizeof narrow);
        else
            memcpy(copy + m->offset + i * sizeof value, &value, sizeof value);
        expect(s, copy, named(m->name), what);
        expect_range(s, what);
        free(copy);
    }
}

static void try_number(const struct structure *s, const struct member *m, uint32_t value)
{
    unsigned char *copy = copy_of(s);
    char what[96];
    snprintf(what, sizeof what, "%s %u", m->name, value);
    memcpy(copy + m->offset, &value, sizeof value);
    expect(s, copy, m->name, what);
    expect_range(s, what);
    free(copy);
}

static void test_members(void **state)
{
    (void)state;
    failures = 0;
    for (size_t i = 0; i < BASE_COUNT(structures); i++)
        for (size_t k = 0; k < structures[i].member_count; k++) {
            const struct structure *s = &structures[i];
            const struct member *m = &s->members[k];
            if (m->kind == CHOICE)
                for (uint32_t value = 99; value != 0; value = value == 99 ? UINT32_MAX : 0)
                    try_number(s, m, value);
            if (m->kind == LIMIT)
                try_number(s, m, UINT32_MAX);
            if (m->kind == REAL || m->kind == AMOUNT || m->kind == FACTOR)
                for (int n = 0; n < 3; n++)
                    try_double(s, m, n == 0 ? NAN : n == 1 ? INFINITY : -INFINITY);
            if (m->kind == AMOUNT || m->kind == FACTOR)
                try_double(s, m, -1);
        }
    assert_int_equal(failures, 0);
}

/* ---- settings -------------------------------------------------------------------------------- */

static bool names_file(const vkn_setting *setting)
{
    return strcmp(setting->key, "optimizer.rates") == 0 ||
           strcmp(setting->key, "loss_scale.schedule") == 0;
}

/* A setting refuses NaN and infinities; a number that it accepts reads back finite. */
static void test_settings(void **state)
{
    static const char *const texts[] = {"nan",   "-nan",   "inf",      "-inf",  "infinity",
                                        "1e999", "-1e999", "0x1p2000", "nan(1)"};
    static const double numbers[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, -1};
    (void)state;
    for (size_t i = 0; i < vkn_config_setting_count(); i++) {
        vkn_setting setting = {.size = sizeof setting};
        vkn_config *config = NULL;
        ok(vkn_config_setting(i, &setting));
        ok(vkn_config_create(&config));
        for (size_t k = 0; k < BASE_COUNT(texts); k++) {
            assert_int_equal(vkn_config_set(config, NULL, setting.key, texts[k]), VKN_BAD_INPUT);
            assert_error(names_file(&setting) ? "No such file" : setting.key);
        }
        for (size_t k = 0; k < BASE_COUNT(numbers); k++) {
            char *value = NULL;
            if (vkn_config_set_number(config, setting.key, numbers[k]) != VKN_OK) {
                assert_error(names_file(&setting) ? "No such file" : setting.key);
                continue;
            }
            ok(vkn_config_get(config, setting.key, &value));
            if (!isfinite(numbers[k]) || !isfinite(strtod(value, NULL)))
                fail_msg("%s takes %g: %s", setting.key, numbers[k], value);
            vkn_free(value);
        }
        vkn_config_destroy(&config);
    }
}

/* ---- arguments ------------------------------------------------------------------------------- */

#define refused(call, part)                           \
    do {                                              \
        base_fail(VKN_OK, "%s", "");                  \
        assert_int_equal((int)(call), VKN_BAD_INPUT); \
        assert_error(part);                           \
    } while (0)

static void test_arguments(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct vkn_picture *picture = NULL;
    vkn_renderer *none = NULL;
    vkn_adam *adam = NULL;
    float color[3] = {NAN, INFINITY, -1};
    struct vkn_picture one_pixel = {.width = 1, .height = 1, .color = color};
    const char *file = temporary_path(tests->folder, "own.png");
    for (size_t i = 0; i < BASE_COUNT(bad); i++) {
        for (int k = 0; k < 9; k++) {
            double vectors[3][3] = {{1, 2, 3}, {0}, {0, 1, 0}};
            vectors[k / 3][k % 3] = bad[i];
            refused(vkn_camera_look_at(&right_camera, vectors[0], vectors[1], vectors[2]),
                    "not all finite");
        }
        refused(vkn_renderer_set_time(renderer, bad[i]), "time");
        ok(vkn_adam_create(tests->context, &right_adam, &adam));
        refused(vkn_adam_step(adam, (float)bad[i], NULL), "learning_rate");
        vkn_adam_destroy(&adam);
    }
    refused(vkn_scene_image(tiny.scene, VKN_SPLIT_TRAIN, 0, (enum vkn_background)9, &picture),
            "background: 9");
    refused(vkn_scene_image(tiny.scene, (enum vkn_split)9, 0, VKN_BACKGROUND_WHITE, &picture),
            "split: 9");
    refused(vkn_renderer_open(tests->context, NOWHERE, (enum vkn_precision)9, &none),
            "precision: 9");
    refused(vkn_picture_write(&one_pixel, (enum vkn_map)9, file), "map: 9");
    assert_int_equal(vkn_scene_view_count(tiny.scene, (enum vkn_split)9), 0);
    assert_null(vkn_scene_image_file(tiny.scene, VKN_SPLIT_TRAIN, SIZE_MAX));
    refused(vkn_config_setting(SIZE_MAX, &(vkn_setting){0}), "settings");
    ok(vkn_picture_write(&one_pixel, VKN_MAP_COLOR, file)); /* NaN and infinite pixels are clamped,
                                                         not refused */
    one_pixel.width = 0;
    refused(vkn_picture_write(&one_pixel, VKN_MAP_COLOR, file), "width and height");
    refused(
        vkn_run_report(&(struct vkn_report_params){.runs = (const char *[]){NULL}, .run_count = 1},
                       &(char *){NULL}),
        "runs: number 0 is NULL");
    struct vkn_export_params unseen = {.mesh = "a.ply", .unseen = (enum vkn_unseen)9};
    assert_null(vkn_export_json(&unseen, &(struct vkn_export_result){0}));
    assert_error("unseen: 9");
    const struct vkn_camera wide = {.width = UINT32_MAX,
                                    .height = UINT32_MAX,
                                    .focal_x = 1,
                                    .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    refused(vkn_render(renderer, &wide, NULL, &picture), "4294967295 x 4294967295 pixels");
}

static int setup(void **state)
{
    if (step_tests_setup(state) != 0)
        return -1;
    const struct vkn_config config = tiny_config(true);
    tests = *state;
    char *program =
        base_path_join(tests->folder->path, "colmap"); /* vkn_prepare asks for it first */
    ok(base_file_replace(program, "#!/bin/sh\n", 10));
    chmod(program, 0700);
    setenv("PATH", tests->folder->path, 1);
    free(program);
    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    camera.size = sizeof camera;
    ok(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 0, &camera));
    right_camera = camera;
    return 0;
}

static int teardown(void **state)
{
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
    return step_tests_teardown(state);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_right),     cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_members),   cmocka_unit_test(test_settings),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(all, setup, teardown);
}
