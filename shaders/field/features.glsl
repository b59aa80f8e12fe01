// Features of the samples, or their gradients once field_backward has put those in their place. In 16
// bits where the MLPs are.

layout(std430, BINDING(FEATURES)) buffer FeatureBuffer { uint feature_words[]; };
// The same, for what is read or written at once.
layout(std430, BINDING(FEATURES)) buffer FeatureTwoBuffer { uvec2 feature_twos[]; };
layout(std430, BINDING(FEATURES)) buffer FeatureFourBuffer { uvec4 feature_fours[]; };

#ifdef F16_STORAGE
const uint F16_FEATURES = 1;
#else
// Programs that read both kinds know which by SPEC_F16.
layout(constant_id = SPEC_F16) const uint F16_FEATURES = 0;
#endif

// So many neighbouring words, 1, 2 or 4; the first one's number is a multiple of that.
uvec4 get_words(uint first, uint count)
{
    return count == 4u   ? feature_fours[first / 4u]
           : count == 2u ? uvec4(feature_twos[first / 2u], 0u, 0u)
                         : uvec4(feature_words[first], 0u, 0u, 0u);
}

void put_words(uint first, uint count, uvec4 words)
{
    if (count == 4u)
        feature_fours[first / 4u] = words;
    else if (count == 2u)
        feature_twos[first / 2u] = words.xy;
    else
        feature_words[first] = words.x;
}

// `count` features of a level at a sample, 2 or 4, from one whose number is a multiple of that; behind
// them, zeros.
vec4 get_feature_vector(uint level, uint sample_index, uint first, uint count)
{
    uint at = (level * config.sample_capacity + sample_index) * FEATURES + first;
    if (F16_FEATURES == 0u)
        return uintBitsToFloat(get_words(at, count));
    uvec4 words = get_words(at / 2u, count / 2u);
    return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
}

void put_feature_vector(uint level, uint sample_index, uint first, uint count, vec4 values)
{
    uint at = (level * config.sample_capacity + sample_index) * FEATURES + first;
#ifdef F16_STORAGE
    // To nearest: packHalf2x16 may cut off.
    uvec2 words = uvec2(packFloat2x16(f16vec2(values.xy)), packFloat2x16(f16vec2(values.zw)));
    put_words(at / 2u, count / 2u, uvec4(words, 0u, 0u));
#else
    put_words(at, count, floatBitsToUint(values));
#endif
}

// Two neighbouring features, 2 * pair and the next.
vec2 get_features(uint level, uint sample_index, uint pair)
{
    return get_feature_vector(level, sample_index, 2u * pair, 2u).xy;
}

void put_features(uint level, uint sample_index, uint pair, vec2 values)
{
    put_feature_vector(level, sample_index, 2u * pair, 2u, vec4(values, 0.0, 0.0));
}

// All of a level's features at a sample; behind them, zeros.
vec4 get_level_features(uint level, uint sample_index)
{
    return get_feature_vector(level, sample_index, 0u, FEATURES);
}

void put_level_features(uint level, uint sample_index, vec4 values)
{
    put_feature_vector(level, sample_index, 0u, FEATURES, values);
}
