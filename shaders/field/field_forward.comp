#version 460
#extension GL_GOOGLE_include_directive : require
// Pass field_forward (ngp): evaluates density MLP, direction encoding and colour MLP. push.e selects
// the rows: all samples (ROWS_SAMPLES); all samples, or cells, without colours (ROWS_DENSITIES,
// ROWS_CELLS); or the colours of live samples, whose densities are already in FIELD (ROWS_LIVE).
//
//   buffer                shape                                access
//   STATE                 sample counts                        read
//   LIVE                  [live sample] u32, ROWS_LIVE         read
//   RAYS, SAMPLES         [ray], [sample]: direction, time     read
//   FEATURES              [level][sample][feature] f32 or f16  read
//   PARAMS or F16_PARAMS  [parameter] f32 or f16               read
//   FIELD                 [sample] vec4: rgb, density          write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/features.glsl"
#include "field/sample.glsl"
#include "field/mlp_inputs.glsl"
#include "field/output_activations.glsl"

layout(constant_id = SPEC_DENSITY_ONLY) const uint DENSITY_ONLY = 0;

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(FIELD)) writeonly buffer FieldBuffer { vec4 field[]; };

#include "field/live_samples.glsl"
#include "field/sample_rows.glsl"

void main()
{
    bool covers_all = push.e != ROWS_LIVE;
    bool colored = DENSITY_ONLY == 0u && push.e != ROWS_DENSITIES && push.e != ROWS_CELLS;
    uint count = covers_all ? sample_rows() : gradient_count();
    uint stride = gl_NumWorkGroups.x * TILE_ROWS;
    uint mine = tile_row();
    // All invocations stay in the loop, because the MLPs share rows and weights between lanes. A
    // workgroup without samples returns before the loop, because some drivers run a loop's body once
    // with all lanes masked off.
    uint first = gl_WorkGroupID.x * TILE_ROWS;
    if (first >= count)
        return;
    do {
        uint row = min(first + mine, count - 1u), i = covers_all ? row : gradient_sample(row);
        begin_tile(first);
        read_position(i);
        density_forward();
        float raw_density = get_value(AT_GEOMETRY);
        vec3 color = vec3(0.0);
        if (colored) {
            encode_direction(sample_direction(i));
            color_forward();
            vec3 raw = vec3(get_value(AT_RGB), get_value(AT_RGB + 1u), get_value(AT_RGB + 2u));
            color = color_of(raw);
        }
        if (first + mine < count && invocation_in_row() == 0u) {
            if (covers_all)
                field[i] = vec4(color, density_of(raw_density));
            else
                field[i].rgb = color;
        }
        end_tile();
        first += stride;
    } while (first < count);
}
