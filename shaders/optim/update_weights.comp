#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry of a group of parameters (the features of a hash slot; some MLP weights): unscale, clip,
// Adam (Kingma and Ba, 2015) on the FP32 masters, clear the gradient. An entry of a sparse group that no
// sample touched is left alone and keeps its own count of steps, so that its bias correction stays right.
// HALF_COPIES: also refreshes the f16 copies that the 16-bit field reads.
#ifdef HALF_COPIES
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "shared/common.glsl"
#include "optim/gradients.glsl"

layout(constant_id = SPEC_ENTRY) const uint ENTRY = 2;
layout(constant_id = SPEC_PAIRED) const uint PAIRED = 0;
layout(constant_id = SPEC_CPU_SHAPED) const uint CPU_SHAPED = 0;
// On GPUs entries of pairs are read and written by pairs: half as many accesses.
const bool BY_PAIRS = PAIRED != 0u && CPU_SHAPED == 0u;

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) buffer ParamBuffer { float params[]; };
layout(std430, BINDING(PARAMS)) buffer ParamPairBuffer { vec2 param_pairs[]; };
layout(std430, BINDING(MOMENT1)) buffer Moment1Buffer { float moment1[]; };
layout(std430, BINDING(MOMENT1)) buffer Moment1PairBuffer { vec2 moment1_pairs[]; };
layout(std430, BINDING(MOMENT2)) buffer Moment2Buffer { float moment2[]; };
layout(std430, BINDING(MOMENT2)) buffer Moment2PairBuffer { vec2 moment2_pairs[]; };
layout(std430, BINDING(COUNTS)) buffer CountBuffer { uint counts[]; };
#ifdef HALF_COPIES
layout(std430, BINDING(HALVES)) writeonly buffer HalfBuffer { float16_t halves[]; };
layout(std430, BINDING(HALVES)) writeonly buffer HalfPairBuffer { f16vec2 half_pairs[]; };
#endif

// The group of an entry: the last one that begins before it.
uint group_of(uint entry)
{
    uint group = 0u;
    [[unroll]] for (uint reach = MAX_GROUPS / 2u; reach > 0u; reach /= 2u)
        group += entry >= config.groups[group + reach].first_entry ? reach : 0u;
    return group;
}

struct Entry {
    uint number, first; // its place in BIND_COUNTS, its first parameter
    bool there, touched;
    float gradient[ENTRY];
};

// Number of its pair k. Written so that compilers see which ones lie in 16 bytes.
uint pair_of(Entry e, uint k)
{
    return e.first / ENTRY * (ENTRY / 2u) + k;
}

// Its gradient alone, which for most says that there is nothing to do.
void take_entry(uint number, Group group, out Entry e)
{
    e.number = number;
    e.first = group.first + (number - group.first_entry) * group.entry;
    e.there = e.first < group.first + group.count;
    e.touched = e.there && group.sparse == 0u;
    [[unroll]] for (uint k = 0; k < ENTRY; k++) {
        if (!BY_PAIRS)
            e.gradient[k] = e.there && k < group.entry ? get_gradient(e.first + k) : 0.0;
        else if (k % 2u == 0u) {
            vec2 pair = e.there ? get_gradient_pair(pair_of(e, k / 2u)) : vec2(0.0);
            e.gradient[k] = pair.x;
            e.gradient[k + 1u] = pair.y;
        }
    }
    [[unroll]] for (uint k = 0; k < ENTRY; k++)
        e.touched = e.touched || e.gradient[k] != 0.0; // true for NaN
}

void clear_entry(Entry e, Group group)
{
    [[unroll]] for (uint k = 0; k < ENTRY; k++) {
        if (!BY_PAIRS && k < group.entry)
            clear_gradient(e.first + k);
        if (BY_PAIRS && k % 2u == 0u)
            clear_gradient_pair(pair_of(e, k / 2u));
    }
}

// One parameter's weight and moments by its gradient.
void adam(float gradient, Group group, float rate, inout float w, inout float m, inout float v)
{
    float g = gradient * state.gradient_factor;
    if (group.decay != 0.0)
        g += group.decay * w;
    m = mix(g, m, config.beta1);
    v = mix(g * g, v, config.beta2);
    w -= rate * m / (sqrt(v) + config.epsilon);
}

void update_parameter(uint i, float gradient, Group group, float rate)
{
    float w = params[i], m = moment1[i], v = moment2[i];
    adam(gradient, group, rate, w, m, v);
    moment1[i] = m;
    moment2[i] = v;
    params[i] = w;
#ifdef HALF_COPIES
    halves[i] = float16_t(w);
#endif
}

void update_pair(uint i, vec2 gradient, Group group, float rate)
{
    vec2 w = param_pairs[i], m = moment1_pairs[i], v = moment2_pairs[i];
    adam(gradient.x, group, rate, w.x, m.x, v.x);
    adam(gradient.y, group, rate, w.y, m.y, v.y);
    moment1_pairs[i] = m;
    moment2_pairs[i] = v;
    param_pairs[i] = w;
#ifdef HALF_COPIES
    half_pairs[i] = f16vec2(w);
#endif
}

void update_entry(Entry e, Group group)
{
    clear_entry(e, group);
    if (state.nonfinite != 0u || group.rate == 0.0)
        return;
    uint count = counts[e.number] + 1u;
    counts[e.number] = count;
    float correction1 = 1.0 - exp2(log2(config.beta1) * float(count));
    float correction2 = 1.0 - exp2(log2(config.beta2) * float(count));
    float rate = state.learning_rate * group.rate * sqrt(correction2) / correction1;
    [[unroll]] for (uint k = 0; k < ENTRY; k++) {
        if (!BY_PAIRS && k < group.entry)
            update_parameter(e.first + k, e.gradient[k], group, rate);
        if (BY_PAIRS && k % 2u == 0u)
            update_pair(pair_of(e, k / 2u), vec2(e.gradient[k], e.gradient[k + 1u]), group, rate);
    }
}

// Entries [row, row + 1) * LOCAL_SIZE are of one group: what is the same for all lanes, and known to be,
// is looked up once for all of them.
Group group_of_row(uint row)
{
    return config.groups[group_of(row * LOCAL_SIZE)];
}

void main()
{
    uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (CPU_SHAPED != 0u) { // no loop over rows
        Group group = group_of_row(row);
        Entry e;
        take_entry(row * LOCAL_SIZE + gl_LocalInvocationIndex, group, e);
        if (e.touched)
            update_entry(e, group);
        return;
    }
    // Gradients of several rows are on their way at once.
    const uint AT_ONCE = 4u;
    uint rows = (config.entry_count - 1u) / LOCAL_SIZE + 1u, stride = gl_NumWorkGroups.y * gl_NumWorkGroups.x;
    for (; row < rows; row += AT_ONCE * stride) {
        Group groups[AT_ONCE];
        Entry entries[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
            groups[k] = group_of_row(row + k * stride);
            take_entry((row + k * stride) * LOCAL_SIZE + gl_LocalInvocationIndex, groups[k], entries[k]);
        }
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
            if (entries[k].touched)
                update_entry(entries[k], groups[k]);
    }
}
