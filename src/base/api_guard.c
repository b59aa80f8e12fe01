/* Implements the checks that public functions make first: the caller's structures, and whether the
 * call is allowed. */
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* ---- structures of the caller ---------------------------------------------------------------- */

/* A caller may be compiled with another version of the headers; this is handled like the kernel's
 * copy_struct_from_user. Larger sizes mean that the caller did not zero the structure. */
#define MOST_BYTES 65536u

static vkn_status size_of(const struct base_sizes *sizes, const void *given, size_t *size)
{
    memcpy(size, given, sizeof *size);
    if (*size == 0)
        *size = sizes->first;
    if (*size < sizes->first || *size > MOST_BYTES)
        return base_fail(VKN_BAD_INPUT,
                         "%s: its member `size` is %zu, must be 0 or its sizeof, at least %zu",
                         sizes->name, *size, sizes->first);
    return VKN_OK;
}

vkn_status base_read_sized(const char *what, const struct base_sizes *sizes, const void *given,
                           void *own)
{
    memset(own, 0, sizes->current);
    size_t size = 0;
    BASE_TRY(base_check_calls_allowed(what));
    if (given) {
        BASE_TRY(size_of(sizes, given, &size));
        const unsigned char *bytes = given;
        for (size_t i = sizes->current; i < size; i++)
            if (bytes[i] != 0)
                return base_fail(VKN_BAD_INPUT,
                                 "%s: a member is set that this version of the library does not "
                                 "know: byte %zu of %zu",
                                 sizes->name, i, size);
        memcpy(own, given, size < sizes->current ? size : sizes->current);
    }
    memcpy(own, &sizes->current, sizeof sizes->current);
    return VKN_OK;
}

vkn_status base_fill_sized(const struct base_sizes *sizes, const void *own, void *given)
{
    size_t size = 0;
    BASE_TRY(size_of(sizes, given, &size));
    /* Members unknown to the library get their default, 0. */
    memset((unsigned char *)given + sizeof size, 0, size - sizeof size);
    size_t known = size < sizes->current ? size : sizes->current;
    memcpy((unsigned char *)given + sizeof size, (const unsigned char *)own + sizeof size,
           known - sizeof size);
    return VKN_OK;
}

vkn_status base_check_pointer(const char *what, const char *name, const void *pointer)
{
    BASE_TRY(base_check_calls_allowed(what));
    return pointer ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: `%s` is NULL", what, name);
}

vkn_status base_check_choice(const char *what, const char *member, unsigned value, unsigned last)
{
    if (value <= last)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s: %u is none of its values, 0 to %u", what, member,
                     value, last);
}

vkn_status base_check_range(const char *what, const char *member, double value, double low,
                            double high)
{
    if (value >= low && value <= high)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s: %g is not from %g to %g", what, member, value, low,
                     high);
}

/* ---- guards: which thread may use an object, and when ---------------------------------------- */

/* Name of the running callback that may not use the library; NULL: none. */
static _Thread_local const char *forbidding;

static uintptr_t this_thread(void)
{
    static _Thread_local char address; /* distinct in all running threads */
    return (uintptr_t)&address;
}

const char *base_forbid_calls(const char *name)
{
    const char *previous = forbidding;
    forbidding = name;
    return previous;
}

vkn_status base_check_calls_allowed(const char *what)
{
    if (!forbidding)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: called by the callback of %s, which must not use the library", what,
                     forbidding);
}

void base_guard_create(struct base_guard *guard)
{
    *guard = (struct base_guard){.process = getpid()};
}

bool base_guard_is_foreign(const struct base_guard *guard)
{
    return guard->process != getpid();
}

vkn_status base_check_process(const struct base_guard *guard, const char *what)
{
    BASE_TRY(base_check_calls_allowed(what));
    if (!base_guard_is_foreign(guard))
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: process %ld opened the device, which does not survive fork(): open a "
                     "context in this one",
                     what, (long)guard->process);
}

/* Acquires the guard for this thread; *first: the thread did not hold it before. */
static vkn_status acquire(struct base_guard *guard, const char *what, bool *first)
{
    uintptr_t none = 0;
    *first = atomic_compare_exchange_strong(&guard->thread, &none, this_thread());
    if (*first || none == this_thread())
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: another thread is using the context or what was made from it", what);
}

static vkn_status check_callback(const struct base_guard *guard, const char *what,
                                 const void *object)
{
    if (!guard->callback || (guard->idle && guard->object != object))
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: called by the callback `%s` of %s, %s", what,
                     guard->callback, guard->call,
                     guard->idle ? "for the object that this call is using"
                                 : "while the device is at work");
}

vkn_status base_use_enter(struct base_use *use, struct base_guard *guard, const char *what,
                          const void *object)
{
    bool first;
    BASE_TRY(base_check_process(guard, what));
    BASE_TRY(acquire(guard, what, &first));
    BASE_TRY(check_callback(guard, what, object)); /* the guard is this thread's now */
    *use =
        (struct base_use){guard, guard->call, guard->callback, guard->object, guard->idle, first};
    guard->call = what;
    guard->callback = NULL;
    return VKN_OK;
}

void base_use_callback(struct base_use *use, struct base_guard *guard, const char *call,
                       const char *callback, const void *object, bool idle)
{
    bool first = false;
    acquire(guard, call, &first);
    *use =
        (struct base_use){guard, guard->call, guard->callback, guard->object, guard->idle, first};
    guard->call = call;
    guard->callback = callback;
    guard->object = object;
    guard->idle = idle;
}

void base_use_leave(struct base_use *use)
{
    struct base_guard *guard = use->guard;
    if (!guard)
        return;
    guard->call = use->call;
    guard->callback = use->callback;
    guard->object = use->object;
    guard->idle = use->idle;
    if (use->first)
        atomic_store(&guard->thread, 0);
}

bool base_guard_refuses_destroy(const struct base_guard *guard, const char *what,
                                const void *object)
{
    uintptr_t thread = atomic_load(&guard->thread);
    vkn_status status = base_check_calls_allowed(what);
    if (status == VKN_OK && thread != 0 && thread != this_thread())
        status =
            base_fail(VKN_BAD_INPUT,
                      "%s: another thread is using the context or what was made from it", what);
    if (status == VKN_OK && thread != 0 && guard->callback && guard->object == object)
        status = base_fail(
            VKN_BAD_INPUT,
            "%s: called by the callback `%s` of %s, for the object that this call is using", what,
            guard->callback, guard->call);
    if (status != VKN_OK)
        base_log(BASE_LOG_WARNING, "%s; the object is not destroyed", vkn_last_error());
    return status != VKN_OK;
}
