/* Makes a locale with a decimal comma, on every machine. Include after cmocka.h. */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenes.h"

/* Compiles the locale in the folder and sets it until setlocale(LC_ALL, "C"). */
static inline void comma_locale_set(struct temporary *folder)
{
    char *source = temporary_text(folder, "comma.src",
                                  "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                  "grouping 3;3\nEND LC_NUMERIC\n");
    char *compiled = base_path_join(folder->path, "comma");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* localedef warns about missing categories. */
        unsetenv("LD_LIBRARY_PATH"); /* of tools/lavapipe.sh: not for the machine's programs */
        if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr))
            execlp("localedef", "localedef", "--no-archive", "-c", "-i", source, "-f",
                   "ANSI_X3.4-1968", compiled, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    free(compiled);
    assert_int_equal(setenv("LOCPATH", folder->path, 1), 0);
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    char text[8];
    snprintf(text, sizeof(text), "%g", 0.5);
    assert_string_equal(text, "0,5");
}

#endif
