#version 460
#extension GL_GOOGLE_include_directive : require
// Pass difference_normals: computes the samples' normals as sample_normals.comp does, for models
// without a pass for normals, from densities that the model's passes evaluate at the corners of a
// tetrahedron. Dispatch k adds corner k - 1 to the gradient and writes corner k as a sample with its
// own ray; the last dispatch writes the normal.
//
//   buffer                               shape                                          access
//   STATE                                sample_count                                   read
//   VIEW_RAYS, VIEW_SAMPLES, VIEW_FIELD  [ray], [sample], [sample] vec4 of the picture  read
//   FIELD                                [sample] vec4: density at corner k - 1         read
//   RAYS, SAMPLES                        [sample]: corner k                             write
//   NORMALS                              [sample] vec4                                  read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) writeonly buffer CornerRayBuffer { Ray corner_rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer CornerBuffer { Sample corners[]; };
layout(std430, BINDING(FIELD)) readonly buffer CornerFieldBuffer { vec4 corner_field[]; };
layout(std430, BINDING(VIEW_RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(VIEW_SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(VIEW_FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(NORMALS)) buffer NormalBuffer { vec4 normals[]; };

const uint CORNERS = 4u;
const float LEAST_ALPHA = 1e-3; // as in sample_normals.comp; lower bound of a corner's density * width

vec3 corner_of(uint k)
{
    vec3 corner = vec3((k & 1u) != 0u ? 1.0 : -1.0, (k & 2u) != 0u ? 1.0 : -1.0, 1.0);
    return vec3(corner.xy, corner.x * corner.y);
}

void write_corner(uint i, uint k)
{
    Sample shown = samples[i];
    Ray ray = rays[shown.ray];
    for (uint axis = 0u; axis < 3u; axis++)
        ray.origin[axis] += shown.t * ray.direction[axis] + shown.width * corner_of(k)[axis];
    corner_rays[i] = ray;
    corners[i] = Sample(0.0, shown.width, i);
}

void main()
{
    // push.a: k.
    uint count = min(state.sample_count, config.sample_capacity), k = push.a;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        float width = samples[i].width;
        vec3 gradient = k > 1u ? normals[i].xyz : vec3(0.0);
        if (k > 0u)
            gradient += corner_of(k - 1u) * log(max(corner_field[i].w * width, LEAST_ALPHA));
        if (k < CORNERS)
            write_corner(i, k);
        else
            gradient = field[i].w * width >= LEAST_ALPHA ? gradient / (-4.0 * width) : vec3(0.0);
        normals[i] = vec4(gradient, 0.0);
    }
}
