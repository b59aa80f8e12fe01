#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_weights: for each optimiser entry (the features of a hash grid entry, or some MLP
// weights) unscales and clips the gradient, applies the optimiser's step to the f32 parameters, and
// sets the gradient to zero. An entry of a sparse group that no sample touched is skipped: it keeps
// its own count of steps, so that its bias correction stays right. With grid.decay the hash grid is
// no sparse group, because every entry has the gradient of the decay.
//
//   buffer            shape                                      access
//   STATE             gradient_factor, update_rate, _skipped     read
//   GRADIENTS         [parameter] f32                            read, write
//   ACCUMULATORS      [4 parameters] f16, with F16_SUMS          read, write
//   PARAMS            [parameter] f32                            read, write
//   MOMENT1, MOMENT2  [parameter] f32                            read, write
//   MOMENT1           [parameter] u32, with BF16_MOMENTS         read, write
//   STEP_COUNTS       [entry] u32                                read, write
//   F16_PARAMS        [parameter] f16, with FP16                 write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "shared/rounding.glsl"
#include "optim/gradients.glsl"
#include "optim/optimizers.glsl"
#include "optim/moments.glsl"

layout(constant_id = SPEC_ENTRY_SIZE) const uint ENTRY_SIZE = 2;
layout(constant_id = SPEC_PAIRED) const uint PAIRED = 0;
layout(constant_id = SPEC_GRID_DECAY) const uint GRID_DECAY = 0;
layout(constant_id = SPEC_BF16_MOMENTS) const uint BF16_MOMENTS = 0;
// GPUs access entries of an even size by pairs, which halves the number of accesses.
const bool BY_PAIRS = PAIRED != 0u && CPU_KERNELS == 0u;

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) buffer ParamBuffer { float params[]; };
layout(std430, BINDING(PARAMS)) buffer ParamPairBuffer { vec2 param_pairs[]; };
layout(std430, BINDING(MOMENT1)) buffer Moment1Buffer { float moment1[]; };
layout(std430, BINDING(MOMENT1)) buffer Moment1PairBuffer { vec2 moment1_pairs[]; };
layout(std430, BINDING(MOMENT2)) buffer Moment2Buffer { float moment2[]; };
layout(std430, BINDING(MOMENT2)) buffer Moment2PairBuffer { vec2 moment2_pairs[]; };
layout(std430, BINDING(MOMENT1)) buffer MomentBuffer { uint moment_words[]; };
layout(std430, BINDING(MOMENT1)) buffer MomentPairBuffer { uvec2 moment_word_pairs[]; };
layout(std430, BINDING(STEP_COUNTS)) buffer CountBuffer { uint counts[]; };
#ifdef FP16
layout(std430, BINDING(F16_PARAMS)) writeonly buffer F16Buffer { float16_t f16_params[]; };
layout(std430, BINDING(F16_PARAMS)) writeonly buffer F16PairBuffer { f16vec2 f16_param_pairs[]; };

#include "optim/f16_params.glsl"
#endif

// Returns the parameter group of an entry: the last group that begins at or before it.
uint group_of(uint entry)
{
    uint group = 0u;
    [[unroll]] for (uint i = 1; i < MAX_PARAMETER_GROUPS; i++)
        group += entry >= config.groups[i].first_entry ? 1u : 0u;
    return group;
}

struct Entry {
    uint number, first; // index in BIND_STEP_COUNTS, first parameter
    bool exists;
    float gradient[ENTRY_SIZE];
};

void locate_entry(uint number, ParameterGroup group, out Entry e)
{
    e.number = number;
    e.first = group.first + (number - group.first_entry) * group.entry;
    e.exists = e.first < group.first + group.count;
}

// Returns the index of the entry's pair k, in a form that shows compilers which pairs share 16 bytes.
uint pair_of(Entry e, uint k)
{
    return e.first / ENTRY_SIZE * (ENTRY_SIZE / 2u) + k;
}

// Loads only the gradient: it is mostly zero, and then no other load is needed.
void load_gradient(ParameterGroup group, inout Entry e)
{
    [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++) {
        if (!BY_PAIRS)
            e.gradient[k] = e.exists && k < group.entry ? get_gradient(e.first + k) : 0.0;
        else if (k % 2u == 0u) {
            vec2 pair = get_gradient_pair(e.exists ? pair_of(e, k / 2u) : 0u); // no branch around a load
            e.gradient[k] = pair.x;
            e.gradient[k + 1u] = pair.y;
        }
    }
}

bool is_touched(Entry e, ParameterGroup group)
{
    bool touched = group.sparse == 0u;
    [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++)
        touched = touched || e.gradient[k] != 0.0; // true for NaN
    return e.exists && touched;
}

void clear_entry(Entry e, ParameterGroup group)
{
    [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++) {
        if (!BY_PAIRS && k < group.entry)
            clear_gradient(e.first + k);
        if (BY_PAIRS && k % 2u == 0u)
            clear_gradient_pair(pair_of(e, k / 2u));
    }
}

// Returns the decay of the entry's level of the hash grid, 0 for weights of MLPs. Finds the level by
// binary search.
float decay_of(Entry e)
{
    if (GRID_DECAY == 0u || e.first < config.levels[0].first)
        return 0.0;
    uint level = 0u;
    [[unroll]] for (uint stride = MAX_LEVELS / 2u; stride > 0u; stride /= 2u)
        if (level + stride < GRID_DECAY && e.first >= config.levels[level + stride].first)
            level += stride;
    return config.levels[level].decay;
}

// Returns the unscaled gradient of the loss plus that of the hash grid's decay, which adds
// 0.5 * decay * w * w to the loss for each feature w (Barron et al., Zip-NeRF, ICCV 2023). Only the
// first is clipped.
float with_decay(float gradient, float decay, float w)
{
    float g = gradient * state.gradient_factor;
    return GRID_DECAY != 0u ? g + decay * w : g;
}

void load_moments(uint i, out float m, out float v)
{
    uint word = BF16_MOMENTS != 0u ? moment_words[i] : 0u;
    m = BF16_MOMENTS != 0u ? unpack_moment1(word) : moment1[i];
    v = BF16_MOMENTS != 0u ? unpack_moment2(word) : HAS_MOMENT2 ? moment2[i] : 0.0;
}

void store_moments(uint i, uint count, float m, float v)
{
    if (BF16_MOMENTS != 0u) {
        moment_words[i] = pack_moments(m, v, random_bits(count, i / 2u, RANDOM_MOMENTS)[i & 1u]);
        return;
    }
    moment1[i] = m;
    if (HAS_MOMENT2)
        moment2[i] = v;
}

void load_moment_pair(uint pair, out vec2 m, out vec2 v)
{
    uvec2 words = BF16_MOMENTS != 0u ? moment_word_pairs[pair] : uvec2(0u);
    m = BF16_MOMENTS != 0u ? vec2(unpack_moment1(words.x), unpack_moment1(words.y)) : moment1_pairs[pair];
    v = BF16_MOMENTS != 0u ? vec2(unpack_moment2(words.x), unpack_moment2(words.y))
        : HAS_MOMENT2      ? moment2_pairs[pair]
                           : vec2(0.0);
}

void store_moment_pair(uint pair, uint count, vec2 m, vec2 v)
{
    if (BF16_MOMENTS != 0u) {
        uvec3 random = random_bits(count, pair, RANDOM_MOMENTS);
        moment_word_pairs[pair] =
            uvec2(pack_moments(m.x, v.x, random.x), pack_moments(m.y, v.y, random.y));
        return;
    }
    moment1_pairs[pair] = m;
    if (HAS_MOMENT2)
        moment2_pairs[pair] = v;
}

void update_parameter(uint i, float gradient, ParameterGroup group, float decay, float rate, uint count)
{
    float w = params[i], m, v;
    load_moments(i, m, v);
    optimizer_step(with_decay(gradient, decay, w), group.decay, rate, w, m, v);
    store_moments(i, count, m, v);
    params[i] = w;
#ifdef FP16
    put_f16(i, w);
#endif
}

void update_parameters(Entry e, ParameterGroup group, uint count)
{
    float rate = rate_of_step(state.update_rate * group.rate, count);
    float decay = decay_of(e);
    [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++)
        if (k < group.entry)
            update_parameter(e.first + k, e.gradient[k], group, decay, rate, count);
}

// Issues all loads before the first store, because compilers do not move loads across stores.
void update_pairs(Entry e, ParameterGroup group, uint count)
{
    vec2 w[ENTRY_SIZE], m[ENTRY_SIZE], v[ENTRY_SIZE];
    [[unroll]] for (uint k = 0; k < ENTRY_SIZE / 2u; k++) {
        w[k] = param_pairs[pair_of(e, k)];
        load_moment_pair(pair_of(e, k), m[k], v[k]);
    }
    float rate = rate_of_step(state.update_rate * group.rate, count);
    float decay = decay_of(e);
    [[unroll]] for (uint k = 0; k < ENTRY_SIZE / 2u; k++) {
        vec2 g = vec2(with_decay(e.gradient[2u * k], decay, w[k].x),
                      with_decay(e.gradient[2u * k + 1u], decay, w[k].y));
        optimizer_step(g.x, group.decay, rate, w[k].x, m[k].x, v[k].x);
        optimizer_step(g.y, group.decay, rate, w[k].y, m[k].y, v[k].y);
        param_pairs[pair_of(e, k)] = w[k];
        store_moment_pair(pair_of(e, k), count, m[k], v[k]);
#ifdef FP16
        f16_param_pairs[pair_of(e, k)] = f16vec2(w[k]);
        put_transposed(2u * pair_of(e, k), w[k].x);
        put_transposed(2u * pair_of(e, k) + 1u, w[k].y);
#endif
    }
}

void update_entry(Entry e, ParameterGroup group)
{
    clear_entry(e, group);
    if (state.update_skipped != 0u || group.rate == 0.0)
        return;
    uint count = counts[e.number] + 1u;
    if (BY_PAIRS)
        update_pairs(e, group, count);
    else
        update_parameters(e, group, count);
    counts[e.number] = count;
}

// Returns the group of all entries [row, row + 1) * LOCAL_SIZE: one lookup serves all lanes.
ParameterGroup group_of_row(uint row)
{
    return config.groups[group_of(row * LOCAL_SIZE)];
}

void main()
{
    uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (CPU_KERNELS != 0u) { // no loop over rows
        ParameterGroup group = group_of_row(row);
        Entry e;
        locate_entry(row * LOCAL_SIZE + gl_LocalInvocationID.x, group, e);
        load_gradient(group, e);
        if (is_touched(e, group))
            update_entry(e, group);
        return;
    }
    // Keeps the gradient loads of several rows in flight.
    const uint AT_ONCE = 4u;
    uint rows = (config.entry_count - 1u) / LOCAL_SIZE + 1u, stride = gl_NumWorkGroups.y * gl_NumWorkGroups.x;
    for (; row < rows; row += AT_ONCE * stride) {
        ParameterGroup groups[AT_ONCE];
        Entry entries[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
            groups[k] = group_of_row(row + k * stride);
            locate_entry((row + k * stride) * LOCAL_SIZE + gl_LocalInvocationID.x, groups[k], entries[k]);
        }
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
            load_gradient(groups[k], entries[k]);
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
            if (is_touched(entries[k], groups[k]))
                update_entry(entries[k], groups[k]);
    }
}
