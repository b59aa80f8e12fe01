/* vknerf/field.h: registers and checks encodings in GLSL. docs/fields.md is their manual. */
#ifndef VKNERF_FIELD_H
#define VKNERF_FIELD_H

#include <vknerf/api.h>
#include <vknerf/config.h>
#include <vknerf/context.h>

VKN_BEGIN_DECLARATIONS

/* An encoding of a position in the unit cube, with trained parameters, into features, from which
 * the MLPs of the ngp model (config.mlp) compute density and colour. Its GLSL defines
 *
 *     void encode(vec3 position, uint first_parameter)
 *     void encode_backward(vec3 position, uint first_parameter)
 *
 * and declares its sizes in lines such as "#pragma field parameters 8 * 4096". Members that are not
 * zero override these lines. */
typedef struct vkn_field {
    size_t size;         /* see <vknerf/api.h> */
    const char *file;    /* path of the GLSL; with `text` only its name in messages */
    const char *text;    /* the GLSL, UTF-8 of up to 256 KiB; NULL: the content of `file` */
    const char *name;    /* of the field in messages; NULL: the name of the file */
    uint32_t parameters; /* number of trained parameters */
    uint32_t features;   /* number of features: even, up to VKN_FIELD_FEATURES */
    /* Parameters per entry, 2 (default) or 4. The optimiser updates only entries with a gradient
     * that is not zero, and counts Adam's steps by entry. */
    uint32_t entry;
    float initial; /* bound of the uniform initial parameters; 0: 1e-4 */
    /* Fills `parameters`, float[count]; `seed` is the configuration's. NULL: uniform values. Called
     * by threads that create trainers, at any time until the process ends. */
    void (*initialize)(void *context, uint64_t seed, uint32_t count, float *parameters);
    void *context; /* first argument of `initialize` */
} vkn_field;

/* Maximum number of features of a field. */
#define VKN_FIELD_FEATURES 64

/* Registers a field in this process, with copies of everything but `context`. Sets `config`, unless
 * it is NULL, to train the field: model to glsl, glsl.source to the number of its GLSL. An equal
 * field has the same number. Checkpoints hold the GLSL; reading a checkpoint registers its GLSL if
 * it is trusted. VKN_BAD_INPUT names the file and the line of the error. Any thread may call. */
VKN_API vkn_status vkn_field_register(const vkn_field *field, vkn_config *config);

/* Compiles the field that `config` trains and runs it at 256 positions in the unit cube, with
 * random parameters or around those of `initialize`. Checks that it stays within its parameters and
 * features, and that encode_backward agrees with central differences of encode for up to 16 used
 * parameters per position. Trainers run this check once themselves; other models always pass.
 * VKN_BAD_INPUT: "FILE:LINE: error: ..." of the compiler; "FILE: encode_backward: parameter 17 off
 * by 3e-2 ..."; "FILE: encode_backward: adds to parameter 900 of 800";
 * "FILE: a field only computes: ..." if the GLSL uses more than docs/fields.md allows; shaderc,
 * which compiles the GLSL in a child process within 20 s, is not installed. */
VKN_API vkn_status vkn_field_check(vkn_context *context, const vkn_config *config);

/* Returns the GLSL of the field that `config` trains, after a line "#pragma field ..." for each
 * given member of struct vkn_field. Valid until the process ends; NULL for other models and for a
 * field that is not registered. */
VKN_API const char *vkn_field_source(const vkn_config *config);

/* Trusts the GLSL of checkpoints by its SHA-256 (64 hexadecimal digits, as sha256sum prints for the
 * text), until the process ends; NULL: trusts any GLSL. Functions that open a checkpoint with GLSL
 * that is not trusted return VKN_BAD_INPUT with the file and the SHA-256; vkn_run_field returns the
 * SHA-256 too. A text that this process registered is trusted. VKN_BAD_INPUT: not a SHA-256. Any
 * thread may call. */
VKN_API vkn_status vkn_field_trust(const char *sha256);

/* Returns whether GLSL with this SHA-256 is trusted. Any thread may call. */
VKN_API bool vkn_field_is_trusted(const char *sha256);

VKN_END_DECLARATIONS

#endif
