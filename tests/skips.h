/* Tests that cannot run here: each says so in a line that begins with "skipped: ", as the scripts
 * do, for whoever runs them to count. Include after cmocka.h. */
#ifndef TESTS_SKIPS_H
#define TESTS_SKIPS_H

static unsigned skip_count;

/* Ends the test that calls it; cmocka jumps out, which nothing tells the compiler. */
#define skip_because(reason)                                  \
    do {                                                      \
        skip_count++;                                         \
        print_message("skipped: %s: %s\n", __func__, reason); \
        skip();                                               \
        return;                                               \
    } while (0)

/* The exit status of a program with so many tests: cmocka's own is that of success even where it
 * has run none of them, which is 77. */
static inline int skips_status(int failed, size_t tests)
{
    return failed == 0 && skip_count == tests ? 77 : failed;
}

#endif
