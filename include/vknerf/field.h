/* vknerf/field.h: fields whose encoding is your own, in GLSL. docs/fields.md tells how one is
 * written. */
#ifndef VKNERF_FIELD_H
#define VKNERF_FIELD_H

#include <vknerf/api.h>
#include <vknerf/config.h>
#include <vknerf/context.h>

VKN_BEGIN_DECLARATIONS

/* An encoding of position: from a place of the unit cube and trained parameters to features, which
 * the MLPs of the ngp model (config.mlp) make density and colour of. Its GLSL defines
 *
 *     void encode(vec3 position, uint first_parameter)
 *     void encode_backward(vec3 position, uint first_parameter)
 *
 * and says what it has in lines "#pragma field parameters 8 * 4096"; what is not zero here goes
 * before those. */
typedef struct vkn_field {
    size_t size;         /* see <vknerf/api.h> */
    const char *file;    /* path of the GLSL; with `text`: what messages call that */
    const char *text;    /* the GLSL itself, UTF-8 of up to 256 KiB; NULL: what `file` holds */
    const char *name;    /* in messages; NULL: the file's */
    uint32_t parameters; /* that are trained */
    uint32_t features;   /* that encode() puts: an even number up to VKN_FIELD_FEATURES */
    uint32_t entry;      /* parameters in a row, from the first on, that take Adam's steps together,
                            those alone      that get a gradient: 2, the default, or 4 */
    float initial;       /* parameters begin evenly within +- this; 0: 1e-4 */
    /* Fills `parameters`, float[count], in the place of that; `seed` is the configuration's. NULL:
     * none. Called by whichever thread makes a trainer, for as long as the process lives. */
    void (*initialize)(void *context, uint64_t seed, uint32_t count, float *parameters);
    void *context; /* of that */
} vkn_field;

/* Most features of a field. */
#define VKN_FIELD_FEATURES 64

/* Makes a field known to this process, which keeps a copy of all but `context`, and sets `config`,
 * unless it is NULL, to train it: model to glsl, glsl.source to the number of its GLSL. A field
 * that is known already is that one. Checkpoints hold the GLSL and register it when they are read,
 * where it is trusted. VKN_BAD_INPUT names the file, and the line of what cannot be. Any thread may
 * call. */
VKN_API vkn_status vkn_field_register(const vkn_field *field, vkn_config *config);

/* Compiles the field that `config` trains and runs it at 256 places of the unit cube, with random
 * parameters or around those of `initialize`: whether it keeps to its parameters and features, and
 * whether encode_backward agrees with central differences of encode by 16 of the parameters that
 * either asks for at each place. What is known about a field before its training begins; trainers
 * do it themselves, once. Any other model passes. VKN_BAD_INPUT: "FILE:LINE: error: ..." by the
 * compiler, "FILE: encode_backward: parameter 17 off by 3e-2 ...", "FILE: encode_backward: adds to
 * parameter 900 of 800", "FILE: a field only computes: ..." where it has more than docs/fields.md
 * allows, or that shaderc, which compiles it in a child process of up to 20 s, is not installed. */
VKN_API vkn_status vkn_field_check(vkn_context *context, const vkn_config *config);

/* The GLSL of the field that `config` trains, with a line for each member of struct vkn_field that
 * was given; NULL: of a model of the library, or not known. Lives as long as the process. */
VKN_API const char *vkn_field_source(const vkn_config *config);

/* Lets GLSL that a checkpoint holds run in this process, by its SHA-256, 64 hexadecimal digits as
 * sha256sum prints them of the text; NULL: any GLSL of any checkpoint. Until then every function
 * that opens such a checkpoint gives VKN_BAD_INPUT with the file and the SHA-256, which
 * vkn_run_field also finds out; a text that this process registered by itself is trusted. Trust
 * lasts as long as the process. VKN_BAD_INPUT: not a SHA-256. Any thread may call. */
VKN_API vkn_status vkn_field_trust(const char *sha256);

/* Whether GLSL of that SHA-256 would run. Any thread may call. */
VKN_API bool vkn_field_is_trusted(const char *sha256);

VKN_END_DECLARATIONS

#endif
