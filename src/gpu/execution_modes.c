/* Adds execution modes to SPIR-V as the device offers them. Not every GLSL compiler supports the
 * extensions' keywords, and a module that requires an extension is invalid on devices without it,
 * so this file inserts the requirements into the SPIR-V.
 *
 * Reconvergence: makes the invocations of a subgroup reconverge after branches, as subgroup
 * operations need. Without one of two extensions Vulkan guarantees reconvergence only while control
 * flow is uniform for the whole workgroup.
 *
 * Float controls: make f16 keep subnormal numbers, and round to nearest, ties to even. Without them
 * a device may flush subnormal numbers (Mesa's Intel driver does) and choose the rounding. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/spirv.h"

/* Further opcodes, capabilities and execution modes (SPIR-V specification, 3.6, 3.31, 3.52.2), and
 * instructions of GLSL.std.450. */
enum {
    OP_EXECUTION_MODE_ID = 331,
    CAPABILITY_FLOAT16 = 9,
    CAPABILITY_STORAGE_16 = 4433,
    CAPABILITY_DENORM_PRESERVE = 4464,
    CAPABILITY_ROUNDING_MODE_RTE = 4467,
    MODE_SUBGROUP_UNIFORM_CONTROL_FLOW = 4421,
    MODE_DENORM_PRESERVE = 4459,
    MODE_ROUNDING_MODE_RTE = 4462,
    MODE_MAXIMALLY_RECONVERGES = 6023,
    GLSL_PACK_HALF = 58,
    GLSL_UNPACK_HALF = 62,
};

#define MOST_WORDS 10 /* words of the longest extension name with its terminator */

/* An execution mode and what it requires. */
struct mode {
    const char *extension;
    uint32_t capability;  /* 0: none */
    uint32_t mode, width; /* width: operand of the mode, bits of a float; 0: none */
};

#define MOST_MODES 5 /* reconvergence, and two float controls for two widths */

/* What a module uses, and where to insert. */
struct places {
    size_t extension, mode; /* positions in words: after the capabilities, after the modes */
    uint32_t entry;         /* id of the entry point */
    bool uses_f16;
};

/* Returns false if there is no entry point. */
static bool find_places(const uint32_t *words, size_t count, struct places *places)
{
    *places = (struct places){0};
    for (size_t i = SPIRV_HEADER; i < count; i += words[i] >> 16) {
        uint32_t code = words[i] & 0xffffu, length = words[i] >> 16;
        if (length == 0 || length > count - i)
            return false;
        if (code == OP_CAPABILITY)
            places->extension = i + length;
        if (code == OP_CAPABILITY && length > 1)
            places->uses_f16 = places->uses_f16 || words[i + 1] == CAPABILITY_FLOAT16 ||
                               words[i + 1] == CAPABILITY_STORAGE_16;
        if (code == OP_EXT_INST && length > 4)
            places->uses_f16 = places->uses_f16 || words[i + 4] == GLSL_PACK_HALF ||
                               words[i + 4] == GLSL_UNPACK_HALF;
        if (code == OP_ENTRY_POINT && length > 2)
            places->entry = words[i + 2];
        if (code == OP_ENTRY_POINT || code == OP_EXECUTION_MODE || code == OP_EXECUTION_MODE_ID)
            places->mode = i + length;
    }
    return places->extension > 0 && places->mode >= places->extension;
}

static size_t add_widths(uint32_t widths, uint32_t capability, uint32_t mode, struct mode *modes,
                         size_t count)
{
    for (uint32_t width = 16; width <= 32; width *= 2)
        if (widths & width)
            modes[count++] = (struct mode){"SPV_KHR_float_controls", capability, mode, width};
    return count;
}

static size_t list_modes(const struct gpu_support *support, bool uses_f16, struct mode *modes)
{
    size_t count = 0;
    /* On CPU devices, the lanes of a subgroup are lanes of a vector and never diverge. */
    bool can_diverge = support->capabilities.type != GPU_CPU;
    if (can_diverge && support->maximal_reconvergence)
        modes[count++] =
            (struct mode){"SPV_KHR_maximal_reconvergence", 0, MODE_MAXIMALLY_RECONVERGES, 0};
    else if (can_diverge && support->subgroup_uniform_control_flow)
        modes[count++] = (struct mode){"SPV_KHR_subgroup_uniform_control_flow", 0,
                                       MODE_SUBGROUP_UNIFORM_CONTROL_FLOW, 0};
    if (!uses_f16)
        return count;
    count = add_widths(support->denorm_preserve, CAPABILITY_DENORM_PRESERVE, MODE_DENORM_PRESERVE,
                       modes, count);
    return add_widths(support->round_to_even, CAPABILITY_ROUNDING_MODE_RTE, MODE_ROUNDING_MODE_RTE,
                      modes, count);
}

/* Writes the capabilities, then the extensions, each once. Returns the position after them. */
static uint32_t *write_requirements(const struct mode *modes, size_t count, uint32_t *to)
{
    for (size_t i = 0; i < count; i++)
        if (modes[i].capability && (i == 0 || modes[i].capability != modes[i - 1].capability)) {
            *to++ = 2u << 16 | OP_CAPABILITY;
            *to++ = modes[i].capability;
        }
    for (size_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)strlen(modes[i].extension) / 4 + 1;
        if (i > 0 && strcmp(modes[i].extension, modes[i - 1].extension) == 0)
            continue;
        *to++ = (1 + length) << 16 | OP_EXTENSION;
        memset(to, 0, length * sizeof *to);
        memcpy(to, modes[i].extension, strlen(modes[i].extension));
        to += length;
    }
    return to;
}

static uint32_t *write_modes(const struct mode *modes, size_t count, uint32_t entry, uint32_t *to)
{
    for (size_t i = 0; i < count; i++) {
        *to++ = (modes[i].width ? 4u : 3u) << 16 | OP_EXECUTION_MODE;
        *to++ = entry;
        *to++ = modes[i].mode;
        if (modes[i].width)
            *to++ = modes[i].width;
    }
    return to;
}

uint32_t *gpu_add_execution_modes(const struct gpu_support *support, const uint32_t *words,
                                  size_t *count)
{
    struct mode modes[MOST_MODES];
    struct places places;
    if (!find_places(words, *count, &places))
        return NULL;
    size_t mode_count = list_modes(support, places.uses_f16, modes);
    size_t added = mode_count * (2 + 1 + MOST_WORDS + 4);
    uint32_t *made = mode_count ? base_alloc(*count + added, sizeof *made) : NULL, *to = made;
    if (!made)
        return NULL;
    memcpy(to, words, places.extension * sizeof *to);
    to = write_requirements(modes, mode_count, to + places.extension);
    memcpy(to, words + places.extension, (places.mode - places.extension) * sizeof *to);
    to = write_modes(modes, mode_count, places.entry, to + (places.mode - places.extension));
    memcpy(to, words + places.mode, (*count - places.mode) * sizeof *to);
    *count = (size_t)(to - made) + (*count - places.mode);
    return made;
}
