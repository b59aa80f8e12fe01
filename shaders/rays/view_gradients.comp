#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
// Pass view_gradients: adds the gradients with respect to each live sample's position and direction to
// the gradient with respect to the pose of the sample's view. A camera that turns by the rotation vector
// w moves a sample at distance t by t w x d and turns its direction d by w x d. Sums are fixed point: the
// same in any order, and exact over the steps of an update interval.
//
//   buffer                  shape                               access
//   LIVE                    [live sample] u32                   read
//   RAYS, SAMPLES           [ray], [sample]                     read
//   INPUT_GRADIENTS         [sample][position, direction] vec4  read
//   FIELD, FIELD_GRADIENTS  [sample] vec4, in contracted space  read
//   CAMERAS                 [camera]                            read
//   STATE                   [view][parameter] ErrorCell         read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(INPUT_GRADIENTS)) readonly buffer InputGradientBuffer { vec4 input_gradients[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(FIELD_GRADIENTS)) readonly buffer FieldGradientBuffer { vec4 field_gradients[]; };

#include "field/live_samples.glsl"
#include "shared/contraction.glsl"

const uint NO_VIEW = 0xffffffffu;

// Adds to a sum, in 64-bit fixed point, unless the value is beyond its range. Converts the magnitude: a
// float near 2^32, as the low word of a small negative value, would be a multiple of 256.
void add_gradient(uint index, float value)
{
    float scaled = abs(value) * float(GRADIENT_UNITS / 4294967296.0), whole = floor(scaled);
    if (!(scaled < 1073741824.0))
        return;
    uint low = uint(min((scaled - whole) * 4294967296.0, 4294967040.0)), high = uint(whole);
    if (value < 0.0) {
        low = ~low + 1u;
        high = ~high + (low == 0u ? 1u : 0u);
    }
    uint before = atomicAdd(error_cells[index].low, low);
    high += before + low < before ? 1u : 0u;
    if (high != 0u)
        atomicAdd(error_cells[index].high, high);
}

// Returns the gradient with respect to a sample's position through the sample's width in the density's
// unit, which falls with the square of the norm. The loss depends on density times width.
vec3 width_gradient(uint index, vec3 position)
{
    vec3 x = from_center(position), a = abs(x);
    float norm = maximum_norm(x);
    if (CONTRACTION == CONTRACTION_NONE || norm <= 1.0)
        return vec3(0.0);
    bvec3 axis = bvec3(a.x == norm, a.y == norm && a.x < norm, a.z > max(a.x, a.y));
    float by_width = field_gradients[index].w * field[index].w; // times the width
    return mix(vec3(0.0), sign(x) * (-4.0 / (norm * config.aabb_scale) * by_width), axis);
}

// Computes the gradients of the loss, summed over the rays, with respect to rotation and translation.
void pose_gradients(uint index, out vec3 turn, out vec3 shift)
{
    Ray ray = rays[samples[index].ray];
    vec3 direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
    vec3 position = vec3(ray.origin[0], ray.origin[1], ray.origin[2]) + samples[index].t * direction;
    float scale = float(state.ray_count) / state.loss_scale;
    shift = scale * (input_gradients[2u * index].xyz + width_gradient(index, position));
    turn = cross(direction, samples[index].t * shift + scale * input_gradients[2u * index + 1u].xyz);
    // Overflowed activations: the optimiser skips the step.
    float magnitude = dot(abs(turn) + abs(shift), vec3(1.0));
    if (!(magnitude < 1e30)) // NaN, infinite
        turn = shift = vec3(0.0);
}

void main()
{
    uint count = gradient_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint first = gl_WorkGroupID.x * LOCAL_SIZE; first < count; first += stride) {
        uint i = first + gl_LocalInvocationID.x, view = NO_VIEW;
        vec3 turn = vec3(0.0), shift = vec3(0.0);
        if (i < count) {
            uint index = gradient_sample(i);
            pose_gradients(index, turn, shift);
            if (turn != vec3(0.0) || shift != vec3(0.0))
                view = cameras[rays[samples[index].ray].view].view;
        }
        // Neighbouring samples are mostly of one ray: a subgroup has few views.
        for (;;) {
            uvec4 pending = subgroupBallot(view != NO_VIEW);
            if (pending == uvec4(0u))
                break;
            uint chosen = subgroupShuffle(view, subgroupBallotFindLSB(pending));
            bool is_chosen = view == chosen;
            vec3 turn_sum = subgroupAdd(is_chosen ? turn : vec3(0.0));
            vec3 shift_sum = subgroupAdd(is_chosen ? shift : vec3(0.0));
            if (subgroupElect()) {
                uint sum = config.first_sum + chosen * VIEW_PARAMETERS;
                for (uint k = 0; k < 3u; k++) {
                    add_gradient(sum + k, turn_sum[k]);
                    add_gradient(sum + 3u + k, shift_sum[k]);
                }
                atomicAdd(error_cells[sum].rays, 1u);
            }
            view = is_chosen ? NO_VIEW : view;
        }
    }
}
