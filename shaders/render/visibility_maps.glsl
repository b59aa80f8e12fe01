// Looks up the visible surface of the training views in their visibility maps: see
// src/render/visibility_maps.h.
// Passes: mesh_hidden, mesh_seen. Reads VISIBILITY_MAPS [view][pixel] f32.
#include "rays/camera.glsl"

layout(std430, BINDING(VISIBILITY_MAPS)) readonly buffer VisibilityMapBuffer { float inverse_distance[]; };

// Largest relative change of 1 / distance between neighbouring pixels on one surface, per angle of a
// pixel: the change on a surface seen at 83 degrees from its normal.
const float MAX_SLOPE = 8.0;

// Returns 1 / distance of the visible surface at an image position: interpolated if the four pixels
// show one surface, otherwise of the surface in front.
float visible_inverse_distance(Camera camera, vec2 pixel)
{
    uvec2 last = uvec2(camera.width, camera.height) - 1u;
    vec2 texel = clamp(pixel - 0.5, vec2(0.0), vec2(last));
    uvec2 low = min(uvec2(ivec2(texel)), last), high = min(low + 1u, last);
    uint row = camera.first_pixel + low.y * camera.width;
    uint next = camera.first_pixel + high.y * camera.width;
    vec4 n = vec4(inverse_distance[row + low.x], inverse_distance[row + high.x], inverse_distance[next + low.x],
                  inverse_distance[next + high.x]);
    float nearest = max(max(n.x, n.y), max(n.z, n.w)), farthest = min(min(n.x, n.y), min(n.z, n.w));
    vec2 fraction = texel - vec2(low);
    float interpolated = mix(mix(n.x, n.y, fraction.x), mix(n.z, n.w, fraction.x), fraction.y);
    bool one_surface = (nearest - farthest) * min(camera.focal_x, camera.focal_y) <= MAX_SLOPE * nearest;
    return one_surface ? interpolated : nearest;
}

// Returns the distance of a position behind the surface that the camera shows at the position's
// `pixel`; negative in front of the surface.
float distance_behind(Camera camera, vec2 pixel, vec3 position)
{
    vec3 eye = vec3(camera.pose[3], camera.pose[7], camera.pose[11]);
    return distance(position, eye) - 1.0 / max(visible_inverse_distance(camera, pixel), 1e-9);
}
