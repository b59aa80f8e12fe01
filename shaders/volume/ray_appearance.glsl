// Applies the appearance of a training view to the colour of a ray.
// The including file declares rays, results and config.
// Passes: composite, appearance_gradients, sum_sky. Reads STATE, [view] Appearance; CAMERAS [camera]; RAYS.

layout(constant_id = SPEC_APPEARANCE) const uint APPEARANCE = 0;
layout(constant_id = SPEC_SKY) const uint SKY = 0;

layout(std430, BINDING(STATE)) readonly buffer AppearanceBuffer { float appearance_words[]; };
layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };

float appearance_value(uint first, uint parameter)
{
    return appearance_words[first + parameter];
}

#include "volume/appearance.glsl"

const bool IS_FULL = APPEARANCE == APPEARANCE_FULL;

// Returns the index in appearance_words of the first parameter of the ray's view.
uint appearance_of(uint ray)
{
    return config.first_appearance_word + cameras[rays[ray].view].view * APPEARANCE_WORDS;
}

// Returns whether the ray's background is the sky, which is in the photograph.
bool shows_sky(uint ray)
{
    return SKY != 0u && rays[ray].has_sky != 0u;
}

vec3 background_of(uint ray)
{
    return vec3(rays[ray].background[0], rays[ray].background[1], rays[ray].background[2]);
}

vec2 position_of(uint ray)
{
    return unpackSnorm2x16(rays[ray].position);
}

// Adds the sky to the colour of a ray, which is then photographed as a whole.
void add_sky(uint ray, inout vec3 color, inout float transmittance)
{
    if (shows_sky(ray)) {
        color += transmittance * background_of(ray);
        transmittance = 0.0;
    }
}

Photograph photograph_of_ray(uint ray, vec3 color, float transmittance)
{
    return photograph(appearance_of(ray), IS_FULL, position_of(ray), color / photographed_share(transmittance));
}

// Returns the colour of the ray's pixel in the training image, in front of the background.
vec3 target_color(uint ray, vec3 background)
{
    return vec3(rays[ray].target[0], rays[ray].target[1], rays[ray].target[2]) +
           (1.0 - rays[ray].target[3]) * background;
}
