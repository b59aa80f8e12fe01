// Encodes positions (multiresolution hash grid: Mueller et al., Instant Neural Graphics Primitives,
// SIGGRAPH 2022) and directions (real spherical harmonics).
// Passes: all of fields with a hash grid or encoded directions.

layout(constant_id = SPEC_LEVELS) const uint LEVELS = 16;
layout(constant_id = SPEC_FEATURES) const uint FEATURES = 2;
layout(constant_id = SPEC_SH_DEGREE) const uint SH_DEGREE = 4;

const uint SH_SIZE = 16; // encoded values of the direction; values above the degree stay 0
layout(constant_id = SPEC_TIME_INPUTS) const uint TIME_INPUTS = 0; // encoded values of the time, after the features
// Inputs of the density MLP, padded with zeros to matrix tiles.
const uint ENCODED = (LEVELS * FEATURES + TIME_INPUTS + 15u) / 16u * 16u;

uvec3 corner_offset(uint corner)
{
    return uvec3(corner & 1u, corner >> 1 & 1u, corner >> 2);
}

// Return the index of a corner's entry in a table that is indexed directly, or by hash.
uint dense_entry(Level table, uvec3 corner)
{
    corner = min(corner, uvec3(table.resolution - 1u));
    return corner.x + table.resolution * (corner.y + table.resolution * corner.z);
}

uint hashed_entry(Level table, uvec3 corner)
{
    return (corner.x ^ corner.y * 2654435761u ^ corner.z * 805459861u) & (table.entries - 1u);
}

// Returns the index of a corner's entry among the entries of all levels. Computing both indices is
// cheaper than a branch, after which a load would wait for the previous load.
uint grid_entry(Level table, uvec3 corner)
{
    return table.first / FEATURES +
           mix(hashed_entry(table, corner), dense_entry(table, corner), table.dense != 0u);
}

// Returns the cell around a point of the unit cube; `inside` becomes the position in the cell, 0..1.
uvec3 grid_cell(uint level, vec3 unit, out vec3 inside)
{
    vec3 p = unit * config.levels[level].scale + 0.5;
    vec3 cell = floor(p);
    inside = p - cell;
    return to_unsigned(cell);
}

float corner_weight(uint corner, vec3 inside)
{
    vec3 w = mix(1.0 - inside, inside, bvec3(corner & 1u, corner & 2u, corner & 4u));
    return w.x * w.y * w.z;
}

// Evaluates real spherical harmonics of a unit vector up to degree 4 (bands 0 to 3), constants as in
// Sloan, Efficient Spherical Harmonic Evaluation, 2013.
void spherical_harmonics(vec3 d, out float sh[SH_SIZE])
{
    float xx = d.x * d.x, yy = d.y * d.y, zz = d.z * d.z;
    sh[0] = 0.28209479177387814;
    sh[1] = -0.48860251190291987 * d.y;
    sh[2] = 0.48860251190291987 * d.z;
    sh[3] = -0.48860251190291987 * d.x;
    sh[4] = 1.0925484305920792 * d.x * d.y;
    sh[5] = -1.0925484305920792 * d.y * d.z;
    sh[6] = 0.94617469575755997 * zz - 0.31539156525251999;
    sh[7] = -1.0925484305920792 * d.x * d.z;
    sh[8] = 0.54627421529603959 * (xx - yy);
    sh[9] = 0.59004358992664352 * d.y * (-3.0 * xx + yy);
    sh[10] = 2.8906114426405538 * d.x * d.y * d.z;
    sh[11] = 0.45704579946446572 * d.y * (1.0 - 5.0 * zz);
    sh[12] = 0.3731763325901154 * d.z * (5.0 * zz - 3.0);
    sh[13] = 0.45704579946446572 * d.x * (1.0 - 5.0 * zz);
    sh[14] = 1.4453057213202769 * d.z * (xx - yy);
    sh[15] = 0.59004358992664352 * d.x * (-xx + 3.0 * yy);
    for (uint i = 0; i < SH_SIZE; i++)
        if (i >= SH_DEGREE * SH_DEGREE)
            sh[i] = 0.0;
}
