#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
// Pass view_gradients: adds the gradients with respect to each live sample's position and direction to
// the gradients with respect to the pose and the lens of the sample's view. A camera that turns by the
// rotation vector w moves a sample at distance t by t w x d and turns its direction d by w x d. Sums are
// fixed point (gradient_sums.glsl).
//
//   buffer                  shape                               access
//   LIVE                    [live sample] u32                   read
//   RAYS, SAMPLES           [ray], [sample]                     read
//   INPUT_GRADIENTS         [sample][position, direction] vec4  read
//   FIELD, FIELD_GRADIENTS  [sample] vec4, in contracted space  read
//   CAMERAS                 [camera]                            read
//   STATE                   [view][VIEW_SUMS] ErrorCell         read, write
//   STATE                   [view] View, with REFINE_LENSES     read
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(INPUT_GRADIENTS)) readonly buffer InputGradientBuffer { vec4 input_gradients[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(FIELD_GRADIENTS)) readonly buffer FieldGradientBuffer { vec4 field_gradients[]; };

#define VIEW_BUFFER readonly buffer
#include "field/live_samples.glsl"
#include "rays/camera.glsl"
#include "rays/gradient_sums.glsl"
#include "rays/refined_views.glsl"
#include "rays/lens_gradients.glsl"
#include "shared/contraction.glsl"

const uint NO_VIEW = 0xffffffffu;

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

// Adds the gradients of the subgroup's samples of one view to the sums of the view's pose.
void add_pose(uint sum, vec3 turn, vec3 shift, bool is_chosen)
{
    turn = subgroupAdd(is_chosen ? turn : vec3(0.0));
    shift = subgroupAdd(is_chosen ? shift : vec3(0.0));
    if (subgroupElect()) {
        for (uint k = 0; k < 3u; k++) {
            add_gradient(sum + k, turn[k]);
            add_gradient(sum + 3u + k, shift[k]);
        }
        atomicAdd(error_cells[sum].rays, 1u);
    }
}

// Adds the gradients of the subgroup's samples of one view to the sums of the view's lens.
void add_lens(uint sum, LensGradients by, bool is_chosen)
{
    vec4 focal_center = subgroupAdd(is_chosen ? by.focal_center : vec4(0.0));
    vec4 distortion = subgroupAdd(is_chosen ? by.distortion : vec4(0.0));
    vec2 scale = subgroupAdd(is_chosen ? by.scale : vec2(0.0));
    vec4 products = subgroupAdd(is_chosen ? by.products : vec4(0.0));
    if (subgroupElect()) {
        for (uint k = 0; k < 4u; k++) {
            add_gradient(sum + k, focal_center[k]);
            add_gradient(sum + 4u + k, distortion[k]);
            add_gradient(sum + LENS_SCALE + 2u + k, products[k]);
        }
        add_gradient(sum + LENS_SCALE, scale.x);
        add_gradient(sum + LENS_SCALE + 1u, scale.y);
        atomicAdd(error_cells[sum].rays, 1u);
    }
}

void main()
{
    uint count = gradient_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint first = gl_WorkGroupID.x * LOCAL_SIZE; first < count; first += stride) {
        uint i = first + gl_LocalInvocationID.x, view = NO_VIEW;
        vec3 turn = vec3(0.0), shift = vec3(0.0);
        LensGradients by_lens = no_lens_gradients();
        if (i < count) {
            uint index = gradient_sample(i);
            pose_gradients(index, turn, shift);
            if (turn != vec3(0.0) || shift != vec3(0.0)) {
                view = cameras[rays[samples[index].ray].view].view;
                if ((REFINE & REFINE_LENSES) != 0u)
                    by_lens = lens_gradients(rays[samples[index].ray], turn, shift);
            }
        }
        // Neighbouring samples are mostly of one ray: a subgroup has few views.
        for (;;) {
            uvec4 pending = subgroupBallot(view != NO_VIEW);
            if (pending == uvec4(0u))
                break;
            uint chosen = subgroupShuffle(view, subgroupBallotFindLSB(pending));
            bool is_chosen = view == chosen;
            uint sum = config.first_sum + chosen * VIEW_SUMS;
            if ((REFINE & REFINE_POSES) != 0u)
                add_pose(sum, turn, shift, is_chosen);
            if ((REFINE & REFINE_LENSES) != 0u)
                add_lens(sum + VIEW_PARAMETERS, by_lens, is_chosen);
            view = is_chosen ? NO_VIEW : view;
        }
    }
}
