/* Runs vknerf itself in tests. Include after cmocka.h. */
#ifndef TESTS_OWN_PROGRAM_H
#define TESTS_OWN_PROGRAM_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static inline void own_program_output(void *context, const char *data, size_t size)
{
    base_text_add_bytes(context, data, size);
}

static inline bool own_program_must_end(void *context)
{
    (void)context;
    return false;
}

/* Runs vknerf with arguments that blanks separate. Returns its output, which the caller frees, and
 * in `how` its end; its errors are part of the output, or go to the descriptor `errors` if that is
 * not -1. */
static inline char *own_program_run(const char *arguments, int errors, char how[BASE_HOW_SIZE])
{
    char *words[32] = {getenv("VKNERF_BIN")}, *text = base_format("%s", arguments);
    struct base_text output = {0};
    size_t count = 1;
    assert_true(words[0] != NULL && text != NULL);
    for (char *at = text; at != NULL; count++) {
        assert_true(count + 1 < BASE_COUNT(words));
        words[count] = at;
        at = strchr(at, ' ');
        if (at != NULL)
            *at++ = '\0';
    }
    const struct base_program program = {
        words[0], words, errors, -1, own_program_output, own_program_must_end, &output};
    unsetenv("LD_LIBRARY_PATH"); /* the sanitizers' library path must not reach other programs */
    assert_int_equal(base_program_run(&program, how), 0);
    base_text_add(&output, "%s", "");
    assert_false(output.failed);
    free(text);
    return output.data;
}

#endif
