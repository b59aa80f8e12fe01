/* What public functions look at before anything else: the caller's structures, and whether the call
 * may be made now. Included by base.h alone. */
#ifndef BASE_API_GUARD_H
#define BASE_API_GUARD_H

#include <stdatomic.h>
#include <stddef.h>

/* ---- structures of callers ------------------------------------------------------------------- */

/* Structures of the public API that begin with their size, see <vknerf/api.h>. `last` is the last
 * member of the structure's first version.
 *
 * Copies what the caller gives, NULL: nothing, to `own`, whose size is its true one then.
 * VKN_BAD_INPUT in a callback that may not use the library, where `what` begins the message; for a
 * size that no version had, and for members that are set and not known here, where the structure's
 * name does. */
#define BASE_READ(what, tag, given, own, last) \
    base_read_sized(what, BASE_SIZES(tag, last), given, BASE_OF_TYPE(tag, own))
/* The other way round: fills as much of `given` as its size, which stays, says. */
#define BASE_FILL(tag, own, given, last) \
    base_fill_sized(BASE_SIZES(tag, last), BASE_OF_TYPE(tag, own), given)
#define BASE_SIZES(tag, last)                                       \
    (&(const struct base_sizes){"struct " #tag, sizeof(struct tag), \
                                offsetof(struct tag, last) + sizeof(((struct tag *)NULL)->last)})
#define BASE_OF_TYPE(tag, own) (true ? (own) : (struct tag *)NULL) /* warns of another type */
struct base_sizes {
    const char *name;  /* of the structure */
    size_t now, first; /* bytes of this version's, and of the first version's */
};
vkn_status base_read_sized(const char *what, const struct base_sizes *sizes, const void *given,
                           void *own);
vkn_status base_fill_sized(const struct base_sizes *sizes, const void *own, void *given);
/* VKN_BAD_INPUT "what: `name` is NULL" unless it points somewhere; and in a callback that may not
 * use the library. */
vkn_status base_check_pointer(const char *what, const char *name, const void *pointer);
#define BASE_NEED(pointer) BASE_TRY(base_check_pointer(__func__, #pointer, pointer))

/* Of a member of a caller's structure: whether it is an enumerator up to `last`; a number from
 * `low` to `high`, which NaN is not. VKN_BAD_INPUT "function: member: ...". */
#define BASE_CHOICE(structure, member, last) \
    BASE_TRY(base_check_choice(__func__, #member, (unsigned)(structure)->member, last))
#define BASE_RANGE(structure, member, low, high) \
    BASE_TRY(base_check_range(__func__, #member, (double)(structure)->member, low, high))
vkn_status base_check_choice(const char *what, const char *member, unsigned value, unsigned last);
vkn_status base_check_range(const char *what, const char *member, double value, double low,
                            double high);

/* ---- guards of objects ----------------------------------------------------------------------- */

/* Of a device, for the context and all that was made from it: the process that opened it, the
 * thread whose call is using it, and the caller's function that this call is waiting for. */
struct base_guard {
    pid_t process;
    _Atomic uintptr_t thread; /* 0: no call is using it; the members below are for that thread */
    const char *call;         /* the innermost of its calls */
    const char *callback;     /* NULL: it is not waiting for the caller */
    const void *object; /* that the call is changing, which a callback must not use or destroy */
    bool idle;          /* the callback may use all others; else none */
};
/* A call or callback, and what the guard held before. */
struct base_use {
    struct base_guard *guard;
    const char *call, *callback;
    const void *object;
    bool idle, first;
};

void base_guard_create(struct base_guard *guard);
/* Whether the device is of the process that this one was forked from: nothing of it can be used or
 * destroyed. */
bool base_guard_is_foreign(const struct base_guard *guard);
vkn_status base_check_process(const struct base_guard *guard, const char *what);

/* From here to the end of the block the call uses the device. VKN_BAD_INPUT in a forked process,
 * beside another thread's call, and in a callback that must not make it. `object`: what the call
 * changes; NULL: nothing. Stands at the top of public functions, behind BASE_NEED. */
#define BASE_USE(guard, object)                                              \
    __attribute__((cleanup(base_use_leave))) struct base_use base_use = {0}; \
    BASE_TRY(base_use_enter(&base_use, guard, __func__, object))
vkn_status base_use_enter(struct base_use *use, struct base_guard *guard, const char *what,
                          const void *object);
/* From here to the end of the block `call` waits for the caller's function `callback`. */
#define BASE_CALLBACK(guard, call, callback, object, idle)                  \
    __attribute__((cleanup(base_use_leave))) struct base_use base_callback; \
    base_use_callback(&base_callback, guard, call, callback, object, idle)
void base_use_callback(struct base_use *use, struct base_guard *guard, const char *call,
                       const char *callback, const void *object, bool idle);
void base_use_leave(struct base_use *use);

/* Whether `object` must not be destroyed now: it is in use by the call that is waiting for this
 * callback, or by another thread. Warns of it; the caller's pointer stays. */
bool base_guard_refuses_destroy(const struct base_guard *guard, const char *what,
                                const void *object);

/* Until it is called with what it returned, this thread is in a callback that may not use the
 * library at all: every public function with a status refuses, naming `name`. Kept by reference;
 * NULL: none. */
const char *base_forbid_calls(const char *name);
vkn_status base_check_calls_allowed(const char *what);

#endif
