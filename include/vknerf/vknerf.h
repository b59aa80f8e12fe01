/* vknerf: neural radiance field training on any Vulkan device. The whole public API.
 *
 * Calls return VKN_OK or what went wrong, which vkn_last_error tells in one line. A pointer that
 * must not be NULL and is gives VKN_BAD_INPUT, as a structure does whose size no version had
 * (<vknerf/api.h>); of `params` and `config` NULL stands for all defaults. What is asked of an
 * object that is NULL is NULL, zero or false. Objects are destroyed through the pointer to them,
 * which becomes NULL, so that twice is once.
 *
 * Threads: an object is for one thread at a time, else refused, and a context with what was made
 * from it counts as one; different contexts, scenes and configurations may be used at the same
 * time. Errors are the thread's.
 *
 * Numbers have a decimal point in all that is read and written, whatever setlocale() was told: each
 * call works in the C locale, where its callbacks are called too, and leaves the thread's as it
 * was. */
#ifndef VKNERF_VKNERF_H
#define VKNERF_VKNERF_H

#include <vknerf/api.h>
#include <vknerf/bench.h>
#include <vknerf/camera.h>
#include <vknerf/choices.h>
#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/error.h>
#include <vknerf/export.h>
#include <vknerf/field.h>
#include <vknerf/prepare.h>
#include <vknerf/renderer.h>
#include <vknerf/run.h>
#include <vknerf/scene.h>
#include <vknerf/stepper.h>
#include <vknerf/trainer.h>
#include <vknerf/vulkan.h>

VKN_BEGIN_DECLARATIONS

/* "0.1.0" */
VKN_API const char *vkn_version(void);
/* What it was built from: "abc1234", "abc1234-dirty" with changes that were not committed, or
 * "unknown" where there was neither git nor an archive made by it. */
VKN_API const char *vkn_commit(void);

/* The name that is meant by `word`, for messages about unknown words: what other programs' word for
 * it is, such as "lr" for "optimizer.learning_rate", else the closest in spelling; NULL when there
 * is neither. */
VKN_API const char *vkn_nearest_name(const char *word, const char *const *names, size_t count);

VKN_END_DECLARATIONS

#endif
