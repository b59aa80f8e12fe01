/* vknerf/api.h: defines the version of the headers and the export of functions, and says how
 * structures grow without breaking compiled programs. */
#ifndef VKNERF_API_H
#define VKNERF_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of these headers; vkn_version() is that of the library. */
#define VKN_VERSION_MAJOR 0 /* grows when compiled programs may break */
#define VKN_VERSION_MINOR 1 /* grows with additions */
#define VKN_VERSION_PATCH 0 /* grows with corrections */

/* Exports a function; all other symbols of the library are hidden. */
#if defined(__GNUC__)
#define VKN_API __attribute__((visibility("default")))
#else
#define VKN_API
#endif

#ifdef __cplusplus
#define VKN_BEGIN_DECLARATIONS extern "C" {
#define VKN_END_DECLARATIONS   }
#else
#define VKN_BEGIN_DECLARATIONS /* C++ declares C functions between these two */
#define VKN_END_DECLARATIONS   /* closes VKN_BEGIN_DECLARATIONS */
#endif

/* Structures that a caller owns, whether the library reads or fills them, begin with
 *
 *     size_t size;
 *
 * which is the structure's size in the headers that the program was compiled with. Later versions
 * add members at the end only. The library reads and fills the members within `size`, and uses the
 * default, zero, for all others. Size 0 means the members of the structure's first version: a
 * structure of zeros means all defaults. A program that uses a member marked "needs `size`" has to
 * set `size`. If a program is newer than the library, members that the library does not know must
 * be zero; the library returns VKN_BAD_INPUT otherwise.
 *
 * Structures that the library owns and returns by pointer have no `size`: they grow at their end,
 * and programs must not copy them. Elements of arrays have no `size` either and never change. */

#endif
