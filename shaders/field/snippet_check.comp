#version 460
#extension GL_GOOGLE_include_directive : require
// Pass snippet_check (fields in GLSL): checks a snippet at one position per invocation: that it stays
// within its parameters and features, and that its gradients are the derivatives of its features. The
// loss is the sum of the features times random numbers, which are the features' gradients. The
// derivatives of the loss with respect to some of the parameters that the snippet uses are compared
// with central differences of two widths. The snippet runs again for each value of the loss.
//   push.a  positions
//   push.b  parameters per position
//   push.c  the first parameter
//
//   buffer  shape                                                                       access
//   PARAMS  [parameter] f32                                                             read
//   FIELD   [position][4] u32: SNIPPET_*, parameter or feature, derivative, difference  write
#include "field/snippet.glsl"
#include "shared/common.glsl"
#include "shared/snippet.h"

layout(std430, BINDING(PARAMS)) readonly buffer ParameterBuffer { float parameters[]; };
layout(std430, BINDING(FIELD)) writeonly buffer FindingBuffer { uvec4 findings[]; };

const uint NONE = 0xffffffffu;
const float WIDTH = 1.0 / 64.0;         // h, for parameters of magnitude up to 1
const float TOLERANCE = 1e-2;           // relative error of a derivative
const float ROUNDING = 8.0 / 8388608.0; // rounding of the loss, relative to its terms' magnitudes

// First finding at the position; among wrong derivatives the worst, which any other finding replaces.
uvec4 finding;
float worst;

// State of the functions below, which the snippet calls.
bool is_backward;           // whether encode_backward runs, otherwise encode
uint use_count, wanted_use, found; // uses of parameters so far; a use, and its parameter once found
uint perturbed;          // index of the parameter whose derivative is checked
float offset;            // added to that parameter
float loss, magnitude, slope; // sum of the loss's terms; sum of the terms' magnitudes; derivative
uvec4 features_put;      // one bit per feature
uint point;              // number of the position

// Returns whether no finding so far is worse than a wrong derivative.
bool is_right()
{
    return finding.x == SNIPPET_OK || finding.x == SNIPPET_DERIVATIVE;
}

void report(uint kind, uint index)
{
    if (is_right())
        finding = uvec4(kind, index, 0u, 0u);
}

// Counts a use of a parameter or its gradient. Returns false and reports if the index is out of range.
bool use_parameter(uint i, uint outside)
{
    if (i - push.c >= FIELD_PARAMETERS) {
        report(i < push.c ? SNIPPET_PARAMETER_BEFORE_FIRST : outside, i < push.c ? i : i - push.c);
        return false;
    }
    if (use_count++ == wanted_use)
        found = i;
    return true;
}

float parameter(uint i)
{
    if (!use_parameter(i, is_backward ? SNIPPET_BACKWARD_READS : SNIPPET_READS))
        return 0.0;
    return parameters[i] + (i == perturbed ? offset : 0.0);
}

vec2 parameter_pair(uint i)
{
    if (i % 2u != 0u)
        report(SNIPPET_ODD_PAIR, i - push.c);
    return vec2(parameter(i), parameter(i + 1u));
}

float random_gradient(uint i)
{
    return 2.0 * random_unit(1u, point, i).x - 1.0;
}

void put_feature(uint i, float x)
{
    if (i >= FIELD_FEATURES) {
        report(SNIPPET_PUTS_BEHIND_LAST, i);
        return;
    }
    if ((features_put[i / 32u] >> i % 32u & 1u) != 0u)
        report(SNIPPET_PUTS_TWICE, i);
    if (isnan(x) || isinf(x))
        report(SNIPPET_NOT_FINITE, i);
    features_put[i / 32u] |= 1u << i % 32u;
    float term = random_gradient(i) * x;
    loss += term;
    magnitude += abs(term);
}

float feature_gradient(uint i)
{
    if (i < FIELD_FEATURES)
        return random_gradient(i);
    report(SNIPPET_ASKS_BEHIND_LAST, i);
    return 0.0;
}

void add_gradient(uint i, float x)
{
    if (!use_parameter(i, SNIPPET_WRITES))
        return;
    if (isnan(x) || isinf(x))
        report(SNIPPET_GRADIENT_NOT_FINITE, i - push.c);
    if (i == perturbed)
        slope += x;
}

void run(vec3 position)
{
    use_count = 0u;
    if (is_backward) {
        slope = 0.0;
        encode_backward(position, push.c);
    } else {
        loss = magnitude = 0.0;
        features_put = uvec4(0u);
        encode(position, push.c);
    }
}

// Compares the derivative with differences. `losses`: with the parameter unchanged, decreased and
// increased by h / 2, decreased and increased by h.
void compare(float losses[5], float h)
{
    float difference = (losses[2] - losses[1]) / h, wide = (losses[4] - losses[3]) / (2.0 * h);
    // At a kink the derivative is one-sided.
    float error = min(abs(slope - difference), min(abs(slope - 2.0 * (losses[0] - losses[1]) / h),
                                                   abs(slope - 2.0 * (losses[2] - losses[0]) / h)));
    float scale = max(abs(slope), abs(difference));
    error -= 2.0 * (abs(wide - difference) + ROUNDING * magnitude / h);
    if (error > max(TOLERANCE, worst) * scale && is_right()) {
        worst = error / scale;
        finding = uvec4(SNIPPET_DERIVATIVE, perturbed - push.c, floatBitsToUint(slope),
                        floatBitsToUint(difference));
    }
}

// The first positions are the cube's corners, where indices are at their limits.
vec3 position_of(uint point)
{
    return point < 8u ? vec3(point & 1u, point >> 1 & 1u, point >> 2) : random_unit(0u, point, 0u);
}

const uint STAGES = 7u; // per parameter: find it, compute its derivative, compute five losses

void check_position()
{
    point = gl_GlobalInvocationID.x;
    if (point >= push.a)
        return;
    vec3 position = position_of(point);
    uint encode_uses = 0u, total_uses = 0u; // uses of parameters in encode; in both functions
    float losses[5], h = 0.0;
    finding = uvec4(SNIPPET_OK, 0u, 0u, 0u);
    worst = offset = 0.0;
    perturbed = NONE;
    // One loop, so that compilers see the snippet once. The first two iterations run both functions and
    // count their uses of parameters.
    for (uint round = 0; round < 2u + STAGES * push.b; round++) {
        uint stage = (round - 2u) % STAGES, number = 0u;
        bool is_counting = round < 2u;
        if (!is_counting && total_uses == 0u)
            break;
        if (!is_counting && stage == 0u)
            number = random_bits(2u, point, round).x % total_uses;
        is_backward = is_counting ? round == 1u : stage == 0u ? number >= encode_uses : stage == 1u;
        wanted_use = is_counting || stage > 0u ? NONE : is_backward ? number - encode_uses : number;
        offset = 0.0;
        if (!is_counting && stage > 2u)
            offset = (stage < 5u ? h / 2.0 : h) * (stage % 2u == 0u ? 1.0 : -1.0);
        found = push.c;
        run(position);
        if (is_counting) {
            encode_uses = is_backward ? encode_uses : use_count;
            total_uses += use_count;
            for (uint i = 0; i < FIELD_FEATURES && !is_backward; i++)
                if ((features_put[i / 32u] >> i % 32u & 1u) == 0u)
                    report(SNIPPET_FEATURE_MISSING, i);
        } else if (stage == 0u) {
            perturbed = found;
            h = WIDTH * max(1.0, abs(parameters[perturbed]));
        } else if (stage > 1u) {
            losses[stage - 2u] = loss;
            if (stage == STAGES - 1u)
                compare(losses, h);
        }
    }
    findings[point] = finding;
}

// The compiler initialises the snippet's global variables at the beginning of main.
void main()
{
    check_position();
}
