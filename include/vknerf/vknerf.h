/* vknerf/vknerf.h: includes the whole public API of vknerf, which trains neural radiance fields on
 * any Vulkan device.
 *
 * Errors: functions return VKN_OK or an error code; vkn_last_error returns the message of the
 * calling thread's last error. A NULL pointer where an object or result is required is
 * VKN_BAD_INPUT, and so is a structure whose `size` no version had (<vknerf/api.h>). `params` and
 * `config` may be NULL for all defaults. Functions that query an object return NULL, zero or false
 * for NULL.
 *
 * Lifetimes: objects are destroyed through a pointer to the pointer, which becomes NULL. Objects
 * may be destroyed in any order: an object keeps alive the objects that it was created from.
 *
 * Threads: only one thread at a time may use an object, other calls are refused; a context and the
 * objects created from it count as one object. Different contexts, scenes and configurations may be
 * used at the same time.
 *
 * Locale: each call and its callbacks run in the C locale, so that numbers have a decimal point;
 * the thread's locale is restored afterwards. */
#ifndef VKNERF_VKNERF_H
#define VKNERF_VKNERF_H

#include <vknerf/api.h>
#include <vknerf/bench.h>
#include <vknerf/camera.h>
#include <vknerf/certify.h>
#include <vknerf/choices.h>
#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/error.h>
#include <vknerf/export.h>
#include <vknerf/field.h>
#include <vknerf/prepare.h>
#include <vknerf/refine.h>
#include <vknerf/renderer.h>
#include <vknerf/run.h>
#include <vknerf/scene.h>
#include <vknerf/stepper.h>
#include <vknerf/trainer.h>
#include <vknerf/vulkan.h>

VKN_BEGIN_DECLARATIONS

/* Returns the version of the library: "0.1.0". */
VKN_API const char *vkn_version(void);
/* Returns the commit that the library was built from: "abc1234", "abc1234-dirty" with uncommitted
 * changes, or "unknown" if it was built from neither a git checkout nor an archive by git. */
VKN_API const char *vkn_commit(void);

/* Returns the name that `word` probably means, for messages about unknown words: the name for which
 * other programs use the word, such as "optimizer.learning_rate" for "lr", or else the closest in
 * spelling; NULL if there is neither. */
VKN_API const char *vkn_nearest_name(const char *word, const char *const *names, size_t count);

VKN_END_DECLARATIONS

#endif
