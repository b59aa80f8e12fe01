/* Handles signals, and opens the standard streams. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

volatile sig_atomic_t cli_stop;
const char *volatile cli_stop_text = "\nstopping and saving; once more to stop at once\n";

/* ---- signals ------------------------------------------------------------------------------- */

#define REPEAT_MILLISECONDS 300

static void write_error(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

/* Ends the program by the signal itself, so that its parent sees the cause. */
static void end_by_signal(int number)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
}

/* The last signal. Atomic, as threads of drivers may handle another signal at the same time. */
struct arrival {
    int32_t number;
    uint32_t tick; /* milliseconds, modulo 2^32 */
};
static _Atomic struct arrival last_arrival;
static atomic_bool stopping;

/* Returns whether the same signal came shortly before: timeout(1) sends its signal twice, to the
 * program and to its group, and a bouncing key repeats Ctrl-C. */
static bool is_repeated_signal(int number)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const struct arrival arrival = {number, (uint32_t)now.tv_sec * 1000u +
                                                (uint32_t)(now.tv_nsec / 1000000)};
    struct arrival last = atomic_load(&last_arrival);
    do
        if (number == last.number && arrival.tick - last.tick < REPEAT_MILLISECONDS)
            return true;
    while (!atomic_compare_exchange_weak(&last_arrival, &last, arrival));
    return false;
}

/* Sets cli_stop atomically, because other threads read it (base_stop_asked). */
static void ask_to_stop(void)
{
    __atomic_store_n(&cli_stop, 1, __ATOMIC_RELAXED);
}

bool cli_clear_stop(void)
{
    __atomic_store_n(&cli_stop, 0, __ATOMIC_RELAXED);
    if (!atomic_load(&stopping))
        return true;
    ask_to_stop(); /* the signal may have arrived before cli_stop was cleared */
    return false;
}

static void on_signal(int number)
{
    if (is_repeated_signal(number))
        return;
    if (atomic_exchange(&stopping, true)) {
        write_error("\nstopped at once: what came after the last checkpoint is not saved\n");
        end_by_signal(number);
    }
    ask_to_stop();
    write_error(cli_stop_text);
}

/* Handles SIGXCPU, which repeats every second until the hard limit ends the program. */
static void on_cpu_limit(int number)
{
    (void)number;
    if (!atomic_exchange(&stopping, true))
        write_error("\nthe limit on processor time is reached: stopping and saving\n");
    ask_to_stop();
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_cpu_limit;
    sigaction(SIGXCPU, &action, NULL);
    action.sa_handler = on_signal;
    /* A closing terminal stops the work, unless nohup ignores the signal. */
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    /* If the reader of the progress exits, training continues. */
    signal(SIGPIPE, SIG_IGN);
    /* A write beyond the limit on file sizes fails and does not end the program. */
    signal(SIGXFSZ, SIG_IGN);
}

/* ---- descriptors --------------------------------------------------------------------------- */

/* Opens closed standard streams on /dev/null: the next file would get their numbers. */
static void open_standard_streams(void)
{
    int descriptor = 0;
    while (descriptor >= 0 && descriptor <= STDERR_FILENO)
        descriptor = open("/dev/null", O_RDWR);
    if (descriptor > STDERR_FILENO)
        close(descriptor);
}

struct cli_words cli_prepare_process(int argc, char **argv)
{
    open_standard_streams();
    catch_signals();
    return (struct cli_words){argc, argv};
}

size_t cli_read_command_line(char *text, size_t most)
{
    FILE *file = fopen("/proc/self/cmdline", "rb");
    size_t size = file ? fread(text, 1, most, file) : 0;
    if (file)
        fclose(file);
    return size;
}

void cli_keep_window(void)
{
}
