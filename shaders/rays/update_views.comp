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
#include "rays/significant_step.glsl"

const float BETA2 = 0.99; // CamP's

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

// Returns the change of a parameter in an update.
float rate_of_update()
{
    return falling_rate(config.refine_rate, config.refine_final_rate, config.refine_start);
}

// Returns whether the pose or lens whose first sum of gradients is in `cell` had rays, and refine_start
// has passed.
bool is_updated(uint cell)
{
    return error_cells[cell].rays > 0u &&
           (!training_ends() || training_progress() >= config.refine_start);
}

// Takes step `count` with the latent parameter in word `at`, one of `parameters`, whose moments follow.
void step_latent(uint at, uint parameters, uint count, float g)
{
    float moment1 = view_words[at + parameters], moment2 = view_words[at + 2u * parameters];
    view_words[at] -= rate_of_update() * significant_step(g, count, BETA2, moment1, moment2);
    view_words[at + parameters] = moment1;
    view_words[at + 2u * parameters] = moment2;
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
