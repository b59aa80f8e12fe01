/* Skips tests that cannot run here, each with a line "skipped: ", as the test scripts do. Include
 * after cmocka.h. */
#ifndef TESTS_SKIPS_H
#define TESTS_SKIPS_H

static unsigned skip_count;

/* Ends the calling test. skip() does not return; `return` tells the compiler. */
#define skip_because(reason)                                  \
    do {                                                      \
        skip_count++;                                         \
        print_message("skipped: %s: %s\n", __func__, reason); \
        skip();                                               \
        return;                                               \
    } while (0)

/* Returns a test program's exit status: 77 if every test was skipped, where cmocka returns 0. */
static inline int skips_status(int failed, size_t tests)
{
    return failed == 0 && skip_count == tests ? 77 : failed;
}

#endif
