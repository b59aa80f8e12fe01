/* Finds and copies text, sorts, and changes the locale of a thread. */
#include <locale.h>

#include "windows/internal.h"

char *windows_strcasestr(const char *text, const char *part)
{
    size_t size = strlen(part);
    do
        if (_strnicmp(text, part, size) == 0)
            return (char *)(uintptr_t)text;
    while (*text++ != '\0');
    return NULL;
}

char *windows_strndup(const char *text, size_t most)
{
    size_t size = strnlen(text, most);
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void *windows_memmem(const void *data, size_t size, const void *part, size_t part_size)
{
    const char *bytes = data;
    for (size_t i = 0; part_size <= size && i <= size - part_size; i++)
        if (memcmp(bytes + i, part, part_size) == 0)
            return (void *)(uintptr_t)(bytes + i);
    return NULL;
}

/* The C library of Windows has no texts of errors that newer standards added. */
char *windows_strerror(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "Address already in use";
    case EADDRNOTAVAIL:
        return "Cannot assign requested address";
    case ECONNRESET:
        return "Connection reset by peer";
    case ELOOP:
        return "Too many levels of symbolic links";
    default:
#undef strerror
        return strerror(error);
    }
}

struct comparison {
    int (*compare)(const void *a, const void *b, void *context);
    void *context;
};

static int compare_with(void *comparison, const void *a, const void *b)
{
    const struct comparison *with = comparison;
    return with->compare(a, b, with->context);
}

void windows_qsort_r(void *data, size_t count, size_t size,
                     int (*compare)(const void *a, const void *b, void *context), void *context)
{
    struct comparison with = {compare, context};
    qsort_s(data, count, size, compare_with, &with);
}

/* ---- locales --------------------------------------------------------------------------------- */

enum { LOCALE_PROCESS, LOCALE_OWN, LOCALE_C };

locale_t windows_newlocale(int mask, const char *name, locale_t base)
{
    (void)mask;
    (void)name;
    (void)base;
    return LOCALE_C;
}

/* A thread whose locale is its own already, for instance a nested scope, keeps it: returns
 * LOCALE_OWN, which changes nothing when it is set again. */
locale_t windows_uselocale(locale_t locale)
{
    bool is_own = _configthreadlocale(0) == _ENABLE_PER_THREAD_LOCALE;
    if (locale == LOCALE_C && !is_own) {
        _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
        setlocale(LC_ALL, "C");
    } else if (locale == LOCALE_PROCESS) {
        _configthreadlocale(_DISABLE_PER_THREAD_LOCALE);
    }
    return is_own ? LOCALE_OWN : LOCALE_PROCESS;
}
