/* Reads the shapes of cooperative matrices that a device offers. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

static const char *component_name(VkComponentTypeKHR type)
{
    switch ((int)type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
        return "f16";
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
        return "f32";
    case VK_COMPONENT_TYPE_FLOAT64_KHR:
        return "f64";
    case VK_COMPONENT_TYPE_SINT8_KHR:
        return "s8";
    case VK_COMPONENT_TYPE_SINT16_KHR:
        return "s16";
    case VK_COMPONENT_TYPE_SINT32_KHR:
        return "s32";
    case VK_COMPONENT_TYPE_SINT64_KHR:
        return "s64";
    case VK_COMPONENT_TYPE_UINT8_KHR:
        return "u8";
    case VK_COMPONENT_TYPE_UINT16_KHR:
        return "u16";
    case VK_COMPONENT_TYPE_UINT32_KHR:
        return "u32";
    case VK_COMPONENT_TYPE_UINT64_KHR:
        return "u64";
    case 1000141000:
        return "bf16"; /* VK_COMPONENT_TYPE_BFLOAT16_KHR */
    default:
        return "other";
    }
}

static void add_shape(struct gpu_capabilities *capabilities, const struct gpu_matrix_shape *shape)
{
    bool needs_f16 = strcmp(shape->a_type, "f16") == 0 || strcmp(shape->c_type, "f16") == 0;
    if (needs_f16 && !capabilities->float16)
        return;
    for (uint32_t i = 0; i < capabilities->shape_count; i++) {
        const struct gpu_matrix_shape *known = &capabilities->shapes[i];
        if (known->m == shape->m && known->n == shape->n && known->k == shape->k &&
            strcmp(known->a_type, shape->a_type) == 0 && strcmp(known->c_type, shape->c_type) == 0)
            return;
    }
    if (capabilities->shape_count < GPU_MAX_MATRIX_SHAPES)
        capabilities->shapes[capabilities->shape_count++] = *shape;
}

/* Adds shapes whose A and B have the same type, and whose C and result have the same type. */
static void read_fixed_shapes(VkPhysicalDevice physical, struct gpu_capabilities *capabilities)
{
    uint32_t count = 0;
    if (vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, NULL) < 0 || !count)
        return;
    VkCooperativeMatrixPropertiesKHR *properties = base_alloc(count, sizeof *properties);
    if (!properties)
        return;
    for (uint32_t i = 0; i < count; i++)
        properties[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, properties) < 0)
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const VkCooperativeMatrixPropertiesKHR *p = &properties[i];
        if (p->scope != VK_SCOPE_SUBGROUP_KHR || p->AType != p->BType ||
            p->CType != p->ResultType || p->saturatingAccumulation)
            continue;
        struct gpu_matrix_shape shape = {
            .m = p->MSize,
            .n = p->NSize,
            .k = p->KSize,
            .a_type = component_name(p->AType),
            .c_type = component_name(p->CType),
        };
        add_shape(capabilities, &shape);
    }
    free(properties);
}

#ifdef VK_NV_cooperative_matrix2

/* Shapes that the shaders are compiled for, as NVIDIA, AMD, Intel and lavapipe have them. */
static const uint32_t compiled_shapes[][3] = {
    {8, 8, 8}, {16, 8, 8}, {16, 8, 16}, {16, 16, 16}, {8, 16, 16}, {8, 8, 16},
};

static void read_flexible_shapes(VkPhysicalDevice physical, struct gpu_capabilities *capabilities)
{
    uint32_t count = 0;
    if (vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV(physical, &count, NULL) <
            0 ||
        !count)
        return;
    VkCooperativeMatrixFlexibleDimensionsPropertiesNV *properties =
        base_alloc(count, sizeof *properties);
    if (!properties)
        return;
    for (uint32_t i = 0; i < count; i++)
        properties[i].sType =
            VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV;
    if (vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV(physical, &count,
                                                                           properties) < 0)
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const VkCooperativeMatrixFlexibleDimensionsPropertiesNV *p = &properties[i];
        if (p->scope != VK_SCOPE_SUBGROUP_KHR || p->AType != p->BType ||
            p->CType != p->ResultType || p->saturatingAccumulation || !p->MGranularity ||
            !p->NGranularity || !p->KGranularity)
            continue;
        for (size_t k = 0; k < BASE_COUNT(compiled_shapes); k++) {
            struct gpu_matrix_shape shape = {
                .m = compiled_shapes[k][0],
                .n = compiled_shapes[k][1],
                .k = compiled_shapes[k][2],
                .a_type = component_name(p->AType),
                .c_type = component_name(p->CType),
                .flexible = true,
            };
            if (shape.m % p->MGranularity == 0 && shape.n % p->NGranularity == 0 &&
                shape.k % p->KGranularity == 0)
                add_shape(capabilities, &shape);
        }
    }
    free(properties);
}

#else

static void read_flexible_shapes(VkPhysicalDevice physical, struct gpu_capabilities *capabilities)
{
    (void)physical;
    capabilities->cooperative_matrix2 = false;
}

#endif

/* Returns whether the driver crashes when it compiles a matrix load: lavapipe of Mesa 26.1 does for
 * subgroup sizes other than 8, although it offers matrices for such subgroups. */
static bool crashes_on_load(const struct gpu_support *support)
{
    return support->capabilities.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE &&
           support->capabilities.subgroup_size != 8;
}

/* Returns whether the driver crashes when the shapes are listed, see driver_issues.c. */
static bool crashes_on_listing(const struct gpu_capabilities *capabilities)
{
    struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES];
    size_t count = gpu_driver_issues(capabilities, issues);
    for (size_t i = 0; i < count; i++)
        if (issues[i].shape_list_crashes)
            return true;
    return false;
}

void gpu_read_matrix_shapes(VkPhysicalDevice physical, struct gpu_support *support)
{
    struct gpu_capabilities *capabilities = &support->capabilities;
    if (!support->memory_model || !capabilities->subgroup_pinnable || crashes_on_load(support) ||
        crashes_on_listing(capabilities))
        capabilities->cooperative_matrix = false;
    if (!capabilities->cooperative_matrix || !support->maintenance4)
        capabilities->cooperative_matrix2 = false;
    if (capabilities->cooperative_matrix)
        read_fixed_shapes(physical, capabilities);
    if (capabilities->cooperative_matrix2)
        read_flexible_shapes(physical, capabilities);
    if (!capabilities->shape_count)
        capabilities->cooperative_matrix = capabilities->cooperative_matrix2 = false;
}
