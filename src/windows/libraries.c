/* Opens libraries by the names that they have on Linux: DLLs, or libexpat, which the program
 * contains. */
#include "windows/internal.h"

#include <expat.h>

static const struct {
    const char *linux_name, *dll;
} names[] = {
    {"libshaderc.so.1", "shaderc_shared.dll"},
    {"libshaderc_shared.so.1", "libshaderc_shared.dll"},
    {"libwebp.so.7", "libwebp-7.dll"},
    {"libtiff.so.6", "libtiff-6.dll"},
    {"libSPIRV-Tools-shared.so", "libSPIRV-Tools-shared.dll"},
    {"libvulkan.so.1", "vulkan-1.dll"},
};

/* libexpat is part of the program: few machines with Windows have it as a DLL. */
#define EXPAT_NAME     "libexpat.so.1"
#define FUNCTION(name) {#name, (void (*)(void))(name)}
static const struct {
    const char *name;
    void (*function)(void);
} expat[] = {
    FUNCTION(XML_ParserCreate),
    FUNCTION(XML_SetUserData),
    FUNCTION(XML_SetElementHandler),
    FUNCTION(XML_SetCharacterDataHandler),
    FUNCTION(XML_SetStartDoctypeDeclHandler),
    FUNCTION(XML_Parse),
    FUNCTION(XML_StopParser),
    FUNCTION(XML_GetErrorCode),
    FUNCTION(XML_ErrorString),
    FUNCTION(XML_GetCurrentLineNumber),
    FUNCTION(XML_ParserFree),
};

static _Thread_local char last_error[64];

/* Loads a DLL that stands beside the program, in the folder of the system or in one of PATH, but
 * not in the working directory, which may be a folder that another user sent. */
static HMODULE load(const wchar_t *name)
{
    const DWORD usual = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    HMODULE library = LoadLibraryExW(name, NULL, usual);
    if (library != NULL)
        return library;
    wchar_t path[4096];
    const wchar_t *folders = _wgetenv(L"PATH");
    DWORD size = folders != NULL ? SearchPathW(folders, name, NULL, 4096, path, NULL) : 0;
    return size > 0 && size < 4096
               ? LoadLibraryExW(path, NULL, usual | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR)
               : NULL;
}

void *windows_dlopen(const char *name, int flags)
{
    (void)flags;
    if (strcmp(name, EXPAT_NAME) == 0)
        return (void *)expat;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i].linux_name) == 0)
            name = names[i].dll;
    wchar_t *wide = windows_wide(name);
    bool has_folder = strpbrk(name, "/\\") != NULL;
    for (wchar_t *at = wide; at != NULL && (at = wcschr(at, L'/')) != NULL;)
        *at = L'\\';
    HMODULE library = wide == NULL ? NULL : has_folder ? LoadLibraryW(wide) : load(wide);
    if (library == NULL)
        snprintf(last_error, sizeof last_error, "error %lu", (unsigned long)GetLastError());
    free(wide);
    return library;
}

void *windows_dlsym(void *library, const char *name)
{
    void *symbol = NULL;
    if (library != expat) {
        FARPROC found = GetProcAddress(library, name);
        memcpy(&symbol, &found, sizeof symbol);
        return symbol;
    }
    for (size_t i = 0; i < sizeof expat / sizeof expat[0]; i++)
        if (strcmp(name, expat[i].name) == 0)
            memcpy(&symbol, &expat[i].function, sizeof symbol);
    return symbol;
}

int windows_dlclose(void *library)
{
    return library == expat || FreeLibrary(library) ? 0 : -1;
}

char *windows_dlerror(void)
{
    return last_error[0] != '\0' ? last_error : NULL;
}
