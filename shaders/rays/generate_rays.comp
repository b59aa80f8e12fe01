#version 460
#extension GL_GOOGLE_include_directive : require
// Pass generate_rays (variants generate_view_rays; random_view_rays with RANDOM_PIXELS; given_rays with
// GIVEN_RAYS): chooses a pixel per ray, computes the ray through it and, in training, loads the pixel's
// colour. With RANDOM_PIXELS rays go through random positions of one view. With GIVEN_RAYS the host has
// written RAYS, with the nearest and farthest distance in `step` and `last`, which alone are computed.
//
//   buffer          shape                                access
//   CAMERAS         [camera]                             read
//   CAMERAS         [depth] Depth, with loss.depth       read
//   PIXELS          [pixel] RGBA8, TRAIN                 read
//   STATE, CONTROL  step and ray count; progress, TRAIN  read
//   STATE           [view][cell] ErrorCell, by error     read
//                   or robust, with the summary
//   STATE           [view] View, with REFINE             read
//   STATE           [texel][4] ErrorCell, with SKY       read
//   STATE           [view] Appearance, with SKY          read
//   REDUCE          from REDUCE_SLOTS on, by error       read
//   RAYS, RESULTS   [ray]                                write; RAYS read with GIVEN_RAYS
#include "shared/common.glsl"
#ifdef GIVEN_RAYS
vec2 given_span;
#define NEAR_DISTANCE given_span.x
#define FAR_DISTANCE  given_span.y
#define RAY_BUFFER    buffer
#else
#define RAY_BUFFER writeonly buffer
#endif
#include "rays/camera.glsl"
#include "rays/march.glsl"

layout(constant_id = SPEC_BACKGROUND) const uint BACKGROUND = BACKGROUND_RANDOM;
layout(constant_id = SPEC_BY_ERROR) const uint BY_ERROR = 0;
layout(constant_id = SPEC_ROBUST) const uint ROBUST = 0;
layout(constant_id = SPEC_DEPTH) const uint DEPTH = 0;
layout(constant_id = SPEC_SKY) const uint SKY = 0;
layout(constant_id = SPEC_APPEARANCE) const uint APPEARANCE = 0;

layout(std430, BINDING(PIXELS)) readonly buffer PixelBuffer { uint pixels[]; };
layout(std430, BINDING(RAYS)) RAY_BUFFER RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) writeonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; ErrorCell error_cells[]; };

#include "shared/sky.glsl"

#ifdef TRAIN
layout(std430, BINDING(REDUCE)) readonly buffer ReduceBuffer { float reduce[]; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(CAMERAS)) readonly buffer DepthBuffer { float depth_words[]; };

layout(std430, BINDING(STATE)) readonly buffer AppearanceBuffer { float appearance_words[]; };

float appearance_value(uint first, uint parameter)
{
    return appearance_words[first + parameter];
}

#include "volume/appearance.glsl"

// Returns the colour that the view's photograph shows of the sky. position: Ray.position.
vec3 photographed_sky(vec3 sky, uint view, uint position)
{
    if (APPEARANCE == 0u)
        return sky;
    return photograph(config.first_appearance_word + view * APPEARANCE_WORDS, APPEARANCE == APPEARANCE_FULL,
                      unpackSnorm2x16(position), sky).color;
}

#define VIEW_BUFFER readonly buffer
#include "rays/refined_views.glsl"
#include "shared/progress.glsl"

// Returns the number of resident views, from the first on, whose time the curriculum has reached:
// rays are drawn from these views. Before the curriculum ends, views are sorted by time, or the
// curriculum has reached all resident views (src/images/images.h).
uint drawn_views()
{
    float share = curriculum_share();
    uint first = 1u, last = config.view_count;
    if (share >= 1.0)
        return last;
    float latest = max(mix(config.first_time, config.last_time, share), cameras[config.first_view].time);
    while (first < last) {
        uint middle = (first + last) / 2u;
        if (cameras[config.first_view + middle * config.view_stride].time <= latest)
            first = middle + 1u;
        else
            last = middle;
    }
    return first;
}

// Returns the distance from the camera at which a ray begins; `pick`: random number in [0, 1). Half of
// the rays begin further away at first, at near_start and then nearer (as in RegNeRF, arXiv 2112.00724,
// section 3.3, all do): density close to a single camera cannot explain their pixels. The others keep
// the space in front of the cameras empty.
float first_distance(float pick)
{
    float share = float(state.step) / float(config.near_steps);
    if (training_ends())
        share = max(share, training_progress() / NEAR_SHARE);
    float further = pick < 0.5 ? max(1.0 - share, 0.0) : 0.0;
    return config.near_distance + further * (config.near_start - config.near_distance);
}

#include "rays/error_map.glsl"

// Returns the largest float below a positive x.
float below(float x)
{
    return uintBitsToFloat(floatBitsToUint(x) - 1u);
}

// Returns the slot of view `number` of the virtual rank whose turn it is.
uint slot_of(uint number)
{
    return number * config.slot_turns + (config.slot_turns > 1u ? config.first_view - config.slot_view : 0u);
}

// Returns the first of `count` increasing values reduce[at + i * stride] that exceeds x, or the last.
uint first_above(uint at, uint stride, uint count, float x)
{
    uint low = 0u, high = count - 1u;
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (reduce[at + middle * stride] > x)
            high = middle;
        else
            low = middle + 1u;
    }
    return low;
}

// Draws one of `views` views and a pixel of it by error. slot_pick, pick: random numbers in [0, 1).
uint draw_by_error(uint views, float slot_pick, vec3 pick, out uvec2 pixel)
{
    float total = reduce[slot_sums(slot_of(views - 1u))];
    uint number = first_above(slot_sums(slot_of(0u)), 3u * config.slot_turns, views,
                              min(slot_pick * total, below(total)));
    uint slot = slot_of(number), view = config.first_view + number * config.view_stride;
    Camera camera = cameras[view];
    uint count = slot_cell_count(camera);
    float mass = max(reduce[cell_mass(slot, count - 1u)], 1e-30);
    uvec4 area = cell_pixels(camera, first_above(cell_mass(slot, 0u), 1u, count, min(pick.x * mass, below(mass))));
    pixel = uvec2(min(area.x + uint(pick.y * float(area.z - area.x)), area.z - 1u),
                  draw_row(camera, area.y, area.w, pick.z));
    return view;
}

// Returns whether the cell's rays have no weight.
bool is_outlier_cell(uint cell)
{
    ErrorCell summary = error_cells[config.sky_cells + config.error_cells];
    return error_cells[cell].error < 0.0 && float(summary.rays) >= OUTLIER_LEAST * float(summary.high);
}

// Returns the density of a pixel in even drawing / its density in the mixture of even drawing and
// drawing by error. The quotient depends on the error of the pixel's cell and the mean error of pixels.
float even_by_drawn(uint views, uint cell)
{
    uint at = slot_sums(slot_of(views - 1u));
    float mean = reduce[at + 1u] / max(reduce[at + 2u], 1e-30);
    float mixture = 1.0 - config.error_share + config.error_share * error_of(cell) / mean;
    return reduce[at] > 0.0 ? 1.0 / mixture : 1.0;
}

// Draws one of a camera's known depths and sets its pixel. pick: random number in [0, 1).
Depth draw_depth(Camera camera, float pick, out uvec2 pixel)
{
    uint number = min(uint(pick * float(camera.depth_count)), camera.depth_count - 1u);
    uint at = config.first_depth_word + DEPTH_WORDS * (camera.first_depth + number);
    Depth depth =
        Depth(depth_words[at], depth_words[at + 1u], depth_words[at + 2u], depth_words[at + 3u]);
    uvec2 whole = uvec2(depth.x, depth.y - float(camera.first_row)) / camera.shrink;
    pixel = min(whole, uvec2(camera.width, camera.height) - 1u);
    return depth;
}
#endif

// Returns Ray.position of a position in the part of a view that the camera's pixels show.
uint position_in_image(Camera camera, vec2 position)
{
#ifdef TRAIN
    vec2 image = vec2(cameras[camera.view].width, cameras[camera.view].height);
#else
    vec2 image = vec2(camera.width, camera.height);
#endif
    vec2 whole = position * float(camera.shrink) + vec2(0.0, camera.first_row);
    return packSnorm2x16((whole - 0.5 * image) / max(image.x, image.y));
}

void main()
{
    uint index = gl_GlobalInvocationID.x;
    Ray ray;
#ifdef TRAIN
    if (index >= state.ray_count)
        return;
    // Draws again while the pixel is ignored: so all pixels that are not ignored are equally likely,
    // and those of panoramas by their solid angle.
    Camera camera;
    uvec2 pixel;
    uint number = config.first_ray + index;
    uint view, color = PIXEL_IGNORED;
    uint views = drawn_views();
    bool by_error = BY_ERROR != 0u && reduce[slot_sums(slot_of(views - 1u))] > 0.0 &&
                    random_unit(state.step, number, RANDOM_ERROR).y < config.error_share;
    bool by_depth = DEPTH != 0u && random_unit(state.step, number, RANDOM_DEPTH).x < config.depth_share;
    Depth known;
    for (uint draw = 0; draw < PIXEL_DRAWS && color == PIXEL_IGNORED; draw++) {
        vec3 pick = random_unit(state.step, number, RANDOM_PIXEL + draw * RANDOM_DRAW);
        known = Depth(0.0, 0.0, 0.0, 0.0);
        if (by_error && !by_depth) {
            float slot_pick = random_unit(state.step, number, RANDOM_ERROR + draw * RANDOM_DRAW).x;
            view = draw_by_error(views, slot_pick, pick, pixel);
            camera = cameras[view];
        } else {
            view = min(uint(pick.x * float(views)), views - 1u);
            view = config.first_view + view * config.view_stride;
            camera = cameras[view];
            // Each of the two coordinates has 24 random bits, enough for any image.
            uvec2 size = uvec2(camera.width, camera.height);
            pixel = min(uvec2(ivec2(pick.yz * vec2(size))), size - 1u);
            if (camera.lens == LENS_EQUIRECTANGULAR)
                pixel.y = draw_row(camera, 0u, camera.height, pick.z);
            if (camera.strip_share < 1.0 &&
                random_unit(state.step, number, RANDOM_STRIP + draw * RANDOM_DRAW).x >= camera.strip_share)
                continue;
            vec2 pick_depth = random_unit(state.step, number, RANDOM_DEPTH + draw * RANDOM_DRAW).yz;
            if (by_depth && pick_depth.y * float(MANY_DEPTHS) < float(camera.depth_count))
                known = draw_depth(camera, pick_depth.x, pixel);
        }
        color = pixels[camera.first_pixel + pixel.y * camera.width + pixel.x];
    }
    vec3 random_color = random_unit(state.step, number, RANDOM_BACKGROUND);
    vec2 position = vec2(pixel) + 0.5;
    vec3 along = random_unit(state.step, number, RANDOM_BACKGROUND + 16u);
    float jitter = along.x;

    vec4 target = unpackUnorm4x8(color);
    ray.target = float[4](target.x, target.y, target.z, target.w);
    // Chooses a scalar, because drivers miscompile a vector that a specialisation constant chooses.
    float plain = BACKGROUND == BACKGROUND_WHITE ? 1.0 : 0.0;
    vec3 background = BACKGROUND == BACKGROUND_RANDOM ? random_color : vec3(plain);
    ray.background = float[3](background.x, background.y, background.z);
    ray.cell = BY_ERROR != 0u || ROBUST != 0u ? cell_of(camera, pixel) : 0u;
    ray.weight = BY_ERROR != 0u ? even_by_drawn(views, ray.cell) : 1.0;
    if (ROBUST != 0u && is_outlier_cell(ray.cell))
        ray.weight = 0.0;
#else
    // push.a: camera; push.b: first ray of this batch (RANDOM_PIXELS: number of the batch); push.c:
    // rays in the batch; push.d: log2 of the supersampling factor along x and y.
    if (index >= push.c)
        return;
#ifdef GIVEN_RAYS
    ray = rays[index];
    given_span = vec2(ray.step, ray.last);
#else
    uint view = push.a;
    Camera camera = cameras[view];
#endif
#if defined(RANDOM_PIXELS)
    vec2 position = random_unit(push.b, index, RANDOM_PIXEL).xy * vec2(camera.width, camera.height);
#elif !defined(GIVEN_RAYS)
    uint sub = push.d; // rays per pixel: (1 << sub) squared
    uint number = push.b + index;
    uint inside = number & ((1u << (2u * sub)) - 1u);
    uint pixel = number >> (2u * sub);
    vec2 offset = (vec2(inside & ((1u << sub) - 1u), inside >> sub) + 0.5) / float(1u << sub);
    vec2 position = vec2(pixel % camera.width, pixel / camera.width) + offset;
#endif
    float jitter = 0.5;
#ifndef GIVEN_RAYS
    ray.target = float[4](0.0, 0.0, 0.0, 0.0);
    ray.background = config.render_background;
    ray.weight = 1.0;
    ray.cell = 0u;
#endif
#endif
#ifdef TRAIN
    if ((REFINE & REFINE_LENSES) != 0u)
        refine_lens(camera);
#endif
#ifdef GIVEN_RAYS
    vec3 origin = vec3(ray.origin[0], ray.origin[1], ray.origin[2]);
    vec3 direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
    const bool in_range = true;
#else
    vec3 origin, direction;
    float depth_scale;
    bool in_range = camera_ray(camera, position, origin, direction, depth_scale);
#endif
#ifdef TRAIN
    if ((REFINE & REFINE_POSES) != 0u) {
        direction = normalize(turned(direction, view_vector(camera.view, VIEW_TURN)));
        origin += view_vector(camera.view, VIEW_SHIFT);
    }
#endif
    vec2 span = ray_span(origin, direction);
#ifdef TRAIN
    span.x = max(span.x, first_distance(along.y));
#endif
#ifndef GIVEN_RAYS
    ray.origin = float[3](origin.x, origin.y, origin.z);
    ray.direction = float[3](direction.x, direction.y, direction.z);
    ray.distance_scale = depth_scale;
    ray.view = view;
    ray.position = position_in_image(camera, position);
    ray.time = camera.time;
    ray.has_sky = 0u;
#endif
    ray.step = to_steps(span.x);
    if (config.ray_samples == 0u) { // a march
#ifdef TRAIN
        ray.step += jitter;
#else
        // A cropped picture keeps the samples of the whole picture that are in the box.
        float whole = to_steps(whole_span(origin, direction).x) + jitter;
        ray.step = whole + max(ceil(ray.step - whole), 0.0);
#endif
    }
#ifdef TRAIN
    ray.known_t = known.depth / depth_scale;
    ray.known_sigma = known.sigma / depth_scale;
#elif !defined(GIVEN_RAYS)
    ray.known_t = ray.known_sigma = 0.0;
#endif
    ray.last = in_range && span.y > span.x ? to_steps(span.y) : -1.0;
#ifdef TRAIN
    if (color == PIXEL_IGNORED || !in_range)
        ray.last = -3.0;
#endif
    rays[index] = ray;
    results[index] = RayResult(float[3](0.0, 0.0, 0.0), 1.0, 0.0, 0u, 0u, 0u);
    if (SKY == 0u)
        return;
    // Last, so that little else is in registers.
    vec3 sky = sky_color(direction);
#ifdef TRAIN
    bool has_sky = target.w == 1.0 && is_skyward(direction) &&
                   largest(target.rgb - photographed_sky(sky, camera.view, ray.position)) < sky_tolerance(state.step);
#else
    bool has_sky = config.picture_sky != 0u;
#endif
    if (has_sky) {
        rays[index].background = float[3](sky.x, sky.y, sky.z);
        rays[index].has_sky = 1u;
    }
}
