/* Fuzzes the readers of configurations. The first byte of the input selects the kind of the rest: j
 * a JSON text, J that of a run, whose other keys are ignored, f a file with comments and parents, k
 * "key=value", p a file of loss scales. An accepted configuration is written as JSON, read and
 * written again, with the same result; then it is made effective for a CPU device and for a GPU,
 * and its memory is added up. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "step/internal.h"
#include "fuzz.h"

static void check_again(const struct vkn_config *config)
{
    struct vkn_config again = {0};
    char *text = vkn_config_write_json(config);
    require(text != NULL, "the configuration cannot be written");
    require(vkn_config_parse_json(&again, "again", text, false) == VKN_OK,
            "the written configuration is refused");
    char *second = vkn_config_write_json(&again);
    require(second != NULL && strcmp(text, second) == 0, "written and read again it differs");
    free(text);
    free(second);
}

static vkn_status set_pair(struct vkn_config *config, char *text)
{
    char *value = strchr(text, '=');
    if (value != NULL)
        *value++ = '\0';
    return vkn_config_set(config, "--set", text, value != NULL ? value : "");
}

/* Writes a file without a name, so that nothing is left behind. */
static const char *file_of(const char *text, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0)
        file = memfd_create("fuzz", MFD_CLOEXEC);
    require(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, text, size, 0) == (ssize_t)size,
            "no file in memory");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return path;
}

/* ---- the effective values ---------------------------------------------------------------------
 */

static struct gpu_capabilities make_device(bool cpu)
{
    return (struct gpu_capabilities){
        .name = "fuzz",
        .type = cpu ? GPU_CPU : GPU_DISCRETE,
        .subgroup_size = cpu ? 8 : 32,
        .subgroup_min = cpu ? 8 : 32,
        .subgroup_max = cpu ? 8 : 32,
        .float_atomic_add = true,
        .float16 = true,
        .storage16 = true,
        .cooperative_matrix = true,
        .packed_f16_atomics = true,
        .shapes = {{16, 16, 16, "f16", "f32", false}, {8, 8, 8, "f16", "f32", false}},
        .shape_count = 2,
        .max_workgroup_size = 1024,
        .max_shared_memory = cpu ? 32768 : 49152,
        .max_groups = 65535,
        .max_buffer_range = cpu ? 1u << 27 : UINT32_MAX,
        .device_memory = (uint64_t)1 << 36,
    };
}

/* Sums of integers that have wrapped around differ from sums of doubles. */
static void check_memory(const struct setup *setup)
{
    const struct step_images images = {.views = 1000, .resident = 1000, .pixels = 1u << 30};
    struct gpu_need needs[STEP_MAX_NEEDS];
    size_t count = step_list_memory(setup, &images, needs);
    double sum = 0.0, total = (double)step_memory(setup, &images);
    require(count <= STEP_MAX_NEEDS, "more needs than there is room for");
    for (size_t i = 0; i < count; i++) {
        sum += (double)needs[i].size;
        require(needs[i].size < (uint64_t)1 << 48, "a buffer of an absurd size");
        require(needs[i].size < (uint64_t)1 << 24 || needs[i].settings != NULL,
                "a large buffer that no setting makes smaller");
    }
    require(fabs(sum - total) <= 1e-6 * sum, "the sum is wrong");
}

static void check_effective(const struct vkn_config *config, bool cpu)
{
    const struct gpu_capabilities device = make_device(cpu);
    const struct config_facts facts = {.is_cpu = cpu,
                                       .format = VKN_SCENE_TRANSFORMS,
                                       .downscale = 1,
                                       .scale = 1,
                                       .aabb_scale = 4,
                                       .fixed_transform = true};
    struct vkn_config effective = *config;
    struct setup setup;
    if (effective.precision <= VKN_PRECISION_AUTO) /* the tuner chooses the precision */
        effective.precision = VKN_PRECISION_FP32;
    vkn_status status = config_resolve(&effective, &facts);
    if (status == VKN_OK)
        status = setup_create(&effective, &device, &setup);
    if (status == VKN_OK)
        check_memory(&setup);
    else
        require_message();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    base_log_threshold(BASE_LOG_NOTHING);
    if (size == 0 || data[0] == '\0' || strchr("jJfkp", data[0]) == NULL)
        return 0;
    struct vkn_config config = {0};
    char *text = copy_text(data + 1, size - 1);
    vkn_status status =
        data[0] == 'k' ? set_pair(&config, text)
        : data[0] == 'p'
            ? vkn_config_set(&config, "--set", "loss_scale.schedule", file_of(text, size - 1))
        : data[0] == 'f' ? vkn_config_read_json(&config, file_of(text, size - 1))
                         : vkn_config_parse_json(&config, "fuzz.json", text, data[0] == 'J');
    if (status == VKN_OK) {
        check_again(&config);
        check_effective(&config, false);
        check_effective(&config, true);
    } else {
        require_message();
    }
    free(text);
    return 0;
}
