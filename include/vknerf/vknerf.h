/* vknerf: neural radiance field training on any Vulkan device. The whole public API.
 *
 * Pointers must point somewhere unless a comment says "NULL". Of `params` and `config` that may be NULL,
 * NULL stands for a structure of zeros: all defaults.
 *
 * Numbers have a decimal point in all that is read and written, whatever setlocale() was told: each call
 * works in the C locale, where its callbacks are called too, and leaves the thread's as it was. */
#ifndef VKNERF_VKNERF_H
#define VKNERF_VKNERF_H

#include <vknerf/bench.h>
#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/error.h>
#include <vknerf/export.h>
#include <vknerf/field.h>
#include <vknerf/renderer.h>
#include <vknerf/run.h>
#include <vknerf/scene.h>
#include <vknerf/trainer.h>

/* "0.1.0" */
const char *vkn_version(void);
/* What it was built from: "abc1234", "abc1234-dirty" with changes that were not committed, or
 * "unknown" where there was neither git nor an archive made by it. */
const char *vkn_commit(void);

/* The name closest in spelling to `word`, for messages about unknown words; NULL when none is
 * close. */
const char *vkn_nearest_name(const char *word, const char *const *names, size_t count);

#endif
