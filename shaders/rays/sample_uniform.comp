#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sample_uniform (variants sample_uniform_count, sample_uniform_write, sample_view_uniform):
// places one sample in each of config.ray_samples equal bins in stepping space, on every ray that
// meets the scene, one subgroup per ray. In training the sample's position in its bin is random
// (stratified: Mildenhall et al., NeRF, 2020, section 4), in rendering the middle of the bin; a
// rendering iteration places the samples from bin push.c on.
//
//   buffer   shape                                         access
//   RAYS     [ray]                                         read; write: last
//   STATE    ray count, step (read), sample_count (write)  read, write
//   RESULTS  [ray] first, count                            write
//   SAMPLES  [sample]; not with MARCH_COUNT                write
#include "shared/common.glsl"
#include "rays/march.glsl"
#include "rays/sample_rays.glsl"
#include "rays/stratified.glsl"

void sample_ray(uint ray, uint limit)
{
#ifdef TRAIN
    const uint begin = 0u;
#else
    uint begin = min(push.c, config.ray_samples);
#endif
    float last = rays[ray].last, from = rays[ray].step;
    float size = (last - from) / float(config.ray_samples);
    uint first, count = last >= 0.0 ? min(config.ray_samples - begin, limit) : 0u;
    bool fits = reserve_samples(ray, count, first);
#ifndef MARCH_COUNT
    if (fits)
        for (uint i = gl_SubgroupInvocationID; i < count; i += SUBGROUP_SIZE) {
            float n = float(begin + i);
            float t = from_steps(from + (n + offset_in_bin(ray, begin + i)) * size);
            float width = from_steps(from + (n + 1.0) * size) - from_steps(from + n * size);
            samples[first + i] = Sample(t, width, ray);
        }
#endif
}
