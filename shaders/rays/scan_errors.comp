#version 460
#extension GL_GOOGLE_include_directive : require
// Pass scan_errors (one workgroup): replaces the sums of each slot by the sums over all slots up to it
// of the same virtual rank.
//
//   buffer  shape                            access
//   REDUCE  REDUCE_SLOTS: [slot] ErrorSums   read, write
#include "shared/common.glsl"

layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };

#include "rays/scan_sums.glsl"

void main()
{
    for (uint turn = 0u; turn < config.slot_turns; turn++) {
        vec3 before = vec3(0.0);
        for (uint first = turn; first < config.slot_count; first += LOCAL_SIZE * config.slot_turns) {
            uint slot = first + gl_LocalInvocationID.x * config.slot_turns, at = REDUCE_SLOTS + 3u * slot;
            bool exists = slot < config.slot_count;
            vec3 sums = scan_sums(exists ? vec3(reduce[at], reduce[at + 1u], reduce[at + 2u]) : vec3(0.0), before);
            if (exists) {
                reduce[at] = sums.x;
                reduce[at + 1u] = sums.y;
                reduce[at + 2u] = sums.z;
            }
        }
    }
}
