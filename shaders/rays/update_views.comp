#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// Pass update_views (one workgroup): moves the cameras and changes their lenses by the gradients of the
// last update interval. Takes a step of Adam, shortened by the gradients' noise, with the latent
// parameters of each view's pose and of each camera group's lens; takes out the movements of all cameras
// together that change no picture; limits the length of latent parameters to config.refine_limit;
// computes rotations, translations and changes of lenses.
//
//   buffer   shape                                     access
//   CONTROL  time_progress                             read
//   STATE    [view][VIEW_SUMS] ErrorCell, [view] View  read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) workgroupcoherent buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };

#define VIEW_BUFFER workgroupcoherent buffer
#include "rays/gradient_sums.glsl"
#include "rays/refined_views.glsl"
#include "shared/progress.glsl"

const float BETA1 = 0.9, BETA2 = 0.99, EPSILON = 1e-15; // CamP's
const float NOISE = 3.0; // a parameter rests while its squared mean gradient is below this many times that of noise

// Returns the cell with the sum of gradients with respect to a parameter of a view's pose.
uint pose_sum(uint view, uint parameter)
{
    return config.first_sum + view * VIEW_SUMS + parameter;
}

// Returns the cell with the sum of gradients with respect to a parameter of a view's lens.
uint lens_sum(uint view, uint parameter)
{
    return pose_sum(view, VIEW_PARAMETERS + parameter);
}

// Returns the change of a parameter in an update: it falls exponentially over the training.
float rate_of_update()
{
    float progress = (training_progress() - config.refine_start) / max(1.0 - config.refine_start, 1e-6);
    return config.refine_rate * pow(config.refine_final_rate / config.refine_rate, clamp(progress, 0.0, 1.0));
}

// Returns whether the pose or lens whose first sum of gradients is in `cell` had rays, and refine_start
// has passed.
bool is_updated(uint cell)
{
    return error_cells[cell].rays > 0u &&
           (!training_ends() || training_progress() >= config.refine_start);
}

// Returns how far a mean gradient stands out from noise, 0 to 1: the positive part of James and Stein's
// shrinkage with NOISE times the variance (Efron and Morris, JASA 1973). Adam's steps are as long for
// noise as for a gradient, and would let exact cameras drift. The mean of n gradients with weights
// (1 - BETA1) BETA1^i / (1 - BETA1^n) has the variance of one gradient times the sum of the squared
// weights. rest1: BETA1^n.
float significance(float mean, float square, float rest1)
{
    float noise = (1.0 - BETA1) / (1.0 + BETA1) * (1.0 + rest1) / (1.0 - rest1) * square;
    return mean != 0.0 ? max(1.0 - NOISE * noise / (mean * mean), 0.0) : 0.0;
}

// Takes step `count` with the latent parameter in word `at`, one of `parameters`, whose moments follow.
void step_latent(uint at, uint parameters, uint count, float g)
{
    float m = mix(g, view_words[at + parameters], BETA1);
    float v = mix(g * g, view_words[at + 2u * parameters], BETA2);
    view_words[at + parameters] = m;
    view_words[at + 2u * parameters] = v;
    // Corrects the moments' bias.
    float rest1 = exp2(log2(BETA1) * float(count)), rest2 = exp2(log2(BETA2) * float(count));
    float mean = m / (1.0 - rest1), square = v / (1.0 - rest2);
    view_words[at] -= rate_of_update() * significance(mean, square, rest1) * mean / (sqrt(square) + EPSILON);
}

// Limits the length of latent parameters. Counts the update, and clears the sums of gradients, whose
// first is in `cell`.
void finish_update(uint latent, uint updates, uint parameters, uint cell, uint sums)
{
    float squared = 0.0;
    for (uint k = 0; k < parameters; k++)
        squared += view_words[latent + k] * view_words[latent + k];
    float factor = min(1.0, config.refine_limit * inversesqrt(max(squared, 1e-30)));
    for (uint k = 0; k < parameters; k++)
        view_words[latent + k] *= factor;
    if (is_updated(cell))
        view_words[updates] = uintBitsToFloat(floatBitsToUint(view_words[updates]) + 1u);
    for (uint k = 0; k < sums; k++)
        error_cells[cell + k] = ErrorCell(0.0, 0u, 0u, 0u);
}

// Returns the parameter that a row of a whitening matrix computes from latent parameters.
float from_latent(uint row, uint latent, uint parameters)
{
    float sum = 0.0;
    for (uint k = 0; k < parameters; k++)
        sum += view_words[row + k] * view_words[latent + k];
    return sum;
}

// Waits until all invocations have written.
void synchronize()
{
    memoryBarrierBuffer();
    barrier();
}

#include "rays/update_poses.glsl"
#include "rays/update_lenses.glsl"

void main()
{
    if ((REFINE & REFINE_POSES) != 0u)
        update_poses(gl_LocalInvocationID.x);
    if ((REFINE & REFINE_LENSES) != 0u)
        update_lenses(gl_LocalInvocationID.x);
}
