/* Tests run folders: ownership and locks, what is saved and when, and what failed or killed runs
 * leave behind. Full disks and a stopped clock are simulated: the linker replaces fsync, open and
 * localtime_r (its option --wrap). Other processes are this program itself (act). */
#define _GNU_SOURCE // NOLINT(bugprone-reserved-identifier): declares pipe2
#include "step_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <time.h>

#include <cjson/cJSON.h>

#include <vknerf/run.h>

#include "report/report.h"
#include "report/run.h"
#include "run/internal.h"

/* ---- simulated faults ---------------------------------------------------------------------- */

static struct {
    unsigned saves;              /* checkpoints written so far */
    unsigned full_at, full_from; /* numbers of the saves that find the disk full; 0: none */
    unsigned stop_at, vanish_at; /* number of the save that stops the run, or removes its folder */
    unsigned open_pictures;      /* images that can still be opened */
    int checkpoint;              /* descriptor of the latest temporary file of a checkpoint */
    char *folder;
    bool old_model; /* a checkpoint existed when the folder was removed */
    volatile sig_atomic_t stop;
} faults = {.open_pictures = UINT_MAX, .checkpoint = -1};

static bool exists(const char *folder, const char *name)
{
    char *path = base_path_join(folder, name);
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

/* The names that the linker gives to a replaced function and to its replacement. On Windows macros
 * rename the functions. */
#define JOIN(prefix, name) prefix##name
#define REAL(name)         JOIN(__real_, name)
#define REPLACEMENT(name)  JOIN(__wrap_, name)

int REAL(fsync)(int descriptor);
int REPLACEMENT(fsync)(int descriptor);
int REPLACEMENT(fsync)(int descriptor)
{
    if (descriptor != faults.checkpoint)
        return REAL(fsync)(descriptor);
    unsigned save = ++faults.saves;
    if (save == faults.stop_at)
        faults.stop = 1;
    if (save == faults.vanish_at) {
        faults.old_model = exists(faults.folder, "checkpoint.safetensors");
        remove_tree(faults.folder);
    }
    if (save != faults.full_at && (faults.full_from == 0 || save < faults.full_from))
        return 0;
    errno = ENOSPC;
    return -1;
}

int REAL(open)(const char *path, int flags, ...);
int REPLACEMENT(open)(const char *path, int flags, ...);
int REPLACEMENT(open)(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
    va_end(more);
    bool picture = strstr(path, "/train/") != NULL;
    if (picture && faults.open_pictures == 0) {
        errno = EMFILE;
        return -1;
    }
    faults.open_pictures -= picture;
    int descriptor = REAL(open)(path, flags, mode);
    if (strstr(path, "/checkpoint.safetensors.") != NULL)
        faults.checkpoint = descriptor;
    else if (descriptor == faults.checkpoint)
        faults.checkpoint = -1;
    return descriptor;
}

/* Every run begins in the same second. */
struct tm *REPLACEMENT(localtime_r)(const time_t *now, struct tm *local);
struct tm *REPLACEMENT(localtime_r)(const time_t *now, struct tm *local)
{
    (void)now;
    *local = (struct tm){.tm_year = 123, .tm_mon = 10, .tm_mday = 14, .tm_hour = 22};
    return local;
}

/* ---- other processes ------------------------------------------------------------------------- */

static char *own_path;

/* A program that waits, and holds the lock of a folder if it is given one. */
struct other {
    struct base_process process;
    long number;
};

/* Acts as the other process: prints its number once it has the lock. */
static int act(int count, char **arguments)
{
    struct run_lock lock = {0};
    if (count > 2 && run_lock_take(arguments[2], &lock) != VKN_OK)
        return 1;
    printf("%ld\n", (long)getpid());
    fflush(stdout);
    nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    return 0;
}

static struct other start_other(char *folder)
{
    char *arguments[] = {own_path, "wait", folder, NULL}, line[32] = "";
    struct other other = {0};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const int streams[3] = {-1, ends[1], -1};
    assert_int_equal(base_program_start(own_path, arguments, streams, -1, &other.process), 0);
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    assert_non_null(output);
    assert_non_null(fgets(line, sizeof line, output));
    fclose(output);
    other.number = strtol(line, NULL, 10);
    assert_true(other.number > 1 && other.number != (long)getpid());
    return other;
}

static void kill_other(struct other *other)
{
    char how[BASE_HOW_SIZE];
    base_program_end(&other->process, true);
    assert_true(base_program_ended(&other->process, true, how));
    assert_string_not_equal(how, "");
}

/* ---- messages ------------------------------------------------------------------------------ */

static int real_stderr = -1;

static void begin_messages(struct step_tests *tests)
{
    char *path = temporary_path(tests->folder, "messages");
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    real_stderr = dup(STDERR_FILENO);
    assert_true(file >= 0 && real_stderr >= 0 && dup2(file, STDERR_FILENO) >= 0);
    close(file);
}

static void end_messages(struct step_tests *tests, const char *part)
{
    char *text;
    size_t size;
    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    ok(base_file_read(temporary_path(tests->folder, "messages"), 1 << 20, &text, &size));
    if (!strstr(text, part))
        fail_msg("\"%s\" is not among the messages: %s", part, text);
    free(text);
}

/* ---- runs ---------------------------------------------------------------------------------- */

static struct vkn_config requested; /* of the latest params_of */
static struct vkn_job job;

static struct vkn_train_params params_of(struct step_tests *tests, const char *out, uint32_t steps)
{
    requested = tiny_config(false);
    requested.steps = steps;
    requested.log.tensorboard = VKN_SWITCH_OFF;
    requested.save_every = 16;
    job = (struct vkn_job){.quiet = true};
    return (struct vkn_train_params){
        .scene = tests->folder->path, .out = out, .job = &job, .config = &requested};
}

static char first_out[64]; /* of test_kept */

/* Trains; returns the status, and in `folder`, unless it is NULL, the run directory. */
static vkn_status train(const struct vkn_train_params *params, char folder[64])
{
    struct vkn_train_result *result;
    vkn_status status = vkn_run_train(params, &result);
    if (folder)
        snprintf(folder, 64, "%s", result->folder);
    vkn_train_result_free(&result);
    return status;
}

static ino_t number_of(const char *folder, const char *name)
{
    char *path = base_path_join(folder, name);
    struct stat information;
    assert_int_equal(stat(path, &information), 0);
    free(path);
    return information.st_ino;
}

/* ---- saving -------------------------------------------------------------------------------- */

/* The latest progress of each kind of work, and the steps of the latest statistics. */
struct told {
    struct counted {
        const char *what;
        size_t done, total;
    } counts[4];
    uint64_t step;
};

static void keep_progress(void *context, const char *what, size_t done, size_t total)
{
    struct told *told = context;
    for (size_t i = 0; i < sizeof told->counts / sizeof told->counts[0]; i++)
        if (strcmp(told->counts[i].what, what) == 0)
            told->counts[i] = (struct counted){told->counts[i].what, done, total};
}

static void keep_step(void *context, const struct vkn_train_stats *stats)
{
    ((struct told *)context)->step = stats->step;
}

/* Trains, and tests what the callbacks of progress and statistics were told. */
static void train_and_tell(const struct vkn_train_params *given)
{
    struct told told = {{{"decoding images", 0, 0},
                         {"compiling pipelines", 0, 0},
                         {"training", 0, 0},
                         {"evaluating", 0, 0}},
                        0};
    const struct vkn_job telling = {.size = sizeof telling,
                                    .quiet = true,
                                    .progress = keep_progress,
                                    .progress_context = &told};
    const struct vkn_train_callbacks callbacks = {
        .size = sizeof callbacks, .context = &told, .report = keep_step};
    struct vkn_train_params params = *given;
    params.size = sizeof params;
    params.job = &telling;
    params.callbacks = &callbacks;
    ok(train(&params, first_out));
    assert_int_equal(told.step, requested.steps);
    assert_int_equal(told.counts[2].total, requested.steps);
    for (size_t i = 0; i < 4; i++)
        if (told.counts[i].done == 0 || told.counts[i].done != told.counts[i].total)
            fail_msg("%s: %zu of %zu", told.counts[i].what, told.counts[i].done,
                     told.counts[i].total);
}

/* Two runs that begin in the same second get different folders. Each multiple of save_every is
 * saved once, the end too; the newest keep names of their own, and each can be resumed. */
static void test_kept(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_train_params params = params_of(tests, NULL, 64);
    requested.keep = 2;
    faults.saves = 0;
    train_and_tell(&params);
    assert_int_equal(faults.saves, 4);
    assert_false(exists(first_out, "checkpoint_000016.safetensors"));
    assert_false(exists(first_out, "checkpoint_000032.safetensors"));
    assert_true(exists(first_out, "checkpoint_000048.safetensors"));
    assert_int_equal(number_of(first_out, "checkpoint_000064.safetensors"),
                     number_of(first_out, "checkpoint.safetensors"));
    assert_false(exists(first_out, ".lock"));
    char *older = base_path_join(first_out, "checkpoint_000048.safetensors");
    params.resume = older;
    requested.steps = 52;
    ok(train(&params, NULL));
    free(older);
    assert_int_equal(number_of(first_out, "checkpoint_000052.safetensors"),
                     number_of(first_out, "checkpoint.safetensors"));
    /* The newest are those written last, whatever their steps. */
    assert_true(exists(first_out, "checkpoint_000064.safetensors"));
    assert_false(exists(first_out, "checkpoint_000048.safetensors"));
}

/* Running out of file descriptors for streamed images is no bad input, and does not lose the
 * training. */
static void test_failed(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_train_params params = params_of(tests, NULL, 6400);
    char out[64], expected[80];
    requested.save_every = 0;
    requested.scene.image_budget = 1000; /* two of three images */
    requested.scene.host_budget = 1;
    faults.open_pictures = 16;
    vkn_status status = train(&params, out);
    faults.open_pictures = UINT_MAX;
    assert_int_equal(status, VKN_ERROR);
    const char *saved = strstr(vkn_last_error(), "Too many open files; step ");
    assert_non_null(saved);
    unsigned step = (unsigned)strtoul(saved + strlen("Too many open files; step "), NULL, 10);
    assert_error(" is saved, go on with: vknerf train --resume ");
    snprintf(expected, sizeof expected, "%s-2", first_out);
    assert_string_equal(out, expected);
    struct vkn_run_state run = {0};
    ok(vkn_run_inspect(out, &run));
    assert_true(run.exists && !run.finished && step > 0 && run.step == step);
}

/* Saves by time: after a failed save the next one succeeds; a failed last one is an error. */
static void test_tried_again(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_train_params params = params_of(tests, temporary_path(tests->folder, "full"), 0);
    requested.save_every = 0;
    requested.save_seconds = 0.01;
    requested.steps = 10000000;
    requested.seconds = 60; /* exceeded only on failure */
    job.stop = &faults.stop;
    faults.saves = 0;
    faults.full_at = 2;
    faults.stop_at = 4;
    faults.full_from = 4;
    begin_messages(tests);
    vkn_status status = train(&params, NULL);
    end_messages(tests, "/checkpoint.safetensors: cannot be written: No space left on device; the "
                        "checkpoint is not saved, training goes on and tries again in 0.5 s");
    assert_int_equal(status, VKN_ERROR);
    assert_int_equal(faults.saves, 5);
    assert_error(" is not saved, but step ");
    assert_error(" is: go on with: vknerf train --resume ");
    faults.full_at = faults.stop_at = faults.full_from = 0;
    faults.stop = 0;
}

/* An evaluation that is interrupted is made up for when the training is resumed. The save before it
 * sets the stop flag. */
static void test_interrupted_evaluation(void **state)
{
    struct step_tests *tests = *state;
    const char *out = temporary_path(tests->folder, "interrupted");
    struct vkn_train_params params = params_of(tests, out, 640);
    const double steps[] = {256, 512, 640};
    requested.save_every = 256;
    job.stop = &faults.stop;
    faults.saves = 0;
    faults.stop_at = 1;
    assert_int_equal(train(&params, NULL), VKN_INTERRUPTED);
    assert_error("interrupted at step 256 ");
    faults.stop_at = 0;
    faults.stop = 0;
    params.out = NULL;
    params.resume = out;
    ok(train(&params, NULL));
    struct run run;
    ok(run_read(out, &run));
    assert_int_equal(run.summary.evaluation_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(run.summary.evaluations[i].step == steps[i]);
    run_free(&run);
}

/* A callback that makes the occupancy grid non-finite after step 20; losses stay finite. */
struct breaker {
    bool broken, saves; /* done; whether to request a checkpoint after it */
};

static double break_is_due(void *context)
{
    return ((struct breaker *)context)->broken ? HUGE_VAL : 0.0;
}

static vkn_status break_cells(void *context, vkn_trainer *trainer, bool *save)
{
    struct breaker *breaker = context;
    const float broken[2] = {INFINITY, NAN};
    *save = false;
    if (vkn_trainer_step(trainer) < 20)
        return VKN_OK;
    *save = breaker->saves && !breaker->broken;
    breaker->broken = true;
    return gpu_upload(trainer->device, &trainer->step.buffers.at[BIND_OCCUPANCY], 0, broken,
                      sizeof broken);
}

/* A state that is not finite cannot be saved and ends the training, on the way or at its end. The
 * message says what to change: the disk is fine, and the same settings would fail again. */
static void test_not_finite(void **state)
{
    struct step_tests *tests = *state;
    static const char *const ends[2][2] = {
        {"step 24: ", "such a change: vknerf train --resume "},
        {"step 20: ", ". Nothing is saved: no checkpoint was due before"}};
    for (size_t i = 0; i < 2; i++) {
        char *out = temporary_path(tests->folder, i == 0 ? "at_end" : "on_the_way");
        struct vkn_train_params params = params_of(tests, out, 24);
        struct breaker breaker = {.saves = i == 1};
        const struct vkn_train_callbacks callbacks = {
            .context = &breaker, .due = break_is_due, .between_steps = break_cells};
        requested.save_every = i == 0 ? 16 : 0;
        params.size = sizeof params;
        params.callbacks = &callbacks;
        assert_int_equal(train(&params, NULL), VKN_ERROR);
        assert_error(ends[i][0]);
        assert_error("the training has diverged: its state cannot be saved; not finite first: the "
                     "densities of the occupancy grid (2 of ");
        assert_error("; lower optimizer.learning_rate (");
        assert_error(ends[i][1]);
        assert_null(strstr(vkn_last_error(), "can be written"));
    }
}

/* Another run replaces the first; its metrics must not be combined with the old model. A folder
 * that vanishes is no bad input. */
static void test_vanished(void **state)
{
    struct step_tests *tests = *state;
    char *out = temporary_path(tests->folder, "full");
    struct vkn_train_params params = params_of(tests, out, 32);
    assert_true(exists(out, "checkpoint.safetensors"));
    params.overwrite = true;
    faults.saves = 0;
    faults.vanish_at = 1;
    faults.folder = out;
    assert_int_equal(train(&params, NULL), VKN_ERROR);
    assert_error(
        "full: this folder was moved, removed or replaced since training began; step 32 is not "
        "saved, and there is no earlier checkpoint");
    assert_false(faults.old_model);
    faults.vanish_at = 0;
}

/* ---- resuming ------------------------------------------------------------------------------ */

static void test_limits(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_train_params params = params_of(tests, NULL, 10);
    params.resume = first_out;
    assert_int_equal(train(&params, NULL), VKN_BAD_INPUT);
    assert_error("/checkpoint.safetensors: step 52 is past --steps 10: nothing would be trained");
    requested.steps = 0;
    requested.seconds = 1e-6;
    assert_int_equal(train(&params, NULL), VKN_BAD_INPUT);
    assert_error(" is past --seconds 1e-06: nothing would be trained");
}

/* ---- ownership ----------------------------------------------------------------------------- */

/* While another process holds the lock neither training nor resuming starts; once it is killed, its
 * lock does not count. */
static void test_locked(void **state)
{
    struct step_tests *tests = *state;
    char *out = first_out, expected[64];
    struct vkn_train_params params = params_of(tests, out, 80);
    struct other owner = start_other(out);
    snprintf(expected, sizeof expected, ": process %ld on ", owner.number);
    params.overwrite = true;
    assert_int_equal(train(&params, NULL), VKN_BAD_INPUT);
    assert_error(expected);
    params.out = NULL;
    params.resume = out;
    assert_int_equal(train(&params, NULL), VKN_BAD_INPUT);
    assert_error(expected);
    assert_error(" is training into this folder; wait for its end");
    kill_other(&owner);
    assert_true(exists(out, ".lock"));
    struct run_lock lock = {0};
    ok(run_lock_take(out, &lock));
    ok(run_lock_check(&lock));
    run_lock_release(&lock);
    assert_false(exists(out, ".lock"));
}

/* Locking the folder removes temporary files of killed processes, and nothing else. */
static void test_temporaries(void **state)
{
    struct step_tests *tests = *state;
    struct other killed = start_other(NULL), other = start_other(NULL);
    const long gone = killed.number, others = other.number;
    kill_other(&killed);
    const struct {
        const char *name;
        long process;
        bool stays;
    } files[] = {
        {"checkpoint.safetensors.%ld.0.tmp", gone, false},
        {"checkpoint_000016.safetensors.%ld.12.tmp", others, false}, /* written only by the lock's
                                                                        owner */
        {"report.html.%ld.3.tmp", gone, false},
        {"report.html.%ld.3.tmp", others, true}, /* vknerf report */
        {"summary.json.%ld.3.tmp", getpid(), false},
        {"views/test_000.png.%ld.1.tmp", gone, false},
        {"notes.%ld.1.tmp", gone, true}, /* not a file of vknerf */
        {"checkpoint.safetensors.%ld.tmp", gone, true},
        {"views.png.%ld.1.tmp.png", gone, true},
        {"views/deeper/test_000.png.%ld.1.tmp", gone, true},
    };
    char name[128], *folder = temporary_path(tests->folder, "temporaries");
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        char path[160];
        snprintf(name, sizeof name, files[i].name, files[i].process);
        snprintf(path, sizeof path, "temporaries/%s", name);
        temporary_text(tests->folder, path, "half a file");
    }
    struct run_lock lock = {0};
    ok(run_lock_take(folder, &lock));
    run_lock_release(&lock);
    kill_other(&other);
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        snprintf(name, sizeof name, files[i].name, files[i].process);
        if (exists(folder, name) != files[i].stays)
            fail_msg("%s %s", name, files[i].stays ? "was removed" : "is still there");
    }
}

/* ---- files --------------------------------------------------------------------------------- */

/* In metrics of two runs, or of a killed and resumed one, the lines written last count. */
static void test_rising_steps(void **state)
{
    struct step_tests *tests = *state;
    const char *mixed = "{\"step\": 0, \"loss\": 9}\n{\"step\": 16, \"loss\": 1}\n"
                        "{\"step\": 32, \"loss\": 2}\n{\"step\": 48, \"loss\": 3}\n"
                        "{\"step\": 32, \"loss\": 4}\n{\"step\": 32, \"loss\": 5}\n"
                        "{\"step\": 40, \"loss\": 6}\n{\"step\": 96, \"loss\": 7}\n{\"step\": 1";
    char *path = temporary_text(tests->folder, "mixed/metrics.jsonl", mixed), *text;
    const double steps[] = {0, 16, 32, 40, 96}, losses[] = {9, 1, 5, 6, 7};
    struct run_metrics metrics;
    ok(run_read_metrics(path, &metrics));
    assert_int_equal(metrics.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_true(metrics.values[RUN_STEP][i] == steps[i] &&
                    metrics.values[RUN_LOSS][i] == losses[i]);
    free(metrics.values[0]);
    char *folder = temporary_path(tests->folder, "mixed");
    struct report_log *log;
    size_t size;
    ok(report_log_open(folder, 40, &log));
    report_log_close(&log);
    ok(base_file_read(path, 1 << 20, &text, &size));
    assert_string_equal(text, "{\"step\": 0, \"loss\": 9}\n{\"step\": 16, \"loss\": 1}\n"
                              "{\"step\": 32, \"loss\": 5}\n{\"step\": 40, \"loss\": 6}\n");
    free(text);
}

static int allocations_left;

static void *allocate(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* If any allocation fails config.json is not written, and the error says so. */
static void test_no_memory(void **state)
{
    struct step_tests *tests = *state;
    char *folder = temporary_path(tests->folder, "no_memory");
    ok(base_make_folder(folder));
    const struct vkn_config config = tiny_config(false);
    const struct vkn_backend backend = {.name = "fp32"};
    const struct run_record record = {.scene = "scene",
                                      .device = "device",
                                      .driver = "driver",
                                      .config = &config,
                                      .backend = &backend};
    const struct vkn_train_params params = {0};
    cJSON_Hooks hooks = {.malloc_fn = allocate, .free_fn = free};
    cJSON_InitHooks(&hooks);
    vkn_status status = VKN_ERROR;
    int count = 0, silent = 0;
    for (; status != VKN_OK && count < 1000; count++) {
        allocations_left = count;
        base_fail(VKN_OK, "%s", "");
        status = run_write_config(folder, &record, &params);
        silent += status != VKN_OK && vkn_last_error()[0] == 0;
    }
    cJSON_InitHooks(NULL);
    assert_true(count > 10 && count < 1000);
    assert_int_equal(silent, 0);
}

/* The default folder is in the working directory. */
static int setup(void **state)
{
    if (step_tests_setup(state) != 0)
        return -1;
    return chdir(((struct step_tests *)*state)->folder->path);
}

static int teardown(void **state)
{
    return chdir("/") == 0 ? step_tests_teardown(state) : -1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rising_steps),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_temporaries),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_locked),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_tried_again),
        cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_interrupted_evaluation),
    };
    if (argc > 1)
        return act(argc, argv);
    own_path = realpath(argv[0], NULL);
    unsetenv("LD_LIBRARY_PATH"); /* the sanitized test's path is not for the child */
    int failed = own_path != NULL ? cmocka_run_group_tests(tests, setup, teardown) : 1;
    free(own_path);
    return failed;
}
