// Gradients of activations as they are kept, and how many of them 16 bits turn into zero: field/flushed.glsl tells.

uvec2 rounded_gradients = uvec2(0u); // so far: those that rounding leaves, of how many that are not 0

STORAGE_T round_gradient(float x)
{
    STORAGE_T rounded = to_storage(ROUND_ACTIVATION_GRADIENTS, x);
#ifdef F16_STORAGE
    rounded_gradients += uvec2(rounded != STORAGE_T(0.0), x != 0.0); // without a branch: there are many
#endif
    return rounded;
}
