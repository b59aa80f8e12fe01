#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// Pass update_views (one workgroup): moves the cameras by the gradients of the last update interval.
// Takes a step of Adam, shortened by the gradients' noise, with each view's latent parameters; takes out
// the movements of all cameras together that change no picture; limits the length of each view's latent
// parameters to config.refine_limit; computes rotations and translations.
//
//   buffer   shape                                     access
//   CONTROL  time_progress                             read
//   STATE    [view][parameter] ErrorCell, [view] View  read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) workgroupcoherent buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };

#define VIEW_BUFFER workgroupcoherent buffer
#include "rays/refined_views.glsl"
#include "shared/progress.glsl"

const float BETA1 = 0.9, BETA2 = 0.99, EPSILON = 1e-15; // CamP's
const float NOISE = 3.0; // a parameter rests while its squared mean gradient is below this many times that of noise

shared float gauge_sums[VIEW_GAUGES][LOCAL_SIZE];

// Returns the sum of gradients with respect to a parameter of a view.
float gradient_of(uint view, uint parameter)
{
    ErrorCell sum = error_cells[config.first_sum + view * VIEW_PARAMETERS + parameter];
    // Converts the magnitude: the two words of a small negative sum are large.
    bool is_negative = int(sum.high) < 0;
    uint low = is_negative ? ~sum.low + 1u : sum.low;
    uint high = is_negative ? ~sum.high + (low == 0u ? 1u : 0u) : sum.high;
    float magnitude = (float(high) * 4294967296.0 + float(low)) / GRADIENT_UNITS;
    return is_negative ? -magnitude : magnitude;
}

// Returns the change of a parameter in an update: it falls exponentially over the training.
float rate_of_update()
{
    float progress = (training_progress() - config.refine_start) / max(1.0 - config.refine_start, 1e-6);
    return config.refine_rate * pow(config.refine_final_rate / config.refine_rate, clamp(progress, 0.0, 1.0));
}

// Returns whether the view had rays and refine_start has passed.
bool is_updated(uint view)
{
    return error_cells[config.first_sum + view * VIEW_PARAMETERS].rays > 0u &&
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

// Updates latent parameter k of a view.
void update_latent(uint view, uint k)
{
    vec3 turn = vec3(gradient_of(view, 0u), gradient_of(view, 1u), gradient_of(view, 2u));
    vec3 shift = vec3(gradient_of(view, 3u), gradient_of(view, 4u), gradient_of(view, 5u));
    // Converts the gradient at the current pose to that with respect to the rotation vector, by the
    // transposed left Jacobian of the rotation (Sola et al., A micro Lie theory for state estimation in
    // robotics, 2018, equation 145).
    vec3 w = view_vector(view, VIEW_TURN), factors = turn_factors(dot(w, w)), across = cross(w, turn);
    turn += factors.z * cross(w, across) - factors.y * across;
    uint at = view_word(view, 0u), count = floatBitsToUint(view_words[at + VIEW_UPDATES]) + 1u;
    float g = 0.0;
    for (uint j = 0; j < 3u; j++)
        g += view_words[at + VIEW_WHITENING + j * VIEW_PARAMETERS + k] * turn[j] +
             view_words[at + VIEW_WHITENING + (3u + j) * VIEW_PARAMETERS + k] * shift[j];
    float m = mix(g, view_words[at + VIEW_MOMENT1 + k], BETA1);
    float v = mix(g * g, view_words[at + VIEW_MOMENT2 + k], BETA2);
    view_words[at + VIEW_MOMENT1 + k] = m;
    view_words[at + VIEW_MOMENT2 + k] = v;
    // Corrects the moments' bias.
    float rest1 = exp2(log2(BETA1) * float(count)), rest2 = exp2(log2(BETA2) * float(count));
    float mean = m / (1.0 - rest1), square = v / (1.0 - rest2);
    view_words[at + VIEW_LATENT + k] -=
        rate_of_update() * significance(mean, square, rest1) * mean / (sqrt(square) + EPSILON);
}

// Adds latent parameter k of a view along each gauge to the sums of this invocation.
void add_gauges(uint view, uint k)
{
    uint at = view_word(view, k);
    for (uint g = 0; g < VIEW_GAUGES; g++)
        gauge_sums[g][gl_LocalInvocationID.x] +=
            view_words[at + VIEW_GAUGE + g * VIEW_PARAMETERS] * view_words[at + VIEW_LATENT];
}

// Takes the common movement out of latent parameter k of a view.
void take_out_gauges(uint view, uint k)
{
    uint at = view_word(view, k);
    float latent = view_words[at + VIEW_LATENT];
    for (uint g = 0; g < VIEW_GAUGES; g++)
        latent -= gauge_sums[g][0] * view_words[at + VIEW_GAUGE + g * VIEW_PARAMETERS];
    view_words[at + VIEW_LATENT] = latent;
}

// Limits a view's latent parameters, counts the update, and clears the sums of gradients.
void finish_update(uint view)
{
    uint at = view_word(view, 0u);
    float squared = 0.0;
    for (uint k = 0; k < VIEW_PARAMETERS; k++)
        squared += view_words[at + VIEW_LATENT + k] * view_words[at + VIEW_LATENT + k];
    float factor = min(1.0, config.refine_limit * inversesqrt(max(squared, 1e-30)));
    for (uint k = 0; k < VIEW_PARAMETERS; k++)
        view_words[at + VIEW_LATENT + k] *= factor;
    if (is_updated(view))
        view_words[at + VIEW_UPDATES] = uintBitsToFloat(floatBitsToUint(view_words[at + VIEW_UPDATES]) + 1u);
    for (uint k = 0; k < VIEW_PARAMETERS; k++)
        error_cells[config.first_sum + view * VIEW_PARAMETERS + k] = ErrorCell(0.0, 0u, 0u, 0u);
}

// Computes parameter j of a view's pose: rotation vector, translation.
void update_pose(uint view, uint j)
{
    uint at = view_word(view, 0u);
    float sum = 0.0;
    for (uint k = 0; k < VIEW_PARAMETERS; k++)
        sum += view_words[at + VIEW_WHITENING + j * VIEW_PARAMETERS + k] * view_words[at + VIEW_LATENT + k];
    view_words[at + VIEW_TURN + j] = sum;
}

// Waits until all invocations have written.
void synchronize()
{
    memoryBarrierBuffer();
    barrier();
}

// An invocation handles one parameter of a view at a time, so that few values are live.
void main()
{
    uint lane = gl_LocalInvocationID.x, count = config.camera_count * VIEW_PARAMETERS;
    for (uint g = 0; g < VIEW_GAUGES; g++)
        gauge_sums[g][lane] = 0.0;
    for (uint i = lane; i < count; i += LOCAL_SIZE) {
        uint view = i / VIEW_PARAMETERS, k = i % VIEW_PARAMETERS;
        if (is_updated(view))
            update_latent(view, k);
        add_gauges(view, k);
    }
    synchronize();
    if (lane < VIEW_GAUGES)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            gauge_sums[lane][0] += gauge_sums[lane][i];
    synchronize();
    for (uint i = lane; i < count; i += LOCAL_SIZE)
        take_out_gauges(i / VIEW_PARAMETERS, i % VIEW_PARAMETERS);
    synchronize();
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE)
        finish_update(view);
    synchronize();
    for (uint i = lane; i < count; i += LOCAL_SIZE)
        update_pose(i / VIEW_PARAMETERS, i % VIEW_PARAMETERS);
}
