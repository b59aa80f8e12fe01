/* Structures of callers that were compiled with other versions of the public headers: as the
 * kernel's copy_struct_from_user does it. */
#include <string.h>

#include "base/base.h"

/* More is no size, but a structure that nobody has set to zero. */
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
    memset(own, 0, sizes->now);
    size_t size = 0;
    BASE_TRY(base_check_closed(what));
    if (given) {
        BASE_TRY(size_of(sizes, given, &size));
        const unsigned char *bytes = given;
        for (size_t i = sizes->now; i < size; i++)
            if (bytes[i] != 0)
                return base_fail(VKN_BAD_INPUT,
                                 "%s: a member is set that this version of the library does not "
                                 "know: byte %zu of %zu",
                                 sizes->name, i, size);
        memcpy(own, given, size < sizes->now ? size : sizes->now);
    }
    memcpy(own, &sizes->now, sizeof sizes->now);
    return VKN_OK;
}

vkn_status base_fill_sized(const struct base_sizes *sizes, const void *own, void *given)
{
    size_t size = 0;
    BASE_TRY(size_of(sizes, given, &size));
    /* What the library does not know: as it would be by default. */
    memset((unsigned char *)given + sizeof size, 0, size - sizeof size);
    size_t known = size < sizes->now ? size : sizes->now;
    memcpy((unsigned char *)given + sizeof size, (const unsigned char *)own + sizeof size,
           known - sizeof size);
    return VKN_OK;
}

vkn_status base_check_pointer(const char *what, const char *name, const void *pointer)
{
    BASE_TRY(base_check_closed(what));
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
