#version 460
#extension GL_GOOGLE_include_directive : require
// Pass field_values (layer-by-layer models): converts the layers' raw outputs to rgb and
// density, for a chunk of rows.
//
//   buffer    shape                                access
//   FEATURES  [row] columns: raw rgb, raw density  read
//   LIVE      [live sample] u32, live rows         read
//   FIELD     [sample] vec4: rgb, density          write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"
#include "field/output_activations.glsl"

layout(constant_id = SPEC_DENSITY_ONLY) const uint DENSITY_ONLY = 0;

layout(std430, BINDING(FIELD)) writeonly buffer FieldBuffer { vec4 field[]; };

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    bool colored = DENSITY_ONLY == 0u && push.e != ROWS_DENSITIES;
    for (uint row = gl_GlobalInvocationID.x; row < count; row += stride) {
        vec3 color = vec3(0.0);
        if (colored) {
            for (uint c = 0; c < 3u; c++)
                color[c] = get_activation(row, config.color_output + c);
            color = color_of(color);
        }
        uint index = row_sample(row);
        if (LIVE_ROWS) // FIELD already has the densities of live samples
            field[index].rgb = color;
        else
            field[index] = vec4(color, density_of(get_activation(row, config.first_output)));
    }
}
