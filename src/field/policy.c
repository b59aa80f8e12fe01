/* Decides the number format of each operation, by precision and by the policy settings. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "field/internal.h"

/* Formats of stored values, products and accumulators. */
enum format {
    F32,
    F16,
    F16_COPY,     /* a copy of the f32 masters, rounded when the masters are updated */
    F16_PAIRS,    /* packed arithmetic on two values */
    F16_MATRICES, /* cooperative matrices */
    F16_BY_EIGHT, /* f16 over eight products, then f32 */
    F16_SCALED,   /* multiplied by the loss scale */
    ROUNDED,      /* computed in f32, then rounded to f16 */
    ROUNDED_BF16, /* computed in f32, then rounded to bf16 */
    ACCUMULATORS, /* gradient accumulator, see enum vkn_gradient_sums */
};

static const char *const format_names[] = {
    [F32] = "f32",
    [F16] = "f16",
    [F16_COPY] = "f16 copy",
    [F16_PAIRS] = "f16, two at a time",
    [F16_MATRICES] = "f16 matrices",
    [F16_BY_EIGHT] = "f16 over eight products, then f32",
    [F16_SCALED] = "f16, loss-scaled",
    [ROUNDED] = "f16, by rounding f32",
    [ROUNDED_BF16] = "bf16, by rounding f32",
    [ACCUMULATORS] = "f32 or fixed point (f16 is opt-in)",
};

/* A setting of the group policy: its key, and its offset in struct vkn_config. */
#define KEY(name) "policy." #name, offsetof(struct vkn_config, policy.name)
#define NO_KEY    NULL, 0

/* A product of two f16 is exact in f32, so that with f32 accumulators only stored values are
 * rounded. Sums over samples have thousands of terms; f16 is opt-in for them. */
static const struct {
    const char *name, *key;
    size_t offset;    /* offset of the setting in struct vkn_config */
    uint32_t rounded; /* ROUND_* flag; 0: results cannot be rounded */
    enum format fp32, fp16, coopmat;
} table[FIELD_OPERATIONS] = {
    [FIELD_PARAMETERS] = {"hash table and weights as read", KEY(parameters), 0, F32, F16_COPY,
                          F16_COPY},
    [FIELD_INTERPOLATION] = {"interpolation of grid features", NO_KEY, 0, F32, F32, F32},
    [FIELD_ACTIVATIONS] = {"activations as kept", KEY(activations), ROUND_ACTIVATIONS, F32, F16,
                           F16},
    [FIELD_PRODUCTS] = {"MLP products", KEY(matmul), 0, F32, F16_PAIRS, F16_MATRICES},
    [FIELD_SUMS] = {"MLP sums", KEY(accumulators), ROUND_SUMS, F32, F16_BY_EIGHT, F32},
    [FIELD_ACTIVATION_GRADIENTS] = {"activation gradients", KEY(activation_gradients),
                                    ROUND_ACTIVATION_GRADIENTS, F32, F16_SCALED, F16_SCALED},
    [FIELD_WEIGHT_SUMS] = {"weight gradient sums", KEY(weight_gradients), ROUND_WEIGHT_SUMS, F32,
                           F32, F32},
    [FIELD_GRID_SUMS] = {"grid gradient sums", KEY(grid_gradients), 0, ACCUMULATORS, ACCUMULATORS,
                         ACCUMULATORS},
    [FIELD_COMPOSITING] = {"transmittance, compositing", KEY(compositing), ROUND_COMPOSITING, F32,
                           F32, F32},
    [FIELD_LOSS] = {"sigmoid, exp, loss", NO_KEY, 0, F32, F32, F32},
    [FIELD_MASTERS] = {"masters", KEY(master_parameters), ROUND_MASTERS, F32, F32, F32},
    [FIELD_MOMENTS] = {"moments", KEY(moments), ROUND_MOMENTS, F32, F32, F32},
    [FIELD_UPDATE] = {"average, norm", NO_KEY, 0, F32, F32, F32},
};

static enum format default_format(enum field_operation operation, enum vkn_precision precision)
{
    return precision == VKN_PRECISION_FP32   ? table[operation].fp32
           : precision == VKN_PRECISION_FP16 ? table[operation].fp16
                                             : table[operation].coopmat;
}

bool field_is_f16(enum field_operation operation, enum vkn_precision precision)
{
    enum format format = default_format(operation, precision);
    return format != F32 && format != ACCUMULATORS;
}

/* ---- settings ------------------------------------------------------------------------------- */

static enum vkn_policy setting(enum field_operation operation, const struct vkn_config *config)
{
    enum vkn_policy policy = VKN_POLICY_DEFAULT;
    if (table[operation].key)
        memcpy(&policy, (const char *)config + table[operation].offset, sizeof policy);
    return policy;
}

/* Returns whether the default format differs between precisions. */
static bool follows_precision(enum field_operation operation)
{
    return table[operation].fp32 != table[operation].coopmat;
}

/* Returns whether gradient_sums or matrix.accumulate has chosen f16. */
static bool is_chosen_f16(enum field_operation operation, const struct field_backend *backend)
{
    bool uses_matrices = backend->precision == VKN_PRECISION_COOPMAT;
    return (operation == FIELD_GRID_SUMS && backend->sums == VKN_SUMS_F16) ||
           (operation == FIELD_SUMS && uses_matrices && backend->f16_accumulate);
}

static vkn_status refuse(enum field_operation operation, enum vkn_policy policy, const char *why)
{
    return base_fail(VKN_BAD_INPUT, "config: %s: %s %s", table[operation].key,
                     config_policy_names[policy], why);
}

/* Applies f16 or f32 to an operation whose format the precision determines. */
static vkn_status apply_following(enum field_operation operation, enum vkn_policy policy,
                                  struct field_backend *backend)
{
    bool is_product = operation == FIELD_PRODUCTS;
    if (policy == VKN_POLICY_F16 || backend->precision == VKN_PRECISION_FP32)
        return VKN_OK;
    if (!is_product || backend->precision != VKN_PRECISION_FP16)
        return refuse(operation, policy,
                      is_product ? "needs precision fp32 or fp16: matrices multiply f16"
                                 : "needs precision fp32");
    backend->rounded |= F32_PRODUCTS;
    return VKN_OK;
}

/* Applies bf16, which needs no hardware support: f32 results are rounded. */
static vkn_status apply_bf16(enum field_operation operation, struct field_backend *backend)
{
    if (table[operation].rounded == 0)
        return refuse(operation, VKN_POLICY_BF16, "is possible for f32 results only");
    if (follows_precision(operation) && backend->precision != VKN_PRECISION_FP32)
        return refuse(operation, VKN_POLICY_BF16, "needs precision fp32");
    if (operation == FIELD_SUMS && backend->precision == VKN_PRECISION_COOPMAT)
        return refuse(operation, VKN_POLICY_BF16, "needs precision fp32 or fp16");
    backend->rounded |= table[operation].rounded * ROUND_BF16;
    return VKN_OK;
}

static vkn_status apply_operation(enum field_operation operation, enum vkn_policy policy,
                                  struct field_backend *backend)
{
    bool f16 = policy == VKN_POLICY_F16, fp32 = backend->precision == VKN_PRECISION_FP32;
    bool uses_matrices = backend->precision == VKN_PRECISION_COOPMAT;
    if (policy == VKN_POLICY_BF16)
        return apply_bf16(operation, backend);
    if (f16 && fp32 && (follows_precision(operation) || operation == FIELD_SUMS))
        return refuse(operation, policy, "needs precision fp16 or coopmat");
    if (follows_precision(operation))
        return apply_following(operation, policy, backend);
    if (operation == FIELD_GRID_SUMS)
        return f16 == is_chosen_f16(operation, backend)
                   ? VKN_OK
                   : refuse(operation, policy, "contradicts gradient_sums");
    if (operation == FIELD_SUMS && uses_matrices)
        return f16 == backend->f16_accumulate
                   ? VKN_OK
                   : refuse(operation, policy, "contradicts matrix.accumulate");
    if (f16)
        backend->rounded |= table[operation].rounded;
    return VKN_OK;
}

vkn_status field_apply_policy(const struct vkn_config *config, struct field_backend *backend)
{
    for (int i = 0; i < FIELD_OPERATIONS; i++) {
        enum field_operation operation = (enum field_operation)i;
        enum vkn_policy policy = setting(operation, config);
        if (policy != VKN_POLICY_DEFAULT)
            BASE_TRY(apply_operation(operation, policy, backend));
    }
    return VKN_OK;
}

void field_policy_reset(struct vkn_config *config)
{
    for (int i = 0; i < FIELD_OPERATIONS; i++)
        if (table[i].key && (follows_precision((enum field_operation)i) || i == FIELD_SUMS))
            memset((char *)config + table[i].offset, 0, sizeof(enum vkn_policy));
}

/* ---- texts ---------------------------------------------------------------------------------- */

static bool is_rounded(enum field_operation operation, const struct field_backend *backend)
{
    return (backend->rounded & table[operation].rounded) != 0 || is_chosen_f16(operation, backend);
}

static bool is_bf16(enum field_operation operation, const struct field_backend *backend)
{
    return (backend->rounded & table[operation].rounded * ROUND_BF16) != 0;
}

static bool has_f32_products(const struct field_backend *backend)
{
    return (backend->rounded & F32_PRODUCTS) != 0;
}

const char *field_policy_describe(const struct field_backend *backend, char text[FIELD_POLICY_TEXT])
{
    size_t size = 0;
    text[0] = 0;
    for (int i = 0; i < FIELD_OPERATIONS; i++) {
        enum field_operation operation = (enum field_operation)i;
        bool f32 = operation == FIELD_PRODUCTS && has_f32_products(backend);
        const char *name = f32                              ? "f32"
                           : is_bf16(operation, backend)    ? "bf16"
                           : is_rounded(operation, backend) ? "f16"
                                                            : NULL;
        if (name)
            size += (size_t)snprintf(text + size, FIELD_POLICY_TEXT - size, "%s%s=%s",
                                     size > 0 ? ", " : "", table[i].key, name);
    }
    return text;
}

const char *field_operation_key(enum field_operation operation)
{
    return table[operation].key;
}

const char *field_operation_name(enum field_operation operation)
{
    return table[operation].name;
}

const char *field_policy(enum field_operation operation, enum vkn_precision precision)
{
    return format_names[default_format(operation, precision)];
}

const char *field_policy_of(enum field_operation operation, const struct field_backend *backend)
{
    static const char *const sums[] = {
        [VKN_SUMS_F32] = "f32, added atomically",
        [VKN_SUMS_FIXED] = "64-bit fixed point in two words",
        [VKN_SUMS_CAS] = "f32 by compare-and-swap",
        [VKN_SUMS_F16] = "f16, two at a time",
    };
    if (operation == FIELD_GRID_SUMS && backend->sums_size)
        return "f32, a level's by one subgroup";
    if (operation == FIELD_GRID_SUMS)
        return sums[backend->sums];
    if (is_chosen_f16(operation, backend))
        return format_names[F16];
    if (is_bf16(operation, backend))
        return format_names[ROUNDED_BF16];
    if (is_rounded(operation, backend))
        return format_names[ROUNDED];
    if ((operation == FIELD_PRODUCTS || operation == FIELD_SUMS) && has_f32_products(backend))
        return format_names[F32];
    return field_policy(operation, backend->precision);
}
