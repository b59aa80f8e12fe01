/* Prepares the process on Windows: arguments in UTF-8, console, Ctrl-C and closing of the console.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <windows.h>

#include <shellapi.h>

#include "cli/cli.h"

volatile sig_atomic_t cli_stop;
const char *volatile cli_stop_text = "\nstopping and saving; once more to stop at once\n";

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static void write_error(const char *text)
{
    if (write(STDERR_FILENO, text, (unsigned)strlen(text)) < 0)
        return;
}

static atomic_bool stopping;

static void ask_to_stop(void)
{
    __atomic_store_n(&cli_stop, 1, __ATOMIC_RELAXED);
}

bool cli_clear_stop(void)
{
    __atomic_store_n(&cli_stop, 0, __ATOMIC_RELAXED);
    if (!atomic_load(&stopping))
        return true;
    ask_to_stop(); /* the event may have arrived before cli_stop was cleared */
    return false;
}

/* Runs on a thread of its own. */
static BOOL WINAPI on_event(DWORD event)
{
    bool is_key = event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
    if (atomic_exchange(&stopping, true) && is_key) {
        write_error("\nstopped at once: what came after the last checkpoint is not saved\n");
        TerminateProcess(GetCurrentProcess(), (UINT)STATUS_CONTROL_C_EXIT);
    }
    ask_to_stop();
    write_error(cli_stop_text);
    /* The console closes or the user logs off: the system ends the process when this handler
     * returns, or after 5 s. Until then the main thread saves, and ends the process. */
    if (!is_key)
        Sleep(INFINITE);
    return TRUE;
}

/* ---- console --------------------------------------------------------------------------------- */

/* Writes what was printed, until the process ends. */
static void *flush_streams(void *nothing)
{
    for (;; Sleep(50)) {
        fflush(stdout);
        fflush(stderr);
    }
    return nothing;
}

/* Collects what is printed: without buffers each byte of a character would be written by itself,
 * and a console shows no part of a character. */
static void buffer_streams(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, flush_streams, NULL) != 0)
        return;
    pthread_detach(thread);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    setvbuf(stderr, NULL, _IOFBF, BUFSIZ);
}

/* Lets a console understand UTF-8 and the escape sequences of progress and colours. */
static void prepare_console(void)
{
    bool is_console = false;
    static const DWORD streams[] = {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    SetConsoleOutputCP(CP_UTF8);
    SetConsoleCP(CP_UTF8);
    for (size_t i = 0; i < 2; i++) {
        DWORD mode;
        if (!GetConsoleMode(GetStdHandle(streams[i]), &mode))
            continue;
        is_console = true;
        if (SetConsoleMode(GetStdHandle(streams[i]), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING))
            setenv("TERM", "xterm", 0); /* by which the progress knows a terminal */
    }
    if (is_console)
        buffer_streams();
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        _setmode(stream, _O_BINARY); /* lines end in a line feed, and bytes stay as they are */
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Returns an argument in UTF-8, with the slashes that the program uses in paths. */
static char *to_utf8(const wchar_t *argument)
{
    char *text = windows_narrow(argument);
    for (char *at = text; at != NULL && (at = strchr(at, '\\')) != NULL;)
        *at = '/';
    return text;
}

/* Returns the arguments, which main has in the code page of the machine. */
static struct cli_words read_arguments(int argc, char **argv)
{
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **arguments = wide != NULL ? calloc((size_t)count + 1, sizeof *arguments) : NULL;
    bool complete = arguments != NULL;
    for (int i = 0; i < count && complete; i++)
        complete = (arguments[i] = to_utf8(wide[i])) != NULL;
    LocalFree(wide);
    /* They are in use until the end of the process. */
    return complete ? (struct cli_words){count, arguments} : (struct cli_words){argc, argv};
}

struct cli_words cli_prepare_process(int argc, char **argv)
{
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX); /* no dialog waits for a click */
    prepare_console();
    SetConsoleCtrlHandler(on_event, TRUE);
    return read_arguments(argc, argv);
}

/* No program starts this one with words in front of its own. */
size_t cli_read_command_line(char *text, size_t most)
{
    size_t size = 0;
    for (size_t i = 0; i < cli_argument_count; i++) {
        size_t bytes = strlen(cli_arguments[i]) + 1;
        if (bytes > most - size)
            return 0;
        memcpy(text + size, cli_arguments[i], bytes);
        size += bytes;
    }
    return size;
}

void cli_keep_window(void)
{
    DWORD processes[2];
    /* Started by a double click or a dropped folder, the program is alone on its console. */
    if (GetConsoleProcessList(processes, 2) != 1 || !isatty(STDIN_FILENO))
        return;
    printf("\nvknerf is a program for the command line: open a terminal in this folder, or\n"
           "drag the folder of a scene onto vknerf.exe to train it. Press Enter to close\n"
           "this window.\n");
    fflush(stdout);
    (void)getchar();
}
