/* Checks that public functions make first: the caller's structures, and whether the call is allowed
 * now. Included by base.h only. */
#ifndef BASE_API_GUARD_H
#define BASE_API_GUARD_H

#include <stdatomic.h>
#include <stddef.h>

/* ---- structures of the caller ---------------------------------------------------------------- */

/* Copies a structure of the public API, which begins with its size (see <vknerf/api.h>), from
 * `given` (NULL: all zeros) to `own`, and sets its size to this version's. `last`: last member of
 * the structure's first version. VKN_BAD_INPUT: the size is invalid, a member unknown to this
 * version is set, or a callback that may not use the library makes the call. */
#define BASE_READ(what, tag, given, own, last) \
    base_read_sized(what, BASE_SIZES(tag, last), given, BASE_OF_TYPE(tag, own))
/* Copies `own` to the caller's `given`, up to given->size, which does not change. */
#define BASE_FILL(tag, own, given, last) \
    base_fill_sized(BASE_SIZES(tag, last), BASE_OF_TYPE(tag, own), given)
#define BASE_SIZES(tag, last)                                       \
    (&(const struct base_sizes){"struct " #tag, sizeof(struct tag), \
                                offsetof(struct tag, last) + sizeof(((struct tag *)NULL)->last)})
#define BASE_OF_TYPE(tag, own) (true ? (own) : (struct tag *)NULL) /* warns of another type */
/* Name of a public structure, and its bytes in this version and in the first. */
struct base_sizes {
    const char *name;
    size_t current, first;
};
vkn_status base_read_sized(const char *what, const struct base_sizes *sizes, const void *given,
                           void *own);
vkn_status base_fill_sized(const struct base_sizes *sizes, const void *own, void *given);
/* Returns VKN_BAD_INPUT "WHAT: `name` is NULL" if the pointer is NULL, and an error in a callback
 * that may not use the library. */
vkn_status base_check_pointer(const char *what, const char *name, const void *pointer);
#define BASE_NEED(pointer) BASE_TRY(base_check_pointer(__func__, #pointer, pointer))

/* Check a member of a caller's structure: BASE_CHOICE, that it is an enumerator up to `last`;
 * BASE_RANGE, that it is a number from `low` to `high` and not NaN. VKN_BAD_INPUT "FUNCTION:
 * MEMBER: ...". */
#define BASE_CHOICE(structure, member, last) \
    BASE_TRY(base_check_choice(__func__, #member, (unsigned)(structure)->member, last))
#define BASE_RANGE(structure, member, low, high) \
    BASE_TRY(base_check_range(__func__, #member, (double)(structure)->member, low, high))
vkn_status base_check_choice(const char *what, const char *member, unsigned value, unsigned last);
vkn_status base_check_range(const char *what, const char *member, double value, double low,
                            double high);

/* ---- guards against concurrent and nested calls ---------------------------------------------- */

/* State of a device and of all objects made from it: the process that opened it, the thread whose
 * call uses it, and the caller's callback that this call is running. */
struct base_guard {
    pid_t process;
    _Atomic uintptr_t thread; /* 0: no call; else the members below belong to that thread */
    const char *call;         /* innermost public function that is active */
    const char *callback;     /* name of the callback that it is running; NULL: none */
    const void *object; /* object that the call changes, which a callback must not use or destroy */
    bool idle;          /* the device is idle: the callback may use all other objects */
};
/* An active call or callback, and the guard's members to restore when it ends. */
struct base_use {
    struct base_guard *guard;
    const char *call, *callback;
    const void *object;
    bool idle, first; /* first: the thread did not hold the guard before */
};

/* Initialises the guard for this process. */
void base_guard_create(struct base_guard *guard);
/* Returns whether this process is a fork of the one that opened the device: then neither the device
 * nor its objects can be used or destroyed. */
bool base_guard_is_foreign(const struct base_guard *guard);
/* Returns VKN_BAD_INPUT in a forked process or a callback that may not use the library. */
vkn_status base_check_process(const struct base_guard *guard, const char *what);

/* Marks the device as used by this call until the end of the block. VKN_BAD_INPUT: the process was
 * forked, another thread's call is active, or a callback must not make this call. `object`: the
 * object that the call changes; NULL: none. Use at the top of public functions, after BASE_NEED. */
#define BASE_USE(guard, object)                                              \
    __attribute__((cleanup(base_use_leave))) struct base_use base_use = {0}; \
    BASE_TRY(base_use_enter(&base_use, guard, __func__, object))
vkn_status base_use_enter(struct base_use *use, struct base_guard *guard, const char *what,
                          const void *object);
/* Marks `call` as running the caller's function `callback` until the end of the block. */
#define BASE_CALLBACK(guard, call, callback, object, idle)                  \
    __attribute__((cleanup(base_use_leave))) struct base_use base_callback; \
    base_use_callback(&base_callback, guard, call, callback, object, idle)
void base_use_callback(struct base_use *use, struct base_guard *guard, const char *call,
                       const char *callback, const void *object, bool idle);
void base_use_leave(struct base_use *use);

/* Returns whether `object` must not be destroyed now, because a call of another thread is active or
 * the call that runs this callback uses it. Logs a warning; the object stays valid. */
bool base_guard_refuses_destroy(const struct base_guard *guard, const char *what,
                                const void *object);

/* Forbids this thread all public functions that return a status, while it runs the callback `name`;
 * NULL: allows them again. Keeps the pointer and returns the previous name, which the caller
 * restores afterwards. */
const char *base_forbid_calls(const char *name);
/* Returns VKN_BAD_INPUT in a callback that may not use the library. */
vkn_status base_check_calls_allowed(const char *what);

#endif
