// Features of the samples, or their gradients once field_backward has put those in their place. In 16
// bits where the MLPs are.

layout(std430, BINDING(FEATURES)) buffer FeatureBuffer { uint feature_words[]; };

#if defined(FP16) || defined(COOPMAT)
const uint HALF_FEATURES = 1;
#else
// Programs that read both kinds know which by SPEC_HALF.
layout(constant_id = SPEC_HALF) const uint HALF_FEATURES = 0;
#endif

// Two neighbouring features, 2 * pair and the next, of a level at a sample.
uint feature_word(uint level, uint sample_index, uint pair)
{
    uint at = (level * config.sample_capacity + sample_index) * FEATURES / 2u + pair;
    return HALF_FEATURES != 0u ? at : 2u * at;
}

vec2 get_features(uint level, uint sample_index, uint pair)
{
    uint at = feature_word(level, sample_index, pair);
    return HALF_FEATURES != 0u
               ? unpackHalf2x16(feature_words[at])
               : vec2(uintBitsToFloat(feature_words[at]), uintBitsToFloat(feature_words[at + 1u]));
}

void put_features(uint level, uint sample_index, uint pair, vec2 values)
{
    uint at = feature_word(level, sample_index, pair);
    if (HALF_FEATURES != 0u) {
        feature_words[at] = packHalf2x16(values);
    } else {
        feature_words[at] = floatBitsToUint(values.x);
        feature_words[at + 1u] = floatBitsToUint(values.y);
    }
}
