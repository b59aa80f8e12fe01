// The sky: a colour by direction alone behind the field. Octahedral maps (Cigolle et al., A Survey of
// Efficient Representations for Independent Unit Vectors, 2014) of growing resolution hold the modes of
// what photographs show in a direction. Where few rays went through a texel, the coarser map counts.
// The including file declares STATE as `error_cells`.
// Passes: generate_rays, sum_sky, update_sky. Reads STATE, [texel][4] ErrorCell.

const float LOWEST_SKY = -0.1; // sine of the height
const float SKY_TOLERANCE = 0.1, SKY_HALVING = 32.0; // differences of pixels from the sky; steps

// Returns the number of texels along an edge of a map.
uint sky_edge(uint level)
{
    return 4u << 2u * level;
}

// Returns the first texel of a map. Each map has 16 times the texels of the one before.
uint sky_first(uint level)
{
    return ((1u << 4u * level) - 1u) / 15u * 16u;
}

// Maps a direction to the unit square.
vec2 octahedral(vec3 direction)
{
    vec3 d = direction / (abs(direction.x) + abs(direction.y) + abs(direction.z));
    vec2 folded = vec2(d.x < 0.0 ? -1.0 : 1.0, d.y < 0.0 ? -1.0 : 1.0) * (1.0 - abs(d.yx));
    return 0.5 + 0.5 * (d.z < 0.0 ? folded : d.xy);
}

// Returns the number of the texel of a map that a direction goes through.
uint sky_texel(uint level, vec3 direction)
{
    uint edge = sky_edge(level);
    uvec2 at = min(uvec2(max(octahedral(direction) * float(edge), 0.0)), edge - 1u);
    return sky_first(level) + at.y * edge + at.x;
}

// Returns the number of a texel up to one beyond an edge, where the map continues point-symmetrically
// to the middle of the edge.
uint sky_neighbor(uint level, ivec2 at)
{
    int edge = int(sky_edge(level)), last = edge - 1;
    if (at.x < 0 || at.x > last)
        at = ivec2(clamp(at.x, 0, last), last - at.y);
    if (at.y < 0 || at.y > last)
        at = ivec2(last - at.x, clamp(at.y, 0, last));
    return sky_first(level) + uint(at.y * edge + at.x);
}

// Returns a value of 0 to `most`; another one comes from a damaged checkpoint.
float sky_value(uint cell, float most)
{
    float value = error_cells[cell].error;
    return value > 0.0 ? min(value, most) : 0.0;
}

// Returns the colour of a texel, and the number of rays that it weighs as much as.
vec4 sky_of_texel(uint texel)
{
    uint cell = 4u * texel;
    return vec4(sky_value(cell, 1.0), sky_value(cell + 1u, 1.0), sky_value(cell + 2u, 1.0),
                sky_value(cell + 3u, SKY_MEMORY));
}

// Returns the colour of the sky: grey until a ray has seen it.
vec3 sky_color(vec3 direction)
{
    vec3 color = vec3(0.5);
    // Compilers do not know this number, so that they do not unroll the loop: that takes far more code.
    uint levels = min(SKY_LEVELS, config.sky_cells);
    for (uint level = 0; level < levels; level++) {
        vec2 at = octahedral(direction) * float(sky_edge(level)) - 0.5, low = floor(at), share = at - low;
        vec4 sum = vec4(SKY_PRIOR * color, SKY_PRIOR);
        for (int i = 0; i < 4; i++) {
            ivec2 corner = ivec2(i & 1, i >> 1);
            vec2 near = mix(1.0 - share, share, vec2(corner));
            vec4 texel = sky_of_texel(sky_neighbor(level, ivec2(low) + corner));
            sum += near.x * near.y * texel.w * vec4(texel.rgb, 1.0);
        }
        color = sum.rgb / sum.w;
    }
    return color;
}

// Returns whether the sky may be in a direction: a little below the horizon there is still sky.
bool is_skyward(vec3 direction)
{
    return dot(direction, vec3(config.sky_up[0], config.sky_up[1], config.sky_up[2])) > LOWEST_SKY;
}

// Returns the difference in a channel within which a pixel may show the sky. It falls with the steps, so
// that first means and then modes are found.
float sky_tolerance(uint step)
{
    return max(SKY_TOLERANCE, exp2(-float(step) / SKY_HALVING));
}

float largest(vec3 difference)
{
    vec3 d = abs(difference);
    return max(d.r, max(d.g, d.b));
}
