#include "field/field.h"

/* How numbers are kept or added up. */
enum number {
    F32,
    F16,
    F16_COPY,     /* of f32 masters, rounded when these are updated */
    F16_PAIRS,    /* packed arithmetic */
    F16_MATRICES, /* cooperative */
    F16_BY_EIGHT, /* sums of eight products in f16, of those in f32 */
    F16_SCALED,   /* times the loss scale */
    LADDER,       /* see enum vkn_gradient_sums */
};

static const char *const number_names[] = {
    [F32] = "f32",
    [F16] = "f16",
    [F16_COPY] = "f16 copy",
    [F16_PAIRS] = "f16, two at a time",
    [F16_MATRICES] = "f16 matrices",
    [F16_BY_EIGHT] = "f16 over eight products, then f32",
    [F16_SCALED] = "f16, loss-scaled",
    [LADDER] = "f32 or fixed point (f16 is opt-in)",
};

/* A product of two f16 is exact in f32: where sums are f32, rounding is that of what is stored.
 * Sums over samples have thousands of terms and are never left to f16, but for the grid's where
 * asked for. */
static const struct {
    const char *name;
    enum number fp32, fp16, coopmat;
} table[FIELD_OPERATIONS] = {
    [FIELD_PARAMETERS] = {"hash table and weights as read", F32, F16_COPY, F16_COPY},
    [FIELD_INTERPOLATION] = {"interpolation of grid features", F32, F32, F32},
    [FIELD_ACTIVATIONS] = {"activations as kept", F32, F16, F16},
    [FIELD_PRODUCTS] = {"MLP products", F32, F16_PAIRS, F16_MATRICES},
    [FIELD_SUMS] = {"MLP sums", F32, F16_BY_EIGHT, F32},
    [FIELD_ACTIVATION_GRADIENTS] = {"activation gradients", F32, F16_SCALED, F16_SCALED},
    [FIELD_WEIGHT_SUMS] = {"weight gradient sums", F32, F32, F32},
    [FIELD_GRID_SUMS] = {"grid gradient sums", LADDER, LADDER, LADDER},
    [FIELD_COMPOSITING] = {"sigmoid, exp, compositing, loss", F32, F32, F32},
    [FIELD_UPDATE] = {"masters, moments, average, norm", F32, F32, F32},
};

static enum number number_of(enum field_operation operation, enum vkn_precision precision)
{
    return precision == VKN_PRECISION_FP32   ? table[operation].fp32
           : precision == VKN_PRECISION_FP16 ? table[operation].fp16
                                             : table[operation].coopmat;
}

bool field_is_half(enum field_operation operation, enum vkn_precision precision)
{
    enum number number = number_of(operation, precision);
    return number != F32 && number != LADDER;
}

const char *field_operation_name(enum field_operation operation)
{
    return table[operation].name;
}

const char *field_policy(enum field_operation operation, enum vkn_precision precision)
{
    return number_names[number_of(operation, precision)];
}

const char *field_policy_of(enum field_operation operation, const struct field_backend *backend)
{
    static const char *const sums[] = {
        [VKN_SUMS_FLOAT] = "f32, added atomically",
        [VKN_SUMS_FIXED] = "64-bit fixed point in two words",
        [VKN_SUMS_SWAP] = "f32 by compare-and-swap",
        [VKN_SUMS_HALF] = "f16, two at a time",
    };
    if (operation == FIELD_GRID_SUMS && backend->sums_size)
        return "f32, a level's by one subgroup";
    if (operation == FIELD_GRID_SUMS)
        return sums[backend->sums];
    if (operation == FIELD_SUMS && backend->half_accumulate)
        return number_names[F16];
    return field_policy(operation, backend->precision);
}
