// Writes f16 copies of parameters, rounded to nearest. With SPEC_TRANSPOSED, MLP weights get a
// second copy after all f16 parameters, stored by output, from which cooperative matrices are loaded.
// The including file declares float16_t f16_params[].
// Passes: update_weights, update_average, round_parameters.

layout(constant_id = SPEC_TRANSPOSED) const uint TRANSPOSED_WEIGHTS = 0;

// Returns the index of weight i when its layer is stored [output][input].
uint transposed_index(uint i)
{
    uint layer = 0u;
    for (uint n = 1; n < MAX_LAYERS; n++)
        if (i >= config.layers[n].first)
            layer = n;
    uint first = config.layers[layer].first, outputs = config.layers[layer].outputs;
    return first + (i - first) % outputs * config.layers[layer].inputs + (i - first) / outputs;
}

void put_transposed(uint i, float value)
{
    if (TRANSPOSED_WEIGHTS != 0u && i < config.summed_params)
        f16_params[TRANSPOSED_WEIGHTS + transposed_index(i)] = float16_t(value);
}

void put_f16(uint i, float value)
{
    f16_params[i] = float16_t(value);
    put_transposed(i, value);
}
