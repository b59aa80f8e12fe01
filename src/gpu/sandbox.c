/* Runs work on untrusted input in a child process with limits of time and memory. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/shaders.h"

struct gpu_sandbox gpu_sandbox = {.seconds = 20, .memory = (uint64_t)2 << 30, .stall = 2};

/* First output of the child; `size` bytes of the result or of the error message follow. */
struct header {
    vkn_status status;
    uint32_t size;
};

/* ---- the child ------------------------------------------------------------------------------- */

static void limit(int resource, uint64_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return;
    now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
    now.rlim_max = now.rlim_cur;
    setrlimit(resource, &now);
}

/* Resets signal handlers and sets the limits. Ignores terminal signals: the parent handles them,
 * and the parent's end kills this process. */
static void prepare(pid_t parent, uint64_t memory, const sigset_t *signals)
{
    static const int ended_by[] = {SIGTERM, SIGXCPU, SIGABRT, SIGSEGV,
                                   SIGBUS,  SIGILL,  SIGFPE,  SIGPIPE};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (size_t i = 0; i < BASE_COUNT(ended_by); i++)
        signal(ended_by[i], SIG_DFL);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
    /* Discards what the C++ runtime prints when it aborts. */
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        dup2(nowhere, STDERR_FILENO);
    if (memory > 0)
        limit(RLIMIT_AS, memory + gpu_sandbox.memory);
    limit(RLIMIT_CPU, gpu_sandbox.seconds + 1);
    limit(RLIMIT_CORE, 0);
}

static bool write_all(int to, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = write(to, (const char *)data + done, size - done);
        if (count < 0 && errno != EINTR)
            return false;
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static void work_and_exit(int to, vkn_status (*work)(const void *, struct base_text *),
                          const void *context)
{
    struct base_text result = {0};
    vkn_status status = work(context, &result);
    if (status == VKN_OK && result.failed)
        status = base_fail(VKN_ERROR, "out of memory");
    const char *data = status == VKN_OK ? result.data : vkn_last_error();
    size_t size = status == VKN_OK ? result.size : strlen(data);
    struct header header = {status, (uint32_t)size};
    bool written = size <= GPU_SANDBOX_RESULT && write_all(to, &header, sizeof header) &&
                   write_all(to, data, size);
    _exit(written ? 0 : 1);
}

/* ---- the parent ------------------------------------------------------------------------------ */

static pid_t start(int ends[2], vkn_status (*work)(const void *, struct base_text *),
                   const void *context)
{
    sigset_t all, previous;
    pid_t parent = getpid();
    uint64_t memory = base_address_space();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    gpu_compiler_lock();
    pid_t child = fork();
    int error = errno;
    gpu_compiler_unlock();
    if (child == 0) {
        prepare(parent, memory, &previous);
        work_and_exit(ends[1], work, context);
    }
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    errno = error;
    return child;
}

/* A forked child has one thread; a lock that another thread held at the fork stays locked in it.
 * glibc's allocator releases its locks in the child, but AddressSanitizer's and preloaded
 * allocators do not, and drivers' threads allocate at any time. A child that takes no processor
 * time for gpu_sandbox.stall seconds waits for such a lock: it is killed, and another child is
 * started. */
#define MOST_CHILDREN 5

enum ending { ENDED, TOO_MUCH, STALLED };

/* Returns the processor time of a running child; -1: unknown. */
static double seconds_of(pid_t child)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return -1;
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reads the pipe to its end. TOO_MUCH: the time limit or the size limit is exceeded. */
static enum ending read_all(int from, pid_t child, struct base_text *text)
{
    const double end = base_seconds() + gpu_sandbox.seconds;
    double last_seconds = -2; /* processor time of the child at the last check */
    char bytes[65536];
    for (;;) {
        double left = end - base_seconds();
        bool may_stall = left > gpu_sandbox.stall;
        struct pollfd wait = {.fd = from, .events = POLLIN};
        if (left <= 0 || text->size > GPU_SANDBOX_RESULT + sizeof(struct header))
            return TOO_MUCH;
        int ready = poll(&wait, 1, (int)(1000 * (may_stall ? gpu_sandbox.stall : left)) + 1);
        if (ready == 0 && may_stall) {
            double now = seconds_of(child);
            if (now == last_seconds)
                return STALLED;
            last_seconds = now;
        }
        if (ready <= 0)
            continue;
        ssize_t count = read(from, bytes, sizeof bytes);
        if (count == 0)
            return ENDED;
        if (count > 0)
            base_text_add_bytes(text, bytes, (size_t)count);
        else if (errno != EINTR)
            return ENDED;
    }
}

static vkn_status explain(const char *name, int status, uint64_t bytes)
{
    /* An allocation that exceeds the limit fails before its memory is used, so a quarter of the
     * limit counts as reaching it. */
    if (bytes > gpu_sandbox.memory / 4)
        return base_fail(VKN_BAD_INPUT, "%s: compiling takes more than %llu MiB of memory", name,
                         (unsigned long long)(gpu_sandbox.memory >> 20));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return base_fail(VKN_BAD_INPUT, "%s: compiling takes more than %u s", name,
                         gpu_sandbox.seconds);
    return base_fail(
        VKN_BAD_INPUT,
        "%s: the GLSL compiler crashed (%s %d): the source is too large or nested too deeply", name,
        WIFSIGNALED(status) ? "signal" : "exit status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Waits for the child and returns its exit status; 0: another waiter in this process has reaped it.
 * Sets *bytes to the child's peak memory. */
static int wait_for(pid_t child, uint64_t *bytes)
{
    struct rusage usage = {0};
    int status = 0;
    pid_t ended = 0;
    do {
        ended = wait4(child, &status, 0, &usage);
    } while (ended < 0 && errno == EINTR);
    *bytes = (uint64_t)usage.ru_maxrss * 1024;
    return ended == child ? status : 0;
}

/* Copies the child's output to status and result. Returns false if the output is incomplete. */
static bool read_output(const struct base_text *text, vkn_status *status, struct base_text *result)
{
    struct header header;
    if (text->failed || text->size < sizeof header)
        return false;
    memcpy(&header, text->data, sizeof header);
    if (header.size != text->size - sizeof header)
        return false;
    *status = header.status;
    if (header.status == VKN_OK)
        base_text_add_bytes(result, text->data + sizeof header, header.size);
    else
        base_fail(header.status, "%s", text->data + sizeof header);
    return true;
}

static vkn_status run_once(const char *name,
                           vkn_status (*work)(const void *context, struct base_text *result),
                           const void *context, struct base_text *result, bool *stalled)
{
    int ends[2] = {-1, -1};
    struct base_text text = {0};
    struct rusage parent_usage = {0};
    uint64_t bytes = 0;
    vkn_status status = VKN_OK;
    getrusage(RUSAGE_SELF, &parent_usage);
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? start(ends, work, context) : -1;
    if (child < 0)
        status = base_fail(VKN_ERROR, "%s: cannot start a process for the GLSL compiler: %s", name,
                           strerror(errno));
    if (ends[1] >= 0)
        close(ends[1]);
    if (child > 0) {
        enum ending ending = read_all(ends[0], child, &text);
        kill(child, SIGKILL);
        *stalled = ending == STALLED;
        int exit_status = wait_for(child, &bytes);
        uint64_t parent_bytes = (uint64_t)parent_usage.ru_maxrss * 1024;
        if (ending != ENDED)
            status = base_fail(VKN_BAD_INPUT,
                               "%s: compiling takes more than %u s, or produces more than %zu MiB",
                               name, gpu_sandbox.seconds, GPU_SANDBOX_RESULT >> 20);
        else if (!read_output(&text, &status, result))
            status = text.failed ? VKN_ERROR
                                 : explain(name, exit_status,
                                           bytes > parent_bytes ? bytes - parent_bytes : 0);
    }
    if (ends[0] >= 0)
        close(ends[0]);
    free(text.data);
    return status;
}

vkn_status gpu_run_sandboxed(const char *name,
                             vkn_status (*work)(const void *context, struct base_text *result),
                             const void *context, struct base_text *result)
{
    vkn_status status = VKN_OK;
    bool stalled = true;
    for (int i = 0; i < MOST_CHILDREN && stalled; i++) {
        stalled = false;
        status = run_once(name, work, context, result, &stalled);
    }
    return status;
}
