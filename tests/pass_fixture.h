/* Lets tests use the fixture and the checks of certificates: a failed check fails the test. */
#ifndef TESTS_PASS_FIXTURE_H
#define TESTS_PASS_FIXTURE_H

#include "gpu_fixture.h"

#include "certify/fixture.h"

static void fail_test(const char *message)
{
    fail_msg("%s", message);
}

__attribute__((constructor)) static void use_cmocka(void)
{
    check_on_failure(fail_test);
}

#endif
