// The multiresolution hash grid of the ngp model (Mueller et al., Instant Neural Graphics Primitives, SIGGRAPH
// 2022) as a field in GLSL: 16 levels of up to 2^15 entries of two features, 16 to 512 points along an edge.
// With --deterministic its runs equal those of the built-in model bit by bit:
//     vknerf train SCENE --field examples/hash_field.glsl
//     vknerf train SCENE --model ngp --set grid.log2_entries=15 --set grid.finest=512
#pragma field name hash
#pragma field parameters 913856
#pragma field features 32
#pragma field initial 1e-4

const uint LEVELS = 16u, TABLE = 1u << 15; // entries of a hashed table

// Grid position in a level = position * scale + 0.5. Scales are geometric: 16 * (512 / 16)^(level / 15) - 1.
const float SCALES[LEVELS] = float[](
    15.0, 19.1587372, 24.3984165, 31.0, 39.3174744, 49.796833, 63.0, 79.6349487, 100.593666, 127.0, 160.269897,
    202.187332, 255.0, 321.539795, 405.374664, 511.0);

struct Table {
    uint first;      // index of its first entry
    uint entries;
    uint resolution; // points along an edge
    bool dense;      // indexed directly, because all points fit
    float scale;
};

Table next_table(uint level, Table before)
{
    Table table;
    table.first = level == 0u ? 0u : before.first + before.entries;
    table.scale = SCALES[level];
    table.resolution = uint(ceil(table.scale - 1e-6)) + 1u;
    uint points = table.resolution * table.resolution * table.resolution;
    table.dense = points <= TABLE;
    table.entries = table.dense ? (points + 15u) / 16u * 16u : TABLE;
    return table;
}

uint entry(Table table, uvec3 point)
{
    uvec3 inner = min(point, uvec3(table.resolution - 1u));
    uint direct = inner.x + table.resolution * (inner.y + table.resolution * inner.z);
    uint hashed = (point.x ^ point.y * 2654435761u ^ point.z * 805459861u) & (TABLE - 1u);
    return table.first + (table.dense ? direct : hashed);
}

uvec3 cell_of(Table table, vec3 position, out vec3 inside)
{
    vec3 grid_position = position * table.scale + 0.5, cell = floor(grid_position);
    inside = grid_position - cell;
    return uvec3(cell);
}

// Trilinear weight of corner k.
float trilinear_weight(uint k, vec3 inside)
{
    vec3 w = mix(1.0 - inside, inside, bvec3(k & 1u, k & 2u, k & 4u));
    return w.x * w.y * w.z;
}

uvec3 corner(uint k)
{
    return uvec3(k & 1u, k >> 1 & 1u, k >> 2);
}

void encode(vec3 position, uint first_parameter)
{
    Table table;
    for (uint level = 0u; level < LEVELS; level++) {
        table = next_table(level, table);
        vec3 inside;
        uvec3 cell = cell_of(table, position, inside);
        vec2 sum = vec2(0.0);
        for (uint k = 0u; k < 8u; k++)
            sum += trilinear_weight(k, inside) * parameter_pair(first_parameter + 2u * entry(table, cell + corner(k)));
        put_feature(2u * level, sum.x);
        put_feature(2u * level + 1u, sum.y);
    }
}

void encode_backward(vec3 position, uint first_parameter)
{
    Table table;
    for (uint level = 0u; level < LEVELS; level++) {
        table = next_table(level, table);
        vec3 inside;
        uvec3 cell = cell_of(table, position, inside);
        vec2 gradient = vec2(feature_gradient(2u * level), feature_gradient(2u * level + 1u));
        for (uint k = 0u; k < 8u; k++) {
            uint at = first_parameter + 2u * entry(table, cell + corner(k));
            vec2 corner_gradient = trilinear_weight(k, inside) * gradient;
            add_gradient(at, corner_gradient.x);
            add_gradient(at + 1u, corner_gradient.y);
        }
    }
}
