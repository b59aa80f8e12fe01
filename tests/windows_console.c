/* windows_console TEXT PROGRAM [ARGUMENT ...]
 * Starts PROGRAM with a console of its own, as a double click does. When TEXT is on the screen,
 * prints the screen, presses Enter, and ends with the program's exit status. Ends with 125 if TEXT
 * does not appear, or if the program has not waited for Enter. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

#define MOST_SECONDS 60

/* Returns the lines of the console that this process is attached to; the caller frees them. */
static wchar_t *read_screen(void)
{
    HANDLE screen = CreateFileW(L"CONOUT$", GENERIC_READ | GENERIC_WRITE,
                                FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    CONSOLE_SCREEN_BUFFER_INFO info = {0};
    GetConsoleScreenBufferInfo(screen, &info);
    size_t width = (size_t)info.dwSize.X;
    wchar_t *text = calloc((width + 1) * (size_t)info.dwSize.Y + 1, sizeof *text);
    for (SHORT y = 0; text != NULL && y <= info.dwCursorPosition.Y; y++) {
        DWORD got = 0;
        wchar_t *line = text + (size_t)y * (width + 1);
        ReadConsoleOutputCharacterW(screen, line, (DWORD)width, (COORD){0, y}, &got);
        line[width] = L'\n';
    }
    CloseHandle(screen);
    return text;
}

/* Prints the text in UTF-8, without the blanks that end lines. */
static void print(const wchar_t *text)
{
    for (size_t width; *text != L'\0'; text += width + 1) {
        char line[4096];
        size_t used = width = wcscspn(text, L"\n");
        while (used > 0 && text[used - 1] == L' ')
            used--;
        int size = WideCharToMultiByte(CP_UTF8, 0, text, (int)used, line, sizeof line, NULL, NULL);
        printf("%.*s\n", size, line);
    }
    fflush(stdout);
}

static void press_enter(void)
{
    KEY_EVENT_RECORD key = {TRUE, 1, VK_RETURN, 0x1c, {L'\r'}, 0};
    INPUT_RECORD record = {.EventType = KEY_EVENT, .Event.KeyEvent = key};
    HANDLE keys = CreateFileW(L"CONIN$", GENERIC_READ | GENERIC_WRITE,
                              FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    DWORD written;
    WriteConsoleInputW(keys, &record, 1, &written);
    CloseHandle(keys);
}

/* Returns whether `part` is on the screen of the program, whose Enter key it then presses. This
 * process is on the program's console only for a moment: the program keeps its window only if it is
 * alone there. */
static bool answer(DWORD program, const wchar_t *part)
{
    bool found = false;
    if (!AttachConsole(program))
        return false;
    wchar_t *text = read_screen();
    if (text != NULL && wcsstr(text, part) != NULL) {
        found = true;
        print(text);
        press_enter();
    }
    free(text);
    FreeConsole();
    return found;
}

int wmain(int argc, wchar_t **argv)
{
    static wchar_t line[32768];
    /* Wine shows no windows on the desktop of other tests: see tools/wine.sh. */
    static wchar_t desktop[] = L"console";
    STARTUPINFOW startup = {.cb = sizeof startup, .lpDesktop = desktop};
    PROCESS_INFORMATION program;
    DWORD status = 125;
    CreateDesktopW(desktop, NULL, NULL, 0, GENERIC_ALL, NULL);
    for (int i = 2; i < argc; i++) {
        size_t used = wcslen(line);
        swprintf(line + used, sizeof line / sizeof *line - used, L"\"%ls\" ", argv[i]);
    }
    if (argc < 3 || !CreateProcessW(NULL, line, NULL, NULL, FALSE, CREATE_NEW_CONSOLE, NULL, NULL,
                                    &startup, &program)) {
        printf("the program does not start: error %lu\n", GetLastError());
        return 125;
    }
    FreeConsole();
    for (int i = 0; i < MOST_SECONDS && WaitForSingleObject(program.hProcess, 1000) != 0; i++)
        if (answer(program.dwProcessId, argv[1])) {
            if (WaitForSingleObject(program.hProcess, 1000 * MOST_SECONDS) == 0)
                GetExitCodeProcess(program.hProcess, &status);
            break;
        }
    TerminateProcess(program.hProcess, 125);
    return (int)status;
}
