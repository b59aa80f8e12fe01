// Reads and writes samples' features, [level][sample][feature], or the features' gradients, which the
// backward pass stores in the same memory. Features are f16 if the MLPs compute in f16 or with
// matrices.
// Passes: all that read or write FEATURES of a hash grid or a field in GLSL.

layout(std430, BINDING(FEATURES)) buffer FeatureBuffer { uint feature_words[]; };
// Wider accesses to the same memory.
layout(std430, BINDING(FEATURES)) buffer FeatureTwoBuffer { uvec2 feature_twos[]; };
layout(std430, BINDING(FEATURES)) buffer FeatureFourBuffer { uvec4 feature_fours[]; };

#ifdef F16_STORAGE
const uint F16_FEATURES = 1;
#else
// Shaders that read features of any precision get the type from SPEC_F16.
layout(constant_id = SPEC_F16) const uint F16_FEATURES = 0;
#endif

// Reads 1, 2 or 4 consecutive 32-bit words, followed by zeros; `first` is a multiple of `count`.
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

// Returns `count` (2 or 4) features of a level at a sample, followed by zeros; `first` is a multiple
// of `count`.
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
    // Rounds to nearest: packHalf2x16 may truncate.
    uvec2 words = uvec2(packFloat2x16(f16vec2(values.xy)), packFloat2x16(f16vec2(values.zw)));
    put_words(at / 2u, count / 2u, uvec4(words, 0u, 0u));
#else
    put_words(at, count, floatBitsToUint(values));
#endif
}

// Returns the features 2 * pair and 2 * pair + 1.
vec2 get_features(uint level, uint sample_index, uint pair)
{
    return get_feature_vector(level, sample_index, 2u * pair, 2u).xy;
}

void put_features(uint level, uint sample_index, uint pair, vec2 values)
{
    put_feature_vector(level, sample_index, 2u * pair, 2u, vec4(values, 0.0, 0.0));
}

// Returns all features of a level at a sample, followed by zeros.
vec4 get_level_features(uint level, uint sample_index)
{
    return get_feature_vector(level, sample_index, 0u, FEATURES);
}

void put_level_features(uint level, uint sample_index, vec4 values)
{
    put_feature_vector(level, sample_index, 0u, FEATURES, values);
}
