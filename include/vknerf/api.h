/* vknerf/api.h: what all public headers stand on: how functions are exported, and how structures
 * may grow without breaking programs that were compiled before. */
#ifndef VKNERF_API_H
#define VKNERF_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of these headers; vkn_version() is the library's. */
#define VKN_VERSION_MAJOR 0 /* other numbers may break programs */
#define VKN_VERSION_MINOR 1 /* there is more */
#define VKN_VERSION_PATCH 0 /* it works better */

/* Stands before every function of the library; nothing else of it can be linked with. */
#if defined(__GNUC__)
#define VKN_API __attribute__((visibility("default")))
#else
#define VKN_API
#endif

#ifdef __cplusplus
#define VKN_BEGIN_DECLARATIONS extern "C" {
#define VKN_END_DECLARATIONS   }
#else
#define VKN_BEGIN_DECLARATIONS /* of functions of C */
#define VKN_END_DECLARATIONS   /* see VKN_BEGIN_DECLARATIONS */
#endif

/* Structures that a caller owns, whether the library reads or fills them, begin with
 *
 *     size_t size;
 *
 * sizeof the structure in the program that was compiled. Members that later versions add come last;
 * a library reads and fills only those that the program knows, and takes what a program does not
 * know as zero, which is always the default. With size 0 they are those of the first version that
 * had the structure, so that a structure of zeros is all defaults; who sets a member that was added
 * later, as its comment says ("since 0.2"), sets the size. A program of a newer version than the
 * library may set what this does not know only to zero: VKN_BAD_INPUT else.
 *
 * Structures that the library owns and hands out by pointer grow at their end without that; they
 * are not copied. Elements of arrays have no size: they never change. */

#endif
