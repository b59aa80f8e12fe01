/* Starts external programs on Windows. A program and its children are in a job, which ends them
 * when this process ends. */
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "base/internal.h"

/* ---- the command line ------------------------------------------------------------------------ */

/* Appends an argument as the C library of the started program splits command lines: backslashes
 * count only in front of a quotation mark. */
static void add_quoted(struct base_text *line, const char *argument)
{
    size_t backslashes = 0;
    base_text_add(line, "%s\"", line->size > 0 ? " " : "");
    for (; *argument != '\0'; argument++) {
        if (*argument == '"')
            for (size_t i = 0; i <= backslashes; i++)
                base_text_add(line, "\\");
        backslashes = *argument == '\\' ? backslashes + 1 : 0;
        base_text_add(line, "%c", *argument);
    }
    for (size_t i = 0; i < backslashes; i++)
        base_text_add(line, "\\");
    base_text_add(line, "\"");
}

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), ending_size = strlen(ending);
    return size >= ending_size && _stricmp(text + size - ending_size, ending) == 0;
}

/* Returns whether cmd.exe, which runs batch files, would read the argument as something else. */
static bool is_changed_by_cmd(const char *argument)
{
    return strpbrk(argument, "\"%!^&|<>\r\n") != NULL;
}

/* Returns 0, or an errno. The program is the first argument, so that batch files find their folder.
 */
static int make_command_line(const char *program, char *const arguments[], struct base_text *line)
{
    bool is_batch = ends_with(program, ".bat") || ends_with(program, ".cmd");
    add_quoted(line, program);
    for (size_t i = 1; arguments[i] != NULL; i++) {
        if (is_batch && is_changed_by_cmd(arguments[i]))
            return EINVAL;
        add_quoted(line, arguments[i]);
    }
    for (char *at = line->data;
         !line->failed && (at = memchr(at, '/', strlen(program) + 1 - (size_t)(at - line->data)));)
        *at = '\\';
    return line->failed ? ENOMEM : 0;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Returns a copy of a stream that the new process inherits; INVALID_HANDLE_VALUE: failed. */
static HANDLE inheritable(int stream, bool is_input)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    HANDLE copy = INVALID_HANDLE_VALUE;
    if (stream < 0)
        return CreateFileW(L"NUL", is_input ? GENERIC_READ : GENERIC_WRITE,
                           FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, NULL);
    return DuplicateHandle(GetCurrentProcess(), (HANDLE)_get_osfhandle(stream), GetCurrentProcess(),
                           &copy, 0, TRUE, DUPLICATE_SAME_ACCESS)
               ? copy
               : INVALID_HANDLE_VALUE;
}

static HANDLE make_job(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    HANDLE job = CreateJobObjectW(NULL, NULL);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    if (job != NULL)
        SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    return job;
}

/* Starts the process with only the given handles inherited. Returns 0 or an error of Windows. */
static DWORD create(wchar_t *line, HANDLE handles[3], PROCESS_INFORMATION *made)
{
    STARTUPINFOEXW start = {.StartupInfo = {.cb = sizeof start,
                                            .dwFlags = STARTF_USESTDHANDLES,
                                            .hStdInput = handles[0],
                                            .hStdOutput = handles[1],
                                            .hStdError = handles[2]}};
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    start.lpAttributeList = malloc(size);
    if (start.lpAttributeList == NULL)
        return ERROR_NOT_ENOUGH_MEMORY;
    DWORD error = 0;
    const DWORD flags = CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP | EXTENDED_STARTUPINFO_PRESENT;
    if (!InitializeProcThreadAttributeList(start.lpAttributeList, 1, 0, &size) ||
        !UpdateProcThreadAttribute(start.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                   handles, 3 * sizeof handles[0], NULL, NULL) ||
        !CreateProcessW(NULL, line, NULL, NULL, TRUE, flags, NULL, NULL, &start.StartupInfo, made))
        error = GetLastError();
    DeleteProcThreadAttributeList(start.lpAttributeList);
    free(start.lpAttributeList);
    return error;
}

/* Returns 0 or an error of Windows. */
static DWORD start_in_job(wchar_t *line, HANDLE handles[3], struct base_process *process)
{
    PROCESS_INFORMATION made;
    HANDLE job = make_job();
    DWORD error = job != NULL ? create(line, handles, &made) : GetLastError();
    if (error != 0) {
        if (job != NULL)
            CloseHandle(job);
        return error;
    }
    AssignProcessToJobObject(job, made.hProcess);
    ResumeThread(made.hThread);
    CloseHandle(made.hThread);
    *process = (struct base_process){(intptr_t)made.hProcess, (intptr_t)job};
    return 0;
}

int base_program_start(const char *program, char *const arguments[], const int streams[3], int keep,
                       struct base_process *process)
{
    struct base_text text = {0};
    HANDLE handles[3];
    (void)keep; /* children end with this process, and need no descriptor that keeps its lock */
    *process = (struct base_process){0};
    int error = make_command_line(program, arguments, &text);
    wchar_t *line = error == 0 ? windows_wide(text.data) : NULL;
    if (error == 0 && line == NULL)
        error = errno;
    bool have_handles = true;
    for (int i = 0; i < 3; i++) {
        handles[i] = inheritable(streams[i], i == 0);
        have_handles = have_handles && handles[i] != INVALID_HANDLE_VALUE;
    }
    if (error == 0 && !have_handles)
        error = EBADF;
    DWORD failure = error == 0 ? start_in_job(line, handles, process) : 0;
    if (failure != 0) {
        windows_fail(failure);
        error = errno;
    }
    for (int i = 0; i < 3; i++)
        if (handles[i] != INVALID_HANDLE_VALUE)
            CloseHandle(handles[i]);
    free(line);
    free(text.data);
    return error;
}

/* ---- ending ---------------------------------------------------------------------------------- */

void base_program_end(const struct base_process *process, bool at_once)
{
    if (process->group == 0)
        return;
    if (at_once)
        TerminateJobObject((HANDLE)process->group, 1);
    else
        GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, GetProcessId((HANDLE)process->number));
}

bool base_program_ended(struct base_process *process, bool wait, char how[BASE_HOW_SIZE])
{
    DWORD status = 0;
    if (WaitForSingleObject((HANDLE)process->number, wait ? INFINITE : 0) == WAIT_TIMEOUT)
        return false;
    if (!GetExitCodeProcess((HANDLE)process->number, &status))
        snprintf(how, BASE_HOW_SIZE, "lost: error %lu", (unsigned long)GetLastError());
    else if (status != 0)
        snprintf(how, BASE_HOW_SIZE, status < 256 ? "exit status %lu" : "exit status 0x%lx",
                 (unsigned long)status);
    else
        how[0] = '\0';
    CloseHandle((HANDLE)process->number);
    CloseHandle((HANDLE)process->group); /* ends children that the program left */
    *process = (struct base_process){0};
    return true;
}

/* ---- pipes ----------------------------------------------------------------------------------- */

int base_input_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

ssize_t base_input_write(int end, const void *data, size_t size)
{
    return write(end, data, size < 1u << 20 ? (unsigned)size : 1u << 20);
}

bool base_pipe_wait(int end, int milliseconds)
{
    const double until = base_seconds() + 1e-3 * milliseconds;
    HANDLE pipe = (HANDLE)_get_osfhandle(end);
    DWORD available = 0;
    /* A pipe whose other end is closed cannot be peeked at; reading then finds the end. */
    while (PeekNamedPipe(pipe, NULL, 0, NULL, &available, NULL) && available == 0) {
        if (base_seconds() >= until)
            return false;
        Sleep(1);
    }
    return true;
}
