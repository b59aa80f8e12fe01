/* Runs a test of the training step in a process of its own. */
#ifndef TESTS_STEP_APART_H
#define TESTS_STEP_APART_H

#include <errno.h>
#include <sys/wait.h>

#include "step_fixture.h"

/* Runs a test in its own process without a leak check: objects of a device that was given up are
 * never freed. The caller must not have a device yet. Returns 0 when the test passes. */
static inline int step_test_apart(const char *name, CMUnitTestFunction test,
                                  CMFixtureFunction setup)
{
    const struct CMUnitTest tests[] = {{.name = name, .test_func = test}};
    int status = 0;
    fflush(stdout);
    pid_t process = fork();
    if (process < 0 && errno == ENOSYS) {
        print_message("skipped: %s: the system has no fork\n", name);
        return 0;
    }
    if (process == 0) {
        status = cmocka_run_group_tests_name(name, tests, setup, step_tests_teardown);
        fflush(stdout);
        _exit(status);
    }
    return waitpid(process, &status, 0) == process && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#endif
