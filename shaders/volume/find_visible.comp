#version 460
#extension GL_GOOGLE_include_directive : require
// Pass find_visible: lists from the densities the samples whose transmittance is at least the
// early-stop threshold and whose alpha is at least the alpha threshold (NerfAcc's visibility); only
// these samples need a colour. One subgroup processes a ray, also on CPU devices.
//
//   buffer         shape                                            access
//   RAYS, RESULTS  [ray]                                            read
//   SAMPLES        [sample]                                         read
//   FIELD          [sample] vec4: density                           read
//   STATE          ray count (read), live_count (write)             read, write
//   LIVE           [visible sample] u32; not in deterministic mode  write
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(LIVE)) writeonly buffer LiveBuffer { uint live[]; };

#include "volume/opacity.glsl"
#include "volume/lane_samples.glsl"
#include "volume/active_ray.glsl"

void list_live(uint first, LaneSample s)
{
    uvec4 ballot = subgroupBallot(s.live);
    uint count = subgroupBallotBitCount(ballot), slot = 0;
    if (lane == 0u && count > 0u)
        slot = atomicAdd(state.live_count, count);
    slot = subgroupBroadcast(slot, 0u);
    if (DETERMINISTIC == 0u && s.live)
        live[slot + subgroupBallotExclusiveBitCount(ballot)] = first + s.base + lane;
}

void main()
{
    uint subgroups = LOCAL_SIZE / SUBGROUP_SIZE;
    for (uint ray = gl_WorkGroupID.x * subgroups + gl_SubgroupID; ray < state.ray_count;
         ray += gl_NumWorkGroups.x * subgroups) {
        bool is_active = is_active_ray(ray);
        uint first = is_active ? results[ray].first : 0u, count = is_active ? results[ray].count : 0u;
        uint base = 0, reached = 0;
        for (float transmittance = 1.0; base < count && reached == base && transmittance >= config.early_stop;
             base += SUBGROUP_SIZE) {
            LaneSample s = load_sample(ray, first, count, base, transmittance);
            list_live(first, s);
            transmittance = subgroupShuffle(s.transmittance_out, SUBGROUP_SIZE - 1u);
            reached += s.reached;
        }
    }
}
