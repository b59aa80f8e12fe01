/* Sets a locale with a decimal comma, on every machine. Include after cmocka.h. */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "scenes.h"

/* Compiles the locale in the folder; does nothing on systems without localedef. */
static inline void comma_locale_compile(struct temporary *folder)
{
    char *source = temporary_text(folder, "comma.src",
                                  "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                  "grouping 3;3\nEND LC_NUMERIC\n");
    char *compiled = base_path_join(folder->path, "comma");
    char *program = base_program_find("localedef");
    /* localedef warns about missing categories. */
    char *arguments[] = {"localedef", "--no-archive",   "-c",     "-i", source,
                         "-f",        "ANSI_X3.4-1968", compiled, NULL};
    const int streams[3] = {-1, -1, -1};
    struct base_process process;
    char how[BASE_HOW_SIZE];
    unsetenv("LD_LIBRARY_PATH"); /* of tools/lavapipe.sh: not for the machine's programs */
    if (program != NULL && base_program_start(program, arguments, streams, -1, &process) == 0)
        base_program_ended(&process, true, how);
    free(program);
    free(compiled);
    assert_int_equal(setenv("LOCPATH", folder->path, 1), 0);
}

/* Sets the locale until setlocale(LC_ALL, "C"). */
static inline void comma_locale_set(struct temporary *folder)
{
    if (setlocale(LC_NUMERIC, "German_Germany") == NULL) { /* a locale of Windows */
        comma_locale_compile(folder);
        assert_non_null(setlocale(LC_NUMERIC, "comma"));
    }
    char text[8];
    snprintf(text, sizeof(text), "%g", 0.5);
    assert_string_equal(text, "0,5");
}

#endif
