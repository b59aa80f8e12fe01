// Whether the MLPs' products are those of packed 16-bit arithmetic, or in FP32 as the policy may have them in
// FP16 as well. What includes this has included shared/rounding.glsl.
#ifdef FP16
const bool PACKED_PRODUCTS = (ROUNDED & F32_PRODUCTS) == 0u;
#else
const bool PACKED_PRODUCTS = false;
#endif
