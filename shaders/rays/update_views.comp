#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_views (one workgroup): moves the cameras by the gradients of the last update interval. A
// step of Adam on each view's latent parameters; then the movements of all cameras together that change
// no picture are taken out; then each view is kept within config.refine_limit pixels of its start.
//
//   buffer   shape                                     access
//   CONTROL  time_progress                             read
//   STATE    [view][parameter] ErrorCell, [view] View  read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };

#include "rays/refined_views.glsl"
#include "shared/progress.glsl"

const float BETA1 = 0.9, BETA2 = 0.99, EPSILON = 1e-15; // CamP's

shared float gauge_sums[VIEW_GAUGES][LOCAL_SIZE];

// Returns the sum of gradients with respect to a parameter of a view, and clears it.
float take_gradient(uint view, uint parameter)
{
    uint index = config.first_sum + view * VIEW_PARAMETERS + parameter;
    ErrorCell sum = error_cells[index];
    error_cells[index] = ErrorCell(0.0, 0u, 0u, 0u);
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

bool cameras_move()
{
    return !training_ends() || training_progress() >= config.refine_start;
}

// Updates the view's latent parameters from the gradient with respect to rotation and translation at the
// current pose.
void update_latent(uint view, vec3 turn_gradient, vec3 shift_gradient)
{
    // The gradient with respect to the rotation vector: the transposed left Jacobian of the rotation
    // (Sola et al., A micro Lie theory for state estimation in robotics, 2018, equation 145).
    vec3 w = view_vector(view, VIEW_TURN), factors = turn_factors(dot(w, w)), across = cross(w, turn_gradient);
    vec3 by_turn = turn_gradient - factors.y * across + factors.z * cross(w, across);
    float gradient[VIEW_PARAMETERS] =
        float[](by_turn.x, by_turn.y, by_turn.z, shift_gradient.x, shift_gradient.y, shift_gradient.z);
    uint at = view_word(view, 0u), count = floatBitsToUint(view_words[at + VIEW_UPDATES]) + 1u;
    float rate = rate_of_update() * sqrt(1.0 - exp2(log2(BETA2) * float(count))) /
                 (1.0 - exp2(log2(BETA1) * float(count)));
    view_words[at + VIEW_UPDATES] = uintBitsToFloat(count);
    for (uint k = 0; k < VIEW_PARAMETERS; k++) {
        float g = 0.0;
        for (uint j = 0; j < VIEW_PARAMETERS; j++)
            g += view_words[at + VIEW_WHITENING + j * VIEW_PARAMETERS + k] * gradient[j];
        float m = mix(g, view_words[at + VIEW_MOMENT1 + k], BETA1);
        float v = mix(g * g, view_words[at + VIEW_MOMENT2 + k], BETA2);
        view_words[at + VIEW_MOMENT1 + k] = m;
        view_words[at + VIEW_MOMENT2 + k] = v;
        view_words[at + VIEW_LATENT + k] -= rate * m / (sqrt(v) + EPSILON);
    }
}

// Takes the common movement out of the view's latent parameters, limits them, and computes rotation and
// translation from them.
void finish_view(uint view)
{
    uint at = view_word(view, 0u);
    float latent[VIEW_PARAMETERS], squared = 0.0;
    for (uint k = 0; k < VIEW_PARAMETERS; k++) {
        latent[k] = view_words[at + VIEW_LATENT + k];
        for (uint g = 0; g < VIEW_GAUGES; g++)
            latent[k] -= gauge_sums[g][0] * view_words[at + VIEW_GAUGE + g * VIEW_PARAMETERS + k];
        squared += latent[k] * latent[k];
    }
    float factor = min(1.0, config.refine_limit * inversesqrt(max(squared, 1e-30)));
    for (uint k = 0; k < VIEW_PARAMETERS; k++)
        view_words[at + VIEW_LATENT + k] = latent[k] *= factor;
    for (uint j = 0; j < VIEW_PARAMETERS; j++) {
        float sum = 0.0;
        for (uint k = 0; k < VIEW_PARAMETERS; k++)
            sum += view_words[at + VIEW_WHITENING + j * VIEW_PARAMETERS + k] * latent[k];
        view_words[at + VIEW_TURN + j] = sum;
    }
}

void main()
{
    uint lane = gl_LocalInvocationID.x;
    float sums[VIEW_GAUGES];
    for (uint g = 0; g < VIEW_GAUGES; g++)
        sums[g] = 0.0;
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE) {
        bool has_rays = error_cells[config.first_sum + view * VIEW_PARAMETERS].rays > 0u;
        float gradient[VIEW_PARAMETERS];
        for (uint k = 0; k < VIEW_PARAMETERS; k++)
            gradient[k] = take_gradient(view, k);
        if (has_rays && cameras_move())
            update_latent(view, vec3(gradient[0], gradient[1], gradient[2]),
                          vec3(gradient[3], gradient[4], gradient[5]));
        uint at = view_word(view, 0u);
        for (uint g = 0; g < VIEW_GAUGES; g++)
            for (uint k = 0; k < VIEW_PARAMETERS; k++)
                sums[g] += view_words[at + VIEW_GAUGE + g * VIEW_PARAMETERS + k] * view_words[at + VIEW_LATENT + k];
    }
    for (uint g = 0; g < VIEW_GAUGES; g++)
        gauge_sums[g][lane] = sums[g];
    barrier();
    if (lane < VIEW_GAUGES)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            gauge_sums[lane][0] += gauge_sums[lane][i];
    barrier();
    for (uint view = lane; view < config.camera_count; view += LOCAL_SIZE)
        finish_view(view);
}
