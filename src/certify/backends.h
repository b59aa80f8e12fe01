/* Lists the backends of a device for tests of field passes, and models to test them with: few per
 * backend, because lavapipe takes seconds to compile a shader with cooperative matrices. */
#ifndef CERTIFY_BACKENDS_H
#define CERTIFY_BACKENDS_H

#include "certify/fixture.h"

struct shape {
    uint32_t density_width, density_layers, color_width, color_layers, geometry;
    uint32_t levels, features, sh_degree, aabb_scale, samples;
    bool contracted;
};

/* Returns a random model with widths of multiples of 16 up to 128, and MLPs of up to 3 layers. */
struct shape random_shape(uint32_t seed);

/* Settings of a backend, and deviations from what field_backend_create() chooses. */
struct backend_case {
    enum vkn_precision precision;
    enum vkn_matrix_shape shape;
    enum vkn_accumulate accumulate;
    bool conversions;
    bool by_input;                 /* weights are read by input, as with NVIDIA's driver */
    bool memory, through_partials; /* rows in device memory; weight gradients in PARTIALS */
    uint32_t owned_rows;           /* 0: as chosen */
    bool atomics;                  /* grid gradients are accumulated by atomics */
    uint32_t sample_lanes;         /* 0: as chosen; with atomics 4 */
    bool along_rays;               /* neighbouring samples share cells, as in training */
    struct field_tuning tuning;    /* values other than 0 are applied */
    bool bound;                    /* weights through the binding, not by address */
    enum vkn_density_activation activation; /* 0: the default */
    enum vkn_policy matmul;                 /* fp16: f32 instead of packed f16 */
    enum vkn_policy stored;                 /* fp32: activations and their gradients in bf16 */
};
#define MAX_CASES 32

struct vkn_config settings_of(const struct backend_case *backend, const struct shape *shape);

/* Variants of a matrix backend: plain, f16 accumulation, conversions, rows in device memory. */
enum { PLAIN, F16_SUMS, CONVERSIONS, IN_MEMORY, MATRIX_VARIANTS };

/* lavapipe compiles a shader for up to half a minute: it runs one shape per variant, and all shapes
 * with VKNERF_TEST_ALL; f16 accumulation and rows in memory do not depend on the shape. */
bool is_tried(const struct gpu_capabilities *device, enum vkn_matrix_shape shape, int variant);

/* Lists the backends that the device supports. lavapipe must support all, so that CI tests all. */
size_t list_backends(struct gpu_device *device, struct backend_case cases[MAX_CASES]);

/* Returns the model for a backend: `shape`, or a smaller one where lavapipe compiles f16 for
 * minutes: matrices and f16 rows other than the default model's; bindings, whose loads become
 * branches; 512-bit vectors, whose conversions become integer arithmetic. */
struct shape shape_for(struct gpu_device *device, const struct backend_case *backend,
                       struct shape shape);

/* Return whether the backend has forward or backward shaders of its own. */
bool differs_forward(const struct backend_case *backend);

bool differs_backward(const struct backend_case *backend);

void tune_backend(struct fixture *fixture, const struct field_tuning *wanted);

/* Applies the case's deviations from field_backend_create(). */
void force_backend(struct fixture *fixture, const struct backend_case *backend);

/* With the kernels of GPUs a CPU device compiles each matrix of a product separately, 2 blocks by 4
 * panels in 6 s. A third of it covers several panels in one pass, several blocks in another, and
 * incomplete ones at the end. */
void fixture_choose_product(struct fixture *fixture, const char *name);

#endif
