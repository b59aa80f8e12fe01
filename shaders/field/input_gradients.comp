#version 460
#extension GL_GOOGLE_include_directive : require
// Pass input_gradients (hash grid): computes the gradient with respect to the position of each live
// sample from the gradients of the sample's features, for deformations and for callers that optimise
// rays. The pass runs between field_backward and update_weights. push.e: ROWS_LIVE for the live
// samples of chunk push.d, otherwise all live samples. The gradients are of the mean loss times the
// loss scale, as in FIELD_GRADIENTS.
//
// Levels with more than config.refine_detail cells per pixel do not move cameras: single pixels have
// taught these levels their features, whose derivatives are noise. A deformation learns from all levels.
//
//   buffer                shape                                            access
//   STATE                 live_count                                       read
//   LIVE                  [live sample] u32                                read
//   RAYS, SAMPLES, FIELD  [ray], [sample], canonical positions             read
//   CAMERAS               [camera], with scene.refine                      read
//   FEATURES              [level][sample][feature]: gradients of features  read
//   PARAMS or F16_PARAMS  [level][entry][feature] f32 or f16               read
//   INPUT_GRADIENTS       [sample] vec4: by position                       write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/grid.glsl"
#include "field/canonical.glsl"
#include "field/features.glsl"
#include "field/input_gradients.glsl"
#include "field/unit_cube_gradient.glsl"

layout(constant_id = SPEC_REFINE) const uint REFINE = 0;

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };

#include "field/live_samples.glsl"

// Adds a level's contribution to the gradient with respect to the position in the unit cube: the
// derivative of the trilinear interpolation, whose weights are products of one factor per axis.
void add_level(uint level, uint sample_index, vec3 unit, inout vec3 slope)
{
    vec4 gradient = get_level_features(level, sample_index), corners[8];
    if (gradient == vec4(0.0)) // false if any is NaN
        return;
    vec3 inside, sum = vec3(0.0);
    gather(level, grid_cell(level, unit, inside), corners);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        float value = dot(gradient, corners[corner]);
        bvec3 upper = bvec3(corner & 1u, corner & 2u, corner & 4u);
        vec3 w = mix(1.0 - inside, inside, upper);
        sum += mix(vec3(-value), vec3(value), upper) * (w.yzx * w.zxy);
    }
    slope += config.levels[level].scale * sum;
}

// Returns the most cells per unit of the unit cube that count.
float finest_scale(uint sample_index, vec3 position)
{
    if (REFINE == 0u || DEFORMED != 0u)
        return 1e30;
    Sample s = samples[sample_index];
    return config.refine_detail * cameras[rays[s.ray].view].focal_x / (s.t * across_unit_cube(position));
}

vec3 position_gradient(uint sample_index)
{
    vec3 position = canonical_position(sample_index);
    vec3 unit = to_unit_cube(position), slope = vec3(0.0);
    float finest = finest_scale(sample_index, position);
    for (uint level = 0; level < LEVELS; level++)
        if (config.levels[level].scale <= finest)
            add_level(level, sample_index, unit, slope);
    return to_training_gradient(position, unit, slope);
}

void main()
{
    uint count = gradient_count(), first = 0u, stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    if (push.e == ROWS_LIVE) {
        first = push.d * config.chunk_rows;
        count = min(count, first + config.chunk_rows);
    }
    for (uint i = first + gl_GlobalInvocationID.x; i < count; i += stride) {
        uint index = gradient_sample(i);
        input_gradients[2u * index] = vec4(position_gradient(index), 0.0);
    }
}
