// Sums the workgroups' partial gradients of each MLP parameter in FP32. With SUM_FIXED also converts the
// fixed-point sums of the other parameters to f32 and sets them to zero. push.d: gradient bucket; the
// MLPs belong to bucket 0. The including file declares STATE as `state`.
// Passes: reduce_gradients, finish_step. Reads PARTIALS; reads and writes ACCUMULATORS; writes GRADIENTS.
#include "shared/rounding.glsl"
#include "shared/finite.glsl"
#include "optim/gradients.glsl"

layout(std430, BINDING(PARTIALS)) readonly buffer PartialBuffer { float partials[]; };
layout(std430, BINDING(PARTIALS)) readonly buffer PartialFourBuffer { vec4 partial_fours[]; };
#ifdef SUM_FIXED
layout(std430, BINDING(ACCUMULATORS)) buffer FixedBuffer { uint fixed_sums[]; };
#endif

bool any_overflows = false; // of this invocation's sums

// Returns the number of a parameter's partial sums: of field_backward's workgroups or layer_weights'
// splits.
uint summands(uint parameter)
{
    return config.layer_splits > 0u && parameter >= config.first_layered ? config.layer_splits
                                                                         : config.backward_groups;
}

void reduce_cpu(uint stride)
{
    for (uint i = gl_GlobalInvocationID.x; i < config.summed_params; i += stride) {
        float sum = 0.0;
        uint groups = summands(i);
        for (uint group = 0; group < groups; group++)
            sum = round_to(ROUND_WEIGHT_SUMS, sum + partials[group * config.summed_params + i]);
        any_overflows = any_overflows || overflows(sum);
        gradients[i] = sum;
    }
}

// On GPUs ACROSS neighbouring invocations read 64 bytes of one workgroup's sums, the next ACROSS
// invocations read the next workgroup's sums, and so on. Each has AT_ONCE loads in flight.
const uint ACROSS = 4u;
const uint DOWN = LOCAL_SIZE / ACROSS;
const uint AT_ONCE = 4u;
shared vec4 down_sums[LOCAL_SIZE];

void reduce_gpu()
{
    uint fours = config.summed_params / 4u, mine = gl_LocalInvocationID.x;
    for (uint first = gl_WorkGroupID.x * ACROSS; first < fours; first += gl_NumWorkGroups.x * ACROSS) {
        vec4 sum = vec4(0.0);
        uint groups = summands(4u * first); // equal for all invocations: layers have multiples of 256 weights
        for (uint group = mine / ACROSS; group < groups; group += AT_ONCE * DOWN) {
            vec4 loaded[AT_ONCE];
            [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
                uint source = min(group + k * DOWN, groups - 1u);
                loaded[k] = partial_fours[source * fours + first + mine % ACROSS];
            }
            [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
                sum = round_to(ROUND_WEIGHT_SUMS,
                            sum + (group + k * DOWN < groups ? loaded[k] : vec4(0.0)));
        }
        down_sums[mine] = sum;
        barrier();
        if (mine < ACROSS) {
            for (uint i = 1; i < DOWN; i++)
                sum = round_to(ROUND_WEIGHT_SUMS, sum + down_sums[i * ACROSS + mine]);
            any_overflows = any_overflows || overflows(sum);
            gradient_fours[first + mine] = sum;
        }
        barrier();
    }
}

// Stores the sums; sets any_overflows.
void reduce_gradients()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    if (push.d == 0u) {
        if (CPU_KERNELS != 0u)
            reduce_cpu(stride);
        else
            reduce_gpu();
    }
#ifdef SUM_FIXED
    float unit = state.loss_scale / float(state.ray_count) / float(FIXED_SCALE);
    uint end = config.buckets[push.d + 1u].parameter;
    for (uint i = config.buckets[push.d].parameter + gl_GlobalInvocationID.x; i < end; i += stride) {
        uint low = fixed_sums[2u * i], high = fixed_sums[2u * i + 1u];
        if ((low | high) == 0u) {
            gradients[i] = 0.0;
            continue;
        }
        fixed_sums[2u * i] = 0u;
        fixed_sums[2u * i + 1u] = 0u;
        float sum = (float(int(high)) * 4294967296.0 + float(int(low))) * unit;
        any_overflows = any_overflows || overflows(sum);
        gradients[i] = sum;
    }
#endif
}
