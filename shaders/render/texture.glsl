// Maps a texture's pixels to points of its triangles. This file includes render/mesh_grid.glsl.
// Passes: texture_rasterize, texture_samples. Reads TEXTURE_TRIANGLES [triangle].
#include "render/mesh_grid.glsl"

layout(std430, BINDING(TEXTURE_TRIANGLES)) readonly buffer TriangleBuffer { TextureTriangle triangles[]; };

vec2 corner_texel(uint triangle, uint corner)
{
    return vec2(triangles[triangle].texel[2u * corner], triangles[triangle].texel[2u * corner + 1u]);
}

// Returns the fraction 0..1 of the edge from a to b at which the edge is nearest to p.
float nearest_along(vec2 p, vec2 a, vec2 b)
{
    vec2 edge = b - a;
    return clamp(dot(p - a, edge) / max(dot(edge, edge), 1e-20), 0.0, 1.0);
}

// Returns the barycentric weights of the triangle's point nearest to p; `squared`: squared distance.
vec3 nearest_weights(uint triangle, vec2 p, out float squared)
{
    vec2 a = corner_texel(triangle, 0u), b = corner_texel(triangle, 1u), c = corner_texel(triangle, 2u);
    float area = determinant(mat2(b - a, c - a));
    vec3 weights = vec3(determinant(mat2(b - p, c - p)), determinant(mat2(c - p, a - p)),
                        determinant(mat2(a - p, b - p))) / area;
    squared = 0.0;
    if (abs(area) > 1e-6 && all(greaterThanEqual(weights, vec3(0.0))))
        return weights;
    float ab = nearest_along(p, a, b), bc = nearest_along(p, b, c), ca = nearest_along(p, c, a);
    vec3 edge_squared = vec3(dot(p - mix(a, b, ab), p - mix(a, b, ab)), dot(p - mix(b, c, bc), p - mix(b, c, bc)),
                    dot(p - mix(c, a, ca), p - mix(c, a, ca)));
    squared = min(edge_squared.x, min(edge_squared.y, edge_squared.z));
    if (squared == edge_squared.x)
        return vec3(1.0 - ab, ab, 0.0);
    return squared == edge_squared.y ? vec3(0.0, 1.0 - bc, bc) : vec3(ca, 0.0, 1.0 - ca);
}
