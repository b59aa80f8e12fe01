/* Implements a library for LD_PRELOAD that fails the Nth system call of some kinds, or ends the
 * process there, for tests of vknerf's reaction. A seccomp filter makes the kernel send SIGSYS
 * instead of executing these calls; the handler counts them, and executes or fails them. So calls
 * by the C library and by the driver's threads count too, and nothing is needed that containers may
 * forbid, such as ptrace.
 *
 *     CALLFAULT_CALLS=write,fsync   these calls (of the table below), or "all"
 *     CALLFAULT_PATH=DIR            only calls on this folder and its content
 *     CALLFAULT_N=12                the 12th fails (from 1); 0: none
 *     CALLFAULT_STICKY=1            and all later ones
 *     CALLFAULT_ERROR=28            with this errno; 0: the process is killed before the call
 *     CALLFAULT_LIST=FILE           writes a line for every counted call: its name, its file
 *
 * Only processes named "vknerf" are affected, not scripts around them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define ARGUMENTS     6
#define PATH_SIZE     4096
/* Value of the sixth argument in the handler's own calls; none of the calls below has six. */
#define HANDLER_MARK  0x7a5f00d5u
/* Exit code by which the tests recognise that this library could not be used. */
#define EXIT_UNUSABLE 125

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
static const int argument_registers[ARGUMENTS] = {REG_RDI, REG_RSI, REG_RDX,
                                                  REG_R10, REG_R8,  REG_R9};
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "which registers hold a system call's arguments?"
#endif

/* A kind of call, and the argument with the descriptor or path that decides whether it counts; -1:
 * none. */
struct call {
    const char *name;
    long number;
    int descriptor, path;
};

static const struct call calls[] = {
#ifdef SYS_open
    {"open", SYS_open, -1, 0},           {"rename", SYS_rename, -1, 1},
    {"mkdir", SYS_mkdir, -1, 0},         {"rmdir", SYS_rmdir, -1, 0},
    {"unlink", SYS_unlink, -1, 0},       {"stat", SYS_stat, -1, 0},
    {"access", SYS_access, -1, 0},       {"readlink", SYS_readlink, -1, 0},
    {"getdents", SYS_getdents, 0, -1},
#endif
    {"open", SYS_openat, -1, 1},         {"rename", SYS_renameat, -1, 3},
    {"rename", SYS_renameat2, -1, 3},    {"mkdir", SYS_mkdirat, -1, 1},
    {"unlink", SYS_unlinkat, -1, 1},     {"stat", SYS_newfstatat, 0, 1},
    {"stat", SYS_statx, 0, 1},           {"stat", SYS_fstat, 0, -1},
    {"access", SYS_faccessat, -1, 1},    {"readlink", SYS_readlinkat, -1, 1},
    {"getdents", SYS_getdents64, 0, -1}, {"read", SYS_read, 0, -1},
    {"read", SYS_pread64, 0, -1},        {"read", SYS_readv, 0, -1},
    {"write", SYS_write, 0, -1},         {"write", SYS_pwrite64, 0, -1},
    {"write", SYS_writev, 0, -1},        {"fsync", SYS_fsync, 0, -1},
    {"fsync", SYS_fdatasync, 0, -1},     {"ftruncate", SYS_ftruncate, 0, -1},
    {"lseek", SYS_lseek, 0, -1},         {"flock", SYS_flock, 0, -1},
    {"fcntl", SYS_fcntl, 0, -1},         {"close", SYS_close, 0, -1},
};

static struct {
    const char *kinds, *path;
    long fail_at;
    int sticky, error, list;
    atomic_long count;
} fault = {.list = -1};

/* ---- in the handler: async-signal-safe calls only ------------------------------------------- */

static long raw_call(long number, long a, long b, long c, long d, long e)
{
    long result = syscall(number, a, b, c, d, e, (long)HANDLER_MARK);
    return result == -1 ? -errno : result;
}

static const struct call *find_call(long number)
{
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (calls[i].number == number)
            return &calls[i];
    }
    return NULL;
}

/* Returns the name of the call's file; "" if it has none, such as a pipe. An empty path stands for
 * the descriptor. */
static void name_file(const struct call *call, const long *arguments, char name[PATH_SIZE])
{
    name[0] = '\0';
    const char *path = call->path >= 0 ? (const char *)arguments[call->path] : NULL;
    if (path != NULL && *path != '\0') {
        snprintf(name, PATH_SIZE, "%s", path);
        return;
    }
    if (call->descriptor < 0)
        return;
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%ld", arguments[call->descriptor]);
    long size = raw_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)name, PATH_SIZE - 1, 0);
    name[size > 0 ? size : 0] = '\0';
}

static int is_wanted(const char *name)
{
    if (fault.path == NULL)
        return 1;
    size_t size = strlen(fault.path);
    return strncmp(name, fault.path, size) == 0 && (name[size] == '\0' || name[size] == '/');
}

static void list_call(const struct call *call, const char *name)
{
    char line[PATH_SIZE + 32];
    int size = snprintf(line, sizeof(line), "%s %s\n", call->name, name);
    raw_call(SYS_write, fault.list, (long)line, size, 0, 0);
}

/* Returns whether the call fails. Ends the process if it is to be killed. */
static int fails(const struct call *call, const long *arguments)
{
    char name[PATH_SIZE];
    name_file(call, arguments, name);
    if (!is_wanted(name))
        return 0;
    long number = atomic_fetch_add(&fault.count, 1) + 1;
    if (fault.list >= 0)
        list_call(call, name);
    if (fault.fail_at == 0 || number < fault.fail_at || (number > fault.fail_at && !fault.sticky))
        return 0;
    if (fault.error == 0)
        kill(getpid(), SIGKILL);
    return 1;
}

static void read_arguments(const ucontext_t *context, long arguments[ARGUMENTS])
{
    for (int i = 0; i < ARGUMENTS; i++) {
#if defined(__x86_64__)
        arguments[i] = context->uc_mcontext.gregs[argument_registers[i]];
#else
        arguments[i] = (long)context->uc_mcontext.regs[i];
#endif
    }
}

static void set_result(ucontext_t *context, long result)
{
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RAX] = result;
#else
    context->uc_mcontext.regs[0] = (unsigned long long)result;
#endif
}

static void on_call(int signal, siginfo_t *information, void *data)
{
    (void)signal;
    ucontext_t *context = data;
    int saved = errno;
    long number = information->si_syscall, a[ARGUMENTS];
    read_arguments(context, a);
    const struct call *call = find_call(number);
    long result = call != NULL && fails(call, a) ? -fault.error
                                                 : raw_call(number, a[0], a[1], a[2], a[3], a[4]);
    set_result(context, result);
    errno = saved;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* A blocked SIGSYS would end the process, so it is removed from masks that threads set. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    static int (*next)(int, const sigset_t *, sigset_t *);
    if (next == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_sigmask");
        memcpy(&next, &symbol, sizeof(next));
    }
    sigset_t open;
    if (set != NULL) {
        open = *set;
        sigdelset(&open, SIGSYS);
    }
    return next(how, set != NULL ? &open : NULL, before);
}

/* ---- at the start ---------------------------------------------------------------------------- */

/* Returns whether the list of kinds, "all" or names between commas, contains this one. */
static int is_kind(const char *name)
{
    size_t size = strlen(name);
    if (strcmp(fault.kinds, "all") == 0)
        return 1;
    for (const char *kind = fault.kinds; kind != NULL; kind = strchr(kind, ',')) {
        kind += *kind == ',';
        if (strncmp(kind, name, size) == 0 && (kind[size] == ',' || kind[size] == '\0'))
            return 1;
    }
    return 0;
}

static void give_up(const char *what)
{
    fprintf(stderr, "callfault: %s: %s\n", what, strerror(errno));
    _exit(EXIT_UNUSABLE);
}

static void catch_calls(void)
{
    struct sigaction action = {.sa_sigaction = on_call,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    if (sigaction(SIGSYS, &action, NULL) != 0)
        give_up("SIGSYS");
}

/* Traps the wanted kinds, except in calls that the handler makes. */
static void install_filter(void)
{
    static struct sock_filter program[COUNT(calls) + 8];
    unsigned used = 0, wanted = 0;
    long numbers[COUNT(calls)];
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (is_kind(calls[i].name))
            numbers[wanted++] = calls[i].number;
    }
    uint32_t own = offsetof(struct seccomp_data, args) + (ARGUMENTS - 1) * sizeof(uint64_t);
    program[used++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    program[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    program[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, own);
    program[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HANDLER_MARK,
                                                   (uint8_t)(wanted + 1), 0);
    program[used++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < wanted; i++)
        program[used++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], (uint8_t)(wanted - i), 0);
    program[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog filter = {.len = (unsigned short)used, .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        give_up("seccomp");
}

static long number_of(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    const char *list = getenv("CALLFAULT_LIST");
    fault.kinds = getenv("CALLFAULT_CALLS");
    if (fault.kinds == NULL || strcmp(program_invocation_short_name, "vknerf") != 0)
        return;
    fault.path = getenv("CALLFAULT_PATH");
    fault.fail_at = number_of("CALLFAULT_N", 0);
    fault.sticky = number_of("CALLFAULT_STICKY", 0) != 0;
    fault.error = (int)number_of("CALLFAULT_ERROR", EIO);
    if (list != NULL &&
        (fault.list = open(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        give_up(list);
    catch_calls();
    install_filter();
}
