#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// Pass update_appearance (one workgroup): changes the appearance of training views by the gradients of
// the last update interval. Takes a step of Adam, shortened by the gradients' noise; takes out of the
// images' parameters what the field can have; pulls all parameters but exposures and white balances a
// little towards no change.
//
//   buffer   shape                                                             access
//   CAMERAS  [view] pose                                                       read
//   CONTROL  time_progress                                                     read
//   STATE    [view][APPEARANCE_PARAMETERS] ErrorCell, [view] Appearance        read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) workgroupcoherent buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(STATE)) workgroupcoherent buffer AppearanceBuffer { float appearance_words[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };

layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };

layout(constant_id = SPEC_APPEARANCE) const uint APPEARANCE = 0;

#include "rays/gradient_sums.glsl"
#include "rays/significant_step.glsl"

const float BETA2 = 0.9;           // short, because gradients of an untrained field are large
const uint BALANCE_END = 3u;       // the parameters before are exposure and white balance
const float PULL = 0.1;            // pull of a parameter towards 0, as a share of the parameter and of the rate
const float MOST_EXPOSURE = 16.0;  // stops, SCENE_MOST_EXPOSURE
const float MOST = 1.5;            // of another parameter

// Number of parameters that are estimated of an image, and of a camera.
const uint IMAGE_PARAMETERS = APPEARANCE == APPEARANCE_FULL ? APPEARANCE_IMAGE : 1u;
const uint CAMERA_PARAMETERS = APPEARANCE == APPEARANCE_FULL ? APPEARANCE_PARAMETERS - APPEARANCE_IMAGE : 0u;

uint word_of(uint view, uint parameter)
{
    return config.first_appearance_word + view * APPEARANCE_WORDS + parameter;
}

uint sum_of(uint view, uint parameter)
{
    return config.first_appearance_sum + view * APPEARANCE_PARAMETERS + parameter;
}

// Returns the first view of a view's camera; a damaged checkpoint must not lead out of the buffer.
uint group_of(uint view)
{
    return min(floatBitsToUint(appearance_words[word_of(view, APPEARANCE_GROUP)]), config.camera_count - 1u);
}

float rate_of_update()
{
    return falling_rate(config.appearance_rate, config.appearance_final_rate, 0.0);
}

// Takes a step with a parameter of a view or, from APPEARANCE_IMAGE on, of the camera whose first view
// it is.
void step_parameter(uint view, uint k)
{
    bool is_camera = k >= APPEARANCE_IMAGE;
    uint at = word_of(view, k);
    error_cells[sum_of(view, k)].error = appearance_words[at]; // the value before, for deviation_of
    if (error_cells[sum_of(view, is_camera ? APPEARANCE_IMAGE : 0u)].rays == 0u)
        return;
    uint updates = floatBitsToUint(appearance_words[word_of(view, APPEARANCE_UPDATES + (is_camera ? 1u : 0u))]);
    float moment1 = appearance_words[at + APPEARANCE_PARAMETERS];
    float moment2 = appearance_words[at + 2u * APPEARANCE_PARAMETERS];
    float value = appearance_words[at], rate = rate_of_update();
    value -= rate * significant_step(gradient_of(sum_of(view, k)), updates + 1u, BETA2, moment1, moment2);
    if (k >= BALANCE_END)
        value -= min(PULL * rate, 1.0) * value;
    float most = k == 0u ? MOST_EXPOSURE : MOST;
    appearance_words[at] = clamp(value, -most, most);
    appearance_words[at + APPEARANCE_PARAMETERS] = moment1;
    appearance_words[at + 2u * APPEARANCE_PARAMETERS] = moment2;
}

// Counts the updates of a view, and clears its sums.
void finish_view(uint view)
{
    for (uint i = 0; i < 2u; i++) {
        uint at = word_of(view, APPEARANCE_UPDATES + i);
        if (error_cells[sum_of(view, i * APPEARANCE_IMAGE)].rays > 0u)
            appearance_words[at] = uintBitsToFloat(floatBitsToUint(appearance_words[at]) + 1u);
    }
    for (uint k = 0; k < APPEARANCE_PARAMETERS; k++)
        error_cells[sum_of(view, k)] = ErrorCell(0.0, 0u, 0u, 0u);
}

// Waits until all invocations have written.
void synchronize()
{
    memoryBarrierBuffer();
    barrier();
}

#include "volume/exposure_trend.glsl"

void main()
{
    const uint PARAMETERS = IMAGE_PARAMETERS + CAMERA_PARAMETERS;
    uint lane = gl_LocalInvocationID.x, count = config.camera_count;
    for (uint i = lane; i < count * CAMERA_PARAMETERS; i += LOCAL_SIZE) {
        uint view = i / max(CAMERA_PARAMETERS, 1u), k = APPEARANCE_IMAGE + i % max(CAMERA_PARAMETERS, 1u);
        if (group_of(view) != view)
            move_sum(sum_of(view, k), sum_of(group_of(view), k));
    }
    synchronize();
    for (uint i = lane; i < count * PARAMETERS; i += LOCAL_SIZE)
        step_parameter(i / PARAMETERS, i % PARAMETERS);
    synchronize();
    for (uint k = 0; k < IMAGE_PARAMETERS; k++)
        for (uint i = 0; i < (is_fit ? 2u * ROUNDS : 1u); i++) {
            term_count = count_terms(k, is_fit && i < ROUNDS);
            take_out_trend(lane, k);
        }
    for (uint i = lane; i < count * CAMERA_PARAMETERS; i += LOCAL_SIZE) {
        uint view = i / max(CAMERA_PARAMETERS, 1u), k = APPEARANCE_IMAGE + i % max(CAMERA_PARAMETERS, 1u);
        if (group_of(view) != view)
            appearance_words[word_of(view, k)] = appearance_words[word_of(group_of(view), k)];
    }
    synchronize();
    for (uint view = lane; view < count; view += LOCAL_SIZE)
        finish_view(view);
}
