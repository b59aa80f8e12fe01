/* A locale that writes one half as 0,5, whatever the machine has. Include after cmocka.h. */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <locale.h>

#include "scenes.h"

/* Compiles it in the folder and switches the process to it until setlocale(LC_ALL, "C"). */
static inline void comma_locale_set(struct temporary *folder)
{
    char *source = temporary_text(folder, "comma.src",
                                  "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                  "grouping 3;3\nEND LC_NUMERIC\n");
    /* It warns of the other categories, which are left out. */
    char *command = base_format("localedef --no-archive -c -i %s -f ANSI_X3.4-1968 %s/comma "
                                ">%s/log 2>&1", source, folder->path, folder->path);
    assert_true(system(command) >= 0);
    free(command);
    assert_int_equal(setenv("LOCPATH", folder->path, 1), 0);
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    char text[8];
    snprintf(text, sizeof(text), "%g", 0.5);
    assert_string_equal(text, "0,5");
}

#endif
