/* Makes the invocations of a subgroup reconverge after branches, as subgroup operations need.
 * Without one of two extensions Vulkan guarantees reconvergence only while control flow is uniform
 * for the whole workgroup. Not every GLSL compiler supports the extensions' keywords, and a module
 * that requires an extension is invalid on devices without it, so this file inserts the requirement
 * into the SPIR-V. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/spirv.h"

/* Further opcodes and execution modes (SPIR-V specification, 3.6 and 3.52.2). */
enum {
    OP_EXECUTION_MODE_ID = 331,
    MODE_SUBGROUP_UNIFORM_CONTROL_FLOW = 4421,
    MODE_MAXIMALLY_RECONVERGES = 6023,
};

#define EXTENSION_WORDS 10 /* words of the longer extension name with its terminator */

/* Finds where to insert the extension and the execution mode, and the entry point. Returns false if
 * there is no entry point. */
static bool find_insertions(const uint32_t *words, size_t count, size_t *extension, size_t *mode,
                            uint32_t *entry)
{
    *extension = *mode = 0;
    for (size_t i = SPIRV_HEADER; i < count; i += words[i] >> 16) {
        uint32_t code = words[i] & 0xffffu, length = words[i] >> 16;
        if (length == 0 || length > count - i)
            return false;
        if (code == OP_CAPABILITY)
            *extension = i + length;
        if (code == OP_ENTRY_POINT && length > 2)
            *entry = words[i + 2];
        if (code == OP_ENTRY_POINT || code == OP_EXECUTION_MODE || code == OP_EXECUTION_MODE_ID)
            *mode = i + length;
    }
    return *extension > 0 && *mode >= *extension;
}

uint32_t *gpu_reconverge(const struct gpu_support *support, const uint32_t *words, size_t *count)
{
    const char *name = support->maximal_reconvergence ? "SPV_KHR_maximal_reconvergence"
                                                      : "SPV_KHR_subgroup_uniform_control_flow";
    uint32_t text[EXTENSION_WORDS] = {0}, length = (uint32_t)strlen(name) / 4 + 1;
    size_t extension, mode;
    uint32_t entry = 0;
    if (!support->maximal_reconvergence && !support->subgroup_uniform_control_flow)
        return NULL;
    if (!find_insertions(words, *count, &extension, &mode, &entry))
        return NULL;
    uint32_t *made = base_alloc(*count + 1 + length + 3, sizeof *made), *to = made;
    if (!made)
        return NULL;
    memcpy(text, name, strlen(name));
    memcpy(to, words, extension * sizeof *to);
    to += extension;
    *to++ = (1 + length) << 16 | OP_EXTENSION;
    memcpy(to, text, length * sizeof *to);
    to += length;
    memcpy(to, words + extension, (mode - extension) * sizeof *to);
    to += mode - extension;
    *to++ = 3u << 16 | OP_EXECUTION_MODE;
    *to++ = entry;
    *to++ = support->maximal_reconvergence ? MODE_MAXIMALLY_RECONVERGES
                                           : MODE_SUBGROUP_UNIFORM_CONTROL_FLOW;
    memcpy(to, words + mode, (*count - mode) * sizeof *to);
    *count += 1 + length + 3;
    return made;
}
