/* Tests the message about a run's duration on a CPU device, made from its first reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "run/training.h"

/* Feeds reports at `rate` steps a second, the first after `delay` seconds, and returns the message
 * or "". There may be one message at most. */
static const char *message_of(const struct vkn_config *config, double rate, double delay,
                              uint64_t from, uint32_t side)
{
    static char message[256];
    struct eta eta = {0};
    unsigned count = 0;
    message[0] = 0;
    for (unsigned i = 0; i < 100; i++) {
        char line[256];
        const struct vkn_train_stats stats = {.step = from + 16 + (uint64_t)(i * rate),
                                              .seconds = delay + i};
        if (!eta_update(&eta, config, &stats, side, line))
            continue;
        count++;
        snprintf(message, sizeof(message), "%s", line);
    }
    assert_true(count <= 1);
    return message;
}

static void says_what_takes_long(void **state)
{
    (void)state;
    const struct vkn_config usual = {.steps = 20000};
    /* 20000 - 16 - 30 steps at 10 a second */
    assert_string_equal(
        message_of(&usual, 10, 60, 0, 800),
        "20000 steps take about 33 minutes more on this CPU device; --seconds 5m or "
        "--steps 3k ends sooner, Ctrl-C saves; --downscale 4 trains on smaller images");
    assert_non_null(strstr(message_of(&usual, 1, 0, 0, 1920),
                           "--steps 1k ends sooner, Ctrl-C saves; --downscale 8 "));
    assert_null(strstr(message_of(&usual, 10, 60, 0, 256), "--downscale"));
    const struct vkn_config smaller = {.steps = 20000, .scene.downscale = 2};
    assert_non_null(strstr(message_of(&smaller, 10, 60, 0, 400), "--downscale 4 "));
    const struct vkn_config longer = {.steps = 40000};
    assert_non_null(strstr(message_of(&longer, 1, 0, 0, 64), "about 11 hours more"));
    /* The message of a resumed run is about the remaining steps. */
    assert_non_null(strstr(message_of(&usual, 10, 60, 10000, 800), "about 17 minutes more"));
}

static void is_silent_otherwise(void **state)
{
    (void)state;
    const struct vkn_config usual = {.steps = 20000}, timed = {.steps = 20000, .seconds = 3600},
                            endless = {.seconds = 3600};
    assert_string_equal(message_of(&usual, 34, 1000, 0, 800), "");
    assert_string_equal(message_of(&usual, 10, 60, 15000, 800), "");
    assert_string_equal(message_of(&usual, 10, 60, 20000, 800), "");
    assert_string_equal(message_of(&timed, 1, 60, 0, 800), "");
    assert_string_equal(message_of(&endless, 1, 60, 0, 800), "");
}

static const char *few(const struct vkn_config *config, uint64_t step, double seconds)
{
    static char line[256];
    return eta_few_steps(config, step, seconds, line) ? line : "";
}

/* At the end of a run that its time limit has ended. */
static void says_that_steps_are_few(void **state)
{
    (void)state;
    struct vkn_config config = {.seconds = 120, .scene.downscale = 4};
    assert_string_equal(few(&config, 480, 120.5),
                        "480 steps in 120 s are few: this model usually needs 1000 for sharp "
                        "pictures; train for longer (--seconds 260) or on smaller images "
                        "(--downscale 8)");
    assert_string_equal(few(&config, 1000, 120.5), "");
    assert_string_equal(few(&config, 0, 120.5), "");
    assert_string_equal(few(&config, 480, 119.5), ""); /* ended by a number of steps */
    config.field.position = VKN_POSITION_FREQUENCIES;
    config.scene.downscale = 0;
    assert_non_null(strstr(few(&config, 3999, 120.5), "usually needs 4000"));
    assert_non_null(strstr(few(&config, 3999, 120.5), "(--seconds 130)"));
    assert_non_null(strstr(few(&config, 3999, 120.5), "(--downscale 2)"));
    config.seconds = 0;
    assert_string_equal(few(&config, 480, 120.5), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_takes_long),
        cmocka_unit_test(is_silent_otherwise),
        cmocka_unit_test(says_that_steps_are_few),
    };
    return cmocka_run_group_tests_name("outlook", tests, NULL, NULL);
}
